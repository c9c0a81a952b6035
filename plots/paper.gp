# A figure of a paper made again: panels of grid_rows x grid_cols, block (panel - 1) * series + k holds x, value, low, high of a
# series; behind them a block a panel of published values: x, y, x from, to, y from, to, slot, whether read off a drawing.
boxes = kind eq 'bars' || kind eq 'stacked'
cols = narrow ? 1 : grid_cols
panels = grid_rows * grid_cols
rows_of_panels = int((panels + cols - 1) / cols)
width = wide(cols == 1 ? 640 : cols == 2 ? 900 : 1160)
cell_width = 1.0 * width / cols
names_length = 0
do for [i=1:n_place] { names_length = max(names_length, strlen(place[i])) }
turned = named && 8.6 * names_length > (cell_width - 80) / n_place
tics_pixels = turned ? 14 + 3.4 * min(names_length, 22) : 20
cell_height = 224.0 + tics_pixels
named_series = series > 1 ? series : 0
entries = named_series + n_line_name + stated + stated_ranges + read_off
with_legend = entries > 0
key_rows = with_legend ? rows_of_key(entries, max(longest, stated || stated_ranges || read_off ? 23 : 0), width) : 0
foot_pixels = 10.0 + 20 * key_rows
xlabel_pixels = xlabel_text eq '' ? 4 : 20
height = cell_height * rows_of_panels + xlabel_pixels + foot_pixels
load style
foot = bottom(foot_pixels)
set multiplot
unset key
if (named) { set grid noxtics }
if (!exists('xvalues')) { xvalues = '' }
do for [p=1:panels] {
    first_block = (p - 1) * series
    col = (p - 1) % cols
    row = int((p - 1) / cols)
    set lmargin at screen (col * cell_width + (col == 0 ? 72.0 : 58.0)) / width
    set rmargin at screen ((col + 1) * cell_width - 12.0) / width
    set tmargin at screen top(28 + row * cell_height)
    set bmargin at screen top((row + 1) * cell_height - tics_pixels - 6)
    axis_name = 'y'
    axis_log = ylog
    axis_lo = ylog ? y_lo[p] / (boxes ? 1.5 : 1) : min(0, y_lo[p])
    axis_hi = y_hi[p] > axis_lo ? y_hi[p] : axis_lo + 1
    if (n_line_name > 0) { axis_hi = max(axis_hi, ylog ? line_at[1] : axis_hi) }
    axis_values = ''
    axis_steps = 4.0
    load axes
    floor_y = axis_from
    if (named) {
        unset logscale x
        set xrange [-0.6:n_place-0.4]
        set xtics ()
        if (turned) { set xtics rotate by 24 right font ',11' } else { set xtics norotate center font ',12' }
        do for [i=1:n_place] { set xtics add (place[i] i-1) }
    } else {
        axis_name = 'x'
        axis_log = xlog && x_lo[p] > 0 && x_hi[p] > 10 * x_lo[p]
        axis_lo = axis_log ? x_lo[p] : x_lo[p] >= 0 && x_lo[p] < 0.3 * x_hi[p] ? 0 : x_lo[p]
        axis_hi = x_hi[p]
        axis_values = axis_log ? '' : xvalues
        load axes
        axis_values = ''
    }
    set title panel[p] offset 0,-0.6
    if (col == 0) { set label 97 ylabel_text at screen 13.0/width, graph 0.5 center rotate } else { unset label 97 }
    if (row == rows_of_panels - 1) { set label 98 xlabel_text at graph 0.5, screen bottom(foot_pixels + 12) center } else { unset label 98 }
    unset arrow
    do for [i=1:n_line_name] {
        set arrow i from graph 0, first line_at[i] to graph 1, first line_at[i] nohead dashtype 2 linewidth 1.2 linecolor rgb '#b00020'
    }
    published = panels * series + p - 1
    mark_rgb(s) = boxes ? 0 : rgb(int(s))
    marked = ""
    do for [i=0:marks[p] > 0 ? read_off : -1] {
        look = sprintf("pointtype %d pointsize 1.3 linewidth %.1f linecolor rgb variable", i ? 4 : 12, i ? 1.2 : 1.8)
        marked = marked . sprintf(", data index published every ::1 using 1:($8 == %d && $3 == $4 && $5 == $6 ? $2 : NaN):(mark_rgb($7)) with points %s", i, look) . \
            sprintf(", data index published every ::1 using 3:($8 == %d && ($3 < $4 || $5 < $6) ? $5 : NaN):($4-$3):($6-$5):(mark_rgb($7)) with vectors nohead dashtype 1 linewidth %.1f linecolor rgb variable", i, i ? 1.4 : 2.4)
    }
    if (kind eq 'bars') {
        drawn = "for [k=0:series-1] data index first_block + k every ::1 using 1:2:(0.74/series) with boxes linecolor rgb text_of(rgb(slot[k+1])), " . \
            "for [k=0:series-1] data index first_block + k every ::1 using 1:($3 < floor_y ? floor_y : $3):(0):($4 > $3 ? $4 - ($3 < floor_y ? floor_y : $3) : NaN) with vectors nohead dashtype 1 linecolor rgb '#333333' linewidth 0.9"
    }
    if (kind eq 'stacked') {
        drawn = "for [k=1:series] data index first_block + series - k every ::1 using 1:2:(0.7) with boxes linecolor rgb text_of(rgb(slot[series-k+1]))"
    }
    if (kind eq 'lines') {
        drawn = "for [k=0:series-1] data index first_block + k every ::1 using 1:2:($3 < floor_y ? floor_y : $3):4 with yerrorlines linetype slot[k+1]+1 pointsize 0.8"
    }
    if (kind eq 'points') { drawn = "for [k=0:series-1] data index first_block + k every ::1 using 1:2 with points linetype slot[k+1]+1 pointsize 1.1" }
    eval "plot " . drawn . marked
    unset label 99
}
unset label 97
unset label 98
unset arrow
if (with_legend) {
    load legend
    shape = boxes ? "with boxes linecolor rgb text_of(rgb(slot[k]))" : kind eq 'points' ? "with points linetype slot[k]+1" : "with linespoints linetype slot[k]+1"
    eval "plot NaN" . \
         (named_series ? ", for [k=1:series] NaN " . shape . " title series_name[k]" : "") . \
         (n_line_name > 0 ? ", for [i=1:n_line_name] NaN with lines dashtype 2 linewidth 1.2 linecolor rgb '#b00020' title line_name[i]" : "") . \
         (stated ? ", NaN with points pointtype 12 pointsize 1.3 linewidth 1.8 linecolor rgb '#000000' title 'published (text)'" : "") . \
         (stated_ranges ? ", NaN with lines dashtype 1 linewidth 2.4 linecolor rgb '" . (boxes || series > 1 ? '#000000' : text_of(rgb(slot[1]))) . "' title 'published range (text)'" : "") . \
         (read_off ? ", NaN with points pointtype 4 linecolor rgb '#777777' title 'published (read off)'" : "")
}
unset multiplot

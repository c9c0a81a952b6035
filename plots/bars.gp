# Panels of horizontal bars, block p - 1: name, mean, low, high of each policy, and where the axis ends.
# A bar that would flatten the others is cut there, and its value stands in it.
cols = narrow ? 1 : panels > 3 ? 2 : panels
rows_of_panels = int((panels + cols - 1) / cols)
row_pixels = marked ? 34 : 26
width = wide(1000)
height = rows_of_panels * (72 + row_pixels * n_rows)
load style
cut(v) = v > limit ? limit : v
limit = 0
first = names_pixels / width
each = (1.0 - first - 20.0/width) / cols
gap = 34.0 / width
tall = 72.0 + row_pixels * n_rows
axis_steps = cols > 2 || narrow ? 3.0 : 5.0
set multiplot
set yrange [n_rows-0.4:-0.6]
set grid noytics
set border 2
do for [p=1:panels] {
    column_of = (p - 1) % cols
    row_of = (p - 1) / cols
    stats [*:*][*:*] data index p-1 every ::1 using 5 nooutput name 'end'
    axis_name = 'x'
    axis_lo = 0
    axis_hi = end_max > 0 ? end_max : 1
    axis_log = 0
    axis_values = ''
    load axes
    if (column_of == 0) { load ytics } else { load no_rows }
    limit = axis_hi
    set lmargin at screen first + column_of*each + (column_of > 0 ? gap : 0)
    set rmargin at screen first + (column_of+1)*each - gap/2
    set tmargin at screen top(34 + row_of * tall)
    set bmargin at screen top((row_of + 1) * tall - 34)
    if (narrow) { # above its bars it would leave the figure
        set label 98 title_of(p) at screen 0.5, screen top(18 + row_of * tall) center
    } else {
        set title title_of(p) offset 0,-0.5
    }
    plot data index p-1 every ::1 using (cut($2)/2):0:(cut($2)/2):(0.32):(rgb(slot[int($0)+1])) with boxxyerror linecolor rgb variable, \
         '' index p-1 every ::1 using ($2 > limit ? NaN : $2):0:3:4 with xerrorbars linecolor rgb '#222222' linewidth 1 pointtype 0, \
         '' index p-1 every ::1 using (limit):0:($2 > limit ? sprintf('%.4g »', $2) : '') with labels right offset -0.5,0 textcolor rgb '#ffffff'
}
unset multiplot

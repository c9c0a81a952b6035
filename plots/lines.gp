# Panels of lines with intervals: block (panel - 1) * series + k holds x, mean, low, high, runs, overloaded runs.
# Logarithmic when the means of some panel differ by more than 30 times, and then in all; x when logx says so, or its values
# differ by more than 100 times.
# A ring is a mean over runs of which some were overloaded: it grows with their length.
if (!exists('logx')) { logx = 0 }
if (!exists('points')) { points = 0 }
if (!exists('xvalues')) { xvalues = '' }
if (!exists('overloads')) { overloads = 0 }
cols = panels > 1 && !narrow ? 2 : 1
rows_of_panels = int((panels + cols - 1) / cols)
width = wide(500 * cols)
key_rows = rows_of_key(series + (overloads > 0), overloads > 0 ? max(longest, 23) : longest, width)
foot_pixels = 12.0 + 20 * key_rows
height = 300 * rows_of_panels + 20 + 20 * key_rows
load style
foot = bottom(foot_pixels)
set multiplot layout rows_of_panels, cols margins screen (narrow ? 78.0 : 70.0)/width, 1 - 20.0/width, foot + 64.0/height, top(34) \
    spacing screen 80.0/width, screen 98.0/height
set xlabel xlabel_text
stats [*:*][*:*] data using 1 nooutput name 'x'
axis_name = 'x'
logx = x_min > 0 && x_max > (logx ? 3 : 100) * x_min
pad = logx ? 0 : 0.03 * (x_max - x_min)
axis_lo = logx ? x_min : x_min >= 0 && x_min < 0.25 * x_max ? 0 : x_min - pad
axis_hi = x_max
axis_log = logx
axis_values = logx ? xvalues : ''
load axes
steep = 0
some_zero = 0
do for [p=1:panels] {
    stats [*:*][*:*] data index (p-1)*series:p*series - 1 using 2 nooutput name 'all'
    some_zero = some_zero || all_min <= 0
    steep = steep || (all_min > 0 && all_max > 30 * all_min)
}
steep = steep && !some_zero
unset key
do for [p=1:panels] {
    first_block = (p - 1) * series
    stats [*:*][*:*] data index first_block:first_block + series - 1 using 2 nooutput name 'all'
    stats [*:*][*:*] data index first_block:first_block + series - 1 using 4 nooutput name 'high'
    stats [*:*][*:*] data index first_block:first_block + series - 1 using 3 nooutput name 'low'
    axis_name = 'y'
    axis_log = steep
    # an interval that reaches far below the means, or below zero, is cut
    axis_lo = steep ? (low_min > all_min / 3 ? low_min : all_min / 3) : low_min < 0 ? low_min : 0
    axis_hi = high_max > all_max ? high_max : all_max
    axis_values = ''
    load axes
    floor_y = axis_from
    set title title_of(p) . (steep && !narrow ? ', log scale' : '') offset 0,-0.5
    if (steep && narrow) { set ylabel 'log scale' offset 0.5 } # above it the title would leave the figure
    if (points) {
        plot for [k=0:series-1] data index first_block + k using 1:2 with points linetype slot[k+1]+1
    } else {
        plot for [k=0:series-1] data index first_block + k using 1:2:($3 < floor_y ? floor_y : $3):4 with yerrorlines linetype slot[k+1]+1, \
             for [k=0:series-1] data index first_block + k using 1:($6 > 0 ? $2 : NaN) with points pointtype 6 pointsize 1.6 linewidth 1.2 linecolor rgb '#b00020'
    }
    unset label 99
}
load legend
# as text: the title of a plot of nothing takes room too
eval "plot for [k=0:series-1] data index k using (2):(2) with linespoints linetype slot[k+1]+1 title columnheader(1)" . (overloads > 0 ? \
     ", NaN with points pointtype 6 pointsize 1.6 linewidth 1.2 linecolor rgb '#b00020' title 'overloaded in some runs'" : "")
unset multiplot

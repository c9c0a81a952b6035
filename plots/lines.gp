# Panels of lines with intervals: block (panel - 1) * series + k holds x, mean, low, high.
# A panel whose means differ by more than 30 times has a logarithmic axis; x has one if logx says so.
if (!exists('logx')) { logx = 0 }
if (!exists('points')) { points = 0 }
cols = panels > 1 ? 2 : 1
rows = int((panels + cols - 1) / cols)
key_rows = int((series + 2 * cols - 1) / (2 * cols))
width = 500 * cols
height = 290 * rows + 20 + 20 * key_rows
load style
foot = (12.0 + 20 * key_rows) / height
set multiplot layout rows, cols margins screen 70.0/width, 1 - 20.0/width, foot + 54.0/height, 1 - 34.0/height \
    spacing screen 80.0/width, screen 88.0/height
set xlabel xlabel_text
if (logx) {
    set logscale x
    set format x '%g'
}
set offsets graph 0.04, graph 0.04, graph 0.05, graph 0.02
set format y '%g'
unset key
do for [p=1:panels] {
    first_block = (p - 1) * series
    stats [*:*][*:*] data index first_block:first_block + series - 1 using 2 nooutput name 'all'
    steep = all_min > 0 && all_max > 30 * all_min
    floor_y = steep ? all_min / 2 : 0
    if (steep) { set logscale y } else { unset logscale y }
    set yrange [floor_y:*]
    set title title_of(p) offset 0,-0.5
    if (points) {
        plot for [k=0:series-1] data index first_block + k using 1:2 with points linetype k+1
    } else {
        plot for [k=0:series-1] data index first_block + k using 1:2:(steep && $3 < floor_y ? floor_y : $3):4 with yerrorlines linetype k+1
    }
}
load legend
plot for [k=0:series-1] data index k using (2):(2) with linespoints linetype k+1 title columnheader(1)
unset multiplot

# A metric over two parameters, one map per series: x index, y index, value. Colours are logarithmic where values differ by
# more than 30 times, as the axes of lines.gp.
cols = series > 1 ? 2 : 1
rows = int((series + cols - 1) / cols)
width = wide((y_is_text ? 630 : 520) * cols)
height = 380 * rows
load style
stats [*:*][*:*] data using 3 nooutput name 'all'
set palette defined (0 '#f7fbff', 0.35 '#9ecae1', 0.7 '#3182bd', 1 '#08306b')
set multiplot layout rows, cols margins screen (y_is_text ? 190.0 : 80.0)/width, 1 - 110.0/width, 60.0/height, top(40) \
    spacing screen (y_is_text ? 280.0 : 170.0)/width, screen 100.0/height
unset grid
set border 15
nx = n_xnames
ny = n_ynames
set xtics () scale 0
set ytics () scale 0
do for [i=1:nx] { set xtics add (xnames[i] i-1) }
do for [i=1:ny] { set ytics add (ynames[i] i-1) }
set xrange [-0.5:nx-0.5]
set yrange [-0.5:ny-0.5]
set xlabel xlabel_text
set ylabel ylabel_text
steep = all_min > 0 && all_max > 30 * all_min
if (steep) { set logscale cb }
set cblabel title1 . (steep ? ', log scale' : '')
set cbrange [all_min:all_max > all_min ? all_max : all_min + 1]
middle = steep ? sqrt(all_min * all_max) : (all_min + all_max) / 2
digits(v) = sprintf(abs(v) >= 1000 && abs(v) < 100000 ? '%.0f' : '%.3g', v)
ink(v) = v > middle ? 0xffffff : 0x111111
do for [k=0:series-1] {
    name = value(sprintf('name%d', k + 1))
    set title title1 . (name eq '' ? '' : ', ' . name) offset 0,-0.5
    plot data index k every ::1 using 1:2:($1-0.5):($1+0.5):($2-0.5):($2+0.5):3 with boxxyerror linecolor palette, \
         '' index k every ::1 using 1:2:(digits($3)):(ink($3)) with labels textcolor rgb variable
    unset label 99
}
unset multiplot

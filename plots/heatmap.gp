# A metric over two parameters, one map per series: x index, y index, value. Colours are logarithmic where values differ by
# more than 30 times, as the axes of lines.gp.
nx = n_xnames
ny = n_ynames
longest = 0
do for [i=1:ny] { longest = max(longest, strlen(ynames[i])) }
left = y_is_text ? min(190.0, 48 + 8.4 * longest) : 80.0
right = 110.0
gap = left + 90
maps_of(c, width) = (width - left - right - (c - 1) * gap) / c # pixels of a map
digits_wide = 42.0 # of a cell
cols = series > 1 && (canvas == 0 || maps_of(2, canvas) >= digits_wide * nx) ? 2 : 1
rows = int((series + cols - 1) / cols)
width = wide(max(335, digits_wide * nx) * cols + left + right + (cols - 1) * gap)
height = 380 * rows
with_digits = maps_of(cols, width) >= digits_wide * nx
load style
stats [*:*][*:*] data using 3 nooutput name 'all'
set palette defined (0 '#f7fbff', 0.35 '#9ecae1', 0.7 '#3182bd', 1 '#08306b')
set multiplot layout rows, cols margins screen left/width, 1 - right/width, 60.0/height, top(40) \
    spacing screen gap/width, screen 100.0/height
unset grid
set border 15
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
    # on paper the colours' label has room for the metric, and a title of both has none
    set title (canvas > 0 && name ne '' ? name : title1 . (name eq '' ? '' : ', ' . name)) offset 0,-0.5
    plot data index k every ::1 using 1:2:($1-0.5):($1+0.5):($2-0.5):($2+0.5):3 with boxxyerror linecolor palette, \
         '' index k every ::1 using 1:(with_digits ? $2 : NaN):(digits($3)):(ink($3)) with labels textcolor rgb variable
    unset label 99
}
unset multiplot

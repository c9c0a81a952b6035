# How much a kernel (row) slows down beside another (column). The scale reaches 2 at least: a few percent look like little.
width = wide(330 + 110 * columns)
height = 140 + 50 * rows
load style
stats [*:*][*:*] data using 3 nooutput name 'all'
unset grid
set border 15
set palette defined (0 '#f7fbff', 0.35 '#9ecae1', 0.7 '#3182bd', 1 '#08306b')
set xrange [-0.5:columns-0.5]
set yrange [rows-0.5:-0.5]
set tics scale 0
set lmargin at screen 150.0/width
set rmargin at screen 1 - 110.0/width
set tmargin at screen top(10)
set bmargin at screen bottom(90)
set xlabel "aggressor\n(empty: they are on one engine)"
set ylabel 'victim'
set cblabel 'slowdown (times)'
most = all_max > 2 ? all_max : 2
set cbrange [1:most]
ink(v) = v > 0.5 * (1 + most) ? 0xffffff : 0x111111
plot data index 0 every ::1 using 1:2:($1-0.5):($1+0.5):($2-0.5):($2+0.5):3:xtic(6):ytic(7) with boxxyerror linecolor palette, \
     '' index 0 every ::1 using 1:2:(sprintf('%.2f', $3)):(ink($3)) with labels textcolor rgb variable

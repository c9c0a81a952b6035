# Who delays whom: seconds that requests of a class (row) waited for requests of another (column).
width = 560
height = 330
load style
stats data using 3 nooutput name 'all'
unset grid
set border 15
set palette defined (0 '#f7fbff', 0.35 '#9ecae1', 0.7 '#3182bd', 1 '#08306b')
set xrange [-0.5:columns-0.5]
set yrange [rows-0.5:-0.5]
set tics scale 0
set xlabel 'aggressor'
set ylabel 'victim'
set cblabel 'waiting per victim (s)'
set cbrange [0:all_max > 0 ? all_max : 1]
ink(v) = v > all_max / 2 ? 0xffffff : 0x111111
plot data index 0 every ::1 using 1:2:($1-0.5):($1+0.5):($2-0.5):($2+0.5):3:xtic(4):ytic(5) with boxxyerror linecolor palette, \
     '' index 0 every ::1 using 1:2:(sprintf('%.3g', $3)):(ink($3)) with labels textcolor rgb variable

# Pairs of claims that may hold together: column, row, share of the space in percent. From report.py.
width = 620
height = 560
format = 'svg'
load style
stats data using 3 nooutput name 'all'
n = words(ids)
set palette defined (0 '#f7fbff', 0.35 '#9ecae1', 0.7 '#3182bd', 1 '#08306b')
set border 15
unset grid
set xtics () scale 0
set ytics () scale 0
do for [i=1:n] { set xtics add (word(ids, i) i-1); set ytics add (word(ids, i) i-1) }
set xrange [-0.5:n-0.5]
set yrange [n-0.5:-0.5]
set cblabel 'share of the open space where both may hold, %'
set cbrange [0:all_max > 0 ? all_max : 1]
ink(v) = v > all_max / 2 ? 0xffffff : 0x111111
plot data using 1:2:($1-0.5):($1+0.5):($2-0.5):($2+0.5):3 with boxxyerror linecolor palette, \
     '' using 1:2:(sprintf('%.1f', $3)):(ink($3)) with labels textcolor rgb variable

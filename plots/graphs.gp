# Strategies of switching NPU graphs: compute above, loading below in each row; numbers are blocks.
width = 1100
height = 110 + 52 * rows
load style
array shade[3] = ['#0072B2', '#009E73', '#E69F00']
set yrange [rows-0.5:-0.5]
load ytics
set xrange [0:*]
set grid noytics
set xlabel 'time (the units of the input)'
set key outside bottom center horizontal
mid(lane) = lane == 0 ? -0.19 : 0.19
plot for [k=0:2] data index k using 3:1:3:4:($1+mid($2)-0.17):($1+mid($2)+0.17) with boxxyerror linecolor rgb shade[k+1] title columnheader(1), \
     for [k=0:2] data index k every ::1 using (($3+$4)/2):($1+mid($2)):5 with labels font ',9' textcolor rgb '#ffffff'

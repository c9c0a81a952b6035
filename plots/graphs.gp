# Strategies of switching NPU graphs: compute above, loading below in each row; numbers are blocks.
width = wide(1100)
key_rows = rows_of_key(3, 15, width)
height = 90 + 20 * key_rows + 52 * n_rows
load style
foot = bottom(12.0 + 20 * key_rows)
array shade[3] = ['#0072B2', '#00785A', '#502800']
set yrange [n_rows-0.5:-0.5]
load ytics
stats [*:*][*:*] data using 4 nooutput name 'last'
set xrange [0:last_max]
set grid noytics
set xlabel (narrow ? 'time (units of --p)' : 'time (in the units of --p, --d and --s)')
longest = 0
do for [i=1:n_rows] { longest = strlen(rows[i]) > longest ? strlen(rows[i]) : longest }
left = max(narrow ? 50.0 : 180.0, 8.2 * longest + 16)
set xtics time_step(last_max, width - left - 20)
set lmargin at screen left/width
set rmargin at screen 1 - 20.0/width
set tmargin at screen top(12)
set bmargin at screen foot + bottom(64)
set key at screen 0.5, foot/2 center center horizontal maxrows key_rows
mid(lane) = lane == 0 ? -0.19 : 0.19
plot for [k=0:2] data index k using 3:1:3:4:($1+mid($2)-0.17):($1+mid($2)+0.17) with boxxyerror linecolor rgb shade[k+1] title columnheader(1), \
     for [k=0:2] data index k every ::1 using (($3+$4)/2):($1+mid($2)):(($4 - $3) * (width - left - 20) > 8 * last_max * strlen(strcol(5)) ? strcol(5) : '') with labels font ',9' textcolor rgb '#ffffff'

# The requests of a job over time, a row each: from arrival to end, which is how many seconds. Lines go from the end of a request to what waited for it.
width = wide(1100)
key_rows = rows_of_key(6, 17, width)
height = 90 + 20 * key_rows + 26 * n_rows
load style
foot = bottom(12.0 + 20 * key_rows)
array shade[5] = ['#949494', '#8A3A00', '#D55E00', '#004A75', '#2E8BC9']
stats [*:*][*:*] data index 8 every ::1 using 3 nooutput name 'last'
set xrange [0:last_max]
set yrange [n_rows-0.4:-0.6]
load ytics
set grid noytics
set xlabel (narrow ? 'time (s)' : 'time since the first arrival of the job (s)')
left = narrow ? names_pixels : 160.0
set xtics time_step(last_max, width - left - 60)
set lmargin at screen left/width
set rmargin at screen 1 - 60.0/width
set tmargin at screen top(12)
set bmargin at screen foot + bottom(64)
set key at screen 0.5, foot/2 center center horizontal maxrows key_rows
# The near edge of the child's row.
edge(from, to) = to > from ? to - 0.34 : to < from ? to + 0.34 : to
plot data index 6 every ::1 using 2:1:($4-$2):(0) with vectors nohead linecolor rgb '#767676' dashtype solid linewidth 0.8, \
     data index 6 every ::1 using 4:1:(0):(edge($1,$3)-$1) with vectors filled head size screen 0.006,20 linecolor rgb '#767676' dashtype solid linewidth 0.8, \
     for [k=0:4] data index k every ::1 using 2:1:2:3:($1-0.32):($1+0.32) with boxxyerror linecolor rgb shade[k+1], \
     data index 7 every ::1 using 2:1:($4-$2):(0) with vectors nohead linecolor rgb '#000000' dashtype solid linewidth 1.6, \
     data index 7 every ::1 using 4:1:(0):(edge($1,$3)-$1) with vectors filled head size screen 0.006,20 linecolor rgb '#000000' dashtype solid linewidth 1.6, \
     data index 5 every ::1 using 2:1:2:3:($1-0.32):($1+0.32) with boxxyerror fillstyle empty border linecolor rgb '#000000' dashtype solid linewidth 1.6, \
     data index 8 every ::1 using (last_max):1:(sprintf('%.3g s', $3 - $2)) with labels left offset 0.8,0 font ',10' textcolor rgb '#444444', \
     for [k=0:4] NaN with boxes linecolor rgb shade[k+1] title (k == 0 ? 'waiting' : k == 1 ? 'reactive prefill' : k == 2 ? 'reactive answer' : k == 3 ? 'proactive prefill' : 'proactive answer'), \
     NaN with lines linecolor rgb '#000000' dashtype solid linewidth 1.6 title 'critical path'

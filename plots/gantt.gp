# The schedule of a window: launches on each track with the number of their request where there is room, the share of the
# window in which each is busy, and where preemption was asked for. Several inputs stand one above the other on one axis.
width = wide(1100)
key_rows = rows_of_key(6, 17, width)
height = 90 + 20 * key_rows + 44 * n_rows
load style
foot = bottom(12.0 + 20 * key_rows)
array shade[6] = ['#8A3A00', '#D55E00', '#004A75', '#2E8BC9', '#8C8C8C', '#DDDDDD']
array kind[5] = ['reactive prefill', 'reactive decode', 'proactive prefill', 'proactive decode', 'load or compile']
set xrange [begin:end]
set yrange [n_rows-0.5:-0.5]
load ytics
set grid noytics
set xlabel 'time (s)'
longest = 0
do for [i=1:n_rows] { longest = strlen(rows[i]) > longest ? strlen(rows[i]) : longest }
left = max(narrow ? 50.0 : 90.0, 8.2 * longest + 16)
set xtics time_step(end - begin, width - left - 56)
set lmargin at screen left/width
set rmargin at screen 1 - 56.0/width
set label 98 'busy' at screen 1 - 48.0/width, top(4) left font ',10' textcolor rgb '#444444'
set tmargin at screen top(12)
set bmargin at screen foot + bottom(64)
set key at screen 0.5, foot/2 center center horizontal maxrows key_rows
plot for [k=0:5] data index k every ::1 using 2:1:2:3:($1-0.36):($1+0.36) with boxxyerror linecolor rgb shade[k+1], \
     for [k=0:4] NaN with boxes linecolor rgb shade[k+1] title kind[k+1], \
     data index 6 every ::1 using 2:($1-0.42) with points pointtype 11 pointsize 0.5 linecolor rgb '#000000' title columnheader(1), \
     data index 7 every ::1 using 2:1:(0):(0.36) with vectors nohead linecolor rgb '#666666', \
     data index 7 every ::1 using 2:1:(0):(-0.36) with vectors nohead linecolor rgb '#666666', \
     data index 7 every ::1 using 2:($1 + (int($0) % 2 ? 0.18 : -0.18)):3 with labels left offset 0.5,0 font ',9' textcolor rgb '#222222', \
     data index 8 every ::1 using 2:1:($4 * (width - left - 56) > 26 * (end - begin) ? sprintf('%d', $3) : '') with labels font ',10' textcolor rgb '#ffffff', \
     data index 9 every ::1 using (end):1:(sprintf('%.0f %%', 100 * $2)) with labels left offset 0.8,0 font ',10' textcolor rgb '#444444'

# The schedule of a window: launches on each track, and where preemption was asked for.
width = 1100
height = 110 + 46 * rows
load style
array shade[5] = ['#D55E00', '#E69F00', '#0072B2', '#56B4E9', '#009E73']
set xrange [begin:end]
set yrange [rows-0.5:-0.5]
load ytics
set grid noytics
set xlabel 'time (s)'
set key outside bottom center horizontal
plot for [k=0:4] data index k every ::1 using 2:1:2:3:($1-0.36):($1+0.36) with boxxyerror linecolor rgb shade[k+1], \
     for [k=0:4] NaN with boxes linecolor rgb shade[k+1] title word('reactive-prefill reactive-decode proactive-prefill proactive-decode load/compile', k+1), \
     data index 5 every ::1 using 2:($1-0.42) with points pointtype 11 pointsize 0.5 linecolor rgb '#000000' title columnheader(1)

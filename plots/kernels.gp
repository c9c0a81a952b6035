# Time and energy of each operator on each device: name, index, ms, low, high, joules.
width = 1000
height = 90 + 20 * ops * devices
load style
set multiplot layout 1,2 margins screen 200.0/width, 1 - 20.0/width, 74.0/height, 1 - 20.0/height spacing screen 30.0/width
set yrange [ops-0.4:-0.6]
load ytics
set grid noytics
set logscale x
set format x '%g'
step = 0.8 / devices
at(i, k) = i - 0.4 + step * (k + 0.5)
set xlabel 'time (ms)'
set key at screen 0.5, 6.0/height bottom center horizontal
plot for [k=0:devices-1] data index k using 3:(at($2,k)):4:5 with xerrorbars linecolor rgb colour[k+1] pointtype mark[k+1] title columnheader(1), \
     for [k=0:devices-1] data index k using 3:(at($2,k)) with points linecolor rgb colour[k+1] pointtype mark[k+1]
unset key
unset ytics
set xlabel 'energy (J)'
plot for [k=0:devices-1] data index k every ::1 using 6:(at($2,k)) with points linecolor rgb colour[k+1] pointtype mark[k+1]
unset multiplot

# Kernels under the roofs of their devices, as the cost model has them. Filled: prefill; hollow: decode.
width = 820
height = 520
load style
set logscale xy
set format x '%g'
set format y '%g'
set xrange [0.3:3000]
set yrange [0.005:*]
set xlabel 'operational intensity (flop/byte of DDR)'
set ylabel 'TFLOP/s'
set key bottom right
plot for [k=0:devices-1] data index k using 1:2 with lines linecolor rgb colour[k+1] linewidth 2 title columnheader(1), \
     for [k=0:devices-1] data index devices+k every ::1 using 1:($4 == 0 ? $2 : NaN) with points linecolor rgb colour[k+1] pointtype 7, \
     for [k=0:devices-1] data index devices+k every ::1 using 1:($4 == 1 ? $2 : NaN) with points linecolor rgb colour[k+1] pointtype 6

# Kernels under the roofs of their devices, as the cost model has them. Filled: prefill; hollow: decode.
width = wide(820)
height = 520
load style
set lmargin at screen 70.0/width
set rmargin at screen 1 - 20.0/width
set tmargin at screen top(14)
set bmargin at screen bottom(90)
stats [*:*][*:*] data using 1 nooutput name 'x'
stats [*:*][*:*] data using 2 nooutput name 'y'
axis_values = ''
axis_log = 1
axis_name = 'x'
axis_lo = x_min
axis_hi = x_max
load axes
axis_name = 'y'
axis_lo = y_min
axis_hi = y_max
load axes
set xlabel 'operational intensity (flop per byte of DDR), log scale'
set ylabel 'TFLOP/s, log scale' offset 1
set key at screen 0.5, bottom(6) bottom center horizontal
plot for [k=0:devices-1] data index k using 1:2 with lines linecolor rgb text_of(rgb(slot[k+1])) linewidth 2 title columnheader(1), \
     for [k=0:devices-1] data index devices+k every ::1 using 1:($4 == 0 ? $2 : NaN) with points linecolor rgb text_of(rgb(slot[k+1])) pointtype 7, \
     for [k=0:devices-1] data index devices+k every ::1 using 1:($4 == 1 ? $2 : NaN) with points linecolor rgb text_of(rgb(slot[k+1])) pointtype 6, \
     for [k=0:min(1,devices-1)] data index devices+k every ::1 using 1:2:(strlen(strcol(3)) > 1 ? strcol(3) : '') with labels left offset 0.7,0.35-0.7*k font ',10' textcolor rgb text_of(deep(rgb(slot[k+1]))), \
     for [k=2:devices-1] data index devices+k every ::1 using 1:2:(strlen(strcol(3)) > 1 ? strcol(3) : '') with labels right offset -0.7,0 font ',10' textcolor rgb text_of(deep(rgb(slot[k+1]))), \
     NaN with points linecolor rgb '#444444' pointtype 7 title 'prefill', NaN with points linecolor rgb '#444444' pointtype 6 title 'decode'

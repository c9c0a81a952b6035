# Kernels under the roofs of their devices, as the cost model has them. Filled: prefill; hollow: decode.
width = wide(820)
key_rows = rows_of_key(devices + 2, 7, width)
height = (narrow ? 360 : 450) + 50 + 20 * key_rows
load style
foot = bottom(6.0 + 20 * key_rows)
set lmargin at screen 70.0/width
set rmargin at screen 1 - 20.0/width
set tmargin at screen top(14)
set bmargin at screen foot + bottom(64)
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
set xlabel (narrow ? 'flop per byte of DDR, log scale' : 'operational intensity (flop per byte of DDR), log scale')
names_font = narrow ? ',8' : ',10'
set ylabel 'TFLOP/s, log scale' offset 1
set key at screen 0.5, foot/2 center center horizontal maxrows key_rows
plot for [k=0:devices-1] data index k using 1:2 with lines linecolor rgb text_of(rgb(slot[k+1])) linewidth 2 title columnheader(1), \
     for [k=0:devices-1] data index devices+k every ::1 using 1:($4 == 0 ? $2 : NaN) with points linecolor rgb text_of(rgb(slot[k+1])) pointtype 7, \
     for [k=0:devices-1] data index devices+k every ::1 using 1:($4 == 1 ? $2 : NaN) with points linecolor rgb text_of(rgb(slot[k+1])) pointtype 6, \
     for [k=0:min(1,devices-1)] data index devices+k every ::1 using 1:2:(strlen(strcol(3)) > 1 ? strcol(3) : '') with labels left offset 0.7,0.35-0.7*k font names_font textcolor rgb text_of(deep(rgb(slot[k+1]))), \
     for [k=2:devices-1] data index devices+k every ::1 using 1:2:(strlen(strcol(3)) > 1 ? strcol(3) : '') with labels right offset -0.7,0 font names_font textcolor rgb text_of(deep(rgb(slot[k+1]))), \
     NaN with points linecolor rgb '#444444' pointtype 7 title 'prefill', NaN with points linecolor rgb '#444444' pointtype 6 title 'decode'

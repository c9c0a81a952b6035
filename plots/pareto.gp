# Reactive latency against proactive throughput; points of one policy are joined by load. Better is right and down.
# Of one load the front of the means is drawn: what no other mean beats in both.
width = wide(760)
key_rows = rows_of_key(series + front + (overloads > 0), max(longest, 23), width)
height = 440 + 20 * key_rows
load style
foot = (12.0 + 20 * key_rows) / height
set multiplot
set lmargin at screen 80.0/width
set rmargin at screen 1 - 20.0/width
set tmargin at screen top(14)
set bmargin at screen foot + 64.0/height
stats [*:*][*:*] data using 2 nooutput name 'y'
stats [*:*][*:*] data using 5 nooutput name 'ylow'
stats [*:*][*:*] data using 6 nooutput name 'yhigh'
stats [*:*][*:*] data using 3 nooutput name 'xlow'
stats [*:*][*:*] data using 4 nooutput name 'xhigh'
steep = y_min > 0 && y_max > 30 * y_min
axis_name = 'y'
axis_log = steep
axis_lo = steep ? (ylow_min > y_min / 3 ? ylow_min : y_min / 3) : 0
axis_hi = yhigh_max
axis_values = ''
load axes
floor_y = axis_from
axis_name = 'x'
axis_log = 0
# throughputs that differ by less than a fifth are drawn as near as they are: the offered load, on a stable machine
near = xhigh_max - xlow_min < 0.2 * xhigh_max
axis_lo = near ? 0.8 * xlow_min : xlow_min > 0.3 * xhigh_max ? xlow_min - 0.05 * (xhigh_max - xlow_min) : 0
axis_hi = near ? 1.15 * xhigh_max : xhigh_max
load axes
set xlabel title1
set ylabel title2 . (steep ? ', log scale' : '') offset 1
unset key
plot for [i=1:front > 0 ? 1 : 0] data index series every ::1 using 1:2 with steps linecolor rgb '#999999' dashtype 2 linewidth 1.4, \
     for [k=0:series-1] data index k every ::1 using 1:2:3:4:($5 < floor_y ? floor_y : $5):6 with xyerrorbars linetype slot[k+1]+1, \
     for [k=0:series-1] data index k every ::1 using 1:2 with lines linetype slot[k+1]+1 linewidth 1, \
     for [k=0:series-1] data index k every ::1 using 1:($7 > 0 ? $2 : NaN) with points pointtype 6 pointsize 1.6 linewidth 1.2 linecolor rgb '#b00020'
unset label 99
load legend
plot for [k=0:series-1] data index k using (2):(2) with linespoints linetype slot[k+1]+1 title columnheader(1), \
     for [i=1:front > 0 ? 1 : 0] NaN with lines linecolor rgb '#999999' dashtype 2 linewidth 1.4 title 'front of the means', \
     for [i=1:overloads > 0 ? 1 : 0] NaN with points pointtype 6 pointsize 1.6 linewidth 1.2 linecolor rgb '#b00020' title 'overloaded in some runs'
unset multiplot

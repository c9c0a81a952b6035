# Reactive latency against proactive throughput; points of one policy are joined by load. Better is right and down.
width = 760
height = 520
load style
set xlabel title1
set ylabel title2
stats data using 2 nooutput name 'all'
steep = all_min > 0 && all_max > 30 * all_min
floor_y = steep ? all_min / 2 : 0
if (steep) { set logscale y }
set yrange [floor_y:*]
set offsets graph 0.05, graph 0.05, graph 0.05, 0
set key outside bottom center horizontal maxcols 3
set xlabel offset 0,0.3
# The shape that the means bound: from each front point, worse in either direction.
plot data index series using 1:2 with steps linecolor rgb '#999999' dashtype 2 linewidth 1.4 title columnheader(1), \
     for [k=0:series-1] data index k using 1:2:3:4:(steep && $5 < floor_y ? floor_y : $5):6 with xyerrorbars linetype k+1 title columnheader(1), \
     for [k=0:series-1] data index k using 1:2 with lines linetype k+1 linewidth 1

# DDR bandwidth over time, averaged over 600 bins; tiers at 0.4 and 0.7 of the peak.
width = 1000
height = 340
load style
set xrange [begin:end]
set xlabel 'time (s)'
set ylabel 'DDR bandwidth (GB/s)'
set rmargin 9
set tmargin 2
set key at graph 1, 1.01 bottom right horizontal
if (peak > 0) {
    set yrange [0:1.05*peak]
    set object 1 rectangle from graph 0, first 0.7*peak to graph 1, first peak fillcolor rgb '#f6d9c9' fillstyle solid 0.6 noborder behind
    set object 2 rectangle from graph 0, first 0.4*peak to graph 1, first 0.7*peak fillcolor rgb '#fbeed6' fillstyle solid 0.6 noborder behind
    set label 1 'high' at graph 1.01, first 0.85*peak left textcolor rgb '#884422'
    set label 2 'medium' at graph 1.01, first 0.55*peak left textcolor rgb '#886622'
    set label 3 'low' at graph 1.01, first 0.2*peak left textcolor rgb '#446622'
} else {
    set yrange [0:*]
}
plot data index 1 using 1:2 with lines linecolor rgb '#999999' linewidth 1 title columnheader(1), \
     data index 0 using 1:2 with lines linetype 1 linewidth 1.2 title columnheader(1)

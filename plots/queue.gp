# Live requests of each class, and sequences in decode launches, over time.
width = 1000
height = 400
load style
set multiplot layout 2,1 margins screen 70.0/width, 1 - 20.0/width, 60.0/height, 1 - 34.0/height spacing screen 40.0/height
set xrange [begin:end]
set yrange [0:*]
set key at screen 0.99, 0.985 top right horizontal
set ylabel 'live requests'
set format x ''
plot data index 0 using 1:2 with lines linetype 1 title columnheader(1), \
     data index 1 using 1:2 with lines linetype 2 title columnheader(1), \
     NaN with lines linetype 3 title 'decode batch'
unset key
set format x '%g'
set xlabel 'time (s)'
set ylabel 'decode batch'
plot data index 2 using 1:2 with lines linetype 3
unset multiplot

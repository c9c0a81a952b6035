# DDR bandwidth over time, averaged over bins: carried as an area, demanded as a line; tiers at 0.4 and 0.7 of the peak.
width = wide(1000)
key_pixels = 20.0 * (rows_of_key(2, 8, width - 140) - 1) # of rows above the first
height = 352 + key_pixels
load style
set xrange [begin:end]
set xlabel 'time (s)'
set ylabel 'DDR bandwidth (GB/s)'
set lmargin at screen 70.0/width
set rmargin at screen 1 - 70.0/width
set tmargin at screen top(30 + key_pixels)
set bmargin at screen bottom(66)
set key at screen 1 - 70.0/width, top(24 + key_pixels) bottom right horizontal
if (peak > 0) {
    set yrange [0:1.05*peak]
    do for [i=1:2] {
        set arrow i from graph 0, first (i == 1 ? 0.7 : 0.4)*peak to graph 1, first (i == 1 ? 0.7 : 0.4)*peak nohead linecolor rgb '#aa7744' dashtype 2
    }
    set label 1 'high' at graph 1.01, first 0.85*peak left textcolor rgb '#884422'
    set label 2 'medium' at graph 1.01, first 0.55*peak left textcolor rgb '#886622'
    set label 3 'low' at graph 1.01, first 0.2*peak left textcolor rgb '#446622'
} else {
    set yrange [0:*]
}
plot data index 0 using 1:2 with filledcurves y1=0 linecolor rgb '#2E8BC9' fillstyle solid 1 title columnheader(1), \
     data index 1 using 1:2 with lines linecolor rgb '#0014C8' linewidth 1 title columnheader(1)

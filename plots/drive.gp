# Real runs against simulated ones: two panels of dots, one per request, and the means of each policy.
width = wide(1150)
panel = narrow ? 250.0 : 340.0
height = narrow ? 2 * (panel + 64) + 26 * policies + 188 : 430
load style
stats [*:*][*:*] data index 5 using (column(2) > column(3) ? column(2) : column(3)) nooutput
tens = STATS_max > 0 ? 10.0 ** floor(log10(STATS_max)) : 1.0
step = STATS_max / tens > 5 ? 2 * tens : STATS_max / tens > 2 ? tens : tens / 2
set multiplot
# Panels side by side, or one below the other.
at_place = "set lmargin at screen (narrow ? (place == 3 ? names_pixels : 70.0) : 86.0 + (place - 1) * 386.0 + (place == 3 ? 20 : 0)) / width; " . \
    "set rmargin at screen (narrow ? width - 16.0 : 76.0 + place * 386.0 - 100.0) / width; " . \
    "set tmargin at screen top(18 + (narrow ? (place - 1) * (panel + 64) : 0)); " . \
    "set bmargin at screen top(18 + (narrow ? (place - 1) * (panel + 64) : 0) + (place < 3 || !narrow ? panel : 26 * policies + 110))"
array name[2] = ['time to first token (s)', 'latency (s)']
set key top left
do for [p=1:2] {
    place = p
    eval at_place
    # one range for both axes, so that the diagonal is equality
    stats [*:*][*:*] data index 2*(p-1):2*(p-1)+1 using 1 nooutput name 'real'
    stats [*:*][*:*] data index 2*(p-1):2*(p-1)+1 using 2 nooutput name 'simulated'
    axis_log = real_min > 0 && simulated_min > 0
    axis_values = ''
    axis_lo = min(real_min, simulated_min)
    axis_hi = max(real_max, simulated_max)
    axis_name = 'x'
    load axes
    axis_name = 'y'
    load axes
    set xlabel 'real ' . name[p]
    set ylabel 'simulated ' . name[p] offset 1
    plot for [k=0:1] data index 2*(p-1)+k using 1:2 with points linetype (k+1) pointsize 0.9 title (k == 0 ? 'reactive' : 'proactive'), \
        x with lines linecolor rgb '#444444' dashtype 2
    unset label 99
}
place = 3
eval at_place
unset logscale
set xlabel 'mean latency (s)'
set xrange [0:*]
set xtics step
unset ylabel
set key top right
load ytics
set yrange [-0.7:policies + 0.25 * (policies + 3)] # room for the key above the policies
plot data index 4 using 2:1 with points linetype 1 pointtype 7 pointsize 1.0 title 'reactive, real', \
    data index 4 using 3:1 with points linetype 1 pointtype 6 pointsize 1.4 title 'simulated', \
    data index 5 using 2:1 with points linetype 2 pointtype 5 pointsize 1.0 title 'proactive, real', \
    data index 5 using 3:1 with points linetype 2 pointtype 4 pointsize 1.4 title 'simulated'
unset multiplot

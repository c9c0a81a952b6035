# Live requests of each class, and sequences in decode launches while there are any, over time.
width = wide(1000)
key_pixels = 20.0 * (rows_of_key(2, 9, width - 100) - 1) # of rows above the first
height = 432 + key_pixels
load style
set multiplot
set lmargin at screen 80.0/width
set rmargin at screen 1 - 20.0/width
set xrange [begin:end]
array ylabels[2] = ['live requests', 'decode batch']
do for [p=1:2] {
    set tmargin at screen p == 1 ? top(30 + key_pixels) : bottom(66 + 145)
    set bmargin at screen p == 1 ? bottom(66 + 185) : bottom(66)
    stats [*:*][*:*] data index (p == 1 ? 0 : 2):(p == 1 ? 1 : 2) using 2 nooutput name 'all'
    axis_name = 'y'
    axis_lo = 0
    axis_hi = all_max > 5 ? all_max : 5 # counts: no tic between them
    axis_log = 0
    axis_values = ''
    load axes
    set ylabel ylabels[p]
    if (p == 1) {
        set format x ''
        set key at screen 1 - 20.0/width, top(24 + key_pixels) bottom right horizontal
        plot data index 0 using 1:2 with steps linecolor rgb '#D55E00' title 'reactive', \
             data index 1 using 1:2 with steps linecolor rgb '#0072B2' title 'proactive'
        unset key
    } else {
        set format x '%g'
        set xlabel 'time (s)'
        bin = (end - begin) / 200.0 # begin and end may be whole numbers
        plot data index 2 using ($1-bin/2):2:(bin):(0) with vectors nohead linewidth 2.5 linecolor rgb '#009E73'
    }
    unset label 99
}
unset multiplot

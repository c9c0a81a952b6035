# Time and energy of each operator on each device: name, index, ms, low, high, joules.
width = wide(1000)
panel_height = 14.0 * n_rows * devices
height = 132 + panel_height + (narrow ? panel_height + 84 : 0)
load style
set multiplot
set yrange [n_rows-0.4:-0.6]
set grid noytics
step_y = 0.8 / devices
at(i, k) = i - 0.4 + step_y * (k + 0.5)
unset key
do for [p=1:2] {
    first_column = p == 1 ? 3 : 6
    stats [*:*][*:*] data using (column(first_column)) nooutput name 'all'
    axis_name = 'x'
    axis_lo = all_min > 0 ? all_min : 1
    axis_hi = all_max > 0 ? all_max : 1
    axis_log = 1
    axis_values = ''
    do for [k=int(ceil(log10(axis_lo))):int(floor(log10(axis_hi)))] {
        axis_values = axis_values . (narrow ? sprintf(' %g', 10.0 ** k) : '')
    }
    load axes
    from_top = narrow && p == 2 ? panel_height + 98 : 14
    set tmargin at screen top(from_top)
    set bmargin at screen top(from_top + panel_height + 20)
    set lmargin at screen (narrow ? names_pixels : p == 1 ? 210.0 : 630.0) / width
    set rmargin at screen (narrow ? width - 20.0 : p == 1 ? 600.0 : 980.0) / width
    if (narrow || p == 1) { load ytics } else { load no_rows }
    set xlabel (p == 1 ? 'time (ms), log scale' : 'energy (J), log scale')
    plot for [k=0:devices-1] data index k every ::1 using (column(first_column)):(at($2,k)):(p == 1 ? $4 : NaN):(p == 1 ? $5 : NaN) with xerrorbars linetype slot[k+1]+1 pointsize 0.9, \
         for [k=0:devices-1] data index k every ::1 using (column(first_column)):(at($2,k)) with points linetype slot[k+1]+1 pointsize 0.9
}
foot = bottom(30)
key_rows = 1
load legend
plot for [k=0:devices-1] data index k using (2):(2) with points linetype slot[k+1]+1 pointsize 0.9 title columnheader(1)
unset multiplot

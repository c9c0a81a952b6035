# Distributions, a panel of columns names; blocks by panel, input, class. Proactive is thinner. Dotted lines are at P50, P90 and P99.
key_rows = rows_of_key(2 * inputs, longest + 11, width)
height = (narrow ? 300 * n_panels : 338) + 20 + 20 * key_rows
load style
foot = (12.0 + 20 * key_rows) / height
unset key
set multiplot layout (narrow ? n_panels : 1), (narrow ? 1 : n_panels) margins screen 70.0/width, 1 - 20.0/width, foot + 64.0/height, top(20) \
    spacing screen 60.0/width, screen 70.0/height
axis_values = ''
axis_log = 0
axis_name = 'y'
axis_lo = 0
axis_hi = 1
load axes
set yrange [0:1]
do for [p=1:n_panels] {
    stats [*:*][*:*] data index (p-1)*2*inputs:p*2*inputs-1 using ($1 > 0 ? $1 : NaN) nooutput name 'all'
    # Of answers of one token no time per token is defined: an empty panel says so.
    if (!exists('all_min')) {
        all_min = 0.1
        all_max = 1
        set label 98 'no values' at graph 0.5, graph 0.4 center
    }
    axis_name = 'x'
    axis_log = 1
    axis_lo = all_min
    axis_hi = all_max
    load axes
    if (p == 1) { set ylabel 'share of requests' offset 1 } else { unset ylabel }
    set xlabel panel[p] . ', log scale'
    plot for [k=0:2*inputs-1] data index (p-1)*2*inputs+k using 1:2 with fsteps linecolor rgb text_of(rgb(slot[1 + int(k/2)])) \
        linewidth (k % 2 ? 1 : 2.6), \
         for [q in '0.5 0.9 0.99'] q + 0 with lines linecolor rgb '#666666' linewidth 0.8 dashtype 3
    unset label 98
    unset label 99
}
load legend
plot for [k=0:2*inputs-1] data index k using (2):(2) with lines linecolor rgb text_of(rgb(slot[1 + int(k/2)])) \
    linewidth (k % 2 ? 1 : 2.6) title columnheader(1)
unset multiplot

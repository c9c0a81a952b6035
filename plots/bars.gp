# Panels of horizontal bars: block p - 1 holds name, mean, low, high of each policy.
width = 1000
height = 70 + 26 * bars
load style
first = 240.0 / width
each = (1.0 - first - 20.0/width) / panels
gap = 34.0 / width
set multiplot
set yrange [bars-0.4:-0.6]
load ytics
set xrange [0:*]
set grid noytics
set border 2
# About four tics, at round numbers.
power(m) = 10.0 ** floor(log10(m))
round_step(m) = m / power(m) < 1.5 ? power(m) : m / power(m) < 3.5 ? 2 * power(m) : m / power(m) < 7.5 ? 5 * power(m) : 10 * power(m)
do for [p=1:panels] {
    stats [*:*][*:*] data index p-1 every ::1 using (valid(4) ? $4 : $2) nooutput name 'all'
    set xtics 0, all_max > 0 ? round_step(all_max / 4) : 1
    set lmargin at screen first + (p-1)*each + (p > 1 ? gap : 0)
    set rmargin at screen first + p*each - gap/2
    set tmargin at screen 1 - 34.0/height
    set bmargin at screen 34.0/height
    set title title_of(p) offset 0,-0.5
    if (p > 1) { unset ytics }
    plot data index p-1 every ::1 using ($2/2):0:($2/2):(0.32):(rgb($0)) with boxxyerror linecolor rgb variable, \
         '' index p-1 every ::1 using 2:0:3:4 with xerrorbars linecolor rgb '#222222' linewidth 1 pointtype 0
}
unset multiplot

# Two panels, reactive and proactive, of bars cut into parts; block p - 1: name, the edges of the parts from 0 on, low, high
# of the whole (NaN: none), where the axis ends. A bar that would flatten the others is cut there, and its length stands in it.
# A narrow figure has one below the other. Given: n_parts, part[] and shade[].
row_pixels = marked ? 34 : 26
width = wide(1000)
foot_pixels = 12.0 + 20 * key_rows
tall = 104 + row_pixels * n_rows
height = tall * (narrow ? 2 : 1) + foot_pixels
load style
foot = bottom(foot_pixels)
first = names_pixels / width
each = (1.0 - first - 20.0/width) / (narrow ? 1 : 2)
gap = narrow ? 0 : 40.0 / width
limit = 0
cut(v) = v > limit ? limit : v
last = n_parts + 2
array there[n_parts]
do for [k=1:n_parts] {
    stats [*:*][*:*] data every ::1 using (column(k+2) - column(k+1)) nooutput name 'part'
    stats [*:*][*:*] data every ::1 using (column(n_parts+5)) nooutput name 'whole'
    there[k] = part_max > 0.002 * whole_max
}
set multiplot
unset key
set yrange [n_rows-0.4:-0.6]
set grid noytics
set border 2
set xlabel 'mean latency (s)'
do for [p=1:2] {
    stats [*:*][*:*] data index p-1 every ::1 using (column(last+3)) nooutput name 'end'
    axis_name = 'x'
    axis_lo = 0
    axis_hi = end_max > 0 ? end_max : 1
    axis_log = 0
    axis_values = ''
    load axes
    limit = axis_hi
    right = narrow ? 0 : p - 1
    down = narrow ? p - 1 : 0
    if (right == 0) { load ytics } else { load no_rows }
    set lmargin at screen first + right*each + (right > 0 ? gap : 0)
    set rmargin at screen first + (right+1)*each - gap/2
    set tmargin at screen top(34 + down*tall)
    set bmargin at screen top((down+1)*tall - 62)
    set title (p == 1 ? 'reactive' : 'proactive') offset 0,-0.5
    plot for [k=1:n_parts] data index p-1 every ::1 using (cut(column(k+1))):0:(cut(column(k+1))):(cut(column(k+2))):($0-0.32):($0+0.32) \
             with boxxyerror linecolor rgb shade[k], \
         '' index p-1 every ::1 using (column(last) > limit ? NaN : column(last)):0:(column(last+1)):(column(last+2)) \
             with xerrorbars linecolor rgb '#222222' linewidth 1 pointtype 0, \
         '' index p-1 every ::1 using (limit):0:(column(last) > limit ? sprintf('%.4g s »', column(last)) : '') with labels right offset -0.5,0 textcolor rgb '#ffffff'
}
load legend
plot for [k=1:n_parts] (there[k] ? NaN : 1/0) with boxes linecolor rgb shade[k] title (there[k] ? part[k] : '')
unset multiplot

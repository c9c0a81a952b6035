# Where a request's time goes, by cause: means by class, inputs as rows.
# Blocks reactive, proactive: name and the edges of the parts, from 0 on.
width = 1000
height = 212 + 26 * bars
key_rows = 5
foot = 116.0 / height
load style
first = 200.0 / width
each = (1.0 - first - 20.0/width) / 2
gap = 40.0 / width
array part[9] = ['its passes compute', 'host', 'other work on the DDR or device', 'done again', 'compile, graph load', \
                 'rest of a kernel', 'own class before it', 'other class before it', 'held, evicted']
array shade[9] = ['#56B4E9', '#999999', '#009E73', '#000000', '#7F6A00', '#CC79A7', '#0072B2', '#D55E00', '#E69F00']
set multiplot
unset key
set yrange [bars-0.4:-0.6]
set xrange [0:*]
load ytics
set grid noytics
set border 2
set tmargin at screen 1 - 34.0/height
set bmargin at screen foot + 54.0/height
set xlabel 'mean latency (s)'
do for [p=1:2] {
    set lmargin at screen first + (p-1)*each + (p > 1 ? gap : 0)
    set rmargin at screen first + p*each - gap/2
    set title (p == 1 ? 'reactive' : 'proactive') offset 0,-0.5
    if (p > 1) { unset ytics }
    plot for [k=1:9] data index p-1 every ::1 using (column(k+1)):0:(column(k+1)):(column(k+2)):($0-0.32):($0+0.32) \
             with boxxyerror linecolor rgb shade[k]
}
load legend
plot for [k=1:9] NaN with boxes linecolor rgb shade[k] title part[k]
unset multiplot

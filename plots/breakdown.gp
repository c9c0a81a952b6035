# Mean latency cut into waiting, suspension, prefill and decode; the interval is of the whole.
# Blocks reactive, proactive: name, pending, suspended, prefill, decode pending, decode, low, high.
width = 1000
height = 142 + 26 * bars
key_rows = 2
foot = 46.0 / height
load style
first = 240.0 / width
each = (1.0 - first - 20.0/width) / 2
gap = 40.0 / width
array part[5] = ['waits for prefill', 'prefill suspended', 'prefill', 'waits in decode', 'decode']
array shade[5] = ['#D55E00', '#E69F00', '#0072B2', '#CC79A7', '#56B4E9']
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
    if (p > 1) {
        unset ytics
        unset key
    } else {
        set key at screen 0.5, 6.0/height bottom center horizontal maxrows 1
    }
    from(k) = k <= 1 ? 0 : (k == 2 ? column(2) : k == 3 ? column(2)+column(3) : k == 4 ? column(2)+column(3)+column(4) : column(2)+column(3)+column(4)+column(5))
    plot for [k=1:5] data index p-1 every ::1 using (from(k)):0:(from(k)):(from(k)+column(k+1)):($0-0.32):($0+0.32) \
             with boxxyerror linecolor rgb shade[k], \
         '' index p-1 every ::1 using ($2+$3+$4+$5+$6):0:7:8 with xerrorbars linecolor rgb '#222222' linewidth 1 pointtype 0
}
load legend
plot for [k=1:5] NaN with boxes linecolor rgb shade[k] title part[k]
unset multiplot
unset key

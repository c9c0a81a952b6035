# What is left of each parameter's range: row, low, high (of the range, 0 to 1), witness. From report.py.
n = words(names)
width = 700
height = 90 + 30 * n
format = 'svg'
load style
set border 3
set ytics () scale 0
do for [i=1:n] { set ytics add (word(names, i) i-1) }
set yrange [n-0.3:-0.7]
set xrange [-0.03:1.03]
set xlabel 'place in the range that sources leave open (0 low, 1 high)'
set key outside top center horizontal
plot data using (0):1:(0):(1):($1-0.32):($1+0.32) with boxxyerror fillcolor rgb '#e5e5e5' title 'open before', \
     '' using 2:1:2:3:($1-0.2):($1+0.2) with boxxyerror fillcolor rgb '#56B4E9' title 'left by the claims that hold together', \
     '' using 4:1 with points pointtype 7 pointsize 0.9 linecolor rgb '#D55E00' title 'witness'

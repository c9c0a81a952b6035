# The rest of the canvas below foot (a share of the height) holds the legend: the caller plots entries
# into it. A plot of its own, for a key inside a panel only gets that panel's width.
# Of a layout the next cell would bound it too.
set origin 0, 0
set size 1, 1
set lmargin at screen 0.0
set rmargin at screen 1.0
set bmargin at screen 0.0
set tmargin at screen foot
unset border
unset tics
unset grid
unset title
unset xlabel
unset ylabel
unset logscale
unset object
unset label
set offsets 0, 0, 0, 0
set xrange [0:1]
set yrange [0:1]
set key at screen 0.5, foot/2 center center horizontal maxrows key_rows

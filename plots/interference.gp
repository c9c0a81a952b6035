# Who delays whom: seconds that requests of a class (row) waited for requests of another (column); an input beside the
# other, all on one scale.
width = wide(190 + 170 * n_names + 110)
title_pixels = n_names > 1 ? 34.0 : 12.0 # one input is named above
height = 220 + title_pixels
load style
stats [*:*][*:*] data using 3 nooutput name 'all'
unset grid
set border 15
set palette defined (0 '#f7fbff', 0.35 '#9ecae1', 0.7 '#3182bd', 1 '#08306b')
set xrange [-0.5:1.5]
set yrange [1.5:-0.5]
set tics scale 0
set xtics ('reactive' 0, 'proactive' 1)
set xlabel 'aggressor'
set cblabel 'waiting per victim (s)'
set cbrange [0:all_max > 0 ? all_max : 1]
unset colorbox
ink(v) = v > all_max / 2 ? 0xffffff : 0x111111
set tmargin at screen top(title_pixels)
set bmargin at screen bottom(64)
set multiplot
do for [k=1:n_names] {
    set lmargin at screen (110.0 + 170 * (k - 1)) / width
    set rmargin at screen (260.0 + 170 * (k - 1)) / width
    if (n_names > 1) { set title names[k] offset 0,-0.5 }
    if (k > 1) { unset ylabel; set ytics ('' 0, '' 1) } else { set ylabel 'victim'; set ytics ('reactive' 0, 'proactive' 1) rotate by 90 center offset 0,0 }
    if (k == n_names) { set colorbox user origin screen (280.0 + 170 * (n_names - 1)) / width, screen bottom(64) size screen 16.0/width, screen (height - head - 64.0 - title_pixels) / height }
    plot data index k-1 every ::1 using 1:2:($1-0.5):($1+0.5):($2-0.5):($2+0.5):3 with boxxyerror linecolor palette, \
         '' index k-1 every ::1 using 1:2:(sprintf('%.3g', $3)):(ink($3)) with labels textcolor rgb variable
    unset label 99
}
unset multiplot

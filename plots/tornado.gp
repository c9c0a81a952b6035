# What an order hangs on: difference with one number alone at its ends; and who is best on how many machines.
longest = 0
do for [i=1:factor_rows] { longest = strlen(rows[i]) > longest ? strlen(rows[i]) : longest }
left = 8.2 * longest + 20
width = wide(left + 640)
height = 206 + 34 * (factor_rows > policies ? factor_rows : policies)
load style
stats [*:*][*:*] data index 0 every ::1 using (min($2, min($3, $4))):(max($2, max($3, $4))) nooutput name 'end'
set multiplot
set lmargin at screen left/width
set rmargin at screen (left + 0.47 * (width - left))/width
set tmargin at screen top(84)
set bmargin at screen bottom(100)
load ytics
set yrange [factor_rows-0.5:-0.5]
axis_name = 'x'
axis_log = 0
axis_values = ''
axis_steps = 4.0
axis_lo = end_min_x - 0.04 * (end_max_y - end_min_x)
axis_hi = end_max_y
load axes
set xlabel "policy - " . baseline . ":\n" . title1 . (unmoved > 0 ? sprintf("\n%g more numbers do not move it", unmoved) : '')
set key at screen (left + 0.235 * (width - left))/width, top(8) center top vertical
plot data index 0 every ::1 using 2:1:2:3:($1-0.3):($1+0.3) with boxxyerror linecolor rgb '#2E8BC9' title 'number at its low end', \
     '' index 0 every ::1 using 2:1:2:4:($1-0.3):($1+0.3) with boxxyerror linecolor rgb '#B36A00' title 'number at its high end', \
     '' index 0 every ::1 using 2:($1-0.36):(0):(0.72) with vectors nohead linecolor rgb '#222222' linewidth 1.6 title 'number as in the file'
load no_rows
unset key
set lmargin at screen (left + 0.73 * (width - left))/width
set rmargin at screen (left + 0.94 * (width - left))/width
set yrange [policies-0.5:-0.5]
unset ytics
set ytics scale 0
set xrange [0:1]
unset xtics
set xtics nomirror scale 0 ('0' 0, '0.5' 0.5, '1' 1)
set xlabel sprintf("best on this share of\n%g machines", machines)
plot data index 1 every ::1 using (0):1:(0):2:($1-0.3):($1+0.3):(rgb(slot[int($1)+1])):ytic(3) with boxxyerror linecolor rgb variable
unset multiplot

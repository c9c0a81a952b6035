# What an order hangs on: difference with one number alone at its ends; and who is best on how many machines.
longest = 0
do for [i=1:factor_rows] { longest = strlen(rows[i]) > longest ? strlen(rows[i]) : longest }
# A narrow figure has names above their bars, and the shares below.
left = 8.2 * longest + 20
width = wide(left + 640)
longest_name = 0
do for [i=1:policies] { longest_name = max(longest_name, strlen(best_names[i])) }
bars_pixels = (narrow ? 46.0 : 34.0) * (narrow ? factor_rows : max(factor_rows, policies))
best_pixels = narrow ? 26.0 * policies : bars_pixels
height = 206 + bars_pixels + (narrow ? best_pixels + 80 : 0)
right_edge = narrow ? width - 20.0 : left + 0.47 * (width - left)
left = narrow ? 20.0 : left
load style
stats [*:*][*:*] data index 0 every ::1 using (min($2, min($3, $4))):(max($2, max($3, $4))) nooutput name 'end'
set multiplot
set lmargin at screen left/width
set rmargin at screen right_edge/width
set tmargin at screen top(84)
set bmargin at screen top(84 + bars_pixels)
load ytics
names_font = sprintf(',%.1f', max(6.0, min(11.0, (width - 60) / (0.63 * longest))))
if (narrow) {
    do for [i=1:n_rows] { set label 100+i rows[i] at graph 0, first i-1.3 left offset 0.6,0 font names_font }
}
set yrange [factor_rows-0.5:-0.5]
thick = narrow ? 0.16 : 0.3
lower = narrow ? 0.22 : 0
axis_name = 'x'
axis_log = 0
axis_values = ''
axis_steps = 4.0
axis_lo = end_min_x - 0.04 * (end_max_y - end_min_x)
axis_hi = end_max_y
load axes
set xlabel "policy - " . baseline . ":\n" . title1 . (unmoved > 0 ? sprintf("\n%g more numbers do not move it", unmoved) : '')
set key at screen (left + right_edge)/2/width, top(8) center top vertical
plot data index 0 every ::1 using 2:1:2:3:($1+lower-thick):($1+lower+thick) with boxxyerror linecolor rgb '#2E8BC9' title 'number at its low end', \
     '' index 0 every ::1 using 2:1:2:4:($1+lower-thick):($1+lower+thick) with boxxyerror linecolor rgb '#B36A00' title 'number at its high end', \
     '' index 0 every ::1 using 2:($1+lower-1.2*thick):(0):(2.4*thick) with vectors nohead linecolor rgb '#222222' linewidth 1.6 title 'number as in the file'
load no_rows
unset key
set lmargin at screen (narrow ? 8.4 * longest_name + 16 : left + 0.73 * (width - left))/width
set rmargin at screen (narrow ? width - 48.0 : left + 0.94 * (width - left))/width
if (narrow) {
    set tmargin at screen top(84 + bars_pixels + 90)
    set bmargin at screen top(84 + bars_pixels + 90 + best_pixels)
}
set yrange [policies-0.5:-0.5]
unset ytics
set ytics scale 0
set xrange [0:1]
unset xtics
set xtics nomirror scale 0 ('0' 0, '0.5' 0.5, '1' 1)
set xlabel sprintf("best on this share of\n%g machines", machines)
plot data index 1 every ::1 using (0):1:(0):2:($1-0.3):($1+0.3):(rgb(slot[int($1)+1])):ytic(3) with boxxyerror linecolor rgb variable, \
     '' index 1 every ::1 using 2:1:(sprintf('%.2f', $2)) with labels left offset 0.5,0 font ',10' textcolor rgb '#444444'
unset multiplot

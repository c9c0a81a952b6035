# What an order hangs on: difference with one number alone at its ends; and who is best on how many machines.
width = 900
height = 150 + 34 * (factor_rows > policies ? factor_rows : policies)
load style
set multiplot layout 1,2 margins screen 0.42, 0.97, 80.0/height, top(48) spacing screen 0.17
load ytics
set yrange [factor_rows-0.5:-0.5]
set xlabel sprintf('difference in %s', title1)
set key at screen 0.5, top(8) center top horizontal
plot data index 0 every ::1 using 2:1:2:3:($1-0.3):($1+0.3) with boxxyerror linecolor rgb '#56B4E9' title 'low end', \
     '' index 0 every ::1 using 2:1:2:4:($1-0.3):($1+0.3) with boxxyerror linecolor rgb '#E69F00' title 'high end'
load no_rows
unset key
set yrange [policies-0.5:-0.5]
unset ytics
set ytics scale 0
set xrange [0:1]
set xtics 0.5
set xlabel sprintf("best on this share of\n%g machines", machines)
plot data index 1 every ::1 using (0):1:(0):2:($1-0.3):($1+0.3):(rgb(slot[int($1)+1])):ytic(3) with boxxyerror linecolor rgb variable
unset multiplot

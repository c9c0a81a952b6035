# Distributions of input and output tokens; blocks by panel, input, class.
width = 900
key_rows = int((2 * inputs + 3) / 4)
height = 350 + 20 * key_rows
load style
foot = (12.0 + 20 * key_rows) / height
unset key
set multiplot layout 1,2 margins screen 70.0/width, 1 - 20.0/width, foot + 56.0/height, 1 - 20.0/height spacing screen 60.0/width
array name[2] = ['input tokens', 'output tokens']
# Proactive thin and lighter: dashes get lost on steps.
shade(k) = sprintf('#%s%s', k % 2 ? '60' : '00', colour[1 + int(k/2) % 8][2:*])
set yrange [0:1]
set logscale x
set format x '%g'
set ylabel 'share of requests' offset 1
do for [p=1:2] {
    set xlabel name[p]
    plot for [k=0:2*inputs-1] data index (p-1)*2*inputs+k using 1:2 with fsteps linecolor rgb shade(k) \
        linewidth (k % 2 ? 0.9 : 2.2)
    unset ylabel
}
load legend
plot for [k=0:2*inputs-1] data index k using (2):(2) with lines linecolor rgb shade(k) linewidth (k % 2 ? 0.9 : 2.2) title columnheader(1)
unset multiplot

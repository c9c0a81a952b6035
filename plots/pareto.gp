# Reactive latency against proactive throughput; points of one policy are joined by load. Better is right and down, of other metrics as each says.
# Of one load the front of the means is drawn: what no other mean beats in both. Its steps leave out what nobody reached:
# of more throughput the latency of the next point. A series has its name at its last point.
beside = min(40.0 + 8.6 * longest, 0.4 * wide(760 + 8.6 * longest))
width = wide(720 + beside)
letters = int((beside - 30) / 8.6) # of a name: the end of a longer one, which says more of a path and of parameters
fit(name) = strlen(name) > letters ? '…' . name[strlen(name)-letters+2:*] : name
with_key = front || overloads > 0
key_rows = with_key ? rows_of_key(front + (overloads > 0), 23, width) : 0
height = 440 + 20 * key_rows
load style
foot = (12.0 + 20 * key_rows) / height
set multiplot
set lmargin at screen 90.0/width
set rmargin at screen 1 - beside/width
set tmargin at screen top(14)
set bmargin at screen foot + 64.0/height
stats [*:*][*:*] data using 2 nooutput name 'y'
stats [*:*][*:*] data using 5 nooutput name 'ylow'
stats [*:*][*:*] data using 6 nooutput name 'yhigh'
stats [*:*][*:*] data using 3 nooutput name 'xlow'
stats [*:*][*:*] data using 4 nooutput name 'xhigh'
steep = y_min > 0 && y_max > 30 * y_min
axis_name = 'y'
axis_log = steep
axis_lo = steep ? (ylow_min > y_min / 3 ? ylow_min : y_min / 3) : 0
axis_hi = yhigh_max
axis_values = ''
load axes
floor_y = axis_from
y_from = axis_from
y_to = axis_to
axis_name = 'x'
axis_log = 0
# throughputs that differ by less than a fifth are drawn as near as they are: the offered load, on a stable machine
near = xhigh_max - xlow_min < 0.2 * xhigh_max
axis_lo = near ? 0.8 * xlow_min : xlow_min > 0.3 * xhigh_max ? xlow_min - 0.05 * (xhigh_max - xlow_min) : 0
axis_hi = near ? 1.15 * xhigh_max : xhigh_max
load axes
# Names stand to the right, from the highest point down, 16 pixels apart, with a line to the point. Lengths are in pixels.
plot_width = width - 90.0 - beside
plot_height = height * (1 - foot) - 64 - 14 - head
px(x) = (x - axis_from) / (axis_to - axis_from) * plot_width
py(y) = (steep ? log(y / y_from) / log(y_to / y_from) : (y - y_from) / (y_to - y_from)) * plot_height
array done[series]
do for [i=1:series] { done[i] = 0 }
last_y = plot_height + 16
do for [i=1:series] {
    k = 0
    do for [j=1:series] { if (!done[j] && (k == 0 || value(sprintf('at_y%d', j)) > value(sprintf('at_y%d', k)))) { k = j } }
    done[k] = 1
    x = px(value(sprintf('at_x%d', k)))
    y = py(value(sprintf('at_y%d', k)))
    if (x == x && y == y) {
        last_y = max(min(y, last_y - 16), 16.0 * (series - i)) # room for those that are left
        set label 100+k fit(names[k]) at screen (90.0 + plot_width + 26)/width, foot + (64.0 + last_y)/height left textcolor rgb text_of(deep(rgb(slot[k])))
        set arrow 100+k from screen (90.0 + plot_width + 22)/width, foot + (64.0 + last_y)/height to screen (90.0 + x)/width, foot + (64.0 + y)/height nohead dashtype 3 linewidth 0.8 linecolor rgb text_of(rgb(slot[k]))
    }
}
set xlabel title1
set ylabel title2 . (steep ? ', log scale' : '')
unset key
plot for [i=1:front > 0 && gain ? 1 : 0] data index series every ::1 using 1:2 with fsteps linecolor rgb '#767676' dashtype 2 linewidth 1.4, \
     for [i=1:front > 0 && !gain ? 1 : 0] data index series every ::1 using 1:2 with steps linecolor rgb '#767676' dashtype 2 linewidth 1.4, \
     for [k=0:series-1] data index k every ::1 using 1:2:3:4:($5 < floor_y ? floor_y : $5):6 with xyerrorbars linetype slot[k+1]+1, \
     for [k=0:series-1] data index k every ::1 using 1:2 with lines linetype slot[k+1]+1 linewidth 1, \
     for [k=0:series-1] data index k every ::1 using 1:($7 > 0 ? $2 : NaN) with points pointtype 6 pointsize 1.6 linewidth 1.2 linecolor rgb '#b00020'
if (with_key) {
    load legend
    plot for [i=1:front > 0 ? 1 : 0] NaN with lines linecolor rgb '#767676' dashtype 2 linewidth 1.4 title 'front of the means', \
         for [i=1:overloads > 0 ? 1 : 0] NaN with points pointtype 6 pointsize 1.6 linewidth 1.2 linecolor rgb '#b00020' title 'overloaded in some runs'
}
unset multiplot

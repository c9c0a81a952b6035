# Range and tics of the axis axis_name ('x' or 'y') for data from axis_lo to axis_hi, logarithmic if axis_log: no decade
# without data, no tic beyond it, no 100000 beside 1e+06. axis_values: these tics ('' for round ones). A logarithmic axis
# without a positive value has a decade of its own: a panel of runs that failed is empty.
if (axis_log && !(axis_lo > 0)) {
    axis_hi = axis_hi > 0 ? axis_hi : 1
    axis_lo = axis_hi / 10.0
}
if (axis_log) {
    axis_from = axis_lo / 1.12
    axis_to = axis_hi * 1.12
    eval sprintf("set logscale %s", axis_name)
} else {
    axis_from = axis_lo
    axis_to = axis_hi > axis_lo ? axis_hi + 0.04 * (axis_hi - axis_lo) : axis_lo + 1
    eval sprintf("unset logscale %s", axis_name)
}
eval sprintf("set %srange [%.10g:%.10g]", axis_name, axis_from, axis_to)
eval sprintf("set %stics ()", axis_name)
if (axis_values ne '') {
    do for [i=1:words(axis_values)] {
        eval sprintf("set %stics add ('%s' %s)", axis_name, tic_text(word(axis_values, i) + 0.0), word(axis_values, i))
    }
} else {
    if (axis_log) {
        decades = log10(axis_to / axis_from)
        steps = decades < 0.7 ? '1 1.5 2 3 4 5 6 8' : decades < 1.6 ? '1 2 5' : decades < 3.2 ? '1 3' : '1'
        do for [k=int(floor(log10(axis_from))):int(ceil(log10(axis_to)))] {
            do for [m in steps] {
                v = m * 10.0 ** k
                if (v >= axis_from * 0.9999 && v <= axis_to * 1.0001) {
                    eval sprintf("set %stics add ('%s' %.10g)", axis_name, tic_text(v), v)
                }
            }
        }
    } else {
        step = round_step((axis_to - axis_from) / (exists('axis_steps') ? axis_steps : 5.0))
        do for [k=int(ceil(axis_from / step - 1e-9)):int(floor(axis_to / step + 1e-9))] {
            eval sprintf("set %stics add ('%s' %.10g)", axis_name, tic_text(k * step), k * step)
        }
    }
}

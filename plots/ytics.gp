# Names of rows 0, 1, .. of the y axis, from the array rows; below a name, in red, what marks says of it.
# Labels, not tics, whose texts would be formats: `unset label` takes them away.
if (!exists('n_marks')) { n_marks = 0 }
unset ytics
do for [i=1:n_rows] {
    lift = n_marks >= i && strlen(marks[i]) > 0 ? 0.14 : 0
    set label 100+i rows[i] at graph 0, first i-1-lift right offset -0.8,0 textcolor rgb '#222222'
    if (lift > 0) { set label 200+i marks[i] at graph 0, first i-1+0.24 right offset -0.8,0 font ',10' textcolor rgb '#b00020' }
}

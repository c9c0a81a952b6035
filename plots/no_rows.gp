# Panels beside the first have no names of rows.
do for [i=1:n_rows] { unset label 100+i; unset label 200+i }
unset label 99

# Labels of rows 0, 1, .. of the y axis, from tracks: "npu|igpu|cpu".
array bar_at[rows + 1]
bars_seen = 0
do for [i=1:strlen(tracks)] {
    if (tracks[i:i] eq '|') {
        bars_seen = bars_seen + 1
        bar_at[bars_seen] = i
    }
}
bar_at[bars_seen + 1] = strlen(tracks) + 1
row_name(i) = tracks[(i == 1 ? 1 : bar_at[i - 1] + 1):bar_at[i] - 1]
set ytics () scale 0
do for [i=1:rows] {
    set ytics add (row_name(i) i - 1)
}

# What scripts and the rest of style.gp compute with; loaded before the script.
# Rows of a key of so many entries, the longest of so many letters, in a figure of this width: gnuplot takes about this
# much room for an entry.
# Width asked for (--columns), in pixels of the layout, or the figure's own. A narrow figure stacks its panels.
if (!exists('canvas')) { canvas = 0 }
wide(own) = canvas > 0 ? canvas : own
narrow = canvas > 0 && canvas < 600
key_columns(longest, width) = int(width / (8.6 * longest + 68)) > 0 ? int(width / (8.6 * longest + 68)) : 1
rows_of_key(entries, longest, width) = int((entries + key_columns(longest, width) - 1) / key_columns(longest, width))
max(a, b) = a > b ? a : b
min(a, b) = a < b ? a : b
# Room for names of rows, in pixels. A narrow figure gives them what the longest needs, so that its bars keep the rest.
names_pixels = 240.0
if (narrow && exists('n_rows')) {
    names_pixels = 0.0
    do for [i=1:n_rows] { names_pixels = max(names_pixels, 8.4 * strlen(rows[i])) }
    do for [i=1:exists('n_marks') ? n_marks : 0] { names_pixels = max(names_pixels, 6.0 * strlen(marks[i])) }
    names_pixels = min(240.0, names_pixels + 14)
}

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

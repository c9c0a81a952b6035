# What every figure shares. A script sets width and height (pixels), then loads this file.
# Given by the caller: data (TSV), out, format (svg or png), blocks, style, and the figure's variables.
if (format eq 'png') {
    set terminal pngcairo noenhanced size 2*width, 2*height fontscale 1.9 linewidth 2 pointscale 1.8 background 'white'
} else {
    set terminal svg noenhanced size width, height dynamic font 'sans-serif,13' linewidth 1.4 background 'white'
}
set output out
set encoding utf8

# Okabe and Ito's palette, made for every kind of colour vision; yellow, too light for lines, is left out.
# Series also differ in point type, so that grey prints can be read.
array colour[8] = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#000000', '#7F6A00']
array mark[8] = [7, 5, 9, 11, 13, 4, 6, 8]
do for [i=1:8] {
    set linetype i linecolor rgb colour[i] linewidth 1.6 pointtype mark[i] pointsize 0.7
}
set linetype cycle 8
rgb(i) = int(colour[1 + int(i) % 8][2:*] eq '' ? 0 : sprintf('0x%s', colour[1 + int(i) % 8][2:*]))

set datafile separator "\t"
set datafile missing 'NaN'
set border 3 linecolor rgb '#444444' linewidth 0.8
set tics nomirror scale 0.6 textcolor rgb '#222222'
set grid linecolor rgb '#dddddd' linewidth 0.6 linetype 1
set key textcolor rgb '#222222' noautotitle samplen 2.5
set style fill solid 0.85 noborder

title_of(i) = value(sprintf('title%d', i))

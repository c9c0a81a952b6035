# What every figure shares. A script sets width and height (pixels), then loads this file.
# Given by the caller: data (TSV), out, format (svg, png or pdf), blocks, style, and the figure's variables, among them
# subject: policy, model, machine and workload, which stand above; height grows by the room they take.
set encoding utf8 # before texts are cut: a letter is a letter
if (!exists('subject') || (exists('titles') && !titles)) { subject = '' }
if (!exists('font_pt')) { font_pt = 9.0 }
subject_at = strlen(subject)
if (7.0 * strlen(subject) > width - 16) {
    do for [i=1:strlen(subject)-4] {
        if (subject[i:i+4] eq '  ·  ' && 7.0 * i <= width - 16) { subject_at = i }
    }
    if (subject_at == strlen(subject)) { subject_at = int((width - 16) / 7.0) }
    subject_on = subject[subject_at:subject_at+4] eq '  ·  ' ? subject_at + 5 : subject_at + 1
    subject_fits = subject_on + int((width - 16) / 8.0)
    subject = subject[1:subject_at] . "\n" . (subject_fits < strlen(subject) ? subject[subject_on:subject_fits-1] . '…' : subject[subject_on:*])
}
head = subject eq '' ? 0.0 : strstrt(subject, "\n") > 0 ? 38.0 : 22.0
height = height + head
top(pixels) = 1 - (pixels + head) / height
bottom(pixels) = 1.0 * pixels / height
# Cairo takes letters of 96 to the inch. In a PDF a pixel of the layout is font_pt / 13 points, so that its letters of 13 pixels are font_pt high.
pixel_pt = font_pt / 13.0
if (format eq 'png') {
    set terminal pngcairo noenhanced size 2*width, 2*height fontscale 1.9 linewidth 2 pointscale 1.8 background 'white'
}
if (format eq 'pdf') {
    set terminal pdfcairo noenhanced size width * pixel_pt / 72 in, height * pixel_pt / 72 in font 'sans,13' fontscale 0.75 * pixel_pt linewidth 1.4 * pixel_pt pointscale pixel_pt background 'white'
}
if (format eq 'svg') {
    set terminal svg noenhanced size width, height dynamic font 'sans-serif,13' linewidth 1.4 background 'white'
}
set output out
set label 99 subject at screen 8.0/width, 1 - 13.0/height left font ',11' textcolor rgb '#666666'

# Five colours of Okabe and Ito's palette, made for every kind of colour vision, and three in place of those that are too
# light on white: each has a contrast of 3:1 and more, and any two differ under every colour blindness
# (tests/helpers/contrast.py). Series also differ in point type, so that grey prints can be read. Line type slot + 1
# (plots/palette.h).
array base[8] = [0x0072B2, 0xD55E00, 0x009E73, 0xCC79A7, 0xA078F0, 0x502800, 0x000000, 0x0014C8]
array mark[8] = [7, 5, 9, 11, 13, 4, 6, 8]
array deeper[4] = [0.0, 0.35, 0.55, 0.2]
part(c, shift, v) = int(((c >> shift) & 255) * (1 - v) + 255 * v)
mix(c, v) = part(c, 16, v) * 65536 + part(c, 8, v) * 256 + part(c, 0, v)
dark(c, v) = int(((c >> 16) & 255) * (1 - v)) * 65536 + int(((c >> 8) & 255) * (1 - v)) * 256 + int((c & 255) * (1 - v))
rgb(s) = dark(base[1 + s % 8], deeper[1 + (s / 8) % 4])
deep(c) = dark(c, 0.35) # for text, which needs more contrast than marks
text_of(c) = sprintf('#%06x', c)
do for [i=0:63] {
    set linetype i+1 linecolor rgb text_of(rgb(i)) linewidth 1.6 pointtype mark[1 + (i + 3 * (i / 8)) % 8] pointsize 0.7 dashtype 1 + (i / 8) % 5
}
set linetype cycle 64

set datafile separator "\t"
set datafile missing 'NaN'
set border 3 linecolor rgb '#444444' linewidth 0.8
set tics nomirror scale 0 textcolor rgb '#222222'
set grid linecolor rgb '#dddddd' linewidth 0.8 linetype 1 # of the border's width: one group in the SVG
set key textcolor rgb '#222222' noautotitle samplen 2.5
set style fill solid 1 noborder

title_of(i) = value(sprintf('title%d', i))

# About four steps, at round numbers.
power(m) = 10.0 ** floor(log10(m))
round_step(m) = m / power(m) < 1.5 ? power(m) : m / power(m) < 3.5 ? 2 * power(m) : m / power(m) < 7.5 ? 5 * power(m) : 10 * power(m)
# Of a time of which so many pixels are drawn.
time_step(span, pixels) = round_step(span * max(60.0 / pixels, 1 / 9.0))
tic_text(v) = v == 0 ? '0' : abs(v) >= 1e12 ? sprintf('%gT', v/1e12) : abs(v) >= 1e9 ? sprintf('%gG', v/1e9) : abs(v) >= 1e6 ? sprintf('%gM', v/1e6) : \
    abs(v) >= 1e4 ? sprintf('%gk', v/1e3) : abs(v) >= 1e-4 ? sprintf('%g', v) : abs(v) >= 1e-6 ? sprintf('%gµ', v*1e6) : sprintf('%gn', v*1e9)

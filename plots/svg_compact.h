/* Makes the SVG that gnuplot writes small, without a visible difference: groups without anything in
 * them and attributes that say what holds anyway go, neighbours of equal attributes become one,
 * coordinates are rounded to a tenth of a pixel, shapes that nobody uses go. */
#pragma once

/* Returns a text that the caller frees. */
char *svg_compact(const char *svg);

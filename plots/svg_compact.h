/* Makes gnuplot's SVG small, without a visible difference. It removes empty groups, unused shapes,
 * and attributes that hold anyway. It merges adjacent elements of equal attributes, and rounds
 * coordinates to a tenth of a pixel. */
#pragma once

/* Returns a text that the caller frees. */
char *svg_compact(const char *svg);

/* Makes gnuplot's SVG small, without a visible difference. It removes empty groups, unused shapes,
 * and attributes that hold anyway. It merges adjacent elements of equal attributes, and rounds
 * coordinates to a tenth of a pixel. */
#pragma once

#include "sim/base/base.h"

/* Returns a text that the caller frees. */
char *svg_compact(const char *svg);

/* Appends an outline (`d` of a path, or `points` of a polygon) of n bytes in the shortest way that
 * draws the same to a tenth of a pixel. False, and nothing appended, where it has curves. */
bool svg_outline(struct text *out, const char *v, size_t n, bool polygon);

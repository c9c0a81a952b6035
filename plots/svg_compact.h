/* Shrinks gnuplot's SVG without a visible difference. Removes empty groups, unused shapes and
 * redundant attributes, merges adjacent elements with equal attributes, and rounds coordinates to a
 * tenth of a pixel. */
#pragma once

#include "sim/base/base.h"

/* Returns a text that the caller frees. */
char *svg_compact(const char *svg);

/* Appends an outline (`d` of a path, or `points` of a polygon) of n bytes in its shortest form,
 * equal to a tenth of a pixel. False, with nothing appended, if it has curves. */
bool svg_outline(struct text *out, const char *v, size_t n, bool polygon);

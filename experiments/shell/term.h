/* Output on a terminal: its width, and headings in bold. Everything is plain in a file or pipe, and
 * with NO_COLOR set (no-color.org) or TERM=dumb. */
#pragma once

#include <stdio.h>

/* Columns of the terminal behind out; 0 when it is none, or does not say. */
int term_width(FILE *out);

/* "TEXT\n", bold where that is fit. */
void term_heading(FILE *out, const char *text);

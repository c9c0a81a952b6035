/* Output on a terminal: its width, and headings in bold. Output is plain in a file or pipe, and
 * with NO_COLOR set (no-color.org) or TERM=dumb. */
#pragma once

#include <stdio.h>

/* Columns of the terminal of out; 0: no terminal, or unknown. */
int term_width(FILE *out);

/* Prints "TEXT\n", bold on a terminal. */
void term_heading(FILE *out, const char *text);

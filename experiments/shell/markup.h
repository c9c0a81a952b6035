/* Text inside HTML and XML. */
#pragma once

#include <stdio.h>

/* With the characters of markup escaped, and control characters, which XML does not know, as
 * blanks. */
void markup_put(FILE *out, const char *text);
/* Like fprintf with %s, %u and floating point. The format is markup; markup_put writes the argument
 * of %s. */
void markup_format(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Text inside HTML and XML. */
#pragma once

#include <stdio.h>

/* Writes text with markup characters escaped, and control characters, which are invalid in XML, as
 * blanks. */
void markup_put(FILE *out, const char *text);
/* Like fprintf with %s, %u and floating point. The format is markup; markup_put writes the argument
 * of %s. */
void markup_format(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

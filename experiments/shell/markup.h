/* Text inside HTML and XML. */
#pragma once

#include <stdio.h>

/* With the characters of markup escaped, and control characters, which XML does not know, as
 * blanks. */
void markup_put(FILE *out, const char *text);

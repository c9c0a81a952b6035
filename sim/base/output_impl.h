/* Inside output: packing (output_gzip.c). */
#pragma once

#include "sim/base/output.h"

/* A stream that writes gzip to fd and closes it. Equal input gives equal bytes: no name, no date.
 * NULL when memory runs out. */
FILE *output_gzip(int fd);

/* Inside output: packing (output_gzip.c). */
#ifndef SIM_OUTPUT_IMPL_H
#define SIM_OUTPUT_IMPL_H

#include "sim/base/output.h"

/* A stream that writes gzip to fd and closes it. The same bytes for the same input: no name, no
 * date. NULL when memory runs out. */
FILE *output_gzip(int fd);

#endif

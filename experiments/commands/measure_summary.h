/* Quality of a measurement: how many times can be trusted, and why the others cannot. */
#pragma once

#include <stdio.h>

#include "sim/base/err.h"

/* Reads the rows again and prints it. The exit status: 0, or 1 when fewer than half of the times
 * are trusted. Nothing of a file that cannot be read again (a pipe). */
int measure_summary(const char *path, FILE *out, struct err *e);

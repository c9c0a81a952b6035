/* A measurement that continues where it was interrupted. Rows go to FILE.partial, and the number of
 * complete steps to FILE.partial.state, until all are there.
 *
 * The state is one line: steps, bytes, and the description of the measurement. An interrupted step
 * is measured again. Devices and pipes are written through. */
#pragma once

#include "sim/base/base.h"

struct measure_resume; /* opaque */

/* NULL with errors: it cannot be written, or what is there is of another measurement. `what` says
 * everything that decides which steps there are. */
struct measure_resume *measure_resume_open(const char *path, const char *what, struct err *e);
FILE *measure_resume_stream(struct measure_resume *r); /* borrowed */
uint32_t measure_resume_steps(const struct measure_resume *r);
/* After each step; ctx is the struct. */
void measure_resume_step(void *ctx, uint32_t steps);
/* complete: the file takes its place. Else it stays for the next try, unless it holds no step. 0 or
 * -EINVAL with an error. Frees. */
int measure_resume_close(struct measure_resume *r, bool complete, struct err *e);

/* A measurement that continues after an interruption. Until it is complete, rows go to
 * FILE.partial, and the number of complete steps to FILE.partial.state.
 *
 * The state is one line: steps, bytes, and the description of the measurement. An interrupted step
 * is measured again. Devices and pipes are written directly. */
#pragma once

#include "sim/base/base.h"

struct measure_resume; /* opaque */

/* NULL with errors: it cannot be written, or the partial file is of another measurement. `what`
 * describes everything that determines the steps. */
struct measure_resume *measure_resume_open(const char *path, const char *what, struct err *e);
FILE *measure_resume_stream(struct measure_resume *r); /* borrowed */
uint32_t measure_resume_steps(const struct measure_resume *r);
/* After each step; ctx is the struct. */
void measure_resume_step(void *ctx, uint32_t steps);
/* complete: renames the partial file to FILE. Otherwise it remains for the next try, unless it has
 * no step. Returns 0, or -EINVAL with an error. Frees r. */
int measure_resume_close(struct measure_resume *r, bool complete, struct err *e);

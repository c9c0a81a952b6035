/* A hardware model whose kernels take other times and bytes, exactly. */
#pragma once

#include "sim/api/hwmodel.h"

struct rescale {
    int time, bytes; /* times 2 to the power of this */
    bool faster;     /* a quarter less time */
    int64_t more_ns; /* this much more time in the end, at least 1 ns in all; 0: none */
};
/* Borrows `of`. There is one such model at a time. */
const struct hwmodel *rescale_kernels(const struct hwmodel *of, struct rescale how);
/* Host work, resets, compilation and transfers of the machine take twice as long. */
void rescale_durations(struct machine *m);

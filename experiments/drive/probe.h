/* Tests one device of OpenVINO, kernel by kernel: `drive --probe NPU`. */
#pragma once

#include "experiments/shell/document.h"
#include "hwmodels/engines/bench.h"

/* A backend's library, opened. */
struct probe {
    const struct engine_bench_ops *ops;
    void *bench;
};

/* Returns 0, or -EINVAL with an error if the engine is not available. probe_close in every case. */
int probe_open(struct probe *p, struct err *e);
void probe_close(struct probe *p);
/* Compiles and runs one FFN and one attention of a model. Prints each step on stderr before it,
 * because a driver's compiler may take minutes or end the process. Adds tables "facts" and
 * "kernels". Returns the number of failed kernels, or -EINVAL with an error: unknown device. */
int probe_device(struct probe *p, const char *device, const struct llm *llm, uint32_t rows,
                 struct document *d, struct err *e);

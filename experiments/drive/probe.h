/* Tries one device of OpenVINO, kernel by kernel: `drive --probe NPU`. */
#pragma once

#include "experiments/shell/document.h"
#include "hwmodels/engines/bench.h"

/* A backend's library, opened. */
struct probe {
    const struct engine_bench_ops *ops;
    void *bench;
};

/* 0, or -EINVAL with an error: the engine is not there. probe_close in every case. */
int probe_open(struct probe *p, struct err *e);
void probe_close(struct probe *p);
/* Compiles and runs one FFN and one attention of a model; prints what it is about to do on stderr,
 * since a driver's compiler may take minutes or end the process. Tables "facts" and "kernels". The
 * number of kernels that failed, or -EINVAL with an error: no such device. */
int probe_device(struct probe *p, const char *device, const struct llm *llm, uint32_t rows,
                 struct document *d, struct err *e);

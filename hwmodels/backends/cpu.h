/* CPU cores as devices, over any set of kernels: what `native` and `blas` share.
 *
 * A device owns a pool of memory through which weights rotate, so that no launch finds its weights
 * in a cache; the pool must be larger than the last-level cache. */
#pragma once

#include "hwmodels/backends/backend.h"
#include "hwmodels/backends/native_kernels.h"

/* The first member of the state of such a backend. Functions that a set does not have are NULL. */
struct cpu_backend {
    struct native_kernels kernels;
    const void *library; /* handed to products */
    char description[96];
};

uint32_t cpu_enumerate(struct backend *b, struct backend_info *out, uint32_t cap);
struct backend_device *cpu_open(struct backend *b, uint32_t index, struct err *e);
void cpu_close(struct backend_device *d);
bool cpu_supports(const struct backend_device *d, const struct kernel_spec *s);
struct backend_kernel *cpu_prepare(struct backend_device *d, const struct kernel_spec *s,
                                   struct backend_prep *out, struct err *e);
void cpu_release(struct backend_kernel *k);
int64_t cpu_submit(struct backend_kernel *k);
int cpu_wait(struct backend_device *d, int64_t ticket, int64_t timeout_ns);
int cpu_stamps(struct backend_device *d, int64_t ticket, struct backend_stamps *out);
int64_t cpu_cancel(struct backend_device *d, int64_t ticket);
void cpu_counters(struct backend_device *d, struct backend_counters *out);
int cpu_compute(struct backend_kernel *k, const float *x, const void *w, float *y);

/* All of a backend of cores but its name, start and stop. */
#define CPU_BACKEND_OPS                                                                            \
    .enumerate = cpu_enumerate, .open = cpu_open, .close = cpu_close, .supports = cpu_supports,    \
    .prepare = cpu_prepare, .release = cpu_release, .submit = cpu_submit, .wait = cpu_wait,        \
    .stamps = cpu_stamps, .cancel = cpu_cancel, .counters = cpu_counters, .compute = cpu_compute

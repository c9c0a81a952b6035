/* One measuring window: one or two devices run the same kernel again and again for a while.
 *
 * All launches are queued before the first ends, so the devices never wait for the controlling
 * thread, which sleeps meanwhile. A sample is the time from one completion to the next: launch
 * costs are in it. The first completion of a window only starts the clock (warm-up). With two
 * devices, samples count only while both run. A launch that lost its core makes no sample, neither
 * of its own side nor of the other. */
#pragma once

#include "hwmodels/backends/backend.h"
#include "hwmodels/backends/host.h"

struct window_side {
    struct backend_device *device;
    struct backend_kernel *kernel;
    double alone_s; /* expected time of one launch; > 0 */
    bool cached;    /* its weights stay in a cache (backend_prep) */
    bool hung;      /* out: did not answer by the deadline; the device is lost */
    double samples[BACKEND_MAX_INFLIGHT]; /* out, seconds, in any order */
    uint32_t n;                           /* out */
    double median_s;                      /* out: of the samples, where there are any */
    double spike_frac; /* out: share of samples left out because they took over twice the median */
    double
        idle_frac; /* out: share of the time that the worker did not have its core; < 0 unknown */
    double busy_frac; /* out: the device's own counter over the window; < 0 unknown */
};

struct window_options {
    struct backend *backend;
    const char *proc_dir;
    double window_s;
    uint32_t min_samples;
    double deadline_s; /* beyond the expected time of the window */
};

/* Runs; fills the sides and what others did to the processor meanwhile. 0; -ETIMEDOUT: a side hung;
 * -EIO: a launch was refused or failed. */
int window_run(const struct window_options *o, struct window_side *sides, uint32_t n_sides,
               struct backend_host *host);

/* Nearest-rank quantile of the samples, which it reorders. Precondition: n > 0. */
double window_quantile(struct window_side *s, double p);

/* A hardware model whose kernels take other times and bytes, exactly. */
#pragma once

#include "sim/core/run.h"

struct rescale {
    int time, bytes; /* times 2 to the power of this */
    bool faster;     /* a quarter less time */
    int64_t more_ns; /* this much more time in the end, at least 1 ns in all; 0: none */
};
/* Borrows `of`. There is one such model at a time. */
const struct hwmodel *rescale_kernels(const struct hwmodel *of, struct rescale how);
/* Host work, resets, compilation and transfers of the machine take twice as long. */
void rescale_durations(struct machine *m);
/* The trace's events of the machine come at so many times the time, and so much later. A battery
 * lasts as many times as long. */
void rescale_events(struct trace *t, int times, int64_t later_ns);
/* Frames that are due at at_ns come so much later. Those that an event wants move with it, and
 * those of the whole run more and more. t is a copy of a trace. It borrows its events from here
 * until the next call. */
void rescale_frames(struct sim_frames *f, struct trace *t, int64_t later_ns, int64_t at_ns);
/* Time constants of the run but those of the machine and its horizon are twice as long. */
void rescale_setup(struct sim_setup *s);

/* The schedule of a run as data for the live page: an observer. It records launches with their
 * requests, every request with the causes of its latency (sim/metrics/explain.h), and DDR, power
 * and memory over time.
 *
 * Up to SCHEDULE_MAX_LAUNCHES launches are recorded one by one. In a longer run, launches of the
 * same requests on a device within SCHEDULE_JOIN_NS of each other are joined, even if other
 * launches are between them. Recording does not change results, but prevents that kernels are
 * simulated together. Memory: O(requests); launches are on disk until the end. */
#pragma once

#include "sim/api/hwmodel.h"
#include "sim/api/observer.h"
#include "sim/api/trace.h"
#include "sim/metrics/metrics.h"

#define SCHEDULE_MAX_LAUNCHES 60000
#define SCHEDULE_JOIN_NS 200000000

struct schedule; /* opaque */

struct schedule_options {
    /* Kernels that begin in this window are recorded individually, too. */
    int64_t from_ns, to_ns; /* to_ns 0: no kernels */
    struct metrics_range range[METRICS_MAX_MODELS][MACHINE_MAX_DEVICES];
};

/* Everything is borrowed, and the schedule is kept. One object observes one run. */
struct schedule *schedule_new(const struct machine *machine, const struct trace *trace,
                              const struct schedule_options *o);
void schedule_price(struct schedule *s, const struct hwmodel *model); /* explain_price */
/* Observers to register, both for the same run. */
struct observer *schedule_observer(struct schedule *s);
struct observer *schedule_explainer(struct schedule *s);
/* After the run, once: writes the object {devices, requests, blockers, members, launches, kernels,
 * cells} of docs/schemas/view.json. Cost: linear in the records, and O(requests^2) look-ups. */
void schedule_write(struct schedule *s, FILE *out);

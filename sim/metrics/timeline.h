/* The schedule as a picture: an observer that streams Chrome trace-event JSON, which Perfetto
 * (ui.perfetto.dev) opens.
 *
 * Tracks. Process "machine": one track per device (a time-shared device has one more per concurrent
 * launch), the loader, the compiler. Process "requests": one per request, which names its class and
 * the length of its prompt. Names of slices are the same for the same work, so that they have one
 * colour and one row in a viewer's tables; args name the request.
 *   device   a slice per launch, "prefill", "decode" or "mixed" (args: launch, pass, request = the
 *            first segment's, sequences, rows, class, lead_us = host work before the first
 *            kernel), in it "lead" and one per kernel (args: layer, index where it is not 0,
 *            isolated_us where others on the machine made it longer), and "killed" for what a reset
 *            lost. Launches in the queue of a device are not drawn. Instants: "preempt asked",
 *            "yield", "reset"
 *   loader, compiler   a slice per graph block or attention kernel, from its turn in the channel
 *            to when it was ready or cancelled. KV that is swapped uses the loader too, but is not
 *            reported to observers: a load that waits for it looks longer
 *   conditions   in runs with events of the machine: a slice for what holds between two of them
 *   request  a slice from arrival to finish, in it queued (to first service), prefill (to first
 *            token), decode, and recompute after KV loss. Instants: "evicted", "swapped" (seen
 *            when its next pass forms), "shed"
 * Arrows lead from a request's arrival to its first kernel. Counters: DDR demand and traffic in
 * GB/s, watts of each power domain, live requests of each class.
 *
 * Without kernels (launches only) leads are left out, too. The counters of DDR and power are then
 * means over cells of TIMELINE_CELL_NS, written on changes: an hour is some megabytes, not
 * gigabytes. A window cuts slices at its ends.
 *
 * Events of a track are written in time order, and slices are nested or disjoint. If a counter
 * changes several times at an instant, the last value is written. The run's results do not change,
 * but it is simulated kernel by kernel (wants_kernels). Memory: O(live requests). */
#pragma once

#include "sim/api/observer.h"
#include "sim/base/base.h"

#define TIMELINE_PID_MACHINE 1u
#define TIMELINE_PID_REQUESTS 2u
#define TIMELINE_LANES MACHINE_MAX_SHARED
/* Tracks of the machine: lanes of device d begin at TIMELINE_TID_DEVICE(d). */
#define TIMELINE_TID_DEVICE(d) (1u + (uint32_t)(d)*TIMELINE_LANES)
#define TIMELINE_TID_LOADER TIMELINE_TID_DEVICE(MACHINE_MAX_DEVICES)
#define TIMELINE_TID_COMPILER (TIMELINE_TID_LOADER + 1u)
#define TIMELINE_TID_FRAMES (TIMELINE_TID_COMPILER + 1u)
#define TIMELINE_TID_CONDITIONS (TIMELINE_TID_FRAMES + 1u)

#define TIMELINE_CELL_NS 10000000 /* 10 ms */

struct timeline; /* opaque */

/* {0}: the whole run, every kernel, no description. */
struct timeline_options {
    int64_t from_ns, to_ns; /* the window; to_ns 0: the end of the run */
    bool only_launches;
    const char *about; /* a JSON object on one line that describes the run, or NULL */
};

/* The file is complete or absent (output.h); a name in .gz compresses it. machine is borrowed until
 * close. NULL with an error if it cannot be written. One object observes one run. */
struct timeline *timeline_open(const char *path, const struct machine *machine,
                               const struct timeline_options *o, struct err *e);
struct observer *timeline_observer(struct timeline *t);
/* Completes the file if `keep`, else removes it. Frees t, which may be NULL. 0 or -EINVAL with an
 * error. */
int timeline_close(struct timeline *t, bool keep, struct err *e);

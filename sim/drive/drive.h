/* The second executor: runs the same core and the same policies on real kernels of inference
 * backends (sim/api/engine.h), with one thread per device.
 *
 *   wall  threads, real time, real interference. Device threads are pinned to their cores; the
 *         host thread (the caller's) owns the core and does all scheduling, as a coordinator would.
 *   cpu   execution-driven: kernels really run, one at a time, and each takes its measured
 *         processor time on a virtual clock. Tokens, decisions and accounts are those of a real
 *         run; other programs on the machine have no effect, and there is no interference. Host
 *         costs are those of the SoC file.
 *
 * A setup that uses a feature without a counterpart on a real backend is refused:
 *   stopping inside a kernel and continuing there, kernels in flight beyond the running one
 *   shares of memory bandwidth, time-shared devices, graphics frames, power limits
 *   graph blocks if the NPU's backend has none, drafts of speculation
 *   static kernels of more rows than those of the machine and its graphs
 * Energy is absent from the results, not zero.
 *
 * A kernel that fails, hangs or cannot be compiled ends the run with an error that names it. A hung
 * thread cannot be ended. Its memory is leaked, and the process should exit soon. */
#pragma once

#include <signal.h>

#include "sim/api/engine.h"
#include "sim/core/run.h"

struct drive_host;

struct drive_device {
    const struct engine_ops *engine;
    char name[16]; /* the engine's name of the device, "CPU" */
    int core;      /* processor to pin its thread to; -1: none */
};

enum drive_clock { DRIVE_CLOCK_WALL, DRIVE_CLOCK_CPU };

/* The rows of one sequence in a kernel with attention, and the number of keys of the last row. */
struct drive_segment {
    uint32_t rows, keys;
    bool prefill;
};

/* A kernel that ran. */
struct drive_kernel {
    uint32_t launch, row0, rows, padded_rows;
    uint32_t segment0, n_segments; /* range in drive_report.segments; empty without attention */
    uint32_t sequences, shape_rows, prefill_rows; /* of the whole pass */
    uint64_t pairs, keys;
    int64_t begin_ns, ns; /* wall: real time; cpu: virtual begin, processor time */
    uint16_t layer;
    uint8_t device, op;
    bool stopped; /* interrupted: its work is lost */
};

/* Statistics of n durations in ns. */
#define DRIVE_OCTAVES 40
struct drive_times {
    uint64_t n;
    double sum_ns, sum_sq, max_ns;
    struct {
        uint64_t n;
        double sum_ns, sum_sq;
    } octave[DRIVE_OCTAVES]; /* the same for durations in [2^i, 2^(i+1)) */
};

/* Work outside the devices. The compiler's thread and the loader's each do one at a time. */
enum drive_work {
    DRIVE_COMPILE,
    DRIVE_SWAP_OUT,
    DRIVE_SWAP_IN,
    DRIVE_LOAD,
    DRIVE_EVICT,           /* of a graph block, on the loader */
    DRIVE_EVICT_ATTENTION, /* on the compiler */
    DRIVE_WORKS
};

struct drive_resident_time {
    enum drive_work work;
    double size; /* prompt tokens of attention; bytes of other work */
    int64_t ns;
};

#define DRIVE_YIELDS 4

/* Measurements of a run beyond those of observers. Owned by the caller; see drive_report_fini. */
struct drive_report {
    struct drive_times schedule;   /* the policy's schedule, all rounds of an instant */
    struct drive_times submit;     /* launch by the policy -> first kernel on an idle device */
    struct drive_times completion; /* end of the last kernel -> the host is notified */
    struct drive_times tail;       /* sampling, per pass */
    struct drive_times stop[DRIVE_YIELDS]; /* stop request -> stopped, by enum yield_point */
    struct drive_times reset;
    int64_t busy_ns[MACHINE_MAX_DEVICES];
    uint64_t token_hash; /* over all (request, position, token) */
    bool realtime;       /* SCHED_FIFO was requested and granted */
    bool interrupted;    /* a request to interrupt ended the run early */
    struct drive_kernel *kernels;
    size_t n_kernels, cap_kernels;
    struct drive_segment *segments;
    size_t n_segments, cap_segments;
    struct drive_resident_time *residents;
    size_t n_residents;
};

struct drive_options {
    enum drive_clock clock;
    struct drive_device devices[MACHINE_MAX_DEVICES]; /* one per device of the machine */
    bool realtime;    /* wall: request SCHED_FIFO; runs without it if not permitted */
    double limit_s;   /* wall: ends a run that takes longer; 0: 600 */
    double hang_s;    /* limit of a kernel or a KV move before it counts as hung; 0: 60 */
    double compile_s; /* limit of a compilation, or of opening an engine; 0: 600 */
    /* Both texts must live as long as the process, because a hung thread keeps using them. */
    const char *scratch; /* folder of the swap file and of graphs; NULL: /tmp */
    const char *cache;   /* folder of compiled kernels, reused by later runs; NULL: none */
    /* Called while a device opens: `done` of its n kernels are compiled. May be NULL. */
    void (*compiled)(const char *device, uint32_t done, uint32_t n);
    FILE *tokens; /* gets a line per request: its id and its tokens; or NULL */
    FILE *topk;   /* gets a line per request: the 8 likeliest tokens after each token; or NULL */
    /* Set nonzero, for instance by a signal handler, to end the run within a second with partial
     * results. An engine that is closing is waited for. May be NULL. */
    const volatile sig_atomic_t *interrupt;
    const struct drive_host *host; /* NULL: this computer (sim/drive/host.h) */
};

/* Runs a setup to the end, as sim_run does; returns result->status. The setup's truth is used only
 * for the annotations that policies get. report: cleared, then filled, even if the run fails. */
int drive_run(const struct drive_options *o, const struct sim_setup *setup,
              struct sim_result *result, struct drive_report *report);
void drive_report_fini(struct drive_report *r);

/* Excludes durations more than three octaves above the median's, so at least 8 times as long. */
struct drive_times drive_times_screened(const struct drive_times *t);
static inline double drive_mean_ns(const struct drive_times *t)
{
    return t->n == 0 ? 0.0 : t->sum_ns / (double)t->n;
}

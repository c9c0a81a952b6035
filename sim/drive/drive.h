/* The second executor: the same core and the same policy objects on real kernels of inference
 * backends (sim/api/engine.h), one thread per device.
 *
 *   wall  threads, real time, real interference. Device threads are pinned to their cores; the
 *         host thread (the caller's) owns the core and does all scheduling, as a coordinator would.
 *   cpu   execution-driven: every kernel really runs, one after another, and takes the processor
 *         time that it took on a virtual clock. Tokens, decisions and accounts are those of a real
 *         run; other programs on the machine do no harm, and no interference is seen. Host costs
 *         are those of the SoC file.
 *
 * A request without a counterpart on a real backend is refused, never imitated:
 *   stopping inside a kernel and continuing there, kernels in flight beyond the running one
 *   shares of memory bandwidth, time-shared devices, graphics frames, power limits
 *   graph blocks where the NPU's backend has none, drafts of speculation
 *   static kernels of more rows than those of the machine and its graphs
 * There is no energy: it is absent, not zero.
 *
 * A kernel that fails, hangs or cannot be compiled ends the run with an error that names it. After
 * a hang the device's thread cannot be ended. Its memory is given up, and the process should not
 * live long after. */
#pragma once

#include <signal.h>

#include "sim/api/engine.h"
#include "sim/core/run.h"

struct drive_host;

struct drive_device {
    const struct engine_ops *engine;
    char name[16]; /* the engine's word for it; "CPU" */
    int core;      /* processor its thread is pinned to; -1: none */
};

enum drive_clock { DRIVE_CLOCK_WALL, DRIVE_CLOCK_CPU };

/* Rows of one sequence in a kernel with attention, and the keys that its last row sees. */
struct drive_segment {
    uint32_t rows, keys;
    bool prefill;
};

/* One kernel as it ran. */
struct drive_kernel {
    uint32_t launch, row0, rows, padded_rows;
    uint32_t segment0, n_segments; /* of the report's segments; none without attention */
    uint32_t sequences, shape_rows, prefill_rows; /* of the whole pass */
    uint64_t pairs, keys;
    int64_t begin_ns, ns; /* wall: real time; cpu: virtual begin, processor time */
    uint16_t layer;
    uint8_t device, op;
    bool stopped; /* interrupted: its work is lost */
};

/* Durations in ns of something that happened n times. */
#define DRIVE_OCTAVES 40
struct drive_times {
    uint64_t n;
    double sum_ns, sum_sq, max_ns;
    struct {
        uint64_t n;
        double sum_ns, sum_sq;
    } octave[DRIVE_OCTAVES]; /* durations in [2^i, 2^(i+1)): as above */
};

/* Work apart from the devices: on the compiler's thread, or one after another on the loader's. */
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
    double size; /* prompt tokens; bytes */
    int64_t ns;
};

#define DRIVE_YIELDS 4

/* Measurements of a run in addition to what observers saw. Owned by the caller; drive_report_fini.
 */
struct drive_report {
    struct drive_times schedule;   /* of the policy, all rounds of an instant */
    struct drive_times submit;     /* launch by the policy -> first kernel on an idle device */
    struct drive_times completion; /* last kernel's end -> the host knows */
    struct drive_times tail;       /* sampling, per pass */
    struct drive_times stop[DRIVE_YIELDS]; /* asked to stop -> stopped, by enum yield_point */
    struct drive_times reset;
    int64_t busy_ns[MACHINE_MAX_DEVICES];
    uint64_t token_hash; /* of all (request, position, token) */
    bool realtime;       /* SCHED_FIFO was wanted and granted */
    bool interrupted;    /* it ended before its requests did, as it was asked to */
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
    bool realtime;  /* wall: ask for SCHED_FIFO; runs without where it is not permitted */
    double limit_s; /* wall: the run is given up after that long; 0: 600 */
    double hang_s;  /* a kernel or a move that takes longer has hung; 0: 60 */
    double
        compile_s; /* one compilation, or opening an engine, that takes longer has hung; 0: 600 */
    /* Both as long as the process, since a thread that hangs keeps them. */
    const char *scratch; /* folder of the swap file and of graphs; NULL: /tmp */
    const char *cache;   /* folder of compiled kernels for the next run; NULL: none */
    /* Called while a device opens: `done` of its n kernels are compiled. NULL: nobody asks. */
    void (*compiled)(const char *device, uint32_t done, uint32_t n);
    FILE *tokens; /* a line per request: its id and its tokens; or NULL */
    FILE *topk;   /* a token text per request, with the 8 likeliest tokens after each; or NULL */
    /* Nonzero, for instance by a signal: the run ends within a second, and keeps what it has. An
     * engine that closes then is waited for. NULL: nobody interrupts it. */
    const volatile sig_atomic_t *interrupt;
    const struct drive_host *host; /* NULL: this computer (sim/drive/host.h) */
};

/* Runs a setup to the end, as sim_run does; returns result->status. The setup's truth serves the
 * annotations that policies are given, and nothing else. report: cleared, then filled, also when
 * the run fails. */
int drive_run(const struct drive_options *o, const struct sim_setup *setup,
              struct sim_result *result, struct drive_report *report);
void drive_report_fini(struct drive_report *r);

/* Without those of more than three octaves above the median's: eight times as long and more. */
struct drive_times drive_times_screened(const struct drive_times *t);
static inline double drive_mean_ns(const struct drive_times *t)
{
    return t->n == 0 ? 0.0 : t->sum_ns / (double)t->n;
}

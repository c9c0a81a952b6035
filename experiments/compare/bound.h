/* oracle-lb: a bound that no schedule on this machine can beat.
 *
 * For one request, the bound is its latency if it had the whole machine and every choice were
 * right. Ops of a pass are barriers, so the bound is a sum over layers and ops:
 *
 *   op >= max(T, bytes / C)
 *   T: the shortest time in which all devices together finish its rows, each at its roofline and
 *      none faster than one of its kernels
 *   C: the highest bandwidth of the shared DDR
 *
 * That is Gables' bound (Hill and Reddi, HPCA 2019) op by op: sum of accelerators, shared
 * bandwidth. Every token after the first is another pass; every pass has a launch and a sampling.
 * Batching, splitting, chunking and preempting cannot beat it. A device's work in time T is
 * superadditive in T, so pieces never add up to more than the whole.
 *
 * A workload does not end before the largest of these three, over all instants:
 *   path     the latest chain of a session's turns, each at its own bound and gap
 *   compute  instant + compute of requests released from then on / speed of all devices
 *   memory   instant + bytes of these / C: weights once per pass of the longest request, all KV
 * The least time for several ops on different devices is a linear program. Any prices of device
 * time give a bound (weak duality), and the best of a few is used.
 *
 * It holds under every policy (with that drafter), contention model, power limit and graphics load.
 * It does not hold when kernel times are random (sim_setup_is_random): bound_init refuses. Costs
 * that could only raise the bound (sync between devices, static padding, compiles, loads) are left
 * out, so no schedule reaches it in general. tests/oracle/check_bounds.c has cases where one does.
 */
#pragma once

#include "experiments/run/config.h"
#include "sim/api/trace.h"
#include "sim/core/run.h"

/* Floors of an op on every device: for kernels with many rows [0] and with one row [1]. */
struct bound_op {
    struct kernel_floor of[MACHINE_MAX_DEVICES][2];
};

struct bound {
    uint32_t n_devices, n_layers;
    struct bound_op ops[OP_KIND_COUNT];
    double ddr_bytes_per_s;   /* C; infinite if the contention model shares nothing */
    double pass_s;            /* host work of a pass: launch and sampling */
    uint32_t tokens_per_pass; /* 1 + the most that a drafter proposes */
    bool prefix_reuse;
};

/* setup: as for a run (config_setup). Returns 0, or -EINVAL if kernel times are random: then there
 * is no bound. The bound keeps no pointers. A model without floors is bounded by host work only. */
int bound_init(struct bound *b, const struct sim_setup *setup);

/* Like bound_init, for a loaded configuration; the policy matters for its drafter only. */
int bound_of_config(struct bound *b, const struct config *c, const struct config_policy *p);

struct bound_latency {
    double ttft_s, e2e_s; /* arrival to first and last token */
};

/* Bounds the request of a trace row as the only one on the machine, with its reusable prefix
 * cached. O(output tokens). */
struct bound_latency bound_request(const struct bound *b, const struct trace_row *row);

enum bound_by { BOUND_BY_PATH, BOUND_BY_COMPUTE, BOUND_BY_MEMORY };
extern const char *const bound_by_names[]; /* "path", "compute", "memory" */

struct bound_workload {
    double makespan_s;             /* first arrival to last finish, at least */
    double throughput_req_per_min; /* at most, over that span */
    enum bound_by by;              /* the part that decides makespan_s */
    /* Means over the requests of a class, or of both (REQUEST_CLASS_COUNT); NaN without any. */
    struct bound_latency mean[REQUEST_CLASS_COUNT + 1];
    double norm_e2e_per_token_s[REQUEST_CLASS_COUNT + 1]; /* mean of E2E / (input + output) */
};

/* The bound of all requests of a trace that is served to its end. O(n log n + output tokens). */
void bound_trace(const struct bound *b, const struct trace *t, struct bound_workload *out);

/* Lower bound of a metric of this workload by its name in results, or NaN where there is none:
 * {reactive,proactive,all}.{ttft_s.mean, e2e_s.mean, norm_e2e_per_token_s.mean}; and, as an upper
 * bound, all.throughput_req_per_min. */
double bound_metric(const struct bound_workload *w, const char *metric);

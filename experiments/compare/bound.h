/* oracle-lb: a bound that no schedule on this machine can beat.
 *
 * For one request it is the time from its arrival when it has the whole machine and every choice is
 * right. Ops of a pass are barriers, so it goes layer by layer and op by op:
 *
 *   op >= max(T, bytes / C)
 *   T: the smallest time in which the devices together finish its rows, each at its roofline and
 *      none faster than one kernel of its own
 *   C: the highest traffic of the shared DDR
 *
 * That is Gables' bound (Hill and Reddi, HPCA 2019) op by op: sum of accelerators, shared
 * bandwidth. Every token after the first is another pass; every pass pays its launch and sampling.
 * Batching, splitting, chunking and preempting cannot beat it. A device's work in time T is
 * superadditive in T, so pieces never add up to more than the whole.
 *
 * A workload does not end before the largest of these three, over all instants:
 *   path     the latest chain of a session's turns, each at its own bound and gap
 *   compute  instant + compute of all that is released from then on / all devices together
 *   memory   instant + bytes of the same / C: weights once per pass of the longest request, all KV
 * Compute of several ops on unlike devices is a linear program. Any prices of device time give a
 * bound (weak duality); the best of a few is taken.
 *
 * It holds under every policy (with that drafter), contention model, power limit and graphics user.
 * It does not hold when kernel times are random (sim_setup_is_random): bound_init refuses. Costs
 * that could only raise the bound (sync between devices, static padding, compiles, loads) are left
 * out, so no schedule reaches it in general. tests/oracle/check_bounds.c has cases where one does.
 */
#pragma once

#include "experiments/run/config.h"
#include "sim/api/trace.h"
#include "sim/core/run.h"

/* Floors of one op on every device: of kernels of many rows [0] and of one row [1]. */
struct bound_op {
    struct kernel_floor of[MACHINE_MAX_DEVICES][2];
};

struct bound {
    uint32_t n_devices, n_layers;
    struct bound_op ops[OP_KIND_COUNT];
    double ddr_bytes_per_s;   /* C; infinite where the form of contention shares nothing */
    double pass_s;            /* host work of a pass: launch and sampling */
    uint32_t tokens_per_pass; /* 1, and what a drafter offers at most */
    bool prefix_reuse;
};

/* From anything that can be run (config_setup). 0, or -EINVAL when there is no bound: kernels take
 * random times. The bound keeps no pointers. A model without floors is bounded by host work only.
 */
int bound_init(struct bound *b, const struct sim_setup *setup);

/* Like bound_init, for a loaded configuration; the policy matters for its drafter only. */
int bound_of_config(struct bound *b, const struct config *c, const struct config_policy *p);

struct bound_latency {
    double ttft_s, e2e_s; /* arrival to first and last token */
};

/* The request of a trace row, alone on the machine, its reusable prefix found in the cache.
 * O(output tokens). */
struct bound_latency bound_request(const struct bound *b, const struct trace_row *row);

enum bound_by { BOUND_BY_PATH, BOUND_BY_COMPUTE, BOUND_BY_MEMORY };
extern const char *const bound_by_names[]; /* "path", "compute", "memory" */

struct bound_workload {
    double makespan_s;             /* first arrival to last finish, at least */
    double throughput_req_per_min; /* at most, over that span */
    enum bound_by by;              /* which part of it is largest */
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

/* Fixed priorities on NPU and iGPU, as XSched's HPF and HHPF order command queues (clauses.md E.4).
 * A request's prompt runs on the NPU with attention and margin on the iGPU, one prompt at a time.
 * Its decodes run on the iGPU, batched with those of the same priority. Reactive goes before
 * proactive, then the trace's priority (lower first), then arrival.
 *
 *   HPF   a device works only for the most urgent of those that are ready on it
 *   HHPF  every device works only for the most urgent of those that are ready on any
 *
 * Deviation: while the host samples an iteration, no other request decodes, and prompts continue
 * regardless of waiting decodes. In XSched the next ready queue would get the device.
 *
 * A request that may no longer run is stopped at the configured level, and continues later where it
 * stopped. Memory follows the same fixed order: the last in it is evicted first.
 *
 * Cost of a decision: O(batch * log waiting); O(waiting) if memory is short. */
#pragma once

#include "policies/common/batch.h"
#include "policies/common/hetero.h"
#include "policies/common/order.h"
#include "policies/common/xsched.h"
#include "sim/api/policy.h"

enum priority_param { PRIORITY_MAX_BATCH, PRIORITY_INFLIGHT, PRIORITY_LEVEL, PRIORITY_PARAM_COUNT };

extern const struct policy_param priority_params[]; /* the whole table */

struct priority_request {
    struct order_node node;
    struct pass *suspended; /* pass of its prompt while another one has the NPU */
};

/* Decodes of one priority in one pass. */
struct priority_group {
    struct pass *pass; /* NULL: none */
    double key;
};

#define PRIORITY_MAX_PAUSED 8

struct priority {
    bool system_wide;                /* HHPF */
    struct order waiting, decoding;  /* prompts; requests in decode and in no pass */
    const struct request *current;   /* request whose prompt is on the devices, or NULL */
    struct hetero prefill;           /* prefill of `current` */
    struct priority_group iteration; /* running on the iGPU */
    struct priority_group paused[PRIORITY_MAX_PAUSED]; /* a stack, the most urgent on top */
    uint32_t n_paused;
    const struct launch *on_igpu; /* the iteration's, or NULL */
    int64_t decode_ready_ns;      /* since this instant decodes wait for the iGPU */
    bool no_memory; /* no iteration could be formed at this event, so prompts continue */
    struct batch batch;
    uint32_t chunk;
    int npu, igpu;
};

/* `current` has its pass, and launches belong to live passes. In the stack a group is more urgent
 * than the one below. */
static inline bool priority_ok(const struct priority *h)
{
    const struct priority_group *top = &h->paused[h->n_paused == 0 ? 0 : h->n_paused - 1];
    return (h->current == NULL) == (h->prefill.pass == NULL) && hetero_ok(&h->prefill) &&
           h->n_paused <= PRIORITY_MAX_PAUSED &&
           (h->n_paused == 0 || (top->pass != NULL && top->key <= h->paused[0].key)) &&
           (h->on_igpu == NULL || h->on_igpu->pass == h->iteration.pass) &&
           (h->on_igpu == NULL || h->prefill.on_igpu == NULL || h->on_igpu != h->prefill.on_igpu);
}

/* -EINVAL if the NPU has no static chunk, -EPERM if a device cannot stop at the configured level.
 */
int priority_init(struct sched *s, bool system_wide);
void priority_exit(struct sched *s);
void priority_request_arrived(struct sched *s, const struct request *r);
void priority_request_cancelled(struct sched *s, const struct request *r);
void priority_launch_done(struct sched *s, const struct launch *l);
void priority_pass_done(struct sched *s, const struct pass *p);
void priority_schedule(struct sched *s);
/* Checks invariants (consistent.c). */
bool priority_is_consistent(const struct priority *h);

/* Members of policy_ops, all but name, summary and init. */
#define PRIORITY_HOOKS                                                                             \
    .needs = CAP_NPU | CAP_IGPU | CAP_SPANS | CAP_ROW_SPLIT | CAP_YIELD_KERNEL | CAP_KV_MOVE,      \
    .state_size_bytes = sizeof(struct priority),                                                   \
    .request_state_size_bytes = sizeof(struct priority_request), .params = priority_params,        \
    .exit = priority_exit, .request_arrived = priority_request_arrived,                            \
    .request_cancelled = priority_request_cancelled, .launch_done = priority_launch_done,          \
    .pass_done = priority_pass_done, .schedule = priority_schedule

/* Disaggregated prefill and decode (clauses.md E.10). The NPU is the prefill instance, with
 * attention on the iGPU. The iGPU is the decode instance, with one batch of all decodes. Memory is
 * shared, so no KV moves between them. Requests are served in arrival order, without classes or
 * preemption. The two instances are two command streams to the iGPU, which takes kernels in the
 * order in which they become ready (with yield_iteration, an iteration as one piece).
 *
 * With a finite limit the iGPU may become a mixed instance. A prompt that arrives while more than
 * `limit` tokens wait for the NPU goes to the iGPU, whose iterations then take chunks of it
 * together with decodes. */
#pragma once

#include "policies/common/batch.h"
#include "policies/common/hetero.h"
#include "policies/common/reqq.h"
#include "sim/api/policy.h"

struct disagg {
    struct reqq npu_queue;  /* prompts for the NPU */
    struct reqq igpu_queue; /* prompts for the mixed iGPU */
    struct reqq decoding;
    const struct request *current; /* the prompt on the NPU, or NULL */
    struct hetero prefill;
    struct batch batch;
    struct pass *iteration;       /* iteration of the iGPU, or NULL */
    const struct launch *on_igpu; /* its launch, or NULL */
    int64_t iteration_ready_ns;
    uint64_t limit_tokens;
    uint32_t mixed_tokens; /* most prompt tokens in an iteration of the mixed iGPU */
    uint32_t max_batch;
    uint32_t chunk;
    bool margin_on_npu, yield_iteration;
    int npu, igpu;
};

/* The first entries of both parameter tables. */
enum disagg_param { DISAGG_MARGIN, DISAGG_MAX_BATCH, DISAGG_YIELD, DISAGG_PARAM_COUNT };

extern const char *const disagg_margin_choices[], *const disagg_yield_choices[];

#define DISAGG_PARAMS                                                                              \
    [DISAGG_MARGIN] =                                                                              \
        POLICY_CHOICE("margin", 1, disagg_margin_choices,                                          \
                      "where the prompt's last, partial chunk runs: padded on the NPU, or on "     \
                      "the iGPU (E.10 [S]: the eager default mapping of agent-xpu-v1)"),           \
    [DISAGG_MAX_BATCH] =                                                                           \
        POLICY_INT("max_batch", 1e6, 1, 1e6,                                                       \
                   "sequences of a decode iteration (E.10: unlimited); 1: unbatched"),             \
    [DISAGG_YIELD] =                                                                               \
        POLICY_CHOICE("yield", 0, disagg_yield_choices,                                            \
                      "where an iteration lets attention and margins of the other instance onto "  \
                      "the iGPU (E.10 [S]: two streams meet at kernels)")

/* limit_tokens UINT64_MAX: the iGPU never prefills. -EINVAL if the NPU has no static chunk. */
int disagg_init(struct sched *s, uint64_t limit_tokens, uint32_t mixed_tokens);
void disagg_exit(struct sched *s);
void disagg_request_arrived(struct sched *s, const struct request *r);
void disagg_request_cancelled(struct sched *s, const struct request *r);
void disagg_launch_done(struct sched *s, const struct launch *l);
void disagg_pass_done(struct sched *s, const struct pass *p);
void disagg_schedule(struct sched *s);
/* Checks invariants (consistent.c). */
bool disagg_is_consistent(const struct disagg *d);

#define DISAGG_HOOKS                                                                               \
    .exit = disagg_exit, .request_arrived = disagg_request_arrived,                                \
    .request_cancelled = disagg_request_cancelled, .launch_done = disagg_launch_done,              \
    .pass_done = disagg_pass_done, .schedule = disagg_schedule

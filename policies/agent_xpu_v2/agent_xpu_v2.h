/* agent-xpu-v2: the parts of the policy and what they share (clauses.md B).
 *
 *   agent_xpu_v2.c          parameters, hooks, the schedule call
 *   agent_xpu_v2_queues.c   queues of waiting requests, ageing, eviction
 *   agent_xpu_v2_choose.c   choice of the next prompt: order, preemption, ageing
 *   agent_xpu_v2_prefill.c  the prefill loop: placement, elastic split
 *   agent_xpu_v2_decode.c   the decode loop: batch formation, yielding the iGPU to prefill
 *   agent_xpu_v2_warmup.c   on-the-fly compilation of NPU attention kernels
 *   agent_xpu_v2_speculate.c  decoding that verifies drafts, on the iGPU or on an idle NPU
 *   agent_xpu_v2_consistent.c  invariants, for test builds
 */
#pragma once

#include "policies/common/batch.h"
#include "policies/common/flash.h"
#include "policies/common/gap.h"
#include "policies/common/order.h"
#include "policies/common/reqq.h"
#include "policies/common/speculate.h"
#include "sim/api/policy.h"
#include "sim/base/map.h"

enum axpu_param {
    AXPU_PREFILL_FIRST,
    AXPU_YIELD,
    AXPU_GUARD,
    AXPU_SHORTEST,
    AXPU_ELASTIC,
    AXPU_SPLIT,
    AXPU_BUSY_SHARE,
    AXPU_WARMUP,
    AXPU_WARM_REACTIVE,
    AXPU_CACHE_ENTRIES,
    AXPU_CACHE_TTL_S,
    AXPU_MEMORY_RULE,
    AXPU_B_RF,
    AXPU_MAX_BATCH,
    AXPU_LENGTH_BUCKET,
    AXPU_PIGGYBACK,
    AXPU_PREEMPT,
    AXPU_SUSPENDED,
    AXPU_AGEING,
    AXPU_T_AGE_S,
    AXPU_AGED_MAX,
    AXPU_AGED_CHUNKS,
    AXPU_CAP,
    AXPU_TBT_SLO_MS,
    AXPU_EPSILON,
    AXPU_SPECULATE,
    AXPU_DRAFTER,
    AXPU_VERIFY_ROWS,
    AXPU_DRAFT_MS,
    AXPU_GAP_KV,
    AXPU_GAP_S,
    AXPU_WARM_S,
    AXPU_FLASH,
    AXPU_MARGIN,
};

enum axpu_speculate { AXPU_SPECULATE_NONE, AXPU_SPECULATE_IGPU, AXPU_SPECULATE_NPU };

enum axpu_elastic { AXPU_ELASTIC_OFF, AXPU_ELASTIC_STATIC, AXPU_ELASTIC_ON, AXPU_ELASTIC_CLASS };
enum axpu_split { AXPU_SPLIT_MAKESPAN, AXPU_SPLIT_BALANCE };
enum axpu_margin { AXPU_MARGIN_IGPU, AXPU_MARGIN_CHOOSE };
enum axpu_piggyback { AXPU_PIGGYBACK_SHORT, AXPU_PIGGYBACK_LONG };
enum axpu_drafter { AXPU_DRAFTER_RUN, AXPU_DRAFTER_MODEL };
enum axpu_memory { AXPU_MEMORY_OFF, AXPU_MEMORY_DEFER, AXPU_MEMORY_IGPU };
enum axpu_cap { AXPU_CAP_FIXED, AXPU_CAP_SLO, AXPU_CAP_MARGINAL, AXPU_CAP_OPEN };
enum axpu_shortest { AXPU_SHORTEST_NONE, AXPU_SHORTEST_REACTIVE, AXPU_SHORTEST_ALL };
enum axpu_preempt { AXPU_PREEMPT_KERNEL, AXPU_PREEMPT_LAYER, AXPU_PREEMPT_NONE };

/* The plan of the op at the cursor: none, made for the previous op, or made for this op. */
enum axpu_plan { AXPU_PLAN_NONE, AXPU_PLAN_BEFORE, AXPU_PLAN_MADE };

/* Placement of the ops of one prefill. No member depends on the layer of the cursor, because layers
 * are equal. */
struct axpu_prefill {
    const struct request *request; /* NULL: no prefill */
    struct pass *pass;
    bool npu_attention; /* its attention is compiled: all ops on the NPU (B.6) */
    bool igpu_only;     /* an aged proactive prefill next to a reactive one (B.8) */
    /* Split of the op at the cursor, made when the cursor reached it. */
    enum axpu_plan plan;
    uint32_t npu_rows, igpu_rows; /* planned, not yet launched */
    int64_t igpu_not_before_ns;   /* TIME_NEVER_NS: igpu_late_ns after the NPU share starts */
    int64_t igpu_late_ns;         /* >= 0 */
    bool layer_busy;              /* decode was busy at the boundary of this layer */
    /* Best number of NPU chunks if decode is idle, per token-level op; -1: not computed. One more
     * than the whole chunks includes the padded margin. */
    int32_t best_chunks[2];
    /* Cached igpu_late_ns of a split, by rows on the NPU and in all; 0: none. */
    struct {
        uint32_t npu_rows, rows;
        int64_t ns;
    } late[2];
    /* Whether an op is memory-bound on the NPU, cached for bound_rows rows; 0: not. */
    uint32_t bound_rows[OP_KIND_COUNT];
    bool bound[OP_KIND_COUNT];
    const struct launch *on_npu, *on_igpu;
};

#define AXPU_MAX_SUSPENDED 8
#define AXPU_MAX_CACHE 16

struct axpu_kernel {
    uint32_t prompt_tokens; /* axpu_kernel_of; 0: free entry */
    int64_t used_ns;
};

/* Waiting prompts of a class. A prompt whose kernel is READY or PENDING keeps it while it waits, so
 * the search for the next one to compile visits each prompt once. */
struct axpu_queue {
    struct reqq q;
    const struct request *uncompiled; /* first prompt without a kernel, or NULL */
};

/* Sequences that wait for a decode batch: by readiness, and by arrival. */
struct axpu_decode {
    struct reqq q;
    struct order by_arrival;
};

/* Per request. */
struct axpu_request {
    struct order_node waiting; /* in by_age */
    struct order_node young;
    struct order_node by_arrival, rank; /* while it waits to decode */
    uint64_t ready;                     /* number of its wait for decode, in order of readiness */
    uint64_t batch, joined; /* its last decode batch, and the batch since which it has stayed */
    uint32_t drafted;       /* passes of the draft model since its last token */
    bool promoted;          /* aged: has the privileges of B.8 until it leaves */
};

struct axpu {
    int npu, igpu;
    uint32_t chunk; /* rows of a static NPU kernel */
    struct axpu_queue prefill_rt, prefill_be;
    struct order by_age; /* prefill_be again, oldest first */
    struct order young;  /* live proactive requests that are not promoted, oldest first */
    uint32_t n_promoted;
    struct axpu_decode decode_rt, decode_be;
    enum axpu_piggyback piggyback;
    /* Members of decode_be: aged ones by readiness; those of the last batch by readiness; the
     * others in the order of buckets, shorter first (B.7) or longer. */
    struct order aged_be, stayed_be, other_be;
    uint64_t n_ready;   /* last value of axpu_request.ready */
    struct map waiting; /* number of waiting prompts that may use a kernel, by axpu_kernel_of */
    bool warm_reactive; /* reactive prompts may use kernels, too */
    struct axpu_prefill current; /* the serial prefill */
    struct axpu_prefill aged;    /* at most one, on the iGPU next to a reactive `current` */
    struct axpu_prefill suspended[AXPU_MAX_SUSPENDED];
    uint32_t n_suspended;

    struct pass *decode; /* the running or paused batch */
    const struct launch *decode_launch;
    bool decode_hold; /* memory rule: a reactive memory-bound NPU kernel runs, so proactive decode
                         waits */

    struct batch batch;
    uint64_t n_batches;        /* number of the last batch; 1 before the first */
    struct speculate estimate; /* estimate of acceptance, over all requests */
    int64_t draft_ready_ns;    /* end of drafting; 0: no drafting */
    bool has_drafts;           /* drafts for the next batch are ready */
    uint32_t draft_passes;     /* passes of the draft model since the last other batch */
    bool verify_on_npu;        /* the decode pass runs its token-level ops on the NPU */
    bool decode_short;         /* decode lacks memory, so prefill gets the iGPU */
    int64_t age_ns, ttl_ns;    /* from parameters */
    int64_t warm_ns;           /* from a parameter; 0: prompts do not wait for kernels */
    int64_t age_timer_ns;      /* last timer set for ageing */

    struct axpu_kernel cache[AXPU_MAX_CACHE];
    struct gap gap;            /* KV while tools run */
    struct flash flash;        /* KV moved out by memory pressure */
    int64_t expiry_ns;         /* no unused kernel expires before this instant */
    uint32_t compiling_tokens; /* 0: the compiler is idle */
};

static inline struct axpu_request *axpu_request(const struct request *r)
{
    return r->own;
}

/* The key of a prompt's compiled attention: its tokens and its model. */
#define AXPU_KERNEL_TOKENS 0x1fffffffu /* longer than any prompt */
static inline uint32_t axpu_kernel_of(const struct request *r)
{
    return request_prefill_target(r) + r->model * (AXPU_KERNEL_TOKENS + 1);
}

static inline bool axpu_is_aged(const struct request *r)
{
    return axpu_request(r)->promoted;
}

static inline bool axpu_is_reactive(const struct axpu_prefill *f)
{
    return f->request != NULL && f->request->cls == REQUEST_CLASS_REACTIVE;
}

/* Whether a prompt may run on the NPU alone once its attention is compiled. A reactive prompt is
 * split over both devices for its first token (4.3 (1)), so a kernel for it would be useless. */
static inline bool axpu_uses_kernel(const struct axpu *a, const struct request *r)
{
    return r->cls == REQUEST_CLASS_PROACTIVE || a->warm_reactive;
}

/* Asks a launch to stop at its next boundary, once. l may be NULL. */
static inline void axpu_stop(struct sched *s, const struct launch *l)
{
    if (l != NULL && !l->stop_requested) {
        (void)sched_preempt(s, l, (struct preempt_spec){0});
    }
}

/* queues */
/* Queue a waiting prompt, or remove it. */
void axpu_wait(struct axpu *a, const struct request *r, bool at_front);
void axpu_leave(struct axpu *a, const struct request *r);
/* Whether a prompt waits that may use that kernel. */
bool axpu_waits_for(const struct axpu *a, uint32_t kernel);
/* Queue a sequence for the next decode batch, or remove it. */
void axpu_decode_wait(struct sched *s, struct axpu *a, const struct request *r);
void axpu_decode_leave(struct axpu *a, const struct request *r);
/* Call it when a batch has begun, which no waiting sequence is in. */
void axpu_decode_begun(struct sched *s, struct axpu *a);
/* Whether any sequence (any reactive one) decodes or waits to decode. */
bool axpu_decode_busy(const struct axpu *a);
bool axpu_reactive_decodes(const struct axpu *a);
/* Promotes aged requests (B.8), and sets a timer for the next one. */
void axpu_promote(struct sched *s, struct axpu *a);
/* Forgets a request that finished, was shed or was cancelled. */
void axpu_forget(struct axpu *a, const struct request *r);
/* Time to prefill that many tokens without cached KV. */
int64_t axpu_context_ns(struct sched *s, uint32_t model, uint32_t tokens);
/* Evicts a sequence that waits to decode, to flash or for good. Returns whether it did. */
bool axpu_give_up(struct sched *s, struct axpu *a, const struct request *r);
/* choose */
void axpu_prefill_choose(struct sched *s, struct axpu *a);
static inline void axpu_prefill_clear(struct axpu_prefill *f)
{
    *f = (struct axpu_prefill){.best_chunks = {-1, -1}};
}
/* prefill */
void axpu_prefill_schedule(struct sched *s, struct axpu *a);
/* Whether a prefill op waits only for the iGPU. */
bool axpu_prefill_wants_igpu(const struct sched *s, const struct axpu *a);
void axpu_prefill_launch_done(struct axpu *a, const struct launch *l);
void axpu_prefill_pass_done(struct axpu *a, const struct request *r);
/* decode */
/* Precondition: decode has no launch on a device. */
void axpu_decode_schedule(struct sched *s, struct axpu *a);
/* speculation */
/* Whether a model of the run drafts. */
bool axpu_drafts_by_model(const struct sched *s);
/* Returns false while drafts for the next batch are made, and sets a timer. */
bool axpu_drafted(struct sched *s, struct axpu *a);
/* For a batch that wants drafts: returns true if they are ready, else starts to make them. */
bool axpu_makes_drafts(struct sched *s, struct axpu *a);
/* Makes a chosen batch verify drafts, if that pays off. Returns whether it did. */
bool axpu_speculate_batch(struct sched *s, struct axpu *a);
/* Launches the next op of a verification on the NPU. Returns false for other passes. */
bool axpu_speculate_launch(struct sched *s, struct axpu *a);
/* warm-up */
void axpu_warmup_schedule(struct sched *s, struct axpu *a);
/* No unused kernel expires before this instant; TIME_NEVER_NS: never. */
int64_t axpu_warmup_until_ns(const struct sched *s, const struct axpu *a);
void axpu_warmup_ready(struct sched *s, struct resident_key key);
/* Whether the attention kernel of this prompt is READY. */
bool axpu_warmup_has(const struct axpu *a, const struct request *r);
/* If the attention kernel of this prompt is READY, marks it as used and returns true. */
bool axpu_warmup_take(struct sched *s, struct axpu *a, const struct request *r);
/* Checks invariants at the begin and end of `schedule`. */
bool axpu_is_consistent(struct sched *s, const struct axpu *a);
/* Checks at the end of `schedule` that no decision is missing. */
bool axpu_has_decided(struct sched *s, const struct axpu *a);

/* agent-xpu-v1: the parts of the policy and what they share (clauses.md A; "Agent.xpu",
 * arXiv 2506.24045 version 1).
 *
 *   agent_xpu_v1.c           parameters, hooks, the schedule call
 *   agent_xpu_v1_prefill.c   which prefills there are: reactive, primary, aged, preempted, fresh
 *   agent_xpu_v1_place.c     where their kernels go: elastic split, load balancing, RT windows
 *   agent_xpu_v1_dispatch.c  what runs next: order, backfill
 *   agent_xpu_v1_pressure.c  Algorithm 1: memory pressure
 *   agent_xpu_v1_decode.c    decode batches up to B_max
 *   agent_xpu_v1_guard.c     hung kernels, load shedding
 *   agent_xpu_v1_consistent.c  what holds where a call begins
 *
 * A ReqContext is a live pass with its cursor: state stays in shared memory, so keeping and
 * resuming it costs nothing (ctx_switch_us adds a cost for sensitivity).
 */
#pragma once

#include "policies/common/batch.h"
#include "policies/common/cost.h"
#include "policies/common/flash.h"
#include "policies/common/gap.h"
#include "policies/common/hetero.h"
#include "policies/common/order.h"
#include "policies/common/reqq.h"
#include "sim/api/policy.h"

enum v1_param {
    V1_PREEMPT,
    V1_YIELD,
    V1_RESUME,
    V1_T_STARVE_S,
    V1_CONTEXTS,
    V1_CTX_SWITCH_US,
    V1_ELASTIC,
    V1_INTRA,
    V1_EPSILON,
    V1_BATCH_CAP,
    V1_MAX_BATCH,
    V1_INTER,
    V1_DURATION,
    V1_AFFINITY,
    V1_GAP_MS,
    V1_ENERGY_ORDER,
    V1_PRESSURE,
    V1_TAU_LOW,
    V1_TAU_HIGH,
    V1_IDLE_GUARD,
    V1_REORDER,
    V1_TIE,
    V1_AGEING,
    V1_T_AGE_S,
    V1_BALANCE,
    V1_BALANCE_GAIN,
    V1_IGPU_CAP,
    V1_IGPU_CAP_S,
    V1_HANG_S,
    V1_HANG_FACTOR,
    V1_SHED,
    V1_SHED_QUEUE,
    V1_SHED_WAIT_S,
    V1_GAP_KV,
    V1_GAP_S,
    V1_FLASH,
};

enum v1_yield { V1_YIELD_KERNEL, V1_YIELD_ITERATION };
enum v1_resume { V1_RESUME_ETC, V1_RESUME_FIFO };
enum v1_affinity { V1_AFFINITY_STRICT, V1_AFFINITY_BOUNDARY };
enum v1_pressure { V1_PRESSURE_TEXT, V1_PRESSURE_INTENSITY, V1_PRESSURE_OFF };
enum v1_tie { V1_TIE_ETC, V1_TIE_LONGEST };

/* Per request, while it prefills. */
struct v1_context {
    struct order_node node;    /* fresh proactive requests, by ETC */
    struct order_node pending; /* the same, by since when they have been pending */
    struct order_node place;   /* in the queue that holds it */
    struct order_node whole;   /* in whole_chunk */
    struct hetero h;           /* h.pass NULL: fresh */
    int64_t pending_since_ns;  /* arrival, or the last preemption (A.4) */
    int64_t refused_ns;        /* Algorithm 1 has held its kernel back since; TIME_NEVER_NS: not */
    int64_t not_before_ns;     /* cost of the context switch */
    /* The best split of so many rows of an op of h.pass, which every layer asks for; 0: none. */
    struct v1_split {
        uint32_t rows, on_npu;
    } split[OP_KIND_COUNT];
    int64_t etc_ns[OP_KIND_COUNT];    /* of each op that v1_etc_ns counts, where the prompt */
    uint32_t etc_kv_tokens, etc_rows; /* has so much KV, and so many rows left; 0: none */
    uint32_t avoid;                   /* devices its cursor's op hung on, bits */
    uint32_t avoid_op;                /* + 1 */
    bool stopped;                     /* by a preemption: pays the switch when it continues */
    bool elastic_igpu;                /* the op's NPU rows were sent to the iGPU (A.8) */
};

/* The work on a device. */
struct v1_active {
    const struct launch *launch;   /* NULL: idle */
    const struct request *request; /* of a prefill; NULL: the decode batch */
    bool reactive, memory_bound, hung;
    bool fitted; /* launched into a window of the reactive prefill */
    double bytes_per_s;
    int64_t t_ns; /* annotated, whole launch */
};

/* A kernel that could be launched: a share of a prefill's op, or a span of the decode batch. */
struct v1_kernel {
    const struct request *request; /* NULL: decode */
    bool on_npu, reactive, memory_bound, consumer, complementary;
    uint32_t rows;  /* prefill: of the op; decode: unused */
    uint32_t n_ops; /* decode: of the pass */
    int64_t t_ns, path_ns;
    int64_t ready_ns; /* of a prefill */
    double bytes_per_s, flop_per_joule;
};

/* Requests by arrival; those that return too. */
struct v1_queue {
    struct reqq q;
    struct order by_arrival;
};

/* A decode iteration, formed or to be. */
struct v1_iteration {
    struct work_shape shape;
    bool fused;
    uint32_t per_layer, op, n_ops; /* ops of a layer, done, in all */
};

struct v1 {
    int npu, igpu;
    uint32_t chunk;
    struct v1_queue rt_queue, be_queue; /* waiting to prefill */
    struct order fresh;                 /* be_queue again, by ETC */
    bool cache_grew;                    /* since fresh was brought up to date */
    struct order pending;               /* and by since when they have been pending */
    struct order whole_chunk;           /* and those of at least a chunk, by arrival */
    struct reqq contexts;               /* proactive prefills that have a pass */
    const struct request *rt;           /* the reactive prefill, or NULL */
    const struct request *primary;      /* the proactive prefill that is not backfill, or NULL */
    const struct request *aged;         /* the promoted one next to a reactive prefill, or NULL */

    struct v1_queue decode_rt, decode_be;
    struct v1_iteration next; /* of these, chosen but not formed */
    bool next_known;          /* and nobody has come or gone since */
    struct pass *decode;      /* the batch, or NULL */
    bool gap_used;            /* a proactive kernel has run since the last reactive iteration */
    int64_t decode_refused_ns;

    struct v1_active active[MACHINE_MAX_DEVICES];
    uint32_t last_pass[MACHINE_MAX_DEVICES]; /* id of the pass whose kernel ended there last */
    double igpu_busy_frac;                   /* exponential average over igpu_cap_s */
    int64_t igpu_busy_ns;                    /* when it was brought up to date */

    uint64_t short_epoch; /* instant at which KV was last short: no proactive prefill begins then */

    struct batch batch;
    struct gap gap;     /* KV while tools run */
    struct flash flash; /* KV that memory pressure took */
    int64_t timer_ns;   /* earliest timer set and not yet due, for ageing and switches */
    int64_t hang_timer_ns[MACHINE_MAX_DEVICES];
};

static inline struct v1_context *v1_context(const struct request *r)
{
    return r->own;
}

static inline bool v1_reactive(const struct request *r)
{
    return r->cls == REQUEST_CLASS_REACTIVE;
}

/* Puts r in a queue. */
static inline void v1_enter(struct v1 *v, struct v1_queue *w, const struct request *r)
{
    order_add(&w->by_arrival, r, 0.0);
    reqq_insert_after(&w->q, order_prev(&w->by_arrival, r), r);
    v->next_known = false;
}

/* Takes r out of its queue, or of the contexts. */
static inline void v1_leave(struct v1 *v, const struct request *r)
{
    struct v1_context *c = v1_context(r);
    order_remove(c->place.of, r);
    order_remove(c->whole.of, r);
    order_remove(&v->fresh, r);
    order_remove(&v->pending, r);
    reqq_remove(r);
    v->next_known = false;
}

static inline bool v1_is_idle(const struct v1 *v, int device)
{
    return v->active[device].launch == NULL;
}

/* T_starve, which may be infinite. */
static inline int64_t v1_starve_ns(const struct sched *s)
{
    double t_s = param_number(s, V1_T_STARVE_S);
    return t_s < 9e9 ? units_ns_from_s(t_s) : TIME_NEVER_NS;
}

/* Is reactive work decoding or about to? */
static inline bool v1_reactive_decodes(const struct v1 *v)
{
    return !reqq_empty(&v->decode_rt.q) || (v->decode != NULL && v->decode->has_reactive);
}

/* prefill */
/* To prefill that many tokens, from nothing. */
int64_t v1_context_ns(struct sched *s, uint32_t model, uint32_t tokens);
void v1_prefill_choose(struct sched *s, struct v1 *v);
bool v1_prefill_start(struct sched *s, struct v1 *v, const struct request *r);
/* It waits to prefill, in the queue of its class. */
void v1_prefill_wait(struct sched *s, struct v1 *v, const struct request *r);
void v1_prefill_done(struct v1 *v, const struct request *r);
/* Annotated time of what is left of a prefill at its default mapping, summed over its kernels. */
int64_t v1_etc_ns(struct sched *s, const struct v1 *v, const struct request *r);
/* The smallest proactive prefill that has not begun, or NULL. */
const struct request *v1_shortest_fresh(struct sched *s, struct v1 *v);
/* KV is full and a reactive prefill or the decode batch waits; true when some was freed. Reactive
 * sequences lose theirs only for older ones that decode. */
bool v1_make_room(struct sched *s, struct v1 *v, bool for_decode);

/* No request but waiting ones holds KV. */
bool v1_nothing_holds(const struct v1 *v);
/* A few blocks for each sequence that decodes: who takes memory leaves them that much to grow, so
 * as not to lose it again at once. */
uint64_t v1_growth_tokens(const struct v1 *v);

/* place */
void v1_place(struct sched *s, struct v1 *v, const struct request *r);
/* Time until the reactive request next needs a device; 0 now, TIME_NEVER_NS never (A.5). */
int64_t v1_window_ns(struct sched *s, struct v1 *v, int device);
/* Sends the NPU rows of a waiting op to the iGPU where that ends earlier (A.8). */
void v1_balance(struct sched *s, struct v1 *v, const struct request *r);
/* Time until what runs on a device should end; 0 when idle. */
int64_t v1_busy_for_ns(const struct sched *s, const struct v1 *v, int device);

/* decode */
/* The next decode: the rest of the batch that has begun, else all of the one that would begin now;
 * false when nothing decodes. A batch is formed only when it starts (v1_decode_form), so that every
 * request ready by then takes part. */
bool v1_decode_next(struct sched *s, struct v1 *v, struct v1_iteration *it);
/* Forms the batch that v1_decode_next has chosen; false when it could not, or memory was short and
 * another one is formed. */
bool v1_decode_form(struct sched *s, struct v1 *v);
#define V1_TO_END UINT32_MAX
/* Annotation of its next n ops, at most as many as are left. */
void v1_decode_estimate(struct sched *s, const struct v1 *v, const struct v1_iteration *it,
                        uint32_t n_ops, struct estimate *out);

/* pressure */
double v1_pressure(const struct sched *s, const struct v1 *v);
/* Algorithm 1: may this kernel start now? refused_ns: since when it has been held back. */
bool v1_admit(struct sched *s, const struct v1 *v, const struct v1_kernel *k, int64_t *refused_ns);
/* Could it on an idle machine? */
bool v1_admits_alone(struct sched *s, const struct v1_kernel *k);
/* Could this kernel of a prefill in place of what runs on a device? */
bool v1_admits_instead(struct sched *s, const struct v1 *v, const struct v1_kernel *k, int device);

/* dispatch */
void v1_dispatch(struct sched *s, struct v1 *v);

/* guard */
void v1_watch(struct sched *s, struct v1 *v);
void v1_shed(struct sched *s, struct v1 *v);
/* consistent: what holds where schedule begins; O(requests). For SIM_ASSERT. */
bool v1_is_consistent(const struct sched *s, const struct v1 *v);
/* One timer at a time: earlier ones win. */
void v1_wake_at(struct sched *s, struct v1 *v, int64_t at_ns);

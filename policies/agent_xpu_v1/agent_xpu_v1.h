/* agent-xpu-v1: the parts of the policy and what they share (clauses.md A; "Agent.xpu", arXiv
 * 2506.24045 version 1).
 *
 *   agent_xpu_v1.c           parameters, hooks, the schedule call
 *   agent_xpu_v1_prefill.c   choice of prefills: reactive, primary, aged, preempted, fresh
 *   agent_xpu_v1_place.c     placement of their kernels: elastic split, load balancing, RT windows
 *   agent_xpu_v1_dispatch.c  choice of the next kernel: order, backfill
 *   agent_xpu_v1_pressure.c  Algorithm 1: memory pressure
 *   agent_xpu_v1_decode.c    decode batches up to B_max
 *   agent_xpu_v1_guard.c     hung kernels, load shedding
 *   agent_xpu_v1_consistent.c  invariants at the begin of a call
 *
 * A ReqContext is a live pass with its cursor. State stays in shared memory, so a context switch is
 * free (ctx_switch_us adds a cost for sensitivity studies).
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

/* State of a request during its prefill. */
struct v1_context {
    struct order_node node;    /* fresh proactive requests, by ETC */
    struct order_node pending; /* the same requests, by pending_since_ns */
    struct order_node place;   /* in its v1_queue */
    struct order_node whole;   /* in whole_chunk */
    struct hetero h;           /* h.pass NULL: fresh */
    int64_t pending_since_ns;  /* arrival, or the last preemption (A.4) */
    int64_t refused_ns; /* Algorithm 1 refuses its kernel since this instant; TIME_NEVER_NS: it does
                           not */
    int64_t not_before_ns; /* end of the context switch */
    /* Cache, for all layers: the best split of `rows` rows of an op of h.pass; rows 0: none. */
    struct v1_split {
        uint32_t rows, on_npu;
    } split[OP_KIND_COUNT];
    int64_t etc_ns[OP_KIND_COUNT];    /* cache of v1_etc_ns: time of each op */
    uint32_t etc_kv_tokens, etc_rows; /* its key: KV tokens, and rows left; 0: none */
    uint32_t avoid;                   /* bit set of devices on which the op at the cursor hung */
    uint32_t avoid_op;                /* that op + 1 */
    bool stopped;                     /* preempted: the context switch is due when it continues */
    bool elastic_igpu;                /* the op's NPU rows were sent to the iGPU (A.8) */
};

/* The work that runs on a device. */
struct v1_active {
    const struct launch *launch;   /* NULL: idle */
    const struct request *request; /* the prefill; NULL: the decode batch */
    bool reactive, memory_bound, hung;
    bool fitted; /* launched into a window of the reactive prefill */
    double bytes_per_s;
    int64_t t_ns; /* annotated time of the whole launch */
};

/* A candidate for a launch: a share of a prefill's op, or ops of the decode batch. */
struct v1_kernel {
    const struct request *request; /* NULL: decode */
    bool on_npu, reactive, memory_bound, consumer, complementary;
    uint32_t rows;  /* prefill: rows of the op; decode: unused */
    uint32_t n_ops; /* decode: ops of the pass */
    int64_t t_ns, path_ns;
    int64_t ready_ns; /* prefill: when it became ready */
    double bytes_per_s, flop_per_joule;
};

/* Requests by arrival, including those that return. */
struct v1_queue {
    struct reqq q;
    struct order by_arrival;
};

/* A decode iteration, formed or to be. */
struct v1_iteration {
    struct work_shape shape;
    bool fused;
    uint32_t per_layer, op, n_ops; /* ops of a layer, ops done, all ops */
};

struct v1 {
    int npu, igpu;
    uint32_t chunk;
    struct v1_queue rt_queue, be_queue; /* waiting to prefill */
    struct order fresh;                 /* members of be_queue by ETC */
    uint64_t reuse_changes;             /* of sched, at the last update of fresh */
    struct order pending;               /* and by pending_since_ns */
    struct order whole_chunk;           /* and those with at least a chunk, by arrival */
    struct reqq contexts;               /* proactive prefills that have a pass */
    const struct request *rt;           /* the reactive prefill, or NULL */
    const struct request *primary;      /* the proactive prefill that is not backfill, or NULL */
    const struct request *aged;         /* the promoted one next to a reactive prefill, or NULL */

    struct v1_queue decode_rt, decode_be;
    struct v1_iteration next; /* chosen, not formed */
    bool next_known;          /* `next` is valid: no request came or left since */
    struct pass *decode;      /* the batch, or NULL */
    bool gap_used;            /* a proactive kernel has run since the last reactive iteration */
    int64_t decode_refused_ns;

    struct v1_active active[MACHINE_MAX_DEVICES];
    uint32_t last_pass[MACHINE_MAX_DEVICES]; /* id of the pass of the last kernel on each device */
    double igpu_busy_frac;                   /* exponential average over igpu_cap_s */
    int64_t igpu_busy_ns;                    /* instant of igpu_busy_frac */

    uint64_t short_epoch; /* epoch in which KV was last short: no proactive prefill begins then */

    struct batch batch;
    struct gap gap;     /* KV while tools run */
    struct flash flash; /* KV moved out by memory pressure */
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

/* Adds r to a queue. */
static inline void v1_enter(struct v1 *v, struct v1_queue *w, const struct request *r)
{
    order_add(&w->by_arrival, r, 0.0);
    reqq_insert_after(&w->q, order_prev(&w->by_arrival, r), r);
    v->next_known = false;
}

/* Removes r from its queue, or from the contexts. */
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

/* T_starve; may be TIME_NEVER_NS. */
static inline int64_t v1_starve_ns(const struct sched *s)
{
    double t_s = param_number(s, V1_T_STARVE_S);
    return t_s < 9e9 ? units_ns_from_s(t_s) : TIME_NEVER_NS;
}

/* Whether reactive work decodes or is about to. */
static inline bool v1_reactive_decodes(const struct v1 *v)
{
    return !reqq_empty(&v->decode_rt.q) || (v->decode != NULL && v->decode->has_reactive);
}

/* prefill */
/* Time to prefill that many tokens without cached KV. */
int64_t v1_context_ns(struct sched *s, uint32_t model, uint32_t tokens);
void v1_prefill_choose(struct sched *s, struct v1 *v);
bool v1_prefill_start(struct sched *s, struct v1 *v, const struct request *r);
/* Queues a request for prefill, in the queue of its class. */
void v1_prefill_wait(struct sched *s, struct v1 *v, const struct request *r);
void v1_prefill_done(struct v1 *v, const struct request *r);
/* Annotated time of the rest of a prefill in its default mapping, summed over its kernels. */
int64_t v1_etc_ns(struct sched *s, const struct v1 *v, const struct request *r);
/* The smallest proactive prefill that has not begun, or NULL. */
const struct request *v1_shortest_fresh(struct sched *s, struct v1 *v);
/* Frees KV for a waiting reactive prefill or decode batch; false if impossible. Reactive sequences
 * are evicted only for older ones in decode. */
bool v1_make_room(struct sched *s, struct v1 *v, bool for_decode);

/* Whether only waiting requests have KV. */
bool v1_nothing_holds(const struct v1 *v);
/* A few blocks for each sequence in decode. A request that takes memory must leave these for their
 * growth, or it would be evicted again at once. */
uint64_t v1_growth_tokens(const struct v1 *v);

/* place */
void v1_place(struct sched *s, struct v1 *v, const struct request *r);
/* Time until the reactive request next needs a device; 0 now, TIME_NEVER_NS never (A.5). */
int64_t v1_window_ns(struct sched *s, struct v1 *v, int device);
/* Sends the NPU rows of a waiting op to the iGPU if they end earlier there (A.8). */
void v1_balance(struct sched *s, struct v1 *v, const struct request *r);
/* Expected time until the work on a device ends; 0 if idle. */
int64_t v1_busy_for_ns(const struct sched *s, const struct v1 *v, int device);

/* decode */
/* The next decode: the rest of the present batch, else the batch that would begin now. Returns
 * false without decodes. A batch is formed only when it starts (v1_decode_form), so that it has
 * every request that is ready by then. */
bool v1_decode_next(struct sched *s, struct v1 *v, struct v1_iteration *it);
/* Forms the batch that v1_decode_next has chosen. Returns false if it could not, or if memory was
 * short and another batch was formed. */
bool v1_decode_form(struct sched *s, struct v1 *v);
#define V1_TO_END UINT32_MAX
/* Annotation of its next n_ops ops, or of the remaining ones if fewer. */
void v1_decode_estimate(struct sched *s, const struct v1 *v, const struct v1_iteration *it,
                        uint32_t n_ops, struct estimate *out);

/* pressure */
double v1_pressure(const struct sched *s, const struct v1 *v);
/* Algorithm 1: whether this kernel may start now. refused_ns: since when it has been refused. */
bool v1_admit(struct sched *s, const struct v1 *v, const struct v1_kernel *k, int64_t *refused_ns);
/* Whether it could start on an idle machine. */
bool v1_admits_alone(struct sched *s, const struct v1_kernel *k);
/* Whether this prefill kernel could start in place of the work on a device. */
bool v1_admits_instead(struct sched *s, const struct v1 *v, const struct v1_kernel *k, int device);

/* dispatch */
void v1_dispatch(struct sched *s, struct v1 *v);

/* guard */
void v1_watch(struct sched *s, struct v1 *v);
void v1_shed(struct sched *s, struct v1 *v);
/* consistent: invariants at the begin of schedule; O(requests). For SIM_ASSERT. */
bool v1_is_consistent(const struct sched *s, const struct v1 *v);
/* Sets a timer, unless an earlier one is pending. */
void v1_wake_at(struct sched *s, struct v1 *v, int64_t at_ns);

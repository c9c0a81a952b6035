/* The virtual-clock executor: devices, the DDR they share, the loader, the compiler, power.
 *
 * Everything that shares the DDR is a `job`: solo nanoseconds left, and a rate that is 1 when
 * alone. It ends at ceil(now + left / rate). Rates change only when the set of jobs or a demand
 * changes. Ends of jobs are no events of the queue (advance.c).
 */
#pragma once

#include "sim/core/core.h"
#include "sim/engine/eventq.h"

/* Order of events at one instant (clauses.md 0.2). */
enum event_kind {
    EVENT_KERNEL, /* a kernel, lead or forced end of a launch */
    EVENT_LOAD,   /* loader: graph block or KV move */
    EVENT_COMPILE,
    EVENT_PASS_TAIL, /* iteration boundary */
    EVENT_TURN,      /* a session's next turn, after a tool or a person */
    EVENT_ARRIVAL,   /* the next first turn of the trace */
    EVENT_CANCEL,
    EVENT_TIMER,
    EVENT_FRAME,   /* of the graphics user: due or done */
    EVENT_THROTTLE /* the average power meets its limit */
};

#define ENGINE_MAX_JOBS CONTENTION_MAX_FLOWS
#define ENGINE_LOADER_FLOW 255

struct job {
    double left_ns;            /* solo time left at updated_ns */
    double rate;               /* solo ns per ns */
    double speed;              /* part of it that power limits leave */
    double slowed_ns;          /* what they cost this piece of work so far */
    double share_frac;         /* compute share: 1, or efficiency/n on a time-shared device */
    double demand_bytes_per_s; /* alone */
    int64_t updated_ns;
    int64_t end_ns;     /* TIME_NEVER_NS until its rate is known */
    uint64_t order;     /* of its end among events of one instant */
    uint8_t device;     /* or ENGINE_LOADER_FLOW */
    uint8_t kind;       /* enum event_kind of its end */
    bool active;        /* counted among the engine's jobs */
    struct vexec *exec; /* the launch it belongs to, NULL for the loader and for frames */
};

/* PAUSED: between two kernels, while a frame has the device. */
enum vexec_phase { VEXEC_QUEUED, VEXEC_LEAD, VEXEC_RUNNING, VEXEC_PAUSED, VEXEC_ENDING };

/* A launch on a virtual device. Position: op `op`, kernel `k` of it, in progress. */
struct vexec {
    struct full_launch *l;
    struct vexec *next_free;
    enum vexec_phase phase;
    enum launch_outcome outcome;          /* when ENDING */
    struct kernel_run first;              /* of op_begin, for l->rows rows */
    struct kernel_run run[OP_KIND_COUNT]; /* of later ops, whole */
    int64_t layer_ns;                     /* all ops of one layer */
    struct costs *costs;                  /* where those of a whole pass are, or NULL, */
    uint32_t generation;                  /* and which */
    uint32_t op, k;
    uint32_t place;                   /* of op in its layer */
    const struct kernel_run *kernels; /* of op */
    int64_t begin_ns;                 /* while it leads: when its first kernel begins */
    uint32_t event;                   /* in the queue: the end of its lead, or its forced end */
    uint32_t in_flight_left; /* stop requested: kernels after this one that cannot be taken back */
    int64_t kernel_begin_ns;
    int64_t compute_ns; /* left of the kernel when its bytes have moved; 0: they have */
    int64_t solo_ns;    /* of completed kernels */
    double slowed_ns;   /* of them, by power limits */
    int64_t lost_ns;
    int64_t skip_ns;       /* of the first kernel: done by a launch that was suspended */
    int64_t behind_end_ns; /* of its work in progress, while it is e->behind */
    bool breaks_off; /* when ENDING: in a kernel, for which the device draws until it is free */
    struct job job;
};

struct vdevice {
    const struct device *desc;
    struct vexec *running[MACHINE_MAX_SHARED];
    uint32_t n_running;
    struct vexec **queue; /* in-flight, not started; desc->inflight_depth entries */
    uint32_t n_queued;
    int64_t occupied_until_ns; /* it works beside passes (sched_occupy) */
};

/* One serial channel of work items: the loader. The compiler is the same without DDR demand. */
struct channel_item {
    struct channel_item *next;
    struct resident *resident;    /* or */
    struct full_request *request; /* KV move, or NULL: */
    uint32_t cold, generation;    /* KV of a session between turns, to flash; KV_NO_COLD: memory
                                     is given back */
    bool in;
    double solo_ns;
    double bytes;
};

struct channel {
    struct channel_item *head, *tail; /* head is in progress */
    struct channel_item *free_items;
    struct job job; /* the loader's */
    uint32_t event; /* the compiler's, in the queue */
};

enum frames_phase { FRAMES_IDLE, FRAMES_WAITING, FRAMES_RUNNING };

struct frames {
    enum frames_phase phase;
    uint64_t number; /* of the next frame */
    int64_t due_ns;  /* of the one that waits or runs */
    struct job job;
};

#define POWER_NONE_ENDED UINT8_MAX
struct power {
    double watts[OBSERVER_DOMAINS];
    enum power_phase phase[OBSERVER_DOMAINS];
    int64_t since_ns[OBSERVER_DOMAINS];
    double joules[OBSERVER_DOMAINS];
    double total_watts, total_joules;
    int64_t total_since_ns;
    uint32_t busy_devices, tails; /* reasons for host power */
    bool host_draws;              /* ever, on this machine */
    /* A device that has ended its work at ended_ns is idle from then on, unless it begins other
     * work at that instant: then it never was. POWER_NONE_ENDED: there is none. */
    bool may_defer; /* nobody hears of states without length */
    uint8_t ended;
    int64_t ended_ns;
};

struct throttle {
    double speed;                /* of everything on devices, (0, 1] */
    double average_watts, watts; /* at since_ns, and since */
    int64_t since_ns;
    uint32_t event; /* the average meets the limit */
};

/* Costs of the kernels of similar passes (costs.c). */
struct costs {
    uint64_t key[4];
    bool known[OP_KIND_COUNT];
    uint32_t generation; /* counts those that this place has had */
    /* Of a whole pass, all kernels but those of attention. */
    bool whole;                      /* they are known */
    int64_t others_ns, layer_ns;     /* of the pass; of one layer */
    uint64_t others, others_outside; /* kernels; those outside the model's envelope */
    uint64_t passes;                 /* that ran alone, whose DDR bytes are not reported yet */
    struct work_shape attention;     /* of the attention that is known: a key has one op with any */
    struct kernel_known any_context; /* of that op */
    struct kernel_run run[OP_KIND_COUNT];
};

#define COST_BITS 10
struct cost_cache {
    struct costs entries[1u << COST_BITS], unkept;
    bool second[1u << (COST_BITS - 1)];          /* of the two at a place, used last */
    bool keeps;                                  /* the model's times are known again */
    uint32_t context_limit[MACHINE_MAX_DEVICES]; /* beyond which they are others */
};

/* Intervals of the DDR that are to be reported (advance.c). */
#define DDR_INTERVAL_BITS 8
struct ddr_interval {
    int64_t ns;
    double demand, share;
    uint64_t count; /* so many of this length */
};

/* Rates of flows that share the DDR. */
struct ddr_rates {
    double demand, share; /* sums */
    double of_capacity;   /* the share, to be audited; 0: there is no capacity */
    double rate[ENGINE_MAX_JOBS];
};

#define DDR_PAIR_BITS 8
struct ddr_pair {
    uint64_t of[2];   /* the demand of each, as bits */
    uint64_t devices; /* of both, plus 1: 0 of none */
    struct ddr_rates rates;
};

#define REPEAT_MAX 512

struct repeat {
    bool allowed;                /* nobody watches every iteration */
    int64_t solo_ns[REPEAT_MAX]; /* of each iteration of a run, and tokens to tokens */
    int64_t gap_ns[REPEAT_MAX];
    struct kernel_cost attention[REPEAT_MAX]; /* of a layer, in each; and in the one after */
};

struct engine {
    struct core core;
    struct eventq queue;
    int64_t now_ns;
    struct vdevice devices[MACHINE_MAX_DEVICES];
    struct vexec *free_execs;
    struct vexec *fresh; /* a launch of a steady pass that was submitted in this round, or NULL */
    struct job *jobs[ENGINE_MAX_JOBS]; /* active ones, in order of joining */
    uint32_t n_jobs;
    struct vexec *behind; /* runs alone and is further than its fields say (advance.c); or NULL */
    double ddr_demand, ddr_share; /* sums over jobs, since ddr_since_ns */
    int64_t ddr_since_ns;
    bool ddr_dirty;     /* rates must be settled before time moves */
    bool kernels_seen;  /* by an observer, each of those that are events */
    bool may_advance;   /* boundaries of kernels need not be instants of the run */
    bool may_jump;      /* ... nor be told apart */
    bool ddr_unlimited; /* of the contention form */
    struct channel loader, compiler;
    struct frames frames;
    struct power power;
    struct throttle throttle;
    struct repeat repeat;
    struct ddr_interval intervals[1u << DDR_INTERVAL_BITS];
    struct ddr_pair pairs[1u << DDR_PAIR_BITS];
    struct cost_cache costs;
    size_t next_first;         /* next first turn of the trace */
    uint64_t arrivals_pending; /* arrival and turn events in the queue */
    uint64_t next_order;
};

/* The first instant that is so long from now; past the last one of any run when that is long. */
static inline int64_t engine_after(const struct engine *e, double ns)
{
    return ns < (double)TIME_LAST_NS ? e->now_ns + units_ceil(ns) : TIME_NEVER_NS;
}

/* Key of an event: kind, then `sub` (device or request id), then order of creation. */
static inline uint64_t engine_order(struct engine *e, enum event_kind kind, uint32_t sub)
{
    return ((uint64_t)kind << 60) | ((uint64_t)sub << 28) | (e->next_order++ & 0xfffffff);
}

/* The instant after the last one that the queue and the horizon leave to kernels alone. */
static inline int64_t engine_free_until_ns(const struct engine *e)
{
    int64_t at_ns = eventq_empty(&e->queue) ? TIME_LAST_NS : eventq_peek(&e->queue)->time_ns;
    int64_t horizon_ns = e->core.setup->horizon_ns;
    return horizon_ns < at_ns ? horizon_ns + 1 : at_ns;
}

/* devices.c */
extern const struct executor_ops engine_ops;
/* The lead of a launch is over, or its forced end is due. */
void device_event(struct engine *e, struct vexec *v);
/* A kernel of it has ended. */
void device_kernel_ended(struct engine *e, struct vexec *v);
/* The launch's lead begins now, or its first kernel. */
void device_begin(struct engine *e, struct vexec *v);
/* A launch whose iterations ran starts over with the next one. */
void device_restart(struct engine *e, struct vexec *v, int64_t lead_ns);
/* The launch leaves the device, as far as it has come. */
void device_end(struct engine *e, struct vexec *v);
/* The same of one that came to its end, without telling the core. */
void device_leave(struct engine *e, struct vexec *v);

/* frames.c */
void frames_init(struct engine *e);
/* The next frame is due; the one that runs is done. */
void frames_due(struct engine *e);
void frames_done(struct engine *e);
/* True when a frame has the device; one that waits for it starts now. */
bool frames_takes(struct engine *e, uint8_t device);
static inline bool frames_take(struct engine *e, uint8_t device)
{
    return e->frames.phase != FRAMES_IDLE && frames_takes(e, device);
}

/* At a kernel boundary: true when a waiting frame takes the device and v is paused. */
bool frames_pause(struct engine *e, struct vexec *v);

/* vexec.c */
/* Kernels of op number `op` of the launch. */
static inline const struct kernel_run *vexec_run(const struct vexec *v, uint32_t op)
{
    return op == v->l->pub.op_begin ? &v->first : &v->run[pass_op_kind(v->l->pub.pass, op)];
}

static inline const struct kernel_cost *vexec_kernel(const struct kernel_run *r, uint32_t k)
{
    return k + 1 == r->n ? &r->last : &r->full;
}

/* Its isolated demand while its bytes move, in bytes per second. */
static inline double vexec_demand(const struct kernel_cost *c)
{
    return c->load_ns > 0 ? c->bytes / units_s_from_ns(c->load_ns) : 0.0;
}

/* Books c kernels like (run, k) as done; they are counted one by one in every statistic. */
static inline void vexec_book(struct engine *e, struct vexec *v, const struct kernel_run *r,
                              uint32_t k, uint64_t c)
{
    struct sim_result *res = e->core.result;
    v->solo_ns += (int64_t)c * vexec_kernel(r, k)->t_ns;
    v->slowed_ns += v->job.slowed_ns;
    v->job.slowed_ns = 0.0;
    res->kernels += c;
    if (r->outside) {
        res->counters[COUNTER_KERNELS_OUTSIDE_ENVELOPE] += c;
    }
}

void vexec_kernel_begin(struct engine *e, struct vexec *v);
/* Notes in the pass how far the kernel in progress is; a launch that starts there goes on with it.
 * Solo time is booked by the launch that spent it. */
void vexec_suspend(struct engine *e, struct vexec *v);
void vexec_continue(struct vexec *v);
/* Of the present kernel, done before this launch. */
static inline int64_t vexec_skip_ns(const struct vexec *v)
{
    return v->op == v->l->pub.op_begin && v->k == 0 ? v->skip_ns : 0;
}

/* Puts the position at kernel k of an op. */
static inline void vexec_place(struct vexec *v, uint32_t op, uint32_t k)
{
    v->op = op;
    v->k = k;
    v->place = op % v->l->pub.pass->layer.n;
    v->kernels = vexec_run(v, op);
}

/* One kernel forward. */
static inline void vexec_next(struct vexec *v)
{
    const struct pass *p = v->l->pub.pass;
    SIM_REQUIRE(v->op < v->l->pub.op_end, "launch %u is at its end", v->l->pub.id);
    if (++v->k < v->kernels->n) {
        return;
    }
    v->k = 0;
    if (++v->op < v->l->pub.op_end) {
        v->place = v->place + 1 < p->layer.n ? v->place + 1 : 0;
        bool head = v->op + 1 == p->n_ops && p->shape.logit_rows > 0;
        v->kernels = &v->run[head ? OP_HEAD : p->layer.kind[v->place]];
    }
}

static inline bool vexec_whole_pass(const struct vexec *v)
{
    const struct launch *l = &v->l->pub;
    return l->op_begin == 0 && l->op_end == l->pass->n_ops && l->rows == l->pass->shape.rows &&
           l->pass->shape.logit_rows > 0;
}

/* Is the present kernel the last one of its launch, or are all done (vexec_jump)? */
static inline bool vexec_at_last(const struct vexec *v)
{
    uint32_t end = v->l->pub.op_end;
    return v->op == end || (v->op + 1 == end && v->k + 1 == v->kernels->n);
}

/* Ends the kernel's piece of work in progress. Returns false if the kernel now computes. Otherwise
 * it has ended: it is booked and reported, and the position is after it. */
bool vexec_kernel_ends(struct engine *e, struct vexec *v);
/* Moves the position over kernels that end within left_ns from the begin of the present one, alone
 * at full speed. Books them; returns how long they took. O(ops of a layer). */
int64_t vexec_rest_ns(const struct vexec *v); /* all kernels after the present one, alone */
int64_t vexec_jump(struct engine *e, struct vexec *v, int64_t left_ns);
/* A launch of a whole pass that has just begun, alone at full speed: puts it at its end and moves
 * time there, if that is before the given instant. O(1). */
bool vexec_pass_alone(struct engine *e, struct vexec *v, int64_t before_ns);

/* costs.c */
void costs_init(struct engine *e);
/* What the kernels of the launch take. */
void costs_fill(struct engine *e, struct vexec *v);
/* Where the costs of a whole pass are kept, if they still are; else NULL. */
static inline struct costs *costs_of_pass(const struct vexec *v)
{
    return v->costs != NULL && v->costs->generation == v->generation ? v->costs : NULL;
}

/* n whole passes ran alone: books their kernels but those of attention. */
void costs_book(struct engine *e, struct costs *p, uint64_t n);
/* Reports the DDR bytes that are not reported yet: at the end of a run. */
void costs_report(struct engine *e);
/* The op of a pass that has its attention. */
static inline enum op_kind costs_attention_op(const struct pass *p)
{
    return p->fused_layers ? OP_LAYER : OP_MHA;
}

/* What attention costs in each of n iterations, of which the first has shape w. */
void costs_attention_ahead(const struct engine *e, const struct launch *l,
                           const struct work_shape *w, struct costs *p, uint32_t n,
                           struct kernel_cost *out);
static inline double costs_peak_bytes_per_ns(const struct engine *e)
{
    return e->core.setup->machine->ddr_peak_bytes_per_s * 1e-9;
}

/* What a kernel alone moves over what the DDR could, where it is more than `over`. Its time was
 * rounded to the nearest ns. */
static inline double costs_over_capacity(double over, double peak_bytes_per_ns, int64_t t_ns,
                                         double bytes)
{
    double most = peak_bytes_per_ns * ((double)t_ns + 0.5);
    return bytes > over * most ? bytes / most : over;
}

/* repeat.c */
void repeat_init(struct engine *e);
/* At the end of an instant: runs the iterations of a steady pass that was launched in it, which are
 * over before anything else happens. Time moves to the end of the last one. False: there are none.
 */
bool repeat_run(struct engine *e);

/* advance.c */
void advance_init(struct engine *e);
/* Moves kernels over their boundaries, as far as only their launches take notice and they come
 * before that instant. Time moves to the last one. */
void advance(struct engine *e, int64_t before_ns);
/* Brings e->behind, which is not NULL, up to the present instant. */
void advance_behind(struct engine *e);
static inline void advance_notice(struct engine *e)
{
    if (e->behind != NULL) {
        advance_behind(e);
    }
}

/* The job that ends first, by the order of events at one instant; NULL: there is none. O(jobs). */
struct job *advance_first(const struct engine *e);
void ddr_join(struct engine *e, struct job *j);
void ddr_leave(struct engine *e, struct job *j);
/* `count` intervals of that length, the last one ends now. */
void ddr_report(struct engine *e, uint64_t count, int64_t ns, double demand, double share);
void ddr_report_all(struct engine *e); /* at the end of a run */
/* Closes the current interval and marks rates for settling. */
static inline void ddr_touch(struct engine *e)
{
    advance_notice(e);
    if (e->now_ns > e->ddr_since_ns) {
        ddr_report(e, 1, e->now_ns - e->ddr_since_ns, e->ddr_demand, e->ddr_share);
        e->ddr_since_ns = e->now_ns;
    }
    e->ddr_dirty = true;
}

/* Recomputes all rates and ends; called before time moves. */
void ddr_settle(struct engine *e);
/* Sets the progress of a job's current piece of work. */
void job_start(struct engine *e, struct job *j, double solo_ns, double bytes);
void job_start_at(struct engine *e, struct job *j, double solo_ns, double demand_bytes_per_s);
/* Brings what is left of a job up to now, at the rate it has had. */
static inline void job_progress(struct engine *e, struct job *j)
{
    double passed = (double)(e->now_ns - j->updated_ns);
    SIM_REQUIRE(passed >= 0.0, "a job was brought to a later instant");
    if (passed > 0.0) {
        double done = passed * j->rate;
        done = done < j->left_ns ? done : j->left_ns; /* its end was rounded up */
        j->left_ns -= done;
        if (j->speed != 1.0) {
            j->slowed_ns += done * (1.0 / j->speed - 1.0);
        }
    }
    j->updated_ns = e->now_ns;
}

/* channels.c */
void channel_load(struct engine *e, struct resident *r, double bytes);
void channel_compile(struct engine *e, struct resident *r, int64_t duration_ns);
void channel_kv_move(struct engine *e, struct full_request *r, double bytes, bool in);
void channel_cold_move(struct engine *e, uint32_t cold, uint32_t generation, double bytes);
void channel_cancel(struct engine *e, struct resident *r);
/* Giving back what it took keeps its channel busy, where the machine says how long. */
void channel_evicted(struct engine *e, struct resident_key key);
void channel_loader_event(struct engine *e);
void channel_compiler_event(struct engine *e);

/* power.c */
void power_init(struct engine *e);
void power_device(struct engine *e, uint8_t device);
/* The same of one whose last launch has ended: see struct power. */
void power_ended(struct engine *e, uint8_t device);
/* It begins nothing else at that instant: time moves. */
void power_ended_idles(struct engine *e);
static inline void power_settle(struct engine *e)
{
    if (e->power.ended != POWER_NONE_ENDED) {
        power_ended_idles(e);
    }
}

/* A domain is in that state from now on. */
void power_set(struct engine *e, uint8_t domain, enum power_phase phase, double watts);
void power_compiler(struct engine *e, bool on);
void power_tail(struct engine *e, int delta);
void power_finish(struct engine *e);
/* What the iterations of r draw (repeat.c); of the first one every change is observed. Fills the
 * watts of r. Time moves to the last one's end. */
void power_repeat(struct engine *e, struct repeat_record *r);
/* The phase of a device by what runs on it. */
enum power_phase power_phase_of(const struct engine *e, uint8_t device);
/* What a device draws by what runs on it, at full speed; and setting it at the present speed. */
double power_full_watts(const struct engine *e, uint8_t device);
void power_refresh(struct engine *e, uint8_t device);

/* throttle.c */
void throttle_init(struct engine *e);
/* Part of what it draws above idle that something draws at the present speed. */
double throttle_share(const struct engine *e);
/* Watts at the present speed of something that draws full_watts at full speed. */
static inline double throttle_watts(const struct engine *e, double idle_watts, double full_watts)
{
    double share = e->throttle.speed < 1.0 ? throttle_share(e) : 1.0;
    return idle_watts + (full_watts - idle_watts) * share;
}

/* Called after every change of power. */
void throttle_follow(struct engine *e);
static inline void throttle_update(struct engine *e)
{
    if (e->core.setup->throttle.limit_watts > 0.0) {
        throttle_follow(e);
    }
}

void throttle_event(struct engine *e);

/* The virtual-clock executor: devices, the DDR they share, the loader, the compiler, power.
 *
 * Everything that shares the DDR is a `job`: remaining isolated nanoseconds, and a rate, which is 1
 * without contention. It ends at ceil(now + left / rate). Rates change only when the set of jobs or
 * a demand changes. Ends of jobs are not in the queue (advance.c). Instants that may be cancelled
 * are ends of jobs that only wait, so events of the queue always happen.
 */
#pragma once

#include "sim/core/core.h"
#include "sim/core/kernels.h"
#include "sim/engine/eventq.h"

/* Order of events at one instant (clauses.md 0.2). */
enum event_kind {
    EVENT_KERNEL,    /* end of a kernel or lead, or forced end of a launch: a job */
    EVENT_LOAD,      /* end of a load or KV move: a job */
    EVENT_COMPILE,   /* a job */
    EVENT_PASS_TAIL, /* iteration boundary */
    EVENT_TURN,      /* arrival of a session's next turn */
    EVENT_ARRIVAL,   /* arrival of the trace's next first turn */
    EVENT_CANCEL,
    EVENT_TIMER,    /* timer, or end of sched_occupy: a job */
    EVENT_FRAME,    /* a frame is due or done; a job, as all below except EVENT_MACHINE */
    EVENT_THROTTLE, /* the average power reaches its limit */
    EVENT_MACHINE,  /* an event of the machine of the trace */
    EVENT_BATTERY,  /* the battery is empty */
    EVENT_GOVERNOR, /* end of a period of a device's frequency governor */
    EVENT_KINDS
};

#define ENGINE_MAX_JOBS CONTENTION_MAX_FLOWS
#define ENGINE_MAX_WAITING 320
#define ENGINE_LOADER_FLOW 255

struct job {
    double left_ns;            /* isolated time left at updated_ns */
    double rate;               /* isolated ns per ns */
    double speed;              /* factor of rate due to power limits and frequency steps */
    double slowed_ns;          /* time that these cost the present piece of work */
    double share_frac;         /* factor of rate: 1, or efficiency/n on a time-shared device */
    double demand_bytes_per_s; /* isolated demand */
    int64_t updated_ns;
    int64_t end_ns;     /* TIME_NEVER_NS until its rate is known */
    uint64_t order;     /* order of its end within an instant */
    uint8_t device;     /* or ENGINE_LOADER_FLOW */
    uint8_t kind;       /* enum event_kind */
    bool active;        /* shares the DDR: among the first n_jobs of engine.jobs */
    bool waits;         /* only waits for its end: among the other engine.jobs */
    struct vexec *exec; /* the launch it belongs to, or NULL */
};

/* An idle job. */
static inline struct job job_of(enum event_kind kind, uint8_t device, struct vexec *exec)
{
    return (struct job){.end_ns = TIME_NEVER_NS,
                        .rate = 1.0,
                        .speed = 1.0,
                        .share_frac = 1.0,
                        .kind = (uint8_t)kind,
                        .device = device,
                        .exec = exec};
}

/* PAUSED: between two kernels, while a frame has the device. */
enum vexec_phase { VEXEC_QUEUED, VEXEC_LEAD, VEXEC_RUNNING, VEXEC_PAUSED, VEXEC_ENDING };

/* A launch on a virtual device. Its position: kernel `k` of op `op` is in progress. */
struct vexec {
    struct full_launch *l;
    struct vexec *next_free;
    enum vexec_phase phase;
    enum launch_outcome outcome;           /* when ENDING */
    struct kernel_run *first;              /* kernels of op_begin, for l->rows rows */
    struct kernel_run *run[OP_KIND_COUNT]; /* kernels of later ops, for all rows */
    struct kernel_run attention[2];        /* of op_begin, and of later ops */
    struct costs *costs[2]; /* cache entries of the others, or NULL; second: if of other rows */
    int64_t layer_ns;       /* time of all ops of one layer */
    uint32_t op, k;
    uint32_t place;             /* index of op in its layer */
    enum op_kind kind;          /* kind of op */
    struct kernel_run *kernels; /* kernels of op */
    uint32_t in_flight_left; /* stop requested: kernels after this one that cannot be withdrawn */
    int64_t kernel_begin_ns;
    int64_t compute_ns; /* the kernel's time after its DDR traffic; 0: it is in that part already */
    int64_t isolated_ns; /* isolated time of completed kernels */
    double slowed_ns;    /* their delay by power limits */
    int64_t lost_ns;
    int64_t skip_ns; /* part of the first kernel that a suspended launch did */
    struct kernel_buffer *buffers[OP_KIND_COUNT]; /* kernels that it holds in memory (buffers.c) */
    uint32_t n_buffers;
    int64_t buffers_ns; /* host time to load them */
    bool breaks_off; /* when ENDING: stopped inside a kernel, so the device draws power until it is
                        free */
    struct job job;
};

struct vdevice {
    const struct device *desc;
    struct vexec **launches;        /* in order of submission: running ones, then queued ones */
    uint32_t n_running, n_launches; /* running launches, and all */
    uint32_t most;                  /* largest n_launches */
    struct job occupied;            /* sched_occupy: waits until the end of that work */
};

/* A serial FIFO of work: the loader, or the compiler, which has no DDR demand. */
struct channel_item {
    struct ranked place; /* position in channel.items; all have the same rank */
    struct channel_item *next_free;
    struct resident *resident;    /* to load or compile, or NULL */
    struct full_request *request; /* whose KV moves, or NULL */
    uint32_t cold; /* else cold KV of that row goes to flash; TRACE_NO_ROW: an eviction */
    bool in;
    double isolated_ns;
    double bytes;
};

struct channel {
    struct ranked_list items; /* first: in progress */
    struct job job;           /* the first item's; the compiler's only waits */
};

enum frames_phase { FRAMES_IDLE, FRAMES_WAITING, FRAMES_RUNNING };

struct frames {
    enum frames_phase phase;
    double per_s;    /* 0: none */
    int64_t from_ns; /* when frame 0 was due */
    uint64_t number; /* the next frame */
    int64_t due_ns;  /* when the waiting or running frame was due */
    struct job next; /* waits until the next one is due */
    struct job job;
};

struct power {
    double watts[OBSERVER_DOMAINS];
    enum power_phase phase[OBSERVER_DOMAINS];
    int64_t since_ns[OBSERVER_DOMAINS];
    double joules[OBSERVER_DOMAINS];
    double total_watts, total_joules;
    int64_t total_since_ns;
    uint32_t tails;  /* passes that the host samples for */
    bool polls;      /* the policy's coordinator polls, which draws power */
    bool host_draws; /* the host domain drew power at some time */
};

struct throttle {
    bool on;                     /* there is a limit */
    double cap_watts;            /* set by an event of the machine; 0: none */
    double speed;                /* of all work on devices, (0, 1] */
    double average_watts, watts; /* average at since_ns; power since then */
    int64_t since_ns;
    struct job reaches; /* waits until the average reaches the limit */
};

/* The frequency step of a device. Without steps, speed and power are 1. */
struct governor {
    uint32_t step;
    double speed, power; /* as a share of the highest step's */
    int64_t busy_since_ns;
    int64_t busy_ns;   /* busy time in this period up to busy_since_ns */
    struct job period; /* waits for the end of the period, if there is one */
};

/* A battery. While it feeds the machine, its charge falls by the run's energy. */
struct battery {
    bool known; /* an event of the machine has set a charge */
    bool feeds; /* it feeds the machine now */
    bool empty; /* it ended the run */
    double full_j;
    double charge_j; /* charge when the run's energy was since_j */
    double since_j;
    double drawn_j;   /* energy drawn until then */
    struct job lasts; /* waits until it is empty at the present power */
};

struct engine {
    struct core core;
    struct eventq queue;
    int64_t now_ns;
    struct vdevice devices[MACHINE_MAX_DEVICES];
    struct vexec *free_execs;
    /* The last launch submitted in this round if its pass is steady, else NULL. */
    struct vexec *fresh;
    /* Active jobs, in order of joining; then waiting ones, in no order. */
    struct job *jobs[ENGINE_MAX_JOBS + ENGINE_MAX_WAITING];
    uint32_t n_jobs, n_timed;     /* number of active jobs, and of all */
    double ddr_demand, ddr_share; /* sums over jobs; constant since ddr_since_ns */
    int64_t ddr_since_ns;
    bool ddr_dirty;    /* rates must be settled before time moves */
    bool kernels_seen; /* an observer has the hook `kernel` */
    bool may_jump;     /* ends of kernels need not be reported one by one */
    bool unwatched;    /* iterations of a steady pass need not be simulated one by one */
    bool has_buffers;  /* some device has a budget for kernels */
    bool governed;     /* some device has frequency steps */
    struct channel loader, compiler;
    struct channel_item *free_items;
    struct frames frames;
    struct power power;
    struct throttle throttle;
    struct governor governors[MACHINE_MAX_DEVICES];
    struct battery battery;
    /* State of repeat.c, corun.c and costs.c, from the core's arena. */
    struct repeat *repeat;
    struct coruns *coruns;
    struct cost_cache *costs;
    struct device_buffers *buffers; /* one for each device */
    struct kernel_buffer *free_buffers;
    size_t next_first;         /* index of the next first turn of the trace */
    uint64_t arrivals_pending; /* arrival and turn events in the queue */
    uint64_t next_order;
};

/* The instant `ns` from now, rounded up; TIME_NEVER_NS if that is beyond any run. */
static inline int64_t engine_after(const struct engine *e, double ns)
{
    return ns < (double)TIME_LAST_NS ? e->now_ns + units_ceil(ns) : TIME_NEVER_NS;
}

/* The order of an event: kind, then `sub` (device or request id), then creation. */
static inline uint64_t engine_order(struct engine *e, enum event_kind kind, uint32_t sub)
{
    return ((uint64_t)kind << 60) | ((uint64_t)sub << 28) | (e->next_order++ & 0xfffffff);
}

/* Until (not including) this instant nothing but ends of active jobs can happen. */
static inline int64_t engine_free_until_ns(const struct engine *e)
{
    int64_t at_ns = eventq_empty(&e->queue) ? TIME_LAST_NS : eventq_peek(&e->queue)->time_ns;
    for (uint32_t i = e->n_jobs; i < e->n_timed; i++) {
        at_ns = e->jobs[i]->end_ns < at_ns ? e->jobs[i]->end_ns : at_ns;
    }
    int64_t horizon_ns = e->core.setup->horizon_ns;
    return horizon_ns < at_ns ? horizon_ns + 1 : at_ns;
}

/* repeat.c: also finds what observers need to see one by one. */
void repeat_init(struct engine *e);
/* At the end of an instant: runs iterations of the steady pass launched in it, as long as they end
 * before anything else happens. Time moves to the end of the last one. False: there are none.
 */
bool repeat_run(struct engine *e);

/* Functions of executor_ops (channels.c). */
void channel_load(void *exec, struct resident *r, double bytes);
void channel_compile(void *exec, struct resident *r, int64_t duration_ns);
void channel_kv_move(void *exec, struct full_request *r, uint32_t row, double bytes, bool in);
void channel_drop(void *exec, struct resident *r);
/* Handles the end of the item in progress. */
void channel_event(struct engine *e, struct channel *ch);

/* Checks invariants of the machine at the end of an instant, when rates are settled. It walks all
 * objects and the queue, so it is called under SIM_ASSERT only. A check that fails names the broken
 * clause and ends the process. */
bool engine_consistent(const struct engine *e);

/* Frequency steps of devices (governor.c). */
void governor_init(struct engine *e);
/* Sets the phase of a device from now on. */
void governor_phase(struct engine *e, uint8_t device, enum power_phase phase);
/* Handles the end of a device's period. Returns whether its power changes (power_device). */
bool governor_event(struct engine *e, uint8_t device);
void governor_finish(struct engine *e);

/* Memory of kernels, without weights, and its collector (agent-xpu-v1 6.5). */

/* A kernel in a device's memory: one op of a model, for up to `rows` rows. All layers share it,
 * because weights are arguments of the kernel. */
struct kernel_buffer {
    struct ranked place; /* in LRU order; all have the same rank */
    struct kernel_buffer *next_free;
    uint32_t model, rows;
    enum op_kind op;
    uint32_t uses; /* launches that use it */
    double bytes;
};

struct device_buffers {
    struct ranked_list kernels;
    double bytes; /* bytes of these kernels */
};

void buffers_init(struct engine *e);
/* Loads the kernels that the launch needs and the device lacks, and keeps them until
 * buffers_release. Returns the host time for that. O(kernels of the device). */
int64_t buffers_take(struct engine *e, struct vexec *v);
void buffers_release(struct engine *e, struct vexec *v);
void buffers_compiled(struct engine *e); /* another attention kernel was compiled */
/* Checks sums and order, for assertions. */
bool buffers_consistent(const struct engine *e);

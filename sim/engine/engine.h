/* The virtual-clock executor: devices, the DDR they share, the loader, the compiler, power.
 *
 * Everything that shares the DDR is a `job`: isolated nanoseconds left, and a rate that is 1
 * when alone. It ends at ceil(now + left / rate). Rates change only when the set of jobs or a
 * demand changes. Ends of jobs are no events of the queue (advance.c). An end that may be taken
 * back is that of a job, which only waits. So the queue has what comes in any case.
 */
#pragma once

#include "sim/core/core.h"
#include "sim/core/kernels.h"
#include "sim/engine/eventq.h"

/* Order of events at one instant (clauses.md 0.2). */
enum event_kind {
    EVENT_KERNEL,    /* the end of a kernel or lead, or the forced one of a launch: a job */
    EVENT_LOAD,      /* loader, of a graph block or a KV move: a job */
    EVENT_COMPILE,   /* a job */
    EVENT_PASS_TAIL, /* iteration boundary */
    EVENT_TURN,      /* a session's next turn, after a tool or a person */
    EVENT_ARRIVAL,   /* the next first turn of the trace */
    EVENT_CANCEL,
    EVENT_TIMER,    /* also the end of what occupies a device: a job */
    EVENT_FRAME,    /* of the graphics user: due or done; jobs, as all below but one */
    EVENT_THROTTLE, /* the average power meets its limit */
    EVENT_MACHINE,  /* one of the trace's events of the machine: of the queue */
    EVENT_BATTERY,  /* the battery is empty */
    EVENT_GOVERNOR, /* a period of a device's frequency governor is over */
    EVENT_KINDS
};

#define ENGINE_MAX_JOBS CONTENTION_MAX_FLOWS
#define ENGINE_MAX_WAITING 320
#define ENGINE_LOADER_FLOW 255

struct job {
    double left_ns;            /* isolated time left at updated_ns */
    double rate;               /* isolated ns per ns */
    double speed;              /* part of it that power limits leave */
    double slowed_ns;          /* what they cost this piece of work so far */
    double share_frac;         /* compute share: 1, or efficiency/n on a time-shared device */
    double demand_bytes_per_s; /* alone */
    int64_t updated_ns;
    int64_t end_ns;     /* TIME_NEVER_NS until its rate is known */
    uint64_t order;     /* of its end among events of one instant */
    uint8_t device;     /* or ENGINE_LOADER_FLOW */
    uint8_t kind;       /* enum event_kind of its end */
    bool active;        /* among the engine's jobs that share the DDR */
    bool waits;         /* ... or among those that only wait for their end */
    struct vexec *exec; /* the launch it belongs to, or NULL */
};

/* A job that has begun nothing. */
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

/* A launch on a virtual device. Position: op `op`, kernel `k` of it, in progress. */
struct vexec {
    struct full_launch *l;
    struct vexec *next_free;
    enum vexec_phase phase;
    enum launch_outcome outcome;          /* when ENDING */
    struct kernel_run first;              /* of op_begin, for l->rows rows */
    struct kernel_run run[OP_KIND_COUNT]; /* of later ops, whole */
    int64_t layer_ns;                     /* all ops of one layer */
    struct costs *costs;                  /* where those of a whole pass are, or NULL */
    uint32_t op, k;
    uint32_t place;                   /* of op in its layer, */
    enum op_kind kind;                /* its kind */
    const struct kernel_run *kernels; /* and its kernels */
    uint32_t in_flight_left; /* stop requested: kernels after this one that cannot be taken back */
    int64_t kernel_begin_ns;
    int64_t compute_ns;  /* left of the kernel when its bytes have moved; 0: they have */
    int64_t isolated_ns; /* of completed kernels */
    double slowed_ns;    /* of them, by power limits */
    int64_t lost_ns;
    int64_t skip_ns; /* of the first kernel: done by a launch that was suspended */
    struct kernel_buffer *buffers[OP_KIND_COUNT]; /* that it holds (buffers.c) */
    uint32_t n_buffers;
    int64_t buffers_ns; /* of loading them */
    bool breaks_off;    /* when ENDING: in a kernel, for which the device draws until it is free */
    struct job job;
};

struct vdevice {
    const struct device *desc;
    struct vexec **launches; /* in order of submission: those that it runs, then those that wait */
    uint32_t n_running, n_launches; /* those, and all */
    uint32_t most;                  /* launches that it takes at once */
    struct job occupied; /* its work for no pass (sched_occupy), until end_ns: it waits */
};

/* One serial channel of work items: the loader. The compiler is the same without DDR demand. */
struct channel_item {
    struct ranked place; /* all have one rank */
    struct channel_item *next_free;
    struct resident *resident;    /* or */
    struct full_request *request; /* KV move, or NULL: */
    uint32_t cold; /* KV that is kept for the turn of that row, to flash; TRACE_NO_ROW: memory is
                      given back */
    bool in;
    double isolated_ns;
    double bytes;
};

struct channel {
    struct ranked_list items; /* the first is in progress */
    struct job job;           /* of the first: the compiler's only waits */
};

enum frames_phase { FRAMES_IDLE, FRAMES_WAITING, FRAMES_RUNNING };

struct frames {
    enum frames_phase phase;
    double per_s;    /* 0: none */
    int64_t from_ns; /* the first was due then */
    uint64_t number; /* of the next frame */
    int64_t due_ns;  /* of the one that waits or runs */
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
    uint32_t tails;  /* passes for which the host samples */
    bool polls;      /* the policy's coordinator does, which draws power */
    bool host_draws; /* ever, in this run */
};

struct throttle {
    bool on;                     /* there is a limit */
    double cap_watts;            /* that an event of the machine set; 0: none */
    double speed;                /* of everything on devices, (0, 1] */
    double average_watts, watts; /* at since_ns, and since */
    int64_t since_ns;
    struct job reaches; /* waits until the average meets the limit */
};

/* A device's step of frequency. Where it has none, speed and power are 1. */
struct governor {
    uint32_t step;
    double speed, power; /* shares of what the device has at its highest step */
    uint32_t cheapest[POWER_PHASE_PREFILL + 1]; /* the step of least energy, by phase */
    bool busy;
    int64_t busy_since_ns;
    int64_t busy_ns;   /* in the present period, until busy_since_ns */
    struct job period; /* waits until it is over, if there is one */
};

/* Its charge falls by the energy of the run while that is drawn from it. */
struct battery {
    bool known; /* an event has stated a charge */
    bool feeds; /* the machine, from now on */
    bool empty; /* the run is over */
    double full_j;
    double charge_j; /* when the run's energy was since_j */
    double since_j;
    double drawn_j;   /* until then */
    struct job lasts; /* waits until it is empty, if watts stay */
};

struct engine {
    struct core core;
    struct eventq queue;
    int64_t now_ns;
    struct vdevice devices[MACHINE_MAX_DEVICES];
    struct vexec *free_execs;
    /* The launch that was submitted last in this round, if its pass is steady, or NULL. */
    struct vexec *fresh;
    /* Active ones, in order of joining; then those that wait, in no order. */
    struct job *jobs[ENGINE_MAX_JOBS + ENGINE_MAX_WAITING];
    uint32_t n_jobs, n_timed;     /* active ones, and all */
    double ddr_demand, ddr_share; /* sums over jobs, since ddr_since_ns */
    int64_t ddr_since_ns;
    bool ddr_dirty;    /* rates must be settled before time moves */
    bool kernels_seen; /* by an observer, each of those that are events */
    bool may_jump;     /* boundaries of kernels need not be reported one by one */
    bool unwatched;    /* nobody needs iterations of a steady pass one by one */
    bool has_buffers;  /* kernels take memory on some device */
    bool governed;     /* some device has steps of frequency */
    struct channel loader, compiler;
    struct channel_item *free_items;
    struct frames frames;
    struct power power;
    struct throttle throttle;
    struct governor governors[MACHINE_MAX_DEVICES];
    struct battery battery;
    /* Memories of the files of these names; from the core's arena. */
    struct repeat *repeat;
    struct coruns *coruns;
    struct cost_cache *costs;
    struct device_buffers *buffers; /* of each device */
    struct kernel_buffer *free_buffers;
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

/* The instant after the last one that is left to kernels alone. */
static inline int64_t engine_free_until_ns(const struct engine *e)
{
    int64_t at_ns = eventq_empty(&e->queue) ? TIME_LAST_NS : eventq_peek(&e->queue)->time_ns;
    for (uint32_t i = e->n_jobs; i < e->n_timed; i++) {
        at_ns = e->jobs[i]->end_ns < at_ns ? e->jobs[i]->end_ns : at_ns;
    }
    int64_t horizon_ns = e->core.setup->horizon_ns;
    return horizon_ns < at_ns ? horizon_ns + 1 : at_ns;
}

/* repeat.c */
void repeat_init(struct engine *e);
/* At the end of an instant: runs the iterations of a steady pass that was launched in it, which are
 * over before anything else happens. Time moves to the end of the last one. False: there are none.
 */
bool repeat_run(struct engine *e);

/* executor_ops calls these (channels.c). */
void channel_load(void *exec, struct resident *r, double bytes);
void channel_compile(void *exec, struct resident *r, int64_t duration_ns);
void channel_kv_move(void *exec, struct full_request *r, uint32_t row, double bytes, bool in);
void channel_drop(void *exec, struct resident *r);
/* The item in progress is done. */
void channel_event(struct engine *e, struct channel *ch);

/* Invariants of the machine when an instant is over: rates are settled, nobody is in the middle
 * of anything. Walks everything, the events in the queue too; called under SIM_ASSERT only. It
 * names the clause that is broken and ends the process. */
bool engine_consistent(const struct engine *e);

/* Frequency steps of devices (governor.c). */
void governor_init(struct engine *e);
/* The device is in that phase from now on. */
void governor_phase(struct engine *e, uint8_t device, enum power_phase phase);
/* A period of the device is over. True: it draws other watts from now on (power_device). */
bool governor_event(struct engine *e, uint8_t device);
void governor_finish(struct engine *e);

/* Memory of kernels besides weights, and its collector (agent-xpu-v1 6.5). */

/* A kernel that a device has in memory: one op of a model, for launches of up to so many rows. The
 * layers share it, because weights are its argument. */
struct kernel_buffer {
    struct ranked place; /* by last use: all have one rank */
    struct kernel_buffer *next_free;
    uint32_t model, rows;
    enum op_kind op;
    uint32_t uses; /* launches that hold it */
    double bytes;
};

struct device_buffers {
    struct ranked_list kernels;
    double bytes; /* of these kernels */
};

void buffers_init(struct engine *e);
/* Loads what the launch needs and the device lacks. Returns how much longer the host works for it.
 * The kernels stay until buffers_release. O(kernels of the device). */
int64_t buffers_take(struct engine *e, struct vexec *v);
void buffers_release(struct engine *e, struct vexec *v);
void buffers_compiled(struct engine *e); /* more attention is compiled from now on */
/* For assertions: sums and order. */
bool buffers_consistent(const struct engine *e);

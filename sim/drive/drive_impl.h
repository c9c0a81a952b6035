/* Internals of the real executor. The host thread (the caller of drive_run) owns all data here,
 * except the position of a launch while its device's lane runs it. */
#pragma once

#include <stdatomic.h>

#include "sim/core/core.h"
#include "sim/drive/drive.h"
#include "sim/drive/host.h"
#include "sim/engine/eventq.h"

struct drive;

/* ---- lanes (lane.c): threads that run jobs one after another ---- */

struct job {
    struct job *next;
    /* Called on the lane's thread. The job is the first member of the object with its data. */
    void (*run)(struct job *j);
    struct lane *lane;
    int status;                     /* of run: 0 or -errno */
    char why[ENGINE_MESSAGE_BYTES]; /* error message if status is not 0 */
};

struct job_list {
    struct job *head, *tail;
};

struct lane {
    struct drive *drive;
    const char *name; /* borrowed */
    int core;
    bool realtime, granted;
    pthread_t thread;
    pthread_cond_t wake;
    struct job_list queue; /* protected by drive.mutex, with the next three */
    struct job *running;
    _Atomic int64_t began_ns;
    bool quit;
    bool started, hung;
};

/* Starts a thread that runs posted jobs. Returns 0 or -errno. */
int lane_start(struct lane *w, struct drive *d, const char *name, int core, bool realtime);
/* Ends the thread after the job in progress; a hung thread is detached. */
void lane_stop(struct lane *w);
void lane_post(struct lane *w, struct job *j);
/* Removes a job from the queue. False if it has begun. */
bool lane_withdraw(struct lane *w, struct job *j);
/* Posts a job and waits for its end. Returns its status. -ETIMEDOUT: it hangs, since lane.began_ns
 * has not changed for limit_ns. -EINTR: it did not end soon after an interrupt. After both the lane
 * counts as hung. Other finished jobs stay in drive.done. */
int lane_call(struct lane *w, struct job *j, int64_t limit_ns);
/* Error message for a result of lane_call. */
const char *lane_why(const struct job *j, int rc);
/* The first lane whose job has exceeded hang_s (the compiler: compile_s), or NULL. */
struct lane *lane_hung(struct drive *d);
/* Whether an interrupt was requested. At the first, asks all kernels to stop. On the host. */
bool drive_interrupted(struct drive *d);
/* Asks the kernels of all launches to stop, because their results are not needed. */
void drive_kill(struct drive *d);
#define DRIVE_LOOK_NS (NS_PER_S / 4) /* how often the host checks for interrupts and hung jobs */
/* For assertions: head and tail belong to one list. Needs the mutex if the list is shared. */
bool lane_list_ok(const struct job_list *l);
/* For assertions: the calling thread is the lane's, and runs this job. */
bool lane_runs(const struct lane *w, const struct job *j);

/* ---- tokens and activations of requests and passes (state.c) ---- */

struct real_request {
    int32_t *tokens;   /* prompt and generated */
    struct topk *next; /* per token: likeliest next tokens; NULL without options->topk (topk.h) */
    uint32_t n, input, room;
    uint32_t id, slot;
};

/* The state that a turn leaves to its session's next one. Indexed by the next turn's row. */
struct real_turn {
    int32_t *tokens; /* NULL: no earlier turn has ended */
    uint32_t n, slot;
};

struct span {
    uint32_t row0, n;
};

#define MAX_SPANS 32 /* holes in one op: at most one per launch in it, and one */

struct real_pass {
    struct engine_pass engine; /* its arrays are in `memory` */
    struct arena memory;       /* of all arrays */
    struct real_pass *next, *next_free;
    struct engine_segment *segments;
    uint32_t *logit_rows;
    uint32_t cap_segments, cap_rows, cap_logits;
    uint32_t op;                 /* the op of `free`; UINT32_MAX: none yet */
    struct span free[MAX_SPANS]; /* rows that no launch holds, in ascending order */
    uint32_t n_free;
};

struct real_kv {
    uint16_t **k, **v; /* per layer; owned mappings */
    size_t bytes;      /* of one mapping */
    struct engine_kv view;
    uint32_t slot_tokens, n_slots;
    uint32_t *holders; /* per slot; 0: free */
    int file;          /* swapped slots, each at its own offset */
};

int state_init(struct drive *d);
void state_fini(struct drive *d);
struct real_request *state_request(const struct request *r);
/* Fills the activations of a pass that has none yet: rows, positions, cells, embeddings. */
struct real_pass *state_pass(struct drive *d, struct full_pass *p);
void state_pass_drop(struct drive *d, struct full_pass *p);
/* Samples greedily from every row with logits. */
void state_sample(struct drive *d, struct full_pass *p);
/* For assertions: n, room and slot are consistent; zero before the request arrives. */
bool state_request_ok(const struct drive *d, const struct real_request *q);
/* For assertions: requests and passes have returned all that they took. */
bool state_all_back(const struct drive *d);
uint64_t state_token_hash(const struct drive *d);

/* ---- slots of KV (slots.c) ---- */

/* Returns 0, or fails the run. Call slots_close in both cases. */
int slots_open(struct drive *d);
void slots_close(struct drive *d);
/* Takes a free slot for a session. Fails the run if there is none. */
uint32_t slot_take(struct drive *d);
/* For assertions: the number of owners of a slot. A slot belongs to one session: to its live
 * request, or to its next turn before it arrives. */
uint32_t slot_owners(const struct drive *d, uint32_t slot);
/* Copies `tokens` of a slot to the swap file, or back (in). Returns 0 or -errno. On the loader. */
int slot_swap(struct drive *d, uint32_t slot, uint32_t tokens, bool in);
/* Returns the slot's memory to the system. */
void slot_release(struct drive *d, uint32_t slot);

/* ---- launches (launches.c) ---- */

struct real_launch {
    struct job job;
    struct full_launch *l;
    struct real_pass *pass;
    struct real_launch *next_free;
    struct drive *drive;
    struct span span[MAX_SPANS]; /* rows of the first op that it holds */
    uint32_t n_spans;
    _Atomic int stop, kill;                   /* requests to yield, and to reset */
    uint32_t op, at_span, in_span, rows_done; /* position: rows_done rows of `op` are done */
    uint32_t kernel_rows;                     /* rows of the kernel in progress */
    int64_t submit_ns, kernel_begin_ns, begin_ns, end_ns, isolated_ns, lost_ns;
    int64_t asked_ns, asked_now_ns; /* time of the first request to yield, and to reset; 0: none */
    struct preempt_spec how;
    enum launch_outcome outcome;
    bool on_idle;             /* its device was idle when it was submitted */
    bool over;                /* ended early; the host has not handled it yet */
    uint64_t event;           /* cpu clock: order of its next event, or EVENTQ_NONE */
    struct drive_kernel *log; /* kernels of this launch, copied to the report at its end */
    uint32_t n_log, cap_log;
};

struct real_launch *launch_new(struct drive *d, struct full_launch *l);
/* Frees r. Returns rows that were not done to the pass. */
void launch_free(struct drive *d, struct real_launch *r);
/* Runs the kernel at the position and advances. Returns 0, -ECANCELED, or -errno with job.why.
 * now_ns is for the log. *took_ns: duration by drive_meter_ns. */
int launch_kernel(struct real_launch *r, int64_t now_ns, int64_t *took_ns);
bool launch_done(const struct real_launch *r);
/* For assertions, by the owner of the position: its members are consistent. Not after a kernel was
 * undone: then only op and rows_done are valid. */
bool launch_position_ok(const struct real_launch *r);
/* For assertions: the free rows are as many as the core counts as to do. */
bool launch_rows_ok(const struct real_pass *p, const struct pass *pub);
/* Whether a stop may take effect here, between kernels. */
bool launch_may_yield(const struct real_launch *r);

/* ---- the executor ---- */

struct real_device {
    struct lane lane;
    const struct drive_device *options;
    const struct engine_ops *engine;
    void *engine_handle, *handle; /* of engine_ops open and device_open */
    uint32_t index;
    struct real_launch **live; /* in submission order; the first one runs */
    uint32_t n_live;
    struct job job; /* to open and to close the device */
};

/* A KV move, compilation or load. The loader and the compiler each run one at a time. */
struct service_job {
    struct job job;
    struct drive *drive;
    struct service_job *next; /* in drive.makes, or in drive.free_jobs */
    enum drive_work work;
    struct resident *resident; /* to compile or load; NULL if cancelled */
    struct resident_key key;
    enum engine_step step;
    struct full_request *request; /* of a KV move; NULL: of a session between turns */
    uint32_t cold;                /* trace row of that session's next turn */
    uint32_t slot, tokens;
    double size;
    int64_t took_ns;
    uint64_t event; /* cpu clock: order of the event of its end, or EVENTQ_NONE */
};

struct drive {
    struct core core;
    /* Copies of the caller's data: a hung thread may use them after the caller frees its own. */
    struct {
        struct drive_options options;
        struct machine machine;
        struct llm llm;
    } own;
    const struct drive_options *options;
    const struct drive_host *host;
    struct drive_report *report;
    const struct machine *machine;
    const struct llm *llm;
    const char *scratch;
    bool wall;
    int64_t epoch_ns; /* wall: real time of instant 0 */
    int64_t now_ns;   /* the current instant */

    pthread_t main;        /* the host thread */
    pthread_mutex_t mutex; /* protects lanes and `done` */
    bool locked;           /* for assertions: the mutex is held */
    pthread_cond_t ended;  /* signalled when a job is put in `done` */
    struct job_list done;
    struct job_list instant; /* wall: ended jobs that the current instant handles */
    int64_t hang_ns, compile_ns, limit_ns;
    int64_t interrupted_ns; /* when the host noticed the interrupt; 0: not */
    uint32_t padding_rows;  /* rows of the largest static kernel: the most padding */

    struct eventq queue;
    uint64_t next_order, arrivals_pending, tails;
    size_t next_first;

    struct real_device devices[MACHINE_MAX_DEVICES];
    struct lane loader, compiler;
    int64_t loader_free_ns, compiler_free_ns; /* cpu clock: when each is free */
    uint32_t n_engines;
    struct opened {
        struct job job; /* to open the engine */
        const struct engine_ops *ops;
        void *handle;
    } engines[MACHINE_MAX_DEVICES];

    struct observer observer;
    struct real_kv kv;
    struct real_turn *turns; /* indexed by trace row */
    struct real_request *requests;
    float *head, *head_logits;              /* used by topk.c */
    struct real_pass *passes, *free_passes; /* all passes; unused ones */
    struct real_launch *free_launches;
    struct service_job *makes; /* compilations and loads in progress */
    struct service_job *free_jobs;
};

enum drive_event {
    DRIVE_EVENT_STEP, /* cpu clock: a launch begins, or its kernel ends */
    DRIVE_EVENT_MOVED,
    DRIVE_EVENT_COMPILED,
    DRIVE_EVENT_TAIL,
    DRIVE_EVENT_TURN,
    DRIVE_EVENT_ARRIVAL,
    DRIVE_EVENT_CANCEL,
    DRIVE_EVENT_TIMER
};

/* For assertions: the calling thread is the host's, which owns the core. */
static inline bool drive_on_host(const struct drive *d)
{
    return pthread_equal(d->host->thread_self(), d->main) != 0;
}

/* Queues an event. Returns its order. */
static inline uint64_t drive_later(struct drive *d, int64_t at_ns, enum drive_event kind,
                                   uint32_t sub, uint64_t payload)
{
    uint64_t order = ((uint64_t)kind << 60) | ((uint64_t)sub << 28) | (d->next_order++ & 0xfffffff);
    SIM_ASSERT(drive_on_host(d) && (order >> 60) == (uint64_t)kind && at_ns >= 0);
    eventq_push(&d->queue, at_ns < d->now_ns ? d->now_ns : at_ns, order, payload);
    return order;
}

/* The clock that measures durations in this run. */
static inline int64_t drive_meter_ns(const struct drive *d)
{
    return d->wall ? d->host->now_ns() : d->host->cpu_ns();
}

/* Real time since instant 0. */
static inline int64_t drive_wall_ns(const struct drive *d)
{
    return d->host->now_ns() - d->epoch_ns;
}

static inline void drive_lock(struct drive *d)
{
    (void)d->host->mutex_lock(&d->mutex);
    SIM_ASSERT(!d->locked);
    d->locked = true;
}
static inline void drive_unlock(struct drive *d)
{
    SIM_ASSERT(d->locked);
    d->locked = false;
    (void)d->host->mutex_unlock(&d->mutex);
}
/* Waits and releases the mutex meanwhile. until NULL: no timeout. */
static inline void drive_wait(struct drive *d, pthread_cond_t *c, const struct timespec *until)
{
    SIM_ASSERT(d->locked);
    d->locked = false;
    (void)(until == NULL ? d->host->cond_wait(c, &d->mutex)
                         : d->host->cond_timedwait(c, &d->mutex, until));
    SIM_ASSERT(!d->locked);
    d->locked = true;
}

/* devices.c */
/* Returns 0, or fails the run. The first device of an engine opens the engine, on the compiler. */
int device_start(struct drive *d, uint32_t i);
/* Ends all threads, and closes devices and engines. False if a thread hangs: its data must not be
 * freed. */
bool devices_stop(struct drive *d);

/* actions.c: the functions that the core calls. */
extern const struct executor_ops drive_ops;
/* Handles the end of a launch: notifies the core, and starts the device's next launch. */
void drive_launch_ended(struct drive *d, struct real_launch *r);

/* clock_wall.c, clock_cpu.c: running launches, and waiting for the next instant. */
void wallclock_launch(struct drive *d, struct real_device *v, struct real_launch *r);
void wallclock_stop(struct drive *d, struct real_device *v, struct real_launch *r);
bool wallclock_wait(struct drive *d); /* false: no event will come, or the run has failed */
/* Removes and returns the next ended job of this instant; NULL: none. Order: kernels by device,
 * then loads, then compilations (sim/api/policy.h). */
struct job *wallclock_ended(struct drive *d);
void cpuclock_start(struct drive *d, struct real_device *v);
void cpuclock_stop(struct drive *d, struct real_device *v, struct real_launch *r);
bool cpuclock_wait(struct drive *d);
/* Handles the event of a launch. Returns true if the launch has ended. */
bool cpuclock_step(struct drive *d, struct real_launch *r);

/* services.c */
/* The device of compiled attention and graphs: the first with static attention, else the NPU, else
 * the first device. */
uint32_t service_device(const struct machine *m);
void service_compile(struct drive *d, struct resident *r);
void service_load(struct drive *d, struct resident *r, double bytes);
/* Prepares the declared graph blocks, and loads the mapped ones. Returns 0, or fails the run. */
int service_graphs(struct drive *d);
void service_cancel(struct resident *r);
void service_evicted(struct drive *d, struct resident_key key);
void service_kv(struct drive *d, struct full_request *r, bool in);
void service_cold(struct drive *d, uint32_t row);
/* Called on the host when the work is done (cpu clock: when its virtual time is over). */
void service_done(struct drive *d, struct service_job *j);
void service_run(struct job *j);

/* report.c */
void drive_times_add(struct drive_times *t, int64_t ns);
void report_launch(struct drive *d, const struct real_launch *r);
void report_resident(struct drive *d, const struct service_job *j);

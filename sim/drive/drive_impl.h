/* Inside the real executor. The host thread (the caller of drive_run) owns everything here but the
 * position of a launch while its device's lane runs it. */
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
    /* On the lane's thread. Takes what it needs from the object it is the first member of. */
    void (*run)(struct job *j);
    struct lane *lane;
    int status;                     /* of run: 0 or -errno */
    char why[ENGINE_MESSAGE_BYTES]; /* of a failure */
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
    struct job_list queue; /* these four under drive.mutex */
    struct job *running;
    _Atomic int64_t began_ns;
    bool quit;
    bool started, hung;
};

/* 0 or -errno. The lane waits for jobs. */
int lane_start(struct lane *w, struct drive *d, const char *name, int core, bool realtime);
/* Ends it after the job in progress; one that hangs is left behind. */
void lane_stop(struct lane *w);
void lane_post(struct lane *w, struct job *j);
/* Takes back a job that has not begun: true when it was still waiting. */
bool lane_withdraw(struct lane *w, struct job *j);
/* Posts and waits for the end. -ETIMEDOUT: it hangs, since nothing has happened for limit_ns (the
 * job began then, or moved lane.began_ns). -EINTR: it did not end soon after a signal. After both
 * the lane counts as hung. Finished jobs of others stay in drive.done. */
int lane_call(struct lane *w, struct job *j, int64_t limit_ns);
/* Words for what lane_call returned. */
const char *lane_why(const struct job *j, int rc);
/* The first lane whose job has run longer than hang_s (the compiler's: compile_s), or NULL. */
struct lane *lane_hung(struct drive *d);
/* On the host. When it sees a signal first, it asks all kernels to stop. */
bool drive_interrupted(struct drive *d);
/* Asks the kernels of all launches to stop: nobody wants their work any more. */
void drive_kill(struct drive *d);
#define DRIVE_LOOK_NS (NS_PER_S / 4) /* the host looks so often: at signals, and for what hangs */
/* For assertions: both ends are of one list. Under the mutex, where others have the list too. */
bool lane_list_ok(const struct job_list *l);
/* For assertions: the calling thread is the lane's, and works on that job. */
bool lane_runs(const struct lane *w, const struct job *j);

/* ---- the real side of requests and passes (state.c) ---- */

struct real_request {
    int32_t *tokens;   /* prompt and generated */
    struct topk *next; /* after each of them; NULL without options->topk (topk.h) */
    uint32_t n, input, room;
    uint32_t id, slot;
};

/* State that a turn leaves for the session's next one, by that one's trace row. */
struct real_turn {
    int32_t *tokens; /* NULL: none */
    uint32_t n, slot;
};

struct span {
    uint32_t row0, n;
};

#define MAX_SPANS 32 /* holes in one op: at most one per launch that shares it, and one */

struct real_pass {
    struct engine_pass engine; /* borrows the arrays below */
    struct arena memory;       /* of all of them */
    struct real_pass *next, *next_free;
    struct engine_segment *segments;
    uint32_t *logit_rows;
    uint32_t cap_segments, cap_rows, cap_logits;
    uint32_t op;                 /* whose rows these are; UINT32_MAX: none yet */
    struct span free[MAX_SPANS]; /* rows no launch holds, rising */
    uint32_t n_free;
};

struct real_kv {
    uint16_t **k, **v; /* by layer; owned mappings */
    size_t bytes;      /* of one mapping */
    struct engine_kv view;
    uint32_t slot_tokens, n_slots;
    uint32_t *holders; /* by slot: 0 free */
    int file;          /* swapped slots, each at its own place */
};

int state_init(struct drive *d);
void state_fini(struct drive *d);
struct real_request *state_request(const struct request *r);
/* Makes the pass's activations ready when it has none yet: rows, positions, cells, embeddings. */
struct real_pass *state_pass(struct drive *d, struct full_pass *p);
void state_pass_drop(struct drive *d, struct full_pass *p);
/* Greedy sampling of every row that yields a token. */
void state_sample(struct drive *d, struct full_pass *p);
/* For assertions: tokens and their room; zero where the request has not arrived. */
bool state_request_ok(const struct drive *d, const struct real_request *q);
/* For assertions: all that was taken for requests and passes is back. */
bool state_all_back(const struct drive *d);
uint64_t state_token_hash(const struct drive *d);

/* ---- slots of KV (slots.c) ---- */

/* 0, or the run has failed. slots_close in every case. */
int slots_open(struct drive *d);
void slots_close(struct drive *d);
/* A free one, for a session; where there is none the run has failed. */
uint32_t slot_take(struct drive *d);
/* For assertions. A slot is one session's: a live request has it, or the next turn that is still to
 * come. */
uint32_t slot_owners(const struct drive *d, uint32_t slot);
/* Moves `tokens` of a slot to or from the file; returns 0 or -errno. On the loader. */
int slot_swap(struct drive *d, uint32_t slot, uint32_t tokens, bool in);
/* The slot's memory goes back to the system. */
void slot_release(struct drive *d, uint32_t slot);

/* ---- launches (launches.c) ---- */

struct real_launch {
    struct job job;
    struct full_launch *l;
    struct real_pass *pass;
    struct real_launch *next_free;
    struct drive *drive;
    struct span span[MAX_SPANS]; /* rows of the first op */
    uint32_t n_spans;
    _Atomic int stop, kill;                   /* yield; reset */
    uint32_t op, at_span, in_span, rows_done; /* position: rows_done of op `op` */
    uint32_t kernel_rows;                     /* of the kernel in progress */
    int64_t submit_ns, kernel_begin_ns, begin_ns, end_ns, isolated_ns, lost_ns;
    int64_t asked_ns, asked_now_ns; /* to yield, to reset; 0: not */
    struct preempt_spec how;
    enum launch_outcome outcome;
    bool on_idle;             /* its device had nothing else when it came */
    bool over;                /* cpu clock: ended, waits for the host */
    uint64_t event;           /* cpu clock: order of that of its next step, or EVENTQ_NONE */
    struct drive_kernel *log; /* of this launch, copied to the report at its end */
    uint32_t n_log, cap_log;
};

struct real_launch *launch_new(struct drive *d, struct full_launch *l);
/* Gives rows that were not done back to the pass and frees r. */
void launch_free(struct drive *d, struct real_launch *r);
/* Runs the kernel at the position and moves on. 0, -ECANCELED, or -errno with job.why. now: the
 * clock's, for the log; took_ns: by which the clock measures. */
int launch_kernel(struct real_launch *r, int64_t now_ns, int64_t *took_ns);
bool launch_done(const struct real_launch *r);
/* For assertions, by whoever owns the position: its members say the same place in the rows it
 * holds. Not after a kernel was undone: then only op and rows_done say it. */
bool launch_position_ok(const struct real_launch *r);
/* For assertions: places of rows are those that the core counts as nobody's. */
bool launch_rows_ok(const struct real_pass *p, const struct pass *pub);
/* Between kernels: a stop takes effect here. */
bool launch_may_yield(const struct real_launch *r);

/* ---- the executor ---- */

struct real_device {
    struct lane lane;
    const struct drive_device *options;
    const struct engine_ops *engine;
    void *engine_handle, *handle; /* of open and device_open */
    uint32_t index;
    struct real_launch **live; /* in order; the first runs */
    uint32_t n_live;
    struct job job; /* opening and closing */
};

/* KV moves and compilations: work apart from the devices, one after another per channel. */
struct service_job {
    struct job job;
    struct drive *drive;
    struct service_job *next; /* of makes, or of those that are free */
    enum drive_work work;
    struct resident *resident; /* of a compile or a load; NULL once cancelled */
    struct resident_key key;
    enum engine_step step;
    struct full_request *request; /* of a KV move, or NULL: */
    uint32_t cold;                /* row of the turn that it is kept for */
    uint32_t slot, tokens;
    double size;
    int64_t took_ns;
    uint64_t event; /* cpu clock: order of that of its end, or EVENTQ_NONE */
};

struct drive {
    struct core core;
    /* Copies, for threads: one that hangs outlives the caller, who frees what it gave. */
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
    int64_t epoch_ns; /* wall: instant 0 */
    int64_t now_ns;   /* of the instant in progress */

    pthread_t main;        /* the host thread */
    pthread_mutex_t mutex; /* lanes and done */
    bool locked;           /* somebody has the mutex: for assertions */
    pthread_cond_t ended;  /* a job: it is in done */
    struct job_list done;
    struct job_list instant; /* wall: what the instant in progress is about */
    int64_t hang_ns, compile_ns, limit_ns;
    int64_t interrupted_ns; /* when the host saw that it is to end; 0: it is not */
    uint32_t padding_rows;  /* the largest static kernel: how far one may reach beyond a pass */

    struct eventq queue;
    uint64_t next_order, arrivals_pending, tails;
    size_t next_first;

    struct real_device devices[MACHINE_MAX_DEVICES];
    struct lane loader, compiler;
    int64_t loader_free_ns, compiler_free_ns; /* cpu clock */
    uint32_t n_engines;
    struct opened {
        struct job job; /* opening */
        const struct engine_ops *ops;
        void *handle;
    } engines[MACHINE_MAX_DEVICES];

    struct observer observer;
    struct real_kv kv;
    struct real_turn *turns; /* by trace row */
    struct real_request *requests;
    float *head, *head_logits;              /* of topk.c */
    struct real_pass *passes, *free_passes; /* all; those not in use */
    struct real_launch *free_launches;
    struct service_job *makes; /* compilations and loads on their way */
    struct service_job *free_jobs;
};

enum drive_event {
    DRIVE_EVENT_STEP, /* cpu clock: a launch begins or a kernel of it ends */
    DRIVE_EVENT_MOVED,
    DRIVE_EVENT_COMPILED,
    DRIVE_EVENT_TAIL,
    DRIVE_EVENT_TURN,
    DRIVE_EVENT_ARRIVAL,
    DRIVE_EVENT_CANCEL,
    DRIVE_EVENT_TIMER
};

/* For assertions: the calling thread is the host's, who owns the core. */
static inline bool drive_on_host(const struct drive *d)
{
    return pthread_equal(d->host->thread_self(), d->main) != 0;
}

/* Returns the event's order. */
static inline uint64_t drive_later(struct drive *d, int64_t at_ns, enum drive_event kind,
                                   uint32_t sub, uint64_t payload)
{
    uint64_t order = ((uint64_t)kind << 60) | ((uint64_t)sub << 28) | (d->next_order++ & 0xfffffff);
    SIM_ASSERT(drive_on_host(d) && (order >> 60) == (uint64_t)kind && at_ns >= 0);
    eventq_push(&d->queue, at_ns < d->now_ns ? d->now_ns : at_ns, order, payload);
    return order;
}

/* The clock by which the run measures durations. */
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
/* Waits under the mutex, which others have meanwhile. until: NULL: without end. */
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
/* 0, or the run has failed. Engines open with their first device; the compiler runs already. */
int device_start(struct drive *d, uint32_t i);
/* Ends all threads, and closes devices and engines. False: a thread hangs, and what it uses must
 * stay. */
bool devices_stop(struct drive *d);

/* actions.c: what the core asks for. */
extern const struct executor_ops drive_ops;
/* The launch has ended: notifies the core, and begins the next one of its device. */
void drive_launch_ended(struct drive *d, struct real_launch *r);

/* clock_wall.c, clock_cpu.c: taking launches, and waiting for the next instant. */
void wallclock_launch(struct drive *d, struct real_device *v, struct real_launch *r);
void wallclock_stop(struct drive *d, struct real_device *v, struct real_launch *r);
bool wallclock_wait(struct drive *d); /* false: nothing will come, or the run has failed */
/* The next job that ended meanwhile, taken out; NULL: none. Kernels before loads before compiles,
 * kernels by device (sim/api/policy.h). */
struct job *wallclock_ended(struct drive *d);
void cpuclock_start(struct drive *d, struct real_device *v);
void cpuclock_stop(struct drive *d, struct real_device *v, struct real_launch *r);
bool cpuclock_wait(struct drive *d);
/* The event of a launch has come. True: the launch has ended. */
bool cpuclock_step(struct drive *d, struct real_launch *r);

/* services.c */
/* The device that compiled attention and graphs are for: the one whose attention is static, else
 * the NPU, else the first. */
uint32_t service_device(const struct machine *m);
void service_compile(struct drive *d, struct resident *r);
void service_load(struct drive *d, struct resident *r, double bytes);
/* Prepares and brings in the graph blocks that the policy mapped. 0, or the run has failed. */
int service_graphs(struct drive *d);
void service_cancel(struct resident *r);
void service_evicted(struct drive *d, struct resident_key key);
void service_kv(struct drive *d, struct full_request *r, bool in);
void service_cold(struct drive *d, uint32_t row);
/* On the host, when the work is done (and its time has come). */
void service_done(struct drive *d, struct service_job *j);
void service_run(struct job *j);

/* report.c */
void drive_times_add(struct drive_times *t, int64_t ns);
void report_launch(struct drive *d, const struct real_launch *r);
void report_resident(struct drive *d, const struct service_job *j);

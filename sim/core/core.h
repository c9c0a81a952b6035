/* The core: request and pass state, KV ledger, residents, action validation. It has no clock: its
 * executor reports the time, so virtual-time and real-time executors share this code.
 *
 *   executor -> core : core_advance, core_request_arrives, core_launch_*, core_pass_tail_done,
 *                      core_resident_done, core_timer, core_schedule
 *   core -> executor : struct executor_ops
 *
 * Objects that a policy sees (requests, passes, launches) stay readable until the core_schedule of
 * the instant in which they ended returns. Then they are reused.
 */
#pragma once

#include "sim/api/policy.h"
#include "sim/core/objects.h"
#include "sim/core/prefix.h"
#include "sim/core/run.h"

/* The executor runs the work, and offers these functions to the core. The core calls them while it
 * handles an action of the policy or an event of the executor. */
struct executor_ops {
    uint32_t caps; /* CAP_ bits */
    /* Starts or queues a validated launch; must lead to core_launch_ended. */
    void (*launch)(void *exec, struct full_launch *l);
    /* Stops a launch (stop_requested is set); must lead to core_launch_ended. 0 or -EPERM. */
    int (*stop)(void *exec, struct full_launch *l, struct preempt_spec how);
    uint32_t (*free_slots)(void *exec, uint8_t device);
    /* Must lead to core_resident_done(r) unless it is dropped. */
    void (*compile)(void *exec, struct resident *r, int64_t duration_ns);
    void (*load)(void *exec, struct resident *r, double bytes);
    /* The core frees a pending or ready resident after this call. */
    void (*resident_dropped)(void *exec, struct resident *r);
    /* Moves KV to or from flash. For a request it must lead to core_kv_moved. With r NULL the KV is
     * that of a session whose next turn is `row`, and it must lead to core_cold_moved. */
    void (*kv_move)(void *exec, struct full_request *r, uint32_t row, double bytes, bool in);
    void (*timer)(void *exec, int64_t at_ns);
    /* Makes an idle device busy; must lead to core_timer. 0 or -EBUSY. NULL: unsupported. */
    int (*occupy)(void *exec, uint8_t device, int64_t until_ns);
    /* Host work after the last op of a pass; must lead to core_pass_tail_done. */
    void (*pass_tail)(void *exec, struct full_pass *p, int64_t duration_ns);
    void (*arrive_later)(void *exec, int64_t at_ns, uint32_t row); /* a session's next turn */
    void (*cancel_later)(void *exec, int64_t at_ns, struct full_request *r);
    /* The pass was cancelled: frees p->exec. NULL: nothing to do. */
    void (*pass_cancelled)(void *exec, struct full_pass *p);
    /* State of charge now, [0, 1]. NULL: it refuses traces with events of the machine. */
    double (*battery_frac)(const void *exec);
};

/* The policy's hook that is running, by its name in policy_ops. Actions are allowed in `schedule`
 * only, except for declarations of graphs in `init`. */
#define CORE_HOOKS(X)                                                                              \
    X(outside), X(init), X(exit), X(request_arrived), X(launch_done), X(pass_done),                \
        X(resident_ready), X(kv_moved), X(request_cancelled), X(schedule), X(dump)
#define CORE_HOOK_ID_(name) HOOK_##name
enum core_hook { CORE_HOOKS(CORE_HOOK_ID_), HOOK_COUNT };
extern const char *const core_hook_names[HOOK_COUNT];

/* A model of the run. */
struct core_model {
    const struct llm *llm;
    const struct hwmodel *truth;
    uint32_t kv_units;        /* ledger units in a block of its KV */
    uint64_t kv_state_tokens; /* KV space of a sequence's states (sched_kv_state_tokens) */
    /* Used by weights.c, with several models: */
    struct resident *weights; /* NULL: absent */
    bool stays;               /* its weights are never evicted */
    uint32_t n_live;          /* requests that the policy was notified of */
    uint64_t used;            /* number of its last use, 0: never */
    int64_t since_ns;         /* start of the load in progress */
};

struct core {
    const struct sim_setup *setup;
    struct sim_result *result;
    const struct executor_ops *exec_ops;
    void *exec;
    uint32_t caps;       /* CAP_ bits of both the executor and the run (sim_setup.caps) */
    struct sched *sched; /* the policy's handle, in `shown` */
    struct arena arena;
    struct arena shown;   /* what the policy reads: its handle, requests, passes, launches */
    struct arena policys; /* what it may write: its state and request.own */

    struct full_request *free_requests, *dead_requests;
    struct full_request *live_head, *live_tail; /* the newest and the oldest */
    struct full_pass *free_passes, *dead_passes;
    struct full_launch *free_launches, *dead_launches;
    uint32_t next_pass_id, next_launch_id, next_slot;
    uint64_t n_live;

    struct core_model models[SIM_MAX_MODELS]; /* by request.model */
    uint32_t n_models;
    uint64_t n_held; /* live requests that wait for weights (weights.c) */
    uint64_t weights_uses;
    /* The ledger counts units. With one model a unit is its block; with several, the largest block
     * that divides those of all models. Members of requests count blocks of their own model. */
    double kv_unit_bytes; /* bytes per token of a unit */
    uint32_t kv_units_most;
    uint64_t kv_blocks_total, kv_blocks_free; /* cold blocks are not free */
    uint64_t kv_blocks_mapped; /* lent or owed for other programs, and for what init mapped, evicted
                                * or not */
    uint64_t kv_blocks_lent;   /* units lent to residents and other programs; not free */
    uint64_t kv_blocks_owed;   /* further units to lend as soon as requests free them */
    uint64_t kv_blocks_cold;
    uint64_t kv_blocks_most; /* peak of kv_blocks_held */
    uint64_t kv_blocks_idle; /* cached prefixes of requests that have not started; may be dropped */
    struct map cold;         /* struct cold_kv *, by row of the turn that it is kept for */
    struct cold_kv *free_cold;
    /* Cached entries may be dropped, the first one first. Held ones (pinned, moving, swapped) may
     * not. */
    struct ranked_list cold_cached, cold_held;

    struct map residents; /* struct resident *, by key */
    struct resident *free_residents;
    double resident_bytes;
    double mapped_bytes; /* residents that init mapped. They contain the weights, so only the larger
                            of both counts */
    double memory_bytes; /* for weights, residents, KV and other programs */
    struct machine_state conditions; /* memory_free_bytes and battery_frac are computed on demand */

    struct joins *joins;       /* owned; NULL: the trace has no request graph */
    struct prefixes *prefixes; /* owned; NULL: none are shared */
    int64_t last_progress_ns;
    uint64_t fruitless;      /* launches since last_progress_ns that ended with nothing done */
    int64_t area_from_ns;    /* Little's law: the integral is up to date at this instant */
    double area_request_ns;  /* integral of requests in system */
    double sojourn_ns;       /* sum of times in system over requests that left */
    uint32_t actions;        /* actions accepted in the current call of schedule */
    int64_t steady_until_ns; /* arguments of sched_steady */
    uint64_t steady_without;
    /* Checks a promise (sched_steady): a steady pass that ended in this instant, until the policy
     * has launched it again. NULL: none. */
    const struct full_pass *expected;
    const struct pass *expected_as;                /* the new pass, or NULL */
    bool again;                                    /* sched_again was called in the current call */
    struct graph_shape graphs[GRAPH_VERSIONS + 1]; /* by version; rows 0: not declared */
    enum core_hook hook;                           /* the policy's hook that is running */
    bool begun;                                    /* init was called, so exit must be */
    /* The last action that was accepted, and the last that was refused and why. */
    struct core_decision {
        const char *action; /* NULL: none */
        int64_t at_ns;
    } last[2];
    const struct sim_refusal *last_refusal;
    enum counter refused_as; /* by the action in progress */
    const char *refused_why;
    uint64_t events_seen; /* result->events at the last call of schedule */
    /* Cached noise of estimates (actions.c): a policy asks about one pass many times. */
    struct core_noise {
        uint64_t attn_pairs;
        uint32_t rows, prefill_rows, model; /* rows 0: none */
        double factor;
    } noise[MACHINE_MAX_DEVICES][OP_KIND_COUNT];
};

/* core_init checks the setup (needs against caps, memory) and calls the policy's init. */
int core_init(struct core *c, const struct sim_setup *setup, const struct executor_ops *ops,
              void *exec, struct sim_result *result);
void core_fini(struct core *c);

/* Executor events. now_ns never decreases. */
static inline void core_advance(struct core *c, int64_t now_ns)
{
    SIM_REQUIRE(now_ns >= c->sched->now_ns, "clock went back to %" PRId64, now_ns);
    c->sched->now_ns = now_ns;
}

void core_request_arrives(struct core *c, uint32_t row);
void core_request_cancel(struct core *c, struct full_request *r); /* NULL: it has left */
void core_launch_started(struct core *c, struct full_launch *l, int64_t lead_ns);
/* The first kernel of a launch starts, after the host's lead: the requests of its pass are in
 * service from now on. Later calls for the pass do nothing. */
void core_first_kernel_started(struct core *c, const struct full_launch *l);
static inline void core_kernel_started(struct core *c, const struct full_launch *l)
{
    if (!core_pass(l->pub->pass)->served) {
        core_first_kernel_started(c, l);
    }
}

/* ops_done: completed ops of the launch; rows_done: completed rows of the op after them. */
void core_launch_ended(struct core *c, struct full_launch *l, enum launch_outcome outcome,
                       uint32_t ops_done, uint32_t rows_done, int64_t isolated_ns, int64_t lost_ns);
void core_pass_tail_done(struct core *c, struct full_pass *p);
/* Whether a pass is on no device and the users of all its requests gave up. False for passes with
 * SEGMENT_AHEAD, whose request leaves with the last one. */
static inline bool core_pass_is_unwanted(const struct full_pass *p)
{
    bool unwanted =
        p->pub->state == PASS_STATE_READY && p->pub->op < p->pub->n_ops && !p->pub->overlaps;
    for (uint32_t i = 0; i < p->pub->n_segments && unwanted; i++) {
        unwanted = core_member(&p->segments[i])->cancel_pending;
    }
    return unwanted;
}
/* Cancels a pass that core_pass_is_unwanted, as a server does when requests are aborted, and
 * notifies the policy. Called after a user gave up, and after a launch ended. */
void core_pass_check_wanted(struct core *c, struct full_pass *p);
/* Replaces core_launch_ended and core_pass_tail_done after a steady pass and its repetitions, r->n
 * in all, whose tokens are out. If not `continues`, requests that have all their tokens leave, and
 * the policy is notified. If `continues`, no request has all its tokens, and one more token of each
 * has KV. The pass is then formed and submitted once more, and the executor must start its launch
 * now. */
void core_pass_repeated(struct core *c, struct full_launch *l, const struct repeat_record *r,
                        bool continues);
void core_resident_done(struct core *c, struct resident *r);
void core_kv_moved(struct core *c, struct full_request *r, bool in);
/* Does nothing if the turn has arrived in the meantime. */
void core_cold_moved(struct core *c, uint32_t row);
void core_timer(struct core *c);
/* Applies an event of the machine, after the executor has applied it to devices and energy. Sheds
 * requests that can never have enough KV now. */
void core_machine_event(struct core *c, const struct machine_event *event);
/* The conditions now, as a policy sees them. */
struct machine_state core_machine_state(const struct core *c);

/* Calls the policy's schedule once, or as often as it asks (sched_again), and frees objects that
 * ended in this instant. Does nothing at an instant without events that the policy can see, such as
 * the end of a kernel inside a launch. Returns 0, or -ELOOP with result->message if the policy
 * never stops acting. */
int core_schedule(struct core *c);

/* The live request of that id, or NULL. O(live). */
struct full_request *core_request_find(struct core *c, uint32_t id);

/* Audits the run at end_ns: counts the remaining requests, checks Little's law, and fails a run
 * that does not add up. The executor has filled its fields of the audit (energy, DDR, bookings). */
void core_audit(struct core *c, int64_t end_ns);
/* For a run that failed: describes the state in the result's `scene`, and writes the policy's dump
 * to the decision log. */
void core_dump(struct core *c);
/* Fails the run: requests wait and no event is left. The message quotes the policy's dump. */
void core_stall(struct core *c);

/* Returns in buf "; the policy says: " and the first line of its dump, or "". */
#define CORE_SAYS_BYTES 256
const char *core_says(struct core *c, char buf[CORE_SAYS_BYTES]);

/* Ends the run with an error that names time, seed, policy and place. Only the first error is kept.
 */
int core_fail(struct core *c, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Fails the run and returns from the calling function if the condition holds. */
#define FAIL_IF(c, condition, ...)                                                                 \
    do {                                                                                           \
        if (condition) {                                                                           \
            return core_fail((c), __VA_ARGS__);                                                    \
        }                                                                                          \
    } while (0)

/* Host costs of a launch before its kernels: decision, submission, completion, barrier. */
static inline int64_t core_launch_lead_ns(const struct core *c, const struct launch *l)
{
    const struct machine *m = c->setup->machine;
    const struct device *d = &m->devices[l->device];
    int64_t lead = m->schedule_ns + d->submit_ns + d->completion_ns;
    uint32_t others = l->pass->last_op_devices & ~(1u << l->device);
    return others != 0 ? lead + m->sync_ns : lead;
}

/* Whether the launch has all ops and rows of its pass. */
static inline bool core_launch_is_whole(const struct launch *l)
{
    return l->op_begin == 0 && l->op_end == l->pass->n_ops && l->rows == l->pass->shape.rows &&
           l->columns == 0;
}

/* Passes and launches (form.c, pass.c, launch.c): the actions behind struct sched_api. */
extern const char core_no_room[]; /* the only segment fault that is -ENOMEM */
int core_pass_form(struct core *c, const struct pass_spec *spec, struct pass **out);
int core_pass_cancel(struct core *c, struct pass *p);
void core_member_back(struct core *c, struct full_pass *p, struct full_request *r);
int core_launch(struct core *c, const struct launch_spec *spec, const struct launch **out);
int core_preempt(struct core *c, const struct launch *l, struct preempt_spec how);
void core_pass_complete(struct core *c, struct full_pass *p);
void core_launch_over(struct core *c, struct full_launch *l); /* notifies the policy */
void core_request_leave(struct core *c, struct full_request *r, enum request_state state);
/* Drops a request that is in no pass and whose KV is not moving, and notifies the policy. */
void core_request_shed(struct core *c, struct full_request *r);

/* Refusals (refuse.c). Counts a refusal, and stores its reason (a static clause) for core_acted.
 * Returns status. */
int core_refuse(struct core *c, enum counter which, int status, const char *why);
/* Refuses the action and returns from the calling function if the condition holds. */
#define REFUSE_IF(c, condition, counter, status, why)                                              \
    do {                                                                                           \
        if (condition) {                                                                           \
            return core_refuse((c), COUNTER_##counter, (status), (why));                           \
        }                                                                                          \
    } while (0)
/* Called at the end of every action. Stores the action, and records a refusal by action, hook and
 * reason. Returns rc. */
int core_acted(struct core *c, const char *action, int rc);

extern const struct sched_api core_sched_api; /* actions.c */

static inline struct core *core_of(struct sched *s)
{
    return (struct core *)(s->core ^ core_way);
}

/* Resets the stall watchdog: some work was completed. */
static inline void core_progress(struct core *c)
{
    c->last_progress_ns = c->sched->now_ns;
    c->fruitless = 0;
}

static inline void core_count(struct core *c, enum counter which)
{
    c->result->counters[which]++;
}

/* Calls a hook of the policy if it is not NULL. */
#define CORE_HOOK(c, h, ...)                                                                       \
    do {                                                                                           \
        if ((c)->setup->policy->h != NULL) {                                                       \
            enum core_hook outer = (c)->hook;                                                      \
            (c)->hook = HOOK_##h;                                                                  \
            (c)->setup->policy->h(__VA_ARGS__);                                                    \
            (c)->hook = outer;                                                                     \
        }                                                                                          \
    } while (0)

/* Calls hook h of every observer that has it. */
#define CORE_OBSERVE(c, h, ...)                                                                    \
    do {                                                                                           \
        const struct sim_setup *obs_s = (c)->setup;                                                \
        for (uint32_t obs_i = 0; obs_i < obs_s->n_observers; obs_i++) {                            \
            struct observer *obs = obs_s->observers[obs_i];                                        \
            if (obs->h != NULL) {                                                                  \
                obs->h(obs->self, __VA_ARGS__);                                                    \
            }                                                                                      \
        }                                                                                          \
    } while (0)

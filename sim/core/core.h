/* The core: request and pass state, KV ledger, residents, action validation. It has no clock: its
 * executor reports the time. So a virtual clock and a real device drive the same code.
 *
 *   executor -> core : core_advance, core_request_arrives, core_launch_*, core_pass_tail_done,
 *                      core_resident_done, core_timer, core_schedule
 *   core -> executor : struct executor_ops
 *
 * Objects handed to a policy (requests, passes, launches) stay readable until core_schedule of the
 * instant in which they ended has returned; then they are reused.
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
    /* Takes a validated launch; ends it later by core_launch_ended. */
    void (*launch)(void *exec, struct full_launch *l);
    /* Stops one (already marked stop_requested): must lead to core_launch_ended. Returns 0 or
     * -EPERM. */
    int (*stop)(void *exec, struct full_launch *l, struct preempt_spec how);
    uint32_t (*free_slots)(void *exec, uint8_t device);
    /* Must lead to core_resident_done(r) unless it is dropped. */
    void (*compile)(void *exec, struct resident *r, int64_t duration_ns);
    void (*load)(void *exec, struct resident *r, double bytes);
    /* One is not wanted any more, pending or ready. The core then forgets it. */
    void (*resident_dropped)(void *exec, struct resident *r);
    /* Moves KV bytes to or from flash: those of a request, must lead to core_kv_moved. Or, with r
     * NULL, what a session left for the turn of that row, must lead to core_cold_moved. */
    void (*kv_move)(void *exec, struct full_request *r, uint32_t row, double bytes, bool in);
    void (*timer)(void *exec, int64_t at_ns);
    /* An idle device is taken until then; leads to core_timer. 0 or -EBUSY. NULL: it cannot. */
    int (*occupy)(void *exec, uint8_t device, int64_t until_ns);
    /* Host work after the last op of a pass; must lead to core_pass_tail_done. */
    void (*pass_tail)(void *exec, struct full_pass *p, int64_t duration_ns);
    void (*arrive_later)(void *exec, int64_t at_ns, uint32_t row); /* a session's next turn */
    void (*cancel_later)(void *exec, int64_t at_ns, struct full_request *r);
    /* The pass was given up: what p->exec holds can go. NULL: nothing to do. */
    void (*pass_cancelled)(void *exec, struct full_pass *p);
    /* State of charge now, [0, 1]. NULL: it has no events of the machine, and refuses traces with
     * any. */
    double (*battery_frac)(const void *exec);
};

/* The hook of the policy that is running, by its name in policy_ops. Actions are allowed in
 * `schedule`. A policy declares in `init` which graphs were in memory before the run. */
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
    uint32_t kv_units;        /* of the ledger that a block of its KV takes */
    uint64_t kv_state_tokens; /* KV of a sequence's states (sched_kv_state_tokens) */
    /* Used by weights.c, with several models: */
    struct resident *weights; /* NULL: absent */
    bool stays;               /* they are never evicted */
    uint32_t n_live;          /* requests that the policy knows of */
    uint64_t used;            /* number of its last use, 0: never */
    int64_t since_ns;         /* the load in progress */
};

struct core {
    const struct sim_setup *setup;
    struct sim_result *result;
    const struct executor_ops *exec_ops;
    void *exec;
    uint32_t caps;       /* CAP_ bits of the executor, as far as the run lets it have them */
    struct sched *sched; /* what the policy holds, in `shown`; sched->api is the core's */
    struct arena arena;
    struct arena shown;   /* what the policy reads: its handle, requests, passes, launches */
    struct arena policys; /* what it writes: its state and its part of requests */

    struct full_request *free_requests, *dead_requests;
    struct full_request *live_head, *live_tail; /* the newest and the oldest */
    struct full_pass *free_passes, *dead_passes;
    struct full_launch *free_launches, *dead_launches;
    uint32_t next_pass_id, next_launch_id, next_slot;
    uint64_t n_live;

    struct core_model models[SIM_MAX_MODELS]; /* by request.model */
    uint32_t n_models;
    uint64_t n_held; /* live requests whose weights are not there */
    uint64_t weights_uses;
    /* The ledger counts in units: blocks of one model, and with several the largest blocks that
     * divide those of all. Members of requests and passes count blocks of their model. */
    double kv_unit_bytes; /* of a token of a unit */
    uint32_t kv_units_most;
    uint64_t kv_blocks_total, kv_blocks_free; /* cold blocks are not free */
    uint64_t kv_blocks_mapped; /* of those lent or owed: to what init declared, and to others */
    uint64_t kv_blocks_lent;   /* whose memory residents have; not free */
    uint64_t kv_blocks_owed;   /* to be lent besides, as soon as requests give them back */
    uint64_t kv_blocks_cold;
    uint64_t kv_blocks_most; /* that were held: by requests and finished turns */
    uint64_t kv_blocks_idle; /* prefixes of requests that have not started: cache, like cold ones */
    struct map cold;         /* struct cold_kv *, by row of the turn that it is kept for */
    struct cold_kv *free_cold;
    /* The first may be dropped. Held ones (pinned, moving, swapped) give no memory. */
    struct ranked_list cold_cached, cold_held;

    struct map residents; /* struct resident *, by key */
    struct resident *free_residents;
    double resident_bytes;
    double mapped_bytes; /* of residents that init declared */
    bool weights_mapped; /* residents that were mapped are the weights: not both count */
    double memory_bytes; /* for weights, residents and KV together, and other programs */
    struct machine_state conditions; /* but memory_free_bytes and battery_frac, which are asked */

    struct joins *joins;       /* owned; NULL: the trace has no request graph */
    struct prefixes *prefixes; /* owned; NULL: none are shared */
    int64_t last_progress_ns;
    uint64_t fruitless;      /* launches since then that ended with nothing done */
    int64_t area_from_ns;    /* Little's law: last instant the integral was brought up to */
    double area_request_ns;  /* integral of requests in system */
    double sojourn_ns;       /* sum over departed of time in system */
    uint32_t actions;        /* accepted in the current schedule call */
    int64_t steady_until_ns; /* sched_steady, */
    uint64_t steady_without; /* and how many live requests stay out of the pass */
    /* A steady pass that ended in this instant, which the policy is to form again and to launch
     * whole where it was; NULL: none, or it has. Only in runs that check it. */
    const struct full_pass *expected;
    const struct pass *expected_as;                /* the pass that it formed so, or NULL */
    bool again;                                    /* sched_again, in the current call */
    struct graph_shape graphs[GRAPH_VERSIONS + 1]; /* by version; rows 0: nothing was said of it */
    enum core_hook hook;                           /* of the policy, that is running */
    bool begun;                                    /* its init was called, so its exit is */
    /* The last action that was accepted, and the last that was refused and why. */
    struct core_decision {
        const char *action; /* NULL: none */
        int64_t at_ns;
    } last[2];
    const struct sim_refusal *last_refusal;
    enum counter refused_as; /* by the action that is being tried */
    const char *refused_why;
    uint64_t events_seen; /* by the policy, of result->events */
    /* The noise of the last estimates (actions.c). A policy asks for one pass many times. */
    struct core_noise {
        uint64_t attn_pairs;
        uint32_t rows, prefill_rows, model; /* rows 0: none */
        double factor;
    } noise[MACHINE_MAX_DEVICES][OP_KIND_COUNT];
};

/* Life. core_init checks the setup (needs against caps, memory) and calls the policy's init. */
int core_init(struct core *c, const struct sim_setup *setup, const struct executor_ops *ops,
              void *exec, struct sim_result *result);
void core_fini(struct core *c);

/* Memory of what the policy reads and writes, and the handle in it (shown.c). */
void core_memory_init(struct core *c);
/* A copy that the policy may read: next to the original lies what it may not. NULL stays NULL. */
const void *core_shown(struct core *c, const void *of, size_t bytes);
/* Makes the seed of a policy that draws. Equal for equal runs; the run's own seed would be enough
 * to generate its trace again. It fits a number of JSON. */
uint64_t core_policy_seed(const struct sim_setup *setup);

/* Executor events. now_ns never decreases. */
static inline void core_advance(struct core *c, int64_t now_ns)
{
    SIM_REQUIRE(now_ns >= c->sched->now_ns, "clock went back to %" PRId64, now_ns);
    c->sched->now_ns = now_ns;
}

void core_request_arrives(struct core *c, uint32_t row);
void core_request_cancel(struct core *c, struct full_request *r);
void core_launch_started(struct core *c, struct full_launch *l, int64_t lead_ns);
/* The host's lead is over and a kernel of it begins: the requests of its pass are served from now
 * on. To be called at the first kernel of a launch; later calls do nothing. */
void core_first_kernel_started(struct core *c, const struct full_launch *l);
static inline void core_kernel_started(struct core *c, const struct full_launch *l)
{
    if (!core_pass(l->pub->pass)->served) {
        core_first_kernel_started(c, l);
    }
}

/* ops_done: ops of the span completed; rows_done: rows of the next one. */
void core_launch_ended(struct core *c, struct full_launch *l, enum launch_outcome outcome,
                       uint32_t ops_done, uint32_t rows_done, int64_t isolated_ns, int64_t lost_ns);
void core_pass_tail_done(struct core *c, struct full_pass *p);
/* Is it on no device, and has the user of each of its requests given up? Never one that overlaps
 * others: its request leaves with the last of them. */
static inline bool core_pass_is_unwanted(const struct full_pass *p)
{
    bool unwanted =
        p->pub->state == PASS_STATE_READY && p->pub->op < p->pub->n_ops && !p->pub->overlaps;
    for (uint32_t i = 0; i < p->pub->n_segments && unwanted; i++) {
        unwanted = core_member(&p->segments[i])->cancel_pending;
    }
    return unwanted;
}
/* Such a pass is cancelled, as a server that aborts a request drops what no step holds, and the
 * policy is notified. Any other pass stays. After a user gave up, and after a launch ended. */
void core_pass_check_wanted(struct core *c, struct full_pass *p);
/* Instead of core_launch_ended and core_pass_tail_done: the steady pass of a launch that has
 * started, and n - 1 like it that followed, ran whole; their tokens are out. Either requests that
 * have all their tokens have left, and the policy is notified. Or the pass continues: nobody has
 * all tokens, and KV of one more token each is free. It was formed and submitted once more at this
 * instant, its shape is that of this one, and the launch is to start now. */
void core_pass_repeated(struct core *c, struct full_launch *l, const struct repeat_record *r,
                        bool continues);
void core_resident_done(struct core *c, struct resident *r);
void core_kv_moved(struct core *c, struct full_request *r, bool in);
/* If that turn has come meanwhile, nothing happens. */
void core_cold_moved(struct core *c, uint32_t row);
void core_timer(struct core *c);
/* An event of the machine, as far as it concerns requests, memory or the policy. The executor does
 * its part before, on devices and energy. Requests that can never have enough KV now are shed. */
void core_machine_event(struct core *c, const struct machine_event *event);
/* The conditions now, as a policy sees them. */
struct machine_state core_machine_state(const struct core *c);

/* Calls the policy's schedule once, or as often as it asks (sched_again); buries the dead of the
 * instant. Only at an instant with events that it can see: an instant that only the executor knows
 * of (a kernel inside a launch, a frame) is none, whether it was simulated or skipped. Returns 0 or
 * -ELOOP (a policy that acts for ever), with result->message filled. */
int core_schedule(struct core *c);

/* The live request of that id, or NULL. O(live). */
struct full_request *core_request_find(struct core *c, uint32_t id);

/* Closes the books at end_ns: counts who is left, takes Little's law, and fails a run that does not
 * add up. The executor fills its own fields of the audit (energy, DDR, bookings) before. */
void core_audit(struct core *c, int64_t end_ns);
/* For a run that failed before its end. Describes the state in the result's `scene`, and writes the
 * policy's dump to the decision log. */
void core_dump(struct core *c);
/* Fails the run: requests wait and nothing will ever happen. With the first line of the dump. */
void core_stall(struct core *c);

/* "; the policy says: ..." of what its dump says first, "" when it says nothing. Returns buf. */
#define CORE_SAYS_BYTES 256
const char *core_says(struct core *c, char buf[CORE_SAYS_BYTES]);

/* Ends the run with an error that names time, seed, policy and place. Keeps the first. */
int core_fail(struct core *c, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The function fails the run if that holds, and returns. */
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

/* Is it all of its pass? */
static inline bool core_launch_is_whole(const struct launch *l)
{
    return l->op_begin == 0 && l->op_end == l->pass->n_ops && l->rows == l->pass->shape.rows &&
           l->columns == 0;
}

/* Passes and launches (form.c, pass.c, launch.c): the actions behind struct sched_api. */
extern const char core_no_room[]; /* the one fault of a segment that is -ENOMEM */
int core_pass_form(struct core *c, const struct pass_spec *spec, struct pass **out);
int core_pass_cancel(struct core *c, struct pass *p);
void core_member_back(struct core *c, struct full_pass *p, struct full_request *r);
int core_launch(struct core *c, const struct launch_spec *spec, const struct launch **out);
int core_preempt(struct core *c, const struct launch *l, struct preempt_spec how);
void core_pass_complete(struct core *c, struct full_pass *p);
void core_launch_over(struct core *c, struct full_launch *l); /* notifies the policy */
void core_request_leave(struct core *c, struct full_request *r, enum request_state state);
/* One that is in no pass and whose KV rests is dropped; the policy is notified. */
void core_request_shed(struct core *c, struct full_request *r);

/* Refusals (refuse.c). An action that fails says so by this: it counts, and remembers the
 * reason (a static clause) for core_acted. Returns status. */
int core_refuse(struct core *c, enum counter which, int status, const char *why);
/* An action is refused if that holds: the function that tries it returns. */
#define REFUSE_IF(c, condition, counter, status, why)                                              \
    do {                                                                                           \
        if (condition) {                                                                           \
            return core_refuse((c), COUNTER_##counter, (status), (why));                           \
        }                                                                                          \
    } while (0)
/* Every action ends here. Remembers the action, and records a refusal by action, hook and reason.
 * Returns rc. */
int core_acted(struct core *c, const char *action, int rc);

extern const struct sched_api core_sched_api; /* actions.c */

static inline struct core *core_of(struct sched *s)
{
    return (struct core *)(s->core ^ core_way);
}

/* Something was done that need not be done again. */
static inline void core_progress(struct core *c)
{
    c->last_progress_ns = c->sched->now_ns;
    c->fruitless = 0;
}

static inline void core_count(struct core *c, enum counter which)
{
    c->result->counters[which]++;
}

/* Calls a hook of the policy, if it has it. */
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

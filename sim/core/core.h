/* The core: request and pass state, KV ledger, residents, action validation. It knows nothing of
 * time but what its executor tells it, so the virtual clock and a real device drive the same code.
 *
 *   executor -> core : core_advance, core_request_arrives, core_launch_*, core_pass_tail_done,
 *                      core_resident_done, core_timer, core_schedule
 *   core -> executor : struct executor_ops
 *
 * Objects handed to a policy (requests, passes, launches) stay readable until core_schedule of the
 * instant in which they ended has returned; then they are reused.
 */
#pragma once

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/api/policy.h"
#include "sim/base/arena.h"
#include "sim/base/err.h"
#include "sim/base/units.h"
#include "sim/core/prefix.h"
#include "sim/core/run.h"

#define KV_NO_COLD UINT32_MAX

/* A request with the facts that its policy must not see. They are not next to `pub`, and `pub` does
 * not point here: `core` of it is this address, changed by a number of this process. */
struct full_request {
    struct request *pub;            /* owned by core.shown */
    struct full_request *next_free; /* pool and graveyard link */
    struct full_request *prev_live, *next_live;
    uint32_t row; /* of the trace */
    uint32_t output_tokens;
    uint32_t kv_blocks;         /* held, reserved and shared ones included */
    uint32_t kv_units;          /* of the ledger that a block is */
    uint32_t kv_rank;           /* of what it leaves in the cache (sched_kv_rank) */
    struct prefix_node *prefix; /* where the shared ones end; NULL: all are its own */
    bool alive;
    bool prefix_idle;    /* its KV is a reused prefix nobody has worked on */
    bool cancel_pending; /* cancelled while in a pass: shed at its end */
    bool kv_moving;      /* swap in progress */
    bool held;           /* the policy does not know of it yet (weights.c) */
    struct full_request *next_held;
    uint64_t draw; /* speculation steps done; keys hidden draws */
    /* Tokens that the draft model has read, drafted ones too, when there were so many of ours. */
    uint32_t drafted_tokens, drafted_kv;
    void *exec; /* the executor's; NULL at arrival */
};

extern uintptr_t core_way; /* drawn once per process */

/* The ways from what a policy holds to the core's own part of it. NULL stays NULL. */
static inline struct full_request *core_request(const struct request *r)
{
    return r == NULL ? NULL : (struct full_request *)(r->core ^ core_way);
}

/* A segment of a formed pass always has a request. */
static inline struct full_request *core_member(const struct segment *s)
{
    return (struct full_request *)(s->request->core ^ core_way);
}

/* What decode segments of one token add to the shape of their pass. */
struct decodes {
    uint32_t n, longest;
    uint64_t keys;
    uint32_t least_left; /* tokens until the first of them has all; UINT32_MAX: no segment */
    bool reactive;
};

struct full_pass {
    struct pass *pub; /* as that of a request */
    struct full_pass *next_free;
    struct full_pass *before, *after; /* live ones with the tokens before and after, or NULL */
    struct segment *segments;         /* of pub, capacity kept across reuse */
    uint32_t capacity;
    uint32_t op_devices; /* devices that ran shares of the current op */
    /* Columns of an op that is split by them: those that no launch has, and those of launches. */
    uint32_t columns_todo, columns_active;
    bool served;            /* a kernel has started */
    bool steady;            /* its policy would form it again (sched_steady) */
    struct decodes decodes; /* of its decode segments */
    bool loses;             /* somebody cancelled one of its requests */
    int64_t formed_ns;
    uint64_t formed_events, done_events, done_decisions;
    /* When it is done: a decode segment of each request that decodes then, and their sums. */
    struct segment *going; /* owned, of the same capacity */
    struct decodes next;
    uint32_t n_left;         /* requests that left with it */
    uint32_t kv_blocks_next; /* free blocks that one more token of each in `going` takes */
    uint32_t begun_on;       /* bit set of devices that suspended a launch in a kernel: */
    struct begun {
        double frac; /* done of the next kernel of that op with so many rows left */
        uint32_t op, rows;
    } begun[MACHINE_MAX_DEVICES];
    void *exec; /* the executor's; NULL when formed */
};

struct full_launch {
    struct launch *pub; /* as that of a request */
    void *exec;         /* the executor's */
    struct full_launch *next_free;
    struct resident *pin; /* kept in memory while the launch lives, or NULL */
};

static inline struct full_pass *core_pass(const struct pass *p)
{
    return p == NULL ? NULL : (struct full_pass *)(p->core ^ core_way);
}

static inline struct full_launch *core_launch_of(const struct launch *l)
{
    return l == NULL ? NULL : (struct full_launch *)(l->core ^ core_way);
}

/* Stays where it is while it is used: executors and launches point to it. */
struct resident {
    struct resident_key key;
    struct resident *next; /* in its bucket, or of the absent ones */
    enum resident_state state;
    double bytes;
    uint32_t pins;
    void *exec; /* the executor's, while pending */
};

/* Those there are, by key. */
struct residents {
    struct resident **buckets; /* owned; n_buckets of them, a power of two */
    uint32_t n_buckets, n;
    struct resident *absent; /* to be used again */
};

/* KV of a finished turn, kept for the session's next one. */
enum cold_state { COLD_CACHED, COLD_PINNED, COLD_MOVING, COLD_SWAPPED, COLD_GONE };

struct cold_kv {
    uint32_t row; /* trace row of the next turn */
    uint32_t session_id;
    uint32_t tokens;
    uint64_t blocks;     /* units of the ledger */
    uint32_t generation; /* of the entry's use: a move that ends later is ignored */
    enum cold_state state;
    uint32_t rank;       /* of the request that left it */
    uint32_t prev, next; /* in its list, KV_NO_COLD ends it */
    /* Where prefixes are shared, what a session left is in the tree, and an entry has no blocks: */
    uint32_t left_by;           /* row of the finished turn */
    struct prefix_node *prefix; /* held while it is pinned or moving, else NULL */
};

/* Entries in the order in which they give way: by rank, then by age. */
struct cold_list {
    uint32_t oldest, newest;
};

/* What the core asks of whoever runs the work. All are called from inside actions of `schedule`. */
struct executor_ops {
    uint32_t caps; /* CAP_ bits */
    /* Takes a validated launch; ends it later by core_launch_ended. */
    void (*launch)(void *exec, struct full_launch *l);
    /* Stops one (already marked stop_requested): must lead to core_launch_ended. Returns 0 or
     * -EPERM. */
    int (*stop)(void *exec, struct full_launch *l, struct preempt_spec how);
    uint32_t (*free_slots)(void *exec, uint8_t device);
    /* Must lead to core_resident_done(r) unless cancelled. */
    void (*compile)(void *exec, struct resident *r, int64_t duration_ns);
    void (*load)(void *exec, struct resident *r, double bytes);
    void (*resident_cancel)(void *exec, struct resident *r);
    /* A ready one is not wanted any more. NULL: nothing to do. */
    void (*resident_evicted)(void *exec, struct resident_key key);
    /* Moves KV bytes to or from flash; must lead to core_kv_moved. */
    void (*kv_move)(void *exec, struct full_request *r, double bytes, bool in);
    /* The same for a session between two turns; must lead to core_cold_moved. */
    void (*cold_move)(void *exec, uint32_t cold, uint32_t generation, double bytes);
    void (*timer)(void *exec, int64_t at_ns);
    /* An idle device is taken until then; leads to core_timer. 0 or -EBUSY. NULL: it cannot. */
    int (*occupy)(void *exec, uint8_t device, int64_t until_ns);
    /* Host work after the last op of a pass; must lead to core_pass_tail_done. */
    void (*pass_tail)(void *exec, struct full_pass *p, int64_t duration_ns);
    /* The next turn of a session arrives at that instant. cold: its kept KV or KV_NO_COLD. */
    void (*arrive_later)(void *exec, int64_t at_ns, uint32_t row, uint32_t cold);
    void (*cancel_later)(void *exec, int64_t at_ns, struct full_request *r);
    /* The pass was given up: what p->exec holds can go. NULL: nothing to do. */
    void (*pass_cancelled)(void *exec, struct full_pass *p);
    /* State of charge now, [0, 1]. NULL: it has no events of the machine, and refuses traces with
     * any. */
    double (*battery_frac)(const void *exec);
};

/* What of a policy is running. */
enum core_hook {
    HOOK_NONE,
    HOOK_INIT, /* what was there before the run is declared */
    HOOK_EXIT,
    HOOK_REQUEST_ARRIVED,
    HOOK_LAUNCH_DONE,
    HOOK_PASS_DONE,
    HOOK_RESIDENT_READY,
    HOOK_KV_MOVED,
    HOOK_REQUEST_CANCELLED,
    HOOK_SCHEDULE, /* actions are allowed */
    HOOK_DUMP,
    HOOK_COUNT
};
extern const char *const core_hook_names[HOOK_COUNT];

/* A model of the run. */
struct core_model {
    const struct llm *llm;
    const struct hwmodel *truth;
    uint32_t kv_units; /* of the ledger that a block of its KV takes */
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
    struct sched *sched; /* what the policy holds, in `shown`; sched->api is the core's */
    struct arena arena;
    struct arena shown;   /* what the policy reads: its handle, requests, passes, launches */
    struct arena policys; /* what it writes: its state and its part of requests */

    struct full_request *free_requests, *dead_requests, *live_head;
    struct full_pass *free_passes, *dead_passes;
    struct full_launch *free_launches, *dead_launches;
    uint32_t next_pass_id, next_launch_id, next_slot;
    uint64_t n_live;

    struct core_model models[SIM_MAX_MODELS]; /* by request.model */
    const struct llm *llms[SIM_MAX_MODELS];   /* sched.models */
    uint32_t n_models;
    struct full_request *held_head, *held_tail; /* requests whose weights are not there, in order */
    uint64_t n_held, weights_uses;
    /* The ledger counts in units: blocks of one model, and with several the largest blocks that
     * divide those of all. Members of requests and passes count blocks of their model. */
    double kv_unit_bytes; /* of a token of a unit */
    uint32_t kv_units_most;
    uint64_t kv_blocks_total, kv_blocks_free; /* cold blocks are not free */
    uint64_t kv_blocks_mapped; /* of those lent or owed: to what init declared, and to others */
    uint64_t kv_blocks_lent;   /* whose memory residents have; not free */
    uint64_t kv_blocks_owed;   /* to be lent besides, as soon as requests give them back */
    uint64_t kv_blocks_cold;
    uint64_t kv_blocks_idle; /* prefixes of requests that have not started: cache, like cold ones */
    struct cold_kv *cold;    /* growing table */
    uint32_t cold_cap, cold_free;
    struct cold_list cold_cached, cold_held; /* held: pinned, moving, swapped */

    struct residents residents;
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
    struct full_pass *done;  /* the last pass whose tokens came out in this instant, or NULL */
    /* A steady pass that ended in this instant, which the policy is to form again; NULL: none, or
     * it has. Only in runs that check it. */
    const struct full_pass *expected;
    bool again;                                    /* sched_again, in the current call */
    struct graph_shape graphs[GRAPH_VERSIONS + 1]; /* by version; rows 0: nothing was said of it */
    enum core_hook hook;                           /* of the policy, that is running */
    /* The last action that was accepted, and the last that was refused and why. */
    struct core_decision {
        const char *action; /* NULL: none */
        int64_t at_ns;
    } last[2];
    const struct sim_refusal *last_refusal;
    enum counter refused_as; /* by the action that is being tried */
    const char *refused_why;
    uint64_t events_seen; /* by the policy, of result->events */
};

/* The cost of a launch without contention: n >= 1 kernels of one op, the first n-1 full. */
struct kernel_run {
    uint32_t n;
    bool outside;                    /* any of them */
    struct kernel_cost full, last;   /* of one full kernel, zero without one; of the last kernel */
    double full_demand, last_demand; /* bytes per second while they load: the engine's (vexec.h) */
};

/* Kernels of `rows` rows of one op under chunk_rows (0: one dynamic kernel), with some of its
 * columns (0: all). O(1). */
void kernel_run_of_columns(const struct hwmodel *m, const struct work_shape *shape, enum op_kind op,
                           uint8_t device, uint8_t graph, uint32_t rows, uint32_t chunk_rows,
                           uint32_t columns, struct kernel_run *out);
static inline void kernel_run_fill(const struct hwmodel *m, const struct work_shape *shape,
                                   enum op_kind op, uint8_t device, uint8_t graph, uint32_t rows,
                                   uint32_t chunk_rows, struct kernel_run *out)
{
    kernel_run_of_columns(m, shape, op, device, graph, rows, chunk_rows, 0, out);
}
static inline int64_t kernel_run_total_ns(const struct kernel_run *k)
{
    return (int64_t)(k->n - 1) * k->full.t_ns + k->last.t_ns;
}

static inline double kernel_run_total_bytes(const struct kernel_run *k)
{
    return k->full.bytes * (double)(k->n - 1) + k->last.bytes;
}

static inline double kernel_run_total_flop(const struct kernel_run *k)
{
    return k->full.flop * (double)(k->n - 1) + k->last.flop;
}

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
/* Zeroed, but for its slot and its policy's part. */
struct full_request *core_request_new(struct core *c);

/* Executor events. now_ns never decreases. */
static inline void core_advance(struct core *c, int64_t now_ns)
{
    SIM_REQUIRE(now_ns >= c->sched->now_ns, "clock went back to %" PRId64, now_ns);
    c->sched->now_ns = now_ns;
}

void core_request_arrives(struct core *c, uint32_t row, uint32_t cold);
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
                       uint32_t ops_done, uint32_t rows_done, int64_t solo_ns, int64_t lost_ns);
void core_pass_tail_done(struct core *c, struct full_pass *p);
/* Instead of core_launch_ended and core_pass_tail_done: the steady pass of a launch that has
 * started, and n - 1 like it that followed, ran whole; their tokens are out, and requests that have
 * all have left. The policy is notified. */
void core_pass_repeated(struct core *c, struct full_launch *l, const struct repeat_record *r);
/* The same where nobody leaves: it was formed and submitted once more at this instant: KV of
 * one more token each is free. The pass's shape is that of this one. After both the launch is to
 * start now. */
void core_pass_goes_on(struct core *c, struct full_launch *l, const struct repeat_record *r);
void core_resident_done(struct core *c, struct resident *r);
void core_kv_moved(struct core *c, struct full_request *r, bool in);
void core_cold_moved(struct core *c, uint32_t cold, uint32_t generation);
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
/* Of a run that failed in its middle: fills the result's scene, and says in the decision log what
 * the policy was thinking. */
void core_dump(struct core *c);
/* Fails the run: requests wait and nothing will ever happen. With the first line of the dump. */
void core_stall(struct core *c);

/* "; the policy says: ..." of what its dump says first, "" when it says nothing. Returns buf. */
#define CORE_SAYS_BYTES 256
const char *core_says(struct core *c, char buf[CORE_SAYS_BYTES]);

/* Ends the run with an error that names time, seed, policy and place. Keeps the first. */
int core_fail(struct core *c, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Host costs of a launch before its kernels: decision, submission, completion, barrier. */
static inline int64_t core_launch_lead_ns(const struct core *c, const struct launch *l)
{
    const struct machine *m = c->setup->machine;
    const struct device *d = &m->devices[l->device];
    int64_t lead = m->schedule_ns + d->submit_ns + d->completion_ns;
    uint32_t others = l->pass->last_op_devices & ~(1u << l->device);
    return others != 0 ? lead + m->sync_ns : lead;
}

/* KV ledger (sim/core/kv.c). */
void kv_models(struct core *c); /* the units of all models */
void kv_init(struct core *c);
int kv_grow(struct core *c, struct full_request *r, uint32_t new_tokens); /* by kv_reserve */
static inline bool kv_has_room(const struct core *c, const struct full_request *r, uint32_t more)
{
    return (uint64_t)r->pub->kv_tokens + more <= (uint64_t)r->kv_blocks * c->setup->kv_block_tokens;
}

/* Units of the ledger that so many of its blocks are. */
static inline uint64_t kv_units(const struct core *c, const struct full_request *r, uint64_t blocks)
{
    (void)c;
    SIM_ASSERT(r->kv_units == c->models[r->pub->model].kv_units);
    return blocks * r->kv_units;
}

/* The first of its blocks, which others may have, too. */
static inline uint32_t kv_blocks_shared(const struct full_request *r)
{
    return r->prefix != NULL ? r->prefix->to : 0;
}

/* One more decode segment of one token, of r. */
static inline void core_decodes_add(struct decodes *d, const struct full_request *r)
{
    uint32_t end = r->pub->kv_tokens + 1;
    uint32_t left = r->output_tokens - r->pub->generated_tokens;
    d->n++;
    d->keys += end;
    d->longest = end > d->longest ? end : d->longest;
    d->least_left = left < d->least_left ? left : d->least_left;
    d->reactive |= r->pub->cls == REQUEST_CLASS_REACTIVE;
}

static inline int kv_reserve(struct core *c, struct full_request *r, uint32_t new_tokens)
{
    return kv_has_room(c, r, new_tokens) ? 0 : kv_grow(c, r, new_tokens);
}

/* Blocks that decoding requests can have: free ones, and what finished turns left. */
static inline uint64_t kv_blocks_spare(const struct core *c)
{
    uint64_t blocks = c->kv_blocks_free + c->kv_blocks_cold;
    return blocks > c->kv_blocks_owed ? blocks - c->kv_blocks_owed : 0;
}

/* Blocks it lacks for so many more tokens. */
uint64_t kv_blocks_lacking(const struct core *c, const struct full_request *r, uint32_t new_tokens);
void kv_release(struct core *c, struct full_request *r); /* all blocks; shared ones stay cached */
void kv_shrink(struct core *c, struct full_request *r, uint32_t keep_tokens);
uint32_t kv_keep_cold(struct core *c, struct full_request *r, uint32_t row);
uint32_t kv_take_cold(struct core *c, uint32_t cold, struct full_request *r, uint32_t want_tokens);
int core_kv_move(struct core *c, struct kv_part part, enum kv_place to); /* the action */
/* In tokens of the model that needs most KV. */
uint64_t kv_free_tokens(const struct core *c);
/* What one request could have: all of it beside what init declared. */
uint64_t kv_most_tokens(const struct core *c);
uint64_t kv_most_tokens_of(const struct core *c, uint32_t model); /* in tokens of that one */
/* Has one request by itself room for all its tokens? */
static inline bool core_request_fits(const struct core *c, const struct full_request *r)
{
    uint64_t most = kv_most_tokens_of(c, r->pub->model);
    return (uint64_t)r->pub->input_tokens + r->output_tokens <= most;
}
uint64_t kv_held_tokens(const struct core *c); /* by requests and finished turns */
double kv_held_bytes(const struct core *c);
double kv_tokens_bytes(const struct core *c, uint32_t model, uint64_t tokens);
/* Gives the memory of so many blocks to residents instead; fewer than before: takes it back.
 * -ENOMEM when they are not free and no cold KV gives way. */
int kv_lend(struct core *c, uint64_t blocks);
/* The same, but never refused: what is not there now is owed, and taken when it becomes free. */
void kv_owe(struct core *c, uint64_t blocks);
/* Takes what is owed of what is free or may give way, but not the prefix of `but` (may be NULL). */
void kv_collect(struct core *c, const struct full_request *but);
/* A reused prefix is cache until a pass holds it, and again when that pass came to nothing. */
void kv_prefix_used(struct core *c, struct full_request *r);
void kv_prefix_rest(struct core *c, struct full_request *r);

/* Passes and launches (form.c, pass.c, launch.c): the actions behind struct sched_api. */
int core_pass_form(struct core *c, const struct pass_spec *spec, struct pass **out);
int core_pass_cancel(struct core *c, struct pass *p);
void core_member_back(struct core *c, struct full_pass *p, struct full_request *r);
int core_launch(struct core *c, const struct launch_spec *spec, const struct launch **out);
int core_preempt(struct core *c, const struct launch *l, struct preempt_spec how);
void core_pass_add_decodes(struct full_pass *p, const struct decodes *d); /* to its shape */
void core_pass_complete(struct core *c, struct full_pass *p);
void core_launch_over(struct core *c, struct full_launch *l); /* its policy hears of it */
void core_request_leave(struct core *c, struct full_request *r, enum request_state state);

/* Refusals (refuse.c). An action that fails says so by this: it counts, and remembers the
 * reason (a static clause) for core_acted. Returns status. */
int core_refuse(struct core *c, enum counter which, int status, const char *why);
/* Every action ends here: counts it, remembers it, tells refusals by their kind. Returns rc. */
int core_acted(struct core *c, const char *action, int rc);

/* Residents (resident.c). */
struct resident *resident_find(struct core *c, struct resident_key key);
/* The next one after r, in any order; NULL begins, and ends. O(buckets) in all. */
struct resident *resident_next(const struct core *c, const struct resident *r);
int core_compile(struct core *c, struct resident_key key);
int core_load(struct core *c, struct resident_key key, double bytes);
int core_map(struct core *c, struct resident_key key, double bytes);
int core_graph(struct core *c, uint8_t version, struct graph_shape shape);
int core_resident_evict(struct core *c, struct resident_key key);
/* A pending resident; NULL: KV has no room to give. For weights, whose life is in weights.c. */
struct resident *resident_add(struct core *c, struct resident_key key, double bytes);
void resident_remove(struct core *c, struct resident *r);
/* Units that KV lends when residents have so many bytes. */
uint64_t resident_lent_for(const struct core *c, double bytes);

/* Weights of several models (weights.c). */
void weights_init(struct core *c); /* after the policy's init */
void weights_hold(struct core *c, struct full_request *r);
void weights_forget(struct core *c, struct full_request *r); /* who is held leaves */
void weights_left(struct core *c, uint32_t model);           /* a request that was not held */
void weights_loaded(struct core *c, const struct resident *r);
/* Loads what the held ask for, and notifies the policy of those who need not wait. */
void weights_let_in(struct core *c);
/* Evicts the weights that have been idle for longest; false: none are. */
bool weights_give_way(struct core *c);
double weights_idle_bytes(const struct core *c);
/* Units that KV lends at least while a model is served. */
uint64_t weights_least_lent(const struct core *c, uint32_t model);
/* Weights or the graphs that hold them, residents, and KV held (cold included). */
double core_memory_bytes(const struct core *c);
void core_memory_note(struct core *c); /* for the run's memory peak */
/* Other programs hold so much from now on: KV gives way to them, and gets it back. */
void core_memory_taken(struct core *c, double bytes);
double core_memory_free_bytes(const struct core *c);

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

/* What a policy declares about itself for speed is believed; else it is checked. */
static inline bool core_believes(const struct core *c)
{
    return c->setup->collapse && c->setup->decision_log == NULL;
}

/* Did anything happen that the policy has not seen? */
static inline bool core_news(const struct core *c)
{
    return c->result->events != c->events_seen;
}

static inline void core_count(struct core *c, enum counter which)
{
    c->result->counters[which]++;
}

/* Calls a hook of the policy, if it has it. */
#define CORE_HOOK(c, which, h, ...)                                                                \
    do {                                                                                           \
        if ((c)->setup->policy->h != NULL) {                                                       \
            enum core_hook outer = (c)->hook;                                                      \
            (c)->hook = (which);                                                                   \
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

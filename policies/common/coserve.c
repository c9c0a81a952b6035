#include "policies/common/coserve.h"

#include "policies/common/blocks.h"

const char *const coserve_offline_choices[] = {"budget", "always", "alone", NULL};

enum { ONLINE = REQUEST_CLASS_REACTIVE, OFFLINE = REQUEST_CLASS_PROACTIVE };

static void coserve_joins(struct sched *s, const struct request *r)
{
    struct coserve *c = s->state;
    SIM_ASSERT(r->state == REQUEST_STATE_QUEUED && reqq_of(r) == NULL);
    reqq_push(&c->waiting[r->cls], r);
}

static void coserve_leaves(struct sched *s UNUSED, const struct request *r)
{
    SIM_ASSERT(reqq_of(r) != NULL); /* waiting or running */
    reqq_remove(r);
}

/* ---- one iteration ---- */

static bool fits(struct sched *s, const struct coserve *c, const struct request *r, uint32_t n,
                 int64_t budget_ns)
{
    struct work_shape w = c->shape;
    cost_shape_add(s, &w, r, n);
    SIM_ASSERT(c->rules.predict_ns(s, &w) >= 0 && n > 0);
    return c->rules.predict_ns(s, &w) <= budget_ns;
}

/* The largest piece of a request's next work within the budget of time and tokens; 0: none. */
static uint32_t piece_of(struct sched *s, const struct coserve *c, const struct request *r,
                         int64_t budget_ns)
{
    uint32_t room = c->tokens > c->it.batch.tokens ? c->tokens - c->it.batch.tokens : 0;
    uint32_t left = r->state == REQUEST_STATE_DECODE ? 1 : request_prefill_left(r);
    uint32_t high = left < room ? left : room;
    if (!batch_takes(&c->it.batch, r)) {
        return 0;
    }
    if (budget_ns == TIME_NEVER_NS || high == 0 || fits(s, c, r, high, budget_ns)) {
        return high;
    }
    /* Bisection, which assumes that time grows with the piece. If it does not, the piece may be
     * smaller than possible, but never exceeds the budget. */
    SIM_ASSERT(high <= left && high <= room);
    uint32_t low = 0;
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (fits(s, c, r, mid, budget_ns)) {
            low = mid;
        } else {
            high = mid;
        }
    }
    SIM_ASSERT(low == 0 || fits(s, c, r, low, budget_ns));
    return low;
}

static void take(struct sched *s, struct coserve *c, const struct request *r, uint32_t n)
{
    bool decode = r->state == REQUEST_STATE_DECODE;
    SIM_ASSERT(batch_takes(&c->it.batch, r)); /* piece_of checked it */
    batch_add(&c->it.batch, r, decode ? SEGMENT_DECODE : SEGMENT_PREFILL, n);
    cost_shape_add(s, &c->shape, r, n);
    SIM_ASSERT(c->shape.rows == c->it.batch.tokens && c->shape.sequences == c->it.batch.n);
}

/* Adds running requests of a class and state, as far as they have a place. */
static void add_running(struct sched *s, struct coserve *c, int cls, enum request_state state,
                        int64_t budget_ns)
{
    for (const struct request *r = c->running[cls].head; r != NULL; r = reqq_next(r)) {
        bool seat = r->state == state && c->it.batch.n < c->max_seqs;
        uint32_t n = seat ? piece_of(s, c, r, budget_ns) : 0;
        SIM_ASSERT((int)r->cls == cls && r->pass == NULL);
        if (n > 0) {
            take(s, c, r, n);
        }
    }
}

/* Whether a request of the class has a place. Online requests take those of offline ones, which
 * then wait with their KV. */
static bool has_seat(const struct coserve *c, int cls)
{
    return c->running[ONLINE].n + (cls == OFFLINE ? c->running[OFFLINE].n : 0) < c->max_seqs;
}

static void admit(struct sched *s, struct coserve *c, int cls, int64_t budget_ns, uint32_t most)
{
    c->admitted[cls] = 0;
    while (!reqq_empty(&c->waiting[cls]) && c->admitted[cls] < most && has_seat(c, cls)) {
        const struct request *r = cls == OFFLINE && c->rules.next_offline != NULL
                                      ? c->rules.next_offline(s, c)
                                      : c->waiting[cls].head;
        SIM_ASSERT(reqq_of(r) == &c->waiting[cls] && r->state == REQUEST_STATE_QUEUED);
        uint32_t n = piece_of(s, c, r, budget_ns);
        /* An online request is admitted even without room for its KV, because coserve_make_room
         * evicts offline ones. A single request always fits. */
        bool room = cls == ONLINE || c->running[ONLINE].n + c->running[OFFLINE].n == 0 ||
                    c->it.batch.tokens + blocks_prompt_tokens(s, r) <= sched_kv_free_tokens(s);
        if (n == 0 || !room) {
            return;
        }
        reqq_remove(r);
        reqq_push(&c->running[cls], r);
        take(s, c, r, n);
        c->admitted[cls]++;
        c->admissions[cls]++;
        SIM_ASSERT(coserve_ok(c) && c->admitted[cls] <= c->running[cls].n);
    }
}

/* Requests of one model wait in arrival order, behind those that ran, except offline ones that a
 * rule chooses. */
static bool waits_in_turn(const struct coserve *c, const struct request *r)
{
    const struct request *prev = reqq_prev(r);
    const struct request *next = reqq_next(r);
    return (r->cls == REQUEST_CLASS_PROACTIVE && c->rules.next_offline != NULL) ||
           ((prev == NULL || prev->model != r->model || request_before(prev, r)) &&
            (next == NULL || next->model != r->model || request_before(r, next)));
}

/* Undoes the admissions of a class: moves them back to the front. */
static bool unadmit(struct coserve *c, int cls)
{
    bool any = c->admitted[cls] > 0;
    for (; c->admitted[cls] > 0; c->admitted[cls]--) {
        /* The last admitted request is at the tail and in no pass yet, so no work is lost. */
        const struct request *r = c->running[cls].tail;
        SIM_ASSERT(r->pass == NULL && r->state == REQUEST_STATE_QUEUED && c->admissions[cls] > 0);
        reqq_remove(r);
        reqq_push_front(&c->waiting[cls], r);
        c->admissions[cls]--;
        SIM_ASSERT(waits_in_turn(c, r));
    }
    return any;
}

static void fill(struct sched *s, struct coserve *c)
{
    batch_clear(&c->it.batch);
    c->shape = (struct work_shape){0};
    /* Reset: if this batch admits no offline request, an old count would undo others. */
    c->admitted[OFFLINE] = 0;
    add_running(s, c, ONLINE, REQUEST_STATE_DECODE, TIME_NEVER_NS);
    add_running(s, c, ONLINE, REQUEST_STATE_QUEUED, TIME_NEVER_NS);
    admit(s, c, ONLINE, TIME_NEVER_NS, c->most[ONLINE]);
    enum coserve_offline rule = (enum coserve_offline)param_int(s, COSERVE_OFFLINE);
    if (rule == COSERVE_OFFLINE_ALONE && c->it.batch.n > 0) {
        return;
    }
    int64_t budget = rule == COSERVE_OFFLINE_ALWAYS ? TIME_NEVER_NS : c->rules.budget_ns(s, c);
    SIM_ASSERT(coserve_ok(c) && c->shape.sequences == c->it.batch.n);
    add_running(s, c, OFFLINE, REQUEST_STATE_DECODE, budget);
    add_running(s, c, OFFLINE, REQUEST_STATE_QUEUED, budget);
    admit(s, c, OFFLINE, budget, c->most[OFFLINE]);
    if (c->it.batch.n == 0 && budget != TIME_NEVER_NS) { /* not even one token fits the budget */
        add_running(s, c, OFFLINE, REQUEST_STATE_DECODE, TIME_NEVER_NS);
        /* One token exceeds the budget least, and some request must progress. */
        c->it.batch.n = c->it.batch.n > 1 ? 1 : c->it.batch.n;
    }
    if (c->it.batch.n == 0) {
        add_running(s, c, OFFLINE, REQUEST_STATE_QUEUED, TIME_NEVER_NS);
        admit(s, c, OFFLINE, TIME_NEVER_NS, c->most[OFFLINE] > 0 ? 1 : 0);
    }
    SIM_ASSERT(coserve_ok(c) && c->admitted[ONLINE] <= c->most[ONLINE] &&
               c->admitted[OFFLINE] <= c->most[OFFLINE]);
}

/* Evicts the last running request of a class, which waits again. */
static bool preempt_last(struct sched *s, struct coserve *c, int cls)
{
    const struct request *r = c->running[cls].tail;
    /* It ran, and is in no pass. */
    SIM_ASSERT(c->admitted[cls] == 0 && (r == NULL || r->pass == NULL));
    if (r == NULL || (r->kv_tokens > 0 && sched_kv_move(s, kv_of(r), KV_NOWHERE) != 0)) {
        return false;
    }
    SIM_ASSERT(r->state == REQUEST_STATE_QUEUED && r->kv_tokens == 0);
    reqq_remove(r);
    reqq_push_front(&c->waiting[cls], r);
    SIM_ASSERT(waits_in_turn(c, r));
    return true;
}

/* Each call frees or removes something, offline work first. */
static bool coserve_make_room(struct sched *s)
{
    struct coserve *c = s->state;
    for (int cls = OFFLINE; cls >= ONLINE; cls--) {
        uint32_t n = c->admitted[cls];
        SIM_ASSERT(n <= c->most[cls]);
        uint32_t others = c->running[ONLINE].n + c->running[OFFLINE].n;
        if (unadmit(c, cls)) {
            /* Compose again with one admission less, because pieces were cut to what others left of
             * the budget. */
            c->most[cls] = n - 1;
        } else if (others > 1 && preempt_last(s, c, cls)) {
            /* Do not admit the victim again. */
            c->most[cls] = 0;
        } else {
            continue;
        }
        fill(s, c);
        SIM_ASSERT(n == 0 ? c->admitted[cls] == 0 : c->admitted[cls] < n); /* terminates */
        return true;
    }
    return false;
}

static void coserve_compose(struct sched *s)
{
    struct coserve *c = s->state;
    SIM_ASSERT(c->it.running.pass == NULL && coserve_ok(c));
    c->most[ONLINE] = UINT32_MAX;
    c->most[OFFLINE] = UINT32_MAX;
    fill(s, c);
}

/* ---- stop ---- */

static bool can_stop(const struct coserve *c)
{
    SIM_ASSERT(c->it.running.pass != NULL); /* only while one runs */
    return c->rules.safepoint && !c->it.running.pass->has_reactive;
}

static bool coserve_outranked(struct sched *s)
{
    const struct coserve *c = s->state;
    /* If online requests wait, they arrived after the iteration was composed, because compose takes
     * at least one. */
    SIM_ASSERT(c->running[ONLINE].n <= c->max_seqs && reqq_ok(&c->waiting[ONLINE]));
    return can_stop(c) && !reqq_empty(&c->waiting[ONLINE]);
}

static void coserve_launch(struct sched *s, struct launch_spec *spec)
{
    spec->yield = can_stop(s->state) ? YIELD_LAYER : YIELD_PASS;
}

static const struct iteration_rules iteration = {.joins = coserve_joins,
                                                 .leaves = coserve_leaves,
                                                 .compose = coserve_compose,
                                                 .make_room = coserve_make_room,
                                                 .outranked = coserve_outranked,
                                                 .launch = coserve_launch};

int coserve_init(struct sched *s, struct coserve_rules rules)
{
    struct coserve *c = s->state;
    SIM_ASSERT(rules.budget_ns != NULL && rules.predict_ns != NULL);
    c->rules = rules;
    /* HyGen never stops an iteration. ConServe's aborted one is lost, because there is no second
     * memory for its KV here. */
    c->it.loses = true;
    c->max_seqs = (uint32_t)param_int(s, COSERVE_MAX_SEQS);
    c->tokens = (uint32_t)param_int(s, COSERVE_TOKENS);
    SIM_ASSERT(c->max_seqs > 0 && c->tokens > 0 && coserve_ok(c));
    return iteration_init(s, &iteration, param_int(s, COSERVE_DEVICE));
}

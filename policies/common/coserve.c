#include "policies/common/coserve.h"

#include <errno.h>

#include "sim/base/units.h"

const char *const coserve_offline_choices[] = {"budget", "always", "alone", NULL};

enum { ONLINE = REQUEST_CLASS_REACTIVE, OFFLINE = REQUEST_CLASS_PROACTIVE };

int coserve_init(struct sched *s, struct coserve_rules rules)
{
    struct coserve *c = s->state;
    int d = place_device(s->machine, param_int(s, COSERVE_DEVICE));
    c->rules = rules;
    c->device = (uint8_t)d;
    c->max_seqs = (uint32_t)param_int(s, COSERVE_MAX_SEQS);
    c->tokens = (uint32_t)param_int(s, COSERVE_TOKENS);
    return d < 0 ? d : 0;
}

void coserve_exit(struct sched *s)
{
    struct coserve *c = s->state;
    if (c != NULL) {
        batch_fini(&c->batch);
    }
}

void coserve_request_arrived(struct sched *s, const struct request *r)
{
    struct coserve *c = s->state;
    reqq_push(&c->waiting[r->cls], r);
    c->online_came = c->online_came || r->cls == REQUEST_CLASS_REACTIVE;
}

void coserve_request_cancelled(struct sched *s, const struct request *r)
{
    (void)s;
    reqq_remove(r);
}

void coserve_launch_done(struct sched *s, const struct launch *l)
{
    struct coserve *c = s->state;
    c->launch = c->launch == l ? NULL : c->launch;
}

static void forget(struct coserve *c, const struct pass *p)
{
    c->pass = NULL;
    c->aborting = false;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct request *r = p->segments[i].request;
        if (r->state == REQUEST_STATE_FINISHED || r->state == REQUEST_STATE_SHED) {
            reqq_remove(r);
        }
    }
}

void coserve_pass_done(struct sched *s, const struct pass *p)
{
    forget(s->state, p);
}

/* ---- one iteration ---- */

static bool fits(struct sched *s, const struct coserve *c, const struct request *r, uint32_t n,
                 int64_t budget_ns)
{
    struct work_shape w = c->shape;
    cost_shape_add(&w, r, n);
    return c->rules.predict_ns(s, &w) <= budget_ns;
}

/* Largest piece of a request's next work that budget and tokens allow; 0: none. */
static uint32_t piece_of(struct sched *s, const struct coserve *c, const struct request *r,
                         int64_t budget_ns)
{
    uint32_t room = c->tokens > c->batch.tokens ? c->tokens - c->batch.tokens : 0;
    uint32_t left = r->state == REQUEST_STATE_DECODE ? 1 : request_prefill_left(r);
    uint32_t high = left < room ? left : room;
    if (budget_ns == TIME_NEVER_NS || high == 0 || fits(s, c, r, high, budget_ns)) {
        return high;
    }
    uint32_t low = 0;
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (fits(s, c, r, mid, budget_ns)) {
            low = mid;
        } else {
            high = mid;
        }
    }
    return low;
}

static void take(struct coserve *c, const struct request *r, uint32_t n)
{
    bool decode = r->state == REQUEST_STATE_DECODE;
    batch_add(&c->batch, r, decode ? SEGMENT_DECODE : SEGMENT_PREFILL, n);
    cost_shape_add(&c->shape, r, n);
}

/* Members of running in the given state. */
static void add_running(struct sched *s, struct coserve *c, int cls, enum request_state state,
                        int64_t budget_ns)
{
    for (const struct request *r = c->running[cls].head; r != NULL; r = reqq_next(r)) {
        uint32_t n = r->state == state ? piece_of(s, c, r, budget_ns) : 0;
        if (n > 0) {
            take(c, r, n);
        }
    }
}

static void admit(struct sched *s, struct coserve *c, int cls, int64_t budget_ns, uint32_t most)
{
    c->admitted[cls] = 0;
    while (!reqq_empty(&c->waiting[cls]) && c->admitted[cls] < most &&
           c->running[ONLINE].n + c->running[OFFLINE].n < c->max_seqs) {
        const struct request *r = cls == OFFLINE && c->rules.next_offline != NULL
                                      ? c->rules.next_offline(s, c)
                                      : c->waiting[cls].head;
        uint32_t n = piece_of(s, c, r, budget_ns);
        bool room = cls == ONLINE || c->running[ONLINE].n + c->running[OFFLINE].n == 0 ||
                    (uint64_t)c->batch.tokens + request_prefill_left(r) <= sched_kv_free_tokens(s);
        if (n == 0 || !room) {
            return;
        }
        reqq_remove(r);
        reqq_push(&c->running[cls], r);
        take(c, r, n);
        c->admitted[cls]++;
        c->admissions[cls]++;
    }
}

/* What was admitted goes back, to the front. */
static bool unadmit(struct coserve *c, int cls)
{
    bool any = c->admitted[cls] > 0;
    for (; c->admitted[cls] > 0; c->admitted[cls]--) {
        const struct request *r = c->running[cls].tail;
        reqq_remove(r);
        reqq_push_front(&c->waiting[cls], r);
        c->admissions[cls]--;
    }
    return any;
}

static void fill(struct sched *s, struct coserve *c, const uint32_t *most)
{
    batch_clear(&c->batch);
    c->shape = (struct work_shape){0};
    c->admitted[OFFLINE] = 0;
    add_running(s, c, ONLINE, REQUEST_STATE_DECODE, TIME_NEVER_NS);
    add_running(s, c, ONLINE, REQUEST_STATE_QUEUED, TIME_NEVER_NS);
    admit(s, c, ONLINE, TIME_NEVER_NS, most[ONLINE]);
    enum coserve_offline rule = (enum coserve_offline)param_int(s, COSERVE_OFFLINE);
    if (rule == COSERVE_OFFLINE_ALONE && c->batch.n > 0) {
        return;
    }
    int64_t budget = rule == COSERVE_OFFLINE_ALWAYS ? TIME_NEVER_NS : c->rules.budget_ns(s, c);
    add_running(s, c, OFFLINE, REQUEST_STATE_DECODE, budget);
    add_running(s, c, OFFLINE, REQUEST_STATE_QUEUED, budget);
    admit(s, c, OFFLINE, budget, most[OFFLINE]);
    if (c->batch.n == 0 && budget != TIME_NEVER_NS) { /* not even one token within the budget */
        add_running(s, c, OFFLINE, REQUEST_STATE_DECODE, TIME_NEVER_NS);
        c->batch.n = c->batch.n > 1 ? 1 : c->batch.n;
    }
    if (c->batch.n == 0) {
        add_running(s, c, OFFLINE, REQUEST_STATE_QUEUED, TIME_NEVER_NS);
        admit(s, c, OFFLINE, TIME_NEVER_NS, most[OFFLINE] > 0 ? 1 : 0);
    }
}

/* The last one of a class loses its KV and waits again. */
static bool preempt_last(struct sched *s, struct coserve *c, int cls)
{
    const struct request *r = c->running[cls].tail;
    if (r == NULL || (r->kv_tokens > 0 && sched_kv_move(s, kv_of(r), KV_NOWHERE) != 0)) {
        return false;
    }
    reqq_remove(r);
    reqq_push_front(&c->waiting[cls], r);
    return true;
}

/* Memory is short: each step takes something away, offline work first. */
static bool make_room(struct sched *s, struct coserve *c, uint32_t *most)
{
    for (int cls = OFFLINE; cls >= ONLINE; cls--) {
        uint32_t n = c->admitted[cls];
        uint32_t others = c->running[ONLINE].n + c->running[OFFLINE].n;
        if (unadmit(c, cls)) {
            most[cls] = n - 1;
            return true;
        }
        if (others > 1 && preempt_last(s, c, cls)) {
            most[cls] = 0;
            return true;
        }
    }
    return false;
}

static void form(struct sched *s, struct coserve *c)
{
    uint32_t most[REQUEST_CLASS_COUNT] = {UINT32_MAX, UINT32_MAX};
    do {
        fill(s, c, most);
        int rc = c->batch.n > 0 ? batch_form(s, &c->batch, &c->pass) : -ENOENT;
        if (rc == 0) {
            return;
        }
        c->pass = NULL;
        if (rc != -ENOMEM) {
            return;
        }
    } while (make_room(s, c, most));
}

void coserve_schedule(struct sched *s)
{
    struct coserve *c = s->state;
    bool offline_only = c->pass != NULL && !c->pass->has_reactive;
    if (c->launch != NULL) {
        if (c->rules.safepoint && offline_only && !c->aborting && c->online_came) {
            c->aborting = true;
            (void)sched_preempt(s, c->launch, (struct preempt_spec){0});
        }
        return;
    }
    if (c->pass != NULL && c->pass->state == PASS_STATE_READY && c->aborting) {
        const struct pass *p = c->pass;
        (void)sched_pass_cancel(s, c->pass);
        forget(c, p);
    }
    if (c->pass == NULL) {
        c->online_came = false;
        form(s, c);
    }
    if (c->pass == NULL || c->pass->state != PASS_STATE_READY) {
        return;
    }
    bool can_stop = c->rules.safepoint && !c->pass->has_reactive;
    struct launch_spec spec =
        sched_launch_rest(s, c->pass, c->device, can_stop ? YIELD_LAYER : YIELD_PASS);
    (void)sched_launch(s, &spec, &c->launch);
}

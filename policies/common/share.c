#include "policies/common/share.h"

/* Passes and launches of members are of their requests and on the device, which has a slot for each
 * if not emulated. */
static bool share_ok(const struct sched *s, const struct share *sh)
{
    const struct device *d = &s->machine->devices[sh->device];
    uint32_t launches = 0;
    SIM_ASSERT(sh->n <= sh->limit && sh->limit <= MACHINE_MAX_SHARED);
    SIM_ASSERT(sh->emulated || sh->limit <= d->max_shared);
    SIM_ASSERT(reqq_empty(&sh->waiting) || sh->waiting.head->pass == NULL);
    for (uint32_t i = 0; i < sh->n; i++) {
        const struct share_member *m = &sh->members[i];
        for (uint32_t j = 0; j < i; j++) {
            SIM_ASSERT(m->request != sh->members[j].request);
        }
        SIM_ASSERT(reqq_of(m->request) == NULL); /* in service, not waiting */
        SIM_ASSERT(m->pass == m->request->pass);
        SIM_ASSERT(m->pass == NULL || m->pass->n_segments == 1);
        SIM_ASSERT(m->launch == NULL ||
                   (m->launch->pass == m->pass && m->launch->device == sh->device));
        SIM_ASSERT(m->served_ns >= 0);
        launches += m->launch != NULL;
    }
    SIM_ASSERT(!sh->emulated || launches <= 1); /* one turn at a time */
    SIM_ASSERT(!sh->open_ended || launches == 1 || !sh->emulated);
    return true;
}

/* Index of a request's member, or `n`. */
static uint32_t place_of(const struct share *sh, const struct request *r)
{
    uint32_t i = 0;
    while (i < sh->n && sh->members[i].request != r) {
        i++;
    }
    return i;
}

void share_init(struct sched *s, struct share *sh, uint8_t device, uint32_t limit,
                int64_t quantum_ns, double efficiency_frac)
{
    const struct device *d = &s->machine->devices[device];
    *sh = (struct share){.device = device,
                         .limit = limit,
                         .emulated = d->sharing == DEVICE_SERIAL,
                         .quantum_ns = quantum_ns,
                         .efficiency_frac = efficiency_frac};
    if (!sh->emulated && sh->limit > d->max_shared) {
        /* Further members would hold KV, and every launch would be refused. */
        sh->limit = d->max_shared;
    }
    SIM_ASSERT(sh->limit > 0 && quantum_ns >= 0);
    SIM_ASSERT(efficiency_frac > 0.0 && efficiency_frac <= 1.0); /* so that rests are >= 0 */
    SIM_ASSERT(share_ok(s, sh));
}

/* ---- membership ---- */

/* Whether a member's served time is served_ns. */
static bool is_served(const struct sched *s, const struct share *sh, int64_t served_ns)
{
    bool found = false;
    for (uint32_t i = 0; i < sh->n; i++) {
        const struct launch *l = sh->members[i].launch;
        int64_t now_ns =
            l != NULL && l->state == LAUNCH_STATE_RUNNING ? s->now_ns - l->start_ns : 0;
        found = found || sh->members[i].served_ns + now_ns == served_ns;
    }
    return found;
}

/* The least served time, including the turn in progress. */
static int64_t least_served_ns(const struct sched *s, const struct share *sh)
{
    int64_t least = INT64_MAX;
    for (uint32_t i = 0; i < sh->n; i++) {
        const struct share_member *m = &sh->members[i];
        bool runs = m->launch != NULL && m->launch->state == LAUNCH_STATE_RUNNING;
        SIM_ASSERT(!runs || m->launch->start_ns <= s->now_ns);
        int64_t served = m->served_ns + (runs ? s->now_ns - m->launch->start_ns : 0);
        least = served < least ? served : least;
    }
    return sh->n == 0 ? 0 : least;
}

static void join(const struct sched *s, struct share *sh, const struct request *r, struct pass *p)
{
    /* Starting at zero, a new member would have the device alone until it had caught up. */
    SIM_ASSERT(sh->n < sh->limit && reqq_of(r) == NULL && place_of(sh, r) == sh->n);
    int64_t from = least_served_ns(s, sh);
    SIM_ASSERT(sh->n == 0 || is_served(s, sh, from)); /* level with the least served member */
    sh->members[sh->n++] = (struct share_member){.request = r, .pass = p, .served_ns = from};
    bool first = sh->n == 2 && sh->shared_since_ns == TIME_NEVER_NS;
    sh->shared_since_ns = first ? s->now_ns : sh->shared_since_ns;
    SIM_ASSERT(least_served_ns(s, sh) == from); /* the new member starts there */
}

/* Removes a member. The others keep their order: the last is the youngest, which make_room evicts
 * first. */
static void leave(struct share *sh, uint32_t i)
{
    /* No launch, whose end would find no member. */
    SIM_ASSERT(i < sh->n && sh->members[i].launch == NULL);
    for (sh->n--; i < sh->n; i++) {
        sh->members[i] = sh->members[i + 1];
    }
}

void share_launch_done(struct share *sh, const struct launch *l)
{
    for (uint32_t i = 0; i < sh->n; i++) {
        struct share_member *m = &sh->members[i];
        if (m->launch != l) {
            continue;
        }
        int64_t took = l->end_ns - l->start_ns;
        SIM_ASSERT(took >= 0 && l->state == LAUNCH_STATE_ENDED && l->pass == m->pass);
        m->launch = NULL;
        m->served_ns += took;
        sh->open_ended = false;
        if (sh->emulated && sh->shared_since_ns != TIME_NEVER_NS && sh->efficiency_frac < 1.0) {
            /* A turn of t and a rest of t (1/e - 1) give a rate of e. */
            int64_t from_ns = l->start_ns > sh->shared_since_ns ? l->start_ns : sh->shared_since_ns;
            double rest = (double)(l->end_ns - from_ns) * (1.0 / sh->efficiency_frac - 1.0);
            /* No turn began in a rest. */
            SIM_ASSERT(rest >= 0.0 && sh->rest_until_ns <= l->start_ns);
            sh->rest_until_ns = l->end_ns + (int64_t)llround(rest);
        }
    }
}

void share_pass_done(struct share *sh, const struct pass *p)
{
    for (uint32_t i = 0; i < sh->n; i++) {
        const struct request *r = sh->members[i].request;
        if (sh->members[i].pass == p) {
            SIM_ASSERT(p->segments[0].request == r && sh->members[i].launch == NULL);
            sh->members[i].pass = NULL;
            if (r->state == REQUEST_STATE_FINISHED || r->state == REQUEST_STATE_SHED) {
                leave(sh, i);
            }
            return;
        }
    }
}

void share_request_cancelled(struct share *sh, const struct request *r)
{
    SIM_ASSERT(reqq_of(r) == NULL ? place_of(sh, r) < sh->n : reqq_of(r) == &sh->waiting);
    reqq_remove(r);
    for (uint32_t i = 0; i < sh->n; i++) {
        if (sh->members[i].request == r) {
            leave(sh, i);
            return;
        }
    }
    SIM_ASSERT(place_of(sh, r) == sh->n);
}

/* Frees KV: evicts the youngest member that joined after `keep`, which starts over later. So the
 * oldest always progresses. */
static bool make_room(struct sched *s, struct share *sh, const struct request *keep)
{
    SIM_ASSERT(place_of(sh, keep) < sh->n); /* the walk ends there */
    for (uint32_t i = sh->n; i-- > 0;) {
        struct share_member *m = &sh->members[i];
        const struct request *r = m->request;
        if (r == keep) {
            return false;
        }
        /* Skip members whose kernel runs or whose token is being sampled, because their KV is in
         * use.
         */
        if (m->launch != NULL || (m->pass != NULL && sched_pass_cancel(s, m->pass) != 0)) {
            continue;
        }
        leave(sh, i);
        if (r->state == REQUEST_STATE_SHED) {
            return true; /* its user gave up, so it has left */
        }
        if (r->kv_tokens > 0) {
            (void)sched_kv_move(s, kv_of(r), KV_NOWHERE);
        }
        SIM_ASSERT(r->kv_tokens == 0 && r->state == REQUEST_STATE_QUEUED);
        reqq_push_front(&sh->waiting, r);
        return true;
    }
    return false;
}

static int form(struct sched *s, const struct request *r, struct pass **p)
{
    bool decode = r->state == REQUEST_STATE_DECODE;
    struct segment seg = {.request = r,
                          .role = decode ? SEGMENT_DECODE : SEGMENT_PREFILL,
                          .n_tokens = decode ? 1 : request_prefill_left(r)};
    struct pass_spec spec = {.segments = &seg, .n_segments = 1, .fused_layers = decode};
    SIM_ASSERT(r->pass == NULL);
    int rc = sched_pass_form(s, &spec, p);
    SIM_ASSERT(rc == 0 || rc == -ENOMEM); /* only memory can be short */
    return rc;
}

/* Forms a member's next pass, if necessary by evicting younger members. */
static void go_on(struct sched *s, struct share *sh, uint32_t i)
{
    const struct request *r = sh->members[i].request;
    SIM_ASSERT(r->state == REQUEST_STATE_DECODE && sh->members[i].launch == NULL);
    int rc = form(s, r, &sh->members[i].pass);
    while (rc != 0 && make_room(s, sh, r)) {
        rc = form(s, r, &sh->members[i].pass);
    }
}

/* Admits requests whose prompt finds KV. A request that waited for KV in service would fall behind
 * in device time, and then have the device alone. */
static void admit(struct sched *s, struct share *sh)
{
    for (uint32_t i = 0; i < sh->n; i++) {
        if (sh->members[i].pass == NULL) {
            go_on(s, sh, i);
        }
    }
    struct pass *p = NULL;
    while (sh->n < sh->limit && !reqq_empty(&sh->waiting) && form(s, sh->waiting.head, &p) == 0) {
        join(s, sh, reqq_pop(&sh->waiting), p);
    }
    SIM_ASSERT(share_ok(s, sh));
}

/* ---- turns ---- */

/* Number of ops from the cursor that take about one quantum; at least one. */
static uint32_t turn_ops(struct sched *s, const struct share *sh, const struct pass *p)
{
    int64_t sum = 0;
    uint32_t n = 0;
    /* Ops are not split: one longer than the quantum is a turn. */
    while (p->op + n < p->n_ops && (n == 0 || sum < sh->quantum_ns)) {
        struct estimate e = {0};
        enum op_kind op = pass_op_kind(p, p->op + n);
        (void)sched_estimate(s, &p->shape, op, sh->device, 0, &e);
        sum += e.t_ns;
        n++;
    }
    SIM_ASSERT(n > 0 && p->op + n <= p->n_ops); /* else the loop would end */
    return n;
}

static void give_turn(struct sched *s, struct share *sh)
{
    struct share_member *next = NULL;
    SIM_ASSERT(sh->emulated);
    for (uint32_t i = 0; i < sh->n; i++) {
        struct share_member *m = &sh->members[i];
        if (m->launch != NULL) {
            if (sh->open_ended && sh->n > 1 && !m->launch->stop_requested) {
                (void)sched_preempt(s, m->launch, (struct preempt_spec){0});
            }
            return;
        }
        /* False while the host samples. */
        bool ready = m->pass != NULL && m->pass->state == PASS_STATE_READY;
        /* The least served member goes first; among equals, the oldest. So shares are equal in the
         * long run, regardless of the length of turns. */
        if (ready && (next == NULL || m->served_ns < next->served_ns)) {
            next = m;
        }
    }
    if (next == NULL || sched_device_free_slots(s, sh->device) == 0) {
        return;
    }
    if (s->now_ns < sh->rest_until_ns) {
        (void)sched_set_timer(s, sh->rest_until_ns);
        return;
    }
    /* A single member gets all of its pass, and is stopped at the next op when another joins. */
    SIM_ASSERT(next->served_ns >= 0 && next->pass->n_launches == 0);
    sh->open_ended = sh->n == 1;
    sh->shared_since_ns = sh->open_ended ? TIME_NEVER_NS : s->now_ns;
    struct launch_spec spec = sched_launch_rest(s, next->pass, sh->device, YIELD_OP);
    spec.n_ops = sh->open_ended ? spec.n_ops : turn_ops(s, sh, next->pass);
    (void)sched_launch(s, &spec, &next->launch);
}

static void launch_all(struct sched *s, struct share *sh)
{
    SIM_ASSERT(!sh->emulated && !sh->open_ended);
    for (uint32_t i = 0; i < sh->n; i++) {
        struct share_member *m = &sh->members[i];
        if (m->pass != NULL && m->launch == NULL && m->pass->state == PASS_STATE_READY) {
            struct launch_spec spec = sched_launch_rest(s, m->pass, sh->device, YIELD_PASS);
            (void)sched_launch(s, &spec, &m->launch);
        }
    }
}

void share_schedule(struct sched *s, struct share *sh)
{
    SIM_ASSERT(share_ok(s, sh));
    admit(s, sh);
    if (sh->emulated) {
        give_turn(s, sh);
    } else {
        launch_all(s, sh);
    }
    SIM_ASSERT(share_ok(s, sh));
}

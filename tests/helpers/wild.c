#include "tests/helpers/wild.h"

#include <errno.h>
#include <string.h>

#include "sim/base/rng.h"
#include "sim/base/units.h"

#define MOST 64
#define TIRED_AFTER 40 /* actions that undo something */
#define GRAPH_ROWS 8
#define SIMPLE_DEVICE 1 /* it runs any rows of any pass */

uint32_t wild_dies_in;
uint32_t wild_calls;

struct state {
    struct rng rng;
    const struct request *requests[MOST];
    struct pass *passes[MOST];
    const struct launch *launches[MOST];
    uint32_t n_requests, n_passes, n_launches, undone;
};

static bool chance(struct state *w, uint32_t of_100)
{
    return rng_below(&w->rng, 100) < of_100;
}

static int init(struct sched *s)
{
    struct state *w = s->state;
    rng_init(&w->rng, rng_key(s->seed, RNG_TEST, 2, 0));
    bool loads = (s->policy->needs & CAP_LOAD) != 0;
    return loads ? sched_graph(s, 1, (struct graph_shape){GRAPH_ROWS, 2}) : 0;
}

static void arrived(struct sched *s, const struct request *r)
{
    struct state *w = s->state;
    w->requests[w->n_requests++] = r;
}

static void cancelled(struct sched *s, const struct request *r)
{
    (void)s;
    (void)r; /* schedule finds it shed */
}

/* Forgets what is over. */
static void forget(struct state *w)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n_requests; i++) {
        const struct request *r = w->requests[i];
        w->requests[n] = r;
        n += r->state == REQUEST_STATE_QUEUED || r->state == REQUEST_STATE_DECODE;
    }
    w->n_requests = n;
    n = 0;
    for (uint32_t i = 0; i < w->n_passes; i++) {
        struct pass *p = w->passes[i];
        w->passes[n] = p;
        n += p->state == PASS_STATE_READY || p->state == PASS_STATE_RUNNING;
    }
    w->n_passes = n;
    n = 0;
    for (uint32_t i = 0; i < w->n_launches; i++) {
        w->launches[n] = w->launches[i];
        n += w->launches[i]->state != LAUNCH_STATE_ENDED;
    }
    w->n_launches = n;
}

/* ---- actions ---- */

static int form(struct sched *s, uint32_t most, bool whole)
{
    struct state *w = s->state;
    struct segment g[4];
    uint32_t n = 0;
    /* The oldest first, when nothing else goes: those that give way to it must not take its place.
     */
    uint32_t from = whole || w->n_requests == 0 ? 0 : rng_below(&w->rng, w->n_requests);
    for (uint32_t i = 0; i < w->n_requests && n < most; i++) {
        const struct request *r = w->requests[(from + i) % w->n_requests];
        if (r->pass != NULL || r->kv_swapped) {
            continue;
        }
        uint32_t left = request_prefill_left(r);
        bool prompt = r->state == REQUEST_STATE_QUEUED;
        g[n++] =
            (struct segment){.request = r,
                             .role = prompt ? SEGMENT_PREFILL : SEGMENT_DECODE,
                             .n_tokens = !prompt                  ? 1
                                         : whole || chance(w, 50) ? left
                                                                  : 1 + rng_below(&w->rng, left)};
    }
    if (n == 0 || w->n_passes == MOST) {
        return -EBUSY;
    }
    struct pass *p;
    int rc = sched_pass_form(s, &(struct pass_spec){.segments = g, .n_segments = n}, &p);
    if (rc == 0) {
        w->passes[w->n_passes++] = p;
    }
    return rc;
}

static int launch(struct sched *s, const struct launch_spec *l)
{
    struct state *w = s->state;
    const struct launch *out;
    int rc = w->n_launches < MOST ? sched_launch(s, l, &out) : -EBUSY;
    if (rc == 0) {
        w->launches[w->n_launches++] = out;
    }
    return rc;
}

static void launch_any(struct sched *s)
{
    struct state *w = s->state;
    struct pass *p = w->passes[rng_below(&w->rng, w->n_passes)];
    if (p->rows_todo == 0 || p->op >= p->n_ops) {
        return;
    }
    uint8_t device = (uint8_t)rng_below(&w->rng, s->machine->n_devices);
    struct launch_spec l =
        sched_launch_rest(s, p, device, (enum yield_point)rng_below(&w->rng, YIELD_PASS + 1));
    if (chance(w, 60)) {
        l.n_ops = 1 + rng_below(&w->rng, l.n_ops);
    }
    if (l.n_ops == 1 && chance(w, 40)) {
        l.rows = 1 + rng_below(&w->rng, l.rows);
    }
    if ((s->policy->needs & CAP_LOAD) != 0 && device == 0 && chance(w, 60)) {
        uint32_t left = p->layer.n - p->op % p->layer.n;
        bool head = pass_op_kind(p, p->op) == OP_HEAD;
        l.graph = 1;
        l.graph_block = head ? 1 : pass_op_layer(p, p->op);
        l.chunk_rows = GRAPH_ROWS;
        l.n_ops = head || l.n_ops < left ? l.n_ops : left;
    }
    (void)launch(s, &l);
}

static void stop_any(struct sched *s)
{
    struct state *w = s->state;
    const struct launch *l = w->launches[rng_below(&w->rng, w->n_launches)];
    bool now = chance(w, 40);
    if (l->state != LAUNCH_STATE_ENDED &&
        sched_preempt(s, l, (struct preempt_spec){.now = now, .discard = now}) == 0) {
        w->undone++;
    }
}

static void move_any(struct sched *s)
{
    struct state *w = s->state;
    const struct request *r = w->requests[rng_below(&w->rng, w->n_requests)];
    enum kv_place to = r->kv_swapped ? KV_MEMORY : chance(w, 70) ? KV_FLASH : KV_NOWHERE;
    if (r->kv_tokens > 0 && sched_kv_move(s, kv_of(r), to) == 0) {
        w->undone += !r->kv_swapped;
    }
}

static void resident_any(struct sched *s)
{
    struct state *w = s->state;
    bool graph = (s->policy->needs & CAP_LOAD) != 0 && chance(w, 60);
    const struct request *r = w->requests[rng_below(&w->rng, w->n_requests)];
    struct resident_key key = {RESIDENT_COMPILED_ATTENTION, request_prefill_target(r), 0};
    if (graph) {
        key = (struct resident_key){RESIDENT_GRAPH_BLOCK, rng_below(&w->rng, 2), 1};
    }
    if (sched_resident_state(s, key) != RESIDENT_ABSENT) {
        w->undone += chance(w, 50) && sched_resident_evict(s, key) == 0;
    } else if (graph) {
        (void)sched_load(s, key, 1e3);
    } else {
        (void)sched_compile(s, key);
    }
}

static void anything(struct sched *s)
{
    struct state *w = s->state;
    uint32_t what = rng_below(&w->rng, 100);
    if (what < 30) {
        (void)form(s, 1 + rng_below(&w->rng, 4), false);
    } else if (what < 65 && w->n_passes > 0) {
        launch_any(s);
    } else if (what < 80 && w->n_launches > 0) {
        stop_any(s);
    } else if (what < 84 && w->n_passes > 0) {
        w->undone += sched_pass_cancel(s, w->passes[rng_below(&w->rng, w->n_passes)]) == 0;
    } else if (what < 90 && w->n_requests > 0) {
        move_any(s);
    } else if (what < 97 && w->n_requests > 0) {
        resident_any(s);
    } else if (w->n_requests > 0) { /* else it would wake itself for ever */
        (void)sched_set_timer(s, s->now_ns + rng_below(&w->rng, 300000));
    }
    forget(w);
}

/* Nothing is on a device: what takes the run further, in the order of what can be done. */
static void go_on(struct sched *s)
{
    struct state *w = s->state;
    for (uint32_t i = 0; i < w->n_requests; i++) {
        if (w->requests[i]->kv_swapped) {
            (void)sched_kv_move(s, kv_of(w->requests[i]), KV_MEMORY);
        }
    }
    if (w->n_passes == 0 && form(s, 4, true) == -ENOMEM && form(s, 1, true) == -ENOMEM) {
        for (uint32_t i = 1; i < w->n_requests; i++) { /* all but the oldest give way */
            (void)sched_kv_move(s, kv_of(w->requests[i]), KV_NOWHERE);
        }
        (void)form(s, 1, true);
    }
    for (uint32_t i = 0; i < w->n_passes; i++) {
        struct launch_spec l = sched_launch_rest(s, w->passes[i], SIMPLE_DEVICE, YIELD_KERNEL);
        if (w->passes[i]->op < w->passes[i]->n_ops && launch(s, &l) == 0) {
            return;
        }
    }
}

static bool sheds(const struct sched *s)
{
    return strcmp(s->policy->name, wild_sheds.name) == 0;
}

static void schedule(struct sched *s)
{
    struct state *w = s->state;
    if (++wild_calls == wild_dies_in) {
        sched_give_up(s, "its process was killed by signal 9 (Killed)");
        return;
    }
    forget(w);
    for (uint32_t n = rng_below(&w->rng, 6); n > 0 && w->undone < TIRED_AFTER; n--) {
        anything(s);
    }
    if (sheds(s) && w->n_requests > 0 && chance(w, 10)) {
        (void)sched_shed(s, w->requests[rng_below(&w->rng, w->n_requests)]); /* unless in a pass */
        forget(w);
    }
    if (w->n_launches == 0) {
        go_on(s);
    }
}

#define WILD(name_, needs_)                                                                        \
    {                                                                                              \
        .name = (name_), .summary = "for tests", .contract = POLICY_CONTRACT, .needs = (needs_),   \
        .state_size_bytes = sizeof(struct state), .init = init, .request_arrived = arrived,        \
        .request_cancelled = cancelled, .schedule = schedule                                       \
    }
const struct policy_ops wild = WILD("wild", CAP_SPANS | CAP_KV_MOVE);
const struct policy_ops wild_sheds = WILD("wild-sheds", CAP_SPANS | CAP_KV_MOVE);
const struct policy_ops wild_loads = WILD("wild-loads", CAP_SPANS | CAP_KV_MOVE | CAP_LOAD);

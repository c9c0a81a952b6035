#include "tests/helpers/script.h"

#include <stdlib.h>

#include "sim/base/halt.h"

static struct script *script_of(const struct sched *s)
{
    return (struct script *)(uintptr_t)s->context;
}

static void arrived(struct sched *s, const struct request *r)
{
    script_of(s)->request[r->id] = r;
}

static void launch_done(struct sched *s, const struct launch *l)
{
    struct script *x = script_of(s);
    if (x->n_ends == SCRIPT_MAX) {
        return; /* the first ones are kept */
    }
    x->ends[x->n_ends++] = (struct script_end){.at_ns = s->now_ns,
                                               .launch_id = l->id,
                                               .outcome = l->outcome,
                                               .op = l->pass->op,
                                               .rows_todo = l->pass->rows_todo};
}

static void pass_done(struct sched *s, const struct pass *p)
{
    struct script *x = script_of(s);
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct request *r = p->segments[i].request;
        x->pass[r->id] = NULL;
        if (r->state == REQUEST_STATE_FINISHED || r->state == REQUEST_STATE_SHED) {
            x->request[r->id] = NULL;
        }
    }
}

static void note(struct script_event *list, uint32_t *n, const struct sched *s, uint32_t id,
                 bool swapped)
{
    SIM_REQUIRE(*n < SCRIPT_MAX, "too many events");
    list[(*n)++] = (struct script_event){s->now_ns, id, swapped};
}

static void resident_ready(struct sched *s, struct resident_key key)
{
    struct script *x = script_of(s);
    note(x->ready, &x->n_ready, s, key.a, false);
}

static void kv_moved(struct sched *s, const struct request *r)
{
    struct script *x = script_of(s);
    note(x->moved, &x->n_moved, s, r->id, r->kv_swapped);
}

static void request_cancelled(struct sched *s, const struct request *r)
{
    struct script *x = script_of(s);
    x->request[r->id] = NULL;
    note(x->cancelled, &x->n_cancelled, s, r->id, r->kv_swapped);
}

static int init(struct sched *s)
{
    struct script *x = script_of(s);
    return x->init == NULL ? 0 : x->init(s, x);
}

static void schedule(struct sched *s)
{
    struct script *x = script_of(s);
    sched_again(s); /* a script may act in steps */
    x->step(s, x);
}

const struct policy_ops script_ops = {.name = "script",
                                      .contract = POLICY_CONTRACT,
                                      .init = init,
                                      .request_arrived = arrived,
                                      .launch_done = launch_done,
                                      .pass_done = pass_done,
                                      .resident_ready = resident_ready,
                                      .kv_moved = kv_moved,
                                      .request_cancelled = request_cancelled,
                                      .schedule = schedule};

int script_run(struct scenario *sc, struct script *x, const struct scenario_request *q, uint32_t n)
{
    sc->setup.policy = &script_ops;
    sc->setup.policy_context = x;
    bool show = getenv("SHOW") != NULL;
    int rc = scenario_run(sc, q, n, show);
    if (show) {
        scenario_print(sc, stdout);
    }
    return rc;
}

bool script_at(struct sched *s, struct script *x, uint32_t stage, double ms)
{
    int64_t at_ns = units_ns_from_ms(ms);
    if (x->stage != stage) {
        return false;
    }
    if (s->now_ns < at_ns) {
        (void)sched_set_timer(s, at_ns);
        return false;
    }
    x->stage++;
    return true;
}

struct pass *script_form(struct sched *s, const struct request *r)
{
    bool decode = r->state == REQUEST_STATE_DECODE;
    struct segment seg = {.request = r,
                          .role = decode ? SEGMENT_DECODE : SEGMENT_PREFILL,
                          .n_tokens = decode ? 1 : request_prefill_left(r)};
    struct pass_spec spec = {.segments = &seg, .n_segments = 1, .fused_layers = decode};
    struct pass *p = NULL;
    return sched_pass_form(s, &spec, &p) == 0 ? p : NULL;
}

int script_launch(struct sched *s, struct pass *p, uint8_t device, enum yield_point yield,
                  const struct launch **out)
{
    struct launch_spec l = sched_launch_rest(s, p, device, yield);
    return sched_launch(s, &l, out);
}

void script_serve(struct sched *s, struct script *x)
{
    for (uint32_t i = 0; i < SCENARIO_MAX_REQUESTS; i++) {
        const struct request *r = x->request[i];
        if (r == NULL || r->kv_swapped) {
            continue;
        }
        if (x->pass[i] == NULL && r->pass == NULL) {
            x->pass[i] = script_form(s, r);
        }
        if (x->pass[i] != NULL && x->pass[i]->state == PASS_STATE_READY &&
            sched_device_free_slots(s, (uint8_t)x->device) > 0) {
            (void)script_launch(s, x->pass[i], (uint8_t)x->device, YIELD_PASS, &x->launch[i]);
        }
    }
}

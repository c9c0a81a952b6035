/* Runs of iterations in one step. The engine needs no events and no policy for an iteration if the
 * policy would form the same decode pass again (sched_steady), and if nothing else can happen
 * before the iteration is over. It then computes iteration after iteration. Instants, integrals and
 * counts are those of iterations that are formed, launched and reported one by one. An iteration in
 * which something else happens is simulated event by event. An iteration in which a request ends is
 * the last of its run. Iterations differ only in attention, because sequences grow.
 */
#include "sim/core/kernels.h"
#include "sim/core/kv.h"
#include "sim/engine/costs.h"
#include "sim/engine/ddr.h"
#include "sim/engine/devices.h"
#include "sim/engine/power.h"
#include "sim/engine/vexec.h"

#define REPEAT_MAX 512

struct repeat {
    int64_t isolated_ns[REPEAT_MAX]; /* of each iteration; gap_ns: from its begin to its tokens */
    int64_t gap_ns[REPEAT_MAX];
    struct kernel_cost attention[REPEAT_MAX]; /* of one layer; one more than iterations */
};

void repeat_init(struct engine *e)
{
    const struct sim_setup *s = e->core.setup; /* noise makes every iteration's kernels new */
    e->repeat = arena_alloc(&e->core.arena, sizeof *e->repeat);
    e->may_jump = s->collapse;
    e->unwatched = s->collapse && s->decision_log == NULL && !sim_setup_is_random(s) &&
                   !e->has_buffers && !e->governed;
    for (uint32_t i = 0; i < s->n_observers; i++) {
        const struct observer *o = s->observers[i];
        bool sees_passes = o->tokens != NULL || o->pass_formed != NULL || o->pass_done != NULL ||
                           o->launch_submitted != NULL || o->launch_started != NULL ||
                           o->launch_ended != NULL || o->ddr != NULL || o->power != NULL;
        bool each = o->kernel != NULL || o->wants_kernels;
        e->kernels_seen = e->kernels_seen || o->kernel != NULL;
        e->may_jump = e->may_jump && !each;
        e->unwatched = e->unwatched && !each && (o->repeated != NULL || !sees_passes);
    }
}

/* Iterations until a request ends or fills the model's sliding window, or KV runs out. `far`:
 * requests that have filled the window. */
static uint32_t most_iterations(const struct engine *e, const struct full_pass *p, uint32_t *far)
{
    const struct core *c = &e->core;
    uint32_t most = REPEAT_MAX;
    uint32_t window = c->models[p->pub->shape.model].llm->sliding_window;
    *far = 0;
    for (uint32_t i = 0; i < p->pub->n_segments; i++) {
        const struct full_request *r = core_member(&p->segments[i]);
        uint32_t left = r->output_tokens - r->pub->generated_tokens;
        most = left < most ? left : most;
        if (window > 0) { /* no request may fill it midway */
            uint32_t keys = p->segments[i].first_token + 1;
            *far += keys >= window;
            most = keys < window && window - keys < most ? window - keys : most;
        }
    }
    SIM_ASSERT(most > 0); /* a request with all its tokens is in no pass */
    while (most > 0 && !kv_may_go_on(c, p, most)) {
        most /= 2;
    }
    return most;
}

/* Changes the shape to that of n iterations later; `far` sequences fill the model's window. */
static void grow(struct work_shape *w, uint32_t n, uint32_t far)
{
    w->attn_pairs += (uint64_t)n * w->rows;
    w->kv_read_tokens += (uint64_t)n * w->rows;
    w->far_pairs += (uint64_t)n * far;
    w->far_keys += (uint64_t)n * far;
    w->max_context_tokens += n;
}

/* Whether the launch is alone on the machine and its pass was formed and launched whole at this
 * instant, without another event since. */
static bool may_repeat(const struct engine *e, const struct vexec *v)
{
    const struct launch *l = v->l->pub;
    const struct full_pass *p = core_pass(l->pass);
    bool alone = e->n_jobs == (v->phase == VEXEC_RUNNING) && e->power.tails == 0 &&
                 e->frames.phase == FRAMES_IDLE;
    for (uint32_t i = 0; i < e->core.setup->machine->n_devices; i++) {
        const struct vdevice *d = &e->devices[i];
        alone = alone && d->n_launches == (i == v->job.device);
    }
    return e->unwatched && !e->throttle.on && alone &&
           (v->phase == VEXEC_RUNNING || v->phase == VEXEC_LEAD) && core_launch_is_whole(l) &&
           p->pub->shape.prefill_rows == 0 && l->submit_ns == e->now_ns &&
           e->core.result->events == p->formed_events && !l->stop_requested && v->l->pin == NULL;
}

/* Kernels of a pass's op with attention, of which every layer has one. */
static inline struct kernel_run *attention_of(const struct vexec *v)
{
    return v->l->pub->pass->fused_layers ? v->first : v->run[OP_MHA];
}

/* Sets the launch's costs to those of the iteration after n of them. Only attention differs, unless
 * the calibrated range ends. */
static void costs_follow(struct engine *e, struct vexec *v, uint32_t n)
{
    const struct kernel_run *run = attention_of(v);
    const struct kernel_cost *next = &e->repeat->attention[n];
    if (next->outside != run->outside) {
        costs_leave(e, v);
        costs_fill(e, v);
    } else {
        v->layer_ns += next->t_ns - run->last.t_ns;
        v->attention[0].last = v->attention[1].last = *next;
    }
}

/* Books the kernels of n iterations. */
static void book(struct engine *e, struct vexec *v, uint32_t n)
{
    const struct pass *p = v->l->pub->pass;
    const uint32_t layers = (p->n_ops - 1) / p->layer.n;
    for (uint32_t i = 0; i <= p->layer.n; i++) {
        bool head = i == p->layer.n;
        struct kernel_run *r = i == 0 ? v->first : v->run[head ? OP_HEAD : p->layer.kind[i]];
        if (r != attention_of(v)) {
            vexec_book(v, r, 0, r->n, (uint64_t)n * (head ? 1 : layers));
        }
    }
    vexec_count(e, attention_of(v), (uint64_t)n * layers); /* `repeated` reports its traffic */
}

/* Computes iterations that end before before_ns; returns their number. */
static uint32_t run_iterations(struct engine *e, const struct vexec *v, uint32_t most, uint32_t far,
                               int64_t before_ns, int64_t around_ns)
{
    struct repeat *rep = e->repeat;
    struct kernel_cost *a = rep->attention;
    const struct launch *l = v->l->pub;
    struct work_shape w = l->pass->shape; /* of iteration n */
    const struct kernel_query q = {.device = l->device,
                                   .graph = l->graph,
                                   .op = l->pass->fused_layers ? OP_LAYER : OP_MHA,
                                   .rows = w.rows,
                                   .padded_rows = w.rows,
                                   .shape = &w};
    const struct core_model *model = &e->core.models[w.model];
    const int64_t layers = model->llm->n_layers;
    const struct kernel_run *run = attention_of(v);
    const int64_t others_ns =
        layers * (v->layer_ns - run->last.t_ns) + kernel_run_total_ns(v->run[OP_HEAD]);
    int64_t now_ns = e->now_ns;
    uint32_t n = 0;
    SIM_ASSERT(run->n == 1 && most <= REPEAT_MAX && around_ns >= 0);
    a[0] = run->last;
    for (; n < most; n++) {
        if (n > 0) {
            grow(&w, 1, far);
            hwmodel_kernel(model->truth, &q, &a[n]);
        }
        SIM_ASSERT(a[n].t_ns >= 1 && a[n].bytes >= 0.0);
        costs_audit(e, &a[n]); /* also the one that starts after these */
        int64_t isolated_ns = others_ns + layers * a[n].t_ns;
        /* If the calibrated range ends, all kernels change. */
        if (a[n].outside != run->outside || now_ns + isolated_ns + around_ns >= before_ns) {
            break;
        }
        rep->isolated_ns[n] = isolated_ns;
        rep->gap_ns[n] = isolated_ns + around_ns;
        now_ns += rep->gap_ns[n];
    }
    return n;
}

/* Runs iterations that end before before_ns; false: there are none. */
static bool run(struct engine *e, struct vexec *v, int64_t before_ns)
{
    struct core *c = &e->core;
    struct full_launch *l = v->l;
    const struct full_pass *p = core_pass(l->pub->pass);
    bool leads = v->phase == VEXEC_LEAD;
    before_ns = c->steady_until_ns < before_ns ? c->steady_until_ns : before_ns;
    struct repeat_record r = {.launch = l->pub,
                              .begin_ns = e->now_ns,
                              .lead_ns = leads ? v->job.end_ns - e->now_ns : 0,
                              .sample_ns = c->setup->machine->sample_ns_per_token *
                                           (int64_t)l->pub->pass->shape.logit_rows,
                              .isolated_ns = e->repeat->isolated_ns,
                              .gap_ns = e->repeat->gap_ns,
                              .layers = c->models[p->pub->shape.model].llm->n_layers,
                              .attention = e->repeat->attention};
    uint32_t far;
    uint32_t most = most_iterations(e, p, &far);
    r.n = run_iterations(e, v, most, far, before_ns, r.lead_ns + r.sample_ns);
    if (r.n == 0) {
        return false;
    }
    ddr_leave(e, &v->job);
    book(e, v, r.n);
    power_repeat(e, &r);
    SIM_ASSERT(e->now_ns > r.begin_ns && e->now_ns < before_ns);
    core_advance(c, e->now_ns);
    e->ddr_since_ns = e->now_ns;
    /* Set the shape of the last iteration if the run is over, else that of the next one, whose
     * sequences are one token longer. */
    bool over = r.n == most;
    grow(&l->pub->pass->shape, over ? r.n - 1 : r.n, far);
    if (over) {
        device_leave(e, v);
    } else {
        costs_follow(e, v, r.n);
    }
    core_pass_repeated(c, l, &r, !over);
    if (!over) {
        device_restart(e, v, r.lead_ns);
    }
    return true;
}

bool repeat_run(struct engine *e)
{
    struct vexec *v = e->fresh;
    if (!may_repeat(e, v)) {
        return false;
    }
    job_wait_over(e, &v->job); /* so that the end of its lead does not count as another event */
    int64_t before_ns = engine_free_until_ns(e);
    if (e->battery.feeds) {
        before_ns = battery_lasts_until_ns(e, v->job.device, before_ns);
    }
    bool ran = run(e, v, before_ns);
    if (!ran && v->phase == VEXEC_LEAD) {
        job_wait(e, &v->job, v->job.end_ns);
    }
    return ran;
}

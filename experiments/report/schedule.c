#include "experiments/report/schedule.h"

#include "experiments/report/schedule_impl.h"
#include "sim/base/hash.h"
#include "sim/metrics/usage.h"

/* ---- launches ---- */

/* ended_ns: in, the end of the previous row of the lane; out, that of this row. */
static void put_lane(struct spool *to, uint32_t device, uint32_t i, const struct lane *l,
                     int64_t *ended_ns)
{
    int64_t idle_ns = l->end_ns - l->start_ns - l->busy_ns;
    int64_t gap_ns = l->start_ns - *ended_ns;
    *ended_ns = l->end_ns;
    spool_row(to, (const int64_t[]){device, i, gap_ns, l->start_ns - l->submit_ns, l->busy_ns,
                                    idle_ns, l->n, l->kind, l->outcome, l->rows, l->set,
                                    1000 * l->outside_ns / (l->busy_ns > 0 ? l->busy_ns : 1)});
}

static void close_joined(struct schedule *s, uint32_t device, uint32_t i, struct lane *o)
{
    if (o->n > 0) {
        put_lane(&s->joined, device, i, o, &s->joined_end_ns[device][i]);
    }
    o->n = 0;
}

/* A launch extends the open row of its requests, or takes the place of the row that ended first. So
 * a device that alternates between a prompt and a batch has two rows. */
static void join(struct schedule *s, uint32_t device, uint32_t i, const struct lane *l)
{
    struct lane *open = s->open[device][i];
    struct lane *first = open;
    for (struct lane *o = open; o < open + SCHEDULE_OPEN; o++) {
        if (o->n > 0 && o->set == l->set && o->kind == l->kind &&
            l->start_ns - o->end_ns <= SCHEDULE_JOIN_NS) {
            SIM_ASSERT(l->start_ns >= o->start_ns && l->end_ns >= l->start_ns);
            o->n++;
            o->end_ns = l->end_ns;
            o->busy_ns += l->busy_ns;
            o->outside_ns += l->outside_ns;
            o->outcome = l->outcome;
            return;
        }
        first = o->n == 0 || (first->n > 0 && o->end_ns < first->end_ns) ? o : first;
    }
    close_joined(s, device, i, first);
    *first = *l;
}

static uint32_t set_of(struct schedule *s, const struct pass *p)
{
    struct sets *all = &s->sets;
    uint64_t key = HASH_INIT;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        key = hash_u64(key, p->segments[i].request->id);
    }
    size_t n = all->numbers.n;
    size_t number = map_number(&all->numbers, key);
    if (number == n) { /* a new set */
        all->ids = xroom(all->ids, all->n_ids + p->n_segments, &all->cap_ids, sizeof *all->ids);
        for (uint32_t i = 0; i < p->n_segments; i++) {
            all->ids[all->n_ids++] = p->segments[i].request->id;
        }
        all->end = xgrow(all->end, n, sizeof *all->end);
        all->end[n] = all->n_ids;
    }
    return (uint32_t)number;
}

static void on_launch_started(void *self, int64_t now_ns, const struct launch *l,
                              int64_t lead_ns UNUSED)
{
    struct schedule *s = self;
    const struct work_shape *w = &l->pass->shape;
    uint32_t i = 0;
    while (i + 1 < MACHINE_MAX_SHARED && s->lanes[l->device][i].running) {
        i++;
    }
    s->lanes[l->device][i] = (struct lane){
        .running = true,
        .launch_id = l->id,
        .set = set_of(s, l->pass),
        .kind = w->prefill_rows == 0        ? KIND_DECODE
                : w->prefill_rows < w->rows ? KIND_MIXED
                                            : KIND_PREFILL,
        .rows = l->rows,
        .n = 1,
        .submit_ns = l->submit_ns,
        .start_ns = now_ns,
    };
}

static void on_launch_ended(void *self, int64_t now_ns, const struct launch *l,
                            int64_t isolated_ns UNUSED, int64_t lost_ns UNUSED)
{
    struct schedule *s = self;
    for (uint32_t i = 0; i < MACHINE_MAX_SHARED; i++) {
        struct lane *x = &s->lanes[l->device][i];
        if (!x->running || x->launch_id != l->id) {
            continue;
        }
        x->running = false;
        x->end_ns = now_ns;
        x->busy_ns = now_ns - x->start_ns;
        const struct metrics_range *range = &s->o.range[l->pass->shape.model][l->device];
        bool outside = usage_rows_outside(range, l) || usage_context_outside(range, l);
        x->outside_ns = outside ? x->busy_ns : 0;
        x->outcome = (int64_t)l->outcome;
        if (s->launches.n <= SCHEDULE_MAX_LAUNCHES) { /* one row more marks an excess */
            put_lane(&s->launches, l->device, i, x, &s->lane_end_ns[l->device][i]);
        }
        join(s, l->device, i, x);
    }
}

static void on_kernel(void *self, const struct kernel_record *k)
{
    struct schedule *s = self;
    if (k->begin_ns >= s->o.from_ns && k->begin_ns < s->o.to_ns) {
        spool_row(&s->kernels, (const int64_t[]){k->launch->device, k->op, k->layer, k->begin_ns,
                                                 k->end_ns, k->isolated_ns});
    }
}

/* ---- requests ---- */

/* Sets the KV of a request to n tokens. */
static void kv_is(struct schedule *s, int64_t now_ns, uint32_t id, uint32_t n)
{
    uint32_t *was = map_add(&s->kv, id);
    s->kv_tokens += n;
    s->kv_tokens -= *was;
    *was = n;
    cells_set(&s->cells, KV_TOKENS, now_ns, (double)s->kv_tokens);
}

static void live_changes(struct schedule *s, int64_t now_ns, enum request_class cls, bool more)
{
    s->live[cls] = more ? s->live[cls] + 1 : s->live[cls] - 1;
    cells_set(&s->cells, LIVE_REACTIVE + (uint32_t)cls, now_ns, s->live[cls]);
}

static void on_arrived(void *self, int64_t now_ns, const struct request *r)
{
    struct schedule *s = self;
    s->arrived++;
    kv_is(s, now_ns, r->id, r->kv_tokens);
    live_changes(s, now_ns, r->cls, true);
}

static void on_tokens(void *self, int64_t now_ns, const struct pass *p)
{
    for (uint32_t i = 0; i < p->n_segments; i++) {
        kv_is(self, now_ns, p->segments[i].request->id, p->segments[i].request->kv_tokens);
    }
}

static void on_kv_lost(void *self, int64_t now_ns, const struct request *r, uint64_t tokens UNUSED)
{
    kv_is(self, now_ns, r->id, r->kv_tokens);
}

static void leaves(struct schedule *s, int64_t now_ns, const struct request *r, bool finished)
{
    kv_is(s, now_ns, r->id, 0);
    map_remove(&s->kv, r->id);
    live_changes(s, now_ns, r->cls, false);
    *(struct left *)map_add(&s->left, r->id) = (struct left){*r, finished, now_ns};
}

static void on_finished(void *self, int64_t now_ns, const struct request *r)
{
    leaves(self, now_ns, r, true);
}

static void on_shed(void *self, int64_t now_ns, const struct request *r)
{
    leaves(self, now_ns, r, false);
}

/* ---- the machine ---- */

static void on_ddr(void *self, int64_t now_ns, uint64_t count, int64_t duration_ns, double demand,
                   double share)
{
    struct schedule *s = self;
    int64_t begin = now_ns - duration_ns;
    (void)count; /* 1, because the observer wants kernels */
    begin = begin > s->ddr_end_ns ? begin : s->ddr_end_ns;
    cells_add(&s->cells, DDR_DEMAND, begin, now_ns, demand);
    cells_add(&s->cells, DDR_CARRIED, begin, now_ns, share);
    s->ddr_end_ns = now_ns;
}

static void on_power(void *self, int64_t now_ns, uint8_t domain, enum power_phase phase UNUSED,
                     double watts)
{
    struct schedule *s = self;
    cells_set(&s->cells, WATTS + (uint32_t)domain, now_ns, watts);
}

static void on_ended(void *self, int64_t now_ns)
{
    struct schedule *s = self;
    for (uint32_t d = 0; d < MACHINE_MAX_DEVICES; d++) {
        for (uint32_t i = 0; i < MACHINE_MAX_SHARED; i++) {
            for (uint32_t k = 0; k < SCHEDULE_OPEN; k++) {
                close_joined(s, d, i, &s->open[d][i][k]);
            }
        }
    }
    cells_end(&s->cells, now_ns);
    s->end_ns = now_ns;
}

/* ---- life ---- */

struct schedule *schedule_new(const struct machine *machine, const struct trace *trace,
                              const struct schedule_options *o)
{
    static const char launches[] =
        "device lane gap_ns wait_ns busy_ns idle_ns launches kind outcome rows set "
        "outside_thousandths";
    struct schedule *s = xkept(xcalloc(1, sizeof *s));
    s->machine = machine;
    s->trace = trace;
    s->o = *o;
    for (uint32_t i = 0; i < METRICS_MAX_MODELS * MACHINE_MAX_DEVICES; i++) {
        struct metrics_range *x = &s->o.range[i / MACHINE_MAX_DEVICES][i % MACHINE_MAX_DEVICES];
        *x = usage_range_limit(*x);
    }
    s->explain = explain_new(machine, EXPLAIN_ALL);
    spool_init(&s->launches, launches);
    spool_init(&s->joined, launches);
    spool_init(&s->kernels, "device op layer begin_ns end_ns isolated_ns");
    s->left.record_bytes = sizeof(struct left);
    cells_init(&s->cells, N_SIGNALS);
    for (uint32_t d = 0; d < machine->n_devices; d++) {
        s->cells.value[WATTS + d] = machine->devices[d].idle_watts;
    }
    s->observer = (struct observer){
        .self = s,
        .wants_kernels = true,
        .request_arrived = on_arrived,
        .tokens = on_tokens,
        .request_finished = on_finished,
        .request_shed = on_shed,
        .launch_started = on_launch_started,
        .launch_ended = on_launch_ended,
        .kernel = on_kernel,
        .kv_lost = on_kv_lost,
        .ddr = on_ddr,
        .power = on_power,
        .run_ended = on_ended,
    };
    return s;
}

void schedule_price(struct schedule *s, const struct hwmodel *model)
{
    explain_price(s->explain, model);
}

struct observer *schedule_observer(struct schedule *s)
{
    return &s->observer;
}

struct observer *schedule_explainer(struct schedule *s)
{
    return explain_observer(s->explain);
}

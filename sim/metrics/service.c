/* Times in which requests are served or wait, from the launches and passes of a run. */
#include "sim/metrics/metrics_impl.h"

/* Stores which devices an arriving request finds busy with proactive work only. */
void service_arrived(struct metrics *m, struct live *v, const struct request *r)
{
    uint32_t proactive = 0;
    uint32_t reactive = 0;
    for (uint32_t i = 0; i < m->usage.n_running; i++) {
        uint32_t bit = 1u << m->usage.running[i].device;
        *(m->usage.running[i].has_reactive ? &reactive : &proactive) |= bit;
    }
    for (uint32_t d = 0; d < m->machine->n_devices; d++) {
        bool preempts =
            r->cls == REQUEST_CLASS_REACTIVE && (proactive & ~reactive & (1u << d)) != 0;
        v->residual_end_ns[d] = preempts ? RESIDUAL_ACTIVE : RESIDUAL_NONE;
        v->clear_ns[d] = usage_clear_ns(&m->usage, (uint8_t)d, r->arrival_ns);
        if (preempts) {
            LIST_ADD(m->waiting[d].v, m->waiting[d].n, (struct waiter){r->slot, r->id});
        }
    }
}

/* Ends a wait, which counts for prefill until the first token, then for decode. */
static void close_wait(struct live *v, int64_t now_ns)
{
    int64_t *sum = v->request->generated_tokens > 0 ? &v->decode_pending_ns : &v->suspended_ns;
    SIM_ASSERT(now_ns >= metrics_since_ns(v));
    *sum += now_ns - metrics_since_ns(v);
}

static const struct usage_launch *launch_of(const struct metrics *m, const struct launch *l)
{
    uint32_t i = 0;
    while (i < m->usage.n_running && m->usage.running[i].id != l->id) {
        i++;
    }
    SIM_REQUIRE(i < m->usage.n_running, "launch %u serves and does not run", l->id);
    return &m->usage.running[i];
}

/* Adds the wait of a reactive request behind proactive work. Time in which its device ran other
 * reactive requests does not count, because it would wait for them without proactive work, too. */
void service_first_service(void *self, int64_t now_ns, const struct request *r,
                           const struct launch *l)
{
    struct metrics *m = self;
    struct live *v = metrics_live(m, r);
    if (v == NULL) {
        return;
    }
    uint8_t device = l->device;
    v->served = true;
    if (v->residual_end_ns[device] == RESIDUAL_NONE ||
        !metrics_measured(m, v->request->arrival_ns)) {
        return;
    }
    enum request_class cls = v->request->cls;
    int64_t end_ns = v->residual_end_ns[device];
    int64_t before_ns = launch_of(m, l)->clear_ns - v->clear_ns[device];
    SIM_ASSERT(before_ns >= 0 && now_ns >= l->start_ns);
    double latency = units_s_from_ns(before_ns + now_ns - l->start_ns);
    double residual =
        end_ns == RESIDUAL_ACTIVE ? 0.0 : units_s_from_ns(end_ns - v->clear_ns[device]);
    series_add(&m->series[SERIES_PREEMPT], cls, latency);
    series_add(&m->series[SERIES_PREEMPT_RESIDUAL], cls, residual);
    series_add(&m->series[SERIES_PREEMPT_REST], cls, latency - residual);
}

/* The request's service has ended. */
static void set_since(struct metrics *m, const struct request *r, int64_t now_ns)
{
    struct live *v = metrics_live(m, r);
    if (v != NULL) {
        v->since_ns = now_ns;
    }
}

/* Whether a launch of the request runs. */
bool service_runs(const struct metrics *m, const struct request *r)
{
    for (uint32_t i = 0; i < m->usage.n_running; i++) {
        const struct pass *p = m->usage.running[i].pass;
        for (uint32_t k = 0; k < p->n_segments; k++) {
            if (p->segments[k].request == r) {
                return true;
            }
        }
    }
    return false;
}

void service_launch_started(void *self, int64_t now_ns, const struct launch *l, int64_t lead_ns)
{
    struct metrics *m = self;
    const struct pass *p = l->pass;
    bool first = !usage_runs(&m->usage, p);
    usage_launch_started(&m->usage, l, lead_ns);
    for (uint32_t i = 0; i < p->n_segments && first; i++) {
        const struct request *r = p->segments[i].request;
        struct live *v = r->last_token_ns != now_ns ? metrics_live(m, r) : NULL;
        if (v != NULL && v->served && metrics_since_ns(v) != now_ns) {
            close_wait(v, now_ns);
        }
    }
}

void service_launch_ended(void *self, int64_t now_ns, const struct launch *l, int64_t isolated_ns,
                          int64_t lost_ns)
{
    struct metrics *m = self;
    if (!usage_launch_ended(&m->usage, l, isolated_ns, lost_ns)) {
        return;
    }
    *(l->pass->shape.prefill_rows > 0 ? &m->prefill_ns : &m->decode_ns) += isolated_ns;
    struct waiters *w = &m->waiting[l->device];
    for (size_t i = 0; i < w->n; i++) {
        struct live *v = &m->live[w->v[i].slot];
        /* The request may have left, and another one may have its slot: compare the id. */
        if (v->request != NULL && v->request->id == w->v[i].id) {
            v->residual_end_ns[l->device] = usage_clear_ns(&m->usage, l->device, now_ns);
        }
    }
    w->n = 0;
    const struct pass *p = l->pass;
    /* A request is in service while the host samples. */
    bool in_tail = p->op == p->n_ops && p->n_launches == 0 && p->shape.logit_rows > 0;
    bool served = in_tail || usage_runs(&m->usage, p);
    for (uint32_t i = 0; i < p->n_segments && !served; i++) {
        set_since(m, p->segments[i].request, now_ns);
    }
}

void service_preempt_asked(void *self, int64_t now_ns UNUSED, const struct launch *l)
{
    struct metrics *m = self;
    m->totals[l->pass->has_reactive ? REQUEST_CLASS_REACTIVE : REQUEST_CLASS_PROACTIVE]
        .stops_asked++;
}

static inline void tokens_of(struct metrics *m, const struct segment *s)
{
    const struct request *r = s->request;
    struct class_totals *t = &m->totals[r->cls];
    uint32_t n = s->emitted_tokens;
    SIM_ASSERT(n > 0 && n <= r->generated_tokens && s->gap_ns >= 0);
    bool measured = metrics_measured(m, r->arrival_ns);
    t->output_tokens += n;
    if (r->generated_tokens == n) { /* the first token's gap is the TTFT */
        SIM_ASSERT(s->gap_ns == r->first_token_ns - r->arrival_ns);
        t->input_tokens += r->input_tokens;
    } else if (measured) {
        metrics_gap(m, r->cls, s->gap_ns, 1);
    }
    if (n > 1 && measured) {
        t->zero_gaps += n - 1;
    }
    if (s->role == SEGMENT_VERIFY) {
        m->verifies++;
        m->drafted_tokens += s->n_tokens - 1;
        m->accepted_tokens += n - 1;
    }
}

void service_tokens(void *self, int64_t now_ns, const struct pass *p)
{
    struct metrics *m = self;
    if (metrics_has_reader(m)) {
        qoe_tokens(m, now_ns, p);
    }
    uint32_t tokens = 0;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct segment *s = &p->segments[i];
        if (s->emitted_tokens > 0) {
            tokens_of(m, s);
            tokens += s->emitted_tokens;
        } else {
            set_since(m, s->request, now_ns);
        }
    }
    m->prefill_rows += p->shape.prefill_rows;
    if (p->shape.prefill_rows == 0 && tokens > 0) { /* no pass of a model that drafts */
        m->decode_passes++;
        m->decode_sequences += p->n_segments;
        m->decode_tokens += tokens;
    }
}

void service_repeated(void *self, int64_t now_ns, const struct repeat_record *r)
{
    struct metrics *m = self;
    const struct pass *p = r->launch->pass;
    uint32_t measured[REQUEST_CLASS_COUNT] = {0};
    int64_t first_ns = r->begin_ns + r->gap_ns[0];
    if (metrics_has_reader(m)) {
        qoe_repeated(m, r);
    }
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct request *q = p->segments[i].request;
        m->totals[q->cls].output_tokens += r->n;
        if (metrics_measured(m, q->arrival_ns)) {
            /* Each request's first gap is its own. */
            metrics_gap(m, q->cls, first_ns - q->last_token_ns, 1);
            measured[q->cls]++;
        }
    }
    for (int c = 0; c < REQUEST_CLASS_COUNT; c++) {
        for (uint32_t k = 1; k < r->n && measured[c] > 0; k++) {
            metrics_gap(m, (enum request_class)c, r->gap_ns[k], measured[c]);
        }
    }
    m->decode_ns += usage_repeated(&m->usage, r, now_ns);
    SIM_ASSERT(p->shape.prefill_rows == 0 && r->n > 0);
    m->decode_passes += r->n;
    m->decode_sequences += (uint64_t)r->n * p->n_segments;
    m->decode_tokens += (uint64_t)r->n * p->n_segments;
}

void service_judge_work(struct metrics *m)
{
    double prefill_ns = (double)m->prefill_ns;
    double decode_ns = (double)m->decode_ns;
    double per_row_ns = m->prefill_rows > 0 ? prefill_ns / (double)m->prefill_rows : 0.0;
    m->backlog.prompt_token_ns = per_row_ns;
    m->backlog.output_token_ns = m->decode_tokens > 0 ? decode_ns / (double)m->decode_tokens : 0.0;
    uint64_t rows = 0;
    uint64_t finished = 0;
    uint32_t live = 0;
    for (uint32_t i = 0; i < m->live_cap; i++) {
        const struct request *r = m->live[i].request;
        rows += r != NULL ? request_prefill_left(r) : 0;
        live += r != NULL;
    }
    for (int c = 0; c < REQUEST_CLASS_COUNT; c++) {
        finished += m->totals[c].finished;
    }
    m->backlog.unserved_ns = per_row_ns * (double)rows +
                             (finished > 0 ? decode_ns * (double)live / (double)finished : 0.0);
}

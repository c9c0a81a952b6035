/* The observer: follows every request from arrival to finish. */
#include "sim/metrics/metrics.h"

#include "sim/metrics/metrics_impl.h"

struct metrics_options metrics_options_default(void)
{
    return (struct metrics_options){
        .util_prefill_frac = 1.00,
        .util_decode_frac = 0.46,
        .tier_medium_frac = 0.4,
        .tier_high_frac = 0.7,
        .starvation_s = 60.0,
        .verdict = {.settled_max_frac = 0.11, .growing_min_t = 2.4},
        .horizon_ns = TIME_NEVER_NS,
    };
}

/* ---- arrivals ---- */

static void note_gap(struct class_totals *t, int64_t now_ns)
{
    if (t->arrived == 0) {
        t->first_arrival_ns = now_ns;
    } else {
        double gap = (double)(now_ns - t->last_arrival_ns);
        SIM_ASSERT(gap >= 0.0);
        double d = gap - t->gap_mean_ns;
        t->gap_mean_ns += d / (double)t->arrived; /* number of gaps = arrivals before this one */
        t->gap_m2 += d * (gap - t->gap_mean_ns);
    }
    t->last_arrival_ns = now_ns;
    t->arrived++;
}

/* All requests that have finished belong to truncated distributions. */
static void settle_ended(struct metrics *m)
{
    for (int c = 0; c < REQUEST_CLASS_COUNT; c++) {
        m->totals[c].truncated = m->totals[c].finished;
        metrics_ended_flush(m, (enum request_class)c);
    }
}

static struct live *live_add(struct metrics *m, const struct request *r)
{
    SIM_ASSERT(metrics_live(m, r) == NULL); /* slots are unique */
    while (r->slot >= m->live_cap) {
        uint32_t cap = m->live_cap == 0 ? 64 : 2 * m->live_cap;
        m->live = xrealloc(m->live, cap * sizeof *m->live);
        memset(&m->live[m->live_cap], 0, (cap - m->live_cap) * sizeof *m->live);
        m->live_cap = cap;
    }
    struct live *v = &m->live[r->slot]; /* service_arrived fills the rest */
    v->request = r;
    v->suspended_ns = 0;
    v->decode_pending_ns = 0;
    v->recomputed_tokens = 0;
    v->reading = (struct reading){0};
    v->served = false;
    return v;
}

static inline void live_remove(struct metrics *m, const struct request *r)
{
    struct live *v = metrics_live(m, r);
    if (v != NULL) {
        v->request = NULL;
    }
}

/* Whether this is the last turn of its session in the trace. */
static inline bool ends_session(const struct metrics *m, const struct request *r)
{
    return m->opt.trace != NULL && map_record(&m->inner_turns, r->id) == NULL;
}

/* Begins a turn of a session with several turns, and ends the previous turn. The first turn to
 * arrive may be a later one of the trace: those before it never do where ends_with cancels them. */
static void session_turn(struct metrics *m, const struct request *r)
{
    bool first = map_record(&m->sessions, r->session_id) == NULL;
    struct session *s = map_add(&m->sessions, r->session_id);
    if (first) {
        s->first_arrival_ns = r->arrival_ns;
    } else {
        metrics_turn(m, s, r->arrival_ns);
    }
    s->turn_arrival_ns = r->arrival_ns;
    s->turn_cls = r->cls;
}

static void on_arrived(void *self, int64_t now_ns, const struct request *r)
{
    struct metrics *m = self;
    settle_ended(m);
    note_gap(&m->totals[r->cls], now_ns);
    backlog_arrive(&m->backlog, now_ns, r->input_tokens, r->max_output_tokens);
    jobs_arrived(&m->jobs, r);
    struct live *v = live_add(m, r);
    v->since_ns = now_ns;
    service_arrived(m, v, r);
    bool single = r->turn == 0 && ends_session(m, r);
    if (single && m->client_is_session) {
        m->closed_clients.open++;
    } else {
        (void)map_add(&m->clients, r->client_id);
    }
    if (!single) {
        session_turn(m, r);
    }
}

static void on_kv_lost(void *self, int64_t now_ns UNUSED, const struct request *r, uint64_t tokens)
{
    struct metrics *m = self;
    SIM_ASSERT(tokens > 0);
    m->totals[r->cls].evictions++;
    m->totals[r->cls].recomputed_tokens += tokens;
    struct live *v = metrics_live(m, r);
    if (v != NULL) {
        v->recomputed_tokens += (uint32_t)tokens;
    }
}

/* ---- the end of a request ---- */

static inline void slo_judge(struct class_totals *t, const struct request *r, bool finished,
                             int64_t now_ns)
{
    if (r->ttft_slo_ns == TIME_NEVER_NS && r->tbt_slo_ns == TIME_NEVER_NS &&
        r->deadline_ns == TIME_NEVER_NS) {
        return;
    }
    t->slo_carriers++;
    if (!finished) {
        return;
    }
    int64_t gaps = r->generated_tokens > 1 ? r->generated_tokens - 1 : 0;
    bool ttft_ok =
        r->ttft_slo_ns == TIME_NEVER_NS || r->first_token_ns - r->arrival_ns <= r->ttft_slo_ns;
    bool tpot_ok =
        r->tbt_slo_ns == TIME_NEVER_NS || gaps == 0 ||
        (double)(r->last_token_ns - r->first_token_ns) <= (double)r->tbt_slo_ns * (double)gaps;
    t->slo_met += ttft_ok && tpot_ok && now_ns <= r->deadline_ns ? 1 : 0;
}

/* The latency of the session that ends with this turn. NaN when the session continues, had a turn
 * shed, or began in the warm-up. */
static double session_leave(struct metrics *m, const struct request *r, int64_t now_ns)
{
    int64_t first_ns = r->arrival_ns;
    struct session *s = map_record(&m->sessions, r->session_id);
    if (s != NULL) { /* it had other turns */
        s->last_finish_ns = now_ns;
        s->cls = r->cls;
        if (!ends_session(m, r)) {
            return METRIC_UNDEFINED;
        }
        first_ns = s->first_arrival_ns;
        bool broken = s->broken;
        map_remove(&m->sessions, r->session_id);
        if (broken) {
            return METRIC_UNDEFINED;
        }
    }
    return metrics_measured(m, first_ns) ? units_s_from_ns(now_ns - first_ns) : METRIC_UNDEFINED;
}

static void client_close(struct metrics *m, uint64_t tokens)
{
    double x = (double)tokens;
    m->closed_clients.n++;
    m->closed_clients.sum += x;
    m->closed_clients.squares += x * x;
}

static inline void client_leave(struct metrics *m, const struct request *r, uint64_t tokens)
{
    bool closes = m->client_is_session && ends_session(m, r);
    if (closes && r->turn == 0) { /* a single turn */
        m->closed_clients.open--;
        client_close(m, tokens);
        return;
    }
    struct client *c = map_add(&m->clients, r->client_id);
    c->tokens += tokens;
    if (closes) {
        client_close(m, c->tokens);
        map_remove(&m->clients, r->client_id);
    }
}

/* Room for one more. */
static double *ended_push(struct metrics *m, enum request_class cls)
{
    struct ended *e = &m->ended[cls];
    e->rows = xroom(e->rows, e->n + 1, &e->cap, sizeof *e->rows);
    return e->rows[e->n++];
}

static void add_latencies(double row[ENDED_COUNT], const struct request *r, int64_t now_ns)
{
    double in = (double)r->input_tokens;
    double out = (double)r->generated_tokens;
    double e2e = units_s_from_ns(now_ns - r->arrival_ns);
    double ttft = units_s_from_ns(r->first_token_ns - r->arrival_ns);
    double after_first = units_s_from_ns(r->last_token_ns - r->first_token_ns);
#define FINISHED(id, part, title, unit, better, definition, value) row[ENDED_##id] = value;
#include "sim/metrics/metrics.def"
}

static void add_no_waits(double row[ENDED_COUNT])
{
#define WAITED(id, ...) row[ENDED_##id] = METRIC_UNDEFINED;
#include "sim/metrics/metrics.def"
}

static void add_waits(double row[ENDED_COUNT], const struct request *r, const struct live *v)
{
    if (v == NULL) {
        add_no_waits(row);
        return;
    }
    SIM_ASSERT(v->request == r);
    SIM_ASSERT(v->suspended_ns >= 0 && v->decode_pending_ns >= 0);
    int64_t pending_ns = r->first_service_ns - r->arrival_ns;
    double wait = units_s_from_ns(pending_ns + v->suspended_ns + v->decode_pending_ns);
#define WAITED(id, part, title, unit, better, definition, value) row[ENDED_##id] = value;
#include "sim/metrics/metrics.def"
}

static void ended_add(struct metrics *m, const struct request *r, const struct live *v,
                      int64_t now_ns)
{
    double *row = ended_push(m, r->cls);
    add_latencies(row, r, now_ns);
    add_waits(row, r, v);
    row[ENDED_SESSION] = session_leave(m, r, now_ns);
    row[ENDED_TURN] = ends_session(m, r) ? row[ENDED_E2E] : METRIC_UNDEFINED;
    m->totals[r->cls].starved += row[ENDED_WAIT] > m->opt.starvation_s ? 1 : 0;
    if (!metrics_measured(m, r->arrival_ns)) {
        m->ended[r->cls].n--; /* counted only */
    }
}

static void leave_job(struct metrics *m, const struct request *r, bool finished, int64_t now_ns)
{
    const struct job *j = jobs_left(&m->jobs, r, finished);
    if (j != NULL && metrics_measured(m, j->first_arrival_ns)) {
        series_add(&m->series[SERIES_JOB], (enum request_class)j->cls,
                   units_s_from_ns(now_ns - j->first_arrival_ns));
    }
}

static void on_finished(void *self, int64_t now_ns, const struct request *r)
{
    struct metrics *m = self;
    struct class_totals *t = &m->totals[r->cls];
    SIM_ASSERT(r->arrival_ns <= r->first_service_ns && r->first_service_ns <= r->first_token_ns);
    SIM_ASSERT(r->first_token_ns <= r->last_token_ns && r->last_token_ns <= now_ns);
    SIM_ASSERT(t->finished + t->shed < t->arrived);
    t->finished++;
    t->e2e_ns += now_ns - r->arrival_ns;
    t->tokens += r->input_tokens + r->generated_tokens;
    t->preemptions += r->preemptions;
    t->prompt_tokens += r->input_tokens;
    t->cached_tokens += r->reused_tokens;
    m->last_finish_ns = now_ns;
    const struct live *v = metrics_live(m, r);
    ended_add(m, r, v, now_ns);
    if (metrics_has_reader(m) && metrics_measured(m, r->arrival_ns)) {
        series_add(&m->series[SERIES_QOE], r->cls, qoe_of(m, v));
    }
    slo_judge(t, r, true, now_ns);
    client_leave(m, r, r->input_tokens + r->generated_tokens);
    leave_job(m, r, true, now_ns);
    backlog_leave(&m->backlog, now_ns, r->input_tokens, r->max_output_tokens);
    if (m->opt.records) {
        records_add(m, r, v, true, now_ns);
    }
    live_remove(m, r);
}

/* Whether an unfinished request has waited longer than the threshold. */
static bool starves(const struct metrics *m, const struct live *v, int64_t now_ns)
{
    const struct request *r = v->request;
    int64_t first_ns = v->served ? r->first_service_ns : now_ns;
    int64_t wait_ns = first_ns - r->arrival_ns + v->suspended_ns + v->decode_pending_ns;
    if (v->served && !service_runs(m, r)) {
        wait_ns += now_ns - metrics_since_ns(v);
    }
    return units_s_from_ns(wait_ns) > m->opt.starvation_s;
}

static void on_shed(void *self, int64_t now_ns, const struct request *r)
{
    struct metrics *m = self;
    SIM_ASSERT(m->totals[r->cls].finished + m->totals[r->cls].shed < m->totals[r->cls].arrived);
    const struct live *v = metrics_live(m, r);
    m->totals[r->cls].shed++;
    m->totals[r->cls].starved += v != NULL && starves(m, v, now_ns) ? 1 : 0;
    m->totals[r->cls].preemptions += r->preemptions;
    slo_judge(&m->totals[r->cls], r, false, now_ns);
    struct session *s = map_record(&m->sessions, r->session_id);
    if (ends_session(m, r)) {
        map_remove(&m->sessions, r->session_id);
    } else if (s != NULL) {
        s->broken = true;
    }
    client_leave(m, r, 0);
    leave_job(m, r, false, now_ns);
    backlog_leave(&m->backlog, now_ns, r->input_tokens, r->max_output_tokens);
    if (m->opt.records) {
        records_add(m, r, v, false, now_ns);
    }
    live_remove(m, r);
}

/* ---- the machine ---- */

static void on_power(void *self, int64_t now_ns, uint8_t domain, enum power_phase phase,
                     double watts)
{
    usage_power(&((struct metrics *)self)->usage, now_ns, domain, phase, watts);
}

static void on_ddr(void *self, int64_t now_ns UNUSED, uint64_t count, int64_t duration_ns,
                   double demand_bytes_per_s, double share_bytes_per_s)
{
    usage_ddr(&((struct metrics *)self)->usage, count, duration_ns, demand_bytes_per_s,
              share_bytes_per_s);
}

static void on_speed(void *self, int64_t now_ns, double speed)
{
    usage_speed(&((struct metrics *)self)->usage, now_ns, speed);
}

static void on_frame(void *self, int64_t now_ns, uint8_t device UNUSED, enum frame_state to,
                     int64_t due_ns)
{
    usage_frame(&((struct metrics *)self)->usage, now_ns, to, due_ns);
}

static bool who_came_left_or_lives(const struct metrics *m)
{
    uint64_t live = 0;
    for (uint32_t i = 0; i < m->live_cap; i++) {
        SIM_ASSERT(m->live[i].request == NULL || m->live[i].request->slot == i);
        live += m->live[i].request != NULL;
    }
    SIM_ASSERT(m->backlog.n_system == live);
    for (int c = 0; c < REQUEST_CLASS_COUNT; c++) {
        live += m->totals[c].finished + m->totals[c].shed;
    }
    return live == m->totals[0].arrived + m->totals[1].arrived;
}

static void on_run_ended(void *self, int64_t now_ns)
{
    struct metrics *m = self;
    m->end_ns = now_ns;
    usage_finish(&m->usage, now_ns);
    backlog_finish(&m->backlog, now_ns);
    SIM_ASSERT(who_came_left_or_lives(m));
    service_judge_work(m);
    for (uint32_t i = 0; i < m->live_cap; i++) {
        const struct live *v = &m->live[i];
        const struct request *r = v->request;
        if (r == NULL) {
            continue;
        }
        struct class_totals *t = &m->totals[r->cls];
        t->starved += starves(m, v, now_ns) ? 1 : 0;
        t->preemptions += r->preemptions;
        slo_judge(t, r, false, now_ns);
        if (m->opt.records) {
            records_add(m, r, v, false, now_ns);
        }
    }
    if (now_ns >= m->opt.horizon_ns) {
        settle_ended(m);
    }
}

/* ---- life ---- */

static void note_inner_turns(struct metrics *m)
{
    const struct trace *t = m->opt.trace;
    for (size_t i = 0; t != NULL && t->rows != NULL && i < t->n; i++) {
        if (t->rows[i].next != TRACE_NO_ROW) {
            (void)map_add(&m->inner_turns, t->rows[i].request_id);
        }
    }
}

struct metrics *metrics_new(const struct metrics_options *opt, const struct machine *machine)
{
    struct metrics *m = xlines(sizeof *m);
    m->opt = *opt;
    m->machine = machine;
    for (int s = 0; s < SERIES_COUNT; s++) {
        for (int g = 0; g < GROUP_COUNT; g++) {
            sample_init(&m->series[s].of[g], opt->sketch);
        }
    }
    for (int s = 0; s < TRUNCATED_COUNT; s++) {
        for (int g = 0; g < GROUP_COUNT; g++) {
            sample_init(&m->truncated[s].of[g], opt->sketch);
        }
    }
    m->sessions.record_bytes = sizeof(struct session);
    m->clients.record_bytes = sizeof(struct client);
    note_inner_turns(m);
    m->client_is_session = opt->trace != NULL && opt->trace->extras == NULL;
    backlog_init(&m->backlog);
    jobs_init(&m->jobs, opt->trace);
    usage_init(&m->usage, machine, opt->tier_medium_frac, opt->tier_high_frac, &opt->range[0][0]);
    m->observer = (struct observer){
        .self = m,
        .request_arrived = on_arrived,
        .request_first_service = service_first_service,
        .tokens = service_tokens,
        .request_finished = on_finished,
        .request_shed = on_shed,
        .repeated = service_repeated,
        .launch_started = service_launch_started,
        .launch_ended = service_launch_ended,
        .preempt_asked = service_preempt_asked,
        .kv_lost = on_kv_lost,
        .ddr = on_ddr,
        .power = on_power,
        .frame = on_frame,
        .speed = on_speed,
        .run_ended = on_run_ended,
    };
    return m;
}

void metrics_free(struct metrics *m)
{
    if (m == NULL) {
        return;
    }
    for (int g = 0; g < GROUP_COUNT; g++) {
        for (int s = 0; s < SERIES_COUNT; s++) {
            sample_fini(&m->series[s].of[g]);
        }
        for (int s = 0; s < TRUNCATED_COUNT; s++) {
            sample_fini(&m->truncated[s].of[g]);
        }
    }
    for (int d = 0; d < MACHINE_MAX_DEVICES; d++) {
        free(m->waiting[d].v);
    }
    jobs_fini(&m->jobs);
    free(m->live);
    map_fini(&m->sessions);
    map_fini(&m->clients);
    map_fini(&m->inner_turns);
    for (int c = 0; c < REQUEST_CLASS_COUNT; c++) {
        free(m->ended[c].rows);
    }
    free(m->records);
    free(m);
}

struct observer *metrics_observer(struct metrics *m)
{
    return &m->observer;
}

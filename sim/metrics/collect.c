/* Makes the flat list of named metrics from samples and totals. */
#include "sim/metrics/metrics_impl.h"

static const char *const group_names[GROUP_COUNT] = {"reactive", "proactive", "all"};

static const struct {
    const char *name;
    bool reactive_only;
} series_names[SERIES_COUNT] = {
#define SERIES(id, part, ...) [SERIES_##id] = {part, false},
#define REACTIVE_SERIES(id, part, ...) [SERIES_##id] = {part, true},
#define FINISHED(id, part, ...) [SERIES_##id] = {part, false},
#define WAITED(id, part, ...) [SERIES_##id] = {part, false},
#include "sim/metrics/metrics.def"
};

static const char *const truncated_names[TRUNCATED_COUNT] = {
    [TRUNCATED_TTFT] = "ttft_s",
    [TRUNCATED_E2E] = "e2e_s",
    [TRUNCATED_NORM_TOKEN] = "norm_e2e_per_token_s",
};

static const double usual_percents[] = {50.0, 90.0, 95.0, 99.0};

bool metrics_quantile_is_usual(double percent)
{
    bool found = false;
    for (size_t i = 0; i < sizeof usual_percents / sizeof usual_percents[0]; i++) {
        found = found || usual_percents[i] == percent;
    }
    return found;
}

/* ---- pending values ---- */

void metrics_gaps_flush(struct metrics *m, enum request_class cls)
{
    struct gap_run *g = &m->gaps[cls];
    if (g->count > 0) {
        series_add_n(&m->series[SERIES_TBT_STEP], cls, units_s_from_ns(g->gap_ns), g->count);
        g->count = 0;
    }
}

void metrics_ended_flush(struct metrics *m, enum request_class cls)
{
    static const enum series_id series[ENDED_COUNT] = {
#define FINISHED(id, ...) [ENDED_##id] = SERIES_##id,
#define WAITED(id, ...) [ENDED_##id] = SERIES_##id,
#include "sim/metrics/metrics.def"
        [ENDED_SESSION] = SERIES_SESSION,
        [ENDED_TURN] = SERIES_TURN,
    };
    struct ended *e = &m->ended[cls];
    for (size_t i = 0; i < e->n; i++) {
        for (int k = 0; k < ENDED_COUNT; k++) {
            double x = e->rows[i][k];
            SIM_ASSERT(!(x < 0.0));
            if (!isnan(x)) {
                series_add(&m->series[series[k]], cls, x);
            }
        }
    }
    e->n = 0;
}

/* ---- distributions ---- */

static double per(double x, double y)
{
    return y > 0.0 ? x / y : METRIC_UNDEFINED;
}

/* Quantile of a sample of non-negative values and `zeros` further zeros: rank ceil(p * (zeros + n))
 * is a zero, or a rank within the sample. */
static double quantile_with_zeros(struct sample *s, uint64_t zeros, double p)
{
    if (zeros == 0) {
        return sample_quantile(s, p);
    }
    double rank = ceil(p * (double)(zeros + s->n));
    if (rank <= (double)zeros) {
        return 0.0;
    }
    /* Half a rank less, so that rounding cannot reach the next rank. */
    return sample_quantile(s, (rank - (double)zeros - 0.5) / (double)s->n);
}

/* Adds the shares of a sample with `zeros` further zeros. */
static void put_shares(const struct metrics *m, struct metric_list *out, const struct sample *s,
                       uint64_t zeros, const char *prefix, const char *name)
{
    for (uint32_t i = 0; i < m->opt.asked.n_limits; i++) {
        double limit = m->opt.asked.limit[i];
        double upto = (double)(sample_count_upto(s, limit) + zeros);
        metric_list_put(out, per(upto, (double)(s->n + zeros)), "%s.%s.below:%g", prefix, name,
                        limit);
    }
}

static void put_quantiles(struct metric_list *out, struct sample *s, uint64_t zeros,
                          const double *percent, size_t n, const char *prefix, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        bool any = s->n + zeros > 0;
        double q = any ? quantile_with_zeros(s, zeros, percent[i] / 100.0) : METRIC_UNDEFINED;
        metric_list_put(out, q, "%s.%s.p%g", prefix, name, percent[i]);
    }
}

static void put_distribution(const struct metrics *m, struct metric_list *out, struct sample *s,
                             uint64_t zeros, const char *prefix, const char *name)
{
    double n = (double)(s->n + zeros);
    double mean = s->n > 0 ? sample_mean(s) * ((double)s->n / n) : n > 0.0 ? 0.0 : METRIC_UNDEFINED;
    metric_list_put(out, mean, "%s.%s.mean", prefix, name);
    put_quantiles(out, s, zeros, usual_percents, sizeof usual_percents / sizeof usual_percents[0],
                  prefix, name);
    put_quantiles(out, s, zeros, m->opt.asked.percent, m->opt.asked.n_percents, prefix, name);
    put_shares(m, out, s, zeros, prefix, name);
    double max = s->n > 0 ? s->max : n > 0.0 ? 0.0 : METRIC_UNDEFINED;
    metric_list_put(out, max, "%s.%s.max", prefix, name);
    metric_list_put(out, n, "%s.%s.n", prefix, name);
}

/* Fills GROUP_ALL from the two classes. */
static void merge_all(struct series *s)
{
    sample_merge(&s->of[GROUP_ALL], &s->of[GROUP_REACTIVE]);
    sample_merge(&s->of[GROUP_ALL], &s->of[GROUP_PROACTIVE]);
}

/* ---- totals ---- */

static struct class_totals totals_of(const struct metrics *m, int group)
{
    if (group != GROUP_ALL) {
        return m->totals[group];
    }
    struct class_totals t = m->totals[0];
    const struct class_totals *o = &m->totals[1];
    t.arrived += o->arrived;
    t.finished += o->finished;
    t.shed += o->shed;
    t.input_tokens += o->input_tokens;
    t.output_tokens += o->output_tokens;
    t.zero_gaps += o->zero_gaps;
    t.e2e_ns += o->e2e_ns;
    t.tokens += o->tokens;
    t.preemptions += o->preemptions;
    t.evictions += o->evictions;
    t.recomputed_tokens += o->recomputed_tokens;
    t.prompt_tokens += o->prompt_tokens;
    t.cached_tokens += o->cached_tokens;
    t.starved += o->starved;
    t.stops_asked += o->stops_asked;
    t.slo_carriers += o->slo_carriers;
    t.slo_met += o->slo_met;
    t.truncated += o->truncated;
    return t;
}

static void put_arrivals(const struct class_totals *t, const char *prefix, struct metric_list *out)
{
    double gaps = t->arrived > 1 ? (double)(t->arrived - 1) : 0.0;
#define ARRIVALS(part, title, unit, better, definition, value)                                     \
    metric_list_put(out, value, "%s." part, prefix);
#include "sim/metrics/metrics.def"
}

static void put_totals(const struct metrics *m, const struct class_totals *t, const char *prefix,
                       struct metric_list *out)
{
    const struct backlog *b = &m->backlog;
    int64_t to_ns = b->n_system > 0 ? m->end_ns : m->last_finish_ns;
    double span_s = to_ns > b->first_ns && b->arrivals > 0 ? units_s_from_ns(to_ns - b->first_ns)
                                                           : METRIC_UNDEFINED;
#define TOTAL(part, title, unit, better, definition, value)                                        \
    metric_list_put(out, value, "%s." part, prefix);
#include "sim/metrics/metrics.def"
}

static void collect_group(struct metrics *m, int group, struct metric_list *out)
{
    const char *name = group_names[group];
    struct class_totals t = totals_of(m, group);
    for (int s = 0; s < SERIES_COUNT; s++) {
        if (series_names[s].reactive_only && group != GROUP_REACTIVE) {
            continue;
        }
        if (s == SERIES_QOE && !metrics_has_reader(m)) {
            continue;
        }
        struct sample *sample = &m->series[s].of[group];
        if (s == SERIES_TBT_STEP) {
            put_distribution(m, out, sample, t.zero_gaps, name, "tbt_s");
        }
        put_distribution(m, out, sample, 0, name, series_names[s].name);
    }
    put_totals(m, &t, name, out);
    if (group != GROUP_ALL) {
        put_arrivals(&t, name, out);
    }
}

static void collect_truncated(struct metrics *m, struct metric_list *out)
{
    const struct backlog *b = &m->backlog;
    int64_t cut_ns = m->end_ns >= m->opt.horizon_ns ? m->end_ns : b->last_ns;
    double span_s = b->arrivals > 0 && cut_ns > b->first_ns ? units_s_from_ns(cut_ns - b->first_ns)
                                                            : METRIC_UNDEFINED;
    for (int g = 0; g < GROUP_COUNT; g++) {
        char prefix[32];
        (void)snprintf(prefix, sizeof prefix, "truncated.%s", group_names[g]);
        for (int s = 0; s < TRUNCATED_COUNT; s++) {
            put_distribution(m, out, &m->truncated[s].of[g], 0, prefix, truncated_names[s]);
        }
        struct class_totals t = totals_of(m, g);
        metric_list_put(out, (double)t.truncated / span_s * 60.0, "%s.throughput_req_per_min",
                        prefix);
    }
}

/* Jain's index (sum x)^2 / (n sum x^2) of the tokens served per client; summed in slot order, which
 * depends only on ids. */
static double jain(const struct metrics *m)
{
    double sum = m->closed_clients.sum;
    double squares = m->closed_clients.squares;
    uint64_t n = m->closed_clients.n + m->closed_clients.open;
    uint32_t at = 0;
    uint64_t id = 0;
    for (const struct client *c; (c = map_next(&m->clients, &at, &id)) != NULL;) {
        double x = (double)c->tokens;
        sum += x;
        squares += x * x;
        n++;
    }
    return per(sum * sum, (double)n * squares);
}

static void collect_system(struct metrics *m, struct metric_list *out)
{
    const struct backlog *b = &m->backlog;
    struct backlog_summary s = backlog_summarise(b, &m->opt.verdict);
#define RUN(part, suffix, title, unit, better, definition, value)                                  \
    metric_list_put(out, value, part suffix);
#define RUN_ALSO(name, value) metric_list_put(out, value, name);
#include "sim/metrics/metrics.def"
}

/* Ends open sessions at the end of the run. */
static void close_sessions(struct metrics *m)
{
    uint32_t at = 0;
    uint64_t id = 0;
    for (struct session *s; (s = map_next(&m->sessions, &at, &id)) != NULL;) {
        if (m->opt.trace != NULL || s->last_finish_ns == 0) {
            continue;
        }
        if (metrics_measured(m, s->first_arrival_ns) && !s->broken) {
            series_add(&m->series[SERIES_SESSION], (enum request_class)s->cls,
                       units_s_from_ns(s->last_finish_ns - s->first_arrival_ns));
        }
        if (s->last_finish_ns > s->turn_arrival_ns) {
            metrics_turn(m, s, s->last_finish_ns);
        }
    }
}

static void close_class(struct metrics *m, enum request_class cls)
{
    metrics_gaps_flush(m, cls);
    for (int k = 0; k < TRUNCATED_COUNT; k++) {
        const struct series *whole = metrics_whole(m, (enum truncated_id)k);
        sample_copy(&m->truncated[k].of[cls], &whole->of[cls]);
    }
    metrics_ended_flush(m, cls);
}

/* Adds all pending values to distributions, once, because a list may be made twice. */
static void close_distributions(struct metrics *m)
{
    if (m->closed) {
        return;
    }
    m->closed = true;
    for (int c = 0; c < REQUEST_CLASS_COUNT; c++) {
        close_class(m, (enum request_class)c);
    }
    close_sessions(m);
    for (int s = 0; s < SERIES_COUNT; s++) {
        merge_all(&m->series[s]);
    }
    for (int s = 0; s < TRUNCATED_COUNT; s++) {
        merge_all(&m->truncated[s]);
    }
}

void metrics_collect(struct metrics *m, struct metric_list *out)
{
    close_distributions(m);
    for (int g = 0; g < GROUP_COUNT; g++) {
        collect_group(m, g, out);
    }
    struct class_totals all = totals_of(m, GROUP_ALL);
    collect_system(m, out);
    usage_collect(&m->usage, &m->opt, (double)(all.input_tokens + all.output_tokens),
                  (double)all.output_tokens, (double)m->jobs.n_complete, out);
    collect_truncated(m, out);
}

enum metrics_verdict metrics_verdict(const struct metrics *m)
{
    return m->battery_empty ? METRICS_BATTERY_EMPTY
                            : backlog_summarise(&m->backlog, &m->opt.verdict).verdict;
}

void metrics_battery_empty(struct metrics *m)
{
    m->battery_empty = true;
}

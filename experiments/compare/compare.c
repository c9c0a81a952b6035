#include "experiments/compare/compare.h"

#include "experiments/run/runner.h"
#include "sim/stats/stats_shift.h"
#include "traces/traces.h"

struct study_cell compare_cell(const struct compare_plan *plan, uint32_t policy,
                               uint32_t replication)
{
    return (struct study_cell){
        .config = plan->config,
        .options = plan->options,
        .policy = &plan->policies[policy],
        .seed = config_seed(plan->options->seed, plan->first + replication),
        .arrivals = plan->arrivals,
        .samples = plan->samples,
    };
}

static double *values_at(const struct compare_result *r, uint32_t policy, size_t metric)
{
    return &r->values[((size_t)policy * r->n_metrics + metric) * r->replications];
}

/* Whether a run with these names has a value of name k. A run from a store has the names of all
 * runs there. */
static bool is_defined(const struct study_outcomes *o, const struct study_names *names, size_t k)
{
    for (uint32_t i = 0; i < o->n; i++) {
        if (o->v[i].names == names && o->v[i].values != NULL && !isnan(o->v[i].values[k])) {
            return true;
        }
    }
    return false;
}

/* Adds the names of all runs' counters, or of their other metrics. */
static void add_names(const struct compare_plan *plan, const struct study_outcomes *o,
                      bool counters, struct metric_list *names)
{
    for (const struct study_names *i = o->names; i != NULL; i = i->next) {
        for (size_t k = 0; k < i->n; k++) {
            bool counter = strncmp(i->v[k], "counters.", 9) == 0;
            if (counter == counters && metric_list_find(names, i->v[k]) == NULL &&
                (plan->config == NULL || is_defined(o, i, k))) {
                metric_list_put(names, METRIC_UNDEFINED, "%s", i->v[k]);
            }
        }
    }
}

/* Collects the metrics of the machine, those from events of the machine (for stored runs, all of
 * the runs'), and the counters of all runs. */
static void gather_names(const struct compare_plan *plan, const struct study_outcomes *o,
                         struct compare_result *out)
{
    struct metric_list names = {0};
    if (plan->config != NULL) {
        runner_metric_names(plan->config, false, &names);
    }
    add_names(plan, o, false, &names);
    out->n_plain = names.n;
    add_names(plan, o, true, &names);
    out->names = names.v;
    for (uint32_t i = 0; i < o->n && out->n_metrics == 0; i++) { /* none if every run failed */
        out->n_metrics = o->v[i].status == 0 ? names.n : 0;
    }
    out->n_plain = out->n_metrics > 0 ? out->n_plain : 0;
}

/* Records the run of a replication in the experiment. */
static void note_member(const struct compare_plan *plan, uint32_t cell,
                        const struct study_outcome *o)
{
    uint64_t point = plan->first_point + cell % plan->n_policies;
    uint32_t replication = plan->first + cell / plan->n_policies;
    if (o->status == 0) {
        store_member(plan->how.store, plan->experiment, point, replication, o->run);
    } else {
        store_failure(plan->how.store, plan->experiment, point, replication,
                      o->status == STUDY_NO_REQUESTS ? "" : o->message);
    }
}

void compare_take(const struct compare_plan *plan, const struct study_outcomes *o,
                  struct compare_result *out)
{
    *out = (struct compare_result){.n_policies = plan->n_policies,
                                   .replications = o->n / plan->n_policies,
                                   .failures = xcalloc(o->n + 1, sizeof *out->failures),
                                   .not_run = xcalloc(plan->n_policies, sizeof *out->not_run),
                                   .empty = xcalloc(o->n + 1, sizeof *out->empty)};
    gather_names(plan, o, out);
    out->values = xmalloc((out->n_metrics * o->n + 1) * sizeof *out->values);
    for (uint32_t i = 0; i < o->n; i++) {
        const struct study_outcome *one = &o->v[i];
        uint32_t policy = i % plan->n_policies;
        uint32_t replication = i / plan->n_policies;
        for (size_t k = 0; k < out->n_metrics; k++) {
            values_at(out, policy, k)[replication] = study_value_near(one, k, out->names[k].name);
        }
        if (one->not_run) {
            out->n_not_run++;
            out->not_run[policy]++;
        } else if (one->status == STUDY_NO_REQUESTS) {
            out->n_empty += out->empty[replication] ? 0 : 1;
            out->empty[replication] = true;
        } else if (one->status != 0) {
            struct compare_failure *f = &out->failures[out->n_failures++];
            *f = (struct compare_failure){.policy = policy, .replication = replication};
            memcpy(f->message, one->message, sizeof f->message);
        }
        if (plan->experiment != 0) {
            note_member(plan, i, one);
        }
    }
    SIM_ASSERT(out->replications * out->n_policies == o->n && out->n_failures <= o->n);
}

void compare_run(const struct compare_plan *plan, struct compare_result *out)
{
    uint32_t n = plan->n_policies * plan->replications;
    OWNED struct study_cell *cells = xcalloc((size_t)n + 1, sizeof *cells);
    for (uint32_t i = 0; i < n; i++) {
        cells[i] = compare_cell(plan, i % plan->n_policies, i / plan->n_policies);
    }
    SCOPED(study_outcomes_fini) struct study_outcomes runs = study_run(cells, n, &plan->how);
    compare_take(plan, &runs, out);
}

struct compare_plan compare_alone(const struct compare_plan *plan, uint32_t policy)
{
    struct compare_plan one = *plan;
    one.policies = &plan->policies[policy];
    one.n_policies = 1;
    one.baseline = 0;
    return one;
}

void compare_result_fini(struct compare_result *r)
{
    free(r->names);
    free(r->values);
    free(r->failures);
    free(r->not_run);
    free(r->empty);
    *r = (struct compare_result){0};
}

bool compare_battery_gave_out(const struct compare_result *r, uint32_t policy, uint32_t replication)
{
    const double *x = compare_values(r, policy, "backlog.verdict");
    return x != NULL && x[replication] == (double)METRICS_BATTERY_EMPTY;
}

const double *compare_values(const struct compare_result *r, uint32_t policy, const char *metric)
{
    /* Compares pointers first, because callers that print every metric pass these names, and
     * comparing texts took a sixth of a short comparison's time. */
    for (size_t k = 0; k < r->n_metrics; k++) {
        if (r->names[k].name == metric) {
            return values_at(r, policy, k);
        }
    }
    for (size_t k = 0; k < r->n_metrics; k++) {
        if (strcmp(r->names[k].name, metric) == 0) {
            return values_at(r, policy, k);
        }
    }
    return NULL;
}

bool compare_served_all(const struct compare_result *r, uint32_t policy, uint32_t replication)
{
    const double *shed = compare_values(r, policy, "all.shed");
    const double *unfinished = compare_values(r, policy, "all.unfinished");
    const double *ended = compare_values(r, policy, "counters.ended_with");
    return shed != NULL && shed[replication] == (ended != NULL ? ended[replication] : 0.0) &&
           unfinished[replication] == 0.0 && !compare_battery_gave_out(r, policy, replication);
}

struct extrapolated compare_extrapolated(const struct compare_result *r, uint32_t policy)
{
    struct extrapolated x = {.n = 0};
    for (size_t i = 0; i < r->n_metrics; i++) {
        if (strstr(r->names[i].name, ".extrapolated_") == NULL) {
            continue;
        }
        const double *v = values_at(r, policy, i);
        double mean = stats_mean(v, r->replications, STATS_LEVEL_FRAC).mean;
        extrapolated_add(&x, r->names[i].name, mean);
    }
    return x;
}

/* Whether both failures have the same policy and, except for the seed, the same message. */
static bool is_same_failure(const struct compare_failure *a, const struct compare_failure *b)
{
    const char *of_a = strstr(a->message, ", t=");
    const char *of_b = strstr(b->message, ", t=");
    return a->policy == b->policy && of_a != NULL && of_b != NULL && strcmp(of_a, of_b) == 0;
}

void compare_report_failures(const struct compare_plan *plan, const struct compare_result *r)
{
    OWNED bool *said = xcalloc(r->n_failures + 1, sizeof *said);
    for (uint32_t i = 0; i < r->n_failures; i++) {
        const struct compare_failure *f = &r->failures[i];
        uint32_t others = 0;
        for (uint32_t k = i + 1; k < r->n_failures && !said[i]; k++) {
            bool same = is_same_failure(f, &r->failures[k]);
            said[k] = said[k] || same;
            others += same;
        }
        OWNED char *more =
            others > 0 ? xformat(" and %" PRIu32 " other%s", others, others > 1 ? "s" : "") : NULL;
        if (!said[i]) {
            (void)fprintf(stderr,
                          "xpusim: error: %s, replication %" PRIu32 " (seed %" PRIu64 ")%s: %s\n",
                          plan->policies[f->policy].label, f->replication,
                          config_seed(plan->options->seed, f->replication),
                          more != NULL ? more : "", f->message);
        }
    }
}

#define CAPACITY_REPLICATIONS 3
#define CAPACITY_COMPRESS                                                                          \
    50.0 /* arrivals and pauses are divided by this, so that the machine never waits */

/* Whether requests arrive after the end of others, for any compression of arrivals. */
static bool has_closed_loop(const struct trace *t)
{
    bool closed = false;
    for (size_t i = 0; i < t->n && !closed; i++) {
        closed = (t->extras != NULL && t->extras[i].until_ns != TIME_NEVER_NS) ||
                 (t->graph != NULL && t->graph->starts_job[i]);
    }
    return closed;
}

int compare_offered(const struct compare_plan *plan, uint32_t replication, double arrived,
                    double window_s, struct compare_offered *sum, struct err *e)
{
    SCOPED(trace_fini) struct trace t = {0};
    uint64_t seed = compare_cell(plan, plan->baseline, replication).seed;
    SCOPED(err_fini) struct err why = ERR_INIT;
    int rc = config_trace(plan->options, seed, plan->arrivals, &t, &why);
    if (rc == -ENODATA) {
        sum->time_s += units_s_from_ns(t.made_ns);
        return 0;
    }
    if (rc != 0) {
        return err_add(e, "%s", why.lines[0]);
    }
    double n = (double)t.n_first;
    if (has_closed_loop(&t)) {
        return 0; /* no rate */
    }
    if (t.made_ns > 0) {
        sum->requests += arrived;
        sum->time_s += units_s_from_ns(t.made_ns);
    } else if (t.n_first == t.n && arrived >= 2.0) {
        sum->requests += arrived - 1.0;
        sum->time_s += window_s;
    } else if (t.n_first < t.n && n >= 2.0) {
        sum->requests += (n - 1.0) * arrived / n;
        sum->time_s += units_s_from_ns(t.rows[t.n_first - 1].arrival_ns - t.rows[0].arrival_ns);
    }
    return 0;
}

int capacity_measure(const struct compare_plan *plan, struct capacity *out, struct err *e)
{
    struct compare_plan p = compare_alone(plan, plan->baseline);
    p.replications = CAPACITY_REPLICATIONS;
    p.arrivals.compress = CAPACITY_COMPRESS;
    SCOPED(compare_result_fini) struct compare_result r;
    compare_run(&p, &r);
    compare_report_failures(&p, &r);
    *out = (struct capacity){0.0, 0.0};
    if (r.n_failures == 0 && r.n_empty < CAPACITY_REPLICATIONS) {
        const double *done = compare_values(&r, 0, "all.throughput_req_per_min");
        const double *arrived = compare_values(&r, 0, "all.arrived");
        const double *window = compare_values(&r, 0, "arrival_window_s");
        struct compare_offered sum = {0.0, 0.0};
        int rc = 0;
        for (uint32_t i = 0; i < CAPACITY_REPLICATIONS && rc == 0; i++) {
            if (compare_battery_gave_out(&r, 0, i)) { /* a partial run has no capacity */
                return err_add(e,
                               "--load: the battery is empty before the capacity of %s is measured",
                               plan->policies[plan->baseline].label);
            }
            out->req_per_min += r.empty[i] ? 0.0 : done[i] / (CAPACITY_REPLICATIONS - r.n_empty);
            rc = compare_offered(plan, i, arrived[i], window[i] * CAPACITY_COMPRESS, &sum, e);
        }
        out->offered_req_per_min = sum.time_s > 0.0 ? sum.requests / sum.time_s * 60.0 : 0.0;
    }
    if (!(out->req_per_min > 0.0)) {
        return err_add(e, "--load: the capacity of %s could not be measured on this workload",
                       plan->policies[plan->baseline].label);
    }
    if (!(out->offered_req_per_min > 0.0)) {
        return err_add(e, "--load: this workload has no rate: clients of a closed loop wait for "
                          "answers, or fewer than two requests arrive without waiting for another, "
                          "or all at one instant. A factor makes a closed loop faster, as in "
                          "--workload coding-agent:rate=2");
    }
    return 0;
}

void significance_adjust(double *p, size_t n_first, size_t n_others)
{
    stats_holm(p, n_first, p);
    stats_holm(p + n_first, n_others, p + n_first);
    double first = 0.0; /* the chance at which all of the first are shown */
    for (size_t i = 0; i < n_first && n_others > 0; i++) {
        p[i] = p[i] < 0.5 ? 2.0 * p[i] : isnan(p[i]) ? p[i] : 1.0;
        first = p[i] > first ? p[i] : first; /* NaN: no difference */
    }
    for (size_t i = n_first; i < n_first + n_others; i++) {
        double all = p[i] > first ? p[i] : first;
        p[i] = 2.0 * p[i] < all ? 2.0 * p[i] : isnan(p[i]) ? p[i] : all;
    }
}

enum stats_finding significance_judge(const struct stats_paired *p, double p_adjusted)
{
    enum stats_finding f = stats_judge(p);
    double shown = isnan(p_adjusted) ? stats_p(p) : p_adjusted;
    bool lost = (f == STATS_LOWER || f == STATS_HIGHER) && shown > 1.0 - STATS_LEVEL_FRAC;
    return lost ? STATS_NOT_SHOWN : f;
}

const char *significance_text(const struct stats_paired *p, double p_adjusted)
{
    const char *text = stats_verdict(p);
    if (significance_judge(p, p_adjusted) == stats_judge(p)) {
        return text;
    }
    int n = (int)strcspn(text, "("); /* "(significant)" is only for corrected results */
    bool corrected = stats_p(p) <= 1.0 - STATS_LEVEL_FRAC;
    return document_format("%.*s(not significant%s)", n, text,
                           corrected ? " after Holm's correction" : "");
}

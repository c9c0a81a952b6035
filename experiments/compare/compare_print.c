/* Prints a comparison as a document. */
#include "experiments/compare/compare.h"
#include "sim/stats/stats.h"
#include "sim/stats/stats_intervals.h"

/* Printed after an interval, and as data; by enum stats_method (COVERAGE.md). */
static const char *const method_words[] = {"", " (bootstrap-t)", " (skewed: 85 %)"};
static const char *const method_names[] = {"student", "bootstrap-t", "student-skewed"};

/* Whether all replications are equal, because the seed has no effect: a workload without random
 * numbers, such as w1, on kernels without noise. */
static bool is_one_run(const struct compare_result *r)
{
    bool differs = r->replications < 2 || r->n_failures + r->n_not_run + r->n_empty > 0;
    size_t n = (size_t)r->n_policies * r->n_metrics;
    for (size_t k = 0; k < n && !differs; k++) {
        const double *x = r->values + k * r->replications;
        for (uint32_t i = 1; i < r->replications && !differs; i++) {
            differs = x[i] != x[0] && !(isnan(x[i]) && isnan(x[0]));
        }
    }
    return !differs;
}

/* Number of observations of each policy and metric. */
static uint32_t n_observed(const struct compare_result *r)
{
    return is_one_run(r) ? 1 : r->replications;
}

/* Pairs as statistics take them. If sessions are redrawn from a recording, the distance of each
 * value from the mean of the pairs is multiplied by the square root of their number. More draws add
 * no information beyond the recording, so the standard error of the mean is the spread of single
 * draws. A mean of other draws than those of the pairs would move the difference. */
struct sample {
    double *x, *base; /* owned; undefined in both where either is */
};

static void spread(double *x, uint32_t n)
{
    struct stats_interval s = stats_mean(x, n, STATS_LEVEL_FRAC);
    for (uint32_t i = 0; i < n; i++) {
        x[i] = s.mean + (x[i] - s.mean) * sqrt(s.n);
    }
}

static struct sample sample_of(const struct compare_plan *plan, const double *x, const double *base,
                               uint32_t n)
{
    struct sample s = {xmalloc((n + 1) * sizeof *s.x), xmalloc((n + 1) * sizeof *s.base)};
    for (uint32_t i = 0; i < n; i++) {
        bool both = isfinite(x[i]) && isfinite(base[i]);
        s.x[i] = both ? x[i] : METRIC_UNDEFINED;
        s.base[i] = both ? base[i] : METRIC_UNDEFINED;
    }
    if (plan->options != NULL && plan->options->resample) {
        spread(s.x, n);
        spread(s.base, n);
    }
    return s;
}

static void sample_fini(struct sample *s)
{
    free(s->x);
    free(s->base);
}

/* Fills p[policy], that of the difference from the baseline; NaN for the baseline. */
static void put_p(const struct compare_plan *plan, const struct compare_result *r, const char *name,
                  uint32_t n, double *p)
{
    const double *base = compare_values(r, plan->baseline, name);
    for (uint32_t i = 0; i < r->n_policies; i++) {
        struct stats_paired d = {.base_mean = METRIC_UNDEFINED};
        if (base != NULL) {
            SCOPED(sample_fini)
            struct sample s = sample_of(plan, compare_values(r, i, name), base, n);
            d = stats_paired(s.x, s.base, n, STATS_LEVEL_FRAC);
        }
        p[i] = i == plan->baseline ? METRIC_UNDEFINED : stats_p(&d);
    }
}

/* Adjusted p of all named metrics, as [metric][policy]. */
static double *holm_of_family(const struct compare_plan *plan, const struct compare_result *r,
                              const char *const *metrics, uint32_t n_metrics)
{
    uint32_t n = r->n_policies;
    uint32_t n_each = n_observed(r);
    double *p = xmalloc((n_metrics * (size_t)n + 1) * sizeof *p);
    for (uint32_t m = 0; m < n_metrics; m++) {
        put_p(plan, r, metrics[m], n_each, p + (size_t)m * n);
    }
    if (n_metrics > 0) {
        significance_adjust(p, n, (n_metrics - 1) * (size_t)n);
    }
    return p;
}

/* The row of one policy and metric: interval, difference, ratio with Fieller's interval. */
static void put_row(const struct compare_plan *plan, const struct compare_result *r,
                    const char *metric, uint32_t policy, uint32_t n, const double *family,
                    struct frame *f)
{
    const double *x = compare_values(r, policy, metric);
    const double *base = compare_values(r, plan->baseline, metric);
    enum stats_method method;
    SCOPED(sample_fini) struct sample own = sample_of(plan, x, x, n);
    SCOPED(sample_fini) struct sample pairs = sample_of(plan, x, base, n);
    struct stats_interval s = stats_reported(own.x, n, &method);
    FRAME_CELLS(
        f, plan->policies[policy].label, metric,
        frame_shown(s.mean, document_format("%s%s", stats_format(&s), method_words[method])), s.low,
        s.high, method_names[method], s.n);
    struct stats_paired diff = stats_reported_paired(pairs.x, pairs.base, n);
    diff.relevance_frac = plan->relevance_frac;
    double p_holm = family != NULL ? family[policy] : METRIC_UNDEFINED;
    const char *verdict = significance_text(&diff, p_holm);
    if (policy == plan->baseline) {
        frame_skip(f, 9);
    } else {
        struct stats_interval ratio = stats_ratio(pairs.x, pairs.base, n, STATS_LEVEL_FRAC);
        const double v[] = {diff.diff.mean, diff.diff.low, diff.diff.high, ratio.mean,
                            ratio.low,      ratio.high,    stats_p(&diff)};
        for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
            FRAME_CELLS(f, v[i]);
        }
        FRAME_CELLS(f, verdict, p_holm);
    }
    FRAME_CELLS(f, family == NULL ? NULL : policy == plan->baseline ? "baseline" : verdict);
}

/* Adds how many replications of each policy were stable, undecided, overloaded. */
static void put_verdicts(const struct compare_plan *plan, const struct compare_result *r,
                         struct document *d)
{
    document_heading(d, "replications (UNDECIDED: too short to tell)");
    bool any_empty = false;
    for (uint32_t i = 0; i < r->n_policies * r->replications; i++) {
        any_empty =
            any_empty || compare_battery_gave_out(r, i / r->replications, i % r->replications);
    }
    const struct frame_column columns[] = {
        {.name = "policy", .title = "", .kind = FRAME_TEXT},
        {.name = "stable", .title = metrics_verdict_names[METRICS_STABLE]},
        {.name = "undecided", .title = metrics_verdict_names[METRICS_UNDECIDED]},
        {.name = "overloaded", .title = metrics_verdict_names[METRICS_OVERLOADED]},
        {.name = "battery_empty",
         .title = metrics_verdict_names[METRICS_BATTERY_EMPTY],
         .only_data = !any_empty},
        {.name = "failed"},
    };
    static const struct frame_column not_run = {.name = "not_run", .title = "not run"};
    struct frame *t = DOCUMENT_FRAME(d, "verdicts", 1, columns);
    if (r->n_not_run > 0) {
        frame_columns(t, &not_run, 1);
    }
    frame_indent(t, 2);
    for (uint32_t p = 0; p < r->n_policies; p++) {
        const double *x = compare_values(r, p, "backlog.verdict");
        uint32_t count[METRICS_VERDICTS] = {0};
        for (uint32_t i = 0; i < r->replications && x != NULL; i++) {
            if (x[i] >= 0.0 && x[i] < (double)METRICS_VERDICTS) {
                count[(int)x[i]]++;
            }
        }
        uint32_t failed = 0;
        for (uint32_t i = 0; i < r->n_failures; i++) {
            failed += r->failures[i].policy == p;
        }
        FRAME_CELLS(t, plan->policies[p].label, count[METRICS_STABLE], count[METRICS_UNDECIDED],
                    count[METRICS_OVERLOADED], count[METRICS_BATTERY_EMPTY], failed);
        if (r->n_not_run > 0) {
            FRAME_CELLS(t, r->not_run[p]);
        }
    }
    if (r->n_empty > 0) {
        document_note(d,
                      "  %" PRIu32 " of %" PRIu32
                      " replication%s without requests, which count for nobody",
                      r->n_empty, r->replications, text_plural(r->replications));
    }
}

/* Whether any run has quantiles from sketches. */
static bool is_sketched(const struct compare_plan *plan, const struct compare_result *r)
{
    bool any = plan->samples == RUNNER_SAMPLES_SKETCH;
    for (uint32_t p = 0; p < r->n_policies && plan->samples == RUNNER_SAMPLES_AUTO; p++) {
        const double *arrived = compare_values(r, p, "all.arrived");
        for (uint32_t i = 0; arrived != NULL && i < r->replications; i++) {
            any = any || arrived[i] > RUNNER_EXACT_REQUESTS;
        }
    }
    return any;
}

static double sum_of(const struct compare_result *r, uint32_t policy, const char *metric)
{
    const double *x = compare_values(r, policy, metric);
    double sum = 0.0;
    for (uint32_t i = 0; x != NULL && i < r->replications; i++) {
        sum += isfinite(x[i]) ? x[i] : 0.0;
    }
    return sum;
}

/* Requests that were shed, cancelled or cut off have no latency. */
static void warn_unfinished(const char *const *labels, const struct compare_result *r,
                            struct document *list)
{
    SCOPED(text_fini) struct text of = {0};
    for (uint32_t p = 0; p < r->n_policies; p++) {
        double left = sum_of(r, p, "all.unfinished") + sum_of(r, p, "all.shed");
        if (left > 0.0) {
            text_format(&of, "%s%.0f of %.0f under %s", of.n > 0 ? ", " : "", left,
                        sum_of(r, p, "all.arrived"), labels[p]);
        }
    }
    if (of.n > 0) {
        warnings_add(
            list,
            "requests that did not finish (cancelled, dropped or cut off): %s. Latencies do "
            "not cover them",
            text_end(&of));
    }
}

static void warn_formats(const struct config *c, const char *const *labels,
                         const struct compare_result *r, struct document *list)
{
    OWNED double *busy = xcalloc((size_t)r->n_policies * MACHINE_MAX_DEVICES, sizeof *busy);
    for (uint32_t i = 0; i < c->soc.machine.n_devices; i++) {
        OWNED char *name = xformat("%s.busy_frac", c->soc.machine.devices[i].name);
        for (uint32_t p = 0; p < r->n_policies; p++) {
            busy[p * MACHINE_MAX_DEVICES + i] = sum_of(r, p, name);
        }
    }
    warnings_formats(c, busy, labels, r->n_policies, list);
}

static void put_warnings(const struct compare_plan *plan, const struct compare_result *r,
                         struct document *d)
{
    OWNED struct extrapolated *x = xcalloc(r->n_policies, sizeof *x);
    OWNED const char **labels = xcalloc(r->n_policies, sizeof *labels);
    for (uint32_t p = 0; p < r->n_policies; p++) {
        x[p] = compare_extrapolated(r, p);
        labels[p] = plan->policies[p].label;
    }
    struct document *list = warnings_of(d);
    if (plan->config != NULL) {
        warnings_machine(plan->config, list);
        warnings_energy(plan->config, list);
        warn_formats(plan->config, labels, r, list);
        OWNED char *meter = warnings_meter(plan->config);
        DOCUMENT_VALUES(d, "energy_meter", meter);
    }
    for (size_t i = 0; plan->warnings != NULL && i < plan->warnings->n; i++) {
        warnings_add(list, "%s", plan->warnings->v[i]);
    }
    warnings_range(x, labels, r->n_policies, list);
    warn_unfinished(labels, r, list);
    warnings_sketch(is_sketched(plan, r), list);
    if (is_one_run(r)) {
        warnings_add(list,
                     "all %" PRIu32
                     " replications are the same run, because nothing in it depends on "
                     "the seed. They count as one observation",
                     r->replications);
    }
}

static bool is_plain(const struct compare_result *r, size_t n_plain, const char *name)
{
    for (size_t i = 0; i < n_plain; i++) {
        if (strcmp(r->names[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

void compare_document(const struct compare_plan *plan, const struct compare_result *r,
                      const char *const *metrics, uint32_t n_metrics, bool every,
                      struct document *d)
{
    static const struct frame_column names[] = {
        {.name = "policy", .title = "", .kind = FRAME_TEXT},
        {.name = "metric", .kind = FRAME_TEXT, .heading = true},
        {.name = "mean", .title = "", .left = true},
    };
    static const struct frame_column said = {
        .name = "", .title = "", .kind = FRAME_TEXT, .only_text = true};
    put_warnings(plan, r, d);
    put_verdicts(plan, r, d);
    struct frame *f = DOCUMENT_FRAME(d, "policies", 2, names);
    frame_data_columns(f, "low high method n diff diff_low diff_high ratio ratio_low ratio_high p "
                          "verdict p_holm");
    frame_columns(f, &said, 1);
    frame_main(frame_indent(f, 2));
    frame_caption(f, plan->where);
    OWNED double *family = holm_of_family(plan, r, metrics, n_metrics);
    uint32_t n_each = n_observed(r);
    size_t n_plain = every ? r->n_plain : 0; /* then requested metrics that are not among these */
    for (size_t m = 0; m < n_plain + n_metrics; m++) {
        const char *name = m < n_plain ? r->names[m].name : metrics[m - n_plain];
        if (m >= n_plain && is_plain(r, n_plain, name)) {
            continue;
        }
        const double *of_it = NULL;
        for (uint32_t k = 0; k < n_metrics; k++) {
            of_it = strcmp(metrics[k], name) == 0 ? family + (size_t)k * r->n_policies : of_it;
        }
        for (uint32_t p = 0; p < r->n_policies && compare_values(r, p, name) != NULL; p++) {
            put_row(plan, r, name, p, n_each, of_it, f);
        }
    }
}

void compare_head_document(const struct compare_head *h, struct document *d)
{
    DOCUMENT_VALUES(document_within(d, "about"), "kind", h->kind, "soc", h->soc, "llm", h->llm,
                    "workload", h->workload, "command", h->command, "version", h->version);
    DOCUMENT_VALUES(d, "version", h->version, "config_hash",
                    document_format("%016" PRIx64, h->config_hash), "workload", h->workload, "seed",
                    h->seed);
    if (h->config != NULL) {
        document_tree(d, "config", h->config);
    }
    DOCUMENT_VALUES(d, "baseline", h->baseline, "replications", h->replications, "level_frac",
                    STATS_LEVEL_FRAC, "relevance_frac", h->relevance_frac);
    struct document *seeds = document_array(d, "seeds");
    for (uint32_t i = 0; i < h->replications; i++) {
        DOCUMENT_VALUES(seeds, NULL, config_seed(h->seed, i));
    }
    DOCUMENT_VALUES(d, "sample", h->sample, "sample_note", h->note != NULL ? h->note : "");
    document_note(d, "%s, %s, %s; %" PRIu32 " replication%s from seed %" PRIu64 "; mean%s", h->soc,
                  h->llm, h->workload, h->replications, text_plural(h->replications), h->seed,
                  h->replications == 1 ? "" : " [95 % interval]");
    if (h->note != NULL) {
        document_note(d, "%s", h->note);
    }
}

#include "experiments/compare/regret.h"

#include "experiments/compare/bound.h"
#include "sim/metrics/metric_table.h"
#include "sim/stats/stats.h"
#include "sim/stats/stats_intervals.h"

static const char class_text[] = "list schedules: any order of the requests, any pair of a prefill "
                                 "and a decode device, decoding one by one or all in a batch";

int regret_check(const struct compare_plan *plan, struct err *e)
{
    if (plan->config->sim.truth_sigma > 0.0 || plan->config->sim.hang_frac > 0.0) {
        (void)err_add(e, "--regret: with sim.truth_sigma or sim.hang_frac > 0 kernels take random "
                         "times, and there is no bound");
    }
    if (plan->config->sim.horizon_s > 0.0) {
        (void)err_add(e, "--regret: with sim.horizon_s requests stay unfinished, and there is no "
                         "bound of the others");
    }
    SCOPED(trace_fini) struct trace t = {0};
    if (config_trace(plan->options, plan->options->seed, plan->arrivals, &t, e) == 0) {
        if (t.graph != NULL) {
            (void)err_add(e, "--regret: the bound knows chains of turns, and no request graphs");
        }
        for (size_t i = 0; i < t.n && t.extras != NULL; i++) {
            bool cancels = t.extras[i].cancel_ns != TIME_NEVER_NS;
            if (cancels || (t.rows[i].turn > 0 && t.extras[i].until_ns != TIME_NEVER_NS)) {
                (void)err_add(e, "--regret: request %u may %s, and there is no bound of the others",
                              t.rows[i].request_id,
                              cancels ? "be cancelled (cancel_s)" : "never arrive (until_s)");
                break;
            }
        }
    }
    return e->n > 0 ? -EINVAL : 0;
}

/* ---- references ---- */

/* One bound for all policies: that with the longest drafts of any. */
static int bound_of_all(const struct compare_plan *plan, struct bound *out)
{
    int rc = bound_of_config(out, plan->config, &plan->policies[0]);
    for (uint32_t p = 1; p < plan->n_policies && rc == 0; p++) {
        struct bound b;
        rc = bound_of_config(&b, plan->config, &plan->policies[p]);
        /* Longer drafts give more tokens per pass, so the largest number is a bound for every
         * policy. */
        if (rc == 0 && b.tokens_per_pass > out->tokens_per_pass) {
            *out = b;
        }
    }
    return rc;
}

static void bound_all(const struct compare_plan *plan, struct regret *g)
{
    struct bound b;
    int rc = bound_of_all(plan, &b);
    for (uint32_t rep = 0; rep < plan->replications; rep++) {
        SCOPED(err_fini) struct err e = ERR_INIT;
        SCOPED(trace_fini) struct trace t = {0};
        struct bound_workload w;
        uint64_t seed = config_seed(plan->options->seed, plan->first + rep);
        bool ok = rc == 0 && config_trace(plan->options, seed, plan->arrivals, &t, &e) == 0;
        if (ok) {
            bound_trace(&b, &t, &w);
        }
        for (uint32_t m = 0; m < CLAIRVOYANT_METRICS; m++) {
            double x = ok ? bound_metric(&w, clairvoyant_metrics[m]) : METRIC_UNDEFINED;
            g->bound[m * plan->replications + rep] = x;
        }
    }
}

static void run_references(const struct compare_plan *plan, struct regret *g)
{
    OWNED struct clairvoyant_best *best = xcalloc(plan->replications + 1, sizeof *best);
    clairvoyant_run(plan, best);
    for (uint32_t rep = 0; rep < g->replications; rep++) {
        g->n_exhaustive += best[rep].exhaustive ? 1 : 0;
        g->n_schedules += best[rep].schedules;
        for (uint32_t m = 0; m < CLAIRVOYANT_METRICS; m++) {
            g->best[m * g->replications + rep] = best[rep].value[m];
        }
    }
}

void regret_run(struct regret *g, const struct compare_plan *plan)
{
    uint32_t n = plan->replications;
    *g = (struct regret){.replications = n,
                         .bound = xkept(xcalloc((size_t)CLAIRVOYANT_METRICS * n, sizeof *g->bound)),
                         .best = xkept(xcalloc((size_t)CLAIRVOYANT_METRICS * n, sizeof *g->best))};
    bound_all(plan, g);
    run_references(plan, g);
}

/* ---- distances ---- */

/* Values of a policy; NaN: it left requests unserved, which took no time. */
static double *values_of(const struct compare_result *r, uint32_t policy, const char *metric)
{
    const double *x = compare_values(r, policy, metric);
    double *out = xmalloc((r->replications + 1) * sizeof *out);
    for (uint32_t i = 0; i < r->replications; i++) {
        out[i] = x != NULL && compare_served_all(r, policy, i) ? x[i] : METRIC_UNDEFINED;
    }
    return out;
}

static struct stats_interval distance(const double *x, const double *reference, uint32_t n,
                                      bool gain)
{
    /* Paired by replication, because reference and policy have the same requests. Positive is worse
     * for both directions of a metric. */
    return gain ? stats_reported_paired(reference, x, n).diff
                : stats_reported_paired(x, reference, n).diff;
}

/* Fills the cells of the distance of x from a reference. Returns "+1.5 [1.2, 1.8], x2.1". */
static const char *put_distance(struct frame *f, const double *x, const double *reference,
                                uint32_t n, bool gain)
{
    struct stats_interval s = distance(x, reference, n, gain);
    struct stats_interval ratio = stats_ratio(x, reference, n, STATS_LEVEL_FRAC);
    const double v[] = {s.mean, s.low, s.high, ratio.mean, ratio.low, ratio.high};
    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
        FRAME_CELLS(f, v[i]);
    }
    FRAME_CELLS(f, s.n);
    return isnan(s.mean) ? "-" : document_format("%s, x%.3g", stats_format(&s), ratio.mean);
}

static const char *put_reference(struct frame *f, const char *metric, const double *x, uint32_t n)
{
    struct stats_interval s = stats_reported(x, n, NULL);
    FRAME_ROW(f, metric, s.mean, s.low, s.high, s.n);
    return stats_format(&s);
}

/* The frames that the regret of every metric goes into. */
struct frames {
    struct frame *oracle, *clairvoyant, *policies;
};

static void put_metric(const struct compare_plan *plan, const struct compare_result *r,
                       const struct regret *g, uint32_t metric, const struct frames *into,
                       struct document *d)
{
    const char *name = clairvoyant_metrics[metric];
    uint32_t n = g->replications;
    const double *bound = &g->bound[metric * n];
    const double *best = &g->best[metric * n];
    struct frame *t = NULL; /* NULL: the workload has no request of this class */
    if (!isnan(stats_mean(bound, n, STATS_LEVEL_FRAC).mean)) {
        document_heading(d, "%s", name);
        t = document_table(d, 2, "llll", "", "mean", "regret vs oracle-lb",
                           "regret vs clairvoyant");
    }
    const char *of_bound = put_reference(into->oracle, name, bound, n);
    const char *of_best = put_reference(into->clairvoyant, name, best, n);
    if (t != NULL) {
        FRAME_ROW(t, "oracle-lb", of_bound);
        FRAME_ROW(t, "clairvoyant", of_best);
    }
    for (uint32_t p = 0; p < r->n_policies; p++) {
        OWNED double *x = values_of(r, p, name);
        bool gain = metric_is_gain(name);
        struct stats_interval s = stats_reported(x, n, NULL);
        FRAME_CELLS(into->policies, plan->policies[p].label, name);
        of_bound = put_distance(into->policies, x, bound, n, gain);
        of_best = put_distance(into->policies, x, best, n, gain);
        if (t != NULL) {
            FRAME_ROW(t, plan->policies[p].label, stats_format(&s), of_bound, of_best);
        }
    }
}

void regret_document(const struct compare_plan *plan, const struct compare_result *r,
                     const struct regret *g, struct document *d)
{
    document_note(d, "\n---- regret: distance [95 %% interval] and ratio, over all requests");
    document_note(d, "oracle-lb: roofline and shared-bandwidth bound; no schedule beats it");
    document_note(d, "clairvoyant: best of %u %s", g->n_schedules, class_text);
    if (g->n_exhaustive == g->replications) {
        document_note(d, "  (exhaustive: every order, in all replications)");
    } else {
        document_note(d,
                      "  (exhaustive in %u of %u replication%s; elsewhere HEURISTIC: shortest "
                      "remaining time first, lengths known)",
                      g->n_exhaustive, g->replications, text_plural(g->replications));
    }
    DOCUMENT_VALUES(d, "class", class_text, "replications", g->replications,
                    "exhaustive_replications", g->n_exhaustive, "schedules", g->n_schedules);
    static const char interval[] = "metric mean low high n";
    struct frames into = {
        .oracle = document_data(d, "oracle_lb", 1, interval),
        .clairvoyant = document_data(d, "clairvoyant", 1, interval),
        .policies = document_data(
            d, "policies", 2,
            "policy metric oracle_lb.diff oracle_lb.diff_low oracle_lb.diff_high oracle_lb.ratio "
            "oracle_lb.ratio_low oracle_lb.ratio_high oracle_lb.n clairvoyant.diff "
            "clairvoyant.diff_low clairvoyant.diff_high clairvoyant.ratio clairvoyant.ratio_low "
            "clairvoyant.ratio_high clairvoyant.n"),
    };
    for (uint32_t m = 0; m < CLAIRVOYANT_METRICS; m++) {
        put_metric(plan, r, g, m, &into, d);
    }
}

#include "experiments/arena/judge.h"

#include "sim/metrics/metric_table.h"

#define CELLS_PER_WORKER 40 /* safe: a candidate is a new process in each run */

void judge_run(const struct suite *s, const struct config_policy *p, uint32_t replications,
               const struct study_how *how, struct judge_runs *out)
{
    judge_run_from(s, p, 0, replications, how, out);
}

void judge_run_from(const struct suite *s, const struct config_policy *p, uint32_t first,
                    uint32_t replications, const struct study_how *how, struct judge_runs *out)
{
    uint32_t n = s->n_points * replications;
    OWNED struct study_cell *cells = xcalloc((size_t)n + 1, sizeof *cells);
    for (uint32_t i = 0; i < n; i++) {
        cells[i] = suite_cell(s, i / replications, p, first + i % replications);
    }
    struct study_how own = *how;
    own.cells_per_worker = CELLS_PER_WORKER;
    *out = (struct judge_runs){study_run(cells, n, &own), replications};
}

void judge_runs_fini(struct judge_runs *r)
{
    study_outcomes_fini(&r->outcomes);
}

static const struct study_outcome *at(const struct judge_runs *r, uint32_t point, uint32_t k)
{
    return &r->outcomes.v[point * r->replications + k];
}

void judge_values(const struct judge_runs *r, uint32_t point, const char *metric, double *into)
{
    for (uint32_t k = 0; k < r->replications; k++) {
        into[k] = study_value(at(r, point, k), metric);
    }
}

/* A replication without requests has none for anybody. */
static bool has_failed(const struct study_outcome *o)
{
    return o->status != 0 && o->status != STUDY_NO_REQUESTS;
}

bool judge_lost(const struct judge_runs *policy, const struct judge_runs *reference, uint32_t point,
                uint32_t k)
{
    const struct study_outcome *o = at(policy, point, k);
    return has_failed(o) || study_left(o) > study_left(at(reference, point, k));
}

/* Values of both policies, and the pairs that point to them. */
struct values {
    double *policy, *reference; /* kept, like all members */
    bool *lost;                 /* by cell */
    struct score_pair *pairs;
};

static struct values values_of(const struct suite *s, const struct judge_runs *policy,
                               const struct judge_runs *reference)
{
    const uint32_t n = policy->replications;
    const uint32_t metrics = s->spec.n_patterns;
    const size_t all = (size_t)s->n_points * metrics * n;
    struct values v = {.policy = xkept(xmalloc((all + 1) * sizeof *v.policy)),
                       .reference = xkept(xmalloc((all + 1) * sizeof *v.reference)),
                       .lost = xkept(xcalloc((size_t)s->n_points * n + 1, sizeof *v.lost)),
                       .pairs = xkept(xcalloc((size_t)s->n_points * metrics + 1, sizeof *v.pairs))};
    for (uint32_t p = 0; p < s->n_points; p++) {
        for (uint32_t k = 0; k < n; k++) {
            v.lost[p * n + k] = judge_lost(policy, reference, p, k);
        }
        for (uint32_t m = 0; m < metrics; m++) {
            const char *metric = s->spec.patterns[m];
            uint32_t pair = p * metrics + m;
            judge_values(policy, p, metric, &v.policy[(size_t)pair * n]);
            judge_values(reference, p, metric, &v.reference[(size_t)pair * n]);
            v.pairs[pair] = (struct score_pair){.policy = &v.policy[(size_t)pair * n],
                                                .reference = &v.reference[(size_t)pair * n],
                                                .lost = &v.lost[p * n],
                                                .gain = metric_is_gain(metric),
                                                .scored = s->points[p].scored};
        }
    }
    return v;
}

void judge_gains(const struct suite *s, const struct judge_runs *policy,
                 const struct judge_runs *reference, double *into)
{
    struct values v = values_of(s, policy, reference);
    const uint32_t n = policy->replications;
    score_gains(v.pairs, s->n_points * s->spec.n_patterns, n, into);
    for (uint32_t i = 0; i < s->n_points * n; i++) {
        into[i % n] = v.lost[i] ? (double)INFINITY : into[i % n];
    }
}

static void note_failures(const struct judge_runs *policy, struct judge_result *out)
{
    for (uint32_t i = 0; i < policy->outcomes.n; i++) {
        if (has_failed(&policy->outcomes.v[i]) && out->n_failed++ == 0) {
            out->failed = &policy->outcomes.v[i];
            out->failed_cell = i;
        }
    }
}

/* NaN if the number of replications is not the certificate's, because its means are then of other
 * requests. */
static double headroom_of(const struct score_pair *pairs, uint32_t n, const double *means,
                          uint32_t replications, const struct certificate *c)
{
    double sum = 0.0;
    uint32_t defined = 0;
    for (uint32_t i = 0; i < n && c != NULL && c->replications == replications; i++) {
        double far = log(means[i] / c->rows[i].best);
        if (pairs[i].scored && isfinite(far)) {
            sum += pairs[i].gain ? -far : far;
            defined++;
        }
    }
    return sum / defined;
}

void judge_result_of(const struct suite *s, const struct judge_runs *policy,
                     const struct judge_runs *reference, const struct certificate *c,
                     struct judge_result *out)
{
    const uint32_t n_pairs = s->n_points * s->spec.n_patterns;
    const uint32_t n = policy->replications;
    struct values v = values_of(s, policy, reference);
    *out = (struct judge_result){
        .cells = xkept(xcalloc((size_t)n_pairs + 1, sizeof *out->cells)),
        .means = xkept(xcalloc((size_t)n_pairs + 1, sizeof *out->means)),
        .reference_means = xkept(xcalloc((size_t)n_pairs + 1, sizeof *out->reference_means)),
    };
    out->score = score_of(v.pairs, n_pairs, n, out->cells);
    double least = (double)INFINITY;
    for (uint32_t i = 0; i < n_pairs; i++) {
        out->means[i] = stats_mean(v.pairs[i].policy, n, STATS_LEVEL_FRAC).mean;
        out->reference_means[i] = stats_mean(v.pairs[i].reference, n, STATS_LEVEL_FRAC).mean;
        if (out->cells[i].gain.mean < least) {
            least = out->cells[i].gain.mean;
            out->worst = i;
        }
    }
    out->headroom = headroom_of(v.pairs, n_pairs, out->means, n, c);
    note_failures(policy, out);
}

struct choosing {
    const struct suite *s;
    const struct config_policy *candidates, *reference;
    uint32_t n;
    const struct study_how *how;
};

static void measure(void *ctx, const bool *left, uint32_t from, uint32_t to, double *const *values)
{
    const struct choosing *c = ctx;
    SCOPED(judge_runs_fini) struct judge_runs reference;
    judge_run_from(c->s, c->reference, from, to - from, c->how, &reference);
    for (uint32_t i = 0; i < c->n; i++) {
        if (left[i]) {
            SCOPED(judge_runs_fini) struct judge_runs runs;
            judge_run_from(c->s, &c->candidates[i], from, to - from, c->how, &runs);
            judge_gains(c->s, &runs, &reference, &values[i][from]);
        }
    }
}

void choose_best(const struct suite *s, const struct config_policy *candidates, uint32_t n,
                 const struct config_policy *reference, const struct select_asked *asked,
                 const struct study_how *how, struct select_result *out)
{
    struct choosing c = {s, candidates, reference, n, how};
    struct select_options o = {.confidence_frac = asked->confidence_frac,
                               .delta = log1p(asked->indifference_percent / 100.0),
                               .first = SELECT_FIRST_MIN,
                               .most = asked->most,
                               .gain = true};
    select_by(&o, n, measure, &c, out);
}

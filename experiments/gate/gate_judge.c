/* Computes a verdict per row from two measurements of a matrix. */
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_math.h>

#include "experiments/gate/gate.h"
#include "sim/base/portable.h"
#include "sim/stats/stats_shift.h"

#define UNDEFINED ((double)NAN)

const char *const gate_verdict_names[GATE_VERDICTS] = {"OK",     "REGRESSION", "DRIFT",  "GAIN",
                                                       "STATUS", "ADDED",      "REMOVED"};

/* The two cells of one policy in one group. */
struct pair {
    const struct gate_group *group;
    const struct gate_cell *before, *now;
    bool added_alarms;
};

static struct gate_row *add_row(struct gate_report *r, const char *group, const char *policy,
                                const char *metric)
{
    struct gate_row *row = &r->rows[r->n++];
    *row = (struct gate_row){.group = group,
                             .policy = policy,
                             .metric = metric,
                             .before = UNDEFINED,
                             .after = UNDEFINED,
                             .change_frac = UNDEFINED,
                             .p = UNDEFINED,
                             .better = METRIC_BETTER_NEITHER,
                             .detail = "",
                             .p_worse = UNDEFINED,
                             .p_better = UNDEFINED,
                             .p_any = UNDEFINED};
    return row;
}

__attribute__((format(printf, 4, 5))) static void set(struct gate_row *row, enum gate_verdict v,
                                                      bool alarm, const char *fmt, ...)
{
    va_list values;
    va_start(values, fmt);
    row->verdict = v;
    row->alarm = alarm;
    row->detail = xkeep(xvformat(fmt, values));
    va_end(values);
}

/* Mean of the finite values; *finite receives how many. */
static double mean_of(const double *x, uint32_t n, uint32_t *finite)
{
    double sum = 0.0;
    *finite = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (isfinite(x[i])) {
            sum += x[i];
            ++*finite;
        }
    }
    return *finite > 0 ? sum / *finite : UNDEFINED;
}

static void set_change(struct gate_row *row, double before, double after)
{
    row->before = before;
    row->after = after;
    row->change_frac = before != 0.0 ? (after - before) / fabs(before) : UNDEFINED;
}

/* ---- exact ---- */

/* The replication with the largest relative change for the worse, or else for the better, because
 * opposite changes cancel in a mean. Without direction: the largest change of either sign. */
struct largest {
    uint32_t replication;
    double change_frac; /* relative to the old value, or to GATE_LEAST */
    bool worse;
};

static struct largest find_largest(enum metric_better better, const double *before,
                                   const double *now, uint32_t n)
{
    struct largest x = {0, 0.0, false};
    for (uint32_t i = 0; i < n; i++) {
        if (isnan(before[i]) || isnan(now[i]) || before[i] == now[i]) {
            continue;
        }
        double change = (now[i] - before[i]) / fmax(fabs(before[i]), GATE_LEAST);
        bool worse =
            better != METRIC_BETTER_NEITHER && (change > 0.0) == (better == METRIC_BETTER_LOWER);
        if (worse > x.worse || (worse == x.worse && fabs(change) > fabs(x.change_frac))) {
            x = (struct largest){i, change, worse};
        }
    }
    return x;
}

/* "mean improved; replication 1 worse by 1.28 %, tolerance 0.001 %": the mean is only mentioned if
 * it contradicts the verdict. */
static void say_exact(const struct gate_metric *m, struct largest x, struct gate_row *row)
{
    double percent = 100.0 * fabs(x.change_frac);
    if (m->better == METRIC_BETTER_NEITHER) {
        row->detail =
            xkeep(xformat("replication %u: %+.3g %%", x.replication, 100.0 * x.change_frac));
        return;
    }
    bool mean_up = row->after > row->before;
    bool mean_worse = row->after != row->before && mean_up == (m->better == METRIC_BETTER_LOWER);
    bool opposite = row->after != row->before && mean_worse != x.worse;
    row->detail = xkeep(xformat("%sreplication %u %s by %.3g %%, tolerance %.3g %%",
                                !opposite    ? ""
                                : mean_worse ? "mean is worse; "
                                             : "mean improved; ",
                                x.replication, x.worse ? "worse" : "better", percent,
                                100.0 * m->tolerance_frac));
}

/* Same seeds: values are paired, and equal unless something changed. Each replication counts. */
static void judge_exact(const struct gate_metric *m, const double *before, const double *now,
                        uint32_t n, struct gate_row *row)
{
    uint32_t defined_before = 0;
    uint32_t defined_now = 0;
    set_change(row, mean_of(before, n, &defined_before), mean_of(now, n, &defined_now));
    bool same = true;
    bool same_defined = true;
    for (uint32_t i = 0; i < n; i++) {
        bool both_undefined = isnan(before[i]) && isnan(now[i]);
        same = same && (both_undefined || before[i] == now[i]);
        same_defined = same_defined && isnan(before[i]) == isnan(now[i]);
    }
    if (same) {
        set(row, GATE_OK, false, "%s", "");
    } else if (!same_defined) {
        /* Fewer values, or as many in different replications, are an alarm, because some value
         * vanished. */
        set(row, GATE_STATUS, defined_now <= defined_before, "defined in %u of %u run%s, was in %u",
            defined_now, n, text_plural(n), defined_before);
    } else {
        struct largest x = find_largest(m->better, before, now, n);
        struct largest any = find_largest(METRIC_BETTER_NEITHER, before, now, n);
        any.worse = m->better != METRIC_BETTER_NEITHER &&
                    (any.change_frac > 0.0) == (m->better == METRIC_BETTER_LOWER);
        x = fabs(x.change_frac) > m->tolerance_frac ? x : any; /* the worse within: the better */
        bool small = m->better == METRIC_BETTER_NEITHER || fabs(x.change_frac) <= m->tolerance_frac;
        set(row,
            small     ? GATE_DRIFT
            : x.worse ? GATE_REGRESSION
                      : GATE_GAIN,
            !small && x.worse, "%s", "");
        say_exact(m, x, row);
    }
}

/* ---- fresh ---- */

static double *logs_of(const double *x, uint32_t n)
{
    double *y = xmalloc((n + 1) * sizeof *y);
    for (uint32_t i = 0; i < n; i++) {
        y[i] = isfinite(x[i]) ? log(x[i]) : UNDEFINED;
    }
    return y;
}

static bool all_positive(const double *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (x[i] <= 0.0) {
            return false;
        }
    }
    return true;
}

/* Fisher's exact test, one-sided: the probability of at least this many marked runs on the second
 * side if both sides are marked with equal probability. */
static double more_marked_p(uint32_t marked_before, uint32_t n_before, uint32_t marked_now,
                            uint32_t n_now)
{
    if (marked_now == 0) {
        return 1.0;
    }
    uint32_t marked = marked_before + marked_now;
    return gsl_cdf_hypergeometric_Q(marked_now - 1, marked, n_before + n_now - marked, n_now);
}

/* Fills the row's three p-values; verdicts need those of all rows. */
static void test_shift(const struct gate_metric *m, const struct stats_shift *s, double up,
                       double down, struct gate_row *row)
{
    double above = stats_shift_p_above(s, up);
    double below = stats_shift_p_below(s, down);
    double any_above = stats_shift_p_above(s, 0.0);
    double any_below = stats_shift_p_below(s, 0.0);
    row->p_any = GSL_MIN_DBL(1.0, 2.0 * GSL_MIN_DBL(any_above, any_below));
    row->tolerance_frac = m->tolerance_frac;
    if (m->better != METRIC_BETTER_NEITHER) {
        row->p_worse = m->better == METRIC_BETTER_LOWER ? above : below;
        row->p_better = m->better == METRIC_BETTER_LOWER ? below : above;
    }
}

static void judge_fresh(const struct pair *p, const struct gate_metric *m, const double *before,
                        const double *now, struct gate_row *row)
{
    uint32_t nb = p->before->replications;
    uint32_t nn = p->now->replications;
    uint32_t db = 0;
    uint32_t dn = 0;
    double mean_before = mean_of(before, nb, &db);
    double mean_now = mean_of(now, nn, &dn);
    row->fresh = true;
    set_change(row, mean_before, mean_now);
    if (db == 0 || dn == 0) {
        set(row, db == dn ? GATE_OK : GATE_STATUS, dn < db,
            db == dn  ? ""
            : dn == 0 ? "not defined in any run"
                      : "newly defined");
        return;
    }
    /* Latencies scatter by factors, so in logarithms a relative change is the same shift at every
     * load. */
    bool log_scale = all_positive(before, nb) && all_positive(now, nn);
    OWNED double *y0 = log_scale ? logs_of(before, nb) : NULL;
    OWNED double *y1 = log_scale ? logs_of(now, nn) : NULL;
    /* Fresh seeds are not paired. Instead, the scatter explained by the workloads (covariates) is
     * removed. */
    struct stats_shift s = stats_shift(
        (struct stats_sample){log_scale ? y0 : before, p->before->covariates, nb},
        (struct stats_sample){log_scale ? y1 : now, p->now->covariates, nn}, GATE_COVARIATES);
    double tol = m->tolerance_frac;
    if (log_scale) {
        row->before = portable_exp(s.base_mean);
        row->after = portable_exp(s.base_mean + s.shift);
        row->change_frac = portable_round(expm1(s.shift));
        row->se_frac = s.se;
        test_shift(m, &s, log1p(tol), log1p(-tol), row);
    } else {
        set_change(row, s.base_mean, s.base_mean + s.shift);
        row->se_frac = s.se / fabs(s.base_mean);
        test_shift(m, &s, tol * fabs(s.base_mean), -tol * fabs(s.base_mean), row);
    }
    if (!isfinite(s.se)) { /* fail closed: without a test it is not OK */
        set(row, GATE_STATUS, true, "too few values to test");
        row->p_worse = row->p_better = row->p_any = UNDEFINED;
    } else if (nn - dn > 0 && m->better != METRIC_BETTER_NEITHER) {
        /* Vanished values are worse, regardless of the others: two tests in one row. */
        double vanished = more_marked_p(nb - db, nb, nn - dn, nn);
        row->p_worse = GSL_MIN_DBL(1.0, 2.0 * GSL_MIN_DBL(row->p_worse, vanished));
    }
}

/* Holm over all rows, separately for alarms, gains and drifts; rows without a test are unchanged.
 */
static void settle_fresh(struct gate_report *r)
{
    OWNED double *worse = xmalloc((r->n + 1) * sizeof *worse);
    OWNED double *better = xmalloc((r->n + 1) * sizeof *better);
    OWNED double *any = xmalloc((r->n + 1) * sizeof *any);
    for (uint32_t i = 0; i < r->n; i++) {
        worse[i] = r->rows[i].p_worse;
        better[i] = r->rows[i].p_better;
        any[i] = r->rows[i].p_any;
    }
    /* Holm, because of hundreds of rows some are below any level by chance. Alarms are corrected
     * separately, so that rows which can only be gains do not reduce their power. */
    stats_holm(worse, r->n, worse);
    stats_holm(better, r->n, better);
    stats_holm(any, r->n, any);
    for (uint32_t i = 0; i < r->n; i++) {
        struct gate_row *row = &r->rows[i];
        bool is_status = strcmp(row->metric, "status") == 0;
        if (worse[i] <= GATE_ALPHA_FRAC) {
            row->p = worse[i];
            row->verdict = is_status ? GATE_STATUS : GATE_REGRESSION;
            row->alarm = true;
        } else if (better[i] <= GATE_ALPHA_FRAC) {
            row->p = better[i];
            row->verdict = is_status ? GATE_STATUS : GATE_GAIN;
        } else if (any[i] <= GATE_ALPHA_FRAC) {
            row->p = any[i];
            row->verdict = GATE_DRIFT;
        } else {
            row->p = !isnan(worse[i]) ? worse[i] : any[i];
        }
    }
}

/* ---- status ---- */

static uint32_t badness(const struct gate_cell *c)
{
    return c->verdicts[1] + 2 * c->verdicts[2];
}

/* Whether the runs can be compared; if not, the row has the reason. */
static bool judge_status(const struct pair *p, struct gate_row *row)
{
    const struct gate_cell *a = p->before;
    const struct gate_cell *b = p->now;
    if (p->group->fresh != (a->covariates != NULL) ||
        (!p->group->fresh && a->replications != b->replications)) {
        set(row, GATE_STATUS, true, "recorded with another test or number of replications");
        return false;
    }
    /* A change of the generator would otherwise look like a change of every policy. */
    if (a->trace_hash != b->trace_hash) {
        set(row, GATE_STATUS, true, "the workload is another: its traces differ");
        return false;
    }
    double failed_before = (double)a->failed / a->replications;
    double failed_now = (double)b->failed / b->replications;
    /* Metrics of the remaining runs would be those of a different selection. */
    if (failed_now != failed_before) {
        set(row, GATE_STATUS, failed_now > failed_before || p->added_alarms,
            "%u of %u run%s failed, were %u of %u%s%s", b->failed, b->replications,
            text_plural(b->replications), a->failed, a->replications, b->failed > 0 ? ": " : "",
            b->message);
        return false;
    }
    if (b->failed == b->replications) {
        set(row, GATE_OK, false, "fails as before");
        return true;
    }
    const char *text = xkeep(xformat("stable, undecided, overloaded: %u, %u, %u, were %u, %u, %u",
                                     b->verdicts[0], b->verdicts[1], b->verdicts[2], a->verdicts[0],
                                     a->verdicts[1], a->verdicts[2]));
    if (p->group->fresh) {
        row->fresh = true;
        row->detail = text;
        row->p_worse =
            more_marked_p(a->verdicts[2], a->replications, b->verdicts[2], b->replications);
        row->p_better =
            more_marked_p(b->verdicts[2], b->replications, a->verdicts[2], a->replications);
    } else if (memcmp(a->verdicts, b->verdicts, sizeof a->verdicts) != 0) {
        set(row, GATE_STATUS, badness(b) > badness(a), "%s", text);
    }
    return true;
}

/* ---- pairs ---- */

static const struct gate_metric *metric_of(const struct gate_group *g, const char *name)
{
    for (uint32_t i = 0; i < g->n_metrics; i++) {
        if (strcmp(g->metrics[i].name, name) == 0) {
            return &g->metrics[i];
        }
    }
    return NULL;
}

static void judge_metric(const struct pair *p, const struct gate_metric *m,
                         const struct gate_row *status, bool comparable, struct gate_row *row)
{
    const double *before = gate_cell_values(p->before, m->name);
    const double *now = gate_cell_values(p->now, m->name);
    row->better = m->better;
    if (now == NULL) {
        set(row, GATE_REMOVED, true, "no run has a metric of that name");
    } else if (before == NULL) {
        set(row, GATE_ADDED, p->added_alarms, "no baseline");
    } else if (!comparable) { /* the status row says it once for all */
        set(row, GATE_STATUS, status->alarm, "not compared");
        row->quiet = true;
    } else if (p->group->fresh) {
        judge_fresh(p, m, before, now, row);
    } else {
        judge_exact(m, before, now, p->now->replications, row);
    }
}

/* Every row of one policy in one group gets the same verdict. */
static void all_rows(const struct gate_cell *c, enum gate_verdict v, bool alarm, const char *detail,
                     struct gate_report *r)
{
    set(add_row(r, c->group, c->policy, "status"), v, alarm, "%s", detail);
    for (uint32_t i = 0; i < c->n_metrics; i++) {
        struct gate_row *row = add_row(r, c->group, c->policy, c->names[i]);
        set(row, v, alarm, "%s", detail);
        row->quiet = true;
    }
}

static void judge_pair(const struct pair *p, struct gate_report *r)
{
    if (p->now->unknown_policy) {
        if (p->before != NULL) {
            all_rows(p->before, GATE_REMOVED, true, "this build has no such policy", r);
        } else { /* named in the file, but unknown to both */
            all_rows(p->now, GATE_STATUS, true, "this build has no such policy", r);
        }
        return;
    }
    if (p->before == NULL || p->before->unknown_policy) {
        all_rows(p->now, GATE_ADDED, p->added_alarms, "no baseline", r);
        return;
    }
    struct gate_row *status = add_row(r, p->now->group, p->now->policy, "status");
    bool comparable = judge_status(p, status);
    for (uint32_t i = 0; i < p->group->n_metrics; i++) {
        const struct gate_metric *m = &p->group->metrics[i];
        judge_metric(p, m, status, comparable, add_row(r, p->now->group, p->now->policy, m->name));
    }
    for (uint32_t i = 0; i < p->before->n_metrics; i++) {
        if (metric_of(p->group, p->before->names[i]) == NULL) {
            set(add_row(r, p->now->group, p->now->policy, p->before->names[i]), GATE_REMOVED, true,
                "no longer asked for");
        }
    }
}

/* ---- parameters ---- */

/* A changed default may have no effect on any load of the matrix, so it has a separate row. */
static void judge_parameters(const struct gate_cells *before, const struct gate_parameters *now,
                             bool added_alarms, struct gate_report *r)
{
    const char *was = gate_parameters_find(before, now->policy);
    struct gate_row *row = add_row(r, GATE_PARAMETERS, now->policy, GATE_PARAMETERS);
    if (was == NULL) {
        set(row, GATE_ADDED, added_alarms, "no baseline");
    } else if (strcmp(was, now->text) != 0) {
        set(row, GATE_STATUS, true, "%s", gate_parameters_changes(was, now->text));
    }
}

const struct gate_group *gate_group_find(const struct gate_baseline *b, const char *name)
{
    for (uint32_t i = 0; i < b->n_groups; i++) {
        if (strcmp(b->groups[i].name, name) == 0) {
            return &b->groups[i];
        }
    }
    return NULL;
}

void gate_judge(const struct gate_baseline *b, const struct gate_cells *before,
                const struct gate_cells *now, bool added_alarms, struct gate_report *out)
{
    size_t most = 0;
    for (uint32_t i = 0; i < before->n; i++) {
        most += 1 + before->v[i].n_metrics;
    }
    for (uint32_t i = 0; i < now->n; i++) {
        most += 1 + GATE_MAX_METRICS;
    }
    most += now->n_parameters;
    *out = (struct gate_report){.rows = xkept(xcalloc(most + 1, sizeof *out->rows))};
    for (uint32_t i = 0; i < now->n; i++) {
        const struct gate_cell *c = &now->v[i];
        struct pair p = {gate_group_find(b, c->group), gate_cell_find(before, c->group, c->policy),
                         c, added_alarms};
        judge_pair(&p, out);
    }
    for (uint32_t i = 0; i < before->n; i++) {
        const struct gate_cell *c = &before->v[i];
        if (gate_cell_find(now, c->group, c->policy) == NULL) {
            all_rows(c, GATE_REMOVED, true, "no longer asked for", out);
        }
    }
    for (uint32_t i = 0; i < now->n_parameters && (added_alarms || before->n_parameters > 0); i++) {
        judge_parameters(before, &now->parameters[i], added_alarms, out);
    }
    settle_fresh(out);
    for (uint32_t i = 0; i < out->n; i++) {
        out->counts[out->rows[i].verdict]++;
        out->alarms += out->rows[i].alarm;
    }
    SIM_ASSERT(out->counts[GATE_OK] <= out->n && out->alarms <= out->n - out->counts[GATE_OK]);
}

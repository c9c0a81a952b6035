/* Computes differences of policies over the drawn machines without the noise of their runs, and how
 * sure their order is. */
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_math.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>

#include "experiments/compare/uncertainty_impl.h"
#include "sim/base/rng.h"
#include "sim/metrics/metric_table.h"
#include "sim/stats/stats_intervals.h"

static double value_of(const struct uncertainty *u, uint32_t machine, uint32_t repeat,
                       uint32_t policy, uint32_t metric)
{
    size_t run = (size_t)machine * UNCERTAINTY_REPEATS + repeat;
    return u->value[(run * u->n_policies + policy) * u->n_metrics + metric];
}

/* Range of the middle MACHINES_LEVEL_FRAC of n values, which it sorts. */
static struct uncertainty_range middle_of(double *x, size_t n)
{
    if (n == 0) {
        return (struct uncertainty_range){(double)NAN, (double)NAN};
    }
    gsl_sort(x, 1, n);
    return (struct uncertainty_range){
        gsl_stats_quantile_from_sorted_data(x, 1, n, (1.0 - MACHINES_LEVEL_FRAC) / 2.0),
        gsl_stats_quantile_from_sorted_data(x, 1, n, (1.0 + MACHINES_LEVEL_FRAC) / 2.0)};
}

/* The policy's difference from the baseline in a run. */
static double run_of(const struct uncertainty_work *w, const struct uncertainty_pair *p,
                     uint32_t baseline, uint32_t machine, uint32_t repeat)
{
    return value_of(w->u, machine, repeat, p->policy, p->metric) -
           value_of(w->u, machine, repeat, baseline, p->metric);
}

/* The baseline's mean on a machine. */
static double baseline_on(const struct uncertainty_work *w, const struct uncertainty_pair *p,
                          uint32_t machine)
{
    double sum = 0.0;
    for (uint32_t k = 0; k < UNCERTAINTY_REPEATS; k++) {
        sum += value_of(w->u, machine, k, w->u->plan->baseline, p->metric);
    }
    return sum / UNCERTAINTY_REPEATS;
}

/* Coefficient of a control variate: the difference of a run's requests on the file's machine, less
 * the mean. It comes from the pairs of runs on one machine and gives the smallest sum of absolute
 * errors, as a weighted median of ratios. */
static double control(const struct uncertainty_work *w, const struct uncertainty_pair *p)
{
    const struct compare_plan *plan = w->u->plan;
    const uint32_t n = w->u->machines.n_draws;
    OWNED double *ratio = xmalloc((n + 1) * sizeof *ratio);
    OWNED double *weight = xmalloc((n + 1) * sizeof *weight);
    double all = 0.0;
    size_t k = 0;
    for (uint32_t i = 0; i < n; i++) {
        double y = run_of(w, p, plan->baseline, i, 1) - run_of(w, p, plan->baseline, i, 0);
        double x = w->trace[uncertainty_replication(plan, i, 1)] -
                   w->trace[uncertainty_replication(plan, i, 0)];
        if (isfinite(x * y) && x != 0.0) {
            ratio[k] = y / x;
            weight[k++] = fabs(x);
            all += fabs(x);
        }
    }
    gsl_sort2(ratio, 1, weight, 1, k);
    double below = 0.0;
    for (size_t i = 0; i < k; i++) {
        below += weight[i];
        if (below >= all / 2.0) {
            return ratio[i];
        }
    }
    return 0.0;
}

/* The variance of a normal distribution with the same middle 80 %. A tenth of the machines on
 * either side cannot affect it, but a larger group can. */
static double middle_variance(const double *sorted, size_t n)
{
    double wide = gsl_stats_quantile_from_sorted_data(sorted, 1, n, 0.9) -
                  gsl_stats_quantile_from_sorted_data(sorted, 1, n, 0.1);
    return n > 1 ? pow(wide / (2.0 * gsl_cdf_ugaussian_Pinv(0.9)), 2.0) : 0.0;
}

/* Computes the differences of each run, less the effect of its requests. */
static void differences(struct uncertainty_work *w, const struct uncertainty_pair *p)
{
    const struct compare_plan *plan = w->u->plan;
    double beta = control(w, p);
    w->n = 0;
    for (uint32_t i = 0; i < w->u->machines.n_draws; i++) {
        double *d = &w->run[(size_t)w->n * UNCERTAINTY_REPEATS];
        double mean = 0.0;
        for (uint32_t k = 0; k < UNCERTAINTY_REPEATS; k++) {
            double x = w->trace[uncertainty_replication(plan, i, k)];
            d[k] = run_of(w, p, plan->baseline, i, k) - (isfinite(x) ? beta * x : 0.0);
            mean += d[k] / UNCERTAINTY_REPEATS;
        }
        if (!isnan(mean)) {
            w->machine[w->n++] = i;
        }
    }
}

struct shrunk {
    double kept_frac;      /* of the variance between machines that is the model's */
    double model_var_frac; /* of that between single runs */
};

/* Means of the picked machines (NULL: all), shrunk by the noise within machines, into w->m.
 * Differences of overloaded machines are many times larger, also between their two runs. With
 * means and variances they would pull all other machines to their side of 0. So the centre is the
 * median, and scales are robust. */
static struct shrunk shrink(struct uncertainty_work *w, const uint32_t *pick)
{
    size_t n_noise = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        const double *d = &w->run[(size_t)(pick != NULL ? pick[i] : i) * UNCERTAINTY_REPEATS];
        double mean = gsl_stats_mean(d, 1, UNCERTAINTY_REPEATS);
        for (uint32_t k = 0; k < UNCERTAINTY_REPEATS; k++) {
            w->noise[n_noise++] = fabs(d[k] - mean);
        }
        w->sorted[i] = w->m[i] = mean;
    }
    gsl_sort(w->sorted, 1, w->n);
    gsl_sort(w->noise, 1, n_noise);
    double centre = gsl_stats_quantile_from_sorted_data(w->sorted, 1, w->n, 0.5);
    double typical = gsl_stats_quantile_from_sorted_data(w->noise, 1, n_noise, 0.5) /
                     gsl_cdf_ugaussian_Pinv(0.75); /* a normal's standard deviation */
    /* About the mean of R repeats lies (R - 1) / R of the variance of one run. */
    double within = typical * typical * UNCERTAINTY_REPEATS / (UNCERTAINTY_REPEATS - 1.0);
    double all = middle_variance(w->sorted, w->n);
    /* The mean of R repeats has 1 / R of the noise of one run. */
    double model = fmax(0.0, all - within / UNCERTAINTY_REPEATS);
    double kept = all > 0.0 ? model / all : 0.0;
    /* The shrunk variance is the model's plus that of the median, which is pi/2 of the mean's. The
     * order of machines stays. */
    double by = sqrt(kept + (1.0 - kept) * M_PI_2 / fmax(w->n, M_PI_2));
    for (uint32_t i = 0; i < w->n; i++) {
        w->m[i] = centre + by * (w->m[i] - centre);
    }
    return (struct shrunk){kept, model + within > 0.0 ? model / (model + within) : 0.0};
}

static double better_frac(const struct uncertainty_work *w, bool gain)
{
    uint32_t better = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        better += gain ? w->m[i] > 0.0 : w->m[i] < 0.0;
    }
    return w->n > 0 ? (double)better / w->n : (double)NAN;
}

/* The standard error of better_frac, by other machines: that of a share, or that of bootstraps if
 * it is larger. Where noise within machines hides the model's differences, the median may lie on
 * either side of 0, and all machines with it. */
static double better_se(struct uncertainty_work *w, uint64_t seed, const struct uncertainty_pair *p)
{
    double share[BOOTSTRAPS];
    OWNED uint32_t *pick = xmalloc((w->n + 1) * sizeof *pick);
    struct rng r;
    rng_init(&r, rng_key(seed, RNG_BOOTSTRAP, 0, 18)); /* the same machines for all pairs */
    for (int b = 0; b < BOOTSTRAPS; b++) {
        for (uint32_t i = 0; i < w->n; i++) {
            pick[i] = rng_below(&r, w->n);
        }
        (void)shrink(w, pick);
        share[b] = better_frac(w, p->gain);
    }
    double of_share = sqrt(fmax(p->better_frac * (1.0 - p->better_frac), 1.0 / w->n) / w->n);
    return fmax(of_share, gsl_stats_sd(share, 1, BOOTSTRAPS));
}

static void analyse_pair(struct uncertainty_work *w, struct uncertainty_pair *p)
{
    const struct compare_plan *plan = w->u->plan;
    const struct compare_result *nominal = w->u->nominal;
    const char *name = w->u->metrics[p->metric];
    const double *a = compare_values(nominal, p->policy, name);
    const double *b = compare_values(nominal, plan->baseline, name);
    struct stats_paired s = stats_reported_paired(a, b, nominal->replications);
    p->gain = metric_is_gain(name);
    p->nominal = s.diff.mean;
    p->sampling_low = s.diff.low;
    p->sampling_high = s.diff.high;
    for (uint32_t i = 0; i < nominal->replications; i++) {
        w->trace[i] = a[i] - b[i] - p->nominal;
    }
    differences(w, p);
    struct shrunk all = shrink(w, NULL);
    w->kept_frac = all.kept_frac;
    p->model_var_frac = all.model_var_frac;
    p->better_frac = better_frac(w, p->gain);
    uint32_t not_worse = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        double gain = p->gain ? w->m[i] : -w->m[i];
        not_worse += gain >= -plan->relevance_frac * fabs(baseline_on(w, p, w->machine[i]));
    }
    p->not_worse_frac = w->n > 0 ? (double)not_worse / w->n : (double)NAN;
    p->se = (double)NAN;
    if (w->n > 0) {
        if (w->u->machines.n_draws >= UNCERTAINTY_LIST_MIN) {
            uncertainty_shares(w, plan->options->seed, p);
        }
        OWNED double *sorted = xmalloc(w->n * sizeof *sorted);
        memcpy(sorted, w->m, w->n * sizeof *sorted);
        struct uncertainty_range middle = middle_of(sorted, w->n);
        p->model_low = middle.low;
        p->model_high = middle.high;
        p->se = better_se(w, plan->options->seed, p); /* overwrites w->m */
    }
}

/* Computes the range of each policy's means over the machines on which it ran. */
static void find_means(struct uncertainty *u)
{
    u->means = xkept(xcalloc((size_t)u->n_metrics * u->n_policies + 1, sizeof *u->means));
    OWNED double *x = xmalloc((u->machines.n_draws + 1) * sizeof *x);
    for (uint32_t m = 0; m < u->n_metrics; m++) {
        for (uint32_t p = 0; p < u->n_policies; p++) {
            size_t n = 0;
            for (uint32_t i = 0; i < u->machines.n_draws; i++) {
                x[n] = 0.0;
                for (uint32_t k = 0; k < UNCERTAINTY_REPEATS; k++) {
                    x[n] += value_of(u, i, k, p, m) / UNCERTAINTY_REPEATS;
                }
                n += isfinite(x[n]) ? 1 : 0;
            }
            u->means[(size_t)m * u->n_policies + p] = middle_of(x, n);
        }
    }
}

/* Computes the share of machines on which each policy has the best mean of a metric. Equal policies
 * share a machine. */
static void count_best(struct uncertainty *u)
{
    OWNED double *sum = xmalloc((u->n_policies + 1) * sizeof *sum);
    u->best_frac = xcalloc((size_t)u->n_metrics * u->n_policies + 1, sizeof *u->best_frac);
    for (uint32_t m = 0; m < u->n_metrics; m++) {
        double sign = metric_is_gain(u->metrics[m]) ? -1.0 : 1.0;
        uint32_t counted = 0;
        double *best = &u->best_frac[(size_t)m * u->n_policies];
        for (uint32_t i = 0; i < u->machines.n_draws; i++) {
            double least = (double)INFINITY;
            uint32_t n_least = 0;
            for (uint32_t p = 0; p < u->n_policies; p++) {
                sum[p] = 0.0;
                for (uint32_t k = 0; k < UNCERTAINTY_REPEATS; k++) {
                    sum[p] += sign * value_of(u, i, k, p, m);
                }
                n_least = sum[p] < least ? 1 : n_least + (sum[p] == least);
                least = fmin(least, sum[p]);
            }
            bool ran = isfinite(least) != 0;
            counted += ran;
            for (uint32_t p = 0; ran && p < u->n_policies; p++) {
                best[p] += sum[p] == least ? 1.0 / n_least : 0.0;
            }
        }
        for (uint32_t p = 0; p < u->n_policies; p++) {
            best[p] = counted > 0 ? best[p] / counted : (double)NAN;
        }
    }
}

void uncertainty_analyse(struct uncertainty *u)
{
    uint32_t n = u->machines.n_draws;
    SCOPED(arena_fini) struct arena memory = {0};
    struct uncertainty_work w = {
        .u = u,
        .machine = arena_alloc(&memory, (n + 1) * sizeof *w.machine),
        .run = arena_alloc(&memory, (n + 1) * UNCERTAINTY_REPEATS * sizeof *w.run),
        .m = arena_alloc(&memory, (n + 1) * sizeof *w.m),
        .sorted = arena_alloc(&memory, (n + 1) * sizeof *w.sorted),
        .noise = arena_alloc(&memory, (n + 1) * UNCERTAINTY_REPEATS * sizeof *w.noise),
        .y = arena_alloc(&memory, (n + 1) * sizeof *w.y),
        .score = arena_alloc(&memory, (n + 1) * sizeof *w.score),
        .trace = arena_alloc(&memory, (u->nominal->replications + 1) * sizeof *w.trace)};
    u->pairs = xcalloc((size_t)u->n_policies * u->n_metrics + 1, sizeof *u->pairs);
    for (uint32_t p = 0; p < u->n_policies; p++) {
        for (uint32_t m = 0; p != u->plan->baseline && m < u->n_metrics; m++) {
            struct uncertainty_pair *pair = &u->pairs[u->n_pairs];
            *pair = (struct uncertainty_pair){.policy = p, .metric = m, .next = -1};
            if (compare_values(u->nominal, p, u->metrics[m]) != NULL) {
                analyse_pair(&w, pair);
                u->n_pairs++;
            }
        }
    }
    count_best(u);
    find_means(u);
}

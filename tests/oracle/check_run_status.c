/* The rule of the run status against queues whose load is known. Its two limits are quantiles at a
 * load of exactly one, where no word is right. There the work of a queue is, in the limit of many
 * jobs, a random walk that is reflected at zero. The words are counted on queues of other kinds.
 * With WHOLE=yes this test prints the table of docs/concepts/verdicts.md; otherwise it has fewer
 * long queues. */
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/base/units.h"
#include "sim/metrics/backlog.h"
#include "tests/helpers/suite.h"

#define TOKENS_PER_S 1e6 /* work is counted in tokens of 1 us */
enum { MAX_SERVERS = 8, MAX_JOBS = 40000 };

struct queue {
    const char *name;
    double arrival_shape; /* of gamma gaps with mean 1 / load: cv = 1 / sqrt(shape) */
    double service_cv2;   /* 0: constant; 1: exponential; else two exponentials, balanced means */
    uint32_t servers;
};

static const struct queue mm1 = {"M/M/1", 1.0, 1.0, 1};

static double service_s(const struct queue *q, gsl_rng *r)
{
    if (q->service_cv2 == 0.0) {
        return 1.0;
    }
    if (q->service_cv2 == 1.0) {
        return gsl_ran_exponential(r, 1.0);
    }
    double p = 0.5 * (1.0 + sqrt((q->service_cv2 - 1.0) / (q->service_cv2 + 1.0)));
    double first = gsl_rng_uniform(r) < p ? p : 1.0 - p;
    return gsl_ran_exponential(r, 0.5 / first);
}

struct job {
    double at_s, done_s;
    uint32_t tokens;
};

static int by_done(const void *x, const void *y)
{
    double a = ((const struct job *)x)->done_s;
    double b = ((const struct job *)y)->done_s;
    return a < b ? -1 : a > b;
}

/* Serves in order of arrival on the queue's servers. The mean service is 1 s. */
static struct backlog_summary serve(const struct queue *q, double load, uint32_t n, gsl_rng *r)
{
    static struct job arrived[MAX_JOBS], done[MAX_JOBS];
    static struct backlog b;
    struct metrics_verdict_rule rule = metrics_options_default().verdict;
    double free_s[MAX_SERVERS] = {0.0};
    double now_s = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        double rate = load * q->servers;
        now_s += gsl_ran_gamma(r, q->arrival_shape, 1.0 / (q->arrival_shape * rate));
        double s = service_s(q, r);
        uint32_t k = 0;
        for (uint32_t j = 1; j < q->servers; j++) {
            k = free_s[j] < free_s[k] ? j : k;
        }
        free_s[k] = fmax(free_s[k], now_s) + s;
        arrived[i] = (struct job){now_s, free_s[k], (uint32_t)ceil(s * TOKENS_PER_S)};
        done[i] = arrived[i];
    }
    if (q->servers > 1) { /* one server is done in the order of arrival */
        qsort(done, n, sizeof *done, by_done);
    }
    backlog_init(&b);
    uint32_t gone = 0;
    for (uint32_t i = 0; i < n; i++) {
        for (; gone < n && done[gone].done_s <= arrived[i].at_s; gone++) {
            backlog_leave(&b, units_ns_from_s(done[gone].done_s), done[gone].tokens, 0);
        }
        backlog_arrive(&b, units_ns_from_s(arrived[i].at_s), arrived[i].tokens, 0);
    }
    for (; gone < n; gone++) {
        backlog_leave(&b, units_ns_from_s(done[gone].done_s), done[gone].tokens, 0);
    }
    b.prompt_token_ns = 1e9 / TOKENS_PER_S;
    return backlog_summarise(&b, &rule);
}

struct words {
    uint32_t of[METRICS_OVERLOADED + 1];
};

static struct words count_words(const struct queue *q, double load, uint32_t n, uint32_t runs)
{
    gsl_rng *r = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(r, (unsigned long)(load * 100.0) * 131071u + n);
    struct words w = {{0}};
    for (uint32_t i = 0; i < runs; i++) {
        w.of[serve(q, load, n, r).verdict]++;
    }
    gsl_rng_free(r);
    return w;
}

/* At most 5 % of the runs may have the word that is wrong at this load. */
static void says_little_wrong(const struct queue *q, double load, uint32_t n, uint32_t runs)
{
    struct words w = count_words(q, load, n, runs);
    printf("run status: %-22s load %.2f, %5u jobs: STABLE %5.1f %%, UNDECIDED %5.1f %%, OVERLOADED "
           "%5.1f %%\n",
           q->name, load, n, 100.0 * w.of[METRICS_STABLE] / runs,
           100.0 * w.of[METRICS_UNDECIDED] / runs, 100.0 * w.of[METRICS_OVERLOADED] / runs);
    uint32_t wrong = load < 1.0 ? w.of[METRICS_OVERLOADED] : w.of[METRICS_STABLE];
    ck_assert_msg(wrong <= runs / 20, "%u of %u runs of %s at load %g say the wrong word", wrong,
                  runs, q->name, load);
}

START_TEST(at_most_one_word_in_twenty_is_wrong)
{
    static const double loads[] = {0.8, 0.9, 0.95, 1.05, 1.1, 1.2, 1.3};
    static const uint32_t jobs[] = {10, 50, 200, 1000, 5000, 40000};
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        for (size_t k = 0; k < sizeof loads / sizeof loads[0]; k++) {
            if (jobs[i] <= 5000 || suite_whole()) {
                bool fewer = jobs[i] >= (suite_whole() ? 40000 : 5000);
                says_little_wrong(&mm1, loads[k], jobs[i], fewer ? 100 : 500);
            }
        }
    }
}
END_TEST

START_TEST(other_queues_are_judged_as_well)
{
    static const struct queue queues[] = {
        {"M/D/1", 1.0, 0.0, 1},
        {"M/H2/1, cv2 4", 1.0, 4.0, 1},
        {"bursts of cv 4, M", 1.0 / 16.0, 1.0, 1},
        {"M/M/8", 1.0, 1.0, 8},
    };
    static const double loads[] = {0.8, 0.95, 1.05, 1.3};
    for (size_t i = 0; i < sizeof queues / sizeof queues[0]; i++) {
        for (size_t k = 0; k < sizeof loads / sizeof loads[0]; k++) {
            says_little_wrong(&queues[i], loads[k], 200, 400);
            says_little_wrong(&queues[i], loads[k], 2000, suite_whole() ? 400 : 100);
        }
    }
}
END_TEST

/* A rule that never decided would never be wrong. Far from a load of one it must decide. */
START_TEST(far_from_a_load_of_one_nearly_every_run_has_a_word)
{
    struct words low = count_words(&mm1, 0.5, 5000, 200);
    struct words high = count_words(&mm1, 1.3, 5000, 200);
    ck_assert_uint_ge(low.of[METRICS_STABLE], 195);
    ck_assert_uint_ge(high.of[METRICS_OVERLOADED], 195);
}
END_TEST

/* Computes both statistics of a reflected random walk without drift, by other code than the
 * program's. 5 % of the walks have a longest stretch above the mean that is shorter than the first
 * quantile. 5 % have a growth that is larger than the second. */
static void quantiles(uint32_t bins, double *rise, double *growth)
{
    enum { WALKS = 4000, STEPS = 8, PARTS = 10 };
    static double l[WALKS], t[WALKS], w[BACKLOG_BINS];
    gsl_rng *r = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(r, bins);
    for (uint32_t k = 0; k < WALKS; k++) {
        double at = 0.0;
        for (uint32_t i = 0; i < bins; i++) {
            w[i] = 0.0;
            for (int s = 0; s < STEPS; s++) {
                at = fmax(at + gsl_ran_gaussian_ziggurat(r, 1.0), 0.0);
                w[i] += at / STEPS;
            }
        }
        double mean = gsl_stats_mean(w, 1, bins);
        double run = 0.0;
        l[k] = 0.0;
        for (uint32_t i = 0; i < bins; i++) {
            run = w[i] > mean ? run + 1.0 : 0.0;
            l[k] = fmax(l[k], run / bins);
        }
        double d[PARTS];
        for (uint32_t i = 0; i < PARTS; i++) {
            double before = i == 0 ? 0.0 : w[bins * i / PARTS - 1];
            d[i] = w[bins * (i + 1) / PARTS - 1] - before;
        }
        t[k] = gsl_stats_mean(d, 1, PARTS) / (gsl_stats_sd(d, 1, PARTS) / sqrt(PARTS));
    }
    gsl_rng_free(r);
    gsl_sort(l, 1, WALKS);
    gsl_sort(t, 1, WALKS);
    *rise = gsl_stats_quantile_from_sorted_data(l, 1, WALKS, 0.05);
    *growth = gsl_stats_quantile_from_sorted_data(t, 1, WALKS, 0.95);
}

START_TEST(both_limits_are_quantiles_at_a_load_of_one)
{
    struct metrics_verdict_rule rule = metrics_options_default().verdict;
    uint32_t most = suite_whole() ? BACKLOG_BINS : BACKLOG_BINS / 4;
    for (uint32_t bins = 32; bins <= most; bins *= 2) {
        double rise;
        double growth;
        quantiles(bins, &rise, &growth);
        printf("run status: %4u bins: 5 %% of rises below %.3f, 5 %% of growths above %.2f\n", bins,
               rise, growth);
        /* A limit that is shorter than the quantile only decides less often. */
        ck_assert_double_ge(rise, rule.settled_max_frac - 0.005);
        ck_assert_double_eq_tol(growth, rule.growing_min_t, 0.2);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("run status", .timeout_s = 120),
    TEST(at_most_one_word_in_twenty_is_wrong),
    TEST(other_queues_are_judged_as_well),
    TEST(far_from_a_load_of_one_nearly_every_run_has_a_word),
    TEST(both_limits_are_quantiles_at_a_load_of_one),
};
SUITE_MAIN("run_status", suite)

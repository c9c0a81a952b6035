/* Parts of the metrics: the status of a run, and the map of live requests. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/map.h"
#include "sim/base/rng.h"
#include "sim/base/units.h"
#include "sim/metrics/backlog.h"
#include "tests/helpers/suite.h"

#define TOKENS_PER_S 1e6

typedef void backlog_fn(struct backlog *b, int64_t now_ns, uint32_t prompt, uint32_t output);

/* A machine that serves one request at a time in `service_s`, in order of arrival or the last
 * first: n requests `gap_s` apart. */
static struct backlog_summary serve(uint32_t n, double gap_s, double service_s, bool last_first)
{
    static struct backlog b;
    static bool gone[4096];
    struct metrics_verdict_rule rule = metrics_options_default().verdict;
    uint32_t tokens = (uint32_t)(service_s * TOKENS_PER_S);
    backlog_init(&b);
    memset(gone, 0, sizeof gone);
    uint32_t arrived = 0;
    for (double free_s = 0.0; arrived < n || b.n_system > 0;) {
        while (arrived < n && (arrived * gap_s <= free_s || b.n_system == 0)) {
            double at_s = arrived++ * gap_s;
            backlog_arrive(&b, units_ns_from_s(at_s), tokens, 0);
            free_s = at_s > free_s ? at_s : free_s;
        }
        uint32_t next = last_first ? arrived - 1 : 0;
        while (gone[next]) {
            next += last_first ? -1u : 1u;
        }
        gone[next] = true;
        free_s += service_s;
        while (arrived < n && arrived * gap_s <= free_s) {
            backlog_arrive(&b, units_ns_from_s(arrived++ * gap_s), tokens, 0);
        }
        backlog_leave(&b, units_ns_from_s(free_s), tokens, 0);
    }
    b.prompt_token_ns = 1e9 / TOKENS_PER_S;
    return backlog_summarise(&b, &rule);
}

START_TEST(status_follows_the_load_whatever_the_order)
{
    /* 101 requests in 100 s, 2 s each: done at 202, 102 s after the last. */
    for (int last_first = 0; last_first < 2; last_first++) {
        struct backlog_summary s = serve(101, 1.0, 2.0, last_first);
        ck_assert_double_eq_tol(s.drain_ns, 102e9, 1e3);
        ck_assert_int_eq(s.verdict, METRICS_OVERLOADED);
        /* Regular gaps and services leave no doubt 8 % above what the machine can do, or 5 % below.
         */
        ck_assert_int_eq(serve(101, 1.0, 1.08, last_first).verdict, METRICS_OVERLOADED);
        ck_assert_int_eq(serve(101, 1.0, 0.95, last_first).verdict, METRICS_STABLE);
    }
}
END_TEST

/* Bins of 1 ms, stretches of 64: a request of one token arrives at the beginning of those stretches
 * that are named, and stays. Ten of no token close the window of 640 ms. */
static struct backlog_summary staircase(const char *steps)
{
    static struct backlog b;
    struct metrics_verdict_rule rule = metrics_options_default().verdict;
    backlog_init(&b);
    for (int k = 0; k < 10; k++) {
        if (steps[k] == '+') {
            backlog_arrive(&b, k * 64 * NS_PER_MS, 1, 0);
        }
    }
    for (int k = 0; k < 10; k++) {
        backlog_arrive(&b, 640 * NS_PER_MS, 0, 0);
    }
    b.prompt_token_ns = 1.0;
    return backlog_summarise(&b, &rule);
}

START_TEST(statistics_of_a_staircase_are_as_by_hand)
{
    /* One more in every stretch: the standard error is zero. 6 to 10 are above the mean of 5.5. */
    struct backlog_summary s = staircase("++++++++++");
    ck_assert_double_eq(s.growth_t, HUGE_VAL);
    ck_assert_double_eq_tol(s.longest_rise_frac, 0.5, 1e-12);
    ck_assert_int_eq(s.verdict, METRICS_OVERLOADED);
    /* One more in every second: mean 1/2, variance 10 * (1/2)^2 / 9, so 1/2 / sqrt(1/36) = 3.
     * Levels 1 1 2 2 3 3 4 4 5 5, mean 3: above it 4 stretches of 10. */
    s = staircase("+-+-+-+-+-");
    ck_assert_double_eq_tol(s.growth_t, 3.0, 1e-12);
    ck_assert_double_eq_tol(s.longest_rise_frac, 0.4, 1e-12);
    ck_assert_int_eq(s.verdict, METRICS_OVERLOADED);
    /* One at the beginning that stays: 1/10 / sqrt(9/10 / 9 / 10) = 1, and nothing above the mean:
     * no growth, and the work does not rise. */
    s = staircase("+---------");
    ck_assert_double_eq_tol(s.growth_t, 1.0, 1e-12);
    ck_assert_double_eq(s.longest_rise_frac, 0.0);
    ck_assert_int_eq(s.verdict, METRICS_STABLE);
    /* Three of ten grow: mean 3/10, variance (3 - 9/10) / 9, t = 0.3 / sqrt(7/300) = 1.964. Levels
     * are 1 1 1 2 2 2 2 3 3 3 with mean 2, and 3 of 10 are above it. Neither verdict is given. */
    s = staircase("+--+---+--");
    ck_assert_double_eq_tol(s.growth_t, 0.3 / sqrt(7.0 / 300.0), 1e-12);
    ck_assert_double_eq_tol(s.longest_rise_frac, 0.3, 1e-12);
    ck_assert_int_eq(s.verdict, METRICS_UNDECIDED);
}
END_TEST

START_TEST(without_a_window_there_is_no_word)
{
    struct metrics_verdict_rule rule = metrics_options_default().verdict;
    static struct backlog b;
    for (int n = 0; n <= 15; n++) {
        backlog_init(&b);
        for (int i = 0; i < n; i++) {
            backlog_arrive(&b, 7 * NS_PER_S, 10, 5);
        }
        for (int i = 1; i <= n; i++) {
            backlog_leave(&b, (7 + i) * NS_PER_S, 10, 5);
        }
        b.prompt_token_ns = b.output_token_ns = 1.0;
        struct backlog_summary s = backlog_summarise(&b, &rule);
        ck_assert_int_eq(s.verdict, METRICS_UNDECIDED);
        ck_assert(isnan(s.longest_rise_frac) && isnan(s.growth_t));
    }
}
END_TEST

START_TEST(mean_in_window_is_that_of_the_window)
{
    struct metrics_verdict_rule rule = metrics_options_default().verdict;
    static struct backlog b;
    backlog_init(&b);
    for (int t = 0; t < 100; t++) {
        backlog_arrive(&b, t * NS_PER_S, 1, 0);
        backlog_leave(&b, t * NS_PER_S + NS_PER_S / 2, 1, 0);
    }
    b.prompt_token_ns = 0.5e9;
    struct backlog_summary s = backlog_summarise(&b, &rule);
    ck_assert_int_eq(s.verdict, METRICS_STABLE);
    ck_assert_double_eq_tol(s.growth_frac, 0.0, 0.005);
    /* Half a request on average (99 of them over 99 s). */
    ck_assert_double_eq_tol(s.mean_in_window, 0.5, 1e-12);
}
END_TEST

/* 41 requests come in 40 s and take 100 s each. So the drain is a hundred times the window, and the
 * bins still show the window. Then one more comes, and the bins continue. */
START_TEST(a_long_drain_leaves_the_window_its_bins)
{
    struct metrics_verdict_rule rule = metrics_options_default().verdict;
    struct backlog_summary s = serve(41, 1.0, 100.0, false);
    ck_assert_double_eq_tol(s.drain_ns, 4060e9, 1e3);
    ck_assert_int_eq(s.verdict, METRICS_OVERLOADED);
    static struct backlog b;
    backlog_init(&b);
    backlog_arrive(&b, 1 * NS_PER_S, 4, 0);
    backlog_arrive(&b, 2 * NS_PER_S, 4, 0);
    backlog_leave(&b, 101 * NS_PER_S, 4, 0);
    ck_assert_int_ge(b.late_since_ns, 0);
    backlog_leave(&b, 201 * NS_PER_S, 4, 0);
    backlog_arrive(&b, 301 * NS_PER_S, 4, 0);
    ck_assert_int_lt(b.late_since_ns, 0);
    backlog_finish(&b, 311 * NS_PER_S); /* asserts that the bins hold all of it */
    double sum[BACKLOG_KINDS] = {0.0};
    for (int k = 0; k < BACKLOG_KINDS; k++) {
        for (int i = 0; i < BACKLOG_BINS; i++) {
            sum[k] += b.area[k][i];
        }
    }
    /* Two requests have 100 s and 199 s, and the last has 10 s. Over the window of 300 s that is
     * one less. */
    ck_assert_double_eq_tol(sum[BACKLOG_REQUESTS], 309e9, 1.0);
    ck_assert_double_eq_tol(sum[BACKLOG_PROMPT], 4 * 309e9, 4.0);
    ck_assert_double_eq_tol(backlog_summarise(&b, &rule).mean_in_window, 299.0 / 300.0, 1e-12);
}
END_TEST

/* The limits of the rule were computed for 32 bins and more: of 32 of them it says a word, of 31
 * none. A bin is a millisecond wide. */
START_TEST(the_rule_needs_its_bins)
{
    struct metrics_verdict_rule rule = metrics_options_default().verdict;
    for (int bins = 31; bins <= 32; bins++) {
        static struct backlog b;
        backlog_init(&b);
        for (int ms = 0; ms <= bins; ms++) {
            backlog_arrive(&b, ms * NS_PER_MS, 1, 1);
        }
        backlog_finish(&b, bins * NS_PER_MS);
        b.prompt_token_ns = b.output_token_ns = 1000.0;
        ck_assert_int_eq(backlog_summarise(&b, &rule).verdict,
                         bins == 31 ? METRICS_UNDECIDED : METRICS_OVERLOADED);
    }
}
END_TEST

/* Growth is that of the second half of the arrivals: 200 s in which nobody stays, then one more of
 * two arrivals a second that stays, or the other way round. */
START_TEST(growth_is_that_of_the_second_half)
{
    struct metrics_verdict_rule rule = metrics_options_default().verdict;
    static struct backlog b;
    for (int last = 0; last < 2; last++) {
        backlog_init(&b);
        for (int t = 0; t <= 400; t++) {
            backlog_arrive(&b, t * NS_PER_S, 1, 1);
            if ((t >= 200) != (last == 1) || t % 2 == 0) {
                backlog_leave(&b, t * NS_PER_S + NS_PER_S / 2, 1, 1);
            }
        }
        ck_assert_double_eq_tol(backlog_summarise(&b, &rule).growth_frac, last == 1 ? 0.5 : 0.0,
                                0.01);
    }
}
END_TEST

/* ---- random histories, by brute force ---- */

enum { EVENTS = 240 };
static struct {
    int64_t at_ns;
    int more;
} history[EVENTS];
static uint32_t n_history;

/* Requests in the system over time, from one instant to another. */
static double area_of(int64_t from_ns, int64_t to_ns)
{
    double sum = 0.0;
    int present = 0;
    for (uint32_t i = 0; i <= n_history; i++) {
        int64_t begin = i > 0 ? history[i - 1].at_ns : 0;
        int64_t end = i < n_history ? history[i].at_ns : INT64_MAX;
        begin = begin > from_ns ? begin : from_ns;
        end = end < to_ns ? end : to_ns;
        sum += end > begin ? (double)present * (double)(end - begin) : 0.0;
        present += i < n_history ? history[i].more : 0;
    }
    return sum;
}

/* Slope of the least-squares line through the means of all bins inside the second half. */
static double slope_of(int64_t window_ns, int64_t width_ns)
{
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (int64_t k = 0; (k + 1) * width_ns <= window_ns; k++) {
        if (k * width_ns >= window_ns / 2) {
            double x = ((double)k + 0.5) * (double)width_ns;
            double y = area_of(k * width_ns, (k + 1) * width_ns) / (double)width_ns;
            n++;
            sx += x;
            sy += y;
            sxx += x * x;
            sxy += x * y;
        }
    }
    return n < 3 ? 0.0 : (sxy - sx * sy / n) / (sxx - sx * sx / n);
}

START_TEST(growth_and_mean_are_those_of_the_history)
{
    static struct backlog b;
    struct metrics_verdict_rule rule = metrics_options_default().verdict;
    struct rng r;
    rng_init(&r, rng_key(1, RNG_TEST, 9, 0));
    for (int round = 0; round < 100; round++) {
        uint32_t arrivals = 0, present = 0;
        int64_t now_ns = 0, last_ns = 0;
        double gap_ns = 1e4 * pow(1e4, rng_uniform(&r));
        backlog_init(&b);
        for (n_history = 0; n_history < EVENTS; n_history++) {
            bool comes = n_history == 0 || present == 0 || rng_below(&r, 20) < 11;
            backlog_fn *event = comes ? backlog_arrive : backlog_leave;
            event(&b, now_ns, 1, 1);
            history[n_history].at_ns = now_ns;
            history[n_history].more = comes ? 1 : -1;
            arrivals += comes;
            present += comes ? 1 : -1u;
            last_ns = comes ? now_ns : last_ns;
            now_ns += 1 + (int64_t)rng_exponential(&r, gap_ns);
        }
        struct backlog_summary s = backlog_summarise(&b, &rule);
        double rate = (double)arrivals / (double)last_ns;
        double slope = slope_of(last_ns, b.width_ns);
        ck_assert_double_eq_tol(s.growth_frac, slope / rate, 1e-9);
        ck_assert_double_eq_tol(s.mean_in_window, area_of(0, last_ns) / (double)last_ns, 1e-9);
    }
}
END_TEST

START_TEST(idmap_agrees_with_a_plain_array)
{
    enum { IDS = 500 };
    static uint32_t present[IDS];
    memset(present, 0, sizeof present);
    struct map m = {0};
    uint32_t x = 12345;
    for (int step = 0; step < 20000; step++) {
        x = x * 1664525u + 1013904223u;
        uint32_t i = (x >> 8) % IDS;
        uint32_t id = i * 0x10001u; /* sparse */
        if ((x >> 30) == 0) {
            map_remove(&m, id);
            present[i] = 0;
        } else {
            uint32_t *v = map_add(&m, id);
            ck_assert_uint_eq(*v, present[i]); /* zeroed when new */
            *v = present[i] = (uint32_t)step + 1;
        }
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < IDS; i++) {
        const uint32_t *v = map_record(&m, i * 0x10001u);
        ck_assert_uint_eq(v == NULL ? 0 : *v, present[i]);
        n += present[i] != 0 ? 1 : 0;
    }
    ck_assert_uint_eq(m.n, n);
    map_fini(&m);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(status_follows_the_load_whatever_the_order),
    TEST(statistics_of_a_staircase_are_as_by_hand),
    TEST(without_a_window_there_is_no_word),
    TEST(mean_in_window_is_that_of_the_window),
    TEST(a_long_drain_leaves_the_window_its_bins),
    TEST(the_rule_needs_its_bins),
    TEST(growth_is_that_of_the_second_half),
    TEST(growth_and_mean_are_those_of_the_history),
    TEST(idmap_agrees_with_a_plain_array),
};
SUITE_MAIN("backlog", suite)

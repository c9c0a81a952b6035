/* Samples: nearest-rank quantiles, exact sums, and a sketch that keeps its promise. */
#include <math.h>
#include <stdlib.h>

#include "sim/base/quantile.h"
#include "sim/base/rng.h"
#include "tests/helpers/suite.h"

static struct sample s;

static void setup(void)
{
    sample_init(&s, false);
}

static void teardown(void)
{
    sample_fini(&s);
}

/* The textbook example of the nearest-rank rule is 15 20 35 40 50. It has ceil(0.05*5) = 1 -> 15,
 * ceil(0.3*5) = ceil(1.5) = 2 -> 20 and ceil(0.4*5) = 2 -> 20. ceil(0.5*5) = 3 gives 35, and
 * ceil(5) gives 50. */
START_TEST(quantiles_use_the_nearest_rank)
{
    static const double values[] = {40, 15, 50, 35, 20};
    for (int i = 0; i < 5; i++) {
        sample_add(&s, values[i]);
    }
    ck_assert_double_eq(sample_quantile(&s, 0.05), 15);
    ck_assert_double_eq(sample_quantile(&s, 0.3), 20);
    ck_assert_double_eq(sample_quantile(&s, 0.4), 20);
    ck_assert_double_eq(sample_quantile(&s, 0.5), 35);
    ck_assert_double_eq(sample_quantile(&s, 1.0), 50);
    ck_assert_double_eq(sample_quantile(&s, 0.0), 15); /* rank 0 is the smallest value */
    ck_assert_double_eq(sample_mean(&s), 32);          /* 160 / 5 */
    ck_assert_double_eq(s.min, 15);
    ck_assert_double_eq(s.max, 50);
}
END_TEST

/* Values 1..100: the k-percentile is k. In doubles 0.07*100 = 7.000000000000001 and 0.55*100 =
 * 55.00000000000001, which must not become the 8th and 56th value. */
START_TEST(every_percentile_of_one_to_hundred_is_itself)
{
    for (int i = 100; i >= 1; i--) {
        sample_add(&s, i);
    }
    for (int k = 1; k <= 100; k++) {
        ck_assert_double_eq(sample_quantile(&s, k / 100.0), k);
    }
    ck_assert_double_eq(sample_quantile(&s, 0.071), 8); /* ceil(7.1): truly above */
}
END_TEST

START_TEST(values_added_after_a_question_count_in_the_next)
{
    sample_add(&s, 5);
    ck_assert_double_eq(sample_quantile(&s, 1.0), 5);
    sample_add(&s, 9);
    sample_add(&s, 1);
    ck_assert_double_eq(sample_quantile(&s, 1.0), 9);
    ck_assert_double_eq(sample_quantile(&s, 0.5), 5); /* 1 5 9, rank ceil(1.5) = 2 */
}
END_TEST

START_TEST(an_empty_sample_has_no_mean_and_no_quantile)
{
    ck_assert(isnan(sample_mean(&s)));
    ck_assert(isnan(sample_quantile(&s, 0.5)));
    ck_assert_uint_eq(s.n, 0);
    struct sample sketch;
    sample_init(&sketch, true);
    ck_assert_ptr_null(sketch.bins); /* no room is taken for what may never come */
    ck_assert(isnan(sample_mean(&sketch)) && isnan(sample_quantile(&sketch, 0.5)));
    sample_fini(&sketch);
}
END_TEST

/* 7 three times and 1 once: 1 7 7 7, mean 22/4, and 600 more pass the first allocation of 256. */
START_TEST(a_value_added_n_times_counts_n_times)
{
    sample_add_n(&s, 7, 3);
    sample_add(&s, 1);
    ck_assert_uint_eq(s.n, 4);
    ck_assert_double_eq(sample_mean(&s), 5.5);
    ck_assert_double_eq(sample_quantile(&s, 0.25), 1);
    ck_assert_double_eq(sample_quantile(&s, 0.26), 7);
    sample_add_n(&s, 2, 600);
    ck_assert_uint_eq(s.n, 604);
    ck_assert_double_eq(sample_quantile(&s, 0.5), 2);
}
END_TEST

/* 1e16 + 1 loses the 1 in a plain sum (the next double is 1e16 + 2); the true sum here is 4. */
START_TEST(small_values_survive_beside_large_ones)
{
    sample_add(&s, 1e16);
    for (int i = 0; i < 4; i++) {
        sample_add(&s, 1.0);
    }
    sample_add(&s, -1e16);
    ck_assert_double_eq(sample_mean(&s), 4.0 / 6.0);
}
END_TEST

/* Log-normal values over twelve decades against the exact sample: relative error at most 0.5 %;
 * count, mean, minimum and maximum equal. */
START_TEST(the_sketch_stays_within_half_a_percent)
{
    struct sample sketch;
    sample_init(&sketch, true);
    struct rng r;
    rng_init(&r, rng_key(1, RNG_TEST, 0, 0));
    for (int i = 0; i < 20000; i++) {
        double x = exp(3.0 * rng_normal(&r));
        sample_add(&s, x);
        sample_add(&sketch, x);
    }
    for (int k = 0; k <= 1000; k++) {
        double exact = sample_quantile(&s, k / 1000.0);
        ck_assert_double_le(fabs(sample_quantile(&sketch, k / 1000.0) / exact - 1.0), 0.005);
    }
    ck_assert_uint_eq(sketch.n, s.n);
    ck_assert_double_eq(sample_mean(&sketch), sample_mean(&s));
    ck_assert_double_eq(sketch.min, s.min);
    ck_assert_double_eq(sketch.max, s.max);
    sample_fini(&sketch);
}
END_TEST

START_TEST(the_sketch_reports_a_single_value_exactly_and_zeros_as_zero)
{
    struct sample sketch;
    sample_init(&sketch, true);
    sample_add_n(&sketch, 0.123, 5); /* between minimum and maximum there is only 0.123 */
    ck_assert_double_eq(sample_quantile(&sketch, 0.5), 0.123);
    sample_add_n(&sketch, 0.0, 95);
    ck_assert_double_eq(sample_quantile(&sketch, 0.5), 0.0);
    ck_assert_uint_eq(sketch.n, 100);
    ck_assert_double_eq_tol(sample_mean(&sketch), 0.00615, 1e-15); /* 5 * 0.123 / 100 */
    sample_fini(&sketch);
}
END_TEST

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x;
    double b = *(const double *)y;
    return (a > b) - (a < b);
}

/* A sketch's buckets end at 2^e (1 + k / 128). Values next to each end fall below and above it:
 * quantiles are the middles of their buckets. */
START_TEST(the_buckets_of_a_sketch_end_where_they_should)
{
    for (int i = 1; i < 60 * 128; i += 7) {
        double width = ldexp(1.0, i / 128 - 30) / 128.0;
        double end = width * (128 + i % 128);
        double width_below = i % 128 == 0 ? width / 2.0 : width;
        struct sample x;
        sample_init(&x, true);
        sample_add(&x, 1e-12); /* so that the least is not what a quantile is cut to */
        sample_add(&x, end * (1.0 - 1e-9));
        sample_add(&x, end);
        sample_add(&x, 1e12);
        ck_assert_double_eq(sample_quantile(&x, 0.5), end - width_below / 2.0);
        ck_assert_double_eq(sample_quantile(&x, 0.75), end + width / 2.0);
        sample_fini(&x);
    }
}
END_TEST

/* A value below the buckets counts as 0, and one above as the last bucket: 2^30 (1 - 1/512). */
START_TEST(a_sketch_has_buckets_for_what_is_outside)
{
    const double low = ldexp(1.0, -30);
    const double values[] = {-1.0, 0.0, nextafter(low, 0.0), low, 2e9, 1e300};
    const double told[] = {0.0, 0.0, 0.0, low * (1.0 + 1.0 / 256.0)};
    struct sample x;
    sample_init(&x, true);
    for (size_t i = 0; i < 6; i++) {
        sample_add(&x, values[i]);
    }
    for (size_t i = 0; i < 4; i++) {
        ck_assert_double_eq(sample_quantile(&x, ((double)i + 1.0) / 6.0), told[i]);
    }
    ck_assert_double_eq(sample_quantile(&x, 5.0 / 6.0), ldexp(1.0 - 1.0 / 512.0, 30));
    ck_assert_double_eq(sample_quantile(&x, 1.0), ldexp(1.0 - 1.0 / 512.0, 30));
    ck_assert_uint_eq(sample_count_upto(&x, 0.5), 4);
    sample_fini(&x);
}
END_TEST

/* Random values, most of them several times; quantiles asked in any order, of two merged samples:
 * value number ceil(p n) of all of them, sorted. */
START_TEST(selection_finds_what_sorting_finds)
{
    enum { N = 700 };
    struct rng r;
    rng_init(&r, rng_key(3, RNG_TEST, 0, 0));
    for (int round = 0; round < 60; round++) {
        double sorted[N];
        struct sample part[2];
        sample_init(&part[0], false);
        sample_init(&part[1], false);
        uint32_t n = 1 + rng_below(&r, N);
        uint32_t kinds = 1 + rng_below(&r, 100);
        for (uint32_t i = 0; i < n; i++) {
            sorted[i] = rng_below(&r, kinds);
            sample_add(&part[rng_below(&r, 2)], sorted[i]);
        }
        qsort(sorted, n, sizeof sorted[0], by_value);
        sample_merge(&part[0], &part[1]);
        ck_assert_uint_eq(part[0].n, n);
        for (int k = 0; k < 8; k++) {
            uint32_t rank = 1 + rng_below(&r, n);
            ck_assert_double_eq(sample_quantile(&part[0], rank / (double)n), sorted[rank - 1]);
        }
        ck_assert_double_eq(part[0].min, sorted[0]);
        ck_assert_double_eq(part[0].max, sorted[n - 1]);
        sample_fini(&part[0]);
        sample_fini(&part[1]);
    }
}
END_TEST

static void expect_same(struct sample *x, struct sample *y)
{
    ck_assert_uint_eq(x->n, y->n);
    ck_assert_mem_eq(&x->sum, &y->sum, sizeof x->sum);
    ck_assert_mem_eq(&x->comp, &y->comp, sizeof x->comp);
    ck_assert(x->min == y->min && x->max == y->max);
    for (int p = 0; p <= 20 && x->n > 0; p++) {
        ck_assert(sample_quantile(x, p / 20.0) == sample_quantile(y, p / 20.0));
    }
}

/* Returns a value of any size, and now and then a zero. */
static double any_value(uint64_t seed)
{
    uint64_t u = rng_mix64(seed);
    double x = (double)(u % 100000) * (u >> 60 == 1 ? 1e-15 : u >> 60 == 2 ? 1e15 : 1e-3);
    return u >> 60 == 3 ? 0.0 : x;
}

/* A copy stays as it was when more comes to the other one. */
START_TEST(a_copy_is_what_the_sample_was)
{
    for (uint64_t k = 0; k < 200; k++) {
        bool sketch = k % 2 == 0;
        struct sample all, stopped, copy;
        sample_init(&all, sketch);
        sample_init(&stopped, sketch);
        sample_init(&copy, sketch);
        for (uint64_t i = 0; i < k % 40; i++) {
            sample_add(&all, any_value(k * 1000 + i));
            sample_add(&stopped, any_value(k * 1000 + i));
        }
        sample_copy(&copy, &all);
        for (uint64_t i = 0; i < k % 9; i++) {
            sample_add(&all, any_value(k * 1000 + 500 + i));
        }
        expect_same(&copy, &stopped);
        sample_fini(&all);
        sample_fini(&stopped);
        sample_fini(&copy);
    }
}
END_TEST

/* As many as a loop finds; a sketch has the answer of some limit within 0.5 %. */
START_TEST(values_up_to_a_limit_are_counted)
{
    for (uint64_t k = 0; k < 300; k++) {
        double x[50];
        struct sample exact, sketch;
        sample_init(&exact, false);
        sample_init(&sketch, true);
        for (uint64_t i = 0; i < 50; i++) {
            x[i] = (double)(rng_mix64(k * 50 + i) % 400) * 1e-3;
            sample_add(&exact, x[i]);
            sample_add(&sketch, x[i]);
        }
        double limit = k % 3 == 0 ? x[k % 50] : (double)(rng_mix64(~k) % 450) * 1e-3;
        size_t n[3] = {0};
        for (int i = 0; i < 50; i++) {
            n[0] += x[i] <= limit / 1.0051;
            n[1] += x[i] <= limit;
            n[2] += x[i] <= limit * 1.0051;
        }
        ck_assert_uint_eq(sample_count_upto(&exact, limit), n[1]);
        ck_assert_uint_ge(sample_count_upto(&sketch, limit), n[0]);
        ck_assert_uint_le(sample_count_upto(&sketch, limit), n[2]);
        sample_fini(&exact);
        sample_fini(&sketch);
    }
    struct sample none;
    sample_init(&none, true);
    ck_assert_uint_eq(sample_count_upto(&none, 1.0), 0);
    sample_fini(&none);
}
END_TEST

/* Wherever the values of the two lie. */
START_TEST(a_merged_sketch_has_the_quantiles_of_all)
{
    for (uint64_t k = 0; k < 200; k++) {
        struct sample part[2], all;
        sample_init(&all, true);
        for (int p = 0; p < 2; p++) {
            sample_init(&part[p], true);
            double scale = pow(10.0, (double)(rng_mix64(k * 2 + (uint64_t)p) % 24) - 12.0);
            uint64_t n = rng_mix64(~(k * 2 + (uint64_t)p)) % 30;
            for (uint64_t i = 0; i < n; i++) {
                double x = scale * any_value(k * 100 + i);
                sample_add(&part[p], x);
                sample_add(&all, x);
            }
        }
        sample_merge(&part[0], &part[1]);
        ck_assert_uint_eq(part[0].n, all.n);
        ck_assert(part[0].min == all.min && part[0].max == all.max);
        for (int p = 0; p <= 20 && all.n > 0; p++) {
            ck_assert(sample_quantile(&part[0], p / 20.0) == sample_quantile(&all, p / 20.0));
        }
        sample_fini(&part[0]);
        sample_fini(&part[1]);
        sample_fini(&all);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("quantile", .setup = setup, .teardown = teardown),
    TEST(a_copy_is_what_the_sample_was),
    TEST(a_merged_sketch_has_the_quantiles_of_all),
    TEST(values_up_to_a_limit_are_counted),
    TEST(quantiles_use_the_nearest_rank),
    TEST(every_percentile_of_one_to_hundred_is_itself),
    TEST(values_added_after_a_question_count_in_the_next),
    TEST(selection_finds_what_sorting_finds),
    TEST(an_empty_sample_has_no_mean_and_no_quantile),
    TEST(a_value_added_n_times_counts_n_times),
    TEST(small_values_survive_beside_large_ones),
    TEST(the_sketch_stays_within_half_a_percent),
    TEST(the_buckets_of_a_sketch_end_where_they_should),
    TEST(a_sketch_has_buckets_for_what_is_outside),
    TEST(the_sketch_reports_a_single_value_exactly_and_zeros_as_zero),
};
SUITE_MAIN("quantile", suite)

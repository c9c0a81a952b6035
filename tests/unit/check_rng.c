/* Random streams: the published generators, their laws, and streams that do not touch. */
#include <gsl/gsl_cdf.h>
#include <math.h>

#include "sim/base/hash.h"
#include "sim/base/rng.h"
#include "tests/helpers/suite.h"

/* Values of the authors' splitmix64.c for state 1234567, as listed on Rosetta Code. rng_mix64(x)
 * is the first output of state x, and the state moves by the golden gamma. */
START_TEST(splitmix64_gives_the_published_values)
{
    static const uint64_t expected[] = {6457827717110365317ULL, 3203168211198807973ULL,
                                        9817491932198370423ULL, 4593380528125082431ULL,
                                        16408922859458223821ULL};
    uint64_t state = 1234567;
    for (int i = 0; i < 5; i++) {
        ck_assert_uint_eq(rng_mix64(state), expected[i]);
        state += 0x9E3779B97F4A7C15ULL;
    }
}
END_TEST

/* These are values of the authors' xoshiro256plusplus.c from state {1, 2, 3, 4}, as in the test of
 * the rand_xoshiro crate. The first is by hand rotl(1 + 4, 23) + 1 = 5 * 2^23 + 1 = 41943041. */
START_TEST(xoshiro256pp_gives_the_published_values)
{
    static const uint64_t expected[] = {41943041ULL,
                                        58720359ULL,
                                        3588806011781223ULL,
                                        3591011842654386ULL,
                                        9228616714210784205ULL,
                                        9973669472204895162ULL,
                                        14011001112246962877ULL,
                                        12406186145184390807ULL,
                                        15849039046786891736ULL,
                                        10450023813501588000ULL};
    struct rng r = {{1, 2, 3, 4}};
    for (int i = 0; i < 10; i++) {
        ck_assert_uint_eq(rng_u64(&r), expected[i]);
    }
}
END_TEST

START_TEST(state_is_four_splitmix64_outputs_of_the_key)
{
    struct rng r;
    rng_init(&r, 1234567);
    ck_assert_uint_eq(r.s[0], 6457827717110365317ULL); /* the published values above */
    ck_assert_uint_eq(r.s[3], 4593380528125082431ULL);
}
END_TEST

/* Each part of a key alone must change it, and swapping the two numbers too. */
START_TEST(every_part_of_a_key_matters)
{
    uint64_t k = rng_key(1, RNG_GAP, 2, 3);
    ck_assert_uint_eq(k, rng_key(1, RNG_GAP, 2, 3));
    ck_assert_uint_ne(k, rng_key(2, RNG_GAP, 2, 3));
    ck_assert_uint_ne(k, rng_key(1, RNG_ACTIVITY, 2, 3));
    ck_assert_uint_ne(k, rng_key(1, RNG_GAP, 3, 3));
    ck_assert_uint_ne(k, rng_key(1, RNG_GAP, 2, 4));
    ck_assert_uint_ne(k, rng_key(1, RNG_GAP, 3, 2));
}
END_TEST

/* Correlation of n independent pairs has standard error 1/sqrt(n): 4 of them at n = 100000 are
 * 0.0126. Neighbouring keys are the hardest case for the mixing. */
START_TEST(streams_of_neighbouring_seeds_are_uncorrelated)
{
    struct rng a;
    struct rng b;
    rng_init(&a, rng_key(1, RNG_TEST, 0, 0));
    rng_init(&b, rng_key(2, RNG_TEST, 0, 0));
    double sum = 0.0;
    const int n = 100000;
    for (int i = 0; i < n; i++) {
        sum += (rng_uniform(&a) - 0.5) * (rng_uniform(&b) - 0.5);
    }
    ck_assert_double_lt(fabs(sum / n * 12.0), 4.0 / sqrt(n)); /* variance of a uniform is 1/12 */
}
END_TEST

/* Mean 1/2 and variance 1/12; standard errors sqrt(1/12/n) and sqrt((1/80 - 1/144)/n). */
START_TEST(uniforms_lie_in_the_half_open_unit_interval_with_their_moments)
{
    struct rng r;
    rng_init(&r, rng_key(3, RNG_TEST, 0, 0));
    const int n = 200000;
    double sum = 0.0;
    double squares = 0.0;
    for (int i = 0; i < n; i++) {
        double u = rng_uniform(&r);
        ck_assert(u >= 0.0 && u < 1.0);
        sum += u;
        squares += (u - 0.5) * (u - 0.5);
    }
    ck_assert_double_eq_tol(sum / n, 0.5, 4.0 * sqrt(1.0 / 12.0 / n));
    ck_assert_double_eq_tol(squares / n, 1.0 / 12.0, 4.0 * sqrt((1.0 / 80 - 1.0 / 144) / n));
}
END_TEST

/* Chi-square of 7 equally likely values with 6 degrees of freedom: beyond the 0.9999 quantile only
 * one seed in ten thousand. */
START_TEST(whole_numbers_below_a_bound_are_equally_likely)
{
    struct rng r;
    rng_init(&r, rng_key(4, RNG_TEST, 0, 0));
    int counts[7] = {0};
    const int n = 70000;
    for (int i = 0; i < n; i++) {
        uint32_t x = rng_below(&r, 7);
        ck_assert_uint_lt(x, 7);
        counts[x]++;
    }
    double chi2 = 0.0;
    for (int i = 0; i < 7; i++) {
        double off = counts[i] - n / 7.0;
        chi2 += off * off / (n / 7.0);
    }
    ck_assert_double_lt(chi2, gsl_cdf_chisq_Pinv(0.9999, 6));
    ck_assert_uint_eq(rng_below(&r, 1), 0);
}
END_TEST

/* States {0, s1, s2, s3} give rotl(s3, 23) first. 2^64 = 2 modulo 7, so the last whole run of seven
 * ends at 2^64 - 3, which is 6 modulo 7. The two values above it would give 0 and 1 once too often
 * and are drawn again. */
START_TEST(values_above_the_last_whole_run_are_drawn_again)
{
    for (uint64_t last = 0; last < 3; last++) { /* UINT64_MAX - last is drawn first */
        uint64_t x = UINT64_MAX - last;
        struct rng r = {{0, 3, 5, x >> 23 | x << 41}};
        struct rng next = r;
        ck_assert_uint_eq(rng_u64(&next), x);
        uint64_t second = rng_u64(&next);
        ck_assert_uint_ne(second % 7, x % 7);
        ck_assert_uint_eq(rng_below(&r, 7), last < 2 ? second % 7 : 6);
    }
}
END_TEST

/* With mean m and standard deviation m, the mean has standard error m/sqrt(n). P(X > m) is 1/e,
 * with standard error sqrt(p(1-p)/n). */
START_TEST(exponentials_have_their_mean_and_tail)
{
    struct rng r;
    rng_init(&r, rng_key(5, RNG_TEST, 0, 0));
    const int n = 100000;
    double sum = 0.0;
    int above = 0;
    for (int i = 0; i < n; i++) {
        double x = rng_exponential(&r, 20.0);
        ck_assert(x >= 0.0 && isfinite(x));
        sum += x;
        above += x > 20.0;
    }
    double p = exp(-1.0);
    ck_assert_double_eq_tol(sum / n, 20.0, 4.0 * 20.0 / sqrt(n));
    ck_assert_double_eq_tol((double)above / n, p, 4.0 * sqrt(p * (1.0 - p) / n));
}
END_TEST

/* Mean 0 (error 1/sqrt n), variance 1 (error sqrt(2/n)), P(Z < 1.959964) = 0.975. */
START_TEST(normals_have_their_moments_and_tail)
{
    struct rng r;
    rng_init(&r, rng_key(6, RNG_TEST, 0, 0));
    const int n = 100000;
    double sum = 0.0;
    double squares = 0.0;
    int below = 0;
    for (int i = 0; i < n; i++) {
        double z = rng_normal(&r);
        ck_assert(isfinite(z));
        sum += z;
        squares += z * z;
        below += z < 1.959964;
    }
    ck_assert_double_eq_tol(sum / n, 0.0, 4.0 / sqrt(n));
    ck_assert_double_eq_tol(squares / n, 1.0, 4.0 * sqrt(2.0 / n));
    ck_assert_double_eq_tol((double)below / n, 0.975, 4.0 * sqrt(0.975 * 0.025 / n));
}
END_TEST

START_TEST(a_keyed_normal_is_a_pure_function_of_its_key)
{
    double sum = 0.0;
    const uint64_t n = 10000;
    for (uint64_t k = 0; k < n; k++) {
        double z = rng_normal_of_key(rng_key(7, RNG_TRUTH, k, 0));
        ck_assert_double_eq(z, rng_normal_of_key(rng_key(7, RNG_TRUTH, k, 0)));
        sum += z;
    }
    ck_assert_double_eq_tol(sum / (double)n, 0.0, 4.0 / sqrt((double)n));
}
END_TEST

START_TEST(gsl_draws_the_same_stream)
{
    struct rng r;
    rng_init(&r, 42);
    gsl_rng *keyed = rng_gsl_new(42);
    gsl_rng *seeded = gsl_rng_alloc(rng_gsl_type);
    gsl_rng_set(seeded, 42);
    for (int i = 0; i < 100; i++) {
        double u = rng_uniform(&r);
        ck_assert_double_eq(gsl_rng_uniform(keyed), u);
        ck_assert_double_eq(gsl_rng_uniform(seeded), u);
    }
    ck_assert_uint_eq(gsl_rng_get(keyed), rng_u64(&r) >> 32); /* GSL's integers are 32 bits here */
    gsl_rng_free(keyed);
    gsl_rng_free(seeded);
}
END_TEST

/* A number is hashed by FNV-1a of its eight bytes, the lowest first. */
START_TEST(a_number_is_hashed_byte_by_byte)
{
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t x = rng_mix64(i) >> i % 65 % 64 & (i % 3 == 0 ? ~0xff00ULL : ~0ULL);
        x = i == 0 ? 0 : x;
        uint64_t h = HASH_INIT + i;
        uint64_t want = h;
        for (int byte = 0; byte < 8; byte++) {
            want = (want ^ (x >> 8 * byte & 0xff)) * 0x100000001b3ULL;
        }
        ck_assert_uint_eq(hash_u64(h, x), want);
    }
}
END_TEST

/* Any hash may come before the tail. */
START_TEST(the_tail_of_a_hash_is_its_numbers_one_by_one)
{
    for (size_t n = 0; n < 5; n++) {
        uint64_t x[4];
        for (size_t i = 0; i < n; i++) {
            x[i] = rng_mix64(n * 10 + i) >> (n * 13 + i * 7) % 64;
        }
        struct hash_tail t;
        hash_tail_init(&t, x, n);
        for (uint64_t k = 0; k < 2000; k++) {
            uint64_t h = rng_mix64(k);
            uint64_t want = h;
            for (size_t i = 0; i < n; i++) {
                want = hash_u64(want, x[i]);
            }
            ck_assert_uint_eq(hash_tail(&t, h), want);
        }
    }
}
END_TEST

static const struct suite_row suite[] = {
    TEST(a_number_is_hashed_byte_by_byte),
    TEST(the_tail_of_a_hash_is_its_numbers_one_by_one),
    TEST(splitmix64_gives_the_published_values),
    TEST(xoshiro256pp_gives_the_published_values),
    TEST(state_is_four_splitmix64_outputs_of_the_key),
    TEST(every_part_of_a_key_matters),
    TEST(streams_of_neighbouring_seeds_are_uncorrelated),
    TEST(uniforms_lie_in_the_half_open_unit_interval_with_their_moments),
    TEST(whole_numbers_below_a_bound_are_equally_likely),
    TEST(values_above_the_last_whole_run_are_drawn_again),
    TEST(exponentials_have_their_mean_and_tail),
    TEST(normals_have_their_moments_and_tail),
    TEST(a_keyed_normal_is_a_pure_function_of_its_key),
    TEST(gsl_draws_the_same_stream),
};
SUITE_MAIN("rng", suite)

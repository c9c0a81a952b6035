/* Speculative decoding: the process against its closed forms, purity and monotonicity. */
#include <math.h>

#include "hwmodels/speculation.h"
#include "tests/helpers/drafts.h"
#include "tests/helpers/suite.h"

#define STEPS 200000

/* The model has alpha 0.5, h 0.4 and drafts of 8 tokens. */
static struct speculation_model plain(void)
{
    return (struct speculation_model){.alpha = 0.5,
                                      .hit_frac = 0.4,
                                      .history_cold_frac = 1,
                                      .history_half_requests = 4,
                                      .max_draft_tokens = 8,
                                      .tokens_per_match = 4,
                                      .match_frac = 0.5,
                                      .short_tokens = 8,
                                      .friendly_tokens = 32,
                                      .short_frac = 0.75,
                                      .unfriendly_frac = 0.9};
}

struct estimate {
    double mean, error; /* and its standard error, by batches of 1000 steps */
};

static struct estimate simulate(const struct speculation_model *m, uint64_t key, double history,
                                uint32_t drafted)
{
    double sum = 0;
    double squares = 0;
    int batches = STEPS / 1000;
    for (int b = 0; b < batches; b++) {
        double batch = 0;
        for (int i = 0; i < 1000; i++) {
            uint64_t step = (uint64_t)b * 1000 + (uint64_t)i;
            batch += speculation_accept(m, key, step, history, drafted);
        }
        sum += batch / 1000;
        squares += batch / 1000 * (batch / 1000);
    }
    double mean = sum / batches;
    return (struct estimate){mean, sqrt((squares / batches - mean * mean) / batches)};
}

/* Four standard errors: 6e-5 of all estimates fall outside, and the keys are fixed. */
static void assert_agrees(const struct speculation_model *m, double history, uint32_t drafted,
                          double want)
{
    struct estimate x = simulate(m, speculation_key(3, 1), history, drafted);
    ck_assert_double_gt(x.error, 0);
    ck_assert_msg(fabs(x.mean - want) < 4 * x.error, "simulated %.4f +- %.4f, closed form %.4f",
                  x.mean, x.error, want);
}

START_TEST(mean_accepted_is_the_truncated_geometric)
{
    /* 0.4 (1 - 0.5^8) / 0.5 = 0.8 * 0.99609375 = 0.796875. With 2 of the 8 verified it is 0.8 *
     * 0.75. */
    struct speculation_model m = plain();
    ck_assert_double_eq_tol(drafts_mean_accepted(&m, 0), 0.796875, 1e-12);
    ck_assert_double_eq_tol(drafts_mean_accepted_of(&m, 0, 2), 0.6, 1e-12);
    ck_assert_double_eq_tol(drafts_mean_accepted_of(&m, 0, 100), 0.796875, 1e-12);
    assert_agrees(&m, 0, 8, 0.796875);
    assert_agrees(&m, 0, 2, 0.6);
}
END_TEST

START_TEST(a_step_depends_on_its_key_and_number_only)
{
    struct speculation_model m = plain();
    m.reuse_frac = 0.3;
    uint64_t key = speculation_key(1, 5);
    uint32_t forward[200];
    for (uint32_t i = 0; i < 200; i++) {
        forward[i] = speculation_accept(&m, key, i, 0, 8);
    }
    for (uint32_t i = 200; i-- > 0;) {
        ck_assert_uint_eq(speculation_accept(&m, key, i, 0, 8), forward[i]);
    }
    ck_assert_uint_ne(speculation_key(1, 5), speculation_key(1, 6));
    ck_assert_uint_ne(speculation_key(1, 5), speculation_key(2, 5));
}
END_TEST

START_TEST(verifying_fewer_tokens_cuts_the_same_run)
{
    /* accepted(n) = min(run, n): there is one run per step, for any number that a policy
     * verifies. */
    struct speculation_model m = plain();
    uint64_t key = speculation_key(1, 5);
    for (uint64_t i = 0; i < 2000; i++) {
        uint32_t whole = speculation_accept(&m, key, i, 0, 8);
        for (uint32_t n = 0; n <= 9; n++) {
            ck_assert_uint_eq(speculation_accept(&m, key, i, 0, n), n < whole ? n : whole);
        }
    }
}
END_TEST

START_TEST(mean_accepted_grows_with_length_hits_and_alpha)
{
    struct speculation_model m = plain();
    for (uint32_t l = 1; l < 8; l++) {
        ck_assert_double_lt(drafts_mean_accepted_of(&m, 0, l),
                            drafts_mean_accepted_of(&m, 0, l + 1));
    }
    double base = drafts_mean_accepted(&m, 0);
    m.hit_frac = 0.5;
    ck_assert_double_gt(drafts_mean_accepted(&m, 0), base);
    m = plain();
    m.alpha = 0.6;
    ck_assert_double_gt(drafts_mean_accepted(&m, 0), base);
    m = plain();
    m.reuse_frac = 0.2;
    ck_assert_double_gt(drafts_mean_accepted(&m, 0), base);
}
END_TEST

START_TEST(reuse_raises_the_hit_rate_to_its_stationary_value)
{
    /* f = P(run < 8) = 1 - 0.5^7 = 0.9921875. So h / (1 - f r (1 - h)) is 0.4 / (1 - 0.9921875 *
     * 0.3 * 0.6) = 0.4 / 0.82140625 = 0.486970. */
    struct speculation_model m = plain();
    m.reuse_frac = 0.3;
    ck_assert_double_eq_tol(drafts_stationary_hit_frac(&m, 0), 0.4 / 0.82140625, 1e-12);
    assert_agrees(&m, 0, 8, 0.4 / 0.82140625 * 2 * (1 - 1.0 / 256));
}
END_TEST

/* The second step of a request hits at first (0.4). Or the first hit and was cut short (0.4 * f),
 * and its draft is reused (0.3 of the 0.6 that miss): 0.4 + 0.396875 * 0.18 = 0.4714. The share of
 * 40,000 requests is within four standard errors, 0.01. */
START_TEST(the_first_draft_is_reused_too)
{
    struct speculation_model m = plain();
    m.reuse_frac = 0.3;
    uint32_t hits = 0;
    for (uint32_t i = 0; i < 40000; i++) {
        hits += speculation_accept(&m, speculation_key(7, i), 1, 0, 8) > 0;
    }
    ck_assert_double_eq_tol(hits / 40000.0, 0.4 + 0.4 * 0.9921875 * 0.3 * 0.6, 0.01);
}
END_TEST

START_TEST(reuse_without_a_first_hit_stays_cold)
{
    /* With h = 0 there is no first hit, so nothing to reuse, even at r = 0.9. */
    struct speculation_model m = plain();
    m.hit_frac = 0;
    m.reuse_frac = 0.9;
    ck_assert_double_eq(simulate(&m, speculation_key(1, 1), 0, 8).mean, 0);
}
END_TEST

START_TEST(history_closes_half_of_the_gap_at_its_half_point)
{
    /* c = 0.5: h 0.4 -> 0.2 cold, 0.3 after 4 requests, 0.36 after 16 (0.4 (0.5 + 0.5 * 0.8)). */
    struct speculation_model m = plain();
    m.history_cold_frac = 0.5;
    ck_assert_double_eq_tol(speculation_hit_frac(&m, 0), 0.2, 1e-12);
    ck_assert_double_eq_tol(speculation_hit_frac(&m, 4), 0.3, 1e-12);
    ck_assert_double_eq_tol(speculation_hit_frac(&m, 16), 0.36, 1e-12);
    assert_agrees(&m, 4, 8, 0.3 * 2 * (1 - 1.0 / 256));
    /* More history never takes an accepted token away: the same draws meet a higher bar. */
    for (uint64_t i = 0; i < 2000; i++) {
        uint64_t key = speculation_key(1, 1);
        ck_assert_uint_le(speculation_accept(&m, key, i, 1, 8),
                          speculation_accept(&m, key, i, 50, 8));
    }
}
END_TEST

/* Length frequencies against the stated distribution, whose probabilities sum to 1. */
static void check_lengths(const struct speculation_model *m)
{
    uint32_t count[SPECULATION_MAX_DRAFT + 1] = {0};
    double sum = 0;
    for (uint64_t i = 0; i < STEPS; i++) {
        count[speculation_draft(m, speculation_key(4, 2), i)]++;
    }
    for (uint32_t l = 0; l <= m->max_draft_tokens; l++) {
        double p = drafts_length_frac(m, l);
        double error = sqrt(p * (1 - p) / STEPS);
        sum += p;
        ck_assert_msg(fabs(count[l] / (double)STEPS - p) <= 4.5 * error, "length %u: %u times, %g",
                      l, count[l], p * STEPS);
    }
    ck_assert_double_eq_tol(sum, 1, 1e-12);
}

static double share_below(const struct speculation_model *m, uint32_t length)
{
    double sum = 0;
    for (uint32_t l = 0; l < length; l++) {
        sum += drafts_length_frac(m, l);
    }
    return sum;
}

START_TEST(draft_lengths_follow_their_mode)
{
    struct speculation_model m = plain();
    m.max_draft_tokens = 40;
    check_lengths(&m);
    ck_assert_double_eq(drafts_length_frac(&m, 40), 1);
    m.length = SPECULATION_PROP;
    check_lengths(&m);
    /* 1 + 4 m with P(m = k) = 0.5^(k+1): lengths 1, 5, 9; 40 takes P(m >= 10) = 0.5^10. */
    ck_assert_double_eq_tol(drafts_length_frac(&m, 1), 0.5, 1e-12);
    ck_assert_double_eq_tol(drafts_length_frac(&m, 9), 0.125, 1e-12);
    ck_assert_double_eq_tol(drafts_length_frac(&m, 40), 1.0 / 1024, 1e-12);
    ck_assert_double_eq_tol(share_below(&m, 8), 0.75, 1e-12);
    m.length = SPECULATION_EMPIRICAL;
    check_lengths(&m);
    ck_assert_double_eq_tol(share_below(&m, 8), 0.75, 1e-12);
    ck_assert_double_eq_tol(share_below(&m, 32), 0.90, 1e-12);
    ck_assert_double_eq_tol(drafts_length_frac(&m, 0), 0.75 / 8, 1e-12); /* 0 to 7 */
    m.max_draft_tokens = 10;
    check_lengths(&m); /* longer ranges are cut to 10 */
    ck_assert_double_eq_tol(share_below(&m, 8), 0.75, 1e-12);
}
END_TEST

START_TEST(mixed_lengths_average_their_own_closed_forms)
{
    struct speculation_model m = plain();
    m.max_draft_tokens = 40;
    m.length = SPECULATION_PROP;
    m.reuse_frac = 0.2;
    assert_agrees(&m, 0, 40, drafts_mean_accepted(&m, 0));
    m.length = SPECULATION_EMPIRICAL;
    assert_agrees(&m, 0, 40, drafts_mean_accepted(&m, 0));
}
END_TEST

START_TEST(fixed_acceptance_mixes_its_two_neighbours)
{
    /* 5.5 is five or six, half each. If it is cut to 3, it is always 3. */
    struct speculation_model m = plain();
    m.fixed_accept = 5.5;
    ck_assert_double_eq_tol(drafts_mean_accepted(&m, 0), 5.5, 1e-12);
    assert_agrees(&m, 0, 8, 5.5);
    ck_assert_double_eq(simulate(&m, speculation_key(1, 1), 0, 3).mean, 3);
    ck_assert_double_eq(drafts_mean_accepted_of(&m, 0, 3), 3);
}
END_TEST

START_TEST(runs_draw_by_class_and_count_history_by_choice)
{
    struct speculation_model m = plain();
    m.history_cold_frac = 0;
    struct speculation_run run = {.by_class = {&m, NULL}, .history = SPECULATION_HISTORY_TURN};
    struct request r = {.id = 9, .turn = 0, .cls = REQUEST_CLASS_REACTIVE};
    ck_assert_uint_eq(speculation_run_draft(&run, 1, &r, NULL, 0), 8);
    uint64_t key = speculation_key(1, 9);
    uint32_t sums[3] = {0};
    for (uint64_t i = 0; i < 500; i++) {
        r.turn = 0;
        run.history = SPECULATION_HISTORY_TURN; /* c = 0 and no earlier turn: never a hit */
        sums[0] += speculation_run_accept(&run, 1, &r, NULL, i, 8);
        r.turn = 3;
        uint32_t a = speculation_run_accept(&run, 1, &r, NULL, i, 8);
        ck_assert_uint_eq(a, speculation_accept(&m, key, i, 3, 8));
        run.history = SPECULATION_HISTORY_TRACE; /* nine requests came before it */
        a = speculation_run_accept(&run, 1, &r, NULL, i, 8);
        ck_assert_uint_eq(a, speculation_accept(&m, key, i, 9, 8));
        sums[1] += a;
        run.history = SPECULATION_HISTORY_FULL;
        sums[2] += speculation_run_accept(&run, 1, &r, NULL, i, 8);
    }
    ck_assert_uint_eq(sums[0], 0);
    ck_assert_uint_lt(sums[1], sums[2]);
    r.cls = REQUEST_CLASS_PROACTIVE;
    ck_assert_uint_eq(speculation_run_draft(&run, 1, &r, NULL, 0), 0);
    ck_assert_uint_eq(speculation_run_accept(&run, 1, &r, NULL, 0, 8), 0);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("process", .timeout_s = 60),
    TEST(mean_accepted_is_the_truncated_geometric),
    TEST(a_step_depends_on_its_key_and_number_only),
    TEST(verifying_fewer_tokens_cuts_the_same_run),
    TEST(mean_accepted_grows_with_length_hits_and_alpha),
    TEST(reuse_raises_the_hit_rate_to_its_stationary_value),
    TEST(the_first_draft_is_reused_too),
    TEST(reuse_without_a_first_hit_stays_cold),
    TEST(history_closes_half_of_the_gap_at_its_half_point),
    TEST(draft_lengths_follow_their_mode),
    TEST(mixed_lengths_average_their_own_closed_forms),
    TEST(fixed_acceptance_mixes_its_two_neighbours),
    TEST(runs_draw_by_class_and_count_history_by_choice),
};
SUITE_MAIN("speculation", suite)

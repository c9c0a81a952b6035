/* These tests show how many drafted tokens a policy verifies: its estimate from observed drafts,
 * and the best length. */
#include <math.h>
#include <stdlib.h>

#include "hwmodels/speculation.h"
#include "policies/common/speculate.h"
#include "tests/helpers/drafts.h"
#include "tests/helpers/suite.h"

START_TEST(without_observations_the_prior_speaks)
{
    /* With h = 0.5 and alpha = 0.75 one token gives 1 + 0.5, and two 1 + 0.5 (1 + 0.75). */
    struct speculate e = {0};
    ck_assert_double_eq_tol(speculate_emitted(&e, 0), 1.0, 1e-12);
    ck_assert_double_eq_tol(speculate_emitted(&e, 1), 1.5, 1e-12);
    ck_assert_double_eq_tol(speculate_emitted(&e, 2), 1.875, 1e-12);
}
END_TEST

START_TEST(counts_are_those_of_a_hit_and_a_run)
{
    /* A draft of 4 has nothing right, then two (the third was looked at and wrong), then all four.
     * There are 3 steps and 2 hits. After the first token of a hit 1 is right of 2 tried, and then
     * 3 of 3. */
    struct speculate e = {0};
    speculate_observe(&e, 4, 1);
    speculate_observe(&e, 4, 3);
    speculate_observe(&e, 4, 5);
    speculate_observe(&e, 0, 1); /* a plain decode says nothing */
    ck_assert_double_eq(e.steps, 3);
    ck_assert_double_eq(e.hits, 2);
    ck_assert_double_eq(e.right, 4);
    ck_assert_double_eq(e.tried, 5);
    /* So h = (2 + 4 / 2) / 7 = 4 / 7. */
    ck_assert_double_eq_tol(speculate_emitted(&e, 1), 1.0 + 4.0 / 7.0, 1e-12);
}
END_TEST

/* Returns a process with known h and alpha, observed for long. */
static struct speculation_model process(double hit, double alpha)
{
    return (struct speculation_model){.alpha = alpha,
                                      .hit_frac = hit,
                                      .history_cold_frac = 1,
                                      .history_half_requests = 1,
                                      .max_draft_tokens = 40};
}

static struct speculate learned(const struct speculation_model *m)
{
    struct speculate e = {0};
    uint64_t key = speculation_key(5, 0);
    for (uint64_t step = 0; step < 20000; step++) {
        speculate_observe(&e, 12, 1 + speculation_accept(m, key, step, 0, 12));
    }
    return e;
}

START_TEST(the_estimate_finds_the_process_it_watches)
{
    /* Mean emitted of l drafted tokens is 1 + h (1 - alpha^l) / (1 - alpha). 20,000 steps leave
     * about 1 % on h and less on alpha, so 3 % on the sum. */
    static const double of[][2] = {{0.41, 0.887}, {0.255, 0.897}, {0.619, 0.838}};
    for (int i = 0; i < 3; i++) {
        struct speculation_model m = process(of[i][0], of[i][1]);
        struct speculate e = learned(&m);
        for (uint32_t l = 1; l <= 40; l += 13) {
            double want = 1 + of[i][0] * (1 - pow(of[i][1], l)) / (1 - of[i][1]);
            ck_assert_double_eq_tol(speculate_emitted(&e, l) / want, 1.0, 0.03);
        }
    }
}
END_TEST

static double static_cost(void *ctx, uint32_t drafted)
{
    uint32_t rows = *(const uint32_t *)ctx; /* whole passes of 10 ms, 3 ms of drafting */
    return (drafted / rows + 1) * 10.0 + (drafted > 0 ? 3.0 : 0.0);
}

START_TEST(the_chosen_length_is_as_good_as_the_best_with_full_knowledge)
{
    /* The closed form knows h and alpha; the estimate learned them. Rates of the two lengths may
     * differ by the estimate's error only. */
    struct speculation_model m = process(0.41, 0.887);
    struct speculate e = learned(&m);
    for (uint32_t rows = 4; rows <= 64; rows *= 2) {
        double rate_best = 0;
        for (uint32_t l = 0; l <= 40; l++) {
            double rate = (1 + drafts_mean_accepted_of(&m, 0, l)) / static_cost(&rows, l);
            rate_best = fmax(rate_best, rate);
        }
        uint32_t got = speculate_length(&e, 40, rows, static_cost, &rows);
        double rate_got = (1 + drafts_mean_accepted_of(&m, 0, got)) / static_cost(&rows, got);
        ck_assert_double_ge(rate_got, 0.98 * rate_best);
        ck_assert(got == 40 || (got + 1) % rows == 0); /* whole passes */
    }
}
END_TEST

static double token_cost(void *ctx, uint32_t drafted)
{
    return 1.0 + *(const double *)ctx * drafted;
}

START_TEST(a_length_that_never_pays_is_tried_once_in_a_while)
{
    /* A drafted token costs as much as a decode and is worth at most 0.5 of one. That holds for
     * whole passes of a static graph, too: 3 tokens cost 4, and give 1 + 0.5 (1 + 0.75 + 0.5625),
     * which is 2.16. */
    double each = 1.0;
    for (uint32_t rows = 1; rows <= 4; rows += 3) {
        struct speculate e = {0};
        uint32_t tried = 0;
        for (int i = 0; i < 10 * SPECULATE_RETRY_STEPS; i++) {
            tried += speculate_length(&e, 8, rows, token_cost, &each);
        }
        ck_assert_uint_eq(tried, 10);
    }
    /* Nearly free tokens give the longest draft, and an empty draft gives none. */
    struct speculate e = {0};
    each = 1e-6;
    ck_assert_uint_eq(speculate_length(&e, 8, 1, token_cost, &each), 8);
    ck_assert_uint_eq(speculate_length(&e, 0, 1, token_cost, &each), 0);
    ck_assert_uint_eq(speculate_length(&e, 0, 32, token_cost, &each), 0);
}
END_TEST

START_TEST(a_trial_that_is_due_waits_for_an_offer)
{
    /* It is due at the 32nd choice of no draft. Where nothing is offered there is no choice. */
    struct speculate e = {0};
    double each = 1.0;
    for (int i = 0; i < 2 * (SPECULATE_RETRY_STEPS - 1); i++) {
        ck_assert_uint_eq(speculate_length(&e, i % 2 == 0 ? 8 : 0, 1, token_cost, &each), 0);
    }
    ck_assert_uint_eq(speculate_length(&e, 0, 1, token_cost, &each), 0);
    ck_assert_uint_eq(speculate_length(&e, 8, 1, token_cost, &each), 1);
    ck_assert_uint_eq(speculate_length(&e, 8, 1, token_cost, &each), 0); /* the next is far */
}
END_TEST

static const struct suite_row suite[] = {
    TEST(without_observations_the_prior_speaks),
    TEST(counts_are_those_of_a_hit_and_a_run),
    TEST(the_estimate_finds_the_process_it_watches),
    TEST(the_chosen_length_is_as_good_as_the_best_with_full_knowledge),
    TEST(a_length_that_never_pays_is_tried_once_in_a_while),
    TEST(a_trial_that_is_due_waits_for_an_offer),
};
SUITE_MAIN("speculate", suite)

/* Speculative decoding against the published tables: acceptance parameters and their means,
 * draft reuse, verification cost, and the amortized account (a calibration). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/run/config_speculation.h"
#include "hwmodels/speculation_cost.h"
#include "sim/base/datadir.h"
#include "tests/helpers/drafts.h"
#include "tests/helpers/suite.h"

#define STEPS 400000

static struct speculation_data data;

static void read_data(void)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(speculation_data_read(datadir_path(SPECULATION_DIR), &data, &e), 0);
    ck_assert_uint_eq(e.n, 0);
}

static struct speculation_model fit(const char *dataset, const char *model,
                                    enum speculation_method method, bool ours)
{
    struct err e = ERR_INIT;
    struct speculation_model m;
    ck_assert_int_eq(
        speculation_model_fit(&data, dataset, model, method, ours, SPECULATION_EXCLUSIVE, &m, &e),
        0);
    return m;
}

START_TEST(tables_are_whole)
{
    /* Table 4: 4 datasets x 3 models x 2 methods x without/with; Table 3: 3 models x 5 systems;
     * Table 2: three causes that sum to 1, of which 15.4 + 23.1 % are reusable. */
    ck_assert_uint_eq(data.n_acceptance, 48);
    ck_assert_uint_eq(data.n_ablation, 15);
    ck_assert_uint_eq(data.n_amortized, 3);
    double sum = 0;
    double reusable = 0;
    for (uint32_t i = 0; i < data.n_causes; i++) {
        sum += data.causes[i].share_frac;
        reusable += data.causes[i].reusable ? data.causes[i].share_frac : 0;
    }
    ck_assert_double_eq_tol(sum, 1, 1e-9);
    ck_assert_double_eq_tol(reusable, 0.385, 1e-9);
}
END_TEST

/* These are fitted values of the specification, from an independent bisection, with three
 * decimals. */
static const struct fitted {
    const char *dataset, *model;
    double alpha, hit, ours_alpha, ours_hit;
} FITTED[] = {
    {"summary", "qwen2.5-1.5b", .887, .408, .891, .463},
    {"summary", "qwen2.5-7b", .856, .283, .869, .320},
    {"summary", "llama-3.2-1b", .830, .286, .842, .327},
    {"rag", "qwen2.5-1.5b", .881, .528, .894, .587},
    {"rag", "qwen2.5-7b", .885, .266, .896, .295},
    {"rag", "llama-3.2-1b", .858, .321, .855, .387},
    {"ui", "qwen2.5-1.5b", .906, .342, .901, .404},
    {"ui", "qwen2.5-7b", .897, .255, .898, .268},
    {"ui", "llama-3.2-1b", .784, .372, .804, .403},
    {"tweet", "qwen2.5-1.5b", .886, .412, .838, .619},
    {"tweet", "qwen2.5-7b", .891, .328, .894, .396},
    {"tweet", "llama-3.2-1b", .837, .292, .857, .313},
};
#define N_FITTED (int)(sizeof(FITTED) / sizeof(FITTED[0]))

START_TEST(fitted_parameters_match_the_specification)
{
    const struct fitted *want = &FITTED[_i];
    struct speculation_model base = fit(want->dataset, want->model, SPECULATION_SAM, false);
    struct speculation_model ours = fit(want->dataset, want->model, SPECULATION_SAM, true);
    ck_assert_double_eq_tol(base.alpha, want->alpha, 0.00051);
    ck_assert_double_eq_tol(base.hit_frac, want->hit, 0.00051);
    ck_assert_double_eq_tol(ours.alpha, want->ours_alpha, 0.00051);
    ck_assert_double_eq_tol(ours.hit_frac, want->ours_hit, 0.00051);
}
END_TEST

START_TEST(inclusive_reading_fits_one_token_less)
{
    /* Summary, Qwen2.5-1.5B: (1.53, 2.60) of 10 and 40 tokens give alpha .920 and h .217. */
    struct err e = ERR_INIT;
    struct speculation_model m;
    ck_assert_int_eq(speculation_model_fit(&data, "summary", "qwen2.5-1.5b", SPECULATION_SAM, false,
                                           SPECULATION_INCLUSIVE, &m, &e),
                     0);
    ck_assert_double_eq_tol(m.alpha, 0.920, 0.00051);
    ck_assert_double_eq_tol(m.hit_frac, 0.217, 0.00051);
    ck_assert_double_eq_tol(drafts_mean_accepted(&m, 0), 2.60, 1e-9);
}
END_TEST

/* One row of Table 4 must be within 0.03, and within four standard errors of the simulation. */
static void check_row(const struct speculation_acceptance *row, uint32_t index)
{
    struct speculation_model m = fit(row->dataset, row->model, row->method, row->ours);
    ck_assert_double_eq_tol(drafts_mean_accepted(&m, 0), row->accepted_tokens, 1e-9);
    uint64_t key = speculation_key(11, index);
    double sum = 0;
    double squares = 0;
    for (uint64_t i = 0; i < STEPS; i++) {
        double a = speculation_accept(&m, key, i, 0, m.max_draft_tokens);
        sum += a;
        squares += a * a;
    }
    double mean = sum / STEPS;
    double error = sqrt((squares / STEPS - mean * mean) / STEPS);
    ck_assert_msg(fabs(mean - row->accepted_tokens) < 4 * error && 4 * error < 0.08 &&
                      fabs(mean - row->accepted_tokens) < 0.03,
                  "%s %s method %d ours %d: simulated %.3f +- %.3f, published %.2f", row->dataset,
                  row->model, (int)row->method, row->ours, mean, error, row->accepted_tokens);
}

/* Each constant in its own place. */
START_TEST(a_model_has_the_constants_of_the_file)
{
    struct speculation_constants *c = &data.constants;
    c->sam_draft_tokens.value = 37;
    c->pld_draft_tokens.value = 11;
    c->sam_tokens_per_match.value = 3;
    c->short_tokens.value = 5;
    c->friendly_tokens.value = 17;
    c->short_frac.value = 0.25;
    c->unfriendly_frac.value = 0.75;
    c->history_half_requests.value = 6.5;
    c->eagle_accepted_tokens.value = 2.5;
    static const enum speculation_method methods[] = {SPECULATION_PLD, SPECULATION_SAM,
                                                      SPECULATION_EAGLE};
    static const uint32_t most[] = {11, 37, 3};
    for (int i = 0; i < 3; i++) {
        struct speculation_model m;
        struct err e = ERR_INIT;
        (void)speculation_model_fit(&data, "summary", "qwen2.5-1.5b", methods[i], false,
                                    SPECULATION_EXCLUSIVE, &m, &e);
        err_fini(&e);
        ck_assert_int_eq(m.length, SPECULATION_FIXED);
        ck_assert_uint_eq(m.max_draft_tokens, most[i]);
        ck_assert_uint_eq(m.tokens_per_match, 3);
        ck_assert_uint_eq(m.short_tokens, 5);
        ck_assert_uint_eq(m.friendly_tokens, 17);
        ck_assert_double_eq(m.short_frac, 0.25);
        ck_assert_double_eq(m.unfriendly_frac, 0.75);
        ck_assert_double_eq(m.history_half_requests, 6.5);
        ck_assert_double_eq(m.history_cold_frac, 1.0);
        ck_assert_double_eq(m.reuse_frac, 0.0);
        ck_assert_double_eq(m.fixed_accept, i == 2 ? 2.5 : 0.0);
    }
    read_data();
}
END_TEST

/* PROP's drafts have 1 + t m tokens, with m geometric. Below the short length is the stated share,
 * for any t and any short length. */
START_TEST(short_drafts_are_as_many_as_stated)
{
    struct speculation_constants *c = &data.constants;
    for (uint32_t t = 1; t <= 6; t++) {
        for (uint32_t most = 2; most <= 20; most++) {
            c->sam_tokens_per_match.value = t;
            c->short_tokens.value = most;
            struct speculation_model m = fit("summary", "qwen2.5-1.5b", SPECULATION_SAM, false);
            double below = 0.0;
            double p = 1.0 - m.match_frac;
            for (uint32_t length = 1; length < most; length += t, p *= m.match_frac) {
                below += p;
            }
            ck_assert_double_eq_tol(below, c->short_frac.value, 1e-12);
        }
    }
    read_data();
}
END_TEST

/* A draft has 1 + 4 m tokens, and fewer than 8 where m < 2. With the ratio r that is 1 - r^2 of the
 * drafts: three quarters with 0.5. */
START_TEST(drafts_of_a_run_by_match_are_as_short)
{
    struct config_drafts d = {.method = 1 + SPECULATION_SAM,
                              .dataset = "summary",
                              .model = "qwen2.5-1.5b",
                              .length = SPECULATION_PROP};
    static struct config_speculation s;
    struct err e = ERR_INIT;
    ck_assert_int_eq(config_speculation_fit(&d, &s, &e), 0);
    ck_assert_int_eq(s.model[CONFIG_DRAFTER_RUN].length, SPECULATION_PROP);
    ck_assert_double_eq(s.model[CONFIG_DRAFTER_RUN].match_frac, 0.5);
}
END_TEST

START_TEST(table_4_is_reproduced_by_simulation)
{
    for (uint32_t i = (uint32_t)_i; i < data.n_acceptance; i += 4) {
        check_row(&data.acceptance[i], i);
    }
}
END_TEST

START_TEST(reuse_of_a_quarter_of_rejections_explains_the_whole_gain)
{
    /* For SAM on summary, Qwen2.5-1.5B, r = 0.24 gives 4.21 / 3.60 = +17 %. The share "missing"
     * alone (0.154) gives +10 %. f = 1 - .887^39 = .991, so the ratios are 1 / (1 - .991 * .24 *
     * .592) = 1.164 and 1.099. */
    struct speculation_model m = fit("summary", "qwen2.5-1.5b", SPECULATION_SAM, false);
    double base = drafts_mean_accepted(&m, 0);
    m.reuse_frac = 0.24;
    ck_assert_double_eq_tol(drafts_mean_accepted(&m, 0) / base, 1.164, 0.001);
    m.reuse_frac = data.causes[0].share_frac;
    ck_assert_double_eq_tol(drafts_mean_accepted(&m, 0) / base, 1.099, 0.001);
}
END_TEST

START_TEST(table_3_is_within_three_percent_in_the_amortized_account)
{
    /* A calibration: 5 figures per model from about 5 free values (README.md). */
    for (uint32_t i = 0; i < data.n_ablation; i++) {
        const struct speculation_ablation *row = &data.ablation[i];
        const struct speculation_amortized *a = NULL;
        for (uint32_t k = 0; k < data.n_amortized; k++) {
            a = strcmp(data.amortized[k].model, row->model) == 0 ? &data.amortized[k] : a;
        }
        ck_assert_ptr_nonnull(a);
        double ms = speculation_amortized_ms(&data, a, row->system);
        ck_assert_msg(fabs(ms / row->latency_ms - 1) < 0.03, "%s column %d: %.2f, published %.2f",
                      row->model, (int)row->system, ms, row->latency_ms);
    }
}
END_TEST

START_TEST(amortized_account_adds_up_by_hand)
{
    /* For Qwen2.5-1.5B, SAM drafts 40 tokens in two passes of 32 rows: 13.99 + (2 * 43.42 + 9.99) /
     * 4.60 = 35.04. Ours is 4.30 + 1.87 + (43.42 + 3) / 5.21 = 15.08. */
    const struct speculation_amortized *a = &data.amortized[0];
    ck_assert_double_eq_tol(speculation_amortized_ms(&data, a, SPECULATION_NPU), 57.41, 0.005);
    ck_assert_double_eq_tol(speculation_amortized_ms(&data, a, SPECULATION_NPU_SD), 35.04, 0.005);
    ck_assert_double_eq_tol(speculation_amortized_ms(&data, a, SPECULATION_OURS), 15.08, 0.005);
}
END_TEST

START_TEST(a_step_costs_what_figure_6_says)
{
    /* 51.1 ms at 1 and 32 * 5.7 = 182.4 ms at 32 give 4.2355 per token and 46.8645 at 0. */
    ck_assert_double_eq_tol(speculation_linear_ms(&data.constants, 1), 51.1, 1e-9);
    ck_assert_double_eq_tol(speculation_linear_ms(&data.constants, 32), 182.4, 1e-9);
    ck_assert_double_eq_tol(speculation_linear_ms(&data.constants, 0), 46.8645, 1e-4);
}
END_TEST

START_TEST(missing_figures_are_named)
{
    struct err e = ERR_INIT;
    struct speculation_model m;
    ck_assert_int_lt(speculation_model_fit(&data, "poems", "qwen2.5-1.5b", SPECULATION_SAM, false,
                                           SPECULATION_EXCLUSIVE, &m, &e),
                     0);
    ck_assert_ptr_nonnull(strstr(e.lines[0], "poems"));
    err_fini(&e);
    /* A ratio of 1 needs alpha = 0: no run length gives it. */
    double was = data.acceptance[0].accepted_tokens;
    data.acceptance[0].accepted_tokens = 3.60;
    ck_assert_int_lt(speculation_model_fit(&data, "summary", "qwen2.5-1.5b", SPECULATION_SAM, false,
                                           SPECULATION_EXCLUSIVE, &m, &e),
                     0);
    data.acceptance[0].accepted_tokens = was;
    err_fini(&e);
    struct speculation_data none;
    ck_assert_int_lt(speculation_data_read("no/such/folder", &none, &e), 0);
    ck_assert_uint_eq(e.n, 4); /* four files */
    err_fini(&e);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("tables", .once = read_data, .timeout_s = 120),
    TEST(tables_are_whole),
    LOOP(fitted_parameters_match_the_specification, N_FITTED),
    TEST(inclusive_reading_fits_one_token_less),
    TEST(a_model_has_the_constants_of_the_file),
    TEST(short_drafts_are_as_many_as_stated),
    TEST(drafts_of_a_run_by_match_are_as_short),
    LOOP(table_4_is_reproduced_by_simulation, 4),
    TEST(reuse_of_a_quarter_of_rejections_explains_the_whole_gain),
    TEST(table_3_is_within_three_percent_in_the_amortized_account),
    TEST(amortized_account_adds_up_by_hand),
    TEST(a_step_costs_what_figure_6_says),
    TEST(missing_figures_are_named),
};
SUITE_MAIN("speculation-data", suite)

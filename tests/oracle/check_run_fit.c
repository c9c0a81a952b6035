/* Fits to a measured run. The run comes from the simulator itself, with known numbers. The fit must
 * find these, and may look at no more than its own part of the run. The scores are computed by
 * hand. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/validation/run_fit.h"
#include "experiments/validation/run_interval.h"
#include "experiments/validation/run_score.h"
#include "sim/base/arena.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

#define POLICY "vllm-v1:max_num_seqs=16,max_num_batched_tokens=512"
#define N 60
#define N_FIT 30

static struct config_options options;
static struct config config;
static struct config_policy policy;
static struct measured_run run;
static struct run_fit fit;
static struct err err;

/* 60 requests come, 20 of them at 12 a second and the others at 3 a second. Prompts have 100 to
 * 2500 tokens and outputs 5 to 64, so batches are small and large. */
static void make_trace(void)
{
    struct trace_builder b;
    trace_builder_init(&b);
    for (uint32_t i = 0; i < N; i++) {
        struct trace_row row = {.arrival_ns = (i < 20 ? 83000000LL : 333000000LL) * i,
                                .request_id = i,
                                .session_id = i,
                                .input_tokens = 100 + (i * 379) % 2401,
                                .output_tokens = 5 + (i * 37) % 60,
                                .max_output_tokens = 256,
                                .next = TRACE_NO_ROW};
        trace_builder_add(&b, &row, NULL);
    }
    ck_assert_int_eq(trace_build(&b, true, "run", &run.trace, &err), 0);
    trace_builder_fini(&b);
    run.measured = xmalloc(N * sizeof *run.measured);
}

static void setup(void)
{
    err = (struct err)ERR_INIT;
    memset(&run, 0, sizeof run);
    options = config_options_default();
    options.soc = "rtx-pro-6000";
    options.llm = "llama-3.1-8b-bf16";
    ck_assert_int_eq(config_load(&config, &options, &err), 0);
    ck_assert_int_eq(config_policy_parse(&policy, POLICY, &err), 0);
    make_trace();
}

static void teardown(void)
{
    trace_fini(&run.trace);
    config_fini(&config);
    err_fini(&err);
}

/* "Measures" the run on a machine with the numbers of `truth`. */
static void measure(const char *keys, const double *truth)
{
    struct config made;
    ck_assert_int_eq(run_fit_keys(&config, keys, &fit, &err), 0);
    for (uint32_t i = 0; i < fit.n_keys; i++) {
        fit.key[i].fitted = truth[i];
    }
    ck_assert_int_eq(run_fit_load(&options, &fit, &made, &err), 0);
    ck_assert_int_eq(run_replay(&made, &policy, &run, N, 1, run.measured, &err), 0);
    config_fini(&made);
}

static void fit_to(const char *keys)
{
    ck_assert_int_eq(run_fit_keys(&config, keys, &fit, &err), 0);
    ck_assert_int_eq(run_fit(&options, &policy, &run, N_FIT, &fit, &err), 0);
}

START_TEST(known_numbers_are_found_again)
{
    const double truth[] = {1300, 290, 900}; /* GB/s, TFLOP/s, us */
    measure("bandwidth,rate,submit", truth);
    fit_to("bandwidth,rate,submit");
    ck_assert(fit.converged);
    for (int i = 0; i < 3; i++) {
        ck_assert_msg(fabs(fit.key[i].fitted / truth[i] - 1.0) < 0.02, "%s: %g, not %g",
                      fit.key[i].path, fit.key[i].fitted, truth[i]);
    }
    for (int i = 0; i < 3; i++) {
        ck_assert(!fit.key[i].at_bound && fit.key[i].se >= 0.0);
    }
    /* The truth itself has no error. The fit's must be far below a percent. */
    ck_assert_double_lt(fit.objective, 0.005);
    ck_assert_double_gt(fit.objective_before, 0.1);
}
END_TEST

/* Returns whether the fitted machine is said to lack something that the run has. */
static bool lacks(void)
{
    struct measured_latency *simulated = xmalloc(N * sizeof *simulated);
    struct config fitted;
    struct run_score score;
    ck_assert_int_eq(run_fit_load(&options, &fit, &fitted, &err), 0);
    ck_assert_int_eq(run_replay(&fitted, &policy, &run, N, 1, simulated, &err), 0);
    run_score(&run, simulated, 0, N_FIT, &score);
    config_fini(&fitted);
    free(simulated);
    return run_fit_lacks(&score);
}

/* Logarithms of latencies on a grid of bandwidths around the fitted one, E2E and TTFT in turn. */
#define GRID 161
#define GRID_STEP 0.00125
static double grid[GRID][2 * N_FIT];

static double objective(double at, uint32_t half)
{
    uint32_t g = (uint32_t)at;
    double sum = 0.0;
    double n = 0.0;
    for (uint32_t i = 0; i < N_FIT; i++) {
        uint32_t both = half & (i * 8 / N_FIT);
        if (__builtin_popcount(both) % 2 == 0) {
            const double measured[] = {log(run.measured[i].e2e_s), log(run.measured[i].ttft_s)};
            for (uint32_t k = 0; k < 2; k++) {
                double low = grid[g][2 * i + k];
                double x = low + (at - g) * (grid[g + 1][2 * i + k] - low);
                sum += fabs(x - measured[k]);
            }
            n += 1.0;
        }
    }
    return sum / n;
}

/* Requests that do not meet have latencies that fall smoothly as the bandwidth rises, so that each
 * half has one minimum, which a grid shows. Seven halves of eight blocks have the rows of a
 * Hadamard matrix. The mean square of their distances from the fit of all is the variance. */
START_TEST(standard_errors_are_those_of_balanced_halves)
{
    const double truth[] = {1300};
    for (uint32_t i = 0; i < N; i++) {
        run.trace.rows[i].arrival_ns = 60 * NS_PER_S * (int64_t)i;
    }
    measure("bandwidth", truth);
    for (uint32_t i = 0; i < N; i++) {
        double noise = exp(0.1 * sin(2.3 * i + 1.0));
        run.measured[i].e2e_s *= noise;
        run.measured[i].ttft_s *= noise;
    }
    fit_to("bandwidth");
    double whole = fit.key[0].fitted;
    double se = fit.key[0].se;
    OWNED struct measured_latency *simulated = xmalloc(N * sizeof *simulated);
    for (uint32_t g = 0; g < GRID; g++) {
        struct config at;
        fit.key[0].fitted = whole * (1.0 + GRID_STEP * ((double)g - (GRID - 1) / 2.0));
        ck_assert_int_eq(run_fit_load(&options, &fit, &at, &err), 0);
        ck_assert_int_eq(run_replay(&at, &policy, &run, N_FIT, 1, simulated, &err), 0);
        for (uint32_t i = 0; i < N_FIT; i++) {
            grid[g][2 * i] = log(simulated[i].e2e_s);
            grid[g][2 * i + 1] = log(simulated[i].ttft_s);
        }
        config_fini(&at);
    }
    double sum = 0.0;
    for (uint32_t half = 1; half < 8; half++) {
        double best = 0.0;
        for (double at = 0.0; at < GRID - 1; at += 0.02) {
            best = objective(at, half) < objective(best, half) ? at : best;
        }
        ck_assert(best > 0.0 && best < GRID - 1.02);
        sum += pow(whole * GRID_STEP * (best - (GRID - 1) / 2.0), 2.0);
    }
    ck_assert_msg(fabs(se / sqrt(sum / 7.0) - 1.0) < 0.02, "%g, not %g", se, sqrt(sum / 7.0));
}
END_TEST

/* The latencies of the other requests are replaced by nonsense, and not one bit of the fit may
 * change. Without the nonsense the model must be good enough for the run. */
START_TEST(later_latencies_do_not_leak_into_the_fit)
{
    const double truth[] = {1300, 290};
    measure("bandwidth,rate", truth);
    fit_to("bandwidth,rate");
    ck_assert(!lacks());
    double first = fit.key[0].fitted;
    double second = fit.key[1].fitted;
    for (uint32_t i = N_FIT; i < N; i++) {
        run.measured[i].ttft_s *= 3.0;
        run.measured[i].e2e_s *= 7.0;
    }
    fit_to("bandwidth,rate");
    ck_assert_double_eq(fit.key[0].fitted, first);
    ck_assert_double_eq(fit.key[1].fitted, second);
}
END_TEST

/* The run takes 0.8 of the time that the fastest memory of the file (ddr.peak, 1597 GB/s) would
 * take. So the fit ends at that bandwidth. At a bound no half of the requests says how certain it
 * is. */
START_TEST(a_number_at_its_bound_has_no_standard_error)
{
    const double truth[] = {1597};
    measure("bandwidth", truth);
    for (uint32_t i = 0; i < N; i++) {
        run.measured[i].e2e_s *= 0.8;
        run.measured[i].ttft_s *= 0.8;
    }
    fit_to("bandwidth");
    ck_assert_double_eq_tol(fit.key[0].fitted / 1597, 1.0, 2e-3);
    ck_assert(fit.key[0].at_bound);
    ck_assert(isnan(fit.key[0].se));
}
END_TEST

/* There is nothing to correct, so the fit stays where it is. */
START_TEST(a_run_of_the_file_itself_moves_nothing)
{
    const double truth[] = {1597, 503.8};
    measure("bandwidth,rate", truth);
    fit_to("bandwidth,rate");
    ck_assert_double_eq_tol(fit.key[0].fitted / 1597, 1.0, 1e-3);
    ck_assert_double_eq_tol(fit.key[1].fitted / 503.8, 1.0, 1e-3);
}
END_TEST

/* Every second request takes half of its time and the others twice theirs, which no machine does.
 * For any numbers the median error is far above the limit, and the verdict must say that. */
START_TEST(a_form_that_cannot_be_the_run_says_so)
{
    const double truth[] = {1300, 290};
    measure("bandwidth,rate", truth);
    for (uint32_t i = 0; i < N; i++) {
        run.measured[i].e2e_s *= i % 2 == 0 ? 0.5 : 2.0;
    }
    fit_to("bandwidth,rate");
    ck_assert(lacks());
}
END_TEST

/* The smallest and the largest of 64 draws are taken. A further one lies between these with
 * probability 63/65 = 96.9 %, and between the second ones with only 61/65 = 93.8 %. With 79 draws
 * the second ones are taken: 76/80 = 95 %. */
START_TEST(intervals_are_order_statistics_of_the_drawn_machines)
{
    ck_assert_uint_eq(run_interval_rank(64, 0.95), 1);
    ck_assert_uint_eq(run_interval_rank(79, 0.95), 2);
    ck_assert_uint_eq(run_interval_rank(5, 0.95), 1);
}
END_TEST

/* The file says 1100 to 1792 GB/s, 252 to 504 TFLOP/s and up to 4 ms a launch. A machine in the
 * middle of that must lie inside the interval, and one that is ten times as slow outside it. */
START_TEST(a_run_that_nothing_was_fitted_to_has_an_interval)
{
    const double truth[] = {1300, 290, 900};
    measure("bandwidth,rate,submit", truth);
    struct measured_latency *simulated = xmalloc(N * sizeof *simulated);
    struct run_interval x;
    ck_assert_int_eq(run_replay(&config, &policy, &run, N, 1, simulated, &err), 0);
    for (int slow = 0; slow < 2; slow++) {
        for (uint32_t i = 0; slow == 1 && i < N; i++) {
            run.measured[i].e2e_s *= 10.0;
            run.measured[i].ttft_s *= 10.0;
        }
        ck_assert_int_eq(run_interval(&options, &config, &policy, &run, simulated, 32, &x, &err),
                         0);
        ck_assert_uint_eq(x.n_machines, 32);
        ck_assert_uint_eq(x.n_failed, 0);
        for (int k = 0; k < RUN_METRIC_COUNT; k++) {
            const struct run_interval_metric *m = &x.metric[k];
            ck_assert_double_lt(m->low, m->high);
            ck_assert_double_lt(m->simulated, m->high); /* the file is near the fast end */
            ck_assert_int_eq(m->low <= m->measured && m->measured <= m->high, slow == 0);
        }
        ck_assert(slow == 0 ? x.metric[RUN_METRIC_E2E].inside_frac > 0.95
                            : x.metric[RUN_METRIC_E2E].inside_frac < 0.05);
    }
    free(simulated);
}
END_TEST

static void key_refused(const char *keys, const char *why)
{
    ck_assert_int_eq(run_fit_keys(&config, keys, &fit, &err), -EINVAL);
    ck_assert_msg(strstr(err.lines[0], why) != NULL, "%s", err.lines[0]);
    err_fini(&err);
}

START_TEST(keys_that_cannot_be_fitted_are_refused)
{
    key_refused("", "1 to 3 keys");
    key_refused("bandwidth,", "1 to 3 keys");
    key_refused("bandwidth,rate,submit,launch", "1 to 3 keys");
    key_refused("nonesuch", "no number with a unit");
    key_refused("soc.nowhere.at.all", "no number with a unit");
    key_refused("rate,rate", "twice");
    key_refused("rate,soc.devices.gpu.runtimes.0.rate", "twice");
    key_refused("sim.stall_s", "no number with a unit");
    key_refused("reset", "no range"); /* the file has 0, low 0, high 0 */
    options.soc = "core-ultra-5-125h";
    config_fini(&config);
    ck_assert_int_eq(config_load(&config, &options, &err), 0);
    key_refused("bandwidth", "devices: give a path");
}
END_TEST

START_TEST(a_singular_fit_and_too_few_requests_are_refused)
{
    const double truth[] = {1300};
    measure("bandwidth", truth);
    /* Nothing is swapped in this run, so it cannot determine the swap bandwidth. */
    ck_assert_int_eq(run_fit_keys(&config, "rate,soc.loader.swap_bandwidth", &fit, &err), 0);
    ck_assert_int_eq(run_fit(&options, &policy, &run, N_FIT, &fit, &err), -EINVAL);
    ck_assert_msg(strstr(err.lines[0], "singular") != NULL, "%s", err.lines[0]);
    err_fini(&err);
    ck_assert_int_eq(run_fit_keys(&config, "rate,bandwidth", &fit, &err), 0);
    ck_assert_int_eq(run_fit(&options, &policy, &run, 9, &fit, &err), -EINVAL);
    ck_assert_msg(strstr(err.lines[0], "at least 10") != NULL, "%s", err.lines[0]);
}
END_TEST

/* Four requests have measured and simulated latencies.
 *
 * E2E: 1.1/1, 1.8/2, 3/3 and 6/4 are errors of 0.1, -0.1, 0 and 0.5. The MAPE is 0.7 / 4 = 0.175,
 * and the bias 0.5 / 4 = 0.125. The median is 0.1 (nearest rank 2 of 0, 0.1, 0.1, 0.5), and the P90
 * 0.5 (rank 4).
 *
 * TTFT: each is doubled, an error of 1.
 *
 * TPOT is (E2E - TTFT) / (O - 1). The last request has one token and so no TPOT. Measured are
 * 0.9, 1.9 / 2 and 2.9 / 3, and simulated 0.9, 1.6 / 2 and 2.8 / 3. The errors are 0, -3/19 and
 * -1/29. */
START_TEST(scores_are_those_of_hand_computation)
{
    const struct measured_latency real[] = {{0.1, 1}, {0.1, 2}, {0.1, 3}, {4, 4}};
    const struct measured_latency sim[] = {{0.2, 1.1}, {0.2, 1.8}, {0.2, 3}, {8, 6}};
    const uint32_t outputs[] = {2, 3, 4, 1};
    struct run_score s;
    for (int i = 0; i < 4; i++) {
        run.measured[i] = real[i];
        run.trace.rows[i].output_tokens = outputs[i];
    }
    run_score(&run, sim, 0, 4, &s);
    ck_assert_uint_eq(s.n, 4);
    ck_assert_double_eq_tol(s.metric[RUN_METRIC_E2E].mape, 0.175, 1e-12);
    ck_assert_double_eq_tol(s.metric[RUN_METRIC_E2E].median, 0.1, 1e-12);
    ck_assert_double_eq_tol(s.metric[RUN_METRIC_E2E].p90, 0.5, 1e-12);
    ck_assert_double_eq_tol(s.metric[RUN_METRIC_E2E].bias, 0.125, 1e-12);
    ck_assert_double_eq_tol(s.metric[RUN_METRIC_TTFT].mape, 1.0, 1e-12);
    ck_assert_uint_eq(s.metric[RUN_METRIC_TPOT].n, 3);
    ck_assert_double_eq_tol(s.metric[RUN_METRIC_TPOT].bias, (-3.0 / 19 - 1.0 / 29) / 3, 1e-12);
    /* Pearson: x is 1.1, 1.8, 3 and 6 with mean 2.975, and y is 1, 2, 3 and 4 with mean 2.5.
     *
     * sum dx dy = 1.5 x 1.875 + 0.5 x 1.175 + 0.5 x 0.025 + 1.5 x 3.025 = 2.8125 + 0.5875 + 0.0125
     * + 4.5375 = 7.95.
     *
     * sum dx^2 = 3.515625 + 1.380625 + 0.000625 + 9.150625 = 14.0475, and sum dy^2 = 5. */
    ck_assert_double_eq_tol(s.e2e_pearson, 7.95 / sqrt(14.0475 * 5), 1e-12);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("fit", .setup = setup, .teardown = teardown, .timeout_s = 300),
    TEST(known_numbers_are_found_again),
    TEST(standard_errors_are_those_of_balanced_halves),
    TEST(later_latencies_do_not_leak_into_the_fit),
    TEST(a_number_at_its_bound_has_no_standard_error),
    TEST(a_run_of_the_file_itself_moves_nothing),
    TEST(keys_that_cannot_be_fitted_are_refused),
    TEST(a_singular_fit_and_too_few_requests_are_refused),
    TEST(a_form_that_cannot_be_the_run_says_so),
    TEST(intervals_are_order_statistics_of_the_drawn_machines),
    TEST(a_run_that_nothing_was_fitted_to_has_an_interval),
    TEST(scores_are_those_of_hand_computation),
};
SUITE_MAIN("fits to measured runs", suite)

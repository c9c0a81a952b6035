/* The whole pipeline on devices whose numbers are known: measure in virtual time, write the rows,
 * read them back, fit, and compare with what was put in. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hwmodels/backends/measure.h"
#include "hwmodels/backends/simdev.h"
#include "hwmodels/kernel_fit.h"
#include "hwmodels/kernel_fit_impl.h"
#include "sim/base/arena.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"
#include "sim/base/rng.h"
#include "tests/helpers/suite.h"

/* Returns the trials of the promise of 95 %, and sets how many must be covered. WHOLE=yes runs a
 * hundred, and all but five must be. Otherwise a half runs: at a true 95 %, fewer than 46 come in
 * 10 of 100 such halves. It sees two of the inserted faults that the whole sees (hwmodels:5,
 * second:20). The third, one-sided intervals, is seen by the test of a knee below. Sanitizers make
 * a trial ten times slower and look for other faults, so they run fewer. */
static uint32_t trials(uint32_t *needed)
{
#if defined(__SANITIZE_ADDRESS__) || defined(SANITIZED)
    *needed = 8;
    return 10;
#else
    *needed = suite_whole() ? 95 : 46;
    return suite_whole() ? 100 : 50;
#endif
}
#define REPETITIONS 12
#define FEW 3 /* where nothing varies, or nothing is fitted */

/* Two devices with one width each, and numbers of their own. */
static void truth_init(struct simdev_truth *t, uint64_t seed)
{
    const char *path = datadir_path("hwmodels/soc/core-ultra-5-125h.json");
    struct err e = ERR_INIT;
    simdev_truth_init(t);
    cJSON *root = json_read_file(path, &e);
    ck_assert_ptr_nonnull(root);
    ck_assert_int_eq(soc_parse(root, path, &t->soc, &e), 0);
    cJSON_Delete(root);
    struct rng r;
    rng_init(&r, rng_key(seed, RNG_TEST, 0, 0));
    t->soc.machine.n_devices = 2;
    for (int d = 0; d < 2; d++) {
        struct soc_device *sd = &t->soc.devices[d];
        struct soc_runtime *rt = &sd->runtimes[0];
        sd->n_runtimes = 1;
        sd->fallback = 0;
        rt->weight_bits = 8;
        rt->many.flop_per_s = (1.0 + 5.0 * rng_uniform(&r)) * 1e12;
        rt->many.bytes_per_s = (40.0 + 40.0 * rng_uniform(&r)) * 1e9;
        rt->many.launch_s = (20.0 + 100.0 * rng_uniform(&r)) * 1e-6;
        rt->one = rt->many;
        rt->one.bytes_per_s *= 0.7 + 0.5 * rng_uniform(&r);
        rt->knee = 0.9 + 2.0 * rng_uniform(&r);
        rt->attention_frac = 0.15 + 0.5 * rng_uniform(&r);
    }
    t->contention.cap_bytes_per_s = (75.0 + 15.0 * rng_uniform(&r)) * 1e9;
    t->contention.sharpness = 3.0 + 4.0 * rng_uniform(&r);
    t->lambda[KERNEL_GEMV] = 0.3 * rng_uniform(&r);
    t->lambda[KERNEL_DECODE] = 0.2 * rng_uniform(&r);
    t->seed = seed;
}

static void disturb(struct simdev_truth *t)
{
    t->noise_frac = 0.02;
    t->drift_frac = 0.005;
    t->drift_period_s = 7.0; /* some periods per repetition, none of them whole */
    t->outlier_frac = 0.02;
    t->compile_s = 0.01;
}

/* Measures, writes and reads: what a user's two commands do. */
static void measure_rows(const struct simdev_truth *t, uint32_t repetitions,
                         struct kernel_rows *rows)
{
    struct measure_options o;
    struct err e = ERR_INIT;
    char path[] = "/tmp/check_kernel_fit.XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    FILE *out = fdopen(fd, "w");
    measure_options_init(&o);
    o.backend = &backend_sim;
    o.backend_options.truth = t;
    o.size = PLAN_FULL;
    o.window_s = 0.1;
    o.min_samples = 60;
    o.repetitions = repetitions;
    o.seed = t->seed;
    ck_assert_int_eq(measure_run(&o, out, &e), 0);
    ck_assert_int_eq(fclose(out), 0);
    *rows = (struct kernel_rows){.n = 0};
    int rc = kernel_rows_read(rows, path, &e);
    err_print(&e, stderr);
    ck_assert_int_eq(rc, 0);
    ck_assert_int_eq(unlink(path), 0);
}

/* Value that the fit should find. */
static double true_value(const struct simdev_truth *t, const struct kernel_estimate *q)
{
    int d = strcmp(q->device, t->soc.machine.devices[1].name) == 0;
    const struct soc_runtime *r = &t->soc.devices[d].runtimes[0];
    switch (q->param) {
    case KERNEL_PARAM_RATE:
    case KERNEL_PARAM_KNOB_RATE:
        return r->many.flop_per_s;
    case KERNEL_PARAM_BANDWIDTH:
    case KERNEL_PARAM_READ:
    case KERNEL_PARAM_COPY:
        return r->many.bytes_per_s;
    case KERNEL_PARAM_BANDWIDTH_ONE:
        return r->one.bytes_per_s;
    case KERNEL_PARAM_KNEE:
    case KERNEL_PARAM_KNOB_KNEE:
        return r->knee;
    case KERNEL_PARAM_LAUNCH:
        return r->many.launch_s;
    case KERNEL_PARAM_ATTENTION:
        return r->many.flop_per_s * r->attention_frac;
    case KERNEL_PARAM_CAP:
        return t->contention.cap_bytes_per_s;
    case KERNEL_PARAM_SHARPNESS:
        return t->contention.sharpness;
    default:
        return t->lambda[q->op];
    }
}

/* Within 3 %; a sensitivity, a share of the kernel's time and possibly 0, within 3 % of that time.
 */
static bool estimate_is_near(const struct kernel_estimate *q, double want)
{
    return q->param == KERNEL_PARAM_LAMBDA ? fabs(q->value - want) <= 0.03
                                           : fabs(q->value / want - 1.0) <= 0.03;
}

START_TEST(without_noise_every_parameter_comes_back)
{
    struct simdev_truth t;
    struct kernel_rows rows;
    struct kernel_fit fit;
    struct err e = ERR_INIT;
    truth_init(&t, 7);
    measure_rows(&t, FEW, &rows);
    ck_assert_int_eq(kernel_fit_run(&fit, &rows, &e), 0);
    /* per device P, B, p, t, one-row B, attention, read, copy, knob rate and knee; machine C, q;
     * sensitivities of gemv, gemm, decode */
    ck_assert_uint_eq(fit.n_params, 2 * 10 + 2 + 3);
    for (uint32_t i = 0; i < fit.n_params; i++) {
        double want = true_value(&t, &fit.params[i]);
        /* stamps are whole nanoseconds: 1e-4 of the shortest kernels here */
        ck_assert_msg(fabs(fit.params[i].value - want) <= 1e-3 * want + 1e-4,
                      "%s of %s: %g, truth %g", kernel_param_name(fit.params[i].param),
                      fit.params[i].device, fit.params[i].value, want);
        ck_assert(fit.params[i].resolved);
    }
    ck_assert(!fit.alone.wrong && !fit.together.wrong);
    ck_assert_double_le(fit.all[KERNEL_FORM_PNORM].worst_frac, 1e-3);
}
END_TEST

/* Every true value must be inside its interval at once, because the intervals promise 95 % of
 * that. */
START_TEST(simultaneous_intervals_cover_in_95_percent_of_noisy_trials_within_3_percent)
{
    uint32_t covered = 0;
    uint32_t far = 0;
    uint32_t false_alarms = 0;
    uint32_t needed;
    const uint32_t n = trials(&needed);
    for (uint64_t trial = 0; trial < n; trial++) {
        struct simdev_truth t;
        struct kernel_rows rows;
        struct kernel_fit fit;
        struct err e = ERR_INIT;
        bool all = true;
        truth_init(&t, 1000 + trial);
        disturb(&t);
        measure_rows(&t, REPETITIONS, &rows);
        ck_assert_int_eq(kernel_fit_run(&fit, &rows, &e), 0);
        for (uint32_t i = 0; i < fit.n_params; i++) {
            const struct kernel_estimate *q = &fit.params[i];
            double want = true_value(&t, q);
            bool inside = q->low <= want && want <= q->high;
            all = all && inside;
            far += !estimate_is_near(q, want);
            if (!inside || !estimate_is_near(q, want)) {
                (void)printf("note: trial %u: %s %s %s %.6g in [%.6g, %.6g], truth %.6g\n",
                             (unsigned)trial, q->device, kernel_param_name(q->param),
                             kernel_op_name(q->op), q->value, q->low, q->high, want);
            }
        }
        covered += all;
        false_alarms += fit.alone.wrong || fit.together.wrong;
    }
    (void)printf("oracle: %u of %u trials covered at once, %u estimates beyond 3 %%, %u false "
                 "alarms\n",
                 covered, n, far, false_alarms);
    ck_assert_uint_ge(covered, needed);
    ck_assert_uint_eq(far, 0);
    ck_assert_uint_eq(false_alarms, 0);
}
END_TEST

static void fit_form(enum simdev_form form, uint64_t seed, struct kernel_fit *fit)
{
    struct simdev_truth t;
    struct kernel_rows rows;
    struct err e = ERR_INIT;
    truth_init(&t, seed);
    disturb(&t);
    t.form = form;
    measure_rows(&t, REPETITIONS, &rows);
    ck_assert_int_eq(kernel_fit_run(fit, &rows, &e), 0);
    fit->cells[0].row = NULL; /* the rows go */
}

START_TEST(a_wrong_form_of_times_is_flagged)
{
    static const enum simdev_form forms[] = {SIMDEV_FILL, SIMDEV_STEPS};
    for (int f = 0; f < 2; f++) {
        for (uint64_t seed = 1; seed <= 5; seed++) {
            struct kernel_fit fit;
            fit_form(forms[f], seed, &fit);
            ck_assert_msg(fit.alone.wrong, "form %d seed %d: misfit %g", f, (int)seed,
                          fit.alone.misfit_frac);
        }
    }
}
END_TEST

START_TEST(a_wrong_form_of_contention_is_flagged_and_leaves_the_times_alone)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct kernel_fit fit;
        fit_form(SIMDEV_PRIVATE, seed, &fit);
        ck_assert(fit.together.wrong);
        ck_assert(!fit.alone.wrong);
    }
}
END_TEST

START_TEST(flagged_rows_do_not_take_part)
{
    struct simdev_truth t;
    struct kernel_rows rows;
    struct kernel_fit clean;
    struct kernel_fit dirty;
    struct err e = ERR_INIT;
    truth_init(&t, 3);
    disturb(&t);
    measure_rows(&t, REPETITIONS, &rows);
    ck_assert_int_eq(kernel_fit_run(&clean, &rows, &e), 0);
    size_t n = rows.n;
    for (size_t i = 0; i < n; i += 7) { /* the same kernels once more, ten times slower */
        struct kernel_row *bad = kernel_rows_add(&rows);
        *bad = rows.v[i];
        bad->value *= 10.0;
        bad->flag = "foreign_cpu";
    }
    ck_assert_int_eq(kernel_fit_run(&dirty, &rows, &e), 0);
    ck_assert_uint_gt(dirty.n_flagged, 0);
    ck_assert_uint_eq(dirty.n_points, clean.n_points);
    for (uint32_t i = 0; i < clean.n_params; i++) {
        ck_assert_double_eq(clean.params[i].value, dirty.params[i].value);
    }
}
END_TEST

/* A second file continues with other numbers of its series, so rows of both are different
 * repetitions. */
START_TEST(files_read_one_after_the_other_are_further_repetitions)
{
    struct kernel_rows rows;
    struct err e = ERR_INIT;
    char path[] = "/tmp/check_kernel_fit.XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    FILE *f = fdopen(fd, "w");
    (void)fputs(
        "# xpusim-kernels v1 memory_bytes=1\n"
        "soc,device,runtime,model,weight_bits,act_bits,input_tokens,batch,metric,value,source,"
        "kind,op,rows,flop,bytes,partner,repetition,samples,p10,p90,foreign_frac,steal_frac,"
        "set,flag\n"
        "s,cpu0,native,gemm-w32-m128-n1024-k1024,32,32,128,1,compile_ms,1,\"x\",cpu,gemm,128,"
        "268435456,5242880,,0,1,0,0,,,fit,\n",
        f);
    ck_assert_int_eq(fclose(f), 0);
    rows = (struct kernel_rows){.n = 0};
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_msg(kernel_rows_read(&rows, path, &e) == 0, "%s", e.n > 0 ? e.lines[0] : "");
        ck_assert_uint_eq(rows.n, i + 1);
        ck_assert_uint_eq(rows.v[i].repetition, i);
    }
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

START_TEST(too_few_rows_are_an_error_that_says_so)
{
    struct simdev_truth t;
    struct kernel_rows rows;
    struct kernel_fit fit;
    struct err e = ERR_INIT;
    truth_init(&t, 3);
    measure_rows(&t, FEW, &rows);
    rows.n = 12;
    ck_assert_int_ne(kernel_fit_run(&fit, &rows, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.lines[0], "measure more repetitions"));
    err_fini(&e);
}
END_TEST

/* The written file is a SoC file like any other, and holds the fitted numbers with intervals. */
START_TEST(a_written_soc_file_parses_and_simulates_what_was_measured)
{
    struct simdev_truth t;
    struct kernel_rows rows;
    struct kernel_fit fit;
    struct err e = ERR_INIT;
    struct soc soc;
    char path[] = "/tmp/check_kernel_fit.XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(close(fd), 0);
    truth_init(&t, 11);
    measure_rows(&t, FEW, &rows);
    ck_assert_int_eq(kernel_fit_run(&fit, &rows, &e), 0);
    struct kernel_soc_options o = {.name = "measured", .ddr_peak_bytes_per_s = 120e9};
    ck_assert_int_eq(kernel_fit_write_soc(&fit, &rows, &o, path, &e), 0);
    cJSON *root = json_read_file(path, &e);
    ck_assert_ptr_nonnull(root);
    int rc = soc_parse(root, path, &soc, &e);
    err_print(&e, stderr);
    ck_assert_int_eq(rc, 0);
    cJSON_Delete(root);
    ck_assert_uint_eq(soc.machine.n_devices, 2);
    ck_assert_double_eq_tol(soc.machine.ddr_cap_frac, t.contention.cap_bytes_per_s / 120e9, 1e-3);
    for (int d = 0; d < 2; d++) {
        const struct soc_runtime *got = &soc.devices[d].runtimes[0];
        const struct soc_runtime *want = &t.soc.devices[d].runtimes[0];
        ck_assert_str_eq(soc.machine.devices[d].name, t.soc.machine.devices[d].name);
        ck_assert_uint_eq(got->weight_bits, 8);
        ck_assert_double_eq_tol(got->many.flop_per_s / want->many.flop_per_s, 1.0, 2e-3);
        ck_assert_double_eq_tol(got->many.bytes_per_s / want->many.bytes_per_s, 1.0, 2e-3);
        ck_assert_double_eq_tol(got->one.bytes_per_s / want->one.bytes_per_s, 1.0, 2e-3);
        ck_assert_double_eq_tol(got->many.launch_s / want->many.launch_s, 1.0, 2e-3);
        ck_assert_double_eq_tol(got->attention_frac / want->attention_frac, 1.0, 4e-3);
        ck_assert_double_eq_tol(got->knee / want->knee, 1.0, 4e-3);
        ck_assert_uint_eq(got->valid_rows_max, 512);
        /* rows of power are a package counter's; without any there is no meter */
        ck_assert_int_eq(soc.devices[d].meter, soc.machine.devices[d].prefill_watts > 0.0
                                                   ? SOC_METER_PACKAGE
                                                   : SOC_METER_UNSTATED);
    }
    ck_assert_uint_gt(soc.n_numbers[QUANTITY_FITTED], 15);
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

START_TEST(a_peak_below_what_the_rows_show_is_refused)
{
    struct simdev_truth t;
    struct kernel_rows rows;
    struct kernel_fit fit;
    struct err e = ERR_INIT;
    truth_init(&t, 11);
    measure_rows(&t, FEW, &rows);
    ck_assert_int_eq(kernel_fit_run(&fit, &rows, &e), 0);
    struct kernel_soc_options o = {.name = "measured", .ddr_peak_bytes_per_s = 10e9};
    ck_assert_int_ne(kernel_fit_write_soc(&fit, &rows, &o, "/nonexistent/x.json", &e), 0);
    ck_assert_ptr_nonnull(strstr(e.lines[0], "--ddr-peak"));
    err_fini(&e);
    o.ddr_peak_bytes_per_s = 0.0;
    ck_assert_int_ne(kernel_fit_write_soc(&fit, &rows, &o, "/nonexistent/x.json", &e), 0);
    ck_assert_ptr_nonnull(strstr(e.lines[0], "/nonexistent/x.json"));
    err_fini(&e);
    /* the rows show as much as the fastest of them, whichever that is */
    for (uint32_t i = 0; i < fit.n_params; i++) {
        if (fit.params[i].param == KERNEL_PARAM_BANDWIDTH) {
            fit.params[i].value = 300e9;
            break;
        }
    }
    o.ddr_peak_bytes_per_s = 293e9;
    ck_assert_int_ne(kernel_fit_write_soc(&fit, &rows, &o, "/nonexistent/x.json", &e), 0);
    ck_assert_ptr_nonnull(strstr(e.lines[0], "the rows show 300 GB/s"));
    err_fini(&e);
    /* within 2 % it is noise, and only the folder is missing */
    o.ddr_peak_bytes_per_s = 295e9;
    ck_assert_int_ne(kernel_fit_write_soc(&fit, &rows, &o, "/nonexistent/x.json", &e), 0);
    ck_assert_ptr_null(strstr(e.lines[0], "--ddr-peak"));
    err_fini(&e);
}
END_TEST

/* Appendix B on shapes between its anchors: a p-norm of p is 2^(1/p) above max() where both terms
 * are equal, and max() through measured anchors is optimistic there. The fitted form is not. */
START_TEST(between_anchors_the_fitted_form_beats_the_two_anchor_roofline)
{
    struct simdev_truth t;
    struct kernel_rows rows;
    struct kernel_fit fit;
    struct err e = ERR_INIT;
    truth_init(&t, 5);
    t.soc.devices[0].runtimes[0].knee = 1.0;
    t.soc.devices[1].runtimes[0].knee = 1.0;
    disturb(&t);
    measure_rows(&t, REPETITIONS, &rows);
    ck_assert_int_eq(kernel_fit_run(&fit, &rows, &e), 0);
    const struct kernel_form_error *anchors = &fit.errors[KERNEL_FORM_TWO_ANCHOR][KERNEL_GEMM];
    const struct kernel_form_error *pnorm = &fit.errors[KERNEL_FORM_PNORM][KERNEL_GEMM];
    const struct kernel_form_error *table = &fit.errors[KERNEL_FORM_TABLE][KERNEL_GEMM];
    ck_assert_uint_eq(pnorm->n, 2 * 6); /* rows 4, 16, 64, 256 and two other matrices, 2 devices */
    ck_assert_double_le(pnorm->median_frac, 0.01);
    ck_assert_double_ge(anchors->worst_frac, 0.2);
    ck_assert_double_lt(pnorm->median_frac, table->median_frac);
    ck_assert_double_lt(table->median_frac, anchors->median_frac);
}
END_TEST

/* Kernels that are rooflines: no launch, one bandwidth, a p-norm of 60, which is max() within 1.2 %
 * at worst. Then two anchors say all there is to say, between them too. */
START_TEST(of_rooflines_two_anchors_say_everything)
{
    struct simdev_truth t;
    struct kernel_rows rows;
    struct kernel_fit fit;
    struct err e = ERR_INIT;
    truth_init(&t, 5);
    for (int d = 0; d < 2; d++) {
        struct soc_runtime *r = &t.soc.devices[d].runtimes[0];
        r->knee = 60.0;
        r->many.launch_s = 1e-9;
        r->one = r->many;
    }
    measure_rows(&t, FEW, &rows);
    ck_assert_int_eq(kernel_fit_run(&fit, &rows, &e), 0);
    const struct kernel_form_error *anchors = &fit.errors[KERNEL_FORM_TWO_ANCHOR][KERNEL_GEMM];
    ck_assert_uint_eq(anchors->n, 2 * 6);
    ck_assert_double_le(anchors->worst_frac, 0.05);
}
END_TEST

START_TEST(the_same_seed_gives_the_same_rows)
{
    struct simdev_truth t;
    struct kernel_rows a;
    struct kernel_rows b;
    truth_init(&t, 21);
    disturb(&t);
    measure_rows(&t, FEW, &a);
    measure_rows(&t, FEW, &b);
    ck_assert_uint_eq(a.n, b.n);
    for (size_t i = 0; i < a.n; i++) {
        ck_assert_double_eq(a.v[i].value, b.v[i].value);
        ck_assert_str_eq(a.v[i].model, b.v[i].model);
    }
}
END_TEST

/* 1 / 2 and 1 / -2 are the same knee to the form, which takes the distance from 0; so are their
 * intervals. The 95 % interval of one number has Student's t(0.975, 30) = 2.0423, so 1 / (2 +-
 * 0.20423). */
START_TEST(a_knee_found_on_the_other_side_of_zero_has_the_same_interval)
{
    static struct fit_problem f;
    static struct kernel_fit fit;
    double covariance = 0.01;
    struct kernel_estimate want = {0};
    for (int sign = 1; sign >= -1; sign -= 2) {
        fit.n_params = 1;
        fit.params[0] = (struct kernel_estimate){.param = KERNEL_PARAM_KNEE};
        f = (struct fit_problem){
            .fit = &fit, .cap = -1, .covariance = &covariance, .dof = {30, 30}};
        f.x[0] = sign * 2.0;
        fit_intervals(&f);
        want = sign > 0 ? fit.params[0] : want;
        ck_assert_double_lt(fit.params[0].low, 0.5);
        ck_assert_double_gt(fit.params[0].high, 0.5);
        ck_assert_double_eq(fit.params[0].value, want.value);
        ck_assert_double_eq(fit.params[0].low, want.low);
        ck_assert_double_eq(fit.params[0].high, want.high);
    }
    ck_assert_double_eq_tol(want.low, 0.45367, 1e-5);
    ck_assert_double_eq_tol(want.high, 0.55686, 1e-5);
}
END_TEST

/* All of several at once, by Bonferroni: each of two with 97.5 %, t(0.9875, 30) = 2.3596, and a
 * rate's number is its logarithm: exp(+- 0.23596). */
START_TEST(intervals_of_two_numbers_hold_together)
{
    static struct fit_problem f;
    static struct kernel_fit fit;
    double covariance[] = {0.01, 0.0, 0.0, 0.01};
    fit.n_params = 2;
    fit.params[0] = (struct kernel_estimate){.param = KERNEL_PARAM_KNEE};
    fit.params[1] = (struct kernel_estimate){.param = KERNEL_PARAM_RATE};
    f = (struct fit_problem){
        .fit = &fit, .cap = -1, .covariance = covariance, .dof = {30, 30}, .x = {2.0, 0.0}};
    fit_intervals(&f);
    ck_assert_double_eq_tol(fit.params[0].low, 0.44723, 1e-5);
    ck_assert_double_eq_tol(fit.params[1].high / fit.params[1].value, 1.26613, 1e-4);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("intervals"),
    TEST(a_knee_found_on_the_other_side_of_zero_has_the_same_interval),
    TEST(intervals_of_two_numbers_hold_together),
    CASE("pipeline", .timeout_s = 300),
    TEST(without_noise_every_parameter_comes_back),
    TEST(simultaneous_intervals_cover_in_95_percent_of_noisy_trials_within_3_percent),
    TEST(a_wrong_form_of_times_is_flagged),
    TEST(a_wrong_form_of_contention_is_flagged_and_leaves_the_times_alone),
    TEST(flagged_rows_do_not_take_part),
    TEST(too_few_rows_are_an_error_that_says_so),
    TEST(a_written_soc_file_parses_and_simulates_what_was_measured),
    TEST(a_peak_below_what_the_rows_show_is_refused),
    TEST(between_anchors_the_fitted_form_beats_the_two_anchor_roofline),
    TEST(of_rooflines_two_anchors_say_everything),
    TEST(the_same_seed_gives_the_same_rows),
    CASE("rows"),
    TEST(files_read_one_after_the_other_are_further_repetitions),
};
SUITE_MAIN("kernel_fit", suite)

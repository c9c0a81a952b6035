/* Windows of a measurement, on devices whose times are known and which nothing disturbs: how many
 * launches a window has, how long two devices run beside each other, and what a pair is held
 * against. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hwmodels/backends/measure.h"
#include "hwmodels/backends/simdev.h"
#include "hwmodels/kernel_rows.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"
#include "tests/helpers/suite.h"

static struct simdev_truth truth;
static struct measure_options options;
static struct kernel_rows rows;

/* Two devices whose kernels do not slow each other. */
static void setup(void)
{
    const char *path = datadir_path("hwmodels/soc/core-ultra-5-125h.json");
    struct err e = ERR_INIT;
    simdev_truth_init(&truth);
    cJSON *root = json_read_file(path, &e);
    ck_assert_int_eq(soc_parse(root, path, &truth.soc, &e), 0);
    cJSON_Delete(root);
    truth.soc.machine.n_devices = 2;
    truth.contention.cap_bytes_per_s = 1e15;
    measure_options_init(&options);
    options.backend = &backend_sim;
    options.backend_options.truth = &truth;
    options.repetitions = 1;
    options.retries = 0;
    kernel_rows_init(&rows);
}

static void teardown(void)
{
    kernel_rows_fini(&rows);
}

static void measure(void)
{
    struct err e = ERR_INIT;
    char path[] = "/tmp/check_windows.XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    FILE *out = fdopen(fd, "w");
    ck_assert_int_eq(measure_run(&options, out, &e), 0);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_int_eq(kernel_rows_read(&rows, path, &e), 0);
    ck_assert_int_eq(unlink(path), 0);
}

/* The window is too short for any launch, so that the least number of samples counts: each needs a
 * launch, and one more starts the clock. Below three nothing can be said of their spread. */
START_TEST(a_window_needs_three_samples)
{
    options.window_s = 1e-9;
    options.alone_only = true;
    for (uint32_t least = 2; least <= 4; least += 2) {
        uint32_t n = 0;
        options.min_samples = least;
        measure();
        for (size_t i = 0; i < rows.n; i++) {
            const struct kernel_row *r = &rows.v[i];
            if (r->metric == KERNEL_METRIC_MS) {
                n++;
                ck_assert_uint_eq(r->samples, least);
                ck_assert_msg((strcmp(r->flag, "few_samples") == 0) == (least == 2), "%u: '%s'",
                              least, r->flag);
            }
        }
        ck_assert_uint_gt(n, 20);
        kernel_rows_fini(&rows);
        kernel_rows_init(&rows);
    }
}
END_TEST

/* Both run until the slower one has its samples, whichever of the two that is: at most one launch
 * is lost where the other's first or last one ends. */
START_TEST(of_a_pair_both_have_their_samples)
{
    uint32_t n[2] = {0, 0};
    options.window_s = 1e-9;
    options.min_samples = 20;
    measure();
    for (size_t i = 0; i + 1 < rows.n; i++) {
        const struct kernel_row *r = &rows.v[i];
        if (r->metric != KERNEL_METRIC_CO_MS) {
            continue;
        }
        ck_assert_msg(r->samples >= 19, "%s beside %s: %u samples", r->model, r->partner,
                      r->samples);
        n[strcmp(r->device, truth.soc.machine.devices[0].name) == 0]++;
    }
    ck_assert_uint_gt(n[0], 5);
    ck_assert_uint_eq(n[0], n[1]);
}
END_TEST

/* All times grow and shrink by a sine, whose steepest part changes them by d = 0.4 x 2 pi 0.1 s /
 * 20 s = 1.3 % from one window to the next. Alone a, alone b, together, alone a, alone b: the mean
 * of a's two lies half a window before, b's as much behind, so that a and b together see none of it
 * but what is of second order, some d^2 = 0.02 %, and what windows differ in length. Held against
 * the first of each alone they would see 1.5 d = 1.9 %. */
START_TEST(slow_drift_cancels_in_a_bracket)
{
    uint32_t n = 0;
    double most = 0.0;
    options.size = PLAN_FULL; /* kernels of which a window has some tens or hundreds */
    options.window_s = 0.1;
    options.min_samples = 3;
    truth.drift_frac = 0.4;
    truth.drift_period_s = 20.0;
    measure();
    double first = NAN;
    for (size_t i = 0; i < rows.n; i++) {
        if (rows.v[i].metric != KERNEL_METRIC_SLOWDOWN) {
            continue;
        }
        if (isnan(first)) {
            first = rows.v[i].value;
            continue;
        }
        most = fmax(most, fabs(log(first * rows.v[i].value) / 2.0));
        first = NAN;
        n++;
    }
    printf("%u pairs, drift left: %.3f %%\n", n, 100.0 * most);
    ck_assert_uint_gt(n, 5);
    ck_assert_double_lt(most, 0.002);
}
END_TEST

static uint32_t steps_told;

static void told(void *ctx, uint32_t steps)
{
    ck_assert_ptr_eq(ctx, &steps_told);
    ck_assert_uint_eq(steps, steps_told + options.steps_done + 1);
    steps_told++;
}

/* What standard error got of it. The caller frees. */
static char *measure_aloud(void)
{
    FILE *said = tmpfile();
    int old = dup(STDERR_FILENO);
    char *text = calloc(1, 1u << 20);
    ck_assert(said != NULL && old >= 0 && text != NULL);
    (void)fflush(stderr);
    ck_assert_int_ge(dup2(fileno(said), STDERR_FILENO), 0);
    measure();
    (void)fflush(stderr);
    ck_assert_int_ge(dup2(old, STDERR_FILENO), 0);
    rewind(said);
    (void)!fread(text, 1, (1u << 20) - 1, said);
    ck_assert_int_eq(fclose(said), 0);
    ck_assert_int_eq(close(old), 0);
    return text;
}

/* A window for each kernel alone and five for each pair, in every repetition, with pauses between;
 * the bar goes from the first step to the last, and is gone then. Only a real machine is looked at
 * before. */
START_TEST(what_is_announced_is_what_is_measured)
{
    struct backend_ops real = backend_sim;
    char line[200];
    real.host = NULL;
    options.backend = &real;
    options.proc_dir = "/nonexistent";
    options.window_s = 0.001;
    options.min_samples = 3;
    options.repetitions = 3;
    options.spread_s = 40.0;
    options.announce = options.progress = true;
    options.step = told;
    options.step_ctx = &steps_told;
    options.pairs_only = _i == 1;
    options.alone_only = _i == 2;
    steps_told = 0;
    char *text = measure_aloud();
    uint32_t n_alone = 0;
    uint32_t n_pairs = 0;
    for (size_t i = 0; i < rows.n; i++) {
        n_alone += rows.v[i].metric == KERNEL_METRIC_MS;
        n_pairs += rows.v[i].metric == KERNEL_METRIC_CO_MS;
    }
    n_pairs /= 2;
    ck_assert((n_alone > 0) == (_i != 1) && (n_pairs > 0) == (_i != 2));
    uint32_t windows = n_alone + 5 * n_pairs;
    (void)snprintf(
        line, sizeof line,
        "xpusim: %u windows of 0.001 s: %.0f s at least, and as long again for each retry "
        "of a disturbed one (--retries 0)\n"
        "xpusim: nothing says who else uses the processors here\n",
        windows, windows * 0.001 + 2 * 40.0);
    ck_assert_msg(strncmp(text, line, strlen(line)) == 0, "%.200s, not %s", text, line);
    ck_assert_uint_eq(steps_told, n_alone + n_pairs);
    const char *at = text + strlen(line);
    for (uint32_t k = 1; k <= steps_told; k++) {
        char bar[31] = "..............................";
        for (uint32_t i = 0; i < k * 30 / steps_told; i++) {
            bar[i] = '#';
        }
        (void)snprintf(line, sizeof line, "\r[%s] %u of %u", bar, k, steps_told);
        ck_assert_msg(strncmp(at, line, strlen(line)) == 0, "step %u: %.60s", k, at);
        at += strlen(line);
    }
    (void)snprintf(line, sizeof line, "\r%*s\r", 70, "");
    ck_assert_str_eq(at, line);
    free(text);
    /* A simulated machine is not this one. */
    options.backend = &backend_sim;
    options.progress = false;
    kernel_rows_fini(&rows);
    kernel_rows_init(&rows);
    steps_told = 0;
    text = measure_aloud();
    ck_assert_str_eq(text, "");
    free(text);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("windows", .setup = setup, .teardown = teardown, .timeout_s = 60),
    TEST(a_window_needs_three_samples),
    TEST(of_a_pair_both_have_their_samples),
    TEST(slow_drift_cancels_in_a_bracket),
    LOOP(what_is_announced_is_what_is_measured, 3),
};
SUITE_MAIN("measuring windows", suite)

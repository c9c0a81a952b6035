/* Windows of a measurement are tested on devices whose times are known and which nothing disturbs.
 * The tests show how many launches a window has, how long two devices run together, and with which
 * times a pair is compared. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hwmodels/backends/measure.h"
#include "hwmodels/backends/plan.h"
#include "hwmodels/backends/simdev.h"
#include "hwmodels/kernel_rows.h"
#include "hwmodels/pairs.h"
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
    rows = (struct kernel_rows){.n = 0};
}

static void teardown(void)
{
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
        rows = (struct kernel_rows){.n = 0};
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
 * 20 s = 1.3 % from one window to the next. The windows are a alone, b alone, both together, a
 * alone, b alone. The mean of a's two lies half a window before, and b's as much behind. So a and b
 * together see none of it except the second order, some d^2 = 0.02 %, and differences in window
 * length. Compared with the first of each alone they would see 1.5 d = 1.9 %. */
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

/* ---- every row ---- */

static const struct kernel_row *the_row(uint32_t repetition, enum kernel_metric metric,
                                        const char *device, const struct kernel_spec *s,
                                        const char *partner)
{
    const char *name = kernel_spec_name(s);
    const struct kernel_row *found = NULL;
    for (size_t i = 0; i < rows.n; i++) {
        const struct kernel_row *r = &rows.v[i];
        if (r->repetition == repetition && r->metric == metric && strcmp(r->device, device) == 0 &&
            strcmp(r->model, name) == 0 && strcmp(r->partner, partner) == 0) {
            ck_assert_msg(found == NULL, "%s of %s is there twice", name, device);
            found = r;
        }
    }
    return found;
}

/* Checks the fields that do not depend on how long it took. */
static void is_of(const struct kernel_row *r, const struct backend_info *d,
                  const struct kernel_spec *s, bool held_out)
{
    ck_assert_str_eq(r->soc, "a-soc");
    ck_assert_str_eq(r->runtime, "sim");
    ck_assert_str_eq(r->source, "a source");
    ck_assert_str_eq(r->flag, "");
    ck_assert_int_eq(r->kind, d->kind);
    ck_assert_int_eq(r->op, s->op);
    ck_assert(r->weight_bits == s->weight_bits && r->act_bits == s->act_bits &&
              r->held_out == held_out);
    bool attention = kernel_op_is_attention(s->op);
    ck_assert_uint_eq(r->tokens, attention                     ? s->context_tokens
                                 : kernel_op_is_product(s->op) ? s->rows
                                                               : 0);
    ck_assert_uint_eq(r->batch, s->op == KERNEL_DECODE ? s->rows : 1);
    ck_assert(fabs(r->flop / kernel_spec_flop(s) - 1.0) < 1e-6 || kernel_spec_flop(s) == 0.0);
    ck_assert(fabs(r->bytes / kernel_spec_bytes(s) - 1.0) < 1e-6);
}

#define WITHIN 5e-4 /* stamps are whole ns: of the shortest kernels, some us, so much */

/* `least`: of a launch that began before the other device did, or ended after it. */
static void takes(const struct kernel_row *r, double ms, double least)
{
    ck_assert_msg(r->samples >= 3, "%u samples", r->samples);
    ck_assert_msg(fabs(r->value / ms - 1.0) < WITHIN, "%s on %s: %g, not %g", r->model, r->device,
                  r->value, ms);
    ck_assert(r->p10 > least * (1.0 - WITHIN) && r->p10 < ms * (1.0 + WITHIN));
    ck_assert_double_eq_tol(r->p90 / ms, 1.0, WITHIN);
    ck_assert(r->foreign_frac == 0.03 && r->steal_frac == 0.0);
}

static double alone_ms(uint32_t device, const struct kernel_spec *s)
{
    return 1e3 * simdev_alone_s(&truth, device, s);
}

static double slowed(uint32_t device, const struct kernel_spec *s, const struct kernel_spec *other)
{
    struct kernel_curve c;
    simdev_curve(&truth, device, s, &c);
    double others = kernel_spec_bytes(other) / simdev_alone_s(&truth, 1 - device, other);
    return kernel_model_slowdown(&c, kernel_spec_flop(s), kernel_spec_bytes(s), others,
                                 &truth.contention, truth.lambda[s->op]);
}

/* Each shape of a device's plan has a row in every repetition with its isolated time, and once its
 * times of compilation and of the first call. Each pair has two rows of either side: its time next
 * to the other, and how much longer that is. */
START_TEST(rows_are_those_of_the_plan)
{
    static struct plan plans[2];
    static struct plan_pairs pairs;
    struct err e = ERR_INIT;
    struct backend_info info[MACHINE_MAX_DEVICES];
    truth.contention.cap_bytes_per_s = 60e9;
    truth.lambda[KERNEL_GEMV] = 0.2;
    truth.compile_s = 0.25;
    truth.foreign_frac = 0.03;
    options.soc = "a-soc";
    options.source = "a source";
    options.repetitions = 2;
    options.window_s = 0.01;
    options.size = _i == 2 ? PLAN_SMALL : PLAN_TINY;
    options.pairs_only = _i == 1;
    measure();
    struct backend *b = backend_sim.start(&options.backend_options, &e);
    ck_assert_uint_eq(backend_sim.enumerate(b, info, MACHINE_MAX_DEVICES), 2);
    backend_sim.stop(b);
    size_t n = 0;
    for (uint32_t d = 0; d < 2 && !options.pairs_only; d++) {
        plan_kernels(&info[d], options.size, &plans[d]);
        for (uint32_t i = 0; i < plans[d].n; i++) {
            const struct kernel_spec *s = &plans[d].kernels[i];
            for (uint32_t k = 0; k < 2; k++) {
                const struct kernel_row *r = the_row(k, KERNEL_METRIC_MS, info[d].name, s, "");
                ck_assert_ptr_nonnull(r);
                is_of(r, &info[d], s, s->held_out);
                takes(r, alone_ms(d, s), alone_ms(d, s));
                /* A simulated device worked all the time. */
                const struct kernel_row *busy = the_row(k, KERNEL_METRIC_BUSY, info[d].name, s, "");
                ck_assert(busy != NULL && fabs(busy->value - 1.0) < WITHIN);
                n += 2;
            }
            const struct kernel_row *compiled =
                the_row(0, KERNEL_METRIC_COMPILE_MS, info[d].name, s, "");
            const struct kernel_row *first =
                the_row(0, KERNEL_METRIC_FIRST_MS, info[d].name, s, "");
            ck_assert(compiled != NULL && first != NULL && compiled->value == 250.0);
            ck_assert_double_eq_tol(first->value / alone_ms(d, s), 1.0, WITHIN);
            ck_assert(first->samples == 1 && first->foreign_frac == -1.0 &&
                      first->steal_frac == -1.0);
            n += 2;
        }
    }
    (options.pairs_only ? plan_every_pair : plan_pairs)(&info[0], &info[1], options.size, &pairs);
    ck_assert_uint_gt(pairs.n, 2);
    for (uint32_t i = 0; i < pairs.n; i++) {
        for (uint32_t side = 0; side < 2; side++) {
            const struct kernel_spec *s = &pairs.pairs[i].side[side];
            const struct kernel_spec *other = &pairs.pairs[i].side[1 - side];
            const char *partner =
                xkeep(xformat("%s:%s", info[1 - side].name, kernel_spec_name(other)));
            for (uint32_t k = 0; k < 2; k++) {
                const struct kernel_row *together =
                    the_row(k, KERNEL_METRIC_CO_MS, info[side].name, s, partner);
                const struct kernel_row *ratio =
                    the_row(k, KERNEL_METRIC_SLOWDOWN, info[side].name, s, partner);
                ck_assert(together != NULL && ratio != NULL);
                is_of(together, &info[side], s, pairs.pairs[i].held_out);
                is_of(ratio, &info[side], s, pairs.pairs[i].held_out);
                takes(together, alone_ms(side, s) * slowed(side, s, other), alone_ms(side, s));
                takes(ratio, slowed(side, s, other), 1.0);
                n += 2;
            }
        }
    }
    ck_assert_uint_eq(rows.n, n);
}
END_TEST

/* ---- weights that stay in a cache ---- */

static struct backend_ops caching;
static struct backend_device *caching_device;

static struct backend *start_caching(const struct backend_options *o, struct err *e)
{
    struct backend *b = backend_sim.start(o, e);
    b->ops = &caching;
    return b;
}

static struct backend_device *open_caching(struct backend *b, uint32_t index, struct err *e)
{
    struct backend_device *d = backend_sim.open(b, index, e);
    caching_device = index == 0 ? d : caching_device;
    return d;
}

static struct backend_kernel *prepare_caching(struct backend_device *d, const struct kernel_spec *s,
                                              struct backend_prep *out, struct err *e)
{
    struct backend_kernel *k = backend_sim.prepare(d, s, out, e);
    out->cached = d == caching_device;
    return k;
}

/* Rows of a device whose weights stay in a cache say so, although other programs use half of the
 * processors, or nothing says what they use. Disturbed rows make pairs (pairs.c), but bytes from a
 * cache do not. So both sides of a pair have this flag. Isolated rows of the other device have
 * theirs. */
START_TEST(a_cache_is_worse_than_a_disturbance)
{
    uint32_t n[2] = {0, 0};
    struct pairs out;
    struct err e = ERR_INIT;
    caching = backend_sim;
    caching.start = start_caching;
    caching.open = open_caching;
    caching.prepare = prepare_caching;
    options.backend = &caching;
    options.size = PLAN_TINY;
    options.window_s = 0.01;
    truth.foreign_frac = _i == 0 ? 0.5 : -1.0;
    measure();
    for (size_t i = 0; i < rows.n; i++) {
        const struct kernel_row *r = &rows.v[i];
        bool together = r->metric == KERNEL_METRIC_CO_MS || r->metric == KERNEL_METRIC_SLOWDOWN;
        bool first = strcmp(r->device, truth.soc.machine.devices[0].name) == 0;
        if (together || r->metric == KERNEL_METRIC_MS) {
            ck_assert_str_eq(r->flag, together || first ? "in_cache"
                                      : _i == 0         ? "foreign_cpu"
                                                        : "unscreened");
            n[together]++;
        }
    }
    ck_assert(n[0] > 20 && n[1] > 20);
    ck_assert_int_ne(pairs_make(&out, &rows, &e), 0);
    err_fini(&e);
}
END_TEST

/* ---- an NPU whose system counts how long it worked ---- */

static char counter_path[200];
static int64_t counter_us, counter_step_us;

static FILE *counter; /* in place: some file systems wait for the disk when a file is created */

static void counter_write(void)
{
    rewind(counter);
    (void)fprintf(counter, "%20" PRId64 "\n", counter_us);
    ck_assert_int_eq(fflush(counter), 0);
}

static struct backend_ops counted;

static struct backend *start_counted(const struct backend_options *o, struct err *e)
{
    struct backend *b = backend_sim.start(o, e);
    b->ops = &counted; /* windows ask it, too */
    return b;
}

static int64_t submit_and_count(struct backend_kernel *k)
{
    int64_t ticket = backend_sim.submit(k);
    counter_us += counter_step_us;
    return ticket;
}

/* Whoever reads the counter has waited for what he launched. */
static int wait_and_show(struct backend_device *d, int64_t ticket, int64_t timeout_ns)
{
    counter_write();
    return backend_sim.wait(d, ticket, timeout_ns);
}

/* As on a real machine, whose counter of the NPU grows by 700 us with every launch of any device.
 * All n launches of a window take alone ms each, so the NPU was busy for n 700 us of n alone ms.
 * Other devices have what their backend says, and so has an NPU whose counter began again: all the
 * time. The file that is written states the memory of the machine. */
START_TEST(a_counter_of_the_npu_is_its_busy_time)
{
    char folder[] = "/tmp/check_windows.XXXXXX";
    char path[2][100];
    struct backend_info info[MACHINE_MAX_DEVICES];
    struct err e = ERR_INIT;
    counted = backend_sim;
    counted.host = NULL;
    counted.start = start_counted;
    counted.submit = submit_and_count;
    counted.wait = wait_and_show;
    options.backend = &counted;
    options.proc_dir = options.rapl_dir = "/nonexistent";
    options.window_s = 0.01;
    options.alone_only = true;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path[0], sizeof path[0], "%s/accel0", folder);
    (void)snprintf(path[1], sizeof path[1], "%.60s/device", path[0]);
    (void)snprintf(counter_path, sizeof counter_path, "%s/npu_busy_time_us", path[1]);
    ck_assert(mkdir(path[0], 0700) == 0 && mkdir(path[1], 0700) == 0);
    options.accel_dir = folder;
    char meminfo[60];
    options.proc_dir = folder;
    (void)snprintf(meminfo, sizeof meminfo, "%s/meminfo", folder);
    counter = fopen(meminfo, "w");
    ck_assert(counter != NULL && fputs("MemTotal:  31250 kB\n", counter) >= 0);
    ck_assert_int_eq(fclose(counter), 0);
    counter_us = 1000000000;
    counter_step_us = _i == 0 ? 700 : -700;
    counter = fopen(counter_path, "w");
    ck_assert_ptr_nonnull(counter);
    counter_write();
    measure();
    ck_assert_int_eq(fclose(counter), 0);
    struct backend *b = backend_sim.start(&options.backend_options, &e);
    ck_assert_uint_eq(backend_sim.enumerate(b, info, MACHINE_MAX_DEVICES), 2);
    backend_sim.stop(b);
    ck_assert(info[0].kind == DEVICE_KIND_NPU && info[1].kind != DEVICE_KIND_NPU);
    uint32_t seen = 0;
    for (size_t i = 0; i < rows.n; i++) {
        const struct kernel_row *r = &rows.v[i];
        if (r->metric == KERNEL_METRIC_MS) {
            bool npu = strcmp(r->device, info[0].name) == 0;
            const struct kernel_row *busy = &rows.v[i + 1];
            ck_assert(i + 1 < rows.n && busy->metric == KERNEL_METRIC_BUSY);
            double want = npu && _i == 0 ? 0.7 / r->value : 1.0;
            ck_assert_msg(fabs(busy->value / want - 1.0) < WITHIN, "%s: %g, worked out %g",
                          r->device, busy->value, want);
            seen += npu ? 1 : 0;
        }
    }
    ck_assert_uint_gt(seen, 10);
    ck_assert_double_eq(rows.memory_bytes, 32e6); /* as the file's head says */
    ck_assert_int_eq(unlink(meminfo), 0);
    ck_assert(unlink(counter_path) == 0 && rmdir(path[1]) == 0 && rmdir(path[0]) == 0);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

static uint32_t steps_told;

static void told(void *ctx, uint32_t steps)
{
    ck_assert_ptr_eq(ctx, &steps_told);
    ck_assert_uint_eq(steps, steps_told + options.steps_done + 1);
    steps_told++;
}

/* Measures, and returns its standard error. The caller frees. */
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
    rows = (struct kernel_rows){.n = 0};
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
    LOOP(rows_are_those_of_the_plan, 3),
    LOOP(a_cache_is_worse_than_a_disturbance, 2),
    LOOP(a_counter_of_the_npu_is_its_busy_time, 2),
    LOOP(what_is_announced_is_what_is_measured, 3),
};
SUITE_MAIN("measuring windows", suite)

/* Fits of real kernels, the measured form they fill, and the comparison of real with simulated. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/drive/against.h"
#include "experiments/drive/transfer.h"
#include "sim/api/contention.h"
#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/drive/drive_impl.h"
#include "tests/helpers/suite.h"

/* ---- contention ---- */

/* 10 GB/s of a ceiling of 20 is half memory-bound. So with a slowdown of 0.4 it takes 1.2 times as
 * long next to another engine. */
START_TEST(beside_slows_by_boundness_and_only_beside_another_engine)
{
    const struct contention_ops *form = contention_find("beside");
    struct contention_params p = {.ceiling_bytes_per_s = {20e9, 20e9}, .beside = {0.4, 0.0}};
    struct flow f[2] = {{.demand_bytes_per_s = 10e9, .weight = 1, .device = 0},
                        {.demand_bytes_per_s = 1e9, .weight = 1, .device = 1}};
    form->share(f, 2, 50e9, &p);
    ck_assert_double_eq_tol(f[0].share_bytes_per_s, 10e9 / 1.2, 1.0);
    ck_assert_double_eq_tol(f[1].share_bytes_per_s, 1e9, 1.0);
    form->share(f, 1, 50e9, &p);
    ck_assert_double_eq_tol(f[0].share_bytes_per_s, 10e9, 1.0);
    f[1].device = 0; /* two launches on one engine do not slow each other */
    form->share(f, 2, 50e9, &p);
    ck_assert_double_eq_tol(f[0].share_bytes_per_s, 10e9, 1.0);
}
END_TEST

/* ---- fits recover what made the kernels ---- */

static struct drive_report report;

static void kernel_add(struct drive_kernel k)
{
    if (report.n_kernels == report.cap_kernels) {
        report.cap_kernels = report.cap_kernels == 0 ? 64 : 2 * report.cap_kernels;
        report.kernels = xrealloc(report.kernels, report.cap_kernels * sizeof k);
    }
    report.kernels[report.n_kernels++] = k;
}

/* A sequence of the last kernel. */
static void segment_add(uint32_t rows, uint32_t keys, bool prefill)
{
    struct drive_kernel *k = &report.kernels[report.n_kernels - 1];
    report.segments = xroom(report.segments, report.n_segments + 1, &report.cap_segments,
                            sizeof *report.segments);
    k->segment0 = k->n_segments == 0 ? (uint32_t)report.n_segments : k->segment0;
    k->n_segments++;
    report.segments[report.n_segments++] = (struct drive_segment){rows, keys, prefill};
}

/* Kernels of a known machine, one after another: 50 repeats, each 10 % late or early in turn. */
static void make_kernels(void)
{
    int64_t at = 0;
    for (int i = 0; i < 50; i++) {
        double noise = i % 2 == 0 ? 0.9 : 1.1;
        uint32_t rows = i % 2 == 0 ? 1 : 64; /* both noises meet both sizes */
        for (int turn = 0; turn < 2; turn++, rows = rows == 1 ? 64 : 1) {
            struct drive_kernel k = {.rows = rows, .padded_rows = rows, .shape_rows = rows};
            static const uint8_t token[] = {OP_QKV, OP_FFN, OP_HEAD};
            for (int o = 0; o < 3; o++) {
                k.op = token[o];
                k.ns = (int64_t)(noise * (1e6 + 1e5 * rows) * (o + 1));
                k.begin_ns = at;
                at += k.ns;
                kernel_add(k);
            }
        }
        uint32_t n = 50 + 10 * (uint32_t)i;
        double pairs = n * (n + 1) / 2.0;
        kernel_add((struct drive_kernel){.op = OP_MHA,
                                         .rows = n,
                                         .padded_rows = n,
                                         .shape_rows = n,
                                         .prefill_rows = n,
                                         .sequences = 1,
                                         .pairs = (uint64_t)pairs,
                                         .keys = n,
                                         .begin_ns = at,
                                         .ns = (int64_t)(5e5 + 100.0 * pairs + 4e3 * n)});
        segment_add(n, n, true);
        kernel_add((struct drive_kernel){.op = OP_MHA,
                                         .rows = 1 + (uint32_t)i % 7,
                                         .padded_rows = 1 + (uint32_t)i % 7,
                                         .shape_rows = 1 + (uint32_t)i % 7,
                                         .sequences = 1 + (uint32_t)i % 7,
                                         .keys = n,
                                         .pairs = n,
                                         .begin_ns = at,
                                         .ns = (int64_t)(2e4 + 1500.0 * n + 2.5e4 * (1 + i % 7))});
    }
    for (uint32_t i = 0; i < 10; i++) { /* mixed, by the same rates: 64 rows after 0, 10, 20 .. */
        double pairs = 64 * 10.0 * i + 64 * 65 / 2.0;
        uint32_t keys = 10 * i + 64;
        kernel_add((struct drive_kernel){
            .op = OP_MHA,
            .rows = 66,
            .padded_rows = 66,
            .shape_rows = 66,
            .prefill_rows = 64,
            .sequences = 3,
            .pairs = (uint64_t)pairs + 500,
            .keys = keys + 500,
            .begin_ns = at,
            .ns = (int64_t)(5e5 + 100.0 * pairs + 4e3 * 64 + 1500.0 * 500 + 2.5e4 * 2)});
        segment_add(64, keys, true);
        segment_add(1, 200, false);
        segment_add(1, 300, false);
    }
    kernel_add((struct drive_kernel){.op = OP_FFN, /* lost its core: 1.1 ms is usual */
                                     .rows = 1,
                                     .padded_rows = 1,
                                     .shape_rows = 1,
                                     .begin_ns = at,
                                     .ns = 500000000});
}

static struct fit fit;

/* Moves of 1, 2 and 3 MB take 5 ms and 2 ms a MB; compiles of 100 and 200 tokens 10 and 20 ms,
 * which leaves nothing fixed; one eviction is all fixed. */
static void make_residents(void)
{
    static struct drive_resident_time t[] = {
        {DRIVE_SWAP_OUT, 1e6, 7000000},  {DRIVE_SWAP_OUT, 2e6, 9000000},
        {DRIVE_SWAP_OUT, 3e6, 11000000}, {DRIVE_COMPILE, 100, 10000000},
        {DRIVE_COMPILE, 200, 20000000},  {DRIVE_EVICT, 1e6, 3000000},
    };
    report.n_residents = sizeof t / sizeof t[0];
    report.residents = xcalloc(report.n_residents, sizeof t[0]);
    memcpy(report.residents, t, sizeof t);
}

static enum drive_clock clock_of_run;

static void fit_run_on(uint32_t n_devices)
{
    struct fit_input in;
    struct machine m = {.n_devices = n_devices};
    struct err e = ERR_INIT;
    fit_input_init(&in, clock_of_run);
    fit_input_add(&in, &report, 1.0, false);
    ck_assert_int_eq(fit_make(&in, &m, &fit, &e), 0);
    fit_input_fini(&in);
    drive_report_fini(&report);
}

static void fit_run(void)
{
    fit_run_on(1);
}

START_TEST(a_fit_finds_the_times_that_made_the_kernels)
{
    make_kernels();
    make_residents();
    fit_run();
    const struct fit_device *d = &fit.devices[0];
    for (int o = 0; o < 3; o++) {
        static const int token[] = {OP_QKV, OP_FFN, OP_HEAD};
        const struct fit_table *t = &d->token[token[o]];
        ck_assert_uint_eq(t->n, 2);
        ck_assert_double_eq_tol(t->s[0].value, (o + 1) * 1.1e-3, 1e-8);
        ck_assert_double_eq_tol(t->s[1].value, (o + 1) * 7.4e-3, 1e-8);
        ck_assert_double_lt(t->s[0].low, (o + 1) * 1.1e-3);
        ck_assert_double_gt(t->s[0].high, (o + 1) * 1.1e-3);
    }
    ck_assert_double_eq_tol(d->prefill[0].value, 5e-4, 1e-8);
    ck_assert_uint_eq(d->split.few_below, 0); /* one line: nothing asks for two paths */
    ck_assert_double_eq_tol(d->prefill[FIT_PROMPT_MANY].value, 1e-7, 1e-12);
    ck_assert_double_eq_tol(d->prefill[FIT_PROMPT_MANY + 1].value, 4e-6, 1e-9);
    ck_assert_uint_eq(d->rows_max, 540);
    ck_assert_uint_eq(d->keys_max, 540);
    ck_assert_double_eq_tol(d->decode[0].value, 2e-5, 1e-8);
    ck_assert_double_eq_tol(d->decode[1].value, 1.5e-6, 1e-11);
    ck_assert_double_eq_tol(d->decode[2].value, 2.5e-5, 1e-8);
    ck_assert_uint_eq(fit.parts[1].lost, 1);
    ck_assert_str_eq(fit.parts[5].name, "mha mixed");
    ck_assert_uint_eq(fit.parts[5].n, 10);
    ck_assert_double_lt(fit.parts[5].p90_frac, 1e-5);
    const struct fit_line *l = fit.residents;
    ck_assert_double_eq_tol(l[DRIVE_SWAP_OUT].fixed_s, 5e-3, 1e-9);
    ck_assert_double_eq_tol(l[DRIVE_SWAP_OUT].slope_s, 2e-9, 1e-15);
    ck_assert_double_eq_tol(l[DRIVE_COMPILE].fixed_s, 0.0, 1e-9);
    ck_assert_double_eq_tol(l[DRIVE_COMPILE].slope_s, 1e-4, 1e-12);
    ck_assert_double_eq_tol(l[DRIVE_EVICT].fixed_s, 3e-3, 1e-9);
    ck_assert_double_eq_tol(fit.parts[0].median_frac, 0.1, 0.02); /* 1/0.9, 1/1.1 */
}
END_TEST

/* Device 0 runs one-row kernels of 1 ms, 40 alone and 40 at the same time as one of device 1, which
 * makes them take 1.3 ms. */
static void make_pairs(void)
{
    int64_t at = 1000 * NS_PER_S;
    for (int i = 0; i < 80; i++) {
        bool both = i % 2 == 1;
        struct drive_kernel k = {.op = OP_QKV,
                                 .rows = 1,
                                 .padded_rows = 1,
                                 .shape_rows = 1,
                                 .begin_ns = at,
                                 .ns = both ? 1430000 : 1100000};
        kernel_add(k);
        if (both) {
            k.device = 1;
            k.rows = k.padded_rows = k.shape_rows = 64;
            k.begin_ns = at - 100000;
            k.ns = 2000000;
            kernel_add(k);
        }
        at += 5000000;
    }
}

START_TEST(a_fit_finds_how_much_longer_kernels_take_beside_another_engine)
{
    make_kernels();
    make_pairs();
    fit_run();
    /* alone: 50 of mean 1.1 ms from make_kernels, and 40 */
    ck_assert_double_eq_tol(fit.devices[0].beside.value, 0.3, 1e-3);
    ck_assert_uint_eq(fit.devices[0].n_beside, 40);
    ck_assert_double_eq_tol(fit.devices[0].token[OP_QKV].s[0].value, 1.1e-3, 1e-6);
}
END_TEST

/* On the processor-time clock kernels run one after another. An overlap is that of a virtual clock,
 * and no other engine made the 40 slower. */
START_TEST(kernels_that_ran_one_after_another_have_no_contention)
{
    clock_of_run = DRIVE_CLOCK_CPU;
    make_kernels();
    make_pairs();
    fit_run();
    clock_of_run = DRIVE_CLOCK_WALL;
    ck_assert_uint_eq(fit.devices[0].n_beside, 0);
    ck_assert_double_eq(fit.devices[0].beside.value, 0.0);
}
END_TEST

/* Device 1 had prompts of 100 and of 300 rows only, five each. It took 10 % more for the short
 * ones than device 0 would have: 1.1 (0.5 + 0.505 + 0.4) = 1.5455 ms. It took 10 % less for the
 * long ones: 0.9 (0.5 + 4.515 + 1.2) = 5.5935. A line through the two would give 16 rows 0.84 ms
 * or more (with pairs: fixed 1.036), and those of device 0 give 0.578. The sum stays 5 x 7.139 =
 * 35.695 ms. */
START_TEST(kernels_of_two_kinds_say_how_fast_a_device_is_and_no_more)
{
    make_kernels();
    for (int i = 0; i < 10; i++) {
        uint32_t n = i % 2 == 0 ? 100 : 300;
        kernel_add((struct drive_kernel){.device = 1,
                                         .op = OP_MHA,
                                         .rows = n,
                                         .padded_rows = n,
                                         .shape_rows = n,
                                         .prefill_rows = n,
                                         .sequences = 1,
                                         .pairs = n * (n + 1) / 2,
                                         .keys = n,
                                         .begin_ns = (1000 + i) * NS_PER_S,
                                         .ns = i % 2 == 0 ? 1545500 : 5593500});
        segment_add(n, n, true);
    }
    fit_run_on(2);
    const struct fit_number *c = fit.devices[1].prefill;
    const struct fit_number *m = &c[FIT_PROMPT_MANY];
    double sum = 5 * (c[0].value + m[0].value * 5050 + m[1].value * 100) +
                 5 * (c[0].value + m[0].value * 45150 + m[1].value * 300);
    ck_assert_double_eq_tol(sum, 35.695e-3, 1e-9);
    double of_16 = c[0].value + m[0].value * 136 + m[1].value * 16;
    ck_assert_msg(of_16 > 0.52e-3 && of_16 < 0.64e-3, "16 rows: %g s", of_16);
}
END_TEST

static double at(const cJSON *o, const char *path)
{
    char part[64];
    while (*path != '\0') {
        size_t n = strcspn(path, "/");
        (void)snprintf(part, sizeof part, "%.*s", (int)n, path);
        o = part[0] >= '0' && part[0] <= '9' ? cJSON_GetArrayItem(o, part[0] - '0')
                                             : cJSON_GetObjectItemCaseSensitive(o, part);
        path += n + (path[n] == '/');
    }
    ck_assert_msg(cJSON_IsNumber(o), "%s is no number", part);
    return o->valuedouble;
}

/* Units: ns of a report and s of a fit become the file's us, ns and ms. Four calls of 10, 10, 14
 * and 14 us: mean 12, s.d. 2, of the mean 1: 12 -+ 1.96. Loads of 5 ms and 2 ns a byte: 0.5 GB/s;
 * moves go one way only; compiles take 0.1 ms a token. */
START_TEST(a_written_machine_has_the_numbers_of_its_fit)
{
    cJSON *soc = cJSON_Parse(
        "{\"name\":\"x\",\"ddr\":{\"peak\":{\"value\":50}},\"host\":{},\"loader\":{},"
        "\"compiler\":{},\"devices\":[{\"runtimes\":[{\"weight_bits\":4},{\"weight_bits\":8}]}]}");
    static struct fit f;
    f = (struct fit){.n_devices = 1,
                     .tail = {.n = 2, .sum_ns = 30e3, .sum_sq = 450e6, .max_ns = 15e3},
                     .tail_tokens = 6};
    struct fit_device *d = &f.devices[0];
    d->token[OP_QKV] = (struct fit_table){2, {1, 64}, {{1e-3, 9e-4, 2e-3}, {4e-3, 3e-3, 5e-3}}};
    const double prefill[] = {5e-4, 0, 0, 1e-7, 4e-6};
    const double decode[] = {2e-5, 1.5e-6, 2.5e-5};
    for (int i = 0; i < 3; i++) {
        d->decode[i].value = decode[i];
    }
    for (int i = 0; i < FIT_PROMPT_TERMS; i++) {
        d->prefill[i].value = prefill[i];
    }
    d->layer[0].value = 3e-3;
    d->layer[1].value = 2e-6;
    static struct transfer t = {.n_devices = 1, .devices = {{.kinds = 20}}};
    t.devices[0].number[TRANSFER_BANDWIDTH].value = 20;
    for (int i = 0; i < 4; i++) { /* 10, 10, 14, 14 us: deviation 2 */
        drive_times_add(&f.schedule, i < 2 ? 10000 : 14000);
        drive_times_add(&f.submit, i < 2 ? 10000 : 14000);
    }
    drive_times_add(&f.completion, 3000);
    f.residents[DRIVE_LOAD] = (struct fit_line){.n = 3, .fixed_s = 5e-3, .slope_s = 2e-9};
    f.residents[DRIVE_COMPILE] = (struct fit_line){.n = 2, .fixed_s = 0.5, .slope_s = 1e-4};
    f.residents[DRIVE_EVICT] = (struct fit_line){.n = 2, .y = 6e-3, .slope_s = 1e-9};
    f.residents[DRIVE_EVICT_ATTENTION] = (struct fit_line){.n = 3, .y = 4.5e-3};
    struct llm llm = {.weight_bits = 8};
    cJSON *got = fit_to_soc(&f, &t, soc, &llm, "mine", "measured");
    static const struct {
        const char *path;
        double want;
    } numbers[] = {
        {"host/schedule/value", 12},
        {"host/schedule/low", 12 - 1.96},
        {"host/schedule/high", 12 + 1.96},
        {"host/sample/value", 5}, /* 30 us of 6 tokens */
        {"devices/0/submit/value", 12},
        {"devices/0/completion/value", 3},
        {"devices/0/completion/high", 3}, /* one value has no spread */
        {"loader/fixed/value", 5e-3},
        {"loader/bandwidth/value", 0.5},
        {"loader/evict_fixed/value", 3e-3}, /* means: the model has no size of it */
        {"compiler/evict_fixed/value", 1.5e-3},
        {"compiler/fixed/value", 0.5},
        {"compiler/per_token/value", 0.1},
        {"devices/0/runtimes/1/bandwidth/value", 20},
        {"devices/0/runtimes/1/ops/qkv/0/us", 1000},
        {"devices/0/runtimes/1/ops/qkv/0/low", 900},
        {"devices/0/runtimes/1/ops/qkv/1/rows", 64},
        {"devices/0/runtimes/1/ops/qkv/1/high", 5000},
        {"devices/0/runtimes/1/ops/prefill/fixed_us", 500},
        {"devices/0/runtimes/1/ops/prefill/pair_ns", 100},
        {"devices/0/runtimes/1/ops/prefill/row_us", 4},
        {"devices/0/runtimes/1/ops/decode/fixed_us", 20},
        {"devices/0/runtimes/1/ops/decode/key_ns", 1500},
        {"devices/0/runtimes/1/ops/decode/row_us", 25},
        {"devices/0/runtimes/1/ops/layer/fixed_us", 3000},
        {"devices/0/runtimes/1/ops/layer/key_ns", 2000},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        double x = at(got, numbers[i].path);
        ck_assert_msg(fabs(x - numbers[i].want) <= 1e-9 * numbers[i].want, "%s: %.12g, not %.12g",
                      numbers[i].path, x, numbers[i].want);
    }
    ck_assert_str_eq(cJSON_GetObjectItem(got, "name")->valuestring, "mine");
    ck_assert_str_eq(cJSON_GetObjectItem(got, "hwmodel")->valuestring, "per-op");
    ck_assert_ptr_null(cJSON_GetObjectItem(got, "contention")); /* nothing of it was measured */
    const cJSON *other = cJSON_GetArrayItem(
        cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(got, "devices"), 0), "runtimes"),
        0);
    ck_assert_ptr_null(cJSON_GetObjectItem(other, "ops")); /* another width keeps its own */
    ck_assert_ptr_null(cJSON_GetObjectItem(cJSON_GetObjectItem(got, "loader"), "swap_fixed"));
    cJSON_Delete(got);
    cJSON_Delete(soc);
}
END_TEST

/* One move out, 1 MB in 7 ms, and one in, 3 MB in 11 ms: the line through both has 2 ns a byte,
 * 0.5 GB/s, and 5 ms. Sums of one point each: n, x, y, x x, x y. */
START_TEST(moves_out_and_in_make_one_line)
{
    cJSON *soc = cJSON_Parse("{\"name\":\"x\",\"ddr\":{\"peak\":{\"value\":50}},\"host\":{},"
                             "\"loader\":{},\"compiler\":{},\"devices\":[]}");
    static struct fit f;
    f = (struct fit){0};
    f.residents[DRIVE_SWAP_OUT] =
        (struct fit_line){.n = 1, .x = 1e6, .y = 7e-3, .xx = 1e12, .xy = 7e3};
    f.residents[DRIVE_SWAP_IN] =
        (struct fit_line){.n = 1, .x = 3e6, .y = 11e-3, .xx = 9e12, .xy = 33e3};
    struct llm llm = {.weight_bits = 8};
    cJSON *got = fit_to_soc(&f, NULL, soc, &llm, "mine", "measured");
    ck_assert_double_eq_tol(at(got, "loader/swap_fixed/value"), 5e-3, 1e-9);
    ck_assert_double_eq_tol(at(got, "loader/swap_bandwidth/value"), 0.5, 1e-6);
    cJSON_Delete(got);
    cJSON_Delete(soc);
}
END_TEST

/* ---- real against simulated ---- */

static struct against a;

/* Three policies; each has one reactive request, whose TTFT is given. */
static void times_set(struct request_times *t, double ttft_s)
{
    request_times_init(t, 1);
    t->v[0] = (struct request_time){true, REQUEST_CLASS_REACTIVE, ttft_s, (double)NAN, ttft_s};
}

static void against_set(const double real[3][2], const double simulated[3])
{
    memset(&a, 0, sizeof a);
    a.n_policies = 3;
    a.n_models = 1;
    a.repeats = 2;
    for (uint32_t i = 0; i < 3; i++) {
        a.policies[i].n_real = 2;
        for (int k = 0; k < 2; k++) {
            times_set(&a.policies[i].real[k].times, real[i][k]);
        }
        times_set(&a.policies[i].simulated[0], simulated[i]);
    }
}

/* Real 1 < 2 < 4, simulated 1 < 3 < 2: one of three pairs is the other way round, tau = 1/3. */
START_TEST(tau_counts_pairs_in_order)
{
    against_set((const double[3][2]){{1.0, 1.1}, {2.0, 2.1}, {4.0, 4.1}},
                (const double[3]){1.0, 3.0, 2.0});
    struct against_tau t = against_tau(&a, 0, AGAINST_TTFT, REQUEST_CLASS_REACTIVE);
    ck_assert_double_eq_tol(t.tau, 1.0 / 3.0, 1e-12);
    ck_assert_uint_eq(t.tied, 0);
    t = against_tau_real(&a, AGAINST_TTFT, REQUEST_CLASS_REACTIVE);
    ck_assert_double_eq_tol(t.tau, 1.0, 1e-12);
}
END_TEST

/* Real 1.0 and 1.2 of mean 1.1, simulated 1.21: 10 % off the mean, 21 % and 0.8 % off each. */
START_TEST(errors_against_the_mean_of_repeats_leave_out_what_repeats_differ_in)
{
    against_set((const double[3][2]){{1.0, 1.2}, {2.0, 2.1}, {4.0, 4.1}},
                (const double[3]){1.21, 3.0, 2.0});
    const struct against_policy *p = &a.policies[0];
    ck_assert_double_eq_tol(against_mape_of_means(&p->simulated[0], p, AGAINST_E2E), 0.1, 1e-12);
    ck_assert_double_eq_tol(against_mape(&p->simulated[0], &p->real[0].times, AGAINST_E2E), 0.21,
                            1e-12);
}
END_TEST

/* The first of two requests finished in no repeat: the error is that of the second. */
START_TEST(what_no_repeat_finished_is_no_error)
{
    struct request_time v[3][2] = {
        {{true, REQUEST_CLASS_REACTIVE, 1.0, (double)NAN, 1.0},
         {true, REQUEST_CLASS_REACTIVE, 1.5, (double)NAN, 1.5}},
        {{.finished = false}, {true, REQUEST_CLASS_REACTIVE, 1.0, (double)NAN, 1.0}},
        {{.finished = false}, {true, REQUEST_CLASS_REACTIVE, 1.4, (double)NAN, 1.4}}};
    static struct against_policy p;
    p.n_real = 2;
    p.simulated[0] = (struct request_times){.v = v[0], .n = 2};
    p.real[0].times = (struct request_times){.v = v[1], .n = 2};
    p.real[1].times = (struct request_times){.v = v[2], .n = 2};
    ck_assert_double_eq_tol(against_mape_of_means(&p.simulated[0], &p, AGAINST_E2E), 0.25, 1e-12);
}
END_TEST

/* Repeats are 1 and 3 of the first policy, 2 both times of the second and 4 of the third. The order
 * of the simulated ones is second, first, third. As they are, the first two are tied and tau of the
 * two other pairs is 1. When repeats are drawn again, the first is 1 both times in a quarter of the
 * draws. That is below the second, where simulation has it above, and tau is 1/3. It is 3 both
 * times in another quarter, and tau is 1. */
START_TEST(the_interval_of_tau_is_that_of_repeats_drawn_anew)
{
    against_set((const double[3][2]){{1.0, 3.0}, {2.0, 2.0}, {4.0, 4.1}},
                (const double[3]){2.0, 1.0, 3.0});
    struct against_tau t = against_tau(&a, 0, AGAINST_TTFT, REQUEST_CLASS_REACTIVE);
    ck_assert_uint_eq(t.tied, 1);
    ck_assert_double_eq_tol(t.tau, 1.0, 1e-12);
    ck_assert_double_eq_tol(t.low, 1.0 / 3.0, 1e-12);
    ck_assert_double_eq_tol(t.high, 1.0, 1e-12);
}
END_TEST

/* The upper two change places from one repeat to the next: they are tied, and tau is of the rest.
 */
START_TEST(pairs_within_the_noise_of_repeats_are_tied)
{
    against_set((const double[3][2]){{1.0, 1.1}, {2.0, 4.0}, {3.0, 2.5}},
                (const double[3]){1.0, 3.0, 2.0});
    struct against_tau t = against_tau(&a, 0, AGAINST_TTFT, REQUEST_CLASS_REACTIVE);
    ck_assert_double_eq_tol(t.tau, 1.0, 1e-12);
    ck_assert_uint_eq(t.tied, 1);
    ck_assert_uint_eq(t.pairs, 3);
}
END_TEST

/* Repeats of 1, 5 and 4 of the first policy reach from 1 to 5 and meet the second's 2. */
START_TEST(the_range_of_repeats_is_from_the_least_to_the_most)
{
    against_set((const double[3][2]){{1.0, 5.0}, {2.0, 2.0}, {9.0, 9.0}},
                (const double[3]){1.0, 2.0, 3.0});
    a.repeats = 3;
    for (uint32_t i = 0; i < 3; i++) {
        a.policies[i].n_real = 3;
        times_set(&a.policies[i].real[2].times, i == 0 ? 4.0 : i == 1 ? 2.0 : 9.0);
    }
    struct against_tau t = against_tau(&a, 0, AGAINST_TTFT, REQUEST_CLASS_REACTIVE);
    ck_assert_uint_eq(t.tied, 1);
    ck_assert_uint_eq(t.pairs, 3);
}
END_TEST

/* TTFT is off by 0.1 of 1.0 and by 0.3 of 3.0, 10 % each. E2E is off by 2 of 4 and by none, 25 %
 * in the mean. Only request 1 has a TPOT in both, and request 2 is in one run only. */
START_TEST(mape_is_the_mean_relative_error_of_requests_in_both)
{
    struct request_times x;
    struct request_times y;
    request_times_init(&x, 3);
    request_times_init(&y, 3);
    x.v[0] = (struct request_time){true, REQUEST_CLASS_REACTIVE, 1.1, (double)NAN, 2.0};
    y.v[0] = (struct request_time){true, REQUEST_CLASS_REACTIVE, 1.0, (double)NAN, 4.0};
    x.v[1] = (struct request_time){true, REQUEST_CLASS_PROACTIVE, 2.7, 0.1, 3.0};
    y.v[1] = (struct request_time){true, REQUEST_CLASS_PROACTIVE, 3.0, 0.1, 3.0};
    x.v[2] = (struct request_time){true, REQUEST_CLASS_PROACTIVE, 9.0, 9.0, 9.0};
    ck_assert_double_eq_tol(against_mape(&x, &y, AGAINST_TTFT), 0.1, 1e-12);
    ck_assert_double_eq_tol(against_mape(&x, &y, AGAINST_E2E), 0.25, 1e-12);
    ck_assert_double_eq_tol(against_mape(&x, &y, AGAINST_TPOT), 0.0, 1e-12);
    request_times_fini(&x);
    request_times_fini(&y);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(beside_slows_by_boundness_and_only_beside_another_engine),
    TEST(a_fit_finds_the_times_that_made_the_kernels),
    TEST(kernels_of_two_kinds_say_how_fast_a_device_is_and_no_more),
    TEST(a_fit_finds_how_much_longer_kernels_take_beside_another_engine),
    TEST(kernels_that_ran_one_after_another_have_no_contention),
    TEST(a_written_machine_has_the_numbers_of_its_fit),
    TEST(moves_out_and_in_make_one_line),
    TEST(tau_counts_pairs_in_order),
    TEST(errors_against_the_mean_of_repeats_leave_out_what_repeats_differ_in),
    TEST(what_no_repeat_finished_is_no_error),
    TEST(the_interval_of_tau_is_that_of_repeats_drawn_anew),
    TEST(pairs_within_the_noise_of_repeats_are_tied),
    TEST(the_range_of_repeats_is_from_the_least_to_the_most),
    TEST(mape_is_the_mean_relative_error_of_requests_in_both),
};
SUITE_MAIN("drive fit", suite)

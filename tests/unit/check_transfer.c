/* The transferable form of a calibration: kernels that a known machine made give its numbers back,
 * and predict a model that never ran. */
#include "experiments/drive/transfer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/drive/fit_impl.h"
#include "hwmodels/roofline.h"
#include "sim/base/arena.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"
#include "tests/helpers/suite.h"

static struct soc soc;
static struct llm small, large;
static struct drive_report report;

static void load(void)
{
    struct err e = ERR_INIT;
    cJSON *s = json_read_file(datadir_path("hwmodels/soc/two-cores.json"), &e);
    cJSON *a = json_read_file(datadir_path("hwmodels/llm/random-1024.json"), &e);
    cJSON *b = json_read_file(datadir_path("hwmodels/llm/tiny-llama-1.1b.json"), &e);
    ck_assert_int_eq(soc_parse(s, "soc", &soc, &e), 0);
    ck_assert_int_eq(llm_parse(a, "small", &small, &e), 0);
    ck_assert_int_eq(llm_parse(b, "large", &large, &e), 0);
    cJSON_Delete(s);
    cJSON_Delete(a);
    cJSON_Delete(b);
}

/* The truth: 0.09 TFLOP/s, 14 GB/s, 8 us, 3 rows, attention at 0.6 of the rate, 0.15 in decode; a
 * knee of 3; 20 us of one row. */
static const double truth[TRANSFER_NUMBERS] = {0.09, 14, 8, 3, 0.6, 0.15, 3, 20};

static void truth_fill(const struct roofline *r, struct soc_runtime *p)
{
    *p = *r->runtime[0];
    p->many = (struct soc_curve){.flop_per_s = 1e12 * truth[TRANSFER_RATE],
                                 .bytes_per_s = 1e9 * truth[TRANSFER_BANDWIDTH],
                                 .launch_s = 1e-6 * truth[TRANSFER_LAUNCH]};
    p->one = p->many;
    p->one.launch_s = 1e-6 * truth[TRANSFER_ONE_LAUNCH];
    p->fill_rows = truth[TRANSFER_FILL];
    p->attention_frac = truth[TRANSFER_ATTENTION];
    p->decode_attention_frac = truth[TRANSFER_DECODE_ATTENTION];
    p->knee = truth[TRANSFER_KNEE];
}

/* The numbers that were found. */
static void found_fill(const struct transfer_device *d, struct soc_runtime *q)
{
    q->many.flop_per_s = 1e12 * d->number[TRANSFER_RATE].value;
    q->many.bytes_per_s = 1e9 * d->number[TRANSFER_BANDWIDTH].value;
    q->many.launch_s = 1e-6 * d->number[TRANSFER_LAUNCH].value;
    q->one = q->many;
    q->one.launch_s = 1e-6 * d->number[TRANSFER_ONE_LAUNCH].value;
    q->fill_rows = d->number[TRANSFER_FILL].value;
    q->attention_frac = d->number[TRANSFER_ATTENTION].value;
    q->decode_attention_frac = d->number[TRANSFER_DECODE_ATTENTION].value;
    q->knee = d->number[TRANSFER_KNEE].value;
}

static double price_s(const struct roofline *r, enum op_kind op, const struct work_shape *w)
{
    struct kernel_query q = {.op = op, .rows = w->rows, .padded_rows = w->rows, .shape = w};
    struct kernel_cost cost;
    hwmodel_kernel(&r->model, &q, &cost);
    return (double)cost.t_ns / 1e9;
}

static struct work_shape prompt_of(uint32_t rows, uint32_t before)
{
    uint64_t pairs = (uint64_t)rows * before + (uint64_t)rows * (rows + 1) / 2;
    return (struct work_shape){.rows = rows,
                               .sequences = 1,
                               .prefill_rows = rows,
                               .attn_pairs = pairs,
                               .kv_read_tokens = before + rows};
}

static struct work_shape decodes_of(uint32_t n, uint32_t keys)
{
    return (struct work_shape){
        .rows = n, .sequences = n, .attn_pairs = n * keys, .kv_read_tokens = n * keys};
}

static void add(const struct roofline *r, enum op_kind op, const struct work_shape *w)
{
    if (report.n_kernels == report.cap_kernels) {
        report.cap_kernels = report.cap_kernels == 0 ? 64 : 2 * report.cap_kernels;
        report.kernels = xrealloc(report.kernels, report.cap_kernels * sizeof *report.kernels);
    }
    report.kernels[report.n_kernels++] =
        (struct drive_kernel){.op = (uint8_t)op,
                              .rows = w->rows,
                              .padded_rows = w->rows,
                              .shape_rows = w->rows,
                              .prefill_rows = w->prefill_rows,
                              .sequences = w->sequences,
                              .pairs = w->attn_pairs,
                              .keys = w->kv_read_tokens,
                              .ns = (int64_t)(1e9 * price_s(r, op, w))};
}

static void make_kernels(const struct roofline *r)
{
    for (uint32_t i = 0; i < 40; i++) {
        struct work_shape p = prompt_of(16 + 13 * i, 20 * (i % 5));
        struct work_shape d = decodes_of(1 + i % 12, 40 + 30 * i);
        for (int op = OP_QKV; op <= OP_HEAD; op++) {
            add(r, (enum op_kind)op, &p);
            add(r, (enum op_kind)op, &d);
        }
        struct work_shape one = decodes_of(1, 40 + 30 * i);
        add(r, OP_LAYER, &one);
    }
}

START_TEST(a_known_machine_comes_back_and_predicts_another_model)
{
    load();
    struct roofline r;
    struct soc_runtime p;
    roofline_init(&r, hwmodel_find("p-norm"), &soc, &small);
    truth_fill(&r, &p);
    roofline_set_runtime(&r, 0, &p);
    make_kernels(&r);
    struct fit_input in;
    fit_input_init(&in, DRIVE_CLOCK_CPU);
    fit_input_add(&in, &report, 1.0, false);
    static struct transfer t;
    static const struct fit nothing_changes_over;
    transfer_fit(&in, &nothing_changes_over, &soc, &small, &t);
    ck_assert_uint_eq(t.devices[1].kinds, 0); /* nothing ran there */
    const struct transfer_device *d = &t.devices[0];
    ck_assert_double_lt(d->p90_frac, 0.02);
    ck_assert_uint_eq(d->kernels, in.n); /* none is odd, so all count */
    for (int i = 0; i < TRANSFER_NUMBERS; i++) {
        double x = d->number[i].value;
        /* fill and launch are a few parts in a hundred of any kernel here */
        double most = i == TRANSFER_FILL || i == TRANSFER_LAUNCH ? 0.25 : 0.03;
        ck_assert_msg(fabs(x / truth[i] - 1.0) < most, "number %d: %g, made with %g", i, x,
                      truth[i]);
        ck_assert_double_le(d->number[i].low, x);
        ck_assert_double_ge(d->number[i].high, x);
        /* The kernels have no noise, so that nine tenths of them say what all do. */
        ck_assert_msg(d->number[i].high < 2.0 * x && d->number[i].low > 0.5 * x,
                      "number %d: %g, from %g to %g", i, x, d->number[i].low, d->number[i].high);
    }
    /* For a model of another shape the truth's prices are compared with those of the found
     * numbers. */
    struct roofline other;
    struct roofline found;
    struct soc_runtime q = p;
    roofline_init(&other, hwmodel_find("p-norm"), &soc, &large);
    roofline_init(&found, hwmodel_find("p-norm"), &soc, &large);
    found_fill(d, &q);
    roofline_set_runtime(&other, 0, &p);
    roofline_set_runtime(&found, 0, &q);
    struct work_shape w[] = {prompt_of(300, 0), prompt_of(64, 500), decodes_of(1, 400),
                             decodes_of(8, 700)};
    for (size_t i = 0; i < sizeof w / sizeof w[0]; i++) {
        for (int op = OP_QKV; op <= OP_HEAD; op++) {
            double want = price_s(&other, (enum op_kind)op, &w[i]);
            double got = price_s(&found, (enum op_kind)op, &w[i]);
            ck_assert_msg(fabs(got / want - 1.0) < 0.04, "op %d of shape %zu: %g, not %g", op, i,
                          got, want);
        }
    }
    fit_input_fini(&in);
    drive_report_fini(&report);
}
END_TEST

/* Odd kernels take up to twice as long as the model says. Errors count by the time of their
 * kernels: half of the time is in kernels whose error is at most the median, and nine tenths in
 * those of at most the P90. Less time than that is in kernels of smaller errors. */
START_TEST(errors_are_quantiles_by_time)
{
    load();
    struct roofline r;
    struct soc_runtime p;
    roofline_init(&r, hwmodel_find("p-norm"), &soc, &small);
    truth_fill(&r, &p);
    roofline_set_runtime(&r, 0, &p);
    make_kernels(&r);
    for (size_t i = 0; i < report.n_kernels; i++) {
        report.kernels[i].ns += report.kernels[i].ns * (int64_t)(i * i % 11) / 10;
    }
    struct fit_input in;
    fit_input_init(&in, DRIVE_CLOCK_CPU);
    fit_input_add(&in, &report, 1.0, false);
    static struct transfer t;
    static const struct fit nothing_changes_over;
    transfer_fit(&in, &nothing_changes_over, &soc, &small, &t);
    const struct transfer_device *d = &t.devices[0];
    ck_assert_uint_eq(d->kinds, in.n); /* each kernel is a kind of its own */
    found_fill(d, &p);
    roofline_set_runtime(&r, 0, &p);
    double all = 0.0, median = 0.0, p90 = 0.0, below_median = 0.0, below_p90 = 0.0;
    for (size_t i = 0; i < in.n; i++) {
        const struct drive_kernel *k = &in.kernels[i];
        struct work_shape w = fit_shape(k);
        double s = (double)k->ns / 1e9;
        double error = fabs(price_s(&r, (enum op_kind)k->op, &w) / s - 1.0);
        all += s;
        median += error <= d->median_frac * (1.0 + 1e-9) ? s : 0.0;
        p90 += error <= d->p90_frac * (1.0 + 1e-9) ? s : 0.0;
        below_median += error < d->median_frac * (1.0 - 1e-9) ? s : 0.0;
        below_p90 += error < d->p90_frac * (1.0 - 1e-9) ? s : 0.0;
    }
    ck_assert(below_median < 0.5 * all && median >= 0.5 * all && d->median_frac > 0.02);
    ck_assert(below_p90 < 0.9 * all && p90 >= 0.9 * all && d->p90_frac > d->median_frac);
    fit_input_fini(&in);
    drive_report_fini(&report);
}
END_TEST

/* 30 rows behind 490 are 30 x 490 + 30 x 31 / 2 = 15,165 pairs of 4 x 1024 flop. At 0.09 x 0.15
 * TFLOP/s they take 4.601 ms, and the launch 8 us. 64 rows behind 456 are 64 x 456 + 64 x 65 / 2
 * = 31,264 pairs, at 0.09 x 0.6 TFLOP/s 2.371 ms. Their reads take 0.05 ms, which a knee of 3
 * hides. */
START_TEST(a_prompt_of_few_rows_runs_at_the_rate_of_decodes)
{
    load();
    struct roofline r;
    struct soc_runtime p;
    roofline_init(&r, hwmodel_find("p-norm"), &soc, &small);
    truth_fill(&r, &p);
    p.few_rows = 64;
    roofline_set_runtime(&r, 0, &p);
    struct work_shape few = prompt_of(30, 490);
    struct work_shape many = prompt_of(64, 456);
    ck_assert_double_eq_tol(price_s(&r, OP_MHA, &few), 4.609e-3, 2e-6);
    ck_assert_double_eq_tol(price_s(&r, OP_MHA, &many), 2.379e-3, 2e-6);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(a_prompt_of_few_rows_runs_at_the_rate_of_decodes),
    TEST(a_known_machine_comes_back_and_predicts_another_model),
    TEST(errors_are_quantiles_by_time),
};
SUITE_MAIN("transfer", suite)

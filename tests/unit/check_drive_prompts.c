/* The measured form of kernel times, attention's two paths, and a fit that finds where they part.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/drive/fit.h"
#include "sim/base/arena.h"
#include "sim/base/rng.h"
#include "tests/helpers/suite.h"

static const struct soc_ops ops = {
    .given = true,
    .qkv = {.n = 3, .rows = {1, 4, 64}, .s = {1e-3, 2e-3, 8e-3}},
    .ffn = {.n = 1, .rows = {64}, .s = {16e-3}},
    .prefill = {.s = 1e-4, .many = {1e-8, 1e-6}},
    .decode_s = 1e-5,
    .decode_key_s = 1e-7,
    .decode_row_s = 2e-5,
    .layer_s = 1e-3,
    .layer_key_s = 1e-6,
};

static double price(enum op_kind op, uint32_t rows, const struct work_shape *w)
{
    struct kernel_query q = {.op = op, .rows = rows, .padded_rows = rows, .shape = w};
    return soc_ops_seconds(&ops, &q);
}

START_TEST(a_table_is_straight_between_its_points)
{
    ck_assert_double_eq_tol(price(OP_QKV, 1, NULL), 1e-3, 1e-12);
    ck_assert_double_eq_tol(price(OP_QKV, 2, NULL), 1e-3 + 1e-3 / 3, 1e-12);
    ck_assert_double_eq_tol(price(OP_QKV, 34, NULL), 5e-3, 1e-12);   /* half of 4 .. 64 */
    ck_assert_double_eq_tol(price(OP_QKV, 124, NULL), 14e-3, 1e-12); /* the last step continues */
    ck_assert_double_eq_tol(price(OP_FFN, 128, NULL), 32e-3, 1e-12); /* one point: by rows */
}
END_TEST

/* The rows of a pass of prompts and decodes go to two launches. Each pays the fixed cost of one,
 * and all else adds up, however the rows are parted. */
START_TEST(shares_of_attention_add_up)
{
    struct rng r;
    rng_init(&r, rng_key(1, RNG_TEST, 10, 0));
    for (int i = 0; i < 1000; i++) {
        uint64_t prompt = rng_below(&r, 3) == 0 ? 0 : 2 + rng_below(&r, 500);
        uint32_t decodes = (uint32_t)(prompt == 0) + rng_below(&r, 9);
        uint64_t keys = decodes * (1 + (uint64_t)rng_below(&r, 2000));
        struct work_shape w = {.rows = (uint32_t)prompt + decodes,
                               .sequences = decodes + (prompt > 0),
                               .prefill_rows = (uint32_t)prompt,
                               .attn_pairs = keys + prompt * (prompt + 1) / 2,
                               .kv_read_tokens = keys + prompt};
        uint32_t first = w.rows > 1 ? 1 + rng_below(&r, w.rows - 1) : 0;
        double fixed_s = prompt > 0 ? ops.prefill.s : ops.decode_s;
        double whole_s = price(OP_MHA, w.rows, &w);
        ck_assert_double_eq_tol(price(OP_MHA, first, &w) + price(OP_MHA, w.rows - first, &w),
                                whole_s + fixed_s, 1e-12 * (whole_s + fixed_s));
    }
}
END_TEST

/* One pass has a prompt of 100 rows from nothing: 5050 pairs. Another has a batch of four that have
 * 1000 keys together. Both in one pass have 6050 pairs and 1100 keys, of which the decodes have
 * 1000 each. */
START_TEST(attention_has_a_rate_for_prompts_and_one_for_batches)
{
    struct work_shape prompt = {.rows = 100,
                                .sequences = 1,
                                .prefill_rows = 100,
                                .attn_pairs = 5050,
                                .kv_read_tokens = 100};
    struct work_shape batch = {
        .rows = 4, .sequences = 4, .attn_pairs = 1000, .kv_read_tokens = 1000};
    struct work_shape mixed = {.rows = 104,
                               .sequences = 5,
                               .prefill_rows = 100,
                               .attn_pairs = 6050,
                               .kv_read_tokens = 1100};
    ck_assert_double_eq_tol(price(OP_MHA, 100, &prompt), 1e-4 + 5050e-8 + 100e-6, 1e-12);
    ck_assert_double_eq_tol(price(OP_MHA, 50, &prompt), 1e-4 + (5050e-8 + 100e-6) / 2, 1e-12);
    ck_assert_double_eq_tol(price(OP_MHA, 4, &batch), 1e-5 + 1000e-7 + 4 * 2e-5, 1e-12);
    ck_assert_double_eq_tol(price(OP_MHA, 104, &mixed),
                            1000e-7 + 4 * 2e-5 + 1e-4 + 5050e-8 + 100e-6, 1e-12);
}
END_TEST

/* Rows 200 to 263 of a prompt (64 x 200 + 64 x 65 / 2 = 14,880 pairs, 264 keys) share a pass with
 * three decodes that see 100, 300 and 500 keys. Two such prompts are as exact, because they are
 * equally long. With one row each they cannot be distinguished from decodes: 1164 / 4 keys a
 * sequence. */
START_TEST(keys_of_decodes_are_found_in_a_mixed_pass)
{
    struct work_shape one = {.rows = 67,
                             .sequences = 4,
                             .prefill_rows = 64,
                             .attn_pairs = 14880 + 900,
                             .kv_read_tokens = 264 + 900};
    struct work_shape two = {.rows = 131,
                             .sequences = 5,
                             .prefill_rows = 128,
                             .attn_pairs = 2 * 14880 + 900,
                             .kv_read_tokens = 2 * 264 + 900};
    struct work_shape row = {
        .rows = 4, .sequences = 4, .prefill_rows = 1, .attn_pairs = 1164, .kv_read_tokens = 1164};
    ck_assert_double_eq_tol(soc_ops_decode_keys(&one), 900, 1e-9);
    ck_assert_double_eq_tol(soc_ops_decode_keys(&two), 900, 1e-9);
    ck_assert_double_eq_tol(soc_ops_decode_keys(&row), 3 * 291, 1e-9);
    one.prefill_rows = one.rows = 64;
    one.sequences = 1;
    ck_assert_double_eq_tol(soc_ops_decode_keys(&one), 0, 1e-9);
}
END_TEST

/* Tiles have 64 rows. In a prompt of 100 rows the first 64 see 64 keys. The rest, a tile of 64 rows
 * too, sees 100 keys, which are two tiles: 64 x 64 + 64 x 128. For rows 201 to 264 the 264 keys are
 * five tiles, 64 x 320. Without tiles there are 100 x 101 / 2, and 64 x 200 + 64 x 65 / 2. */
START_TEST(pairs_come_in_tiles_of_rows_and_of_keys)
{
    ck_assert_double_eq_tol(soc_ops_pairs(100, 100, 64), 12288, 1e-9);
    ck_assert_double_eq_tol(soc_ops_pairs(64, 264, 64), 20480, 1e-9);
    ck_assert_double_eq_tol(soc_ops_pairs(100, 100, 0), 5050, 1e-9);
    ck_assert_double_eq_tol(soc_ops_pairs(64, 264, 0), 14880, 1e-9);
}
END_TEST

static const struct soc_ops two_paths = {
    .given = true,
    .prefill = {.s = 1e-4, .few_below = 64, .many = {6e-8, 4e-6}, .few = {3e-7, 5e-6}, .tile = 64},
};

static double attention_s(uint32_t rows, const struct work_shape *w)
{
    struct kernel_query q = {.op = OP_MHA, .rows = rows, .padded_rows = rows, .shape = w};
    return soc_ops_seconds(&two_paths, &q);
}

static struct work_shape prompts_of(uint32_t n, uint32_t rows, uint32_t keys)
{
    return (struct work_shape){.rows = n * rows,
                               .sequences = n,
                               .prefill_rows = n * rows,
                               .attn_pairs = n * (uint64_t)soc_ops_pairs(rows, keys, 0),
                               .kv_read_tokens = n * keys};
}

/* 30 rows behind 490 are 30 x 490 + 30 x 31 / 2 = 15,165 pairs at 0.3 us. 100 rows are 12,288 at
 * 0.06. Two prompts of 60 rows are 120 rows of the path of few, though 120 alone would be of the
 * other. Half of the rows of 100 are 50. */
START_TEST(the_rows_of_a_sequence_decide_on_the_path)
{
    struct work_shape few = prompts_of(1, 30, 520);
    struct work_shape many = prompts_of(1, 100, 100);
    struct work_shape two = prompts_of(2, 60, 60);
    ck_assert_double_eq_tol(attention_s(30, &few), 1e-4 + 15165 * 3e-7 + 30 * 5e-6, 1e-12);
    ck_assert_double_eq_tol(attention_s(100, &many), 1e-4 + 12288 * 6e-8 + 100 * 4e-6, 1e-12);
    ck_assert_double_eq_tol(attention_s(120, &two), 1e-4 + 2 * (1830 * 3e-7 + 60 * 5e-6), 1e-12);
    ck_assert_double_eq_tol(attention_s(50, &many), 1e-4 + 0.5 * (5050 * 3e-7 + 100 * 5e-6), 1e-12);
}
END_TEST

/* ---- a fit finds the two paths ---- */

static struct drive_report report;

static void add(struct drive_kernel k, uint32_t keys)
{
    report.kernels =
        xroom(report.kernels, report.n_kernels + 1, &report.cap_kernels, sizeof *report.kernels);
    report.segments = xroom(report.segments, report.n_segments + 1, &report.cap_segments,
                            sizeof *report.segments);
    k.padded_rows = k.shape_rows = k.rows;
    k.sequences = 1;
    k.keys = keys;
    k.segment0 = (uint32_t)report.n_segments;
    k.n_segments = 1;
    report.segments[report.n_segments++] = (struct drive_segment){k.rows, keys, k.prefill_rows > 0};
    report.kernels[report.n_kernels++] = k;
}

/* Makes prompts of the machine of two_paths, and eight kernels of each other op. */
static void make_kernels(void)
{
    static const uint32_t rows[] = {2, 5, 11, 20, 33, 47, 63, 64, 70, 100, 150, 256};
    for (uint32_t i = 0; i < 12; i++) {
        for (uint32_t before = 0; before < 1000; before += 190) {
            struct work_shape w = prompts_of(1, rows[i], before + rows[i]);
            add((struct drive_kernel){.op = OP_MHA,
                                      .rows = rows[i],
                                      .prefill_rows = rows[i],
                                      .pairs = w.attn_pairs,
                                      .ns = (int64_t)(1e9 * attention_s(rows[i], &w))},
                before + rows[i]);
        }
    }
    for (uint32_t i = 0; i < 8; i++) {
        static const uint8_t ops_of[] = {OP_QKV, OP_FFN, OP_HEAD, OP_MHA};
        for (int o = 0; o < 4; o++) {
            add((struct drive_kernel){.op = ops_of[o], .rows = 1, .pairs = 50 + i, .ns = 1000000},
                50 + i);
        }
    }
}

START_TEST(a_fit_finds_the_rows_at_which_an_engine_changes_over)
{
    static struct fit fit;
    struct fit_input in;
    struct machine m = {.n_devices = 1};
    struct err e = ERR_INIT;
    make_kernels();
    fit_input_init(&in, DRIVE_CLOCK_CPU);
    fit_input_add(&in, &report, 1.0, false);
    ck_assert_int_eq(fit_make(&in, &m, &fit, &e), 0);
    const struct fit_device *d = &fit.devices[0];
    const double want[] = {1e-4, 3e-7, 5e-6, 6e-8, 4e-6};
    ck_assert_uint_eq(d->split.few_below, 64);
    ck_assert_uint_eq(d->split.tile, 64);
    for (int i = 0; i < FIT_PROMPT_TERMS; i++) {
        ck_assert_double_eq_tol(d->prefill[i].value / want[i], 1.0, 1e-3);
    }
    ck_assert_uint_eq(d->rows_max, 256);
    ck_assert_uint_eq(d->keys_max, 950 + 256);
    fit_input_fini(&in);
    drive_report_fini(&report);
}
END_TEST

/* Eight kernels are enough for a part, seven are not, and the part is named. */
START_TEST(a_part_of_few_kernels_is_named)
{
    static const struct {
        uint32_t from, n;
        const char *name;
    } all[] = {{72, 1, "qkv"},
               {73, 1, "ffn"},
               {74, 1, "head"},
               {75, 1, "mha decode"},
               {5, 65, "mha prefill"}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        static struct fit fit;
        struct fit_input in;
        struct machine m = {.n_devices = 1};
        struct err e = ERR_INIT;
        report = (struct drive_report){0};
        make_kernels();
        report.n_kernels -= all[i].n;
        memmove(&report.kernels[all[i].from], &report.kernels[all[i].from + all[i].n],
                (report.n_kernels - all[i].from) * sizeof *report.kernels);
        fit_input_init(&in, DRIVE_CLOCK_CPU);
        fit_input_add(&in, &report, 1.0, false);
        ck_assert_int_eq(fit_make(&in, &m, &fit, &e), -EINVAL);
        OWNED char *want =
            xformat("only 7 kernels of %s ran: a longer trace is needed", all[i].name);
        ck_assert_uint_eq(e.n, 1);
        ck_assert_str_eq(e.lines[0], want);
        err_fini(&e);
        fit_input_fini(&in);
        drive_report_fini(&report);
    }
}
END_TEST

static const struct suite_row suite[] = {
    TEST(a_table_is_straight_between_its_points),
    TEST(attention_has_a_rate_for_prompts_and_one_for_batches),
    TEST(shares_of_attention_add_up),
    TEST(keys_of_decodes_are_found_in_a_mixed_pass),
    TEST(pairs_come_in_tiles_of_rows_and_of_keys),
    TEST(the_rows_of_a_sequence_decide_on_the_path),
    TEST(a_fit_finds_the_rows_at_which_an_engine_changes_over),
    TEST(a_part_of_few_kernels_is_named),
};
SUITE_MAIN("drive prompts", suite)

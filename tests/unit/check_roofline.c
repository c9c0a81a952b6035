/* Kernel times by hand: single kernels, whole passes, and what the options of a SoC file do. */
#include <math.h>
#include <stdlib.h>

#include "tests/helpers/model.h"
#include "tests/helpers/suite.h"

static double ms(const struct model *b, int device, enum op_kind op, const struct work_shape *w,
                 uint32_t rows, uint32_t padded)
{
    return (double)model_cost(b, device, op, w, rows, padded).t_ns / 1e6;
}

/* A whole pass on one device, token-level ops in kernels of chunk rows (0: one dynamic kernel). */
static double pass_ms(const struct model *b, int device, const struct work_shape *w, uint32_t chunk)
{
    uint32_t padded = chunk == 0 || w->rows == 1 ? w->rows : chunk;
    uint32_t n = (w->rows + padded - 1) / padded;
    double layer = n * ms(b, device, OP_QKV, w, padded, padded) +
                   ms(b, device, OP_MHA, w, w->rows, w->rows) +
                   n * ms(b, device, OP_FFN, w, padded, padded);
    return b->llm.n_layers * layer + ms(b, device, OP_HEAD, w, w->logit_rows, w->logit_rows);
}

/* ---- hand-computed kernels, Llama 3.1 8B: hidden 4096, FFN 14336, 32 heads of 128, 8 KV ---- */

START_TEST(ffn_of_a_chunk_is_its_work_at_the_filled_rate)
{
    struct model b;
    model_init(&b, "llama-3.1-8b", "extended");
    struct work_shape w = model_prefill(256);
    /* O 4096 4096 + gate, up, down 3 4096 14336 are 192 937 984 weights, and 2 256 times that is
     * 98.784 GFLOP. Weights are 1.01 B each = 194.87 MB, and activations 2 256 (O 8192 + 3 x 18432)
     * = 32.51 MB. The iGPU takes 98.784 / 4.15 T (1 + 27/256) = 26.314 ms (memory 2.9 ms) and 4
     * launches of 69 us. The NPU takes 98.784 / 3.0 T = 32.928 ms and 4 launches of 250 us.
     * Agent.xpu v2 4.4 states at most 38 ms. */
    struct kernel_cost igpu = model_cost(&b, MODEL_IGPU, OP_FFN, &w, 256, 256);
    model_near(igpu.flop, 98784247808.0, 1e-12);
    model_near(igpu.bytes, 192937984.0 * 1.01 + 512.0 * (8192 + 3 * 18432), 1e-12);
    model_near((double)igpu.t_ns / 1e6, 26.3138 + 0.276, 1e-5);
    model_near(ms(&b, MODEL_NPU, OP_FFN, &w, 256, 256), 32.9281 + 1.0, 1e-5);
    /* Without O, as in a table of the FFN alone, 90.19 GFLOP take 24.0 ms + 3 launches = 24.2
     * ms. */
    double o = 2.0 * 256 * 4096 * 4096;
    model_near((double)igpu.t_ns / 1e6 - o / 4.15e9 * (1 + 27.0 / 256) - 0.069, 24.2, 0.005);
}
END_TEST

/* A kernel of 256 rows, of which 100 were asked for, computes all of them at the rate that 256
 * fill. */
START_TEST(rows_of_padding_cost_what_others_do)
{
    struct model b;
    model_init(&b, "llama-3.1-8b", "extended");
    struct work_shape w = model_prefill(256);
    model_near(ms(&b, MODEL_IGPU, OP_FFN, &w, 100, 256), 26.3138 + 0.276, 1e-5);
}
END_TEST

/* Two cards have 25 us and 50 GB/s, for 8B (hidden 4096, 16-bit activations) and a chunk of 256
 * rows. An all-reduce sends 2 (2 - 1)/2 x 256 x 8192 B = 2.097152 MB in 41.943 us. A layer pays
 * two, 2 x (25 + 41.943) = 133.886 us, in the FFN, and none in QKV or attention. Four cards send
 * 1.5 times as much. One decoding row takes 2 x (25 + 0.164) = 50.328 us. Without the key, and in
 * Appendix B's form, nothing is paid. */
START_TEST(cards_that_share_a_layer_pay_two_exchanges)
{
    struct model one;
    struct model two;
    model_init(&one, "llama-3.1-8b", "extended");
    model_init(&two, "llama-3.1-8b", "extended");
    struct work_shape w = model_prefill(256);
    two.r.exchange[MODEL_IGPU] = (struct soc_exchange){2, 25e-6, 50e9};
    double more =
        ms(&two, MODEL_IGPU, OP_FFN, &w, 256, 256) - ms(&one, MODEL_IGPU, OP_FFN, &w, 256, 256);
    model_near(more, 0.133886, 1e-4);
    model_near(ms(&two, MODEL_IGPU, OP_LAYER, &w, 256, 256) -
                   ms(&one, MODEL_IGPU, OP_LAYER, &w, 256, 256),
               0.133886, 1e-4);
    model_near(ms(&two, MODEL_IGPU, OP_QKV, &w, 256, 256),
               ms(&one, MODEL_IGPU, OP_QKV, &w, 256, 256), 1e-12);
    model_near(ms(&two, MODEL_IGPU, OP_MHA, &w, 256, 256),
               ms(&one, MODEL_IGPU, OP_MHA, &w, 256, 256), 1e-12);
    struct work_shape decode = model_decode(1, 96);
    model_near(ms(&two, MODEL_IGPU, OP_FFN, &decode, 1, 1) -
                   ms(&one, MODEL_IGPU, OP_FFN, &decode, 1, 1),
               0.050328, 1e-4);
    two.r.exchange[MODEL_IGPU].cards = 4; /* 62.915 us on the link */
    more = ms(&two, MODEL_IGPU, OP_FFN, &w, 256, 256) - ms(&one, MODEL_IGPU, OP_FFN, &w, 256, 256);
    model_near(more, 2 * (0.025 + 0.0629146), 1e-4);
    model_init(&one, "llama-3.1-8b", "roofline");
    model_init(&two, "llama-3.1-8b", "roofline");
    two.r.exchange[MODEL_IGPU] = (struct soc_exchange){2, 25e-6, 50e9};
    model_near(ms(&two, MODEL_IGPU, OP_FFN, &w, 256, 256),
               ms(&one, MODEL_IGPU, OP_FFN, &w, 256, 256), 1e-12);
}
END_TEST

START_TEST(qkv_and_head_are_their_work)
{
    struct model b;
    model_init(&b, "llama-3.1-8b", "extended");
    struct work_shape w = model_prefill(256);
    /* 2 256 4096 6144 = 12.885 GFLOP over 4.15 T (1 + 27/256) are 3.4322 ms + 69 us. */
    model_near(ms(&b, MODEL_IGPU, OP_QKV, &w, 256, 256), 3.4322 + 0.069, 1e-4);
    /* For one row 4096 128256 1.01 = 530.59 MB + 2 (4096 + 128256) B at 78 GB/s are 6.8058 ms. The
     * compute term (0.25 ms) has no fill factor for one row. */
    model_near(ms(&b, MODEL_IGPU, OP_HEAD, &w, 1, 1), 6.8058 + 0.069, 1e-4);
}
END_TEST

START_TEST(the_head_has_a_width_of_its_own)
{
    struct model b;
    model_init(&b, "llama-3.2-3b", "roofline");
    b.llm.head_bytes_per_weight = 2.0; /* FP16 head on 8-bit layers */
    roofline_init(&b.r, hwmodel_find("roofline"), &b.soc, &b.llm);
    struct work_shape w = model_decode(1, 1);
    /* There are 3072 128256 weights of 2 B, and 2 (3072 + 128256) B of activations. */
    model_near(model_cost(&b, MODEL_IGPU, OP_HEAD, &w, 1, 1).bytes, 788004864.0 + 262656.0, 1e-12);
    /* QKV has 3072 5120 weights of 1.01 B, and activations of 2 (3072 + 5120) B. */
    model_near(model_cost(&b, MODEL_IGPU, OP_QKV, &w, 1, 1).bytes, 15885926.4 + 16384.0, 1e-12);
}
END_TEST

START_TEST(attention_runs_at_its_share_of_the_rate_without_fill)
{
    struct model b;
    model_init(&b, "llama-3.1-8b", "extended");
    struct work_shape w = model_prefill(2048);
    /* 2048 2049 / 2 pairs x 4 x 4096 flop are 34.377 GFLOP. The iGPU has 4.15 T x 0.20 = 0.83 T and
     * takes 41.418 ms, and the NPU 3.0 T x 0.3 = 0.9 T and takes 38.196 ms. Uncut 2048^2 pairs are
     * 68.719 GFLOP in 82.794 and 76.355 ms, both within the 97 ms of Agent.xpu v2 4.4. */
    model_near(ms(&b, MODEL_IGPU, OP_MHA, &w, 2048, 2048), 41.418 + 0.069, 1e-4);
    model_near(ms(&b, MODEL_NPU, OP_MHA, &w, 2048, 2048), 38.196 + 0.250, 1e-4);
    w.attn_pairs = 2048ull * 2048;
    model_near(ms(&b, MODEL_IGPU, OP_MHA, &w, 2048, 2048), 82.794 + 0.069, 1e-4);
    model_near(ms(&b, MODEL_NPU, OP_MHA, &w, 2048, 2048), 76.355 + 0.250, 1e-4);
    ck_assert_double_lt(ms(&b, MODEL_IGPU, OP_MHA, &w, 2048, 2048), 97.0);
    /* KV of 2048 keys has 2 x 8 x 128 x 1 B each, and queries and outputs 2 x 2 B x 4096 per
     * row. */
    model_near(model_cost(&b, MODEL_IGPU, OP_MHA, &w, 2048, 2048).bytes,
               2048 * 2048.0 + 2048 * 16384.0, 1e-12);
}
END_TEST

/* ---- passes ---- */

START_TEST(passes_of_the_3b_model_agree_with_the_parameter_fit)
{
    /* The fit's own predictions for Llama 3.2 3B W8A16 on this iGPU (ms), computed apart from this
     * program when the parameters were fitted. TTFT by hand for 1024: body 2 1024 2.8186e9 / 4.15 T
     * (1 + 27/1024) = 1427.7; attention 28 x 6.449 G / 0.83 T = 217.6; 28 x 6 launches 11.6; head
     * 5.2: 1662.1. TPOT: (2.8186e9 + 0.394e9) 1.01 / 78 GB/s = 41.6; 57344 B x 1024 / 78 = 0.75;
     * 169 launches 11.7; activations 0.1: 54.1. The table rounds to 1 ms and 0.1 ms. */
    static const struct {
        uint32_t tokens;
        double ttft_ms;
    } prompts[] = {{32, 97}, {256, 415}, {512, 804}, {1024, 1662}, {2048, 3706}};
    static const struct {
        uint32_t context;
        double tpot_ms;
    } contexts[] = {{96, 53.4}, {1024, 54.1}, {2048, 54.8}};
    struct model b;
    model_init(&b, "llama-3.2-3b", "extended");
    for (int i = 0; i < 5; i++) {
        struct work_shape w = model_prefill(prompts[i].tokens);
        model_near(pass_ms(&b, MODEL_IGPU, &w, 0), prompts[i].ttft_ms, 0.006);
    }
    for (int i = 0; i < 3; i++) {
        struct work_shape w = model_decode(1, contexts[i].context);
        model_near(pass_ms(&b, MODEL_IGPU, &w, 0), contexts[i].tpot_ms, 0.003);
    }
}
END_TEST

START_TEST(passes_of_the_8b_model_and_of_the_npu_agree_with_the_parameter_fit)
{
    struct model b;
    model_init(&b, "llama-3.1-8b", "extended");
    struct work_shape long_prompt = model_prefill(1024);
    struct work_shape one = model_decode(1, 1024);
    model_near(pass_ms(&b, MODEL_IGPU, &long_prompt, 0), 3890, 0.01);
    model_near(pass_ms(&b, MODEL_IGPU, &one, 0), 111, 0.01);
    /* On the NPU the body takes 2 1024 6.9793e9 / 3.0 T = 4764.5, attention 32 x 8.598 G / 0.9 T =
     * 305.7, and the head 12.6 (5.1 s in all). Launches of four chunks take 32 (4 (1 + 4) + 1) 0.25
     * = 168. */
    model_near(pass_ms(&b, MODEL_NPU, &long_prompt, 256), 4764.5 + 305.7 + 12.6 + 168, 1e-3);
    model_init(&b, "llama-3.2-3b", "extended");
    /* The body takes 1924.2, attention 28 x 6.449 G / 0.9 T = 200.6, the head 9.5, and launches 28
     * x 5.25 = 147. */
    model_near(pass_ms(&b, MODEL_NPU, &long_prompt, 256), 1924.2 + 200.6 + 9.5 + 147, 1e-3);
}
END_TEST

START_TEST(decode_grows_gently_with_the_batch)
{
    /* This is the reason why decode_batch_inefficiency is 0. The context is 96, and body weights
     * are 2.8186e9. Compute per row takes 2 x 2.8186e9 / 4.15 T = 1.3583 ms, times (n + 27): 40.75
     * for n = 3 and 47.54 for n = 8 (memory 36.5). The head takes 0.18988 (n + 27): 5.70 and 6.65.
     * Attention takes n x 0.08. Launches take 11.66, and 28 x 69 us = 1.932 for each further
     * sequence's attention. */
    static const struct {
        uint32_t n;
        double ms;
    } rows[] = {{1, 53.4},
                {3, 40.75 + 5.70 + 0.22 + 11.66 + 3.864},
                {8, 47.54 + 6.65 + 0.59 + 11.66 + 13.524}};
    struct model b;
    model_init(&b, "llama-3.2-3b", "extended");
    for (int i = 0; i < 3; i++) {
        struct work_shape w = model_decode(rows[i].n, 96);
        model_near(pass_ms(&b, MODEL_IGPU, &w, 0), rows[i].ms, 0.002);
    }
}
END_TEST

/* ---- shapes and options ---- */

START_TEST(a_static_kernel_pays_its_padded_rows)
{
    struct model b;
    model_init(&b, "llama-3.1-8b", "extended");
    struct work_shape full = model_prefill(256);
    struct work_shape tail = model_prefill(3);
    struct kernel_cost a = model_cost(&b, MODEL_NPU, OP_FFN, &full, 256, 256);
    struct kernel_cost c = model_cost(&b, MODEL_NPU, OP_FFN, &tail, 3, 256);
    ck_assert_int_eq(a.t_ns, c.t_ns);
    ck_assert_double_eq(a.bytes, c.bytes);
    ck_assert_int_lt(model_cost(&b, MODEL_NPU, OP_FFN, &tail, 3, 3).t_ns, c.t_ns);
}
END_TEST

START_TEST(npu_attention_reads_padded_keys)
{
    struct model b;
    model_init(&b, "llama-3.1-8b", "extended");
    /* keys of one sequence rise to the next multiple of 256; 2048 B per key; 16384 B per row */
    static const struct {
        uint64_t context, keys;
    } cases[] = {{1, 256}, {256, 256}, {257, 512}, {1000, 1024}};
    for (int i = 0; i < 4; i++) {
        struct work_shape w = model_decode(1, cases[i].context);
        model_near(model_cost(&b, MODEL_NPU, OP_MHA, &w, 1, 1).bytes,
                   2048.0 * (double)cases[i].keys + 16384, 1e-12);
        model_near(model_cost(&b, MODEL_IGPU, OP_MHA, &w, 1, 1).bytes,
                   2048.0 * (double)cases[i].context + 16384, 1e-12);
    }
    struct work_shape four = model_decode(4, 1000); /* several: half a chunk each, 4 (1000 + 128) */
    model_near(model_cost(&b, MODEL_NPU, OP_MHA, &four, 4, 4).bytes, 2048.0 * 4512 + 4 * 16384,
               1e-12);
}
END_TEST

START_TEST(one_row_has_a_curve_of_its_own)
{
    struct model b;
    model_init(&b, "llama-3.1-8b", "extended");
    struct soc_runtime *p = &b.soc.devices[MODEL_NPU].runtimes[0];
    struct work_shape w = model_decode(1, 1);
    int64_t many = model_cost(&b, MODEL_NPU, OP_FFN, &w, 2, 2).t_ns;
    int64_t one = model_cost(&b, MODEL_NPU, OP_FFN, &w, 1, 1).t_ns;
    p->one = (struct soc_curve){3e12, 21.5e9, 1e-3}; /* half the bandwidth, four times the launch */
    /* It is memory-bound: T = 4 t + Q/B, so it takes 4 x 1 ms + 2 (T - 4 x 0.25 ms). */
    model_near((double)model_cost(&b, MODEL_NPU, OP_FFN, &w, 1, 1).t_ns,
               4e6 + 2.0 * ((double)one - 1e6), 1e-6);
    ck_assert_int_eq(model_cost(&b, MODEL_NPU, OP_FFN, &w, 2, 2).t_ns, many);
}
END_TEST

START_TEST(few_rows_pay_the_row_floor)
{
    struct model b;
    model_init(&b, "llama-3.1-8b", "extended");
    b.soc.devices[MODEL_NPU].runtimes[0].min_rows = 1024;
    struct work_shape w = model_prefill(600);
    /* compute-bound there: 600 rows cost what 1024 cost, 2048 cost twice that; launches 1 ms */
    double floor_ms = ms(&b, MODEL_NPU, OP_FFN, &w, 1024, 1024);
    model_near(ms(&b, MODEL_NPU, OP_FFN, &w, 600, 600), floor_ms, 1e-9);
    model_near(ms(&b, MODEL_NPU, OP_FFN, &w, 2048, 2048) - 1.0, 2 * (floor_ms - 1.0), 1e-6);
    /* one row is another kernel: no floor. The FFN is memory-bound: bytes / 43 GB/s */
    struct kernel_cost one = model_cost(&b, MODEL_NPU, OP_FFN, &w, 1, 1);
    model_near((double)one.t_ns, one.bytes / 43.0 + 1e6, 1e-6);
}
END_TEST

/* Time that sequences cost the iGPU beyond their rows. It is added as a time of its own, so the
 * difference of costs with and without it is the arithmetic. */
static int64_t batch_added_ns(struct model *b, enum op_kind op, const struct work_shape *w)
{
    struct soc_runtime *p = &b->soc.devices[MODEL_IGPU].runtimes[0];
    struct soc_runtime with = *p;
    int64_t t_ns = model_cost(b, MODEL_IGPU, op, w, w->rows, w->rows).t_ns;
    p->decode_batch_frac = p->attention_launches = p->kv_gather_frac = 0.0;
    t_ns -= model_cost(b, MODEL_IGPU, op, w, w->rows, w->rows).t_ns;
    *p = with;
    return t_ns;
}

START_TEST(a_further_decode_reads_its_share_of_the_weights_again_in_mixed_passes_too)
{
    struct model b;
    model_init(&b, "llama-3.2-3b", "extended");
    struct soc_runtime *p = &b.soc.devices[MODEL_IGPU].runtimes[0];
    *p = (struct soc_runtime){.many = {4e12, 50e9, 100e-6},
                              .one = {4e12, 50e9, 100e-6},
                              .attention_frac = 0.2,
                              .decode_batch_frac = 0.1,
                              .min_rows = 1,
                              .fused_launch_frac = 1.0};
    /* QKV of the 3B model has 3072 x (3072 + 2 x 1024) weights of 1.01 B = 15.886 MB, which take
     * 0.31772 ms at 50 GB/s. Four sequences read 3 x 0.1 of them again, and four with a prompt 4 x
     * 0.1. */
    struct work_shape w = model_decode(4, 500);
    model_near((double)batch_added_ns(&b, OP_QKV, &w), 0.3 * 317720, 1e-4);
    struct work_shape mixed = model_prefill(256);
    mixed.rows += 4;
    mixed.sequences += 4;
    model_near((double)batch_added_ns(&b, OP_QKV, &mixed), 0.4 * 317720, 1e-4);
    ck_assert_int_eq(batch_added_ns(&b, OP_MHA, &w), 0); /* attention has no weights */
    struct work_shape one = model_decode(1, 500);
    struct work_shape verify = model_decode(1, 500); /* 32 rows of one sequence */
    struct work_shape prompt = model_prefill(256);
    verify.rows = 32;
    ck_assert_int_eq(batch_added_ns(&b, OP_QKV, &one), 0);
    ck_assert_int_eq(batch_added_ns(&b, OP_QKV, &verify), 0);
    ck_assert_int_eq(batch_added_ns(&b, OP_QKV, &prompt), 0);
    b.r.model.ops = hwmodel_find("roofline"); /* Appendix B knows no such term */
    ck_assert_int_eq(batch_added_ns(&b, OP_QKV, &w), 0);
}
END_TEST

/* This is the other form. All bytes of a pass of decodes take 1 + s (n - 1) times as long. A pass
 * with a prompt takes as long as before, although it is bound by memory here. */
START_TEST(a_further_decode_stretches_what_a_pass_of_decodes_reads)
{
    struct model b;
    model_init(&b, "llama-3.2-3b", "extended");
    struct soc_runtime *p = &b.soc.devices[MODEL_IGPU].runtimes[0];
    *p = (struct soc_runtime){.many = {4e12, 50e9, 100e-6},
                              .one = {4e12, 50e9, 100e-6},
                              .attention_frac = 0.2,
                              .min_rows = 1,
                              .fused_launch_frac = 1.0};
    struct work_shape w = model_decode(4, 500);
    struct work_shape one = model_decode(1, 500);
    struct work_shape mixed = model_prefill(8);
    mixed.rows += 4;
    mixed.sequences += 4;
    const struct work_shape *shapes[] = {&w, &one, &mixed};
    struct kernel_cost plain[3];
    for (int i = 0; i < 3; i++) {
        uint32_t rows = shapes[i]->rows;
        plain[i] = model_cost(&b, MODEL_IGPU, OP_QKV, shapes[i], rows, rows);
    }
    p->decode_stretch_frac = 0.1;
    struct kernel_cost four = model_cost(&b, MODEL_IGPU, OP_QKV, &w, 4, 4);
    /* QKV is memory-bound: its bytes go at 50 GB/s, three tenths of them once more. */
    model_near((double)(four.t_ns - plain[0].t_ns), 0.3 * plain[0].bytes / 50.0, 1e-4);
    model_near(four.bytes, plain[0].bytes, 1e-12);
    ck_assert_int_eq(model_cost(&b, MODEL_IGPU, OP_QKV, &one, 1, 1).t_ns, plain[1].t_ns);
    ck_assert_int_eq(model_cost(&b, MODEL_IGPU, OP_QKV, &mixed, mixed.rows, mixed.rows).t_ns,
                     plain[2].t_ns);
}
END_TEST

/* Fill of a decode batch: with no memory time and no launches, r rows of 1 flop/B products take
 * (r + s m0) rows' time without a prompt row, and (r + m0) with one. */
START_TEST(a_batch_of_decodes_pays_its_share_of_the_fill)
{
    struct model b;
    model_init(&b, "llama-3.2-3b", "extended");
    struct soc_runtime *p = &b.soc.devices[MODEL_IGPU].runtimes[0];
    *p = (struct soc_runtime){.many = {1e12, 1e15, 0.0},
                              .one = {1e12, 1e15, 0.0},
                              .fill_rows = 60.0,
                              .batch_fill_frac = 1.0,
                              .attention_frac = 1.0,
                              .min_rows = 1,
                              .fused_launch_frac = 1.0};
    struct work_shape decodes = model_decode(4, 500);
    struct work_shape one = model_decode(1, 500);
    struct work_shape mixed = model_prefill(3);
    mixed.rows++;
    mixed.sequences++;
    double row_ns = (double)model_cost(&b, MODEL_IGPU, OP_QKV, &one, 1, 1).t_ns;
    static const double shares[] = {1.0, 0.25, 0.0};
    static const double rows[] = {64.0, 19.0, 4.0};
    for (int i = 0; i < 3; i++) {
        p->batch_fill_frac = shares[i];
        struct kernel_cost c = model_cost(&b, MODEL_IGPU, OP_QKV, &decodes, 4, 4);
        model_near((double)c.t_ns, rows[i] * row_ns, 1e-4);
        model_near(c.flop, 4.0 * row_ns * 1e3, 1e-4); /* the fill is no work */
        c = model_cost(&b, MODEL_IGPU, OP_QKV, &mixed, 4, 4);
        model_near((double)c.t_ns, 64.0 * row_ns, 1e-4);
        ck_assert_int_eq(model_cost(&b, MODEL_IGPU, OP_QKV, &one, 1, 1).t_ns, (int64_t)row_ns);
    }
}
END_TEST

START_TEST(attention_runs_once_per_sequence_and_gathers_its_keys)
{
    struct model b;
    model_init(&b, "llama-3.2-3b", "extended");
    struct soc_runtime *p = &b.soc.devices[MODEL_IGPU].runtimes[0];
    p->many = (struct soc_curve){4e12, 50e9, 100e-6};
    p->decode_batch_frac = 0.0;
    p->kv_gather_frac = 0.0;
    p->attention_launches = 1.0;
    struct work_shape w = model_decode(4, 500);
    ck_assert_int_eq(batch_added_ns(&b, OP_MHA, &w), 3 * 100000);
    ck_assert_int_eq(batch_added_ns(&b, OP_QKV, &w), 0);
    /* half of the rows of four sequences are two sequences: one further launch */
    int64_t half = model_cost(&b, MODEL_IGPU, OP_MHA, &w, 2, 2).t_ns;
    p->attention_launches = 0.0;
    ck_assert_int_eq(half - model_cost(&b, MODEL_IGPU, OP_MHA, &w, 2, 2).t_ns, 100000);
    /* K and V have 2 x 1024 B. Three sequences have 1500 of 2000 keys, and a fifth of them is read
     * again: 0.6144 MB, 12.288 us at 50 GB/s. */
    p->kv_gather_frac = 0.2;
    ck_assert_int_eq(batch_added_ns(&b, OP_MHA, &w), 12288);
    struct work_shape mixed = model_prefill(256);
    mixed.rows += 1;
    mixed.sequences += 1;
    mixed.kv_read_tokens += 500; /* 756 keys of two sequences: half of them, 1.548 us */
    p->attention_launches = 1.0;
    double share = 256.0 / 257.0; /* of the rows: 1.996 of two sequences */
    mixed.rows = 257;
    double further = 2.0 * share - 1.0;
    int64_t with = model_cost(&b, MODEL_IGPU, OP_MHA, &mixed, 256, 256).t_ns;
    p->attention_launches = p->kv_gather_frac = 0.0;
    model_near((double)(with - model_cost(&b, MODEL_IGPU, OP_MHA, &mixed, 256, 256).t_ns),
               further * (100000 + 0.2 * 2048 * 756 / 2 / 50.0), 1e-4);
}
END_TEST

START_TEST(the_row_of_a_decoding_sequence_has_an_attention_rate_of_its_own)
{
    struct model b;
    model_init(&b, "llama-3.2-3b", "extended");
    struct soc_runtime *p = &b.soc.devices[MODEL_IGPU].runtimes[0];
    *p = (struct soc_runtime){.many = {1e12, 1e15, 0.0}, /* no memory time, no launches */
                              .one = {1e12, 1e15, 0.0},
                              .attention_frac = 0.5,
                              .decode_attention_frac = 0.01,
                              .min_rows = 1,
                              .fused_launch_frac = 1.0};
    /* A pair takes 4 x 24 heads x 128 = 12288 flop: 12.288 ns at 1 TFLOP/s, 24.576 ns at e_a,
     * 1228.8 ns at e_d. Four sequences of 500 keys have 2000 pairs of the latter. */
    struct work_shape w = model_decode(4, 500);
    model_near((double)model_cost(&b, MODEL_IGPU, OP_MHA, &w, 4, 4).t_ns, 2000 * 1228.8, 1e-6);
    struct work_shape one = model_decode(1, 500);
    model_near((double)model_cost(&b, MODEL_IGPU, OP_MHA, &one, 1, 1).t_ns, 500 * 1228.8, 1e-6);
    struct work_shape prompt = model_prefill(256); /* 32,896 pairs, none of a decode */
    model_near((double)model_cost(&b, MODEL_IGPU, OP_MHA, &prompt, 256, 256).t_ns, 32896 * 24.576,
               1e-6);
    /* A decode of 256 keys is in the same pass. Two sequences have 512 keys, half of them the
     * decode's. */
    struct work_shape mixed = prompt;
    mixed.rows = 257;
    mixed.sequences = 2;
    mixed.attn_pairs += 256;
    mixed.kv_read_tokens += 256;
    model_near((double)model_cost(&b, MODEL_IGPU, OP_MHA, &mixed, 257, 257).t_ns,
               32896 * 24.576 + 256 * 1228.8, 1e-6);
    struct work_shape verify = model_decode(1, 500); /* 4 rows of one sequence read its keys once */
    verify.rows = 4;
    verify.attn_pairs = 4 * 500;
    model_near((double)model_cost(&b, MODEL_IGPU, OP_MHA, &verify, 4, 4).t_ns,
               1500 * 24.576 + 500 * 1228.8, 1e-6);
    p->decode_attention_frac = 0.0; /* not set apart */
    model_near((double)model_cost(&b, MODEL_IGPU, OP_MHA, &w, 4, 4).t_ns, 2000 * 24.576, 1e-6);
}
END_TEST

START_TEST(a_layer_in_one_kernel_pays_its_share_of_the_launches)
{
    struct model b;
    model_init(&b, "llama-3.2-3b", "extended");
    struct soc_runtime *p = &b.soc.devices[MODEL_IGPU].runtimes[0];
    p->one.launch_s = 60e-6; /* QKV 1, attention 1, output and FFN 4 */
    struct work_shape w = model_decode(1, 500);
    int64_t all = model_cost(&b, MODEL_IGPU, OP_LAYER, &w, 1, 1).t_ns;
    int64_t ffn = model_cost(&b, MODEL_IGPU, OP_FFN, &w, 1, 1).t_ns;
    p->fused_launch_frac = 1.0 / 6.0;
    ck_assert_int_eq(all - model_cost(&b, MODEL_IGPU, OP_LAYER, &w, 1, 1).t_ns, 5 * 60000);
    ck_assert_int_eq(model_cost(&b, MODEL_IGPU, OP_FFN, &w, 1, 1).t_ns, ffn);
}
END_TEST

START_TEST(a_fused_layer_is_the_sum_of_its_parts)
{
    struct model b;
    model_init(&b, "llama-3.2-3b", "extended");
    struct work_shape w = model_decode(1, 1024); /* each part memory-bound: the sums are equal */
    int64_t parts = model_cost(&b, MODEL_IGPU, OP_QKV, &w, 1, 1).t_ns +
                    model_cost(&b, MODEL_IGPU, OP_MHA, &w, 1, 1).t_ns +
                    model_cost(&b, MODEL_IGPU, OP_FFN, &w, 1, 1).t_ns;
    ck_assert_int_le(llabs(model_cost(&b, MODEL_IGPU, OP_LAYER, &w, 1, 1).t_ns - parts),
                     2); /* rounding */
    model_near(model_cost(&b, MODEL_IGPU, OP_LAYER, &w, 1, 1).bytes,
               model_cost(&b, MODEL_IGPU, OP_QKV, &w, 1, 1).bytes +
                   model_cost(&b, MODEL_IGPU, OP_MHA, &w, 1, 1).bytes +
                   model_cost(&b, MODEL_IGPU, OP_FFN, &w, 1, 1).bytes,
               1e-12);
}
END_TEST

START_TEST(row_shares_of_attention_add_up_to_the_whole)
{
    struct model b;
    model_init(&b, "llama-3.2-3b", "extended");
    struct work_shape w = model_prefill(1000);
    struct kernel_cost whole = model_cost(&b, MODEL_IGPU, OP_MHA, &w, 1000, 1000);
    struct kernel_cost x = model_cost(&b, MODEL_IGPU, OP_MHA, &w, 300, 300);
    struct kernel_cost y = model_cost(&b, MODEL_IGPU, OP_MHA, &w, 700, 700);
    model_near(x.flop, 0.3 * whole.flop, 1e-12);
    model_near(x.flop + y.flop, whole.flop, 1e-12);
    model_near(x.bytes + y.bytes, whole.bytes, 1e-12);
    model_near((double)(x.t_ns + y.t_ns), (double)whole.t_ns + 69000, 1e-6); /* one launch more */
}
END_TEST

START_TEST(work_outside_the_calibration_is_marked)
{
    struct model b;
    model_init(&b, "llama-3.2-3b", "extended");
    b.soc.devices[MODEL_IGPU].runtimes[0].valid_rows_max = 512;
    b.soc.devices[MODEL_IGPU].runtimes[0].valid_context_max = 2048;
    struct work_shape in = model_prefill(512);
    struct work_shape rows = model_prefill(513);
    struct work_shape context = model_decode(1, 2049);
    ck_assert(!model_cost(&b, MODEL_IGPU, OP_FFN, &in, 512, 512).outside);
    ck_assert(model_cost(&b, MODEL_IGPU, OP_FFN, &rows, 513, 513).outside);
    ck_assert(model_cost(&b, MODEL_IGPU, OP_MHA, &context, 1, 1).outside);
    ck_assert(
        !model_cost(&b, MODEL_CPU, OP_MHA, &context, 1, 1).outside); /* no envelope: unbounded */
}
END_TEST

START_TEST(a_model_without_an_entry_of_its_width_is_marked)
{
    struct model b;
    model_init(&b, "llama-3.2-3b", "extended");
    ck_assert(!b.r.fallback[MODEL_NPU] && !b.r.fallback[MODEL_IGPU] && !b.r.fallback[MODEL_CPU]);
    b.llm.weight_bits = 4; /* the iGPU has such an entry, the NPU and the CPU have not */
    roofline_init(&b.r, hwmodel_find("extended"), &b.soc, &b.llm);
    ck_assert(b.r.fallback[MODEL_NPU] && !b.r.fallback[MODEL_IGPU] && b.r.fallback[MODEL_CPU]);
}
END_TEST

START_TEST(a_kernel_takes_at_least_a_nanosecond)
{
    struct model b;
    model_init(&b, "llama-3.2-3b", "roofline");
    b.soc.devices[MODEL_CPU].runtimes[0].many = (struct soc_curve){1e30, 1e30, 0.0};
    b.soc.devices[MODEL_CPU].runtimes[0].one = b.soc.devices[MODEL_CPU].runtimes[0].many;
    struct work_shape w = model_decode(1, 1);
    ck_assert_int_eq(model_cost(&b, MODEL_CPU, OP_MHA, &w, 1, 1).t_ns, 1);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(ffn_of_a_chunk_is_its_work_at_the_filled_rate),
    TEST(rows_of_padding_cost_what_others_do),
    TEST(cards_that_share_a_layer_pay_two_exchanges),
    TEST(qkv_and_head_are_their_work),
    TEST(the_head_has_a_width_of_its_own),
    TEST(attention_runs_at_its_share_of_the_rate_without_fill),
    TEST(passes_of_the_3b_model_agree_with_the_parameter_fit),
    TEST(passes_of_the_8b_model_and_of_the_npu_agree_with_the_parameter_fit),
    TEST(decode_grows_gently_with_the_batch),
    TEST(a_static_kernel_pays_its_padded_rows),
    TEST(npu_attention_reads_padded_keys),
    TEST(one_row_has_a_curve_of_its_own),
    TEST(few_rows_pay_the_row_floor),
    TEST(a_further_decode_reads_its_share_of_the_weights_again_in_mixed_passes_too),
    TEST(a_further_decode_stretches_what_a_pass_of_decodes_reads),
    TEST(a_batch_of_decodes_pays_its_share_of_the_fill),
    TEST(attention_runs_once_per_sequence_and_gathers_its_keys),
    TEST(the_row_of_a_decoding_sequence_has_an_attention_rate_of_its_own),
    TEST(a_layer_in_one_kernel_pays_its_share_of_the_launches),
    TEST(a_fused_layer_is_the_sum_of_its_parts),
    TEST(row_shares_of_attention_add_up_to_the_whole),
    TEST(work_outside_the_calibration_is_marked),
    TEST(a_model_without_an_entry_of_its_width_is_marked),
    TEST(a_kernel_takes_at_least_a_nanosecond),
};
SUITE_MAIN("roofline", suite)

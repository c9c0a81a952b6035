/* Properties of the kernel-time forms for any shape: Appendix B of Agent.xpu v2, its extension, the
 * p-norm between them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/rng.h"
#include "sim/core/core.h"
#include "sim/core/kernels.h"
#include "tests/helpers/model.h"
#include "tests/helpers/suite.h"

#define INSTANCES 5000

static struct kernel_query random_query(struct rng *r, struct work_shape *w)
{
    bool dec = rng_below(r, 2) == 0;
    *w = dec ? model_decode(1 + rng_below(r, 32), 1 + rng_below(r, 8192))
             : model_prefill(2 + rng_below(r, 4000));
    struct kernel_query q = {.device = (uint8_t)rng_below(r, 3),
                             .op = (enum op_kind)rng_below(r, OP_KIND_COUNT),
                             .rows = w->rows,
                             .padded_rows = w->rows,
                             .shape = w};
    return q;
}

START_TEST(appendix_b_holds_in_the_roofline_form)
{
    struct model b;
    model_init(&b, "llama-3.1-8b", "roofline");
    struct rng r;
    rng_init(&r, rng_key(1, RNG_TEST, 11, 0));
    int memory_bound = 0;
    for (int i = 0; i < INSTANCES; i++) {
        struct work_shape w;
        struct kernel_query q = random_query(&r, &w);
        struct kernel_cost c;
        hwmodel_kernel(&b.r.model, &q, &c);
        const struct soc_curve *p = &b.r.runtime[q.device]->many;
        double ridge = b.r.model.ops->ridge_flop_per_byte(&b.r.model, q.device);
        double t_s = (double)c.t_ns / 1e9;
        double intensity = c.flop / c.bytes;
        model_near(ridge, p->flop_per_s / p->bytes_per_s, 1e-15);
        /* T = max(W/P, Q/B); P(I) = min(P, B I); b(I) = min(B, P / I); the knee is at I* */
        double want_s = fmax(c.flop / p->flop_per_s, c.bytes / p->bytes_per_s);
        ck_assert_double_le(fabs(t_s - want_s), 0.501e-9); /* rounded once, to a nanosecond */
        model_near(c.flop / want_s, fmin(p->flop_per_s, p->bytes_per_s * intensity), 1e-12);
        model_near(c.bytes / want_s, fmin(p->bytes_per_s, p->flop_per_s / intensity), 1e-12);
        ck_assert((intensity < ridge) == (c.bytes / p->bytes_per_s > c.flop / p->flop_per_s));
        memory_bound += intensity < ridge;
    }
    ck_assert_int_gt(memory_bound, INSTANCES / 10);
    ck_assert_int_lt(memory_bound, INSTANCES * 9 / 10);
}
END_TEST

START_TEST(the_extended_form_without_its_terms_is_appendix_b)
{
    struct model b;
    model_init(&b, "llama-3.1-8b", "extended");
    for (int d = 0; d < 3; d++) {
        for (uint32_t k = 0; k < b.soc.devices[d].n_runtimes; k++) {
            struct soc_runtime *p = &b.soc.devices[d].runtimes[k];
            p->many.launch_s = p->one.launch_s = p->fill_rows = 0.0;
            p->attention_frac = 1.0;
        }
    }
    struct rng r;
    rng_init(&r, rng_key(1, RNG_TEST, 12, 0));
    for (int i = 0; i < INSTANCES; i++) {
        struct work_shape w;
        struct kernel_query q = random_query(&r, &w);
        struct kernel_cost x;
        struct kernel_cost y;
        hwmodel_kernel(&b.r.model, &q, &x);
        hwmodel_find("roofline")->kernel(&b.r.model, &q, &y);
        ck_assert_int_eq(x.t_ns, y.t_ns);
        ck_assert_double_eq(x.bytes, y.bytes);
        ck_assert_double_eq(x.flop, y.flop);
    }
}
END_TEST

START_TEST(the_p_norm_lies_between_the_larger_term_and_the_sum)
{
    struct model b;
    model_init(&b, "llama-3.1-8b", "extended");
    struct rng r;
    rng_init(&r, rng_key(1, RNG_TEST, 13, 0));
    for (int i = 0; i < INSTANCES; i++) {
        struct work_shape w;
        struct kernel_query q = random_query(&r, &w);
        struct soc_runtime *p = &b.soc.devices[q.device].runtimes[0];
        struct kernel_cost max;
        struct kernel_cost c[3];
        hwmodel_kernel(&b.r.model, &q, &max);
        static const double exponents[] = {1.0, 2.0, 100.0};
        for (int k = 0; k < 3; k++) {
            p->knee = exponents[k];
            hwmodel_find("p-norm")->kernel(&b.r.model, &q, &c[k]);
        }
        /* (a^p + b^p)^(1/p) falls with p, from a + b (at most 2 max) to max (within 2^(1/100)) */
        ck_assert_int_ge(c[0].t_ns, c[1].t_ns);
        ck_assert_int_ge(c[1].t_ns, c[2].t_ns);
        ck_assert_int_ge(c[2].t_ns, max.t_ns);
        ck_assert_int_le(c[0].t_ns, 2 * max.t_ns);
        ck_assert_double_le((double)c[2].t_ns, 1.00696 * (double)max.t_ns + 1);
    }
}
END_TEST

START_TEST(more_rows_or_more_context_never_cost_less)
{
    static const char *const forms[] = {"extended", "roofline", "p-norm"};
    struct model b;
    for (int f = 0; f < 3; f++) {
        model_init(&b, "llama-3.2-3b", forms[f]);
        for (int d = 0; d < 3; d++) {
            int64_t before[OP_KIND_COUNT] = {0};
            for (uint32_t rows = 2; rows < 3000; rows += 37) {
                struct work_shape w = model_prefill(rows);
                for (int op = 0; op < OP_KIND_COUNT; op++) {
                    int64_t t = model_cost(&b, d, (enum op_kind)op, &w, rows, rows).t_ns;
                    ck_assert_int_ge(t, before[op]);
                    before[op] = t;
                }
            }
            int64_t last = 0;
            for (uint64_t context = 1; context < 9000; context += 61) {
                struct work_shape w = model_decode(1, context);
                int64_t t = model_cost(&b, d, OP_MHA, &w, 1, 1).t_ns;
                ck_assert_int_ge(t, last);
                last = t;
            }
        }
    }
}
END_TEST

/* Half of its time left: everything takes twice as long, up to rounding. Half of its rate left: in
 * the plain roofline a prefill of 512 rows is bound by compute and takes twice as long, one row by
 * memory and takes the same. */
START_TEST(a_reserve_of_time_slows_all_kernels_and_one_of_rate_those_bound_by_compute)
{
    struct work_shape prefill = model_prefill(512);
    struct work_shape decode = model_decode(1, 512);
    for (int form = 0; form < 2; form++) {
        struct model whole;
        struct model half;
        const char *name = form == 0 ? "extended" : "roofline";
        model_init(&whole, "llama-3.2-3b", name);
        model_init(&half, "llama-3.2-3b", name);
        soc_reserve(&half.soc.devices[MODEL_IGPU], form == 0 ? 0.5 : 0.0, form == 0 ? 0.0 : 0.5);
        int64_t a = model_cost(&whole, MODEL_IGPU, OP_FFN, &prefill, 512, 512).t_ns;
        int64_t b = model_cost(&half, MODEL_IGPU, OP_FFN, &prefill, 512, 512).t_ns;
        ck_assert_int_le(llabs(b - 2 * a), 2);
        a = model_cost(&whole, MODEL_IGPU, OP_FFN, &decode, 1, 1).t_ns;
        b = model_cost(&half, MODEL_IGPU, OP_FFN, &decode, 1, 1).t_ns;
        ck_assert_int_le(llabs(b - (form == 0 ? 2 : 1) * a), 2);
        ck_assert_int_eq(model_cost(&whole, MODEL_NPU, OP_FFN, &decode, 1, 1).t_ns,
                         model_cost(&half, MODEL_NPU, OP_FFN, &decode, 1, 1).t_ns);
    }
}
END_TEST

/* Llama 3.2 3B is 3072 wide: a width fill of 3072 columns halves the rate of its matrix products,
 * and so doubles what compute takes of a long prefill; one row does not feel it. */
START_TEST(a_width_fill_costs_matrix_products_in_proportion)
{
    struct work_shape w = model_prefill(2048);
    struct work_shape d = model_decode(1, 512);
    struct model plain;
    struct model filled;
    model_init(&plain, "llama-3.2-3b", "extended");
    model_init(&filled, "llama-3.2-3b", "extended");
    struct soc_device *dev = &filled.soc.devices[MODEL_IGPU];
    struct soc_device *ref = &plain.soc.devices[MODEL_IGPU];
    for (uint32_t i = 0; i < dev->n_runtimes; i++) {
        dev->runtimes[i].width_fill = 3072;
        dev->runtimes[i].many.launch_s = ref->runtimes[i].many.launch_s = 0.0;
    }
    int64_t a = model_cost(&plain, MODEL_IGPU, OP_FFN, &w, 2048, 2048).t_ns;
    int64_t b = model_cost(&filled, MODEL_IGPU, OP_FFN, &w, 2048, 2048).t_ns;
    ck_assert_int_le(llabs(b - 2 * a), 2);
    ck_assert_int_eq(model_cost(&plain, MODEL_IGPU, OP_FFN, &d, 1, 1).t_ns,
                     model_cost(&filled, MODEL_IGPU, OP_FFN, &d, 1, 1).t_ns);
}
END_TEST

/* The device has kernels of 256 rows. A runtime states its own, 0 for any, and one that states none
 * after it has the device's again. */
START_TEST(a_runtime_without_static_shapes_has_the_devices)
{
    struct model b;
    model_init(&b, "llama-3.1-8b", "extended");
    const uint32_t *rows = &b.r.machine.devices[MODEL_NPU].chunk_rows;
    struct soc_runtime silent = *b.r.runtime[MODEL_NPU];
    silent.chunk_rows_own = false;
    struct soc_runtime own = silent;
    own.chunk_rows_own = true;
    own.chunk_rows = 128;
    struct soc_runtime any = own;
    any.chunk_rows = 0;
    roofline_set_runtime(&b.r, MODEL_NPU, &own);
    ck_assert_uint_eq(*rows, 128);
    roofline_set_runtime(&b.r, MODEL_NPU, &silent);
    ck_assert_uint_eq(*rows, 256);
    roofline_set_runtime(&b.r, MODEL_NPU, &any);
    ck_assert_uint_eq(*rows, 0);
}
END_TEST

/* Llama 3.1 8B has an 8-bit KV. A pair is 4 x 32 x 128 = 16384 flop, a key 2 x 8 x 128 = 2048 B,
 * and a row's queries and outputs 2 x 2 x 4096 = 16384 B. With a window of 4096 keys 128 rows of a
 * prompt have 128 x 4096 pairs = 8.589934592 GFLOP instead of 128 x 129 / 2 = 8256 pairs. They read
 * 4096 keys, 8388608 B. Three sequences that decode have 3 x 4096 pairs and read as many keys. A
 * context beyond the window counts whole. */
START_TEST(a_window_is_attended_to_whole)
{
    struct model b;
    model_init(&b, "llama-3.1-8b", "extended");
    struct soc_runtime whole = *b.r.runtime[MODEL_NPU];
    whole.pad_attention = false;
    struct soc_runtime own = whole;
    whole.window = 4096;
    struct work_shape prompt = model_prefill(128);
    struct work_shape decode = model_decode(3, 200);
    struct work_shape beyond = model_decode(1, 5000);
    roofline_set_runtime(&b.r, MODEL_NPU, &own);
    struct kernel_cost c = model_cost(&b, MODEL_NPU, OP_MHA, &prompt, 128, 128);
    struct kernel_cost long_one = model_cost(&b, MODEL_NPU, OP_MHA, &beyond, 1, 1);
    model_near(c.flop, 8256.0 * 16384.0, 1e-12);
    roofline_set_runtime(&b.r, MODEL_NPU, &whole);
    c = model_cost(&b, MODEL_NPU, OP_MHA, &prompt, 128, 128);
    model_near(c.flop, 8589934592.0, 1e-12);
    model_near(c.bytes, 8388608.0 + 128.0 * 16384.0, 1e-12);
    c = model_cost(&b, MODEL_NPU, OP_MHA, &decode, 3, 3);
    model_near(c.flop, 3.0 * 4096.0 * 16384.0, 1e-12);
    model_near(c.bytes, 3.0 * 8388608.0 + 3.0 * 16384.0, 1e-12);
    c = model_cost(&b, MODEL_NPU, OP_MHA, &beyond, 1, 1);
    ck_assert_int_eq(c.t_ns, long_one.t_ns);
    model_near(c.bytes, 5000.0 * 2048.0 + 16384.0, 1e-12);
}
END_TEST

/* The table has the factors 2 at 16 rows and 1 at 256. At 64 rows, half way in ln rows, the factor
 * is 1.5. At 1 and at 4096 rows it is that of the end. */
START_TEST(a_table_scales_by_interpolated_factors)
{
    struct model plain;
    struct model t;
    model_init(&plain, "llama-3.2-3b", "extended");
    model_init(&t, "llama-3.2-3b", "table");
    struct soc_device *dev = &t.soc.devices[MODEL_IGPU];
    for (uint32_t i = 0; i < dev->n_runtimes; i++) {
        dev->runtimes[i].table = (struct soc_table){2, {16, 256}, {2, 1}};
    }
    static const struct {
        uint32_t rows;
        double factor;
    } at[] = {{1, 2}, {16, 2}, {64, 1.5}, {256, 1}, {4096, 1}};
    for (int i = 0; i < 5; i++) {
        struct work_shape w = model_prefill(at[i].rows);
        double a = (double)model_cost(&plain, MODEL_IGPU, OP_FFN, &w, at[i].rows, at[i].rows).t_ns;
        double b = (double)model_cost(&t, MODEL_IGPU, OP_FFN, &w, at[i].rows, at[i].rows).t_ns;
        ck_assert_double_eq_tol(b, a * at[i].factor, 2.0);
        a = (double)model_cost(&plain, MODEL_NPU, OP_FFN, &w, at[i].rows, at[i].rows).t_ns;
        b = (double)model_cost(&t, MODEL_NPU, OP_FFN, &w, at[i].rows, at[i].rows).t_ns;
        ck_assert_double_eq(a, b); /* no table: the extended form */
    }
}
END_TEST

/* Llama 3.2 3B, QKV of one row: rotary embedding and norm move 2 (2 x 3072 + 2 x (24 + 8) 128)
 * bytes more, and cost two launches; on another engine also two barriers. */
START_TEST(nonlinear_ops_apart_cost_launches_bytes_and_barriers)
{
    struct model fused;
    struct model apart;
    struct model away;
    model_init(&fused, "llama-3.2-3b", "extended");
    model_init(&apart, "llama-3.2-3b", "extended");
    model_init(&away, "llama-3.2-3b", "extended");
    roofline_unfuse(&apart.r, 0.0);
    roofline_unfuse(&away.r, 50e-6);
    struct work_shape w = model_decode(1, 512);
    struct kernel_cost a = model_cost(&fused, MODEL_IGPU, OP_QKV, &w, 1, 1);
    struct kernel_cost b = model_cost(&apart, MODEL_IGPU, OP_QKV, &w, 1, 1);
    struct kernel_cost c = model_cost(&away, MODEL_IGPU, OP_QKV, &w, 1, 1);
    double more = 2.0 * (2 * 3072 + 2 * (24 + 8) * 128);
    ck_assert_double_eq_tol(b.bytes - a.bytes, more, 1e-6);
    const struct soc_curve *one = &fused.r.runtime[MODEL_IGPU]->one;
    double extra_s = 2 * one->launch_s + more / one->bytes_per_s; /* memory-bound */
    ck_assert_double_eq_tol((double)(b.t_ns - a.t_ns) / 1e9, extra_s, 3e-9);
    ck_assert_double_eq_tol((double)(c.t_ns - b.t_ns) / 1e9, 100e-6, 3e-9);
}
END_TEST

START_TEST(forms_are_found_by_name)
{
    const char *const *names = hwmodel_names();
    for (int i = 0; names[i] != NULL; i++) {
        ck_assert(i == 0 || strcmp(names[i - 1], names[i]) < 0);
        ck_assert_str_eq(hwmodel_find(names[i])->name, names[i]);
    }
    ck_assert_ptr_null(hwmodel_find("roof"));
}
END_TEST

/* Rows choose experts, padding does not: with 2 of 8 experts a row, R rows touch 1 - (3/4)^R of
 * them. At the same padded size the FFN of 64 rows reads more than that of one by these experts'
 * three matrices only. */
START_TEST(experts_are_read_once_if_a_row_chose_them)
{
    struct model m;
    model_init(&m, "mixtral-8x7b", "extended");
    ck_assert_uint_eq(m.llm.n_experts, 8);
    ck_assert_uint_eq(m.llm.experts_per_token, 2);
    double all = 8.0 * 3.0 * m.llm.hidden * m.llm.ffn_hidden * m.llm.body_bytes_per_weight;
    struct work_shape w = model_prefill(64);
    double one = model_cost(&m, MODEL_IGPU, OP_FFN, &w, 1, 64).bytes;
    for (uint32_t rows = 2; rows <= 64; rows *= 2) {
        double more = model_cost(&m, MODEL_IGPU, OP_FFN, &w, rows, 64).bytes - one;
        model_near(more, all * (0.75 - pow(0.75, rows)), 1e-9);
    }
    /* and what one row computes: the projection of attention and two experts' matrices */
    struct kernel_cost c = model_cost(&m, MODEL_IGPU, OP_FFN, &w, 64, 64);
    double weights = (double)m.llm.heads * m.llm.head_dim * m.llm.hidden +
                     2.0 * 3.0 * m.llm.hidden * m.llm.ffn_hidden;
    model_near(c.flop, 64.0 * 2.0 * weights, 1e-9);
}
END_TEST

/* An op in chunks of 256 rows, or of 4: each chunk costs what that many rows of it cost, the last
 * one, padded, what the rest costs; also where rows choose experts. One row is a kernel of its own,
 * and attention is never cut. */
START_TEST(an_op_in_chunks_costs_its_chunks)
{
    struct model m;
    model_init(&m, _i == 0 ? "llama-3.1-8b" : "mixtral-8x7b", "extended");
    static const enum op_kind ops[] = {OP_QKV, OP_FFN, OP_MHA};
    uint32_t chunk = _i == 0 ? 256 : 4; /* four rows do not touch all experts */
    struct work_shape w = model_prefill(1000);
    for (int i = 0; i < 3; i++) {
        for (uint32_t rows = 1; rows <= 1000; rows += 37) {
            struct kernel_run k;
            kernel_run_fill(&m.r.model, &w, ops[i], MODEL_IGPU, 0, rows, chunk, 0, &k);
            bool cut = ops[i] != OP_MHA && rows > 1;
            uint32_t n = cut ? (rows + chunk - 1) / chunk : 1;
            uint32_t rest = rows - (n - 1) * chunk;
            ck_assert_uint_eq(k.n, n);
            struct kernel_cost whole = model_cost(&m, MODEL_IGPU, ops[i], &w, chunk, chunk);
            struct kernel_cost tail =
                model_cost(&m, MODEL_IGPU, ops[i], &w, rest, cut ? chunk : rest);
            if (n > 1) {
                ck_assert_int_eq(k.full.t_ns, whole.t_ns);
                model_near(k.full.bytes, whole.bytes, 1e-12);
            }
            ck_assert_int_eq(k.last.t_ns, tail.t_ns);
            model_near(k.last.bytes, tail.bytes, 1e-12);
            model_near(kernel_run_total_flop(&k), (n - 1) * whole.flop + tail.flop, 1e-12);
        }
    }
}
END_TEST

static bool same_cost(const struct kernel_cost *x, const struct kernel_cost *y)
{
    return x->t_ns == y->t_ns && x->load_ns == y->load_ns && x->bytes == y->bytes &&
           x->flop == y->flop && x->outside == y->outside;
}

/* Every form has a context_limit and must keep its promise: other keys, pairs and logits change
 * nothing of an op without attention, and neither does a context on the same side of the limit. */
START_TEST(ops_without_attention_cost_the_same_whatever_the_context)
{
    for (const char *const *name = hwmodel_names(); *name != NULL; name++) {
        struct model b;
        model_init(&b, "llama-3.1-8b", *name);
        ck_assert(b.r.model.ops->context_limit != NULL);
        struct rng r;
        rng_init(&r, rng_key(1, RNG_TEST, 22, 0));
        for (int i = 0; i < INSTANCES; i++) {
            struct work_shape w;
            struct kernel_query q = random_query(&r, &w);
            if (q.op == OP_MHA || q.op == OP_LAYER) {
                continue;
            }
            struct kernel_cost x;
            struct kernel_cost y;
            uint32_t limit = b.r.model.ops->context_limit(&b.r.model, q.device);
            hwmodel_kernel(&b.r.model, &q, &x);
            w.max_context_tokens = w.max_context_tokens > limit ? UINT32_MAX : 1;
            w.attn_pairs = 7 * w.attn_pairs + 3;
            w.kv_read_tokens *= 5;
            w.logit_rows += 2;
            hwmodel_kernel(&b.r.model, &q, &y);
            ck_assert(same_cost(&x, &y));
        }
    }
}
END_TEST

/* Returns the time of the straight parts alone. */
static double floor_s(const struct kernel_floor *f, const struct kernel_query *q)
{
    const struct work_shape *w = q->shape;
    double rows = q->padded_rows;
    double compute_s = f->row_s * fmax(rows, f->rows_min) + f->pair_s * (double)w->attn_pairs;
    double bytes = f->bytes + f->row_bytes * rows + f->key_bytes * (double)w->kv_read_tokens;
    return f->fixed_s + fmax(compute_s, bytes / f->bytes_per_s);
}

/* With factors on both sides of 1, and the least of them between the ends. */
static void bend(struct model *b)
{
    for (uint32_t d = 0; d < b->soc.machine.n_devices; d++) {
        for (uint32_t k = 0; k < b->soc.devices[d].n_runtimes; k++) {
            b->soc.devices[d].runtimes[k].table =
                (struct soc_table){4, {1, 2, 64, 512}, {1.5, 1.2, 0.7, 0.9}};
        }
    }
}

START_TEST(no_kernel_is_below_its_floor_and_straight_ones_are_on_it)
{
    static const char *const names[] = {"roofline", "extended", "p-norm", "table"};
    bool straight = _i >= 4; /* nothing is filled, padded, exchanged or read again */
    const char *form = names[_i % 4];
    struct model b;
    model_init(&b, "llama-3.1-8b", form);
    bend(&b);
    for (uint32_t d = 0; d < 3 && straight; d++) {
        for (uint32_t k = 0; k < b.soc.devices[d].n_runtimes; k++) {
            struct soc_runtime *p = &b.soc.devices[d].runtimes[k];
            p->fill_rows = p->width_fill = 0.0;
            p->min_rows = 0;
            p->attention_frac = p->decode_attention_frac = 1.0;
            p->pad_attention = false;
        }
    }
    struct rng r;
    rng_init(&r, rng_key(1, RNG_TEST, 14, (uint64_t)_i));
    int on_it = 0;
    for (int i = 0; i < INSTANCES; i++) {
        struct work_shape w;
        struct kernel_query q = random_query(&r, &w);
        if (straight) { /* one sequence, of 64 rows: where the table has its least factor */
            w = model_prefill(64);
            q.rows = q.padded_rows = 64;
        }
        struct kernel_floor f;
        struct kernel_cost c;
        b.r.model.ops->floor(&b.r.model, q.device, q.op, q.padded_rows == 1, &f);
        hwmodel_kernel(&b.r.model, &q, &c);
        double least_ns = floor_s(&f, &q) * 1e9;
        ck_assert_msg(least_ns <= (double)c.t_ns + 0.501,
                      "%s, device %d, op %d, %u rows: %lld ns, "
                      "floor %.3f",
                      form, q.device, q.op, q.rows, (long long)c.t_ns, least_ns);
        on_it += least_ns >= (double)c.t_ns - 0.501;
    }
    ck_assert(!straight || strcmp(form, "p-norm") == 0 || on_it == INSTANCES);
}
END_TEST

/* A static graph of P rows does the same for r of them as for P; and an array that is not filled
 * takes time and moves no bytes. In each form, also where two cards share a layer; the factors of
 * a table's rows differ most where these are few. */
START_TEST(padding_is_paid_as_rows_and_filling_moves_no_bytes)
{
    struct model b;
    struct rng r;
    static const char *const forms[] = {"extended", "p-norm", "roofline", "table"};
    model_init(&b, "llama-3.1-8b", forms[_i]);
    rng_init(&r, rng_key(1, RNG_TEST, 23, (uint64_t)_i));
    for (int i = 0; i < INSTANCES; i++) {
        static const enum op_kind ops[] = {OP_QKV, OP_FFN, OP_HEAD};
        struct work_shape w = model_prefill(2 + rng_below(&r, 300));
        struct kernel_query q = {.device = (uint8_t)rng_below(&r, 3),
                                 .op = ops[rng_below(&r, 3)],
                                 .rows = w.rows,
                                 .padded_rows = w.rows + rng_below(&r, 300),
                                 .shape = &w};
        struct soc_runtime *p = &b.soc.devices[q.device].runtimes[0];
        struct kernel_cost few, all, filled;
        b.r.exchange[q.device] = (struct soc_exchange){1 + rng_below(&r, 3), 25e-6, 5e9};
        ck_assert_ptr_eq(b.r.runtime[q.device], p);
        p->min_rows = 0;
        p->table = (struct soc_table){2, {16, 700}, {3, 1}};
        hwmodel_kernel(&b.r.model, &q, &few);
        struct kernel_query whole = q;
        whole.rows = q.padded_rows;
        hwmodel_kernel(&b.r.model, &whole, &all);
        ck_assert(few.t_ns == all.t_ns && few.bytes == all.bytes && few.flop == all.flop);
        p->min_rows = q.padded_rows + rng_below(&r, 300);
        hwmodel_kernel(&b.r.model, &q, &filled);
        ck_assert(filled.t_ns >= few.t_ns && filled.bytes == few.bytes);
    }
}
END_TEST

/* With bytes Q and bandwidth B a kernel of t loads for max((1 - c) t, Q / B) of it. Its average
 * demand never falls short of Q / t, and while it loads it draws B at most. Prompts shorten their
 * loading. Decode waits for memory all the time, so it loads nearly all the time. */
START_TEST(a_kernel_loads_first_and_no_faster_than_its_device_can)
{
    struct model b;
    model_init(&b, "llama-3.1-8b", "extended");
    struct rng r;
    rng_init(&r, rng_key(1, RNG_TEST, 22, 0));
    int shorter = 0;
    int bound = 0;
    for (int i = 0; i < INSTANCES; i++) {
        struct work_shape w;
        struct kernel_query q = random_query(&r, &w);
        struct kernel_cost whole;
        struct kernel_cost c;
        b.r.compute_only_frac[q.device] = 0.0;
        hwmodel_kernel(&b.r.model, &q, &whole);
        ck_assert_int_eq(whole.load_ns, whole.t_ns);
        double only = rng_uniform(&r);
        b.r.compute_only_frac[q.device] = only;
        hwmodel_kernel(&b.r.model, &q, &c);
        const struct soc_runtime *p = b.r.runtime[q.device];
        double bytes_per_s = q.padded_rows > 1 ? p->many.bytes_per_s : p->one.bytes_per_s;
        double want_ns = fmax((1.0 - only) * (double)c.t_ns, c.bytes / bytes_per_s * 1e9);
        ck_assert(c.t_ns == whole.t_ns && c.bytes == whole.bytes);
        ck_assert_double_eq_tol((double)c.load_ns, fmin(ceil(want_ns), (double)c.t_ns), 1.0);
        ck_assert(c.load_ns >= 1 && c.load_ns <= c.t_ns);
        shorter += c.load_ns < c.t_ns;
        bound += (double)c.load_ns > (1.0 - only) * (double)c.t_ns + 1.0;
    }
    ck_assert_int_gt(shorter, INSTANCES / 2);
    ck_assert_int_gt(bound, INSTANCES / 10);
}
END_TEST

/* QKV of Llama 3.1 8B has 25.2 M weights: 13 MB and more at 4 bits. Measured in 10 us it had at
 * most what the DDR moves in that time from there; measured in 10 ms all of it. */
START_TEST(a_measured_kernel_draws_no_more_than_the_ddr_has)
{
    struct model b;
    model_init(&b, "llama-3.1-8b", "per-op");
    const struct machine *m = b.r.model.machine;
    struct work_shape w = model_decode(1, 100);
    struct kernel_cost formula = model_cost(&b, MODEL_CPU, OP_QKV, &w, 1, 1);
    struct soc_ops *ops = &b.soc.devices[MODEL_CPU].runtimes[0].ops;
    ck_assert(!ops->given);
    *ops = (struct soc_ops){.given = true, .qkv = {.n = 1, .rows = {1}, .s = {10e-6}}};
    (void)snprintf(ops->model, sizeof ops->model, "%s", b.llm.name);
    struct kernel_cost fast = model_cost(&b, MODEL_CPU, OP_QKV, &w, 1, 1);
    ck_assert_int_eq(fast.t_ns, 10000);
    model_near(fast.bytes, m->ddr_peak_bytes_per_s * 10e-6, 1e-12);
    ck_assert_double_eq(fast.flop, formula.flop);
    ops->qkv.s[0] = 10e-3;
    struct kernel_cost slow = model_cost(&b, MODEL_CPU, OP_QKV, &w, 1, 1);
    ck_assert_double_gt(slow.bytes, 13e6 * 0.9);
    ck_assert_double_eq(slow.bytes, formula.bytes);
}
END_TEST

/* A decode's head waits for memory on the iGPU, which reads 62 of 89.6 GB/s. Measured in half of
 * the time it would read 124, so it has what the DDR moves. */
START_TEST(a_kernel_of_a_table_draws_no_more_than_the_ddr_has)
{
    struct model b;
    model_init(&b, "llama-3.1-8b", "table");
    struct work_shape w = model_decode(1, 100);
    double modelled_ns = (double)model_cost(&b, MODEL_IGPU, OP_HEAD, &w, 1, 1).t_ns;
    b.soc.devices[MODEL_IGPU].runtimes[0].table = (struct soc_table){1, {1}, {0.5}};
    struct kernel_cost fast = model_cost(&b, MODEL_IGPU, OP_HEAD, &w, 1, 1);
    model_near((double)fast.t_ns, 0.5 * modelled_ns, 1e-6);
    model_near(fast.bytes, 89.6 * (double)fast.t_ns, 1e-12);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(a_measured_kernel_draws_no_more_than_the_ddr_has),
    TEST(a_kernel_of_a_table_draws_no_more_than_the_ddr_has),
    LOOP(padding_is_paid_as_rows_and_filling_moves_no_bytes, 4),
    TEST(a_kernel_loads_first_and_no_faster_than_its_device_can),
    TEST(appendix_b_holds_in_the_roofline_form),
    LOOP(no_kernel_is_below_its_floor_and_straight_ones_are_on_it, 8),
    TEST(ops_without_attention_cost_the_same_whatever_the_context),
    TEST(the_extended_form_without_its_terms_is_appendix_b),
    TEST(the_p_norm_lies_between_the_larger_term_and_the_sum),
    TEST(more_rows_or_more_context_never_cost_less),
    TEST(experts_are_read_once_if_a_row_chose_them),
    LOOP(an_op_in_chunks_costs_its_chunks, 2),
    TEST(a_reserve_of_time_slows_all_kernels_and_one_of_rate_those_bound_by_compute),
    TEST(a_width_fill_costs_matrix_products_in_proportion),
    TEST(a_runtime_without_static_shapes_has_the_devices),
    TEST(a_window_is_attended_to_whole),
    TEST(a_table_scales_by_interpolated_factors),
    TEST(nonlinear_ops_apart_cost_launches_bytes_and_barriers),
    TEST(forms_are_found_by_name),
};
SUITE_MAIN("forms", suite)

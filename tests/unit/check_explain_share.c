/* Time of one request's tokens in a pass of several if they were by themselves, kernel by kernel;
 * and who is charged for the rest. */
#include <stdlib.h>
#include <string.h>

#include "sim/metrics/explain_impl.h"
#include "tests/helpers/model.h"
#include "tests/helpers/suite.h"

/* An op of so many rows: whole chunks and what is left, which pays for a whole one; attention and a
 * row alone have one kernel of their own, and a graph always has chunks. */
static int64_t op_ns(const struct model *m, const struct explain_launch *g, enum op_kind op,
                     const struct work_shape *w)
{
    int64_t ns = 0;
    uint32_t left = op == OP_HEAD ? w->logit_rows : w->rows;
    bool chunks = g->chunk_rows > 0 && op != OP_MHA && (left > 1 || g->graph > 0);
    while (left > 0) {
        uint32_t rows = chunks && left > g->chunk_rows ? g->chunk_rows : left;
        ns += model_cost(m, g->device, op, w, rows, chunks ? g->chunk_rows : rows).t_ns;
        left -= rows;
    }
    return ns;
}

/* Returns the work of a segment. Each of its tokens makes pairs with all that came before,
 * causally. */
static struct work_shape shape(const struct segment *s)
{
    uint64_t pairs = 0;
    for (uint32_t i = 0; i < s->n_tokens; i++) {
        pairs += s->first_token + i + 1;
    }
    return (struct work_shape){
        .rows = s->n_tokens,
        .prefill_rows = s->role == SEGMENT_PREFILL ? s->n_tokens : 0,
        .sequences = 1,
        .logit_rows = s->role == SEGMENT_VERIFY ? s->n_tokens
                      : s->role == SEGMENT_DECODE
                          ? 1
                          : s->first_token + s->n_tokens == s->request->input_tokens,
        .attn_pairs = pairs,
        .kv_read_tokens = s->first_token + s->n_tokens,
        .max_context_tokens = s->first_token + s->n_tokens,
    };
}

START_TEST(a_share_is_that_of_its_own_kernels)
{
    static const uint32_t chunks[] = {0, 64, 64, 100};
    static const uint8_t graphs[] = {0, 0, 1, 0};
    struct model m;
    model_init(&m, "llama-3.1-8b", "extended");
    struct request requests[4];
    memset(requests, 0, sizeof requests);
    struct segment v[4] = {
        {.request = &requests[0], .role = SEGMENT_PREFILL, .first_token = 40, .n_tokens = 150},
        {.request = &requests[1], .role = SEGMENT_DECODE, .first_token = 700, .n_tokens = 1},
        {.request = &requests[2], .role = SEGMENT_PREFILL, .first_token = 0, .n_tokens = 65},
        {.request = &requests[3], .role = SEGMENT_VERIFY, .first_token = 500, .n_tokens = 6},
    };
    for (uint32_t i = 0; i < 4; i++) {
        requests[i].id = i;
        requests[i].input_tokens = i == 2 ? 65 : 400;
    }
    struct pass p;
    memset(&p, 0, sizeof p);
    p.segments = v;
    p.n_segments = 4;
    struct work_shape own[4];
    for (uint32_t i = 0; i < 4; i++) {
        own[i] = shape(&v[i]);
        p.shape.rows += own[i].rows;
        p.shape.prefill_rows += own[i].prefill_rows;
        p.shape.sequences++;
        p.shape.logit_rows += own[i].logit_rows;
        p.shape.attn_pairs += own[i].attn_pairs;
        p.shape.kv_read_tokens += own[i].kv_read_tokens;
        p.shape.max_context_tokens = own[i].max_context_tokens > p.shape.max_context_tokens
                                         ? own[i].max_context_tokens
                                         : p.shape.max_context_tokens;
    }
    ck_assert_uint_eq(p.shape.logit_rows, 8); /* each token of a draft is looked at */
    const struct hwmodel *models[] = {&m.r.model};
    struct explain x = {.models = models, .n_models = 1};
    for (int c = 0; c < 4; c++) {
        struct explain_launch launches[2] = {
            {.device = MODEL_NPU, .chunk_rows = chunks[c], .graph = graphs[c]},
            {.device = MODEL_IGPU, .chunk_rows = 0, .graph = 0}};
        struct explain_work works[2] = {{.launch = &launches[0]}, {.launch = &launches[1]}};
        works[0].ns[OP_QKV] = 1000000;
        works[0].ns[OP_MHA] = 3000000;
        works[0].ns[OP_HEAD] = 700000;
        works[1].ns[OP_FFN] = 9000000;
        int64_t got[4] = {0, 0, 0, 0};
        explain_share(&x, &p, works, 2, got);
        for (uint32_t i = 0; i < 4; i++) {
            int64_t want = 0;
            for (int w = 0; w < 2; w++) {
                for (int op = 0; op < OP_KIND_COUNT; op++) {
                    int64_t all = op_ns(&m, &launches[w], (enum op_kind)op, &p.shape);
                    int64_t mine = op_ns(&m, &launches[w], (enum op_kind)op, &own[i]);
                    double part = all > 0 ? fmin(1.0, (double)mine / (double)all) : 0.0;
                    want += (int64_t)((double)works[w].ns[op] * part + 0.5);
                }
            }
            ck_assert_msg(llabs(got[i] - want) <= 1, "chunks of %u, segment %u: %lld, not %lld",
                          chunks[c], i, (long long)got[i], (long long)want);
            ck_assert_int_gt(got[i], 0);
        }
    }
    /* Alone, or where no model is known, all that was done is its own. */
    struct explain_launch g = {.device = MODEL_NPU};
    struct explain_work work = {.launch = &g};
    int64_t got[3] = {0, 0, 0};
    work.ns[OP_QKV] = 5;
    work.ns[OP_HEAD] = 7;
    p.n_segments = 1;
    explain_share(&x, &p, &work, 1, got);
    ck_assert(got[0] == 12 && got[1] == 0);
    p.n_segments = 3;
    x.n_models = 0;
    explain_share(&x, &p, &work, 1, got);
    ck_assert(got[0] == 24 && got[1] == 12 && got[2] == 12);
}
END_TEST

/* 100 ns of the second of four: 10, 30 and 20 of the others charge 16.7, 50 and 33.3, in whole ns
 * that add up. */
START_TEST(the_rest_is_charged_to_the_others)
{
    struct request requests[4];
    struct segment v[4];
    memset(requests, 0, sizeof requests);
    memset(v, 0, sizeof v);
    for (uint32_t i = 0; i < 4; i++) {
        requests[i].id = 10 + i;
        requests[i].cls = i == 3 ? REQUEST_CLASS_PROACTIVE : REQUEST_CLASS_REACTIVE;
        v[i].request = &requests[i];
    }
    struct pass p;
    memset(&p, 0, sizeof p);
    p.segments = v;
    p.n_segments = 4;
    struct explain_live live;
    memset(&live, 0, sizeof live);
    static const int64_t own[] = {10, 77, 30, 20};
    explain_share_charge(&live, &p, 1, 100, own);
    ck_assert_uint_eq(live.n_in_way, 3);
    static const uint32_t ids[] = {10, 12, 13};
    static const int64_t want[] = {16, 50, 34};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(live.in_way[i].request_id, ids[i]);
        ck_assert_int_eq(live.in_way[i].shared_sum_ns, want[i]);
        ck_assert_int_eq(live.in_way[i].cls,
                         i == 2 ? REQUEST_CLASS_PROACTIVE : REQUEST_CLASS_REACTIVE);
    }
    explain_share_charge(&live, &p, 1, 0, own);  /* nothing to charge: nobody is in the way */
    explain_share_charge(&live, &p, 3, 60, own); /* 10, 77 and 30 of 117: 5, 39 and 16 */
    ck_assert_uint_eq(live.n_in_way, 4);
    ck_assert_int_eq(live.in_way[0].shared_sum_ns, 16 + 5);
    ck_assert_int_eq(live.in_way[1].shared_sum_ns, 50 + 16);
    ck_assert_int_eq(live.in_way[2].shared_sum_ns, 34);
    ck_assert_int_eq(live.in_way[3].shared_sum_ns, 39);
    free(live.in_way);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("share"),
    TEST(a_share_is_that_of_its_own_kernels),
    TEST(the_rest_is_charged_to_the_others),
};
SUITE_MAIN("shares of a pass", suite)

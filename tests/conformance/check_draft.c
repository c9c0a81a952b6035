/* A model of the run drafts for another, by hand. A pass of the first model takes 4 ms for
 * attention, and one of the draft model 2 ms. Other kernels take 1 ns each. */
#include <errno.h>
#include <string.h>

#include "tests/helpers/script.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/two_models.h"

static struct scenario sc;
static struct two_models two;
static struct script x;

static void setup(void)
{
    memset(&x, 0, sizeof x);
    scenario_init(&sc);
    two_models_init(&sc, &two);
    scenario_cost(&sc, -1, OP_MHA, 4, 0, 0);
    scenario_cost(&two.other, -1, OP_MHA, 2, 0, 0);
    sc.llm.kv_bytes_per_token = 1e6;
    two.other.llm.kv_bytes_per_token = 5e5;
    sc.setup.draft_model = 1;
}

static void teardown(void)
{
    two_models_fini(&sc);
}

/* The first verification accepts both drafts, the second none. */
static uint32_t accept(const void *params, uint64_t seed, const struct request *r,
                       const struct trace_text *text, uint64_t step, uint32_t drafted)
{
    (void)text;
    (void)params;
    (void)seed;
    (void)r;
    return step == 0 ? drafted : 0;
}

/* The segments in the order of their forming: role, tokens asked for, and the tokens that each must
 * have. */
static const struct stage {
    enum segment_role role;
    uint32_t asks, first_token, n_tokens;
} stages[] = {
    {SEGMENT_PREFILL, 64, 0, 64},
    {SEGMENT_DRAFT, 0, 0, 65}, /* the prompt and the first token: nothing is read yet */
    {SEGMENT_DRAFT, 0, 65, 1}, /* its own draft */
    {SEGMENT_VERIFY, 3, 64, 3},
    {SEGMENT_DRAFT, 0, 66, 2}, /* its second draft was right, so one token is new */
    {SEGMENT_DRAFT, 0, 68, 1},
    {SEGMENT_VERIFY, 3, 67, 3},
    {SEGMENT_DRAFT, 0, 68, 1}, /* both were wrong: the token in their place is new */
    {SEGMENT_DECODE, 1, 68, 1},
};

static int form(struct sched *s, const struct request *r, enum segment_role role, uint32_t n,
                struct pass **p)
{
    struct segment g = {.request = r, .role = role, .n_tokens = n};
    return sched_pass_form(s, &(struct pass_spec){.segments = &g, .n_segments = 1}, p);
}

static void by_stages(struct sched *s, struct script *y)
{
    const struct request *r = y->request[0];
    if (r == NULL || r->pass != NULL) {
        return;
    }
    if (y->stage == 0) {
        y->rc[0] = form(s, r, SEGMENT_DRAFT, 0, &y->pass[0]);
    }
    const struct stage *g = &stages[y->stage++];
    ck_assert_int_eq(form(s, r, g->role, g->asks, &y->pass[0]), 0);
    const struct pass *p = y->pass[0];
    bool draft = g->role == SEGMENT_DRAFT;
    ck_assert_uint_eq(p->segments[0].first_token, g->first_token);
    ck_assert_uint_eq(p->segments[0].n_tokens, g->n_tokens);
    ck_assert_uint_eq(p->shape.model, draft);
    ck_assert_uint_eq(p->shape.rows, g->n_tokens);
    ck_assert_uint_eq(p->shape.kv_read_tokens, g->first_token + g->n_tokens);
    ck_assert_uint_eq(p->shape.logit_rows, g->role == SEGMENT_VERIFY ? 3 : 1);
    ck_assert_int_eq(script_launch(s, y->pass[0], IGPU, YIELD_PASS, NULL), 0);
}

static uint32_t kv_tokens; /* behind the last pass */

static void see_kv(struct sched *s, const struct pass *p)
{
    kv_tokens = p->segments[0].request->kv_tokens;
    script_ops.pass_done(s, p);
}

static int run(uint32_t output_tokens)
{
    static struct policy_ops watched;
    struct scenario_request q = {.cls = RT, .input_tokens = 64, .output_tokens = output_tokens};
    watched = script_ops;
    watched.pass_done = see_kv;
    x.step = by_stages;
    sc.setup.policy = &watched;
    sc.setup.policy_context = &x;
    sc.setup.accept = accept;
    return two_models_run(&sc, &q, (const uint8_t[]){0}, NULL, 1, false);
}

/* The prompt's pass gives 1 token, verifications 3 and 1, and the decode 1. That is four passes of
 * the first model and five of the draft model, each with QKV, FFN and head of 1 ns. */
START_TEST(drafts_are_passes_of_their_own_model)
{
    ck_assert_msg(run(6) == 0, "%s", sc.result.message);
    ck_assert(sc.result.audit.clean);
    ck_assert_int_eq(x.rc[0], -EINVAL); /* the prompt has not run */
    ck_assert_uint_eq(x.stage, sizeof stages / sizeof stages[0]);
    ck_assert_uint_eq(sc.records[0].generated, 6);
    int64_t begin = MS(4) + 3;
    ck_assert_int_eq(sc.records[0].first_token_ns, begin);
    int64_t verified = begin + 2 * (MS(2) + 3) + MS(4) + 3;
    ck_assert_int_eq(sc.records[0].token_ns[1], verified);
    ck_assert_int_eq(sc.records[0].token_ns[3], verified);
    ck_assert_int_eq(sc.records[0].finish_ns, 4 * (MS(4) + 3) + 5 * (MS(2) + 3));
}
END_TEST

/* One token is left, and the verification gives three. KV stays of the first token, which was its
 * first row, and of the last one, whose draft was right: 64 of the prompt and two. */
START_TEST(an_answer_that_ends_within_a_draft_has_no_kv_behind_it)
{
    ck_assert_msg(run(2) == 0, "%s", sc.result.message);
    ck_assert_uint_eq(sc.records[0].generated, 2);
    ck_assert_uint_eq(kv_tokens, 66);
}
END_TEST

/* A token takes 1 MB of the first model's KV and 0.5 of the draft's. So 1.5 GB next to the first
 * model's weights hold 1000 tokens, and 1500 without a draft model. */
START_TEST(drafts_have_kv_of_their_own)
{
    sc.machine.memory_bytes = 2e9;
    sc.machine.memory_usable_frac = 1.0;
    sc.llm.weight_bytes = 5e8;
    two.other.llm.weight_bytes = 1e8;
    sc.setup.kv_block_tokens = 1;
    ck_assert_msg(run(6) == 0, "%s", sc.result.message);
    ck_assert_uint_eq(sc.result.kv_capacity_tokens, 1000);
    teardown();
    setup();
    sc.machine.memory_bytes = 2e9;
    sc.machine.memory_usable_frac = 1.0;
    sc.llm.weight_bytes = 5e8;
    two.other.llm.weight_bytes = 1e8;
    sc.setup.kv_block_tokens = 1;
    sc.setup.draft_model = 0;
    (void)run(1);
    ck_assert_uint_eq(sc.result.kv_capacity_tokens, 1500);
}
END_TEST

/* The draft's weights stay in memory, although no request asks for that model. */
START_TEST(drafts_need_the_weights_of_their_model)
{
    sc.setup.weights_at_start = false;
    sc.machine.memory_bytes = 2e9;
    sc.llm.weight_bytes = 5e8;
    two.other.llm.weight_bytes = 5e8;
    ck_assert_msg(run(6) == 0, "%s", sc.result.message);
    ck_assert_uint_eq(sc.result.model_evictions, 0);
    teardown();
    setup();
    sc.machine.memory_bytes = 2e9;
    sc.llm.weight_bytes = two.other.llm.weight_bytes = 1.5e9;
    ck_assert_int_ne(run(6), 0);
    ck_assert_ptr_nonnull(strstr(sc.result.message, "does not fit"));
}
END_TEST

/* 2 GB without 1.5 GB of weights hold 333 tokens of 1.5 MB, for both models: 20 whole blocks of 16.
 * A request of 401 tokens would wait for memory that the draft's weights have, so it must be
 * refused. */
START_TEST(a_request_is_measured_beside_the_weights_that_draft)
{
    static const struct scenario_request q = {BE, 0, 400, 1, 0, 0};
    sc.machine.memory_bytes = 2e9;
    sc.machine.memory_usable_frac = 1.0;
    sc.llm.weight_bytes = 5e8;
    two.other.llm.weight_bytes = 1e9;
    x.step = script_serve;
    x.device = IGPU;
    sc.setup.policy = &script_ops;
    sc.setup.policy_context = &x;
    ck_assert_int_ne(two_models_run(&sc, &q, (const uint8_t[]){0}, NULL, 1, false), 0);
    ck_assert_ptr_nonnull(
        strstr(sc.result.message, "request 0 needs 401 KV tokens, the machine holds 320 "));
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = setup, .teardown = teardown),
    TEST(drafts_are_passes_of_their_own_model),
    TEST(an_answer_that_ends_within_a_draft_has_no_kv_behind_it),
    TEST(drafts_have_kv_of_their_own),
    TEST(drafts_need_the_weights_of_their_model),
    TEST(a_request_is_measured_beside_the_weights_that_draft),
};
SUITE_MAIN("draft", suite)

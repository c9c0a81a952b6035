/* Several passes of one prompt (SEGMENT_AHEAD), by hand. The tests ask three questions. Which pass
 * may run before which? In which order are they done? And what happens to them when one is
 * cancelled, memory is short, or the user leaves? QKV takes 4 ms on the NPU, attention 10 and the
 * head 1 on the CPU, and FFN 8 on the NPU. */
#include <errno.h>
#include <string.h>

#include "sim/metrics/explain.h"
#include "sim/metrics/metrics.h"
#include "tests/helpers/script.h"
#include "tests/helpers/suite.h"

static struct scenario sc;
static struct script x;

static void setup(void)
{
    memset(&x, 0, sizeof x);
    scenario_init(&sc);
    scenario_cost(&sc, -1, OP_QKV, 4, 0, 0);
    scenario_cost(&sc, -1, OP_MHA, 10, 0, 0);
    scenario_cost(&sc, -1, OP_FFN, 8, 0, 0);
    scenario_cost(&sc, -1, OP_HEAD, 1, 0, 0);
}

static void teardown(void)
{
    scenario_fini(&sc);
}

static int form(struct sched *s, enum segment_role role, uint32_t n, struct pass **p)
{
    struct segment g = {.request = x.request[0], .role = role, .n_tokens = n};
    return sched_pass_form(s, &(struct pass_spec){.segments = &g, .n_segments = 1}, p);
}

/* Launches one op of a pass. */
static int op(struct sched *s, struct pass *p, uint8_t device)
{
    struct launch_spec l = sched_launch_rest(s, p, device, YIELD_PASS);
    l.n_ops = 1;
    return sched_launch(s, &l, NULL);
}

static int run(void (*step)(struct sched *s, struct script *y), uint32_t input_tokens)
{
    struct scenario_request q = {RT, 0, input_tokens, 1, 0, 0};
    x.step = step;
    return script_run(&sc, &x, &q, 1);
}

static struct pass *ahead[3];

/* ---- what observers see ---- */

/* The plan of middle_first below, with two gaps in which nothing of the request is on a device.
 * From 12 to 15 its attention waits for the policy, and from 53 to 58 its head. Kernels take 51 of
 * the 59 ms. */
static void with_gaps(struct sched *s, struct script *y);

static double metric(const struct metric_list *list, const char *name)
{
    const struct metric *m = metric_list_find(list, name);
    ck_assert_msg(m != NULL, "%s", name);
    return m->value;
}

START_TEST(causes_and_waits_add_up)
{
    struct explain *why = explain_new(&sc.machine, EXPLAIN_ALL);
    struct metrics_options opt = metrics_options_default();
    struct metrics *m = metrics_new(&opt, &sc.machine);
    struct metric_list list = {0};
    sc.setup.observers[sc.setup.n_observers++] = explain_observer(why);
    sc.setup.observers[sc.setup.n_observers++] = metrics_observer(m);
    memset(ahead, 0, sizeof ahead);
    ck_assert_msg(run(with_gaps, 456) == 0, "%s", sc.result.message);
    ck_assert_int_eq(sc.records[0].first_token_ns, MS(59));
    const struct explanation *e = explain_find(why, 0);
    ck_assert_int_eq(e->ns[EXPLAIN_COMPUTE], MS(51));
    ck_assert_int_eq(e->ns[EXPLAIN_HELD], MS(8));
    ck_assert_int_eq(e->end_ns - e->arrival_ns, MS(59));
    metrics_collect(m, &list);
    ck_assert_double_eq_tol(metric(&list, "reactive.ttft_s.mean"), 0.059, 1e-9);
    ck_assert_double_eq_tol(metric(&list, "reactive.prefill_suspended_s.mean"), 0.008, 1e-9);
    metric_list_fini(&list);
    metrics_free(m);
    explain_free(why);
}
END_TEST

/* ---- what may run before what ---- */

/* The second chunk's QKV is first. Its attention has to wait for the first one's QKV, and not for
 * its attention. The head has to wait for all of the first chunk. */
static void early(struct sched *s, struct script *y)
{
    if (script_at(s, y, 0, 0)) {
        y->rc[0] = form(s, SEGMENT_AHEAD, 256, &ahead[0]); /* ahead of nothing */
        ck_assert_int_eq(form(s, SEGMENT_PREFILL, 256, &ahead[0]), 0);
        y->rc[1] = form(s, SEGMENT_PREFILL, 256, &ahead[1]); /* in a pass already */
        y->rc[2] = form(s, SEGMENT_AHEAD, 257, &ahead[1]);   /* too many */
        ck_assert_int_eq(form(s, SEGMENT_AHEAD, 256, &ahead[1]), 0);
        y->rc[3] = form(s, SEGMENT_AHEAD, 1, &ahead[2]); /* none is left */
        ck_assert_ptr_eq(y->request[0]->pass, ahead[0]);
        ck_assert_uint_eq(ahead[1]->segments[0].first_token, 256);
        ck_assert_int_eq(ahead[1]->segments[0].role, SEGMENT_PREFILL);
        ck_assert_uint_eq(ahead[0]->shape.logit_rows, 0);
        ck_assert_uint_eq(ahead[1]->shape.logit_rows, 1);
        ck_assert_uint_eq(ahead[1]->shape.attn_pairs, 256 * 256 + 256 * 257 / 2);
        struct launch_spec both = sched_launch_rest(s, ahead[1], CPU, YIELD_PASS);
        both.n_ops = 2;
        y->rc[4] = sched_launch(s, &both, NULL); /* its second op is attention */
        ck_assert_int_eq(op(s, ahead[1], NPU), 0);
    } else if (script_at(s, y, 1, 4)) {
        y->rc[5] = op(s, ahead[1], CPU);
        ck_assert_int_eq(op(s, ahead[0], NPU), 0);
    } else if (script_at(s, y, 2, 6)) {
        y->rc[6] = op(s, ahead[1], CPU); /* it runs, and has not ended */
    } else if (script_at(s, y, 3, 8)) {
        y->rc[7] = op(s, ahead[1], CPU);
    } else if (script_at(s, y, 4, 18)) {
        ck_assert_int_eq(op(s, ahead[1], NPU), 0);
        ck_assert_int_eq(op(s, ahead[0], CPU), 0);
    } else if (script_at(s, y, 5, 26)) {
        y->rc[8] = op(s, ahead[1], CPU); /* the head, while the first chunk has its FFN to do */
    } else if (script_at(s, y, 6, 28)) {
        ck_assert_int_eq(op(s, ahead[0], NPU), 0);
    } else if (script_at(s, y, 7, 36)) {
        ck_assert_ptr_eq(y->request[0]->pass, ahead[1]);
        ck_assert_uint_eq(y->request[0]->kv_tokens, 256);
        ck_assert_int_eq(op(s, ahead[1], CPU), 0);
    }
}

START_TEST(attention_and_head_wait_for_the_tokens_before)
{
    ck_assert_msg(run(early, 512) == 0, "%s", sc.result.message);
    static const int want[] = {-EINVAL, -EINVAL, -EINVAL, -EINVAL, -EBUSY,
                               -EBUSY,  -EBUSY,  0,       -EBUSY};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        ck_assert_msg(x.rc[i] == want[i], "%zu: %d", i, x.rc[i]);
    }
    ck_assert_int_eq(sc.records[0].first_token_ns, MS(37));
    ck_assert(sc.result.audit.clean);
}
END_TEST

/* ---- a pass that ends before those before it ---- */

struct step {
    double ms;
    int pass;
    uint8_t device;
};

/* Launches one op at each instant of the plan. */
static void follow(struct sched *s, struct script *y, const struct step *plan, uint32_t n)
{
    if (y->request[0] != NULL && ahead[0] == NULL) {
        ck_assert_int_eq(form(s, SEGMENT_PREFILL, 100, &ahead[0]), 0);
        ck_assert_int_eq(form(s, SEGMENT_AHEAD, 100, &ahead[1]), 0);
        ck_assert_int_eq(form(s, SEGMENT_AHEAD, 256, &ahead[2]), 0);
    }
    if (y->stage < n && script_at(s, y, y->stage, plan[y->stage].ms)) {
        const struct step *t = &plan[y->stage - 1];
        ck_assert_msg(op(s, ahead[t->pass], t->device) == 0, "step %u", y->stage - 1);
    }
}

static void with_gaps(struct sched *s, struct script *y)
{
    static const struct step plan[] = {{0, 0, NPU},  {4, 1, NPU},  {8, 2, NPU},  {15, 1, CPU},
                                       {25, 1, NPU}, {25, 2, CPU}, {35, 2, NPU}, {35, 0, CPU},
                                       {45, 0, NPU}, {58, 2, CPU}};
    follow(s, y, plan, sizeof plan / sizeof plan[0]);
}

/* There are three chunks, of 100, 100 and 256 tokens. The middle one has all its kernels at 30
 * and waits for the first, which has them at 50. Both are done then, and the last has its head
 * 50-51. */
static void middle_first(struct sched *s, struct script *y)
{
    static const struct step plan[] = {{0, 0, NPU},  {4, 1, NPU},  {8, 2, NPU},  {12, 1, CPU},
                                       {22, 1, NPU}, {22, 2, CPU}, {32, 2, NPU}, {32, 0, CPU},
                                       {42, 0, NPU}, {50, 2, CPU}};
    follow(s, y, plan, sizeof plan / sizeof plan[0]);
    if (s->now_ns == MS(32)) { /* all kernels done, on no device */
        ck_assert_int_eq(ahead[1]->state, PASS_STATE_READY);
        ck_assert_uint_eq(ahead[1]->op, ahead[1]->n_ops);
        ck_assert_uint_eq(y->request[0]->kv_tokens, 0);
    }
    if (s->now_ns == MS(50)) {
        ck_assert_int_eq(ahead[1]->state, PASS_STATE_DONE);
        ck_assert_uint_eq(y->request[0]->kv_tokens, 200);
    }
}

START_TEST(passes_are_done_in_the_order_of_their_tokens)
{
    memset(ahead, 0, sizeof ahead);
    ck_assert_msg(run(middle_first, 456) == 0, "%s", sc.result.message);
    ck_assert_int_eq(sc.records[0].first_token_ns, MS(51));
    ck_assert(sc.result.audit.clean);
}
END_TEST

/* ---- cancelling ---- */

/* The last pass must be cancelled first. Its KV is free at once, and that of the first stays. */
static void give_up(struct sched *s, struct script *y)
{
    if (script_at(s, y, 0, 0)) {
        uint64_t room = sched_kv_free_tokens(s);
        ck_assert_int_eq(form(s, SEGMENT_PREFILL, 256, &ahead[0]), 0);
        ck_assert_int_eq(form(s, SEGMENT_AHEAD, 256, &ahead[1]), 0);
        ck_assert_uint_eq(sched_kv_free_tokens(s), room - 512);
        y->rc[0] = sched_pass_cancel(s, ahead[0]);
        y->rc[1] = sched_pass_cancel(s, ahead[1]);
        ck_assert_uint_eq(sched_kv_free_tokens(s), room - 256);
        ck_assert_ptr_eq(y->request[0]->pass, ahead[0]);
        /* Other segments do not share a pass with one ahead. */
        struct segment two[] = {{.request = y->request[0], .role = SEGMENT_AHEAD, .n_tokens = 8},
                                {.request = y->request[0], .role = SEGMENT_AHEAD, .n_tokens = 8}};
        struct pass_spec spec = {.segments = two, .n_segments = 2};
        y->rc[2] = sched_pass_form(s, &spec, &ahead[2]);
        ck_assert_uint_eq(sched_kv_free_tokens(s), room - 256);
        y->rc[3] = sched_pass_cancel(s, ahead[0]);
        ck_assert_uint_eq(sched_kv_free_tokens(s), room);
        ck_assert_ptr_null(y->request[0]->pass);
        y->pass[0] = script_form(s, y->request[0]);
        ck_assert_int_eq(script_launch(s, y->pass[0], IGPU, YIELD_PASS, NULL), 0);
    }
}

START_TEST(the_last_pass_is_given_up_first)
{
    ck_assert_msg(run(give_up, 512) == 0, "%s", sc.result.message);
    ck_assert_int_eq(x.rc[0], -EINVAL);
    ck_assert_int_eq(x.rc[1], 0);
    ck_assert_int_eq(x.rc[2], -EINVAL);
    ck_assert_int_eq(x.rc[3], 0);
    ck_assert_int_eq(sc.records[0].first_token_ns, MS(23));
    ck_assert(sc.result.audit.clean);
}
END_TEST

/* There is KV for 640 tokens in blocks of 64. Another request has 64 and two chunks have 512, so a
 * third chunk has room for 64, and not for 100. */
static void short_of_memory(struct sched *s, struct script *y)
{
    if (script_at(s, y, 0, 0)) {
        y->pass[1] = script_form(s, y->request[1]);
        ck_assert_int_eq(form(s, SEGMENT_PREFILL, 256, &ahead[0]), 0);
        ck_assert_int_eq(form(s, SEGMENT_AHEAD, 256, &ahead[1]), 0);
        uint64_t room = sched_kv_free_tokens(s);
        y->rc[0] = form(s, SEGMENT_AHEAD, 100, &ahead[2]);
        ck_assert_uint_eq(sched_kv_free_tokens(s), room);
        ck_assert_ptr_eq(y->request[0]->pass, ahead[0]);
        y->rc[1] = form(s, SEGMENT_AHEAD, 64, &ahead[2]);
        ck_assert_int_eq(sched_pass_cancel(s, ahead[2]), 0);
        ck_assert_int_eq(sched_pass_cancel(s, ahead[1]), 0);
        ck_assert_int_eq(sched_pass_cancel(s, ahead[0]), 0);
        ck_assert_int_eq(script_launch(s, y->pass[1], IGPU, YIELD_PASS, NULL), 0);
    } else if (y->request[1] == NULL && y->request[0] != NULL && y->request[0]->pass == NULL) {
        y->pass[0] = script_form(s, y->request[0]);
        ck_assert_int_eq(script_launch(s, y->pass[0], IGPU, YIELD_PASS, NULL), 0);
    }
}

START_TEST(a_pass_ahead_without_memory_changes_nothing)
{
    struct scenario_request q[] = {{RT, 0, 620, 1, 0, 0}, {RT, 0, 10, 1, 0, 0}};
    sc.setup.kv_capacity_tokens = 640;
    sc.setup.kv_block_tokens = 64;
    x.step = short_of_memory;
    ck_assert_msg(script_run(&sc, &x, q, 2) == 0, "%s", sc.result.message);
    ck_assert_int_eq(x.rc[0], -ENOMEM);
    ck_assert_int_eq(x.rc[1], 0);
    ck_assert(sc.result.audit.clean);
}
END_TEST

/* ---- the user leaves ---- */

/* The user leaves at 5 ms, when both chunks run. The request is there until the last of its passes
 * is cancelled. */
static void leave(struct sched *s, struct script *y)
{
    if (script_at(s, y, 0, 0)) {
        ck_assert_int_eq(form(s, SEGMENT_PREFILL, 256, &ahead[0]), 0);
        ck_assert_int_eq(form(s, SEGMENT_AHEAD, 256, &ahead[1]), 0);
        ck_assert_int_eq(op(s, ahead[1], NPU), 0);
        struct launch_spec l = sched_launch_rest(s, ahead[0], CPU, YIELD_PASS);
        ck_assert_int_eq(sched_launch(s, &l, NULL), 0);
    } else if (script_at(s, y, 1, 22)) { /* the first pass is done: 4 + 10 + 8 */
        ck_assert_ptr_eq(y->request[0]->pass, ahead[1]);
        ck_assert_uint_eq(y->n_cancelled, 0);
        y->rc[0] = sched_pass_cancel(s, ahead[1]);
    }
}

START_TEST(who_leaves_is_there_until_its_last_pass_ends)
{
    struct scenario_request q = {RT, 0, 512, 1, 0, 0};
    struct trace_extra extra = {.ttft_slo_ns = TIME_NEVER_NS,
                                .tbt_slo_ns = TIME_NEVER_NS,
                                .deadline_ns = TIME_NEVER_NS,
                                .until_ns = TIME_NEVER_NS,
                                .cancel_ns = MS(5)};
    x.step = leave;
    sc.setup.policy = &script_ops;
    sc.setup.policy_context = &x;
    scenario_trace(&sc, &q, 1);
    sc.trace.extras = &extra;
    ck_assert_msg(scenario_again(&sc) == 0, "%s", sc.result.message);
    ck_assert_int_eq(x.rc[0], 0);
    ck_assert_uint_eq(sc.result.audit.shed, 1);
    ck_assert(sc.result.audit.clean);
    sc.trace.extras = NULL;
}
END_TEST

static const struct suite_row suite[] = {
    CASE("passes ahead", .setup = setup, .teardown = teardown, .timeout_s = 30),
    TEST(attention_and_head_wait_for_the_tokens_before),
    TEST(passes_are_done_in_the_order_of_their_tokens),
    TEST(causes_and_waits_add_up),
    TEST(the_last_pass_is_given_up_first),
    TEST(a_pass_ahead_without_memory_changes_nothing),
    TEST(who_leaves_is_there_until_its_last_pass_ends),
};
SUITE_MAIN("ahead", suite)

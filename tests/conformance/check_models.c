/* Two models run together (two_models_by_hand), and every time is computed by hand. A run that took
 * the other model's time, bytes, prefix or kernel would end at another instant. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/conformance/randomload.h"
#include "hwmodels/roofline.h"
#include "policies/registry.h"
#include "sim/metrics/explain.h"
#include "tests/helpers/script.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/two_models.h"

static struct scenario sc;
static struct two_models two;
static struct script x;

static void setup(void)
{
    memset(&x, 0, sizeof x);
    two_models_by_hand(&sc, &two);
}

static void teardown(void)
{
    two_models_fini(&sc);
}

static void run(const struct scenario_request *q, const uint8_t *model, const uint32_t *group,
                uint32_t n, void (*step)(struct sched *s, struct script *x))
{
    two_models_script(&sc, &x, q, model, group, n, step);
}

/* ---- time ---- */

/* Request 0 runs on the iGPU, and request 1 on the CPU. */
static void one_each(struct sched *s, struct script *y)
{
    for (uint8_t i = 0; i < 2; i++) {
        const struct request *r = y->request[i];
        if (r != NULL && r->pass == NULL) {
            ck_assert_uint_eq(r->model, i);
            ck_assert_str_eq(sched_model(s, r->model)->name, i == 0 ? "toy" : "small");
            y->pass[i] = script_form(s, r);
            ck_assert_ptr_nonnull(y->pass[i]);
            ck_assert_uint_eq(y->pass[i]->shape.model, i);
            ck_assert_int_eq(script_launch(s, y->pass[i], i == 0 ? IGPU : CPU, YIELD_PASS, NULL),
                             0);
        }
    }
}

static const struct scenario_request pair[] = {{.cls = RT, .input_tokens = 64, .output_tokens = 2},
                                               {.cls = RT, .input_tokens = 64, .output_tokens = 2}};

/* The first model has one layer of 4 ms and the second three of 2 ms. QKV, FFN and head take 1
 * ns each. So prompts take 4 ms + 3 ns and 6 ms + 7 ns, and a fused decode step takes its layers
 * and 1 ns. */
START_TEST(kernels_of_two_models_have_their_own_times)
{
    strcpy(two.other.llm.name, "small");
    run(pair, (const uint8_t[]){0, 1}, NULL, 2, one_each);
    ck_assert_int_eq(sc.records[0].first_token_ns, MS(4) + 3);
    ck_assert_int_eq(sc.records[0].finish_ns, MS(4) + 3 + MS(4) + 1);
    ck_assert_int_eq(sc.records[1].first_token_ns, MS(6) + 7);
    ck_assert_int_eq(sc.records[1].finish_ns, MS(6) + 7 + MS(6) + 1);
}
END_TEST

/* Each attention kernel draws 80 of the 100 GB/s, so both together have 50 each, and run at 5/8 of
 * their speed. The second model has one layer of 6 ms here. The first one's 4 ms take 6.4 ms. Then
 * 4 of the second one's 6 ms are done, and it ends 2 ms later. Each request has one token. */
START_TEST(kernels_of_two_models_contend_by_the_closed_form)
{
    static const struct scenario_request one[] = {
        {.cls = RT, .input_tokens = 64, .output_tokens = 1},
        {.cls = RT, .input_tokens = 64, .output_tokens = 1}};
    strcpy(two.other.llm.name, "small");
    two.other.llm.n_layers = 1;
    sc.setup.contention = contention_find("proportional");
    scenario_cost(&sc, -1, OP_MHA, 4, 0, 80);
    scenario_cost(&two.other, -1, OP_MHA, 6, 0, 80);
    run(one, (const uint8_t[]){0, 1}, NULL, 2, one_each);
    /* QKV, FFN and head take 1 ns each, and a kernel ends at whole ns. */
    ck_assert_int_le(llabs(sc.records[0].finish_ns - MS(6.4) - 3), 2);
    ck_assert_int_le(llabs(sc.records[1].finish_ns - MS(8.4) - 3), 3);
}
END_TEST

/* These are prices of the shipped machine, which a run remembers (costs.c). */
static struct soc soc;
static struct llm llms[2];
static struct roofline truths[2];

static void read_prices(void)
{
    static const char *const names[] = {"llama-3.2-3b", "llama-3.2-1b"};
    struct err e = ERR_INIT;
    cJSON *root = json_read_file(soc_path("core-ultra-5-125h"), &e);
    ck_assert_int_eq(soc_parse(root, "soc", &soc, &e), 0);
    cJSON_Delete(root);
    for (int i = 0; i < 2; i++) {
        root = json_read_file(llm_path(names[i]), &e);
        ck_assert_int_eq(llm_parse(root, names[i], &llms[i], &e), 0);
        cJSON_Delete(root);
        roofline_init(&truths[i], hwmodel_find("extended"), &soc, &llms[i]);
    }
    err_fini(&e);
}

static void on_igpu(struct sched *s, struct script *y)
{
    y->device = IGPU;
    script_serve(s, y);
}

/* Equal requests come in turn, 100 s apart, on one device. In a run of both models each takes as
 * long as in a run of its own model alone, the second time too. */
START_TEST(equal_passes_of_two_models_keep_their_own_prices)
{
    static const struct scenario_request q[] = {
        {.cls = RT, .input_tokens = 64, .output_tokens = 4},
        {.cls = RT, .arrival_s = 100, .input_tokens = 64, .output_tokens = 4},
        {.cls = RT, .arrival_s = 200, .input_tokens = 64, .output_tokens = 4},
        {.cls = RT, .arrival_s = 300, .input_tokens = 64, .output_tokens = 4}};
    int64_t took_ns[2];
    read_prices();
    sc.setup.machine = &truths[0].machine;
    sc.setup.n_more = 0;
    for (int i = 0; i < 2; i++) {
        sc.setup.llm = &llms[i];
        sc.setup.truth = &truths[i].model;
        memset(&x, 0, sizeof x);
        run(q, (const uint8_t[]){0}, NULL, 1, on_igpu);
        took_ns[i] = sc.records[0].finish_ns;
        two_models_fini(&sc);
    }
    ck_assert_int_gt(took_ns[0], took_ns[1]);
    sc.setup.llm = &llms[0];
    sc.setup.truth = &truths[0].model;
    two.more = (struct sim_model){&llms[1], &truths[1].model};
    sc.setup.n_more = 1;
    memset(&x, 0, sizeof x);
    run(q, (const uint8_t[]){0, 1, 0, 1}, NULL, 4, on_igpu);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(sc.records[i].finish_ns - sc.records[i].arrival_ns, took_ns[i % 2]);
    }
}
END_TEST

static void both_in_one(struct sched *s, struct script *y)
{
    if (y->stage == 0 && y->request[0] != NULL && y->request[1] != NULL) {
        struct segment g[2] = {{y->request[0], SEGMENT_PREFILL, 0, 64, 0, 0},
                               {y->request[1], SEGMENT_PREFILL, 0, 64, 0, 0}};
        struct pass_spec spec = {.segments = g, .n_segments = 2};
        uint64_t free_tokens = sched_kv_free_tokens(s);
        y->rc[0] = sched_pass_form(s, &spec, &y->pass[0]);
        ck_assert_uint_eq(sched_kv_free_tokens(s), free_tokens);
        ck_assert_ptr_null(y->request[0]->pass);
        y->stage = 1;
    }
    if (y->stage == 1) {
        one_each(s, y);
    }
}

START_TEST(a_pass_of_two_models_is_refused_and_changes_nothing)
{
    strcpy(two.other.llm.name, "small");
    run(pair, (const uint8_t[]){0, 1}, NULL, 2, both_in_one);
    ck_assert_int_eq(x.rc[0], -EINVAL);
    ck_assert_uint_eq(sc.result.counters[COUNTER_PASS_BAD_SEGMENT], 1);
    ck_assert_str_eq(sc.result.refusals[0].why,
                     "a pass has requests of one model, and this one asks for another");
}
END_TEST

/* ---- estimates ---- */

static void ask(struct sched *s, struct script *y)
{
    struct work_shape w = {.rows = 1, .logit_rows = 1, .sequences = 1, .attn_pairs = 1};
    struct estimate e[2];
    for (uint32_t i = 0; i < 2; i++) {
        w.model = i;
        ck_assert_int_eq(sched_estimate(s, &w, OP_MHA, IGPU, 0, &e[i]), 0);
    }
    ck_assert_int_eq(e[0].t_ns, MS(4));
    ck_assert_int_eq(e[1].t_ns, MS(2));
    w.model = 2;
    ck_assert_int_eq(sched_estimate(s, &w, OP_MHA, IGPU, 0, &e[0]), -EINVAL);
    ck_assert_uint_eq(s->n_models, 2);
    ck_assert_ptr_eq(s->models[0], s->llm);
    y->device = IGPU;
    script_serve(s, y);
}

START_TEST(estimates_are_those_of_the_shape_s_model)
{
    run(pair, (const uint8_t[]){0, 1}, NULL, 2, ask);
}
END_TEST

/* ---- KV ---- */

static uint64_t free_tokens[3];

static void hold(struct sched *s, struct script *y)
{
    free_tokens[0] = y->stage == 0 ? sched_kv_free_tokens(s) : free_tokens[0];
    for (uint32_t i = 0; i < 2 && y->stage == i && y->request[0] != NULL; i++) {
        y->pass[i] = script_form(s, y->request[i]);
        free_tokens[i + 1] = sched_kv_free_tokens(s);
        ck_assert_int_eq(script_launch(s, y->pass[i], i == 0 ? IGPU : CPU, YIELD_PASS, NULL), 0);
        y->stage++;
    }
}

/* A token takes 2 MB of the first model and 3 MB of the second, so the ledger counts in units of
 * 1 MB a token. 50 blocks of 16 tokens of 3 MB are 2400 units. A prompt of 64 tokens takes 4
 * blocks: 4 * 16 * 2 = 128 units of the first model, and 192 of the second. Free are then 2272 and
 * 2080 units. They hold 47 and 43 whole blocks of 48 units, which are 752 and 688 tokens. */
START_TEST(kv_is_counted_in_the_bytes_of_its_model)
{
    static const struct scenario_request one[] = {
        {.cls = RT, .input_tokens = 64, .output_tokens = 1},
        {.cls = RT, .input_tokens = 64, .output_tokens = 1}};
    sc.llm.kv_bytes_per_token = 2e6;
    two.other.llm.kv_bytes_per_token = 3e6;
    sc.setup.kv_capacity_tokens = 800;
    run(one, (const uint8_t[]){0, 1}, NULL, 2, hold);
    ck_assert_uint_eq(free_tokens[0], 800);
    ck_assert_uint_eq(free_tokens[1], 752);
    ck_assert_uint_eq(free_tokens[2], 688);
    /* At most 4 blocks of both are held: 320 units of 16 tokens and 1 MB, and the weights of
     * both. */
    ck_assert_double_eq_tol(sc.result.memory_peak_bytes, 320e6 + 2e9, 1.0);
}
END_TEST

static void serve(struct sched *s, struct script *y)
{
    y->device = IGPU;
    script_serve(s, y);
}

/* The 2400 units of the test above are 1200 tokens of the first model, and 800 of the second. A
 * prompt and an answer of one token may take all of them. One token more is refused with the number
 * of its own model. */
START_TEST(a_request_may_have_all_memory_in_its_own_tokens)
{
    static const uint32_t most[] = {1200, 800};
    const uint8_t model = _i < 2 ? 0 : 1;
    const struct scenario_request one = {
        .cls = RT, .input_tokens = most[model] - (_i % 2 == 0), .output_tokens = 1};
    sc.llm.kv_bytes_per_token = 2e6;
    two.other.llm.kv_bytes_per_token = 3e6;
    sc.setup.kv_capacity_tokens = 800;
    if (_i % 2 == 0) {
        run(&one, &model, NULL, 1, serve);
        ck_assert_uint_eq(sc.result.audit.finished, 1);
        return;
    }
    char says[64];
    (void)snprintf(says, sizeof says, "needs %u KV tokens, the machine holds %u", most[model] + 1,
                   most[model]);
    x.step = serve;
    sc.setup.policy = &script_ops;
    sc.setup.policy_context = &x;
    ck_assert_int_eq(two_models_run(&sc, &one, &model, NULL, 1, false), -ENOMEM);
    ck_assert_msg(strstr(sc.result.message, says) != NULL, "%s", sc.result.message);
}
END_TEST

static uint32_t reused[3];

static void one_by_one(struct sched *s, struct script *y)
{
    y->device = IGPU;
    for (uint32_t i = 0; i < 3; i++) {
        if (y->request[i] != NULL && y->request[i]->state == REQUEST_STATE_QUEUED) {
            reused[i] = y->request[i]->reused_tokens;
        }
    }
    script_serve(s, y);
}

/* Three prompts share one text of 160 tokens and come a second after each other. The first
 * computes it for its model, the second finds nothing in its own, and the third finds the text
 * of the first. */
START_TEST(models_share_no_prefix)
{
    static const struct scenario_request q[] = {
        {.cls = RT, .input_tokens = 200, .output_tokens = 1, .prefix_tokens = 160},
        {.cls = RT, .arrival_s = 1, .input_tokens = 200, .output_tokens = 1, .prefix_tokens = 160},
        {.cls = RT, .arrival_s = 2, .input_tokens = 200, .output_tokens = 1, .prefix_tokens = 160}};
    run(q, (const uint8_t[]){0, 1, 0}, (const uint32_t[]){7, 7, 7}, 3, one_by_one);
    ck_assert_uint_eq(reused[0], 0);
    ck_assert_uint_eq(reused[1], 0);
    ck_assert_uint_eq(reused[2], 160);
}
END_TEST

static void mixed_once(struct sched *s, struct script *y)
{
    const struct request *r = y->request[1], *cached = y->request[2];
    y->device = IGPU;
    if (y->stage == 0 && r != NULL && cached != NULL) {
        struct segment g[2] = {{r, SEGMENT_PREFILL, 0, 64, 0, 0},
                               {cached, SEGMENT_PREFILL, 0, 40, 0, 0}};
        struct pass_spec spec = {.segments = g, .n_segments = 2};
        ck_assert_int_eq(sched_pass_form(s, &spec, &y->pass[0]), -EINVAL);
        ck_assert_uint_eq(sched_kv_cached_tokens(s, cached), 160);
        y->stage = 1;
    }
    script_serve(s, y);
}

/* The third prompt begins with the 160 tokens that the first one's model has cached. A pass with
 * the second one's model cannot have it, and leaves those tokens in the cache. */
START_TEST(a_prefix_stays_cached_where_the_models_do_not_match)
{
    static const struct scenario_request q[] = {
        {.cls = RT, .input_tokens = 200, .output_tokens = 1, .prefix_tokens = 160},
        {.cls = RT, .arrival_s = 1, .input_tokens = 64, .output_tokens = 1},
        {.cls = RT, .arrival_s = 1, .input_tokens = 200, .output_tokens = 1, .prefix_tokens = 160}};
    run(q, (const uint8_t[]){1, 0, 1}, (const uint32_t[]){7, 0, 7}, 3, mixed_once);
    ck_assert_int_eq(x.stage, 1);
}
END_TEST

/* ---- compiled attention ---- */

static struct resident_key kernel_of(uint32_t tokens, uint32_t model)
{
    return (struct resident_key){RESIDENT_COMPILED_ATTENTION, tokens, model};
}

/* Attention of 64 tokens is compiled for the second model only (1 ms). So its prompt runs on the
 * NPU, and the other one's is refused there. */
static void compile_one(struct sched *s, struct script *y)
{
    if (y->stage == 0 && y->request[1] != NULL) {
        ck_assert_int_eq(sched_compile(s, kernel_of(64, 1)), 0);
        y->rc[2] = sched_compile(s, kernel_of(64, 2));
        y->stage = 1;
    } else if (y->stage == 1 && sched_resident_state(s, kernel_of(64, 1)) == RESIDENT_READY) {
        for (uint32_t i = 0; i < 2; i++) {
            y->pass[i] = script_form(s, y->request[i]);
            y->rc[i] = script_launch(s, y->pass[i], NPU, YIELD_PASS, NULL);
        }
        ck_assert_int_eq(script_launch(s, y->pass[0], IGPU, YIELD_PASS, NULL), 0);
        y->stage = 2;
    }
}

START_TEST(compiled_attention_is_its_model_s)
{
    static const struct scenario_request one[] = {
        {.cls = RT, .input_tokens = 64, .output_tokens = 1},
        {.cls = RT, .input_tokens = 64, .output_tokens = 1}};
    sc.machine.compile_fixed_ns = MS(1);
    run(one, (const uint8_t[]){0, 1}, NULL, 2, compile_one);
    ck_assert_int_eq(x.rc[0], -ENOENT);
    ck_assert_int_eq(x.rc[1], 0);
    ck_assert_int_eq(x.rc[2], -EINVAL);
}
END_TEST

/* Compiles for one of the models, and serves the request of the second one after 30 ms. */
static uint8_t compiled_for;
static void compile_and_wait(struct sched *s, struct script *y)
{
    if (y->rc[0]++ == 0) {
        ck_assert_int_eq(sched_compile(s, kernel_of(64, compiled_for)), 0);
    }
    if (y->request[0] != NULL && script_at(s, y, 0, 30)) {
        y->pass[0] = script_form(s, y->request[0]);
        ck_assert_int_eq(script_launch(s, y->pass[0], CPU, YIELD_PASS, NULL), 0);
    }
}

/* A compilation takes 50 ms. A request that is served after 30 of them waits for it if it is of its
 * model and length, and else for the policy. */
START_TEST(a_request_waits_for_the_kernel_of_its_own_model)
{
    static const struct scenario_request one[] = {
        {.cls = RT, .input_tokens = 64, .output_tokens = 1}};
    sc.machine.compile_fixed_ns = MS(50);
    struct explain *why = explain_new(&sc.machine, EXPLAIN_ALL);
    sc.setup.observers[sc.setup.n_observers++] = explain_observer(why);
    compiled_for = _i == 1;
    run(one, (const uint8_t[]){1}, NULL, 1, compile_and_wait);
    const struct explanation *e = explain_find(why, 0);
    ck_assert_ptr_nonnull(e);
    ck_assert_int_eq(e->ns[EXPLAIN_COMPILE], _i == 1 ? MS(30) : 0);
    ck_assert_int_eq(e->ns[EXPLAIN_HELD], _i == 1 ? 0 : MS(30));
    explain_free(why);
}
END_TEST

/* ---- shipped policies ---- */

/* Before any tool call was seen, KV of one lives as long as its prompt takes to compute again. That
 * is 6 ms and 7 ns of the second model, and 4 ms of the first. A turn after 5 ms finds it, and one
 * after 6.1 does not. */
static const char *const ttl[] = {"edf", "agent-xpu-v1", "agent-xpu-v2"};
START_TEST(kv_lives_as_long_as_its_own_model_computes)
{
    struct scenario_request q[] = {
        {.cls = RT, .input_tokens = 64, .output_tokens = 1, .session_id = 1},
        {.cls = RT, .input_tokens = 96, .output_tokens = 1, .session_id = 1, .prefix_tokens = 64}};
    for (int late = 0; late < 2; late++) {
        if (late) {
            two_models_fini(&sc);
            setup();
        }
        q[1].arrival_s = late ? 0.0061 : 0.005;
        sc.gaps_are_tools = true;
        scenario_policy(&sc, policy_find(ttl[_i]), "gap_kv=ttl");
        ck_assert_msg(two_models_run(&sc, q, (const uint8_t[]){1, 1}, NULL, 2, false) == 0, "%s",
                      sc.result.message);
        ck_assert_uint_eq(sc.result.counters[COUNTER_KV_COLD_DROPS], late ? 1 : 0);
    }
}
END_TEST

/* A row of the first model takes 0.1 ms, one of the second 0.01, and the other three kernels of a
 * pass 1 ns each. So a budget of 5 ms holds 499 rows of the second, and 49 of the first. */
START_TEST(hygen_predicts_an_iteration_of_its_model)
{
    static const struct scenario_request q[] = {
        {.cls = BE, .input_tokens = 998, .output_tokens = 1}};
    uint32_t most = 0;
    two.other.llm.n_layers = 1;
    for (int i = 0; i < 2; i++) {
        struct scenario *of = i == 0 ? &sc : &two.other;
        scenario_cost(of, -1, OP_MHA, 0, 0, 0);
        scenario_cost(of, -1, OP_FFN, 0, i == 0 ? 0.1 : 0.01, 0);
        scenario_cost(of, -1, OP_LAYER, 0, i == 0 ? 0.1 : 0.01, 0);
    }
    scenario_policy(&sc, policy_find("hygen-like"), "latency_budget_ms=5");
    ck_assert_msg(two_models_run(&sc, q, (const uint8_t[]){1}, NULL, 1, true) == 0, "%s",
                  sc.result.message);
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        most = sc.kernels[i].rows > most ? sc.kernels[i].rows : most;
    }
    ck_assert_uint_eq(most, 499);
}
END_TEST

/* RT0 and BE1 have the first model, and three shorter ones the second. These would be kept before
 * BE1 in RT0's batch, but are not in it. So RT0 and BE1 decode together. */
START_TEST(sequences_of_another_model_take_no_place_in_a_batch)
{
    static const struct scenario_request q[] = {
        {.cls = RT, .input_tokens = 64, .output_tokens = 30},
        {.cls = BE, .input_tokens = 200, .output_tokens = 30},
        {.cls = BE, .input_tokens = 64, .output_tokens = 30},
        {.cls = BE, .input_tokens = 64, .output_tokens = 30},
        {.cls = BE, .input_tokens = 64, .output_tokens = 30}};
    uint32_t together = 0;
    scenario_policy(&sc, policy_find("agent-xpu-v2"), "length_bucket=64");
    ck_assert_msg(two_models_run(&sc, q, (const uint8_t[]){0, 0, 1, 1, 1}, NULL, 5, true) == 0,
                  "%s", sc.result.message);
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        const struct scenario_kernel *k = &sc.kernels[i];
        together += k->request == 0 && k->op == OP_MHA && k->rows == 2;
    }
    ck_assert_uint_gt(together, 20); /* the others prefill in 4 + 3 * 6 ms, an iteration takes 4 */
}
END_TEST

/* sd-npu loads the decode graph of its one block after a prompt, at 1 GB/s for 1 GB, and the
 * prefill graph after the answer. Only the default model has graphs: the second one's answer of two
 * tokens needs none, and its three passes of 1 ns an operator are over at once. */
START_TEST(graphs_are_switched_for_the_model_that_has_them)
{
    static const struct scenario_request q[] = {
        {.cls = RT, .input_tokens = 64, .output_tokens = 2}};
    uint8_t model = (uint8_t)_i;
    sc.machine.devices[NPU].static_attention = false;
    scenario_policy(&sc, policy_find("sd-npu"), "strategy=sync,blocks=1,speculate=false");
    ck_assert_msg(two_models_run(&sc, q, &model, NULL, 1, false) == 0, "%s", sc.result.message);
    ck_assert_uint_eq(sc.result.counters[COUNTER_LOADS], model == 0 ? 2 : 0);
    ck_assert((sc.records[0].finish_ns > MS(1000)) == (model == 0));
}
END_TEST

/* The default model's prompt of 64 tokens takes two passes on its graph of 32 rows; the other one's
 * takes one, in the NPU's own kernels of 256 rows. */
START_TEST(a_model_without_graphs_has_the_npus_chunks)
{
    static const struct scenario_request q[] = {
        {.cls = RT, .input_tokens = 64, .output_tokens = 1}};
    uint8_t model = (uint8_t)_i;
    sc.machine.devices[NPU].static_attention = false;
    scenario_policy(&sc, policy_find("sd-npu"),
                    "strategy=unified-g2,blocks=1,speculate=false,g1=32");
    ck_assert_msg(two_models_run(&sc, q, &model, NULL, 1, true) == 0, "%s", sc.result.message);
    ck_assert_uint_eq(sc.kernels[0].rows, model == 0 ? 32 : 64);
}
END_TEST

#define CONFIGURATIONS 200
#define MOST_REQUESTS 24

/* This makes a random load of a random machine (randomload.h). Every session asks for one of two
 * models that differ in layers, bytes and times. */
static uint32_t random_load(struct scenario_request *q, uint8_t *model, uint64_t seed)
{
    struct rng r;
    rng_init(&r, rng_key(seed, RNG_TEST, 1, 0));
    uint32_t n = randomload_make(&sc, q, MOST_REQUESTS, seed);
    two_models_init(&sc, &two);
    two.other.llm.n_layers = 1 + rng_below(&r, 4);
    two.other.llm.kv_bytes_per_token = 1e5 * (1 + rng_below(&r, 20));
    two.other.llm.weight_bytes = 1e8 * (1 + rng_below(&r, 5));
    sc.setup.weights_at_start = rng_below(&r, 2) > 0;
    if (rng_below(&r, 2) > 0) { /* so little memory that they may give way to each other */
        double largest = fmax(sc.llm.weight_bytes, two.other.llm.weight_bytes);
        double kv = fmax(sc.llm.kv_bytes_per_token, two.other.llm.kv_bytes_per_token);
        uint64_t tokens = sc.setup.kv_capacity_tokens > 0 ? sc.setup.kv_capacity_tokens : 4000;
        sc.machine.memory_bytes = largest + kv * (double)tokens;
    }
    for (int op = 0; op < OP_KIND_COUNT; op++) {
        for (int d = 0; d < MACHINE_MAX_DEVICES; d++) {
            two.other.cost[d][op].fixed_ms *= 0.2 + rng_uniform(&r);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        model[i] = (uint8_t)rng_below(&r, 2);
        for (uint32_t k = 0; k < i; k++) {
            bool same = q[i].session_id != 0 && q[k].session_id == q[i].session_id;
            model[i] = same ? model[k] : model[i];
        }
    }
    return n;
}

/* Every policy of the tree serves every request of every such load. */
START_TEST(every_policy_runs_two_models)
{
    struct scenario_request q[MOST_REQUESTS];
    uint8_t model[MOST_REQUESTS];
    size_t n_policies = 0;
    const struct policy_ops *const *all = policy_list(&n_policies);
    const struct policy_ops *p = all[_i];
    uint32_t ran = 0;
    for (uint64_t seed = 1; seed <= CONFIGURATIONS; seed++) {
        uint32_t n = random_load(q, model, seed);
        sc.machine.devices[NPU].static_attention &= strcmp(p->name, "sd-npu") != 0;
        /* Its graphs hold a model's weights for the whole run. */
        sc.machine.memory_bytes *= strcmp(p->name, "sd-npu") == 0 ? 2.0 : 1.0;
        scenario_policy(&sc, p, strcmp(p->name, "sd-npu") == 0 ? "blocks=1" : "");
        int rc = two_models_run(&sc, q, model, NULL, n, false);
        uint64_t tokens = 0;
        for (uint32_t i = 0; i < n; i++) {
            tokens += q[i].output_tokens;
        }
        const struct sim_audit *a = &sc.result.audit;
        ck_assert_msg(rc == 0 || sc.result.refused, "%s, load %u: %s %s", p->name, (unsigned)seed,
                      sc.result.message, sc.result.scene);
        if (rc == 0) {
            ran++;
            ck_assert_msg(a->clean && a->finished == n && a->tokens_produced == tokens,
                          "%s, load %u: %u of %u finished", p->name, (unsigned)seed,
                          (unsigned)a->finished, n);
        }
        two_models_fini(&sc);
    }
    ck_assert_uint_ge(ran, CONFIGURATIONS / 4); /* otherwise it was the machine that refused */
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = setup, .teardown = teardown),
    TEST(kernels_of_two_models_have_their_own_times),
    TEST(kernels_of_two_models_contend_by_the_closed_form),
    TEST(equal_passes_of_two_models_keep_their_own_prices),
    TEST(a_pass_of_two_models_is_refused_and_changes_nothing),
    TEST(estimates_are_those_of_the_shape_s_model),
    TEST(kv_is_counted_in_the_bytes_of_its_model),
    LOOP(a_request_may_have_all_memory_in_its_own_tokens, 4),
    TEST(models_share_no_prefix),
    TEST(a_prefix_stays_cached_where_the_models_do_not_match),
    TEST(compiled_attention_is_its_model_s),
    LOOP(a_request_waits_for_the_kernel_of_its_own_model, 2),
    LOOP(kv_lives_as_long_as_its_own_model_computes, sizeof ttl / sizeof ttl[0]),
    TEST(hygen_predicts_an_iteration_of_its_model),
    TEST(sequences_of_another_model_take_no_place_in_a_batch),
    LOOP(graphs_are_switched_for_the_model_that_has_them, 2),
    LOOP(a_model_without_graphs_has_the_npus_chunks, 2),
    CASE("policies", .timeout_s = 120),
    LOOP_OVER(every_policy_runs_two_models, suite_policies),
};
SUITE_MAIN("models", suite)

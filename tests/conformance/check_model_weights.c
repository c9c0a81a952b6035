/* Weights of two models (two_models_by_hand) come and go, and every instant is computed by hand. */
#include <stdlib.h>
#include <string.h>

#include "policies/registry.h"
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

static int64_t told_ns[4]; /* when the policy was notified of a request */

static void serve(struct sched *s, struct script *y)
{
    y->device = IGPU;
    for (uint32_t i = 0; i < 4; i++) {
        if (y->request[i] != NULL && told_ns[i] == 0) {
            told_ns[i] = s->now_ns + 1; /* 0 says: not yet */
        }
    }
    script_serve(s, y);
}

static const struct scenario_request two_prompts[] = {
    {.cls = RT, .input_tokens = 64, .output_tokens = 1},
    {.cls = RT, .input_tokens = 64, .output_tokens = 1}};

/* Weights of 1 GB and of 3 GB at 2 GB/s, after 0.1 s that any load takes. The loader does one after
 * the other: the first is there at 0.1 + 0.5 s, the second 0.1 + 1.5 s later. The requests of both
 * came at 0, so the loads took 0.6 and 2.2 s. Single-thread work draws 12 W meanwhile, on top of
 * the 5 W of the platform and of 20 W of the iGPU while it prefills. */
START_TEST(weights_are_loaded_at_the_rate_of_the_loader)
{
    sc.setup.weights_at_start = false;
    sc.llm.weight_bytes = 1e9;
    two.other.llm.weight_bytes = 3e9;
    sc.machine.loader_bytes_per_s = 2e9;
    sc.machine.loader_fixed_ns = MS(100);
    memset(told_ns, 0, sizeof told_ns);
    run(two_prompts, (const uint8_t[]){0, 1}, NULL, 2, serve);
    ck_assert_int_eq(told_ns[0], MS(600) + 1);
    ck_assert_int_eq(told_ns[1], MS(2200) + 1);
    ck_assert_int_eq(sc.records[0].arrival_ns, 0); /* its user has waited for them */
    ck_assert_int_eq(sc.records[0].first_token_ns, MS(600) + MS(4) + 3);
    ck_assert_int_eq(sc.records[1].first_token_ns, MS(2200) + MS(6) + 7);
    ck_assert_uint_eq(sc.result.model_loads, 2);
    ck_assert_int_eq(sc.result.model_load_ns, MS(2800));
    ck_assert_double_eq(sc.result.model_load_bytes, 4e9);
    ck_assert_uint_eq(sc.result.model_evictions, 0);
    double end_s = 2.206000007;
    double joules = 5.0 * end_s + 12.0 * 2.2 + 20.0 * 0.010000010;
    ck_assert_double_eq_tol(sc.result.audit.energy_integral_j, joules, 1e-6);
}
END_TEST

START_TEST(weights_are_there_at_the_start_by_default)
{
    memset(told_ns, 0, sizeof told_ns);
    run(two_prompts, (const uint8_t[]){0, 1}, NULL, 2, serve);
    ck_assert_int_eq(told_ns[0], 1);
    ck_assert_int_eq(told_ns[1], 1);
    ck_assert_uint_eq(sc.result.model_loads, 0);
    /* The peak is 2 GB of weights, and 4 blocks of 16 tokens of 1 MB for each prompt. One prompt
     * came after the other had left. */
    ck_assert_double_ge(sc.result.memory_peak_bytes, 2e9 + 64e6);
    ck_assert_double_le(sc.result.memory_peak_bytes, 2e9 + 128e6);
}
END_TEST

/* Each model has weights of 1 GB. Graphs are mapped that hold 0.6 or 1.4 GB. They contain weights
 * of the first model, as far as it has any, and none of the second. So 2 GB are held in the first
 * case, and 2.4 in the second. Each prompt needs 4 blocks of 16 tokens of 1 MB. */
static int map_graphs(struct sched *s, struct script *y)
{
    return sched_map(s, (struct resident_key){RESIDENT_GRAPH_BLOCK, 0, 1}, y->device * 1e8);
}

START_TEST(mapped_graphs_hold_the_weights_of_the_first_model_only)
{
    const uint32_t graphs_mb = _i == 0 ? 600 : 1400;
    x.init = map_graphs;
    x.device = graphs_mb / 100;
    memset(told_ns, 0, sizeof told_ns);
    run(two_prompts, (const uint8_t[]){0, 1}, NULL, 2, serve);
    double held = fmax(1e9, graphs_mb * 1e6) + 1e9;
    ck_assert_double_ge(sc.result.memory_peak_bytes, held + 64e6);
    ck_assert_double_le(sc.result.memory_peak_bytes, held + 128e6);
}
END_TEST

/* There is memory for 3.2 GB. The first model has 2 GB of weights and the second 3 GB, so at the
 * start only those of the first one fit. A block of KV is 16 tokens of 1 MB. Request 0 of the first
 * model is served at once. Request 1 comes at 1 s, for the second model. The first one's weights,
 * which no request uses, are evicted, and 3 GB are loaded at 1 GB/s until 4 s. Request 2 comes at 5
 * s for the first model, and takes the memory back: 2 GB until 7 s. */
START_TEST(idle_weights_give_way_and_come_back)
{
    static const struct scenario_request q[] = {
        {.cls = RT, .input_tokens = 64, .output_tokens = 1},
        {.cls = RT, .arrival_s = 1, .input_tokens = 64, .output_tokens = 1},
        {.cls = RT, .arrival_s = 5, .input_tokens = 64, .output_tokens = 1}};
    sc.machine.memory_bytes = 3.2e9;
    sc.llm.weight_bytes = 2e9;
    two.other.llm.weight_bytes = 3e9;
    memset(told_ns, 0, sizeof told_ns);
    run(q, (const uint8_t[]){0, 1, 0}, NULL, 3, serve);
    ck_assert_int_eq(told_ns[0], 1);
    ck_assert_int_eq(told_ns[1], MS(4000) + 1);
    ck_assert_int_eq(told_ns[2], MS(7000) + 1);
    ck_assert_uint_eq(sc.result.model_loads, 2);
    ck_assert_uint_eq(sc.result.model_evictions, 2);
    ck_assert_double_le(sc.result.memory_peak_bytes, 3.2e9);
}
END_TEST

/* Memory holds 4 GB, not the 5 GB of both models. Request 1 comes while request 0 is served, which
 * takes 4 ms a token and has 500 after the first. Its weights stay until it has left, at about 2 s.
 * Request 2, of the first model too, comes behind request 1 and waits with it, because otherwise
 * the second model's turn might never come. */
START_TEST(weights_in_use_stay_and_later_requests_wait)
{
    static const struct scenario_request q[] = {
        {.cls = RT, .input_tokens = 64, .output_tokens = 501},
        {.cls = RT, .arrival_s = 1, .input_tokens = 64, .output_tokens = 1},
        {.cls = RT, .arrival_s = 1.5, .input_tokens = 64, .output_tokens = 1}};
    sc.machine.memory_bytes = 4e9;
    sc.llm.weight_bytes = 2e9;
    two.other.llm.weight_bytes = 3e9;
    memset(told_ns, 0, sizeof told_ns);
    run(q, (const uint8_t[]){0, 1, 0}, NULL, 3, serve);
    int64_t left_ns = MS(4) + 3 + 500 * (MS(4) + 1);
    ck_assert_int_eq(sc.records[0].finish_ns, left_ns);
    ck_assert_int_eq(told_ns[1], left_ns + MS(3000) + 1);
    /* Then the first model's come back, when request 1 has had its 6 ms. */
    ck_assert_int_eq(told_ns[2], left_ns + MS(3000) + MS(6) + 7 + MS(2000) + 1);
    ck_assert_uint_eq(sc.result.model_evictions, 2);
}
END_TEST

/* KV takes the memory of idle weights. Memory has 1 GB for each model and 1 GB more. A prompt of
 * the first model needs 1.5 GB of KV, which is there only without the second one's weights. */
START_TEST(idle_weights_give_way_to_kv)
{
    static const struct scenario_request q[] = {
        {.cls = RT, .input_tokens = 1499, .output_tokens = 1},
        {.cls = RT, .arrival_s = 1, .input_tokens = 64, .output_tokens = 1}};
    sc.machine.memory_bytes = 3e9;
    memset(told_ns, 0, sizeof told_ns);
    run(q, (const uint8_t[]){0, 1}, NULL, 2, serve);
    ck_assert_int_eq(told_ns[0], 1);
    ck_assert_uint_eq(sc.result.model_evictions, 1);
    ck_assert_int_eq(told_ns[1], MS(2000) + 1); /* 1 GB is loaded at 1 GB/s */
}
END_TEST

/* Memory holds 1 GB of the first model, 0.5 of the second, and 1 GB more. Request 0 holds 0.912 GB.
 * Request 1 needs 0.992, which is not there with the second one's weights either, so they stay.
 * When request 0 has left, the one GB is enough. */
static void tries_while_the_first_runs(struct sched *s, struct script *y)
{
    if (y->pass[0] == NULL && y->request[0] != NULL) {
        y->pass[0] = script_form(s, y->request[0]);
        ck_assert_int_eq(script_launch(s, y->pass[0], IGPU, YIELD_PASS, NULL), 0);
        ck_assert_ptr_null(script_form(s, y->request[1]));
    } else if (y->request[0] == NULL) {
        serve(s, y);
    }
}

START_TEST(idle_weights_stay_where_they_would_not_be_enough)
{
    static const struct scenario_request q[] = {
        {.cls = RT, .input_tokens = 900, .output_tokens = 1},
        {.cls = RT, .input_tokens = 990, .output_tokens = 1}};
    sc.machine.memory_bytes = 2.5e9;
    two.other.llm.weight_bytes = 5e8;
    run(q, (const uint8_t[]){0, 0}, NULL, 2, tries_while_the_first_runs);
    ck_assert_uint_eq(sc.result.model_evictions, 0);
}
END_TEST

/* Three models of 1, 1.5 and 0.5 GB share 4 GB. Three prompts of the first hold 2.4 GB from 0 on.
 * So the second one's weights, which are idle and first in order, give way. A request asks for them
 * at 1 ms. 0.1 GB is free, and with the third one's weights 0.6, so these stay. At 8 ms two prompts
 * have left with 1.6 GB, and 1.5 are loaded at 1 GB/s. */
static void all_hold_kv(struct sched *s, struct script *y)
{
    for (uint32_t i = 0; i < 4; i++) {
        if (y->request[i] != NULL && y->pass[i] == NULL) {
            y->pass[i] = script_form(s, y->request[i]);
        }
        if (y->pass[i] != NULL && sched_device_free_slots(s, IGPU) > 0) {
            (void)script_launch(s, y->pass[i], IGPU, YIELD_PASS, NULL);
        }
    }
}

START_TEST(idle_weights_stay_where_a_load_would_not_fit)
{
    static const struct scenario_request q[] = {
        {.cls = RT, .input_tokens = 800, .output_tokens = 1},
        {.cls = RT, .input_tokens = 800, .output_tokens = 1},
        {.cls = RT, .input_tokens = 800, .output_tokens = 1},
        {.cls = RT, .arrival_s = 0.001, .input_tokens = 64, .output_tokens = 1}};
    struct llm third = two.other.llm;
    struct sim_model more[] = {two.more, two.more};
    two.other.llm.weight_bytes = 1.5e9;
    third.weight_bytes = 5e8;
    more[1].llm = &third;
    sc.setup.more = more;
    sc.setup.n_more = 2;
    sc.machine.memory_bytes = 4e9;
    run(q, (const uint8_t[]){0, 0, 0, 1}, NULL, 4, all_hold_kv);
    ck_assert_int_eq(sc.records[3].start_ns, 2 * (MS(4) + 3) + MS(1500));
    ck_assert_uint_eq(sc.result.model_loads, 1);
    ck_assert_uint_eq(sc.result.model_evictions, 1);
}
END_TEST

/* Memory holds two of three models' weights, 1 GB each. Requests come one by one, each after the
 * one before has left. A request may need weights that are not there. These are loaded at 1 GB/s,
 * and take the place of the weights that were used longest ago. */
START_TEST(the_weights_used_longest_ago_give_way)
{
    enum { N = 12 };
    struct scenario_request q[N];
    uint8_t model[N];
    uint32_t loads = 0;
    int there[2] = {0, 1}; /* models; the one used longest ago is first */
    struct llm third = two.other.llm;
    struct sim_model more[] = {two.more, two.more};
    more[1].llm = &third;
    sc.setup.more = more;
    sc.setup.n_more = 2;
    sc.machine.memory_bytes = 2.5e9;
    static const uint8_t order[N] = {0, 1, 2, 1, 0, 1, 2, 2, 0, 1, 0, 2};
    for (uint32_t i = 0; i < N; i++) {
        q[i] = (struct scenario_request){
            .cls = RT, .arrival_s = 2.0 * i, .input_tokens = 16, .output_tokens = 1};
        model[i] = order[i];
    }
    run(q, model, NULL, N, serve);
    for (uint32_t i = 0; i < N; i++) {
        bool is_there = there[0] == order[i] || there[1] == order[i];
        ck_assert_int_eq(sc.records[i].start_ns - sc.records[i].arrival_ns,
                         is_there ? 0 : MS(1000));
        loads += is_there ? 0 : 1;
        there[0] = there[1] == order[i] ? there[0] : there[1];
        there[1] = order[i];
    }
    ck_assert_uint_eq(sc.result.model_loads, loads);
    ck_assert_uint_eq(sc.result.model_evictions, loads);
}
END_TEST

/* Memory holds the weights of both, 1 GB each, and 1 GB more. Request 0 needs 1.4 GB for all its
 * tokens, so the second model is not used next to it, though at 1 s its tokens are 0.3 GB. The
 * second one's weights give way later. Request 1 waits until request 0 has left, and another second
 * for 1 GB at 1 GB/s. */
START_TEST(who_is_in_keeps_room_for_all_tokens)
{
    static const struct scenario_request q[] = {
        {.cls = RT, .input_tokens = 64, .output_tokens = 1301},
        {.cls = RT, .arrival_s = 1, .input_tokens = 64, .output_tokens = 1}};
    sc.machine.memory_bytes = 3e9;
    memset(told_ns, 0, sizeof told_ns);
    run(q, (const uint8_t[]){0, 1}, NULL, 2, serve);
    int64_t left_ns = MS(4) + 3 + 1300 * (MS(4) + 1);
    ck_assert_int_eq(sc.records[0].finish_ns, left_ns);
    ck_assert_int_eq(told_ns[1], left_ns + MS(1000) + 1);
    ck_assert_uint_eq(sc.result.model_evictions, 1);
}
END_TEST

/* Memory holds the weights of both, 1 GB each, and 1 GB more. At 1 ms other programs take 0.9 GB,
 * so 6 blocks of 16 tokens are left next to both. Requests 0 and 2 are of the first model, request
 * 1 of the second, and each needs 51 blocks for 801 tokens. Request 1 is refused, and its model's
 * weights make room: 68 blocks. Request 0 has 38 for its prompt and continues. Request 2 needs 38
 * at once, so it waits for request 0. Request 3 comes at 5 s for the second model, whose weights
 * are loaded again in 1 s: 5 blocks fit next to both.
 *
 * Where request 1 needs 3 blocks, 2 and 0 are refused. No request is refused where only 0.1 GB are
 * taken. */
START_TEST(who_has_no_room_next_to_weights_in_use_is_refused)
{
    const struct scenario_request q[] = {
        {.cls = RT, .input_tokens = 600, .output_tokens = 201},
        {.cls = RT, .input_tokens = _i == 1 ? 32 : 600, .output_tokens = _i == 1 ? 1 : 201},
        {.cls = RT, .input_tokens = 600, .output_tokens = 201},
        {.cls = RT, .arrival_s = 5, .input_tokens = 64, .output_tokens = 1}};
    sc.machine.memory_bytes = 3e9;
    sc.events[sc.n_events++] = (struct machine_event){.at_ns = MS(1),
                                                      .until_ns = TRACE_LAST_NS,
                                                      .sets = MACHINE_SETS_MEMORY,
                                                      .memory_bytes = _i == 2 ? 1e8 : 9e8};
    memset(told_ns, 0, sizeof told_ns);
    run(q, (const uint8_t[]){0, 1, 0, 1}, NULL, 4, serve);
    for (uint32_t i = 0; i < 4; i++) {
        bool refused = (_i == 0 && i == 1) || (_i == 1 && (i == 0 || i == 2));
        ck_assert_int_eq(sc.records[i].state,
                         refused ? REQUEST_STATE_SHED : REQUEST_STATE_FINISHED);
    }
    static const uint64_t shed[] = {1, 2, 0};
    ck_assert_uint_eq(sc.result.counters[COUNTER_MEMORY_SHED], shed[_i]);
    if (_i == 0) {
        int64_t left_ns = MS(4) + 3 + 200 * (MS(4) + 1);
        ck_assert_int_eq(sc.records[0].finish_ns, left_ns);
        ck_assert_int_eq(sc.records[2].first_token_ns, left_ns + MS(4) + 3);
        ck_assert_int_eq(told_ns[3], MS(6000) + 1);
    }
}
END_TEST

/* A user who gives up while weights are loaded leaves at once, and the policy never knew of the
 * request. */
static void tell_nothing(struct sched *s, struct script *y)
{
    ck_assert_ptr_null(y->request[1]);
    serve(s, y);
}

START_TEST(who_gives_up_while_weights_are_loaded_was_never_there)
{
    sc.setup.weights_at_start = false;
    sc.setup.horizon_ns = MS(1500);
    two.other.llm.weight_bytes = 3e9;
    memset(told_ns, 0, sizeof told_ns);
    run(two_prompts, (const uint8_t[]){0, 1}, NULL, 2, tell_nothing);
    ck_assert_uint_eq(sc.result.audit.finished, 1);
    ck_assert_uint_eq(sc.result.audit.queued + sc.result.audit.running, 1);
}
END_TEST

/* A request whose memory is taken while the weights of its model are loaded never used them.
 * Loading 3 GB takes until 3 s; other programs have 2 of 4 GB from 1 s to 1.5 s. The weights make
 * room at 5 s, and the 2 GB of the first model are there at 7 s. */
START_TEST(who_is_shed_while_weights_are_loaded_does_not_hold_them)
{
    static const struct scenario_request q[] = {
        {.cls = RT, .input_tokens = 64, .output_tokens = 1},
        {.cls = RT, .arrival_s = 5, .input_tokens = 64, .output_tokens = 1}};
    sc.setup.weights_at_start = false;
    sc.machine.memory_bytes = 4e9;
    sc.llm.weight_bytes = 2e9;
    two.other.llm.weight_bytes = 3e9;
    for (uint32_t i = 0; i < 2; i++) {
        sc.events[sc.n_events++] = (struct machine_event){.at_ns = MS(1000) + MS(500) * i,
                                                          .until_ns = TRACE_LAST_NS,
                                                          .sets = MACHINE_SETS_MEMORY,
                                                          .memory_bytes = i == 0 ? 2e9 : 0.0};
    }
    memset(told_ns, 0, sizeof told_ns);
    run(q, (const uint8_t[]){1, 0}, NULL, 2, serve);
    ck_assert_uint_eq(sc.result.audit.shed, 1);
    ck_assert_int_eq(told_ns[0], 0);
    ck_assert_int_eq(told_ns[1], MS(7000) + 1);
    ck_assert_uint_eq(sc.result.model_evictions, 1);
}
END_TEST

/* Loading takes 1 s for the first model and then 2 s for the second. Request 0 of the first is
 * served from 1 s to 5 s. Request 2 of the same model is known at 1 s, and request 1 of the second
 * at 3 s. Request 1 came at 0 and request 2 at 0.5 s, so in arrival order request 1 is next: 6 ms.
 */
START_TEST(a_request_whose_weights_were_late_has_its_place_by_arrival)
{
    static const char *const by_arrival[] = {"recompute-preempt", "pd-static"};
    static const struct scenario_request q[] = {
        {.cls = RT, .input_tokens = 64, .output_tokens = 1},
        {.cls = RT, .input_tokens = 64, .output_tokens = 1},
        {.cls = RT, .arrival_s = 0.5, .input_tokens = 64, .output_tokens = 1}};
    sc.setup.weights_at_start = false;
    two.other.llm.weight_bytes = 2e9;
    scenario_cost(&sc, -1, OP_MHA, 4000, 0, 0);
    scenario_policy(&sc, policy_find(by_arrival[_i]), "");
    ck_assert_int_eq(two_models_run(&sc, q, (const uint8_t[]){0, 1, 0}, NULL, 3, false), 0);
    ck_assert_int_eq(sc.records[0].first_token_ns, MS(5000) + 3);
    ck_assert_int_eq(sc.records[1].first_token_ns, MS(5006) + 10);
    ck_assert_int_eq(sc.records[2].first_token_ns, MS(9006) + 13);
}
END_TEST

/* Under prema waiting earns tokens, 1 plus the wait over the time alone. Loading takes 1 s and 2 s
 * as above. Request 0 is reactive: four passes of 512 tokens and 1 s. At 5 s request 1, of the
 * second model, has waited 5 s. It takes 2.106 s alone (three layers of 0.7 s, a decode of 6 ms),
 * so it has 3.37 tokens. Request 2 has waited 1.5 s and takes 1.004 s: 2.49 tokens. The threshold
 * is 3, so the longer request 1 is next. Without its wait for weights it had 1.95, and was last. */
START_TEST(waiting_for_weights_earns_tokens)
{
    static const struct scenario_request q[] = {
        {.cls = RT, .input_tokens = 2048, .output_tokens = 1},
        {.cls = BE, .input_tokens = 64, .output_tokens = 1},
        {.cls = BE, .arrival_s = 3.5, .input_tokens = 64, .output_tokens = 1}};
    sc.setup.weights_at_start = false;
    two.other.llm.weight_bytes = 2e9;
    scenario_cost(&sc, -1, OP_MHA, 1000, 0, 0);
    scenario_cost(&two.other, -1, OP_MHA, 700, 0, 0);
    scenario_policy(&sc, policy_find("prema"), "expected_output=1");
    ck_assert_int_eq(two_models_run(&sc, q, (const uint8_t[]){0, 1, 0}, NULL, 3, false), 0);
    ck_assert_int_eq(sc.records[0].first_token_ns, MS(5000) + 9);
    ck_assert_int_eq(sc.records[1].first_token_ns, MS(7100) + 16);
    ck_assert_int_eq(sc.records[2].first_token_ns, MS(8100) + 19);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = setup, .teardown = teardown),
    TEST(weights_are_loaded_at_the_rate_of_the_loader),
    TEST(weights_are_there_at_the_start_by_default),
    LOOP(mapped_graphs_hold_the_weights_of_the_first_model_only, 2),
    TEST(idle_weights_give_way_and_come_back),
    TEST(weights_in_use_stay_and_later_requests_wait),
    TEST(idle_weights_give_way_to_kv),
    TEST(idle_weights_stay_where_they_would_not_be_enough),
    TEST(idle_weights_stay_where_a_load_would_not_fit),
    TEST(the_weights_used_longest_ago_give_way),
    TEST(who_is_in_keeps_room_for_all_tokens),
    LOOP(who_has_no_room_next_to_weights_in_use_is_refused, 3),
    TEST(who_gives_up_while_weights_are_loaded_was_never_there),
    TEST(who_is_shed_while_weights_are_loaded_does_not_hold_them),
    LOOP(a_request_whose_weights_were_late_has_its_place_by_arrival, 2),
    TEST(waiting_for_weights_earns_tokens),
};
SUITE_MAIN("model_weights", suite)

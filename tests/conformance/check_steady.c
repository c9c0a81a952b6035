/* Some policies promise under conditions that the next iteration is the same (sched_steady). A
 * missing promise costs time alone, and no result shows it. So these tests count the passes that
 * the engine repeated by itself. Requests arrive at once and decode for 300 tokens. While all of
 * them decode in one iteration nothing happens before the first has ended. So at most a few of
 * those passes may be formed one by one, and without the promise every one of them is. */
#include <malloc.h>
#include <string.h>

#include "policies/registry.h"
#include "tests/helpers/script.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/two_models.h"

enum { TOKENS = 300, MOST = 6 };

static struct scenario sc;
static uint64_t n_repeated; /* before the first request has ended */
static bool ended;
static int64_t *ends; /* of each request; NULL where no test needs them */

static void on_repeated(void *self, int64_t now_ns, const struct repeat_record *r)
{
    (void)self;
    (void)now_ns;
    n_repeated += ended ? 0 : r->n;
}

static void on_finished(void *self, int64_t now_ns, const struct request *r)
{
    (void)self;
    ended = true;
    if (ends != NULL) {
        ends[r->id] = now_ns;
    }
}

static void nothing(void *self, int64_t now_ns, const struct pass *p)
{
    (void)self;
    (void)now_ns;
    (void)p;
}

/* These are numbers of reactive and proactive requests, and whether their iterations repeat. */
static const struct {
    const char *policy, *params;
    uint32_t reactive, proactive;
    bool repeats;
} cases[] = {
    {"vllm-v0", "", 2, 2, true},
    {"vllm-v1", "", 2, 2, true},
    {"vllm-priority", "", 2, 2, true},
    {"sarathi", "", 2, 2, true},
    {"sglang-lpm", "", 2, 2, true},
    {"openvino-cb", "", 2, 2, true},
    {"orca", "", 2, 2, true},
    {"program-fcfs", "", 2, 2, true},
    {"sjf-input", "", 2, 2, true},
    {"edf", "", 2, 2, true},
    {"llf", "", 2, 2, true},
    {"srpt", "", 2, 2, true},
    {"prema", "", 2, 2, true},
    {"vtc", "", 2, 2, true},
    {"critical-path", "", 2, 2, true},
    {"pantheon", "max_batch=16,class=blind", 2, 2, true},
    /* A stop compares keys of each iteration, and keys that never change are the same in all. */
    {"program-fcfs", "preempt=kernel", 2, 2, true},
    {"sjf-input", "preempt=layer", 2, 2, true},
    {"edf", "preempt=kernel", 2, 2, false},
    {"srpt", "preempt=kernel", 2, 2, false},
    /* Rules for tool gaps look at the clock. */
    {"edf", "gap_kv=preserve", 2, 2, false},
    {"edf", "gap_kv=reactive", 2, 2, false},
    /* These orders look at each iteration. */
    {"mlfq", "", 2, 2, false},
    {"andes", "", 2, 2, false},
    {"autellix-like", "", 2, 2, false},
    /* In agent-xpu-v2 all decode in the batch, or the reactive ones fill it. */
    {"agent-xpu-v2", "", 0, 4, true},
    {"agent-xpu-v2", "", 4, 0, true},
    {"agent-xpu-v2", "", 1, 2, true},
    {"agent-xpu-v2", "", 3, 2, true},
    {"agent-xpu-v2", "", 2, 2, false}, /* one of two proactive ones, by its length */
    {"agent-xpu-v2", "b_rf=4", 2, 2, true},
    {"agent-xpu-v2", "b_rf=0", 2, 2, true},
    {"agent-xpu-v2", "max_batch=2", 0, 4, false},
    {"agent-xpu-v2", "cap=slo", 1, 2, false},
    {"agent-xpu-v2", "cap=slo", 0, 3, true},
    {"agent-xpu-v2", "gap_kv=preserve", 0, 3, false},
    {"agent-xpu-v2", "flash=always", 0, 3, false},
    {"agent-xpu-v2", "speculate=igpu", 0, 3, false},
};

START_TEST(iterations_repeat_where_that_is_promised)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scenario_request q[MOST];
        uint32_t n = cases[i].reactive + cases[i].proactive;
        for (uint32_t k = 0; k < n; k++) {
            bool reactive = k < cases[i].reactive;
            q[k] = (struct scenario_request){reactive ? RT : BE, 0, 40 + 3 * k, TOKENS, 0, 0};
        }
        scenario_init(&sc);
        scenario_cost(&sc, -1, OP_QKV, 0.1, 0.01, 5);
        scenario_cost(&sc, -1, OP_MHA, 1, 0, 5);
        struct observer o = {
            .pass_done = nothing, .repeated = on_repeated, .request_finished = on_finished};
        sc.setup.observers[0] = &o; /* no other one would watch each pass */
        sc.setup.n_observers = 1;
        scenario_policy(&sc, policy_find(cases[i].policy), cases[i].params);
        n_repeated = 0;
        ended = false;
        ck_assert_msg(scenario_run(&sc, q, n, false) == 0, "%s", sc.result.message);
        bool fine = cases[i].repeats ? n_repeated > TOKENS - 20 : n_repeated == 0;
        ck_assert_msg(fine, "%s:%s, %u and %u: %u passes were repeated", cases[i].policy,
                      cases[i].params, cases[i].reactive, cases[i].proactive, (unsigned)n_repeated);
        scenario_fini(&sc);
    }
}
END_TEST

/* Requests 0 and 1 are reactive, of two models, and 2 is proactive, of the first. A pass is of one
 * model, so passes of 0 with 2 and passes of 1 take turns. The first is as large as all reactive
 * requests are, and not all of these are in it. */
START_TEST(passes_of_two_models_that_take_turns_do_not_repeat)
{
    struct scenario_request q[] = {
        {RT, 0, 40, TOKENS, 0, 0}, {RT, 0, 40, TOKENS, 0, 0}, {BE, 0, 40, TOKENS, 0, 0}};
    struct two_models two;
    two_models_by_hand(&sc, &two);
    struct observer o = {
        .pass_done = nothing, .repeated = on_repeated, .request_finished = on_finished};
    sc.setup.observers[0] = &o;
    sc.setup.n_observers = 1;
    scenario_policy(&sc, policy_find("agent-xpu-v2"), "");
    int rc = two_models_run(&sc, q, (uint8_t[]){0, 1, 0}, NULL, 3, false);
    ck_assert_msg(rc == 0, "%s", sc.result.message);
    ck_assert_uint_eq(n_repeated, 0);
    two_models_fini(&sc);
}
END_TEST

/* The second of two models takes one to twelve times the memory of the first for a token. All
 * requests ask for it, or all for the first, and memory holds one to three of four answers. A
 * request ends at the same time with and without repetition, whichever gives way in between. */
START_TEST(iterations_repeat_as_far_as_memory_reaches)
{
    static struct two_models two;
    uint64_t repeated = 0;
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (uint32_t load = 0; load < 12 && cases[i].repeats; load++) {
            struct scenario_request q[MOST];
            uint32_t n = cases[i].reactive + cases[i].proactive;
            uint8_t model[MOST];
            int64_t ends_ns[2][MOST];
            for (uint32_t k = 0; k < n; k++) {
                bool reactive = k < cases[i].reactive;
                q[k] = (struct scenario_request){reactive ? RT : BE, 0, 40 + 3 * k, TOKENS, 0, 0};
                model[k] = load % 4 > 0;
            }
            for (int once = 0; once < 2; once++) {
                two_models_by_hand(&sc, &two);
                sc.llm.kv_bytes_per_token = 1e5;
                two.other.llm.kv_bytes_per_token = 1e5 * (1 + load);
                sc.setup.kv_capacity_tokens = 16 * (24 + 5 * load);
                struct observer o = {.pass_done = nothing,
                                     .repeated = once == 0 ? on_repeated : NULL,
                                     .request_finished = on_finished};
                sc.setup.observers[0] = &o;
                sc.setup.n_observers = 1;
                scenario_policy(&sc, policy_find(cases[i].policy), cases[i].params);
                n_repeated = 0;
                ended = false;
                ends = ends_ns[once];
                int rc = two_models_run(&sc, q, model, NULL, n, false);
                ck_assert_msg(rc == 0, "%s, load %u: %s", cases[i].policy, load, sc.result.message);
                repeated += n_repeated;
                two_models_fini(&sc);
            }
            for (uint32_t k = 0; k < n; k++) {
                ck_assert_msg(ends_ns[0][k] == ends_ns[1][k],
                              "%s, load %u: request %u ends at %lld ns, not %lld", cases[i].policy,
                              load, k, (long long)ends_ns[0][k], (long long)ends_ns[1][k]);
            }
        }
    }
    ck_assert_uint_gt(repeated, 10000);
}
END_TEST

/* Many things draw power in a decode. One of these draws much more than all others: the platform,
 * the devices at rest, a device at work, a host that polls or samples, what is behind the supply.
 */
static void power_drawn_by(uint32_t part)
{
    sc.machine.idle_watts = part == 0 ? 100 : 1;
    for (uint32_t d = 0; d < sc.machine.n_devices; d++) {
        sc.machine.devices[d].idle_watts = part == 1 ? 100 : 1;
        sc.machine.devices[d].decode_watts = part == 2 ? 200 : part == 1 ? 101 : 2;
    }
    sc.machine.poll_watts = part == 3 ? 100 : 1;
    sc.machine.compile_watts = part == 4 ? 100 : 1;
    sc.machine.sample_ns_per_token = MS(0.1);
    sc.machine.schedule_ns = MS(0.2); /* each iteration begins with an idle machine */
    sc.setup.supply = (struct sim_supply){0.8, part == 5 ? 100 : 1};
}

/* Joules that the battery gave until the end. */
static double given_j(void)
{
    return sc.result.audit.energy_integral_j / 0.8 +
           sc.setup.supply.rest_watts * units_s_from_ns(sc.result.end_ns);
}

/* A battery has a share of what a run takes. The run ends when that is drawn, also in the middle of
 * iterations that would repeat. */
START_TEST(iterations_repeat_as_far_as_the_battery_reaches)
{
    static const struct scenario_request q[] = {{BE, 0, 40, TOKENS, 0, 0},
                                                {BE, 0, 43, TOKENS, 0, 0}};
    double all_j = 0.0;
    for (int k = 0; k <= 40; k++) {
        scenario_init(&sc);
        scenario_cost(&sc, -1, OP_MHA, 1, 0, 5);
        power_drawn_by((uint32_t)_i);
        struct observer o = {
            .pass_done = nothing, .repeated = on_repeated, .request_finished = on_finished};
        sc.setup.observers[0] = &o;
        sc.setup.n_observers = 1;
        double charge_j = k == 0 ? 1e6 : all_j * (0.2 + 0.015 * k);
        sc.events[0] = (struct machine_event){.until_ns = TRACE_LAST_NS,
                                              .sets = MACHINE_SETS_BATTERY | MACHINE_SETS_SOURCE,
                                              .battery_j = charge_j,
                                              .battery_full_j = 1e6,
                                              .on_battery = true};
        sc.n_events = 1;
        scenario_policy(&sc, policy_find("agent-xpu-v2"), "");
        n_repeated = 0;
        ended = false;
        ck_assert_msg(scenario_run(&sc, q, 2, false) == 0, "%s", sc.result.message);
        ck_assert(sc.result.battery.empty == (k > 0));
        ck_assert_uint_gt(n_repeated, 20);
        if (k == 0) {
            all_j = given_j();
        } else {
            ck_assert_double_eq_tol(given_j(), charge_j, 1e-6 * charge_j);
        }
        scenario_fini(&sc);
    }
}
END_TEST

/* ---- a policy that looks at each of its passes ---- */

static const struct policy_ops *orca;
static uint32_t n_over;
static size_t allocated[1024];

static void over(struct sched *s, const struct pass *p)
{
    ck_assert_uint_eq(p->op, p->n_ops);
    ck_assert_uint_eq(p->rows_todo, 0);
    ck_assert_uint_eq(p->rows_active, 0);
    ck_assert_uint_eq(p->n_launches, 0);
    ck_assert_int_eq(p->state, PASS_STATE_DONE);
    ck_assert_uint_lt(n_over, 1024);
    struct mallinfo2 m = mallinfo2();
    allocated[n_over++] = m.uordblks + m.hblkhd;
    orca->pass_done(s, p);
}

/* Runs one request of so many tokens alone, under orca. */
static void run_alone(uint32_t tokens)
{
    struct scenario_request q = {BE, 0, 32, tokens, 0, 0};
    struct policy_ops looks = *(orca = policy_find("orca"));
    looks.pass_done = over;
    scenario_init(&sc);
    scenario_cost(&sc, -1, OP_QKV, 0.1, 0.01, 5);
    scenario_cost(&sc, -1, OP_MHA, 1, 0, 5);
    sc.machine.memory_bytes = 1e15;
    struct observer o = {
        .pass_done = nothing, .repeated = on_repeated, .request_finished = on_finished};
    sc.setup.observers[0] = &o;
    sc.setup.n_observers = 1;
    scenario_policy(&sc, &looks, "");
    n_over = 0;
    n_repeated = 0;
    ended = false;
    ck_assert_msg(scenario_run(&sc, &q, 1, false) == 0, "%s", sc.result.message);
    scenario_fini(&sc);
}

/* Hundreds of iterations are one end for the policy, and that pass ends as any other does. */
START_TEST(a_repeated_pass_is_over_as_any_other)
{
    run_alone(TOKENS);
    ck_assert_uint_gt(n_repeated, TOKENS - 20);
    ck_assert_uint_lt(n_over, 20);
}
END_TEST

/* A run takes no more memory for its thousandth repetition than for its first, because the memory
 * of each is used again. */
START_TEST(repetitions_take_no_memory)
{
    run_alone(500000);
    ck_assert_uint_gt(n_over, 900);
    ck_assert_uint_eq(allocated[n_over - 1], allocated[10]);
}
END_TEST

/* ---- drafts after repeated iterations ---- */

static uint32_t n_verified;

/* Before a draft of this request each token but the first was an iteration of its own, and has used
 * a draw. All drafts are rejected, so that this holds for each of them. */
static uint32_t reject(const void *params, uint64_t seed, const struct request *r,
                       const struct trace_text *text, uint64_t draw, uint32_t drafted)
{
    (void)params, (void)seed, (void)text, (void)drafted;
    ck_assert_uint_eq(draw, r->generated_tokens - 1);
    n_verified++;
    return 0;
}

/* Promises to decode until 100 ms, and verifies drafts of two tokens from then on. */
static void decode_then_verify(struct sched *s, struct script *y)
{
    const struct request *r = y->request[0];
    if (r == NULL || r->pass != NULL) {
        return;
    }
    if (s->now_ns < MS(100)) {
        sched_steady(s, MS(100), 0);
        y->pass[0] = script_form(s, r);
    } else {
        struct segment drafts = {.request = r, .role = SEGMENT_VERIFY, .n_tokens = 3};
        struct pass_spec spec = {.segments = &drafts, .n_segments = 1};
        ck_assert_int_eq(sched_pass_form(s, &spec, &y->pass[0]), 0);
    }
    ck_assert_int_eq(script_launch(s, y->pass[0], IGPU, YIELD_PASS, NULL), 0);
}

START_TEST(a_repeated_iteration_uses_a_draw)
{
    static struct script x = {.step = decode_then_verify};
    static const struct scenario_request q = {BE, 0, 32, TOKENS, 0, 0};
    scenario_init(&sc);
    scenario_cost(&sc, -1, OP_LAYER, 1, 0, 5);
    scenario_cost(&sc, -1, OP_MHA, 1, 0, 5);
    struct observer o = {
        .pass_done = nothing, .repeated = on_repeated, .request_finished = on_finished};
    sc.setup.observers[0] = &o;
    sc.setup.n_observers = 1;
    sc.setup.accept = reject;
    n_verified = 0;
    ck_assert_msg(script_run(&sc, &x, &q, 1) == 0, "%s", sc.result.message);
    ck_assert_uint_gt(n_repeated, 50);
    ck_assert_uint_gt(n_verified, 50);
    scenario_fini(&sc);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(a_repeated_iteration_uses_a_draw),
    TEST(a_repeated_pass_is_over_as_any_other),
    TEST(repetitions_take_no_memory),
    TEST(iterations_repeat_where_that_is_promised),
    TEST(iterations_repeat_as_far_as_memory_reaches),
    LOOP(iterations_repeat_as_far_as_the_battery_reaches, 6),
    TEST(passes_of_two_models_that_take_turns_do_not_repeat),
};
SUITE_MAIN("steady", suite)

/* The systems of sd.npu by name: what each preset means, on one trace with the paper's model and
 * phone. Expectations come from Table 4, from the model's own sizes, and from D.8. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/run/config.h"
#include "experiments/run/runner.h"
#include "sim/base/arena.h"
#include "tests/helpers/suite.h"

static struct err err;
static struct config config;
static struct config_options options;
static struct trace trace;

static void open_with(const char *workload, const char *const *sets, uint32_t n)
{
    err = (struct err)ERR_INIT;
    options = config_options_default();
    options.soc = "snapdragon-8gen2";
    options.llm = "qwen2.5-1.5b";
    options.workload = workload;
    for (uint32_t i = 0; i < n; i++) {
        options.sets[options.n_sets++] = sets[i];
    }
    ck_assert_int_eq(config_load(&config, &options, &err), 0);
    ck_assert_int_eq(config_trace(&options, 3, CONFIG_AS_WRITTEN, &trace, &err), 0);
}

static void setup(void)
{
    open_with("summary:n=60,gap_s=10", NULL, 0);
}

static void teardown(void)
{
    trace_fini(&trace);
    config_fini(&config);
    err_fini(&err);
}

struct outcome {
    double e2e_s, ttft_s, tpot_s, memory_bytes, verifies, drafted, accepted, active_j;
};

static double value(const struct runner_result *r, const char *name)
{
    const struct metric *m = metric_list_find(&r->metrics, name);
    ck_assert_msg(m != NULL, "%s", name);
    return m->value;
}

static struct outcome run(const char *spec)
{
    struct config_policy p;
    struct runner_options o = {0};
    struct runner_result r;
    ck_assert_int_eq(config_policy_parse(&p, spec, &err), 0);
    int rc = runner_run(&config, &p, &trace, 3, &o, &r, &err);
    ck_assert_msg(rc == 0, "%s: %s", spec, r.sim.message);
    ck_assert_uint_eq(r.sim.counters[COUNTER_LAUNCH_DEVICE_BUSY], 0);
    struct outcome out = {value(&r, "reactive.e2e_s.mean"),
                          value(&r, "reactive.ttft_s.mean"),
                          value(&r, "reactive.tpot_s.mean"),
                          value(&r, "memory_peak_bytes"),
                          value(&r, "verify.n"),
                          value(&r, "verify.drafted_tokens.mean"),
                          value(&r, "verify.accepted_tokens.mean"),
                          value(&r, "energy_active_j")};
    runner_result_fini(&r);
    return out;
}

/* Looks for a part in the parameters as text, after presets. */
static bool has(const char *spec, const char *part)
{
    struct config_policy p;
    ck_assert_int_eq(config_policy_parse(&p, spec, &err), 0);
    return strstr(p.params_text, part) != NULL;
}

START_TEST(a_system_sets_what_is_not_given)
{
    ck_assert(has("sd-npu:system=npu", "strategy=unified-g2"));
    ck_assert(has("sd-npu:system=npu", "speculate=false"));
    ck_assert(has("sd-npu:system=cpu-sam", "decode=cpu"));
    ck_assert(has("sd-npu:system=cpu-sam", "drafter=sam"));
    /* An option that is given stays, before or after the system. */
    ck_assert(has("sd-npu:strategy=sync,system=npu", "strategy=sync"));
    ck_assert(has("sd-npu:system=npu,strategy=sync", "strategy=sync"));
    ck_assert(has("sd-npu:system=npu,strategy=sync", "speculate=false"));
    ck_assert(has("sd-npu", "strategy=progressive"));
}
END_TEST

/* Each system has its drafter and acceptance on this cell of Table 4, and the tokens it
 * verifies. */
static const struct {
    const char *system;
    double accepted, drafted;
} drafting[] = {
    {"npu-pld", 2.53, 10}, {"npu+sd", 3.60, 40}, {"npu-sam", 3.60, 40}, {"cpu-pld", 2.53, 10}};

START_TEST(each_system_brings_its_own_drafter)
{
    /* Four standard errors are allowed. A step's accepted count has a standard deviation of about
     * 2.5 times its mean at most, over all steps. The last draft of a request is cut, so means are
     * lower by at most 1 / steps per request. */
    char spec[64];
    (void)snprintf(spec, sizeof spec, "sd-npu:system=%s", drafting[_i].system);
    struct outcome o = run(spec);
    double error = 4.0 * 2.5 * drafting[_i].accepted / sqrt(o.verifies);
    ck_assert_double_eq_tol(o.accepted, drafting[_i].accepted, error);
    ck_assert_double_le(o.drafted, drafting[_i].drafted);
    ck_assert_double_ge(o.drafted, 0.99 * drafting[_i].drafted);
}
END_TEST

START_TEST(systems_without_speculation_verify_nothing)
{
    ck_assert_double_eq(run("sd-npu:system=npu").verifies, 0);
    ck_assert_double_eq(run("sd-npu:system=npu+g").verifies, 0);
    ck_assert_double_eq(run("sd-npu:system=cpu").verifies, 0);
}
END_TEST

START_TEST(sd_npu_fits_its_drafts_into_one_pass)
{
    /* 1 + 31 rows are one pass of 32, 1 + 40 are two. Ours beats SAM by the second pass: with equal
     * drafting the step halves but for the head and the host. */
    struct outcome ours = run("sd-npu:system=sd-npu,calibrate_ms=0,strategy=keep-both");
    struct outcome two =
        run("sd-npu:system=sd-npu,calibrate_ms=0,strategy=keep-both,length=offered");
    ck_assert_double_le(ours.drafted, 31);
    ck_assert_double_gt(two.drafted, 39);
    ck_assert_double_lt(ours.tpot_s, 0.7 * two.tpot_s);
}
END_TEST

START_TEST(graph_switching_leaves_decoding_as_it_is)
{
    /* With both graphs in memory nothing is exposed: the time per token after the first is that of
     * the decode graph, whichever graph prefilled. The prefill graph prefills faster. */
    struct outcome one = run("sd-npu:system=npu");
    struct outcome both = run("sd-npu:system=npu+g,strategy=keep-both");
    ck_assert_double_eq_tol(both.tpot_s / one.tpot_s, 1.0, 1e-6);
    ck_assert_double_lt(both.ttft_s, one.ttft_s);
}
END_TEST

START_TEST(memory_counts_graphs_copies_and_drafters)
{
    /* There are one resident copy of the weights w and the KV of the longest request, below 1 % of
     * it here. A switched block leaves before it comes, so switching needs no more. Both graphs, or
     * a copy for the CPU, need 2 w. EAGLE needs a layer and the head. Calibration needs the bytes
     * of its parameter. */
    double w = config.llm.weight_bytes;
    double layer = config.llm.body_weights * config.llm.body_bytes_per_weight / 28;
    double head = config.llm.head_weights * config.llm.head_bytes_per_weight;
    double one = run("sd-npu:system=npu").memory_bytes;
    ck_assert_double_ge(one, w);
    ck_assert_double_le(one, 1.02 * w);
    ck_assert_double_eq(run("sd-npu:system=npu+g").memory_bytes, one);
    ck_assert_double_eq_tol(run("sd-npu:system=npu+g,strategy=keep-both").memory_bytes, one + w, 2);
    ck_assert_double_eq_tol(run("sd-npu:system=cpu").memory_bytes, one + w, 2);
    double eagle = run("sd-npu:system=npu-eagle").memory_bytes;
    ck_assert_double_eq_tol(eagle - one, layer + head, 1e6); /* KV of drafted tokens */
    double ours = run("sd-npu:system=sd-npu,calibrate_mb=100").memory_bytes;
    ck_assert_double_eq_tol(ours - one, 100e6, 1e6);
}
END_TEST

/* A forward is a layer and the head. Passes of the decode graph cost as their weights do, within
 * the attention and the fixed cost of a kernel; a plain step is one pass. Nothing but time differs,
 * and what the NPU draws in decode above idle for as long. */
START_TEST(eagle_drafts_with_as_many_forwards_as_it_is_told)
{
    double layer = config.llm.body_weights / 28;
    double share =
        (layer + config.llm.head_weights) / (config.llm.body_weights + config.llm.head_weights);
    bool cpu = _i == 1;
    double forward_s = run(cpu ? "sd-npu:system=npu,decode=cpu" : "sd-npu:system=npu").tpot_s;
    forward_s *= share;
    static const char *const specs[2][3] = {
        {"sd-npu:system=npu-eagle", "sd-npu:system=npu-eagle,eagle_forwards=6",
         "sd-npu:system=npu-eagle,eagle_forwards=11"},
        {"sd-npu:system=npu-eagle,decode=cpu",
         "sd-npu:system=npu-eagle,decode=cpu,eagle_forwards=6",
         "sd-npu:system=npu-eagle,decode=cpu,eagle_forwards=11"}};
    struct outcome one = run(specs[_i][0]);
    struct outcome six = run(specs[_i][1]);
    struct outcome eleven = run(specs[_i][2]);
    ck_assert_double_eq(six.verifies, one.verifies);
    double steps = one.verifies / (double)trace.n;
    double added_s = (six.e2e_s - one.e2e_s) / (5.0 * steps);
    printf("sd-npu: a forward of EAGLE's drafter takes %.2f ms (by weights %.2f)\n", 1e3 * added_s,
           1e3 * forward_s);
    ck_assert_double_eq_tol(added_s / forward_s, 1.0, 0.2);
    ck_assert_double_eq_tol((eleven.e2e_s - six.e2e_s) / (5.0 * steps), added_s, 1e-6);
    const struct machine *m = &config.soc.machine;
    const struct device *device =
        &m->devices[machine_find(m, cpu ? DEVICE_KIND_CPU : DEVICE_KIND_NPU)];
    double drafting_s = 5.0 * one.verifies * added_s;
    ck_assert_double_eq_tol((six.active_j - one.active_j) /
                                ((device->decode_watts - device->idle_watts) * drafting_s),
                            1.0, 1e-3);
}
END_TEST

/* Seconds that five more forwards a step add to a request. */
static double five_forwards_s(void)
{
    return run("sd-npu:system=npu-eagle,eagle_forwards=6").e2e_s -
           run("sd-npu:system=npu-eagle").e2e_s;
}

/* A limit of 0.1 mW, which is met at once, leaves the lowest speed: a half. */
START_TEST(a_power_limit_slows_eagles_drafter)
{
    static const char *const sets[] = {"sim.power.limit=thermal", "sim.power.limit_c=25.1",
                                       "sim.power.resistance_k_per_w=1000",
                                       "sim.power.min_speed=0.5"};
    double full_s = five_forwards_s();
    teardown();
    open_with("summary:n=60,gap_s=10", sets, 4);
    ck_assert_double_eq_tol(five_forwards_s() / full_s, 2.0, 1e-6);
}
END_TEST

/* The tree of EAGLE-2: 1 + 60 rows are two passes of 32, and as many tokens are right. */
START_TEST(eagle_verifies_a_tree)
{
    struct outcome path = run("sd-npu:system=npu-eagle");
    static const char *const sets[] = {"sim.speculation.max_draft_tokens=60"};
    teardown();
    open_with("summary:n=60,gap_s=10", sets, 1);
    struct outcome tree = run("sd-npu:system=npu-eagle");
    ck_assert_double_gt(tree.drafted, 40); /* cut where an answer ends */
    ck_assert_double_eq_tol(tree.accepted, path.accepted, 0.05 * path.accepted);
    ck_assert_double_gt(tree.tpot_s, 1.6 * path.tpot_s);
    ck_assert_double_lt(tree.tpot_s, 2.0 * path.tpot_s);
}
END_TEST

/* The prompt gives a token, and a verification one more than it accepts. An answer of two tokens
 * then has one left, for which nothing need be drafted. One of three has two left: one drafted
 * token each. */
START_TEST(nothing_is_drafted_beyond_what_may_be_said)
{
    static const char *const sam[] = {"sim.speculation.method=sam"};
    static const char *const specs[] = {"sd-npu:strategy=keep-both", "agent-xpu-v2:speculate=igpu"};
    teardown();
    open_with("summary:n=60,gap_s=10", sam, 1);
    for (uint32_t tokens = 2; tokens <= 3; tokens++) {
        for (size_t i = 0; i < trace.n; i++) {
            trace.rows[i].output_tokens = trace.rows[i].max_output_tokens = tokens;
        }
        struct outcome x = run(specs[_i]);
        ck_assert(tokens == 2 ? x.verifies == 0.0 : x.verifies > 0.0 && x.drafted == 1.0);
    }
}
END_TEST

START_TEST(switching_late_spares_the_prompt_the_slow_graph)
{
    /* Weights mapped, prompts of seven chunks: loading six blocks takes about 0.4 s of a prompt of
     * 0.9 s, and a chunk takes twice as long on the decode graph. A switch from the start pays that
     * for every later chunk; one as late as the loads allow does not. Both graphs in memory bound
     * all from below, loading after the prompt bounds the late start from above. */
    static const char *const mapped[] = {"soc.loader.bandwidth.value=6",
                                         "soc.loader.fixed.value=0.02"};
    teardown();
    open_with("rag:n=40,gap_s=10", mapped, 2);
    double both = run("sd-npu:system=npu+g+sd,strategy=keep-both").e2e_s;
    double late = run("sd-npu:system=npu+g+sd,strategy=late-start").e2e_s;
    double greedy = run("sd-npu:system=npu+g+sd").e2e_s;
    double sync = run("sd-npu:system=npu+g+sd,strategy=sync").e2e_s;
    ck_assert_double_lt(both, late);
    ck_assert_double_lt(late, greedy);
    ck_assert_double_lt(late, sync);
}
END_TEST

START_TEST(calibration_costs_its_time_per_input_token)
{
    /* 2 ms for each input token, and nothing else differs. */
    double tokens = 0;
    for (size_t i = 0; i < trace.n; i++) {
        tokens += trace.rows[i].input_tokens;
    }
    struct outcome with = run("sd-npu:system=sd-npu,strategy=keep-both");
    struct outcome without = run("sd-npu:system=sd-npu,strategy=keep-both,calibrate_ms=0");
    ck_assert_double_eq_tol(with.e2e_s - without.e2e_s, 0.002 * tokens / (double)trace.n, 1e-6);
}
END_TEST

START_TEST(adaptive_lengths_are_not_slower_than_either_fixed_one)
{
    /* Graphs of 16 rows: one pass verifies 15 tokens, the whole draft of 40 takes three. Learning
     * costs a few steps, so 2 %. */
    static const char *const base = "sd-npu:system=npu-sam,strategy=keep-both,g2=16,length=";
    double t[3];
    static const char *const lengths[] = {"offered", "pass", "adaptive"};
    for (int i = 0; i < 3; i++) {
        char spec[128];
        (void)snprintf(spec, sizeof spec, "%s%s", base, lengths[i]);
        t[i] = run(spec).e2e_s;
    }
    ck_assert_double_le(t[2], 1.02 * fmin(t[0], t[1]));
}
END_TEST

START_TEST(keeping_the_old_graph_costs_a_block_and_never_time)
{
    /* One block of six is there twice at a time. */
    double w = config.llm.weight_bytes;
    struct outcome single = run("sd-npu:system=npu+g");
    struct outcome kept = run("sd-npu:system=npu+g,keep_old=true");
    ck_assert_double_eq_tol(kept.memory_bytes, single.memory_bytes + w / 6, 0.002 * w);
    ck_assert_double_le(kept.ttft_s, single.ttft_s);
    ck_assert_double_le(kept.e2e_s, single.e2e_s);
}
END_TEST

/* 14 % of 12 GB are 1.68 GB: weights of 1.56 GB and KV, but not the one block twice. Then the old
 * graph goes before the new one comes, as without keep_old, and nobody waits for ever. */
START_TEST(an_old_graph_that_memory_cannot_keep_is_not_kept)
{
    static const char *const tight[] = {"soc.memory.usable=0.14"};
    teardown();
    open_with("summary:n=6,gap_s=10", tight, 1);
    struct outcome kept = run("sd-npu:system=npu+g,keep_old=true,blocks=1");
    struct outcome dropped = run("sd-npu:system=npu+g,keep_old=false,blocks=1");
    ck_assert(kept.e2e_s == dropped.e2e_s);
    ck_assert(kept.memory_bytes == dropped.memory_bytes);
}
END_TEST

/* There is KV for the longest request and for nothing else. Near its end a draft of 40 has no room,
 * and the request continues by single tokens. Blocks of KV hold one token, so that the room is
 * exact. */
START_TEST(a_draft_that_kv_cannot_hold_is_not_verified)
{
    uint32_t longest = 0;
    for (size_t i = 0; i < trace.n; i++) {
        uint32_t tokens = trace.rows[i].input_tokens + trace.rows[i].output_tokens;
        longest = tokens > longest ? tokens : longest;
    }
    char kv[64];
    (void)snprintf(kv, sizeof kv, "sim.kv_capacity_tokens=%u", longest);
    const char *const tight[] = {kv, "sim.kv_block_tokens=1"};
    struct outcome roomy = run("sd-npu:system=npu-sam");
    teardown();
    open_with("summary:n=60,gap_s=10", tight, 2);
    struct outcome small = run("sd-npu:system=npu-sam");
    ck_assert_double_gt(small.e2e_s, roomy.e2e_s);
    ck_assert_double_lt(small.verifies, roomy.verifies);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("systems", .setup = setup, .teardown = teardown, .timeout_s = 60),
    TEST(a_system_sets_what_is_not_given),
    LOOP(each_system_brings_its_own_drafter, 4),
    TEST(systems_without_speculation_verify_nothing),
    TEST(sd_npu_fits_its_drafts_into_one_pass),
    TEST(graph_switching_leaves_decoding_as_it_is),
    TEST(memory_counts_graphs_copies_and_drafters),
    LOOP(eagle_drafts_with_as_many_forwards_as_it_is_told, 2),
    TEST(a_power_limit_slows_eagles_drafter),
    TEST(eagle_verifies_a_tree),
    LOOP(nothing_is_drafted_beyond_what_may_be_said, 2),
    TEST(a_draft_that_kv_cannot_hold_is_not_verified),
    TEST(keeping_the_old_graph_costs_a_block_and_never_time),
    TEST(an_old_graph_that_memory_cannot_keep_is_not_kept),
    TEST(switching_late_spares_the_prompt_the_slow_graph),
    TEST(calibration_costs_its_time_per_input_token),
    TEST(adaptive_lengths_are_not_slower_than_either_fixed_one),
};
SUITE_MAIN("sd-npu", suite)

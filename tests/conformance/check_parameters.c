/* No parameter is without effect. On one of many random loads some value of every parameter of
 * every policy changes when a request gets its tokens. On half of the loads other parameters are
 * drawn, too, the same on both sides, because some matter only where others are set. A parameter
 * that no code reads, or that is read in another's place, changes nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/conformance/randomload.h"
#include "policies/registry.h"
#include "sim/base/hash.h"
#include "tests/helpers/suite.h"

enum { TRIALS = 400, MAX_REQUESTS = 24, PARAMS_BYTES = 1024 };

static struct scenario sc;
static struct scenario_request q[MAX_REQUESTS];

/* None of these loads can show these parameters. The third text says why. */
static const struct {
    const char *policy, *param, *why;
} elsewhere[] = {
    {"agent-xpu-v2", "verify_rows",
     "of drafts, which these loads have none of (check_axpu_speculate)"},
    {"agent-xpu-v2", "draft_ms", "likewise"},
    {"agent-xpu-v2", "cache_ttl_s",
     "of prompts as long as one that came some time before (check_axpu_corners)"},
    {"autellix-like", "mode", "of programs with threads (check_agent_orders)"},
    {"critical-path", "waits", "of request graphs (check_agent_orders)"},
    {"critical-path", "jobs", "likewise"},
    {"critical-path", "slack", "likewise: alone in its job a request has none"},
    {"sd-npu", "length", "of drafts (check_sd_npu)"},
    {"sd-npu", "draft_ms", "likewise"},
    {"sd-npu", "calibrate_mb", "likewise"},
    {"sd-npu", "eagle_forwards", "likewise"},
    {"sd-npu", "draft_on", "likewise"},
    {"sglang-lpm", "in_batch", "of prompts that share a beginning (check_agent_orders)"},
    {"sglang-lpm", "in_batch_tokens", "likewise"},
    {"sglang-lpm", "retract_steps",
     "of retractions, which are rare where limits are far above answers (check_sglang_steps)"},
    {NULL, NULL, NULL},
};

/* These matter only where others are set. */
static const struct {
    const char *policy, *param, *with;
} needs[] = {
    {"hpf", "inflight", "level=1"},
    {"hhpf", "inflight", "level=1"},
    {"vtc", "inflight", "class=rt_alone,preempt=kernel,level=1"},
    {"vtc", "level", "class=rt_alone,preempt=kernel,inflight=4"},
    {NULL, "inflight", "preempt=kernel,level=1"},
    {NULL, "gap_s", "gap_kv=ttl"},
    {NULL, NULL, NULL},
};

static const char *needed(const char *policy, const char *param)
{
    for (size_t i = 0; needs[i].param != NULL; i++) {
        bool of_it = needs[i].policy == NULL || strcmp(needs[i].policy, policy) == 0;
        if (of_it && strcmp(needs[i].param, param) == 0) {
            return needs[i].with;
        }
    }
    return "";
}

static bool is_elsewhere(const char *policy, const char *param)
{
    for (size_t i = 0; elsewhere[i].param != NULL; i++) {
        bool of_it = elsewhere[i].policy == NULL || strcmp(elsewhere[i].policy, policy) == 0;
        if (of_it && strcmp(elsewhere[i].param, param) == 0) {
            return true;
        }
    }
    return false;
}

/* Returns a hash of all start, first-token and finish times, with those of shed requests. 0 says
 * that the run does not begin. */
static uint64_t fate(const struct policy_ops *ops, const char *params, uint64_t seed)
{
    uint32_t n = randomload_make(&sc, q, MAX_REQUESTS, seed);
    if (strcmp(ops->name, "sd-npu") == 0) {
        sc.machine.devices[NPU].static_attention = false; /* its graphs hold the attention */
        sc.llm.n_layers = 6;
    }
    for (uint32_t d = 0; d < sc.machine.n_devices; d++) {
        struct device *dev = &sc.machine.devices[d];
        dev->can_reset = dev->can_withdraw = dev->can_suspend = true;
        dev->inflight_depth = seed % 2 == 0 ? 4 : 1;
    }
    if (seed % 5 == 0) { /* some kernels hang */
        sc.setup.hang_frac = 0.05;
        sc.setup.hang_factor = 300.0;
    }
    sc.setup.stall_ns = 60 * NS_PER_S;
    scenario_policy(&sc, ops, params);
    uint64_t h = 0;
    if (scenario_run(&sc, q, n, false) == 0) {
        h = HASH_INIT;
        for (uint32_t i = 0; i < n; i++) {
            h = hash_u64(h, (uint64_t)sc.records[i].start_ns);
            h = hash_u64(h, (uint64_t)sc.records[i].first_token_ns);
            h = hash_u64(h, (uint64_t)sc.records[i].finish_ns);
        }
    }
    scenario_fini(&sc);
    return h;
}

static double within(const struct policy_param *p, double x)
{
    return x < p->min ? p->min : x > p->max ? p->max : x;
}

/* Writes "name=value" with the k-th value that is not the default: an end of its range, or a value
 * near the default. */
static void other_value(char *out, size_t size, const struct policy_param *p, uint32_t k)
{
    static const double factor[] = {0.25, 4.0, 0.5, 2.0, 0.1, 10.0};
    if (p->type == PARAM_BOOL) {
        (void)snprintf(out, size, "%s=%s", p->name, p->def != 0.0 ? "false" : "true");
        return;
    }
    if (p->type == PARAM_CHOICE) {
        uint32_t n = 0;
        while (p->choices[n] != NULL) {
            n++;
        }
        uint32_t i = ((uint32_t)p->def + 1 + k % (n > 1 ? n - 1 : 1)) % n;
        (void)snprintf(out, size, "%s=%s", p->name, p->choices[i]);
        return;
    }
    double x = k % 4 == 3 ? p->min : k % 4 == 2 ? p->max : p->def * factor[k / 4 % 6];
    x = p->def == 0.0 && k % 4 < 2
            ? p->min + (p->max < 1e3 ? p->max - p->min : 1.0) * factor[k / 4 % 3] * 0.2
            : x;
    x = within(p, x);
    (void)snprintf(out, size, p->type == PARAM_INT ? "%s=%.0f" : "%s=%.9g", p->name, x);
}

/* Draws other values for three of ten other parameters, in every second trial. */
static size_t others(char *out, const struct policy_ops *ops, const struct policy_param *not_this,
                     uint64_t trial)
{
    struct rng r;
    size_t used = 0;
    rng_init(&r, rng_key(trial, RNG_TEST, 83, 0));
    out[0] = '\0';
    for (const struct policy_param *p = ops->params; trial % 2 == 1 && p->name != NULL; p++) {
        if (rng_below(&r, 10) < 3 && p != not_this && used + 128 < PARAMS_BYTES) {
            used += used > 0 ? (size_t)snprintf(out + used, 2, ",") : 0;
            used += randomload_param(out + used, PARAMS_BYTES - used, &r, p);
        }
    }
    return used;
}

static bool has_effect(const struct policy_ops *ops, const struct policy_param *p)
{
    for (uint32_t trial = 0; trial < TRIALS; trial++) {
        char with[PARAMS_BYTES + 256];
        char without[PARAMS_BYTES];
        char value[192];
        size_t used = others(without, ops, p, trial);
        if (trial % 2 == 0) {
            used = (size_t)snprintf(without, sizeof without, "%s", needed(ops->name, p->name));
        }
        other_value(value, sizeof value, p, trial / 2);
        (void)snprintf(with, sizeof with, "%s%s%s", without, used > 0 ? "," : "", value);
        uint64_t a = fate(ops, without, 1 + trial / 2 % 40);
        if (a != 0 && fate(ops, with, 1 + trial / 2 % 40) != a) {
            return true;
        }
    }
    return false;
}

START_TEST(every_parameter_has_an_effect)
{
    size_t n = 0;
    const struct policy_ops *ops = policy_list(&n)[_i];
    uint32_t without = 0;
    for (const struct policy_param *p = ops->params; p != NULL && p->name != NULL; p++) {
        if (!is_elsewhere(ops->name, p->name) && !has_effect(ops, p)) {
            printf("%s:%s changes nothing\n", ops->name, p->name);
            without++;
        }
    }
    (void)fflush(stdout);
    ck_assert_uint_eq(without, 0);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("parameters", .timeout_s = 300),
    LOOP_OVER(every_parameter_has_an_effect, suite_policies),
};
SUITE_MAIN("parameters", suite)

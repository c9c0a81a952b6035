/* A policy knows what the contract refuses, so nothing that it asks for is refused. Every shipped
 * policy must show that on random loads, parameters and machines. A limit that is off by one, a
 * device that is taken for a free one, or a pass that is gone is asked for in vain, and often
 * nothing else shows it. All requests get their tokens, and none waits while nothing runs. */
#include <stdio.h>
#include <string.h>

#include "experiments/conformance/randomload.h"
#include "policies/registry.h"
#include "tests/helpers/suite.h"

enum { LOADS = 120, MAX_REQUESTS = 24, PARAMS_BYTES = 1024 };

static struct scenario sc;
static struct scenario_request q[MAX_REQUESTS];

/* A policy may meet these refusals, because only the core can know. */
static const struct {
    const char *policy; /* NULL: any */
    const char *action, *why;
} asked[] = {
    {NULL, "form", "not enough free KV"},
    {NULL, "kv", "not enough free KV to read it back"},
    {NULL, "kv", "the session has no KV between two turns"}, /* it has given way */
    /* A pass whose tokens are being sampled is on no device that a policy sees. */
    {"agent-xpu-v1", "cancel", "only a pass that is on no device can be given up"},
    {"agent-xpu-v2", "cancel", "only a pass that is on no device can be given up"},
    {"llama-cpp", "cancel", "only a pass that is on no device can be given up"},
    {"time-share", "cancel", "only a pass that is on no device can be given up"},
    {"sd-npu", "drop", "a launch uses it"}, /* it does not know until when */
    {"sd-npu", "map", "only a graph block of version 1 on, of some bytes, is loaded"},
};

static bool is_asked(const struct policy_ops *ops, const struct sim_refusal *x)
{
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        if ((asked[i].policy == NULL || strcmp(asked[i].policy, ops->name) == 0) &&
            strcmp(asked[i].action, x->action) == 0 && strcmp(asked[i].why, x->why) == 0) {
            return true;
        }
    }
    return false;
}

static void draw_machine(struct rng *r)
{
    for (uint32_t d = 0; d < sc.machine.n_devices; d++) {
        struct device *dev = &sc.machine.devices[d];
        dev->inflight_depth = 1 + rng_below(r, 4);
        if (d != NPU && rng_below(r, 2) == 0) {
            dev->sharing = DEVICE_TIME_SHARED;
            dev->max_shared = 1 + rng_below(r, 6);
            dev->shared_efficiency_frac = 1.0;
        }
    }
}

static void draw_params(char params[PARAMS_BYTES], const struct policy_ops *ops, struct rng *r)
{
    size_t used = 0;
    params[0] = '\0';
    for (const struct policy_param *p = ops->params; p != NULL && p->name != NULL; p++) {
        if (rng_below(r, 10) < 3 && used + 128 < PARAMS_BYTES) {
            used += used > 0 ? (size_t)snprintf(params + used, 2, ",") : 0;
            used += randomload_param(params + used, PARAMS_BYTES - used, r, p);
        }
    }
}

START_TEST(nothing_is_refused_that_a_policy_can_know)
{
    size_t n_policies = 0;
    const struct policy_ops *ops = policy_list(&n_policies)[_i];
    uint32_t ran = 0;
    for (uint64_t load = 0; load < LOADS; load++) {
        struct rng r;
        char params[PARAMS_BYTES] = "";
        uint32_t n = randomload_make(&sc, q, MAX_REQUESTS, 1000 + load);
        rng_init(&r, rng_key(load, RNG_TEST, 91, (uint64_t)_i));
        /* Frames would be millions while a timer is far. */
        sc.setup.frames = (struct sim_frames){0};
        if (load % 2 > 0) {
            draw_machine(&r);
        }
        if (load % 3 > 0) {
            draw_params(params, ops, &r);
        }
        if (strcmp(ops->name, "sd-npu") == 0) {
            sc.machine.devices[NPU].static_attention = false; /* its graphs hold the attention */
            sc.llm.n_layers = 6;
        }
        scenario_policy(&sc, ops, params);
        int rc = scenario_run(&sc, q, n, false);
        for (uint32_t i = 0; i < sc.result.n_refusals; i++) {
            const struct sim_refusal *x = &sc.result.refusals[i];
            ck_assert_msg(is_asked(ops, x), "load %u, %s:%s: %s %u times: %s", (unsigned)load,
                          ops->name, params, x->action, (unsigned)x->n, x->why);
        }
        /* Parameters may ask for a device that is not there, or for what the text's rule starves.
         */
        ck_assert_msg(rc == 0 || sc.result.refused ||
                          strstr(sc.result.message, "idle_guard=false") != NULL,
                      "load %u, %s:%s: %s", (unsigned)load, ops->name, params, sc.result.message);
        ran += rc == 0;
        scenario_fini(&sc);
    }
    ck_assert_uint_gt(ran, LOADS / 2);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("refusals", .timeout_s = 120),
    LOOP_OVER(nothing_is_refused_that_a_policy_can_know, suite_policies),
};
SUITE_MAIN("refusals", suite)

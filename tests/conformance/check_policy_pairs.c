/* Every pair of policies differs: on at least one of the listed loads some request gets its tokens
 * at other times. The listed loads are random ones, by seed (experiments/conformance/randomload.h).
 * Where two nearly coincide, a test says where they part. A policy that ran another one's rules by
 * mistake would fail. */
#include <stdio.h>
#include <string.h>

#include "experiments/conformance/randomload.h"
#include "policies/registry.h"
#include "sim/base/hash.h"
#include "tests/helpers/suite.h"

enum { LOADS = 48, MAX_REQUESTS = 24, MAX_POLICIES = 64 };

static struct scenario sc;
static struct scenario_request q[MAX_REQUESTS];

/* Returns a hash of all start, first-token and finish times of load number `seed`. */
static uint64_t fate(const struct policy_ops *ops, const char *params, uint64_t seed)
{
    uint32_t n = randomload_make(&sc, q, MAX_REQUESTS, seed);
    if (strcmp(ops->name, "sd-npu") == 0) {
        sc.machine.devices[NPU].static_attention = false; /* its graphs hold the attention */
        sc.llm.n_layers = 6;
    }
    scenario_policy(&sc, ops, params);
    ck_assert_msg(scenario_run(&sc, q, n, false) == 0, "%s", sc.result.message);
    uint64_t h = HASH_INIT;
    for (uint32_t i = 0; i < n; i++) {
        h = hash_u64(h, (uint64_t)sc.records[i].start_ns);
        h = hash_u64(h, (uint64_t)sc.records[i].first_token_ns);
        h = hash_u64(h, (uint64_t)sc.records[i].finish_ns);
    }
    scenario_fini(&sc);
    return h;
}

/* sarathi and vllm-v1 are nearly one policy by default. Only the prompt of the last running one is
 * cut, because a prompt that is cut takes the rest of the budget. So a request is admitted only
 * when all running prompts end in this iteration, and no more run than the budget has tokens. Then
 * "decodes first" and "running in order" are the same. Both admit a prompt when all of it fits.
 * They part where memory is short, because one wants a free block for every decode and leaves a
 * watermark. They part with the parameters below, too. */
static const struct {
    const char *sarathi, *v1;
} apart[] = {{"", "reserve_full_isl=false"},
             {"", "long_prefill_token_threshold=64"},
             {"dynamic_chunk=true", ""}};

/* Counts the loads that differ, of those where memory is short or of those where it is not. */
static uint32_t loads_that_differ(const char *sarathi, const char *v1, bool is_short)
{
    uint32_t n = 0;
    for (uint64_t seed = 1; seed <= LOADS; seed++) {
        (void)randomload_make(&sc, q, MAX_REQUESTS, seed);
        bool counts = (sc.setup.kv_capacity_tokens > 0) == is_short;
        scenario_fini(&sc);
        n += counts &&
             fate(policy_find("sarathi"), sarathi, seed) != fate(policy_find("vllm-v1"), v1, seed);
    }
    return n;
}

START_TEST(sarathi_and_vllm_v1_part_where_memory_is_short)
{
    ck_assert_uint_eq(loads_that_differ("", "", false), 0);
    const char *small = "max_num_batched_tokens=8"; /* a budget below the number of places too */
    ck_assert_uint_eq(loads_that_differ(small, small, false), 0);
    ck_assert_uint_gt(loads_that_differ("", "", true), 0);
    for (int i = 0; i < 3; i++) {
        uint32_t n = loads_that_differ(apart[i].sarathi, apart[i].v1, true) +
                     loads_that_differ(apart[i].sarathi, apart[i].v1, false);
        printf("policy-pairs: sarathi:%s and vllm-v1:%s differ on %u of %d loads\n",
               apart[i].sarathi, apart[i].v1, n, LOADS);
        ck_assert_uint_gt(n, 0);
    }
}
END_TEST

START_TEST(every_pair_of_policies_differs_on_a_listed_load)
{
    static uint64_t fates[MAX_POLICIES][LOADS];
    size_t n = 0;
    const struct policy_ops *const *all = policy_list(&n);
    ck_assert_uint_le(n, MAX_POLICIES);
    for (size_t p = 0; p < n; p++) {
        for (uint64_t seed = 1; seed <= LOADS; seed++) {
            fates[p][seed - 1] = fate(all[p], "", seed);
        }
    }
    for (size_t a = 0; a < n; a++) {
        for (size_t b = a + 1; b < n; b++) {
            ck_assert_msg(memcmp(fates[a], fates[b], sizeof fates[a]) != 0,
                          "%s and %s are the same on all %d loads", all[a]->name, all[b]->name,
                          LOADS);
        }
    }
}
END_TEST

/* This is the control: the same policy twice does not differ. */
START_TEST(a_policy_does_not_differ_from_itself)
{
    const struct policy_ops *ops = policy_find("time-share");
    for (uint64_t seed = 1; seed <= LOADS; seed++) {
        ck_assert(fate(ops, "", seed) == fate(ops, "quantum_ms=5", seed));
    }
}
END_TEST

/* Forms and variants of one policy are as different as policies are. */
START_TEST(every_form_differs_from_its_default)
{
    static const char *const forms[][2] = {{"llama-cpp", "form=ps"},
                                           {"openvino-cb", "variant=whole"},
                                           {"openvino-cb", "variant=vllm"},
                                           {"npu-serial", "margin=igpu"},
                                           {"recompute-preempt", "max_batch=8"},
                                           {"time-share", "max_requests=2"},
                                           {"pd-static", "yield=iteration"},
                                           {"hetero-split", "decode=rows"},
                                           {"hetero-split", "max_batch=1"},
                                           {"agent-xpu-v1", "pressure=intensity"},
                                           {"agent-xpu-v1", "affinity=strict"}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const struct policy_ops *ops = policy_find(forms[i][0]);
        uint32_t differ = 0;
        for (uint64_t seed = 1; seed <= LOADS; seed++) {
            differ += fate(ops, "", seed) != fate(ops, forms[i][1], seed);
        }
        ck_assert_msg(differ > 0, "%s:%s changes nothing", forms[i][0], forms[i][1]);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("pairs", .timeout_s = 120),
    TEST(every_pair_of_policies_differs_on_a_listed_load),
    TEST(sarathi_and_vllm_v1_part_where_memory_is_short),
    TEST(a_policy_does_not_differ_from_itself),
    TEST(every_form_differs_from_its_default),
};
SUITE_MAIN("policy-pairs", suite)

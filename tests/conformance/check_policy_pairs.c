/* Every pair of policies differs: on at least one of the listed loads some request gets its tokens
 * at other times. The listed loads are random ones, by seed (tests/helpers/randomload.h). */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "policies/registry.h"
#include "sim/base/hash.h"
#include "tests/helpers/randomload.h"

enum { LOADS = 40, MAX_REQUESTS = 24, MAX_POLICIES = 64 };

static struct scenario sc;
static struct scenario_request q[MAX_REQUESTS];

/* Hash of all start, first-token and finish times of load number `seed`. */
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

/* The control: the same policy twice does not differ. */
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

int main(void)
{
    Suite *s = suite_create("policy-pairs");
    TCase *t = tcase_create("pairs");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, every_pair_of_policies_differs_on_a_listed_load);
    tcase_add_test(t, a_policy_does_not_differ_from_itself);
    tcase_add_test(t, every_form_differs_from_its_default);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* The list of built-in policies keeps its promises. */
#include <stdlib.h>
#include <string.h>

#include "policies/params.h"
#include "policies/registry.h"
#include "sim/core/run.h"
#include "tests/helpers/suite.h"

START_TEST(names_are_sorted_unique_and_well_formed)
{
    size_t n = 0;
    const struct policy_ops *const *all = policy_list(&n);
    ck_assert_uint_gt(n, 0);
    for (size_t i = 0; i < n; i++) {
        const char *name = all[i]->name;
        ck_assert_uint_eq(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-"), strlen(name));
        ck_assert_msg(i == 0 || strcmp(all[i - 1]->name, name) < 0, "%s out of order", name);
        ck_assert_ptr_eq(policy_find(name), all[i]);
    }
    ck_assert_ptr_null(policy_find("no-such-policy"));
    ck_assert_ptr_null(policy_find(""));
}
END_TEST

START_TEST(every_policy_is_complete_and_its_defaults_are_legal)
{
    size_t n = 0;
    const struct policy_ops *const *all = policy_list(&n);
    for (size_t i = 0; i < n; i++) {
        const struct policy_ops *p = all[i];
        char why[256];
        ck_assert_ptr_null(contract_mismatch(&p->contract, why, sizeof why));
        ck_assert_msg(p->request_arrived != NULL && p->schedule != NULL && p->summary != NULL,
                      "%s lacks a required part", p->name);
        /* The text of the defaults must be accepted, and mean the same. */
        struct err e = ERR_INIT;
        struct policy_params a;
        struct policy_params b;
        ck_assert_int_eq(policy_params_parse(p, NULL, &a, &e), 0);
        const char *text = policy_params_format(p, &a);
        ck_assert_msg(policy_params_parse(p, text, &b, &e) == 0, "%s", e.n > 0 ? e.lines[0] : "");
        ck_assert_mem_eq(&a, &b, sizeof a);
        for (uint32_t k = 0; k < a.n; k++) {
            ck_assert_msg(p->params[k].help != NULL, "%s: %s has no help", p->name,
                          p->params[k].name);
        }
        err_fini(&e);
    }
}
END_TEST

/* Takes away what the default has, by parameters that exist, and no two take the same. */
START_TEST(every_ablation_changes_its_policy)
{
    size_t n = 0;
    uint32_t found = 0;
    const struct policy_ops *const *all = policy_list(&n);
    for (size_t i = 0; i < n; i++) {
        struct err e = ERR_INIT;
        struct policy_params whole;
        struct policy_params without[64];
        ck_assert_int_eq(policy_params_parse(all[i], NULL, &whole, &e), 0);
        const char *const *a = all[i]->ablations;
        for (uint32_t k = 0; a != NULL && a[k] != NULL; k++, found++) {
            ck_assert_msg(policy_params_parse(all[i], a[k], &without[k], &e) == 0, "%s: %s",
                          all[i]->name, e.n > 0 ? e.lines[0] : "");
            ck_assert_mem_ne(&without[k], &whole, sizeof whole);
            for (uint32_t before = 0; before < k; before++) {
                ck_assert_mem_ne(&without[k], &without[before], sizeof whole);
            }
        }
        err_fini(&e);
    }
    ck_assert_uint_gt(found, 0);
}
END_TEST

/* Values that papers and programs state, or their clauses (docs/clauses.md) where they do not. */
static const struct {
    const char *policy, *param;
    double value;
} stated[] = {
    {"llama-cpp", "slots", 4}, /* the server's own defaults */
    {"llama-cpp", "n_batch", 2048},
    {"llama-cpp", "n_ubatch", 512},
    {"llama-cpp", "similarity", 0.1},
    {"openvino-cb", "max_num_batched_tokens", 256},
    {"openvino-cb", "max_num_seqs", 256},
    {"vllm-v0", "watermark_frac", 0.01},
    {"vllm-priority", "watermark_frac", 0.01},
    {"vllm-v1", "long_prefill_token_threshold", 0},
    {"vllm-v1", "chunked_prefill", true},
    {"vllm-v1", "reserve_full_isl", true},
    {"sarathi", "max_num_batched_tokens", 512},
    {"sarathi-hetero", "max_num_batched_tokens", 512},
    {"vtc", "w_in", 1}, /* VTC: an output token is worth two of input */
    {"vtc", "w_out", 2},
    {"vtc", "reactive_weight", 1},
    {"prema", "reactive_priority", 9}, /* of {1, 3, 9} */
    {"prema", "proactive_priority", 1},
    {"mlfq", "promote_every", 1000},
    {"mlfq", "starve_s", 3},
    {"autellix-like", "beta", 8},
    {"srpt", "sigma", 0},
    {"srpt", "limit", 1},
    {"edf", "proactive_s", 600}, /* ten minutes */
    {"llf", "proactive_s", 600},
    {"agent-xpu-v1", "epsilon", 0.1},
    {"agent-xpu-v1", "tau_low", 0.4}, /* 6.4 */
    {"agent-xpu-v1", "tau_high", 0.7},
    {"agent-xpu-v1", "gap_ms", 100}, /* 6.2: every prefill kernel is below 100 ms */
    {"agent-xpu-v1", "ctx_switch_us", 0},
    {"agent-xpu-v1", "batch_cap", 8},
    {"agent-xpu-v1", "max_batch", 32}, /* the largest size of the second text's 6.4 */
    {"agent-xpu-v1", "t_starve_s", 30},
    {"agent-xpu-v1", "t_age_s", 60},
    {"agent-xpu-v2", "beta", 0.25},
    {"agent-xpu-v2", "b_rf", 3},
    {"agent-xpu-v2", "max_batch", 32},
    {"agent-xpu-v2", "suspended", 1}, /* one buffer */
    {"agent-xpu-v2", "t_age_s", 900}, /* the papers' traces last 900 s */
    {"agent-xpu-v2", "verify_rows", 32},
    {"agent-xpu-v2", "draft_ms", 3},
    {"sd-npu", "blocks", 6},
    {"sd-npu", "g1", 256},
    {"sd-npu", "g2", 32},
    {"sd-npu", "draft_ms", 3}, /* 4.4: below 3 */
    {"sd-npu", "eagle_forwards", 1},
};

START_TEST(defaults_are_those_that_are_stated)
{
    for (size_t i = 0; i < sizeof stated / sizeof stated[0]; i++) {
        const struct policy_ops *ops = policy_find(stated[i].policy);
        ck_assert_ptr_nonnull(ops);
        const struct policy_param *p = ops->params;
        while (p->name != NULL && strcmp(p->name, stated[i].param) != 0) {
            p++;
        }
        ck_assert_msg(p->name != NULL && p->def == stated[i].value, "%s:%s is %g, not %g",
                      stated[i].policy, stated[i].param, p->def, stated[i].value);
    }
}
END_TEST

/* Each alias is a policy with legal parameters, and given parameters go before the alias's own. */
START_TEST(aliases_stand_for_policies)
{
    /* Each has a page or a source of its own in docs and policies/README.md. */
    static const char *const names[] = {"reef", "agent-xpu-flows", "guarded-xpu", "warm-xpu",
                                        "balanced-xpu"};
    const struct policy_alias *all_of_them = policy_alias_find(NULL);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ck_assert_ptr_eq(policy_alias_find(names[i]), &all_of_them[i]);
        ck_assert_str_eq(all_of_them[i].name, names[i]);
    }
    ck_assert_ptr_null(all_of_them[sizeof names / sizeof names[0]].name);
    for (const struct policy_alias *a = policy_alias_find(NULL); a->name != NULL; a++) {
        struct err e = ERR_INIT;
        struct policy_params params;
        ck_assert_ptr_null(policy_find(a->name));
        ck_assert_ptr_nonnull(policy_find(a->policy));
        ck_assert_int_eq(policy_params_parse(policy_find(a->policy), a->params, &params, &e), 0);
        err_fini(&e);
    }
    ck_assert_ptr_null(policy_alias_find("no-such-policy"));
    static const char *const cases[][3] = {{"a=1,b=2", "", "a=1,b=2"},
                                           {"a=1,b=2", "b=3", "a=1,b=3"},
                                           {"a=1,b=2", "c=3,a=4", "b=2,c=3,a=4"},
                                           {"ab=1", "a=2", "ab=1,a=2"},
                                           {"", "a=2", "a=2"},
                                           {"a=1", "a=", "a="}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *all = policy_params_with(cases[i][0], cases[i][1]);
        ck_assert_str_eq(all, cases[i][2]);
        free(all);
    }
}
END_TEST

static const struct suite_row suite[] = {
    TEST(aliases_stand_for_policies),
    TEST(defaults_are_those_that_are_stated),
    TEST(names_are_sorted_unique_and_well_formed),
    TEST(every_policy_is_complete_and_its_defaults_are_legal),
    TEST(every_ablation_changes_its_policy),
};
SUITE_MAIN("registry", suite)

/* The list of built-in policies keeps its promises. */
#include <string.h>

#include "policies/params.h"
#include "policies/registry.h"
#include "sim/core/contract.h"
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
        /* What is printed for the defaults must be accepted, and mean the same. */
        struct err e = ERR_INIT;
        struct policy_params a;
        struct policy_params b;
        char text[4096];
        ck_assert_int_eq(policy_params_parse(p, NULL, &a, &e), 0);
        policy_params_format(p, &a, text, sizeof text);
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

static const struct suite_row suite[] = {
    TEST(names_are_sorted_unique_and_well_formed),
    TEST(every_policy_is_complete_and_its_defaults_are_legal),
};
SUITE_MAIN("registry", suite)

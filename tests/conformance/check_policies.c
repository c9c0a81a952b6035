/* Every policy of the tree must pass every check of the conformance suite, and so must variants
 * whose parameters bring other code to run. XPUSIM_LOADS asks for more random loads. */
#include <stdlib.h>

#include "experiments/conformance/conformance.h"
#include "policies/registry.h"
#include "tests/helpers/suite.h"

static const struct {
    const char *policy, *params;
} variants[] = {
    {"program-fcfs", "preempt=kernel,class=rt_alone,gap_kv=infercept"},
    {"program-fcfs", "kv=swap,preempt=layer,gap_kv=swap"},
    {"edf", "gap_kv=ttl"},
    {"edf", "gap_kv=reactive"},
    {"agent-xpu-v1", "gap_kv=infercept"},
    {"agent-xpu-v2", "gap_kv=swap"},
    {"agent-xpu-v1", "flash=always"},
    {"agent-xpu-v2", "flash=cheaper,margin=choose"},
    {"hpf", "inflight=4,level=1"},
};

static int n_checks(void)
{
    int n = 0;
    while (conformance_checks[n].name != NULL) {
        n++;
    }
    return n;
}

/* A whole run has CONFORMANCE_LOADS. An oracle always has them, since it must be seen to use its
 * knowledge. */
enum { LOADS_IN_PART = 9, LOADS_SANITIZED = 6 };

static int n_cases(void)
{
    return n_checks() * (suite_policies() + (int)(sizeof variants / sizeof variants[0]));
}

START_TEST(every_check_holds_of_every_policy)
{
    const char *more = getenv("XPUSIM_LOADS");
    const struct conformance_check *check = &conformance_checks[_i % n_checks()];
    int i = _i / n_checks();
    int own = i - suite_policies();
    size_t n = 0;
    const struct policy_ops *ops = own < 0 ? policy_list(&n)[i] : policy_find(variants[own].policy);
    struct conformance c = {
        .ops = ops,
        .label = ops->name,
        .params = own < 0 ? "" : variants[own].params,
        .n_loads = more != NULL                                           ? strtoull(more, NULL, 10)
                   : suite_whole() || (ops->flags & POLICY_F_ORACLE) != 0 ? CONFORMANCE_LOADS
                   : suite_sanitized()                                    ? LOADS_SANITIZED
                                                                          : LOADS_IN_PART,
        .out = stderr,
    };
    char *why = conformance_applies(check, &c) ? check->fails(&c) : NULL;
    ck_assert_msg(why == NULL, "%s: %s", check->name, why);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("conformance", .timeout_s = 120),
    LOOP_OVER(every_check_holds_of_every_policy, n_cases),
};

SUITE_MAIN("policies", suite)

/* pantheon: reactive requests preempt each other by deadline, and proactive ones (clauses.md E.17;
 * Pantheon, MobiSys 2024, from its abstract). A model is divided into blocks, here layers, and
 * after each the request with the earliest deadline runs. There is no batching, and proactive
 * requests run only without reactive ones.
 *
 * A request has one deadline, for its last token, like an inference in the paper. (edf has one for
 * every token, so a request that has begun to answer goes before new ones.)
 *
 * Deviations: the paper's networks can end early to meet a deadline, which answers cannot. There
 * preempted work continues on a GPU stream of lower priority; here a device runs one kernel at a
 * time. */
#include "policies/common/iter.h"

enum { PANTHEON_DEADLINE = ITER_PARAM_COUNT };

static const struct policy_param params[] = {
    ITER_PARAMS_OF(1, ITER_RT_ALONE, ITER_PREEMPT_LAYER),
    [PANTHEON_DEADLINE] =
        POLICY_NUMBER("deadline_s", 30, 0, 1e9,
                      "deadline of a request where the trace has none, s after arrival (ours)"),
    {.name = NULL},
};

static double pantheon_key(struct sched *s, const struct request *r)
{
    int64_t due_ns = r->deadline_ns;
    if (due_ns == TIME_NEVER_NS) {
        due_ns = r->arrival_ns + units_ns_from_s(param_number(s, PANTHEON_DEADLINE));
    }
    return units_us_from_ns(due_ns);
}

static const struct iter_order order = {.key = pantheon_key, .steady = true, .constant = true};

static int pantheon_init(struct sched *s)
{
    return iter_init(s, &order);
}

static const char *const ablations[] = {"preempt=iteration", "class=rt_first", NULL};

const struct policy_ops policy_pantheon_ops = {
    .name = "pantheon",
    .summary = "reactive requests preempt each other by deadline, layer by layer (Pantheon)",
    .contract = POLICY_CONTRACT,
    .params = params,
    .ablations = ablations,
    .init = pantheon_init,
    ITER_HOOKS,
};

/* edf: earliest absolute deadline first; first token, then every further token (clauses.md E.9).
 */
#include "policies/common/deadline.h"

static const struct policy_param params[] = {ITER_PARAMS, DEADLINE_PARAMS, {.name = NULL}};

static double edf_key(struct sched *s, const struct request *r)
{
    return units_us_from_ns(deadline_ns(s, r));
}

static const struct iter_order order = {.key = edf_key, .steady = true, .settled = true};

static int edf_init(struct sched *s)
{
    return iter_init(s, &order);
}

const struct policy_ops policy_edf_ops = {
    .name = "edf",
    .summary = "earliest deadline first",
    .contract = POLICY_CONTRACT,
    .flags = POLICY_F_LATE | POLICY_F_SLEEPS,
    .params = params,
    .init = edf_init,
    ITER_HOOKS,
};

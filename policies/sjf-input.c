/* sjf-input: shortest prompt first, known at arrival (clauses.md E.6). */
#include "policies/common/iter.h"

static const struct policy_param params[] = {ITER_PARAMS, {.name = NULL}};

static double sjf_key(struct sched *s UNUSED, const struct request *r)
{
    return r->input_tokens;
}

static const struct iter_order order = {.key = sjf_key, .steady = true, .constant = true};

static int sjf_init(struct sched *s)
{
    return iter_init(s, &order);
}

const struct policy_ops policy_sjf_input_ops = {
    .name = "sjf-input",
    .summary = "shortest prompt first",
    .contract = POLICY_CONTRACT,
    .params = params,
    .init = sjf_init,
    ITER_HOOKS,
};

/* srpt: shortest remaining isolated time first (clauses.md E.6): the rest of the prefill plus the
 * rest of the output. sigma = 0 knows the output length (an oracle); sigma > 0 knows O exp(sigma Z
 * - sigma^2/2). With limit < 1 a request that has produced that share of its predicted output
 * cannot be preempted any more (TRAIL's limited preemption). With preempt=layer, kernel or reset
 * the work done inside a running pass counts.
 */
#include "policies/common/iter.h"
#include "sim/base/rng.h"

enum { SRPT_SIGMA = ITER_PARAM_COUNT, SRPT_LIMIT, SRPT_DRAW };

static const struct policy_param params[] = {
    ITER_PARAMS,
    [SRPT_SIGMA] = POLICY_NUMBER("sigma", 0, 0, 3,
                                 "log-normal error of the predicted output length; 0: oracle"),
    [SRPT_LIMIT] = POLICY_NUMBER(
        "limit", 1, 0, 1, "share of the predicted output after which a request stays (TRAIL: 0.8)"),
    [SRPT_DRAW] = POLICY_INT("draw", 0, 0, 1e9,
                             "with sigma: which of many draws of the errors, all equally good"),
    {.name = NULL},
};

static double predicted_tokens(struct sched *s, const struct request *r)
{
    double sigma = param_number(s, SRPT_SIGMA);
    uint64_t draw = 1 + (uint64_t)param_int(s, SRPT_DRAW);
    double tokens = (double)sched_oracle_output_tokens(s, r);
    /* Drawn from the request's id, so that the prediction does not depend on the time or on other
     * parameters. */
    double z = sigma > 0 ? rng_normal_of_key(rng_key(s->seed, RNG_POLICY, r->id, draw)) : 0.0;
    /* Minus half the variance, so that predictions are unbiased. */
    return tokens * exp(sigma * z - sigma * sigma / 2);
}

static double srpt_key(struct sched *s, const struct request *r)
{
    const struct iter *it = s->state;
    double predicted = predicted_tokens(s, r);
    double limit = param_number(s, SRPT_LIMIT);
    if (limit < 1 && r->generated_tokens > 0 && r->generated_tokens >= limit * predicted) {
        return 0.0;
    }
    double left = predicted - r->generated_tokens;
    uint64_t tokens = left > 1.0 ? (uint64_t)llround(left) : 1;
    tokens -= request_prefill_left(r) > 0; /* the prefill yields a token */
    return (double)(iter_prefill_ns(s, r, it->it.device) +
                    iter_decode_ns(s, r, it->it.device, tokens));
}

static const struct iter_order order = {
    .key = srpt_key, .found = iter_rekey, .key_per_done_ns = -1.0, .steady = true, .settled = true};

static int srpt_init(struct sched *s)
{
    return iter_init(s, &order);
}

const struct policy_ops policy_srpt_ops = {
    .name = "srpt",
    .summary = "shortest remaining isolated time, oracle or predicted",
    .contract = POLICY_CONTRACT,
    .flags = POLICY_F_ORACLE,
    .params = params,
    .init = srpt_init,
    ITER_HOOKS,
};

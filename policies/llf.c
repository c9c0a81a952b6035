/* llf: least laxity first (clauses.md E.9). Laxity = deadline - now - work to the next deadline;
 * `now` is common to all waiting requests, so deadline - work orders them and is constant in time.
 */
#include "policies/common/deadline.h"

static const struct policy_param params[] = {ITER_PARAMS, DEADLINE_PARAMS, {.name = NULL}};

static double llf_key(struct sched *s, const struct request *r)
{
    const struct iter *it = s->state;
    int64_t work = r->state == REQUEST_STATE_QUEUED ? iter_prefill_ns(s, r, it->it.device)
                                                    : iter_decode_ns(s, r, it->it.device, 1);
    return units_us_from_ns(deadline_ns(s, r) - work);
}

static const struct iter_order order = {.key = llf_key,
                                        .found = iter_rekey,
                                        .key_per_done_ns = 1e-3, /* the key is in us */
                                        .steady = true,
                                        .settled = true};

static int llf_init(struct sched *s)
{
    return iter_init(s, &order);
}

const struct policy_ops policy_llf_ops = {
    .name = "llf",
    .summary = "least laxity first",
    .contract = POLICY_CONTRACT,
    .params = params,
    .init = llf_init,
    ITER_HOOKS,
};

/* List schedules: the choices of a clairvoyant scheduler. It is not registered, because it needs to
 * know the future: use it in a sim_setup with a struct clairvoyant_plan as policy_context.
 * experiments/compare/clairvoyant.h searches for plans.
 *
 * A plan is an order of the requests, a placement and a batch cap. Prompts run whole, one at a
 * time, on the prefill devices. Iterations of the first max_batch requests in decode run on the
 * decode device. A free instance takes the ready request that is first in the order. Running work
 * is never stopped; an iteration is one token long, so a request earlier in the order waits for at
 * most one pass. Instances that share a device alternate, again by the order. No instance idles on
 * purpose.
 *
 * If KV is short, the last request in the order that has KV and is in no pass is evicted. For a
 * prompt, only requests behind it are. For an iteration, only requests outside it are; if there is
 * none, the iteration's last member waits.
 *
 * An NPU with static attention prefills as in the eager default mapping: padded token-level ops on
 * the NPU, attention and head on the iGPU (clauses.md E.10). */
#pragma once

#include "sim/api/policy.h"

struct clairvoyant_plan {
    const uint32_t *order; /* borrowed; request ids in order. NULL: shortest remaining isolated time
                              on the decode device, from true output lengths */
    uint32_t n_order;      /* few, because lookup is linear. Requests not in it go last */
    bool reactive_first;   /* reactive requests before all others */
    uint8_t prefill_device, decode_device;
    uint32_t max_batch; /* >= 1 */
};

/* Whether the device can run such passes. Prefill on a static NPU needs an iGPU for attention. */
bool clairvoyant_can_prefill(const struct machine *m, uint8_t device);
bool clairvoyant_can_decode(const struct machine *m, uint8_t device);

extern const struct policy_ops policy_clairvoyant_ops;

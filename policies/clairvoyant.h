/* List schedules: the choices of a clairvoyant scheduler. Not registered, because it needs to know
 * the future: put it into a setup with a struct clairvoyant_plan as policy_context
 * (experiments/compare/clairvoyant.h searches the plans).
 *
 * A plan is an order of the requests, a placement and a batch cap. Prompts run whole, one at a
 * time, on the prefill devices. Decode iterations, of the first max_batch that decode, run on the
 * decode device. A free instance takes the request that comes first in the order among those that
 * are ready. Nothing that runs is stopped; an iteration is one token long, so a request further
 * ahead waits for at most one pass. Where both instances use one device, they take turns, again by
 * the order. No instance idles on purpose.
 *
 * Short of KV, the request furthest back that holds any and is in no pass starts over. For a prompt
 * that is one behind it in the order, and for an iteration one outside it; where there is none, the
 * iteration's last member waits.
 *
 * An NPU with static attention prefills as the eager default mapping does: token-level ops there,
 * padded, attention and head on the iGPU (clauses.md E.10). */
#pragma once

#include "sim/api/policy.h"

struct clairvoyant_plan {
    const uint32_t *order; /* borrowed; request ids, the first goes first; NULL: shortest remaining
                              time first, isolated on the decode device, by the output lengths */
    uint32_t n_order;      /* few: looked up one by one. Requests not in it go last */
    bool reactive_first;   /* before the order */
    uint8_t prefill_device, decode_device;
    uint32_t max_batch; /* >= 1 */
};

/* Can passes of this kind run there? Prefill on a static NPU needs an iGPU for attention. */
bool clairvoyant_can_prefill(const struct machine *m, uint8_t device);
bool clairvoyant_can_decode(const struct machine *m, uint8_t device);

extern const struct policy_ops policy_clairvoyant_ops;

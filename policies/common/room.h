/* Frees KV when a pass cannot be formed: the youngest request of a queue loses its KV and is
 * prefilled again (recompute), as in vLLM and OpenVINO. */
#pragma once

#include "policies/common/blocks.h"
#include "policies/common/reqq.h"
#include "sim/api/policy.h"

/* Evicts the last request of the queue that has KV and is in no live pass, except `keep` (may be
 * NULL). An unused cached prefix counts as free, and stays. Returns the request, which stays in the
 * queue and is QUEUED again, or NULL. O(n) from the tail. */
static inline const struct request *room_evict_last(struct sched *s, const struct reqq *q,
                                                    const struct request *keep)
{
    for (const struct request *r = q->tail; r != NULL; r = reqq_prev(r)) {
        if (r != keep && r->pass == NULL && blocks_held(s, r) > 0 &&
            sched_kv_move(s, kv_of(r), KV_NOWHERE) == 0) {
            SIM_ASSERT(r->state == REQUEST_STATE_QUEUED && r->kv_tokens == 0 && reqq_of(r) == q);
            return r;
        }
    }
    return NULL;
}

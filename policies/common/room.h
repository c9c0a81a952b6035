/* Making room in the KV cache when a pass cannot be formed: the youngest request of a queue gives
 * up what it holds and is prefilled again (recompute), as vLLM and OpenVINO do. */
#pragma once

#include "policies/common/blocks.h"
#include "policies/common/reqq.h"
#include "sim/api/policy.h"

/* Takes all KV of the last request of the queue that holds some and is in no live pass, except
 * `keep` (may be NULL). A prefix that it has only found counts as free, and stays. Returns the
 * request, still in the queue and QUEUED again. NULL: there is none. O(n) from the tail. */
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

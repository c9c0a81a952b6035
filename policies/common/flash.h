/* KV that goes to flash when memory is short, for policies whose victims otherwise lose it
 * (Agent.xpu, first text 6.5, second text 4.1 (6)). Both texts prefer this to "blind swapping" by
 * the operating system, and build neither: they say nothing of which KV goes, when, or when it
 * comes back. So it is off by default, and the rules are ours [S]:
 *
 *   out   the victim is the one that the policy would have dropped. Under `cheaper` its KV is
 *         written only where writing and reading it takes less time than computing it again
 *   wait  one KV is written at a time. Who needs its memory waits until it is free
 *   back  reactive requests first, then in order of arrival, once there is room for the KV and
 *         `spare` tokens, or nobody else holds any
 *
 * Weights of several models are tiered by the core (sim/core/weights.c), and the KV of a session
 * whose tool runs by gap_kv (gap.h). */
#pragma once

#include "policies/common/gap.h"
#include "policies/common/reqq.h"
#include "sim/api/policy.h"

enum flash_rule { FLASH_OFF, FLASH_CHEAPER, FLASH_ALWAYS };

extern const char *const flash_choices[];

/* A row of a policy's parameters. */
#define FLASH_PARAM                                                                                \
    POLICY_CHOICE("flash", FLASH_OFF, flash_choices,                                               \
                  "KV that is taken when memory is short goes to flash: never, where that is "     \
                  "cheaper than computing it again, always (A.8, B.10 [S])")

struct flash {
    enum flash_rule rule;
    const struct request *out; /* its KV is being written; NULL: nobody's is */
    struct reqq there;         /* KV on flash */
};

/* The one whose KV is being written has it in memory until then, and no pass takes it. The others
 * have theirs on flash. */
static inline bool flash_ok(const struct flash *f)
{
    const struct request *head = f->there.head;
    return (f->rule != FLASH_OFF || (f->out == NULL && head == NULL)) &&
           (f->out == NULL || (f->out->kv_tokens > 0 && f->out->pass == NULL)) &&
           (head == NULL || (head->kv_swapped && head->pass == NULL));
}

/* Takes the KV of a request that is in no live pass, which the policy then takes out of its queues.
 * False: it is to be dropped instead. Call only while none is being written. */
bool flash_takes(struct sched *s, struct flash *f, const struct request *r,
                 gap_prefill_ns *prefill);
/* From kv_moved: true where the request's KV is in memory and it is the policy's again. */
bool flash_moved(struct flash *f, const struct request *r);
/* From schedule, after others had their turn: reads back what there is room for. `alone`: nobody
 * else holds KV. */
void flash_back(struct sched *s, struct flash *f, uint64_t spare_tokens, bool alone);

/* Somebody's KV is being written: who needs memory waits for it. */
static inline bool flash_writes(const struct flash *f)
{
    SIM_ASSERT(flash_ok(f));
    return f->out != NULL;
}

/* Whether requests wait for room to come back. They came before any prompt that has not begun. */
static inline bool flash_waits(const struct flash *f)
{
    SIM_ASSERT(flash_ok(f));
    return !reqq_empty(&f->there);
}

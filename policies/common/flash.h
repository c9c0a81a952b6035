/* Moves KV of victims to flash when memory is short, instead of dropping it (Agent.xpu, first text
 * 6.5, second text 4.1 (6)). Both texts prefer this to "blind swapping" by the operating system,
 * but leave open which KV goes when, and when it comes back. So it is off by default, and the rules
 * are ours [S]:
 *
 *   out   the victim is the one that the policy would have dropped. Under `cheaper` its KV is
 *         written only where writing and reading it takes less time than computing it again
 *   wait  one KV is written at a time. Who needs its memory waits until it is free
 *   back  reactive requests first, then in order of arrival, once there is room for the KV and
 *         `spare` tokens, or nobody else holds any
 *
 * Weights of several models are moved by the core (sim/core/weights.c), and KV of a session during
 * a tool call by gap_kv (gap.h). */
#pragma once

#include "policies/common/gap.h"
#include "policies/common/reqq.h"
#include "sim/api/policy.h"

enum flash_rule { FLASH_OFF, FLASH_CHEAPER, FLASH_ALWAYS };

extern const char *const flash_choices[];

/* A row of a policy's parameter table. */
#define FLASH_PARAM                                                                                \
    POLICY_CHOICE("flash", FLASH_OFF, flash_choices,                                               \
                  "KV that is taken when memory is short goes to flash: never, where that is "     \
                  "cheaper than computing it again, always (A.8, B.10 [S])")

struct flash {
    enum flash_rule rule;
    const struct request *out; /* its KV is being written; NULL: none */
    struct reqq there;         /* requests whose KV is on flash */
};

/* The KV that is being written stays in memory until the end, but no pass uses it. */
static inline bool flash_ok(const struct flash *f)
{
    const struct request *head = f->there.head;
    return (f->rule != FLASH_OFF || (f->out == NULL && head == NULL)) &&
           (f->out == NULL || (f->out->kv_tokens > 0 && f->out->pass == NULL)) &&
           (head == NULL || (head->kv_swapped && head->pass == NULL));
}

/* Starts writing the KV of a request in no live pass; the policy must then remove it from its
 * queues. False: the policy must drop the KV instead. Precondition: no KV is being written. */
bool flash_takes(struct sched *s, struct flash *f, const struct request *r,
                 gap_prefill_ns *prefill);
/* Call it in kv_moved. True: the request's KV is back in memory, and the policy must queue it. */
bool flash_moved(struct flash *f, const struct request *r);
/* Call it last in `schedule`: reads back KV for which there is room. `alone`: no other request has
 * KV. */
void flash_back(struct sched *s, struct flash *f, uint64_t spare_tokens, bool alone);

/* Whether KV is being written. Requests that need memory should wait for it. */
static inline bool flash_writes(const struct flash *f)
{
    SIM_ASSERT(flash_ok(f));
    return f->out != NULL;
}

/* Whether requests wait for room to be read back. They go before prompts that have not begun. */
static inline bool flash_waits(const struct flash *f)
{
    SIM_ASSERT(flash_ok(f));
    return !reqq_empty(&f->there);
}

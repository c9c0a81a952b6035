#include "policies/common/flash.h"

const char *const flash_choices[] = {"off", "cheaper", "always", NULL};

/* Time to write and read back a victim's KV. */
static int64_t transfers_ns(const struct sched *s, const struct request *r)
{
    return 2 * gap_transfer_ns(s, r->model, r->kv_tokens);
}

bool flash_takes(struct sched *s, struct flash *f, const struct request *r, gap_prefill_ns *prefill)
{
    SIM_ASSERT(!flash_writes(f) && r->pass == NULL && !r->kv_swapped);
    bool wanted =
        f->rule == FLASH_ALWAYS ||
        (f->rule == FLASH_CHEAPER && transfers_ns(s, r) < prefill(s, r->model, r->kv_tokens));
    if (!wanted || sched_kv_move(s, kv_of(r), KV_FLASH) != 0) {
        return false;
    }
    f->out = r;
    SIM_ASSERT(flash_writes(f) && !r->kv_swapped); /* until flash_moved */
    return true;
}

/* Reactive requests first, then by arrival. */
static bool goes_before(const struct request *x, const struct request *y)
{
    return x->cls != y->cls ? x->cls == REQUEST_CLASS_REACTIVE : request_before(x, y);
}

bool flash_moved(struct flash *f, const struct request *r)
{
    if (!r->kv_swapped) {
        SIM_ASSERT(f->out != r && reqq_of(r) == NULL); /* the policy may queue it */
        return true;
    }
    SIM_ASSERT(f->out == r && reqq_of(r) == NULL); /* the policy removed it from its queues */
    f->out = NULL;
    const struct request *at = f->there.tail;
    while (at != NULL && goes_before(r, at)) {
        at = reqq_prev(at);
    }
    reqq_insert_after(&f->there, at, r);
    const struct request *next = reqq_next(r);
    SIM_ASSERT(next == NULL || next->cls > r->cls ||
               (next->cls == r->cls && next->arrival_ns >= r->arrival_ns));
    SIM_ASSERT(!flash_writes(f));
    return false;
}

void flash_back(struct sched *s, struct flash *f, uint64_t spare_tokens, bool alone)
{
    while (!flash_writes(f) && flash_waits(f)) {
        const struct request *r = f->there.head;
        SIM_ASSERT(r->kv_swapped && (reqq_next(r) == NULL || goes_before(r, reqq_next(r))));
        bool room = r->kv_tokens + r->kv_state_tokens + spare_tokens <= sched_kv_free_tokens(s);
        if ((!room && !alone) || sched_kv_move(s, kv_of(r), KV_MEMORY) != 0) {
            return;
        }
        reqq_remove(r);
        alone = false;
        sched_again(s); /* requests that waited for it may run now */
    }
}

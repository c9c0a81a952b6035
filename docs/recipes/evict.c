/* evict: one device serves prompts in arrival order, and decodes every request that it can in one
 * batch. When KV runs out, the youngest request gives up its KV and is prefilled again (recompute,
 * as vLLM does).
 *
 * The one thing to get right: a request takes KV only from younger ones. Then the oldest request
 * always continues and finishes, and the next one is the oldest. If a request could also take from
 * older ones, two of them could exchange the same memory for ever. */
#include <errno.h>

#include "policies/common/place.h"
#include "policies/common/reqq.h"

enum { PARAM_DEVICE, MAX_BATCH = 64 };

static const struct policy_param params[] = {
    POLICY_CHOICE("device", 0, place_choices, "device that runs all; auto: the iGPU"),
    {.name = NULL},
};

struct state {
    struct reqq all; /* everybody who is here, in arrival order */
    bool busy;       /* a pass is on the device, or the host samples for it */
    uint8_t device;
};

static int init(struct sched *s)
{
    struct state *p = s->state;
    int d = place_device(s->machine, param_int(s, PARAM_DEVICE));
    p->device = (uint8_t)d;
    return d < 0 ? d : 0;
}

static void request_arrived(struct sched *s, const struct request *r)
{
    struct state *p = s->state;
    reqq_push(&p->all, r);
}

static void pass_done(struct sched *s, const struct pass *done)
{
    struct state *p = s->state;
    p->busy = false;
    for (uint32_t i = 0; i < done->n_segments; i++) {
        const struct request *r = done->segments[i].request;
        if (r->state == REQUEST_STATE_FINISHED || r->state == REQUEST_STATE_SHED) {
            reqq_remove(r);
        }
    }
}

static void request_cancelled(struct sched *s, const struct request *r)
{
    (void)s;
    reqq_remove(r);
}

/* Takes the KV of the youngest that came after r and holds some. False: there is none. */
static bool take_from_younger(struct sched *s, const struct state *p, const struct request *r)
{
    for (const struct request *v = p->all.tail; v != r; v = reqq_prev(v)) {
        if (v->kv_tokens > 0 && sched_kv_move(s, kv_of(v), KV_NOWHERE) == 0) {
            return true;
        }
    }
    return false;
}

static bool launch(struct sched *s, struct state *p, struct pass *pass)
{
    p->busy = place_whole(s, pass, p->device, YIELD_PASS) == 0;
    return p->busy;
}

/* Prefills the oldest prompt that waits. It waits if only older requests hold the memory. */
static bool prefill(struct sched *s, struct state *p)
{
    const struct request *r = p->all.head;
    while (r != NULL && r->state != REQUEST_STATE_QUEUED) {
        r = reqq_next(r);
    }
    if (r == NULL) {
        return false;
    }
    struct segment segment = {
        .request = r, .role = SEGMENT_PREFILL, .n_tokens = request_prefill_left(r)};
    struct pass_spec spec = {.segments = &segment, .n_segments = 1};
    struct pass *pass;
    int rc = sched_pass_form(s, &spec, &pass);
    while (rc == -ENOMEM && take_from_younger(s, p, r)) {
        segment.n_tokens = request_prefill_left(r);
        rc = sched_pass_form(s, &spec, &pass);
    }
    return rc == 0 && launch(s, p, pass);
}

/* Everybody who decodes, from the oldest on; as many as fit once the youngest gave way. */
static bool decode(struct sched *s, struct state *p)
{
    struct segment batch[MAX_BATCH];
    struct pass *pass;
    int rc = -ENOMEM;
    while (rc == -ENOMEM) {
        struct pass_spec spec = {.segments = batch};
        for (const struct request *r = p->all.head; r != NULL && spec.n_segments < MAX_BATCH;
             r = reqq_next(r)) {
            if (r->state == REQUEST_STATE_DECODE) {
                batch[spec.n_segments++] =
                    (struct segment){.request = r, .role = SEGMENT_DECODE, .n_tokens = 1};
            }
        }
        if (spec.n_segments == 0) {
            return false;
        }
        rc = sched_pass_form(s, &spec, &pass);
        if (rc == -ENOMEM && !take_from_younger(s, p, batch[0].request)) {
            return false;
        }
    }
    return rc == 0 && launch(s, p, pass);
}

static void schedule(struct sched *s)
{
    struct state *p = s->state;
    if (!p->busy && !prefill(s, p)) {
        (void)decode(s, p);
    }
}

static const struct policy_ops ops = {
    .name = "evict",
    .summary = "recipe: one batch; when KV runs out the youngest starts over",
    .contract = POLICY_CONTRACT,
    .state_size_bytes = sizeof(struct state),
    .request_state_size_bytes = sizeof(struct reqq_node),
    .params = params,
    .init = init,
    .request_arrived = request_arrived,
    .pass_done = pass_done,
    .request_cancelled = request_cancelled,
    .schedule = schedule,
};

const struct policy_ops *xpusim_policy(void)
{
    return &ops;
}

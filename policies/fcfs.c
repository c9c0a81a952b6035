/* fcfs: one request at a time from its first prompt token to its last output token, in arrival
 * order, on one device. The simplest policy there is: read it to learn the contract. */
#include "policies/common/place.h"
#include "policies/common/reqq.h"

enum { PARAM_DEVICE };

static const struct policy_param params[] = {
    POLICY_CHOICE("device", 0, place_choices, "device that runs everything; auto: the iGPU"),
    {.name = NULL},
};

struct fcfs {
    struct reqq waiting;
    const struct request *current; /* NULL when idle */
    uint8_t device;
};

static int fcfs_init(struct sched *s)
{
    struct fcfs *f = s->state;
    int d = place_device(s->machine, param_int(s, PARAM_DEVICE));
    f->device = (uint8_t)d;
    return d < 0 ? d : 0;
}

static void fcfs_request_arrived(struct sched *s, const struct request *r)
{
    struct fcfs *f = s->state;
    reqq_push(&f->waiting, r);
}

/* There is no launch_done hook, because nothing is decided between the end of the launch and the
 * tokens of the pass. */
static void fcfs_pass_done(struct sched *s, const struct pass *p)
{
    struct fcfs *f = s->state;
    const struct request *r = p->segments[0].request;
    if (r->state == REQUEST_STATE_FINISHED || r->state == REQUEST_STATE_SHED) {
        f->current = NULL;
    }
}

/* It is queued, or would get its next pass at this instant. */
static void fcfs_request_cancelled(struct sched *s, const struct request *r)
{
    struct fcfs *f = s->state;
    reqq_remove(r);
    f->current = f->current == r ? NULL : f->current;
}

static void fcfs_schedule(struct sched *s)
{
    struct fcfs *f = s->state;
    if (f->current == NULL) {
        f->current = reqq_pop(&f->waiting);
    }
    const struct request *r = f->current;
    /* schedule is called after every change. A request in a pass is in service, or the host samples
     * its token. */
    if (r == NULL || r->pass != NULL) {
        return;
    }
    struct segment seg = {.request = r, .role = SEGMENT_DECODE, .n_tokens = 1};
    if (r->state == REQUEST_STATE_QUEUED) {
        seg.role = SEGMENT_PREFILL;
        seg.n_tokens = request_prefill_left(r);
    }
    struct pass *p;
    struct pass_spec spec = {
        .segments = &seg, .n_segments = 1, .fused_layers = seg.role == SEGMENT_DECODE};
    /* It cannot fail for lack of memory: one request by itself always fits, and no other has KV. */
    if (sched_pass_form(s, &spec, &p) == 0) {
        (void)place_whole(s, p, f->device, YIELD_PASS);
    }
}

const struct policy_ops policy_fcfs_ops = {
    .name = "fcfs",
    .summary = "one request at a time, in arrival order, on one device",
    .contract = POLICY_CONTRACT,
    .state_size_bytes = sizeof(struct fcfs),
    .request_state_size_bytes = sizeof(struct reqq_node),
    .params = params,
    .init = fcfs_init,
    .request_arrived = fcfs_request_arrived,
    .pass_done = fcfs_pass_done,
    .request_cancelled = fcfs_request_cancelled,
    .schedule = fcfs_schedule,
};

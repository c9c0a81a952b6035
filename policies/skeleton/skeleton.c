/* skeleton: one request at a time, in arrival order, on one device. Describe here your order or
 * mechanism, with its source. The contract is sim/api/policy.h. */
#include "policies/common/place.h"
#include "policies/common/reqq.h"

enum { PARAM_DEVICE }; /* indices into params */

static const struct policy_param params[] = {
    POLICY_CHOICE("device", 0, place_choices, "device that runs all; auto: the iGPU"),
    {.name = NULL},
};

struct skeleton { /* zeroed before init; do not use static variables */
    struct reqq waiting;
    const struct request *current; /* NULL when idle */
    struct pass *pass;             /* of `current`; NULL: not formed */
    uint8_t device;
};

static int skeleton_init(struct sched *s)
{
    struct skeleton *p = s->state;
    int d = place_device(s->machine, param_int(s, PARAM_DEVICE));
    p->device = (uint8_t)d;
    return d < 0 ? d : 0;
}

static void skeleton_request_arrived(struct sched *s, const struct request *r)
{
    struct skeleton *p = s->state;
    reqq_push(&p->waiting, r); /* insert your order here */
}

static void skeleton_pass_done(struct sched *s, const struct pass *done)
{
    struct skeleton *p = s->state;
    enum request_state state = done->segments[0].request->state;
    p->pass = NULL;
    if (state == REQUEST_STATE_FINISHED || state == REQUEST_STATE_SHED) {
        p->current = NULL;
    }
}

static void skeleton_request_cancelled(struct sched *s, const struct request *r)
{
    struct skeleton *p = s->state;
    reqq_remove(r);
    p->current = p->current == r ? NULL : p->current;
}

/* Forms the next pass of the current request, or of the next one. False if there is none, or no
 * room for its KV: then the request stays in the queue, and a later call of schedule tries
 * again. */
static bool skeleton_form(struct sched *s, struct skeleton *p)
{
    const struct request *r = p->current != NULL ? p->current : p->waiting.head;
    if (r == NULL) {
        return false;
    }
    struct segment segment = {.request = r, .role = SEGMENT_DECODE, .n_tokens = 1};
    if (r->state == REQUEST_STATE_QUEUED) {
        segment.role = SEGMENT_PREFILL;
        segment.n_tokens = request_prefill_left(r);
    }
    struct pass_spec spec = {
        .segments = &segment, .n_segments = 1, .fused_layers = segment.role == SEGMENT_DECODE};
    if (sched_pass_form(s, &spec, &p->pass) != 0) {
        return false;
    }
    if (p->current == NULL) {
        p->current = reqq_pop(&p->waiting);
    }
    return true;
}

/* Actions are only allowed here, not in the hooks above. */
static void skeleton_schedule(struct sched *s)
{
    struct skeleton *p = s->state;
    sched_again(s); /* if it acts, it is called once more at this instant */
    bool formed = p->pass != NULL || skeleton_form(s, p);
    if (formed && p->pass->state == PASS_STATE_READY) { /* or a launch was refused */
        (void)place_whole(s, p->pass, p->device, YIELD_PASS);
    }
}

static const struct policy_ops ops = {
    .name = "skeleton",
    .summary = "one request at a time, in arrival order (to be changed)",
    .contract = POLICY_CONTRACT,
    .flags = POLICY_F_LATE | POLICY_F_SLEEPS, /* promises, for speed */
    .state_size_bytes = sizeof(struct skeleton),
    .request_state_size_bytes = sizeof(struct reqq_node),
    .params = params,
    .init = skeleton_init,
    .request_arrived = skeleton_request_arrived,
    .pass_done = skeleton_pass_done,
    .request_cancelled = skeleton_request_cancelled,
    .schedule = skeleton_schedule,
};

const struct policy_ops *xpusim_policy(void)
{
    return &ops;
}

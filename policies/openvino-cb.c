/* openvino-cb: continuous batching on one device as OpenVINO GenAI's public scheduler does it
 * (policies.md C.2). Iteration level, no classes.
 *
 *   sf256  dynamic split-fuse (its default): one token per generating group, then prompt chunks in
 *          arrival order until the token budget (256) is used up
 *   whole  what the plain pipeline gives: no token budget, whole prompts join the iteration
 *   vllm   split-fuse off: a step is either whole prompts or decodes
 *
 * When KV runs out, the last group that holds KV loses the tail it needs to (partial recompute).
 */
#include "policies/common/batch.h"
#include "policies/common/place.h"
#include "policies/common/reqq.h"

enum { PARAM_VARIANT, PARAM_BUDGET, PARAM_MAX_SEQS, PARAM_DEVICE };
enum variant { VARIANT_SF256, VARIANT_WHOLE, VARIANT_VLLM };

static const char *const variants[] = {"sf256", "whole", "vllm", NULL};
static const char *const devices[] = {PLACE_CHOICES, NULL};
static const struct policy_param params[] = {
    {"variant", PARAM_CHOICE, VARIANT_SF256, 0, 2, variants, "batching rule, see the file's head"},
    {"max_num_batched_tokens", PARAM_INT, 256, 1, 1e9, NULL,
     "token budget of an iteration under sf256; default of openvino.genai"},
    {"max_num_seqs", PARAM_INT, 256, 1, 1e6, NULL,
     "groups in progress at once; default of openvino.genai"},
    {"device", PARAM_CHOICE, 0, 0, 4, devices, "device that runs everything; auto: the iGPU"},
    {.name = NULL},
};

struct openvino {
    struct reqq waiting; /* no KV yet, arrival order */
    struct reqq running; /* in progress, arrival order = priority */
    struct batch batch;
    struct pass *pass; /* on the device, or NULL */
    uint8_t device;
};

static int openvino_init(struct sched *s)
{
    struct openvino *o = s->state;
    int d = place_device(s->machine, param_int(s, PARAM_DEVICE));
    o->device = (uint8_t)d;
    return d < 0 ? d : 0;
}

static void openvino_exit(struct sched *s)
{
    struct openvino *o = s->state;
    if (o != NULL) {
        batch_fini(&o->batch);
    }
}

static void openvino_request_arrived(struct sched *s, const struct request *r)
{
    struct openvino *o = s->state;
    reqq_push(&o->waiting, r);
}

static void openvino_pass_done(struct sched *s, const struct pass *p)
{
    struct openvino *o = s->state;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct request *r = p->segments[i].request;
        if (r->state == REQUEST_STATE_FINISHED || r->state == REQUEST_STATE_SHED) {
            reqq_remove(r);
        }
    }
    o->pass = NULL;
}

static void openvino_request_cancelled(struct sched *s, const struct request *r)
{
    (void)s;
    reqq_remove(r);
}

/* One token for every generating group. */
static void add_decodes(struct openvino *o)
{
    for (const struct request *r = o->running.head; r != NULL; r = reqq_next(r)) {
        if (r->state == REQUEST_STATE_DECODE) {
            batch_add(&o->batch, r, SEGMENT_DECODE, 1);
        }
    }
}

/* Prompt chunks in arrival order: groups in progress first, then newly admitted ones. A budget of
 * UINT32_MAX takes whole prompts. */
static void add_prompts(struct sched *s, struct openvino *o, uint32_t budget)
{
    for (const struct request *r = o->running.head; r != NULL && o->batch.tokens < budget;
         r = reqq_next(r)) {
        if (r->state == REQUEST_STATE_QUEUED) {
            batch_add_next(&o->batch, r, budget - o->batch.tokens);
        }
    }
    uint64_t most = (uint64_t)param_int(s, PARAM_MAX_SEQS);
    uint64_t free_tokens = sched_kv_free_tokens(s);
    while (!reqq_empty(&o->waiting) && o->batch.tokens < budget && o->running.n < most) {
        const struct request *r = o->waiting.head;
        uint32_t left = request_prefill_left(r);
        uint32_t chunk = left < budget - o->batch.tokens ? left : budget - o->batch.tokens;
        if ((uint64_t)o->batch.tokens + chunk > free_tokens) {
            break; /* a new group never evicts an older one */
        }
        reqq_remove(r);
        reqq_push(&o->running, r);
        batch_add(&o->batch, r, SEGMENT_PREFILL, chunk);
    }
}

static void fill(struct sched *s, struct openvino *o)
{
    batch_clear(&o->batch);
    switch ((enum variant)param_int(s, PARAM_VARIANT)) {
    case VARIANT_SF256:
        add_decodes(o);
        add_prompts(s, o, (uint32_t)param_int(s, PARAM_BUDGET));
        break;
    case VARIANT_WHOLE:
        add_decodes(o);
        add_prompts(s, o, UINT32_MAX);
        break;
    case VARIANT_VLLM:
        add_prompts(s, o, UINT32_MAX);
        if (o->batch.n == 0) {
            add_decodes(o);
        }
        break;
    }
}

/* Frees the tail of the last group that holds KV, but never of the first: as much as one chunk. */
static bool evict_last(struct sched *s, struct openvino *o)
{
    uint32_t want = (uint32_t)param_int(s, PARAM_BUDGET);
    for (const struct request *r = o->running.tail; r != o->running.head; r = r->slot->prev) {
        if (r->kv_tokens > 0) {
            uint32_t keep = r->kv_tokens > want ? r->kv_tokens - want : 0;
            return sched_kv_evict(s, r, keep, KV_EVICT_RECOMPUTE) == 0;
        }
    }
    return false;
}

/* Memory is short: a prompt waits rather than take KV from an older group; a decode takes it from
 * the last one. Returns whether another try makes sense. */
static bool make_room(struct sched *s, struct openvino *o)
{
    struct batch *b = &o->batch;
    if (b->n > 1 && b->segments[b->n - 1].role == SEGMENT_PREFILL) {
        b->n--;
        return true;
    }
    if (!evict_last(s, o)) {
        return false;
    }
    fill(s, o);
    return b->n > 0;
}

static void openvino_schedule(struct sched *s)
{
    struct openvino *o = s->state;
    if (o->pass != NULL) {
        return;
    }
    fill(s, o);
    while (o->batch.n > 0) {
        if (batch_form(s, &o->batch, &o->pass) == 0) {
            (void)place_whole(s, o->pass, o->device, YIELD_PASS);
            return;
        }
        o->pass = NULL;
        if (!make_room(s, o)) {
            return;
        }
    }
}

const struct policy_ops policy_openvino_cb_ops = {
    .name = "openvino-cb",
    .summary = "continuous batching on one device, OpenVINO GenAI's rules (openvino.genai)",
    .api_version = POLICY_API_VERSION,
    .needs = CAP_KV_EVICT,
    .state_size_bytes = sizeof(struct openvino),
    .params = params,
    .init = openvino_init,
    .exit = openvino_exit,
    .request_arrived = openvino_request_arrived,
    .pass_done = openvino_pass_done,
    .request_cancelled = openvino_request_cancelled,
    .schedule = openvino_schedule,
};

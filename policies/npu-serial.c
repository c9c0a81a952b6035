/* npu-serial: the OpenVINO NPU baseline as agent-xpu-v2 re-implements it (clauses.md C.3). One
 * request from start to end, in arrival order: prefill on the NPU in static chunks with attention
 * on the iGPU, then decode on the iGPU with a batch of one. NPU and iGPU alternate; nothing
 * overlaps. */
#include "policies/common/hetero.h"
#include "policies/common/place.h"
#include "policies/common/reqq.h"

enum { PARAM_MARGIN };
enum { MARGIN_NPU, MARGIN_IGPU };

static const char *const margins[] = {"npu", "igpu", NULL};
static const struct policy_param params[] = {
    [PARAM_MARGIN] =
        POLICY_CHOICE("margin", MARGIN_NPU, margins,
                      "where the prompt's last, partial chunk runs: padded on the NPU, or on the "
                      "iGPU next to the chunks (C.3 [S]: a static runtime pads)"),
    {.name = NULL},
};

struct npu_serial {
    struct reqq waiting;
    const struct request *current; /* NULL when idle */
    struct hetero prefill;
    int npu, igpu;
    uint32_t chunk;
};

static int npu_serial_init(struct sched *s)
{
    struct npu_serial *n = s->state;
    n->npu = machine_find(s->machine, DEVICE_KIND_NPU);
    n->igpu = machine_find(s->machine, DEVICE_KIND_IGPU);
    n->chunk = s->machine->devices[n->npu].chunk_rows;
    /* The baseline needs static graphs: an NPU of dynamic shapes has no margin. */
    return place_needs_chunks(s, n->npu);
}

static void npu_serial_request_arrived(struct sched *s, const struct request *r)
{
    struct npu_serial *n = s->state;
    reqq_push(&n->waiting, r);
}

static void npu_serial_launch_done(struct sched *s, const struct launch *l)
{
    struct npu_serial *n = s->state;
    (void)hetero_ended(&n->prefill, l);
}

static void npu_serial_pass_done(struct sched *s, const struct pass *p)
{
    struct npu_serial *n = s->state;
    const struct request *r = p->segments[0].request;
    hetero_clear(&n->prefill);
    if (r->state == REQUEST_STATE_FINISHED || r->state == REQUEST_STATE_SHED) {
        n->current = NULL;
    }
}

/* It is queued, or would get its next pass at this instant. */
static void npu_serial_request_cancelled(struct sched *s, const struct request *r)
{
    struct npu_serial *n = s->state;
    reqq_remove(r);
    n->current = n->current == r ? NULL : n->current;
}

static void form(struct sched *s, struct npu_serial *n, const struct request *r)
{
    bool decode = r->state == REQUEST_STATE_DECODE;
    struct segment seg = {.request = r,
                          .role = decode ? SEGMENT_DECODE : SEGMENT_PREFILL,
                          .n_tokens = decode ? 1 : request_prefill_left(r)};
    struct pass_spec spec = {.segments = &seg, .n_segments = 1, .fused_layers = decode};
    struct pass *p;
    if (sched_pass_form(s, &spec, &p) != 0) {
        return;
    }
    if (decode) {
        (void)place_whole(s, p, (uint8_t)n->igpu, YIELD_PASS);
    } else {
        hetero_begin(&n->prefill, p);
    }
}

static void npu_serial_schedule(struct sched *s)
{
    struct npu_serial *n = s->state;
    if (n->current == NULL) {
        n->current = reqq_pop(&n->waiting);
    }
    if (n->current == NULL) {
        return;
    }
    if (n->current->pass == NULL) {
        form(s, n, n->current);
    }
    if (hetero_at_boundary(&n->prefill)) {
        /* With padding only attention and head run on the iGPU, so the two devices strictly
         * alternate. */
        bool pad = param_int(s, PARAM_MARGIN) == MARGIN_NPU;
        hetero_plan(s, &n->prefill, hetero_default_rows(&n->prefill, n->chunk, pad));
    }
    hetero_launch_both(s, &n->prefill, n->npu, n->igpu);
}

const struct policy_ops policy_npu_serial_ops = {
    .name = "npu-serial",
    .summary = "one request at a time: prefill on the NPU, decode on the iGPU (agent-xpu-v2 6.1)",
    .contract = POLICY_CONTRACT,
    .needs = CAP_NPU | CAP_IGPU | CAP_SPANS | CAP_ROW_SPLIT,
    .state_size_bytes = sizeof(struct npu_serial),
    .request_state_size_bytes = sizeof(struct reqq_node),
    .params = params,
    .init = npu_serial_init,
    .request_arrived = npu_serial_request_arrived,
    .launch_done = npu_serial_launch_done,
    .pass_done = npu_serial_pass_done,
    .request_cancelled = npu_serial_request_cancelled,
    .schedule = npu_serial_schedule,
};

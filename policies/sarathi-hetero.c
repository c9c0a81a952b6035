/* sarathi-hetero: Sarathi's stall-free budget over two devices (clauses.md E.2 [ours], from
 * microsoft/sarathi-serve). An iteration is two passes at once: one token of every decoding request
 * on the iGPU, and prompt chunks of what the budget leaves on the NPU. The next iteration begins
 * when both are done. Attention of the chunks runs on the NPU if its attention is dynamic, else on
 * the iGPU, kernel by kernel between the decodes. The head runs on the iGPU. Parameters: the table
 * below. Deviations: as sarathi. */
#include "policies/common/hetero.h"
#include "policies/common/vllm.h"

enum { PARAM_SEQS, PARAM_BUDGET, PARAM_PARALLEL, PARAM_WATERMARK };

static const struct policy_param params[] = {
    [PARAM_SEQS] = POLICY_INT("max_num_seqs", 16, 1, 4096,
                              "requests in progress at once (E.2: 128; 16 on a SoC)"),
    [PARAM_BUDGET] = POLICY_INT("max_num_batched_tokens", 512, 1, 1e6,
                                "tokens of both passes of an iteration (E.2: 512)"),
    [PARAM_PARALLEL] =
        POLICY_BOOL("parallel", true, "chunks next to the decodes; off: after them (ablation)"),
    [PARAM_WATERMARK] = POLICY_NUMBER("watermark_frac", 0.01, 0, 0.5,
                                      "share of KV that admissions leave free (Sarathi: 0.01)"),
    {.name = NULL},
};

struct sarathi_hetero {
    struct vllm v; /* its pass: the decodes */
    struct hetero prefill;
    const struct launch *on_igpu; /* launch of the decodes */
    int npu, igpu;
};

static int hetero_init(struct sched *s)
{
    struct sarathi_hetero *h = s->state;
    h->npu = machine_find(s->machine, DEVICE_KIND_NPU);
    h->igpu = machine_find(s->machine, DEVICE_KIND_IGPU);
    /* Queues, admission and preemption are those of vllm.h. Only forming and launching differ,
     * because an iteration is two passes. */
    struct vllm_rules rules = {.order = VLLM_DECODES_FIRST,
                               .chunked = true,
                               .watermark_frac = param_number(s, PARAM_WATERMARK)};
    vllm_rule(s, rules, (uint32_t)param_int(s, PARAM_SEQS), (uint32_t)param_int(s, PARAM_BUDGET));
    return h->npu < 0 || h->igpu < 0 ? -ENODEV : 0;
}

static void hetero_launch_done(struct sched *s, const struct launch *l)
{
    struct sarathi_hetero *h = s->state;
    if (!hetero_ended(&h->prefill, l)) {
        h->on_igpu = NULL;
    }
}

static void hetero_pass_done(struct sched *s, const struct pass *p)
{
    struct sarathi_hetero *h = s->state;
    if (p == h->prefill.pass) {
        hetero_clear(&h->prefill);
    } else {
        h->v.it.running.pass = NULL;
    }
    iteration_part(s, p);
}

/* Forms the pass of all decodes, and evicts the tail if KV is short. Returns false after an
 * eviction: nothing may be admitted then. */
static bool form_decodes(struct sched *s, struct vllm *v)
{
    bool enough = true;
    for (;;) {
        vllm_begin(s, v);
        vllm_add_decodes(s, v, UINT32_MAX);
        enough = enough && !v->preempted;
        /* Collects the decodes again after each eviction, because the victim may be one of them. */
        if (v->it.batch.n == 0 || batch_form(s, &v->it.batch, &v->it.running.pass) == 0) {
            return enough;
        }
        v->it.running.pass = NULL;
        enough = false;
        if (!vllm_preempt(s, v)) {
            return false;
        }
    }
}

/* Forms the pass of chunks within the rest of the budget. Admissions that do not fit are undone. A
 * prompt in progress that does not fit is evicted if it is the last request, else it waits for the
 * next iteration. */
static void form_prompts(struct sched *s, struct sarathi_hetero *h, bool admit)
{
    struct vllm *v = &h->v;
    uint32_t decodes = v->it.running.pass == NULL ? 0 : v->it.running.pass->n_segments;
    uint32_t most = admit ? UINT32_MAX : 0;
    for (;;) {
        vllm_begin(s, v);
        v->it.batch.tokens = decodes; /* one budget for both passes */
        vllm_add_prompts(v);
        vllm_admit(s, v, most);
        struct pass *p = NULL;
        if (v->it.batch.n == 0) {
            return;
        }
        if (batch_form(s, &v->it.batch, &p) == 0) {
            v->admitted = 0;
            hetero_begin(&h->prefill, p);
            return;
        }
        if (v->admitted > 0) {
            most = v->admitted - 1;
            vllm_unadmit(v);
            continue;
        }
        most = 0;
        if (v->running.tail->pass != NULL || !vllm_preempt(s, v)) {
            return; /* the tail is among the decodes */
        }
    }
}

static void launch_decodes(struct sched *s, struct sarathi_hetero *h)
{
    struct pass *p = h->v.it.running.pass;
    if (p == NULL || p->state != PASS_STATE_READY ||
        sched_device_free_slots(s, (uint8_t)h->igpu) == 0) {
        return;
    }
    bool shared = h->prefill.pass != NULL && param_bool(s, PARAM_PARALLEL);
    struct launch_spec spec = sched_launch_rest(s, p, (uint8_t)h->igpu, YIELD_PASS);
    /* One op at a time, so that attention of the chunks can run in between. */
    spec.n_ops = shared ? 1 : spec.n_ops;
    (void)sched_launch(s, &spec, &h->on_igpu);
}

/* Attention of the chunks goes first, because the NPU waits for it; decodes run while the NPU
 * works. */
static void launch_prompts(struct sched *s, struct sarathi_hetero *h)
{
    struct hetero *f = &h->prefill;
    if (hetero_at_boundary(f)) {
        bool npu_attention = !s->machine->devices[h->npu].static_attention &&
                             pass_op_kind(f->pass, f->pass->op) == OP_MHA;
        hetero_plan(s, f, npu_attention ? f->pass->rows_todo : hetero_default_rows(f, 1, true));
    }
    hetero_launch_both(s, f, h->npu, h->igpu);
}

static void hetero_schedule(struct sched *s)
{
    struct sarathi_hetero *h = s->state;
    /* Both passes start together: they share one budget, and the next iteration begins after the
     * later one. */
    bool enough = h->v.it.running.pass != NULL || h->prefill.pass != NULL;
    while (!enough) { /* an empty iteration takes no time */
        enough = form_decodes(s, &h->v);
        form_prompts(s, h, enough);
        enough = enough || h->v.it.running.pass != NULL || h->prefill.pass != NULL;
    }
    if (param_bool(s, PARAM_PARALLEL) || h->v.it.running.pass == NULL) {
        launch_prompts(s, h);
    }
    launch_decodes(s, h);
}

static const char *const ablations[] = {"parallel=false", NULL};

const struct policy_ops policy_sarathi_hetero_ops = {
    .name = "sarathi-hetero",
    .summary = "Sarathi's budget: decodes on the iGPU, prompt chunks on the NPU at once (ours)",
    .contract = POLICY_CONTRACT,
    .needs = CAP_KV_MOVE | CAP_SPANS | CAP_NPU | CAP_IGPU,
    .state_size_bytes = sizeof(struct sarathi_hetero),
    .request_state_size_bytes = sizeof(struct reqq_node),
    .params = params,
    .ablations = ablations,
    .init = hetero_init,
    .exit = iteration_exit,
    .request_arrived = iteration_request_arrived,
    .request_cancelled = iteration_request_cancelled,
    .launch_done = hetero_launch_done,
    .pass_done = hetero_pass_done,
    .schedule = hetero_schedule,
};

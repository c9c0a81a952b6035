/* agent-xpu-v1: Agent.xpu, first text (clauses.md A; arXiv 2506.24045v1). It schedules one reactive
 * request and many proactive ones over NPU and iGPU, kernel by kernel:
 *
 * - a reactive request preempts proactive work: it waits until the running kernel ends;
 * - a preempted prefill resumes by starvation, then by estimated time to completion (ETC);
 * - proactive kernels fill slack inside a device and across devices;
 * - Algorithm 1 dispatches by memory pressure.
 *
 * Under one reading of each of two rules, the text defeats its own purpose. Two parameters choose
 * the reading, and other parameters hold our choice where the paper is silent ([S]):
 *
 *   affinity   Backfill targets "the non-conflicting accelerator when possible" (6.3). For a chunk
 *              of a proactive prefill that is the NPU. Its attention and its margin can only run on
 *              the iGPU. `boundary` lets one such kernel run between two iterations of reactive
 *              decode. `strict` never does, so a proactive prefill stalls at its first attention,
 *              against the paper's own example of proactive prefill during reactive decode.
 *   pressure   `text` tests P + dP > tau_high before everything else, as printed. Where an isolated
 *              decode draws more than tau_high (0.7) of the peak, nothing ever runs during it. At
 *              62 of 89.6 GB/s a decode leaves room for the NPU, and at 78 it does not.
 *              `intensity` only keeps two memory-bound kernels apart. */
#include "policies/agent_xpu_v1/agent_xpu_v1.h"
#include "policies/common/place.h"

static const char *const yield_choices[] = {"kernel", "iteration", NULL};
static const char *const resume_choices[] = {"etc", "fifo", NULL};
static const char *const affinity_choices[] = {"strict", "boundary", NULL};
static const char *const pressure_choices[] = {"text", "intensity", "off", NULL};
static const char *const tie_choices[] = {"etc", "longest", NULL};

static const struct policy_param params[] = {
    [V1_PREEMPT] = POLICY_BOOL(
        "preempt", true, "a reactive arrival stops proactive work at its kernel boundary (A.3)"),
    [V1_YIELD] = POLICY_CHOICE("yield", V1_YIELD_KERNEL, yield_choices,
                               "where a proactive iteration lets a proactive prefill onto the iGPU "
                               "while nothing is reactive (A.10 [S])"),
    [V1_RESUME] =
        POLICY_CHOICE("resume", V1_RESUME_ETC, resume_choices,
                      "next proactive prefill: starved first, then smallest ETC (A.4); or arrival"),
    [V1_T_STARVE_S] = POLICY_NUMBER("t_starve_s", 30, 0, (double)INFINITY,
                                    "pending time after which a prefill is starved, s (A.4 [S])"),
    [V1_CONTEXTS] = POLICY_INT("contexts", 8, 1, 1024,
                               "proactive prefills begun at once: ReqContexts kept (A.2 [S])"),
    [V1_CTX_SWITCH_US] = POLICY_NUMBER(
        "ctx_switch_us", 0, 0, 1e9, "cost of resuming a stopped prefill, us (A.2: zero copy, 0)"),
    [V1_ELASTIC] = POLICY_BOOL(
        "elastic", true, "reactive prefill on both devices while nothing reactive decodes (A.9)"),
    [V1_INTRA] = POLICY_BOOL("intra_backfill", true, "proactive decodes join reactive ones (A.5)"),
    [V1_EPSILON] =
        POLICY_NUMBER("epsilon", 0.10, 0, 1e3,
                      "marginal latency that a decode batch may cost: t(B) <= (1 + eps) t(|RT|) "
                      "(A.5 [S])"),
    [V1_BATCH_CAP] = POLICY_INT("batch_cap", 8, 1, 1024,
                                "most sequences that proactive ones fill a batch up to (A.5 [S])"),
    [V1_MAX_BATCH] =
        POLICY_INT("max_batch", 32, 1, 1024,
                   "decode batch limit while nothing reactive decodes (A.5 [S]: largest size of "
                   "the second text's 6.4)"),
    [V1_INTER] =
        POLICY_BOOL("inter_backfill", true, "proactive kernels fill devices that would idle (A.5)"),
    [V1_DURATION] = POLICY_BOOL(
        "duration", true, "backfill must end before the reactive request needs the device (A.5)"),
    [V1_AFFINITY] =
        POLICY_CHOICE("affinity", V1_AFFINITY_BOUNDARY, affinity_choices,
                      "backfill on the device of reactive decode: none, or one kernel that can run "
                      "nowhere else between two iterations (A.5: 'when possible')"),
    [V1_GAP_MS] =
        POLICY_NUMBER("gap_ms", 100, 0, 1e6,
                      "longest such kernel, ms (6.2: every prefill kernel is below 100 ms)"),
    [V1_ENERGY_ORDER] =
        POLICY_BOOL("energy_order", true, "backfill by highest TFLOPS per watt (A.5)"),
    [V1_PRESSURE] = POLICY_CHOICE("pressure", V1_PRESSURE_TEXT, pressure_choices,
                                  "Algorithm 1 as printed, its purpose only (ours), or off"),
    [V1_TAU_LOW] =
        POLICY_NUMBER("tau_low", 0.4, 0, 10, "low tier ends, share of peak bandwidth (6.4)"),
    [V1_TAU_HIGH] = POLICY_NUMBER("tau_high", 0.7, 0, 10,
                                  "high tier begins, share of peak bandwidth (6.4; A.6 [S])"),
    [V1_IDLE_GUARD] =
        POLICY_BOOL("idle_guard", true,
                    "a kernel alone on the machine always starts (A.6 [S]: else decode cannot)"),
    [V1_REORDER] = POLICY_BOOL(
        "reorder", true, "consumers of the last kernel and complementary kernels first (A.7)"),
    [V1_TIE] = POLICY_CHOICE("tie", V1_TIE_ETC, tie_choices,
                             "then the smaller ETC (A.5) or the longest remaining path (A.7 iii)"),
    [V1_AGEING] = POLICY_BOOL(
        "ageing", true, "an aged proactive prefill gets the iGPU next to a reactive one (A.8)"),
    [V1_T_AGE_S] = POLICY_NUMBER("t_age_s", 60, 0, 1e9,
                                 "age at which a proactive request is promoted, s (A.8 [S])"),
    [V1_BALANCE] = POLICY_BOOL(
        "balance", true, "token-level kernels go to an idle iGPU while the NPU is saturated (A.8)"),
    [V1_BALANCE_GAIN] = POLICY_NUMBER("balance_gain", 0.10, 0, 1,
                                      "least gain in finish time for that, share (A.8 [S])"),
    [V1_IGPU_CAP] =
        POLICY_NUMBER("igpu_cap", 1, 0, 1,
                      "busy share of the iGPU above which it takes no balanced kernels (A.0 [S]: "
                      "off)"),
    [V1_IGPU_CAP_S] = POLICY_NUMBER("igpu_cap_s", 5, 0.001, 1e6,
                                    "time over which that share is averaged, s (A.0)"),
    [V1_HANG_S] =
        POLICY_NUMBER("hang_s", 1, 0, 1e6,
                      "least time after which a kernel counts as hung, s (A.8 [S]); 0: never"),
    [V1_HANG_FACTOR] = POLICY_NUMBER("hang_factor", 10, 0, 1e6,
                                     "and least multiple of its annotated time (A.8 [S])"),
    [V1_SHED] =
        POLICY_BOOL("shed", false, "drop the newest proactive requests under extreme load (A.8)"),
    [V1_SHED_QUEUE] =
        POLICY_INT("shed_queue", 64, 0, 1e9, "proactive requests that may wait (A.8 [S])"),
    [V1_SHED_WAIT_S] =
        POLICY_NUMBER("shed_wait_s", 300, 0, 1e9, "predicted wait that is accepted, s (A.8 [S])"),
    GAP_PARAMS(V1_GAP_KV, V1_GAP_S),
    [V1_FLASH] = FLASH_PARAM,
    {.name = NULL},
};

static int v1_init(struct sched *s)
{
    struct v1 *v = s->state;
    v->npu = machine_find(s->machine, DEVICE_KIND_NPU);
    v->igpu = machine_find(s->machine, DEVICE_KIND_IGPU);
    v->chunk = s->machine->devices[v->npu].chunk_rows;
    v->decode_refused_ns = TIME_NEVER_NS;
    struct v1_queue *const queues[] = {&v->rt_queue, &v->be_queue, &v->decode_rt, &v->decode_be};
    for (int i = 0; i < 4; i++) {
        queues[i]->by_arrival.at = offsetof(struct v1_context, place);
    }
    v->whole_chunk.at = offsetof(struct v1_context, whole);
    v->pending.at = offsetof(struct v1_context, pending);
    gap_init(s, &v->gap, V1_GAP_KV, V1_GAP_S);
    v->flash.rule = (enum flash_rule)param_int(s, V1_FLASH);
    /* Splits and margins need the NPU's static chunks. */
    return place_needs_chunks(s, v->npu);
}

static void v1_exit(struct sched *s)
{
    struct v1 *v = s->state;
    batch_fini(&v->batch);
    gap_fini(&v->gap);
}

/* Busy share of the iGPU, an exponential average over igpu_cap_s (A.8). */
static void update_busy(const struct sched *s, struct v1 *v, bool was_busy)
{
    double f = exp(-units_s_from_ns(s->now_ns - v->igpu_busy_ns) / param_number(s, V1_IGPU_CAP_S));
    v->igpu_busy_frac = v->igpu_busy_frac * f + (was_busy ? 1.0 - f : 0.0);
    v->igpu_busy_ns = s->now_ns;
}

static void v1_request_arrived(struct sched *s, const struct request *r)
{
    struct v1 *v = s->state;
    *v1_context(r) =
        (struct v1_context){.pending_since_ns = s->now_ns, .refused_ns = TIME_NEVER_NS};
    gap_arrived(s, &v->gap, r);
    if (!gap_holds(&v->gap, r)) {
        v1_prefill_wait(s, v, r);
    }
}

static void v1_kv_moved(struct sched *s, const struct request *r)
{
    struct v1 *v = s->state;
    if (!flash_moved(&v->flash, r)) {
        return;
    }
    if (r->state == REQUEST_STATE_DECODE) {
        v1_enter(v, v1_reactive(r) ? &v->decode_rt : &v->decode_be, r);
    } else {
        v1_prefill_wait(s, v, r); /* a turn whose KV was read back */
    }
}

static void v1_launch_done(struct sched *s, const struct launch *l)
{
    struct v1 *v = s->state;
    struct v1_active *a = &v->active[l->device];
    v->last_pass[l->device] = l->pass->id;
    if (l->device == v->igpu) {
        update_busy(s, v, true);
    }
    if (a->request != NULL) {
        struct v1_context *c = v1_context(a->request);
        (void)hetero_ended(&c->h, l);
        /* Only proactive prefills are preempted. The guard against hung kernels may stop the
         * reactive one, which is no change of context. */
        if (l->outcome != LAUNCH_OUTCOME_DONE && a->request != v->rt) {
            c->stopped = true;
            c->pending_since_ns = s->now_ns;
        }
    }
    *a = (struct v1_active){0};
}

static void v1_pass_done(struct sched *s, const struct pass *p)
{
    struct v1 *v = s->state;
    if (p == v->decode) {
        v->decode = NULL;
        /* A gap is between two iterations with reactive sequences. */
        v->gap_used = p->has_reactive ? false : v->gap_used;
    } else {
        v1_prefill_done(v, p->segments[0].request);
    }
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct request *r = p->segments[i].request;
        if (r->state == REQUEST_STATE_DECODE) {
            v1_enter(v, v1_reactive(r) ? &v->decode_rt : &v->decode_be, r);
        } else if (r->state == REQUEST_STATE_FINISHED) {
            gap_finished(s, &v->gap, r);
        }
    }
}

static void v1_request_cancelled(struct sched *s, const struct request *r)
{
    v1_leave(s->state, r);
}

/* Sets a timer for the instant at which the next proactive prefill is aged. */
static void watch_age(struct sched *s, struct v1 *v)
{
    int64_t age = units_ns_from_s(param_number(s, V1_T_AGE_S));
    if (v->rt == NULL || v->aged != NULL || !param_bool(s, V1_AGEING)) {
        return;
    }
    for (const struct request *r = v->contexts.head; r != NULL; r = reqq_next(r)) {
        v1_wake_at(s, v, r->arrival_ns + age);
    }
    if (!reqq_empty(&v->be_queue.q)) {
        v1_wake_at(s, v, v->be_queue.q.head->arrival_ns + age);
    }
}

/* Reads back KV from flash, after waiting reactive prompts got memory. */
static void read_back(struct sched *s, struct v1 *v)
{
    if (flash_waits(&v->flash) && reqq_empty(&v->rt_queue.q)) {
        flash_back(s, &v->flash, v1_growth_tokens(v), v1_nothing_holds(v));
    }
}

static void v1_schedule(struct sched *s)
{
    struct v1 *v = s->state;
    SIM_ASSERT(v1_is_consistent(s, v));
    sched_again(s); /* stages may make work for earlier ones, and a call begins one fresh prefill */
    /* A launch that runs now began at an earlier instant, so it has run since the last update; one
     * that ended at this instant was counted by its launch_done. */
    update_busy(s, v, !v1_is_idle(v, v->igpu));
    /* Shed first, because a shed request must not begin. Limits and ages are watched last, when all
     * running work is known. */
    v1_shed(s, v);
    gap_schedule(s, &v->gap, v1_context_ns);
    v1_prefill_choose(s, v);
    v1_dispatch(s, v);
    read_back(s, v);
    bool waits = !reqq_empty(&v->rt_queue.q) || !reqq_empty(&v->be_queue.q) ||
                 !reqq_empty(&v->gap.back) || flash_waits(&v->flash);
    if (waits && v1_nothing_holds(v) && !gap_yield(s, &v->gap)) {
        /* no prompt could begin, because of kept KV, or KV that was read back for a waiting turn */
        (void)(gap_evict_last(s, &v->gap, &v->be_queue.q) ||
               gap_evict_last(s, &v->gap, &v->rt_queue.q));
    }
    v1_watch(s, v);
    watch_age(s, v);
}

static void v1_dump(struct sched *s, FILE *out)
{
    const struct v1 *v = s->state;
    if (param_int(s, V1_PRESSURE) == V1_PRESSURE_TEXT && !param_bool(s, V1_IDLE_GUARD)) {
        fprintf(out,
                "idle_guard=false: a kernel that alone draws more than tau_high=%g of the peak "
                "bandwidth never starts\n",
                param_number(s, V1_TAU_HIGH));
    }
    fprintf(out,
            "queues rt=%u be=%u contexts=%u decode rt=%u be=%u; prefill rt=%lld primary=%lld\n",
            v->rt_queue.q.n, v->be_queue.q.n, v->contexts.n, v->decode_rt.q.n, v->decode_be.q.n,
            v->rt == NULL ? -1LL : (long long)v->rt->id,
            v->primary == NULL ? -1LL : (long long)v->primary->id);
}

static const char *const ablations[] = {"preempt=false",
                                        "resume=fifo",
                                        "elastic=false",
                                        "intra_backfill=false",
                                        "inter_backfill=false",
                                        "duration=false",
                                        "affinity=strict",
                                        "energy_order=false",
                                        "pressure=off",
                                        "reorder=false",
                                        "ageing=false",
                                        "balance=false",
                                        "hang_s=0",
                                        "flash=cheaper",
                                        NULL};

const struct policy_ops policy_agent_xpu_v1_ops = {
    .name = "agent-xpu-v1",
    .summary = "Agent.xpu, first text: kernel preemption, ETC, backfill, memory-pressure dispatch "
               "(arXiv 2506.24045v1)",
    .contract = POLICY_CONTRACT,
    .flags = POLICY_F_BUSY_POLL,
    .needs = CAP_NPU | CAP_IGPU | CAP_SPANS | CAP_ROW_SPLIT | CAP_YIELD_KERNEL | CAP_KV_MOVE,
    .state_size_bytes = sizeof(struct v1),
    .request_state_size_bytes = sizeof(struct v1_context),
    .params = params,
    .ablations = ablations,
    .init = v1_init,
    .exit = v1_exit,
    .request_arrived = v1_request_arrived,
    .launch_done = v1_launch_done,
    .pass_done = v1_pass_done,
    .kv_moved = v1_kv_moved,
    .request_cancelled = v1_request_cancelled,
    .schedule = v1_schedule,
    .dump = v1_dump,
};

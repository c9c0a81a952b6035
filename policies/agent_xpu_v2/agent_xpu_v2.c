/* agent-xpu-v2: Agent.xpu, second text (clauses.md B; "Agent.xpu: Efficient Scheduling of Agentic
 * LLM Workloads on Heterogeneous SoC", version with Llama-3B/8B on a NUC 14 Pro+).
 *
 * Two loops over one machine. Prefill is serial, NPU first, and preemptible at kernel boundaries.
 * Decode is a continuous batch on the iGPU that yields to every prefill kernel. Reactive requests
 * go first in both. Deviations and choices where the paper is silent are marked [S] as in
 * clauses.md and are parameters. If memory runs out (which the paper does not expect), a proactive
 * request is evicted and prefilled again, or a reactive one if only these have KV. With `flash` the
 * KV is written to flash instead and read back, which the paper would prefer (4.1 (6)). */
#include "policies/agent_xpu_v2/agent_xpu_v2.h"

#include "policies/common/place.h"

static const char *const elastic_choices[] = {"off", "static", "on", "class", NULL};
static const char *const preempt_choices[] = {"kernel", "layer", "none", NULL};
static const char *const memory_choices[] = {"off", "defer", "igpu", NULL};
static const char *const cap_choices[] = {"fixed", "slo", "marginal", "open", NULL};
static const char *const split_choices[] = {"makespan", "balance", NULL};
static const char *const margin_choices[] = {"igpu", "choose", NULL};
static const char *const piggyback_choices[] = {"short", "long", NULL};
static const char *const drafter_choices[] = {"run", "model", "lookup", "suffix", NULL};
static const char *const speculate_choices[] = {"none", "igpu", "npu", NULL};
static const char *const shortest_choices[] = {"none", "reactive", "all", NULL};
static const char *const yield_choices[] = {"kernel", "iteration", NULL};

static const struct policy_param params[] = {
    [AXPU_PREFILL_FIRST] =
        POLICY_BOOL("prefill_first", true,
                    "iGPU kernels of any prefill go before decode (B.4); 0: decode first"),
    [AXPU_YIELD] = POLICY_CHOICE("yield", 0, yield_choices,
                                 "where decode gives the iGPU to prefill (B.4 [S])"),
    [AXPU_GUARD] =
        POLICY_BOOL("guard", false,
                    "an iteration with reactive requests ends before a proactive prefill "
                    "takes the iGPU (ours)"),
    [AXPU_SHORTEST] = POLICY_CHOICE("shortest", AXPU_SHORTEST_NONE, shortest_choices,
                                    "classes whose shortest waiting prompt is next (ours); the "
                                    "others': the first"),
    [AXPU_ELASTIC] =
        POLICY_CHOICE("elastic", AXPU_ELASTIC_ON, elastic_choices,
                      "NPU-iGPU split of reactive prefill (B.5); static ignores decode, class "
                      "that of proactive requests (ours)"),
    [AXPU_SPLIT] =
        POLICY_CHOICE("split", AXPU_SPLIT_MAKESPAN, split_choices,
                      "what a split makes least: the later end, or by how much the ends differ "
                      "(Algorithm 1 of the public text)"),
    [AXPU_BUSY_SHARE] = POLICY_NUMBER(
        "beta", 0.25, 0, 1, "share of the chunks the iGPU may keep while decode is busy (B.5 [S])"),
    [AXPU_WARMUP] =
        POLICY_BOOL("warmup", true, "compile NPU attention for waiting proactive prompts (B.6)"),
    [AXPU_WARM_REACTIVE] =
        POLICY_BOOL("warm_reactive", false,
                    "also for reactive prompts, which then run on the NPU alone (4.3 (5) "
                    "against 4.3 (1) and (4): split over both devices)"),
    [AXPU_CACHE_ENTRIES] =
        POLICY_INT("cache_entries", 8, 1, AXPU_MAX_CACHE, "compiled kernels kept (B.6 [S])"),
    [AXPU_CACHE_TTL_S] =
        POLICY_NUMBER("cache_ttl_s", 60, 0, 1e6,
                      "age at which an unused compiled kernel is dropped, s (B.6 [S])"),
    [AXPU_MEMORY_RULE] =
        POLICY_CHOICE("memory_rule", AXPU_MEMORY_IGPU, memory_choices,
                      "a memory-bound NPU kernel next to decode of another class: overlaps, is "
                      "waits until the higher class is through (4.3 (5) by its words), or "
                      "takes turns with it on the iGPU (ours)"),
    [AXPU_B_RF] = POLICY_INT("b_rf", 3, 0, 1024,
                             "decode batch limit while both classes decode (B.7); 0: none"),
    [AXPU_MAX_BATCH] = POLICY_INT("max_batch", 32, 1, 1024,
                                  "decode batch limit of one class (B.7 [S]: largest size of 6.4)"),
    [AXPU_LENGTH_BUCKET] =
        POLICY_INT("length_bucket", 256, 1, 1e6,
                   "tokens per bucket of the longest-first eviction (B.7 [S]); 1: strict"),
    [AXPU_PIGGYBACK] =
        POLICY_CHOICE("piggyback", AXPU_PIGGYBACK_SHORT, piggyback_choices,
                      "proactive sequences that stay in a mixed batch: the shortest, or the "
                      "longest (Algorithm 2 of the public text, as printed)"),
    [AXPU_PREEMPT] = POLICY_CHOICE("preempt", AXPU_PREEMPT_KERNEL, preempt_choices,
                                   "where a reactive arrival stops a proactive prefill (B.2)"),
    [AXPU_SUSPENDED] =
        POLICY_INT("suspended", 1, 0, AXPU_MAX_SUSPENDED,
                   "proactive prefills that can be suspended at once (B.1: one buffer)"),
    [AXPU_AGEING] = POLICY_BOOL("ageing", true, "starvation prevention (B.8)"),
    [AXPU_T_AGE_S] =
        POLICY_NUMBER("t_age_s", 900, 0, 1e9,
                      "age at which a proactive request is promoted, s (B.8 [S]; ours: the papers' "
                      "traces last 900 s)"),
    [AXPU_AGED_MAX] =
        POLICY_INT("aged_max", 1, 0, 1e6,
                   "proactive requests that can be promoted at once, the oldest; 0: any number"),
    [AXPU_AGED_CHUNKS] =
        POLICY_BOOL("aged_chunks", true,
                    "an aged prefill runs on the iGPU in kernels of the NPU's chunk (4.4)"),
    [AXPU_CAP] = POLICY_CHOICE(
        "cap", AXPU_CAP_FIXED, cap_choices,
        "limit of a mixed decode batch: b_rf (B.7), what keeps the reactive token gap, or "
        "what costs reactive ones little (E.12, A.5); open: b_rf, and beyond it what costs "
        "little (ours)"),
    [AXPU_TBT_SLO_MS] =
        POLICY_NUMBER("tbt_slo_ms", 200, 0, 1e6,
                      "cap=slo: longest mixed iteration where the trace has no SLO, ms (ours)"),
    [AXPU_EPSILON] = POLICY_NUMBER("epsilon", 0.1, 0, 1e3,
                                   "cap=marginal: t(B) <= (1 + epsilon) t(|RT|) (A.5 [S])"),
    [AXPU_SPECULATE] =
        POLICY_CHOICE("speculate", AXPU_SPECULATE_NONE, speculate_choices,
                      "decoding verifies the drafts of sim.speculation, on the iGPU or on an NPU "
                      "that no prompt wants (ours; D.6, D.8)"),
    [AXPU_DRAFTER] = POLICY_CHOICE("drafter", AXPU_DRAFTER_RUN, drafter_choices,
                                   "who drafts: sim.speculation, or passes of the run's "
                                   "--llm draft=M; lookup, suffix: on token texts (ours)"),
    [AXPU_VERIFY_ROWS] =
        POLICY_INT("verify_rows", 32, 1, 4096, "rows of the NPU's verification graph (sd.npu 3.2)"),
    [AXPU_DRAFT_MS] =
        POLICY_NUMBER("draft_ms", 3, 0, 1000, "drafting time per batch, ms (sd.npu 4.4: below 3)"),
    GAP_PARAMS(AXPU_GAP_KV, AXPU_GAP_S),
    [AXPU_WARM_S] =
        POLICY_NUMBER("warm_s", 0, 0, 1e9,
                      "while reactive requests decode, prompts with a compiled kernel are next, "
                      "and others once they are so old, s (ours); 0: in order"),
    [AXPU_FLASH] = FLASH_PARAM,
    [AXPU_MARGIN] = POLICY_CHOICE("margin", AXPU_MARGIN_IGPU, margin_choices,
                                  "where the rows of a prompt beyond whole chunks run: on the iGPU "
                                  "(4.3 (1)), or on either, as the coordinator chooses (4.2)"),
    {.name = NULL},
};

static int axpu_init(struct sched *s)
{
    struct axpu *a = s->state;
    a->npu = machine_find(s->machine, DEVICE_KIND_NPU);
    a->igpu = machine_find(s->machine, DEVICE_KIND_IGPU);
    a->chunk = s->machine->devices[a->npu].chunk_rows;
    a->n_batches = 1; /* no batch yet; > 0, because requests start with batch 0 */
    a->young.at = offsetof(struct axpu_request, young);
    a->decode_rt.by_arrival.at = offsetof(struct axpu_request, by_arrival);
    a->decode_be.by_arrival.at = offsetof(struct axpu_request, by_arrival);
    a->aged_be.at = offsetof(struct axpu_request, rank);
    a->stayed_be.at = offsetof(struct axpu_request, rank);
    a->other_be.at = offsetof(struct axpu_request, rank);
    a->piggyback = (enum axpu_piggyback)param_int(s, AXPU_PIGGYBACK);
    a->warm_reactive = param_bool(s, AXPU_WARM_REACTIVE);
    a->age_ns = units_ns_from_s(param_number(s, AXPU_T_AGE_S));
    a->warm_ns = units_ns_from_s(param_number(s, AXPU_WARM_S));
    a->ttl_ns = units_ns_from_s(param_number(s, AXPU_CACHE_TTL_S));
    gap_init(s, &a->gap, AXPU_GAP_KV, AXPU_GAP_S);
    a->flash.rule = (enum flash_rule)param_int(s, AXPU_FLASH);
    if (axpu_drafts_by_model(s) && s->draft_model == 0) {
        sched_give_up(s, "drafter=model needs a model of the run called draft (--llm draft=M), "
                         "after the default one");
        return -EINVAL;
    }
    return place_needs_chunks(s, a->npu);
}

static void axpu_exit(struct sched *s)
{
    struct axpu *a = s->state;
    batch_fini(&a->batch);
    map_fini(&a->waiting);
    gap_fini(&a->gap);
}

/* Adds a request to the queue of its phase and class. */
static void enqueue(struct sched *s, struct axpu *a, const struct request *r)
{
    if (r->state == REQUEST_STATE_DECODE) {
        axpu_decode_wait(s, a, r);
    } else {
        axpu_wait(a, r, false);
    }
}

static void axpu_request_arrived(struct sched *s, const struct request *r)
{
    struct axpu *a = s->state;
    if (r->cls == REQUEST_CLASS_PROACTIVE) {
        /* Equal keys: ordered by arrival, the tie-break. */
        order_add(&a->young, r, 0.0);
    }
    gap_arrived(s, &a->gap, r);
    if (!gap_holds(&a->gap, r)) {
        enqueue(s, a, r);
    }
}

static void axpu_kv_moved(struct sched *s, const struct request *r)
{
    struct axpu *a = s->state;
    if (flash_moved(&a->flash, r)) {
        enqueue(s, a, r);
    }
}

static void axpu_launch_done(struct sched *s, const struct launch *l)
{
    struct axpu *a = s->state;
    if (l == a->decode_launch) {
        a->decode_launch = NULL;
    } else {
        axpu_prefill_launch_done(a, l);
    }
}

static void axpu_pass_done(struct sched *s, const struct pass *p)
{
    struct axpu *a = s->state;
    bool drafts = p->segments[0].role == SEGMENT_DRAFT;
    if (p == a->decode) {
        a->decode = NULL;
        a->verify_on_npu = false;
        a->draft_passes = drafts ? a->draft_passes + 1 : 0;
        speculate_observe_pass(&a->estimate, p);
    } else {
        axpu_prefill_pass_done(a, p->segments[0].request);
    }
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct request *r = p->segments[i].request;
        axpu_request(r)->drafted = drafts ? axpu_request(r)->drafted + 1 : 0;
        if (r->state == REQUEST_STATE_DECODE) {
            enqueue(s, a, r);
        } else if (r->state != REQUEST_STATE_QUEUED) {
            axpu_forget(a, r);
            gap_finished(s, &a->gap, r);
        }
    }
}

static void axpu_request_cancelled(struct sched *s, const struct request *r)
{
    axpu_decode_leave(s->state, r);
    axpu_leave(s->state, r);
    axpu_forget(s->state, r);
}

/* Whether requests wait and none could begin, because of kept KV of a session, or KV that was read
 * back for a turn that has not begun. */
static bool stuck(const struct axpu *a)
{
    bool waits = !reqq_empty(&a->prefill_rt.q) || !reqq_empty(&a->prefill_be.q) ||
                 !reqq_empty(&a->decode_rt.q) || !reqq_empty(&a->decode_be.q) ||
                 !reqq_empty(&a->gap.back) || flash_waits(&a->flash);
    return waits && a->current.request == NULL && a->aged.request == NULL && a->n_suspended == 0 &&
           a->decode == NULL && a->draft_ready_ns == 0;
}

/* Reads back KV from flash, after reactive prompts got memory. Requires four free blocks for every
 * sequence, so that the KV is not evicted again at once. */
static void read_back(struct sched *s, struct axpu *a)
{
    if (flash_waits(&a->flash) && reqq_empty(&a->prefill_rt.q)) {
        uint32_t decodes = a->decode_rt.q.n + a->decode_be.q.n;
        uint32_t runs = a->decode == NULL ? 0 : a->decode->n_segments;
        flash_back(s, &a->flash, (uint64_t)4 * s->kv_block_tokens * (decodes + runs),
                   decodes == 0 && stuck(a));
    }
}

/* Prefill plans before decode acts, so that prefill gets the iGPU first (B.4). Decode uses the
 * rest. Then the compiler thread works for prompts that still wait. */
static void axpu_schedule(struct sched *s)
{
    struct axpu *a = s->state;
    SIM_ASSERT(axpu_is_consistent(s, a));
    if (param_bool(s, AXPU_AGEING)) {
        axpu_promote(s, a);
    }
    gap_schedule(s, &a->gap, axpu_context_ns);
    a->decode_short = false;
    axpu_prefill_schedule(s, a);
    uint32_t waiting = a->prefill_rt.q.n;
    if (a->decode_launch == NULL) {
        axpu_decode_schedule(s, a);
    }
    if (a->prefill_rt.q.n > waiting || a->decode_short) {
        axpu_prefill_schedule(s, a); /* an evicted sequence is a reactive prompt again */
    }
    read_back(s, a);
    if (stuck(a) && (gap_yield(s, &a->gap) || gap_evict_last(s, &a->gap, &a->prefill_be.q) ||
                     gap_evict_last(s, &a->gap, &a->prefill_rt.q))) {
        sched_again(s);
    }
    axpu_warmup_schedule(s, a);
    SIM_ASSERT(axpu_is_consistent(s, a) && axpu_has_decided(s, a));
}

static void axpu_dump(struct sched *s, FILE *out)
{
    const struct axpu *a = s->state;
    fprintf(out, "prefill rt=%u be=%u decode rt=%u be=%u suspended=%u current=%lld aged=%lld\n",
            a->prefill_rt.q.n, a->prefill_be.q.n, a->decode_rt.q.n, a->decode_be.q.n,
            a->n_suspended, a->current.request == NULL ? -1LL : (long long)a->current.request->id,
            a->aged.request == NULL ? -1LL : (long long)a->aged.request->id);
}

static const char *const ablations[] = {"prefill_first=false",
                                        "elastic=off",
                                        "elastic=static",
                                        "beta=1",
                                        "warmup=false",
                                        "memory_rule=off",
                                        "b_rf=0",
                                        "preempt=none",
                                        "ageing=false",
                                        "aged_chunks=false",
                                        "flash=cheaper",
                                        "margin=choose",
                                        NULL};

const struct policy_ops policy_agent_xpu_v2_ops = {
    .name = "agent-xpu-v2",
    .summary = "dual-queue NPU-iGPU scheduling with kernel-boundary preemption (Agent.xpu v2)",
    .contract = POLICY_CONTRACT,
    .flags = POLICY_F_BUSY_POLL,
    .needs = CAP_SPANS | CAP_ROW_SPLIT | CAP_YIELD_KERNEL | CAP_COMPILE | CAP_KV_MOVE | CAP_NPU |
             CAP_IGPU,
    .state_size_bytes = sizeof(struct axpu),
    .request_state_size_bytes = sizeof(struct axpu_request),
    .params = params,
    .ablations = ablations,
    .init = axpu_init,
    .exit = axpu_exit,
    .request_arrived = axpu_request_arrived,
    .launch_done = axpu_launch_done,
    .pass_done = axpu_pass_done,
    .resident_ready = axpu_warmup_ready,
    .kv_moved = axpu_kv_moved,
    .request_cancelled = axpu_request_cancelled,
    .schedule = axpu_schedule,
    .dump = axpu_dump,
};

/* sd-npu: one request at a time on the NPU with two static graphs, and verified speculation
 * (clauses.md D; "sd.npu" / CoordGen). `system` names a system of the paper; other parameters
 * change it:
 *
 *   npu           one graph for both stages, in the shape that decodes; the paper does not say
 *                 which [S], but its Table 3 has +G save the same with and without speculation, so
 *                 decoding already uses its own shape. strategy=unified-g1 is the other reading
 *   npu+g         graphs switched progressively        npu+sd, npu-sam   drafts of SAM
 *   npu+g+sd      both                                 sd-npu            both, calibration and
 *                 reuse in the drafter, drafts cut to one pass of the decode graph
 *   npu-pld, npu-eagle   other drafters                cpu, cpu-sam, cpu-pld, cpu-eagle   prefill
 *                 on the NPU, decoding on the CPU, which keeps its own copy of the weights
 *
 * Attention is inside the block graphs here; the paper runs it on CPU or GPU. With one request the
 * accounting is the paper's `event` reading: prefill, loads, calibration, drafting and verification
 * all take their time.
 */
#include "policies/sd_npu/sd_npu.h"

static const char *const strategies[] = {"progressive", "sync",       "naive-async", "keep-both",
                                         "unified-g1",  "unified-g2", "late-start",  NULL};
static const char *const decoders[] = {"npu", "cpu", NULL};
static const char *const drafters[] = {"run",   "none",   "pld",    "sam",        "ours", "eagle",
                                       "model", "lookup", "suffix", "calibrated", NULL};
static const char *const lengths[] = {"offered", "pass", "adaptive", NULL};

/* The systems of the paper by name, and the parameters of each. SAM and other retrieval draft in
 * less than 10 ms a step (2.2), and sd.npu in less than 3 ms. Its calibration takes about 2 ms per
 * input token (4.4). Its memory of 55 MB is 3.14 GB less the middle of the 3.05 to 3.12 GB of NPU
 * vanilla (4.3). */
#define RETRIEVAL "draft_ms=9.99,drafter="
#define ON_CPU "strategy=unified-g1,decode=cpu,"
static const char *const systems[] = {"custom",  "npu",     "npu+g",     "npu+sd",    "npu+g+sd",
                                      "sd-npu",  "npu-sam", "npu-pld",   "npu-eagle", "cpu",
                                      "cpu-sam", "cpu-pld", "cpu-eagle", NULL};
static const char *const presets[] = {
    "",
    "strategy=unified-g2,speculate=false",
    "strategy=progressive,speculate=false",
    "strategy=unified-g2," RETRIEVAL "sam",
    "strategy=progressive," RETRIEVAL "sam",
    "strategy=progressive,drafter=ours,length=pass,draft_ms=3,calibrate_ms=2,calibrate_mb=55",
    "strategy=unified-g2," RETRIEVAL "sam",
    "strategy=unified-g2," RETRIEVAL "pld",
    "strategy=unified-g2,draft_ms=0,drafter=eagle",
    ON_CPU "speculate=false",
    ON_CPU RETRIEVAL "sam",
    ON_CPU RETRIEVAL "pld",
    ON_CPU "draft_ms=0,drafter=eagle",
};

static const struct policy_param params[] = {
    [SD_SYSTEM] = POLICY_CHOICE("system", 0, systems,
                                "a system of the paper (4.1, 4.5); what else is given changes it"),
    [SD_STRATEGY] =
        POLICY_CHOICE("strategy", SD_PROGRESSIVE, strategies,
                      "graph switching (D.2); late-start (D.5, ours): progressive, begun when the "
                      "prompt's rest takes as long as the loads"),
    [SD_BLOCKS] =
        POLICY_INT("blocks", 6, 1, SD_MAX_BLOCKS, "blocks of consecutive layers (sd.npu 3.2: 6)"),
    [SD_G1] = POLICY_INT("g1", 256, 1, 4096, "rows of the prefill graph (sd.npu 3.2)"),
    [SD_G2] = POLICY_INT("g2", 32, 1, 4096, "rows of the decode graph (sd.npu 3.2)"),
    [SD_DECODE] = POLICY_CHOICE("decode", 0, decoders, "device that decodes"),
    [SD_SPECULATE] = POLICY_BOOL("speculate", true, "verify the drafts of the drafter"),
    [SD_DRAFTER] = POLICY_CHOICE("drafter", 0, drafters,
                                 "who drafts; run: sim.speculation.method; model: the run's "
                                 "--llm draft=M; lookup, suffix, calibrated: on token texts"),
    [SD_LENGTH] = POLICY_CHOICE(
        "length", SD_LENGTH_OFFERED, lengths,
        "tokens verified: all, one pass of the decode graph, or what gains most (E.20)"),
    [SD_DRAFT_MS] = POLICY_NUMBER("draft_ms", 3, 0, 1000,
                                  "drafting time per step, ms (sd.npu 4.4: below 3; SAM below 10); "
                                  "model: that of its passes instead"),
    [SD_CALIBRATE_MS] =
        POLICY_NUMBER("calibrate_ms", 0, 0, 10,
                      "calibration per input token, ms (sd.npu 4.4: about 2; 0.18 agrees with "
                      "its Table 3)"),
    [SD_OVERLAP] = POLICY_BOOL("overlap", false, "calibration runs next to decoding"),
    [SD_CALIBRATE_MB] = POLICY_NUMBER("calibrate_mb", 0, 0, 1e5,
                                      "memory of calibrated drafts, MB (sd.npu 4.3: below 500)"),
    [SD_KEEP_OLD] = POLICY_BOOL(
        "keep_old", false, "a block computes with its old graph until the new one has come (D.1)"),
    [SD_EAGLE_FORWARDS] = POLICY_INT("eagle_forwards", 1, 1, 100,
                                     "passes of EAGLE's draft model per step: 1 as its simulation "
                                     "in the paper seems to have it [S], 6 for EAGLE-2's tree"),
    [SD_DRAFT_ON] = POLICY_CHOICE("draft_on", 0, decoders, "device of a draft model of the run"),
    {.name = NULL},
};

static int sd_init(struct sched *s)
{
    struct sd *d = s->state;
    int npu = machine_find(s->machine, DEVICE_KIND_NPU);
    int cpu = machine_find(s->machine, DEVICE_KIND_CPU);
    d->npu = (uint8_t)npu;
    d->cpu = (uint8_t)cpu;
    d->n_blocks = (uint32_t)param_int(s, SD_BLOCKS);
    bool uses_cpu = param_int(s, SD_DECODE) != 0 || param_int(s, SD_DRAFT_ON) != 0;
    if (npu < 0 || (uses_cpu && cpu < 0)) {
        return -ENODEV;
    }
    if (param_int(s, SD_DRAFTER) == SD_DRAFTER_MODEL && s->draft_model == 0) {
        sched_give_up(s, "drafter=model needs a model of the run called draft (--llm draft=M), "
                         "after the default one");
        return -EINVAL;
    }
    if (s->machine->devices[npu].static_attention) {
        return -EPERM; /* attention is in the block graphs */
    }
    /* Every block needs a layer, or it would have no op. */
    int rc = d->n_blocks <= s->llm->n_layers ? sd_graphs_map(s, d) : -EINVAL;
    return rc == 0 ? sd_map_extras(s) : rc;
}

static void sd_request_arrived(struct sched *s, const struct request *r)
{
    struct sd *d = s->state;
    reqq_push(&d->waiting, r);
}

static void sd_request_cancelled(struct sched *s, const struct request *r)
{
    struct sd *d = s->state;
    reqq_remove(r);
    if (d->current == r) {
        d->current = NULL;
        d->phase = SD_IDLE;
    }
}

static void sd_launch_done(struct sched *s, const struct launch *l)
{
    struct sd *d = s->state;
    d->launched = false;
    d->block_ended = l->graph > 0;
    d->next_block++;
}

static void sd_pass_done(struct sched *s, const struct pass *p)
{
    struct sd *d = s->state;
    const struct request *r = p->segments[0].request;
    speculate_observe_pass(&d->estimate, p);
    d->pass = NULL;
    d->next_block = 0;
    if (r->state == REQUEST_STATE_FINISHED || r->state == REQUEST_STATE_SHED) {
        d->current = NULL;
        d->phase = SD_IDLE;
    }
}

/* Host work of `ms` for the request, before its next step. */
static void wait_ms(struct sched *s, struct sd *d, double ms)
{
    d->phase = SD_WAIT;
    d->wait_until_ns = s->now_ns + units_ns_from_ms(ms);
    (void)sched_set_timer(s, d->wait_until_ns);
}

static bool speculates(const struct sched *s)
{
    return param_bool(s, SD_SPECULATE);
}

static void form(struct sched *s, struct sd *d, enum segment_role role, uint32_t tokens)
{
    struct segment seg = {.request = d->current, .role = role, .n_tokens = tokens};
    struct pass_spec spec = {.segments = &seg, .n_segments = 1};
    if (sched_pass_form(s, &spec, &d->pass) != 0) {
        d->pass = NULL;
    }
    d->next_block = 0;
}

/* Begins the request's next step: a chunk, calibration, a draft, or a verification. */
static void advance(struct sched *s, struct sd *d)
{
    const struct request *r = d->current;
    if (r->state == REQUEST_STATE_QUEUED) {
        if (d->phase == SD_IDLE) {
            d->phase = SD_PREFILL;
        }
        /* One pass per chunk of the prefill graph, because switching is decided between the blocks
         * of a chunk. Other models use the NPU's chunk. */
        uint32_t own = s->machine->devices[d->npu].chunk_rows;
        uint32_t left = request_prefill_left(r);
        uint32_t rows = r->model == 0 ? sd_graph_rows(s, 1) : own > 0 ? own : left;
        d->chunks_left = (left + rows - 1) / rows;
        form(s, d, SEGMENT_PREFILL, left < rows ? left : rows);
        return;
    }
    if (d->phase == SD_PREFILL) {
        sd_graphs_prefill_end(s, d);
        double calibrate = param_number(s, SD_CALIBRATE_MS) * r->input_tokens;
        d->phase = SD_DECODING;
        d->draft = UINT32_MAX;
        d->to_draft = 0;
        if (speculates(s) && calibrate > 0.0 && !param_bool(s, SD_OVERLAP)) {
            wait_ms(s, d, calibrate);
            return;
        }
    }
    if (speculates(s) && d->draft == UINT32_MAX) {
        d->draft = sd_draft_length(s, d);
        double ms = d->draft > 0 ? sd_draft_ms(s, d, d->draft, false) : 0.0;
        d->to_draft = param_int(s, SD_DRAFTER) == SD_DRAFTER_MODEL ? d->draft : 0;
        /* Drafting is a separate wait, in which the NPU idles and a graph switch may continue. */
        if (ms > 0.0) {
            wait_ms(s, d, ms);
            if (param_int(s, SD_DRAFTER) == SD_DRAFTER_EAGLE) { /* its draft model is computed */
                bool cpu = param_int(s, SD_DECODE) == 1;
                (void)sched_occupy(s, cpu ? d->cpu : d->npu, d->wait_until_ns);
            }
            return;
        }
    }
    if (d->to_draft > 0) {
        d->to_draft--;
        form(s, d, SEGMENT_DRAFT, 0);
        return;
    }
    uint32_t draft = speculates(s) ? d->draft : 0;
    d->draft = UINT32_MAX;
    form(s, d, draft > 0 ? SEGMENT_VERIFY : SEGMENT_DECODE, 1 + draft);
    /* KV lacks room for the draft, but maybe not for one token. */
    if (d->pass == NULL && draft > 0) {
        form(s, d, SEGMENT_DECODE, 1);
    }
}

/* Counts padded rows of static graphs, and time stalled for graphs. */
static void note_block(struct sched *s, struct sd *d, uint32_t graph_rows)
{
    uint32_t rows = d->pass->shape.rows;
    uint32_t padded = (rows + graph_rows - 1) / graph_rows * graph_rows;
    (void)sched_note(s, "block_rows", rows);
    (void)sched_note(s, "block_padding_rows", padded - rows);
    if (d->stalled_since_ns > 0) {
        (void)sched_note(s, "graph_stall_us", (uint64_t)(s->now_ns - d->stalled_since_ns) / 1000);
        d->stalled_since_ns = 0;
    }
}

static void launch(struct sched *s, struct sd *d)
{
    struct pass *p = d->pass;
    if (d->launched || p->state != PASS_STATE_READY) {
        return;
    }
    bool prefill = p->shape.prefill_rows > 0;
    bool drafts = p->segments[0].role == SEGMENT_DRAFT;
    bool on_cpu = !prefill && param_int(s, drafts ? SD_DRAFT_ON : SD_DECODE) == 1;
    struct launch_spec spec = sched_launch_rest(s, p, on_cpu ? d->cpu : d->npu, YIELD_PASS);
    if (sched_device_free_slots(s, spec.device) == 0) {
        return; /* EAGLE still drafts on the NPU, late, or for a cancelled request */
    }
    if (on_cpu) {
        spec.chunk_rows = 0;
    } else if (p->shape.model == 0) { /* only the default model has graphs */
        uint8_t v = sd_graphs_version(s, d, d->next_block, prefill);
        if (v == 0) { /* loading: stall until resident_ready */
            d->stalled_since_ns = d->stalled_since_ns > 0 ? d->stalled_since_ns : s->now_ns;
            return;
        }
        if (prefill) {
            sd_graphs_before_block(s, d); /* keeps this block's graph */
        }
        note_block(s, d, sd_graph_rows(s, v));
        spec.n_ops = sd_block_op(s, d, p, d->next_block + 1) - p->op;
        spec.graph = v;
        spec.graph_block = d->next_block;
        spec.chunk_rows = sd_graph_rows(s, v);
    }
    d->launched = sched_launch(s, &spec, NULL) == 0;
}

static void sd_schedule(struct sched *s)
{
    struct sd *d = s->state;
    sd_graphs_drop_old(s, d);
    if (d->current == NULL) {
        sd_graphs_prefill_begin(s, d); /* switch back while no request waits */
        d->current = reqq_pop(&d->waiting);
        d->phase = SD_IDLE;
    }
    if (d->current == NULL) {
        return;
    }
    if (d->phase == SD_WAIT) {
        if (s->now_ns < d->wait_until_ns) {
            return;
        }
        d->phase = SD_DECODING;
    }
    if (d->block_ended && d->phase == SD_PREFILL) {
        /* next_block is the one after it, or the first after pass_done. */
        sd_graphs_block_done(s, d, (d->next_block + d->n_blocks - 1) % d->n_blocks);
    }
    d->block_ended = false;
    if (d->current->state == REQUEST_STATE_DECODE && param_bool(s, SD_KEEP_OLD)) {
        sd_graphs_prefill_end(s, d); /* one load at a time */
    }
    if (d->pass == NULL) {
        advance(s, d);
    }
    if (d->pass != NULL) {
        launch(s, d);
    }
}

static const char *const ablations[] = {"strategy=unified-g2", "speculate=false", NULL};

const struct policy_ops policy_sd_npu_ops = {
    .name = "sd-npu",
    .summary = "two NPU graphs switched progressively, speculation verified on the NPU (sd.npu)",
    .contract = POLICY_CONTRACT,
    .needs = CAP_SPANS | CAP_LOAD | CAP_VERIFY | CAP_NPU,
    .state_size_bytes = sizeof(struct sd),
    .request_state_size_bytes = sizeof(struct reqq_node),
    .params = params,
    .ablations = ablations,
    .presets = presets,
    .init = sd_init,
    .request_arrived = sd_request_arrived,
    .launch_done = sd_launch_done,
    .pass_done = sd_pass_done,
    .resident_ready = sd_graphs_ready,
    .request_cancelled = sd_request_cancelled,
    .schedule = sd_schedule,
};

/* Drafts of sd-npu: number of verified tokens, time of drafting, and memory of drafters and second
 * copies of weights (clauses.md D.6, D.8, D.10, E.20). */
#include "policies/common/cost.h"
#include "policies/sd_npu/sd_npu.h"

static uint8_t decoder(const struct sched *s, const struct sd *d)
{
    return param_int(s, SD_DECODE) == 1 ? d->cpu : d->npu;
}

/* Rows of the decode graph; 0 for other models, which use the NPU's shapes, and on a CPU. */
static uint32_t graph_rows(const struct sched *s, const struct sd *d)
{
    bool has = decoder(s, d) == d->npu && d->current->model == 0;
    return has ? sd_graph_rows(s, sd_decode_version(s)) : 0;
}

/* Annotated time of a pass with the kernels that the policy would launch. */
static double pass_ms(struct sched *s, const struct sd *d, const struct work_shape *w)
{
    uint8_t device = decoder(s, d);
    return speculate_pass_ns(s, w, device, device, graph_rows(s, d)) / 1e6;
}

static struct work_shape shape_of(const struct sched *s, const struct request *r, uint32_t drafted)
{
    struct work_shape w = {0};
    cost_shape_add(s, &w, r, 1 + drafted);
    w.logit_rows = 1 + drafted;
    return w;
}

/* Annotated time of one token of the draft model, after the context. */
static double draft_pass_ms(struct sched *s, const struct sd *d)
{
    struct work_shape w = shape_of(s, d->current, 0);
    uint8_t device = param_int(s, SD_DRAFT_ON) == 1 ? d->cpu : d->npu;
    w.model = s->draft_model;
    return speculate_pass_ns(s, &w, device, device, 0) / 1e6;
}

double sd_draft_ms(struct sched *s, const struct sd *d, uint32_t drafted, bool passes)
{
    if (param_int(s, SD_DRAFTER) == SD_DRAFTER_MODEL) {
        return passes ? drafted * draft_pass_ms(s, d) : 0.0;
    }
    if (param_int(s, SD_DRAFTER) != SD_DRAFTER_EAGLE) {
        return param_number(s, SD_DRAFT_MS);
    }
    /* EAGLE: a draft model of one layer and the head, in kernels as those that decode. The paper's
     * own simulation seems to charge one forward per step (D.10 [S]); EAGLE-2 makes six and
     * verifies a tree of 60 tokens, of which as many are right
     * (sim.speculation.max_draft_tokens=60). Drafting occupies the decode device, at its power and
     * speed, without DDR traffic. */
    struct work_shape with = shape_of(s, d->current, 0);
    struct work_shape without = with;
    without.logit_rows = 0;
    double layers = pass_ms(s, d, &without);
    double head = pass_ms(s, d, &with) - layers;
    double forwards = param_number(s, SD_EAGLE_FORWARDS);
    return param_number(s, SD_DRAFT_MS) +
           forwards * (layers / sched_model(s, with.model)->n_layers + head);
}

struct step {
    struct sched *s;
    const struct sd *d;
};

static double step_ms(void *ctx, uint32_t drafted)
{
    const struct step *x = ctx;
    struct work_shape w = shape_of(x->s, x->d->current, drafted);
    return pass_ms(x->s, x->d, &w) + (drafted > 0 ? sd_draft_ms(x->s, x->d, drafted, true) : 0.0);
}

uint32_t sd_draft_length(struct sched *s, struct sd *d)
{
    const struct request *r = d->current;
    uint32_t offered = sched_draft_tokens(s, r);
    /* A verification yields one token more than it accepts. Tokens beyond the answer's limit need
     * not be verified. */
    uint32_t most = r->max_output_tokens - r->generated_tokens - 1;
    offered = offered < most ? offered : most;
    uint32_t rows = graph_rows(s, d);
    rows = rows > 0 ? rows : s->machine->devices[decoder(s, d)].chunk_rows;
    switch ((enum sd_length)param_int(s, SD_LENGTH)) {
    case SD_LENGTH_PASS:
        return rows > 0 && offered >= rows ? rows - 1 : offered;
    case SD_LENGTH_ADAPTIVE: {
        struct step x = {s, d};
        return speculate_length(&d->estimate, offered, rows > 0 ? rows : 1, step_ms, &x);
    }
    case SD_LENGTH_OFFERED:
        break;
    }
    return offered;
}

static int map_extra(struct sched *s, uint32_t version, double bytes)
{
    return sched_map(s, (struct resident_key){RESIDENT_GRAPH_BLOCK, 0, version}, bytes);
}

int sd_map_extras(struct sched *s)
{
    const struct llm *m = s->llm;
    bool drafts = param_int(s, SD_SPECULATE) != 0;
    int rc = 0;
    if (param_int(s, SD_DECODE) == 1) { /* the CPU has its own copy of the weights */
        rc = map_extra(s, SD_CPU_COPY, m->weight_bytes);
    }
    if (rc == 0 && drafts && param_int(s, SD_DRAFTER) == SD_DRAFTER_EAGLE) {
        rc = map_extra(s, SD_DRAFT_MODEL,
                       m->body_weights * m->body_bytes_per_weight / m->n_layers +
                           m->head_weights * m->head_bytes_per_weight);
    }
    double calibrated = drafts ? param_number(s, SD_CALIBRATE_MB) * 1e6 : 0.0;
    return rc == 0 && calibrated > 0.0 ? map_extra(s, SD_CALIBRATED, calibrated) : rc;
}

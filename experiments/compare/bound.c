#include "experiments/compare/bound_impl.h"

#include "hwmodels/drafters.h"
#include "hwmodels/speculation.h"

#define BISECTIONS 60 /* halvings of a bracket of at most a factor 2^10: full precision */

/* ---- set-up ---- */

/* Floor of one row. */
static double terms_s(const struct kernel_floor *f, double pairs, double keys)
{
    double compute = f->row_s * fmax(1.0, f->rows_min) + f->pair_s * pairs;
    double bytes = f->bytes + f->row_bytes + f->key_bytes * keys;
    return f->fixed_s + fmax(compute, bytes / f->bytes_per_s);
}

/* Kernel times are rounded to whole ns, at least 1, which adds up over many short kernels. So the
 * floor is lowered by the share of half a ns in the shortest kernel. */
static void lower_by_rounding(struct kernel_floor *f)
{
    double shortest_ns = terms_s(f, 0.0, 0.0) * 1e9;
    double keep = shortest_ns > 1.5 ? 1.0 - 0.5 / shortest_ns : 2.0 / 3.0;
    f->fixed_s *= keep;
    f->row_s *= keep;
    f->pair_s *= keep;
    f->bytes_per_s /= keep;
}

/* Capacity is kappa * peak, or the largest isolated demand of a flow (sim/engine/ddr.c). */
static double ddr_capacity(const struct bound *b, const struct sim_setup *s)
{
    if (s->contention->unlimited) {
        return HUGE_VAL;
    }
    const struct machine *m = s->machine;
    double c = m->ddr_peak_bytes_per_s * m->ddr_cap_frac;
    c = fmax(c, fmax(m->loader_bytes_per_s, m->swap_bytes_per_s));
    if (s->frames.per_s > 0.0 && s->frames.device_ns > 0) {
        c = fmax(c, s->frames.bytes / units_s_from_ns(s->frames.device_ns));
    }
    for (int op = 0; op < OP_KIND_COUNT; op++) {
        for (uint32_t d = 0; d < b->n_devices; d++) {
            c = fmax(c, fmax(b->ops[op].of[d][0].bytes_per_s, b->ops[op].of[d][1].bytes_per_s));
        }
    }
    return c;
}

static uint32_t tokens_per_pass(const struct sim_setup *s)
{
    if (s->draft == NULL) {
        return 1;
    }
    if (s->draft == drafter_draft) {
        return ((const struct drafter *)s->speculation_params)->max_draft_tokens + 1;
    }
    if (s->draft != speculation_run_draft) {
        return UINT32_MAX; /* a drafter of unknown length */
    }
    const struct speculation_run *run = s->speculation_params;
    uint32_t most = 0;
    for (int i = 0; i < REQUEST_CLASS_COUNT; i++) {
        const struct speculation_model *m = run->by_class[i];
        most = m != NULL && m->max_draft_tokens > most ? m->max_draft_tokens : most;
    }
    return most + 1;
}

int bound_init(struct bound *b, const struct sim_setup *s)
{
    *b = (struct bound){.n_devices = s->machine->n_devices,
                        .n_layers = s->llm->n_layers,
                        .prefix_reuse = s->prefix_reuse,
                        .tokens_per_pass = tokens_per_pass(s)};
    if (sim_setup_is_random(s)) {
        return -EINVAL;
    }
    int64_t lead_ns = INT64_MAX;
    for (uint32_t d = 0; d < b->n_devices; d++) {
        int64_t ns = s->machine->devices[d].submit_ns + s->machine->devices[d].completion_ns;
        lead_ns = ns < lead_ns ? ns : lead_ns;
        for (int op = 0; op < OP_KIND_COUNT; op++) {
            for (int one = 0; one < 2; one++) {
                struct kernel_floor *f = &b->ops[op].of[d][one];
                *f = (struct kernel_floor){.rows_min = 1.0, .bytes_per_s = HUGE_VAL};
                if (s->truth->ops->floor != NULL) {
                    s->truth->ops->floor(s->truth, (uint8_t)d, (enum op_kind)op, one != 0, f);
                    lower_by_rounding(f);
                }
            }
        }
    }
    b->pass_s =
        units_s_from_ns(s->machine->schedule_ns + lead_ns + s->machine->sample_ns_per_token);
    b->ddr_bytes_per_s = ddr_capacity(b, s);
    return 0;
}

int bound_of_config(struct bound *b, const struct config *c, const struct config_policy *p)
{
    struct sim_setup setup;
    config_setup(c, p, NULL, 0, &setup);
    return bound_init(b, &setup);
}

/* ---- one op ---- */

/* Most rows of a token-level op that kernels of a kind complete in time t; 0 before the shortest
 * one. One-row kernels run one after the other. */
static double rows_in(const struct kernel_floor *f, bool one_row, double t)
{
    double shortest = terms_s(f, 0.0, 0.0);
    if (t < shortest) {
        return 0.0;
    }
    if (one_row) {
        return t / shortest;
    }
    double compute = (t - f->fixed_s) / f->row_s;
    double memory = ((t - f->fixed_s) * f->bytes_per_s - f->bytes) / f->row_bytes;
    return f->row_bytes > 0.0 ? fmin(compute, memory) : compute;
}

static double machine_rows_in(const struct bound *b, const struct bound_op *op, double t)
{
    double rows = 0.0;
    for (uint32_t d = 0; d < b->n_devices; d++) {
        rows += fmax(rows_in(&op->of[d][0], false, t), rows_in(&op->of[d][1], true, t));
    }
    return rows;
}

/* Shortest time of a single row on any device. */
static double one_row_s(const struct bound *b, const struct bound_op *op, double context)
{
    double best = HUGE_VAL;
    for (uint32_t d = 0; d < b->n_devices; d++) {
        for (int one = 0; one < 2; one++) {
            best = fmin(best, terms_s(&op->of[d][one], context, context));
        }
    }
    return best;
}

/* Least bytes of `rows` rows, their keys and one pass, on any devices. */
static double op_bytes(const struct bound *b, const struct bound_op *op, double rows, double keys)
{
    double fixed = HUGE_VAL, row = HUGE_VAL, key = HUGE_VAL;
    for (uint32_t d = 0; d < b->n_devices; d++) {
        for (int one = 0; one < 2; one++) {
            fixed = fmin(fixed, op->of[d][one].bytes);
            row = fmin(row, op->of[d][one].row_bytes);
            key = fmin(key, op->of[d][one].key_bytes);
        }
    }
    return fixed + rows * row + keys * key;
}

/* A token-level op over many rows, split over all devices. */
static double rows_op_s(const struct bound *b, const struct bound_op *op, double rows)
{
    double shared = op_bytes(b, op, rows, 0.0) / b->ddr_bytes_per_s;
    double low = one_row_s(b, op, 0.0);
    if (rows <= 1.0 || machine_rows_in(b, op, low) >= rows) {
        return fmax(low, shared);
    }
    double high = 2.0 * low;
    while (machine_rows_in(b, op, high) < rows) {
        low = high;
        high *= 2.0;
    }
    for (int i = 0; i < BISECTIONS; i++) {
        double mid = 0.5 * (low + high);
        *(machine_rows_in(b, op, mid) < rows ? &low : &high) = mid;
    }
    return fmax(low, shared); /* low is a lower bound of the time */
}

enum term { TERM_ROW, TERM_PAIR, TERM_BYTE };

/* Time of a unit of work, shared by all devices in proportion to their speed: 1 / sum of 1 / cost.
 */
static double pooled_s(const struct bound *b, const struct bound_op *op, enum term term)
{
    double speed = 0.0;
    for (uint32_t d = 0; d < b->n_devices; d++) {
        double cost = HUGE_VAL;
        for (int one = 0; one < 2; one++) {
            const struct kernel_floor *f = &op->of[d][one];
            double c = term == TERM_ROW ? f->row_s : f->pair_s;
            cost = fmin(cost, term == TERM_BYTE ? 1.0 / f->bytes_per_s : c);
        }
        speed += 1.0 / cost;
    }
    return 1.0 / speed;
}

/* Attention. Passes are shared by rows, each with the pass's mean cost. So in a batch even the
 * pairs of one row can be computed by several devices, and everything is pooled. */
static double attention_s(const struct bound *b, double rows, double pairs, double keys)
{
    const struct bound_op *op = &b->ops[OP_MHA];
    double fixed = HUGE_VAL;
    for (uint32_t d = 0; d < b->n_devices; d++) {
        fixed = fmin(fixed, fmin(op->of[d][0].fixed_s, op->of[d][1].fixed_s));
    }
    double bytes = op_bytes(b, op, rows, keys);
    double compute = rows * pooled_s(b, op, TERM_ROW) + pairs * pooled_s(b, op, TERM_PAIR);
    double memory = bytes * pooled_s(b, op, TERM_BYTE);
    return fmax(fixed + fmax(compute, memory), bytes / b->ddr_bytes_per_s);
}

/* ---- one request ---- */

struct bound_work bound_work(const struct bound *b, const struct trace_row *row)
{
    uint32_t most = row->input_tokens - 1; /* the last token of a prompt is never reused */
    uint32_t reused = row->prefix_tokens < most ? row->prefix_tokens : most;
    double kept = b->prefix_reuse ? reused : 0.0;
    double input = row->input_tokens;
    uint32_t later = row->output_tokens - 1;
    uint32_t passes = later / b->tokens_per_pass + (later % b->tokens_per_pass > 0 ? 1 : 0);
    return (struct bound_work){
        .prefill_rows = input - kept,
        .prefill_pairs = 0.5 * (input * (input + 1.0) - kept * (kept + 1.0)),
        .input = input,
        .decode_passes = passes,
        .decode_rows = later,
        .decode_keys = passes * input + 0.5 * passes * (passes + 1.0),
    };
}

/* A decode step over `context` tokens, including its own: the shorter of fused and separate layers,
 * without the head. */
static double layer_s(const struct bound *b, double token_ops_s, double context)
{
    double apart = token_ops_s + attention_s(b, 1.0, context, context);
    return fmin(apart, one_row_s(b, &b->ops[OP_LAYER], context));
}

struct bound_latency bound_request(const struct bound *b, const struct trace_row *row)
{
    struct bound_work w = bound_work(b, row);
    double head_s = one_row_s(b, &b->ops[OP_HEAD], 0.0);
    double prefill_s = rows_op_s(b, &b->ops[OP_QKV], w.prefill_rows) +
                       attention_s(b, w.prefill_rows, w.prefill_pairs, w.input) +
                       rows_op_s(b, &b->ops[OP_FFN], w.prefill_rows);
    double ttft_s = b->pass_s + b->n_layers * prefill_s + head_s;
    double token_ops_s = one_row_s(b, &b->ops[OP_QKV], 0.0) + one_row_s(b, &b->ops[OP_FFN], 0.0);
    double layers_s = 0.0;
    for (uint32_t i = 0; i < w.decode_passes; i++) {
        layers_s += b->n_layers * layer_s(b, token_ops_s, w.input + i + 1.0);
    }
    double decode_s = w.decode_passes * (b->pass_s + head_s) + layers_s;
    double keep = 1.0 - BOUND_ROUNDING_FRAC;
    return (struct bound_latency){ttft_s * keep, (ttft_s + decode_s) * keep};
}

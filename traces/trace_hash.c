/* The hash of a trace: equal for equal requests, regardless of their source. */
#include "sim/base/hash.h"
#include "traces/texts.h"
#include "traces/traces.h"

/* Hashes fields, because padding must not count. */
static uint64_t hash_place(uint64_t h, int64_t arrival_ns, uint32_t request_id, uint32_t session_id)
{
    h = hash_u64(h, (uint64_t)arrival_ns);
    return hash_u64(h, ((uint64_t)request_id << 32) | session_id);
}

#define LIKE_WORDS 3

static void like_words(const struct trace_row *r, uint64_t x[LIKE_WORDS])
{
    x[0] = ((uint64_t)r->input_tokens << 32) | r->output_tokens;
    x[1] = ((uint64_t)r->prefix_tokens << 32) | r->max_output_tokens;
    x[2] = ((uint64_t)r->turn << 16) | ((uint64_t)r->cls << 8) | r->after_tool;
}

static uint64_t hash_row(uint64_t h, const struct trace_row *r)
{
    uint64_t x[LIKE_WORDS];
    like_words(r, x);
    h = hash_place(h, r->arrival_ns, r->request_id, r->session_id);
    for (int i = 0; i < LIKE_WORDS; i++) {
        h = hash_u64(h, x[i]);
    }
    return h;
}

static uint64_t hash_extra(uint64_t h, const struct trace_extra *x)
{
    h = hash_u64(h, (uint64_t)x->ttft_slo_ns);
    h = hash_u64(h, (uint64_t)x->tbt_slo_ns);
    h = hash_u64(h, (uint64_t)x->deadline_ns);
    h = hash_u64(h, (uint64_t)x->cancel_ns);
    h = hash_u64(h, ((uint64_t)x->client_id << 32) | x->prefix_group);
    h = hash_u64(h, (uint64_t)(int64_t)x->priority);
    /* Only if set: the column is newer, and older traces must keep their hash. */
    h = x->until_ns != TIME_NEVER_NS ? hash_u64(h, (uint64_t)x->until_ns) : h;
    return x->text > 0 ? hash_u64(h, x->text) : h;
}

/* Hashes requests that differ in arrival and number only; the rest is a constant tail. */
static uint64_t hash_packed(const struct trace *t)
{
    uint64_t x[LIKE_WORDS];
    struct hash_tail like;
    like_words(&t->like, x);
    hash_tail_init(&like, x, LIKE_WORDS);
    uint64_t h = HASH_INIT;
    for (uint32_t i = 0; i < t->n; i++) {
        h = hash_tail(&like, hash_place(h, t->arrivals_ns[i], i, i));
    }
    return h;
}

/* Does nothing without a graph, so that such traces keep their hash. */
static uint64_t hash_graph(uint64_t h, const struct trace *t)
{
    const struct trace_graph *g = t->graph;
    for (uint32_t i = 0; i < t->n && g != NULL; i++) {
        uint64_t flags = (uint64_t)g->starts_job[i] << 1 | g->background[i];
        h = hash_u64(h, ((uint64_t)g->ends_with[i] << 32) | flags);
        for (uint32_t k = g->first[i]; k < g->first[i + 1]; k++) {
            h = hash_u64(hash_u64(h, g->edges[k].row), (uint64_t)g->edges[k].gap_ns);
        }
        h = g->source != NULL ? hash_u64(h, g->source[i]) : h;
    }
    return h;
}

static uint64_t hash_models(uint64_t h, const struct trace *t)
{
    const struct trace_graph *g = t->graph;
    for (uint32_t i = 0; g != NULL && g->model != NULL && i < t->n; i++) {
        h = hash_string(h, g->model[i] > 0 ? g->models[g->model[i] - 1].name : "");
    }
    return h;
}

static uint64_t hash_machine(uint64_t h, const struct trace *t)
{
    for (uint32_t i = 0; i < t->n_machine; i++) {
        const struct machine_event *v = &t->machine[i];
        h = hash_u64(h, (uint64_t)v->at_ns);
        h = hash_u64(h, (uint64_t)v->every_ns);
        h = hash_u64(h, (uint64_t)v->until_ns);
        h = hash_u64(h, v->sets | (uint64_t)v->on_battery << 32 |
                            (uint64_t)v->background_window << 33);
        h = hash_u64(h, hash_bits(v->memory_bytes));
        h = hash_u64(h, hash_bits(v->power_limit_watts));
        h = hash_u64(h, hash_bits(v->frames_per_s));
        h = hash_u64(h, hash_bits(v->battery_j));
        h = hash_u64(h, hash_bits(v->battery_full_j));
    }
    return h;
}

uint64_t trace_hash(const struct trace *t)
{
    if (t->rows == NULL && t->extras == NULL) {
        return hash_machine(hash_packed(t), t);
    }
    uint64_t h = HASH_INIT;
    for (size_t i = 0; i < t->n; i++) {
        const struct trace_row r = trace_row_at(t, (uint32_t)i);
        h = hash_row(h, &r);
        h = t->extras != NULL ? hash_extra(h, &t->extras[i]) : h;
    }
    h = hash_machine(hash_models(hash_graph(h, t), t), t);
    return t->texts != NULL ? hash_u64(h, t->texts->hash) : h;
}

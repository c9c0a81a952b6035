#include "tests/helpers/virtual_engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/hash.h"
#include "sim/base/units.h"
#include "tests/helpers/virtual.h"

#define MAX_LENGTHS 256 /* of compiled attention */
#define LOOKS 4         /* of a kernel at `stop`, while it runs */

struct virtual_engine_setup virtual_engine_setup;
struct virtual_engine_seen virtual_engine_seen;
void (*virtual_engine_closing)(void);

struct machine_part { /* a device, or the engine's part of one */
    const struct engine_kv *kv;
    const struct llm *llm;
    uint32_t thread, index;
    bool busy, open, making[2];
    uint32_t compiled[MAX_LENGTHS]; /* by prompt length */
    uint32_t users[MAX_LENGTHS];
    uint32_t prepared[GRAPH_VERSIONS + 1][8]; /* rows of the graph, by layer */
    bool there[GRAPH_VERSIONS + 1][8];
};

static struct machine_part parts[MACHINE_MAX_DEVICES];

/* ---- arithmetic ---- */

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t z = (a ^ (b + 0x9e3779b97f4a7c15ULL)) * 0xbf58476d1ce4e5b9ULL;
    return z ^ (z >> 29);
}

/* A row of activations, or a cell, holds one number. */
static uint64_t get(const void *from)
{
    uint64_t u;
    memcpy(&u, from, sizeof u);
    return u;
}

static void put(void *to, uint64_t u)
{
    memcpy(to, &u, sizeof u);
}

static uint64_t after_qkv(uint64_t x, uint32_t layer, uint32_t pos, uint32_t which)
{
    return mix(mix(x, layer * 4 + which), pos);
}

static uint64_t after_attention(uint64_t sum, uint64_t k, uint64_t v)
{
    return mix(mix(sum, k), v);
}

static uint64_t after_ffn(uint64_t x, uint64_t att, uint32_t layer)
{
    return mix(mix(x, att), 1000 + layer);
}

static int32_t token_of(uint64_t x, const struct llm *l)
{
    return (int32_t)(mix(x, 77) % l->vocab);
}

static uint64_t embedding(int32_t token, const struct llm *l)
{
    float x[2];
    engine_weights(ENGINE_EMBEDDING, 0, (uint32_t)token, l->hidden, x);
    return get(x);
}

void virtual_model(struct llm *l)
{
    l->n_layers = 2;
    l->layer = LAYER_OPS_DECODER;
    l->hidden = 2;
    l->heads = 1;
    l->kv_heads = 1;
    l->head_dim = 4;
    l->ffn_hidden = 2;
    l->vocab = 97;
    l->weight_bits = 8;
    l->gated_ffn = true;
    l->weight_bytes = 1e5;
    l->kv_bytes_per_token = 32;
}

/* ---- the tokens, by plain loops ---- */

/* The token after the one at `pos`, when those before have been here. */
static int32_t next_token(int32_t token, uint32_t pos, const struct llm *l, uint64_t (*kv)[2][512])
{
    uint64_t x = embedding(token, l);
    for (uint32_t layer = 0; layer < l->n_layers; layer++) {
        uint64_t sum = after_qkv(x, layer, pos, 0);
        kv[layer][0][pos] = after_qkv(x, layer, pos, 1);
        kv[layer][1][pos] = after_qkv(x, layer, pos, 2);
        for (uint32_t t = 0; t <= pos; t++) {
            sum = after_attention(sum, kv[layer][0][t], kv[layer][1][t]);
        }
        x = after_ffn(x, sum, layer);
    }
    return token_of(x, l);
}

/* A prompt begins as its session's earlier turn went, as far as the trace says (sim/drive/state.c).
 */
void virtual_tokens(const struct trace *t, const struct llm *l, int32_t (*out)[VIRTUAL_MOST_TOKENS])
{
    static uint64_t kv[4][2][512];
    for (uint32_t first = 0; first < t->n_first; first++) {
        int32_t tokens[512];
        uint32_t had = 0;
        for (uint32_t row = first; row != TRACE_NO_ROW; row = t->rows[row].next) {
            const struct trace_row *r = &t->rows[row];
            uint32_t kept = r->prefix_tokens < had ? r->prefix_tokens : had;
            for (uint32_t i = 0; i < r->input_tokens; i++) {
                uint64_t h = hash_u64(HASH_INIT, ((uint64_t)r->request_id << 32) | i);
                tokens[i] = i < kept ? tokens[i] : (int32_t)((h >> 20) % l->vocab);
            }
            for (uint32_t i = 0; i + 1 < r->input_tokens + r->output_tokens; i++) {
                int32_t next = next_token(tokens[i], i, l, kv);
                if (i + 1 >= r->input_tokens) {
                    out[row][i + 1 - r->input_tokens] = next;
                    tokens[i + 1] = next;
                }
            }
            had = r->input_tokens + r->output_tokens;
        }
    }
}

/* ---- faults ---- */

void virtual_engine_reset(const struct virtual_engine_setup *setup)
{
    virtual_engine_setup = *setup;
    virtual_engine_seen = (struct virtual_engine_seen){0};
    memset(parts, 0, sizeof parts);
}

static enum virtual_fate fate(enum virtual_kind kind)
{
    const struct virtual_engine_setup *s = &virtual_engine_setup;
    uint32_t number = ++virtual_engine_seen.calls[kind];
    bool meant = s->fate != VIRTUAL_FINE && s->kind == kind && number >= s->first &&
                 number - s->first < s->n;
    if (meant && !virtual_engine_seen.fated) {
        virtual_engine_seen.fated = true;
        virtual_engine_seen.fated_ns = virtual_now_ns();
    }
    return meant ? s->fate : VIRTUAL_FINE;
}

/* Takes its time; 0, or how it fails. */
static int undergo(enum virtual_kind kind, int64_t ns, char *why)
{
    switch (fate(kind)) {
    case VIRTUAL_FINE:
        (void)virtual_compute(NULL, ns);
        return 0;
    case VIRTUAL_SLOW:
        (void)virtual_compute(NULL, ns + virtual_engine_setup.slow_ns);
        return 0;
    case VIRTUAL_FAILS:
        (void)virtual_compute(NULL, ns);
        (void)snprintf(why, ENGINE_MESSAGE_BYTES, "made to fail");
        return -EIO;
    case VIRTUAL_HANGS:
        virtual_hang();
        return 0;
    }
    return 0;
}

static int64_t duration(uint64_t what, int64_t most_ns)
{
    return 1 + (int64_t)(mix(virtual_engine_setup.seed, what) % (uint64_t)most_ns);
}

/* ---- engines and devices ---- */

static int engine_open(const struct engine_options *o, void **engine, char *why)
{
    virtual_engine_seen.kv = o->kv;
    int rc = undergo(VIRTUAL_OPEN, (1 * NS_PER_MS), why);
    if (rc == 0) {
        for (uint32_t i = 0; i < MACHINE_MAX_DEVICES; i++) {
            parts[i].kv = o->kv;
            parts[i].llm = o->llm;
        }
        virtual_engine_seen.open++;
        *engine = parts;
    }
    return rc;
}

static void engine_close(void *engine)
{
    (void)engine;
    if (virtual_engine_seen.devices > 0) {
        virtual_finding("an engine closes before its devices");
    }
    virtual_engine_seen.open--;
    if (virtual_engine_seen.open == 0 && virtual_engine_closing != NULL) {
        virtual_engine_closing();
    }
}

static int device_open(void *engine, const struct engine_device_options *o, void **device,
                       char *why)
{
    (void)engine;
    struct machine_part *p = &parts[o->index];
    for (uint32_t i = 0; i < 3; i++) {
        o->compiled(o->self, i, 2);
        bool slow = virtual_engine_setup.fate == VIRTUAL_SLOW &&
                    virtual_engine_setup.kind == VIRTUAL_DEVICE_OPEN; /* all, with signs of life */
        (void)virtual_compute(NULL, (slow ? 3000 : 1) * NS_PER_MS);
    }
    int rc = undergo(VIRTUAL_DEVICE_OPEN, (5 * NS_PER_MS), why);
    if (rc == 0) {
        p->thread = virtual_thread();
        p->index = o->index;
        p->open = true;
        virtual_engine_seen.devices++;
        *device = p;
    }
    return rc;
}

static void check_use(const struct machine_part *p, const char *what)
{
    if (!p->open || p->thread != virtual_thread() || p->busy) {
        virtual_finding("%s of device %u: %s", what, p->index,
                        !p->open  ? "it is closed"
                        : p->busy ? "it runs a kernel"
                                  : "on the thread of another");
    }
}

static void device_close(void *device)
{
    struct machine_part *p = device;
    char why[ENGINE_MESSAGE_BYTES];
    check_use(p, "closing");
    if (p->making[0] || p->making[1]) {
        virtual_finding("closing of device %u: a resident is on its way", p->index);
    }
    (void)undergo(VIRTUAL_DEVICE_CLOSE, (1 * NS_PER_MS), why);
    p->open = false;
    virtual_engine_seen.devices--;
}

/* ---- kernels ---- */

/* Keys and values of positions before `pos` are in cells. */
static uint64_t attend(const struct machine_part *p, const struct engine_kernel *k, uint32_t row,
                       uint64_t sum, uint32_t end)
{
    const struct engine_segment *s = k->pass->segments;
    while (row >= s->row + s->n_rows) {
        s++;
    }
    for (uint32_t t = 0; t < end; t++) {
        size_t at = (s->cell0 + t) * p->kv->kv_dim;
        sum = after_attention(sum, get(p->kv->k[k->layer] + at), get(p->kv->v[k->layer] + at));
    }
    return sum;
}

static uint64_t result_of(const struct machine_part *p, const struct engine_kernel *k, uint32_t row)
{
    const struct engine_pass *e = k->pass;
    const struct llm *l = p->llm;
    uint64_t x = get(e->x[k->layer % 2] + (size_t)row * l->hidden);
    uint32_t pos = (uint32_t)e->pos[row];
    switch (k->op) {
    case OP_QKV:
        return after_qkv(x, k->layer, pos, 0);
    case OP_MHA:
        return attend(p, k, row, get(e->q + (size_t)row * l->head_dim), pos + 1);
    case OP_FFN:
        return after_ffn(x, get(e->att + (size_t)row * l->head_dim), k->layer);
    case OP_LAYER: { /* its own key is not in a cell yet */
        uint64_t sum = attend(p, k, row, after_qkv(x, k->layer, pos, 0), pos);
        sum = after_attention(sum, after_qkv(x, k->layer, pos, 1), after_qkv(x, k->layer, pos, 2));
        return after_ffn(x, sum, k->layer);
    }
    case OP_HEAD:
    default:
        return get(e->x[l->n_layers % 2] + (size_t)e->logit_rows[row] * l->hidden);
    }
}

/* garbage: what a stopped kernel, or one in its middle, has written so far. */
static void write_row(const struct machine_part *p, const struct engine_kernel *k, uint32_t row,
                      uint64_t result, bool garbage)
{
    const struct engine_pass *e = k->pass;
    const struct llm *l = p->llm;
    uint64_t spoil = garbage ? 0x5a5a5a5a5a5a5a5aULL : 0;
    if (k->op == OP_QKV || k->op == OP_LAYER) {
        uint64_t x = get(e->x[k->layer % 2] + (size_t)row * l->hidden);
        size_t at = (size_t)e->cell[row] * p->kv->kv_dim;
        uint32_t pos = (uint32_t)e->pos[row];
        put(p->kv->k[k->layer] + at, after_qkv(x, k->layer, pos, 1) ^ spoil);
        put(p->kv->v[k->layer] + at, after_qkv(x, k->layer, pos, 2) ^ spoil);
    }
    if (k->op == OP_QKV) {
        put(e->q + (size_t)row * l->head_dim, result ^ spoil);
    } else if (k->op == OP_MHA) {
        put(e->att + (size_t)row * l->head_dim, result ^ spoil);
    } else if (k->op == OP_FFN || k->op == OP_LAYER) {
        put(e->x[(k->layer + 1) % 2] + (size_t)row * l->hidden, result ^ spoil);
    } else {
        float *logits = e->logits + (size_t)row * l->vocab;
        memset(logits, 0, l->vocab * sizeof *logits);
        logits[garbage ? 0 : token_of(result, l)] = 1.0f;
    }
}

static uint64_t read_rows(const struct machine_part *p, const struct engine_kernel *k)
{
    uint64_t sum = 0;
    for (uint32_t row = k->row0; row < k->row0 + k->rows; row++) {
        sum = mix(sum, result_of(p, k, row));
    }
    return sum;
}

static void write_rows(const struct machine_part *p, const struct engine_kernel *k, bool garbage)
{
    for (uint32_t row = k->row0; row < k->row0 + k->rows; row++) {
        write_row(p, k, row, result_of(p, k, row), garbage);
    }
    const struct engine_pass *e = k->pass;
    for (uint32_t row = e->rows; k->op != OP_HEAD && row < k->row0 + k->padded_rows; row++) {
        if (row >= e->room) {
            virtual_finding("row %u of a padded kernel in room for %u", row, e->room);
            return;
        }
        write_row(p, k, row, 1, true);
    }
}

/* Is everything there that the kernel needs besides activations? */
static bool is_there(const struct machine_part *p, const struct engine_kernel *k)
{
    if (k->op == OP_MHA) {
        return k->compiled_tokens == 0 || p->compiled[k->compiled_tokens % MAX_LENGTHS] > 0;
    }
    uint32_t layer = k->op == OP_HEAD ? p->llm->n_layers : k->layer;
    return k->graph == 0 ||
           (p->there[k->graph][layer] && p->prepared[k->graph][layer] == k->padded_rows);
}

/* Computes for so long, and looks at `stop` meanwhile: a few times, or when it is interrupted. */
static bool compute(struct machine_part *p, const struct engine_kernel *k, int64_t ns, bool deaf)
{
    int64_t longest = deaf ? ns : ns / LOOKS + 1;
    longest = !deaf && longest > (100 * NS_PER_MS) ? (100 * NS_PER_MS) : longest;
    while (ns > 0 && atomic_load(k->stop) == 0) {
        int64_t part = ns < longest ? ns : longest;
        ns -= part - virtual_compute(deaf ? p : NULL, part);
    }
    return ns <= 0;
}

static int run_kernel(struct machine_part *p, const struct engine_kernel *k, bool deaf, char *why)
{
    check_use(p, "kernel");
    p->busy = true;
    uint64_t what = ((uint64_t)p->index << 40) | ((uint64_t)k->op << 32) | k->rows;
    int64_t ns = duration(what, virtual_engine_setup.kernel_ns);
    bool there = is_there(p, k);
    uint64_t before = read_rows(p, k);
    bool whole = true;
    int rc = 0;
    switch (fate(VIRTUAL_KERNEL)) {
    case VIRTUAL_FINE:
        whole = compute(p, k, ns, deaf);
        break;
    case VIRTUAL_SLOW:
        whole = compute(p, k, ns + virtual_engine_setup.slow_ns, deaf);
        break;
    case VIRTUAL_FAILS:
        (void)snprintf(why, ENGINE_MESSAGE_BYTES, "made to fail");
        rc = -EIO;
        break;
    case VIRTUAL_HANGS:
        virtual_hang();
        p->busy = false;
        return 0; /* the run is over, and its memory is not the engine's any more */
    }
    if (!there || !is_there(p, k)) {
        virtual_finding("a kernel of device %u whose graph or attention is not there", p->index);
    }
    if (read_rows(p, k) != before) {
        virtual_finding("inputs of a kernel of device %u changed while it ran", p->index);
    }
    write_rows(p, k, !whole || rc != 0);
    virtual_engine_seen.cancelled += !whole;
    p->busy = false;
    return !whole ? -ECANCELED : rc;
}

static int kernel(void *device, const struct engine_kernel *k, char *why)
{
    return run_kernel(device, k, false, why);
}

static int deaf_kernel(void *device, const struct engine_kernel *k, char *why)
{
    return run_kernel(device, k, true, why);
}

static void interrupt(void *device)
{
    virtual_wake(device);
}

/* ---- residents ---- */

static void graph_step(struct machine_part *p, const struct engine_resident *r,
                       enum engine_step step)
{
    for (uint32_t l = r->layer0; l < r->layer0 + r->n_layers + r->head; l++) {
        bool *there = &p->there[r->key.b][l];
        uint32_t *prepared = &p->prepared[r->key.b][l];
        bool wrong = step == ENGINE_STEP_PREPARE ? *prepared != 0
                     : step == ENGINE_STEP_MAKE  ? *prepared != r->rows || *there
                                                 : !*there;
        if (wrong) {
            virtual_finding("graph %u, layer %u: step %d out of order", r->key.b, l, (int)step);
        }
        *prepared = step == ENGINE_STEP_PREPARE ? r->rows : *prepared;
        *there = step == ENGINE_STEP_MAKE;
    }
}

static void attention_step(struct machine_part *p, uint32_t tokens, enum engine_step step)
{
    uint32_t *n = &p->compiled[tokens % MAX_LENGTHS];
    if ((step == ENGINE_STEP_MAKE) == (*n > 0)) {
        virtual_finding("attention of %u tokens: step %d out of order", tokens, (int)step);
    }
    *n = step == ENGINE_STEP_MAKE;
}

static int resident(void *device, const struct engine_resident *r, enum engine_step step, char *why)
{
    struct machine_part *p = device;
    bool graph = r->key.kind == RESIDENT_GRAPH_BLOCK;
    if (!p->open || p->making[graph]) {
        virtual_finding("a resident of device %u: %s", p->index,
                        p->open ? "one after another" : "it is closed");
    }
    bool drop = step == ENGINE_STEP_DROP;
    if (drop && graph) {
        graph_step(p, r, step);
    } else if (drop) {
        attention_step(p, r->key.a, step);
    }
    p->making[graph] = true;
    int64_t ns = duration(mix(r->key.a, r->key.b), 4 * virtual_engine_setup.kernel_ns);
    int rc = undergo(VIRTUAL_RESIDENT, drop ? ns / 8 + 1 : ns, why);
    p->making[graph] = false;
    if (rc == 0 && !drop && graph) {
        graph_step(p, r, step);
    } else if (rc == 0 && !drop) {
        attention_step(p, r->key.a, step);
    }
    return rc;
}

#define ENGINE(name_, has_, ...)                                                                   \
    {                                                                                              \
        .abi = ENGINE_ABI, .has = (has_), .name = (name_), .version = "1", .open = engine_open,    \
        .close = engine_close, .device_open = device_open, .device_close = device_close,           \
        __VA_ARGS__                                                                                \
    }
const struct engine_ops virtual_engine = ENGINE("virtual", ENGINE_INTERRUPTS, .kernel = kernel);
const struct engine_ops virtual_engine_deaf =
    ENGINE("virtual-deaf", ENGINE_INTERRUPTS, .kernel = deaf_kernel, .interrupt = interrupt);
const struct engine_ops virtual_engine_compiles =
    ENGINE("virtual-compiles", ENGINE_INTERRUPTS | ENGINE_COMPILES | ENGINE_LOADS, .kernel = kernel,
           .resident = resident);

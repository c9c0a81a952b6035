/* Weights of several models. They are residents, like graph blocks, and their memory is lent by KV.
 *
 * A request is held until the weights of its model are in memory. Only then the policy is notified
 * of it, so that policies need not handle loads. Requests are admitted by these rules:
 *
 *   1. The first request for absent weights starts their load, at the rate of the loader. Memory
 *      comes from what is free, then from cached KV, then from weights that no request in the
 *      system uses, the longest unused first.
 *   2. Each admitted request must find room for all its tokens next to the weights in use.
 *   3. If 1 or 2 must wait for memory, all later requests wait too, so that the system empties. If
 *      it is empty, the first request whose weights are in memory is admitted.
 *   4. Other programs may take the room of rule 2. Then requests are shed until each has it again:
 *      the newest first, and those of the oldest one's model last.
 *
 * With one model no request is held, and its weights are no resident. */
#include "sim/core/consistent.h"
#include "sim/core/kv.h"
#include "sim/core/memory.h"

static double bytes_of(const struct core *c, uint32_t model)
{
    return (double)c->setup->weight_copies * c->models[model].llm->weight_bytes;
}

/* Bytes of a model's weights, without what mapped graphs contain of the first model's. */
static double bytes_beside_graphs(const struct core *c, uint32_t model)
{
    bool mapped = model == 0 && c->mapped_bytes > 0.0;
    return mapped ? fmax(0.0, bytes_of(c, 0) - c->mapped_bytes) : bytes_of(c, model);
}

static struct resident_key key_of(uint32_t model)
{
    return (struct resident_key){RESIDENT_WEIGHTS, model, 0};
}

static bool is_ready(const struct core_model *m)
{
    return m->weights != NULL && m->weights->state == RESIDENT_READY;
}

/* Whether its weights may be evicted, because no request in the system uses them. */
static bool is_idle(const struct core_model *m)
{
    return is_ready(m) && m->n_live == 0 && !m->stays;
}

void weights_init(struct core *c)
{
    for (uint32_t i = 0; i < c->n_models && c->n_models > 1; i++) {
        struct core_model *m = &c->models[i];
        m->stays = i == 0 ? c->mapped_bytes > 0.0 : i == c->sched->draft_model;
        if (c->setup->weights_at_start || m->stays) {
            m->weights = resident_add(c, key_of(i), bytes_beside_graphs(c, i));
        }
        if (m->weights != NULL) {
            BECOMES(resident, m->weights->state, RESIDENT_READY);
            CORE_OBSERVE(c, resident, c->sched->now_ns, key_of(i), RESIDENT_READY);
        }
    }
}

bool weights_give_way(struct core *c)
{
    struct core_model *oldest = NULL;
    for (uint32_t i = 0; i < c->n_models && c->n_models > 1; i++) {
        struct core_model *m = &c->models[i];
        if (is_idle(m) && (oldest == NULL || m->used < oldest->used)) {
            oldest = m;
        }
    }
    if (oldest == NULL) {
        return false;
    }
    resident_remove(c, oldest->weights);
    oldest->weights = NULL;
    c->result->model_evictions++;
    return true;
}

double weights_idle_bytes(const struct core *c)
{
    double bytes = 0.0;
    for (uint32_t i = 0; i < c->n_models && c->n_models > 1; i++) {
        bytes += is_idle(&c->models[i]) ? c->models[i].weights->bytes : 0.0;
    }
    return bytes;
}

uint64_t weights_least_lent(const struct core *c, uint32_t model)
{
    double bytes = c->mapped_bytes;
    for (uint32_t i = 0; i < c->n_models; i++) {
        bytes += i == model || c->models[i].stays ? bytes_beside_graphs(c, i) : 0.0;
    }
    return resident_lent_for(c, bytes);
}

/* KV units for all tokens of a request. */
static uint64_t need_of(const struct core *c, const struct full_request *r)
{
    return kv_units(c, r, kv_blocks_for(c, kv_tokens_of_all(c, r)));
}

/* Whether the request is admitted, and not about to leave. */
static bool is_in(const struct full_request *r)
{
    return !r->held && !r->cancel_pending;
}

/* KV units next to weights in use, if all other residents were evicted. */
static uint64_t room_of_used(const struct core *c)
{
    double bytes = c->mapped_bytes;
    for (uint32_t i = 0; i < c->n_models; i++) {
        const struct full_request *r = c->live_head;
        while (r != NULL && !(is_in(r) && r->pub->model == i)) {
            r = r->next_live;
        }
        bytes += r != NULL || c->models[i].stays ? bytes_beside_graphs(c, i) : 0.0;
    }
    return c->kv_blocks_total - resident_lent_for(c, bytes);
}

struct full_request *weights_in_the_way(const struct core *c)
{
    uint64_t room = room_of_used(c);
    struct full_request *oldest = NULL;
    struct full_request *last = NULL;
    for (struct full_request *r = c->live_tail; r != NULL; r = r->prev_live) {
        if (!is_in(r) || need_of(c, r) <= room) {
            continue;
        }
        oldest = oldest != NULL ? oldest : r;
        bool others = last != NULL && last->pub->model != oldest->pub->model;
        last = others && r->pub->model == oldest->pub->model ? last : r;
    }
    return last;
}

/* Rule 2, for the request and all admitted ones: each would have room for its KV by itself. */
static bool has_room(const struct core *c, const struct full_request *r)
{
    double bytes = c->resident_bytes - weights_idle_bytes(c);
    const struct core_model *m = &c->models[r->pub->model];
    bytes += m->weights == NULL ? bytes_of(c, r->pub->model) : is_idle(m) ? m->weights->bytes : 0.0;
    uint64_t lent = resident_lent_for(c, bytes);
    uint64_t room = c->kv_blocks_total > lent ? c->kv_blocks_total - lent : 0;
    bool fits = need_of(c, r) <= room;
    for (const struct full_request *q = c->live_head; q != NULL && fits; q = q->next_live) {
        fits = q->held || need_of(c, q) <= room;
    }
    return fits;
}

static bool load(struct core *c, uint32_t model)
{
    struct core_model *m = &c->models[model];
    double bytes = bytes_of(c, model);
    uint64_t there = c->kv_blocks_lent + kv_blocks_there(c, NULL);
    /* If evicting all idle weights is not enough, none is evicted in vain. */
    if (resident_lent_for(c, c->resident_bytes - weights_idle_bytes(c) + bytes) > there) {
        return false;
    }
    while ((m->weights = resident_add(c, key_of(model), bytes)) == NULL) {
        if (!weights_give_way(c)) {
            return false;
        }
    }
    m->since_ns = c->sched->now_ns;
    c->exec_ops->load(c->exec, m->weights, bytes);
    return true;
}

void weights_loaded(struct core *c, const struct resident *r)
{
    SIM_ASSERT(c->models[r->key.a].weights == r);
    c->result->model_loads++;
    c->result->model_load_bytes += r->bytes;
    c->result->model_load_ns += c->sched->now_ns - c->models[r->key.a].since_ns;
}

void weights_left(struct core *c, uint32_t model)
{
    SIM_ASSERT(c->models[model].n_live > 0);
    c->models[model].n_live--;
    c->models[model].used = ++c->weights_uses;
}

void weights_let_in(struct core *c)
{
    bool waits = false; /* a request waits for memory */
    for (struct full_request *r = c->live_tail; r != NULL; r = r->prev_live) {
        if (!r->held) {
            continue;
        }
        struct core_model *m = &c->models[r->pub->model];
        bool empty = c->n_live == c->n_held;
        if (!waits && !has_room(c, r)) {
            waits = true;
        } else if (!waits && m->weights == NULL) {
            waits = !load(c, r->pub->model);
        }
        if (is_ready(m) && (!waits || (empty && has_room(c, r)))) {
            r->held = false;
            c->n_held--;
            m->n_live++;
            CORE_HOOK(c, request_arrived, c->sched, r->pub);
        }
    }
}

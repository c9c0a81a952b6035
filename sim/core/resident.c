/* Things that must be in memory before work can use them: compiled kernels and graph blocks. */
#include "sim/core/consistent.h"
#include "sim/core/kv.h"
#include "sim/core/memory.h"

/* A unique number for each valid key. Versions of graphs and models fit in a byte. */
static uint64_t number_of(struct resident_key key)
{
    return ((uint64_t)key.kind << 62) ^ ((uint64_t)key.b << 32) ^ key.a;
}

struct resident *resident_find(struct core *c, struct resident_key key)
{
    struct resident **r = map_record(&c->residents, number_of(key));
    return r != NULL && (*r)->key.kind == key.kind && (*r)->key.b == key.b ? *r : NULL;
}

struct resident *resident_next(const struct core *c, uint32_t *at)
{
    uint64_t key;
    struct resident **r = map_next(&c->residents, at, &key);
    return r != NULL ? *r : NULL;
}

double resident_weight_bytes(const struct core *c)
{
    double most = 0.0;
    for (uint32_t i = 0; i < c->n_models; i++) {
        most = fmax(most, c->models[i].llm->weight_bytes);
    }
    return (double)c->setup->weight_copies * most;
}

/* Returns the total bytes of the runtime, the weights and the residents. Mapped graphs contain the
 * weights, so the larger of both counts. Weights of several models are residents. */
static double held_bytes(const struct core *c, double residents)
{
    double weights = c->n_models > 1 ? 0.0 : resident_weight_bytes(c);
    return c->setup->runtime_bytes +
           (c->mapped_bytes > 0.0 ? fmax(weights, residents) : weights + residents);
}

static double kv_block_bytes(const struct core *c)
{
    return c->kv_unit_bytes * c->setup->kv_block_tokens;
}

/* Returns the blocks by which all holders exceed the memory. KV has all that the weights left, so
 * residents and other programs take memory from KV. Less than a byte is rounding, because blocks
 * need not sum exactly to the weights. */
static uint64_t blocks_over(const struct core *c, double residents)
{
    double kv = (double)c->kv_blocks_total * kv_block_bytes(c);
    double over =
        held_bytes(c, residents) + kv + c->conditions.memory_taken_bytes - c->memory_bytes;
    SIM_ASSERT(residents > -1.0 && isfinite(over));
    return over < 1.0 ? 0 : (uint64_t)ceil(over / kv_block_bytes(c));
}

/* Returns the blocks that KV lends, at most all, without a check that they fit. */
uint64_t resident_lent_for(const struct core *c, double residents)
{
    uint64_t blocks = blocks_over(c, residents);
    return blocks < c->kv_blocks_total ? blocks : c->kv_blocks_total;
}

void core_memory_taken(struct core *c, double bytes)
{
    SIM_ASSERT(bytes >= 0.0 && isfinite(bytes));
    c->conditions.memory_taken_bytes = bytes;
    kv_owe(c, resident_lent_for(c, c->resident_bytes));
    c->kv_blocks_mapped = resident_lent_for(c, c->mapped_bytes);
}

double core_memory_free_bytes(const struct core *c)
{
    double left = c->memory_bytes - c->conditions.memory_taken_bytes - core_memory_bytes(c);
    return left > 0.0 ? left : 0.0;
}

struct resident *resident_add(struct core *c, struct resident_key key, double bytes)
{
    SIM_ASSERT(resident_find(c, key) == NULL); /* keys are unique */
    /* Take memory first, so that a refusal changes nothing. A resident without bytes is never
     * refused, even if other programs demand more than there is. */
    if (bytes > 0.0 && kv_lend(c, blocks_over(c, c->resident_bytes + bytes)) != 0) {
        return NULL;
    }
    struct resident *r;
    FREE_TAKE(c->free_residents, &c->arena, r);
    SIM_ASSERT(r->state == RESIDENT_ABSENT && r->pins == 0);
    *r = (struct resident){.key = key, .state = RESIDENT_PENDING, .bytes = bytes};
    *(struct resident **)map_add(&c->residents, number_of(key)) = r;
    SIM_ASSERT(resident_find(c, key) == r);
    c->resident_bytes += bytes;
    core_memory_note(c);
    CORE_OBSERVE(c, resident, c->sched->now_ns, key, RESIDENT_PENDING);
    return r;
}

void resident_remove(struct core *c, struct resident *r)
{
    SIM_REQUIRE(r->pins == 0 && r->state != RESIDENT_ABSENT, "a resident in use is dropped");
    /* Unlinked before kv_owe divides the memory again. Executors and launches point to residents,
     * so these never move. */
    map_remove(&c->residents, number_of(r->key));
    FREE_PUT(c->free_residents, r);
    c->resident_bytes -= r->bytes;
    kv_owe(c, resident_lent_for(c, c->resident_bytes)); /* KV gets its memory back */
    BECOMES(resident, r->state, RESIDENT_ABSENT);
    CORE_OBSERVE(c, resident, c->sched->now_ns, r->key, RESIDENT_ABSENT);
}

int core_compile(struct core *c, struct resident_key key)
{
    REFUSE_IF(c, (c->caps & CAP_COMPILE) == 0, RESIDENT_REFUSED, -EPERM,
              "this executor does not compile");
    REFUSE_IF(c, key.kind != RESIDENT_COMPILED_ATTENTION || key.a == 0 || key.b >= c->n_models,
              RESIDENT_REFUSED, -EINVAL, "only attention of some length and model is compiled");
    REFUSE_IF(c, resident_find(c, key) != NULL, RESIDENT_REFUSED, -EALREADY,
              "it is there already, or being made");
    struct resident *r = resident_add(c, key, 0.0); /* compiled kernels take no memory */
    SIM_REQUIRE(r != NULL, "what takes no bytes fits");
    const struct machine *m = c->setup->machine;
    core_count(c, COUNTER_COMPILES);
    c->exec_ops->compile(c->exec, r,
                         m->compile_fixed_ns +
                             (int64_t)llround(m->compile_ns_per_token * (double)key.a));
    return 0;
}

/* Adds a graph block for core_load or core_map. It must be absent and have bytes. */
static int graph_block_new(struct core *c, struct resident_key key, double bytes,
                           struct resident **out)
{
    REFUSE_IF(c, (c->caps & CAP_LOAD) == 0, RESIDENT_REFUSED, -EPERM,
              "this executor does not load graphs");
    REFUSE_IF(c,
              key.kind != RESIDENT_GRAPH_BLOCK || !(bytes > 0.0) || !isfinite(bytes) ||
                  key.b == 0 || key.b > UINT8_MAX,
              RESIDENT_REFUSED, -EINVAL,
              "only a graph block of version 1 on, of some bytes, is loaded");
    REFUSE_IF(c, resident_find(c, key) != NULL, RESIDENT_REFUSED, -EALREADY,
              "it is there already, or being loaded");
    /* It takes memory at the start of its load, not at the end, so that two pending loads cannot be
     * promised the same memory. */
    *out = resident_add(c, key, bytes);
    REFUSE_IF(c, *out == NULL, RESIDENT_REFUSED, -ENOMEM,
              "not enough KV is free to give way to it");
    return 0;
}

int core_load(struct core *c, struct resident_key key, double bytes)
{
    struct resident *r;
    int rc = graph_block_new(c, key, bytes, &r);
    if (rc == 0) {
        core_count(c, COUNTER_LOADS);
        c->exec_ops->load(c->exec, r, bytes);
    }
    return rc;
}

int core_map(struct core *c, struct resident_key key, double bytes)
{
    REFUSE_IF(c, c->hook != HOOK_init, RESIDENT_REFUSED, -EPERM,
              "what was there before the run is declared in init");
    struct resident *r;
    /* Before resident_add computes whether the block fits: mapped graphs hold the weights, which
     * must not count twice. */
    double before = c->mapped_bytes;
    c->mapped_bytes += bytes;
    int rc = graph_block_new(c, key, bytes, &r);
    if (rc != 0) {
        c->mapped_bytes = before;
    } else {
        BECOMES(resident, r->state, RESIDENT_READY);
        /* A request can have only the KV that mapped graphs leave (kv_capacity_tokens), also where
         * they are evicted: graphs of another version replace them. */
        c->kv_blocks_mapped = c->kv_blocks_lent;
        CORE_OBSERVE(c, resident, c->sched->now_ns, key, RESIDENT_READY);
    }
    return rc;
}

int core_graph(struct core *c, uint8_t version, struct graph_shape shape)
{
    REFUSE_IF(c, c->hook != HOOK_init, RESIDENT_REFUSED, -EPERM, "what graphs are is said in init");
    REFUSE_IF(c,
              version == 0 || version > GRAPH_VERSIONS || shape.rows == 0 || shape.n_blocks == 0 ||
                  shape.n_blocks > c->setup->llm->n_layers || c->graphs[version].rows > 0,
              RESIDENT_REFUSED, -EINVAL,
              "a graph has a version not said yet, rows, and no more blocks than layers");
    c->graphs[version] = shape;
    return 0;
}

int core_resident_evict(struct core *c, struct resident_key key)
{
    struct resident *r = resident_find(c, key);
    REFUSE_IF(c, r == NULL, RESIDENT_REFUSED, -ENOENT, "it is not there");
    /* Queued launches count, too, because their block must be READY when they start. */
    REFUSE_IF(c, r->pins > 0, RESIDENT_REFUSED, -EBUSY, "a launch uses it");
    REFUSE_IF(c, key.kind == RESIDENT_WEIGHTS, RESIDENT_REFUSED, -EPERM,
              "weights go when their memory is needed");
    c->result->counters[COUNTER_COMPILES_CANCELLED] += r->state == RESIDENT_PENDING;
    /* Notify the executor first, which has a pointer to the resident, because the object is reused
     * after resident_remove. */
    c->exec_ops->resident_dropped(c->exec, r);
    resident_remove(c, r);
    return 0;
}

double core_memory_bytes(const struct core *c)
{
    return held_bytes(c, c->resident_bytes) + kv_held_bytes(c);
}

void core_memory_note(struct core *c)
{
    double total = core_memory_bytes(c);
    if (total > c->result->memory_peak_bytes) {
        c->result->memory_peak_bytes = total;
    }
}

/* Things that must be in memory before work can use them: compiled kernels and graph blocks. */
#include <errno.h>
#include <math.h>

#include "sim/core/core.h"

struct resident *resident_find(struct core *c, struct resident_key key)
{
    for (uint32_t i = 0; i < c->n_residents; i++) {
        struct resident *r = &c->residents[i];
        if (r->state != RESIDENT_ABSENT && r->key.kind == key.kind && r->key.a == key.a &&
            r->key.b == key.b && !r->cancelled) {
            return r;
        }
    }
    return NULL;
}

static struct resident *resident_new(struct core *c, struct resident_key key, double bytes)
{
    struct resident *r = NULL;
    for (uint32_t i = 0; i < c->n_residents && r == NULL; i++) {
        if (c->residents[i].state == RESIDENT_ABSENT) {
            r = &c->residents[i];
        }
    }
    if (r == NULL) {
        if (c->n_residents == CORE_MAX_RESIDENTS) {
            return NULL;
        }
        r = &c->residents[c->n_residents++];
    }
    *r = (struct resident){.key = key, .state = RESIDENT_PENDING, .bytes = bytes};
    c->resident_bytes += bytes;
    core_memory_note(c);
    CORE_OBSERVE(c, resident, c->sched.now_ns, key, RESIDENT_PENDING);
    return r;
}

static void resident_drop(struct core *c, struct resident *r)
{
    c->resident_bytes -= r->bytes;
    r->state = RESIDENT_ABSENT;
    if (!r->cancelled) {
        CORE_OBSERVE(c, resident, c->sched.now_ns, r->key, RESIDENT_ABSENT);
    }
}

static int refuse(struct core *c, int status)
{
    core_count(c, COUNTER_RESIDENT_REFUSED);
    return status;
}

int core_compile(struct core *c, struct resident_key key)
{
    if ((c->exec_ops->caps & c->setup->caps & CAP_COMPILE) == 0) {
        return refuse(c, -EPERM);
    }
    if (key.kind != RESIDENT_COMPILED_ATTENTION || key.a == 0) {
        return refuse(c, -EINVAL);
    }
    if (resident_find(c, key) != NULL) {
        return refuse(c, -EALREADY);
    }
    struct resident *r = resident_new(c, key, 0.0);
    if (r == NULL) {
        return refuse(c, -ENOMEM);
    }
    const struct machine *m = c->setup->machine;
    core_count(c, COUNTER_COMPILES);
    c->exec_ops->compile(c->exec, r,
                         m->compile_fixed_ns +
                             (int64_t)llround(m->compile_ns_per_token * (double)key.a));
    return 0;
}

int core_load(struct core *c, struct resident_key key, double bytes, bool mapped)
{
    if ((c->exec_ops->caps & c->setup->caps & CAP_LOAD) == 0) {
        return refuse(c, -EPERM);
    }
    if (key.kind != RESIDENT_GRAPH_BLOCK || !(bytes >= 0.0) || key.b == 0) {
        return refuse(c, -EINVAL);
    }
    if (resident_find(c, key) != NULL) {
        return refuse(c, -EALREADY);
    }
    c->weights_mapped = c->weights_mapped || mapped;
    struct resident *r = resident_new(c, key, bytes);
    if (r == NULL) {
        return refuse(c, -ENOMEM);
    }
    core_count(c, COUNTER_LOADS);
    c->exec_ops->load(c->exec, r, mapped ? 0.0 : bytes);
    return 0;
}

int core_resident_evict(struct core *c, struct resident_key key)
{
    struct resident *r = resident_find(c, key);
    if (r == NULL) {
        return refuse(c, -ENOENT);
    }
    if (r->pins > 0) {
        return refuse(c, -EBUSY);
    }
    if (r->state == RESIDENT_PENDING) {
        CORE_OBSERVE(c, resident, c->sched.now_ns, key, RESIDENT_ABSENT);
        r->cancelled = true;
        core_count(c, COUNTER_COMPILES_CANCELLED);
        c->exec_ops->resident_cancel(c->exec, r);
        resident_drop(c, r);
        return 0;
    }
    resident_drop(c, r);
    if (c->exec_ops->resident_evicted != NULL) {
        c->exec_ops->resident_evicted(c->exec, key);
    }
    return 0;
}

void core_resident_done(struct core *c, struct resident *r)
{
    c->news = true;
    r->state = RESIDENT_READY;
    core_progress(c);
    CORE_OBSERVE(c, resident, c->sched.now_ns, r->key, RESIDENT_READY);
    if (c->setup->policy->resident_ready != NULL) {
        c->setup->policy->resident_ready(&c->sched, r->key);
    }
}

/* Weights or the graphs that hold them, and KV held (cold included): the run's memory peak. */
void core_memory_note(struct core *c)
{
    const struct llm *llm = c->setup->llm;
    double kv = (double)((c->kv_blocks_total - c->kv_blocks_free) * c->setup->kv_block_tokens) *
                llm->kv_bytes_per_token;
    double weights = (double)c->setup->weight_copies * llm->weight_bytes;
    double held =
        c->weights_mapped ? fmax(weights, c->resident_bytes) : weights + c->resident_bytes;
    double total = held + kv;
    if (total > c->result->memory_peak_bytes) {
        c->result->memory_peak_bytes = total;
    }
}

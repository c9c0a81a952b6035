/* Memory that a policy sees, separate from the core's own (core.h, full_request). */
#define _DEFAULT_SOURCE /* getrandom */
#include <sys/random.h>

#include "sim/base/hash.h"
#include "sim/base/rng.h"
#include "sim/core/core.h"

uintptr_t core_way;

void core_memory_init(struct core *c)
{
    const struct core_memory *m = c->setup->memory;
    while (core_way == 0) {
        if (getrandom(&core_way, sizeof core_way, 0) < 0) {
            core_way = (uintptr_t)&core_way; /* no getrandom: use ASLR */
        }
    }
    arena_init(&c->shown, m != NULL ? &m->shown : &arena_fenced);
    arena_init(&c->policys, m != NULL ? &m->policys : &arena_fenced);
    c->sched = arena_alloc(&c->shown, sizeof *c->sched);
    c->sched->core = (uintptr_t)c ^ core_way;
}

const void *core_shown(struct core *c, const void *of, size_t bytes)
{
    return of == NULL ? NULL : memcpy(arena_alloc(&c->shown, bytes), of, bytes);
}

uint64_t core_policy_seed(const struct sim_setup *setup)
{
    uint64_t name = hash_string(HASH_INIT, setup->policy->name);
    return rng_seed(rng_key(setup->seed, RNG_POLICY, name, 0));
}

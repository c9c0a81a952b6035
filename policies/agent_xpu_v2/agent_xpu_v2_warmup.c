/* On-the-fly NPU attention kernels of agent-xpu-v2 (B.6): one CPU thread compiles, for each waiting
 * or preempted proactive prompt, a static kernel of its length; all layers share it. A prefill uses
 * only a kernel that is READY when it starts or resumes. */
#include "policies/agent_xpu_v2/agent_xpu_v2.h"

/* The resident of a kernel (axpu_kernel_of). */
static struct resident_key key_of(uint32_t kernel)
{
    return (struct resident_key){RESIDENT_COMPILED_ATTENTION, kernel & AXPU_KERNEL_TOKENS,
                                 kernel / (AXPU_KERNEL_TOKENS + 1)};
}

static bool used_by(const struct axpu_prefill *f, uint32_t tokens)
{
    return f->npu_attention && f->request != NULL && axpu_kernel_of(f->request) == tokens;
}

/* An aged prefill keeps its kernel, because it may become the serial prefill. */
static bool in_use(const struct axpu *a, uint32_t tokens)
{
    return used_by(&a->current, tokens) || used_by(&a->aged, tokens);
}

static bool wanted(const struct axpu *a, uint32_t tokens)
{
    for (uint32_t i = 0; i < a->n_suspended; i++) {
        if (axpu_kernel_of(a->suspended[i].request) == tokens) {
            return true;
        }
    }
    return axpu_waits_for(a, tokens);
}

static void cache_drop(struct sched *s, struct axpu_kernel *k)
{
    if (sched_resident_evict(s, key_of(k->prompt_tokens)) == 0) {
        k->prompt_tokens = 0;
    }
}

/* Drops unused, expired kernels [S: TTL]. */
static inline void expire(struct sched *s, struct axpu *a)
{
    if (s->now_ns < a->expiry_ns) {
        return; /* a use only postpones expiry */
    }
    int64_t ttl = a->ttl_ns;
    a->expiry_ns = s->now_ns + ttl;
    for (uint32_t i = 0; i < AXPU_MAX_CACHE; i++) {
        struct axpu_kernel *k = &a->cache[i];
        if (k->prompt_tokens != 0 && s->now_ns - k->used_ns > ttl && !in_use(a, k->prompt_tokens) &&
            !wanted(a, k->prompt_tokens)) {
            cache_drop(s, k);
        }
        int64_t at_ns = k->used_ns + ttl + 1;
        a->expiry_ns = k->prompt_tokens != 0 && at_ns < a->expiry_ns ? at_ns : a->expiry_ns;
    }
}

/* Kernels that have expired already are dropped in this call, or kept until the next event. */
int64_t axpu_warmup_until_ns(const struct sched *s, const struct axpu *a)
{
    if (!param_bool(s, AXPU_WARMUP)) {
        return TIME_NEVER_NS;
    }
    int64_t ttl = a->ttl_ns;
    int64_t until_ns = s->now_ns + ttl + 1; /* for kernels that are compiled or used from now on */
    for (uint32_t i = 0; i < AXPU_MAX_CACHE; i++) {
        int64_t at_ns = a->cache[i].used_ns + ttl + 1;
        if (a->cache[i].prompt_tokens != 0 && at_ns > s->now_ns && at_ns < until_ns) {
            until_ns = at_ns;
        }
    }
    return until_ns;
}

void axpu_warmup_ready(struct sched *s, struct resident_key key)
{
    struct axpu *a = s->state;
    if (key.kind != RESIDENT_COMPILED_ATTENTION) {
        return;
    }
    a->compiling_tokens = 0;
    for (uint32_t i = 0; i < AXPU_MAX_CACHE; i++) {
        if (a->cache[i].prompt_tokens == 0) {
            a->cache[i] = (struct axpu_kernel){key.a + key.b * (AXPU_KERNEL_TOKENS + 1), s->now_ns};
            return;
        }
    }
}

/* Whether there is room for one more kernel if *goes is dropped (NULL: none must). It is the LRU
 * one of the kernels that are not in use and that no waiting prompt wants. */
static bool has_room(struct sched *s, struct axpu *a, struct axpu_kernel **goes)
{
    uint32_t n = 0;
    struct axpu_kernel *oldest = NULL;
    for (uint32_t i = 0; i < AXPU_MAX_CACHE; i++) {
        struct axpu_kernel *k = &a->cache[i];
        if (k->prompt_tokens == 0) {
            continue;
        }
        n++;
        bool older = oldest == NULL || k->used_ns < oldest->used_ns;
        if (older && !in_use(a, k->prompt_tokens) && !wanted(a, k->prompt_tokens)) {
            oldest = k;
        }
    }
    bool full = n >= (uint32_t)param_int(s, AXPU_CACHE_ENTRIES);
    *goes = full ? oldest : NULL;
    return !full || oldest != NULL;
}

/* The kernel of the first prompt of a queue without a READY or PENDING one; 0: none. Each prompt is
 * visited once, because a kernel that a waiting prompt wants is never dropped. */
static inline uint32_t first_uncompiled(struct sched *s, struct axpu_queue *w)
{
    for (; w->uncompiled != NULL; w->uncompiled = reqq_next(w->uncompiled)) {
        uint32_t t = axpu_kernel_of(w->uncompiled);
        if (sched_resident_state(s, key_of(t)) == RESIDENT_ABSENT) {
            return t;
        }
    }
    return 0;
}

/* Reactive prompts first, then preempted prefills, then proactive prompts, each in order. */
static uint32_t next_prompt(struct sched *s, struct axpu *a)
{
    uint32_t t = a->warm_reactive ? first_uncompiled(s, &a->prefill_rt) : 0;
    for (uint32_t i = 0; t == 0 && i < a->n_suspended; i++) {
        uint32_t own = axpu_kernel_of(a->suspended[i].request);
        t = sched_resident_state(s, key_of(own)) == RESIDENT_ABSENT ? own : 0;
    }
    if (t != 0 || a->warm_ns == 0) {
        return t != 0 ? t : first_uncompiled(s, &a->prefill_be);
    }
    /* Prompts wait for kernels: the shortest prompt is next, so compile its kernel. O(n). */
    const struct request *best = NULL;
    for (const struct request *r = a->prefill_be.q.head; r != NULL; r = reqq_next(r)) {
        bool shorter = best == NULL || request_prefill_left(r) < request_prefill_left(best);
        bool none =
            shorter && sched_resident_state(s, key_of(axpu_kernel_of(r))) == RESIDENT_ABSENT;
        best = none ? r : best;
    }
    return best != NULL ? axpu_kernel_of(best) : 0;
}

void axpu_warmup_schedule(struct sched *s, struct axpu *a)
{
    if (!param_bool(s, AXPU_WARMUP)) {
        return;
    }
    expire(s, a);
    if (a->compiling_tokens != 0) {
        /* One compilation at a time, and one kernel per length, shared by all prompts of that
         * length. */
        if (wanted(a, a->compiling_tokens)) {
            return;
        }
        /* Its prefill has begun without it: stop compiling. */
        (void)sched_resident_evict(s, key_of(a->compiling_tokens));
        a->compiling_tokens = 0;
    }
    struct axpu_kernel *goes = NULL;
    uint32_t tokens = has_room(s, a, &goes) ? next_prompt(s, a) : 0; /* the search is O(n) */
    if (tokens != 0 && goes != NULL) {
        cache_drop(s, goes);
        tokens = goes->prompt_tokens == 0 ? tokens : 0;
    }
    if (tokens != 0 && sched_compile(s, key_of(tokens)) == 0) {
        a->compiling_tokens = tokens;
    }
}

bool axpu_warmup_has(const struct axpu *a, const struct request *r)
{
    bool has = false;
    for (uint32_t i = 0; i < AXPU_MAX_CACHE && !has; i++) {
        has = a->cache[i].prompt_tokens == axpu_kernel_of(r);
    }
    return has;
}

bool axpu_warmup_take(struct sched *s, struct axpu *a, const struct request *r)
{
    uint32_t tokens = axpu_kernel_of(r);
    if (!param_bool(s, AXPU_WARMUP) || !axpu_uses_kernel(a, r) ||
        sched_resident_state(s, key_of(tokens)) != RESIDENT_READY) {
        return false;
    }
    for (uint32_t i = 0; i < AXPU_MAX_CACHE; i++) {
        if (a->cache[i].prompt_tokens == tokens) {
            a->cache[i].used_ns = s->now_ns;
        }
    }
    return true;
}

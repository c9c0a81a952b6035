#include "tests/helpers/naive_cache.h"

#include <string.h>

#include "sim/base/halt.h"

static bool begins_with(const uint64_t *tokens, const struct naive_block *b)
{
    return memcmp(tokens, b->tokens, b->n * sizeof *tokens) == 0;
}

static int find(const struct naive_cache *c, const uint64_t *tokens, uint32_t n)
{
    for (uint32_t k = 0; k < c->n_cached; k++) {
        if (c->cached[k].n == n && begins_with(tokens, &c->cached[k])) {
            return (int)k;
        }
    }
    return -1;
}

/* Does a live request hold the block, and one that has begun? */
static bool holds(const struct naive_cache *c, const struct naive_block *b, bool only_begun)
{
    for (uint32_t i = 0; i < NAIVE_MAX_REQUESTS; i++) {
        const struct naive_request *r = &c->of[i];
        if (r->live && !(only_begun && r->idle) && r->held * c->block_tokens >= b->n &&
            begins_with(r->tokens, b)) {
            return true;
        }
    }
    return false;
}

uint32_t naive_unheld(const struct naive_cache *c)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < c->n_cached; k++) {
        n += !holds(c, &c->cached[k], false);
    }
    return n;
}

uint32_t naive_idle(const struct naive_cache *c)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < c->n_cached; k++) {
        n += !holds(c, &c->cached[k], true);
    }
    return n - naive_unheld(c);
}

uint32_t naive_free(const struct naive_cache *c)
{
    uint32_t used = c->n_cached;
    for (uint32_t i = 0; i < NAIVE_MAX_REQUESTS; i++) {
        used += c->of[i].live ? c->of[i].own + c->of[i].states : 0;
    }
    SIM_REQUIRE(used <= c->blocks, "%u blocks of %u", used, c->blocks);
    return c->blocks - used;
}

/* Holds its first blocks only, from now on. The last block is let go first. */
static void hold_only(struct naive_cache *c, struct naive_request *r, uint32_t blocks)
{
    while (r->held > blocks) {
        int k = find(c, r->tokens, r->held * c->block_tokens);
        SIM_REQUIRE(k >= 0, "a block that is held is gone");
        r->held--;
        if (!holds(c, &c->cached[k], false)) {
            c->cached[k].let_go = ++c->clock;
        }
    }
}

/* Blocks that the request holds have at least its rank. */
static void rank_held(struct naive_cache *c, const struct naive_request *r)
{
    for (uint32_t k = 0; k < c->n_cached; k++) {
        struct naive_block *b = &c->cached[k];
        bool its = b->n <= r->held * c->block_tokens && begins_with(r->tokens, b);
        b->rank = its && b->rank < r->rank ? r->rank : b->rank;
    }
}

void naive_rank(struct naive_cache *c, uint32_t i, uint32_t rank)
{
    c->of[i].rank = rank;
    rank_held(c, &c->of[i]);
}

static void look(struct naive_cache *c, struct naive_request *r)
{
    uint32_t n = 0;
    while ((n + 1) * c->block_tokens < r->input &&
           find(c, r->tokens, (n + 1) * c->block_tokens) >= 0) {
        n++;
    }
    if (n * c->block_tokens > r->kv) {
        r->held = n;
        r->kv = r->reused = n * c->block_tokens;
        r->idle = true;
        rank_held(c, r);
    }
}

void naive_arrive(struct naive_cache *c, uint32_t i, const uint64_t *tokens, uint32_t input)
{
    c->of[i] = (struct naive_request){
        .tokens = tokens, .input = input, .came = ++c->arrivals, .live = true};
    look(c, &c->of[i]);
}

void naive_look_again(struct naive_cache *c)
{
    for (uint32_t i = 0; i < NAIVE_MAX_REQUESTS; i++) {
        struct naive_request *r = &c->of[i];
        if (r->live && !r->served && (r->idle || r->kv == 0)) {
            look(c, r);
        }
    }
}

static bool goes_before(const struct naive_block *a, const struct naive_block *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->let_go < b->let_go;
}

static void remove_first(struct naive_cache *c)
{
    int oldest = -1;
    for (uint32_t k = 0; k < c->n_cached; k++) {
        if (!holds(c, &c->cached[k], false) &&
            (oldest < 0 || goes_before(&c->cached[k], &c->cached[oldest]))) {
            oldest = (int)k;
        }
    }
    SIM_REQUIRE(oldest >= 0, "nothing to remove");
    struct naive_block gone = c->cached[oldest];
    c->cached[oldest] = c->cached[--c->n_cached];
    for (uint32_t k = 0; k < c->n_cached; k++) {
        SIM_REQUIRE(c->cached[k].n <= gone.n || !begins_with(c->cached[k].tokens, &gone),
                    "a block without the one before it");
    }
}

/* The newest that waits gives up its prefix. */
static void drop_newest_idle(struct naive_cache *c)
{
    struct naive_request *newest = NULL;
    for (uint32_t i = 0; i < NAIVE_MAX_REQUESTS; i++) {
        struct naive_request *r = &c->of[i];
        if (r->live && r->idle && (newest == NULL || r->came > newest->came)) {
            newest = r;
        }
    }
    SIM_REQUIRE(newest != NULL, "nobody waits");
    hold_only(c, newest, 0);
    newest->idle = false;
    newest->kv = newest->reused = 0;
}

static bool make_free(struct naive_cache *c, uint32_t blocks)
{
    if (blocks > naive_free(c) + naive_unheld(c) + naive_idle(c)) {
        return false;
    }
    while (naive_free(c) < blocks) {
        if (naive_unheld(c) > 0) {
            remove_first(c);
        } else {
            drop_newest_idle(c);
        }
    }
    return true;
}

static uint32_t blocks_for(const struct naive_cache *c, uint32_t tokens)
{
    return (tokens + c->block_tokens - 1) / c->block_tokens;
}

void naive_give_back(struct naive_cache *c, const uint32_t *i, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        struct naive_request *r = &c->of[i[k]];
        r->own = blocks_for(c, r->kv) - r->held;
        r->idle = r->kv > 0 && r->kv == r->reused && r->generated == 0;
        r->states = r->idle || r->kv == 0 ? 0 : r->states;
    }
}

bool naive_reserve(struct naive_cache *c, const uint32_t *i, const uint32_t *n, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        c->of[i[k]].idle = false;
    }
    for (uint32_t k = 0; k < count; k++) {
        struct naive_request *r = &c->of[i[k]];
        uint32_t more = blocks_for(c, r->kv + n[k]) - r->held - r->own;
        if (!make_free(c, more + c->states - r->states)) {
            naive_give_back(c, i, count);
            return false;
        }
        r->own += more;
        r->states = c->states;
    }
    return true;
}

/* Its whole blocks are the cache's: where they are there already, its copies go. */
static void share(struct naive_cache *c, struct naive_request *r)
{
    while ((r->held + 1) * c->block_tokens <= r->kv) {
        uint32_t n = (r->held + 1) * c->block_tokens;
        if (find(c, r->tokens, n) < 0) {
            SIM_REQUIRE(c->n_cached < NAIVE_MAX_BLOCKS, "too many blocks");
            c->cached[c->n_cached++] = (struct naive_block){r->tokens, n, 0, 0};
        }
        r->held++;
        r->own--;
    }
    rank_held(c, r);
}

void naive_computed(struct naive_cache *c, uint32_t i, uint32_t n, bool prefill)
{
    struct naive_request *r = &c->of[i];
    r->served = true;
    r->kv += n;
    if (prefill) {
        share(c, r);
    }
}

void naive_lose(struct naive_cache *c, uint32_t i, uint32_t keep)
{
    struct naive_request *r = &c->of[i];
    r->idle = false;
    r->served = true; /* it does not look again */
    share(c, r);
    if (keep < r->held * c->block_tokens) {
        keep -= keep % c->block_tokens;
        hold_only(c, r, keep / c->block_tokens);
    }
    r->kv = keep;
    r->own = blocks_for(c, keep) - r->held;
    r->states = keep > 0 ? r->states : 0;
}

void naive_leave(struct naive_cache *c, uint32_t i)
{
    struct naive_request *r = &c->of[i];
    r->idle = false;
    share(c, r);
    hold_only(c, r, 0);
    r->own = r->states = 0;
    r->live = false;
}

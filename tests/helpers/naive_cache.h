/* A cache of KV blocks that knows prompts by their tokens, for tests of the ledger. It compares
 * whole arrays and searches everything each time: no tree, no counts of holders, no list by use.
 * The rules are those of sim/core/prefix.h and kv.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define NAIVE_MAX_REQUESTS 32
#define NAIVE_MAX_BLOCKS 512

struct naive_block {
    const uint64_t *tokens; /* from the beginning of the prompt to the end of the block */
    uint32_t n;
    uint64_t let_go; /* when its last holder let it go */
    uint32_t rank;   /* the highest of those that held it */
};

struct naive_request {
    const uint64_t *tokens; /* prompt and answer; borrowed */
    uint32_t input, kv, reused, generated;
    uint32_t held;   /* blocks of the cache that it holds, its first ones */
    uint32_t own;    /* blocks of its own */
    uint32_t states; /* blocks of its states: all of the model's, or none */
    uint32_t rank;   /* of what it holds, from now on */
    uint32_t came;   /* its place in the order of arrival */
    bool live, idle, served;
};

struct naive_cache {
    uint32_t block_tokens, blocks; /* of a block; in all */
    uint32_t states; /* blocks that a request takes as long as it has KV that it did not find */
    struct naive_block cached[NAIVE_MAX_BLOCKS];
    uint32_t n_cached;
    struct naive_request of[NAIVE_MAX_REQUESTS];
    uint32_t arrivals;
    uint64_t clock;
};

void naive_arrive(struct naive_cache *c, uint32_t i, const uint64_t *tokens, uint32_t input);
/* Those who wait look again. */
void naive_look_again(struct naive_cache *c);
/* Several requests reserve room for n[] more tokens. False: there is none, and none has any. */
bool naive_reserve(struct naive_cache *c, const uint32_t *i, const uint32_t *n, uint32_t count);
/* The pass of several requests did not take place. */
void naive_give_back(struct naive_cache *c, const uint32_t *i, uint32_t count);
/* The tokens are computed; of prefill they can be shared. */
void naive_computed(struct naive_cache *c, uint32_t i, uint32_t n, bool prefill);
/* A request loses its KV from a token on. */
void naive_lose(struct naive_cache *c, uint32_t i, uint32_t keep);
void naive_rank(struct naive_cache *c, uint32_t i, uint32_t rank);
void naive_leave(struct naive_cache *c, uint32_t i);

/* Blocks of the cache that nobody holds, or only requests that wait; and free ones. */
uint32_t naive_unheld(const struct naive_cache *c);
uint32_t naive_idle(const struct naive_cache *c);
uint32_t naive_free(const struct naive_cache *c);

/* Service accounts of clients: a counter each that only grows, the requests that wait, and the
 * smallest counter among the clients with queued requests. The memory of fair orders (VTC). Finding
 * an account is expected O(1), the smallest counter O(log clients) amortized. */
#pragma once

#include "policies/common/reqq.h"
#include "sim/base/map.h"

struct account {
    double service;
    uint32_t queued;                          /* requests that wait; the owner counts down */
    struct reqq waiting[REQUEST_CLASS_COUNT]; /* for the owner */
    bool in_heap;
    double key; /* service when it was last sifted: never above service */
};

struct accounts {
    struct map index;      /* struct account *, owned, each on its own: addresses stay */
    struct account **heap; /* by key, smallest first; may hold some with nothing queued */
    uint32_t n_heap;
};

/* An account with requests queued is in the heap, with a key that service has caught up with. */
static inline bool account_ok(const struct account *x)
{
    return (x->in_heap || x->queued == 0) && (!x->in_heap || x->key <= x->service);
}

/* Place i of the heap: an account whose key is not above the two below it. */
static inline bool accounts_placed(const struct accounts *all, uint32_t i)
{
    const struct account *x = all->heap[i];
    return x->in_heap && account_ok(x) &&
           (2 * i + 1 >= all->n_heap || all->heap[2 * i + 1]->key >= x->key) &&
           (2 * i + 2 >= all->n_heap || all->heap[2 * i + 2]->key >= x->key);
}

static inline bool accounts_ok(const struct accounts *all)
{
    return all->n_heap <= all->index.n && (all->n_heap == 0 || accounts_placed(all, 0));
}

/* The account of a client, new and zero when it has none. Valid until accounts_fini. */
static inline struct account *accounts_get(struct accounts *all, uint32_t client)
{
    SIM_ASSERT(accounts_ok(all));
    struct account **x = map_add(&all->index, client);
    if (*x == NULL) {
        all->heap = xgrow(all->heap, all->index.n - 1, sizeof(struct account *));
        *x = xcalloc(1, sizeof(struct account));
    }
    SIM_ASSERT(account_ok(*x));
    return *x;
}

static inline void accounts_sift_down(struct accounts *all, uint32_t i)
{
    SIM_ASSERT(i < all->n_heap);
    struct account *x = all->heap[i];
    for (uint32_t child; (child = 2 * i + 1) < all->n_heap; i = child) {
        child += child + 1 < all->n_heap && all->heap[child + 1]->key < all->heap[child]->key;
        if (all->heap[child]->key >= x->key) {
            break;
        }
        all->heap[i] = all->heap[child];
    }
    all->heap[i] = x;
    SIM_ASSERT(accounts_placed(all, i));
}

/* Another request of this client is queued. */
static inline void accounts_enter(struct accounts *all, struct account *x)
{
    SIM_ASSERT(account_ok(x));
    x->queued++;
    if (x->in_heap) {
        return;
    }
    SIM_ASSERT(x->queued == 1 &&
               all->n_heap < all->index.n); /* accounts_get made room for everybody */
    uint32_t i = all->n_heap++;
    x->in_heap = true;
    x->key = x->service;
    for (; i > 0 && all->heap[(i - 1) / 2]->key > x->key; i = (i - 1) / 2) {
        all->heap[i] = all->heap[(i - 1) / 2];
    }
    all->heap[i] = x;
    SIM_ASSERT(accounts_placed(all, i) && accounts_ok(all));
}

/* Smallest service of those with requests queued; -1 when there is none. */
static inline double accounts_least(struct accounts *all)
{
    while (all->n_heap > 0) {
        struct account *x = all->heap[0];
        SIM_ASSERT(accounts_placed(all, 0)); /* so nobody has a smaller key, nor less service */
        if (x->queued > 0 && x->key >= x->service) {
            return x->service;
        }
        if (x->queued > 0) {
            x->key = x->service;
        } else {
            x->in_heap = false;
            all->heap[0] = all->heap[--all->n_heap];
        }
        if (all->n_heap > 0) {
            accounts_sift_down(all, 0);
        }
    }
    return -1.0;
}

static inline void accounts_fini(struct accounts *all)
{
    uint32_t at = 0;
    uint64_t id = 0;
    for (struct account **x; (x = map_next(&all->index, &at, &id)) != NULL;) {
        free(*x);
    }
    free(all->heap);
    map_fini(&all->index);
    *all = (struct accounts){0};
}

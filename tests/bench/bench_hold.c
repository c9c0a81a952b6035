/* Hold model: pop the earliest event, add an exponential delay, push it back; 64 pending. Next to
 * it the same steps on a bare 4-ary heap of 16-byte nodes written for this loop. */
#include <stdio.h>
#include <string.h>

#include "sim/engine/eventq.h"
#include "tests/bench/bench.h"
#include "tests/helpers/queue.h"

#define PENDING 64u
#define STEPS 4000000u

static struct ziggurat zig;
static uint64_t sink;

static int64_t delay(struct rng *r)
{
    return (int64_t)(ziggurat_exponential(&zig, r) * 1e9);
}

static void engine(void *arg)
{
    (void)arg;
    struct rng r;
    struct eventq q = {0};
    rng_init(&r, 1);
    for (uint32_t i = 0; i < PENDING; i++) {
        eventq_push(&q, delay(&r), i, i);
    }
    uint64_t order = PENDING;
    for (uint32_t s = 0; s < STEPS; s++) {
        struct eventq_event ev = eventq_pop(&q);
        sink += ev.payload;
        eventq_push(&q, ev.time_ns + delay(&r), order++, ev.payload);
    }
    eventq_fini(&q);
}

/* The limit structure. */
struct node {
    int64_t t;
    uint32_t order, id;
};

static struct node a[PENDING];
static uint32_t n;

static int before(const struct node *x, const struct node *y)
{
    return x->t < y->t || (x->t == y->t && x->order < y->order);
}

static void up(uint32_t i, struct node v)
{
    while (i > 0 && before(&v, &a[(i - 1) / 4])) {
        a[i] = a[(i - 1) / 4];
        i = (i - 1) / 4;
    }
    a[i] = v;
}

static void down(uint32_t i, struct node v)
{
    for (uint32_t c = 4 * i + 1; c < n; c = 4 * i + 1) {
        uint32_t best = c;
        for (uint32_t k = c + 1; k < c + 4 && k < n; k++) {
            best = before(&a[k], &a[best]) ? k : best;
        }
        if (!before(&a[best], &v)) {
            break;
        }
        a[i] = a[best];
        i = best;
    }
    a[i] = v;
}

static void limit(void *arg)
{
    (void)arg;
    struct rng r;
    rng_init(&r, 1);
    n = 0;
    for (uint32_t i = 0; i < PENDING; i++) {
        up(n++, (struct node){delay(&r), i, i});
    }
    uint32_t order = PENDING;
    for (uint32_t s = 0; s < STEPS; s++) {
        struct node top = a[0];
        struct node last = a[--n];
        down(0, last);
        sink += top.id;
        up(n++, (struct node){top.t + delay(&r), order++, top.id});
    }
}

int main(void)
{
    ziggurat_init(&zig);
    double e = bench_seconds(engine, NULL);
    uint64_t got = sink;
    sink = 0;
    double l = bench_seconds(limit, NULL);
    printf("hold N=64, event queue  %6.1f ns\n", e / STEPS * 1e9);
    printf("hold N=64, limit        %6.1f ns\n", l / STEPS * 1e9);
    printf("ratio                   %6.2f (accept 1.25)\n", e / l);
    printf("same order popped       %s\n", got == sink ? "yes" : "NO");
    return got == sink ? 0 : 1;
}

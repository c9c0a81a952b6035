#include "tests/helpers/queue.h"

#include <math.h>
#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/engine/eventq.h"

#define ARRIVAL_RATE 0.9

void ziggurat_init(struct ziggurat *z)
{
    const double m = 4294967296.0;
    const double v = 3.949659822581572e-3; /* area of a layer, Marsaglia and Tsang (2000) */
    double de = 7.697117470131487;         /* start of the tail */
    double te = de;
    double q = v / exp(-de);
    z->k[0] = (uint32_t)(de / q * m);
    z->k[1] = 0;
    z->w[0] = q / m;
    z->w[255] = de / m;
    z->f[0] = 1.0;
    z->f[255] = exp(-de);
    for (int i = 254; i >= 1; i--) {
        de = -log(v / de + exp(-de));
        z->k[i + 1] = (uint32_t)(de / te * m);
        te = de;
        z->f[i] = exp(-de);
        z->w[i] = de / m;
    }
}

double ziggurat_tail(const struct ziggurat *z, struct rng *r, uint32_t value, uint32_t layer)
{
    for (;;) {
        if (layer == 0) {
            return 7.697117470131487 - log(rng_uniform(r));
        }
        double x = value * z->w[layer];
        if (z->f[layer] + rng_uniform(r) * (z->f[layer - 1] - z->f[layer]) < exp(-x)) {
            return x;
        }
        uint64_t u = rng_u64(r);
        value = (uint32_t)(u >> 32);
        layer = (uint32_t)(u & 255);
        if (value < z->k[layer]) {
            return value * z->w[layer];
        }
    }
}

/* ---- through the event queue ---- */

struct mm1 {
    struct eventq q;
    struct rng rng;
    struct ziggurat z;
    int64_t now_ns;
    int64_t *arrived; /* ring of waiting customers' arrival instants */
    uint64_t head, tail, mask;
    uint64_t created, customers, order;
    double total_s;
};

typedef void handler(struct mm1 *m);

static void push(struct mm1 *m, double delay_s, handler *h)
{
    eventq_push(&m->q, m->now_ns + (int64_t)(delay_s * 1e9), m->order++, (uint64_t)(uintptr_t)h);
}

static void on_departure(struct mm1 *m)
{
    m->total_s += units_s_from_ns(m->now_ns - m->arrived[m->head++ & m->mask]);
    if (m->head != m->tail) {
        push(m, ziggurat_exponential(&m->z, &m->rng), on_departure);
    }
}

static void grow(struct mm1 *m)
{
    uint64_t old = m->mask + 1;
    int64_t *a = xmalloc(2 * old * sizeof *a);
    for (uint64_t i = m->head; i < m->tail; i++) {
        a[i & (2 * old - 1)] = m->arrived[i & m->mask];
    }
    free(m->arrived);
    m->arrived = a;
    m->mask = 2 * old - 1;
}

static void on_arrival(struct mm1 *m)
{
    if (m->tail - m->head > m->mask) {
        grow(m);
    }
    if (m->head == m->tail) {
        push(m, ziggurat_exponential(&m->z, &m->rng), on_departure);
    }
    m->arrived[m->tail++ & m->mask] = m->now_ns;
    if (++m->created < m->customers) {
        push(m, ziggurat_exponential(&m->z, &m->rng) / ARRIVAL_RATE, on_arrival);
    }
}

double queue_mm1(uint64_t customers, uint64_t seed)
{
    struct mm1 m = {.customers = customers, .mask = 1023};
    m.arrived = xmalloc((m.mask + 1) * sizeof *m.arrived);
    ziggurat_init(&m.z);
    rng_init(&m.rng, seed);
    push(&m, ziggurat_exponential(&m.z, &m.rng) / ARRIVAL_RATE, on_arrival);
    while (!eventq_empty(&m.q)) {
        struct eventq_event ev = eventq_pop(&m.q);
        m.now_ns = ev.time_ns;
        ((handler *)(uintptr_t)ev.payload)(&m);
    }
    eventq_fini(&m.q);
    free(m.arrived);
    return m.total_s / (double)customers;
}

/* ---- the limit: everything written for this loop alone, time in double ---- */

/* xoshiro256++ (Blackman and Vigna 2019) where the compiler can see it; rng_u64 is a call. */
static inline uint64_t limit_u64(struct rng *r)
{
    uint64_t *s = r->s;
    uint64_t sum = s[0] + s[3];
    uint64_t result = ((sum << 23) | (sum >> 41)) + s[0];
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = (s[3] << 45) | (s[3] >> 19);
    return result;
}

static inline double limit_exponential(const struct ziggurat *z, struct rng *r)
{
    uint64_t u = limit_u64(r);
    uint32_t value = (uint32_t)(u >> 32);
    uint32_t layer = (uint32_t)(u & 255);
    return value < z->k[layer] ? value * z->w[layer] : ziggurat_tail(z, r, value, layer);
}

struct limit_event {
    double t;
    int kind;
};

struct limit_heap {
    struct limit_event a[64];
    uint32_t n;
};

static void limit_push(struct limit_heap *h, double t, int kind)
{
    uint32_t i = h->n++;
    while (i > 0 && t < h->a[(i - 1) / 4].t) {
        h->a[i] = h->a[(i - 1) / 4];
        i = (i - 1) / 4;
    }
    h->a[i] = (struct limit_event){t, kind};
}

static struct limit_event limit_pop(struct limit_heap *h)
{
    struct limit_event top = h->a[0];
    struct limit_event last = h->a[--h->n];
    uint32_t i = 0;
    for (uint32_t c = 1; c < h->n; c = 4 * i + 1) {
        uint32_t best = c;
        for (uint32_t k = c + 1; k < c + 4 && k < h->n; k++) {
            best = h->a[k].t < h->a[best].t ? k : best;
        }
        if (!(h->a[best].t < last.t)) {
            break;
        }
        h->a[i] = h->a[best];
        i = best;
    }
    h->a[i] = last;
    return top;
}

double queue_mm1_limit(uint64_t customers, uint64_t seed)
{
    enum { ARRIVAL, DEPARTURE };
    struct ziggurat z;
    struct rng rng;
    struct limit_heap h = {.n = 0};
    ziggurat_init(&z);
    rng_init(&rng, seed);
    uint64_t mask = (1u << 20) - 1;
    double *arrived = xmalloc((mask + 1) * sizeof *arrived);
    uint64_t head = 0;
    uint64_t tail = 0;
    uint64_t created = 0;
    double total = 0.0;
    limit_push(&h, limit_exponential(&z, &rng) / ARRIVAL_RATE, ARRIVAL);
    while (h.n > 0) {
        struct limit_event ev = limit_pop(&h);
        switch (ev.kind) {
        case ARRIVAL:
            if (head == tail) {
                limit_push(&h, ev.t + limit_exponential(&z, &rng), DEPARTURE);
            }
            arrived[tail++ & mask] = ev.t;
            if (++created < customers) {
                limit_push(&h, ev.t + limit_exponential(&z, &rng) / ARRIVAL_RATE, ARRIVAL);
            }
            break;
        default:
            total += ev.t - arrived[head++ & mask];
            if (head != tail) {
                limit_push(&h, ev.t + limit_exponential(&z, &rng), DEPARTURE);
            }
        }
    }
    free(arrived);
    return total / (double)customers;
}

#include "tests/helpers/history.h"

#include <stdio.h>
#include <stdlib.h>

#include "experiments/run/worker.h"
#include "sim/base/arena.h"
#include "sim/engine/sim.h"

static void add(void *self, int64_t at_ns, enum happening_kind kind, uint32_t who, uint64_t what)
{
    struct history *h = self;
    if (h->n == h->cap) {
        h->cap = h->cap == 0 ? 1024 : 2 * h->cap;
        h->v = xrealloc(h->v, h->cap * sizeof *h->v);
    }
    h->v[h->n++] = (struct happening){at_ns, kind, who, what};
}

static void on_arrived(void *self, int64_t now_ns, const struct request *r)
{
    add(self, now_ns, ARRIVED, r->id, r->input_tokens);
}

static void on_tokens(void *self, int64_t now_ns, const struct pass *p)
{
    for (uint32_t i = 0; i < p->n_segments; i++) {
        add(self, now_ns, TOKENS, p->segments[i].request->id, p->segments[i].emitted_tokens);
    }
}

static void on_finished(void *self, int64_t now_ns, const struct request *r)
{
    add(self, now_ns, FINISHED, r->id, r->generated_tokens);
}

static void on_shed(void *self, int64_t now_ns, const struct request *r)
{
    add(self, now_ns, SHED, r->id, r->generated_tokens);
}

static void on_started(void *self, int64_t now_ns, const struct launch *l, int64_t lead_ns)
{
    add(self, now_ns, STARTED, l->device, ((uint64_t)lead_ns << 20) ^ l->op_end);
}

static void on_ended(void *self, int64_t now_ns, const struct launch *l, int64_t isolated_ns,
                     int64_t lost_ns)
{
    add(self, now_ns, ENDED, l->device, (uint64_t)isolated_ns ^ ((uint64_t)lost_ns << 1));
}

static void on_resident(void *self, int64_t now_ns, struct resident_key key, enum resident_state to)
{
    add(self, now_ns, RESIDENT, (uint32_t)key.kind, ((uint64_t)key.a << 34) ^ (key.b << 2) ^ to);
}

static void on_kernel(void *self, const struct kernel_record *k)
{
    add(self, k->end_ns, KERNEL, k->launch->device, k->layer);
}

void history_simulate(struct sim_setup *s, double cpu_limit_s, struct history *h)
{
    struct observer o = {.self = h,
                         .wants_kernels = h->kernels,
                         .request_arrived = on_arrived,
                         .tokens = on_tokens,
                         .request_finished = on_finished,
                         .request_shed = on_shed,
                         .launch_started = on_started,
                         .launch_ended = on_ended,
                         .kernel = h->kernels ? on_kernel : NULL,
                         .resident = on_resident};
    struct sim_result r;
    s->observers[s->n_observers++] = &o;
    worker_limit_cpu(cpu_limit_s);
    h->rc = sim_run(s, &r);
    (void)snprintf(h->message, sizeof h->message, "%.150s", r.message);
    s->n_observers--;
}

static bool of_request(const struct happening *x)
{
    return x->kind <= SHED;
}

static size_t first_at(const struct history *h, int64_t at_ns)
{
    size_t i = 0;
    while (i < h->n && h->v[i].at_ns < at_ns) {
        i++;
    }
    return i;
}

static struct happening as_expected(const struct happening *a, const struct expected *x)
{
    struct happening y = *a;
    y.at_ns = x->twice ? 2 * a->at_ns : a->at_ns + x->shift_ns;
    y.who += of_request(a) ? x->ids : 0;
    return y;
}

/* At twice the time, durations of kernels and moves were rounded before they were doubled. */
static int64_t rounding(int64_t at_ns)
{
    return 1000 + at_ns / 1000000;
}

/* Compares `what` of requests only: that of a launch holds durations, which are rounded, too. */
static bool same_but_instant(const struct happening *y, const struct happening *z)
{
    return y->kind == z->kind && y->who == z->who && (!of_request(y) || y->what == z->what);
}

static bool alike(const struct happening *y, const struct happening *z, const struct expected *x)
{
    if (x->twice) {
        return same_but_instant(y, z) && llabs(y->at_ns - z->at_ns) <= rounding(y->at_ns);
    }
    return same_but_instant(y, z) && y->at_ns == z->at_ns && y->what == z->what;
}

/* Is x, but for rounding, among what comes after i? `times` the instants of h are those of x. */
static bool comes_after(const struct history *h, size_t i, int64_t times, const struct happening *x)
{
    for (i++; i < h->n; i++) {
        struct happening y = h->v[i];
        y.at_ns *= times;
        if (y.at_ns > x->at_ns + rounding(x->at_ns)) {
            return false;
        }
        if (same_but_instant(&y, x) && y.at_ns >= x->at_ns - rounding(x->at_ns)) {
            return true;
        }
    }
    return false;
}

/* Two events so close together that they happen in the other order in b. All that follows may be
 * another then: a kernel ends before a request to stop, or after it. */
static bool swapped(const struct history *a, size_t i, const struct history *b, size_t j)
{
    if (i >= a->n || j >= b->n) {
        return false;
    }
    struct happening y = a->v[i];
    y.at_ns *= 2;
    return comes_after(b, j, 1, &y) && comes_after(a, i, 2, &b->v[j]);
}

const char *history_later(const struct history *a, const struct history *b, char *buf, size_t size)
{
    for (size_t i = 0; i < a->n; i++) {
        bool found = a->v[i].kind != FINISHED;
        for (size_t j = 0; j < b->n && !found; j++) {
            found = b->v[j].kind == FINISHED && b->v[j].who == a->v[i].who &&
                    b->v[j].at_ns <= a->v[i].at_ns;
        }
        if (!found) {
            (void)snprintf(buf, size, "request %u ended at %lld ns, now later or never",
                           a->v[i].who, (long long)a->v[i].at_ns);
            return buf;
        }
    }
    return NULL;
}

bool history_turns(const struct history *a, const struct history *b, const struct difference *d)
{
    for (size_t i = 0; i <= d->at && (i < a->n || i < b->n); i++) {
        if (i >= a->n || i >= b->n || !same_but_instant(&a->v[i], &b->v[i])) {
            return true;
        }
    }
    /* It was by_ns at twice the time. */
    return d->at < a->n && llabs(a->v[d->at].at_ns - b->v[d->at].at_ns) >= d->by_ns / 4;
}

bool history_rests(const struct history *h, int64_t at_ns)
{
    size_t live = 0;
    for (size_t i = 0; i < h->n && h->v[i].at_ns < at_ns; i++) {
        live += h->v[i].kind == ARRIVED ? 1 : 0;
        live -= h->v[i].kind == FINISHED || h->v[i].kind == SHED ? 1 : 0;
    }
    return live == 0;
}

const char *history_differs(const struct history *a, const struct history *b,
                            const struct expected *x, char *buf, size_t size, struct difference *d)
{
    static const char *const kinds[] = {"arrived", "tokens", "finished", "shed",
                                        "started", "ended",  "resident", "kernel"};
    size_t i = first_at(a, x->begin_ns);
    size_t j = first_at(b, x->begin_ns + x->shift_ns);
    int64_t drift_ns = 0;
    for (;; i++, j++) {
        bool more_a = i < a->n && a->v[i].at_ns < x->end_ns;
        bool more_b = j < b->n && b->v[j].at_ns < x->end_ns + x->shift_ns;
        if (!more_a && !more_b) {
            return NULL;
        }
        struct happening y = more_a ? as_expected(&a->v[i], x) : (struct happening){0};
        if (more_a && more_b && alike(&y, &b->v[j], x)) {
            drift_ns = llabs(y.at_ns - b->v[j].at_ns);
            continue;
        }
        if (!more_b && x->ends_sooner && y.kind == RESIDENT) {
            continue;
        }
        if (x->twice && swapped(a, i, b, j)) {
            return NULL;
        }
        struct happening z = more_b ? b->v[j] : (struct happening){0};
        bool same = more_a && more_b && same_but_instant(&y, &z);
        *d = (struct difference){i, same ? llabs(y.at_ns - z.at_ns) : INT64_MAX, 1 + drift_ns};
        (void)snprintf(buf, size, "%s %u (%llx) at %lld ns %s; %s %u (%llx) at %lld ns %s",
                       kinds[y.kind], y.who, (unsigned long long)y.what, (long long)y.at_ns,
                       more_a ? "was expected" : "(nothing was expected)", kinds[z.kind], z.who,
                       (unsigned long long)z.what, (long long)z.at_ns,
                       more_b ? "happened" : "(nothing happened)");
        return buf;
    }
}

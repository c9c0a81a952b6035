/* vtc: virtual token counter, fair service among agents (clauses.md E.14). Every client has a
 * counter of the service it got. Counters order admission only. While there is room, the earliest
 * request of the client with the smallest counter joins the batch. Its client is charged w_in for
 * every uncached prompt token at admission, and w_out for every output token. A running request
 * stays until its end, ahead of all waiting ones, regardless of counters; with rt_first and blind
 * also regardless of class. A client that had nothing queued is lifted to the smallest counter of
 * the others, so that idling earns no credit. With reactive_weight=4 reactive service
 * counts 1/4, a soft priority.
 *
 * Deviations: memory is not reserved for the whole answer at admission as in the source. So a
 * running request may lose its KV to an earlier one, or find no memory for its first pass. It
 * queues again, and is not charged twice; with KV it stays in the batch. Between two clients with
 * equal counters, the one whose request arrived first is served; in the authors' VTC-artifact it is
 * the client that was seen first. A first token is charged like every other, as the paper defines
 * service; the artifact does not charge it. A client that comes when no request waits is not
 * lifted, as in the artifact. */
#include "policies/common/iter.h"
#include "sim/base/map.h"

enum { VTC_W_IN = ITER_PARAM_COUNT, VTC_W_OUT, VTC_WEIGHT, VTC_LIFT };

static const struct policy_param params[] = {
    ITER_PARAMS,
    [VTC_W_IN] = POLICY_NUMBER("w_in", 1, 0, 1e6, "charge per prompt token, at admission (E.14)"),
    [VTC_W_OUT] = POLICY_NUMBER("w_out", 2, 0, 1e6, "charge per output token (E.14)"),
    [VTC_WEIGHT] = POLICY_NUMBER("reactive_weight", 1, 1e-6, 1e6,
                                 "weight of reactive service; 1: plain VTC, 4: weighted (E.14)"),
    [VTC_LIFT] = POLICY_BOOL("lift", true, "0: least counter first without lift (LCF)"),
    {.name = NULL},
};

struct account {
    double service;
    struct reqq *waiting; /* a queue for each model and class */
};

struct vtc {
    struct iter iter;
    struct map clients; /* struct account *, owned; requests point to them */
    /* Waiting requests by a lower bound of their client's counter, which is updated on use. */
    struct order waiting;
    uint64_t admissions;
};

struct vtc_request {
    struct iter_request iter;
    struct order_node waits; /* key: service of the client */
    struct account *client;  /* NULL: not seen yet */
    uint64_t admitted;       /* from 1, in order of admission; 0: queued */
    bool charged;            /* its prompt was charged */
    uint32_t paid_tokens;    /* output tokens charged so far */
};

/* Only the first waiting request of a client and model has the client's counter as its key. Its
 * others are behind all requests until it is taken, so that a charge changes one key. */
#define VTC_NOT_FIRST 1e14
/* Before all counters. */
#define VTC_RUNNING (-1e14)

static struct vtc_request *of(const struct request *r)
{
    return r->own;
}

static struct reqq *mates(const struct request *r)
{
    return &of(r)->client->waiting[r->model * REQUEST_CLASS_COUNT + r->cls];
}

/* Queues r in arrival order, from the head, because a returning request is near it. */
static void join(struct sched *s, const struct request *r)
{
    struct vtc *v = s->state;
    struct reqq *q = mates(r);
    const struct request *at = q->tail;
    if (at != NULL && request_before(r, at)) {
        at = NULL;
        for (const struct request *x = q->head; request_before(x, r); x = reqq_next(x)) {
            at = x;
        }
    }
    reqq_insert_after(q, at, r);
    of(r)->admitted = 0;
    order_add(&v->waiting, r, of(r)->client->service);
}

/* The smallest counter of clients with waiting requests; -1 if there are none. */
static double least_service(struct vtc *v)
{
    const struct request *r;
    while ((r = order_first(&v->waiting)) != NULL) {
        double service = of(r)->client->service;
        if (of(r)->waits.key >= service) {
            return service;
        }
        order_rekey(&v->waiting, r, service);
    }
    return -1.0;
}

static void arrive(struct sched *s, const struct request *r)
{
    struct vtc *v = s->state;
    struct account **client = map_add(&v->clients, r->client_id);
    if (*client == NULL) {
        *client = xcalloc(1, sizeof **client);
        (*client)->waiting =
            xcalloc((size_t)s->n_models * REQUEST_CLASS_COUNT, sizeof *(*client)->waiting);
    }
    /* Before this request is queued, so that the client's own counter does not count. */
    double least = least_service(v);
    if (param_bool(s, VTC_LIFT) && least > (*client)->service) {
        (*client)->service = least;
    }
    of(r)->client = *client;
}

static double vtc_key(struct sched *s, const struct request *r)
{
    struct vtc_request *own = of(r);
    if (own->client == NULL) {
        arrive(s, r);
    }
    /* A request with neither KV nor a pass was evicted from the batch, and queues again. */
    if (own->admitted > 0 && (r->kv_tokens > 0 || r->pass != NULL)) {
        /* Also before waiting reactive requests, unless the class rule forbids it. */
        bool orders = param_int(s, ITER_CLASS) == ITER_RT_FIRST;
        bool behind = orders && r->cls == REQUEST_CLASS_PROACTIVE;
        return VTC_RUNNING - (behind ? ITER_CLASS_STEP : 0.0) + (double)own->admitted;
    }
    if (reqq_of(r) == NULL) {
        join(s, r);
    }
    return mates(r)->head == r ? own->client->service : VTC_NOT_FIRST;
}

static void charge(struct sched *s, const struct request *r, double service)
{
    double weight = r->cls == REQUEST_CLASS_REACTIVE ? param_number(s, VTC_WEIGHT) : 1.0;
    of(r)->client->service += service / weight;
}

static void unqueue(struct sched *s, const struct request *r)
{
    struct vtc *v = s->state;
    reqq_remove(r);
    order_remove(&v->waiting, r);
    if (!reqq_empty(mates(r))) {
        /* The client's next request gets its counter as key. */
        iter_rekey(s, mates(r)->head);
    }
}

static void vtc_taken(struct sched *s, const struct request *r)
{
    struct vtc *v = s->state;
    struct vtc_request *own = of(r);
    if (own->admitted > 0) {
        return;
    }
    own->admitted = ++v->admissions;
    if (!own->charged) {
        own->charged = true;
        /* At admission, not in service: otherwise one client could fill the batch before its
         * counter grows. */
        charge(s, r, param_number(s, VTC_W_IN) * request_prefill_left(r));
    }
    unqueue(s, r);
}

static void vtc_served(struct sched *s, const struct request *r, const struct segment *seg UNUSED,
                       int64_t elapsed_ns UNUSED)
{
    struct vtc_request *own = of(r);
    /* All tokens since the last call, which may be several iterations (sched_steady). One by one,
     * so that the sum of doubles does not depend on the grouping. */
    for (; own->paid_tokens < r->generated_tokens; own->paid_tokens++) {
        charge(s, r, param_number(s, VTC_W_OUT));
    }
}

static void vtc_left(struct sched *s, const struct request *r)
{
    if (reqq_of(r) != NULL) {
        unqueue(s, r);
    }
}

static const struct iter_order order = {
    .key = vtc_key, .served = vtc_served, .taken = vtc_taken, .left = vtc_left, .steady = true};

static int vtc_init(struct sched *s)
{
    struct vtc *v = s->state;
    v->waiting.at = offsetof(struct vtc_request, waits);
    return iter_init(s, &order);
}

static void vtc_exit(struct sched *s)
{
    struct vtc *v = s->state;
    uint32_t at = 0;
    uint64_t id;
    for (struct account **x; (x = map_next(&v->clients, &at, &id)) != NULL;) {
        free((*x)->waiting);
        free(*x);
    }
    map_fini(&v->clients);
    iter_exit(s);
}

static const char *const ablations[] = {"lift=false", NULL};

const struct policy_ops policy_vtc_ops = {
    .name = "vtc",
    .summary = "virtual token counter, plain or weighted (VTC, OSDI'24)",
    .contract = POLICY_CONTRACT,
    .state_size_bytes = sizeof(struct vtc),
    .request_state_size_bytes = sizeof(struct vtc_request),
    .params = params,
    .ablations = ablations,
    .init = vtc_init,
    ITER_HOOKS_BUT_EXIT,
    .exit = vtc_exit,
};

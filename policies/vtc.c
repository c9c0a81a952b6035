/* vtc: virtual token counter, fair service among agents (policies.md E.14). Every client has a
 * counter of the service it got; the client with the smallest goes first. A client that had nothing
 * queued is lifted to the smallest counter of those who had, so idling earns no credit. Weighted:
 * reactive service counts 1/4, a soft priority. */
#include "policies/common/accounts.h"
#include "policies/common/iter.h"

enum { VTC_W_IN = ITER_PARAM_COUNT, VTC_W_OUT, VTC_WEIGHT, VTC_LIFT };

static const struct policy_param params[] = {
    ITER_PARAMS,
    [VTC_W_IN] = {"w_in", PARAM_NUMBER, 1, 0, 1e6, NULL, "charge per prompt token (E.14)"},
    [VTC_W_OUT] = {"w_out", PARAM_NUMBER, 2, 0, 1e6, NULL, "charge per output token (E.14)"},
    [VTC_WEIGHT] = {"reactive_weight", PARAM_NUMBER, 1, 1e-6, 1e6, NULL,
                    "weight of reactive service; 1: plain VTC, 4: weighted (E.14)"},
    [VTC_LIFT] = {"lift", PARAM_BOOL, 1, 0, 1, NULL, "0: least counter first without lift (LCF)"},
    {.name = NULL},
};

struct vtc {
    struct iter iter;
    struct accounts clients;
};

struct vtc_request {
    struct iter_request iter;
    struct account *client; /* NULL: not seen yet */
};

/* Of those of a client that wait, only the first has the client's counter as its key: the others
 * are behind everybody until it is taken, so that a charge moves one key. */
#define VTC_NOT_FIRST 1e14

static struct reqq *mates(const struct request *r)
{
    const struct vtc_request *own = r->slot->data;
    return &own->client->waiting[r->cls];
}

/* In order of arrival. Who returns from an iteration is near the head. */
static void join(struct reqq *q, const struct request *r)
{
    const struct request *at = q->tail;
    if (at != NULL && request_before(r, at)) {
        at = NULL;
        for (const struct request *x = q->head; request_before(x, r); x = reqq_next(x)) {
            at = x;
        }
    }
    reqq_insert_after(q, at, r);
}

static void enter(struct sched *s, struct vtc_request *own, uint32_t client)
{
    struct vtc *v = s->state;
    own->client = accounts_get(&v->clients, client);
    double least = own->client->live == 0 ? accounts_least(&v->clients) : -1.0;
    if (param_bool(s, VTC_LIFT) && least > own->client->service) {
        own->client->service = least;
    }
    accounts_enter(&v->clients, own->client);
}

static double vtc_key(struct sched *s, const struct request *r)
{
    struct vtc_request *own = r->slot->data;
    if (own->client == NULL) {
        enter(s, own, r->client_id);
    }
    if (r->slot->queue == NULL) {
        join(mates(r), r);
    }
    return mates(r)->head == r ? own->client->service : VTC_NOT_FIRST;
}

static void vtc_taken(struct sched *s, const struct request *r)
{
    reqq_remove(r);
    if (!reqq_empty(mates(r))) {
        iter_rekey(s, mates(r)->head);
    }
}

static void vtc_served(struct sched *s, const struct request *r, const struct segment *seg,
                       int64_t elapsed_ns)
{
    const struct vtc_request *own = r->slot->data;
    (void)elapsed_ns;
    double weight = r->cls == REQUEST_CLASS_REACTIVE ? param_number(s, VTC_WEIGHT) : 1.0;
    double in = seg->role == SEGMENT_PREFILL ? seg->n_tokens : 0.0;
    double out = seg->emitted_tokens;
    own->client->service +=
        (param_number(s, VTC_W_IN) * in + param_number(s, VTC_W_OUT) * out) / weight;
}

static void vtc_left(struct sched *s, const struct request *r)
{
    const struct vtc_request *own = r->slot->data;
    vtc_taken(s, r);
    own->client->live--;
}

static const struct iter_order order = {
    .key = vtc_key, .served = vtc_served, .taken = vtc_taken, .left = vtc_left};

static int vtc_init(struct sched *s)
{
    return iter_init(s, &order);
}

static void vtc_exit(struct sched *s)
{
    struct vtc *v = s->state;
    if (v != NULL) {
        accounts_fini(&v->clients);
        iter_exit(s);
    }
}

const struct policy_ops policy_vtc_ops = {
    .name = "vtc",
    .summary = "virtual token counter, plain or weighted (VTC, OSDI'24; policies.md E.14)",
    .api_version = POLICY_API_VERSION,
    .needs = CAP_SPANS | CAP_KV_EVICT,
    .state_size_bytes = sizeof(struct vtc),
    .request_state_size_bytes = sizeof(struct vtc_request),
    .params = params,
    .init = vtc_init,
    ITER_HOOKS_BUT_EXIT,
    .exit = vtc_exit,
};

/* vtc: virtual token counter, fair service among agents (policies.md E.14). Every client has a
 * counter of the service it got; the client with the smallest goes first. A client that had nothing
 * queued is lifted to the smallest counter of those who had, so idling earns no credit. Weighted:
 * reactive service counts 1/4, a soft priority. */
#include "policies/common/iter.h"
#include "policies/common/table.h"

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
    struct table clients; /* value[0]: counter; live: requests in system */
};

struct vtc_request {
    struct iter_request iter;
    bool known;
};

static double vtc_key(struct sched *s, const struct request *r)
{
    struct vtc *v = s->state;
    struct vtc_request *own = r->slot->data;
    struct table_entry *c = table_get(&v->clients, r->client_id);
    if (!own->known) {
        own->known = true;
        double least = -1.0;
        for (uint32_t i = 0; c->live == 0 && i < v->clients.cap; i++) {
            const struct table_entry *o = &v->clients.e[i];
            if (o->used && o->live > 0 && (least < 0.0 || o->value[0] < least)) {
                least = o->value[0];
            }
        }
        if (param_bool(s, VTC_LIFT) && least > c->value[0]) {
            c->value[0] = least;
        }
        c->live++;
    }
    return c->value[0];
}

static void vtc_served(struct sched *s, const struct request *r, const struct segment *seg,
                       int64_t elapsed_ns)
{
    struct vtc *v = s->state;
    (void)elapsed_ns;
    double weight = r->cls == REQUEST_CLASS_REACTIVE ? param_number(s, VTC_WEIGHT) : 1.0;
    double in = seg->role == SEGMENT_PREFILL ? seg->n_tokens : 0.0;
    double out = seg->emitted_tokens;
    table_get(&v->clients, r->client_id)->value[0] +=
        (param_number(s, VTC_W_IN) * in + param_number(s, VTC_W_OUT) * out) / weight;
}

static void vtc_left(struct sched *s, const struct request *r)
{
    struct vtc *v = s->state;
    table_get(&v->clients, r->client_id)->live--;
}

static const struct iter_order order = {.key = vtc_key, .served = vtc_served, .left = vtc_left};

static int vtc_init(struct sched *s)
{
    return iter_init(s, &order);
}

static void vtc_exit(struct sched *s)
{
    struct vtc *v = s->state;
    if (v != NULL) {
        table_fini(&v->clients);
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

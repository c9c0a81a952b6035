/* Finds what requests wait for between events, and which requests are in the way. */
#include "sim/metrics/explain_impl.h"

struct explain_live *explain_live_find(const struct explain *x, uint32_t id)
{
    return x->only == EXPLAIN_ALL || x->only == id ? map_record(&x->live, id) : NULL;
}

/* The launch that has run on a device longest, or NULL. *stopping and *has_class are over all
 * launches there.
 */
static const struct explain_launch *oldest_on(const struct explain *x, uint8_t device,
                                              bool *stopping, bool *has_class)
{
    const struct explain_launch *oldest = NULL;
    for (size_t i = 0; i < x->n_launches; i++) {
        const struct explain_launch *g = &x->launches[i];
        if (!g->running || g->device != device) {
            continue;
        }
        oldest = oldest == NULL || (g->stopping && !*stopping) ? g : oldest;
        *stopping = *stopping || g->stopping;
        for (int c = 0; c < REQUEST_CLASS_COUNT; c++) {
            has_class[c] = has_class[c] || g->has_class[c];
        }
    }
    return oldest;
}

static bool compiles_for(const struct explain *x, const struct explain_live *v)
{
    for (size_t i = 0; !v->decodes && i < x->n_pending; i++) {
        const struct resident_key *k = &x->pending[i];
        if (k->kind == RESIDENT_COMPILED_ATTENTION && k->a == v->prefill_target &&
            k->b == v->request->model) {
            return true;
        }
    }
    return false;
}

struct explain_in_way *explain_in_way_of(struct explain_live *v, uint32_t request_id,
                                         enum request_class cls)
{
    for (size_t i = 0; i < v->n_in_way; i++) {
        if (v->in_way[i].request_id == request_id) {
            return &v->in_way[i];
        }
    }
    v->in_way = xgrow(v->in_way, v->n_in_way, sizeof *v->in_way);
    v->in_way[v->n_in_way] = (struct explain_in_way){.request_id = request_id, .cls = cls};
    return &v->in_way[v->n_in_way++];
}

/* Whether the policy could have served it, although its device runs something else. */
static bool held_back(const struct explain *x, const struct explain_live *v, uint8_t device)
{
    if (v->decodes) {
        return v->left_out;
    }
    uint32_t idle = x->prompt_devices & ~(1u << device);
    for (size_t i = 0; i < x->n_launches; i++) {
        idle &= x->launches[i].running ? ~(1u << x->launches[i].device) : ~0u;
    }
    return idle != 0;
}

/* Adds dt of waiting, as if for this device. The order of causes is that of the header. */
static void wait_more(const struct explain *x, struct explain_live *v, uint8_t device, int64_t dt)
{
    bool stopping = false;
    bool has_class[REQUEST_CLASS_COUNT] = {false};
    const struct explain_launch *g = oldest_on(x, device, &stopping, has_class);
    enum explain_cause cause = EXPLAIN_HELD;
    if (v->evicted || v->swapped) {
        cause = EXPLAIN_EVICTION;
    } else if (compiles_for(x, v)) {
        cause = EXPLAIN_COMPILE;
    } else if (x->loading > 0 && (v->in_pass || g == NULL)) {
        cause = EXPLAIN_GRAPH_LOAD;
    } else if (g != NULL) {
        struct explain_in_way *w = explain_in_way_of(v, g->first_request, g->first_class);
        *(stopping ? &w->tail_ns[device] : &w->queue_ns[device]) += dt;
        cause = stopping                     ? EXPLAIN_KERNEL_TAIL
                : held_back(x, v, device)    ? EXPLAIN_HELD_BACK
                : v->decodes && !v->in_pass  ? EXPLAIN_BATCHING
                : has_class[v->request->cls] ? EXPLAIN_QUEUE_SAME
                                             : EXPLAIN_QUEUE_OTHER;
    } else if (x->frame_since_ns[device] != TIME_NEVER_NS) {
        cause = EXPLAIN_GRAPHICS;
    } else if (x->sampling > 0) {
        cause = EXPLAIN_HOST;
    }
    SIM_ASSERT(dt > 0);
    v->wait[device].ns[cause] += dt;
}

void explain_look_at(struct explain_live *v)
{
    const struct request *r = v->request;
    v->in_pass = r->pass != NULL;
    v->decodes = r->state == REQUEST_STATE_DECODE;
    v->left_out = v->left_out && !v->in_pass;
    v->prefill_target = request_prefill_target(r);
    /* A swap out increments preemptions at its start, and counts until the request is in a pass
     * again. */
    v->swapped = !v->in_pass && (r->kv_swapped || r->preemptions != v->preemptions);
    if (v->in_pass) {
        v->preemptions = r->preemptions;
    }
}

void explain_advance(struct explain *x, int64_t now_ns)
{
    uint32_t at = 0;
    uint64_t id = 0;
    for (struct explain_live *v; (v = map_next(&x->live, &at, &id)) != NULL;) {
        int64_t dt = now_ns - v->since_ns;
        SIM_ASSERT(dt >= 0);
        if (!v->served && dt > 0) {
            if (v->sampled) {
                v->ns[EXPLAIN_HOST] += dt;
            } else {
                for (uint8_t d = 0; d < x->machine->n_devices; d++) {
                    wait_more(x, v, d, dt);
                }
            }
            v->since_ns = now_ns;
        }
        explain_look_at(v);
    }
}

void explain_wait_settle(struct explain_live *v, uint8_t device)
{
    for (int c = 0; c < EXPLAIN_CAUSE_COUNT; c++) {
        v->ns[c] += v->wait[device].ns[c];
    }
    memset(v->wait, 0, sizeof v->wait);
    for (size_t i = 0; i < v->n_in_way; i++) {
        struct explain_in_way *w = &v->in_way[i];
        w->tail_sum_ns += w->tail_ns[device];
        w->queue_sum_ns += w->queue_ns[device];
        memset(w->tail_ns, 0, sizeof w->tail_ns);
        memset(w->queue_ns, 0, sizeof w->queue_ns);
    }
}

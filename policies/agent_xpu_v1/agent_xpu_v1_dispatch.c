/* agent-xpu-v1 runs reactive kernels first (A.5 to A.7, A.9, A.10), then the proactive work that is
 * due, prefill before decode, then backfill of idle devices; each launch passes Algorithm 1. */
#include "policies/agent_xpu_v1/agent_xpu_v1.h"

/* ---- kernels ---- */

static void annotate(const struct sched *s, const struct v1 *v, int device,
                     const struct estimate *e, struct v1_kernel *k)
{
    k->t_ns = e->t_ns;
    k->bytes_per_s = e->bytes_per_s;
    k->memory_bound = e->memory_bound;
    double flop_per_s = e->bytes_per_s * e->flop_per_byte;
    /* A machine without powers orders by speed alone. */
    k->flop_per_joule = e->watts > 0.0 ? flop_per_s / e->watts : flop_per_s;
    /* A compute-bound kernel complements a memory-bound one that runs on the other device. The
     * reverse holds only while the pair stays below tau_high (A.7 ii). */
    const struct v1_active *other = &v->active[device == v->npu ? v->igpu : v->npu];
    double pair = v1_pressure(s, v) + e->bytes_per_s / s->machine->ddr_peak_bytes_per_s;
    k->complementary = other->launch != NULL && other->memory_bound != e->memory_bound &&
                       (!e->memory_bound || pair <= param_number(s, V1_TAU_HIGH));
}

/* The waiting share of a prefill's op on a device; false if there is none. */
static bool prefill_kernel(struct sched *s, struct v1 *v, const struct request *r, int device,
                           struct v1_kernel *k)
{
    struct v1_context *c = v1_context(r);
    v1_place(s, v, r);
    bool npu = device == v->npu;
    uint32_t rows = npu ? c->h.npu_rows : c->h.igpu_rows;
    if (rows == 0 || (npu ? c->h.on_npu : c->h.on_igpu) != NULL) {
        return false;
    }
    /* The cost of a context switch is due when a stopped prefill continues. Stopping is free,
     * because its state is in DDR already (6.2). */
    if (c->stopped) {
        c->stopped = false;
        c->not_before_ns = s->now_ns + units_ns_from_us(param_number(s, V1_CTX_SWITCH_US));
    }
    if (s->now_ns < c->not_before_ns) {
        v1_wake_at(s, v, c->not_before_ns);
        return false;
    }
    const struct pass *p = c->h.pass;
    struct estimate e = cost_estimate(s, &p->shape, pass_op_kind(p, p->op), device, rows);
    /* A promoted prefill ranks as reactive. Otherwise the pressure of the co-running reactive
     * prefill would hold it back, and its promotion would mean nothing. Algorithm 1 may have
     * refused this op before its rows were planned again; it keeps the place in the order from
     * then. */
    *k = (struct v1_kernel){.request = r,
                            .on_npu = npu,
                            .reactive = v1_reactive(r) || r == v->aged,
                            .consumer = v->last_pass[device] == p->id,
                            .rows = rows,
                            .ready_ns =
                                c->refused_ns < c->h.ready_ns ? c->refused_ns : c->h.ready_ns,
                            .path_ns = v1_etc_ns(s, v, r)};
    annotate(s, v, device, &e, k);
    return true;
}

/* The next n_ops ops of an iteration, or the remaining ones if fewer. */
static struct v1_kernel decode_span(struct sched *s, const struct v1 *v,
                                    const struct v1_iteration *it, uint32_t n_ops)
{
    uint32_t left = it->n_ops - it->op;
    struct estimate e;
    v1_decode_estimate(s, v, it, n_ops, &e);
    struct v1_kernel k = {.reactive = v1_reactive_decodes(v), .n_ops = n_ops < left ? n_ops : left};
    annotate(s, v, v->igpu, &e, &k);
    return k;
}

/* The rest of the iteration; false without decodes. */
static bool decode_kernel(struct sched *s, struct v1 *v, struct v1_kernel *k)
{
    struct v1_iteration it;
    if (!v1_decode_next(s, v, &it)) {
        return false;
    }
    *k = decode_span(s, v, &it, V1_TO_END);
    return true;
}

/* Launches a kernel if Algorithm 1 admits it. */
static bool try_launch(struct sched *s, struct v1 *v, const struct v1_kernel *k)
{
    int device = k->on_npu ? v->npu : v->igpu;
    struct v1_context *c = k->request == NULL ? NULL : v1_context(k->request);
    int64_t *refused = c == NULL ? &v->decode_refused_ns : &c->refused_ns;
    /* One launch per device, even if it could queue more: a kernel is bound to a device as late as
     * possible (A.9), and a reactive arrival waits only for the running one. */
    if (!v1_is_idle(v, device) || sched_device_free_slots(s, (uint8_t)device) == 0 ||
        !v1_admit(s, v, k, refused)) {
        return false;
    }
    const struct launch *l = NULL;
    if (c == NULL) {
        if (v->decode == NULL && !v1_decode_form(s, v)) {
            return false; /* the next call handles the batch that was formed instead */
        }
        struct launch_spec spec = sched_launch_rest(s, v->decode, (uint8_t)device, YIELD_KERNEL);
        spec.n_ops = k->n_ops;
        (void)sched_launch(s, &spec, &l);
    } else if (hetero_launch(s, &c->h, device, k->on_npu, k->rows, YIELD_KERNEL)) {
        l = k->on_npu ? c->h.on_npu : c->h.on_igpu;
    }
    if (l == NULL) {
        return false;
    }
    /* A launch that begins during a reactive prefill was cut to its window; end_in_time stops
     * others. */
    v->active[device] = (struct v1_active){.launch = l,
                                           .request = k->request,
                                           .reactive = k->reactive,
                                           .memory_bound = k->memory_bound,
                                           .fitted = v->rt != NULL,
                                           .bytes_per_s = k->bytes_per_s,
                                           .t_ns = k->t_ns};
    return true;
}

/* ---- reactive work ---- */

static void checkpoint(struct sched *s, const struct v1 *v, int device)
{
    const struct launch *l = v->active[device].launch;
    if (l != NULL && !l->stop_requested && param_bool(s, V1_PREEMPT)) {
        (void)sched_preempt(s, l, (struct preempt_spec){0});
    }
}

/* Stops all proactive work if memory pressure refused a reactive kernel. It does nothing for a
 * kernel that would be refused on an idle machine, too, because that would waste work repeatedly.
 */
static void make_way(struct sched *s, const struct v1 *v, const struct v1_kernel *k)
{
    if (!v1_admits_alone(s, k)) {
        return;
    }
    for (uint32_t d = 0; d < s->machine->n_devices; d++) {
        if (!v->active[d].reactive) {
            checkpoint(s, v, (int)d);
        }
    }
}

/* Stops proactive work that began before the reactive prefill, and would still run when the prefill
 * needs the device. It stops at its kernel boundary; work that fits may then continue as backfill
 * (A.3, A.5). */
static void end_in_time(struct sched *s, struct v1 *v, int device)
{
    const struct v1_active *a = &v->active[device];
    if (v->rt != NULL && a->launch != NULL && !a->reactive && !a->fitted &&
        param_bool(s, V1_DURATION) && v1_busy_for_ns(s, v, device) > v1_window_ns(s, v, device)) {
        checkpoint(s, v, device);
    }
}

/* Launches the ready kernels of the reactive prefill. Other work that occupies their device stops
 * at its next kernel boundary (A.3). */
static void dispatch_reactive(struct sched *s, struct v1 *v)
{
    const int devices[] = {v->npu, v->igpu};
    for (int i = 0; i < 2 && v->rt != NULL; i++) {
        struct v1_kernel k;
        if (!prefill_kernel(s, v, v->rt, devices[i], &k)) {
            continue;
        }
        if (!v1_is_idle(v, devices[i])) {
            checkpoint(s, v, devices[i]);
        } else if (!try_launch(s, v, &k)) {
            make_way(s, v, &k);
        }
    }
    /* After the launches, because the window of a device depends on the work that the other one has
     * just begun. */
    end_in_time(s, v, v->npu);
    end_in_time(s, v, v->igpu);
}

static bool reactive_wants_igpu(const struct v1 *v)
{
    return v->rt != NULL && v1_context(v->rt)->h.igpu_rows > 0;
}

/* Affinity `boundary`: between two reactive iterations one proactive kernel of bounded length may
 * use the iGPU. The text allows none, so that a proactive prefill stalls at its first attention. */
static bool fill_gap(struct sched *s, struct v1 *v)
{
    bool boundary = v->decode == NULL || v->decode->op == 0;
    if (param_int(s, V1_AFFINITY) != V1_AFFINITY_BOUNDARY || v->gap_used || !boundary) {
        return false;
    }
    int64_t most = units_ns_from_ms(param_number(s, V1_GAP_MS));
    struct v1_kernel k;
    for (const struct request *r = v->contexts.head; r != NULL; r = reqq_next(r)) {
        if (prefill_kernel(s, v, r, v->igpu, &k) && k.t_ns <= most && try_launch(s, v, &k)) {
            v->gap_used = true;
            return true;
        }
    }
    return false;
}

static void dispatch_reactive_decode(struct sched *s, struct v1 *v)
{
    struct v1_kernel k;
    if (!v1_reactive_decodes(v) || !v1_is_idle(v, v->igpu) || reactive_wants_igpu(v) ||
        fill_gap(s, v) || !decode_kernel(s, v, &k)) {
        return;
    }
    if (!try_launch(s, v, &k)) {
        make_way(s, v, &k);
    }
}

/* ---- proactive work that is due: the primary prefill and its own decode batch ---- */

/* A proactive iteration lets the primary prefill onto the iGPU at its next kernel boundary (A.10),
 * unless Algorithm 1 would refuse that one even then. */
static void decode_makes_way(struct sched *s, struct v1 *v)
{
    const struct v1_active *a = &v->active[v->igpu];
    bool proactive_decode = a->launch != NULL && a->request == NULL && !a->reactive;
    struct v1_kernel k;
    if (proactive_decode && !a->launch->stop_requested && v->primary != NULL &&
        param_int(s, V1_YIELD) == V1_YIELD_KERNEL &&
        prefill_kernel(s, v, v->primary, v->igpu, &k) && v1_admits_instead(s, v, &k, v->igpu)) {
        (void)sched_preempt(s, a->launch, (struct preempt_spec){0});
    }
}

/* Without reactive work throughput is the only objective (8.2). The primary prefill goes before a
 * decode iteration, because prefilled requests join the decode batch, which reads the weights once
 * for all (6.2). */
static void dispatch_due(struct sched *s, struct v1 *v)
{
    struct v1_kernel k[2];
    uint32_t n = 0;
    if (v->primary != NULL && prefill_kernel(s, v, v->primary, v->npu, &k[n])) {
        n++;
    }
    /* Balancing may move the rows of the NPU's candidate, but only while the NPU is busy, when that
     * candidate cannot start anyway. */
    bool igpu_open = v1_window_ns(s, v, v->igpu) > 0 && v1_is_idle(v, v->igpu);
    if (igpu_open && v->primary != NULL) {
        v1_balance(s, v, v->primary);
        n += prefill_kernel(s, v, v->primary, v->igpu, &k[n]) ? 1 : 0;
    }
    /* First come, first served, which matters for Algorithm 1. A refused kernel does not block the
     * other one. */
    uint32_t first = n == 2 && k[1].ready_ns < k[0].ready_ns ? 1 : 0;
    for (uint32_t i = 0; i < n; i++) {
        (void)try_launch(s, v, &k[i == 0 ? first : 1 - first]);
    }
    struct v1_kernel decode;
    if (igpu_open && !v1_reactive_decodes(v) && v1_is_idle(v, v->igpu) &&
        decode_kernel(s, v, &decode)) {
        (void)try_launch(s, v, &decode);
    }
    decode_makes_way(s, v);
}

/* A.8: an aged proactive prefill gets the iGPU, except for the attention of the reactive one. */
static void dispatch_aged(struct sched *s, struct v1 *v)
{
    struct v1_kernel k;
    if (v->aged == NULL || reactive_wants_igpu(v) || !v1_is_idle(v, v->igpu)) {
        return;
    }
    struct hetero *h = &v1_context(v->aged)->h;
    if (h->on_igpu == NULL) { /* planned for the NPU before it was aged */
        h->igpu_rows += h->npu_rows;
        h->npu_rows = 0;
    }
    if (prefill_kernel(s, v, v->aged, v->igpu, &k)) {
        (void)try_launch(s, v, &k);
    }
}

/* ---- backfill ---- */

/* A.7 (i), (ii), then A.5: the most work per joule; ties by the parameter, arrival, id. */
static bool goes_before(const struct sched *s, const struct v1_kernel *x, const struct v1_kernel *y)
{
    if (param_bool(s, V1_REORDER)) {
        if (x->consumer != y->consumer) {
            return x->consumer;
        }
        if (x->complementary != y->complementary) {
            return x->complementary;
        }
    }
    if (param_bool(s, V1_ENERGY_ORDER) && x->flop_per_joule != y->flop_per_joule) {
        return x->flop_per_joule > y->flop_per_joule;
    }
    if (x->path_ns != y->path_ns) {
        bool longest = param_int(s, V1_TIE) == V1_TIE_LONGEST;
        return longest ? x->path_ns > y->path_ns : x->path_ns < y->path_ns;
    }
    return request_before(x->request, y->request);
}

/* Cuts a candidate to the window (A.5, duration): static chunks on the NPU can be cut, an iGPU
 * kernel cannot. False if nothing fits. */
static bool fit_window(struct sched *s, const struct v1 *v, struct v1_kernel *k, int64_t window_ns)
{
    if (k->t_ns <= window_ns || !param_bool(s, V1_DURATION)) {
        return window_ns > 0;
    }
    /* Assumes that chunks take equally long. A cut kernel is annotated again before it is compared.
     */
    uint32_t chunks = (k->rows + v->chunk - 1) / v->chunk;
    uint32_t fit = (uint32_t)(window_ns / (k->t_ns / chunks > 0 ? k->t_ns / chunks : 1));
    if (!k->on_npu || fit == 0) {
        return false;
    }
    const struct pass *p = v1_context(k->request)->h.pass;
    k->rows = fit * v->chunk < k->rows ? fit * v->chunk : k->rows;
    struct estimate e = cost_estimate(s, &p->shape, pass_op_kind(p, p->op), v->npu, k->rows);
    annotate(s, v, v->npu, &e, k);
    return k->t_ns <= window_ns;
}

/* Started prefills whose next share waits for this device, in the order of goes_before. */
static bool backfill_context(struct sched *s, struct v1 *v, int device, int64_t window_ns)
{
    /* A refused launch does not change the order, so the next candidate is the best one behind it.
     * So no list needs to be sorted at every kernel end. */
    struct v1_kernel last = {0};
    for (;;) {
        struct v1_kernel best = {0};
        for (const struct request *r = v->contexts.head; r != NULL; r = reqq_next(r)) {
            struct v1_kernel k;
            if (r == v->primary || r == v->aged) {
                continue;
            }
            v1_place(s, v, r);
            if (device == v->igpu) {
                v1_balance(s, v, r);
            }
            if (!prefill_kernel(s, v, r, device, &k) || !fit_window(s, v, &k, window_ns) ||
                (last.request != NULL && !goes_before(s, &last, &k))) {
                continue; /* no kernel, it does not fit, or tried already */
            }
            if (best.request == NULL || goes_before(s, &k, &best)) {
                best = k;
            }
        }
        if (best.request == NULL) {
            return false;
        }
        if (try_launch(s, v, &best)) {
            return true;
        }
        last = best;
    }
}

/* A fresh prefill whose first kernel runs on this device: the smallest ETC, for the NPU the first
 * with a whole chunk. */
static bool backfill_fresh(struct sched *s, struct v1 *v, int device, int64_t window_ns)
{
    const struct request *r = v1_shortest_fresh(s, v);
    /* A prompt below one chunk has no kernel for the NPU: under the default mapping its margin,
     * which is all of it, runs on the iGPU (A.1). */
    if (r != NULL && device == v->npu && request_prefill_left(r) < v->chunk) {
        /* Requests that found a cached prefix may have less than a chunk left. */
        r = order_first(&v->whole_chunk);
        while (r != NULL && request_prefill_left(r) < v->chunk) {
            r = order_next(&v->whole_chunk, r);
        }
    }
    /* A prompt of at least a chunk begins on the NPU, so it is no candidate for an idle iGPU. If
     * its first kernel does not fit, the prefill has begun nevertheless, and continues as a
     * context. */
    bool whole_chunk = r != NULL && request_prefill_left(r) >= v->chunk;
    if (r == NULL || whole_chunk != (device == v->npu) ||
        v->contexts.n >= (uint32_t)param_int(s, V1_CONTEXTS) || !v1_prefill_start(s, v, r)) {
        return false;
    }
    struct v1_kernel k;
    return prefill_kernel(s, v, r, device, &k) && fit_window(s, v, &k, window_ns) &&
           try_launch(s, v, &k);
}

/* Launches proactive decode during a reactive prefill: as many ops as end inside its window. */
static bool backfill_decode(struct sched *s, struct v1 *v, int64_t window_ns)
{
    struct v1_iteration it;
    if (v->rt == NULL || v1_reactive_decodes(v) || !v1_decode_next(s, v, &it)) {
        return false;
    }
    struct v1_kernel k = decode_span(s, v, &it, V1_TO_END);
    if (k.t_ns > window_ns && param_bool(s, V1_DURATION)) {
        struct estimate layer;
        v1_decode_estimate(s, v, &it, it.per_layer, &layer);
        /* Counted in layers, which have an annotation. The first may have begun, and the head may
         * not fit. */
        int64_t layers = layer.t_ns > 0 ? window_ns / layer.t_ns : 0;
        int64_t ops = layers * it.per_layer - (layers > 0 ? it.op % it.per_layer : 0);
        uint32_t body = it.n_ops - it.op - 1;
        uint32_t n = ops < body ? (uint32_t)ops : body;
        if (n == 0) {
            return false;
        }
        k = decode_span(s, v, &it, n);
        if (k.t_ns > window_ns) {
            return false;
        }
    }
    return window_ns > 0 && try_launch(s, v, &k);
}

static void dispatch_backfill(struct sched *s, struct v1 *v)
{
    const int devices[] = {v->npu, v->igpu};
    for (int i = 0; i < 2 && param_bool(s, V1_INTER); i++) {
        int64_t window = v1_is_idle(v, devices[i]) ? v1_window_ns(s, v, devices[i]) : 0;
        if (window <= 0) {
            continue;
        }
        /* Work in progress goes before fresh work, because its KV is freed only at its end. */
        bool filled = backfill_context(s, v, devices[i], window) ||
                      (devices[i] == v->igpu && backfill_decode(s, v, window)) ||
                      backfill_fresh(s, v, devices[i], window);
        if (filled) {
            (void)sched_note(s, "backfilled", 1);
        }
    }
}

void v1_dispatch(struct sched *s, struct v1 *v)
{
    /* The paper has one reactive request at a time (A.0), whose prefill and decode never meet. If
     * traces have more, prefill goes first. */
    dispatch_reactive(s, v);
    dispatch_reactive_decode(s, v);
    if (v->rt == NULL) {
        dispatch_due(s, v);
    } else {
        dispatch_aged(s, v);
    }
    dispatch_backfill(s, v);
}

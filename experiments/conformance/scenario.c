#include "experiments/conformance/scenario.h"

#include "policies/params.h"
#include "sim/base/clock.h"

static void toy_kernel(const struct hwmodel *m, const struct kernel_query *q,
                       struct kernel_cost *out)
{
    const struct scenario *sc = m->params;
    const struct toy_cost *c = &sc->cost[q->device][q->op];
    double ms = c->fixed_ms + c->per_row_ms * q->padded_rows;
    if (q->op == OP_MHA || q->op == OP_LAYER) {
        ms += sc->attention_ms_per_pair[q->device] * (double)q->shape->attn_pairs;
    }
    ms *= q->columns > 0 ? (double)q->columns / LAUNCH_COLUMNS : 1.0;
    int64_t t = units_ns_from_ms(ms);
    out->t_ns = t < 1 ? 1 : t;
    out->load_ns = units_ceil((1.0 - sc->compute_only_frac) * (double)out->t_ns);
    out->bytes = c->gb_per_s * (double)out->load_ns;
    out->flop = 2.0 * out->bytes;
    out->outside = false;
}

static double toy_ridge(const struct hwmodel *m, uint8_t device UNUSED)
{
    return ((const struct scenario *)m->params)->ridge_flop_per_byte;
}

/* DDR bytes are left out, because those of toy kernels grow with time. */
static void toy_floor(const struct hwmodel *m, uint8_t device, enum op_kind op, bool one_row,
                      struct kernel_floor *out)
{
    const struct scenario *sc = m->params;
    const struct toy_cost *c = &sc->cost[device][op];
    *out = (struct kernel_floor){
        .fixed_s = c->fixed_ms * 1e-3,
        .row_s = c->per_row_ms * 1e-3,
        .rows_min = one_row ? 1.0 : 2.0,
        .bytes_per_s = c->gb_per_s > 0.0 ? c->gb_per_s * 1e9 : HUGE_VAL,
    };
    if (op == OP_MHA || op == OP_LAYER) {
        out->pair_s = sc->attention_ms_per_pair[device] * 1e-3;
    }
}

static const struct hwmodel_ops toy_ops = {
    .name = "toy", .kernel = toy_kernel, .ridge_flop_per_byte = toy_ridge, .floor = toy_floor};

static void on_first_service(void *self, int64_t now_ns, const struct request *r,
                             const struct launch *l UNUSED)
{
    struct scenario *sc = self;
    sc->records[r->id].start_ns = now_ns;
}

static void on_tokens(void *self, int64_t now_ns, const struct pass *p)
{
    struct scenario *sc = self;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        struct scenario_record *rec = &sc->records[p->segments[i].request->id];
        for (uint32_t k = 0; k < p->segments[i].emitted_tokens; k++) {
            if (rec->tokens_n < 64) {
                rec->token_ns[rec->tokens_n] = now_ns;
            }
            rec->tokens_n++;
        }
    }
}

static void on_arrived(void *self, int64_t now_ns, const struct request *r)
{
    struct scenario *sc = self;
    sc->records[r->id].arrival_ns = now_ns;
}

static void on_left(void *self, int64_t now_ns, const struct request *r)
{
    struct scenario *sc = self;
    struct scenario_record *rec = &sc->records[r->id];
    rec->first_token_ns = r->first_token_ns;
    rec->finish_ns = now_ns;
    rec->generated = r->generated_tokens;
    rec->preemptions = r->preemptions;
    rec->state = r->state;
}

static void on_kernel(void *self, const struct kernel_record *k)
{
    struct scenario *sc = self;
    if (sc->n_kernels == SCENARIO_MAX_KERNELS) {
        return;
    }
    const struct pass *p = k->launch->pass;
    sc->kernels[sc->n_kernels++] = (struct scenario_kernel){
        .pass = p->id,
        .request = p->segments[0].request->id,
        .device = k->launch->device,
        .op = k->op,
        .layer = k->layer,
        .rows = k->launch->rows,
        .begin_ns = k->begin_ns,
        .end_ns = k->end_ns,
    };
}

static void device_init(struct device *d, const char *name, enum device_kind kind, uint8_t index)
{
    strcpy(d->name, name);
    d->kind = kind;
    d->index = index;
    d->inflight_depth = 1;
    d->max_shared = 4;
    d->shared_efficiency_frac = 1.0;
    d->ddr_weight = 1.0;
    d->idle_watts = 0.0;
    d->decode_watts = 10.0;
    d->prefill_watts = 20.0;
}

void scenario_init(struct scenario *sc)
{
    memset(sc, 0, sizeof *sc);
    struct machine *m = &sc->machine;
    strcpy(m->name, "toy");
    m->n_devices = 3;
    device_init(&m->devices[NPU], "npu", DEVICE_KIND_NPU, NPU);
    m->devices[NPU].chunk_rows = 256;
    m->devices[NPU].static_attention = true;
    device_init(&m->devices[IGPU], "igpu", DEVICE_KIND_IGPU, IGPU);
    device_init(&m->devices[CPU], "cpu", DEVICE_KIND_CPU, CPU);
    m->ddr_peak_bytes_per_s = 100e9;
    m->ddr_cap_frac = 1.0;
    m->compile_fixed_ns = 1000 * NS_PER_S;
    m->compile_watts = 12.0;
    m->loader_bytes_per_s = 1e9;
    m->swap_bytes_per_s = 1e9;
    m->memory_bytes = 1e12;
    m->memory_usable_frac = 1.0;
    m->idle_watts = 5.0;
    struct llm *l = &sc->llm;
    strcpy(l->name, "toy");
    l->n_layers = 1;
    l->layer = LAYER_OPS_DECODER;
    l->hidden = 64;
    l->heads = 1;
    l->kv_heads = 1;
    l->head_dim = 64;
    l->weight_bytes = 1e9;
    l->kv_bytes_per_token = 1e6;
    sc->ridge_flop_per_byte = 1.0;
    sc->model = (struct hwmodel){&toy_ops, m, l, sc};
    sim_setup_defaults(&sc->setup);
    sc->setup.machine = m;
    sc->setup.llm = l;
    sc->setup.truth = &sc->model;
    sc->setup.contention = contention_find("none");
    sc->setup.trace = &sc->trace;
    sc->setup.params = &sc->params;
    sc->observer = (struct observer){
        .self = sc,
        .request_arrived = on_arrived,
        .request_first_service = on_first_service,
        .tokens = on_tokens,
        .request_finished = on_left,
        .request_shed = on_left,
        .kernel = on_kernel,
    };
    sc->setup.observers[0] = &sc->observer;
    sc->setup.n_observers = 1;
}

void scenario_fini(struct scenario *sc)
{
    sc->trace.machine = NULL; /* the scenario owns it */
    trace_fini(&sc->trace);
}

void scenario_cost(struct scenario *sc, int device, enum op_kind op, double fixed_ms,
                   double per_row_ms, double gb_per_s)
{
    for (int d = 0; d < MACHINE_MAX_DEVICES; d++) {
        if (device < 0 || d == device) {
            sc->cost[d][op] = (struct toy_cost){fixed_ms, per_row_ms, gb_per_s};
        }
    }
}

void scenario_policy(struct scenario *sc, const struct policy_ops *ops, const char *params)
{
    SCOPED(err_fini) struct err e = ERR_INIT;
    sc->setup.policy = ops;
    SIM_REQUIRE(policy_params_parse(ops, params, &sc->params, &e) == 0, "bad parameters: %s",
                params);
}

void scenario_trace(struct scenario *sc, const struct scenario_request *q, uint32_t n)
{
    SIM_REQUIRE(n <= SCENARIO_MAX_REQUESTS, "too many requests");
    bool first[SCENARIO_MAX_REQUESTS];
    uint32_t turn[SCENARIO_MAX_REQUESTS] = {0};
    struct trace *t = &sc->trace;
    free(t->rows);
    t->rows = xcalloc(n, sizeof *t->rows);
    t->n = n;
    t->n_first = 0;
    for (uint32_t i = 0; i < n; i++) {
        first[i] = true;
        for (uint32_t j = 0; j < i; j++) {
            if (q[i].session_id != 0 && q[j].session_id == q[i].session_id) {
                first[i] = false;
                turn[i]++;
            }
        }
    }
    uint32_t at = 0;
    uint32_t row_of[SCENARIO_MAX_REQUESTS];
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < n; i++) {
            if (first[i] == (pass == 0)) {
                row_of[i] = at;
                t->rows[at++] = (struct trace_row){
                    .arrival_ns = units_ns_from_s(q[i].arrival_s),
                    .request_id = i,
                    .session_id = q[i].session_id != 0 ? q[i].session_id : 1000 + i,
                    .input_tokens = q[i].input_tokens,
                    .output_tokens = q[i].output_tokens,
                    .prefix_tokens = q[i].prefix_tokens,
                    .max_output_tokens = 1024,
                    .next = TRACE_NO_ROW,
                    .turn = (uint16_t)turn[i],
                    .cls = (uint8_t)q[i].cls,
                    .after_tool = !first[i] && sc->gaps_are_tools,
                };
                t->n_first += pass == 0;
            }
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = i + 1; j < n && q[i].session_id != 0; j++) {
            if (q[j].session_id == q[i].session_id) {
                t->rows[row_of[i]].next = row_of[j];
                break;
            }
        }
    }
}

int scenario_again(struct scenario *sc)
{
    double began_s = clock_now_s();
    int rc = (sc->run == NULL ? sim_run : sc->run)(&sc->setup, &sc->result);
    sc->took_s = clock_now_s() - began_s;
    return rc;
}

int scenario_run(struct scenario *sc, const struct scenario_request *requests, uint32_t n,
                 bool kernels)
{
    memset(sc->records, 0, sizeof sc->records);
    sc->n_kernels = 0;
    sc->observer.wants_kernels = kernels;
    scenario_trace(sc, requests, n);
    sc->trace.machine = sc->events;
    sc->trace.n_machine = sc->n_events;
    return scenario_again(sc);
}

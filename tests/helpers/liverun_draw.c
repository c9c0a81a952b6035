/* A seed draws a machine, requests, a policy, and a fault. */
#include <inttypes.h>
#include <stdio.h>

#include "policies/registry.h"
#include "tests/helpers/liverun_impl.h"
#include "tests/helpers/wild.h"

struct liverun_now now;

static const char *const fault_names[] = {
    "none", "slow",      "fails",   "hangs",     "stopped",     "stopped, slow", "limit",
    "dies", "disk full", "no file", "no thread", "clock jumps", "clock back"};
static const char *const kind_names[] = {"kernel", "resident", "open", "device open",
                                         "device close"};

/* ---- what is drawn ---- */

static const struct chosen_policy choices[] = {
    {NULL, "", false, false},
    {NULL, "", true, true},
    {"fcfs", "", false, false},
    {"openvino-cb", "", false, false},
    {"npu-serial", "", false, false},
    {"agent-xpu-v1", "", false, false},
    {"agent-xpu-v2", "", false, false},
    {"agent-xpu-v2", "", true, true},
    {"pd-static", "", false, false},
    {"sarathi-hetero", "", false, false},
    {"hetero-split", "", false, false},
    {"vllm-v0", "", false, false},
    {"program-fcfs", "preempt=reset,class=rt_alone", false, false},
    {"program-fcfs", "gap_kv=swap", false, false},
    {"sd-npu", "blocks=2,g1=24,g2=8,strategy=progressive", true, false},
    {"sd-npu", "blocks=2,g1=24,g2=8,strategy=sync", true, false},
};
#define N_CHOICES (sizeof choices / sizeof choices[0])

static uint32_t below(struct draw *d, uint32_t n)
{
    return rng_below(&d->rng, n);
}

static bool chance(struct draw *d, uint32_t of_100)
{
    return below(d, 100) < of_100;
}

/* Some requests are the second turn of an earlier one's session. The user of a request without a
 * later turn may give up. */
static void draw_requests(struct draw *d)
{
    d->n_requests = 2 + below(d, MOST_REQUESTS - 1);
    int64_t at_ns = 0;
    for (uint32_t i = 0; i < d->n_requests; i++) {
        struct scenario_request *q = &d->requests[i];
        at_ns += below(d, 400000);
        *q = (struct scenario_request){.cls = chance(d, 40) ? RT : BE,
                                       .arrival_s = (double)at_ns * 1e-9,
                                       .input_tokens = 1 + below(d, 30),
                                       .output_tokens = 1 + below(d, 6)};
        d->cancel_ns[i] = chance(d, 5) ? (int64_t)below(d, 3000000) : TIME_NEVER_NS;
        uint32_t before = below(d, i + 1);
        struct scenario_request *b = &d->requests[before];
        if (before < i && b->session_id == 0 && chance(d, 30)) {
            b->session_id = q->session_id = 10 + before;
            d->cancel_ns[before] = TIME_NEVER_NS;
            q->cls = b->cls;
            q->arrival_s = 1e-9 * below(d, 1000000);
            q->input_tokens += b->input_tokens + b->output_tokens;
            q->prefix_tokens = chance(d, 70) ? b->input_tokens + below(d, b->output_tokens) : 0;
        }
    }
}

static void stop_it(void)
{
    now.interrupt = 1;
}

/* Operations that a run of this kind has, roughly: where a fault may be. */
static uint64_t some_operation(struct draw *d)
{
    return 1 + (uint64_t)below(d, chance(d, 30) ? 120 : 4000);
}

static void draw_fault(struct draw *d)
{
    d->fault = chance(d, 45) ? LIVE_NONE : (enum live_fault)below(d, LIVE_FAULTS);
    d->engine = (struct virtual_engine_setup){.seed = d->seed, .kernel_ns = 1 + below(d, 80000)};
    d->host = (struct virtual_faults){0};
    enum virtual_kind kind =
        chance(d, 60) ? VIRTUAL_KERNEL : (enum virtual_kind)below(d, VIRTUAL_KINDS);
    uint32_t first = kind == VIRTUAL_KERNEL     ? 1 + below(d, 150)
                     : kind == VIRTUAL_RESIDENT ? 1 + below(d, 8)
                     : kind == VIRTUAL_OPEN     ? 1
                                                : 1 + below(d, 3);
    switch (d->fault) {
    case LIVE_SLOW:
    case LIVE_FAILS:
    case LIVE_HANGS:
        d->engine.kind = kind;
        d->engine.first = first;
        d->engine.n = chance(d, 30) ? 1 + below(d, 3) : 1;
        d->engine.slow_ns = 1 + below(d, 1500) * NS_PER_MS;
        d->engine.fate = d->fault == LIVE_SLOW    ? VIRTUAL_SLOW
                         : d->fault == LIVE_FAILS ? VIRTUAL_FAILS
                                                  : VIRTUAL_HANGS;
        break;
    case LIVE_STOP_SLOW:
        d->engine.kind = chance(d, 50) ? VIRTUAL_KERNEL : kind;
        d->engine.first = 1;
        d->engine.n = UINT32_MAX;
        d->engine.slow_ns = 1900 * NS_PER_MS;
        d->engine.fate = VIRTUAL_SLOW;
        d->host.at = 1 + below(d, 400);
        d->host.happen = stop_it;
        break;
    case LIVE_STOP:
        d->host.at = some_operation(d);
        d->host.happen = stop_it;
        break;
    case LIVE_LIMIT:
        d->limit_s = chance(d, 20) ? 0.0 : 1e-9 * (1 + below(d, 5000000));
        if (d->limit_s == 0.0) { /* ten minutes, and the last one comes later */
            d->requests[d->n_requests - 1].arrival_s += 601.0;
        }
        break;
    case LIVE_DIES:
        d->dies_in = 1 + below(d, 60);
        break;
    case LIVE_DISK:
        d->host.full_at = 1 + below(d, 12);
        break;
    case LIVE_NO_FILE:
        d->host.no_file = true;
        break;
    case LIVE_NO_THREAD:
        d->host.no_thread = true;
        break;
    case LIVE_CLOCK_JUMPS:
        d->host.at = some_operation(d);
        d->host.jump_ns = 1 + below(d, 1500) * NS_PER_MS;
        break;
    case LIVE_CLOCK_BACK:
        d->host.at = some_operation(d);
        d->host.jump_ns = -1 - (int64_t)below(d, 3000) * NS_PER_MS;
        break;
    case LIVE_NONE:
    case LIVE_FAULTS:
        break;
    }
}

void liverun_draw(uint64_t seed)
{
    struct draw *d = &now.draw;
    *d = (struct draw){.seed = seed};
    rng_init(&d->rng, rng_key(seed, RNG_TEST, 3, 0));
    d->policy = &choices[chance(d, 60) ? below(d, 2) : below(d, N_CHOICES)];
    d->wall = chance(d, 75);
    draw_requests(d);
    draw_fault(d);
}

/* ---- what it is made of ---- */

static void make_machine(struct draw *d)
{
    struct scenario *sc = &now.scenario;
    scenario_init(sc);
    sc->setup.seed = d->seed;
    virtual_model(&sc->llm);
    struct machine *m = &sc->machine;
    const struct engine_ops *engine = d->policy->compiles ? &virtual_engine_compiles
                                      : chance(d, 30)     ? &virtual_engine_deaf
                                                          : &virtual_engine;
    bool any = d->policy->name == NULL; /* others ask for certain machines */
    m->devices[NPU].chunk_rows = any && chance(d, 30) ? 0 : 4 + below(d, 20);
    m->devices[NPU].static_attention = d->policy->attention && chance(d, 60);
    for (uint32_t i = 0; i < m->n_devices; i++) {
        m->devices[i].can_reset = !any || chance(d, 80);
        m->devices[i].can_withdraw = !any || chance(d, 80);
        m->devices[i].inflight_depth = 1 + below(d, 3);
        m->devices[i].reset_ns = units_ns_from_us(70) * (i + 1);
        /* Longer than some kernels, so that a lead lies within the launch before, or reaches behind
         * it. */
        m->devices[i].submit_ns = d->wall ? 0 : units_ns_from_us(20.0 * (double)(d->seed % 3));
        for (int op = 0; op < OP_KIND_COUNT; op++) {
            scenario_cost(sc, (int)i, (enum op_kind)op, 0.02, 0.002, 1);
        }
    }
    if (any && chance(d, 20)) {
        sc->setup.kv_capacity_tokens = 112 + below(d, 60);
    }
    sc->gaps_are_tools = chance(d, 50);
    now.options = (struct drive_options){.clock = d->wall ? DRIVE_CLOCK_WALL : DRIVE_CLOCK_CPU,
                                         .hang_s = HANG_S,
                                         .compile_s = COMPILE_S,
                                         .limit_s = d->fault == LIVE_LIMIT ? d->limit_s : 2000.0,
                                         .interrupt = &now.interrupt,
                                         .host = &virtual_host};
    for (uint32_t i = 0; i < m->n_devices; i++) {
        now.options.devices[i] = (struct drive_device){engine, "CPU", -1};
    }
}

static const struct policy_ops *policy_of(const struct draw *d)
{
    return d->policy->name != NULL ? policy_find(d->policy->name)
           : d->policy->compiles   ? &wild_loads
                                   : &wild;
}

static void say_what(const struct draw *d)
{
    const struct virtual_engine_setup *e = &d->engine;
    char more[96] = "";
    if (e->fate != VIRTUAL_FINE) {
        (void)snprintf(more, sizeof more, " (%s %u, %u of them, %.0f ms)", kind_names[e->kind],
                       e->first, e->n, units_ms_from_ns(e->slow_ns));
    } else if (d->host.at > 0) {
        (void)snprintf(more, sizeof more, " (operation %" PRIu64 ", %.0f ms)", d->host.at,
                       units_ms_from_ns(d->host.jump_ns));
    }
    (void)snprintf(now.out->what, sizeof now.out->what, "%s:%s, %s clock, %s, %u requests, %s%s",
                   policy_of(d)->name, d->policy->params, d->wall ? "wall" : "cpu",
                   now.options.devices[0].engine->name, d->n_requests, fault_names[d->fault], more);
}

void liverun_prepare(void)
{
    struct draw *d = &now.draw;
    struct scenario *sc = &now.scenario;
    make_machine(d);
    say_what(d);
    scenario_policy(sc, policy_of(d), d->policy->params);
    scenario_trace(sc, d->requests, d->n_requests);
    sc->setup.n_observers = 1; /* instead of the scenario's own, which nobody asks */
    sc->setup.observers[0] = &now.watch.observer;
    for (uint32_t row = 0; row < d->n_requests; row++) {
        now.extras[row] = (struct trace_extra){.ttft_slo_ns = TIME_NEVER_NS,
                                               .tbt_slo_ns = TIME_NEVER_NS,
                                               .deadline_ns = TIME_NEVER_NS,
                                               .until_ns = TIME_NEVER_NS};
        now.extras[row].cancel_ns = d->cancel_ns[sc->trace.rows[row].request_id];
    }
    sc->trace.extras = now.extras;
    virtual_tokens(&sc->trace, &sc->llm, now.right);
}

const char *liverun_fault_name(enum live_fault f)
{
    return fault_names[f];
}

#include "tests/helpers/randomrun.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/conformance/randomload.h"
#include "policies/registry.h"
#include "sim/base/arena.h"
#include "sim/base/rng.h"
#include "sim/base/units.h"
#include "tests/helpers/randomtrace.h"
#include "traces/traces.h"

static const char *const socs[] = {
    "core-ultra-5-125h",       "core-ultra-5-125h", "core-ultra-7-258v",
    "core-ultra-9-185h",       "snapdragon-8gen3",  "snapdragon-8-elite-gen5",
    "snapdragon-8-elite-gen5", "w1-reference",      "snapdragon-x-elite",
    "snapdragon-x2-elite",     "rtx-pro-6000",      "apple-m1-pro-16core",
    "apple-m4-max-40core",     "core-ultra-7-255h", "two-cores",
};
static const char *const llms[] = {
    "llama-3.2-3b",  "llama-3.2-3b", "llama-3.2-1b",       "qwen3-4b",        "llama-3.1-8b",
    "qwen2-1.5b",    "smollm2-360m", "mistral-7b",         "gemma-3-1b",      "gemma-3-1b",
    "qwen3-30b-a3b", "lfm2-1.2b",    "granite-4.0-h-tiny", "deepseek-v2-lite"};

/* Values that a number may take: between low and high, evenly in its logarithm, or one of the
 * words. */
struct knob {
    const char *path;
    double low, high;
    const char *words[8];
    double share; /* of the runs that turn it */
};

static const struct knob knobs[] = {
    {"soc.ddr.peak", 90, 500, {NULL}, 0.5},
    {"soc.ddr.together", 0.4, 1, {NULL}, 0.3},
    {"soc.devices.0.compute_only", 0.05, 1, {NULL}, 0.2},
    {"soc.devices.1.compute_only", 0.05, 1, {NULL}, 0.2},
    {"soc.memory.usable", 0.15, 0.95, {NULL}, 0.2},
    {"soc.host.sync", 0.001, 500, {NULL}, 0.3},
    {"soc.host.schedule", 0.001, 100, {NULL}, 0.2},
    {"soc.host.sample", 0.001, 5000, {NULL}, 0.3},
    {"soc.host.poll", 0.1, 12, {NULL}, 0.2},
    {"soc.compiler.fixed", 0.001, 3, {NULL}, 0.3},
    {"soc.compiler.per_token", 0.001, 1, {NULL}, 0.3},
    {"soc.loader.swap_bandwidth", 0.1, 20, {NULL}, 0.2},
    {"soc.idle_power", 0.1, 20, {NULL}, 0.1},
    {"soc.devices.0.runtimes.0.sliding_window", 0, 0, {"true"}, 0.3},
    {"soc.devices.1.runtimes.0.sliding_window", 0, 0, {"true"}, 0.3},
    {"soc.devices.0.chunk_rows", 0, 0, {"64", "128", "256", "512"}, 0.2},
    {"soc.devices.0.static_attention", 0, 0, {"true", "false"}, 0.2},
    {"soc.devices.0.can_reset", 0, 0, {"true"}, 0.2},
    {"soc.devices.1.can_reset", 0, 0, {"true"}, 0.2},
    {"soc.devices.0.can_suspend", 0, 0, {"true"}, 0.2},
    {"soc.devices.1.can_suspend", 0, 0, {"true"}, 0.2},
    {"soc.devices.1.can_withdraw", 0, 0, {"true"}, 0.2},
    {"soc.devices.1.inflight_depth", 0, 0, {"2", "4"}, 0.1},
    {"soc.devices.1.sharing", 0, 0, {"time_shared"}, 0.15},
    {"soc.devices.1.submit", 0.001, 1000, {NULL}, 0.2},
    {"soc.devices.0.submit", 0.001, 1000, {NULL}, 0.2},
    {"soc.devices.1.reset", 0.001, 1000, {NULL}, 0.1},
    {"sim.contention", 0, 0, {"max-min", "none", "pccs", "proportional", "weighted"}, 0.5},
    {"soc.ddr.queueing", 0.01, 3, {NULL}, 0.2},
    {"sim.contention_minor", 0.01, 2, {NULL}, 0.1},
    {"sim.contention_balance_frac", 0.1, 2, {NULL}, 0.1},
    {"sim.hwmodel", 0, 0, {"roofline", "p-norm"}, 0.2},
    {"sim.nonlinear", 0, 0, {"split", "offload"}, 0.1},
    {"sim.chunk_auto", 0, 0, {"true"}, 0.1},
    {"sim.truth_sigma", 0.01, 1.5, {NULL}, 0.4},
    {"sim.annotation.sigma_prefill", 0.001, 1, {NULL}, 0.3},
    {"sim.annotation.sigma_decode", 0.001, 1, {NULL}, 0.3},
    {"sim.annotation.bias_frac.ffn", 0.01, 3, {NULL}, 0.1},
    {"sim.kv_capacity_tokens", 3500, 40000, {NULL}, 0.3},
    {"sim.kv_block_tokens", 0, 0, {"1", "4", "64", "256"}, 0.3},
    {"sim.prefix_reuse", 0, 0, {"false"}, 0.2},
    {"sim.horizon_s", 1, 60, {NULL}, 0.2},
    {"sim.graphics.frames_per_s", 1, 240, {NULL}, 0.25},
    {"sim.graphics.frame_s", 1e-5, 0.02, {NULL}, 0.2},
    {"sim.graphics.frame_bytes", 1e3, 1e9, {NULL}, 0.2},
    {"sim.graphics.reserve_time_frac", 0.01, 0.8, {NULL}, 0.1},
    {"sim.graphics.reserve_rate_frac", 0.01, 0.8, {NULL}, 0.1},
    {"sim.power.limit", 0, 0, {"package", "thermal", "thermal"}, 0.2},
    {"sim.power.exponent", 0.5, 4, {NULL}, 0.1},
    {"sim.power.min_speed", 0.05, 1, {NULL}, 0.1},
    {"sim.power.capacity_j_per_k", 0.01, 20, {NULL}, 0.2},
    {"sim.power.limit_c", 30, 95, {NULL}, 0.2},
    {"sim.power.ambient_c", 5, 45, {NULL}, 0.1},
    {"sim.power.resistance_k_per_w", 0.1, 10, {NULL}, 0.1},
    {"sim.annotation.bias_frac.mha", 0.01, 3, {NULL}, 0.1},
    {"sim.annotation.bias_frac.layer", 0.01, 3, {NULL}, 0.1},
    {"sim.speculation.method", 0, 0, {"pld", "sam", "eagle"}, 0.2},
    {"sim.speculation.dataset", 0, 0, {"summary", "rag", "ui"}, 0.1},
    {"sim.speculation.length", 0, 0, {"fixed", "prop", "empirical"}, 0.1},
    {"sim.speculation.max_draft_tokens", 0, 0, {"1", "3", "8", "40", "255"}, 0.1},
    {"sim.speculation.reuse_frac", 0.01, 0.9, {NULL}, 0.1},
    {"sim.speculation.history", 0, 0, {"full", "turn", "trace"}, 0.1},
    {"sim.speculation.proactive", 0, 0, {"false"}, 0.1},
};

static void turn(struct randomrun *run, struct rng *r, const struct knob *k)
{
    bool second = strncmp(k->path, "soc.devices.1", strlen("soc.devices.1")) == 0;
    if (rng_uniform(r) >= k->share || run->n_sets == RANDOMRUN_MAX_SETS ||
        (second && strcmp(run->soc, "w1-reference") == 0)) { /* it has one device */
        return;
    }
    char *set = run->sets[run->n_sets++];
    if (k->words[0] != NULL) {
        (void)snprintf(set, sizeof run->sets[0], "%s=%s", k->path, randomload_word(r, k->words));
    } else {
        double v = randomload_between(r, k->low, k->high);
        bool whole = k->low >= 1000;
        (void)snprintf(set, sizeof run->sets[0], whole ? "%s=%.0f" : "%s=%.4g", k->path, v);
    }
}

static void choose_policy(struct randomrun *run, struct rng *r)
{
    size_t n = 0;
    const struct policy_ops *const *all = policy_list(&n);
    const struct policy_ops *ops = all[rng_below(r, (uint32_t)n)];
    if (rng_below(r, 4) == 0) { /* the two that use all a machine has */
        ops = policy_find(rng_below(r, 2) ? "agent-xpu-v1" : "agent-xpu-v2");
    }
    const char *plugin = getenv("XPUSIM_PLUGIN");
    if (plugin != NULL && rng_below(r, 20) == 0) {
        (void)snprintf(run->policy, sizeof run->policy, "%s", plugin);
        return;
    }
    double share = rng_below(r, 2) ? 0.0 : 0.3; /* of the parameters that differ */
    size_t used = (size_t)snprintf(run->policy, sizeof run->policy, "%s", ops->name);
    char before = ':';
    for (const struct policy_param *p = ops->params; p != NULL && p->name != NULL; p++) {
        if (rng_uniform(r) < share && used + 80 < sizeof run->policy) {
            run->policy[used++] = before;
            before = ',';
            used += randomload_param(run->policy + used, sizeof run->policy - used, r, p);
        }
    }
}

static void choose_workload(struct randomrun *run, struct rng *r)
{
    static const char *const tasks[] = {"summary", "rag", "ui", "tweet"};
    static const char *const reactive[] = {"reactive_mixed", "lmsys_chat", "bfcl", "mtrag"};
    static const char *const proactive[] = {"proactive_mixed", "samsum", "cnn_dailymail"};
    if (rng_below(r, 8) == 0) {
        (void)snprintf(run->workload, sizeof run->workload, "w1:n=%u", 2 + rng_below(r, 60));
        return;
    }
    if (rng_below(r, 12) == 0) {
        (void)snprintf(run->workload, sizeof run->workload, "%s:n=%u,concurrent=%u,gap_s=%.3g",
                       tasks[rng_below(r, 4)], 1 + rng_below(r, 12), 1 + rng_below(r, 4),
                       randomload_between(r, 0.01, 30));
        return;
    }
    if (rng_below(r, 3) == 0) {
        run->own_trace = true;
        return;
    }
    size_t used = (size_t)snprintf(
        run->workload, sizeof run->workload,
        "mixed:reactive_per_min=%.3g,proactive_per_min=%.3g,duration_s=%.3g",
        randomload_between(r, 1, 40), randomload_between(r, 1, 40), randomload_between(r, 5, 40));
    if (rng_below(r, 2) == 0) {
        used += (size_t)snprintf(run->workload + used, sizeof run->workload - used,
                                 ",reactive=%s,proactive=%s", reactive[rng_below(r, 4)],
                                 proactive[rng_below(r, 3)]);
    }
    if (rng_below(r, 2) == 0) {
        used += (size_t)snprintf(run->workload + used, sizeof run->workload - used,
                                 ",arrival=gamma,cv=%.3g", randomload_between(r, 0.2, 5));
    }
    if (rng_below(r, 3) == 0) {
        used += (size_t)snprintf(run->workload + used, sizeof run->workload - used,
                                 ",sessions=1,think_s=%.3g,tool_s=%.3g",
                                 randomload_between(r, 0.01, 10), randomload_between(r, 0.01, 3));
    }
    (void)snprintf(run->workload + used, sizeof run->workload - used, ",output_scale=%.3g",
                   randomload_between(r, 0.05, 1));
}

void randomrun_make(struct randomrun *run, uint64_t number)
{
    struct rng r;
    rng_init(&r, rng_key(number, RNG_TEST, 1, 0));
    memset(run, 0, sizeof *run);
    run->seed = rng_below(&r, UINT32_MAX);
    run->soc = socs[rng_below(&r, sizeof socs / sizeof socs[0])];
    run->llm = llms[rng_below(&r, sizeof llms / sizeof llms[0])];
    choose_policy(run, &r);
    choose_workload(run, &r);
    if (rng_below(&r, 8) > 0) { /* else as shipped */
        for (size_t i = 0; i < sizeof knobs / sizeof knobs[0]; i++) {
            turn(run, &r, &knobs[i]);
        }
    }
    run->machine = rng_below(&r, 3) == 0;
}

const char *randomrun_text(const struct randomrun *run, char buf[RANDOMRUN_TEXT_BYTES])
{
    size_t used = (size_t)snprintf(buf, RANDOMRUN_TEXT_BYTES,
                                   "xpusim run --policy %s --soc %s --llm %s --seed %llu %s %s",
                                   run->policy, run->soc, run->llm, (unsigned long long)run->seed,
                                   run->own_trace || run->trace != NULL ? "--trace" : "--workload",
                                   run->trace != NULL ? run->trace
                                   : run->own_trace   ? "RANDOM"
                                                      : run->workload);
    if (run->machine && used < RANDOMRUN_TEXT_BYTES) {
        used += (size_t)snprintf(buf + used, RANDOMRUN_TEXT_BYTES - used, " --machine RANDOM");
    }
    for (uint32_t i = 0; i < run->n_sets && used < RANDOMRUN_TEXT_BYTES; i++) {
        used +=
            (size_t)snprintf(buf + used, RANDOMRUN_TEXT_BYTES - used, " --set %s", run->sets[i]);
    }
    return buf;
}

static int trace_of(const struct randomrun *run, const struct config_options *o, struct trace *t,
                    struct err *e)
{
    if (run->rows != NULL) {
        bool *all = xmalloc(run->rows->n + 1);
        memset(all, true, run->rows->n + 1);
        int rc = trace_subset(run->rows, all, t);
        free(all);
        return rc;
    }
    if (run->own_trace) {
        randomtrace_make(t, run->seed);
        return 0;
    }
    return config_trace_packed(o, run->seed, (struct config_arrivals){0}, t, e);
}

/* Each value matters on some machine of the list where it is set. */
static struct machine_event random_event(struct rng *r, double kv_bytes, double other_bytes)
{
    struct machine_event v = {.at_ns = units_ns_from_s(randomload_between(r, 0.01, 40)),
                              .until_ns = TRACE_LAST_NS,
                              .sets = 1 + rng_below(r, 63)};
    if (rng_below(r, 3) == 0) {
        v.every_ns = units_ns_from_s(randomload_between(r, 0.05, 20));
    }
    v.memory_bytes = rng_below(r, 3) == 0 ? 0.0 : other_bytes + kv_bytes * rng_uniform(r);
    v.power_limit_watts = rng_below(r, 3) == 0 ? 0.0 : randomload_between(r, 2, 60);
    v.frames_per_s = rng_below(r, 2) == 0 ? 0.0 : randomload_between(r, 1, 120);
    v.battery_full_j = randomload_between(r, 10, 20000);
    v.battery_j = v.battery_full_j * rng_uniform(r);
    v.on_battery = rng_below(r, 2) == 0;
    v.background_window = rng_below(r, 2) == 0;
    if (v.on_battery) {
        v.sets |= MACHINE_SETS_BATTERY;
    }
    return v;
}

/* Memory is taken from what KV has: most of that is idle in a run, so some events take much. */
static void add_machine(struct trace *t, uint64_t seed, const struct config *c)
{
    double room = c->soc.machine.memory_bytes * c->soc.machine.memory_usable_frac -
                  (double)c->sim.weight_copies * c->llm.weight_bytes;
    double kv = (double)c->sim.kv_capacity_tokens * c->llm.kv_bytes_per_token;
    kv = kv > 0.0 && kv < room ? kv : room;
    struct rng r;
    rng_init(&r, rng_key(seed, RNG_TEST, 2, 0));
    uint32_t n = 1 + rng_below(&r, 6);
    struct machine_event *v = xcalloc(n, sizeof *v);
    for (uint32_t i = 0; i < n; i++) {
        v[i] = random_event(&r, fmax(kv, 0.0), fmax(room - kv, 0.0));
    }
    trace_set_machine(t, v, n);
}

/* Steps of frequency, and kernels that take memory: what no --set can say. */
static void add_to_devices(struct soc *soc, uint64_t seed)
{
    struct rng r;
    rng_init(&r, rng_key(seed, RNG_TEST, 3, 0));
    for (uint32_t i = 0; i < soc->machine.n_devices; i++) {
        struct soc_device *d = &soc->devices[i];
        if (rng_below(&r, 3) == 0) {
            d->dvfs =
                (struct soc_dvfs){.n = 2 + rng_below(&r, 3),
                                  .governor = (int)rng_below(&r, 2),
                                  .period_ns = units_ns_from_s(randomload_between(&r, 1e-4, 1)),
                                  .headroom = randomload_between(&r, 1, 3)};
            for (uint32_t k = 0; k < d->dvfs.n; k++) {
                double share = (k + 1.0) / d->dvfs.n;
                d->dvfs.steps[k] = (struct soc_step){share, pow(share, 3 * rng_uniform(&r))};
            }
        }
        if (rng_below(&r, 3) == 0) {
            d->kernels = (struct soc_kernels){
                .budget_bytes = randomload_between(&r, 1e6, 1e9),
                .instructions_bytes = randomload_between(&r, 1e3, 1e8),
                .buffer_bytes = rng_below(&r, 2) == 0 ? 0.0 : randomload_between(&r, 0.1, 100),
                .load_ns = units_ns_from_s(randomload_between(&r, 1e-6, 0.1))};
        }
    }
}

bool randomrun_load(const struct randomrun *run, struct config *c, struct config_policy *p,
                    struct trace *t)
{
    struct err e = ERR_INIT;
    struct config_options o = config_options_default();
    o.soc = run->soc;
    o.llm = run->llm;
    o.workload = run->workload[0] == '\0' ? NULL : run->workload;
    o.seed = run->seed;
    for (uint32_t i = 0; i < run->n_sets; i++) {
        o.sets[o.n_sets++] = run->sets[i];
    }
    bool ok = config_load(c, &o, &e) == 0;
    ok = ok && config_policy_parse(p, run->policy, &e) == 0;
    ok = ok && trace_of(run, &o, t, &e) == 0;
    if (ok && run->machine) {
        add_machine(t, run->seed, c);
        add_to_devices(&c->soc, run->seed);
    }
    if (!ok) {
        config_fini(c);
    }
    err_fini(&e);
    return ok;
}

/* Results of one run as JSON. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "experiments/run/runner.h"

static void warn(cJSON *list, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void warn(cJSON *list, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    cJSON_AddItemToArray(list, cJSON_CreateString(text));
}

static double value_of(const struct runner_result *r, const char *name)
{
    const struct metric *m = metric_list_find(&r->metrics, name);
    return m != NULL ? m->value : METRIC_UNDEFINED;
}

cJSON *runner_warnings(const struct config *c, const struct runner_result *r)
{
    cJSON *list = cJSON_CreateArray();
    const struct sim_result *s = &r->sim;
    uint64_t left = s->audit.running + s->audit.queued;
    if (left > 0 || (s->audit.future > 0 && c->sim.horizon_s > 0.0)) {
        warn(list,
             "the horizon of %g s left %" PRIu64 " requests unfinished and %" PRIu64
             " that never arrived: latencies are censored, they cover finished requests only",
             c->sim.horizon_s, left, s->audit.future);
    }
    if (s->audit.shed > 0) {
        warn(list, "%" PRIu64 " requests were shed: latencies do not cover them", s->audit.shed);
    }
    if (r->verdict == METRICS_OVERLOADED) {
        warn(
            list,
            "OVERLOADED: after the last arrival the work that was left took another %.0f %% of the "
            "time in which requests arrived, so latencies grow with "
            "the length of the trace; truncated.* shows what finished by the last arrival",
            100.0 * value_of(r, "backlog.drain_frac"));
    } else if (r->verdict == METRICS_BACKLOGGED) {
        warn(list, "BACKLOGGED: %.0f requests were in system at the last arrival, %.1f on average",
             value_of(r, "backlog.at_last_arrival"), value_of(r, "in_system.mean"));
    }
    for (uint32_t i = 0; i < c->soc.machine.n_devices; i++) {
        if (c->truth.fallback[i]) {
            warn(list,
                 "%s has no parameters for %u-bit weights: those of its default runtime are used",
                 c->soc.machine.devices[i].name, c->llm.weight_bits);
        }
    }
    if (c->soc.extrapolated_npu) {
        warn(list, "the NPU numbers of %s are extrapolated from other parts (hwmodels/README.md)",
             c->soc.machine.name);
    }
    uint64_t outside = s->counters[COUNTER_KERNELS_OUTSIDE_ENVELOPE];
    if (outside > 0) {
        warn(list,
             "%" PRIu64 " of %" PRIu64 " kernels lie outside the range their times were "
             "calibrated for",
             outside, s->kernels);
    }
    char refused[512];
    if (counters_refused(s->counters, s->counter_first_ns, refused, sizeof refused)[0] != '\0') {
        warn(list, "actions of the policy were refused: %s", refused);
    }
    if (r->sketch) {
        warn(list, "quantiles are from a sketch: within 0.5 %%");
    }
    if (!s->audit.clean) {
        warn(list, "the audit found a violation");
    }
    return list;
}

static cJSON *audit_to_json(const struct sim_audit *a)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddBoolToObject(o, "clean", a->clean);
    cJSON_AddNumberToObject(o, "arrived", (double)a->arrived);
    cJSON_AddNumberToObject(o, "finished", (double)a->finished);
    cJSON_AddNumberToObject(o, "shed", (double)a->shed);
    cJSON_AddNumberToObject(o, "running", (double)a->running);
    cJSON_AddNumberToObject(o, "queued", (double)a->queued);
    cJSON_AddNumberToObject(o, "future", (double)a->future);
    cJSON_AddNumberToObject(o, "tokens_expected", (double)a->tokens_expected);
    cJSON_AddNumberToObject(o, "tokens_produced", (double)a->tokens_produced);
    cJSON_AddNumberToObject(o, "energy_integral_j", a->energy_integral_j);
    cJSON_AddNumberToObject(o, "energy_sum_j", a->energy_sum_j);
    cJSON_AddNumberToObject(o, "littles_law_residual_frac", a->littles_law_residual_frac);
    cJSON_AddNumberToObject(o, "ddr_max_over_capacity", a->ddr_max_over_capacity);
    cJSON_AddNumberToObject(o, "double_bookings", (double)a->double_bookings);
    cJSON_AddNumberToObject(o, "causality_errors", (double)a->causality_errors);
    return o;
}

static cJSON *counters_to_json(const struct sim_result *s)
{
    cJSON *o = cJSON_CreateObject();
    for (int i = 0; i < COUNTER_COUNT; i++) {
        cJSON_AddNumberToObject(o, counter_names[i], (double)s->counters[i]);
    }
    for (uint32_t i = 0; i < s->n_policy_counters; i++) {
        char name[48];
        (void)snprintf(name, sizeof name, "policy.%s", s->policy_counter_names[i]);
        cJSON_AddNumberToObject(o, name, (double)s->policy_counters[i]);
    }
    return o;
}

cJSON *runner_to_json(const struct config *c, const struct config_policy *p, const struct trace *t,
                      uint64_t seed, const struct runner_result *r)
{
    cJSON *root = cJSON_CreateObject();
    char fingerprint[CONFIG_FINGERPRINT_BYTES];
    cJSON_AddStringToObject(root, "fingerprint",
                            config_fingerprint(c, p, t, seed, fingerprint, sizeof fingerprint));
    cJSON *config = cJSON_Duplicate(c->tree, true);
    cJSON_AddStringToObject(config, "workload", c->workload);
    cJSON_AddStringToObject(config, "policy", p->ops->name);
    cJSON_AddStringToObject(config, "params", p->params_text);
    cJSON_AddNumberToObject(config, "seed", (double)seed); /* exact in the fingerprint */
    cJSON_AddItemToObject(root, "config", config);
    cJSON *metrics = cJSON_AddObjectToObject(root, "metrics");
    for (size_t i = 0; i < r->metrics.n; i++) {
        cJSON_AddNumberToObject(metrics, r->metrics.v[i].name, r->metrics.v[i].value);
    }
    cJSON_AddStringToObject(root, "verdict", metrics_verdict_names[r->verdict]);
    cJSON_AddItemToObject(root, "audit", audit_to_json(&r->sim.audit));
    cJSON_AddItemToObject(root, "warnings", runner_warnings(c, r));
    cJSON_AddItemToObject(root, "counters", counters_to_json(&r->sim));
    return root;
}

#include "experiments/run/runner.h"

#include "experiments/run/models.h"
#include "experiments/run/worker.h"
#include "policies/external/external.h"
#include "sim/base/nearest.h"
#include "sim/engine/sim.h"
#include "sim/metrics/metric_table.h"

/* Converts the run's energy from the devices' meter to the battery's. */
static double battery_j(const struct config *c, const struct sim_result *s,
                        const struct metric_list *l)
{
    const struct metric *energy = metric_list_find(l, "energy_j");
    struct soc_supply supply = soc_supply_of(&c->soc);
    if (energy == NULL || supply.efficiency_frac == 0.0) {
        return METRIC_UNDEFINED;
    }
    SIM_ASSERT(supply.efficiency_frac > 0.0 && supply.efficiency_frac <= 1.0);
    return energy->value / supply.efficiency_frac + supply.rest_watts * units_s_from_ns(s->end_ns);
}

static bool counts_kernels(const struct config *c)
{
    bool any = false;
    for (uint32_t i = 0; i < c->soc.machine.n_devices; i++) {
        any = any || c->soc.devices[i].kernels.budget_bytes > 0.0;
    }
    return any;
}

static bool changes_frequency(const struct config *c)
{
    bool any = false;
    for (uint32_t i = 0; i < c->soc.machine.n_devices; i++) {
        any = any || c->soc.devices[i].dvfs.n > 0;
    }
    return any;
}

static void add_run_metrics(const struct config *c, const struct sim_result *s,
                            struct metric_list *out)
{
    if (c->n_more > 0) {
        metric_list_put(out, (double)s->model_loads, "model.loads");
        metric_list_put(out, units_s_from_ns(s->model_load_ns), "model.load_s");
        metric_list_put(out, s->model_load_bytes, "model.load_bytes");
        metric_list_put(out, (double)s->model_evictions, "model.evictions");
    }
    const struct sim_kernel_memory_use *k = &s->kernel_memory;
    if (counts_kernels(c)) {
        metric_list_put(out, (double)k->loads, "kernels.loads");
        metric_list_put(out, units_s_from_ns(k->load_ns), "kernels.load_s");
        metric_list_put(out, (double)k->evictions, "kernels.evictions");
        metric_list_put(out, k->peak_bytes, "kernels.peak_bytes");
    }
    if (changes_frequency(c)) {
        SIM_ASSERT(s->dvfs.speed_ns <=
                   (double)s->dvfs.busy_ns * (1.0 + 1e-9)); /* speeds are <= 1 */
        metric_list_put(out, s->dvfs.speed_ns / (double)s->dvfs.busy_ns, "dvfs.speed_frac");
        metric_list_put(out, (double)s->dvfs.changes, "dvfs.changes");
    }
    metric_list_put(out, s->memory_peak_bytes, "memory_peak_bytes");
    metric_list_put(out, (double)s->kv_peak_tokens, "kv_peak_tokens");
    metric_list_put(out, (double)s->events, "events");
    metric_list_put(out, (double)s->kernels, "kernels");
    metric_list_put(out, (double)s->decisions, "decisions");
    metric_list_put(out, battery_j(c, s, out), "battery.energy_j");
    SIM_ASSERT(s->kv_peak_tokens <= s->kv_capacity_tokens);
    bool known = s->battery.known;
    metric_list_put(out, known ? s->battery.end_frac : METRIC_UNDEFINED, "battery.end_frac");
    metric_list_put(out, known ? s->battery.drawn_j : METRIC_UNDEFINED, "battery.drawn_j");
}

/* Adds the most frequent refusal to the message of a failed run, because it is often the reason.
 * The scene has all. */
static void tell_refusals(struct sim_result *s)
{
    char text[RUNNER_REFUSAL_BYTES];
    const struct sim_refusal *most = NULL;
    for (uint32_t i = 0; s->status != 0 && i < s->n_refusals; i++) {
        const struct sim_refusal *x = &s->refusals[i];
        if (counter_is_refusal(x->counter) && (most == NULL || x->n > most->n)) {
            most = x;
        }
    }
    if (most != NULL) {
        SIM_ASSERT(most->n > 0 && s->message[0] != '\0'); /* the message has a first part */
        size_t n = strlen(s->message);
        (void)snprintf(s->message + n, sizeof s->message - n, "; refused before: %s",
                       runner_refusal_text(most, text));
    }
}

/* For assertions: every request that arrived is in exactly one state. */
static bool adds_up(const struct sim_audit *a)
{
    return a->arrived == a->finished + a->shed + a->running + a->queued;
}

/* For assertions: refusals are ordered by their first time, and have counts. */
static bool are_in_order(const struct sim_result *s)
{
    bool in_order = true;
    for (uint32_t i = 0; i < s->n_refusals; i++) {
        const struct sim_refusal *x = &s->refusals[i];
        in_order = in_order && x->n > 0 && x->n <= s->counters[x->counter] &&
                   (i == 0 || s->refusals[i - 1].first_ns <= x->first_ns);
    }
    return in_order;
}

_Static_assert(METRICS_MAX_MODELS == SIM_MAX_MODELS, "metrics of every model");

/* The entry of a device that a model of the run runs on: models of other widths have others. */
static const struct soc_runtime *entry_of(const struct config *c, uint32_t model, uint32_t device)
{
    return models_roofline(c, model)->runtime[device];
}

void runner_ranges(const struct config *c,
                   struct metrics_range out[METRICS_MAX_MODELS][MACHINE_MAX_DEVICES])
{
    for (uint32_t m = 0; m <= c->n_more; m++) {
        for (uint32_t d = 0; d < c->soc.machine.n_devices; d++) {
            const struct soc_runtime *x = entry_of(c, m, d);
            out[m][d] = (struct metrics_range){x->valid_rows_max, x->valid_context_max};
        }
    }
}

struct metrics_meter runner_meter(const struct config *c)
{
    const struct metered *m = &c->soc.metered;
    struct metrics_meter out = {.factor = 0.0};
    if (m->meter == SOC_METER_UNSTATED) {
        return out;
    }
    SIM_ASSERT(m->factor > 0.0); /* 0: no meter */
    out.factor = m->factor;
    out.idle_watts = m->idle_watts >= 0.0 ? m->idle_watts : c->soc.machine.idle_watts;
    for (uint32_t d = 0; d < c->soc.machine.n_devices; d++) {
        double joules_per_byte = m->joules_per_byte[c->soc.machine.devices[d].kind];
        for (uint32_t i = 0; i <= c->n_more; i++) {
            out.device_watts[i][d] = joules_per_byte >= 0.0
                                         ? joules_per_byte * entry_of(c, i, d)->one.bytes_per_s
                                         : METRIC_UNDEFINED;
        }
    }
    return out;
}

/* Whether a power limit can slow the machine. */
static bool is_limited(const struct config *c, const struct trace *t)
{
    bool limited = c->sim.power.limit != CONFIG_LIMIT_NONE;
    for (uint32_t i = 0; i < t->n_machine; i++) {
        limited = limited || t->machine[i].power_limit_watts > 0.0;
    }
    return limited;
}

int runner_run(const struct config *c, const struct config_policy *p, const struct trace *t,
               uint64_t seed, const struct runner_options *opt, struct runner_result *out,
               struct err *e)
{
    memset(out, 0, sizeof *out);
    out->sketch = opt->samples == RUNNER_SAMPLES_SKETCH ||
                  (opt->samples == RUNNER_SAMPLES_AUTO && t->n > RUNNER_EXACT_REQUESTS);
    struct sim_setup setup;
    config_setup(c, p, t, seed, &setup);
    setup.policy_context = opt->policy_context;
    const struct arena_source *own = hosted_memory(p->ops);
    struct core_memory memory;
    if (own != NULL) { /* shared with the policy's process */
        memory = (struct core_memory){own[0], own[1]};
        setup.memory = &memory;
    }
    struct metrics_options mo = metrics_options_default();
    mo.sketch = out->sketch;
    mo.records = opt->requests != NULL;
    mo.horizon_ns = setup.horizon_ns;
    mo.warmup_ns = units_ns_from_s(opt->warmup_s);
    mo.trace = t;
    mo.asked = c->asked;
    runner_ranges(c, mo.range);
    mo.meter = runner_meter(c);
    mo.limited = is_limited(c, t);
    struct metrics *m = metrics_new(&mo, &c->soc.machine);
    setup.observers[setup.n_observers++] = metrics_observer(m);
    if (opt->observer != NULL) {
        setup.observers[setup.n_observers++] = opt->observer;
    }
    if (opt->series != NULL) {
        setup.observers[setup.n_observers++] = opt->series;
    }
    SIM_ASSERT(setup.n_observers <= sizeof setup.observers / sizeof setup.observers[0]);
    setup.decision_log = opt->decision_log;
    uint64_t printed_bytes = worker_stdout_bytes();
    int rc = opt->execute == NULL ? sim_run(&setup, &out->sim)
                                  : opt->execute(opt->execute_self, &setup, &out->sim);
    SIM_ASSERT(rc != 0 || adds_up(&out->sim.audit));
    SIM_ASSERT(are_in_order(&out->sim));
    if (rc == 0 && out->sim.battery.empty) {
        metrics_battery_empty(m);
    }
    if (rc == 0) {
        metrics_collect(m, &out->metrics);
        out->verdict = metrics_verdict(m);
        SIM_ASSERT(out->verdict < METRICS_VERDICTS); /* the verdict has a name */
        add_run_metrics(c, &out->sim, &out->metrics);
        if (opt->requests != NULL) {
            metrics_requests_write(m, opt->requests_about, output_stream(opt->requests));
        }
    }
    int closed = output_close(opt->requests, rc == 0, e);
    rc = rc != 0 ? rc : closed;
    SIM_ASSERT((out->metrics.n > 0) == (out->sim.status == 0)); /* metrics or an error */
    SIM_ASSERT(worker_stdout_bytes() >= printed_bytes);
    out->printed_bytes = worker_stdout_bytes() - printed_bytes;
    tell_refusals(&out->sim);
    metrics_free(m);
    return rc;
}

void runner_result_fini(struct runner_result *r)
{
    metric_list_fini(&r->metrics);
}

void runner_tell_printed(const struct config_policy *p, uint64_t bytes)
{
    if (bytes > 0) {
        (void)fprintf(stderr,
                      "xpusim: warning: policy %s printed %" PRIu64 " bytes to standard output, "
                      "which is for results: they went to standard error\n",
                      p->label, bytes);
    }
}

void runner_metric_names(const struct config *c, bool conditional, struct metric_list *out)
{
    struct metrics_options mo = metrics_options_default();
    mo.asked = c->asked;
    mo.limited = conditional || c->sim.power.limit != CONFIG_LIMIT_NONE;
    mo.frames = conditional || c->sim.graphics.frames_per_s > 0.0;
    mo.meter = runner_meter(c);
    struct metrics *m = metrics_new(&mo, &c->soc.machine);
    static const struct sim_result nothing = {0};
    metrics_collect(m, out);
    add_run_metrics(c, &nothing, out);
    metrics_free(m);
    SIM_ASSERT(metric_list_find(out, "events") != NULL); /* of a run, too */
}

int runner_no_metric(const char *option, const char *name, const struct metric_list *names,
                     struct err *e)
{
    OWNED char *mean = xformat("%s.mean", name); /* if it is a distribution */
    const char *const words[] = {name, mean};
    struct nearest near[2];
    for (int w = 0; w < 2; w++) {
        nearest_init(&near[w], words[w]);
        for (size_t k = 0; k < names->n; k++) {
            nearest_look(&near[w], names->v[k].name);
        }
    }
    const char *hint = nearest_hint(&near[near[1].least < near[0].least]);
    const struct metric_descriptor *row = metric_describe(name);
    if (hint[0] == '\0' && strchr(name, '.') != NULL && row != NULL &&
        strcmp(row->part, name) == 0) { /* of machines with steps of frequency, of several models */
        return err_add(e,
                       "--%s %s: runs of this machine and these models lack it (`xpusim list "
                       "metric` has all)",
                       option, name);
    }
    return err_add(e, "--%s %s: no metric is called so (`xpusim run --json` shows all)%s", option,
                   name, hint);
}

int runner_check_metric(const struct config *c, const char *option, const char *name, struct err *e)
{
    SCOPED(metric_list_fini) struct metric_list names = {0};
    runner_metric_names(c, true, &names);
    bool there = metric_list_find(&names, name) != NULL;
    return there ? 0 : runner_no_metric(option, name, &names, e);
}

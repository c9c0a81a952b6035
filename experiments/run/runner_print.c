/* Results of one run for people: one screen. */
#include <inttypes.h>
#include <math.h>

#include "experiments/run/runner.h"
#include "experiments/shell/table.h"

static double value_of(const struct runner_result *r, const char *name)
{
    const struct metric *m = metric_list_find(&r->metrics, name);
    return m != NULL ? m->value : METRIC_UNDEFINED;
}

static void put_value(struct table *t, double x)
{
    if (isnan(x)) {
        table_cell(t, "-");
    } else if (x == floor(x) && fabs(x) < 1e9) {
        table_cell(t, "%.0f", x);
    } else {
        table_cell(t, "%.4g", x);
    }
}

static const struct {
    const char *label, *metric;
} rows[] = {
    {"TTFT s", "ttft_s"},
    {"TBT s", "tbt_s"},
    {"TPOT s", "tpot_s"},
    {"E2E s", "e2e_s"},
    {"E2E / (in + out) s", "norm_e2e_per_token_s"},
    {"prefill pending s", "prefill_pending_s"},
    {"decode pending s", "decode_pending_s"},
};

static void print_latencies(const struct runner_result *r, const char *group, FILE *out)
{
    static const char *const stats[] = {"mean", "p50", "p90", "p99", "max"};
    char name[64];
    (void)snprintf(name, sizeof name, "%s.finished", group);
    double finished = value_of(r, name);
    (void)snprintf(name, sizeof name, "%s.arrived", group);
    double arrived = value_of(r, name);
    if (!(arrived > 0.0)) {
        return;
    }
    (void)snprintf(name, sizeof name, "%s.throughput_req_per_min", group);
    (void)fprintf(out, "\n%s: %.0f of %.0f requests finished, %.3g per minute\n", group, finished,
                  arrived, value_of(r, name));
    struct table t;
    table_init(&t, "lrrrrr");
    table_cell(&t, "%s", "");
    for (size_t k = 0; k < sizeof stats / sizeof stats[0]; k++) {
        table_cell(&t, "%s", stats[k]);
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        table_cell(&t, "%s", rows[i].label);
        for (size_t k = 0; k < sizeof stats / sizeof stats[0]; k++) {
            (void)snprintf(name, sizeof name, "%s.%s.%s", group, rows[i].metric, stats[k]);
            put_value(&t, value_of(r, name));
        }
    }
    table_print(&t, out, 2);
    table_fini(&t);
}

static void print_machine(const struct config *c, const struct runner_result *r, FILE *out)
{
    (void)fprintf(out, "\nmachine over %.4g s\n", value_of(r, "duration_s"));
    struct table t;
    table_init(&t, "lrrrr");
    table_cell(&t, "%s", "");
    table_cell(&t, "busy");
    table_cell(&t, "prefill");
    table_cell(&t, "decode");
    table_cell(&t, "J");
    for (uint32_t i = 0; i < c->soc.machine.n_devices; i++) {
        static const char *const parts[] = {"busy_frac", "prefill_frac", "decode_frac"};
        const char *device = c->soc.machine.devices[i].name;
        char name[64];
        table_cell(&t, "%s", device);
        for (size_t k = 0; k < 3; k++) {
            (void)snprintf(name, sizeof name, "%s.%s", device, parts[k]);
            table_cell(&t, "%.1f %%", 100.0 * value_of(r, name));
        }
        (void)snprintf(name, sizeof name, "%s.energy_j", device);
        put_value(&t, value_of(r, name));
    }
    table_print(&t, out, 2);
    table_fini(&t);
    if (!isnan(value_of(r, "energy_j"))) { /* a real run has none */
        (void)fprintf(
            out,
            "  energy %.4g J (%.4g idle), %.4g J per token, peak %.3g W; DDR %.1f %% used, "
            "%.1f %% of time at high pressure\n",
            value_of(r, "energy_j"), value_of(r, "energy_idle_j"),
            value_of(r, "energy_j_per_token"), value_of(r, "peak_power_watts"),
            100.0 * value_of(r, "ddr.util_frac"), 100.0 * value_of(r, "ddr.tier_high_frac"));
    }
    if (c->sim.graphics.frames_per_s > 0.0) {
        (void)fprintf(
            out,
            "  frames %.0f, missed %.2f %%, wait %.3g ms in the mean, latest %.3g ms after "
            "it was due\n",
            value_of(r, "graphics.frames"), 100.0 * value_of(r, "graphics.missed_frac"),
            1e3 * value_of(r, "graphics.wait_s.mean"), 1e3 * value_of(r, "graphics.latency_s.max"));
    }
}

void runner_print(const struct config *c, const struct config_policy *p, const struct trace *t,
                  uint64_t seed, const struct runner_result *r, FILE *out)
{
    (void)fprintf(out, "%s on %s, %s\n%s: %zu requests, seed %" PRIu64 ": %s\n", p->label,
                  c->soc.machine.name, c->llm.name, c->workload, t->n, seed,
                  metrics_verdict_names[r->verdict]);
    print_latencies(r, "reactive", out);
    print_latencies(r, "proactive", out);
    print_machine(c, r, out);
    cJSON *warnings = runner_warnings(c, r);
    const cJSON *w = NULL;
    cJSON_ArrayForEach(w, warnings)
    {
        (void)fprintf(out, "\nwarning: %s\n", w->valuestring);
    }
    cJSON_Delete(warnings);
    char fingerprint[CONFIG_FINGERPRINT_BYTES];
    (void)fprintf(out, "\n%s\n",
                  config_fingerprint(c, p, t, seed, fingerprint, sizeof fingerprint));
}

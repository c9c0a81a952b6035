/* Makes the document of one run's results. */
#include "experiments/run/runner.h"
#include "experiments/run/warnings.h"

#define LEAST_LEFT_FRAC 0.005 /* prints as 0 % below */

static double value_of(const struct runner_result *r, const char *name)
{
    const struct metric *m = metric_list_find(&r->metrics, name);
    return m != NULL ? m->value : METRIC_UNDEFINED;
}

/* The value of the metric WHO.WHAT; counts have no decimals. */
static struct frame_value shown(const struct runner_result *r, const char *who, const char *what)
{
    double x = value_of(r, document_format("%s.%s", who, what));
    bool count = x == floor(x) && fabs(x) < 1e9;
    return frame_shown(x, isnan(x) ? NULL : count ? document_format("%.0f", x) : document_short(x));
}

static void put_warnings(const struct config *c, const struct runner_result *r, struct document *d)
{
    struct document *list = warnings_of(d);
    const struct sim_result *s = &r->sim;
    uint64_t left = s->audit.running + s->audit.queued;
    if (s->battery.empty) {
        warnings_add(list,
                     "BATTERY_EMPTY: the battery was empty after %.6g s, with %" PRIu64
                     " request%s unfinished and %" PRIu64
                     " that never arrived; latencies cover finished requests only",
                     units_s_from_ns(s->end_ns), left, text_plural(left), s->audit.future);
    } else if (left > 0 || (s->audit.future > 0 && c->sim.horizon_s > 0.0)) {
        warnings_add(
            list,
            "the horizon of %g s left %" PRIu64 " request%s unfinished and %" PRIu64
            " that never arrived: latencies are censored, they cover finished requests only",
            c->sim.horizon_s, left, text_plural(left), s->audit.future);
    }
    if (s->audit.shed > 0) {
        uint64_t squeezed = s->counters[COUNTER_MEMORY_SHED];
        OWNED char *room =
            squeezed == 0
                ? xstrdup("")
                : xformat("; %" PRIu64 " had no room next to other programs' memory", squeezed);
        warnings_add(list,
                     "latencies leave out %" PRIu64
                     " shed request%s (cancelled by users or agents, or dropped%s)",
                     s->audit.shed, text_plural(s->audit.shed), room);
    }
    uint64_t beyond = s->counters[COUNTER_BEYOND_CONTEXT];
    if (beyond > 0) {
        OWNED char *most =
            c->n_more > 0 ? xstrdup("") : xformat(" (%u tokens)", c->llm.max_context);
        warnings_add(list,
                     "%" PRIu64 " request%s longer than the context that the model was made for%s: "
                     "a runtime refuses them or cuts them, and they are served whole here",
                     beyond, beyond == 1 ? " is" : "s are", most);
    }
    if (r->verdict == METRICS_OVERLOADED) {
        warnings_add(
            list,
            "OVERLOADED: the backlog grew with time. The work left after the last arrival took "
            "another %.0f %% of the arrival window, so latencies grow with the length of the "
            "trace; truncated.* shows what finished by the last arrival",
            100.0 * value_of(r, "backlog.drain_frac"));
    } else if (r->verdict == METRICS_UNDECIDED && isnan(value_of(r, "backlog.drain_frac"))) {
        warnings_add(list, value_of(r, "all.arrived") > 0.0
                               ? "UNDECIDED: all requests arrived at one instant, where a stable "
                                 "load and an overload look the same"
                               : "UNDECIDED: no request arrived");
    } else if (r->verdict == METRICS_UNDECIDED) {
        double drain = value_of(r, "backlog.drain_frac");
        warnings_add(
            list,
            "UNDECIDED: too short to tell a stable load from an overload; the work left after the "
            "last arrival took another %.0f %% of the arrival window%s",
            100.0 * drain,
            drain < LEAST_LEFT_FRAC ? ". Where clients wait for answers, slow answers make the run "
                                      "longer and leave no work: compare jobs (job_s)"
                                    : "");
    }
    warnings_machine(c, list);
    warnings_energy(c, list);
    double busy[MACHINE_MAX_DEVICES];
    for (uint32_t i = 0; i < c->soc.machine.n_devices; i++) {
        OWNED char *name = xformat("%s.busy_frac", c->soc.machine.devices[i].name);
        busy[i] = value_of(r, name);
    }
    warnings_formats(c, busy, NULL, 1, list);
    struct extrapolated x = extrapolated_of(&r->metrics);
    warnings_range(&x, NULL, 1, list);
    for (uint32_t i = 0; i < s->n_refusals; i++) {
        char refused[RUNNER_REFUSAL_BYTES];
        if (counter_is_refusal(s->refusals[i].counter)) {
            warnings_add(list, "actions of the policy were refused: %s",
                         runner_refusal_text(&s->refusals[i], refused));
        }
    }
    if (r->printed_bytes > 0) {
        warnings_add(list,
                     "the policy printed %" PRIu64
                     " bytes to standard output, which is for results: they "
                     "went to standard error",
                     r->printed_bytes);
    }
    warnings_sketch(r->sketch, list);
    if (!s->audit.clean) {
        warnings_add(list, "the audit found a violation");
    }
}

/* ---- text ---- */

static void show_latencies(const struct runner_result *r, const char *group, struct document *d)
{
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
    static const char *const stats[] = {"mean", "p50", "p90", "p95", "p99", "max"};
    double arrived = value_of(r, document_format("%s.arrived", group));
    if (!(arrived > 0.0)) {
        return;
    }
    SIM_ASSERT(!(value_of(r, document_format("%s.finished", group)) > arrived));
    double rate = value_of(r, document_format("%s.throughput_req_per_min", group));
    document_note(d, "\n%s: %.0f of %.0f request%s finished%s", group,
                  value_of(r, document_format("%s.finished", group)), arrived,
                  text_plural((uint64_t)arrived),
                  isnan(rate) ? "" : document_format(", %.3g per minute", rate));
    struct frame *f = document_table(d, 2, "lrrrrrr", "", stats[0], stats[1], stats[2], stats[3],
                                     stats[4], stats[5]);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        FRAME_CELLS(f, rows[i].label);
        for (size_t k = 0; k < sizeof stats / sizeof stats[0]; k++) {
            const char *what = document_format("%s.%s", rows[i].metric, stats[k]);
            FRAME_CELLS(f, shown(r, group, what));
        }
    }
}

/* ", 0.2 J per token"; "" without tokens. */
static const char *per_token(const struct runner_result *r, const char *metric)
{
    double joules = value_of(r, metric);
    return isnan(joules) ? "" : document_format(", %.4g J per token", joules);
}

static void show_energy(const struct config *c, const struct runner_result *r, struct document *d)
{
    OWNED char *meter = warnings_meter(c);
    DOCUMENT_VALUES(d, "energy_meter", meter);
    bool stated = strcmp(meter, soc_meter_names()[SOC_METER_UNSTATED]) != 0;
    if (!isnan(value_of(r, "energy_j"))) { /* undefined in a real run */
        document_note(d,
                      "  energy %s J%s%s (%s idle)%s, peak %.3g W; DDR %.1f %% used, "
                      "%.1f %% of time at high pressure",
                      document_short(value_of(r, "energy_j")), stated ? ", meter " : "",
                      stated ? meter : "", document_short(value_of(r, "energy_idle_j")),
                      per_token(r, "energy_j_per_token"), value_of(r, "peak_power_watts"),
                      100.0 * value_of(r, "ddr.util_frac"),
                      100.0 * value_of(r, "ddr.tier_high_frac"));
    } else if (!isnan(value_of(r, "ddr.util_frac"))) {
        document_note(d,
                      "  energy unknown: the machine's file states no power; DDR %.1f %% used, "
                      "%.1f %% of time at high pressure",
                      100.0 * value_of(r, "ddr.util_frac"),
                      100.0 * value_of(r, "ddr.tier_high_frac"));
    }
}

/* Whether power limits slowed the machine. */
static bool is_slowed(const struct runner_result *r)
{
    return value_of(r, "throttle.lost_frac") > 0.0;
}

static void show_slowed(const struct runner_result *r, struct document *d)
{
    if (is_slowed(r)) {
        document_note(d, "  power limits took %.3g %% of the speed; lowest %.3g %%",
                      100.0 * value_of(r, "throttle.lost_frac"),
                      100.0 * value_of(r, "throttle.speed_min"));
    }
}

static void show_metered(const struct config *c, const struct runner_result *r, struct document *d)
{
    const struct metered *m = &c->soc.metered;
    if (metric_list_find(&r->metrics, "metered.energy_j") == NULL) { /* not in a real run */
        return;
    }
    const char *meter = soc_meter_names()[m->meter];
    double joules = value_of(r, "metered.energy_j");
    SIM_ASSERT(!(m->spread_factor < 1.0)); /* the interval includes the value */
    DOCUMENT_VALUES(d, "metered_meter", meter, "metered_spread", m->spread_factor);
    if (!isnan(joules)) {
        document_note(d, "  a %s meter would read %s J (%s to %s)%s, %.3g W in the mean%s", meter,
                      document_short(joules), document_short(joules / m->spread_factor),
                      document_short(joules * m->spread_factor),
                      per_token(r, "metered.energy_j_per_token"), value_of(r, "metered.watts"),
                      is_slowed(r) ? ", as if no power limit held" : "");
    } else if (!isnan(value_of(r, "energy_j"))) {
        document_note(d, "  a %s meter: no published reading of a device that worked", meter);
    }
}

static void show_machine(const struct config *c, const struct runner_result *r, struct document *d)
{
    static const char *const shares[] = {"busy_frac", "prefill_frac", "decode_frac"};
    document_note(d, "\nmachine over %s s", document_short(value_of(r, "duration_s")));
    struct frame *f = document_table(d, 2, "lrrrr", "", "busy", "prefill", "decode", "J");
    for (uint32_t i = 0; i < c->soc.machine.n_devices; i++) {
        const char *device = c->soc.machine.devices[i].name;
        FRAME_CELLS(f, device);
        for (size_t k = 0; k < 3; k++) {
            double share = value_of(r, document_format("%s.%s", device, shares[k]));
            SIM_ASSERT(!(share < 0.0) && !(share > 1.0 + 1e-9)); /* a share of time */
            FRAME_CELLS(f, document_format("%.1f %%", 100.0 * share));
        }
        FRAME_CELLS(f, shown(r, device, "energy_j"));
    }
    show_energy(c, r, d);
    show_slowed(r, d);
    show_metered(c, r, d);
    if (value_of(r, "battery.drawn_j") >= 0.0) { /* with events of the machine */
        document_note(d, "  battery %s J drawn, %.1f %% of its charge at the end",
                      document_short(value_of(r, "battery.drawn_j")),
                      100.0 * value_of(r, "battery.end_frac"));
    }
    if (value_of(r, "graphics.frames") > 0.0) { /* from a setting or events of the machine */
        document_note(
            d,
            "  frames %.0f, missed %.2f %%, wait %.3g ms in the mean, latest %.3g ms after "
            "it was due",
            value_of(r, "graphics.frames"), 100.0 * value_of(r, "graphics.missed_frac"),
            1e3 * value_of(r, "graphics.wait_s.mean"), 1e3 * value_of(r, "graphics.latency_s.max"));
    }
}

/* ---- data ---- */

static void put_audit(const struct sim_audit *a, struct document *d)
{
    DOCUMENT_VALUES(d, "clean", a->clean, "arrived", a->arrived, "finished", a->finished, "shed",
                    a->shed, "running", a->running, "queued", a->queued, "future", a->future,
                    "tokens_expected", a->tokens_expected, "tokens_produced", a->tokens_produced);
    DOCUMENT_VALUES(d, "energy_integral_j", a->energy_integral_j, "energy_sum_j", a->energy_sum_j,
                    "littles_law_residual_frac", a->littles_law_residual_frac,
                    "ddr_max_over_capacity", a->ddr_max_over_capacity, "double_bookings",
                    a->double_bookings);
}

static void put_counters(const struct sim_result *s, struct document *d)
{
    for (int i = 0; i < COUNTER_COUNT; i++) {
        DOCUMENT_VALUES(d, counter_names[i], s->counters[i]);
    }
    for (uint32_t i = 0; i < s->n_policy_counters; i++) {
        DOCUMENT_VALUES(d, document_format("policy.%s", s->policy_counter_names[i]),
                        s->policy_counters[i]);
    }
}

void runner_document(const struct config *c, const struct config_policy *p, const struct trace *t,
                     uint64_t seed, const struct runner_result *r, struct document *d)
{
    OWNED char *fingerprint = config_fingerprint(c, p, t, seed);
    const char *verdict = metrics_verdict_names[r->verdict];
    const struct sim_audit *a = &r->sim.audit;
    /* A trace may have more requests than arrived: a closed loop, or a horizon. */
    OWNED char *of = a->future > 0 ? xformat(" of %zu", t->n) : xstrdup("");
    document_note(d, "%s on %s, %s\n%s: %" PRIu64 "%s request%s%s, seed %" PRIu64 ": %s", p->label,
                  c->soc.machine.name, c->models, c->workload, a->arrived, of,
                  text_plural(a->future > 0 ? t->n : a->arrived), a->future > 0 ? " arrived" : "",
                  seed, verdict);
    DOCUMENT_VALUES(d, "fingerprint", fingerprint);
    struct document *config = document_within(d, "config");
    document_members(config, c->tree);
    DOCUMENT_VALUES(config, "workload", c->workload, "policy", p->ops->name, "params",
                    p->params_text, "seed", seed); /* a double; the fingerprint is exact */
    struct document *metrics = document_within(d, "metrics");
    for (size_t i = 0; i < r->metrics.n; i++) {
        DOCUMENT_VALUES(metrics, r->metrics.v[i].name, r->metrics.v[i].value);
    }
    show_latencies(r, "reactive", d);
    show_latencies(r, "proactive", d);
    show_machine(c, r, d);
    DOCUMENT_VALUES(d, "verdict", verdict, "sketch", r->sketch);
    put_audit(a, document_within(d, "audit"));
    put_warnings(c, r, d);
    runner_refusals(&r->sim, d);
    put_counters(&r->sim, document_within(d, "counters"));
    document_note(d, "\n%s", fingerprint);
}

/* ---- refused actions, as text and as data ---- */

static const char *errno_name(int status)
{
    static const struct {
        int status;
        const char *name;
    } names[] = {{-EBUSY, "EBUSY"},   {-EINVAL, "EINVAL"},     {-ENOMEM, "ENOMEM"},
                 {-ENOENT, "ENOENT"}, {-EALREADY, "EALREADY"}, {-EPERM, "EPERM"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].status == status) {
            return names[i].name;
        }
    }
    return "error";
}

const char *runner_refusal_text(const struct sim_refusal *x, char text[RUNNER_REFUSAL_BYTES])
{
    SIM_ASSERT(x->n > 0 && x->first_ns >= 0 && x->status < 0); /* a row has at least one */
    bool in_hook = strcmp(x->hook, "schedule") != 0;
    (void)snprintf(text, RUNNER_REFUSAL_BYTES,
                   "%s %" PRIu64 " time%s%s%s, first at %.6g s: %s (%s)", x->action, x->n,
                   text_plural(x->n), in_hook ? " in " : "", in_hook ? x->hook : "",
                   units_s_from_ns(x->first_ns), x->why, errno_name(x->status));
    return text;
}

/* Adds refused wrong actions. Refusals for lack of KV are no error. */
void runner_refusals(const struct sim_result *s, struct document *d)
{
    struct frame *f = document_data(d, "refused", 0, "action hook reason error count first_s");
    frame_aside(f);
    for (uint32_t i = 0; i < s->n_refusals; i++) {
        const struct sim_refusal *x = &s->refusals[i];
        if (counter_is_refusal(x->counter)) {
            FRAME_ROW(f, x->action, x->hook, x->why, errno_name(x->status), (double)x->n,
                      units_s_from_ns(x->first_ns));
        }
    }
}

#include "experiments/selftest/selftest.h"

#include "experiments/compare/compare.h"
#include "experiments/run/price.h"
#include "experiments/run/runner.h"
#include "sim/base/quantile.h"
#include "sim/stats/stats_intervals.h"

/* ---- negative controls ---- */

#define REPLICATIONS 10
#define SETS_MAX 10

enum direction { UP, DOWN, NOT_DOWN };

struct control {
    const char *name;
    const char *policy;         /* with the change */
    const char *sets[SETS_MAX]; /* with the change */
    bool swap_classes;
    const char *metric;         /* without the change */
    const char *changed_metric; /* with it; NULL: the same name */
    enum direction predicted;
    const char *why;
};

#define POLICY "agent-xpu-v2"
#define NO_NOISE "sim.annotation.sigma_prefill=0", "sim.annotation.sigma_decode=0"

/* The controls run the 8B model, which loads the machine enough for every mechanism to matter. */
static const struct control controls[] = {
    {"NPU nearly off",
     POLICY,
     {"soc.devices.npu.runtimes.0.rate=0.15"},
     false,
     "reactive.ttft_s.mean",
     NULL,
     UP,
     "a twentieth of its rate: reactive prefill has only the iGPU left"},
    {"class labels swapped",
     POLICY,
     {NULL},
     true,
     "reactive.e2e_s.mean",
     "proactive.e2e_s.mean",
     UP,
     "the same requests, now labelled proactive, lose their priority"},
    {"one giant kernel per prefill",
     POLICY ":preempt=none",
     {NULL},
     false,
     "reactive.prefill_pending_s.mean",
     NULL,
     UP,
     "a reactive arrival waits for the whole running prefill"},
    {"contention off",
     POLICY,
     {"sim.contention=none"},
     false,
     "reactive.tbt_s.mean",
     NULL,
     DOWN,
     "iGPU decode keeps its bandwidth next to the NPU"},
    {"zero host cost",
     POLICY,
     {"soc.host.sync=0", "soc.host.schedule=0", "soc.host.sample=0", "soc.devices.npu.submit=0",
      "soc.devices.npu.completion=0", "soc.devices.igpu.submit=0", "soc.devices.igpu.completion=0"},
     false,
     "reactive.tbt_s.p50",
     NULL,
     DOWN,
     "no barrier, submission or sampling time"},
    {"perfect annotations",
     POLICY,
     {NO_NOISE},
     false,
     "reactive.ttft_s.mean",
     NULL,
     DOWN,
     "the elastic split balances NPU and iGPU exactly"},
    {"noisy annotations (sigma 0.5)",
     POLICY,
     {"sim.annotation.sigma_prefill=0.5", "sim.annotation.sigma_decode=0.5"},
     false,
     "reactive.ttft_s.mean",
     NULL,
     UP,
     "the elastic split is often wrong"},
};

size_t controls_count(void)
{
    return sizeof controls / sizeof controls[0];
}

/* Runs in the worker. Loads a control, or the unchanged set-up if `from` is NULL. */
static int load(struct study_cell *out, struct err *e)
{
    const struct control *of = out->from;
    struct config_options *o = xmalloc(sizeof *o);
    struct config *c = xcalloc(1, sizeof *c);
    struct config_policy *p = xcalloc(1, sizeof *p);
    *o = config_options_default();
    o->llm = "llama-3.1-8b";
    for (int i = 0; of != NULL && i < SETS_MAX && of->sets[i] != NULL; i++) {
        o->sets[o->n_sets++] = of->sets[i];
    }
    out->config = c;
    out->options = o;
    out->policy = p;
    out->arrivals.swap_classes = of != NULL && of->swap_classes;
    return config_load(c, o, e) == 0 &&
                   config_policy_parse(p, of != NULL ? of->policy : POLICY, e) == 0
               ? 0
               : -EINVAL;
}

/* Runs cell (control * 2 + changed) * REPLICATIONS + replication. */
static struct study_outcomes run_cells(void)
{
    enum { N = sizeof controls / sizeof controls[0] * 2 * REPLICATIONS };
    struct study_cell cells[N];
    const struct config_options o = config_options_default();
    for (uint32_t i = 0; i < N; i++) {
        bool changed = i / REPLICATIONS % 2 != 0;
        cells[i] = (struct study_cell){
            .seed = config_seed(o.seed, i % REPLICATIONS),
            .arrivals = CONFIG_AS_WRITTEN,
            .load = load,
            .from = changed ? &controls[i / REPLICATIONS / 2] : NULL,
        };
    }
    return study_run(cells, N, &(struct study_how){.parallel = 2, .cpu_limit_s = 60.0});
}

/* Fills a metric's values over the replications. Prints an error and returns false if a run
 * failed. */
static bool values_of(const struct study_outcome *o, const char *metric, double *values)
{
    for (uint32_t i = 0; i < REPLICATIONS; i++) {
        if (o[i].status != 0 || !study_has(&o[i], metric)) {
            (void)fprintf(stderr, "xpusim: error: control: no metric %s, or a failed run: %s\n",
                          metric, o[i].message);
            return false;
        }
        values[i] = study_value(&o[i], metric);
    }
    return true;
}

static bool moved(enum stats_finding f, enum direction d)
{
    return d == UP ? f == STATS_HIGHER : d == DOWN ? f == STATS_LOWER : f != STATS_LOWER;
}

/* Fills each control's difference, and its p adjusted over all controls as one family. NaN: a run
 * failed. */
static void differences(const struct study_outcomes *runs, struct stats_paired *difference,
                        double *p)
{
    for (size_t i = 0; i < controls_count(); i++) {
        const struct control *c = &controls[i];
        double base[REPLICATIONS];
        double changed[REPLICATIONS];
        const char *name = c->changed_metric == NULL ? c->metric : c->changed_metric;
        const struct study_outcome *of = &runs->v[i * 2 * REPLICATIONS];
        bool ok = values_of(of, c->metric, base) && values_of(of + REPLICATIONS, name, changed);
        /* Small differences count, too, because the question is whether the mechanism exists. */
        difference[i] = stats_reported_paired(changed, base, ok ? REPLICATIONS : 0);
        difference[i].relevance_frac = 0.0;
        p[i] = ok ? stats_p(&difference[i]) : METRIC_UNDEFINED;
    }
    significance_adjust(p, controls_count(), 0);
}

size_t controls_run(struct document *d)
{
    static const struct frame_column columns[] = {
        {.name = "control", .kind = FRAME_TEXT, .junit = FRAME_JUNIT_NAME},
        {.name = "metric", .kind = FRAME_TEXT, .junit = FRAME_JUNIT_NAME},
        {.name = "predicted", .kind = FRAME_TEXT},
        {.name = "found", .kind = FRAME_TEXT},
        {.name = "p_holm", .only_data = true},
        {.name = "verdict", .title = "", .kind = FRAME_TEXT},
        {.name = "why", .kind = FRAME_TEXT},
    };
    struct stats_paired difference[sizeof controls / sizeof controls[0]];
    double p[sizeof controls / sizeof controls[0]];
    size_t wrong = 0;
    SCOPED(study_outcomes_fini) struct study_outcomes runs = run_cells();
    struct frame *f = DOCUMENT_FRAME(d, "controls", 0, columns);
    differences(&runs, difference, p);
    for (size_t i = 0; i < controls_count(); i++) {
        const struct control *c = &controls[i];
        bool ran = difference[i].diff.n > 0;
        bool ok = ran && moved(significance_judge(&difference[i], p[i]), c->predicted);
        wrong += !ok;
        FRAME_ROW(f, c->name, c->metric,
                  c->predicted == UP     ? "up"
                  : c->predicted == DOWN ? "down"
                                         : "not down",
                  ran ? significance_text(&difference[i], p[i]) : "failed", p[i],
                  ok ? "ok" : "NOT AS PREDICTED", c->why);
    }
    return wrong;
}

#define INPUT_TOKENS 300u
#define SMALL_WORKLOAD "mixed:reactive_per_min=4,proactive_per_min=4,duration_s=120"

/* ---- mathematics ---- */

static bool expect(double got, double want, const char *what, char *why, size_t size)
{
    if (fabs(got - want) <= 1e-9 * fabs(want)) {
        return true;
    }
    (void)snprintf(why, size, "%s is %.12g, not %.12g", what, got, want);
    return false;
}

/* Demands of 60, 30 and 10 share 80 GB/s. The fair third is 26.7, so 10 gets its demand. The fair
 * half of the rest is 35, so 30 gets its demand, and 40 is left for 60. */
static bool max_min_shares(char *why, size_t size)
{
    struct flow f[] = {{60e9, 1.0, 0, 0.0}, {30e9, 1.0, 1, 0.0}, {10e9, 1.0, 2, 0.0}};
    contention_find("max-min")->share(f, 3, 80e9, NULL);
    return expect(f[0].share_bytes_per_s, 40e9, "first share", why, size) &&
           expect(f[1].share_bytes_per_s, 30e9, "second share", why, size) &&
           expect(f[2].share_bytes_per_s, 10e9, "third share", why, size);
}

/* The median of 1..10 is the 5th value, p90 the 9th, p99 the 10th. */
static bool nearest_rank(char *why, size_t size)
{
    SCOPED(sample_fini) struct sample s;
    sample_init(&s, false);
    for (int i = 10; i >= 1; i--) {
        sample_add(&s, i);
    }
    return expect(sample_quantile(&s, 0.50), 5.0, "p50", why, size) &&
           expect(sample_quantile(&s, 0.90), 9.0, "p90", why, size) &&
           expect(sample_quantile(&s, 0.99), 10.0, "p99", why, size);
}

/* Differences 1, 2, 3: mean 2, standard error 1/sqrt 3, t(0.975, 2) = 4.302652729749. */
static bool paired_interval(char *why, size_t size)
{
    const double x[] = {11.0, 22.0, 33.0};
    const double base[] = {10.0, 20.0, 30.0};
    struct stats_paired p = stats_paired(x, base, 3, 0.95);
    return expect(p.diff.mean, 2.0, "mean difference", why, size) &&
           expect(stats_half_width(&p.diff), 4.302652729749 / sqrt(3.0), "half-width", why, size);
}

/* ---- runs on the shipped machine ---- */

struct rig {
    struct config config;
    struct config_policy policy;
    struct trace trace;
    struct runner_result result;
    struct err err;
};

static bool rig_fail(const struct rig *g, char *why, size_t size)
{
    (void)snprintf(why, size, "%s", g->err.n > 0 ? g->err.lines[0] : g->result.sim.message);
    return false;
}

/* Runs FCFS on one row; NULL: on the small workload. */
static bool rig_run(struct rig *g, struct trace_row *rows, bool collapse, char *why, size_t size)
{
    memset(g, 0, sizeof *g);
    struct config_options o = config_options_default();
    o.workload = SMALL_WORKLOAD;
    if (config_load(&g->config, &o, &g->err) != 0 ||
        config_policy_parse(&g->policy, "fcfs", &g->err) != 0) {
        return rig_fail(g, why, size);
    }
    g->config.sim.collapse = collapse;
    if (rows != NULL) {
        g->trace = (struct trace){.rows = rows, .n = 1, .n_first = 1, .hash = 1};
    } else if (config_trace(&o, 1, CONFIG_AS_WRITTEN, &g->trace, &g->err) != 0) {
        return rig_fail(g, why, size);
    }
    struct runner_options ro = {.samples = RUNNER_SAMPLES_EXACT};
    int rc = runner_run(&g->config, &g->policy, &g->trace, 1, &ro, &g->result, &g->err);
    return rc == 0 ? true : rig_fail(g, why, size);
}

static void rig_fini(struct rig *g, bool owns_trace)
{
    if (owns_trace) {
        trace_fini(&g->trace);
    }
    runner_result_fini(&g->result);
    config_fini(&g->config);
    err_fini(&g->err);
}

static double metric(const struct rig *g, const char *name)
{
    const struct metric *m = metric_list_find(&g->result.metrics, name);
    return m != NULL ? m->value : METRIC_UNDEFINED;
}

/* Time of a lone prefill on one device: host costs of its one launch, three ops per layer, the
 * head, and sampling of one token. */
static double lone_prefill_s(const struct config *c, uint8_t device)
{
    const struct machine *m = &c->soc.machine;
    struct work_shape w = price_prefill_shape(&c->llm, INPUT_TOKENS, 1);
    int64_t ns = m->schedule_ns + m->devices[device].submit_ns + m->devices[device].completion_ns +
                 m->sample_ns_per_token;
    for (int op = OP_QKV; op <= OP_HEAD; op++) {
        uint32_t times = op == OP_HEAD ? 1 : c->llm.n_layers;
        ns += times * units_ns_from_s(price_op(&c->truth, device, (enum op_kind)op, &w).seconds);
    }
    return units_s_from_ns(ns);
}

static bool lone_request(char *why, size_t size)
{
    struct trace_row row = {.arrival_ns = NS_PER_S,
                            .input_tokens = INPUT_TOKENS,
                            .output_tokens = 1,
                            .max_output_tokens = 256,
                            .next = TRACE_NO_ROW};
    struct rig g;
    bool ok = rig_run(&g, &row, true, why, size);
    if (ok) {
        int device = machine_find(&g.config.soc.machine, DEVICE_KIND_IGPU);
        ok = expect(metric(&g, "reactive.e2e_s.mean"), lone_prefill_s(&g.config, (uint8_t)device),
                    "E2E of a lone request", why, size);
    }
    rig_fini(&g, false);
    return ok;
}

static bool audit_holds(char *why, size_t size)
{
    struct rig g;
    bool ok = rig_run(&g, NULL, true, why, size);
    if (ok) {
        const struct sim_audit *a = &g.result.sim.audit;
        ok = a->clean && a->finished == a->arrived && a->arrived == g.trace.n;
        if (!ok) {
            (void)snprintf(why, size, "audit not clean, or not all %zu requests finished",
                           g.trace.n);
        }
        ok = ok && expect(metric(&g, "energy_j"), a->energy_integral_j, "energy", why, size);
    }
    rig_fini(&g, true);
    return ok;
}

/* Compares all metrics but the number of events, bit for bit. */
static bool same_metrics(const struct rig *a, const struct rig *b, char *why, size_t size)
{
    for (size_t i = 0; i < a->result.metrics.n; i++) {
        const struct metric *x = &a->result.metrics.v[i];
        const struct metric *y = &b->result.metrics.v[i];
        if (strcmp(x->name, "events") != 0 && memcmp(x, y, sizeof *x) != 0) {
            (void)snprintf(why, size, "%s is %.17g and %.17g", x->name, x->value, y->value);
            return false;
        }
    }
    return true;
}

static bool twice_the_same(bool second_collapses, char *why, size_t size)
{
    struct rig a;
    struct rig b;
    bool ok = rig_run(&a, NULL, true, why, size);
    bool ok_b = rig_run(&b, NULL, second_collapses, why, size);
    ok = ok && ok_b && same_metrics(&a, &b, why, size);
    rig_fini(&a, true);
    rig_fini(&b, true);
    return ok;
}

static bool deterministic(char *why, size_t size)
{
    return twice_the_same(true, why, size);
}

static bool collapse_invisible(char *why, size_t size)
{
    return twice_the_same(false, why, size);
}

const struct selftest selftest_closed_forms[] = {
    {"max-min sharing gives small demands all and splits the rest", max_min_shares},
    {"quantiles use the nearest rank", nearest_rank},
    {"paired intervals are Student's", paired_interval},
    {"a lone request takes the sum of its kernels and host costs", lone_request},
    {"a drained run conserves requests and energy", audit_holds},
    {"the same seed gives the same bytes", deterministic},
    {"collapsing undisturbed kernels changes no result", collapse_invisible},
};

const size_t selftest_n_closed_forms =
    sizeof selftest_closed_forms / sizeof selftest_closed_forms[0];

size_t selftest_run(const struct selftest *tests, size_t n, bool quiet, struct document *d)
{
    static const struct frame_column columns[] = {
        {.name = "verdict", .title = "", .kind = FRAME_TEXT},
        {.name = "check", .title = "", .kind = FRAME_TEXT, .junit = FRAME_JUNIT_NAME},
        {.name = "failed", .kind = FRAME_FLAG, .only_data = true, .junit = FRAME_JUNIT_FAILED},
        {.name = "why", .title = "", .kind = FRAME_TEXT, .junit = FRAME_JUNIT_MESSAGE},
    };
    size_t failed = 0;
    struct frame *f = DOCUMENT_FRAME(d, "checks", 0, columns);
    for (size_t i = 0; i < n; i++) {
        char why[512] = "";
        bool ok = tests[i].holds(why, sizeof why);
        failed += ok ? 0 : 1;
        FRAME_ROW(f, ok ? "ok" : "FAILED", tests[i].name, !ok);
        if (!ok) {
            FRAME_SET(f, "why", why);
        } else if (quiet) {
            frame_hide_row(f);
        }
    }
    return failed;
}

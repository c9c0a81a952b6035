#include "experiments/selftest/controls.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/compare/compare.h"
#include "experiments/compare/significance.h"
#include "sim/base/arena.h"

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

/* On the 8B model, where the machine is loaded enough for every mechanism to show. */
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
     "iGPU decode keeps its bandwidth beside the NPU"},
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

/* In the worker: the set-up of a control, or the demo's where `from` is NULL. */
static int load(struct study_cell *out, struct err *e)
{
    const struct control *of = out->from;
    struct config_options *o = xmalloc(sizeof *o);
    struct config *c = xcalloc(1, sizeof *c);
    struct config_policy *p = xcalloc(1, sizeof *p);
    *o = config_options_default();
    o->llm = "llama-3.1-8b";
    for (int i = 0; of != NULL && i < SETS_MAX && of->sets[i] != NULL; i++) {
        o->sets[o->n_sets++] = xstrdup(of->sets[i]);
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

/* Number (control * 2 + is it changed) * REPLICATIONS + replication. */
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

/* Values of one metric over the replications; false with a message when a run failed. */
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

/* The difference that each control makes, and its p adjusted over all controls, which are one
 * family. NaN where a run failed. */
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
        /* Small moves count too: is there the mechanism at all? */
        difference[i] = significance_difference(changed, base, ok ? REPLICATIONS : 0, 0.0, i);
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
    struct study_outcomes runs = run_cells();
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
                  ran ? significance_text(d, &difference[i], p[i]) : "failed", p[i],
                  ok ? "ok" : "NOT AS PREDICTED", c->why);
    }
    study_outcomes_fini(&runs);
    return wrong;
}

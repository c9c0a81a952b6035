#include "experiments/selftest/controls.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/compare/compare.h"
#include "experiments/shell/frame_stats.h"
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

/* Cell number (control * 2 + is it changed) * REPLICATIONS + replication. In the worker, which ends
 * afterwards, so nothing is freed. */
static int cell(void *ctx, uint64_t index, struct study_cell *out, struct err *e)
{
    const struct control *of = &controls[index / REPLICATIONS / 2];
    bool changed = index / REPLICATIONS % 2 != 0;
    struct config_options *o = xmalloc(sizeof *o);
    struct config *c = xcalloc(1, sizeof *c);
    struct config_policy *p = xcalloc(1, sizeof *p);
    (void)ctx;
    *o = config_options_default();
    o->llm = "llama-3.1-8b";
    for (int i = 0; i < SETS_MAX && changed && of->sets[i] != NULL; i++) {
        o->sets[o->n_sets++] = xstrdup(of->sets[i]);
    }
    *out = (struct study_cell){.config = c,
                               .options = o,
                               .policy = p,
                               .seed = config_seed(o->seed, (uint32_t)(index % REPLICATIONS)),
                               .arrivals = {1.0, 1.0, changed && of->swap_classes}};
    return config_load(c, o, e) == 0 &&
                   config_policy_parse(p, changed ? of->policy : POLICY, e) == 0
               ? 0
               : -EINVAL;
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

static bool moved(const struct stats_paired *p, enum direction d)
{
    enum stats_finding f = stats_judge(p);
    return d == UP ? f == STATS_HIGHER : d == DOWN ? f == STATS_LOWER : f != STATS_LOWER;
}

static size_t judge(const struct study_outcomes *came, struct document *d)
{
    static const struct frame_column columns[] = {
        {.name = "control", .kind = FRAME_TEXT, .junit = FRAME_JUNIT_NAME},
        {.name = "metric", .kind = FRAME_TEXT, .junit = FRAME_JUNIT_NAME},
        {.name = "predicted", .kind = FRAME_TEXT},
        {.name = "found", .kind = FRAME_TEXT},
        {.name = "verdict", .title = "", .kind = FRAME_TEXT},
        {.name = "why", .kind = FRAME_TEXT},
    };
    size_t wrong = 0;
    struct frame *f = DOCUMENT_FRAME(d, "controls", 0, columns);
    for (size_t i = 0; i < controls_count(); i++) {
        const struct control *c = &controls[i];
        double base[REPLICATIONS];
        double changed[REPLICATIONS];
        const char *name = c->changed_metric == NULL ? c->metric : c->changed_metric;
        const struct study_outcome *of = &came->v[i * 2 * REPLICATIONS];
        bool ok = values_of(of, c->metric, base) && values_of(of + REPLICATIONS, name, changed);
        struct stats_paired p = stats_paired(changed, base, REPLICATIONS, STATS_LEVEL_FRAC);
        p.relevance_frac = 0.0; /* small moves count too: is there the mechanism at all? */
        const char *found = ok ? document_verdict(d, &p) : "failed";
        ok = ok && moved(&p, c->predicted);
        wrong += !ok;
        FRAME_ROW(f, c->name, c->metric,
                  c->predicted == UP     ? "up"
                  : c->predicted == DOWN ? "down"
                                         : "not down",
                  found, ok ? "ok" : "NOT AS PREDICTED", c->why);
    }
    return wrong;
}

bool controls_judge(void *ctx, const struct study_outcomes *came, struct study *next)
{
    struct controls *c = ctx;
    if (came != NULL) {
        c->wrong = judge(came, c->d);
        return false;
    }
    *next = (struct study){.n = controls_count() * 2 * REPLICATIONS,
                           .how = {.parallel = 2, .cpu_limit_s = 60.0},
                           .cell = cell};
    return true;
}

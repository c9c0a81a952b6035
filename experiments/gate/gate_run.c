/* Running the matrix of a gate: every policy of every group, replicated, in worker processes. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/compare/compare.h"
#include "experiments/gate/gate.h"
#include "experiments/gate/gate_exec.h"
#include "experiments/run/config.h"
#include "experiments/run/runner.h"
#include "sim/base/arena.h"
#include "sim/base/hash.h"
#include "sim/base/quantile.h"
#include "sim/base/rng.h"
#include "traces/traces.h"

static const struct config_arrivals as_they_are = {1.0, 1.0, false};

/* A group made ready. */
struct prepared {
    const struct gate_group *group;
    struct config_options options;
    struct config config;
    uint64_t seed;        /* of this measurement */
    uint64_t trace_hash0; /* of the trace of the group's own seed */
};

struct task {
    uint32_t group, policy, replication, cell;
};

struct matrix {
    const struct gate_run *run;
    struct prepared *groups; /* owned */
    struct task *tasks;      /* owned */
    uint32_t n_tasks;
};

/* What a worker sends back. */
struct outcome {
    uint64_t trace_hash;
    uint32_t verdict;
    uint32_t missing; /* bit per metric that the run does not know */
    double covariates[GATE_COVARIATES];
    double values[GATE_MAX_METRICS];
};

/* ---- in the worker ---- */

static double or_zero(double x)
{
    return isfinite(x) ? x : 0.0;
}

/* Prompt tokens that take as long as one decoded token when nothing else runs, roughly, on the
 * shipped machines (60 ms and 2.4 ms with the 3B model on the Core Ultra). It only has to make long
 * requests long; how well it does shows in the width of the test, not in its level. */
#define DECODE_WEIGHT 25.0

/* P90 over a class of a request's length in work. */
static double work_p90(const struct trace *t, int cls)
{
    struct sample work;
    sample_init(&work, false);
    for (size_t i = 0; i < t->n; i++) {
        if (t->rows[i].cls == cls) {
            sample_add(&work, t->rows[i].input_tokens + DECODE_WEIGHT * t->rows[i].output_tokens);
        }
    }
    double p90 = sample_quantile(&work, 0.9);
    sample_fini(&work);
    return p90;
}

/* What makes a trace heavy or light, whatever the policy. */
static void covariates_of(const struct trace *t, double *out)
{
    struct trace_stats s;
    trace_stats(t, &s);
    for (int c = 0; c < 2; c++) {
        const struct trace_class_stats *k = &s.cls[c];
        *out++ = (double)k->n;
        *out++ = or_zero(k->input_mean);
        *out++ = or_zero(k->input_p90);
        *out++ = or_zero(k->output_mean);
        *out++ = or_zero(k->output_p90);
        *out++ = or_zero(work_p90(t, c));
    }
}

/* To the 15 significant digits that JSON keeps, so that a value equals itself after a file or
 * another binary's output. */
static double canonical(double x)
{
    char text[40];
    (void)snprintf(text, sizeof text, "%.15g", x);
    return isfinite(x) ? strtod(text, NULL) : METRIC_UNDEFINED;
}

static void fail(struct job_result *r, const char *message)
{
    r->status = -1;
    (void)snprintf(r->message, sizeof r->message, "%s", message);
}

static void run_here(const struct prepared *g, const char *policy, const struct trace *t,
                     uint64_t seed, struct outcome *o, struct job_result *out)
{
    struct err e = ERR_INIT;
    struct config_policy p;
    if (config_policy_parse(&p, policy, &e) != 0) {
        fail(out, e.lines[0]);
        return; /* the process ends: nothing to free */
    }
    struct runner_options opt = {.sketch = false};
    struct runner_result r;
    if (runner_run(&g->config, &p, t, seed, &opt, &r, &e) != 0) {
        fail(out, r.sim.message);
        return;
    }
    if (!r.sim.audit.clean) {
        fail(out, "the audit found a violation");
        return;
    }
    o->verdict = (uint32_t)r.verdict;
    for (uint32_t i = 0; i < g->group->n_metrics; i++) {
        const struct metric *m = metric_list_find(&r.metrics, g->group->metrics[i].name);
        o->missing |= m == NULL ? 1U << i : 0;
        o->values[i] = canonical(m != NULL ? m->value : METRIC_UNDEFINED);
    }
}

/* The verdict by its name; -1 when there is none. */
static int verdict_of(const cJSON *root)
{
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(root, "verdict"));
    for (int v = METRICS_STABLE; name != NULL && v <= METRICS_OVERLOADED; v++) {
        if (strcmp(name, metrics_verdict_names[v]) == 0) {
            return v;
        }
    }
    return -1;
}

static void run_there(const char *binary, const struct prepared *g, const char *policy,
                      uint64_t seed, struct outcome *o, struct job_result *out)
{
    char message[JOBS_MESSAGE_BYTES];
    cJSON *root = gate_exec(binary, g->group, policy, seed, NULL, message, sizeof message);
    const cJSON *metrics = cJSON_GetObjectItemCaseSensitive(root, "metrics");
    int verdict = verdict_of(root);
    if (root == NULL || !cJSON_IsObject(metrics) || verdict < 0) {
        fail(out, root == NULL ? message : "its result holds no metrics or no verdict");
        return;
    }
    o->verdict = (uint32_t)verdict;
    for (uint32_t i = 0; i < g->group->n_metrics; i++) {
        const cJSON *m = cJSON_GetObjectItemCaseSensitive(metrics, g->group->metrics[i].name);
        o->missing |= m == NULL ? 1U << i : 0;
        o->values[i] = canonical(cJSON_IsNumber(m) ? m->valuedouble : METRIC_UNDEFINED);
    }
}

static void run_one(void *ctx, uint32_t index, struct job_result *out)
{
    const struct matrix *m = ctx;
    const struct task *k = &m->tasks[index];
    const struct prepared *g = &m->groups[k->group];
    const char *policy = g->group->policies[k->policy];
    uint64_t seed = compare_seed(g->seed, k->replication);
    struct err e = ERR_INIT;
    struct trace t = {0};
    if (config_trace(&g->options, seed, as_they_are, &t, &e) != 0) {
        fail(out, e.lines[0]);
        return;
    }
    struct outcome *o = xcalloc(1, sizeof *o);
    o->trace_hash = t.hash;
    covariates_of(&t, o->covariates);
    if (m->run->binary != NULL) {
        run_there(m->run->binary, g, policy, seed, o, out);
    } else {
        run_here(g, policy, &t, seed, o, out);
    }
    /* A failed run still says which trace it met. */
    out->data = o;
    out->size = sizeof *o;
}

/* ---- in the parent ---- */

static void check_metrics(const struct prepared *g, struct err *e)
{
    struct metric_list names = {0};
    runner_metric_names(&g->config, &names);
    uint32_t known = 0;
    for (uint32_t i = 0; i < g->group->n_metrics; i++) {
        known += metric_list_find(&names, g->group->metrics[i].name) != NULL;
    }
    if (known == 0) { /* single ones are rows that say so; none at all is a mistake in the file */
        (void)err_add(e, "group '%s': a run has none of its metrics", g->group->name);
    }
    metric_list_fini(&names);
}

static void prepare(struct prepared *p, const struct gate_group *g, const struct gate_run *r,
                    struct err *e)
{
    size_t before = e->n;
    *p = (struct prepared){.group = g, .options = config_options_default(), .seed = g->seed};
    p->options.soc = g->soc;
    p->options.llm = g->llm;
    p->options.workload = g->workload;
    p->options.trace = g->trace;
    p->options.seed = g->seed;
    for (uint32_t i = 0; i < g->n_sets; i++) {
        const char *equals = strchr(g->sets[i], '=');
        if (equals == NULL || equals == g->sets[i] || equals - g->sets[i] >= 190) {
            (void)err_add(e, "group '%s': set '%s': must be PATH=VALUE", g->name, g->sets[i]);
        } else {
            p->options.sets[p->options.n_sets++] = xstrdup(g->sets[i]);
        }
    }
    if (g->fresh && r->fresh_seeds) {
        p->seed = r->own_seed ? r->seed : rng_seed(rng_mix64(g->seed + 1));
    }
    if (config_load(&p->config, &p->options, e) == 0) {
        check_metrics(p, e);
    }
    struct trace t = {0};
    if (e->n == before && config_trace(&p->options, g->seed, as_they_are, &t, e) == 0) {
        p->trace_hash0 = t.hash;
    }
    trace_fini(&t);
}

static void cell_init(struct gate_cell *c, const struct gate_group *g, const char *policy)
{
    *c = (struct gate_cell){.group = xstrdup(g->name),
                            .policy = xstrdup(policy),
                            .present = true,
                            .replications = g->replications,
                            .n_metrics = g->n_metrics,
                            .trace_hash = HASH_INIT};
    c->names = xcalloc(g->n_metrics, sizeof *c->names);
    for (uint32_t i = 0; i < g->n_metrics; i++) {
        (void)snprintf(c->names[i], sizeof c->names[i], "%s", g->metrics[i].name);
    }
    size_t n = (size_t)g->n_metrics * g->replications;
    c->values = xmalloc(n * sizeof *c->values);
    for (size_t i = 0; i < n; i++) {
        c->values[i] = METRIC_UNDEFINED;
    }
    if (g->fresh) {
        c->covariates = xcalloc((size_t)g->replications * GATE_COVARIATES, sizeof *c->covariates);
    }
}

/* Takes one run in; *missing collects the metrics that some run does not know. */
static void take(struct gate_cell *c, const struct task *k, const struct job_result *r,
                 uint32_t *missing)
{
    const struct outcome *o = r->data;
    bool whole = r->size == sizeof *o;
    c->trace_hash = hash_u64(c->trace_hash, whole ? o->trace_hash : 0);
    if (whole && c->covariates != NULL) {
        memcpy(&c->covariates[(size_t)k->replication * GATE_COVARIATES], o->covariates,
               sizeof o->covariates);
    }
    if (r->status != 0 || !whole) {
        if (c->failed++ == 0) {
            (void)snprintf(c->message, sizeof c->message, "%s", r->message);
            c->unknown_policy = strstr(r->message, "no policy is called") != NULL;
        }
        return;
    }
    c->verdicts[o->verdict]++;
    *missing |= o->missing;
    for (uint32_t i = 0; i < c->n_metrics; i++) {
        c->values[(size_t)i * c->replications + k->replication] = o->values[i];
    }
}

/* Leaves out the metrics that do not exist, so that they are missing rows and not undefined ones.
 */
static void drop_missing(struct gate_cell *c, uint32_t missing)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->n_metrics; i++) {
        if ((missing >> i & 1U) == 0) {
            memmove(c->names[kept], c->names[i], sizeof c->names[0]);
            memmove(&c->values[(size_t)kept * c->replications],
                    &c->values[(size_t)i * c->replications], c->replications * sizeof *c->values);
            kept++;
        }
    }
    c->n_metrics = kept;
}

static void collect(const struct matrix *m, struct job_result *results, struct gate_cells *out)
{
    uint32_t *missing = xcalloc(out->n + 1, sizeof *missing);
    for (uint32_t i = 0; i < m->n_tasks; i++) {
        const struct task *k = &m->tasks[i];
        take(&out->v[k->cell], k, &results[i], &missing[k->cell]);
        free(results[i].data);
    }
    for (uint32_t i = 0; i < m->n_tasks; i++) {
        const struct task *k = &m->tasks[i];
        if (m->groups[k->group].group->fresh) { /* its seeds differ: one trace stands for all */
            out->v[k->cell].trace_hash = m->groups[k->group].trace_hash0;
        }
    }
    for (uint32_t i = 0; i < out->n; i++) {
        drop_missing(&out->v[i], missing[i]);
    }
    free(missing);
}

/* Cells and tasks of all groups. Longest groups do not matter: jobs are short. */
static void lay_out(struct matrix *m, const struct gate_baseline *b, struct gate_cells *out)
{
    size_t n = 0;
    for (uint32_t i = 0; i < b->n_groups; i++) {
        n += (size_t)b->groups[i].n_policies * b->groups[i].replications;
        out->n += b->groups[i].n_policies;
    }
    m->tasks = xcalloc(n + 1, sizeof *m->tasks);
    out->v = xcalloc(out->n + 1, sizeof *out->v);
    uint32_t cell = 0;
    for (uint32_t i = 0; i < b->n_groups; i++) {
        const struct gate_group *g = &b->groups[i];
        for (uint32_t p = 0; p < g->n_policies; p++, cell++) {
            cell_init(&out->v[cell], g, g->policies[p]);
            for (uint32_t k = 0; k < g->replications; k++) {
                m->tasks[m->n_tasks++] = (struct task){i, p, k, cell};
            }
        }
    }
}

int gate_measure(const struct gate_run *r, struct gate_cells *out, struct err *e)
{
    const struct gate_baseline *b = r->baseline;
    size_t before = e->n;
    *out = (struct gate_cells){NULL, 0};
    struct matrix m = {.run = r, .groups = xcalloc(b->n_groups + 1, sizeof *m.groups)};
    for (uint32_t i = 0; i < b->n_groups; i++) {
        prepare(&m.groups[i], &b->groups[i], r, e);
    }
    if (e->n == before) {
        lay_out(&m, b, out);
        struct job_result *results = xcalloc(m.n_tasks + 1, sizeof *results);
        struct jobs j = {.n = m.n_tasks,
                         .parallel = r->parallel,
                         .cpu_limit_s = r->cpu_limit_s,
                         .progress = r->progress,
                         .ctx = &m,
                         .run = run_one};
        jobs_run(&j, results);
        collect(&m, results, out);
        free(results);
    }
    for (uint32_t i = 0; i < b->n_groups; i++) {
        config_fini(&m.groups[i].config);
        config_options_fini(&m.groups[i].options);
    }
    free(m.groups);
    free(m.tasks);
    return e->n > before ? -EINVAL : 0;
}

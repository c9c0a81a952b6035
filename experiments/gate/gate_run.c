/* Runs the matrix of a gate: every policy of every group, replicated, in worker processes. */
#include "experiments/gate/gate.h"
#include "experiments/run/config.h"
#include "experiments/run/runner.h"
#include "sim/base/hash.h"
#include "sim/base/portable.h"
#include "sim/base/quantile.h"
#include "sim/base/rng.h"
#include "traces/traces.h"

/* A prepared group. */
struct prepared {
    const struct gate_group *group;
    struct config_options options;
    struct config config;
    uint64_t seed;        /* of this measurement */
    uint64_t trace_hash0; /* of the trace with the group's own seed */
    uint32_t missing;     /* bits of metrics that no run on its machine has */
};

struct task {
    uint32_t group, policy, replication, cell;
};

/* Properties of the trace of a replication. They do not depend on the policy. */
struct of_trace {
    uint64_t hash;
    double covariates[GATE_COVARIATES];
};

struct matrix {
    const struct gate_run *run;
    struct prepared *groups;      /* owned */
    struct task *tasks;           /* owned; those of a group's policy are adjacent */
    struct study_cell *cells;     /* owned; by task */
    struct config_policy *labels; /* owned; by cell of the results */
    uint32_t n_tasks;
};

/* ---- traces ---- */

static double or_zero(double x)
{
    return isfinite(x) ? x : 0.0;
}

/* Prompt tokens that take as long as one decoded token in isolation, roughly, on the shipped
 * machines (60 ms and 2.4 ms with the 3B model on the Core Ultra). It need only correlate with
 * request length: errors reduce the power of the test, not its level. */
#define DECODE_WEIGHT 25.0

/* P90 over a class of a request's length in work. */
static double work_p90(const struct trace *t, int cls)
{
    SCOPED(sample_fini) struct sample work;
    sample_init(&work, false);
    for (size_t i = 0; i < t->n; i++) {
        if (t->rows[i].cls == cls) {
            sample_add(&work, t->rows[i].input_tokens + DECODE_WEIGHT * t->rows[i].output_tokens);
        }
    }
    return sample_quantile(&work, 0.9);
}

/* Fills properties of a trace's load. They do not depend on the policy. */
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

/* A trace that cannot be made is empty here, and fails in the run. */
static struct of_trace of_trace(const struct prepared *g, uint32_t replication)
{
    SCOPED(err_fini) struct err e = ERR_INIT;
    SCOPED(trace_fini) struct trace t = {0};
    struct of_trace out = {0};
    uint64_t seed = config_seed(g->seed, replication);
    if (config_trace(&g->options, seed, CONFIG_AS_WRITTEN, &t, &e) == 0) {
        out.hash = t.hash;
        if (g->group->fresh) {
            covariates_of(&t, out.covariates);
        }
    }
    return out;
}

/* ---- runs ---- */

/* In the worker. */
static int load(struct study_cell *c, struct err *e)
{
    struct config_policy *p = xcalloc(1, sizeof *p);
    int rc = config_policy_parse(p, c->policy->label, e);
    c->policy = p;
    return rc;
}

static void check_metrics(struct prepared *g, struct err *e)
{
    SCOPED(metric_list_fini) struct metric_list names = {0};
    runner_metric_names(&g->config, false, &names);
    uint32_t known = 0;
    for (uint32_t i = 0; i < g->group->n_metrics; i++) {
        bool there = metric_list_find(&names, g->group->metrics[i].name) != NULL;
        g->missing |= there ? 0 : 1U << i;
        known += there;
    }
    if (known == 0) { /* single missing ones have rows; none at all is a mistake in the file */
        (void)err_add(e, "group '%s': a run has none of its metrics", g->group->name);
    }
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
        } else if (config_options_sets(&p->options, g->sets[i])) {
            (void)err_add(e, "group '%s': set '%s': the path is set twice", g->name, g->sets[i]);
        } else {
            config_options_set(&p->options, g->sets[i]);
        }
    }
    if (g->fresh && r->fresh_seeds) {
        /* Other traces than the baseline's, on which a change may have been tuned. Derived from its
         * seed and not drawn, so that the gate is repeatable. */
        p->seed = r->own_seed ? r->seed : rng_seed(rng_mix64(g->seed + 1));
    }
    for (uint32_t i = 0; i < g->n_metrics; i++) {
        config_options_metric(&p->options, g->metrics[i].name);
    }
    if (config_load(&p->config, &p->options, e) == 0) {
        check_metrics(p, e);
    }
    if (e->n == before) {
        (void)config_trace_check(&p->options, g->seed, CONFIG_AS_WRITTEN, &p->trace_hash0, e);
    }
}

static void cell_init(struct gate_cell *c, const struct gate_group *g, const char *policy)
{
    *c = (struct gate_cell){.group = xkept(xstrdup(g->name)),
                            .policy = xkept(xstrdup(policy)),
                            .present = true,
                            .replications = g->replications,
                            .n_metrics = g->n_metrics,
                            .trace_hash = HASH_INIT};
    c->names = xkept(xcalloc(g->n_metrics, sizeof *c->names));
    for (uint32_t i = 0; i < g->n_metrics; i++) {
        (void)snprintf(c->names[i], sizeof c->names[i], "%s", g->metrics[i].name);
    }
    size_t n = (size_t)g->n_metrics * g->replications;
    c->values = xkept(xmalloc(n * sizeof *c->values));
    for (size_t i = 0; i < n; i++) {
        c->values[i] = METRIC_UNDEFINED;
    }
    if (g->fresh) {
        c->covariates =
            xkept(xcalloc((size_t)g->replications * GATE_COVARIATES, sizeof *c->covariates));
    }
}

/* Adds a run. A failed run still has the hash of its trace. One without requests counts for nobody.
 */
static void take(struct gate_cell *c, const struct task *k, const struct study_outcome *o,
                 const struct of_trace *t)
{
    c->trace_hash = hash_u64(c->trace_hash, t->hash);
    if (c->covariates != NULL) {
        memcpy(&c->covariates[(size_t)k->replication * GATE_COVARIATES], t->covariates,
               sizeof t->covariates);
    }
    if (o->status == STUDY_NO_REQUESTS) {
        c->empty++;
        return;
    }
    if (o->status != 0) {
        if (c->failed++ == 0) {
            (void)snprintf(c->message, sizeof c->message, "%s", o->message);
            c->unknown_policy = strstr(o->message, "no policy is called") != NULL;
        }
        return;
    }
    double verdict = study_value(o, "backlog.verdict");
    /* A run with an empty battery counts as overloaded. */
    c->verdicts[verdict >= 0.0 ? (int)fmin(verdict, METRICS_OVERLOADED) : 0]++;
    for (uint32_t i = 0; i < c->n_metrics; i++) {
        /* To the digits that JSON keeps, so that a value equals itself after a file or another
         * binary's output. */
        double x = portable_digits(study_value(o, c->names[i]), 15);
        c->values[(size_t)i * c->replications + k->replication] =
            isfinite(x) ? x : METRIC_UNDEFINED;
    }
}

/* Bit per metric of the group that a run does not know. For this binary, the machine decides: a
 * store does not distinguish an undefined metric from an absent one. */
static uint32_t missing_of(const struct matrix *m, const struct task *k,
                           const struct study_outcome *o)
{
    const struct prepared *g = &m->groups[k->group];
    uint32_t missing = m->run->binary == NULL ? g->missing : 0;
    for (uint32_t i = 0; m->run->binary != NULL && o->status == 0 && i < g->group->n_metrics; i++) {
        missing |= study_has(o, g->group->metrics[i].name) ? 0 : 1U << i;
    }
    return missing;
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

/* Tasks of a group's policy are adjacent, and have the same traces as those of its other policies.
 */
static void collect(const struct matrix *m, const struct study_outcomes *o, struct gate_cells *out)
{
    OWNED uint32_t *missing = xcalloc(out->n + 1, sizeof *missing);
    OWNED struct of_trace *traces = NULL;
    for (uint32_t i = 0; i < m->n_tasks; i++) {
        const struct task *k = &m->tasks[i];
        const struct prepared *g = &m->groups[k->group];
        if (k->policy == 0 && k->replication == 0) {
            traces = xrealloc(traces, (g->group->replications + 1) * sizeof *traces);
            for (uint32_t r = 0; r < g->group->replications; r++) {
                traces[r] = of_trace(g, r);
            }
        }
        take(&out->v[k->cell], k, &o->v[i], &traces[k->replication]);
        missing[k->cell] |= missing_of(m, k, &o->v[i]);
        if (g->group->fresh) { /* its seeds differ, so the trace with the group's own seed counts */
            out->v[k->cell].trace_hash = g->trace_hash0;
        }
    }
    for (uint32_t i = 0; i < out->n; i++) {
        drop_missing(&out->v[i], missing[i]);
    }
}

/* Cells and tasks of all groups. Longest groups do not matter: jobs are short. */
static void lay_out(struct matrix *m, const struct gate_baseline *b, struct gate_cells *out)
{
    size_t n = 0;
    for (uint32_t i = 0; i < b->n_groups; i++) {
        n += (size_t)b->groups[i].n_policies * b->groups[i].replications;
        out->n += b->groups[i].n_policies;
    }
    m->tasks = xkept(xcalloc(n + 1, sizeof *m->tasks));
    m->cells = xkept(xcalloc(n + 1, sizeof *m->cells));
    out->v = xkept(xcalloc(out->n + 1, sizeof *out->v));
    m->labels = xkept(xcalloc(out->n + 1, sizeof *m->labels));
    uint32_t cell = 0;
    for (uint32_t i = 0; i < b->n_groups; i++) {
        const struct gate_group *g = &b->groups[i];
        for (uint32_t p = 0; p < g->n_policies; p++, cell++) {
            cell_init(&out->v[cell], g, g->policies[p]);
            m->labels[cell].label = g->policies[p];
            for (uint32_t k = 0; k < g->replications; k++, m->n_tasks++) {
                m->tasks[m->n_tasks] = (struct task){i, p, k, cell};
                m->cells[m->n_tasks] =
                    (struct study_cell){.config = &m->groups[i].config,
                                        .options = &m->groups[i].options,
                                        .policy = &m->labels[cell],
                                        .seed = config_seed(m->groups[i].seed, k),
                                        .arrivals = CONFIG_AS_WRITTEN,
                                        .binary = m->run->binary,
                                        /* another binary knows its own policies */
                                        .load = m->run->binary == NULL ? load : NULL};
            }
        }
    }
}

/* Takes the parameters of this binary's policies; another binary knows its own. */
static void take_parameters(const struct gate_baseline *b, struct gate_cells *out)
{
    for (uint32_t i = 0; i < b->n_groups; i++) {
        for (uint32_t k = 0; k < b->groups[i].n_policies; k++) {
            SCOPED(err_fini) struct err e = ERR_INIT;
            struct config_policy p = {0};
            if (config_policy_parse(&p, b->groups[i].policies[k], &e) == 0) {
                gate_parameters_add(out, p.label, p.params_text);
            }
        }
    }
}

int gate_measure(const struct gate_run *r, struct gate_cells *out, struct err *e)
{
    const struct gate_baseline *b = r->baseline;
    size_t before = e->n;
    struct matrix m = {.run = r, .groups = xkept(xcalloc(b->n_groups + 1, sizeof *m.groups))};
    *out = (struct gate_cells){0};
    for (uint32_t i = 0; i < b->n_groups; i++) {
        prepare(&m.groups[i], &b->groups[i], r, e);
    }
    if (e->n == before) {
        lay_out(&m, b, out);
        SCOPED(study_outcomes_fini)
        struct study_outcomes runs = study_run(m.cells, m.n_tasks, &r->how);
        collect(&m, &runs, out);
        if (r->binary == NULL) {
            take_parameters(b, out);
        }
    }
    return e->n == before ? 0 : -EINVAL;
}

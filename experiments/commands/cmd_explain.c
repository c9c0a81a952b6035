/* `xpusim explain`: explains the time of a request or job. It repeats the run with an observer. */
#include "experiments/commands/commands.h"
#include "experiments/compare/bound.h"
#include "experiments/report/interference.h"
#include "experiments/report/job_path.h"
#include "experiments/run/about.h"
#include "experiments/run/config.h"
#include "experiments/run/job_options.h"
#include "experiments/run/models.h"
#include "experiments/run/runner.h"
#include "experiments/run/sandbox.h"
#include "experiments/run/warnings.h"
#include "experiments/shell/cli.h"
#include "experiments/shell/document.h"
#include "sim/api/contention.h"
#include "sim/metrics/explain.h"
#include "traces/traces.h"

struct explain_options {
    struct config_options config;
    const char *policy;
    struct job_options work;
    struct option_output output;
    uint32_t request, job;
    bool have_request, have_job, interference;
    const char *until;
};

/* ---- output ---- */

/* The time under other conditions. NaN: the request or job does not finish then, or there is no
 * bound. */
struct explain_whatif {
    double alone_s, uncontended_s, bound_s;
    bool of_job; /* a job has no bound */
};

/* latency_s: NaN: the request was dropped. */
static void put_whatif(const struct explain_whatif *w, double latency_s, struct document *d)
{
    static const char *const names[] = {"DDR shared at no loss", "alone, same policy",
                                        "alone, no policy below"};
    static const char *const missing[] = {"it does not finish then", "it does not finish then",
                                          "no bound when kernel times are random"};
    const double values[] = {w->uncontended_s, w->alone_s, w->bound_s};
    document_heading(d, "otherwise");
    struct frame *f = document_table(d, 2, "lrl", NULL);
    for (int i = 0; i < (w->of_job ? 2 : 3); i++) {
        bool none = isnan(values[i]);
        FRAME_ROW(f, names[i], none ? NULL : document_format("%.6f s", values[i]),
                  none ? missing[i]
                  : isnan(latency_s)
                      ? "to its end, which it did not reach"
                      : document_format("%+.1f %%", 100.0 * (values[i] / latency_s - 1.0)));
    }
    struct document *data = document_within(d, "otherwise");
    DOCUMENT_VALUES(data, "alone_s", w->alone_s, "uncontended_s", w->uncontended_s);
    if (!w->of_job) {
        DOCUMENT_VALUES(data, "bound_s", w->bound_s);
    }
}

/* Orders causes by time, the longest first; equal ones keep the order of the enum. */
static void sort_causes(const int64_t *ns, int *order)
{
    for (int i = 0; i < EXPLAIN_CAUSE_COUNT; i++) {
        int at = i;
        for (; at > 0 && ns[order[at - 1]] < ns[i]; at--) {
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
}

static void put_causes(const struct explanation *x, double total_ns, struct document *d)
{
    struct frame *f = document_table(d, 2, "lrrl", NULL);
    struct document *causes = document_within(d, "causes_ns");
    int order[EXPLAIN_CAUSE_COUNT];
    sort_causes(x->ns, order);
    for (int k = 0; k < EXPLAIN_CAUSE_COUNT; k++) {
        int i = order[k];
        DOCUMENT_VALUES(causes, explain_cause_names[k], x->ns[k]);
        if (x->ns[i] != 0) {
            FRAME_ROW(f, explain_cause_names[i],
                      document_format("%.6f s", units_s_from_ns(x->ns[i])),
                      document_format("%.1f %%", 100.0 * (double)x->ns[i] / total_ns),
                      explain_cause_texts[i]);
        }
    }
}

/* Adds the five longest for people, all as data. */
static void put_blockers(const struct explanation *x, struct document *d)
{
    struct frame *people = NULL;
    if (x->n_blockers > 0) {
        document_heading(d, "who was in the way");
        people = document_table(d, 2, "lrrrr", "", "in all", "in its passes", "before it",
                                "rest of a kernel");
    }
    struct frame *data = document_data(d, "blockers", 0, "request_id tail_ns queue_ns shared_ns");
    frame_aside(data);
    for (size_t i = 0; i < x->n_blockers; i++) {
        const struct explain_blocker *b = &x->blockers[i];
        FRAME_ROW(data, b->request_id, b->tail_ns, b->queue_ns, b->shared_ns);
        if (i < 5) {
            const int64_t ns[] = {b->tail_ns + b->queue_ns + b->shared_ns, b->shared_ns,
                                  b->queue_ns, b->tail_ns};
            FRAME_CELLS(people, document_format("request %u", b->request_id));
            for (int k = 0; k < 4; k++) {
                FRAME_CELLS(people, document_format("%.6f s", units_s_from_ns(ns[k])));
            }
        }
    }
}

/* first: explains the time to the first token. */
static void put_explanation(const struct explanation *x, const struct explain_whatif *w,
                            const char *fingerprint, bool first, struct document *d)
{
    double total = (double)(x->end_ns - x->arrival_ns);
    const char *cls = x->cls == REQUEST_CLASS_REACTIVE ? "reactive" : "proactive";
    DOCUMENT_VALUES(d, "fingerprint", fingerprint, "request_id", x->request_id, "class", cls,
                    "finished", x->finished, "until", first ? "first-token" : "last-token",
                    "latency_ns", total);
    document_note(d, "request %u (%s), %u prompt and %u output tokens: %.6f s from arrival to %s\n",
                  x->request_id, cls, x->input_tokens, x->output_tokens, total / 1e9,
                  !x->finished ? "being dropped"
                  : first      ? "first token"
                               : "last token");
    put_causes(x, total, d);
    put_blockers(x, d);
    put_whatif(w, x->finished ? total / 1e9 : (double)NAN, d);
}

/* ---- runs ---- */

struct explain_case {
    const struct explain_options *o;
    struct config *config;
    const struct config_policy *policy;
    const struct trace *trace;
    uint64_t printed_bytes;           /* by the policy, to standard output */
    struct extrapolated extrapolated; /* of the first run, which is explained */
    bool ran;
};

static bool until_first(const struct explain_options *o)
{
    return strcmp(o->until, "first-token") == 0;
}

/* Runs t and explains it. The caller frees the result. NULL: the run failed, with a message on
 * stderr. */
static struct explain *observe(struct explain_case *k, const struct trace *t, uint32_t id,
                               struct err *e)
{
    struct explain *x = explain_new(&k->config->soc.machine, id);
    for (uint32_t m = 0; m <= k->config->n_more; m++) {
        explain_price(x, &models_roofline(k->config, m)->model);
    }
    if (until_first(k->o)) {
        explain_until_first_token(x);
    }
    struct runner_options opt = {.observer = explain_observer(x)};
    SCOPED(runner_result_fini) struct runner_result r;
    (void)runner_run(k->config, k->policy, t, k->o->config.seed, &opt, &r, e);
    if (r.sim.status != 0) {
        (void)fprintf(stderr, "xpusim: error: %s\n", r.sim.message);
        explain_free(x);
        x = NULL;
    }
    k->printed_bytes += r.printed_bytes;
    if (!k->ran) {
        k->extrapolated = extrapolated_of(&r.metrics);
        k->ran = true;
    }
    return x;
}

/* Latency of the request in a run of t. NaN: it did not finish. */
static double latency_s(struct explain_case *k, const struct trace *t, uint32_t id, struct err *e)
{
    struct explain *x = observe(k, t, id, e);
    const struct explanation *v = x != NULL ? explain_find(x, id) : NULL;
    double s = v != NULL && v->finished ? units_s_from_ns(v->end_ns - v->arrival_ns) : (double)NAN;
    explain_free(x);
    return s;
}

static size_t row_of(const struct trace *t, uint32_t id)
{
    size_t i = 0;
    while (t->rows[i].request_id != id) {
        i++;
    }
    return i;
}

/* The roofline bound of the request alone on the machine, which no schedule can beat. */
static double bound_s(const struct explain_case *k, uint32_t id)
{
    size_t row = row_of(k->trace, id);
    struct sim_setup setup;
    config_setup(k->config, k->policy, NULL, 0, &setup);
    setup.truth =
        &models_roofline(k->config, trace_graph_model(k->trace->graph, (uint32_t)row))->model;
    setup.llm = setup.truth->llm;
    struct bound b;
    if (bound_init(&b, &setup) != 0) {
        return (double)NAN;
    }
    struct bound_latency best = bound_request(&b, &k->trace->rows[row]);
    return until_first(k->o) ? best.ttft_s : best.e2e_s;
}

/* In a request graph, also keeps the ancestors of kept rows and the sources of their prompts. */
static void keep_ancestors(const struct trace *t, bool *keep)
{
    const struct trace_graph *g = t->graph;
    for (bool more = g != NULL; more;) {
        more = false;
        for (size_t i = 0; i < t->n; i++) {
            for (uint32_t k = g->first[i]; k < g->first[i + 1] && !keep[i]; k++) {
                keep[i] = keep[g->edges[k].row];
                more = more || keep[i];
            }
            uint32_t source = g->source != NULL ? g->source[i] : TRACE_NO_ROW;
            if (keep[i] && source < t->n && !keep[source]) {
                keep[source] = true;
                more = true;
            }
        }
    }
}

/* Latency in a run of only this request, and the turns and ancestors that it needs. */
static double alone_s(struct explain_case *k, uint32_t id, struct err *e)
{
    const struct trace *t = k->trace;
    OWNED bool *keep = xcalloc(t->n + 1, sizeof *keep);
    size_t its = row_of(t, id);
    for (size_t i = 0; i < t->n; i++) {
        keep[i] = i == its || (t->rows[i].session_id == t->rows[its].session_id &&
                               t->rows[i].turn < t->rows[its].turn);
    }
    keep_ancestors(t, keep);
    SCOPED(trace_fini) struct trace own = {0};
    return trace_subset(t, keep, &own) == 0 ? latency_s(k, &own, id, e) : (double)NAN;
}

/* Latency in a run of all requests without DDR contention. */
static double uncontended_s(struct explain_case *k, uint32_t id, struct err *e)
{
    const struct contention_ops *form = k->config->contention;
    k->config->contention = contention_find("none");
    double s = latency_s(k, k->trace, id, e);
    k->config->contention = form;
    return s;
}

static void put_warnings(const struct explain_case *k, struct document *d)
{
    struct document *list = warnings_of(d);
    warnings_machine(k->config, list);
    warnings_range(&k->extrapolated, NULL, 1, list);
}

/* Adds an error that also states the ids of the trace. */
static int no_such(const struct explain_case *k, const char *option, uint32_t id, const char *why,
                   struct err *e)
{
    uint32_t first = UINT32_MAX;
    uint32_t last = 0;
    for (size_t i = 0; i < k->trace->n; i++) {
        uint32_t its = k->trace->rows[i].request_id;
        first = its < first ? its : first;
        last = its > last ? its : last;
    }
    (void)err_add(e, "%s %u: no such request%s in this run, whose trace has %u to %u", option, id,
                  why, first, last);
    return EXIT_BAD_INPUT;
}

static int explain_one(struct explain_case *k, FILE *out, struct err *e)
{
    uint32_t id = k->o->request;
    struct explain *x = observe(k, k->trace, id, e);
    const struct explanation *found = x != NULL ? explain_find(x, id) : NULL;
    int status = x != NULL ? EXIT_OK : EXIT_CHECK_FAILED;
    if (x != NULL && found == NULL) {
        status = no_such(k, "--request", id, " left the system", e);
    } else if (found != NULL) {
        struct explain_whatif w = {alone_s(k, id, e), uncontended_s(k, id, e), bound_s(k, id),
                                   false};
        OWNED char *fingerprint =
            config_fingerprint(k->config, k->policy, k->trace, k->o->config.seed);
        struct document *d = document_new();
        put_explanation(found, &w, fingerprint, until_first(k->o), d);
        put_warnings(k, d);
        document_print(d, &k->o->output, out);
    }
    explain_free(x);
    return status;
}

static int explain_all(struct explain_case *k, FILE *out, struct err *e)
{
    struct explain *x = observe(k, k->trace, EXPLAIN_ALL, e);
    if (x == NULL) {
        return EXIT_CHECK_FAILED;
    }
    struct interference m;
    interference_collect(x, k->trace, &m);
    OWNED char *fingerprint = config_fingerprint(k->config, k->policy, k->trace, k->o->config.seed);
    struct document *d = document_new();
    about_document(
        &(struct about){"interference", k->config, k->policy, k->trace, k->o->config.seed, false},
        d);
    DOCUMENT_VALUES(d, "fingerprint", fingerprint);
    interference_document(&m, d);
    put_warnings(k, d);
    document_print(d, &k->o->output, out);
    explain_free(x);
    return EXIT_OK;
}

/* ---- jobs ---- */

/* Time of the job in a run of t. NaN: it is not complete. */
static double job_s(struct explain_case *k, const struct trace *t, struct err *e)
{
    struct critical_path p;
    struct explain *x = observe(k, t, EXPLAIN_ALL, e);
    double s = (double)NAN;
    if (x != NULL && critical_find(t, x, k->o->job, &p) == 0) {
        s = p.complete ? units_s_from_ns(p.end_ns - p.first_ns) : s;
    }
    explain_free(x);
    return s;
}

/* Time of the job in a run of only its requests and their ancestors. */
static double job_alone_s(struct explain_case *k, const struct critical_path *p, struct err *e)
{
    OWNED bool *keep = xcalloc(k->trace->n + 1, sizeof *keep);
    for (size_t i = 0; i < p->n; i++) {
        keep[p->v[i].row] = true;
    }
    keep_ancestors(k->trace, keep);
    SCOPED(trace_fini) struct trace own = {0};
    return trace_subset(k->trace, keep, &own) == 0 ? job_s(k, &own, e) : (double)NAN;
}

static void put_job(struct explain_case *k, const struct critical_path *p, struct document *d,
                    struct err *e)
{
    struct explain_whatif w = {.alone_s = job_alone_s(k, p, e), .of_job = true};
    const struct contention_ops *form = k->config->contention;
    k->config->contention = contention_find("none");
    w.uncontended_s = job_s(k, k->trace, e);
    k->config->contention = form;
    OWNED char *fingerprint = config_fingerprint(k->config, k->policy, k->trace, k->o->config.seed);
    about_document(&(struct about){"job", k->config, k->policy, k->trace, k->o->config.seed, false},
                   d);
    DOCUMENT_VALUES(d, "fingerprint", fingerprint, "job_of", k->o->job);
    job_path_document(p, k->trace, d);
    put_whatif(&w, p->complete ? units_s_from_ns(p->end_ns - p->first_ns) : (double)NAN, d);
    put_warnings(k, d);
}

static int explain_job(struct explain_case *k, FILE *out, struct err *e)
{
    struct critical_path p;
    struct explain *x = observe(k, k->trace, EXPLAIN_ALL, e);
    int status = x != NULL ? EXIT_OK : EXIT_CHECK_FAILED;
    if (x != NULL && critical_find(k->trace, x, k->o->job, &p) != 0) {
        status =
            no_such(k, "--job", k->o->job, ", or no foreground request of its job has ended", e);
    } else if (x != NULL) {
        struct document *d = document_new();
        put_job(k, &p, d, e);
        document_print(d, &k->o->output, out);
    }
    explain_free(x);
    return status;
}

static int work(void *ctx, FILE *out, struct err *e)
{
    struct explain_case *k = ctx;
    int status = k->o->have_job       ? explain_job(k, out, e)
                 : k->o->interference ? explain_all(k, out, e)
                                      : explain_one(k, out, e);
    runner_tell_printed(k->policy, k->printed_bytes);
    return status;
}

static int load_and_explain(const struct explain_options *o, struct err *e)
{
    SCOPED(config_fini) struct config c;
    struct config_policy p;
    SCOPED(trace_fini) struct trace t = {0};
    int status = EXIT_BAD_INPUT;
    (void)config_load(&c, &o->config, e);
    (void)config_policy_parse(&p, o->policy, e);
    (void)config_trace(&o->config, o->config.seed, (struct config_arrivals){0}, &t, e);
    if (e->n == 0) {
        models_note(&o->config, &t);
        struct explain_case k = {.o = o, .config = &c, .policy = &p, .trace = &t};
        struct sandbox box = {
            .policy = o->policy, .time_limit_s = o->work.how.cpu_limit_s, .ctx = &k, .work = work};
        status = sandbox_run(&box, NULL, e);
    }
    return status;
}

static int run(void *values, struct err *e)
{
    const struct explain_options *o = values;
    if (o->policy == NULL || o->have_request + o->have_job + o->interference != 1) {
        return err_add(e, "--policy, and either --request, --job or --interference, are needed");
    }
    if (until_first(o) && o->have_job) {
        return err_add(e, "--until first-token: a job ends with the last token of a request");
    }
    if (until_first(o) && o->interference) {
        return err_add(e, "--until first-token: goes with --request, not with --interference");
    }
    if (options_without("explain", "quantile below qoe", e) != 0) {
        return EXIT_BAD_INPUT;
    }
    return load_and_explain(o, e);
}

#define OPTIONS struct explain_options

static const char *const ends[] = {"last-token", "first-token", NULL};
static const struct option_row rows[] = {
    OPTION_ROW(COUNT, OPTIONS, request, uint32_t, "request", "ID",
               "number of the request (first column of run --requests)", .max = UINT32_MAX,
               .given = 1 + OPTION_AT(OPTIONS, have_request, bool)),
    OPTION_ROW(COUNT, OPTIONS, job, uint32_t, "job", "ID",
               "explain the job that this request belongs to: its critical path", .max = UINT32_MAX,
               .given = 1 + OPTION_AT(OPTIONS, have_job, bool)),
    OPTION_FLAG(OPTIONS, interference, "interference",
                "explain all requests: mean causes by class, and the delay that each class causes"),
    OPTION_CHOICE(OPTIONS, until, "until", "TOKEN", "last-token", ends,
                  "explain the time up to this token; first-token splits a TTFT"),
    OPTION_TEXT(OPTIONS, policy, "policy", "P[:K=V,..]", NULL, "policy and parameters"),
};
static const struct option_table own = OPTION_TABLE(NULL, rows);
const struct command cmd_explain = {
    .name = "explain",
    .summary = "explain where the time of a request or a job went",
    .usage = "--request ID --policy P [options of run]\n"
             "--job ID --policy P [options of run]\n"
             "--interference --policy P [options of run]",
    .about =
        "Splits a request's latency into exclusive causes that sum to it to the nanosecond. Also "
        "prints the latency with the DDR shared at no loss, without other requests, and at best. "
        "The time of a job is that of its critical path: the latencies of its requests, and the "
        "gaps between them.",
    COMMAND_TAKES({.table = &own}, OPTION_CHILD(time_limit_option_table, work),
                  OPTION_CHILD(option_output_table, output),
                  OPTION_CHILD(config_option_table, config)),
    .run = run,
};

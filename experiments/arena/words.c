#include "experiments/arena/judge.h"

#include "experiments/diff/two_runs.h"
#include "experiments/falsify/runs.h"
#include "sim/core/counters.h"
#include "sim/metrics/metric_table.h"

#define CONFIRM_RUNS 8 /* of the worst scenario */

static const char *point_name(const struct words_of *w, uint32_t point)
{
    return w->suite->points[point].name;
}

static const char *metric_at_worst(const struct words_of *w)
{
    return w->suite->spec.patterns[w->result->worst % w->suite->spec.n_patterns];
}

/* ---- failures and refusals ---- */

static const char *failure(const struct words_of *w)
{
    if (w->result->failed == NULL) {
        return NULL;
    }
    uint32_t cell = w->result->failed_cell;
    uint32_t point = cell / w->runs->replications;
    struct study_cell c = suite_cell(w->suite, point, w->policy, cell % w->runs->replications);
    return document_format("%" PRIu32 " run%s failed; the first at %s, seed %" PRIu64 ": %s",
                           w->result->n_failed, text_plural(w->result->n_failed),
                           point_name(w, point), c.seed, w->result->failed->message);
}

static const char *refused(const struct words_of *w)
{
    SCOPED(text_fini) struct text t = {0};
    for (int i = 0; i < COUNTER_COUNT; i++) {
        OWNED char *name = xformat("counters.%s", counter_names[i]);
        double times = 0.0;
        for (uint32_t k = 0; k < w->runs->outcomes.n && counter_is_refusal((enum counter)i); k++) {
            double x = study_value(&w->runs->outcomes.v[k], name);
            times += isfinite(x) ? x : 0.0;
        }
        if (times > 0.0) {
            text_format(&t, "%s%s %.0f times", t.n > 0 ? ", " : "", counter_names[i], times);
        }
    }
    return t.n > 0 ? document_format("actions refused as wrong: %s", text_end(&t)) : NULL;
}

/* ---- the worst pair: its request, and the first different decision ---- */

/* The replication in which the candidate lost most in the worst pair. */
static uint32_t worst_replication(const struct words_of *w)
{
    const uint32_t n = w->runs->replications;
    OWNED double *x = xmalloc((2 * (size_t)n + 1) * sizeof *x);
    uint32_t point = w->result->worst / w->suite->spec.n_patterns;
    judge_values(w->runs, point, metric_at_worst(w), x);
    judge_values(w->reference_runs, point, metric_at_worst(w), x + n);
    bool gain = metric_is_gain(metric_at_worst(w));
    uint32_t worst = 0;
    double most = -(double)INFINITY;
    for (uint32_t k = 0; k < n; k++) {
        double loss = gain ? x[n + k] / x[k] : x[k] / x[n + k];
        if (loss > most) {
            most = loss;
            worst = k;
        }
    }
    return worst;
}

static void put_causes(struct text *t, const struct explanation *x)
{
    bool left[EXPLAIN_CAUSE_COUNT] = {false};
    for (int n = 0; n < 3; n++) { /* the three longest */
        int most = -1;
        for (int i = 0; i < EXPLAIN_CAUSE_COUNT; i++) {
            if (!left[i] && x->ns[i] > 0 && (most < 0 || x->ns[i] > x->ns[most])) {
                most = i;
            }
        }
        if (most >= 0) {
            left[most] = true;
            text_format(t, "%s%.2f s %s", n > 0 ? ", " : "", units_s_from_ns(x->ns[most]),
                        explain_cause_names[most]);
        }
    }
}

static const char *request_text(const struct words_of *w, const struct falsify_reason *r,
                                uint32_t point)
{
    if (!r->found) {
        return r->message[0] != '\0' ? document_format("%s", r->message) : NULL;
    }
    const struct explanation *a = &r->request[FALSIFY_POLICY].x;
    const struct explanation *b = &r->request[FALSIFY_BASELINE].x;
    SCOPED(text_fini) struct text t = {0};
    text_format(&t,
                "%s, seed %" PRIu64 ": request %" PRIu32 " (%s, %" PRIu32 " prompt and %" PRIu32
                " output tokens) took %.2f s under %s: ",
                point_name(w, point), r->seed, a->request_id,
                a->cls == REQUEST_CLASS_REACTIVE ? "reactive" : "proactive", a->input_tokens,
                a->output_tokens, units_s_from_ns(a->end_ns - a->arrival_ns), w->policy->label);
    put_causes(&t, a);
    text_format(&t, "; %.2f s under %s: ", units_s_from_ns(b->end_ns - b->arrival_ns),
                w->reference->label);
    put_causes(&t, b);
    for (size_t i = 0; i < a->n_blockers; i++) {
        const struct explain_blocker *x = &r->request[FALSIFY_POLICY].first[i];
        text_format(&t, "%s%" PRIu32 " (%s, %.2f s)", i == 0 ? "; in its way: " : ", ",
                    x->request_id, x->cls == REQUEST_CLASS_REACTIVE ? "reactive" : "proactive",
                    units_s_from_ns(x->tail_ns + x->queue_ns + x->shared_ns));
    }
    return document_format("%s", text_end(&t));
}

static const char *difference(const struct words_of *w, uint32_t point, uint64_t seed)
{
    const struct suite_point *p = &w->suite->points[point];
    struct two_runs *runs = xkept(xcalloc(1, sizeof *runs));
    struct two_runs_options o = {.both = p->settings.options,
                                 .policy = w->policy->label,
                                 .b_policy = w->reference->label,
                                 .work = {.how = w->how}};
    o.both.seed = seed;
    SCOPED(err_fini) struct err e = ERR_INIT;
    SCOPED(trace_fini) struct trace t = {0};
    const char *out = NULL;
    if (two_runs_load(runs, &o, &e) == 0 &&
        config_trace(&p->settings.options, seed, p->settings.arrivals, &t, &e) == 0) {
        struct two_runs_log l[2];
        struct divergence v = {.differs = false};
        for (int i = 0; i < 2; i++) {
            two_runs_run(runs, i, &t, NULL, &l[i]);
        }
        if (l[0].log != NULL && l[1].log != NULL) {
            diverge_find(l[0].log, l[1].log, &v);
        }
        if (v.differs) {
            out = document_format("%s, seed %" PRIu64 ", decision %" PRIu64 ": %s: %s; %s: %s",
                                  p->name, seed, v.line, w->policy->label, v.a, w->reference->label,
                                  v.b);
        }
        two_runs_log_fini(&l[0]);
        two_runs_log_fini(&l[1]);
    }
    return out;
}

/* ---- the worst scenario ---- */

static const char *scenario(const struct words_of *w, uint32_t point)
{
    const struct suite_point *p = &w->suite->points[point];
    SCOPED(err_fini) struct err e = ERR_INIT;
    OWNED struct space *space = xcalloc(1, sizeof *space);
    const char *out = NULL;
    if (w->falsify > 0 &&
        space_init(space, &p->settings.options, &p->config, "workload,machine", &e) == 0) {
        struct falsify_runs runs = {.space = space,
                                    .policy = {w->policy, w->reference},
                                    .metric = metric_at_worst(w),
                                    .how = w->how};
        struct falsify_options o = {.metric = runs.metric,
                                    .budget = w->falsify,
                                    .replications = 2,
                                    .confirm = CONFIRM_RUNS,
                                    .relevance_frac = SCORE_RELEVANCE_FRAC,
                                    .seed = p->settings.options.seed};
        OWNED struct falsify_result *r = xcalloc(1, sizeof *r);
        falsify_run(&runs, &o, r);
        OWNED char *command = r->found ? space_command(space, &r->least) : NULL;
        /* Ratios above 1 are losses, also if more is better. */
        const char *of =
            metric_is_gain(runs.metric) ? ", the reference's over its own," : " the reference's";
        out = r->found ? document_format("%s is %.3g times [%.3g, %.3g]%s with %s", runs.metric,
                                         exp(r->least_confirmed.mean), exp(r->least_confirmed.low),
                                         exp(r->least_confirmed.high), of, command)
                       : "none found";
    }
    return out;
}

void words_document(const struct words_of *w, struct document *d)
{
    uint32_t point = w->result->worst / w->suite->spec.n_patterns;
    uint32_t k = worst_replication(w);
    struct study_how how = w->how;
    how.store = NULL; /* a stored run would not call the observers */
    struct study_cell sides[FALSIFY_SIDES] = {suite_cell(w->suite, point, w->policy, k),
                                              suite_cell(w->suite, point, w->reference, k)};
    struct falsify_reason why;
    falsify_explain(sides, metric_at_worst(w), &how, &why);
    const struct {
        const char *name, *text;
    } rows[] = {
        {"failure", failure(w)},
        {"refused", refused(w)},
        {"worst_request", request_text(w, &why, point)},
        {"first_difference", difference(w, point, sides[0].seed)},
        {"worst_scenario", scenario(w, point)},
    };
    struct document *in = document_within(d, "artefacts");
    document_heading(in, "what to look at");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        DOCUMENT_VALUES(in, rows[i].name, rows[i].text);
        if (rows[i].text != NULL) {
            document_note(in, "  %s: %s", rows[i].name, rows[i].text);
        }
    }
}

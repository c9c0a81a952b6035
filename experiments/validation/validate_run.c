#include "experiments/validation/validate.h"

#include "experiments/run/warnings.h"
#include "experiments/shell/cli.h"
#include "experiments/shell/document.h"
#include "experiments/validation/run_fit.h"
#include "experiments/validation/run_interval.h"
#include "sim/base/output.h"
#include "sim/base/words.h"

static const char *const queues[] = {"round-robin", "least-outstanding", NULL}; /* by the enum */

/* ---- results ---- */

#define VALIDATE_RUN_MAX_PARTS 3

struct validate_run_part {
    const char *name; /* "fit", "unseen", "all" */
    bool fitted_on;   /* the fit used all of it, so its error is no error of prediction */
    struct run_score score;
};

struct validate_run_result {
    const struct config *config; /* with the fitted values; all pointers but simulated borrowed */
    const struct config_policy *policy;
    const struct measured_run *run;
    const char *name; /* of the run, as given */
    uint64_t seed;
    const struct run_fit *fit; /* NULL: no fit */
    struct measured_latency *simulated;
    struct validate_run_part parts[VALIDATE_RUN_MAX_PARTS];
    uint32_t n_parts;
    struct run_interval interval; /* n_machines 0: none */
    /* of all requests, with the file's numbers: an upper bound of speed */
    struct run_score roofline;
};

static void put_fit(const struct run_fit *fit, size_t n, struct document *d)
{
    static const struct frame_column columns[] = {
        {.name = "path", .kind = FRAME_TEXT, .only_data = true},
        {.name = "", .title = "number", .kind = FRAME_TEXT, .only_text = true},
        {.name = "unit", .kind = FRAME_TEXT, .only_data = true},
        {.name = "datasheet", .title = "file", .format = "%.5g"},
        {.name = "low", .only_data = true},
        {.name = "high", .only_data = true},
        {.name = "value", .title = "fitted", .format = "%.5g"},
        {.name = "se", .title = "+- 2 se", .scale = 2.0, .format = "%.2g"},
        {.name = "at_bound", .kind = FRAME_FLAG, .only_data = true},
        {.name = "moved_frac", .title = "moved", .scale = 100.0, .format = "%+.1f %%"},
        {.name = "", .title = "", .kind = FRAME_TEXT, .only_text = true},
    };
    document_note(d,
                  "fitted on the first %zu request%s (measured latencies of the other %zu not "
                  "used), %u simulations%s",
                  fit->n_requests, text_plural(fit->n_requests), n - fit->n_requests,
                  fit->evaluations, fit->converged ? "" : ", NOT CONVERGED");
    DOCUMENT_VALUES(document_within(d, "fit"), "n", fit->n_requests, "evaluations",
                    fit->evaluations, "converged", fit->converged, "objective_before",
                    fit->objective_before, "objective", fit->objective);
    struct frame *f = frame_indent(DOCUMENT_FRAME(d, "fitted", 0, columns), 2);
    for (uint32_t i = 0; i < fit->n_keys; i++) {
        const struct run_fit_key *k = &fit->key[i];
        bool outside = k->fitted < k->low || k->fitted > k->high;
        double moved = k->datasheet > 0.0 ? k->fitted / k->datasheet - 1.0 : (double)NAN;
        FRAME_ROW(
            f, k->path, document_format("%s %s", k->path, k->unit), k->unit, k->datasheet, k->low,
            k->high, k->fitted, frame_shown(k->se, k->at_bound ? "at its bound" : NULL),
            k->at_bound,
            frame_shown(moved, k->datasheet > 0.0 ? NULL : document_format("%+.5g", k->fitted)),
            outside ? document_format("outside the file's range %g..%g", k->low, k->high) : "");
    }
    document_note(d, "%s", "");
}

/* Adds whether the configuration can describe the run. A fit that does not reproduce its own
 * requests predicts nothing. */
static void put_verdict(const struct validate_run_part *p, struct document *d)
{
    double median = p->score.metric[RUN_METRIC_E2E].median;
    bool lacks = run_fit_lacks(&p->score);
    DOCUMENT_VALUES(d, "lack_of_fit", lacks);
    if (lacks) {
        document_note(d,
                      "  LACK OF FIT: no values of these numbers bring E2E of the requests fitted "
                      "to nearer than %.3g %% (limit %g %%): another form, policy or run",
                      100.0 * median, 100.0 * RUN_FIT_LACK_FRAC);
    } else {
        document_note(d,
                      "  the form fits: E2E of the requests fitted to within %.2g %% in the median "
                      "(limit %g %%)",
                      100.0 * median, 100.0 * RUN_FIT_LACK_FRAC);
    }
}

static void show_score(const char *label, const struct run_score *s, struct frame *f)
{
    FRAME_CELLS(f, label, s->n);
    for (int k = 0; k < RUN_METRIC_COUNT; k++) {
        const struct run_error *x = &s->metric[k];
        const double v[] = {x->mape, x->median, x->p90, x->bias};
        for (int i = 0; i < 4; i++) {
            FRAME_CELLS(f, document_format(i == 3 ? "%+.2f" : "%.2f", 100.0 * v[i]));
        }
    }
}

static void put_score(const struct run_score *s, struct document *d)
{
    static const char *const names[] = {"mape", "median", "p90", "bias"};
    DOCUMENT_VALUES(d, "n", s->n);
    for (int k = 0; k < RUN_METRIC_COUNT; k++) {
        const struct run_error *x = &s->metric[k];
        const double v[] = {x->mape, x->median, x->p90, x->bias};
        for (int i = 0; i < 4; i++) {
            DOCUMENT_VALUES(d, document_format("%s_%s", run_metric_names[k], names[i]), v[i]);
        }
    }
    DOCUMENT_VALUES(d, "e2e_pearson", s->e2e_pearson);
}

/* Without a fit: adds the range of latencies over machines drawn from the known ranges. */
static void put_interval(const struct run_interval *x, struct document *d)
{
    static const struct frame_column columns[] = {
        {.name = "metric", .title = "mean, s", .kind = FRAME_TEXT},
        {.name = "requests"},
        {.name = "measured_s", .title = "measured", .unit = "s", .format = "%.4g"},
        {.name = "simulated_s", .title = "the file's", .unit = "s", .format = "%.4g"},
        {.name = "low_s", .title = "from", .unit = "s", .format = "%.4g"},
        {.name = "high_s", .title = "to", .unit = "s", .format = "%.4g"},
        {.name = "contains", .title = "holds the truth", .kind = FRAME_TEXT},
        {.name = "inside_frac", .title = "requests inside", .scale = 100.0, .format = "%.1f %%"},
    };
    document_note(
        d,
        "\n  nothing fitted: %.1f %% of %u machines drawn from the known ranges (%u uncertain "
        "numbers of the file, left-out errors of the form) lie between%s",
        100.0 * x->level, x->n_machines, x->n_factors,
        x->n_failed > 0 ? document_format("; %u more could not run it", x->n_failed) : "");
    DOCUMENT_VALUES(document_within(d, "interval"), "machines", x->n_machines, "failed",
                    x->n_failed, "factors", x->n_factors, "level", x->level);
    struct frame *f = frame_indent(DOCUMENT_FRAME(d, "intervals", 0, columns), 2);
    static const char *const titles[] = {"E2E", "TTFT", "TPOT"};
    for (int k = 0; k < RUN_METRIC_COUNT; k++) {
        const struct run_interval_metric *m = &x->metric[k];
        bool holds = m->low <= m->measured && m->measured <= m->high;
        FRAME_ROW(f, titles[k], (double)m->n, m->measured, m->simulated, m->low, m->high,
                  holds ? "yes" : "NO", m->inside_frac);
    }
}

static const char *part_label(const struct validate_run_part *p)
{
    return strcmp(p->name, "fit") == 0      ? "fitted on"
           : strcmp(p->name, "unseen") == 0 ? "unseen"
                                            : "all";
}

static void put_head(const struct validate_run_result *r, struct document *d)
{
    size_t n = r->run->trace.n;
    double span_s = 0.0;
    for (size_t i = 0; i < n; i++) {
        double end_s =
            units_s_from_ns(r->run->trace.rows[i].arrival_ns) + r->run->measured[i].e2e_s;
        span_s = end_s > span_s ? end_s : span_s;
    }
    const struct measured_replicas *x = &r->run->replicas;
    const char *replicas =
        x->n > 1 ? document_format("%u replicas (%s) of ", x->n, queues[x->queue]) : "";
    DOCUMENT_VALUES(d, "replicas", x->n, "queue", queues[x->queue]);
    document_note(
        d, "%s on %s%s, %s\n%s: %zu measured request%s, arrivals over %.4g s, %.4g s in all\n",
        r->policy->label, replicas, r->config->soc.machine.name, r->config->llm.name, r->name, n,
        text_plural(n),
        units_s_from_ns(r->run->trace.rows[n - 1].arrival_ns - r->run->trace.rows[0].arrival_ns),
        span_s);
}

/* Errors are shares: 0.02 is 2 %. Those at the top level are over all requests. */
static void validate_run_document(const struct validate_run_result *r, struct document *d)
{
    OWNED char *fingerprint = config_fingerprint(r->config, r->policy, &r->run->trace, r->seed);
    const struct run_score *all = &r->parts[r->n_parts - 1].score;
    put_head(r, d);
    DOCUMENT_VALUES(d, "fingerprint", fingerprint, "run", r->name);
    put_score(all, d);
    if (r->run->n_prompts_unknown > 0) {
        warnings_add(
            warnings_of(d),
            "the server did not count the prompts of %zu request%s: here they have the lengths "
            "that were asked for",
            r->run->n_prompts_unknown, text_plural(r->run->n_prompts_unknown));
    }
    if (r->run->n_prefixes > 0) {
        warnings_add(warnings_of(d),
                     "%zu of %zu prompts begin as others do, which the server's cache may have "
                     "served: here all is computed, so measure without such a cache",
                     r->run->n_prefixes, r->run->trace.n);
    }
    if (r->fit != NULL) {
        put_fit(r->fit, r->run->trace.n, d);
    }
    struct frame *f =
        document_table(d, 2, "lrrrrrrrrrrrrr", "error, %", "n", "E2E MAPE", "median", "P90", "bias",
                       "TTFT", "median", "P90", "bias", "TPOT", "median", "P90", "bias");
    if (r->fit != NULL) {
        put_verdict(&r->parts[0], d);
    }
    struct document *parts = document_within(d, "parts");
    for (uint32_t i = 0; i < r->n_parts; i++) {
        show_score(part_label(&r->parts[i]), &r->parts[i].score, f);
        put_score(&r->parts[i].score, document_within(parts, r->parts[i].name));
    }
    show_score("roofline of the file", &r->roofline, f);
    struct document *roofline = document_within(d, "roofline");
    DOCUMENT_VALUES(roofline, "label", "upper bound of speed: the file's numbers, nothing fitted");
    put_score(&r->roofline, roofline);
    if (r->interval.n_machines > 0) {
        put_interval(&r->interval, d);
    }
    /* equal latencies have no correlation */
    document_note(d, "  %sthe roofline, nothing fitted, is an upper bound of speed\n\n%s",
                  isnan(all->e2e_pearson)
                      ? ""
                      : document_format("E2E Pearson %.4f over all; ", all->e2e_pearson),
                  fingerprint);
}

/* ---- one line per request ---- */

static void write_rows(const struct validate_run_result *r, FILE *out)
{
    size_t n_fit = r->fit != NULL ? r->fit->n_requests : 0;
    (void)fputs(
        "request_id,arrival_s,input_tokens,output_tokens,part,ttft_s,simulated_ttft_s,e2e_s,"
        "simulated_e2e_s\n",
        out);
    for (size_t i = 0; i < r->run->trace.n; i++) {
        const struct trace_row *row = &r->run->trace.rows[i];
        (void)fprintf(out, "%u,%.9f,%u,%u,%s,%.9f,%.9f,%.9f,%.9f\n", r->run->ids[i],
                      units_s_from_ns(row->arrival_ns), row->input_tokens, row->output_tokens,
                      i < n_fit ? "fit" : "unseen", r->run->measured[i].ttft_s,
                      r->simulated[i].ttft_s, r->run->measured[i].e2e_s, r->simulated[i].e2e_s);
    }
}

/* Writes request_id, arrival_s, tokens, part, measured and simulated latencies. Returns 0, or
 * -EINVAL with an error and no file. */
static int validate_run_write(const struct validate_run_result *r, const char *path, struct err *e)
{
    struct output *out = output_open(path, e);
    if (out == NULL) {
        return -EINVAL;
    }
    write_rows(r, output_stream(out));
    return output_close(out, true, e);
}

#define DEFAULT_FIT_ON "first:0.3"

/* Number of requests that "first:0.3" means, of n in order of arrival. */
static int fit_part(const char *text, size_t n, size_t *out, struct err *e)
{
    double share = 0.0;
    if (strncmp(text, "first:", 6) != 0) {
        return err_add(e, "--fit-on %s: must be first:SHARE, as in " DEFAULT_FIT_ON, text);
    }
    if (cli_number("fit-on first:", text + 6, 0.0, 1.0, &share, e) != 0) {
        return -EINVAL;
    }
    *out = (size_t)llround(share * (double)n);
    return 0;
}

/* Scores the roofline with the file's numbers, without launch or fill terms. */
static int upper_bound(const struct config_policy *p, const struct measured_run *run,
                       const struct validate_run_options *o, struct run_score *out, struct err *e)
{
    struct config_options with = o->config;
    if (with.n_sets == CONFIG_MAX_SETS) {
        return err_add(e, "--set: more than %d overrides", CONFIG_MAX_SETS - 1);
    }
    with.sets[with.n_sets++] = "sim.hwmodel=roofline";
    SCOPED(config_fini) struct config c;
    OWNED struct measured_latency *simulated = xmalloc(run->trace.n * sizeof *simulated);
    int rc = config_load(&c, &with, e);
    rc = rc == 0 ? run_replay(&c, p, run, run->trace.n, o->config.seed, simulated, e) : rc;
    if (rc == 0) {
        run_score(run, simulated, 0, run->trace.n, out);
    }
    return rc;
}

/* Checks the limits for all requests, and for those that the fit did not use. */
static int check_limits(const struct validate_run_options *o, const struct validate_run_result *r)
{
    int status = EXIT_OK;
    for (uint32_t i = 0; i < r->n_parts; i++) {
        const struct validate_run_part *part = &r->parts[i];
        for (int k = 0; k < RUN_METRIC_COUNT && !part->fitted_on; k++) {
            double pct = 100.0 * part->score.metric[k].mape;
            if (!(pct <= o->max_mape_pct[k]) && isfinite(o->max_mape_pct[k])) {
                (void)fprintf(stderr, "xpusim: %s: %s MAPE %.2f %% is above %g %%\n", part->name,
                              run_metric_names[k], pct, o->max_mape_pct[k]);
                status = EXIT_CHECK_FAILED;
            }
        }
    }
    return status;
}

static void add_part(struct validate_run_result *r, const char *name, bool fitted_on, size_t first,
                     size_t end)
{
    struct validate_run_part *part = &r->parts[r->n_parts++];
    *part = (struct validate_run_part){.name = name, .fitted_on = fitted_on};
    run_score(r->run, r->simulated, first, end, &part->score);
}

/* Scores the parts of the replayed run, and writes the results. */
static int report(const struct validate_run_options *o, struct validate_run_result *r,
                  const struct option_output *out, struct err *e)
{
    size_t n = r->run->trace.n;
    size_t n_fit = r->fit != NULL ? r->fit->n_requests : 0;
    if (n_fit > 0) {
        add_part(r, "fit", true, 0, n_fit);
    }
    if (n_fit > 0 && n_fit < n) {
        add_part(r, "unseen", false, n_fit, n);
    }
    add_part(r, "all", n_fit == n, 0, n);
    if (o->requests != NULL && validate_run_write(r, o->requests, e) != 0) {
        return EXIT_BAD_INPUT;
    }
    struct document *d = document_new();
    validate_run_document(r, d);
    document_show(d, out);
    return check_limits(o, r);
}

/* Fits, replays and reports a run. */
static int validate(const struct validate_run_options *o, const struct config *unfitted,
                    const struct config_policy *p, const struct measured_run *run,
                    const struct option_output *out, struct err *e)
{
    struct run_fit fit = {.n_keys = 0};
    struct config c = {.tree = NULL};
    struct validate_run_result r = {
        .config = &c, .policy = p, .run = run, .name = o->run, .seed = o->config.seed};
    size_t n_fit = 0;
    int status = EXIT_BAD_INPUT;
    r.simulated = xmalloc(run->trace.n * sizeof *r.simulated);
    if (o->fit != NULL) {
        const char *on = o->fit_on != NULL ? o->fit_on : DEFAULT_FIT_ON;
        if (run_fit_keys(unfitted, o->fit, &fit, e) != 0 ||
            fit_part(on, run->trace.n, &n_fit, e) != 0 ||
            run_fit(&o->config, p, run, n_fit, &fit, e) != 0) {
            goto out;
        }
        r.fit = &fit;
    }
    if (run_fit_load(&o->config, &fit, &c, e) != 0) {
        goto out;
    }
    if (run_replay(&c, p, run, run->trace.n, r.seed, r.simulated, e) != 0 ||
        upper_bound(p, run, o, &r.roofline, e) != 0) {
        status = EXIT_CHECK_FAILED;
        goto out;
    }
    if (r.fit == NULL && o->uncertainty > 0 &&
        run_interval(&o->config, &c, p, run, r.simulated, o->uncertainty, &r.interval, e) != 0) {
        goto out;
    }
    status = report(o, &r, out, e);
out:
    free(r.simulated);
    config_fini(&c);
    return status;
}

static int check(const struct validate_run_options *o, struct err *e)
{
    if (o->run == NULL || o->policy == NULL || o->config.soc == NULL || o->config.llm == NULL) {
        return err_add(e, "validate --run needs --run, --soc, --llm and --policy");
    }
    if (o->config.trace != NULL || o->config.workload != NULL) {
        return err_add(e, "validate --run takes its requests from the run: no --trace, --workload");
    }
    return o->fit == NULL && o->fit_on != NULL ? err_add(e, "--fit-on needs --fit") : 0;
}

int validate_run(const struct validate_run_options *o, const struct option_output *out,
                 struct err *e)
{
    struct config unfitted;
    struct config_policy p;
    struct measured_run run;
    int status = EXIT_BAD_INPUT;
    if (check(o, e) != 0) {
        return status;
    }
    (void)config_load(&unfitted, &o->config, e);
    (void)config_policy_parse(&p, o->policy, e);
    (void)measured_run_read(o->run, &run, e);
    run.replicas = (struct measured_replicas){o->replicas, words_find(queues, o->queue)};
    if (e->n == 0) {
        status = validate(o, &unfitted, &p, &run, out, e);
    }
    trace_fini(&run.trace);
    config_fini(&unfitted);
    return status;
}

static void init(void *target)
{
    struct validate_run_options *o = target;
    for (int i = 0; i < RUN_METRIC_COUNT; i++) {
        o->max_mape_pct[i] = (double)INFINITY;
    }
}

#define OPTIONS struct validate_run_options

static const struct option_row rows[] = {
    OPTION_TEXT(OPTIONS, run, "run", "FILE", NULL,
                "a shipped run (hwmodels/runs) or a CSV: request_id, arrival_s, input_tokens, "
                "output_tokens, ttft_s, e2e_s"),
    OPTION_TEXT(OPTIONS, policy, "policy", "P[:K=V,..]", NULL,
                "policy and parameters (`xpusim list policy`)"),
    OPTION_TEXT(
        OPTIONS, fit, "fit", "K1[,K2[,K3]]", NULL,
        "fit these numbers to the first part of the run: paths of the configuration or, with "
        "one device, bandwidth, rate, submit, ..."),
    OPTION_TEXT(OPTIONS, fit_on, "fit-on", "first:F", NULL,
                "what to fit on (default " DEFAULT_FIT_ON ")"),
    OPTION_COUNT(OPTIONS, replicas, "replicas", "N", "1", 1, 256,
                 "number of machines like --soc that served the run, each with the whole model"),
    OPTION_CHOICE(OPTIONS, queue, "queue", "RULE", "round-robin", queues,
                  "rule that sends a request to a machine: round-robin, or least-outstanding, the "
                  "one with the fewest unfinished requests"),
    OPTION_COUNT(OPTIONS, uncertainty, "uncertainty", "N", "64", 0, 10000,
                 "without --fit: run on N machines drawn from the known ranges, and print the "
                 "range that 95 % of their latencies have; 0: none"),
    OPTION_TEXT(OPTIONS, requests, "requests", "FILE.csv", NULL,
                "write measured and simulated latencies, one line per request"),
    OPTION_NUMBER(
        OPTIONS, max_mape_pct[RUN_METRIC_E2E], "max-e2e-mape", "PCT", NULL, 0.0, 1e6,
        "exit 1 when the E2E MAPE of all requests, or of those that were not fitted on, is "
        "above PCT percent"),
    OPTION_NUMBER(OPTIONS, max_mape_pct[RUN_METRIC_TTFT], "max-ttft-mape", "PCT", NULL, 0.0, 1e6,
                  "the same for TTFT"),
};
const struct option_table validate_run_option_table =
    OPTION_TABLE_INIT("A measured run", rows, init);

#include "experiments/validation/validate_run_print.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "experiments/shell/table.h"
#include "sim/base/output.h"
#include "sim/base/units.h"

/* ---- text ---- */

static void print_fit(const struct run_fit *fit, size_t n, FILE *out)
{
    (void)fprintf(
        out,
        "fitted on the first %zu requests (measured latencies of the other %zu not used), "
        "%u simulations%s\n",
        fit->n_requests, n - fit->n_requests, fit->evaluations,
        fit->converged ? "" : ", NOT CONVERGED");
    struct table t;
    table_init(&t, "lrrrrl");
    table_cell(&t, "number");
    table_cell(&t, "file");
    table_cell(&t, "fitted");
    table_cell(&t, "+- 2 se");
    table_cell(&t, "moved");
    table_end_row(&t);
    for (uint32_t i = 0; i < fit->n_keys; i++) {
        const struct run_fit_key *k = &fit->key[i];
        bool outside = k->fitted < k->low || k->fitted > k->high;
        table_cell(&t, "%s %s", k->path, k->unit);
        table_cell(&t, "%.5g", k->datasheet);
        table_cell(&t, "%.5g", k->fitted);
        table_cell(&t, "%.2g", 2.0 * k->se);
        if (k->datasheet > 0.0) {
            table_cell(&t, "%+.1f %%", 100.0 * (k->fitted / k->datasheet - 1.0));
        } else {
            table_cell(&t, "%+.5g", k->fitted);
        }
        if (outside) {
            table_cell(&t, "outside the file's range %g..%g", k->low, k->high);
        }
        table_end_row(&t);
    }
    table_print(&t, out, 2);
    table_fini(&t);
    (void)fputc('\n', out);
}

/* Whether the form can be the run at all: said, because a fit that cannot reproduce what it was
 * fitted to predicts nothing. */
static void print_verdict(const struct validate_run_part *p, FILE *out)
{
    double median = p->score.metric[RUN_METRIC_E2E].median;
    if (median > RUN_FIT_LACK_FRAC) {
        (void)fprintf(
            out,
            "  LACK OF FIT: no values of these numbers bring E2E of the requests fitted to "
            "nearer than %.3g %% (limit %g %%): another form, policy or run\n",
            100.0 * median, 100.0 * RUN_FIT_LACK_FRAC);
    } else {
        (void)fprintf(out,
                      "  the form fits: E2E of the requests fitted to within %.2g %% in the median "
                      "(limit %g %%)\n",
                      100.0 * median, 100.0 * RUN_FIT_LACK_FRAC);
    }
}

static void score_row(struct table *t, const char *label, const struct run_score *s)
{
    table_cell(t, "%s", label);
    table_cell(t, "%zu", s->n);
    for (int k = 0; k < RUN_METRIC_COUNT; k++) {
        const struct run_error *x = &s->metric[k];
        table_cell(t, "%.2f", 100.0 * x->mape);
        table_cell(t, "%.2f", 100.0 * x->median);
        table_cell(t, "%.2f", 100.0 * x->p90);
        table_cell(t, "%+.2f", 100.0 * x->bias);
    }
    table_end_row(t);
}

static const char *part_label(const struct validate_run_part *p)
{
    return strcmp(p->name, "fit") == 0      ? "fitted on"
           : strcmp(p->name, "unseen") == 0 ? "unseen"
                                            : "all";
}

void validate_run_print(const struct validate_run_result *r, FILE *out)
{
    size_t n = r->run->trace.n;
    double span_s = 0.0;
    for (size_t i = 0; i < n; i++) {
        double end_s =
            units_s_from_ns(r->run->trace.rows[i].arrival_ns) + r->run->measured[i].e2e_s;
        span_s = end_s > span_s ? end_s : span_s;
    }
    (void)fprintf(
        out, "%s on %s, %s\n%s: %zu measured requests, arrivals over %.4g s, %.4g s in all\n\n",
        r->policy->label, r->config->soc.machine.name, r->config->llm.name, r->name, n,
        units_s_from_ns(r->run->trace.rows[n - 1].arrival_ns - r->run->trace.rows[0].arrival_ns),
        span_s);
    if (r->fit != NULL) {
        print_fit(r->fit, n, out);
    }
    struct table t;
    table_init(&t, "lrrrrrrrrrrrrr");
    static const char *const head[] = {"error, %", "n",      "E2E MAPE", "median", "P90",
                                       "bias",     "TTFT",   "median",   "P90",    "bias",
                                       "TPOT",     "median", "P90",      "bias"};
    for (size_t i = 0; i < sizeof head / sizeof head[0]; i++) {
        table_cell(&t, "%s", head[i]);
    }
    for (uint32_t i = 0; i < r->n_parts; i++) {
        score_row(&t, part_label(&r->parts[i]), &r->parts[i].score);
    }
    score_row(&t, "roofline of the file", &r->roofline);
    table_print(&t, out, 2);
    table_fini(&t);
    if (r->fit != NULL) {
        print_verdict(&r->parts[0], out);
    }
    (void)fprintf(out,
                  "  E2E Pearson %.4f over all; the roofline, nothing fitted, is an upper bound of "
                  "speed\n\n",
                  r->parts[r->n_parts - 1].score.e2e_pearson);
    char fingerprint[CONFIG_FINGERPRINT_BYTES];
    (void)fprintf(out, "%s\n",
                  config_fingerprint(r->config, r->policy, &r->run->trace, r->seed, fingerprint,
                                     sizeof fingerprint));
}

/* ---- JSON ---- */

/* NaN becomes null. */
static void add_number(cJSON *o, const char *key, double v)
{
    if (isfinite(v)) {
        cJSON_AddNumberToObject(o, key, v);
    } else {
        cJSON_AddNullToObject(o, key);
    }
}

static void add_score(cJSON *o, const struct run_score *s)
{
    cJSON_AddNumberToObject(o, "n", (double)s->n);
    for (int k = 0; k < RUN_METRIC_COUNT; k++) {
        const struct run_error *x = &s->metric[k];
        const char *const names[] = {"mape", "median", "p90", "bias"};
        const double values[] = {x->mape, x->median, x->p90, x->bias};
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            char key[32];
            (void)snprintf(key, sizeof key, "%s_%s", run_metric_names[k], names[i]);
            add_number(o, key, values[i]);
        }
    }
    add_number(o, "e2e_pearson", s->e2e_pearson);
}

static void add_fit(cJSON *root, const struct run_fit *fit)
{
    cJSON *o = cJSON_AddObjectToObject(root, "fit");
    cJSON_AddNumberToObject(o, "n", (double)fit->n_requests);
    cJSON_AddNumberToObject(o, "evaluations", fit->evaluations);
    cJSON_AddBoolToObject(o, "converged", fit->converged);
    cJSON_AddNumberToObject(o, "objective_before", fit->objective_before);
    cJSON_AddNumberToObject(o, "objective", fit->objective);
    cJSON *a = cJSON_AddArrayToObject(root, "fitted");
    for (uint32_t i = 0; i < fit->n_keys; i++) {
        const struct run_fit_key *k = &fit->key[i];
        cJSON *x = cJSON_CreateObject();
        cJSON_AddStringToObject(x, "path", k->path);
        cJSON_AddStringToObject(x, "unit", k->unit);
        cJSON_AddNumberToObject(x, "datasheet", k->datasheet);
        cJSON_AddNumberToObject(x, "low", k->low);
        cJSON_AddNumberToObject(x, "high", k->high);
        cJSON_AddNumberToObject(x, "value", k->fitted);
        cJSON_AddNumberToObject(x, "se", k->se);
        add_number(x, "moved_frac",
                   k->datasheet > 0.0 ? k->fitted / k->datasheet - 1.0 : (double)NAN);
        cJSON_AddItemToArray(a, x);
    }
}

cJSON *validate_run_json(const struct validate_run_result *r)
{
    char fingerprint[CONFIG_FINGERPRINT_BYTES];
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "fingerprint",
                            config_fingerprint(r->config, r->policy, &r->run->trace, r->seed,
                                               fingerprint, sizeof fingerprint));
    cJSON_AddStringToObject(root, "run", r->name);
    add_score(root, &r->parts[r->n_parts - 1].score);
    if (r->fit != NULL) {
        add_fit(root, r->fit);
        double median = r->parts[0].score.metric[RUN_METRIC_E2E].median;
        cJSON_AddBoolToObject(root, "lack_of_fit", median > RUN_FIT_LACK_FRAC);
    }
    cJSON *parts = cJSON_AddObjectToObject(root, "parts");
    for (uint32_t i = 0; i < r->n_parts; i++) {
        add_score(cJSON_AddObjectToObject(parts, r->parts[i].name), &r->parts[i].score);
    }
    cJSON *roofline = cJSON_AddObjectToObject(root, "roofline");
    cJSON_AddStringToObject(roofline, "label",
                            "upper bound of speed: the file's numbers, nothing fitted");
    add_score(roofline, &r->roofline);
    return root;
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

int validate_run_write(const struct validate_run_result *r, const char *path, struct err *e)
{
    struct output *out = output_open(path, e);
    if (out == NULL) {
        return -EINVAL;
    }
    write_rows(r, output_stream(out));
    return output_close(out, true, e);
}

#include "plots/figure.h"

#include <gsl/gsl_sort.h>

#include "plots/about.h"
#include "plots/palette.h"
#include "sim/base/memory.h"
#include "sim/metrics/metric_table.h"

#define METRICS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const struct figure figures[] = {
    {"affinity", "rate, and rate per watt, of each operator against its intensity",
     "characterize --csv", "affinity table", true, false, NULL, figure_study},
    {"batch", "latency of a step against its batch",
     "characterize --csv, or CSV device,batch,latency_s[,low,high]", "batch table", true, false,
     NULL, figure_batch},
    {"breakdown", "where latency goes: pending, prefill, decode", "compare --json", "compare",
     false, false, NULL, figure_breakdown},
    {"causes", "why requests take as long as they do: mean time by cause",
     "explain --interference --json", "interference", false, false, NULL, figure_causes},
    {"cdf", "distributions of TTFT, time per token and latency by class", "run --requests CSV",
     "requests table", false, false, METRICS("ttft_s", "tpot_s", "e2e_s"), figure_distributions},
    {"chunk", "chunk trade-off: throughput against how long a reactive request waits",
     "characterize --csv, sweep --export csv, CSV", "chunk sweep table", false, false,
     METRICS("reactive.ttft_s.mean", "all.throughput_req_per_min"), figure_chunk},
    {"corun", "slowdown of kernel pairs that share the DDR",
     "characterize --csv, or CSV victim,aggressor,slowdown[,low,high]", "corun table", true, false,
     NULL, figure_corun},
    {"ddr", "DDR bandwidth over time with its tiers", "run --timeline JSON", "timeline", true,
     false, NULL, figure_ddr},
    {"draft", "verification time against draft length",
     "characterize verify --csv, or CSV draft_tokens,verify_s[,low,high][,device]", "verify table",
     true, false, NULL, figure_draft},
    {"drive", "real runs against simulated ones, request by request", "drive --compare --json",
     "drive", true, false, NULL, figure_drive},
    {"gantt", "the schedule of a window: launches on devices, loader, compiler",
     "run --timeline JSON", "timeline", false, false, NULL, figure_gantt},
    {"graphs", "switching NPU graphs, strategy by strategy", "graphs --gantt --json", "graphs",
     true, false, NULL, figure_graphs},
    {"headline", "latency by class and policy", "compare --json", "compare", false, false,
     metric_usual, figure_bars},
    {"heatmap", "a metric over two parameters", "sweep --export csv, CSV", "sweep table", false,
     true, METRICS("reactive.e2e_s.mean"), figure_heatmap},
    {"interference", "who delays whom: victims and aggressors by class",
     "explain --interference --json", "interference", false, false, NULL, figure_interference},
    {"job", "the requests of a job, who waits for whom, and the critical path",
     "explain --job --json", "job", true, false, NULL, figure_job},
    {"kernels", "time and energy of each operator on each device",
     "list kernels --json, or CSV device,op,time_s[,low,high][,energy_j]", "kernels table", true,
     false, NULL, figure_kernels},
    {"latency-rate", "latency against arrival rate, mean and P90",
     "compare --load --json, sweep --export csv, CSV", "load sweep table", false, false,
     METRICS("reactive.e2e_s.mean", "reactive.e2e_s.p90", "proactive.e2e_s.mean",
             "proactive.e2e_s.p90"),
     figure_lines},
    {"lengths", "distributions of input and output tokens", "run --requests CSV, trace CSV",
     "requests table", false, false, METRICS("input_tokens", "output_tokens"),
     figure_distributions},
    {"mixed", "decode batches with a prefill chunk in them", "characterize --csv", "mixed table",
     true, false, NULL, figure_study},
    {"pareto", "reactive latency against proactive throughput",
     "compare --json, sweep --export csv, CSV", "compare load sweep table", false, false,
     METRICS("proactive.throughput_req_per_min", "reactive.e2e_s.mean"), figure_pareto},
    {"prompt", "prefill time and rate against the length of the prompt", "characterize --csv",
     "prompt table", true, false, NULL, figure_study},
    {"queue", "live requests and decode batch over time", "run --timeline JSON", "timeline", true,
     false, NULL, figure_queue},
    {"roofline", "kernels under the roofs of their devices", "list kernels --json", "kernels", true,
     false, NULL, figure_roofline},
    {"schemes", "the four co-scheduling schemes over load", "characterize schemes --csv",
     "schemes table", true, false, NULL, figure_study},
    {"sd", "latency, energy and memory of speculative decoding systems", "compare --json",
     "compare sd", false, true,
     METRICS("all.e2e_s.mean", "energy_j_per_token", "memory_peak_bytes"), figure_bars},
    {"throughput-rate", "throughput and normalized latency against arrival rate",
     "compare --load --json, sweep --export csv, CSV", "load sweep table", false, false,
     METRICS("all.throughput_req_per_min", "all.norm_e2e_per_token_s.mean"), figure_lines},
    {"tornado", "what an order hangs on, and how often each policy is best",
     "compare --uncertainty --json", "uncertainty", true, false, NULL, figure_tornado},
    {"utilisation", "iGPU utilisation and energy", "compare --json", "compare", false, true,
     METRICS("igpu.weighted_util_frac", "energy_j_per_token", "energy_active_j_per_token"),
     figure_bars},
};

const struct figure *figure_list(size_t *n)
{
    *n = sizeof figures / sizeof figures[0];
    return figures;
}

const struct figure *figure_find(const char *name)
{
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        if (strcmp(figures[i].name, name) == 0) {
            return &figures[i];
        }
    }
    return NULL;
}

const char *const *figure_metrics(const struct figure_request *q, const struct figure_data *d,
                                  size_t *n)
{
    const char *const *own = d->figure->metrics;
    *n = q->n_metrics;
    while (q->n_metrics == 0 && own[*n] != NULL) {
        ++*n;
    }
    return q->n_metrics > 0 ? q->metrics : own;
}

/* A file says of which policy it is; its name is what somebody called it. */
static void put_label(struct figure_input *in)
{
    const char *policy = about_fact(in->about, "policy");
    const char *base = text_base(in->path);
    const char *dot = strrchr(base, '.');
    int len = dot == NULL || dot == base ? (int)strlen(base) : (int)(dot - base);
    in->label = xkeep(policy[0] != '\0' ? xstrdup(policy) : xformat("%.*s", len, base));
}

static struct figure_input *next_input(struct figure_request *r, const char *text, struct err *e)
{
    if (r->n_inputs == FIGURE_MAX_INPUTS) {
        return err_null(e, "%s: more than %d inputs", text, FIGURE_MAX_INPUTS);
    }
    return &r->inputs[r->n_inputs++];
}

int figure_input_add(struct figure_request *r, const char *text, struct err *e)
{
    struct figure_input *in = next_input(r, text, e);
    if (in == NULL) {
        return -EINVAL;
    }
    size_t before = e->n;
    const char *eq = strchr(text, '=');
    const char *slash = strchr(text, '/');
    /* LABEL=FILE; behind a slash the sign belongs to a folder's name. */
    bool labelled = eq != NULL && eq > text && (slash == NULL || eq < slash);
    in->path = labelled ? eq + 1 : text;
    in->about = xkept(about_read(in->path, &in->tree, e));
    (void)xkept(in->tree);
    if (labelled) {
        in->label = xkeep(xformat("%.*s", (int)(eq - text), text));
    } else {
        put_label(in);
    }
    return e->n > before ? -EINVAL : 0;
}

int figure_input_take(struct figure_request *r, const char *name, cJSON *tree, struct err *e)
{
    struct figure_input *in = next_input(r, name, e);
    if (in == NULL) {
        cJSON_Delete(tree);
        return -EINVAL;
    }
    in->path = name;
    in->tree = xkept(tree);
    in->about = xkept(about_of(tree));
    put_label(in);
    return 0;
}

struct frame *figure_rows(const struct figure_input *in, const char *at, struct err *e)
{
    if (in->tree == NULL) {
        return frame_read_csv(in->path, e);
    }
    struct frame *f = frame_of_json(in->tree, at, in->path);
    if (frame_rows(f) == 0) {
        (void)err_add(e, "%s: no %s; `xpusim plot list` says what figures read", in->path, at);
        frame_free(f);
        return NULL;
    }
    return f;
}

/* Different values of a fact over the inputs, as far as there is room. */
static void put_fact(const struct figure_request *r, const char *key, FILE *out, bool *any)
{
    enum { MOST = 4 };
    const char *seen[MOST];
    size_t n = 0;
    for (size_t i = 0; i < r->n_inputs; i++) {
        const char *v = about_fact(r->inputs[i].about, key);
        size_t k = 0;
        while (k < n && strcmp(seen[k], v) != 0) {
            k++;
        }
        if (v[0] == '\0' || k < n) {
            continue;
        }
        (void)fprintf(out, "%s%s", n > 0 ? ", " : *any ? "  \u00b7  " : "", n < MOST ? v : "...");
        *any = true;
        if (n == MOST) {
            return;
        }
        seen[n++] = v;
    }
}

static void put_subject(const struct figure_request *r, struct figure_data *d)
{
    /* Several inputs are named in the figure itself. */
    static const char *const all[] = {"policy", "llm", "soc", "workload", "failed"};
    const char *const *facts = r->n_inputs > 1 ? all + 1 : all;
    size_t n = r->n_inputs > 1 ? 4 : 5;
    OWNED char *text = NULL;
    size_t size = 0;
    bool any = false;
    FILE *out = memory_stream(&text, &size);
    for (size_t i = 0; i < n; i++) {
        put_fact(r, facts[i], out, &any);
    }
    memory_stream_close(out, &text);
    figure_var_text(d, "subject", text);
}

/* A metric that a figure has no place for would be another one in silence. */
static int check_metrics(const struct figure *f, size_t n, struct err *e)
{
    bool any =
        f->prepare == figure_bars || f->prepare == figure_lines || f->prepare == figure_chunk;
    size_t most = f->prepare == figure_pareto ? 2 : f->prepare == figure_heatmap ? 1 : 0;
    return n == 0 || any || n == most
               ? 0
               : err_add(e, "%s draws %s, and --metric was given %zu times", f->name,
                         most == 0   ? "no metric of a choice"
                         : most == 1 ? "one metric"
                                     : "two metrics, x and y",
                         n);
}

int figure_prepare(const struct figure *f, const struct figure_request *r, struct figure_data *d,
                   struct err *e)
{
    for (size_t i = 0; i < r->n_inputs; i++) {
        const struct figure_input *in = &r->inputs[i];
        /* All inputs are looked at before any is drawn, so that every wrong one is named at once.
         */
        if (about_fact(in->about, "kind")[0] != '\0' && !about_is(in->about, f->kinds)) {
            (void)err_add(e, "%s: of the kind \"%s\"; %s reads: %s", in->path,
                          about_fact(in->about, "kind"), f->name, f->reads);
        }
    }
    if (f->alone && r->n_inputs != 1) {
        (void)err_add(e, "%s takes one input, not %zu", f->name, r->n_inputs);
    }
    (void)check_metrics(f, r->n_metrics, e);
    d->figure = f;
    int rc = e->n > 0 ? -EINVAL : f->prepare(r, d, e);
    if (rc == 0) {
        put_subject(r, d);
    }
    return rc;
}

/* ---- data ---- */

void figure_data_init(struct figure_data *d)
{
    *d = (struct figure_data){0};
    d->tsv = memory_stream(&d->tsv_text, &d->tsv_size);
    d->vars = memory_stream(&d->vars_text, &d->vars_size);
}

void figure_data_fini(struct figure_data *d)
{
    (void)fclose(d->tsv);
    (void)fclose(d->vars);
    free(d->tsv_text);
    free(d->vars_text);
    *d = (struct figure_data){0};
}

/* What would break a row is replaced: a tab, a line end, a quote, a comment sign. */
static void put_clean(FILE *out, const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;
        (void)fputc(c < ' ' || c == '"' || c == '#' ? ' ' : c, out);
    }
}

void figure_block(struct figure_data *d, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    OWNED char *name = xvformat(fmt, ap);
    va_end(ap);
    /* Two empty lines end a block for gnuplot (`index`), and its first line is the block's name for
     * whoever reads the file. */
    (void)fputs(d->blocks > 0 ? "\n\n" : "", d->tsv);
    put_clean(d->tsv, name[0] == '\0' ? "-" : name);
    (void)fputc('\n', d->tsv);
    d->blocks++;
}

void figure_cells(struct figure_data *d, const struct frame_value *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)fputs(d->in_row ? "\t" : "", d->tsv);
        d->in_row = true;
        if (v[i].text != NULL) {
            put_clean(d->tsv, v[i].text[0] == '\0' ? "-" : v[i].text);
        } else if (isfinite(v[i].number)) {
            (void)fprintf(d->tsv, "%.12g", v[i].number);
        } else {
            (void)fputs("NaN", d->tsv);
        }
    }
}

void figure_row_end(struct figure_data *d)
{
    (void)fputc('\n', d->tsv);
    d->in_row = false;
}

void figure_var(struct figure_data *d, const char *name, double v)
{
    if (isfinite(v)) {
        (void)fprintf(d->vars, "%s = %.12g\n", name, v);
    } else { /* "nan" would be the name of a variable to gnuplot */
        (void)fprintf(d->vars, "%s = NaN\n", name);
    }
}

void figure_var_text(struct figure_data *d, const char *name, const char *text)
{
    (void)fprintf(d->vars, "%s = '", name);
    for (const char *p = text; *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;
        /* A quote is doubled, which is how it stands in single quotes; a line break would end the
         * text and begin a command. */
        (void)fprintf(d->vars, "%s%c", c == '\'' ? "'" : "", c < ' ' ? ' ' : c);
    }
    (void)fputs("'\n", d->vars);
}

void figure_texts_put(struct texts *l, const char *name, struct figure_data *d)
{
    /* One more than there are: gnuplot has no array of none. */
    (void)fprintf(d->vars, "array %s[%zu]\n", name, l->n + 1);
    for (size_t i = 0; i < l->n; i++) {
        OWNED char *at = xformat("%s[%zu]", name, i + 1);
        figure_var_text(d, at, l->v[i]);
    }
    (void)fprintf(d->vars, "n_%s = %zu\n", name, l->n);
    texts_fini(l);
}

#define BARS_OUTLIER 4.0 /* times the rest */

double figure_bars_end(const double *mean, const double *high, size_t n)
{
    OWNED double *v = xcalloc(n + 1, sizeof *v);
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        if (isfinite(mean[i])) {
            v[m++] = mean[i];
        }
    }
    gsl_sort(v, 1, m);
    double most = m > 0 ? v[m - 1] : 0.0; /* of those that are drawn whole */
    /* From the middle on: half of the bars at least are drawn whole, and what is cut is far from
     * its next neighbour, not merely large. */
    for (size_t kept = (m + 1) / 2; kept < m; kept++) {
        if (v[kept - 1] > 0.0 && v[kept] > BARS_OUTLIER * v[kept - 1]) {
            most = v[kept - 1];
            break;
        }
    }
    double end = most;
    for (size_t i = 0; i < n; i++) {
        bool whole = isfinite(mean[i]) && mean[i] <= most;
        /* An interval may take as much room as the bars and no more, or a wide one presses all of
         * them flat. */
        end = whole && isfinite(high[i]) ? fmax(end, fmin(high[i], 2.0 * most)) : end;
    }
    return most < (m > 0 ? end : 0.0) ? end : 1.05 * most;
}

void figure_tics_put(double *v, size_t n, struct figure_data *d)
{
    enum { MOST = 9 };
    char text[MOST * 32] = "";
    size_t at = 0;
    size_t different = 0;
    gsl_sort(v, 1, n);
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && v[i] == v[i - 1]) {
            continue;
        }
        if (different++ == MOST) {
            figure_var_text(d, "xvalues", "");
            return;
        }
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%.10g", at > 0 ? " " : "", v[i]);
    }
    figure_var_text(d, "xvalues", text);
}

void figure_slots_put(const char *const *names, size_t n, struct figure_data *d)
{
    size_t longest = 0;
    (void)fprintf(d->vars, "array slot[%zu]\n", n + 1);
    for (size_t i = 0; i < n; i++) {
        longest = strlen(names[i]) > longest ? strlen(names[i]) : longest;
        (void)fprintf(d->vars, "slot[%zu] = %u\n", i + 1, palette_slot(names[i]));
    }
    figure_var(d, "longest", (double)longest); /* of a legend */
}

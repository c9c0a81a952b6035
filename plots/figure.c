#include "plots/figure.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/memory.h"

static const struct figure figures[] = {
    {"affinity", "rate, and rate per watt, of each operator against its intensity",
     "characterize --csv", FIGURE_KIND_STUDY(0), figure_affinity},
    {"batch", "latency of a step against its batch",
     "characterize --csv, or CSV device,batch,latency_s[,low,high]", FIGURE_KIND_STUDY(1),
     figure_batch},
    {"breakdown", "where latency goes: pending, prefill, decode", "compare --json",
     FIGURE_KIND_COMPARE, figure_breakdown},
    {"causes", "why requests take as long as they do: mean time by cause",
     "explain --interference --json", FIGURE_KIND_INTERFERENCE, figure_causes},
    {"cdf", "distributions of TTFT, time per token and latency by class", "run --requests CSV",
     FIGURE_KIND_REQUESTS, figure_cdf},
    {"chunk", "chunk trade-off: throughput against how long a reactive request waits",
     "characterize --csv, sweep --export csv, CSV", FIGURE_KIND_STUDY(2), figure_chunk},
    {"corun", "slowdown of kernel pairs that share the DDR",
     "characterize --csv, or CSV victim,aggressor,slowdown[,low,high]", FIGURE_KIND_STUDY(3),
     figure_corun},
    {"ddr", "DDR bandwidth over time with its tiers", "run --timeline JSON", FIGURE_KIND_TIMELINE,
     figure_ddr},
    {"draft", "verification time against draft length",
     "characterize verify --csv, or CSV draft_tokens,verify_s[,low,high][,device]",
     FIGURE_KIND_STUDY(7), figure_draft},
    {"drive", "real runs against simulated ones, request by request", "drive --compare --json",
     FIGURE_KIND_DRIVE, figure_drive},
    {"gantt", "the schedule of a window: launches on devices, loader, compiler",
     "run --timeline JSON", FIGURE_KIND_TIMELINE, figure_gantt},
    {"graphs", "switching NPU graphs, strategy by strategy", "graphs --gantt --json",
     FIGURE_KIND_GRAPHS, figure_graphs},
    {"headline", "latency by class and policy", "compare --json", 0, figure_headline},
    {"heatmap", "a metric over two parameters", "sweep --export csv, CSV", 0, figure_heatmap},
    {"interference", "who delays whom: victims and aggressors by class",
     "explain --interference --json", FIGURE_KIND_INTERFERENCE, figure_interference},
    {"kernels", "time and energy of each operator on each device",
     "list kernels --json, or CSV device,op,time_s[,low,high][,energy_j]", FIGURE_KIND_KERNELS,
     figure_kernels},
    {"latency-rate", "latency against arrival rate, mean and P90",
     "compare --load --json, sweep --export csv, CSV", FIGURE_KIND_LOAD, figure_latency_rate},
    {"lengths", "distributions of input and output tokens", "run --requests CSV, trace CSV",
     FIGURE_KIND_REQUESTS, figure_lengths},
    {"mixed", "decode batches with a prefill chunk in them", "characterize --csv",
     FIGURE_KIND_STUDY(4), figure_mixed},
    {"pareto", "reactive latency against proactive throughput",
     "compare --json, sweep --export csv, CSV", FIGURE_KIND_COMPARE | FIGURE_KIND_LOAD,
     figure_pareto},
    {"prompt", "prefill time and rate against the length of the prompt", "characterize --csv",
     FIGURE_KIND_STUDY(5), figure_prompt},
    {"queue", "live requests and decode batch over time", "run --timeline JSON",
     FIGURE_KIND_TIMELINE, figure_queue},
    {"roofline", "kernels under the roofs of their devices", "list kernels --json",
     FIGURE_KIND_KERNELS, figure_roofline},
    {"schemes", "the four co-scheduling schemes over load", "characterize schemes --csv",
     FIGURE_KIND_STUDY(6), figure_schemes},
    {"sd", "latency, energy and memory of speculative decoding systems", "compare --json",
     FIGURE_KIND_SD, figure_sd},
    {"throughput-rate", "throughput and normalized latency against arrival rate",
     "compare --load --json, sweep --export csv, CSV", FIGURE_KIND_LOAD, figure_throughput_rate},
    {"tornado", "what an order hangs on, and how often each policy is best",
     "compare --uncertainty --json", FIGURE_KIND_UNCERTAINTY, figure_tornado},
    {"utilisation", "iGPU utilisation and energy", "compare --json", 0, figure_utilisation},
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

int figure_input_add(struct figure_request *r, const char *text, struct err *e)
{
    if (r->n_inputs == FIGURE_MAX_INPUTS) {
        return err_add(e, "%s: more than %d inputs", text, FIGURE_MAX_INPUTS);
    }
    struct figure_input *in = &r->inputs[r->n_inputs++];
    const char *eq = strchr(text, '=');
    const char *slash = strchr(text, '/');
    if (eq != NULL && eq > text && (slash == NULL || eq < slash)) {
        in->path = eq + 1;
        (void)snprintf(in->label, sizeof in->label, "%.*s", (int)(eq - text), text);
        return 0;
    }
    in->path = text;
    const char *base = strrchr(text, '/') == NULL ? text : strrchr(text, '/') + 1;
    const char *dot = strrchr(base, '.');
    int len = dot == NULL || dot == base ? (int)strlen(base) : (int)(dot - base);
    (void)snprintf(in->label, sizeof in->label, "%.*s", len, base);
    return 0;
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
    char name[256];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    (void)fputs(d->blocks > 0 ? "\n\n" : "", d->tsv);
    put_clean(d->tsv, name[0] == '\0' ? "-" : name);
    (void)fputc('\n', d->tsv);
    d->blocks++;
}

static void separate(struct figure_data *d)
{
    if (d->in_row) {
        (void)fputc('\t', d->tsv);
    }
    d->in_row = true;
}

void figure_cell(struct figure_data *d, double v)
{
    separate(d);
    if (isfinite(v)) {
        (void)fprintf(d->tsv, "%.12g", v);
    } else {
        (void)fputs("NaN", d->tsv);
    }
}

void figure_cell_text(struct figure_data *d, const char *text)
{
    separate(d);
    put_clean(d->tsv, text[0] == '\0' ? "-" : text);
}

void figure_row_end(struct figure_data *d)
{
    (void)fputc('\n', d->tsv);
    d->in_row = false;
}

void figure_var(struct figure_data *d, const char *name, double v)
{
    (void)fprintf(d->vars, "%s = %.12g\n", name, v);
}

void figure_var_text(struct figure_data *d, const char *name, const char *text)
{
    (void)fprintf(d->vars, "%s = '", name);
    for (const char *p = text; *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;
        (void)fprintf(d->vars, "%s%c", c == '\'' ? "'" : "", c < ' ' ? ' ' : c);
    }
    (void)fputs("'\n", d->vars);
}

void figure_row_name(struct figure_rows *l, const char *name)
{
    l->names = xrealloc(l->names, l->at + 2 * strlen(name) + 2);
    if (l->n++ > 0) {
        l->names[l->at++] = '|';
    }
    for (const char *p = name; *p != '\0'; p++) {
        if (*p == '%') { /* a label of a tic is a format */
            l->names[l->at++] = '%';
        }
        l->names[l->at++] = *p == '|' ? '/' : *p;
    }
    l->names[l->at] = '\0';
}

void figure_rows_put(struct figure_rows *l, struct figure_data *d)
{
    figure_var_text(d, "tracks", l->n > 0 ? l->names : "");
    figure_var(d, "rows", (double)l->n);
    free(l->names);
    *l = (struct figure_rows){.n = 0};
}

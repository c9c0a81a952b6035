#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

#include "sim/api/request.h"
#include "sim/base/arena.h"
#include "sim/base/quantile.h"
#include "sim/base/units.h"
#include "traces/traces.h"

static void lengths(const struct trace *t, int cls, struct trace_class_stats *c)
{
    struct sample in;
    struct sample out;
    sample_init(&in, false);
    sample_init(&out, false);
    double prefix = 0.0;
    for (size_t i = 0; i < t->n; i++) {
        if (t->rows[i].cls == cls) {
            sample_add(&in, t->rows[i].input_tokens);
            sample_add(&out, t->rows[i].output_tokens);
            prefix += t->rows[i].prefix_tokens;
        }
    }
    c->n = in.n;
    c->input_mean = sample_mean(&in);
    c->input_p50 = sample_quantile(&in, 0.5);
    c->input_p90 = sample_quantile(&in, 0.9);
    c->input_p99 = sample_quantile(&in, 0.99);
    c->input_max = sample_quantile(&in, 1.0);
    c->output_mean = sample_mean(&out);
    c->output_p50 = sample_quantile(&out, 0.5);
    c->output_p90 = sample_quantile(&out, 0.9);
    c->output_p99 = sample_quantile(&out, 0.99);
    c->output_max = sample_quantile(&out, 1.0);
    c->prefix_frac = in.n == 0 ? (double)NAN : prefix / (c->input_mean * (double)in.n);
    sample_fini(&in);
    sample_fini(&out);
}

static void arrivals(const struct trace *t, int cls, struct trace_class_stats *c)
{
    double *gaps = xmalloc((t->n_first + 1) * sizeof *gaps);
    size_t n = 0;
    int64_t last = -1;
    int64_t first = -1;
    for (size_t i = 0; i < t->n_first; i++) {
        if (t->rows[i].cls != cls) {
            continue;
        }
        if (last >= 0) {
            gaps[n++] = units_s_from_ns(t->rows[i].arrival_ns - last);
        } else {
            first = t->rows[i].arrival_ns;
        }
        last = t->rows[i].arrival_ns;
    }
    double span = units_s_from_ns(last - first);
    c->rate_per_min = n > 0 && span > 0.0 ? (double)n / span * 60.0 : (double)NAN;
    c->gap_cv = (double)NAN;
    if (n > 1) {
        double mean = gsl_stats_mean(gaps, 1, n);
        c->gap_cv = gsl_stats_sd_m(gaps, 1, n, mean) / mean;
    }
    free(gaps);
}

void trace_stats(const struct trace *t, struct trace_stats *out)
{
    *out = (struct trace_stats){.n = t->n, .n_sessions = t->n_first};
    if (t->n_first > 0) {
        out->span_s = units_s_from_ns(t->rows[t->n_first - 1].arrival_ns - t->rows[0].arrival_ns);
    }
    for (int cls = 0; cls < 2; cls++) {
        lengths(t, cls, &out->cls[cls]);
        arrivals(t, cls, &out->cls[cls]);
    }
}

static const char *const class_names[] = {"reactive", "proactive"};

void trace_stats_print(FILE *out, const struct trace_stats *s)
{
    fprintf(out, "%zu requests in %zu sessions, first turns over %.1f s\n\n", s->n, s->n_sessions,
            s->span_s);
    fprintf(out, "%-10s %8s %9s %7s %32s %32s %7s\n", "class", "requests", "per min", "gap CV",
            "input mean/p50/p90/p99/max", "output mean/p50/p90/p99/max", "reuse");
    for (int i = 0; i < 2; i++) {
        const struct trace_class_stats *c = &s->cls[i];
        if (c->n == 0) {
            continue;
        }
        char in[80];
        char outp[80];
        (void)snprintf(in, sizeof in, "%.0f/%.0f/%.0f/%.0f/%.0f", c->input_mean, c->input_p50,
                       c->input_p90, c->input_p99, c->input_max);
        (void)snprintf(outp, sizeof outp, "%.0f/%.0f/%.0f/%.0f/%.0f", c->output_mean, c->output_p50,
                       c->output_p90, c->output_p99, c->output_max);
        fprintf(out, "%-10s %8zu %9.3f %7.2f %32s %32s %6.1f%%\n", class_names[i], c->n,
                c->rate_per_min, c->gap_cv, in, outp, 100.0 * c->prefix_frac);
    }
}

static void add(cJSON *o, const char *key, double v)
{
    if (isfinite(v)) {
        cJSON_AddNumberToObject(o, key, v);
    } else {
        cJSON_AddNullToObject(o, key);
    }
}

cJSON *trace_stats_json(const struct trace_stats *s)
{
    cJSON *root = cJSON_CreateObject();
    add(root, "requests", (double)s->n);
    add(root, "sessions", (double)s->n_sessions);
    add(root, "span_s", s->span_s);
    for (int i = 0; i < 2; i++) {
        const struct trace_class_stats *c = &s->cls[i];
        cJSON *o = cJSON_AddObjectToObject(root, class_names[i]);
        add(o, "requests", (double)c->n);
        add(o, "rate_per_min", c->rate_per_min);
        add(o, "gap_cv", c->gap_cv);
        add(o, "input_tokens_mean", c->input_mean);
        add(o, "input_tokens_p50", c->input_p50);
        add(o, "input_tokens_p90", c->input_p90);
        add(o, "input_tokens_p99", c->input_p99);
        add(o, "input_tokens_max", c->input_max);
        add(o, "output_tokens_mean", c->output_mean);
        add(o, "output_tokens_p50", c->output_p50);
        add(o, "output_tokens_p90", c->output_p90);
        add(o, "output_tokens_p99", c->output_p99);
        add(o, "output_tokens_max", c->output_max);
        add(o, "prefix_frac", c->prefix_frac);
    }
    return root;
}

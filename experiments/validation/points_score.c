#include "experiments/validation/points_score.h"

#include <gsl/gsl_statistics_double.h>

#include "sim/base/quantile.h"

struct table_of {
    const struct points *points;
    const struct prediction *q;
};

enum key { KEY_ALL, KEY_SOC, KEY_DEVICE, KEY_METRIC, KEY_PROMPT, KEY_PARAMETERS, KEY_MODEL };

static const char *prompt_of(uint32_t tokens)
{
    return tokens == 0      ? "not stated"
           : tokens <= 64   ? "1 to 64 tokens"
           : tokens <= 1500 ? "65 to 1500 tokens"
                            : "over 1500 tokens";
}

/* Name of a row's group. */
static const char *key_of(enum key key, const struct point *p, const struct prediction *q)
{
    switch (key) {
    case KEY_SOC:
        return p->soc;
    case KEY_DEVICE:
        return p->device;
    case KEY_METRIC:
        return p->metric_name;
    case KEY_PROMPT:
        return prompt_of(p->input_tokens);
    case KEY_PARAMETERS:
        return q->reason != NULL    ? "not predicted"
               : q->runtime_default ? "another runtime's"
                                    : "the runtime's own";
    case KEY_MODEL:
        return p->model;
    case KEY_ALL:
        break;
    }
    return "latency rows";
}

double points_error(const struct point *p, const struct prediction *q)
{
    return q->reason == NULL ? q->value / p->value - 1.0 : (double)NAN;
}

/* ln of predicted over measured time, so too long a latency and too low a rate are the same error.
 * For other rows, ln of the ratio of values. */
static double slower(const struct point *p, const struct prediction *q)
{
    bool rate = p->metric == POINT_PREFILL_TOK_S || p->metric == POINT_DECODE_TOK_S;
    return rate ? log(p->value / q->value) : log(q->value / p->value);
}

static void fill(const struct table_of *t, bool latency, enum key key, struct points_group *g)
{
    SCOPED(sample_fini) struct sample some;
    SCOPED(sample_fini) struct sample all;
    OWNED double *x = xmalloc((t->points->n + 1) * sizeof *x);
    OWNED double *y = xmalloc((t->points->n + 1) * sizeof *y);
    sample_init(&some, false);
    sample_init(&all, false);
    double sum = 0.0;
    bool one_metric = true;
    size_t with_interval = 0;
    size_t inside = 0;
    const char *metric = NULL;
    for (size_t i = 0; i < t->points->n; i++) {
        const struct point *p = &t->points->v[i];
        if (point_is_latency(p) != latency || strcmp(key_of(key, p, &t->q[i]), g->key) != 0) {
            continue;
        }
        double error = points_error(p, &t->q[i]);
        g->n++;
        sample_add(&all, isnan(error) ? 1.0 : fabs(error));
        if (!isnan(error)) {
            x[g->predicted] = t->q[i].value;
            y[g->predicted++] = p->value;
            sample_add(&some, fabs(error));
            sum += slower(p, &t->q[i]);
            bool has = latency && !isnan(t->q[i].low);
            with_interval += has;
            inside += has && p->value >= t->q[i].low && p->value <= t->q[i].high;
            one_metric = one_metric && (metric == NULL || strcmp(metric, p->metric_name) == 0);
            metric = p->metric_name;
        }
    }
    SIM_ASSERT(inside <= with_interval && with_interval <= g->predicted && g->predicted <= g->n);
    g->inside_frac = with_interval > 0 ? (double)inside / (double)with_interval : (double)NAN;
    g->median = sample_quantile(&some, 0.5);
    g->p90 = sample_quantile(&some, 0.9);
    g->median_all = sample_quantile(&all, 0.5);
    g->p90_all = sample_quantile(&all, 0.9);
    g->bias = g->predicted > 0 ? exp(sum / (double)g->predicted) - 1.0 : (double)NAN;
    g->pearson = g->predicted > 1 && one_metric ? gsl_stats_correlation(x, 1, y, 1, g->predicted)
                                                : (double)NAN;
}

SORT_BY(by_name, struct points_group, SORT_TEXT(key))

/* Adds a group for every value of a key, sorted by text. */
static void add_groups(const struct table_of *t, bool latency, const char *by, enum key key,
                       struct points_scores *out)
{
    size_t first = out->n;
    for (size_t i = 0; i < t->points->n; i++) {
        const struct point *p = &t->points->v[i];
        if (point_is_latency(p) != latency) {
            continue;
        }
        const char *name = key_of(key, p, &t->q[i]);
        size_t k = first;
        while (k < out->n && strcmp(out->v[k].key, name) != 0) {
            k++;
        }
        if (k < out->n) {
            continue;
        }
        KEPT_ADD(out->v, out->n, (struct points_group){.by = by, .key = name});
    }
    if (out->n > first) {
        qsort(&out->v[first], out->n - first, sizeof *out->v, by_name);
    }
    for (size_t k = first; k < out->n; k++) {
        fill(t, latency, key, &out->v[k]);
    }
}

void points_score(const struct points *points, const struct prediction *q,
                  struct points_scores *out)
{
    const struct table_of t = {points, q};
    *out = (struct points_scores){0};
    add_groups(&t, true, "all", KEY_ALL, out);
    add_groups(&t, true, "soc", KEY_SOC, out);
    add_groups(&t, true, "device", KEY_DEVICE, out);
    add_groups(&t, true, "metric", KEY_METRIC, out);
    add_groups(&t, true, "prompt", KEY_PROMPT, out);
    add_groups(&t, true, "parameters", KEY_PARAMETERS, out);
    add_groups(&t, true, "model", KEY_MODEL, out);
    add_groups(&t, false, "other", KEY_METRIC, out);
}

#include <gsl/gsl_statistics_double.h>

#include "sim/api/request.h"
#include "sim/base/quantile.h"
#include "traces/traces.h"

static void lengths(const struct trace *t, int cls, uint64_t shareable, struct trace_class_stats *c)
{
    SCOPED(sample_fini) struct sample in;
    SCOPED(sample_fini) struct sample out;
    sample_init(&in, false);
    sample_init(&out, false);
    for (size_t i = 0; i < t->n; i++) {
        if (t->rows[i].cls == cls) {
            sample_add(&in, t->rows[i].input_tokens);
            sample_add(&out, t->rows[i].output_tokens);
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
    c->prefix_frac = in.n == 0 ? (double)NAN : (double)shareable / (c->input_mean * (double)in.n);
}

static void arrivals(const struct trace *t, int cls, struct trace_class_stats *c)
{
    OWNED double *gaps = xmalloc((t->n_first + 1) * sizeof *gaps);
    size_t n = 0;
    int64_t last = -1;
    int64_t first = -1;
    /* First turns only: arrivals of later ones depend on the policy. */
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
    /* Gaps per time that they span: n requests have n - 1 gaps. The time before the first and after
     * the last is unknown. */
    c->rate_per_min = n > 0 && span > 0.0 ? (double)n / span * 60.0 : (double)NAN;
    c->gap_cv = (double)NAN;
    if (n > 1) {
        double mean = gsl_stats_mean(gaps, 1, n);
        c->gap_cv = gsl_stats_sd_m(gaps, 1, n, mean) / mean;
    }
}

static size_t sessions_of(const struct trace *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        n += t->rows[i].turn == 0;
    }
    return n;
}

void trace_stats(const struct trace *t, struct trace_stats *out)
{
    *out = (struct trace_stats){.n = t->n, .n_sessions = sessions_of(t)};
    if (t->n_first > 0) {
        out->span_s = units_s_from_ns(t->rows[t->n_first - 1].arrival_ns - t->rows[0].arrival_ns);
    }
    uint64_t shareable[REQUEST_CLASS_COUNT];
    (void)trace_shareable_tokens(t, shareable);
    for (int cls = 0; cls < 2; cls++) {
        lengths(t, cls, shareable[cls], &out->cls[cls]);
        arrivals(t, cls, &out->cls[cls]);
    }
}

#include "plots/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"

static double x_of(const struct series *s, size_t i)
{
    double x = 0.0;
    if (s->x != NULL) {
        (void)results_axis_number(s->results, i, s->x, &x);
    }
    return x;
}

/* Few points, and equal ones keep their order: insertion. */
static void sort_points(struct series *s)
{
    for (size_t i = 0; i < s->n_points; i++) {
        size_t k = i;
        while (k > 0 && x_of(s, s->order[k - 1]) > x_of(s, i)) {
            s->order[k] = s->order[k - 1];
            k--;
        }
        s->order[k] = i;
    }
}

void series_init(struct series *s, const struct results *r, const char *x, const char *y)
{
    size_t n = results_n(r);
    *s = (struct series){.results = r,
                         .x = x,
                         .names = xcalloc(n + 1, sizeof *s->names),
                         .n_points = n,
                         .of = xcalloc(n + 1, sizeof *s->of),
                         .order = xcalloc(n + 1, sizeof *s->order)};
    for (size_t i = 0; i < n; i++) {
        char label[256];
        (void)results_label(r, i, x, y, label, sizeof label);
        size_t k = 0;
        while (k < s->n && strcmp(s->names[k], label) != 0) {
            k++;
        }
        if (k == s->n) {
            s->names[s->n++] = xstrdup(label);
        }
        s->of[i] = k;
    }
    sort_points(s);
}

void series_fini(struct series *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->names[i]);
    }
    free(s->names);
    free(s->of);
    free(s->order);
    *s = (struct series){0};
}

void series_lines(const struct series *s, const char *metric, struct figure_data *d)
{
    double scale = series_scale(metric);
    for (size_t k = 0; k < s->n; k++) {
        figure_block(d, "%s", s->names[k]);
        for (size_t i = 0; i < s->n_points; i++) {
            struct results_value v;
            if (s->of[s->order[i]] != k || !results_metric(s->results, s->order[i], metric, &v)) {
                continue;
            }
            figure_cell(d, x_of(s, s->order[i]));
            figure_cell(d, scale * v.mean);
            figure_cell(d, scale * (isfinite(v.low) ? v.low : v.mean));
            figure_cell(d, scale * (isfinite(v.high) ? v.high : v.mean));
            figure_row_end(d);
        }
    }
}

/* ---- names of metrics ---- */

static const char *const parts[][2] = {
    {"ttft_s", "time to first token (s)"},
    {"tbt_s", "time between tokens (s)"},
    {"tpot_s", "time per output token (s)"},
    {"e2e_s", "latency (s)"},
    {"session_s", "session latency (s)"},
    {"wait_s", "waiting time (s)"},
    {"norm_e2e_per_token_s", "latency per token (s)"},
    {"norm_e2e_per_output_s", "latency per output token (s)"},
    {"norm_ttft_per_input_s", "time to first token per input token (s)"},
    {"throughput_req_per_min", "throughput (requests/min)"},
    {"goodput_req_per_min", "goodput (requests/min)"},
    {"output_tokens_per_s", "output (tokens/s)"},
    {"weighted_util_frac", "utilisation"},
    {"busy_frac", "busy share"},
    {"util_frac", "utilisation"},
    {"energy_active_j_per_token", "active energy (J/token)"},
    {"energy_j_per_token", "energy (J/token)"},
    {"energy_j", "energy (J)"},
    {"memory_peak_bytes", "peak memory (GB)"},
    {"peak_power_watts", "peak power (W)"},
};

static const char *known(const char *part, size_t len)
{
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (strlen(parts[i][0]) == len && strncmp(parts[i][0], part, len) == 0) {
            return parts[i][1];
        }
    }
    return NULL;
}

double series_scale(const char *metric)
{
    size_t n = strlen(metric);
    return n > 6 && strcmp(metric + n - 6, "_bytes") == 0 ? 1e-9 : 1.0;
}

/* "reactive.e2e_s.p90": who, what, which statistic. What is not known is printed as it is. */
const char *series_title(const char *metric, char *buf, size_t size)
{
    const char *dot = strchr(metric, '.');
    const char *what = dot == NULL ? metric : dot + 1;
    const char *stat = strchr(what, '.');
    size_t len = stat == NULL ? strlen(what) : (size_t)(stat - what);
    const char *text = known(what, len);
    if (text == NULL) {
        (void)snprintf(buf, size, "%s", metric);
        return buf;
    }
    bool all = strncmp(metric, "all.", 4) == 0;
    bool igpu = strncmp(metric, "igpu.", 5) == 0;
    int who = dot == NULL || all ? 0 : (int)(dot - metric);
    bool percentile = stat != NULL && stat[1] == 'p';
    (void)snprintf(buf, size, "%s%s%s%.*s%s%s", percentile ? "P" : "",
                   stat == NULL ? "" : stat + (percentile ? 2 : 1), stat == NULL ? "" : " ", who,
                   igpu ? "iGPU" : metric, who > 0 ? " " : "", text);
    return buf;
}

void series_titles(const char *const *metrics, size_t n, struct figure_data *d)
{
    for (size_t i = 0; i < n; i++) {
        char name[32];
        char title[160];
        (void)snprintf(name, sizeof name, "title%zu", i + 1);
        figure_var_text(d, name, series_title(metrics[i], title, sizeof title));
    }
}

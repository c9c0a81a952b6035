/* Tornado plot of `compare --uncertainty`: the difference of two policies if a single number is at
 * either end of its range; and the share of machines on which each policy is best. */
#include "plots/figure.h"
#include "plots/series.h"
#include "sim/base/json.h"

/* A row of the frame, and the size of its effect on the difference. */
struct factor {
    uint32_t row;
    double effect;
};

SORT_BY(by_effect, struct factor, SORT_DOWN(effect), SORT_UP(row))

/* The numbers that affect a metric's difference, largest effect first. The caller frees them. */
static struct factor *factors_of(const struct frame *f, const char *metric, size_t *n)
{
    struct factor *v = xcalloc((size_t)frame_rows(f) + 1, sizeof *v);
    *n = 0;
    for (uint32_t i = 0; i < frame_rows(f); i++) {
        double low = frame_get(f, i, "difference_low");
        double high = frame_get(f, i, "difference_high");
        double file = frame_get(f, i, "difference_file");
        double effect = fmax(fmax(low, high), file) - fmin(fmin(low, high), file);
        if (frame_is(f, i, "metric", metric) && effect > 0.0) {
            v[(*n)++] = (struct factor){i, effect};
        }
    }
    qsort(v, *n, sizeof *v, by_effect);
    return v;
}

/* Writes the rows of a metric: index, difference at the file's value, at the low and at the high
 * end. Their names have the number and its range. */
static size_t put_factors(const struct frame *f, const char *metric, struct figure_data *d,
                          struct texts *rows)
{
    SCOPED(texts_fini) struct texts policies = {.n = 0};
    size_t n;
    OWNED struct factor *v = factors_of(f, metric, &n);
    size_t all = 0;
    for (uint32_t i = 0; i < frame_rows(f); i++) {
        all += frame_is(f, i, "metric", metric);
    }
    figure_var(d, "unmoved", (double)(all - n));
    for (size_t i = 0; i < n; i++) {
        (void)texts_index(&policies, frame_text(f, v[i].row, "policy"));
    }
    bool one = policies.n < 2;
    figure_block(d, "factors");
    for (size_t i = 0; i < n; i++) {
        uint32_t row = v[i].row;
        OWNED char *name = xformat("%.60s%s%.40s, %.3g to %.3g", frame_text(f, row, "factor"),
                                   one ? "" : ", ", one ? "" : frame_text(f, row, "policy"),
                                   frame_get(f, row, "low"), frame_get(f, row, "high"));
        FIGURE_ROW(d, rows->n, frame_get(f, row, "difference_file"),
                   frame_get(f, row, "difference_low"), frame_get(f, row, "difference_high"));
        texts_add(rows, name);
    }
    return rows->n;
}

int figure_tornado(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    SCOPED(frame_drop)
    struct frame *f =
        figure_rows(&q->inputs[0], "uncertainty/factors/{metric}/{policy}/{factor}", e);
    SCOPED(frame_drop)
    struct frame *best = figure_rows(&q->inputs[0], "uncertainty/best/{metric}/{policy}", e);
    if (e->n == 0) {
        (void)frame_require(f, "machines difference_file difference_low difference_high", e);
        (void)frame_require(best, "best_frac", e);
    }
    if (e->n == 0) {
        struct texts rows = {.n = 0};
        struct texts names = {.n = 0};
        const char *metric = frame_text(f, 0, "metric");
        figure_var(d, "factor_rows", (double)put_factors(f, metric, d, &rows));
        figure_block(d, "best");
        for (uint32_t i = 0; i < frame_rows(best); i++) {
            if (frame_is(best, i, "metric", metric)) {
                const char *policy = frame_text(best, i, "policy");
                FIGURE_ROW(d, names.n, frame_get(best, i, "best_frac"), policy);
                texts_add(&names, policy);
            }
        }
        figure_slots_put((const char *const *)names.v, names.n, d);
        figure_var(d, "policies", (double)names.n);
        figure_texts_put(&names, "best_names", d);
        figure_var_text(d, "baseline", json_string(q->inputs[0].tree, "baseline"));
        figure_var(d, "machines", frame_get(f, 0, "machines"));
        series_titles(&metric, 1, d);
        figure_texts_put(&rows, "rows", d);
    }
    return e->n > 0 ? -EINVAL : 0;
}

/* Distributions over requests: latencies and lengths, by class. */
#include <gsl/gsl_sort.h>

#include "plots/figure.h"
#include "sim/base/words.h"

#define MAX_STEPS 120 /* per curve: as many as a panel resolves */

/* Sorted values of a column for a class. If the table has states, only finished requests count, as
 * in metrics, because others lack some columns. The caller frees them. */
static double *values_of(const struct frame *f, const char *cls, const char *column, size_t *n)
{
    bool states = frame_find(f, "state") >= 0;
    double *v = xcalloc(frame_rows(f), sizeof *v);
    *n = 0;
    for (uint32_t row = 0; row < frame_rows(f); row++) {
        double x = frame_get(f, row, column);
        bool counts = !states || frame_is(f, row, "state", "finished");
        if (counts && frame_is(f, row, "class", cls) && !isnan(x)) { /* empty cell */
            v[(*n)++] = x;
        }
    }
    gsl_sort(v, 1, *n);
    return v;
}

/* Writes values, and the share of requests at or below each. */
static void put_steps(const double *v, size_t n, struct figure_data *d)
{
    size_t step = n / MAX_STEPS + 1;
    for (size_t i = 0; i < n; i += step) {
        size_t last = i + step < n ? i + step - 1 : n - 1;
        FIGURE_ROW(d, v[last], (double)(last + 1) / (double)n);
    }
}

/* Whether two files have equal values in these columns. */
static bool same_values(const struct frame *a, const struct frame *b, const char *const *columns,
                        size_t n)
{
    bool same = frame_rows(a) == frame_rows(b);
    for (size_t c = 0; c < n && same; c++) {
        for (uint32_t row = 0; row < frame_rows(a) && same; row++) {
            same = frame_is(a, row, columns[c], frame_text(b, row, columns[c]));
        }
    }
    return same;
}

/* Reads all inputs. Returns 0, or -EINVAL with errors. */
static int read_all(const struct figure_request *q, const char *const *columns, size_t n,
                    struct frame **f, struct err *e)
{
    for (size_t i = 0; i < q->n_inputs; i++) {
        f[i] = figure_rows(&q->inputs[i], "", e);
        if (f[i] != NULL) {
            (void)frame_require(f[i], "class", e);
        }
        for (size_t c = 0; c < n && f[i] != NULL; c++) {
            (void)frame_require(f[i], columns[c], e);
        }
    }
    return e->n > 0 ? -EINVAL : 0;
}

/* Writes a block per column, input and class, in that order, even if empty. If inputs have equal
 * columns, only the first is drawn. */
int figure_distributions(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    const char *const *columns = d->figure->metrics;
    size_t n = 0;
    while (columns[n] != NULL) {
        n++;
    }
    struct frame *f[FIGURE_MAX_INPUTS] = {NULL}; /* the distinct ones */
    const char *labels[FIGURE_MAX_INPUTS];
    size_t rows = 0;
    size_t shown = 0;
    int rc = read_all(q, columns, n, f, e);
    for (size_t i = 0; rc == 0 && i < q->n_inputs; i++) {
        bool twin = false;
        for (size_t k = 0; k < shown && !twin; k++) {
            twin = same_values(f[k], f[i], columns, n);
        }
        struct frame *kept = f[i];
        f[i] = NULL;
        if (twin) {
            frame_free(kept);
        } else {
            labels[shown] = q->inputs[i].label;
            f[shown++] = kept;
        }
    }
    for (size_t c = 0; c < n * shown * 2; c++) { /* columns, inputs, classes */
        size_t i = c / 2 % shown;
        const char *cls = words_classes[c % 2];
        size_t m;
        OWNED double *v = values_of(f[i], cls, columns[c / 2 / shown], &m);
        rows += m;
        figure_block(d, "%s%s%s", shown > 1 ? labels[i] : "", shown > 1 ? ", " : "", cls);
        put_steps(v, m, d);
    }
    if (rc == 0 && rows == 0) {
        rc = err_add(e,
                     "%s: no request of the class reactive or proactive has a number in column %s",
                     q->inputs[0].path, columns[0]);
    }
    figure_var(d, "inputs", (double)shown);
    figure_slots_put(labels, shown, d);
    for (size_t i = 0; i < q->n_inputs; i++) {
        frame_free(f[i]);
    }
    return rc;
}

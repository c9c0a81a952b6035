/* Distributions over requests: latencies by class, and lengths. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plots/figure.h"
#include "plots/grid.h"
#include "sim/base/arena.h"

#define MAX_STEPS 1000 /* of one curve: enough for a line, few enough for a page */

static const char *const classes[] = {"reactive", "proactive"};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Values of a column, of one class. Caller frees. -1 in *n after an error. */
static double *values_of(const struct grid *g, const char *cls, int class_column, int column,
                         size_t *n)
{
    double *v = xcalloc(g->n_rows + 1, sizeof *v);
    *n = 0;
    for (size_t row = 1; row < g->n_rows; row++) {
        double x;
        if (strcmp(grid_text(g, row, (size_t)class_column), cls) == 0 &&
            grid_number(g, row, (size_t)column, &x)) { /* empty: it never came so far */
            v[(*n)++] = x;
        }
    }
    qsort(v, *n, sizeof *v, by_value);
    return v;
}

/* Value and share of requests at or below it. */
static void put_steps(const double *v, size_t n, struct figure_data *d)
{
    size_t step = n / MAX_STEPS + 1;
    for (size_t i = 0; i < n; i += step) {
        size_t last = i + step < n ? i + step - 1 : n - 1;
        figure_cell(d, v[last]);
        figure_cell(d, (double)(last + 1) / (double)n);
        figure_row_end(d);
    }
}

/* A block per column, input and class, in that order; empty ones too. */
static int distributions(const struct figure_request *q, const char *const *columns, size_t n,
                         struct figure_data *d, struct err *e)
{
    struct grid *g = xcalloc(q->n_inputs, sizeof *g);
    int cls[FIGURE_MAX_INPUTS];
    size_t rows = 0;
    for (size_t i = 0; i < q->n_inputs; i++) {
        if (grid_read(&g[i], q->inputs[i].path, e) == 0) {
            cls[i] = grid_require(&g[i], "class", e);
            for (size_t c = 0; c < n; c++) {
                (void)grid_require(&g[i], columns[c], e);
            }
        }
    }
    for (size_t c = 0; c < n && e->n == 0; c++) {
        for (size_t i = 0; i < q->n_inputs; i++) {
            for (size_t k = 0; k < 2; k++) {
                size_t m;
                double *v =
                    values_of(&g[i], classes[k], cls[i], grid_column(&g[i], columns[c]), &m);
                rows += m;
                if (q->n_inputs > 1) {
                    figure_block(d, "%s, %s", q->inputs[i].label, classes[k]);
                } else {
                    figure_block(d, "%s", classes[k]);
                }
                put_steps(v, m, d);
                free(v);
            }
        }
    }
    if (e->n == 0 && rows == 0) {
        (void)err_add(e, "%s: no request has a number in column %s", q->inputs[0].path, columns[0]);
    }
    figure_var(d, "inputs", (double)q->n_inputs);
    for (size_t i = 0; i < q->n_inputs; i++) {
        grid_fini(&g[i]);
    }
    free(g);
    return e->n > 0 ? -EINVAL : 0;
}

int figure_cdf(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    static const char *const columns[] = {"ttft_s", "tpot_s", "e2e_s"};
    return distributions(q, columns, 3, d, e);
}

int figure_lengths(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    static const char *const columns[] = {"input_tokens", "output_tokens"};
    return distributions(q, columns, 2, d, e);
}

/* Distributions over requests: latencies by class, and lengths. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plots/figure.h"
#include "plots/grid.h"
#include "sim/base/arena.h"

#define MAX_STEPS 120 /* of one curve: as many as a panel shows apart */

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

/* Do two files have the same values, whoever served them? */
static bool same_values(const struct grid *a, const struct grid *b, const char *const *columns,
                        size_t n)
{
    bool same = a->n_rows == b->n_rows;
    for (size_t c = 0; c < n && same; c++) {
        size_t x = (size_t)grid_column(a, columns[c]);
        size_t y = (size_t)grid_column(b, columns[c]);
        for (size_t row = 1; row < a->n_rows && same; row++) {
            same = strcmp(grid_text(a, row, x), grid_text(b, row, y)) == 0;
        }
    }
    return same;
}

struct shown {
    struct grid g;
    const char *label; /* NULL: the same requests as another's, or unreadable */
    int cls;
};

/* Reads all inputs; 0 or -EINVAL with errors. */
static int read_all(const struct figure_request *q, const char *const *columns, size_t n,
                    struct shown *s, struct err *e)
{
    for (size_t i = 0; i < q->n_inputs; i++) {
        if (grid_read(&s[i].g, q->inputs[i].path, e) == 0) {
            s[i].label = q->inputs[i].label;
            s[i].cls = grid_require(&s[i].g, "class", e);
            for (size_t c = 0; c < n; c++) {
                (void)grid_require(&s[i].g, columns[c], e);
            }
        }
    }
    return e->n > 0 ? -EINVAL : 0;
}

/* A block per column, input and class, in that order; empty ones too. Inputs that are the same in
 * all columns are one. */
static int distributions(const struct figure_request *q, const char *const *columns, size_t n,
                         struct figure_data *d, struct err *e)
{
    struct shown *s = xcalloc(q->n_inputs, sizeof *s);
    const char *labels[FIGURE_MAX_INPUTS];
    size_t rows = 0;
    size_t shown = 0;
    int rc = read_all(q, columns, n, s, e);
    for (size_t i = 0; rc == 0 && i < q->n_inputs; i++) {
        for (size_t k = 0; k < i; k++) {
            bool twin = s[k].label != NULL && same_values(&s[k].g, &s[i].g, columns, n);
            s[i].label = twin ? NULL : s[i].label;
        }
        if (s[i].label != NULL) {
            labels[shown++] = s[i].label;
        }
    }
    for (size_t c = 0; c < n && rc == 0; c++) {
        for (size_t i = 0; i < q->n_inputs; i++) {
            for (size_t k = 0; k < 2 && s[i].label != NULL; k++) {
                size_t m;
                double *v =
                    values_of(&s[i].g, classes[k], s[i].cls, grid_column(&s[i].g, columns[c]), &m);
                rows += m;
                if (shown > 1) {
                    figure_block(d, "%s, %s", s[i].label, classes[k]);
                } else {
                    figure_block(d, "%s", classes[k]);
                }
                put_steps(v, m, d);
                free(v);
            }
        }
    }
    if (rc == 0 && rows == 0) {
        rc = err_add(e, "%s: no request has a number in column %s", q->inputs[0].path, columns[0]);
    }
    figure_var(d, "inputs", (double)shown);
    figure_slots_put(labels, shown, d);
    for (size_t i = 0; i < q->n_inputs; i++) {
        grid_fini(&s[i].g);
    }
    free(s);
    return rc;
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

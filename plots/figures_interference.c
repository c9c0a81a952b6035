/* The interference matrix of `explain --interference`, and the causes as bars. */
#include "plots/figure.h"
#include "sim/base/words.h"

/* Reads all inputs; -EINVAL with errors if one is not from explain --interference. */
static int read_all(const struct figure_request *q, struct frame **v, struct err *e)
{
    for (size_t i = 0; i < q->n_inputs; i++) {
        v[i] = figure_rows(&q->inputs[i], "interference/{class}", e);
    }
    return e->n > 0 ? -EINVAL : 0;
}

static void free_all(const struct figure_request *q, struct frame **v)
{
    for (size_t i = 0; i < q->n_inputs; i++) {
        frame_free(v[i]);
    }
}

/* A column in seconds per request of a class; 0 without requests. */
static double per_request(const struct frame *f, const char *cls, const char *column)
{
    for (uint32_t row = 0; row < frame_rows(f); row++) {
        double v = frame_get(f, row, column) / frame_get(f, row, "requests");
        if (frame_is(f, row, "class", cls) && isfinite(v)) {
            return v;
        }
    }
    return 0.0;
}

/* Writes a block per input: aggressor's column, victim's row, seconds per victim. */
static void put_matrix(const char *label, const struct frame *f, struct figure_data *d)
{
    figure_block(d, "%s", label);
    for (int v = 0; v < 2; v++) {
        for (int a = 0; a < 2; a++) {
            OWNED char *wait = xformat("by.%s.wait_s", words_classes[a]);
            FIGURE_ROW(d, a, v, per_request(f, words_classes[v], wait), words_classes[a],
                       words_classes[v]);
        }
    }
}

int figure_interference(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    struct frame *v[FIGURE_MAX_INPUTS] = {NULL};
    struct texts names = {.n = 0};
    if (read_all(q, v, e) == 0) {
        for (size_t i = 0; i < q->n_inputs; i++) {
            put_matrix(q->inputs[i].label, v[i], d);
            texts_add(&names, q->inputs[i].label);
        }
        figure_texts_put(&names, "names", d);
    }
    free_all(q, v);
    return e->n > 0 ? -EINVAL : 0;
}

/* Causes drawn as one part, from the bottom of a bar; NULL ends a part. Every cause of
 * sim/metrics/explain.h is in exactly one. */
#define MAX_TOGETHER 4
static const char *const parts[][MAX_TOGETHER + 1] = {
    {"compute", NULL},
    {"shared_pass", NULL},
    {"host", NULL},
    {"ddr_slowdown", "device_sharing", "throttling", "graphics", NULL},
    {"recompute", "killed", NULL},
    {"compile", "graph_load", NULL},
    {"kernel_tail", NULL},
    {"queue_same", "batching", NULL},
    {"queue_other", NULL},
    {"held", "held_back", "eviction", NULL},
};
#define N_PARTS (sizeof parts / sizeof parts[0])

/* Boundaries of the parts, from 0 to the whole. */
static void edges_of(const struct frame *f, const char *cls, double *edge)
{
    edge[0] = 0.0;
    for (size_t k = 0; k < N_PARTS; k++) {
        edge[k + 1] = edge[k];
        for (size_t i = 0; parts[k][i] != NULL; i++) {
            OWNED char *cause = xformat("causes_s.%s", parts[k][i]);
            edge[k + 1] += per_request(f, cls, cause);
        }
    }
}

/* Writes the bars of a class, per input: name, boundaries, no interval, end of the axis. */
static void put_bars(const struct figure_request *q, struct frame *const *v, const char *cls,
                     struct figure_data *d)
{
    double edge[FIGURE_MAX_INPUTS][N_PARTS + 1];
    double length[FIGURE_MAX_INPUTS];
    for (size_t i = 0; i < q->n_inputs; i++) {
        edges_of(v[i], cls, edge[i]);
        length[i] = edge[i][N_PARTS];
    }
    figure_block(d, "%s", cls);
    for (size_t i = 0; i < q->n_inputs; i++) {
        FIGURE_CELLS(d, q->inputs[i].label);
        for (size_t k = 0; k <= N_PARTS; k++) {
            FIGURE_CELLS(d, edge[i][k]);
        }
        FIGURE_ROW(d, (double)NAN, (double)NAN, figure_bars_end(length, length, q->n_inputs));
    }
}

int figure_causes(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    struct frame *v[FIGURE_MAX_INPUTS] = {NULL};
    struct texts rows = {.n = 0};
    if (read_all(q, v, e) == 0) {
        for (int c = 0; c < 2; c++) {
            put_bars(q, v, words_classes[c], d);
        }
        for (size_t i = 0; i < q->n_inputs; i++) {
            texts_add(&rows, q->inputs[i].label);
        }
        figure_var(d, "marked", 0.0);
        figure_texts_put(&rows, "rows", d);
    }
    free_all(q, v);
    return e->n > 0 ? -EINVAL : 0;
}

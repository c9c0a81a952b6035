/* The request graph of a job on a time axis: a row per request, dependencies, and the critical
 * path. Reads explain --job --json. */
#include "plots/figure.h"

#define MAX_ROWS 200 /* requests of a job; more would be unreadable */

struct job_row {
    uint32_t at; /* row in the table */
    double arrival_ns, id;
};

SORT_BY(earliest_first, struct job_row, SORT_UP(arrival_ns), SORT_UP(id))

static struct job_row *rows_of(const struct frame *requests, struct figure_data *d)
{
    uint32_t n = frame_rows(requests);
    struct job_row *v = xcalloc(n + 1, sizeof *v);
    struct texts names = {.n = 0};
    for (uint32_t i = 0; i < n; i++) {
        v[i] = (struct job_row){i, frame_get(requests, i, "arrival_ns"),
                                frame_get(requests, i, "request_id")};
    }
    qsort(v, n, sizeof *v, earliest_first);
    for (uint32_t i = 0; i < n; i++) {
        bool background =
            frame_at(requests, v[i].at, (size_t)frame_find(requests, "background")).number > 0.0;
        OWNED char *name = xformat("%.0f%s", v[i].id, background ? " (background)" : "");
        texts_add(&names, name);
    }
    figure_texts_put(&names, "rows", d);
    return v;
}

static bool is_on_path(const struct frame *f, uint32_t row)
{
    return frame_at(f, row, (size_t)frame_find(f, "on_path")).number > 0.0;
}

/* Writes bars of a class (NULL: both) between two instants, for requests that reached the first. */
static void bars(const struct frame *f, const struct job_row *v, const char *title, const char *cls,
                 const char *from, const char *to, struct figure_data *d)
{
    figure_block(d, "%s", title);
    for (uint32_t i = 0; i < frame_rows(f); i++) {
        uint32_t at = v[i].at;
        double end_ns = frame_get(f, at, "end_ns");
        double begin_ns = frame_get(f, at, from);
        double until_ns = frame_get(f, at, to);
        until_ns = isnan(until_ns) ? end_ns : until_ns;
        if ((cls == NULL || frame_is(f, at, "class", cls)) && until_ns > begin_ns) {
            FIGURE_ROW(d, (double)i, (begin_ns - v[0].arrival_ns) / 1e9,
                       (until_ns - v[0].arrival_ns) / 1e9);
        }
    }
}

static void outlines(const struct frame *f, const struct job_row *v, struct figure_data *d)
{
    figure_block(d, "critical path");
    for (uint32_t i = 0; i < frame_rows(f); i++) {
        if (is_on_path(f, v[i].at)) {
            FIGURE_ROW(d, (double)i, (v[i].arrival_ns - v[0].arrival_ns) / 1e9,
                       (frame_get(f, v[i].at, "end_ns") - v[0].arrival_ns) / 1e9);
        }
    }
}

/* Edges from the end of a parent, on its row, to the child's arrival, on the child's row. */
static void edges(const struct frame *e, const struct frame *f, const struct job_row *v,
                  bool on_path, struct figure_data *d)
{
    figure_block(d, on_path ? "critical edges" : "other edges");
    for (uint32_t k = 0; k < frame_rows(e); k++) {
        uint32_t from = UINT32_MAX;
        uint32_t to = UINT32_MAX;
        for (uint32_t i = 0; i < frame_rows(f); i++) {
            from = v[i].id == frame_get(e, k, "from") ? i : from;
            to = v[i].id == frame_get(e, k, "to") ? i : to;
        }
        if (is_on_path(e, k) == on_path && from != UINT32_MAX && to != UINT32_MAX) {
            FIGURE_ROW(d, (double)from,
                       (frame_get(f, v[from].at, "end_ns") - v[0].arrival_ns) / 1e9, (double)to,
                       (v[to].arrival_ns - v[0].arrival_ns) / 1e9);
        }
    }
}

int figure_job(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    SCOPED(frame_drop) struct frame *requests = figure_rows(&q->inputs[0], "requests", e);
    if (requests == NULL || frame_require(requests,
                                          "request_id class background on_path arrival_ns "
                                          "first_service_ns first_token_ns end_ns",
                                          e) != 0) {
        return -EINVAL;
    }
    uint32_t n = frame_rows(requests);
    if (n > MAX_ROWS) {
        return err_add(e, "%s: a job of %u requests; at most %d can be drawn", q->inputs[0].path, n,
                       MAX_ROWS);
    }
    /* Not figure_rows, because a job of one request has no edges. */
    SCOPED(frame_drop)
    struct frame *links = frame_of_json(q->inputs[0].tree, "edges", q->inputs[0].path);
    OWNED struct job_row *v = rows_of(requests, d);
    bars(requests, v, "waiting", NULL, "arrival_ns", "first_service_ns", d);
    bars(requests, v, "reactive prefill", "reactive", "first_service_ns", "first_token_ns", d);
    bars(requests, v, "reactive answer", "reactive", "first_token_ns", "end_ns", d);
    bars(requests, v, "proactive prefill", "proactive", "first_service_ns", "first_token_ns", d);
    bars(requests, v, "proactive answer", "proactive", "first_token_ns", "end_ns", d);
    outlines(requests, v, d);
    edges(links, requests, v, false, d);
    edges(links, requests, v, true, d);
    bars(requests, v, "whole", NULL, "arrival_ns", "end_ns", d);
    return 0;
}

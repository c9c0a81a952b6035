#include "traces/measured.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/api/request.h"
#include "sim/base/arena.h"
#include "sim/base/csvfile.h"
#include "sim/base/datadir.h"
#include "sim/base/units.h"
#include "traces/traces.h"

#define VERSION_LINE "# xpusim-run v1"
#define MAX_S 1e7             /* of arrivals and latencies: beyond 115 days it is a mistake */
#define MAX_TOKENS 100000000u /* the same */
#define PATH_BYTES 4096

enum column { COL_REQUEST, COL_ARRIVAL, COL_INPUT, COL_OUTPUT, COL_TTFT, COL_E2E, COL_COUNT };

static const char *const names[COL_COUNT] = {"request_id",    "arrival_s", "input_tokens",
                                             "output_tokens", "ttft_s",    "e2e_s"};

/* Rows as they stand in the file, with what was measured kept by position. */
struct reader {
    struct trace_builder b;
    struct measured_latency *measured; /* owned, b.cap of them */
    size_t cap;
};

static void row_read(struct csvfile *f, const char *path, const int *cols, struct reader *r,
                     struct err *e)
{
    struct trace_row row = {.next = TRACE_NO_ROW, .cls = REQUEST_CLASS_REACTIVE};
    struct measured_latency m;
    row.request_id = (uint32_t)csvfile_u64(f, cols[COL_REQUEST], 0, UINT32_MAX - 1, e);
    row.session_id = (uint32_t)r->b.n; /* its place in the file: in_trace_order */
    row.arrival_ns = units_ns_from_s(csvfile_number(f, cols[COL_ARRIVAL], 0.0, MAX_S, e));
    row.input_tokens = (uint32_t)csvfile_u64(f, cols[COL_INPUT], 1, MAX_TOKENS, e);
    row.output_tokens = (uint32_t)csvfile_u64(f, cols[COL_OUTPUT], 1, MAX_TOKENS, e);
    row.max_output_tokens = trace_default_limit(row.output_tokens);
    size_t before = e->n;
    m.ttft_s = csvfile_number(f, cols[COL_TTFT], 1e-9, MAX_S, e);
    m.e2e_s = csvfile_number(f, cols[COL_E2E], 1e-9, MAX_S, e);
    if (e->n == before && m.e2e_s < m.ttft_s) {
        err_add(e, "%s:%llu: column e2e_s: %g is before the first token (ttft_s %g)", path,
                (unsigned long long)csvfile_line(f), m.e2e_s, m.ttft_s);
    }
    r->b.line = csvfile_line(f);
    trace_builder_add(&r->b, &row, NULL);
    if (r->cap < r->b.cap) {
        r->cap = r->b.cap;
        r->measured = xrealloc(r->measured, r->cap * sizeof *r->measured);
    }
    r->measured[r->b.n - 1] = m;
}

static void rows_read(struct csvfile *f, const char *path, struct reader *r, struct err *e)
{
    int cols[COL_COUNT];
    size_t before = e->n;
    const char *comment = csvfile_comment(f);
    if (strstr(comment, "xpusim-run") != NULL &&
        strncmp(comment, VERSION_LINE, strlen(VERSION_LINE)) != 0) {
        err_add(e, "%s: \"%s\" is not a version this program reads (%s)", path, comment,
                VERSION_LINE);
    }
    for (int i = 0; i < COL_COUNT; i++) {
        cols[i] = csvfile_require(f, names[i], e);
    }
    int status = csvfile_column(f, "status");
    bool header_fine = e->n == before;
    while (header_fine && e->n < ERR_MAX_LINES && csvfile_next(f, e) == 1) {
        if (status < 0 || strcmp(csvfile_text(f, status), "ok") == 0) {
            row_read(f, path, cols, r, e);
        }
    }
}

/* The builder sorts by arrival; until here a row's session is its position in the file. Requests
 * are then numbered in order of arrival, so that a simulation's results index arrays. */
static void in_trace_order(struct measured_run *out, const struct measured_latency *as_read)
{
    size_t n = out->trace.n;
    out->measured = xmalloc(n * sizeof *out->measured);
    out->ids = xmalloc(n * sizeof *out->ids);
    for (size_t i = 0; i < n; i++) {
        struct trace_row *row = &out->trace.rows[i];
        out->measured[i] = as_read[row->session_id];
        out->ids[i] = row->request_id;
        row->request_id = (uint32_t)i;
        row->session_id = (uint32_t)i;
    }
    out->trace.hash = trace_hash(&out->trace);
}

int measured_run_read(const char *name, struct measured_run *out, struct err *e)
{
    *out = (struct measured_run){0};
    char path[PATH_BYTES];
    (void)datadir_named(path, sizeof path, name, "hwmodels/runs", ".csv");
    size_t before = e->n;
    struct csvfile *f = csvfile_open(path, e);
    if (f == NULL) {
        return -EINVAL;
    }
    struct reader r = {0};
    trace_builder_init(&r.b);
    rows_read(f, path, &r, e);
    csvfile_close(f);
    int rc = e->n == before ? trace_build(&r.b, false, path, &out->trace, e) : -EINVAL;
    if (rc == 0) {
        in_trace_order(out, r.measured);
    }
    free(r.measured);
    trace_builder_fini(&r.b);
    return rc;
}

void measured_run_fini(struct measured_run *r)
{
    trace_fini(&r->trace);
    free(r->ids);
    free(r->measured);
    *r = (struct measured_run){0};
}

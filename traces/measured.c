#include "traces/measured.h"

#include "sim/api/request.h"
#include "sim/base/csv_record.h"
#include "sim/base/datadir.h"
#include "traces/traces.h"

#define VERSION_LINE "# xpusim-run v1"
#define MAX_S 1e7             /* of arrivals and latencies: more than 115 days is a mistake */
#define MAX_TOKENS 100000000u /* more is a mistake */

struct measured_row {
    uint32_t request_id, input_tokens, output_tokens;
    double arrival_s, ttft_s, e2e_s;
};

#define OF(member) CSV_MEMBER(struct measured_row, member)
static const struct csv_field fields[] = {
    {"request_id", CSV_WHOLE, OF(request_id), .max = UINT32_MAX - 1},
    {"arrival_s", CSV_NUMBER, OF(arrival_s), .max = MAX_S},
    {"input_tokens", CSV_WHOLE, OF(input_tokens), .min = 1, .max = MAX_TOKENS},
    {"output_tokens", CSV_WHOLE, OF(output_tokens), .min = 1, .max = MAX_TOKENS},
    {"ttft_s", CSV_NUMBER, OF(ttft_s), .min = 1e-9, .max = MAX_S},
    {"e2e_s", CSV_NUMBER, OF(e2e_s), .min = 1e-9, .max = MAX_S},
};

/* Rows in file order; latencies have equal indices. */
struct reader {
    struct trace_builder b;
    struct measured_latency *measured; /* owned, per row of b */
    size_t n_prompts_unknown, n_prefixes, n_left_out;
};

static void row_read(const struct csv_record *record, struct reader *r, struct err *e)
{
    struct csvfile *f = record->f;
    struct measured_row m;
    size_t before = e->n;
    csv_record_take(record, &m, e);
    if (e->n == before && m.e2e_s < m.ttft_s) {
        csvfile_refuse(f, csvfile_column(f, "e2e_s"), e, "%g is before the first token (ttft_s %g)",
                       m.e2e_s, m.ttft_s);
    }
    struct trace_row row = {.next = TRACE_NO_ROW,
                            .cls = REQUEST_CLASS_REACTIVE,
                            .request_id = m.request_id,
                            .session_id = (uint32_t)r->b.n, /* its index, for in_trace_order */
                            .arrival_ns = units_ns_from_s(m.arrival_s),
                            .input_tokens = m.input_tokens,
                            .output_tokens = m.output_tokens,
                            .max_output_tokens = trace_default_limit(m.output_tokens)};
    r->b.line = csvfile_line(f);
    trace_builder_add(&r->b, &row, NULL);
    r->measured = xgrow(r->measured, r->b.n - 1, sizeof *r->measured);
    r->measured[r->b.n - 1] = (struct measured_latency){m.ttft_s, m.e2e_s};
}

static void rows_read(struct csvfile *f, const char *path, struct reader *r, struct err *e)
{
    struct csv_record record;
    size_t before = e->n;
    const char *comment = csvfile_comment(f);
    if (strstr(comment, "xpusim-run") != NULL &&
        strncmp(comment, VERSION_LINE, strlen(VERSION_LINE)) != 0) {
        err_add(e, "%s: \"%s\" is not a version this program reads (%s)", path, comment,
                VERSION_LINE);
    }
    (void)csv_record_init(&record, f, fields, sizeof fields / sizeof fields[0], e);
    int status = csvfile_column(f, "status");
    int count = csvfile_column(f, "prompt_count");
    int prefix = csvfile_column(f, "prefix_tokens");
    bool header_fine = e->n == before;
    while (header_fine && e->n < ERR_MAX_LINES && csvfile_next(f, e) == 1) {
        /* `observe` also writes rows for timeouts and broken streams, which have no latencies. */
        if (status >= 0 && strcmp(csvfile_text(f, status), "ok") != 0) {
            r->n_left_out++;
        } else {
            row_read(&record, r, e);
            r->n_prompts_unknown += count >= 0 && strcmp(csvfile_text(f, count), "unknown") == 0;
            r->n_prefixes += prefix >= 0 && strtod(csvfile_text(f, prefix), NULL) > 0.0;
        }
    }
}

/* The builder sorts by arrival. Until here, session_id is a row's index in the file. Requests are
 * then renumbered in order of arrival, so that results of a simulation can index arrays. */
static void in_trace_order(struct measured_run *out, const struct measured_latency *as_read)
{
    size_t n = out->trace.n;
    out->measured = xkept(xmalloc(n * sizeof *out->measured));
    out->ids = xkept(xmalloc(n * sizeof *out->ids));
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
    const char *path = datadir_named(name, "hwmodels/runs", ".csv");
    size_t before = e->n;
    SCOPED(csvfile_drop) struct csvfile *f = csvfile_open(path, e);
    if (f == NULL) {
        return -EINVAL;
    }
    struct reader r = {0};
    trace_builder_init(&r.b);
    rows_read(f, path, &r, e);
    if (e->n == before && r.b.n == 0 && r.n_left_out > 0) {
        err_add(e, "%s: none of the %zu requests has the status ok", path, r.n_left_out);
    }
    bool built = e->n == before && trace_build(&r.b, false, path, &out->trace, e) == 0;
    int rc = built ? 0 : -EINVAL;
    if (rc == 0) {
        in_trace_order(out, r.measured);
        out->n_prompts_unknown = r.n_prompts_unknown;
        out->n_prefixes = r.n_prefixes;
    }
    free(r.measured);
    trace_builder_fini(&r.b);
    return rc;
}

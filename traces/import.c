/* Importers: other people's request traces into ours. One table row per format. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/api/request.h"
#include "sim/base/csvfile.h"
#include "sim/base/units.h"
#include "traces/traces.h"

/* A format is a set of column names. Times are seconds, or a date and time of day. */
struct format {
    const char *name;
    const char *arrival, *input, *output;
    const char *cls;   /* optional column, or NULL */
    double time_scale; /* seconds per unit of the arrival column */
    bool is_timestamp; /* "YYYY-MM-DD HH:MM:SS.fff" */
};

static const struct format formats[] = {
    {"azure", "TIMESTAMP", "ContextTokens", "GeneratedTokens", NULL, 1.0, true},
    {"burstgpt", "Timestamp", "Request tokens", "Response tokens", NULL, 1.0, false},
    {"mooncake", "arrival_s", "input_tokens", "output_tokens", NULL, 1.0, false},
    {"plain", "arrival_s", "input_tokens", "output_tokens", "class", 1.0, false},
    {"splitwise", "arrival_timestamp", "prompt_size", "token_size", NULL, 1.0, false},
    {"vidur", "arrived_at", "num_prefill_tokens", "num_decode_tokens", NULL, 1.0, false},
};
static const char *const names[] = {"azure",     "burstgpt", "mooncake", "plain",
                                    "splitwise", "vidur",    NULL};

const char *const *trace_formats(void)
{
    return names;
}

/* Days since 1970-01-01 of a civil date (proleptic Gregorian). */
static int64_t days_from_civil(int64_t y, int64_t m, int64_t d)
{
    y -= m <= 2;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t yoe = y - era * 400;
    int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return era * 146097 + doe - 719468;
}

/* Nanoseconds since 1970, or -1. Accepts a space or T between date and time. */
static int64_t parse_timestamp(const char *text)
{
    int y;
    int mo;
    int d;
    int h;
    int mi;
    double sec;
    char sep;
    char rest;
    int got = sscanf(text, "%4d-%2d-%2d%c%2d:%2d:%lf%c", &y, &mo, &d, &sep, &h, &mi, &sec, &rest);
    bool ok = (got == 7 || (got == 8 && rest == 'Z')) && (sep == ' ' || sep == 'T') && mo >= 1 &&
              mo <= 12 && d >= 1 && d <= 31 && h >= 0 && h < 24 && mi >= 0 && mi < 60 &&
              sec >= 0.0 && sec < 61.0 && y >= 1970 && y < 2200;
    if (!ok) {
        return -1;
    }
    int64_t minutes = (days_from_civil(y, mo, d) * 24 + h) * 60 + mi;
    return minutes * 60 * NS_PER_S + units_ns_from_s(sec);
}

static int64_t arrival_ns(struct csvfile *f, const struct format *fmt, const char *path, int col,
                          struct err *e)
{
    if (!fmt->is_timestamp) {
        return units_ns_from_s(csvfile_number(f, col, 0.0, 1e9, e) * fmt->time_scale);
    }
    int64_t t = parse_timestamp(csvfile_text(f, col));
    if (t < 0) {
        err_add(e, "%s:%llu: column %s: \"%s\" must be YYYY-MM-DD HH:MM:SS.fff", path,
                (unsigned long long)csvfile_line(f), fmt->arrival, csvfile_text(f, col));
        t = 0;
    }
    return t;
}

static void read_rows(struct csvfile *f, const struct format *fmt, const char *path,
                      struct trace_builder *b, struct err *e)
{
    int at = csvfile_require(f, fmt->arrival, e);
    int in = csvfile_require(f, fmt->input, e);
    int out = csvfile_require(f, fmt->output, e);
    int cls = fmt->cls == NULL ? -1 : csvfile_column(f, fmt->cls);
    if (at < 0 || in < 0 || out < 0) {
        return;
    }
    int64_t first = -1;
    while (e->n < ERR_MAX_LINES && csvfile_next(f, e) == 1) {
        struct trace_row r = {.next = TRACE_NO_ROW, .cls = REQUEST_CLASS_REACTIVE};
        r.arrival_ns = arrival_ns(f, fmt, path, at, e);
        r.input_tokens = (uint32_t)csvfile_u64(f, in, 1, 100000000, e);
        uint64_t output = csvfile_u64(f, out, 0, 100000000, e);
        r.output_tokens = output == 0 ? 1 : (uint32_t)output; /* failed answers appear as 0 */
        r.max_output_tokens = trace_default_limit(r.output_tokens);
        r.session_id = (uint32_t)b->n;
        const char *c = csvfile_text(f, cls);
        if (strcmp(c, "proactive") == 0) {
            r.cls = REQUEST_CLASS_PROACTIVE;
        } else if (c[0] != '\0' && strcmp(c, "reactive") != 0) {
            err_add(e, "%s:%llu: column class: \"%s\" must be reactive or proactive", path,
                    (unsigned long long)csvfile_line(f), c);
        }
        first = first < 0 || r.arrival_ns < first ? r.arrival_ns : first;
        trace_builder_add(b, &r, NULL);
    }
    for (size_t i = 0; i < b->n && fmt->is_timestamp; i++) {
        b->rows[i].arrival_ns -= first; /* dates count from the first request */
    }
}

int trace_import(const char *format, const char *path, struct trace *out, struct err *e)
{
    *out = (struct trace){0};
    const struct format *fmt = NULL;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (strcmp(formats[i].name, format) == 0) {
            fmt = &formats[i];
        }
    }
    if (fmt == NULL) {
        return err_add(e,
                       "format \"%s\": known ones are azure, burstgpt, mooncake, plain, "
                       "splitwise, vidur",
                       format);
    }
    size_t before = e->n;
    struct csvfile *f = csvfile_open(path, e);
    if (f == NULL) {
        return -EINVAL;
    }
    struct trace_builder b;
    trace_builder_init(&b);
    read_rows(f, fmt, path, &b, e);
    csvfile_close(f);
    int rc = e->n == before ? trace_build(&b, true, path, out, e) : -EINVAL;
    trace_builder_fini(&b);
    return rc;
}

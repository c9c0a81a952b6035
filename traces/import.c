/* Importers: other people's request traces into ours. A CSV format is one table row; Mooncake's
 * JSON lines are in import_mooncake.c. */
#include "traces/import.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/csvfile.h"
#include "sim/base/units.h"

/* A CSV format is a set of column names, as the publishers spell them; other columns are ignored.
 * Times are seconds, or a date and time of day. */
struct format {
    const char *name;
    const char *arrival, *input, *output;
    const char *cls;    /* optional column, or NULL */
    const char *prefix; /* the same */
    bool is_timestamp;  /* "YYYY-MM-DD HH:MM:SS.fff" */
};

static const struct format formats[] = {
    {"azure", "TIMESTAMP", "ContextTokens", "GeneratedTokens", NULL, NULL, true},
    {"burstgpt", "Timestamp", "Request tokens", "Response tokens", NULL, NULL, false},
    {"plain", "arrival_s", "input_tokens", "output_tokens", "class", "prefix_tokens", false},
    {"splitwise", "arrival_timestamp", "prompt_size", "token_size", NULL, NULL, false},
    {"vidur", "arrived_at", "num_prefill_tokens", "num_decode_tokens", NULL, NULL, false},
};
static const char *const names[] = {"azure",     "burstgpt", "mooncake", "plain",
                                    "splitwise", "vidur",    NULL};

const char *const *trace_formats(void)
{
    return names;
}

void import_add(struct import *im, int64_t arrival_ns, uint64_t input_tokens,
                uint64_t output_tokens, enum request_class cls)
{
    if (output_tokens == 0) {
        im->lost.failed++;
        return;
    }
    im->lost.input_tokens += input_tokens;
    struct trace_row r = {.next = TRACE_NO_ROW, .cls = (uint8_t)cls, .arrival_ns = arrival_ns};
    r.input_tokens = (uint32_t)input_tokens;
    r.output_tokens = (uint32_t)output_tokens;
    r.max_output_tokens = trace_default_limit(r.output_tokens);
    r.session_id = (uint32_t)im->b.n;
    trace_builder_add(&im->b, &r, NULL);
}

/* Days since 1970-01-01 of a civil date (proleptic Gregorian, years from March). */
static int64_t days_from_civil(int64_t y, int64_t m, int64_t d)
{
    y -= m <= 2;
    int64_t era = y / 400; /* y >= 0 here */
    int64_t yoe = y - era * 400;
    int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return era * 146097 + doe - 719468;
}

static bool date_exists(int y, int m, int d)
{
    if (y < 1970 || y >= 2200 || m < 1 || m > 12 || d < 1) {
        return false;
    }
    int64_t next = m < 12 ? days_from_civil(y, m + 1, 1) : days_from_civil(y + 1, 1, 1);
    return d <= next - days_from_civil(y, m, 1);
}

/* "", "Z" or "+HH:MM" into minutes east of Greenwich. */
static bool zone_parse(const char *text, int *minutes)
{
    int h = 0;
    int m = 0;
    int used = 0;
    *minutes = 0;
    if (text[0] == '\0' || strcmp(text, "Z") == 0) {
        return true;
    }
    if ((text[0] != '+' && text[0] != '-') || sscanf(text + 1, "%2d:%2d%n", &h, &m, &used) != 2 ||
        used != 5 || text[6] != '\0' || h < 0 || h > 14 || m < 0 || m > 59) {
        return false;
    }
    *minutes = (text[0] == '-' ? -1 : 1) * (h * 60 + m);
    return true;
}

/* Nanoseconds since 1970, or -1. A space or T between date and time; a zone may follow. */
static int64_t timestamp_ns(const char *text)
{
    int y;
    int mo;
    int d;
    int h;
    int mi;
    int used = 0;
    int zone = 0;
    double sec;
    char sep;
    if (text[strspn(text, "0123456789-+:. TZ")] != '\0' ||
        sscanf(text, "%4d-%2d-%2d%c%2d:%2d:%lf%n", &y, &mo, &d, &sep, &h, &mi, &sec, &used) != 7) {
        return -1;
    }
    bool ok = (sep == ' ' || sep == 'T') && date_exists(y, mo, d) && h >= 0 && h < 24 && mi >= 0 &&
              mi < 60 && sec >= 0.0 && sec < 61.0 && zone_parse(text + used, &zone);
    if (!ok) {
        return -1;
    }
    int64_t minutes = (days_from_civil(y, mo, d) * 24 + h) * 60 + mi - zone;
    return minutes < 0 ? -1 : minutes * 60 * NS_PER_S + units_ns_from_s(sec);
}

static int64_t arrival_of(struct csvfile *f, const struct format *fmt, const char *path, int col,
                          struct err *e)
{
    if (!fmt->is_timestamp) {
        return units_ns_from_s(csvfile_number(f, col, 0.0, IMPORT_MAX_S, e));
    }
    int64_t t_ns = timestamp_ns(csvfile_text(f, col));
    if (t_ns < 0) {
        err_add(e, "%s:%llu: column %s: \"%s\" must be YYYY-MM-DD HH:MM:SS.fff", path,
                (unsigned long long)csvfile_line(f), fmt->arrival, csvfile_text(f, col));
        t_ns = 0;
    }
    return t_ns;
}

static enum request_class class_of(struct csvfile *f, const char *path, int col, struct err *e)
{
    const char *c = csvfile_text(f, col);
    if (strcmp(c, "proactive") == 0) {
        return REQUEST_CLASS_PROACTIVE;
    }
    if (c[0] != '\0' && strcmp(c, "reactive") != 0) {
        err_add(e, "%s:%llu: column class: \"%s\" must be reactive or proactive", path,
                (unsigned long long)csvfile_line(f), c);
    }
    return REQUEST_CLASS_REACTIVE;
}

/* Dates count from the first request. */
static void times_rebase(struct trace_builder *b)
{
    int64_t first_ns = TIME_NEVER_NS;
    for (size_t i = 0; i < b->n; i++) {
        first_ns = b->rows[i].arrival_ns < first_ns ? b->rows[i].arrival_ns : first_ns;
    }
    for (size_t i = 0; i < b->n; i++) {
        b->rows[i].arrival_ns -= first_ns;
    }
}

static void csv_read(struct import *im, const struct format *fmt, const char *path, struct err *e)
{
    struct csvfile *f = csvfile_open(path, e);
    if (f == NULL) {
        return;
    }
    int at = csvfile_require(f, fmt->arrival, e);
    int in = csvfile_require(f, fmt->input, e);
    int out = csvfile_require(f, fmt->output, e);
    int cls = fmt->cls == NULL ? -1 : csvfile_column(f, fmt->cls);
    int prefix = fmt->prefix == NULL ? -1 : csvfile_column(f, fmt->prefix);
    bool columns = at >= 0 && in >= 0 && out >= 0;
    while (columns && e->n < ERR_MAX_LINES && csvfile_next(f, e) == 1) {
        int64_t t_ns = arrival_of(f, fmt, path, at, e);
        uint64_t input = csvfile_u64(f, in, 1, IMPORT_MAX_TOKENS, e);
        uint64_t output = csvfile_u64(f, out, 0, IMPORT_MAX_TOKENS, e);
        uint64_t cached = prefix < 0 ? 0 : csvfile_u64(f, prefix, 0, IMPORT_MAX_TOKENS, e);
        im->lost.prefix_tokens += output > 0 ? cached : 0;
        import_add(im, t_ns, input, output, class_of(f, path, cls, e));
    }
    if (fmt->is_timestamp) {
        times_rebase(&im->b);
    }
    csvfile_close(f);
}

int trace_import_counted(const char *format, const char *path, struct trace *out,
                         struct trace_import_losses *lost, struct err *e)
{
    *out = (struct trace){0};
    size_t before = e->n;
    struct import im = {0};
    const struct format *fmt = NULL;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        fmt = strcmp(formats[i].name, format) == 0 ? &formats[i] : fmt;
    }
    trace_builder_init(&im.b);
    if (fmt != NULL) {
        csv_read(&im, fmt, path, e);
    } else if (strcmp(format, "mooncake") == 0) {
        import_mooncake(&im, path, e);
    } else {
        err_add(e,
                "format \"%s\": known ones are azure, burstgpt, mooncake, plain, splitwise, vidur",
                format);
    }
    int rc = e->n == before ? trace_build(&im.b, true, path, out, e) : -EINVAL;
    trace_builder_fini(&im.b);
    if (lost != NULL) {
        *lost = im.lost;
    }
    return rc;
}

int trace_import(const char *format, const char *path, struct trace *out, struct err *e)
{
    return trace_import_counted(format, path, out, NULL, e);
}

/* The trace file: CSV, first line "# xpusim-trace v1", units in column names. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/api/request.h"
#include "sim/base/csvfile.h"
#include "sim/base/output.h"
#include "sim/base/units.h"
#include "traces/traces.h"

#define VERSION_LINE "# xpusim-trace v1"
#define MAX_TOKENS 100000000u /* a token count beyond this is a mistake */

enum column {
    COL_REQUEST,
    COL_SESSION,
    COL_TURN,
    COL_CLASS,
    COL_ARRIVAL,
    COL_GAP,
    COL_INPUT,
    COL_OUTPUT,
    COL_PREFIX,
    COL_REQUIRED, /* the ones before are required */
    COL_MAX_OUTPUT = COL_REQUIRED,
    COL_CLIENT,
    COL_PRIORITY,
    COL_GAP_KIND,
    COL_PREFIX_GROUP,
    COL_TTFT_SLO,
    COL_TBT_SLO,
    COL_DEADLINE,
    COL_CANCEL,
    COL_UNTIL,
    COL_PARENTS, /* accepted and checked empty: flows are chains of turns */
    COL_COUNT
};

static const char *const names[COL_COUNT] = {
    "request_id", "session_id",   "turn",          "class",         "arrival_s",
    "gap_s",      "input_tokens", "output_tokens", "prefix_tokens", "max_output_tokens",
    "client_id",  "priority",     "gap_kind",      "prefix_group",  "ttft_slo_ms",
    "tbt_slo_ms", "deadline_s",   "cancel_s",      "until_s",       "parent_ids"};

static int columns_find(struct csvfile *f, const char *path, int cols[COL_COUNT], struct err *e)
{
    size_t before = e->n;
    for (int i = 0; i < COL_COUNT; i++) {
        cols[i] = i < COL_REQUIRED ? csvfile_require(f, names[i], e) : csvfile_column(f, names[i]);
    }
    for (int i = 0; i < csvfile_n_columns(f); i++) {
        bool known = false;
        for (int j = 0; j < COL_COUNT; j++) {
            known = known || cols[j] == i;
        }
        if (!known) {
            err_add(e, "%s: unknown column \"%s\"", path, csvfile_column_name(f, i));
        }
    }
    return e->n == before ? 0 : -EINVAL;
}

/* A time in units of 10^digits ns (9: seconds, 6: milliseconds). Plain decimals are read as whole
 * numbers: through a double, instants beyond 104 days (2^53 ns) would not come back as written. */
static int64_t time_ns(struct csvfile *f, int col, int digits, struct err *e)
{
    double unit_ns = digits == 9 ? 1e9 : 1e6;
    double v = csvfile_number(f, col, 0.0, (double)TRACE_LAST_NS / unit_ns, e);
    const char *text = csvfile_text(f, col);
    size_t whole_n = strspn(text, "0123456789");
    size_t frac_n = text[whole_n] == '.' ? strspn(text + whole_n + 1, "0123456789") : 0;
    size_t n = whole_n + (text[whole_n] == '.') + frac_n;
    if (text[n] != '\0' || frac_n > (size_t)digits || !(v > 0.0)) {
        return llround(v * unit_ns); /* exponents, more digits than a nanosecond; refused values */
    }
    int64_t t = (int64_t)strtoull(text, NULL, 10) * (digits == 9 ? NS_PER_S : NS_PER_MS);
    int64_t place = digits == 9 ? NS_PER_S : NS_PER_MS;
    for (size_t i = 0; i < frac_n; i++) {
        place /= 10;
        t += (text[whole_n + 1 + i] - '0') * place;
    }
    return t;
}

static int64_t optional_ns(struct csvfile *f, int col, int digits, struct err *e)
{
    return csvfile_empty(f, col) ? TIME_NEVER_NS : time_ns(f, col, digits, e);
}

static uint32_t u32(struct csvfile *f, int col, uint64_t min, uint64_t max, struct err *e)
{
    return (uint32_t)csvfile_u64(f, col, min, max, e);
}

static void row_check(struct csvfile *f, const char *path, const int *cols,
                      const struct trace_row *r, struct err *e)
{
    unsigned long long line = csvfile_line(f);
    if (r->prefix_tokens > r->input_tokens) {
        err_add(e, "%s:%llu: column prefix_tokens: larger than input_tokens", path, line);
    }
    if (r->turn == 0 && r->prefix_tokens > 0) {
        err_add(e,
                "%s:%llu: column prefix_tokens: must be 0 for turn 0: nothing of the session is "
                "cached yet",
                path, line);
    }
    if (r->max_output_tokens < r->output_tokens) {
        err_add(e, "%s:%llu: column max_output_tokens: smaller than output_tokens", path, line);
    }
    bool first = r->turn == 0;
    int needed = first ? COL_ARRIVAL : COL_GAP;
    int unused = first ? COL_GAP : COL_ARRIVAL;
    if (csvfile_empty(f, cols[needed])) {
        err_add(e, "%s:%llu: column %s: needed for turn %u", path, line, names[needed], r->turn);
    }
    if (!csvfile_empty(f, cols[unused])) {
        err_add(e, "%s:%llu: column %s: must be empty for turn %u", path, line, names[unused],
                r->turn);
    }
    if (!csvfile_empty(f, cols[COL_PARENTS])) {
        err_add(e, "%s:%llu: column parent_ids: only chains of turns are modelled; leave it empty",
                path, line);
    }
}

static void row_read(struct csvfile *f, const char *path, const int *cols, struct trace_row *r,
                     struct err *e)
{
    *r = (struct trace_row){.next = TRACE_NO_ROW};
    r->request_id = u32(f, cols[COL_REQUEST], 0, UINT32_MAX - 1, e);
    r->session_id = u32(f, cols[COL_SESSION], 0, UINT32_MAX - 1, e);
    r->turn = (uint16_t)u32(f, cols[COL_TURN], 0, UINT16_MAX, e);
    const char *cls = csvfile_text(f, cols[COL_CLASS]);
    if (strcmp(cls, "reactive") == 0) {
        r->cls = REQUEST_CLASS_REACTIVE;
    } else if (strcmp(cls, "proactive") == 0) {
        r->cls = REQUEST_CLASS_PROACTIVE;
    } else {
        err_add(e, "%s:%llu: column class: \"%s\" must be reactive or proactive", path,
                (unsigned long long)csvfile_line(f), cls);
    }
    int when = r->turn == 0 ? COL_ARRIVAL : COL_GAP;
    if (!csvfile_empty(f, cols[when])) {
        r->arrival_ns = time_ns(f, cols[when], 9, e);
    }
    r->input_tokens = u32(f, cols[COL_INPUT], 1, MAX_TOKENS, e);
    r->output_tokens = u32(f, cols[COL_OUTPUT], 1, MAX_TOKENS, e);
    r->prefix_tokens = u32(f, cols[COL_PREFIX], 0, MAX_TOKENS, e);
    r->max_output_tokens = csvfile_empty(f, cols[COL_MAX_OUTPUT])
                               ? trace_default_limit(r->output_tokens)
                               : u32(f, cols[COL_MAX_OUTPUT], 1, 1u << 30, e);
    const char *kind = csvfile_text(f, cols[COL_GAP_KIND]);
    r->after_tool = strcmp(kind, "tool") == 0;
    if (kind[0] != '\0' && !r->after_tool && strcmp(kind, "think") != 0) {
        err_add(e, "%s:%llu: column gap_kind: \"%s\" must be tool or think", path,
                (unsigned long long)csvfile_line(f), kind);
    }
    row_check(f, path, cols, r, e);
}

static void extra_read(struct csvfile *f, const char *path, const int *cols,
                       const struct trace_row *r, struct trace_extra *x, struct err *e)
{
    *x = trace_extra_none();
    x->ttft_slo_ns = optional_ns(f, cols[COL_TTFT_SLO], 6, e);
    x->tbt_slo_ns = optional_ns(f, cols[COL_TBT_SLO], 6, e);
    x->deadline_ns = optional_ns(f, cols[COL_DEADLINE], 9, e);
    x->cancel_ns = optional_ns(f, cols[COL_CANCEL], 9, e);
    x->until_ns = optional_ns(f, cols[COL_UNTIL], 9, e);
    x->client_id = csvfile_empty(f, cols[COL_CLIENT])
                       ? r->session_id
                       : u32(f, cols[COL_CLIENT], 0, UINT32_MAX - 1, e);
    if (!csvfile_empty(f, cols[COL_PREFIX_GROUP])) {
        x->prefix_group = u32(f, cols[COL_PREFIX_GROUP], 0, UINT32_MAX - 1, e);
    }
    if (!csvfile_empty(f, cols[COL_PRIORITY])) {
        double priority = csvfile_number(f, cols[COL_PRIORITY], -1e6, 1e6, e);
        x->priority = (int32_t)priority;
        if (priority != x->priority) {
            err_add(e, "%s:%llu: column priority: \"%s\" must be a whole number", path,
                    (unsigned long long)csvfile_line(f), csvfile_text(f, cols[COL_PRIORITY]));
        }
    }
}

static bool version_is_ours(const char *comment)
{
    size_t n = strlen(VERSION_LINE);
    return strncmp(comment, VERSION_LINE, n) == 0 && (comment[n] == '\0' || comment[n] == ' ');
}

int trace_read(const char *path, struct trace *out, struct err *e)
{
    *out = (struct trace){0};
    size_t before = e->n;
    struct csvfile *f = csvfile_open(path, e);
    if (f == NULL) {
        return -EINVAL;
    }
    const char *comment = csvfile_comment(f);
    if (strstr(comment, "xpusim-trace") != NULL && !version_is_ours(comment)) {
        err_add(e, "%s: \"%s\" is not a version this program reads (%s)", path, comment,
                VERSION_LINE);
    }
    int cols[COL_COUNT];
    struct trace_builder b;
    trace_builder_init(&b);
    if (e->n == before && columns_find(f, path, cols, e) == 0) {
        bool extras = false;
        for (int i = COL_CLIENT; i <= COL_UNTIL; i++) {
            extras = extras || (i != COL_GAP_KIND && cols[i] >= 0);
        }
        while (e->n < ERR_MAX_LINES && csvfile_next(f, e) == 1) {
            struct trace_row r;
            struct trace_extra x;
            row_read(f, path, cols, &r, e);
            extra_read(f, path, cols, &r, &x, e);
            b.line = csvfile_line(f);
            trace_builder_add(&b, &r, extras ? &x : NULL);
        }
    }
    csvfile_close(f);
    int rc = e->n == before ? trace_build(&b, false, path, out, e) : -EINVAL;
    trace_builder_fini(&b);
    return rc;
}

/* A time in units of 10^digits ns, exact, without trailing zeros. */
static void print_time(FILE *out, int64_t t_ns, int digits)
{
    int64_t unit = digits == 9 ? NS_PER_S : NS_PER_MS;
    char text[40];
    int n = snprintf(text, sizeof text, "%lld.%0*lld", (long long)(t_ns / unit), digits,
                     (long long)(t_ns % unit));
    while (text[n - 1] == '0') {
        n--;
    }
    n -= text[n - 1] == '.';
    (void)fprintf(out, "%.*s", n, text);
}

static void print_optional(FILE *out, int64_t t_ns, int digits)
{
    (void)fputc(',', out);
    if (t_ns != TIME_NEVER_NS) {
        print_time(out, t_ns, digits);
    }
}

static void print_header(FILE *out, bool tool, bool extras, bool until)
{
    (void)fprintf(out, "%s\n", VERSION_LINE);
    for (int i = 0; i <= COL_MAX_OUTPUT; i++) {
        (void)fprintf(out, "%s%s", i == 0 ? "" : ",", names[i]);
    }
    (void)fputs(tool ? ",gap_kind" : "", out);
    (void)fputs(extras ? ",client_id,priority,prefix_group,ttft_slo_ms,tbt_slo_ms,deadline_s,"
                         "cancel_s"
                       : "",
                out);
    (void)fputs(until ? ",until_s\n" : "\n", out);
}

void trace_print(FILE *out, const struct trace *t)
{
    bool tool = false;
    bool until = false;
    for (size_t i = 0; i < t->n; i++) {
        tool = tool || t->rows[i].after_tool;
        until = until || (t->extras != NULL && t->extras[i].until_ns != TIME_NEVER_NS);
    }
    print_header(out, tool, t->extras != NULL, until);
    for (size_t i = 0; i < t->n; i++) {
        const struct trace_row *r = &t->rows[i];
        (void)fprintf(out, "%u,%u,%u,%s,", r->request_id, r->session_id, r->turn,
                      r->cls == REQUEST_CLASS_REACTIVE ? "reactive" : "proactive");
        if (r->turn > 0) {
            (void)fputc(',', out);
        }
        print_time(out, r->arrival_ns, 9);
        if (r->turn == 0) {
            (void)fputc(',', out);
        }
        (void)fprintf(out, ",%u,%u,%u,%u", r->input_tokens, r->output_tokens, r->prefix_tokens,
                      r->max_output_tokens);
        if (tool) {
            (void)fputs(r->after_tool ? ",tool" : ",think", out);
        }
        if (t->extras != NULL) {
            const struct trace_extra *x = &t->extras[i];
            (void)fprintf(out, ",%u,%d,%u", x->client_id, x->priority, x->prefix_group);
            print_optional(out, x->ttft_slo_ns, 6);
            print_optional(out, x->tbt_slo_ns, 6);
            print_optional(out, x->deadline_ns, 9);
            print_optional(out, x->cancel_ns, 9);
            if (until) {
                print_optional(out, x->until_ns, 9);
            }
        }
        (void)fputc('\n', out);
    }
}

int trace_write(const char *path, const struct trace *t, struct err *e)
{
    struct output *out = output_open(path, e);
    if (out == NULL) {
        return -EINVAL;
    }
    trace_print(output_stream(out), t);
    return output_close(out, true, e);
}

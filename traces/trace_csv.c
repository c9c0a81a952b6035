/* The trace file: CSV, first line "# xpusim-trace v1", units in column names. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "sim/api/request.h"
#include "sim/base/csv_record.h"
#include "sim/base/output.h"
#include "sim/base/units.h"
#include "sim/base/words.h"
#include "traces/traces.h"

#define VERSION_LINE "# xpusim-trace v1"
#define MAX_TOKENS 100000000u /* a token count beyond this is a mistake */
#define PARENTS "parent_ids"  /* a column that is accepted empty: flows are chains of turns */

/* What a line says. */
struct line {
    struct trace_row row;
    struct trace_extra extra;
    int64_t arrival_ns, gap_ns; /* one of them, by the turn */
};

static const char *const gap_kinds[] = {"think", "tool", NULL};

/* Places in the table, and so in the file. */
enum {
    COL_PREFIX = 8,
    COL_MAX_OUTPUT,
    COL_GAP_KIND,
    COL_EXTRAS, /* these from here on */
    COL_UNTIL = 18,
    COL_COUNT
};

#define LAST_S ((double)TRACE_LAST_NS / 1e9)
#define OF(member) CSV_MEMBER(struct line, member)
static const struct csv_field fields[COL_COUNT] = {
    {"request_id", CSV_WHOLE, OF(row.request_id), .max = UINT32_MAX - 1},
    {"session_id", CSV_WHOLE, OF(row.session_id), .max = UINT32_MAX - 1},
    {"turn", CSV_WHOLE, OF(row.turn), .max = UINT16_MAX},
    {"class", CSV_CHOICE, OF(row.cls), .choices = words_classes},
    {"arrival_s", CSV_SECONDS, OF(arrival_ns), .max = LAST_S, .or_empty = true},
    {"gap_s", CSV_SECONDS, OF(gap_ns), .max = LAST_S, .or_empty = true},
    {"input_tokens", CSV_WHOLE, OF(row.input_tokens), .min = 1, .max = MAX_TOKENS},
    {"output_tokens", CSV_WHOLE, OF(row.output_tokens), .min = 1, .max = MAX_TOKENS},
    {"prefix_tokens", CSV_WHOLE, OF(row.prefix_tokens), .max = MAX_TOKENS},
    {"max_output_tokens", CSV_WHOLE, OF(row.max_output_tokens), .min = 1, .max = 1u << 30,
     .or_missing = true},
    {"gap_kind", CSV_CHOICE, OF(row.after_tool), .choices = gap_kinds, .or_missing = true},
    {"client_id", CSV_WHOLE, OF(extra.client_id), .max = UINT32_MAX - 1, .or_missing = true},
    {"priority", CSV_SIGNED, OF(extra.priority), .min = -1e6, .max = 1e6, .or_missing = true},
    {"prefix_group", CSV_WHOLE, OF(extra.prefix_group), .max = UINT32_MAX - 1, .or_missing = true},
    {"ttft_slo_ms", CSV_MS, OF(extra.ttft_slo_ns), .max = 1e3 * LAST_S, .or_missing = true},
    {"tbt_slo_ms", CSV_MS, OF(extra.tbt_slo_ns), .max = 1e3 * LAST_S, .or_missing = true},
    {"deadline_s", CSV_SECONDS, OF(extra.deadline_ns), .max = LAST_S, .or_missing = true},
    {"cancel_s", CSV_SECONDS, OF(extra.cancel_ns), .max = LAST_S, .or_missing = true},
    {"until_s", CSV_SECONDS, OF(extra.until_ns), .max = LAST_S, .or_missing = true},
};

static int columns_find(struct csvfile *f, const char *path, struct csv_record *record,
                        struct err *e)
{
    size_t before = e->n;
    (void)csv_record_init(record, f, fields, COL_COUNT, e);
    for (int i = 0; i < csvfile_n_columns(f); i++) {
        bool known = strcmp(csvfile_column_name(f, i), PARENTS) == 0;
        for (int j = 0; j < COL_COUNT; j++) {
            known = known || record->columns[j] == i;
        }
        /* A misspelt optional column would otherwise be read as absent, without a word. */
        if (!known) {
            err_add(e, "%s: unknown column \"%s\"", path, csvfile_column_name(f, i));
        }
    }
    return e->n == before ? 0 : -EINVAL;
}

/* What no single cell shows. */
static void line_check(const struct csv_record *record, const struct line *l, struct err *e)
{
    struct csvfile *f = record->f;
    const struct trace_row *r = &l->row;
    int prefix = record->columns[COL_PREFIX];
    if (r->prefix_tokens > r->input_tokens) {
        csvfile_refuse(f, prefix, e, "larger than input_tokens");
    }
    if (r->turn == 0 && r->prefix_tokens > 0) {
        csvfile_refuse(f, prefix, e, "must be 0 for turn 0: nothing of the session is cached yet");
    }
    if (r->max_output_tokens < r->output_tokens) {
        csvfile_refuse(f, record->columns[COL_MAX_OUTPUT], e, "smaller than output_tokens");
    }
    int arrival = csvfile_column(f, "arrival_s");
    int gap = csvfile_column(f, "gap_s");
    int needed = r->turn == 0 ? arrival : gap;
    int unused = r->turn == 0 ? gap : arrival;
    if (csvfile_empty(f, needed)) {
        csvfile_refuse(f, needed, e, "needed for turn %u", r->turn);
    }
    if (!csvfile_empty(f, unused)) {
        csvfile_refuse(f, unused, e, "must be empty for turn %u", r->turn);
    }
    int parents = csvfile_column(f, PARENTS);
    if (!csvfile_empty(f, parents)) {
        csvfile_refuse(f, parents, e, "only chains of turns are modelled; leave it empty");
    }
}

static void line_read(const struct csv_record *record, struct line *l, struct err *e)
{
    *l = (struct line){.row = {.next = TRACE_NO_ROW}, .extra = trace_extra_none()};
    l->extra.client_id = UINT32_MAX;
    csv_record_take(record, l, e);
    l->row.arrival_ns = l->row.turn == 0 ? l->arrival_ns : l->gap_ns;
    if (l->row.max_output_tokens == 0) {
        l->row.max_output_tokens = trace_default_limit(l->row.output_tokens);
    }
    /* Nobody named: each session is a client of its own. */
    if (l->extra.client_id == UINT32_MAX) {
        l->extra.client_id = l->row.session_id;
    }
    line_check(record, l, e);
}

static bool version_is_ours(const char *comment)
{
    size_t n = strlen(VERSION_LINE);
    return strncmp(comment, VERSION_LINE, n) == 0 && (comment[n] == '\0' || comment[n] == ' ');
}

/* Reports why a file has no header of a trace: one line where it is another tool's format. */
static int refuse_header(const char *path, bool foreign, struct err *why, struct err *e)
{
    const char *format = foreign ? trace_format_of(path) : NULL;
    if (format != NULL) {
        (void)err_add(e,
                      "%s: is no xpusim trace; it begins as the format \"%s\" does. To import it: "
                      "xpusim trace import %s -o trace.csv",
                      path, format, path);
    }
    for (size_t i = 0; format == NULL && i < why->n && i < ERR_MAX_LINES; i++) {
        (void)err_add(e, "%s", why->lines[i]);
    }
    err_fini(why);
    return -EINVAL;
}

int trace_read(const char *path, struct trace *out, struct err *e)
{
    *out = (struct trace){0};
    size_t before = e->n;
    struct err why = ERR_INIT;
    struct csvfile *f = csvfile_open(path, &why);
    if (f == NULL) {
        return refuse_header(path, true, &why, e);
    }
    const char *comment = csvfile_comment(f);
    if (strstr(comment, "xpusim-trace") != NULL && !version_is_ours(comment)) {
        err_add(&why, "%s: \"%s\" is not a version this program reads (%s)", path, comment,
                VERSION_LINE);
    }
    struct csv_record record = {.columns = {0}};
    struct trace_builder b;
    trace_builder_init(&b);
    if (why.n > 0 || columns_find(f, path, &record, &why) != 0) {
        (void)refuse_header(path, record.columns[0] < 0, &why, e);
    } else {
        bool extras = false;
        for (int i = COL_EXTRAS; i < COL_COUNT; i++) {
            extras = extras || record.columns[i] >= 0;
        }
        while (e->n < ERR_MAX_LINES && csvfile_next(f, e) == 1) {
            struct line l;
            line_read(&record, &l, e);
            b.line = csvfile_line(f);
            trace_builder_add(&b, &l.row, extras ? &l.extra : NULL);
        }
    }
    csvfile_close(f);
    int rc = e->n == before ? trace_build(&b, false, path, out, e) : -EINVAL;
    trace_builder_fini(&b);
    return rc;
}

/* The columns' names, or a line of them: those that the trace has. */
static void print_line(FILE *out, const struct line *l, bool tool, bool extras, bool until)
{
    const struct {
        bool there;
        size_t from, to;
    } parts[] = {{true, 0, COL_GAP_KIND},
                 {tool, COL_GAP_KIND, COL_EXTRAS},
                 {extras, COL_EXTRAS, COL_UNTIL},
                 {until, COL_UNTIL, COL_COUNT}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].there) {
            const struct csv_field *first = &fields[parts[i].from];
            size_t n = parts[i].to - parts[i].from;
            (void)fputs(i > 0 ? "," : "", out);
            if (l != NULL) {
                csv_record_write(out, first, n, l);
            } else {
                csv_record_write_head(out, first, n);
            }
        }
    }
    (void)fputc('\n', out);
}

void trace_print(FILE *out, const struct trace *t)
{
    bool tool = false;
    bool until = false;
    for (size_t i = 0; i < t->n; i++) {
        tool = tool || t->rows[i].after_tool;
        until = until || (t->extras != NULL && t->extras[i].until_ns != TIME_NEVER_NS);
    }
    (void)fprintf(out, "%s\n", VERSION_LINE);
    print_line(out, NULL, tool, t->extras != NULL, until);
    for (size_t i = 0; i < t->n; i++) {
        struct line l = {.row = t->rows[i], .arrival_ns = TIME_NEVER_NS, .gap_ns = TIME_NEVER_NS};
        *(l.row.turn == 0 ? &l.arrival_ns : &l.gap_ns) = l.row.arrival_ns;
        l.extra = t->extras != NULL ? t->extras[i] : l.extra;
        print_line(out, &l, tool, t->extras != NULL, until);
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

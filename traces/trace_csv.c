/* The trace file: CSV with units in column names. First line "# xpusim-trace v1" (chains of turns)
 * or "v2" (request graphs). */
#include <ctype.h>
#include <unistd.h>

#include "sim/api/request.h"
#include "sim/base/csv_record.h"
#include "sim/base/output.h"
#include "sim/base/words.h"
#include "traces/traces.h"

#define VERSION_LINE "# xpusim-trace v1"
#define GRAPH_VERSION_LINE "# xpusim-trace v2"
#define MACHINE " machine="   /* in the same line: list of machine events, as JSON */
#define MAX_TOKENS 100000000u /* more is a mistake */
#define PARENTS "parent_ids"  /* v2 only, "3;7+2.5"; in v1 it must be empty */
#define MODEL "model"         /* v2 only, a name */

struct line {
    struct trace_row row;
    struct trace_extra extra;
    int64_t arrival_ns, gap_ns; /* depends on the turn */
    struct trace_node node;     /* v2 only */
};

static const char *const gap_kinds[] = {"think", "tool", NULL};

/* Indices in `fields`, in the order of the file. */
enum {
    COL_REQUEST,
    COL_SESSION,
    COL_TURN,
    COL_PREFIX = 8,
    COL_MAX_OUTPUT,
    COL_GAP_KIND,
    COL_EXTRAS, /* columns of trace_extra from here on */
    COL_UNTIL = 18,
    COL_GRAPH, /* v2 only from here on, as PARENTS and MODEL */
    COL_BACKGROUND = COL_GRAPH,
    COL_STARTS_JOB,
    COL_ENDS_WITH,
    COL_PREFIX_OF,
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
    {"background", CSV_WHOLE, OF(node.background), .max = 1, .or_missing = true},
    {"starts_job", CSV_WHOLE, OF(node.starts_job), .max = 1, .or_missing = true},
    {"ends_with", CSV_WHOLE, OF(node.ends_with), .max = UINT32_MAX - 1, .or_missing = true},
    {"prefix_of", CSV_WHOLE, OF(node.prefix_of), .max = UINT32_MAX - 1, .or_missing = true},
};

static int columns_find(struct csvfile *f, const char *path, struct csv_record *record,
                        struct err *e)
{
    size_t before = e->n;
    (void)csv_record_init(record, f, fields, COL_COUNT, e);
    for (int i = 0; i < csvfile_n_columns(f); i++) {
        bool known = strcmp(csvfile_column_name(f, i), PARENTS) == 0 ||
                     strcmp(csvfile_column_name(f, i), MODEL) == 0;
        for (int j = 0; j < COL_COUNT; j++) {
            known = known || record->columns[j] == i;
        }
        /* A misspelt optional column must not silently count as absent. */
        if (!known) {
            err_add(e, "%s: unknown column \"%s\"", path, csvfile_column_name(f, i));
        }
    }
    return e->n == before ? 0 : -EINVAL;
}

/* Parses "3;7+2.5": ids, each with an optional gap in seconds. False if malformed. */
static bool parents_read(const char *text, struct trace_node *node)
{
    while (*text != '\0') {
        char *end = NULL;
        unsigned long long id = isdigit((unsigned char)*text) ? strtoull(text, &end, 10) : 0;
        if (end == NULL || id >= UINT32_MAX) {
            return false;
        }
        struct trace_parent p = {(uint32_t)id, 0};
        if (*end == '+') {
            const char *gap = end + 1;
            double gap_s = isdigit((unsigned char)*gap) ? strtod(gap, &end) : -1.0;
            if (!(gap_s >= 0.0 && gap_s <= LAST_S)) {
                return false;
            }
            p.gap_ns = units_ns_from_s(gap_s);
        }
        LIST_ADD(node->parents, node->n_parents, p);
        if (*end == ';' && end[1] != '\0') {
            end++;
        } else if (*end != '\0') {
            return false;
        }
        text = end;
    }
    return true;
}

/* Checks cells against each other. Each was checked before. */
static void line_check(const struct csv_record *record, const struct line *l, bool graph,
                       struct err *e)
{
    struct csvfile *f = record->f;
    const struct trace_row *r = &l->row;
    int prefix = record->columns[COL_PREFIX];
    if (r->prefix_tokens > r->input_tokens) {
        csvfile_refuse(f, prefix, e, "larger than input_tokens");
    }
    bool named = graph && (l->node.prefix_of != UINT32_MAX || l->extra.prefix_group > 0);
    if (r->turn == 0 && r->prefix_tokens > 0 && !named) {
        csvfile_refuse(f, prefix, e, "must be 0 for turn 0: nothing of the session is cached yet%s",
                       graph ? ", and neither prefix_of nor prefix_group names another text" : "");
    }
    if (r->max_output_tokens < r->output_tokens) {
        csvfile_refuse(f, record->columns[COL_MAX_OUTPUT], e, "smaller than output_tokens");
    }
    int parents = csvfile_column(f, PARENTS);
    if (!graph && !csvfile_empty(f, parents)) {
        csvfile_refuse(f, parents, e,
                       "request graphs need \"" GRAPH_VERSION_LINE "\" as the first line");
    }
    bool later = r->turn > 0 || l->node.n_parents > 0;
    int arrival = csvfile_column(f, "arrival_s");
    int gap = csvfile_column(f, "gap_s");
    int needed = later ? gap : arrival;
    int unused = later ? arrival : gap;
    const char *why = r->turn == 0 && later ? " after others" : "";
    if (csvfile_empty(f, needed)) {
        csvfile_refuse(f, needed, e, "needed for turn %u%s", r->turn, why);
    }
    if (!csvfile_empty(f, unused)) {
        csvfile_refuse(f, unused, e, "must be empty for turn %u%s", r->turn, why);
    }
}

/* Reads a line. The caller frees l->node.parents. */
static void line_read(const struct csv_record *record, bool graph, struct line *l, struct err *e)
{
    *l = (struct line){
        .row = {.next = TRACE_NO_ROW}, .extra = trace_extra_none(), .node = trace_node_none()};
    l->extra.client_id = UINT32_MAX;
    csv_record_take(record, l, e);
    int parents = csvfile_column(record->f, PARENTS);
    if (graph && !parents_read(csvfile_text(record->f, parents), &l->node)) {
        csvfile_refuse(record->f, parents, e, "must be request ids with gaps, as in 3;7+2.5");
    }
    bool later = l->row.turn > 0 || l->node.n_parents > 0;
    l->row.arrival_ns = later ? l->gap_ns : l->arrival_ns;
    if (l->row.max_output_tokens == 0) {
        l->row.max_output_tokens = trace_default_limit(l->row.output_tokens);
    }
    /* Without the column, each session is a client. */
    if (l->extra.client_id == UINT32_MAX) {
        l->extra.client_id = l->row.session_id;
    }
    line_check(record, l, graph, e);
}

/* The model in a line's cell; 0 without one. */
static uint32_t model_read(struct csvfile *f, int col, const char *path, struct trace_builder *b,
                           struct err *e)
{
    if (csvfile_empty(f, col)) {
        return 0;
    }
    uint32_t model = trace_builder_model(b, csvfile_text(f, col), path, csvfile_line(f), NULL);
    if (model == 0) {
        csvfile_refuse(f, col, e, "must be a name of letters, digits and \"._-\"");
    }
    return model;
}

static bool version_is(const char *comment, const char *line)
{
    size_t n = strlen(line);
    return strncmp(comment, line, n) == 0 && (comment[n] == '\0' || comment[n] == ' ');
}

/* Reports why a file is no trace, in one line if it is another tool's format or a user's own
 * log. */
static int refuse_header(const char *path, bool foreign, struct err *why, struct err *e)
{
    const char *format = foreign ? trace_format_of(path) : NULL;
    bool own = format == NULL && foreign && why->n > 1;
    if (format != NULL) {
        (void)err_add(e,
                      "%s: is no xpusim trace; it begins as the format \"%s\" does. To import it: "
                      "xpusim trace import %s -o trace.csv",
                      path, format, path);
    }
    for (size_t i = 0; format == NULL && !own && i < why->n && i < ERR_MAX_LINES; i++) {
        (void)err_add(e, "%s", why->lines[i]);
    }
    if (own) {
        (void)err_add(e,
                      "%s: is no xpusim trace. `xpusim trace import` makes one of a log with "
                      "columns arrival_s, input_tokens and output_tokens (traces/README.md)",
                      path);
    }
    err_fini(why);
    return -EINVAL;
}

int trace_read(const char *path, struct trace *out, struct err *e)
{
    *out = (struct trace){0};
    size_t before = e->n;
    struct err why = ERR_INIT;
    SCOPED(csvfile_drop) struct csvfile *f = csvfile_open(path, &why);
    if (f == NULL) {
        return refuse_header(path, true, &why, e);
    }
    const char *comment = csvfile_comment(f);
    bool graph = version_is(comment, GRAPH_VERSION_LINE);
    if (strstr(comment, "xpusim-trace") != NULL && !graph && !version_is(comment, VERSION_LINE)) {
        err_add(&why, "%s: \"%s\" is not a version this program reads (%s, v2)", path, comment,
                VERSION_LINE);
    }
    struct csv_record record = {.columns = {0}};
    SCOPED(trace_builder_fini) struct trace_builder b;
    trace_builder_init(&b);
    if (why.n > 0 || columns_find(f, path, &record, &why) != 0) {
        const int *at = record.columns;
        bool foreign = at[COL_REQUEST] < 0 || (at[COL_SESSION] < 0 && at[COL_TURN] < 0);
        (void)refuse_header(path, foreign, &why, e);
    } else {
        bool extras = false;
        for (int i = COL_EXTRAS; i < COL_GRAPH; i++) {
            extras = extras || record.columns[i] >= 0;
        }
        for (int i = COL_GRAPH; i < COL_COUNT && !graph; i++) {
            if (record.columns[i] >= 0) {
                (void)err_add(e, "%s: column %s needs \"" GRAPH_VERSION_LINE "\" as the first line",
                              path, fields[i].column);
            }
        }
        int model = csvfile_column(f, MODEL);
        if (model >= 0 && !graph) {
            (void)err_add(
                e, "%s: column " MODEL " needs \"" GRAPH_VERSION_LINE "\" as the first line", path);
        }
        while (e->n < ERR_MAX_LINES && csvfile_next(f, e) == 1) {
            struct line l;
            line_read(&record, graph, &l, e);
            l.node.model = graph ? model_read(f, model, path, &b, e) : 0;
            b.line = csvfile_line(f);
            trace_builder_add(&b, &l.row, extras ? &l.extra : NULL);
            if (graph) {
                trace_builder_node(&b, &l.node);
            }
            free(l.node.parents);
        }
    }
    const char *machine = strstr(csvfile_comment(f), MACHINE);
    int rc = e->n == before ? trace_build(&b, false, path, out, e) : -EINVAL;
    if (rc == 0 && machine != NULL) {
        rc = machine_events_of_text(machine + strlen(MACHINE), path, out, e);
    }
    return rc;
}

static void print_parents(FILE *out, const struct trace_node *node)
{
    for (uint32_t i = 0; i < node->n_parents; i++) {
        (void)fprintf(out, "%s%" PRIu32, i > 0 ? ";" : "", node->parents[i].request_id);
        if (node->parents[i].gap_ns > 0) {
            (void)fprintf(out, "+%.9f", units_s_from_ns(node->parents[i].gap_ns));
        }
    }
}

/* Writes an id; empty if there is none. */
static void print_request(FILE *out, uint32_t id)
{
    if (id != UINT32_MAX) {
        (void)fprintf(out, "%" PRIu32, id);
    }
}

/* Which optional columns a trace has. */
struct parts {
    bool tool, extras, until, graph, starts, content;
    const struct trace_model *models; /* NULL: no column */
};

/* Writes the column names (l NULL), or a line. */
static void print_line(FILE *out, const struct line *l, struct parts has)
{
    const struct {
        bool there;
        size_t from, to;
    } parts[] = {{true, 0, COL_GAP_KIND},
                 {has.tool, COL_GAP_KIND, COL_EXTRAS},
                 {has.extras, COL_EXTRAS, COL_UNTIL},
                 {has.until, COL_UNTIL, COL_GRAPH},
                 {has.graph, COL_GRAPH, COL_STARTS_JOB},
                 {has.starts, COL_STARTS_JOB, COL_ENDS_WITH}};
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
    if (has.graph && l == NULL) {
        (void)fprintf(out, ",ends_with,%s" PARENTS "%s", has.content ? "prefix_of," : "",
                      has.models != NULL ? "," MODEL : "");
    } else if (has.graph) {
        (void)fputc(',', out);
        print_request(out, l->node.ends_with);
        (void)fputc(',', out);
        if (has.content) {
            print_request(out, l->node.prefix_of);
            (void)fputc(',', out);
        }
        print_parents(out, &l->node);
        if (has.models != NULL) {
            (void)fprintf(out, ",%s", l->node.model > 0 ? has.models[l->node.model - 1].name : "");
        }
    }
    (void)fputc('\n', out);
}

void trace_print(FILE *out, const struct trace *t)
{
    bool graph = t->graph != NULL;
    struct parts has = {.extras = t->extras != NULL,
                        .graph = graph,
                        .content = graph && t->graph->source != NULL,
                        .models = graph && t->graph->model != NULL ? t->graph->models : NULL};
    for (size_t i = 0; i < t->n; i++) {
        has.tool = has.tool || t->rows[i].after_tool;
        has.until = has.until || (t->extras != NULL && t->extras[i].until_ns != TIME_NEVER_NS);
        has.starts = has.starts || (graph && t->graph->starts_job[i]);
    }
    OWNED struct trace_node *nodes = graph ? trace_graph_nodes(t) : NULL;
    (void)fputs(graph ? GRAPH_VERSION_LINE : VERSION_LINE, out);
    if (t->n_machine > 0) {
        OWNED char *events = machine_events_text(t);
        (void)fprintf(out, MACHINE "%s", events);
    }
    (void)fputc('\n', out);
    print_line(out, NULL, has);
    for (size_t i = 0; i < t->n; i++) {
        struct line l = {.row = t->rows[i], .arrival_ns = TIME_NEVER_NS, .gap_ns = TIME_NEVER_NS};
        *(i < t->n_first ? &l.arrival_ns : &l.gap_ns) = l.row.arrival_ns;
        l.extra = t->extras != NULL ? t->extras[i] : l.extra;
        l.node = graph ? nodes[i] : l.node;
        print_line(out, &l, has);
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

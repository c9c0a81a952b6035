/* The gate for reviewers, as Markdown and as a page: changes with unit and direction, commands that
 * show the reason, and how to accept them. */
#include "experiments/gate/gate.h"
#include "experiments/run/plugin.h"
#include "experiments/shell/cli.h"
#include "experiments/shell/markup.h"
#include "sim/base/datadir.h"
#include "sim/base/input.h"
#include "sim/base/memory.h"

#define MAX_CSS_BYTES ((size_t)1 << 20)

static bool is_shown(const struct gate_row *row)
{
    return row->verdict != GATE_OK && !row->quiet;
}

/* "reactive time to first token, P90 (s), lower is better". The caller frees it. */
static const char *metric_text(const struct gate_row *row)
{
    static const char *const directions[] = {
        [METRIC_BETTER_LOWER] = ", lower is better",
        [METRIC_BETTER_HIGHER] = ", higher is better",
        [METRIC_BETTER_NEITHER] = "",
    };
    if (strcmp(row->metric, "status") == 0) {
        return "run status";
    }
    if (strcmp(row->metric, GATE_PARAMETERS) == 0) {
        return "values of the policy's parameters";
    }
    return xkeep(xformat("%s%s", metric_title(row->metric), directions[row->better]));
}

/* In the unit of the metric's title. */
static const char *number_text(const struct gate_row *row, double v)
{
    return isnan(v) ? "-" : xkeep(xformat("%.6g", metric_scale(row->metric) * v));
}

static void put_option(FILE *out, const char *name, const char *value)
{
    if (value != NULL) {
        OWNED char *word = xmalloc(4 * strlen(value) + 3);
        (void)fprintf(out, " --%s %s", name, cli_word(value, true, word));
    }
}

static const char *first_text(const struct gate_first *f)
{
    return plugin_path_length(f->row->policy) > 0 ? "OLD is the policy's file before the change"
                                                  : gate_first_text(f);
}

/* "xpusim diff ..." of a policy in its group. A user's policy changed in its own file, so both
 * sides use the present program. The caller frees it. */
static char *diff_command(const struct gate_review *v, const struct gate_first *f)
{
    const struct gate_row *row = f->row;
    size_t own = plugin_path_length(row->policy);
    OWNED char *old = xformat("OLD%s", row->policy + own);
    char *text = NULL;
    size_t size = 0;
    FILE *out = memory_stream(&text, &size);
    (void)fputs("xpusim diff", out);
    put_option(out, "policy", own > 0 ? old : row->policy);
    put_option(out, "b-policy", own > 0 ? row->policy : NULL);
    for (uint32_t i = 0; i < v->baseline->n_groups; i++) {
        const struct gate_group *g = &v->baseline->groups[i];
        if (strcmp(g->name, row->group) != 0) {
            continue;
        }
        put_option(out, "soc", g->soc);
        put_option(out, "llm", g->llm);
        put_option(out, "workload", g->workload);
        put_option(out, "trace", g->trace);
        for (uint32_t k = 0; k < g->n_sets; k++) {
            put_option(out, "set", g->sets[k]);
        }
        (void)fprintf(out, " --seed %" PRIu64, f->differs ? f->seed : g->seed);
    }
    put_option(out, "against", own > 0 ? NULL : v->old != NULL ? v->old : "OLD/build/xpusim");
    memory_stream_close(out, &text);
    return text;
}

/* ---- Markdown ---- */

static void put_firsts(const struct gate_review *v, struct document *d)
{
    document_note(d, "\nThe first decision that is now another, of the policies that changed:");
    for (uint32_t i = 0; i < v->firsts->n; i++) {
        const struct gate_first *f = &v->firsts->v[i];
        const char *text = first_text(f);
        OWNED char *command = diff_command(v, f);
        document_note(d, "\n- %s, %s%s%s\n\n      %s", f->row->group, f->row->policy,
                      text != NULL ? ": " : "", text != NULL ? text : "", command);
    }
}

void gate_review(const struct gate_review *v, struct document *d)
{
    static const struct frame_column columns[] = {
        {.name = "verdict", .kind = FRAME_TEXT},  {.name = "group", .kind = FRAME_TEXT},
        {.name = "policy", .kind = FRAME_TEXT},   {.name = "metric", .kind = FRAME_TEXT},
        {.name = "baseline", .kind = FRAME_TEXT}, {.name = "measured", .kind = FRAME_TEXT},
        {.name = "change", .kind = FRAME_TEXT},   {.name = "what happened", .kind = FRAME_TEXT}};
    document_note(d, "### xpusim gate: %s\n", gate_counts(v->report));
    struct frame *f = DOCUMENT_FRAME(d, "rows", 0, columns);
    for (int alarm = 1; alarm >= 0; alarm--) {
        for (uint32_t i = 0; i < v->report->n; i++) {
            const struct gate_row *row = &v->report->rows[i];
            if (!is_shown(row) || row->alarm != (alarm == 1)) {
                continue;
            }
            const char *verdict = gate_verdict_names[row->verdict];
            const char *t[] = {metric_text(row), number_text(row, row->before),
                               number_text(row, row->after), gate_change_text(row)};
            FRAME_ROW(f, row->alarm ? document_format("**%s**", verdict) : verdict, row->group,
                      row->policy, document_format("`%s`: %s", row->metric, t[0]), t[1], t[2], t[3],
                      gate_detail(v->report, row));
        }
    }
    if (frame_rows(f) == 0) {
        document_note(d, "No row shows a change.");
        return;
    }
    put_firsts(v, d);
    document_note(d,
                  "\nTo accept these values, record and commit them:\n\n    xpusim gate "
                  "--baseline %s --update",
                  v->path);
}

/* ---- a page ---- */

static void put_page_firsts(const struct gate_review *v, FILE *out)
{
    for (uint32_t i = 0; i < v->firsts->n; i++) {
        const struct gate_first *f = &v->firsts->v[i];
        const char *text = first_text(f);
        OWNED char *command = diff_command(v, f);
        markup_format(out, "<h3>%s, %s</h3>\n", f->row->group, f->row->policy);
        if (text != NULL) {
            markup_format(out, "<p>%s.</p>\n", text);
        }
        markup_format(out, "<pre>%s</pre>\n", command);
    }
}

static void put_page_rows(const struct gate_review *v, FILE *out)
{
    (void)fputs("<div class=wide><table><thead><tr><th>verdict<th>group<th>policy<th>metric<th>"
                "baseline<th>measured<th>change<th>what happened</thead><tbody>\n",
                out);
    for (int alarm = 1; alarm >= 0; alarm--) {
        for (uint32_t i = 0; i < v->report->n; i++) {
            const struct gate_row *row = &v->report->rows[i];
            if (!is_shown(row) || row->alarm != (alarm == 1)) {
                continue;
            }
            const char *t[] = {metric_text(row), number_text(row, row->before),
                               number_text(row, row->after), gate_change_text(row)};
            markup_format(out, row->alarm ? "<tr><td class=overloaded>%s" : "<tr><td>%s",
                          gate_verdict_names[row->verdict]);
            markup_format(out, "<td>%s<td>%s<td>%s<br><small>%s</small>", row->group, row->policy,
                          row->metric, t[0]);
            markup_format(out, "<td>%s<td>%s<td>%s<td>%s\n", t[1], t[2], t[3],
                          gate_detail(v->report, row));
        }
    }
    (void)fputs("</tbody></table></div>\n", out);
}

int gate_review_page(const struct gate_review *v, FILE *out, struct err *e)
{
    OWNED char *css = input_text(datadir_path("plots/page.css"), MAX_CSS_BYTES, e);
    if (css == NULL) {
        return -EINVAL;
    }
    (void)fprintf(out,
                  "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<meta name=viewport "
                  "content=\"width=device-width, initial-scale=1\">\n<meta "
                  "http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src "
                  "'unsafe-inline'\">\n<title>xpusim gate</title>\n<style>\n%s</style>\n<h1>xpusim "
                  "gate</h1>\n",
                  css);
    markup_format(out, "<p class=headline>%s</p>\n", gate_counts(v->report));
    bool any = v->report->counts[GATE_OK] < v->report->n;
    if (any) {
        put_page_rows(v, out);
        (void)fputs("<h2>Which decision changed first</h2>\n<p>For each policy that changed, the "
                    "decision where it is known, and a command that shows it:</p>\n",
                    out);
        put_page_firsts(v, out);
        markup_format(out,
                      "<h2>To accept these values</h2>\n<pre>xpusim gate --baseline %s "
                      "--update</pre>\n<p>Commit the file with the change that caused it.</p>\n",
                      v->path);
    } else {
        (void)fputs("<p>No row shows a change.</p>\n", out);
    }
    (void)fputs("</html>\n", out);
    return 0;
}

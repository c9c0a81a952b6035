/* A gate's report: aligned text, Markdown, JUnit XML, JSON. */
#include <inttypes.h>
#include <math.h>

#include "experiments/gate/gate.h"
#include "experiments/shell/markup.h"
#include "experiments/shell/table.h"

static void put_value(struct table *t, double x)
{
    if (isnan(x)) {
        table_cell(t, "-");
    } else {
        table_cell(t, "%.6g", x);
    }
}

/* "+3.1 %"; as many digits as tell a drift from nothing. */
static const char *change_text(const struct gate_row *row, char *buf, size_t size)
{
    double percent = 100.0 * row->change_frac;
    if (isnan(percent)) {
        (void)snprintf(buf, size, "-");
    } else if (percent == 0.0 || fabs(percent) >= 0.1) {
        (void)snprintf(buf, size, "%+.2f %%", percent);
    } else {
        (void)snprintf(buf, size, "%+.1e %%", percent);
    }
    return buf;
}

static const char *p_text(const struct gate_row *row, char *buf, size_t size)
{
    if (isnan(row->p)) {
        (void)snprintf(buf, size, "-");
    } else {
        (void)snprintf(buf, size, row->p < 1e-4 ? "<0.0001" : "%.4f", row->p);
    }
    return buf;
}

static void print_counts(const struct gate_report *r, FILE *out)
{
    (void)fprintf(out, "%" PRIu32 " rows:", r->n);
    const char *between = " ";
    for (int v = 0; v < GATE_VERDICTS; v++) {
        if (r->counts[v] > 0) {
            (void)fprintf(out, "%s%" PRIu32 " %s", between, r->counts[v], gate_verdict_names[v]);
            between = ", ";
        }
    }
    (void)fprintf(out, "; %s\n", r->alarms > 0 ? "FAILED" : "passed");
}

void gate_print(const struct gate_report *r, bool all, FILE *out)
{
    struct table t;
    table_init(&t, "llllrrrrl");
    static const char *const heads[] = {"",         "group",    "policy", "metric",
                                        "baseline", "measured", "change", "p"};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        table_cell(&t, "%s", heads[i]);
    }
    table_end_row(&t);
    uint32_t shown = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        const struct gate_row *row = &r->rows[i];
        if ((row->verdict == GATE_OK || row->quiet) && !all) {
            continue;
        }
        char buf[48];
        table_cell(&t, "%s", gate_verdict_names[row->verdict]);
        table_cell(&t, "%s", row->group);
        table_cell(&t, "%s", row->policy);
        table_cell(&t, "%s", row->metric);
        put_value(&t, row->before);
        put_value(&t, row->after);
        table_cell(&t, "%s", change_text(row, buf, sizeof buf));
        table_cell(&t, "%s", p_text(row, buf, sizeof buf));
        table_cell(&t, "%s", row->detail);
        shown++;
    }
    if (shown > 0) {
        table_print(&t, out, 0);
        (void)fputc('\n', out);
    }
    table_fini(&t);
    print_counts(r, out);
}

/* A cell of a Markdown table: | would end it. */
static void put_markdown(const char *s, FILE *out)
{
    for (; *s != '\0'; s++) {
        (void)fprintf(out, *s == '|' ? "\\|" : "%c", *s);
    }
}

void gate_print_markdown(const struct gate_report *r, FILE *out)
{
    (void)fputs("### xpusim gate: ", out);
    print_counts(r, out);
    if (r->n == r->counts[GATE_OK]) {
        return;
    }
    (void)fputs("\n| verdict | group | policy | metric | baseline | measured | change | p | |\n"
                "|---|---|---|---|---:|---:|---:|---:|---|\n",
                out);
    for (uint32_t i = 0; i < r->n; i++) {
        const struct gate_row *row = &r->rows[i];
        if (row->verdict == GATE_OK || row->quiet) {
            continue;
        }
        const char *const names[] = {row->group, row->policy, row->metric};
        (void)fprintf(out, row->alarm ? "| **%s** |" : "| %s |", gate_verdict_names[row->verdict]);
        for (size_t k = 0; k < 3; k++) {
            (void)fputc(' ', out);
            put_markdown(names[k], out);
            (void)fputs(" |", out);
        }
        char change[48];
        char p[48];
        (void)fprintf(out, " %.6g | %.6g | %s | %s | ", row->before, row->after,
                      change_text(row, change, sizeof change), p_text(row, p, sizeof p));
        put_markdown(row->detail, out);
        (void)fputs(" |\n", out);
    }
}

void gate_print_junit(const struct gate_report *r, FILE *out)
{
    (void)fprintf(out,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite "
                  "name=\"xpusim gate\" tests=\"%" PRIu32 "\" failures=\"%" PRIu32 "\">\n",
                  r->n, r->alarms);
    for (uint32_t i = 0; i < r->n; i++) {
        const struct gate_row *row = &r->rows[i];
        (void)fputs("    <testcase classname=\"", out);
        markup_put(out, row->group);
        (void)fputs("\" name=\"", out);
        markup_put(out, row->policy);
        (void)fputc(' ', out);
        markup_put(out, row->metric);
        if (row->verdict == GATE_OK) {
            (void)fputs("\"/>\n", out);
            continue;
        }
        char change[48];
        char text[400];
        (void)snprintf(text, sizeof text, "%s: baseline %.6g, measured %.6g, change %s %s",
                       gate_verdict_names[row->verdict], row->before, row->after,
                       change_text(row, change, sizeof change), row->detail);
        (void)fputs(row->alarm ? "\">\n      <failure message=\"" : "\">\n      <system-out>", out);
        markup_put(out, text);
        (void)fprintf(out,
                      row->alarm ? "\"/>\n    </testcase>\n" : "</system-out>\n    </testcase>\n");
    }
    (void)fputs("  </testsuite>\n</testsuites>\n", out);
}

cJSON *gate_to_json(const struct gate_report *r)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddBoolToObject(root, "passed", r->alarms == 0);
    cJSON_AddNumberToObject(root, "alarms", r->alarms);
    cJSON *counts = cJSON_AddObjectToObject(root, "counts");
    for (int v = 0; v < GATE_VERDICTS; v++) {
        cJSON_AddNumberToObject(counts, gate_verdict_names[v], r->counts[v]);
    }
    cJSON *rows = cJSON_AddArrayToObject(root, "rows");
    for (uint32_t i = 0; i < r->n; i++) {
        const struct gate_row *row = &r->rows[i];
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "verdict", gate_verdict_names[row->verdict]);
        cJSON_AddBoolToObject(o, "alarm", row->alarm);
        cJSON_AddStringToObject(o, "group", row->group);
        cJSON_AddStringToObject(o, "policy", row->policy);
        cJSON_AddStringToObject(o, "metric", row->metric);
        cJSON_AddStringToObject(o, "test", row->fresh ? "fresh" : "exact");
        cJSON_AddNumberToObject(o, "baseline", row->before);
        cJSON_AddNumberToObject(o, "measured", row->after);
        cJSON_AddNumberToObject(o, "change_frac", row->change_frac);
        cJSON_AddNumberToObject(o, "p", row->p);
        cJSON_AddStringToObject(o, "detail", row->detail);
        cJSON_AddItemToArray(rows, o);
    }
    return root;
}

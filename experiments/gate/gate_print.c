/* Prints a gate's report as a document. */
#include <gsl/gsl_cdf.h>

#include "experiments/gate/gate.h"

/* Enough digits to distinguish a drift from no change. */
const char *gate_change_text(const struct gate_row *row)
{
    double percent = 100.0 * row->change_frac;
    bool small = percent != 0.0 && fabs(percent) < 0.1;
    return isnan(percent) ? "-" : xkeep(xformat(small ? "%+.2g %%" : "%+.2f %%", percent));
}

static const char *p_text(const struct gate_row *row)
{
    return isnan(row->p) ? "-" : row->p < 1e-4 ? "<0.0001" : document_format("%.4f", row->p);
}

const char *gate_counts(const struct gate_report *r)
{
    const char *text = document_format("%" PRIu32 " row%s:", r->n, text_plural(r->n));
    const char *between = " ";
    for (int v = 0; v < GATE_VERDICTS; v++) {
        if (r->counts[v] > 0) {
            text = document_format("%s%s%" PRIu32 " %s", text, between, r->counts[v],
                                   gate_verdict_names[v]);
            between = ", ";
        }
    }
    return document_format("%s; %s", text,
                           r->refused      ? "not recorded"
                           : r->recorded   ? "recorded"
                           : r->alarms > 0 ? "FAILED"
                                           : "passed");
}

/* The mean of its estimate has just the chance that alarms; Holm asks most of the first of n tests.
 */
const char *gate_detail(const struct gate_report *r, const struct gate_row *row)
{
    if (row->verdict == GATE_ADDED && r->recorded && !r->refused) {
        return "recorded for the first time";
    }
    if (row->verdict != GATE_OK || !(row->se_frac > 0.0) || isnan(row->p_worse)) {
        return row->detail != NULL ? row->detail : "";
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        n += isnan(r->rows[i].p_worse) ? 0 : 1;
    }
    double z = gsl_cdf_ugaussian_Qinv(GATE_ALPHA_FRAC / n);
    double seen = expm1(log1p(row->tolerance_frac) + z * row->se_frac);
    return document_format("a shift of %.2g %% would show half of the time", 100.0 * seen);
}

/* JUnit's message of a row. */
static const char *message_of(const struct gate_report *r, const struct gate_row *row)
{
    return document_format("%s: baseline %.6g, measured %.6g, change %s %s",
                           gate_verdict_names[row->verdict], row->before, row->after,
                           gate_change_text(row), gate_detail(r, row));
}

static bool put_rows(const struct gate_report *r, bool all, struct document *d)
{
    const struct frame_column columns[] = {
        {.name = "verdict", .title = "", .kind = FRAME_TEXT},
        {.name = "alarm", .kind = FRAME_FLAG, .only_data = true, .junit = FRAME_JUNIT_FAILED},
        {.name = "group", .kind = FRAME_TEXT, .junit = FRAME_JUNIT_CLASS},
        {.name = "policy", .kind = FRAME_TEXT, .junit = FRAME_JUNIT_NAME},
        {.name = "metric", .kind = FRAME_TEXT, .junit = FRAME_JUNIT_NAME},
        {.name = "test", .kind = FRAME_TEXT, .only_data = true},
        {.name = "baseline", .format = "%.6g"},
        {.name = "measured", .format = "%.6g"},
        {.name = "change_frac", .title = "change"},
        {.name = "p"},
        {.name = "detail", .title = "", .kind = FRAME_TEXT},
        {.kind = FRAME_TEXT, .only_data = true, .only_text = true, .junit = FRAME_JUNIT_MESSAGE},
    };
    struct frame *f = DOCUMENT_FRAME(d, "rows", 0, columns);
    bool any = false;
    for (uint32_t i = 0; i < r->n; i++) {
        const struct gate_row *row = &r->rows[i];
        const char *verdict = gate_verdict_names[row->verdict];
        FRAME_ROW(f, verdict, row->alarm, row->group, row->policy, row->metric,
                  row->fresh ? "fresh" : "exact", row->before, row->after,
                  frame_shown(row->change_frac, gate_change_text(row)),
                  frame_shown(row->p, p_text(row)), gate_detail(r, row),
                  FRAME_IF(row->verdict != GATE_OK, message_of(r, row)));
        bool shown = all || (row->verdict != GATE_OK && !row->quiet);
        any = any || shown;
        if (!shown) {
            frame_hide_row(f);
        }
    }
    return any;
}

void gate_document(const struct gate_report *r, bool all, struct document *d)
{
    DOCUMENT_VALUES(d, "passed", (bool)(r->alarms == 0), "alarms", r->alarms);
    struct document *counts = document_within(d, "counts");
    for (int v = 0; v < GATE_VERDICTS; v++) {
        DOCUMENT_VALUES(counts, gate_verdict_names[v], r->counts[v]);
    }
    bool any = put_rows(r, all, d);
    uint32_t quiet = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        quiet += r->rows[i].quiet && !all;
    }
    if (quiet > 0) {
        document_note(d,
                      "and %" PRIu32 " row%s of metrics whose status is above (--all prints them)",
                      quiet, text_plural(quiet));
    }
    document_note(d, "%s%s", any ? "\n" : "", gate_counts(r));
}

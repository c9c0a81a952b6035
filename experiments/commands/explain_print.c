#include "experiments/commands/explain_print.h"

void explain_print_whatif(const struct explain_whatif *w, double latency_s, struct document *d)
{
    static const char *const names[] = {"DDR shared at no loss", "alone, same policy",
                                        "alone, no policy below"};
    static const char *const missing[] = {"it does not finish then", "it does not finish then",
                                          "no bound when kernel times are random"};
    const double values[] = {w->uncontended_s, w->alone_s, w->bound_s};
    document_heading(d, "otherwise");
    struct frame *f = document_table(d, 2, "lrl", NULL);
    for (int i = 0; i < (w->of_job ? 2 : 3); i++) {
        bool none = isnan(values[i]);
        FRAME_ROW(f, names[i], none ? NULL : document_format(d, "%.6f s", values[i]),
                  none ? missing[i]
                       : document_format(d, "%+.1f %%", 100.0 * (values[i] / latency_s - 1.0)));
    }
    struct document *data = document_within(d, "otherwise");
    DOCUMENT_VALUES(data, "alone_s", w->alone_s, "uncontended_s", w->uncontended_s);
    if (!w->of_job) {
        DOCUMENT_VALUES(data, "bound_s", w->bound_s);
    }
}

/* Orders causes by time, the longest first; equal ones keep the order of the enum. */
static void sort_causes(const int64_t *ns, int *order)
{
    for (int i = 0; i < EXPLAIN_CAUSE_COUNT; i++) {
        int at = i;
        for (; at > 0 && ns[order[at - 1]] < ns[i]; at--) {
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
}

static void put_causes(const struct explanation *x, double total_ns, struct document *d)
{
    struct frame *f = document_table(d, 2, "lrrl", NULL);
    struct document *causes = document_within(d, "causes_ns");
    int order[EXPLAIN_CAUSE_COUNT];
    sort_causes(x->ns, order);
    for (int k = 0; k < EXPLAIN_CAUSE_COUNT; k++) {
        int i = order[k];
        DOCUMENT_VALUES(causes, explain_cause_names[k], x->ns[k]);
        if (x->ns[i] != 0) {
            FRAME_ROW(f, explain_cause_names[i],
                      document_format(d, "%.6f s", units_s_from_ns(x->ns[i])),
                      document_format(d, "%.1f %%", 100.0 * (double)x->ns[i] / total_ns),
                      explain_cause_texts[i]);
        }
    }
}

/* The five longest for people, all of them as data. */
static void put_blockers(const struct explanation *x, struct document *d)
{
    struct frame *people = NULL;
    if (x->n_blockers > 0) {
        document_heading(d, "who was in the way");
        people = document_table(d, 2, "lrrrr", "", "in all", "in its passes", "before it",
                                "rest of a kernel");
    }
    struct frame *data = document_data(d, "blockers", 0, "request_id tail_ns queue_ns shared_ns");
    for (size_t i = 0; i < x->n_blockers; i++) {
        const struct explain_blocker *b = &x->blockers[i];
        FRAME_ROW(data, b->request_id, b->tail_ns, b->queue_ns, b->shared_ns);
        if (i < 5) {
            const int64_t ns[] = {b->tail_ns + b->queue_ns + b->shared_ns, b->shared_ns,
                                  b->queue_ns, b->tail_ns};
            FRAME_CELLS(people, document_format(d, "request %u", b->request_id));
            for (int k = 0; k < 4; k++) {
                FRAME_CELLS(people, document_format(d, "%.6f s", units_s_from_ns(ns[k])));
            }
        }
    }
}

void explain_print(const struct explanation *x, const struct explain_whatif *w,
                   const char *fingerprint, bool first, struct document *d)
{
    double total = (double)(x->end_ns - x->arrival_ns);
    const char *cls = x->cls == REQUEST_CLASS_REACTIVE ? "reactive" : "proactive";
    DOCUMENT_VALUES(d, "fingerprint", fingerprint, "request_id", x->request_id, "class", cls,
                    "finished", x->finished, "until", first ? "first-token" : "last-token",
                    "latency_ns", total);
    document_note(d, "request %u (%s), %u prompt and %u output tokens: %.6f s from arrival to %s\n",
                  x->request_id, cls, x->input_tokens, x->output_tokens, total / 1e9,
                  !x->finished ? "being dropped"
                  : first      ? "first token"
                               : "last token");
    put_causes(x, total, d);
    put_blockers(x, d);
    explain_print_whatif(w, total / 1e9, d);
}

#include "experiments/report/interference.h"

#include "sim/base/words.h"

_Static_assert(REQUEST_CLASS_REACTIVE == 0 && REQUEST_CLASS_PROACTIVE == 1,
               "index of words_classes");

void interference_collect(const struct explain *x, const struct trace *t, struct interference *out)
{
    *out = (struct interference){0};
    for (size_t i = 0; i < t->n; i++) {
        const struct explanation *v = explain_find(x, t->rows[i].request_id);
        if (v == NULL) {
            continue;
        }
        out->requests[v->cls]++;
        out->latency_ns[v->cls] += v->end_ns - v->arrival_ns;
        for (int c = 0; c < EXPLAIN_CAUSE_COUNT; c++) {
            out->cause_ns[v->cls][c] += v->ns[c];
        }
        for (size_t b = 0; b < v->n_blockers; b++) {
            enum request_class by = v->blockers[b].cls;
            out->tail_ns[v->cls][by] += v->blockers[b].tail_ns;
            out->queue_ns[v->cls][by] += v->blockers[b].queue_ns;
            out->shared_ns[v->cls][by] += v->blockers[b].shared_ns;
        }
    }
}

/* NaN: a class without requests has no mean. */
static double per_request_s(int64_t ns, uint32_t requests)
{
    return requests > 0 ? units_s_from_ns(ns) / requests : (double)NAN;
}

static const char *mean_text(int64_t ns, uint32_t requests)
{
    return requests > 0 ? document_format("%.4f s", per_request_s(ns, requests)) : "-";
}

static void put_data(const struct interference *m, struct document *d)
{
    for (int v = 0; v < 2; v++) {
        struct document *of = document_within(d, words_classes[v]);
        DOCUMENT_VALUES(of, "requests", m->requests[v], "latency_s",
                        units_s_from_ns(m->latency_ns[v]));
        struct document *causes = document_within(of, "causes_s");
        for (int c = 0; c < EXPLAIN_CAUSE_COUNT; c++) {
            DOCUMENT_VALUES(causes, explain_cause_names[c], units_s_from_ns(m->cause_ns[v][c]));
        }
        struct frame *by = document_data(of, "by", 1, "class wait_s tail_s shared_s");
        for (int a = 0; a < 2; a++) {
            FRAME_ROW(by, words_classes[a], units_s_from_ns(m->tail_ns[v][a] + m->queue_ns[v][a]),
                      units_s_from_ns(m->tail_ns[v][a]), units_s_from_ns(m->shared_ns[v][a]));
        }
    }
}

void interference_document(const struct interference *m, struct document *d)
{
    static const struct frame_column causes[] = {
        {.name = "cause", .kind = FRAME_TEXT},
        {.name = "reactive", .format = "%.4f s"},
        {.name = "proactive", .format = "%.4f s"},
        {.name = "", .kind = FRAME_TEXT},
    };
    document_note(d, "mean time of a request, by cause (%u reactive, %u proactive)\n",
                  m->requests[0], m->requests[1]);
    struct frame *f = frame_indent(DOCUMENT_FRAME(d, NULL, 0, causes), 2);
    for (int c = 0; c < EXPLAIN_CAUSE_COUNT; c++) {
        if (m->cause_ns[0][c] + m->cause_ns[1][c] > 0) {
            FRAME_ROW(f, explain_cause_names[c], per_request_s(m->cause_ns[0][c], m->requests[0]),
                      per_request_s(m->cause_ns[1][c], m->requests[1]), explain_cause_texts[c]);
        }
    }
    FRAME_ROW(f, "latency", per_request_s(m->latency_ns[0], m->requests[0]),
              per_request_s(m->latency_ns[1], m->requests[1]), "their sum");
    document_note(d, "\nwho was in the way: mean wait of a victim (of it the rest of a kernel that "
                     "was running)\n");
    f = document_table(d, 2, "lrr", "victim", "behind reactive", "behind proactive");
    for (int v = 0; v < 2; v++) {
        FRAME_CELLS(f, words_classes[v]);
        for (int a = 0; a < 2; a++) {
            int64_t tail = m->tail_ns[v][a];
            FRAME_CELLS(f, document_format("%s (%s)",
                                           mean_text(tail + m->queue_ns[v][a], m->requests[v]),
                                           mean_text(tail, m->requests[v])));
        }
    }
    document_note(d, "\nwho shared the passes: mean time by which they took longer\n");
    f = document_table(d, 2, "lrr", "victim", "for reactive", "for proactive");
    for (int v = 0; v < 2; v++) {
        FRAME_ROW(f, words_classes[v], mean_text(m->shared_ns[v][0], m->requests[v]),
                  mean_text(m->shared_ns[v][1], m->requests[v]));
    }
    put_data(m, document_within(d, "interference"));
}

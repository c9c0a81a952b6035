#include "experiments/report/interference.h"

#include <string.h>

#include "experiments/shell/table.h"
#include "sim/base/units.h"

static const char *const class_names[2] = {"reactive", "proactive"};
_Static_assert(REQUEST_CLASS_REACTIVE == 0 && REQUEST_CLASS_PROACTIVE == 1, "index of class_names");

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
        }
    }
}

static double per_request_s(int64_t ns, uint32_t requests)
{
    return requests > 0 ? units_s_from_ns(ns) / requests : 0.0;
}

void interference_print(const struct interference *m, FILE *out)
{
    (void)fprintf(out, "mean time of a request, by cause (%u reactive, %u proactive)\n\n",
                  m->requests[0], m->requests[1]);
    struct table t;
    table_init(&t, "lrrl");
    table_cell(&t, "cause");
    table_cell(&t, "reactive");
    table_cell(&t, "proactive");
    table_end_row(&t);
    for (int c = 0; c < EXPLAIN_CAUSE_COUNT; c++) {
        if (m->cause_ns[0][c] + m->cause_ns[1][c] > 0) {
            table_cell(&t, "%s", explain_cause_names[c]);
            table_cell(&t, "%.4f s", per_request_s(m->cause_ns[0][c], m->requests[0]));
            table_cell(&t, "%.4f s", per_request_s(m->cause_ns[1][c], m->requests[1]));
            table_cell(&t, "%s", explain_cause_texts[c]);
        }
    }
    table_cell(&t, "latency");
    table_cell(&t, "%.4f s", per_request_s(m->latency_ns[0], m->requests[0]));
    table_cell(&t, "%.4f s", per_request_s(m->latency_ns[1], m->requests[1]));
    table_cell(&t, "their sum");
    table_print(&t, out, 2);
    table_fini(&t);

    (void)fprintf(out,
                  "\nwho was in the way: mean wait of a victim (of it the rest of a kernel that "
                  "was running)\n\n");
    table_init(&t, "lrr");
    table_cell(&t, "victim");
    table_cell(&t, "behind reactive");
    table_cell(&t, "behind proactive");
    for (int v = 0; v < 2; v++) {
        table_cell(&t, "%s", class_names[v]);
        for (int a = 0; a < 2; a++) {
            int64_t tail = m->tail_ns[v][a];
            table_cell(&t, "%.4f s (%.4f s)",
                       per_request_s(tail + m->queue_ns[v][a], m->requests[v]),
                       per_request_s(tail, m->requests[v]));
        }
    }
    table_print(&t, out, 2);
    table_fini(&t);
}

void interference_to_json(const struct interference *m, cJSON *root)
{
    cJSON *all = cJSON_AddObjectToObject(root, "interference");
    for (int v = 0; v < 2; v++) {
        cJSON *row = cJSON_AddObjectToObject(all, class_names[v]);
        cJSON_AddNumberToObject(row, "requests", m->requests[v]);
        cJSON_AddNumberToObject(row, "latency_s", units_s_from_ns(m->latency_ns[v]));
        cJSON *causes = cJSON_AddObjectToObject(row, "causes_s");
        for (int c = 0; c < EXPLAIN_CAUSE_COUNT; c++) {
            cJSON_AddNumberToObject(causes, explain_cause_names[c],
                                    units_s_from_ns(m->cause_ns[v][c]));
        }
        cJSON *by = cJSON_AddObjectToObject(row, "by");
        for (int a = 0; a < 2; a++) {
            cJSON *cell = cJSON_AddObjectToObject(by, class_names[a]);
            cJSON_AddNumberToObject(cell, "wait_s",
                                    units_s_from_ns(m->tail_ns[v][a] + m->queue_ns[v][a]));
            cJSON_AddNumberToObject(cell, "tail_s", units_s_from_ns(m->tail_ns[v][a]));
        }
    }
}

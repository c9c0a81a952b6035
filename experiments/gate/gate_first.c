/* Finds the first changed decision of each changed policy: runs both programs on a replication in
 * which they differ, and compares decisions like `diff`. */
#include "experiments/diff/two_runs.h"
#include "experiments/gate/gate.h"
#include "experiments/run/plugin.h"

/* The first changed row of each policy and group, the alarms first. */
static void list_cells(const struct gate_report *r, struct gate_firsts *out)
{
    for (int alarm = 1; alarm >= 0; alarm--) {
        for (uint32_t i = 0; i < r->n && out->n < GATE_MAX_FIRST; i++) {
            const struct gate_row *row = &r->rows[i];
            bool known = row->verdict == GATE_OK || row->quiet || row->alarm != (alarm == 1) ||
                         strcmp(row->metric, GATE_PARAMETERS) == 0 || /* it is not of a run */
                         row->verdict == GATE_ADDED || row->verdict == GATE_REMOVED;
            for (uint32_t k = 0; k < out->n && !known; k++) {
                known = strcmp(out->v[k].row->group, row->group) == 0 &&
                        strcmp(out->v[k].row->policy, row->policy) == 0;
            }
            if (!known) {
                out->v[out->n++] = (struct gate_first){.row = row};
            }
        }
    }
}

/* Splits "3 8270000000 form ..." into instant and action. */
static void take_line(const char *line, double *at_s, char action[GATE_DECISION_BYTES])
{
    const char *instant = strchr(line, ' ');
    const char *rest = instant != NULL ? strchr(instant + 1, ' ') : NULL;
    *at_s = rest != NULL ? strtod(instant, NULL) * 1e-9 : (double)NAN;
    (void)snprintf(action, GATE_DECISION_BYTES, "%s",
                   rest != NULL ? rest + 1 : "no further decision");
}

/* Compares one replication. True: the programs differ, or one of them fails. */
static bool compare(struct two_runs *runs, struct gate_first *f)
{
    SCOPED(err_fini) struct err e = ERR_INIT;
    SCOPED(trace_fini) struct trace t = {0};
    SCOPED(two_runs_log_fini) struct two_runs_log now = {0};
    SCOPED(two_runs_log_fini) struct two_runs_log old = {0};
    struct divergence d = {.differs = false};
    if (config_trace(&runs->side[0].options, f->seed, CONFIG_AS_WRITTEN, &t, &e) == 0) {
        two_runs_run(runs, 0, &t, NULL, &now);
        two_runs_run(runs, 1, &t, NULL, &old);
    }
    if (now.log != NULL && old.log != NULL) {
        diverge_find(now.log, old.log, &d);
        f->known = true;
    }
    f->differs = d.differs;
    f->decision = d.line;
    take_line(d.a, &f->now_s, f->now);
    take_line(d.b, &f->old_s, f->old);
    (void)snprintf(f->message, sizeof f->message, "%s",
                   e.n > 0               ? e.lines[0]
                   : now.message[0] != 0 ? now.message
                                         : old.message);
    return f->differs || f->message[0] != '\0';
}

static void find(const struct gate_baseline *b, const char *old, const struct study_how *how,
                 struct gate_first *f)
{
    const struct gate_group *g = gate_group_find(b, f->row->group);
    if (g == NULL) {
        return;
    }
    struct two_runs_options o = {.both = {.soc = g->soc,
                                          .llm = g->llm,
                                          .workload = g->workload,
                                          .trace = g->trace,
                                          .n_sets = g->n_sets},
                                 .work = {.how = *how},
                                 .policy = f->row->policy,
                                 .against = old};
    for (uint32_t i = 0; i < g->n_sets; i++) {
        o.both.sets[i] = g->sets[i];
    }
    bool found = false;
    for (uint32_t k = 0; k < g->replications && k < GATE_FIRST_REPLICATIONS && !found; k++) {
        SCOPED(err_fini) struct err e = ERR_INIT;
        struct two_runs *runs = xkept(xcalloc(1, sizeof *runs));
        f->seed = o.both.seed = config_seed(g->seed, k);
        f->replications = k + 1;
        if (two_runs_load(runs, &o, &e) == 0) {
            found = compare(runs, f);
        } else {
            found = true;
            (void)snprintf(f->message, sizeof f->message, "%s", e.lines[0]);
        }
    }
}

void gate_first_find(const struct gate_baseline *b, const struct gate_report *r, const char *old,
                     const struct study_how *how, struct gate_firsts *out)
{
    out->n = 0;
    list_cells(r, out);
    for (uint32_t i = 0; i < out->n && old != NULL; i++) {
        if (plugin_path_length(out->v[i].row->policy) == 0) { /* else both would run one file */
            find(b, old, how, &out->v[i]);
        }
    }
}

/* Describes the first changed decision; NULL: unknown. */
static const char *sentence(const struct gate_first *f)
{
    if (!f->known) {
        return f->message[0] != '\0' ? f->message : NULL;
    }
    if (!f->differs) {
        return document_format("every decision is the same in %u replication%s; only what they "
                               "cost has changed",
                               f->replications, text_plural(f->replications));
    }
    if (strcmp(f->now, f->old) == 0) {
        return document_format("decision %llu comes %s: `%s`, at %.6f s before, at %.6f s now",
                               (unsigned long long)f->decision,
                               f->now_s > f->old_s ? "later" : "sooner", f->now, f->old_s,
                               f->now_s);
    }
    return document_format("decision %llu is another: `%s` at %.6f s before, `%s` at %.6f s now",
                           (unsigned long long)f->decision, f->old, f->old_s, f->now, f->now_s);
}

const char *gate_first_text(const struct gate_first *f)
{
    const char *text = sentence(f);
    return text != NULL && f->differs
               ? document_format("%s (seed %llu)", text, (unsigned long long)f->seed)
               : text;
}

void gate_first_document(const struct gate_firsts *all, struct document *d)
{
    static const struct frame_column columns[] = {
        {.name = "group", .kind = FRAME_TEXT},  {.name = "policy", .kind = FRAME_TEXT},
        {.name = "seed", .kind = FRAME_TEXT},   {.name = "differs", .kind = FRAME_FLAG},
        {.name = "decision", .format = "%.0f"}, {.name = "before_s", .format = "%.9f"},
        {.name = "before", .kind = FRAME_TEXT}, {.name = "now_s", .format = "%.9f"},
        {.name = "now", .kind = FRAME_TEXT},    {.name = "message", .kind = FRAME_TEXT}};
    struct frame *f = DOCUMENT_FRAME(d, "first_decisions", 0, columns);
    for (uint32_t i = 0; i < all->n; i++) {
        const struct gate_first *x = &all->v[i];
        if (x->replications == 0) {
            continue;
        }
        FRAME_ROW(f, x->row->group, x->row->policy,
                  document_format("%llu", (unsigned long long)x->seed), x->differs,
                  (double)x->decision, x->old_s, x->old, x->now_s, x->now, x->message);
        frame_hide_row(f);
        const char *text = gate_first_text(x);
        document_note(d, "%s, %s: %s", x->row->group, x->row->policy, text != NULL ? text : "-");
    }
}

#include "experiments/report/job_path.h"

#include "sim/base/words.h"

#define STEPS_SHOWN 16
#define BLOCKERS_SHOWN 8

static const char *seconds(int64_t ns)
{
    return document_format("%.6f s", units_s_from_ns(ns));
}

/* ---- the steps ---- */

static void put_steps(const struct critical_path *p, const struct trace *t, struct document *d)
{
    document_heading(d, "critical path");
    struct frame *f =
        document_table(d, 2, "rrrrll", "request", "before it", "took", "longest", "cause", "");
    for (size_t i = 0; i < p->n_steps && i < STEPS_SHOWN; i++) {
        const struct critical_request *r = &p->v[p->steps[i]];
        enum critical_gap kind;
        int64_t gap_ns = critical_gap_of(p, t, i, &kind);
        int longest = 0;
        for (int c = 0; c < EXPLAIN_CAUSE_COUNT && r->why != NULL; c++) {
            longest = r->why->ns[c] > r->why->ns[longest] ? c : longest;
        }
        FRAME_ROW(
            f, document_format("%u", t->rows[r->row].request_id),
            gap_ns > 0 ? document_format("%s %s", seconds(gap_ns), critical_gap_names[kind]) : "",
            seconds(r->end_ns - r->arrival_ns), r->why != NULL ? seconds(r->why->ns[longest]) : "",
            r->why != NULL ? explain_cause_names[longest] : "never arrived",
            r->background ? "in the background" : "");
    }
    if (p->n_steps > STEPS_SHOWN) {
        document_note(d, "  and %zu more step%s", p->n_steps - STEPS_SHOWN,
                      text_plural(p->n_steps - STEPS_SHOWN));
    }
}

/* ---- causes ---- */

struct cause {
    const char *name, *text;
    int64_t ns;
};

SORT_BY(longest_first, struct cause, SORT_DOWN(ns))

static void put_causes(const struct critical_path *p, struct document *d)
{
    struct cause v[EXPLAIN_CAUSE_COUNT + CRITICAL_GAPS];
    struct document *causes = document_within(d, "causes_ns");
    struct document *gaps = document_within(d, "gaps_ns");
    for (int i = 0; i < EXPLAIN_CAUSE_COUNT; i++) {
        v[i] = (struct cause){explain_cause_names[i], explain_cause_texts[i], p->ns[i]};
        DOCUMENT_VALUES(causes, v[i].name, v[i].ns);
    }
    for (int i = 0; i < CRITICAL_GAPS; i++) {
        struct cause *c = &v[EXPLAIN_CAUSE_COUNT + i];
        *c = (struct cause){critical_gap_names[i], critical_gap_texts[i], p->gap_ns[i]};
        DOCUMENT_VALUES(gaps, c->name, c->ns);
    }
    const size_t n = sizeof v / sizeof v[0];
    double total_ns = (double)(p->end_ns - p->first_ns);
    qsort(v, n, sizeof v[0], longest_first);
    document_heading(d, "its time, by cause");
    struct frame *f = document_table(d, 2, "lrrl", NULL);
    for (size_t i = 0; i < n && v[i].ns > 0; i++) {
        FRAME_ROW(f, v[i].name, seconds(v[i].ns),
                  document_format("%.1f %%", 100.0 * (double)v[i].ns / total_ns), v[i].text);
    }
}

/* ---- waits ---- */

struct wait {
    uint32_t victim;
    const struct explain_blocker *by;
};

static int64_t wait_ns(const struct wait *w)
{
    return w->by->tail_ns + w->by->queue_ns + w->by->shared_ns;
}

/* Equal waits are in order of victim, then of blocker. */
SORT_BY(longest_wait_first, struct wait, (wait_ns(a) < wait_ns(b)) - (wait_ns(a) > wait_ns(b)),
        SORT_UP(victim), SORT_UP(by->request_id))

static bool of_job(const struct critical_path *p, const struct trace *t, uint32_t request_id)
{
    for (size_t i = 0; i < p->n; i++) {
        if (t->rows[p->v[i].row].request_id == request_id) {
            return true;
        }
    }
    return false;
}

static void put_waits(const struct wait *v, size_t n, const struct critical_path *p,
                      const struct trace *t, struct document *d)
{
    struct frame *data =
        document_data(d, "blockers", 0, "request_id by class of_job tail_ns queue_ns shared_ns");
    struct frame *f = NULL;
    if (n > 0) {
        document_heading(d, "who on it waited for whom");
        f = document_table(d, 2, "rrlrrrr", "request", "waited for", "", "in all", "in its passes",
                           "before it", "rest of a kernel");
    }
    for (size_t i = 0; i < n; i++) {
        const struct explain_blocker *b = v[i].by;
        bool own = of_job(p, t, b->request_id);
        FRAME_ROW(data, v[i].victim, b->request_id, words_classes[b->cls], own, b->tail_ns,
                  b->queue_ns, b->shared_ns);
        if (i < BLOCKERS_SHOWN) {
            FRAME_ROW(f, document_format("%u", v[i].victim), document_format("%u", b->request_id),
                      own ? "of this job" : words_classes[b->cls], seconds(wait_ns(&v[i])),
                      seconds(b->shared_ns), seconds(b->queue_ns), seconds(b->tail_ns));
        }
    }
}

static void put_blockers(const struct critical_path *p, const struct trace *t, struct document *d)
{
    OWNED struct wait *v = NULL;
    size_t n = 0;
    int64_t own_ns = 0;
    for (size_t i = 0; i < p->n_steps; i++) {
        const struct explanation *why = p->v[p->steps[i]].why;
        for (size_t b = 0; why != NULL && b < why->n_blockers; b++) {
            LIST_ADD(v, n, (struct wait){why->request_id, &why->blockers[b]});
            own_ns += of_job(p, t, why->blockers[b].request_id) ? wait_ns(&v[n - 1]) : 0;
        }
    }
    if (n > 0) {
        qsort(v, n, sizeof *v, longest_wait_first);
    }
    put_waits(v, n, p, t, d);
    if (own_ns > 0) {
        document_note(d, "  the job was in its own way for %s", seconds(own_ns));
    }
}

/* ---- the graph ---- */

static struct frame_value instant(int64_t ns)
{
    return ns == TIME_NEVER_NS ? frame_value_number((double)NAN) : frame_value_i64(ns);
}

/* Whether its instants are known: it ended, or never arrived and the path has when it was due. */
static bool is_known(const struct critical_request *r)
{
    return r->why != NULL || r->on_path;
}

static void put_graph(const struct critical_path *p, const struct trace *t, struct document *d)
{
    struct frame *requests = document_data(
        d, "requests", 0,
        "request_id session_id turn class background on_path arrival_ns first_service_ns "
        "first_token_ns end_ns finished");
    struct frame *edges = document_data(d, "edges", 0, "from to on_path");
    for (size_t i = 0; i < p->n; i++) {
        const struct critical_request *r = &p->v[i];
        const struct trace_row *row = &t->rows[r->row];
        if (is_known(r)) {
            const struct explanation never = {.first_service_ns = TIME_NEVER_NS,
                                              .first_token_ns = TIME_NEVER_NS};
            const struct explanation *why = r->why != NULL ? r->why : &never;
            FRAME_ROW(requests, row->request_id, row->session_id, row->turn,
                      words_classes[row->cls], r->background, r->on_path, r->arrival_ns,
                      instant(why->first_service_ns), instant(why->first_token_ns), r->end_ns,
                      why->finished);
        }
    }
    for (size_t i = 0; i < p->n_edges; i++) {
        const struct critical_request *from = &p->v[p->edges[i].from];
        const struct critical_request *to = &p->v[p->edges[i].to];
        if (is_known(from) && is_known(to)) {
            FRAME_ROW(edges, t->rows[from->row].request_id, t->rows[to->row].request_id,
                      to->on_path && to->after == p->edges[i].from);
        }
    }
}

/* Says why a job is not complete: it lost a foreground request, or the run ended first. */
static const char *incomplete(const struct critical_path *p, const struct trace *t)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct critical_request *r = &p->v[i];
        if (!r->background && is_known(r) && (r->why == NULL || !r->why->finished)) {
            return document_format("; request %u %s, so the job is never complete",
                                   t->rows[r->row].request_id,
                                   r->why != NULL ? "did not finish" : "never arrived");
        }
    }
    return " so far: it is not complete";
}

void job_path_document(const struct critical_path *p, const struct trace *t, struct document *d)
{
    uint32_t foreground = 0;
    uint32_t left = 0;
    for (size_t i = 0; i < p->n; i++) {
        foreground += !p->v[i].background;
        left += p->v[i].why != NULL;
    }
    DOCUMENT_VALUES(d, "complete", p->complete, "first_ns", p->first_ns, "latency_ns",
                    p->end_ns - p->first_ns);
    document_note(d,
                  "job of %zu request%s, %u in the foreground, %u that ended: %s from its first "
                  "arrival to the end of its last foreground request%s",
                  p->n, text_plural(p->n), foreground, left, seconds(p->end_ns - p->first_ns),
                  p->complete ? "" : incomplete(p, t));
    put_steps(p, t, d);
    put_causes(p, d);
    put_blockers(p, t, d);
    put_graph(p, t, d);
}

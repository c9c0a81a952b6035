#include "experiments/diff/shrink_trace.h"

#include "experiments/diff/shrink.h"
#include "sim/base/clock.h"
#include "traces/traces.h"

#define LINE_COLUMNS 40

/* The search, with the smallest trace so far. */
struct work {
    const struct shrink_trace *s;
    struct trace now;     /* owned */
    uint32_t *session_of; /* owned; by row, from 0 */
    uint32_t tests;
    double began_s;
};

static bool shows(struct work *w, const struct trace *t)
{
    if (w->s->limit_s > 0.0 && clock_now_s() - w->began_s > w->s->limit_s) {
        return false;
    }
    w->tests++;
    if (w->s->on_terminal) {
        (void)fprintf(stderr, "\r%u tests, %zu requests ", w->tests, t->n);
    }
    return w->s->shows(w->s->ctx, t);
}

/* Numbers sessions, or jobs, by their first row. */
static size_t number_sessions(struct work *w)
{
    const struct trace *t = &w->now;
    free(w->session_of);
    w->session_of = xmalloc((t->n + 1) * sizeof *w->session_of);
    if (t->graph != NULL) { /* a job is kept or removed as a whole */
        memcpy(w->session_of, t->graph->job, t->n * sizeof *w->session_of);
        return t->graph->n_jobs;
    }
    for (size_t i = 0; i < t->n_first; i++) {
        for (uint32_t r = (uint32_t)i; r != TRACE_NO_ROW; r = t->rows[r].next) {
            w->session_of[r] = (uint32_t)i;
        }
    }
    return t->n_first;
}

/* Replaces the trace by the subset if that has the property. Returns whether it did. */
static bool take(struct work *w, const bool *keep_row)
{
    struct trace t = {0};
    if (trace_subset(&w->now, keep_row, &t) != 0 || !shows(w, &t)) {
        trace_fini(&t);
        return false;
    }
    trace_fini(&w->now);
    w->now = t;
    return true;
}

static bool sessions_show(void *ctx, const bool *keep, size_t n UNUSED)
{
    struct work *w = ctx;
    OWNED bool *rows = xmalloc((w->now.n + 1) * sizeof *rows);
    for (size_t i = 0; i < w->now.n; i++) {
        rows[i] = keep[w->session_of[i]];
    }
    SCOPED(trace_fini) struct trace t = {0};
    return trace_subset(&w->now, rows, &t) == 0 && shows(w, &t);
}

static void drop_sessions(struct work *w)
{
    size_t n = number_sessions(w);
    OWNED bool *keep = xmalloc((n + 1) * sizeof *keep);
    memset(keep, true, n);
    struct shrink s = {w, sessions_show, w->s->max_tests};
    (void)shrink_run(&s, keep, n);
    OWNED bool *rows = xmalloc((w->now.n + 1) * sizeof *rows);
    for (size_t i = 0; i < w->now.n; i++) {
        rows[i] = keep[w->session_of[i]];
    }
    struct trace t = {0};
    if (trace_subset(&w->now, rows, &t) == 0) { /* shrink_run tested this subset */
        trace_fini(&w->now);
        w->now = t;
    }
}

/* Removes last turns one by one. */
static void drop_turns(struct work *w)
{
    const uint32_t most = w->s->max_tests;
    bool dropped = true;
    while (dropped && w->tests < most) {
        dropped = false;
        for (size_t i = w->now.n_first; i < w->now.n && !dropped && w->tests < most; i++) {
            if (w->now.rows[i].next == TRACE_NO_ROW) {
                OWNED bool *rows = xmalloc((w->now.n + 1) * sizeof *rows);
                memset(rows, true, w->now.n);
                rows[i] = false;
                dropped = take(w, rows);
            }
        }
    }
}

/* Whether a prompt begins with more tokens of a row than that has. */
static bool too_short(const struct trace *t, size_t row)
{
    const struct trace_graph *g = t->graph;
    const struct trace_row *r = &t->rows[row];
    bool short_of = false;
    for (size_t i = 0; g != NULL && g->source != NULL && i < t->n; i++) {
        short_of = short_of || (g->source[i] == row &&
                                t->rows[i].prefix_tokens > r->input_tokens + r->output_tokens);
    }
    return short_of;
}

/* Halves a length of one row. Returns false, and changes nothing, if it cannot be halved or the
 * property is lost. */
static bool halve(struct work *w, size_t row, bool output)
{
    struct trace_row *r = &w->now.rows[row];
    struct trace_row old = *r;
    uint32_t *length = output ? &r->output_tokens : &r->input_tokens;
    if (*length < 2 || w->tests >= w->s->max_tests) {
        return false;
    }
    *length /= 2;
    r->prefix_tokens = r->prefix_tokens < r->input_tokens ? r->prefix_tokens : r->input_tokens;
    if (too_short(&w->now, row) || !shows(w, &w->now)) {
        *r = old;
        return false;
    }
    return true;
}

static void halve_lengths(struct work *w)
{
    for (size_t i = 0; i < w->now.n; i++) {
        while (halve(w, i, true)) {
        }
        while (halve(w, i, false)) {
        }
    }
    w->now.hash = trace_hash(&w->now);
}

uint32_t shrink_trace_run(const struct shrink_trace *s, struct trace *t)
{
    struct work w = {.s = s, .now = *t, .began_s = clock_now_s()};
    drop_sessions(&w);
    drop_turns(&w);
    halve_lengths(&w);
    *t = w.now;
    free(w.session_of);
    if (s->on_terminal) {
        (void)fprintf(stderr, "\r%*s\r", LINE_COLUMNS, "");
    }
    return w.tests;
}

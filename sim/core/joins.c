#include "sim/core/joins.h"

#include "sim/core/core.h"

struct join_row {
    uint32_t parents_left;
    uint32_t depth, waiters; /* those of struct request, once it has arrived */
    uint32_t before;         /* previous turn, once it has ended, else TRACE_NO_ROW */
    uint32_t waited_for;     /* next row of its session, or this one, that a turn of another session
                                waits for, or TRACE_NO_ROW; hidden */
    uint32_t first_end, next_end; /* list of the rows that end with this one */
    int64_t due_ns;               /* latest end of a parent so far, plus its gap */
    struct full_request *live;    /* its live request, or NULL */
    bool dropped;                 /* the row that cancels it has ended */
};

struct joins {
    const struct trace_graph *graph; /* borrowed */
    struct join_row *rows;
};

/* Whether an agent of another session waits for the row to start its turn `child`. A session's
 * first turn does not count: no agent waits there yet. */
static bool is_wait(const struct joins *j, const struct trace *t, uint32_t row, uint32_t child)
{
    return t->rows[child].turn > 0 && child != t->rows[row].next &&
           j->graph->job[child] == j->graph->job[row];
}

/* Fills waited_for, from the last turn of each session to the first. */
static void find_waits(struct joins *j, const struct trace *t)
{
    OWNED uint32_t *turns = xmalloc((t->n + 1) * sizeof *turns);
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t n = 0;
        for (uint32_t r = i; t->rows[i].turn == 0 && r != TRACE_NO_ROW; r = t->rows[r].next) {
            turns[n++] = r;
        }
        for (uint32_t found = TRACE_NO_ROW; n > 0; n--) {
            uint32_t r = turns[n - 1];
            for (uint32_t k = j->graph->first[r]; k < j->graph->first[r + 1]; k++) {
                found = is_wait(j, t, r, j->graph->edges[k].row) ? r : found;
            }
            j->rows[r].waited_for = found;
        }
    }
}

/* Agents that wait for an arriving row's session. Cost: edges of the rows waited for. */
static uint32_t waiters_of(const struct core *c, uint32_t row)
{
    const struct joins *j = c->joins;
    const struct trace *t = c->setup->trace;
    uint32_t most = 0;
    uint32_t r = j->rows[row].waited_for;
    while (r != TRACE_NO_ROW) {
        for (uint32_t k = j->graph->first[r]; k < j->graph->first[r + 1]; k++) {
            uint32_t child = j->graph->edges[k].row;
            /* An agent that still works does not wait yet, and its plan to wait is hidden. */
            uint32_t agent = is_wait(j, t, r, child) ? j->rows[child].before : TRACE_NO_ROW;
            uint32_t n = agent == TRACE_NO_ROW ? 0 : j->rows[agent].waiters + 1;
            most = n > most ? n : most;
        }
        uint32_t next = t->rows[r].next;
        r = next == TRACE_NO_ROW ? TRACE_NO_ROW : j->rows[next].waited_for;
    }
    return most;
}

struct joins *joins_new(struct core *c)
{
    const struct trace *t = c->setup->trace;
    const struct trace_graph *g = t->graph;
    if (g == NULL) {
        return NULL;
    }
    struct joins *j = arena_alloc(&c->arena, sizeof *j);
    j->graph = g;
    j->rows = arena_alloc(&c->arena, (t->n + 1) * sizeof *j->rows);
    for (uint32_t i = 0; i < t->n; i++) {
        j->rows[i].parents_left = g->n_parents[i];
        j->rows[i].before = TRACE_NO_ROW;
        j->rows[i].first_end = TRACE_NO_ROW;
    }
    for (uint32_t i = (uint32_t)t->n; i-- > 0;) { /* backwards, so that lists are in row order */
        if (g->ends_with[i] != TRACE_NO_ROW) {
            uint32_t *first = &j->rows[g->ends_with[i]].first_end;
            j->rows[i].next_end = *first;
            *first = i;
        }
    }
    find_waits(j, t);
    return j;
}

/* Schedules the arrival of a row whose parents have all ended. */
static void announce(struct core *c, uint32_t row)
{
    const struct trace *t = c->setup->trace;
    const struct join_row *x = &c->joins->rows[row];
    int64_t due_ns = x->due_ns + t->rows[row].arrival_ns;
    /* From until_ns on it never arrives, nor do rows that wait for it. */
    if (t->extras == NULL || due_ns < t->extras[row].until_ns) {
        c->exec_ops->arrive_later(c->exec, due_ns, row);
    }
}

static void end(struct core *c, uint32_t row, bool arrived)
{
    struct joins *j = c->joins;
    const struct trace_graph *g = j->graph;
    int64_t now_ns = c->sched->now_ns;
    for (uint32_t k = g->first[row]; k < g->first[row + 1]; k++) {
        const struct trace_edge *edge = &g->edges[k];
        struct join_row *x = &j->rows[edge->row];
        SIM_ASSERT(x->parents_left > 0 && x->live == NULL);
        int64_t due_ns = now_ns + edge->gap_ns;
        x->due_ns = due_ns > x->due_ns ? due_ns : x->due_ns;
        x->before = edge->row == c->setup->trace->rows[row].next ? row : x->before;
        if (g->job[edge->row] == g->job[row]) {
            uint32_t depth = j->rows[row].depth + arrived;
            x->depth = depth > x->depth ? depth : x->depth;
        }
        if (--x->parents_left == 0) {
            announce(c, edge->row);
        }
    }
    for (uint32_t k = j->rows[row].first_end; k != TRACE_NO_ROW; k = j->rows[k].next_end) {
        struct join_row *x = &j->rows[k];
        if (x->live != NULL) {
            c->exec_ops->cancel_later(c->exec, now_ns, x->live);
        }
        x->dropped = true;
    }
}

bool joins_may_arrive(struct core *c, uint32_t row)
{
    if (!c->joins->rows[row].dropped) {
        return true;
    }
    end(c, row, false);
    return false;
}

void joins_arrived(struct core *c, uint32_t row, struct full_request *r)
{
    struct joins *j = c->joins;
    struct join_row *x = &j->rows[row];
    SIM_ASSERT(x->parents_left == 0);
    x->live = r;
    x->waiters = waiters_of(c, row);
    r->pub->job_id = j->graph->job[row];
    r->pub->depth = x->depth;
    r->pub->waiters = x->waiters;
    r->pub->background = j->graph->background[row];
}

void joins_left(struct core *c, uint32_t row)
{
    struct join_row *x = &c->joins->rows[row];
    SIM_ASSERT(x->live != NULL);
    if (x->dropped && x->live->pub->state == REQUEST_STATE_SHED) {
        core_count(c, COUNTER_ENDED_WITH);
    }
    x->live = NULL;
    end(c, row, true);
}

#include "sim/core/joins.h"

#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/core/core.h"

struct join_row {
    uint32_t parents_left;
    uint32_t cold;             /* KV of the turn before */
    int64_t due_ns;            /* latest end of a parent so far, its gap included */
    struct full_request *live; /* while it is in the system */
    bool dropped;              /* it ended with another request before it arrived */
};

struct joins {
    const struct trace_graph *graph; /* borrowed */
    struct join_row *rows;           /* owned */
    /* Rows that end with row i: ends[ends_first[i] .. ends_first[i + 1]). Owned. */
    uint32_t *ends_first, *ends;
};

struct joins *joins_new(const struct core *c)
{
    const struct trace *t = c->setup->trace;
    const struct trace_graph *g = t->graph;
    if (g == NULL) {
        return NULL;
    }
    struct joins *j = xcalloc(1, sizeof *j);
    j->graph = g;
    j->rows = xcalloc(t->n + 1, sizeof *j->rows);
    j->ends_first = xcalloc(t->n + 2, sizeof *j->ends_first);
    j->ends = xcalloc(t->n + 1, sizeof *j->ends);
    for (uint32_t i = 0; i < t->n; i++) {
        j->rows[i].parents_left = g->n_parents[i];
        j->rows[i].cold = KV_NO_COLD;
        if (g->ends_with[i] != TRACE_NO_ROW) {
            j->ends_first[g->ends_with[i] + 2]++;
        }
    }
    for (uint32_t i = 0; i < t->n; i++) {
        j->ends_first[i + 2] += j->ends_first[i + 1];
    }
    for (uint32_t i = 0; i < t->n; i++) {
        if (g->ends_with[i] != TRACE_NO_ROW) {
            j->ends[j->ends_first[g->ends_with[i] + 1]++] = i;
        }
    }
    return j;
}

void joins_free(struct joins *j)
{
    if (j != NULL) {
        free(j->rows);
        free(j->ends_first);
        free(j->ends);
        free(j);
    }
}

/* A row's last parent has ended, or the row was to arrive and does not. */
static void announce(struct core *c, uint32_t row)
{
    const struct trace *t = c->setup->trace;
    const struct join_row *x = &c->joins->rows[row];
    int64_t due_ns = x->due_ns + t->rows[row].arrival_ns;
    /* After its session's last instant it never arrives, and nobody who waits for it does. */
    if (t->extras == NULL || due_ns < t->extras[row].until_ns) {
        c->exec_ops->arrive_later(c->exec, due_ns, row, x->cold);
    }
}

static void end(struct core *c, uint32_t row, uint32_t cold)
{
    struct joins *j = c->joins;
    const struct trace_graph *g = j->graph;
    int64_t now_ns = c->sched.now_ns;
    for (uint32_t k = g->first[row]; k < g->first[row + 1]; k++) {
        const struct trace_edge *edge = &g->edges[k];
        struct join_row *x = &j->rows[edge->row];
        SIM_ASSERT(x->parents_left > 0 && x->live == NULL);
        int64_t due_ns = now_ns + edge->gap_ns;
        x->due_ns = due_ns > x->due_ns ? due_ns : x->due_ns;
        x->cold = edge->row == c->setup->trace->rows[row].next ? cold : x->cold;
        if (--x->parents_left == 0) {
            announce(c, edge->row);
        }
    }
    for (uint32_t k = j->ends_first[row]; k < j->ends_first[row + 1]; k++) {
        struct join_row *x = &j->rows[j->ends[k]];
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
    end(c, row, KV_NO_COLD);
    return false;
}

void joins_arrived(struct core *c, uint32_t row, struct full_request *r)
{
    SIM_ASSERT(c->joins->rows[row].parents_left == 0);
    c->joins->rows[row].live = r;
}

void joins_left(struct core *c, uint32_t row, uint32_t cold)
{
    SIM_ASSERT(c->joins->rows[row].live != NULL);
    c->joins->rows[row].live = NULL;
    end(c, row, cold);
}

#include <gsl/gsl_sort_ulong.h>

#include "sim/base/hash.h"
#include "traces/texts.h"
#include "traces/traces.h"

void trace_fini(struct trace *t)
{
    trace_graph_free(t->graph);
    free(t->rows);
    free(t->extras);
    free(t->arrivals_ns);
    free(t->machine);
    texts_release(t->texts);
    *t = (struct trace){0};
}

void trace_unpack(struct trace *t)
{
    if (t->arrivals_ns == NULL) {
        return;
    }
    struct trace_row *rows = xmalloc(t->n * sizeof *rows);
    for (size_t i = 0; i < t->n; i++) {
        rows[i] = trace_row_at(t, (uint32_t)i);
    }
    free(t->arrivals_ns);
    t->arrivals_ns = NULL;
    t->rows = rows;
}

uint32_t trace_default_limit(uint32_t output_tokens)
{
    uint32_t limit = 256;
    while (limit < 2 * (uint64_t)output_tokens && limit < (1u << 30)) {
        limit *= 2;
    }
    return limit;
}

/* Whether the request waits for another to end. Then the order is by session, not by arrival. */
static bool is_later(const struct trace_built *x)
{
    return x->row.turn > 0 || x->node.n_parents > 0;
}

/* Never equal, because the order of equal elements in qsort depends on the C library. */
SORT_BY(by_place, struct trace_built, is_later(a) - is_later(b),
        is_later(a) ? SORT_UP(row.session_id) : SORT_UP(row.arrival_ns), SORT_UP(row.turn),
        SORT_UP(at))

struct turn {
    uint32_t session_id, turn, at;
};

SORT_BY(by_turn, struct turn, SORT_UP(session_id), SORT_UP(turn), SORT_UP(at))

/* Links the turns of every session. In a request graph a session may start after another request,
 * so trace_graph_build checks the sum of gaps. */
static void link_turns(struct trace_builder *b)
{
    OWNED struct turn *keys = xmalloc((b->n + 1) * sizeof *keys);
    for (size_t i = 0; i < b->n; i++) {
        keys[i] = (struct turn){b->v[i].row.session_id, b->v[i].row.turn, (uint32_t)i};
    }
    qsort(keys, b->n, sizeof *keys, by_turn);
    int64_t sum_ns = 0; /* arrival and gaps up to this turn */
    for (size_t i = 0; i < b->n && b->err->n < ERR_MAX_LINES; i++) {
        const struct turn *k = &keys[i];
        bool goes_on = i > 0 && keys[i - 1].session_id == k->session_id;
        if (goes_on && k->turn == 0) {
            trace_row_error(b, k->at, "column turn: session %u starts twice (two rows with turn 0)",
                            k->session_id);
        } else if (goes_on && keys[i - 1].turn == k->turn) {
            trace_row_error(b, k->at, "column turn: session %u: turn %u is given twice",
                            k->session_id, k->turn);
        } else if (k->turn != (goes_on ? keys[i - 1].turn + 1 : 0)) {
            trace_row_error(b, k->at, "column turn: session %u: turn %u has no turn %u before it",
                            k->session_id, k->turn, k->turn - 1);
        } else if (goes_on) {
            SIM_ASSERT(b->v[k->at].row.turn == b->v[keys[i - 1].at].row.turn + 1);
            SIM_ASSERT(b->v[keys[i - 1].at].row.next == TRACE_NO_ROW);
            b->v[keys[i - 1].at].row.next = k->at;
        }
        sum_ns = (goes_on ? sum_ns : 0) + b->v[k->at].row.arrival_ns; /* each <= TRACE_LAST_NS */
        if (sum_ns > TRACE_LAST_NS && !b->graph) {
            trace_row_error(b, k->at,
                            "column gap_s: session %u: arrival and gaps add up to over 31 years",
                            k->session_id);
        }
        if (sum_ns > TRACE_LAST_NS) {
            sum_ns = -INT64_MAX / 2; /* report once per session */
        }
    }
}

static void check_ids(const struct trace_builder *b)
{
    OWNED uint64_t *ids = xmalloc(b->n * sizeof *ids); /* id << 32 | row */
    for (size_t i = 0; i < b->n; i++) {
        ids[i] = ((uint64_t)b->v[i].row.request_id << 32) | i;
    }
    gsl_sort_ulong(ids, 1, b->n);
    for (size_t i = 1; i < b->n && b->err->n < ERR_MAX_LINES; i++) {
        if (ids[i] >> 32 == ids[i - 1] >> 32) {
            trace_row_error(b, ids[i] & UINT32_MAX, "column request_id: %u is given twice",
                            (uint32_t)(ids[i] >> 32));
        }
    }
}

void trace_set_texts(struct trace *t, struct trace_texts *texts)
{
    texts_release(t->texts);
    t->texts = texts;
    if (texts != NULL) {
        texts->holders++;
        t->hash = trace_hash(t);
    }
}

int trace_build(struct trace_builder *b, bool renumber, const char *name, struct trace *out,
                struct err *e)
{
    *out = (struct trace){0};
    b->name = name;
    b->err = e;
    if (b->n == 0) {
        (void)err_add(e, "%s: no requests", name);
        return -ENODATA;
    }
    if (b->n > TRACE_MAX_ROWS) {
        return err_add(e, "%s: %zu requests, at most %u are taken", name, b->n, TRACE_MAX_ROWS);
    }
    qsort(b->v, b->n, sizeof *b->v, by_place);
    size_t n_first = 0;
    for (size_t i = 0; i < b->n; i++) {
        struct trace_row *r = &b->v[i].row;
        r->next = TRACE_NO_ROW;
        r->request_id = renumber ? (uint32_t)i : r->request_id;
        n_first += !is_later(&b->v[i]);
    }
    size_t before = e->n;
    check_ids(b);
    struct trace_graph *graph = NULL;
    link_turns(b);
    if (b->graph && e->n == before) {
        graph = trace_graph_build(b);
    }
    if (e->n != before) {
        return -EINVAL;
    }
    *out = (struct trace){.graph = graph, .n = b->n, .n_first = n_first};
    out->rows = xmalloc(b->n * sizeof *out->rows);
    out->extras = b->extras ? xmalloc(b->n * sizeof *out->extras) : NULL;
    for (size_t i = 0; i < b->n; i++) {
        out->rows[i] = b->v[i].row;
        if (b->extras) {
            out->extras[i] = b->v[i].extra;
        }
    }
    trace_builder_fini(b);
    out->hash = trace_hash(out);
    return 0;
}

void trace_set_slos(struct trace *t, int64_t ttft_slo_ns, int64_t tbt_slo_ns)
{
    if (t->extras == NULL) {
        t->extras = xmalloc((t->n + 1) * sizeof *t->extras);
        for (size_t i = 0; i < t->n; i++) {
            const struct trace_row row = trace_row_at(t, (uint32_t)i);
            t->extras[i] = trace_extra_usual(&row);
        }
    }
    for (size_t i = 0; i < t->n; i++) {
        struct trace_extra *x = &t->extras[i];
        x->ttft_slo_ns = x->ttft_slo_ns == TIME_NEVER_NS ? ttft_slo_ns : x->ttft_slo_ns;
        x->tbt_slo_ns = x->tbt_slo_ns == TIME_NEVER_NS ? tbt_slo_ns : x->tbt_slo_ns;
    }
    /* Other deadlines make another input. */
    t->hash = hash_u64(hash_u64(t->hash, (uint64_t)ttft_slo_ns), (uint64_t)tbt_slo_ns);
}

int trace_subset(const struct trace *t, const bool *keep, struct trace *out)
{
    SCOPED(trace_builder_fini) struct trace_builder b;
    SCOPED(err_fini) struct err e = ERR_INIT;
    trace_builder_init(&b);
    OWNED struct trace_node *nodes = t->graph != NULL ? trace_graph_nodes(t) : NULL;
    trace_builder_models_copy(&b, t);
    for (size_t i = 0; i < t->n; i++) {
        if (keep[i]) {
            const struct trace_row row = trace_row_at(t, (uint32_t)i);
            trace_builder_add(&b, &row, t->extras != NULL ? &t->extras[i] : NULL);
            if (nodes != NULL) {
                uint32_t with = t->graph->ends_with[i];
                nodes[i].ends_with =
                    with == TRACE_NO_ROW || keep[with] ? nodes[i].ends_with : UINT32_MAX;
                trace_builder_node(&b, &nodes[i]);
            }
        }
    }
    int rc = trace_build(&b, false, "subset", out, &e);
    if (rc == 0) {
        trace_copy_machine(out, t);
        trace_set_texts(out, t->texts);
    }
    return rc;
}

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

void trace_builder_init(struct trace_builder *b)
{
    *b = (struct trace_builder){0};
}

void trace_builder_fini(struct trace_builder *b)
{
    for (size_t i = 0; b->nodes != NULL && i < b->n; i++) {
        free(b->nodes[i].parents);
    }
    free(b->models);
    free(b->nodes);
    free(b->rows);
    free(b->extras);
    free(b->lines);
    *b = (struct trace_builder){0};
}

struct trace_extra trace_extra_none(void)
{
    return (struct trace_extra){.ttft_slo_ns = TIME_NEVER_NS,
                                .tbt_slo_ns = TIME_NEVER_NS,
                                .deadline_ns = TIME_NEVER_NS,
                                .cancel_ns = TIME_NEVER_NS,
                                .until_ns = TIME_NEVER_NS};
}

struct trace_node trace_node_none(void)
{
    return (struct trace_node){.ends_with = UINT32_MAX, .prefix_of = UINT32_MAX};
}

static struct trace_extra extra_of(const struct trace_row *row, const struct trace_extra *extra)
{
    struct trace_extra x = extra != NULL ? *extra : trace_extra_none();
    if (extra == NULL) {
        x.client_id = row->session_id;
    }
    return x;
}

/* Makes room for one more row in every array that is in use. */
static void reserve(struct trace_builder *b, bool extras, bool lines)
{
    size_t old = b->cap;
    if (b->n == b->cap) {
        b->cap = b->cap == 0 ? 256 : b->cap * 2;
        b->rows = xrealloc(b->rows, b->cap * sizeof *b->rows);
    }
    bool begin = extras && b->extras == NULL;
    if (begin || (b->extras != NULL && b->cap != old)) {
        b->extras = xrealloc(b->extras, b->cap * sizeof *b->extras);
    }
    for (size_t i = 0; begin && i < b->n; i++) {
        /* Optional columns are kept from the first row on that has one; those before it get what
         * stands for none. */
        b->extras[i] = extra_of(&b->rows[i], NULL);
    }
    if (b->nodes != NULL && b->cap != old) {
        b->nodes = xrealloc(b->nodes, b->cap * sizeof *b->nodes);
    }
    begin = lines && b->lines == NULL;
    if (begin || (b->lines != NULL && b->cap != old)) {
        b->lines = xrealloc(b->lines, b->cap * sizeof *b->lines);
    }
    for (size_t i = 0; begin && i < b->n; i++) {
        b->lines[i] = 0;
    }
}

void trace_builder_add(struct trace_builder *b, const struct trace_row *row,
                       const struct trace_extra *extra)
{
    reserve(b, extra != NULL, b->line != 0);
    b->rows[b->n] = *row;
    if (b->extras != NULL) {
        b->extras[b->n] = extra_of(row, extra);
    }
    if (b->lines != NULL) {
        b->lines[b->n] = (uint32_t)b->line;
    }
    if (b->nodes != NULL) {
        b->nodes[b->n] = trace_node_none();
    }
    b->n++;
}

void trace_builder_node(struct trace_builder *b, const struct trace_node *node)
{
    if (b->nodes == NULL) {
        b->nodes = xmalloc(b->cap * sizeof *b->nodes);
        for (size_t i = 0; i < b->n; i++) {
            b->nodes[i] = trace_node_none();
        }
    }
    b->nodes[b->n - 1] = *node;
}

uint32_t trace_default_limit(uint32_t output_tokens)
{
    uint32_t limit = 256;
    while (limit < 2 * (uint64_t)output_tokens && limit < (1u << 30)) {
        limit *= 2;
    }
    return limit;
}

/* Sort keys, kept apart from the rows so that one permutation moves rows and extras alike. */
struct sort_key {
    int64_t arrival_ns;  /* 0 of one that is later: its session counts */
    uint32_t session_id; /* of one that is later */
    uint32_t turn;
    uint32_t at; /* position as added */
    bool later;  /* another request must end before it */
};

/* Never equal: qsort is not stable, and the order would be the C library's. */
SORT_BY(by_place, struct sort_key, SORT_UP(later), SORT_UP(arrival_ns), SORT_UP(session_id),
        SORT_UP(turn), SORT_UP(at))

/* Applies the order of `keys` to every array. */
static void permute(struct trace_builder *b, const struct sort_key *keys)
{
    SCOPED(trace_builder_fini) struct trace_builder old = *b;
    b->rows = xmalloc(b->n * sizeof *b->rows);
    b->extras = old.extras == NULL ? NULL : xmalloc(b->n * sizeof *b->extras);
    b->lines = old.lines == NULL ? NULL : xmalloc(b->n * sizeof *b->lines);
    b->nodes = old.nodes == NULL ? NULL : xmalloc(b->n * sizeof *b->nodes);
    b->cap = b->n;
    for (size_t i = 0; i < b->n; i++) {
        b->rows[i] = old.rows[keys[i].at];
        b->rows[i].next = TRACE_NO_ROW;
        if (b->extras != NULL) {
            b->extras[i] = old.extras[keys[i].at];
        }
        if (b->lines != NULL) {
            b->lines[i] = old.lines[keys[i].at];
        }
        if (b->nodes != NULL) {
            b->nodes[i] = old.nodes[keys[i].at];
        }
    }
    free(old.nodes); /* its lists of parents have moved */
    old.nodes = NULL;
    old.models = NULL; /* the builder keeps them */
    old.n_models = 0;
}

static void row_error(const struct trace_builder *b, const char *name, size_t row, struct err *e,
                      const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* "NAME:LINE: ..." of a row, or "NAME: ...". */
static void row_error(const struct trace_builder *b, const char *name, size_t row, struct err *e,
                      const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    OWNED char *what = xvformat(fmt, ap);
    va_end(ap);
    if (b->lines != NULL && b->lines[row] != 0) {
        err_add(e, "%s:%u: %s", name, b->lines[row], what);
    } else {
        err_add(e, "%s: %s", name, what);
    }
}

/* Links the turns of every session. In a request graph a session may begin after another request,
 * and trace_graph_build bounds the sum of gaps. */
static void link_turns(struct trace_builder *b, const char *name, struct err *e)
{
    OWNED struct sort_key *keys = xmalloc((b->n + 1) * sizeof *keys);
    for (size_t i = 0; i < b->n; i++) {
        const struct trace_row *r = &b->rows[i];
        keys[i] = (struct sort_key){0, r->session_id, r->turn, (uint32_t)i, true};
    }
    qsort(keys, b->n, sizeof *keys, by_place);
    int64_t sum_ns = 0; /* arrival and gaps of the session up to this turn */
    for (size_t i = 0; i < b->n && e->n < ERR_MAX_LINES; i++) {
        const struct sort_key *k = &keys[i];
        bool goes_on = i > 0 && keys[i - 1].session_id == k->session_id;
        if (goes_on && k->turn == 0) {
            row_error(b, name, k->at, e,
                      "column turn: session %u starts twice (two rows with turn 0)", k->session_id);
        } else if (goes_on && keys[i - 1].turn == k->turn) {
            row_error(b, name, k->at, e, "column turn: session %u: turn %u is given twice",
                      k->session_id, k->turn);
        } else if (k->turn != (goes_on ? keys[i - 1].turn + 1 : 0)) {
            row_error(b, name, k->at, e,
                      "column turn: session %u: turn %u has no turn %u before it", k->session_id,
                      k->turn, k->turn - 1);
        } else if (goes_on) {
            SIM_ASSERT(b->rows[k->at].turn == b->rows[keys[i - 1].at].turn + 1);
            SIM_ASSERT(b->rows[keys[i - 1].at].next == TRACE_NO_ROW);
            b->rows[keys[i - 1].at].next = k->at;
        }
        sum_ns =
            (goes_on ? sum_ns : 0) + b->rows[k->at].arrival_ns; /* each at most TRACE_LAST_NS */
        if (sum_ns > TRACE_LAST_NS && b->nodes == NULL) {
            row_error(b, name, k->at, e,
                      "column gap_s: session %u: arrival and gaps add up to over 31 years",
                      k->session_id);
        }
        if (sum_ns > TRACE_LAST_NS) {
            sum_ns = -INT64_MAX / 2; /* once a session */
        }
    }
}

static void check_ids(const struct trace_builder *b, const char *name, struct err *e)
{
    OWNED uint64_t *ids = xmalloc(b->n * sizeof *ids); /* id, then row */
    for (size_t i = 0; i < b->n; i++) {
        ids[i] = ((uint64_t)b->rows[i].request_id << 32) | i;
    }
    gsl_sort_ulong(ids, 1, b->n);
    for (size_t i = 1; i < b->n && e->n < ERR_MAX_LINES; i++) {
        if (ids[i] >> 32 == ids[i - 1] >> 32) {
            row_error(b, name, ids[i] & UINT32_MAX, e, "column request_id: %u is given twice",
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
    if (b->n == 0) {
        return err_add(e, "%s: no requests", name);
    }
    if (b->n > TRACE_MAX_ROWS) {
        return err_add(e, "%s: %zu requests, at most %u are taken", name, b->n, TRACE_MAX_ROWS);
    }
    OWNED struct sort_key *keys = xmalloc(b->n * sizeof *keys);
    size_t n_first = 0;
    for (size_t i = 0; i < b->n; i++) {
        const struct trace_row *r = &b->rows[i];
        bool later = r->turn > 0 || (b->nodes != NULL && b->nodes[i].n_parents > 0);
        keys[i] = (struct sort_key){later ? 0 : r->arrival_ns, later ? r->session_id : 0, r->turn,
                                    (uint32_t)i, later};
        n_first += !later;
    }
    qsort(keys, b->n, sizeof *keys, by_place);
    permute(b, keys);
    if (renumber) {
        for (size_t i = 0; i < b->n; i++) {
            b->rows[i].request_id = (uint32_t)i;
        }
    }
    size_t before = e->n;
    check_ids(b, name, e);
    struct trace_graph *graph = NULL;
    link_turns(b, name, e);
    if (b->nodes != NULL && e->n == before) {
        graph = trace_graph_build(b, name, e);
    }
    if (e->n != before) {
        return -EINVAL;
    }
    *out = (struct trace){
        .graph = graph, .rows = b->rows, .extras = b->extras, .n = b->n, .n_first = n_first};
    b->rows = NULL;
    b->extras = NULL;
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
            t->extras[i] = extra_of(&row, NULL);
        }
    }
    for (size_t i = 0; i < t->n; i++) {
        struct trace_extra *x = &t->extras[i];
        x->ttft_slo_ns = x->ttft_slo_ns == TIME_NEVER_NS ? ttft_slo_ns : x->ttft_slo_ns;
        x->tbt_slo_ns = x->tbt_slo_ns == TIME_NEVER_NS ? tbt_slo_ns : x->tbt_slo_ns;
    }
    /* A trace with other deadlines is another input. */
    t->hash = hash_u64(hash_u64(t->hash, (uint64_t)ttft_slo_ns), (uint64_t)tbt_slo_ns);
}

int trace_subset(const struct trace *t, const bool *keep, struct trace *out)
{
    SCOPED(trace_builder_fini) struct trace_builder b;
    SCOPED(err_fini) struct err e = ERR_INIT;
    trace_builder_init(&b);
    struct trace_node *nodes = t->graph != NULL ? trace_graph_nodes(t) : NULL;
    trace_builder_models_copy(&b, t);
    for (size_t i = 0; i < t->n; i++) {
        if (keep[i]) {
            const struct trace_row row = trace_row_at(t, (uint32_t)i);
            trace_builder_add(&b, &row, t->extras != NULL ? &t->extras[i] : NULL);
            if (nodes != NULL) {
                trace_builder_node(&b, &nodes[i]);
                nodes[i].parents = NULL;
            }
        }
    }
    trace_graph_nodes_free(nodes, t->n);
    int rc = trace_build(&b, false, "subset", out, &e);
    if (rc == 0) {
        trace_copy_machine(out, t);
        trace_set_texts(out, t->texts);
    }
    return rc;
}

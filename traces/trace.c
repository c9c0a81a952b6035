#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/hash.h"
#include "sim/base/units.h"
#include "traces/traces.h"

void trace_fini(struct trace *t)
{
    free(t->rows);
    free(t->extras);
    *t = (struct trace){0};
}

void trace_builder_init(struct trace_builder *b)
{
    *b = (struct trace_builder){0};
}

void trace_builder_fini(struct trace_builder *b)
{
    free(b->rows);
    free(b->extras);
    *b = (struct trace_builder){0};
}

struct trace_extra trace_extra_none(void)
{
    return (struct trace_extra){.ttft_slo_ns = TIME_NEVER_NS,
                                .tbt_slo_ns = TIME_NEVER_NS,
                                .deadline_ns = TIME_NEVER_NS,
                                .cancel_ns = TIME_NEVER_NS};
}

void trace_builder_add(struct trace_builder *b, const struct trace_row *row,
                       const struct trace_extra *extra)
{
    if (b->n == b->cap) {
        b->cap = b->cap == 0 ? 256 : b->cap * 2;
        b->rows = xrealloc(b->rows, b->cap * sizeof *b->rows);
        if (b->has_extras) {
            b->extras = xrealloc(b->extras, b->cap * sizeof *b->extras);
        }
    }
    if (extra != NULL && !b->has_extras) {
        b->has_extras = true;
        b->extras = xrealloc(b->extras, b->cap * sizeof *b->extras);
        for (size_t i = 0; i < b->n; i++) {
            b->extras[i] = trace_extra_none();
            b->extras[i].client_id = b->rows[i].session_id;
        }
    }
    b->rows[b->n] = *row;
    if (b->has_extras) {
        b->extras[b->n] = extra != NULL ? *extra : trace_extra_none();
        if (extra == NULL) {
            b->extras[b->n].client_id = row->session_id;
        }
    }
    b->n++;
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
    int64_t arrival_ns;
    uint32_t session_id, turn;
    uint32_t at; /* position as added */
};

static int by_place(const void *x, const void *y)
{
    const struct sort_key *a = x;
    const struct sort_key *b = y;
    if ((a->turn > 0) != (b->turn > 0)) {
        return a->turn > 0 ? 1 : -1;
    }
    if (a->turn == 0 && a->arrival_ns != b->arrival_ns) {
        return a->arrival_ns < b->arrival_ns ? -1 : 1;
    }
    if (a->turn > 0 && a->session_id != b->session_id) {
        return a->session_id < b->session_id ? -1 : 1;
    }
    if (a->turn != b->turn) {
        return a->turn < b->turn ? -1 : 1;
    }
    return a->at < b->at ? -1 : 1;
}

/* Position of a session's first turn, by binary search in an array sorted by session. */
static int by_session(const void *x, const void *y)
{
    const struct sort_key *a = x;
    const struct sort_key *b = y;
    return (a->session_id > b->session_id) - (a->session_id < b->session_id);
}

static void permute(struct trace_builder *b, const struct sort_key *keys)
{
    struct trace_row *rows = xmalloc(b->n * sizeof *rows);
    for (size_t i = 0; i < b->n; i++) {
        rows[i] = b->rows[keys[i].at];
        rows[i].next = TRACE_NO_ROW;
    }
    free(b->rows);
    b->rows = rows;
    if (b->has_extras) {
        struct trace_extra *extras = xmalloc(b->n * sizeof *extras);
        for (size_t i = 0; i < b->n; i++) {
            extras[i] = b->extras[keys[i].at];
        }
        free(b->extras);
        b->extras = extras;
    }
}

static int link_turns(struct trace_builder *b, size_t n_first, const char *name, struct err *e)
{
    size_t before = e->n;
    struct sort_key *first = xmalloc((n_first + 1) * sizeof *first);
    for (size_t i = 0; i < n_first; i++) {
        first[i] = (struct sort_key){.session_id = b->rows[i].session_id, .at = (uint32_t)i};
    }
    qsort(first, n_first, sizeof *first, by_session);
    for (size_t i = 1; i < n_first; i++) {
        if (first[i].session_id == first[i - 1].session_id) {
            err_add(e, "%s: session %u starts twice (two rows with turn 0)", name,
                    first[i].session_id);
        }
    }
    for (size_t i = n_first; i < b->n && e->n == before; i++) {
        const struct trace_row *r = &b->rows[i];
        bool continues = i > n_first && b->rows[i - 1].session_id == r->session_id;
        uint32_t expected = 1;
        uint32_t previous = TRACE_NO_ROW;
        if (continues) {
            expected = b->rows[i - 1].turn + 1u;
            previous = (uint32_t)(i - 1);
        } else {
            struct sort_key want = {.session_id = r->session_id};
            const struct sort_key *got =
                n_first == 0 ? NULL : bsearch(&want, first, n_first, sizeof *first, by_session);
            previous = got == NULL ? TRACE_NO_ROW : got->at;
        }
        if (previous == TRACE_NO_ROW || r->turn != expected) {
            err_add(e, "%s: session %u: turn %u has no turn %u before it", name, r->session_id,
                    r->turn, r->turn - 1u);
            break;
        }
        b->rows[previous].next = (uint32_t)i;
    }
    free(first);
    return e->n == before ? 0 : -EINVAL;
}

static int by_u32(const void *x, const void *y)
{
    uint32_t a = *(const uint32_t *)x;
    uint32_t b = *(const uint32_t *)y;
    return (a > b) - (a < b);
}

static int check_ids(const struct trace_builder *b, const char *name, struct err *e)
{
    uint32_t *ids = xmalloc(b->n * sizeof *ids);
    for (size_t i = 0; i < b->n; i++) {
        ids[i] = b->rows[i].request_id;
    }
    qsort(ids, b->n, sizeof *ids, by_u32);
    int rc = 0;
    for (size_t i = 1; i < b->n && rc == 0; i++) {
        if (ids[i] == ids[i - 1]) {
            rc = err_add(e, "%s: request_id %u stands twice", name, ids[i]);
        }
    }
    free(ids);
    return rc;
}

/* Field by field: padding must not count. */
static uint64_t trace_hash(const struct trace *t)
{
    uint64_t h = HASH_INIT;
    for (size_t i = 0; i < t->n; i++) {
        const struct trace_row *r = &t->rows[i];
        h = hash_u64(h, (uint64_t)r->arrival_ns);
        h = hash_u64(h, ((uint64_t)r->request_id << 32) | r->session_id);
        h = hash_u64(h, ((uint64_t)r->input_tokens << 32) | r->output_tokens);
        h = hash_u64(h, ((uint64_t)r->prefix_tokens << 32) | r->max_output_tokens);
        h = hash_u64(h, ((uint64_t)r->turn << 16) | ((uint64_t)r->cls << 8) | r->after_tool);
        if (t->extras != NULL) {
            const struct trace_extra *x = &t->extras[i];
            h = hash_u64(h, (uint64_t)x->ttft_slo_ns);
            h = hash_u64(h, (uint64_t)x->tbt_slo_ns);
            h = hash_u64(h, (uint64_t)x->deadline_ns);
            h = hash_u64(h, (uint64_t)x->cancel_ns);
            h = hash_u64(h, ((uint64_t)x->client_id << 32) | x->prefix_group);
            h = hash_u64(h, (uint64_t)(int64_t)x->priority);
        }
    }
    return h;
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
    struct sort_key *keys = xmalloc(b->n * sizeof *keys);
    size_t n_first = 0;
    for (size_t i = 0; i < b->n; i++) {
        const struct trace_row *r = &b->rows[i];
        keys[i] = (struct sort_key){r->arrival_ns, r->session_id, r->turn, (uint32_t)i};
        n_first += r->turn == 0;
    }
    qsort(keys, b->n, sizeof *keys, by_place);
    permute(b, keys);
    free(keys);
    if (renumber) {
        for (size_t i = 0; i < b->n; i++) {
            b->rows[i].request_id = (uint32_t)i;
        }
    }
    int rc = check_ids(b, name, e);
    if (rc == 0) {
        rc = link_turns(b, n_first, name, e);
    }
    if (rc != 0) {
        return rc;
    }
    *out = (struct trace){.rows = b->rows, .extras = b->extras, .n = b->n, .n_first = n_first};
    *b = (struct trace_builder){0};
    out->hash = trace_hash(out);
    return 0;
}

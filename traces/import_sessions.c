/* Makes a trace from the rows of a source. Orders the turns of each session by time, finds prefixes
 * left by earlier turns, and selects the sessions that the options ask for. */
#include "sim/base/hash.h"
#include "sim/base/rng.h"
#include "traces/import.h"

#define NONE IMPORT_NONE
#define GONE (SIZE_MAX - 1) /* a row that has been continued */
#define MAX_TURNS 65535

struct place {
    int64_t start_ns;
    size_t row;
};

SORT_BY(by_time, struct place, SORT_UP(start_ns), SORT_UP(row))

/* Tokens in the leading blocks that both prompts share. */
static uint64_t shared_tokens(const struct import *im, const struct import_row *a,
                              const struct import_row *b)
{
    size_t n = a->n_blocks < b->n_blocks ? a->n_blocks : b->n_blocks;
    size_t same = 0;
    while (same < n && im->blocks[a->block + same] == im->blocks[b->block + same]) {
        same++;
    }
    uint64_t tokens = (uint64_t)same * im->block_tokens;
    return tokens < b->input ? tokens : b->input;
}

/* The earlier row with the longest prompt that this one continues, unless another row continued it.
 * A block's hash covers all before it, so the last whole block identifies a prompt. */
static size_t continued(const struct import *im, struct map *ends, const struct import_row *r)
{
    for (size_t k = r->n_blocks; k > 0; k--) {
        uint64_t id = hash_bits(im->blocks[r->block + k - 1]);
        size_t row = map_find(ends, id);
        if (row < GONE) {
            /* A prompt is continued once: a second request with the same beginning starts a new
             * session, because only one turn can follow an answer. */
            map_put(ends, id, GONE);
            return row;
        }
    }
    return NONE;
}

/* Tokens in the row's leading blocks that any earlier row has. */
static uint64_t known_anywhere(const struct import *im, struct map *seen,
                               const struct import_row *r, size_t index)
{
    uint64_t known = 0;
    bool leading = true;
    for (size_t k = 0; k < r->n_blocks; k++) {
        uint64_t id = hash_bits(im->blocks[r->block + k]);
        bool is_new = map_find(seen, id) == NONE;
        leading = leading && !is_new;
        known += leading ? im->block_tokens : 0;
        if (is_new) {
            map_put(seen, id, index);
        }
    }
    return known < r->input ? known : r->input;
}

struct link {
    size_t before; /* row of the turn before, or NONE */
    size_t first;  /* row of the session's first turn */
    uint32_t turn;
    int64_t ended_ns; /* latest end of an answer up to this turn; without an end, its arrival */
    uint64_t prefix;
    size_t source; /* row whose prompt begins the same, or NONE */
    bool wanted;
};

static uint64_t prefix_of(const struct import *im, const struct import_row *last,
                          const struct import_row *r)
{
    if (im->grows && r->after != 0) {
        return r->prefix;
    }
    if (im->block_tokens > 0) {
        return shared_tokens(im, last, r);
    }
    /* A chat sends all that was said before, which limits the prefix. Anything more in the source's
     * cache was another session's. */
    uint64_t before = last->input + last->output;
    uint64_t most = before < r->input ? before : r->input;
    return im->history || r->prefix > most ? most : r->prefix;
}

/* The row of which r is the next turn, or NONE. */
static size_t turn_before(const struct import *im, struct map *turns, const struct import_row *r)
{
    if (r->after != 0) {
        size_t row = map_find(turns, r->after);
        if (row < GONE && r->after != r->key) { /* in a tree, a second answer starts a session */
            map_put(turns, r->after, GONE);
        }
        return row < GONE ? row : NONE;
    }
    bool link = im->options->link && im->block_tokens > 0 && r->key == 0;
    return link ? continued(im, turns, r) : NONE;
}

/* Registers the row for its next turn: under its key, or its last whole block. */
static void remember(const struct import *im, struct map *turns, size_t i)
{
    const struct import_row *r = &im->rows[i];
    size_t whole = im->block_tokens > 0 ? r->input / im->block_tokens : 0;
    whole = whole < r->n_blocks ? whole : r->n_blocks;
    if (r->key != 0) {
        map_put(turns, r->key, i);
    } else if (im->options->link && whole > 0) {
        map_put(turns, hash_bits(im->blocks[r->block + whole - 1]), i);
    }
}

/* Links every row to its previous turn, in order of time. */
static void link_rows(struct import *im, const struct place *order, struct link *links)
{
    SCOPED(map_fini) struct map turns = {0};
    SCOPED(map_fini) struct map seen = {0};
    for (size_t k = 0; k < im->n; k++) {
        size_t i = order[k].row;
        struct import_row *r = &im->rows[i];
        struct link *l = &links[i];
        int64_t ended_ns = r->end_ns == TIME_NEVER_NS ? r->start_ns : r->end_ns;
        *l = (struct link){.before = turn_before(im, &turns, r), .first = i, .ended_ns = ended_ns};
        r->prefix = r->prefix < r->input ? r->prefix : r->input;
        uint64_t known = im->block_tokens > 0 ? known_anywhere(im, &seen, r, i) : r->prefix;
        if (l->before != NONE) {
            const struct import_row *last = &im->rows[l->before];
            l->turn = links[l->before].turn + 1;
            l->first = links[l->before].first;
            l->prefix = prefix_of(im, last, r);
            ended_ns = links[l->before].ended_ns;
            l->ended_ns = ended_ns > l->ended_ns ? ended_ns : l->ended_ns;
            im->lost.early += ended_ns > r->start_ns;
            im->lost.turns++;
            im->lost.gaps_from_arrivals += last->end_ns == TIME_NEVER_NS;
        }
        im->lost.prefix_tokens += known > l->prefix ? known - l->prefix : 0;
        remember(im, &turns, i);
    }
}

bool import_wanted(const struct trace_import_options *o, int64_t start_ns, size_t first)
{
    double t_s = units_s_from_ns(start_ns);
    struct rng r;
    /* Depends on the session's first row only: a session is drawn as a whole, and independently of
     * the others. */
    rng_init(&r, rng_mix64(o->seed ^ rng_mix64((uint64_t)first)));
    return t_s >= o->from_s && t_s < o->to_s &&
           (o->sample_frac >= 1.0 || rng_uniform(&r) < o->sample_frac);
}

/* Gives each wanted row the longest prefix that an earlier row of any session has. Its source is
 * the first row with it. A block's hash covers all before it. */
static void share_blocks(struct import *im, const struct place *order, struct link *links)
{
    SCOPED(map_fini) struct map first = {0};
    for (size_t k = 0; k < im->n; k++) {
        size_t i = order[k].row;
        const struct import_row *r = &im->rows[i];
        struct link *l = &links[i];
        size_t same = 0;
        for (size_t b = 0; b < r->n_blocks && l->wanted; b++) {
            uint64_t id = hash_bits(im->blocks[r->block + b]);
            size_t has = map_find(&first, id);
            if (has == NONE) {
                map_put(&first, id, i);
            } else if (same == b) {
                same++;
                l->source = has;
            }
        }
        if (l->source != NONE) {
            /* The last block of a prompt may be incomplete. */
            uint64_t most = im->rows[l->source].input;
            uint64_t tokens = (uint64_t)same * im->block_tokens;
            tokens = tokens < most ? tokens : most;
            l->prefix = tokens < r->input ? tokens : r->input;
        }
    }
    im->lost.prefix_tokens = 0;
}

/* Row i of the import as a row of the trace, with its link's time and prefix. */
static struct trace_row row_of(const struct import *im, const struct link *links, size_t i,
                               int64_t zero_ns)
{
    const struct trace_import_options *o = im->options;
    const struct import_row *r = &im->rows[i];
    const struct link *l = &links[i];
    struct trace_row row = {.next = TRACE_NO_ROW,
                            .cls = r->cls,
                            .turn = (uint16_t)l->turn,
                            .after_tool = r->after_tool};
    if (o->cls != NULL) {
        row.cls =
            strcmp(o->cls, "proactive") == 0 ? REQUEST_CLASS_PROACTIVE : REQUEST_CLASS_REACTIVE;
    }
    row.arrival_ns = r->start_ns - zero_ns;
    if (l->before != NONE) {
        /* Without the end of the previous answer, the gap starts at that turn's arrival and
         * includes the time of its answer (counted in gaps_from_arrivals). A turn that was sent
         * before that answer ended follows at once (early). */
        int64_t from = links[l->before].ended_ns;
        row.arrival_ns = r->start_ns > from ? r->start_ns - from : 0;
    } else {
        double t_s = units_s_from_ns(row.arrival_ns) - fmax(0.0, o->from_s);
        row.arrival_ns = o->rate_scale != 1.0 || o->from_s > 0.0
                             ? units_ns_from_s(t_s / o->rate_scale)
                             : row.arrival_ns;
    }
    row.input_tokens = (uint32_t)r->input;
    row.output_tokens = (uint32_t)r->output;
    row.prefix_tokens = (uint32_t)l->prefix;
    row.max_output_tokens = trace_default_limit(row.output_tokens);
    row.session_id = (uint32_t)l->first;
    row.request_id = (uint32_t)i;
    return row;
}

int import_sessions(struct import *im, const char *path, struct trace *out, struct err *e)
{
    const struct trace_import_options *o = im->options;
    OWNED struct place *order = xmalloc((im->n + 1) * sizeof *order);
    OWNED struct link *links = xmalloc((im->n + 1) * sizeof *links);
    for (size_t i = 0; i < im->n; i++) {
        order[i] = (struct place){im->rows[i].start_ns, i};
    }
    qsort(order, im->n, sizeof *order, by_time);
    link_rows(im, order, links);
    int64_t zero_ns = im->rebase && im->n > 0 ? order[0].start_ns : 0;
    SCOPED(trace_builder_fini) struct trace_builder b;
    trace_builder_init(&b);
    size_t before = e->n;
    bool any = im->n == 0;
    bool shares = o->share && im->block_tokens > 0;
    for (size_t i = 0; i < im->n; i++) {
        struct link *l = &links[i];
        l->wanted = import_wanted(o, im->rows[l->first].start_ns - zero_ns, l->first);
        l->source = NONE;
    }
    if (shares) {
        share_blocks(im, order, links);
    }
    for (size_t i = 0; i < im->n; i++) {
        const struct import_row *r = &im->rows[i];
        const struct link *l = &links[i];
        if (!l->wanted) {
            continue;
        }
        any = true;
        if (l->turn > MAX_TURNS) {
            err_add(e, "%s:%u: turn %u of a session; at most %d are taken", path, r->line, l->turn,
                    MAX_TURNS);
            break;
        }
        struct trace_row row = row_of(im, links, i, zero_ns);
        struct trace_extra extra = trace_extra_none();
        /* Users' numbers are above those of sessions; without a user, a session is a client. */
        extra.client_id = r->client > 0 ? (uint32_t)im->n + r->client : row.session_id;
        b.line = r->line;
        trace_builder_add(&b, &row, im->clients ? &extra : NULL);
        if (shares) {
            struct trace_node node = trace_node_none();
            node.prefix_of = l->source != NONE ? (uint32_t)l->source : UINT32_MAX;
            trace_builder_node(&b, &node);
        }
    }
    if (!any) {
        err_add(e, "%s: none of its sessions begins at %g s or later and before %g s%s", path,
                o->from_s, o->to_s, o->sample_frac < 1.0 ? " and is drawn by --sample" : "");
    }
    return e->n == before && trace_build(&b, !shares, path, out, e) == 0 ? 0 : -EINVAL;
}

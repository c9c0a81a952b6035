#include "traces/import.h"

void import_edge_add(struct import_node *node, size_t parent, int64_t gap_ns)
{
    for (uint32_t i = 0; i < node->n_parents; i++) {
        struct trace_parent *edge = &node->parents[i];
        if (edge->request_id == parent) {
            edge->gap_ns = gap_ns > edge->gap_ns ? gap_ns : edge->gap_ns;
            return;
        }
    }
    LIST_ADD(node->parents, node->n_parents, (struct trace_parent){(uint32_t)parent, gap_ns});
}

static size_t same_blocks(const struct import *im, const struct import_row *a,
                          const struct import_row *b)
{
    size_t same = 0;
    while (same < a->n_blocks && same < b->n_blocks &&
           im->blocks[a->block + same] == im->blocks[b->block + same]) {
        same++;
    }
    return same;
}

/* The request of which r is the next turn: it has ended, is not continued yet, and shares the most
 * leading blocks with r. Without blocks it is the last one. NULL if there is none. */
static struct import_sent *continues(const struct import *im, struct import_stream *s,
                                     const struct import_row *r)
{
    struct import_sent *best = NULL;
    size_t most = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct import_sent *x = &s->v[i];
        if (x->continued || x->end_ns > r->start_ns) {
            continue;
        }
        size_t same = same_blocks(im, &im->rows[x->row], r);
        bool further = best == NULL || same > most || (same == most && x->end_ns >= best->end_ns);
        if (further && (same > 0 || r->n_blocks == 0)) {
            best = x;
            most = same;
        }
    }
    return best;
}

const struct import_sent *import_last_before(const struct import_stream *s, int64_t ns)
{
    const struct import_sent *last = NULL;
    for (size_t i = 0; i < s->n; i++) {
        const struct import_sent *x = &s->v[i];
        last = x->end_ns <= ns && (last == NULL || x->end_ns >= last->end_ns) ? x : last;
    }
    return last;
}

int64_t import_place(struct import *im, struct import_stream *s, const struct import_row *r,
                     const struct import_sent *origin, struct import_node *node)
{
    struct import_sent *before = continues(im, s, r);
    const struct import_sent *parent = before != NULL ? before : import_last_before(s, r->start_ns);
    im->lost.overlapping += before == NULL && s->n > 0;
    parent = parent == NULL ? origin : parent;
    if (before != NULL) {
        before->continued = true;
        node->before = before->row;
    } else if (parent != NULL) {
        import_edge_add(node, parent->row, 0);
    }
    im->lost.gaps_from_arrivals += parent != NULL && !parent->end_known;
    return parent != NULL ? parent->end_ns : r->start_ns;
}

void import_stream_add(struct import *im, struct import_stream *s, const struct import_row *r,
                       const struct import_node *node, int64_t end_ns, bool end_known)
{
    LIST_ADD(s->v, s->n, (struct import_sent){im->n, end_ns, end_known, false});
    import_add_node(im, r, node);
}

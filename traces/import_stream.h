/* Requests of one agent in their order, and what each waits for where a source does not say it. */
#pragma once

#include "traces/import.h"

/* A request that later ones of its agent may wait for. */
struct import_sent {
    size_t row;
    int64_t end_ns;
    bool end_known; /* else it is when the request was sent */
    bool continued; /* it has a next turn */
};

struct import_stream {
    struct import_sent *v; /* owned */
    size_t n;
};

/* One edge per parent, the longer of two. */
void import_edge_add(struct import_node *node, size_t parent, int64_t gap_ns);
/* The last request that had ended by then, or NULL. */
const struct import_sent *import_last_before(const struct import_stream *s, int64_t ns);
/* Finds what a request waits for: the turn before, or the last request of the agent, or of the one
 * that started it (`origin`, or NULL). Returns the end of that, or the request's own start. */
int64_t import_place(struct import *im, struct import_stream *s, const struct import_row *r,
                     const struct import_sent *origin, struct import_node *node);
/* Adds the request to the stream and to the rows; takes node->parents. */
void import_stream_add(struct import *im, struct import_stream *s, const struct import_row *r,
                       const struct import_node *node, int64_t end_ns, bool end_known);

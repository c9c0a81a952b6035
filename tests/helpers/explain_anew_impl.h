/* Inside of explain_anew: launches, and the work that several of them are. */
#pragma once

#include "tests/helpers/explain_anew.h"

/* A kernel, or what else a launch did. */
struct piece {
    int64_t begin, end, slow;
    enum explain_cause cause, slowed;
    enum op_kind op;
};

struct begun {
    uint32_t id, first_token, chunk_rows;
    uint64_t work;
    uint8_t device, graph;
    bool runs;
    int64_t begin, lead_end, end, last; /* last: what it has done up to then is in pieces */
    struct piece *pieces;
    size_t n_pieces;
};

/* A work by cause; of compute, what each member's tokens took, and of these what lost KV took. */
struct settled {
    int64_t ns[EXPLAIN_CAUSE_COUNT], own[EXPLAIN_ANEW_MOST], again[EXPLAIN_ANEW_MOST];
};

struct served {
    const struct hwmodel *model;
    const struct begun *begun; /* n launches, in the order in which they began */
    size_t n;
    uint32_t lost_below[EXPLAIN_ANEW_MOST]; /* tokens of a request that were computed before */
};

/* Adds up what a work took that ends now. p: its pass, or one of them. */
void explain_anew_settle(const struct served *of, const struct pass *p, uint64_t work, int64_t end,
                         struct settled *out);
/* Those who shared a pass with member i, by request. */
void explain_anew_charge(int64_t *shared_ns, const struct pass *p, uint32_t i,
                         const struct settled *x);

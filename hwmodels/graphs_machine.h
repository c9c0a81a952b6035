/* The machine on which every switch strategy runs: one compute server, one loader. A strategy steps
 * it from event to event and starts loads; the machine enforces the rules (graphs.h) and records.
 */
#pragma once

#include "hwmodels/graphs.h"

#define GRAPHS_NO_BLOCK UINT32_MAX

struct graphs_machine {
    const struct graphs_instance *g; /* borrowed */
    int64_t now;
    uint32_t position;    /* stream position of the present or next compute */
    uint32_t n_positions; /* N * C */
    bool computing;
    int64_t compute_end; /* while computing */
    uint32_t loading;    /* block, or GRAPHS_NO_BLOCK */
    int64_t load_end;    /* while loading */
    uint64_t switched;   /* bit per block whose G2 is ready */
    struct graphs_result *out;
    size_t capacity; /* of out->intervals; 0: keep no intervals */
};

/* At time 0, all blocks on G1. Clears *out. keep_intervals false makes sweeps cheap. */
void graphs_machine_init(struct graphs_machine *m, const struct graphs_instance *g,
                         struct graphs_result *out, bool keep_intervals);

/* Block of the stream position. */
static inline uint32_t graphs_machine_block(const struct graphs_machine *m, uint32_t position)
{
    return position % m->g->n_blocks;
}

static inline bool graphs_machine_is_switched(const struct graphs_machine *m, uint32_t block)
{
    return (m->switched >> block & 1) != 0;
}

/* Duration of the compute at a position under the graph its block has now. */
int64_t graphs_machine_compute(const struct graphs_machine *m, uint32_t position);

/* True when this load may start now: loader idle, not switched, not computing (or keep_old). */
bool graphs_machine_can_load(const struct graphs_machine *m, uint32_t block);
/* Precondition: graphs_machine_can_load. */
void graphs_machine_load(struct graphs_machine *m, uint32_t block);

/* Starts the next compute if possible, moves to the next end of a compute or a load, and handles
 * it. Returns false, without moving, if nothing runs. */
bool graphs_machine_step(struct graphs_machine *m);

/* Steps until `position` computes are complete. */
void graphs_machine_run_to(struct graphs_machine *m, uint32_t position);

/* Runs to the end of the prefill and of the present load, then loads the blocks that are still on
 * G1, highest first (the order does not matter), and completes *out. */
void graphs_machine_finish(struct graphs_machine *m);

/* Strategies in separate files; graphs.c has them in its table. */
void graphs_progressive_solve(const struct graphs_instance *g, struct graphs_result *out);
void graphs_late_start_solve(const struct graphs_instance *g, struct graphs_result *out);
void graphs_farthest_solve(const struct graphs_instance *g, struct graphs_result *out);
void graphs_exact_solve(const struct graphs_instance *g, struct graphs_result *out);

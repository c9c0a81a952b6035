/* Switching an NPU from its prefill graphs to its decode graphs, as a scheduling problem.
 *
 * An NPU runs static graphs. G1 has the shape that suits prefill, G2 the shape that suits decoding,
 * and they cannot share weights, so keeping both doubles memory. The model is cut into N blocks of
 * consecutive layers; the prompt passes in C chunks. Compute runs chunk 1 on blocks 1..N, then
 * chunk 2 on blocks 1..N, and so on, one at a time. One loader brings in G2, block by block. The
 * aim is the least max(end of prefill, end of the last load). Paper: sd.npu (CoordGen), section 3.2
 * and appendix A, where the problem is shown to be NP-hard.
 *
 * Rules of the machine, the same for every strategy:
 *  - a block computes with the graph it has when its compute starts: p with G1, d with G2 (d is the
 *    whole chunk, G2 run several times);
 *  - single residency (default): a load frees G1 first, so from its start to its end the block
 * cannot compute (compute that reaches it stalls), and a block cannot be loaded while it computes;
 *  - keep_old: G1 stays usable until the load ends, at the price of one more block of memory;
 *  - compute starts as soon as it can; loads start where the strategy says, at a compute boundary
 * or at the end of a load.
 *
 * Times are integers of any one unit. All functions are pure and deterministic.
 */
#pragma once

#include "sim/base/base.h"

#define GRAPHS_MAX_BLOCKS 62      /* switched blocks are bits of a 64-bit word */
#define GRAPHS_MAX_POSITIONS 4096 /* chunks * blocks: sweeps stay near a second */
#define GRAPHS_MAX_TIME                                                                            \
    1000000000000                    /* per block; a sum over all positions stays far below 2^63   \
                                      */
#define GRAPHS_DEFAULT_NODES 2000000 /* node budget of the exact search, about 200 MB at most */

struct graphs_instance {
    uint32_t n_blocks; /* N */
    uint32_t n_chunks; /* C */
    const int64_t *p;  /* borrowed, N values: compute of one chunk with G1 */
    const int64_t *d;  /* borrowed, N values: the same chunk with G2; d >= p */
    const int64_t *s;  /* borrowed, N values: load time of G2 */
    bool keep_old;
    uint64_t max_nodes; /* budget of the exact search; 0: GRAPHS_DEFAULT_NODES */
};

enum graphs_kind { GRAPHS_COMPUTE_G1, GRAPHS_COMPUTE_G2, GRAPHS_LOAD_G2 };

/* One bar of the Gantt chart. Blocks and chunks count from 0. */
struct graphs_interval {
    int64_t start, end;
    uint32_t chunk; /* of a compute; for a load, the chunk compute was in when it started */
    uint32_t block;
    enum graphs_kind kind;
};

enum graphs_label {
    GRAPHS_SIMULATED,    /* simulated strategy */
    GRAPHS_OPTIMAL,      /* proven least total under the rules above */
    GRAPHS_LEFT_SHIFTED, /* proven least total of the schedules whose loads start at boundaries of
                            compute and ends of loads; a later start may do better. The optimum
                            lies between lower_bound and total */
    GRAPHS_UNFINISHED,   /* the budget ran out: the schedule is the best known, not proven; the
                            optimum lies between lower_bound and total */
};

struct graphs_result {
    int64_t total;       /* max(prefill_end, switch_end) */
    int64_t prefill_end; /* end of the last compute */
    int64_t switch_end;  /* end of the last load; 0 without loads */
    int64_t stall;       /* time compute waited for a block that was loading */
    int64_t lower_bound; /* exact search: proven bound on every switching schedule; else total */
    uint32_t memory_peak_blocks; /* block graphs resident at the worst moment */
    uint32_t start;              /* swept strategies: stream position at which loading began */
    uint64_t nodes;              /* exact search: states expanded */
    enum graphs_label label;
    struct graphs_interval
        *intervals; /* owned, in order of start within compute and within loads */
    size_t n_intervals;
};

struct graphs_strategy {
    const char *name;
    const char *what; /* one line */
    /* At most one graph per block is resident (one more with keep_old), and all blocks end on G2.
     * `exact` is optimal over this class; with keep_old only over left-shifted schedules, for which
     * graphs_strategy_title has another name. */
    bool switches;
    /* Fills `out`. Precondition: graphs_instance_check passed. */
    void (*solve)(const struct graphs_instance *g, struct graphs_result *out);
};

/* The printed name of a strategy: its name, or "left-shifted" for `exact` with keep_old. */
const char *graphs_strategy_title(const struct graphs_strategy *st, bool keep_old);

/* All strategies in the order in which they are printed; *n gets their number. */
const struct graphs_strategy *graphs_strategies(size_t *n);
/* Finds a strategy by name, or NULL. */
const struct graphs_strategy *graphs_strategy_find(const char *name);

/* 0, or -EINVAL with one line per violated bound. `where` names the input in the messages. */
int graphs_instance_check(const struct graphs_instance *g, const char *where, struct err *e);

/* Frees the schedule. */
void graphs_result_fini(struct graphs_result *r);

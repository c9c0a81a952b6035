/* sd-npu: the NPU graph system of sd.npu / CoordGen (clauses.md D).
 *
 *   sd-npu.c          parameters, hooks, the request in service: prefill, calibration, decoding
 *   sd_npu_graphs.c   which graph each block holds, and when it is switched
 *   sd_npu_draft.c    how many drafted tokens are verified, what drafting costs, other memory
 */
#pragma once

#include "policies/common/reqq.h"
#include "policies/common/speculate.h"
#include "sim/api/policy.h"

#define SD_MAX_BLOCKS 32

enum sd_param {
    SD_SYSTEM,
    SD_STRATEGY,
    SD_BLOCKS,
    SD_G1,
    SD_G2,
    SD_DECODE,
    SD_SPECULATE,
    SD_DRAFTER,
    SD_LENGTH,
    SD_DRAFT_MS,
    SD_CALIBRATE_MS,
    SD_OVERLAP,
    SD_CALIBRATE_MB,
    SD_KEEP_OLD,
    SD_EAGLE_FORWARDS,
    SD_DRAFT_ON,
};

/* Indices of drafters in the parameter's choices; the caller of the run uses their names. */
#define SD_DRAFTER_EAGLE 5
#define SD_DRAFTER_MODEL 6

enum sd_length { SD_LENGTH_OFFERED, SD_LENGTH_PASS, SD_LENGTH_ADAPTIVE };

/* Versions of block 0 for memory other than NPU graphs. */
enum { SD_CPU_COPY = 3, SD_DRAFT_MODEL, SD_CALIBRATED };

enum sd_strategy {
    SD_PROGRESSIVE,
    SD_SYNC,
    SD_NAIVE_ASYNC,
    SD_KEEP_BOTH,
    SD_UNIFIED_G1,
    SD_UNIFIED_G2,
    SD_LATE_START
};

struct sd_block {
    uint8_t graph;   /* 1 or 2: version in memory; 0: none */
    uint8_t loading; /* version that is being loaded; 0: none */
    uint8_t old;     /* replaced version that is still in memory; 0: none */
};

enum sd_phase { SD_IDLE, SD_PREFILL, SD_WAIT, SD_DECODING };

struct sd {
    uint8_t npu, cpu;
    uint32_t n_blocks;
    struct sd_block block[SD_MAX_BLOCKS];
    struct reqq waiting;
    const struct request *current;
    enum sd_phase phase;
    struct pass *pass;
    uint32_t next_block; /* next block of the pass */
    bool launched;
    int64_t stalled_since_ns; /* since then the next block waits for its graph; 0: it does not */
    bool block_ended;         /* a launch ended since the last schedule call */
    uint32_t chunks_left;     /* chunks of the prompt, including the present one */
    int64_t wait_until_ns;    /* SD_WAIT: calibration or drafting */
    uint32_t draft;           /* tokens drafted for the next verification */
    uint32_t to_draft;        /* of these, passes of the draft model that are still due */
    /* progressive: blocks to compute before the round ends */
    uint32_t round_left;
    struct speculate estimate; /* estimate of acceptance, over all requests */
};

/* Maps the initial graphs, once. */
int sd_graphs_map(struct sched *s, struct sd *d);
/* Starts a prompt, after chunks_left was set. Switches graphs of the last decode back if the
 * strategy needs it. */
void sd_graphs_prefill_begin(struct sched *s, struct sd *d);
/* Call it before the launch of each block of a prefill, for the decisions of progressive switching.
 */
void sd_graphs_before_block(struct sched *s, struct sd *d);
/* Call it when a block of a prefill pass was computed. */
void sd_graphs_block_done(struct sched *s, struct sd *d, uint32_t block);
/* Ends a prompt: loads the graphs that decode needs. */
void sd_graphs_prefill_end(struct sched *s, struct sd *d);
/* Drops graphs that were kept until their successors were loaded. */
void sd_graphs_drop_old(struct sched *s, struct sd *d);
void sd_graphs_ready(struct sched *s, struct resident_key key);
/* The version with which a block can run now in that stage; 0: it must wait. */
uint8_t sd_graphs_version(const struct sched *s, const struct sd *d, uint32_t block, bool prefill);
uint32_t sd_graph_rows(const struct sched *s, uint8_t version);
/* The version for decode on the NPU. */
uint8_t sd_decode_version(const struct sched *s);

/* Drafted tokens of the next verification, limited by the offer, and with the verification's own
 * token by the rest of the request's output limit. */
uint32_t sd_draft_length(struct sched *s, struct sd *d);
/* Time to draft that many tokens; with `passes` including the annotated passes of the draft model.
 */
double sd_draft_ms(struct sched *s, const struct sd *d, uint32_t drafted, bool passes);
/* Maps memory other than NPU graphs. */
int sd_map_extras(struct sched *s);

/* First op of a block; block n_blocks: one past the last op. */
static inline uint32_t sd_block_op(const struct sched *s, const struct sd *d, const struct pass *p,
                                   uint32_t block)
{
    if (block == d->n_blocks) {
        return p->n_ops;
    }
    return (uint32_t)((uint64_t)s->llm->n_layers * block / d->n_blocks) * s->llm->layer.n;
}

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

/* Order of the drafters in the parameter's choices; the run's owner knows them by name. */
#define SD_DRAFTER_EAGLE 5
#define SD_DRAFTER_MODEL 6

enum sd_length { SD_LENGTH_OFFERED, SD_LENGTH_PASS, SD_LENGTH_ADAPTIVE };

/* Versions of block 0 that are no NPU graph: what else is in memory. */
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
    uint8_t loading; /* version on its way, 0: none */
    uint8_t old;     /* version that was replaced and has still to leave memory, 0: none */
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
    uint32_t next_block; /* of the pass */
    bool launched;
    int64_t stalled_since_ns; /* the next block waits for its graph; 0: it does not */
    bool block_ended;         /* a launch ended since the last schedule call */
    uint32_t chunks_left;     /* of the prompt, the one in progress included */
    int64_t wait_until_ns;    /* SD_WAIT: calibration or drafting */
    uint32_t draft;           /* tokens drafted for the next verification */
    uint32_t to_draft;        /* of them, passes of the draft model to come */
    /* progressive: blocks to compute before the round ends */
    uint32_t round_left;
    struct speculate estimate; /* of acceptance, over all requests */
};

/* Maps the graphs that are in memory before the first request. Once. */
int sd_graphs_map(struct sched *s, struct sd *d);
/* A prompt starts: chunks_left is set. Graphs of the last decode go back where the strategy needs
 * it. */
void sd_graphs_prefill_begin(struct sched *s, struct sd *d);
/* Called before each block of a prefill is launched: progressive switching takes its decisions. */
void sd_graphs_before_block(struct sched *s, struct sd *d);
/* A block of a prefill pass has been computed. */
void sd_graphs_block_done(struct sched *s, struct sd *d, uint32_t block);
/* The prompt is through: load what decoding still needs. */
void sd_graphs_prefill_end(struct sched *s, struct sd *d);
/* Drops graphs that were kept until their successors had come. */
void sd_graphs_drop_old(struct sched *s, struct sd *d);
void sd_graphs_ready(struct sched *s, struct resident_key key);
/* Version a block can run with now in that stage; 0: it must wait. */
uint8_t sd_graphs_version(const struct sched *s, const struct sd *d, uint32_t block, bool prefill);
uint32_t sd_graph_rows(const struct sched *s, uint8_t version);
/* The version that decodes on the NPU. */
uint8_t sd_decode_version(const struct sched *s);

/* Drafted tokens of the next verification: at most what is offered, and with the verification's own
 * token what the request may still produce. */
uint32_t sd_draft_length(struct sched *s, struct sd *d);
/* Time that drafting so many tokens takes, apart from passes; `passes`: and that of the draft
 * model's, by annotation. */
double sd_draft_ms(struct sched *s, const struct sd *d, uint32_t drafted, bool passes);
/* Maps the memory other than the NPU's graphs. */
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

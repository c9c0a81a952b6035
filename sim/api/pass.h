/* Segments, passes and launches: how work reaches a device.
 *
 *   segment  a request's token range in one role
 *   pass     segments that cross the model together once, with a cursor over its ops
 *   launch   a span of ops of a pass on one device, or a share of one op: of its rows, or of the
 *            columns of its weights
 *
 * The op sequence of a pass (agent-xpu-v2 4.2): for every layer the model's ops (llm.layer),
 * then once HEAD. A decode pass with one sequence may be formed with
 * fused layers: one LAYER op per layer, then HEAD.
 *
 * Rows: token-level ops (QKV, FFN, HEAD) and MHA can be split by rows over devices: each share is
 * its own launch of the same op. The cursor moves to the next op when all rows are done, so an op
 * boundary is a barrier over its shares. Which rows a share holds does not matter to any cost, so
 * only counts are kept. Instead of its rows a token-level op may be split by the columns of its
 * weights: each share has all rows and a part of the outputs.
 *
 * Chunks out of order (llm.npu 3.4): a request may have several live passes, each with a chunk of
 * its prompt (SEGMENT_AHEAD). Each has its own cursor. A launch that holds attention needs the QKV
 * of that layer of all chunks before (eq. 2); one that holds the head needs those chunks done;
 * other ops need nothing of them (eq. 3). A launch that comes too early is refused with -EBUSY. The
 * passes are done in the order of their tokens: one that is through before is READY until then.
 *
 * Kernels: a device with chunk_rows > 0 runs a token-level share as static kernels of chunk_rows
 * rows, the last one padded; otherwise one dynamic kernel. MHA is one kernel per launch and op.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/api/device.h"
#include "sim/api/request.h"

enum segment_role {
    SEGMENT_PREFILL, /* n_tokens of the prompt (or of prompt + generated after KV loss) */
    SEGMENT_DECODE,  /* one token */
    SEGMENT_VERIFY,  /* 1 + draft tokens; how many are accepted is hidden until pass_done */
    SEGMENT_DRAFT,   /* tokens that the draft model has not read, and one more token drafted */
    /* Prefill of the tokens after those of the request's live passes, which are passes of its
     * prompt alone, as this one is. Only asked for: the formed segment is SEGMENT_PREFILL. */
    SEGMENT_AHEAD
};

struct segment {
    const struct request *request;
    enum segment_role role;
    uint32_t first_token;    /* position in the sequence of its first row; set by the core */
    uint32_t n_tokens;       /* rows; of a draft set by the core */
    uint32_t emitted_tokens; /* set by the core before pass_done: output tokens it produced */
    int64_t gap_ns; /* set by the core before pass_done: duration from its token before, or its
                       arrival, to them; 0 when none */
};

/* The part of a pass that its cost depends on; every layer of a pass costs the same. */
struct work_shape {
    uint32_t rows;               /* token rows in all segments */
    uint32_t logit_rows;         /* rows that need the LM head */
    uint32_t sequences;          /* segments */
    uint32_t prefill_rows;       /* rows of prefill segments; 0 in a pure decode pass */
    uint64_t attn_pairs;         /* (query, key) pairs, causal: sum over rows of position + 1 */
    uint64_t kv_read_tokens;     /* keys read: sum over segments of last position + 1 */
    uint32_t max_context_tokens; /* longest last position + 1 */
    uint32_t model;              /* that all its requests ask for */
    uint64_t far_pairs;          /* of attn_pairs: farther apart than the model's sliding window */
    uint64_t far_keys; /* of kv_read_tokens: behind the window of every row of a segment */
};
#define WORK_SHAPE_FIELDS(X, W)                                                                    \
    X(rows), X(logit_rows), X(sequences), X(prefill_rows), X(attn_pairs), X(kv_read_tokens),       \
        X(max_context_tokens), X(model), X(far_pairs), X(far_keys)

/* Adds a segment of n > 0 rows behind `first` tokens; its logit and prefill rows are the caller's.
 * Row i of them, from 0 on, sees first + i + 1 keys, and in a layer with a sliding window the last
 * `window` of these. Window 0: no layer has one. O(1). */
static inline void work_shape_add(struct work_shape *w, uint32_t window, uint64_t first, uint64_t n)
{
    uint64_t end = first + n;
    w->rows += (uint32_t)n;
    w->sequences++;
    w->attn_pairs += n * first + n * (n + 1) / 2;
    w->kv_read_tokens += end;
    w->max_context_tokens = end > w->max_context_tokens ? (uint32_t)end : w->max_context_tokens;
    if (window > 0 && end > window) {
        uint64_t most = end - window; /* far keys of the last row */
        uint64_t rows = n < most ? n : most;
        w->far_pairs += rows * most - rows * (rows - 1) / 2;
        w->far_keys += most >= n ? most - n + 1 : 0;
    }
}

enum pass_state {
    PASS_STATE_READY,   /* formed, or stopped at a boundary: nothing of it is on a device */
    PASS_STATE_RUNNING, /* at least one launch is queued or running */
    PASS_STATE_DONE,    /* its tokens are out; dies after this instant's schedule */
    PASS_STATE_CANCELLED
};

struct pass {
    uint32_t id; /* from 1, in order of forming */
    enum pass_state state;
    const struct segment *segments;
    uint32_t n_segments;
    struct work_shape shape;
    bool has_reactive;        /* some segment's request is reactive */
    bool fused_layers;        /* one LAYER op instead of the model's ops of a layer */
    uint32_t n_ops;           /* ops in all, HEAD included where logit_rows > 0 */
    uint32_t op;              /* cursor: ops before it are complete; n_ops when all are */
    uint32_t rows_todo;       /* rows of op `op` that no launch holds and that are not done */
    uint32_t rows_active;     /* rows of op `op` held by launches */
    uint32_t last_op_devices; /* bit set of the devices that ran the previous op */
    uint32_t n_launches;      /* live launches */
    void *policy_data;        /* the pass_spec's value; the core never reads it */
    struct layer_ops layer;   /* the model's, or LAYER when fused */
    bool overlaps; /* other live passes have tokens of its prompt, or had (SEGMENT_AHEAD) */
    uint64_t core; /* of no use to a policy */
};
/* Members that are reported whenever one of them has changed, and those reported once. */
#define PASS_CHANGED_FIELDS(X, W)                                                                  \
    W(state, words_pass_states), X(op), X(rows_todo), X(rows_active), X(last_op_devices),          \
        X(n_launches)
#define PASS_FORMED_FIELDS(X, W) X(n_ops)

/* Kind and layer of op number `op`. */
static inline enum op_kind pass_op_kind(const struct pass *p, uint32_t op)
{
    if (op + 1 == p->n_ops && p->shape.logit_rows > 0) {
        return OP_HEAD;
    }
    return p->layer.kind[op % p->layer.n];
}

static inline uint32_t pass_op_layer(const struct pass *p, uint32_t op)
{
    return op / p->layer.n;
}

/* Rows that op number `op` processes. */
static inline uint32_t pass_op_rows(const struct pass *p, uint32_t op)
{
    return pass_op_kind(p, op) == OP_HEAD ? p->shape.logit_rows : p->shape.rows;
}

/* Where a launch may be stopped by a preemption. */
enum yield_point {
    YIELD_KERNEL, /* after any kernel */
    YIELD_OP,     /* after any op */
    YIELD_LAYER,  /* after the last op of a layer */
    YIELD_PASS    /* only at the end of the launch */
};

enum launch_state { LAUNCH_STATE_QUEUED, LAUNCH_STATE_RUNNING, LAUNCH_STATE_ENDED };

enum launch_outcome {
    LAUNCH_OUTCOME_DONE,      /* all of its span */
    LAUNCH_OUTCOME_YIELDED,   /* stopped at a yield point; the rest is back in the pass */
    LAUNCH_OUTCOME_WITHDRAWN, /* taken out of the device queue before it started */
    LAUNCH_OUTCOME_RESET      /* killed; the running kernel's work is lost */
};

struct launch {
    uint32_t id; /* from 1 */
    struct pass *pass;
    uint8_t device;
    uint8_t graph; /* version of a numbered graph; 0: the device's own */
    enum yield_point yield;
    uint32_t op_begin;   /* first op */
    uint32_t op_end;     /* one past the last op */
    uint32_t rows;       /* rows of the first op it holds; later ops always run whole */
    uint32_t chunk_rows; /* static kernel size, 0 = dynamic */
    enum launch_state state;
    enum launch_outcome outcome; /* valid when ended */
    bool stop_requested;
    int64_t submit_ns;    /* when launched */
    int64_t start_ns;     /* when the device began it */
    int64_t end_ns;       /* when it ended */
    uint32_t graph_block; /* with graph > 0 */
    uint32_t inflight;    /* kernels in flight, >= 1 */
    uint64_t core;        /* of no use to a policy */
    uint32_t columns;     /* its part of the op's weights, of LAUNCH_COLUMNS; 0: all */
};
#define LAUNCH_CHANGED_FIELDS(X, W) W(state, words_launch_states), X(stop_requested), X(start_ns)
#define LAUNCH_MADE_FIELDS(X, W) X(op_begin), X(op_end), X(rows)

/* ---- what a policy asks for (sched_pass_form, sched_launch) ---- */

struct pass_spec {
    const struct segment *segments; /* request, role, n_tokens are read; copied */
    uint32_t n_segments;
    bool fused_layers; /* only with one decode segment */
    void *policy_data;
};

/* A range of a pass's ops for a device. sched_launch_rest fills it with the rest of a pass, as the
 * device runs it by default; a policy changes members. No value means "the usual": every member is
 * what the launch will have. */
struct launch_spec {
    struct pass *pass;
    uint8_t device;
    uint32_t n_ops; /* ops from the cursor on, >= 1 */
    uint32_t rows;  /* of the cursor's op, >= 1. A share that leaves rows over needs n_ops = 1 */
    enum yield_point yield;
    uint32_t chunk_rows;  /* rows of a static kernel; 0: one dynamic kernel where the device can */
    uint8_t graph;        /* version of a numbered graph; 0: the device's own, always there */
    uint32_t graph_block; /* with graph > 0: resident (GRAPH_BLOCK, graph_block, graph) is needed */
    uint32_t inflight;    /* kernels handed to the device ahead, the running one included; >= 1.
                             A stop lets them finish unless the device can take them back
                             (XSched levels 1 and 2, clauses.md E.4) */
    /* A part of the op's weights (output columns), of LAUNCH_COLUMNS; 0: all of them. Needs n_ops =
     * 1, all rows, a token-level op, and a yield point other than a kernel's end. The launch does
     * that part of the op's work, and moves its activations whole. The rest is launched in the same
     * way, on any device; until then rows_todo says all rows. */
    uint32_t columns;
};
#define LAUNCH_COLUMNS 1024u
/* Its members other than pass and device, in the order of the decision log: what the log calls
 * each, and the words of an enum (sim/base/words.h). */
#define LAUNCH_SPEC_FIELDS(X)                                                                      \
    X(n_ops, ops, NULL), X(rows, rows, NULL), X(yield, yield, words_yields),                       \
        X(chunk_rows, chunk, NULL), X(graph, graph, NULL), X(graph_block, block, NULL),            \
        X(inflight, inflight, NULL), X(columns, columns, NULL)

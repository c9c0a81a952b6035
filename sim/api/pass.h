/* Segments, passes and launches: how work reaches a device.
 *
 *   segment  a request's token range in one role
 *   pass     segments that go through the model together once, with a cursor over its ops
 *   launch   a span of ops of a pass on one device, or a share of one op: of its rows, or of the
 *            columns of its weights
 *
 * The ops of a pass (agent-xpu-v2 4.2): the model's ops (llm.layer) for every layer, then HEAD. A
 * decode pass of one sequence may have fused layers: one LAYER op per layer, then HEAD.
 *
 * Splitting: several launches can share the rows of an op (QKV, MHA, FFN, HEAD). The cursor moves
 * to the next op when all rows are done, so an op boundary is a barrier over its shares. No cost
 * depends on which rows a share has, so a launch has only their number. A token-level op (QKV, FFN,
 * HEAD) can be split by the columns of its weights instead: each share has all rows and a part of
 * the outputs.
 *
 * Chunks out of order (llm.npu 3.4): a request may have several live passes, each with a chunk of
 * its prompt (SEGMENT_AHEAD). Each has its own cursor. A launch that contains attention needs the
 * QKV of that layer done for all earlier chunks (eq. 2). A launch that contains the head needs the
 * earlier chunks done. Other ops do not depend on them (eq. 3). A launch that comes too early is
 * refused with -EBUSY. Passes become DONE in the order of their tokens, and are READY while they
 * wait for that.
 *
 * Kernels: a device with chunk_rows > 0 runs token-level ops as static kernels of chunk_rows rows,
 * the last one padded. Other devices run one dynamic kernel. MHA is one kernel a launch and layer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/api/device.h"
#include "sim/api/request.h"

enum segment_role {
    SEGMENT_PREFILL, /* n_tokens of the prompt (after KV loss, of prompt + generated) */
    SEGMENT_DECODE,  /* one token */
    SEGMENT_VERIFY,  /* 1 + draft tokens; how many are accepted is hidden until pass_done */
    SEGMENT_DRAFT, /* tokens that the draft model has not processed, and one more that it drafts */
    /* Prefill of the prompt tokens behind those of the request's live passes. All these passes have
     * no other segment. Only in pass_spec: the formed segment is SEGMENT_PREFILL. */
    SEGMENT_AHEAD
};

struct segment {
    const struct request *request;
    enum segment_role role;
    uint32_t first_token;    /* position in the sequence of its first row; set by the core */
    uint32_t n_tokens;       /* rows; the core sets it for a draft */
    uint32_t emitted_tokens; /* output tokens that it produced; set by the core before pass_done */
    int64_t gap_ns; /* time from its previous token, or its arrival, to these; 0 if none; set by the
                       core before pass_done */
};

/* The properties of a pass that determine its cost. Every layer costs the same. */
struct work_shape {
    uint32_t rows;               /* token rows in all segments */
    uint32_t logit_rows;         /* rows that need the LM head */
    uint32_t sequences;          /* segments */
    uint32_t prefill_rows;       /* rows of prefill segments; 0 in a pure decode pass */
    uint64_t attn_pairs;         /* (query, key) pairs, causal: sum over rows of position + 1 */
    uint64_t kv_read_tokens;     /* keys read: sum over segments of last position + 1 */
    uint32_t max_context_tokens; /* longest last position + 1 */
    uint32_t model;              /* index of the model that its requests use */
    uint64_t far_pairs; /* attn_pairs that are farther apart than the model's sliding window */
    uint64_t far_keys;  /* kv_read_tokens outside the window of every row of their segment */
};
#define WORK_SHAPE_FIELDS(X, W)                                                                    \
    X(rows), X(logit_rows), X(sequences), X(prefill_rows), X(attn_pairs), X(kv_read_tokens),       \
        X(max_context_tokens), X(model), X(far_pairs), X(far_keys)

/* Adds a segment of n > 0 rows behind `first` tokens. The caller counts logit_rows and
 * prefill_rows. Row i, from 0, sees first + i + 1 keys; in a layer with a sliding window it sees
 * the last `window` of them. Window 0: no layer has one. O(1). */
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
    PASS_STATE_READY,   /* formed, or stopped at a boundary; no launch is queued or running */
    PASS_STATE_RUNNING, /* at least one launch is queued or running */
    PASS_STATE_DONE,    /* its tokens are available; freed after this instant's schedule */
    PASS_STATE_CANCELLED
};

struct pass {
    uint32_t id; /* from 1, in the order of sched_pass_form */
    enum pass_state state;
    const struct segment *segments;
    uint32_t n_segments;
    struct work_shape shape;
    bool has_reactive;        /* some segment's request is reactive */
    bool fused_layers;        /* one LAYER op instead of the model's ops of a layer */
    uint32_t n_ops;           /* number of ops, including HEAD if logit_rows > 0 */
    uint32_t op;              /* cursor: all ops before it are complete; n_ops at the end */
    uint32_t rows_todo;       /* rows of op `op` that are neither done nor in a launch */
    uint32_t rows_active;     /* rows of op `op` in launches */
    uint32_t last_op_devices; /* bit set of the devices that ran the previous op */
    uint32_t n_launches;      /* live launches */
    void *policy_data;        /* copied from pass_spec; the core never reads it */
    struct layer_ops layer;   /* the model's, or LAYER when fused */
    bool overlaps; /* other passes of its request are or were live with it (SEGMENT_AHEAD) */
    uint64_t core; /* of no use to a policy */
};
/* Members that are reported whenever one of them has changed, and members reported once. */
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
    LAUNCH_OUTCOME_DONE,      /* all its ops are complete */
    LAUNCH_OUTCOME_YIELDED,   /* stopped at a yield point; the rest is back in the pass */
    LAUNCH_OUTCOME_WITHDRAWN, /* taken out of the device queue before it started */
    LAUNCH_OUTCOME_RESET      /* killed; the running kernel's work is lost */
};

struct launch {
    uint32_t id; /* from 1 */
    struct pass *pass;
    uint8_t device;
    uint8_t graph; /* version of a numbered graph; 0: the device's own kernels */
    enum yield_point yield;
    uint32_t op_begin;   /* first op */
    uint32_t op_end;     /* one past the last op */
    uint32_t rows;       /* rows of the first op; later ops always run whole */
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
    uint32_t columns;     /* share of the op's weights, in units of 1 / LAUNCH_COLUMNS; 0: all */
};
#define LAUNCH_CHANGED_FIELDS(X, W) W(state, words_launch_states), X(stop_requested), X(start_ns)
#define LAUNCH_MADE_FIELDS(X, W) X(op_begin), X(op_end), X(rows)

/* ---- arguments of sched_pass_form and sched_launch ---- */

struct pass_spec {
    const struct segment *segments; /* copied; only request, role and n_tokens are read */
    uint32_t n_segments;
    bool fused_layers; /* only with one decode segment */
    void *policy_data;
};

/* A range of a pass's ops for a device. sched_launch_rest fills it with all remaining ops and the
 * device's defaults; a policy then changes members. No member has a value that means "default". */
struct launch_spec {
    struct pass *pass;
    uint8_t device;
    uint32_t n_ops; /* ops from the cursor on, >= 1 */
    uint32_t rows;  /* rows of the op at the cursor, >= 1. Fewer than rows_todo require n_ops = 1 */
    enum yield_point yield;
    uint32_t chunk_rows; /* rows of a static kernel; 0: one dynamic kernel, if the device can */
    uint8_t graph; /* version of a numbered graph; 0: the device's own kernels, always resident */
    uint32_t graph_block; /* with graph > 0: the resident (GRAPH_BLOCK, graph_block, graph) must be
                             READY */
    uint32_t inflight; /* kernels in the device's queue, the running one included; >= 1. They finish
                          before a stop, unless the device can withdraw them (XSched levels 1 and 2,
                          clauses.md E.4) */
    /* A share of the op's weights (output columns), in units of 1 / LAUNCH_COLUMNS; 0: all.
     * Requires n_ops = 1, all rows, a token-level op, and a yield point other than YIELD_KERNEL.
     * The launch does that share of the op's work, but moves all its activations. Other launches,
     * on any device, must do the remaining shares; until then rows_todo is all rows. */
    uint32_t columns;
};
#define LAUNCH_COLUMNS 1024u
/* Its members other than pass and device, in the order of the decision log. Columns: member, name
 * in the log, and the words of an enum (sim/base/words.h). */
#define LAUNCH_SPEC_FIELDS(X)                                                                      \
    X(n_ops, ops, NULL), X(rows, rows, NULL), X(yield, yield, words_yields),                       \
        X(chunk_rows, chunk, NULL), X(graph, graph, NULL), X(graph_block, block, NULL),            \
        X(inflight, inflight, NULL), X(columns, columns, NULL)

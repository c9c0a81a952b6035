/* Requests as a policy sees them.
 *
 * A request has everything that a real scheduler could know. Hidden facts (true output length,
 * later turns, gaps, future arrivals) are in sim/core, and no pointer leads there. A policy may
 * write only `own`. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum request_class {
    REQUEST_CLASS_REACTIVE = 0,  /* a user waits for it */
    REQUEST_CLASS_PROACTIVE = 1, /* background */
    REQUEST_CLASS_COUNT
};

enum request_state {
    REQUEST_STATE_QUEUED,   /* arrived, prompt not fully in the KV cache */
    REQUEST_STATE_DECODE,   /* every known token but the last is in the KV cache */
    REQUEST_STATE_FINISHED, /* last token produced; freed after this instant's schedule */
    REQUEST_STATE_SHED      /* dropped by the policy, or cancelled by its user */
};

struct pass;

struct request {
    uint32_t id;         /* unique, dense, in trace order */
    uint32_t session_id; /* shared by all turns of one conversation */
    uint32_t turn;       /* from 0 */
    uint32_t client_id;
    enum request_class cls;
    int32_t priority; /* from the trace; lower is more urgent; 0 where the trace has none */
    int64_t arrival_ns;
    uint32_t input_tokens;
    uint32_t max_output_tokens;      /* the user's limit; >= the hidden output length */
    int64_t ttft_slo_ns, tbt_slo_ns; /* TIME_NEVER_NS: none */
    int64_t deadline_ns;             /* instant, TIME_NEVER_NS: none */

    /* Progress, kept by the core. */
    enum request_state state;
    uint32_t reused_tokens; /* prompt tokens found in the KV cache at first service; until then what
                               a lookup would find now (prompts may share prefixes) */
    uint32_t kv_tokens;     /* tokens whose KV is resident (reserved ones of a pass excluded) */
    uint32_t generated_tokens; /* output tokens produced */
    bool kv_swapped;           /* KV is on flash: move it back before forming a pass */
    uint32_t preemptions;      /* times it was stopped or evicted */
    int64_t first_service_ns;  /* start of its first kernel, or TIME_NEVER_NS */
    int64_t first_token_ns;    /* or TIME_NEVER_NS */
    int64_t last_token_ns;     /* or TIME_NEVER_NS */
    const struct pass *pass;   /* its live pass, or NULL; with SEGMENT_AHEAD the first of them */
    bool calls_tool; /* once FINISHED: its output ends in a tool call, whose result is in the
                        session's next turn */

    /* The policy's part: policy_ops.request_state_size_bytes bytes, zeroed at arrival, which the
     * core never reads; NULL when that is 0. */
    void *own;

    /* A small number, unique among live requests: an index for tables of live requests. */
    uint32_t slot;

    /* Its place in its job, as a client can state it when it sends the request. Later requests of
     * the job are hidden. */
    uint32_t job_id;  /* requests of one graph share it; without a graph those of a session */
    uint32_t depth;   /* requests before it on the longest path of its job; without a graph: turn */
    uint32_t waiters; /* agents that wait for its session's answer: 0 none; 1 the agent that started
                         this subagent; 2 also the agent that waits for that one */
    bool background;  /* its job may complete without it: nobody waits for it */
    uint32_t model;   /* index in sched.models; a pass has requests of one model */
    uint64_t core;    /* of no use to a policy */

    uint64_t kv_state_tokens; /* KV space that its recurrent states will take with its next rows, in
                                 tokens of whole blocks. 0: allocated, or the model has none */
};
/* Members that are reported at arrival, and members reported whenever one of them has changed. */
#define REQUEST_ARRIVED_FIELDS(X, W)                                                               \
    X(id), X(session_id), X(turn), X(client_id), W(cls, words_classes), X(priority),               \
        X(arrival_ns), X(input_tokens), X(max_output_tokens), X(ttft_slo_ns), X(tbt_slo_ns),       \
        X(deadline_ns), X(reused_tokens), X(kv_tokens), X(kv_swapped), X(job_id), X(depth),        \
        X(waiters), X(background), X(model), X(kv_state_tokens)
#define REQUEST_CHANGED_FIELDS(X, W)                                                               \
    W(state, words_request_states), X(kv_tokens), X(generated_tokens), X(pass),                    \
        X(first_service_ns), X(first_token_ns), X(last_token_ns), X(preemptions), X(kv_swapped),   \
        X(calls_tool), X(kv_state_tokens)

/* Length of the prefill: prompt, or after KV loss prompt + generated. */
static inline uint32_t request_prefill_target(const struct request *r)
{
    return r->input_tokens + r->generated_tokens;
}

/* 0 once the request decodes. While queued, at least 1. */
static inline uint32_t request_prefill_left(const struct request *r)
{
    return r->state == REQUEST_STATE_QUEUED ? request_prefill_target(r) - r->kv_tokens : 0;
}

/* Sequence length so far: prompt plus generated (the "length" of eviction rules, clauses.md B.7).
 */
static inline uint32_t request_length(const struct request *r)
{
    return r->input_tokens + r->generated_tokens;
}

/* Small runs with round numbers: a toy machine, a toy model, a few requests, and the times of all
 * events. Expectations can then be computed by hand.
 *
 * Toy kernel time: fixed + per_row * padded_rows; DDR bytes: bytes_per_s * that time. */
#pragma once

#include "sim/engine/sim.h"

/* For tables of requests and instants. */
#define RT REQUEST_CLASS_REACTIVE
#define BE REQUEST_CLASS_PROACTIVE
#define MS(t) ((int64_t)((t)*1e6 + 0.5))

#define SCENARIO_MAX_REQUESTS 64
#define SCENARIO_MAX_KERNELS 4096

struct toy_cost {
    double fixed_ms, per_row_ms; /* of one kernel */
    double gb_per_s;             /* isolated DDR demand while bytes move */
};

struct scenario_request {
    enum request_class cls;
    double arrival_s; /* for turn > 0: gap after the previous response */
    uint32_t input_tokens, output_tokens;
    uint32_t session_id; /* 0: a session of its own */
    uint32_t prefix_tokens;
};

struct scenario_record {
    int64_t arrival_ns, start_ns, first_token_ns, finish_ns;
    uint32_t generated, preemptions, tokens_n;
    int64_t token_ns[64]; /* first 64 tokens */
    enum request_state state;
};

struct scenario_kernel {
    uint32_t pass, request; /* first segment's */
    uint8_t device;
    enum op_kind op;
    uint32_t layer, rows;
    int64_t begin_ns, end_ns;
};

struct scenario {
    struct machine machine;
    struct llm llm;
    struct toy_cost cost[MACHINE_MAX_DEVICES][OP_KIND_COUNT];
    double attention_ms_per_pair[MACHINE_MAX_DEVICES]; /* added to MHA: per (query, key) pair */
    double compute_only_frac;   /* last share of a toy kernel's time, without traffic; [0, 1) */
    double ridge_flop_per_byte; /* toy kernels have intensity 2: memory-bound above it; default 1 */
    struct hwmodel model;
    struct trace trace;
    struct machine_event events[8]; /* n_events of them */
    uint32_t n_events;
    bool gaps_are_tools; /* later turns follow a tool call, not a user */
    struct sim_setup setup;
    struct policy_params params;
    const struct policy_ops *confined; /* the policy in its own process; NULL: none */
    struct sim_result result;
    struct observer observer;
    struct scenario_record records[SCENARIO_MAX_REQUESTS];
    int (*run)(const struct sim_setup *setup, struct sim_result *result); /* NULL: sim_run */
    double took_s; /* real time of the last run */
    struct scenario_kernel kernels[SCENARIO_MAX_KERNELS];
    uint32_t n_kernels;
};

/* A machine with NPU (chunk 256, static attention), iGPU (dynamic) and CPU, and 1 TB of memory. The
 * model has one layer. There are no host costs; the DDR has 100 GB/s, kappa 1, and no contention
 * ("none"). Every kernel takes 1 ns. */
void scenario_init(struct scenario *sc);
void scenario_fini(struct scenario *sc);
/* Sets the cost of an op on a device; device < 0: on all. */
void scenario_cost(struct scenario *sc, int device, enum op_kind op, double fixed_ms,
                   double per_row_ms, double gb_per_s);
/* Sets the parameters of the policy to its defaults, then the given "key=value,..." list. */
void scenario_policy(struct scenario *sc, const struct policy_ops *ops, const char *params);
/* Makes the trace, without a run: first turns in arrival order, then later turns, with linked
 * sessions. Request ids are positions in the given list. */
void scenario_trace(struct scenario *sc, const struct scenario_request *requests, uint32_t n);
/* Runs the scenario. kernels: record every kernel (no collapsing). Returns result.status. */
int scenario_run(struct scenario *sc, const struct scenario_request *requests, uint32_t n,
                 bool kernels);
/* Runs it again on its present trace and set-up. */
int scenario_again(struct scenario *sc);

enum { NPU = 0, IGPU = 1, CPU = 2 };

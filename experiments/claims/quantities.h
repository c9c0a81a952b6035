/* Named quantities, the variables in expressions of claims. Each has one value per replication.
 *
 *   {"run": {policy, workload, [soc], [llm], [set: ["path=value"]]}}
 *       a simulation; its metrics are NAME:metric.name in expressions
 *   {"sustained": {run as above with {rate} in the workload, rates: [..], metric, at_most}}
 *       the highest rate at which the metric stays at or below the limit: rates are run in rising
 *       order up to the first one above it, with linear interpolation of the crossing. NaN if
 *       already the first rate is above it, or not even the last one
 *   {"kernel": {device, op, field, [prefill_tokens], [prompts], [sequences], [context_tokens],
 *               [causal], [soc], [llm], [set]}}
 *       cost of one layer's op (QKV, MHA, FFN, HEAD, LAYER, or SUM of the first three) for a batch
 *       of `prompts` prefill chunks of prefill_tokens rows and `sequences` decode rows, each over
 *       context_tokens keys. Fields: time_ms, longest_ms (one kernel of it), flop, bytes,
 * tflop_per_s, watts
 *   {"corun": {kernel: {device, op, batch as above}, beside: {the same}, [field], [soc], [llm],
 *              [set]}}
 *       field slowdown (the default): time of `kernel` while `beside` runs continuously on its
 *       device, over its isolated time. Others: isolated_ms, shared_ms; isolated_gb_per_s and
 *       shared_gb_per_s, bandwidth of `kernel`
 *   {"machine": {field, [soc], [llm], [set]}}
 *       DEVICE.decode_watts, DEVICE.prefill_watts, idle_watts (of the platform), compile_watts,
 * util_prefill_frac, util_decode_frac (weights of igpu.weighted_util_frac)
 *   {"acceptance": {dataset, model, method, [ours]}}
 *       mean accepted tokens of 5,000 simulated verifications (hwmodels/speculation.h)
 *   {"amortized": {model, system}}
 *       ms per output token in the calibrated account (hwmodels/speculation_cost.h)
 *   {"verification": {drafted_tokens}}
 *       ms per drafted token of a graph of the draft's length (the line through Figure 6)
 *   {"graphs": {p, d, s, chunks, strategy}}
 *       total of one switching strategy (hwmodels/graphs.h)
 *   {"lengths": {dataset, column: input or output, quantile}}
 *       tokens at this quantile of a data set's requests
 *   {"drafts": {dataset, model, method, [ours], from, below}}
 *       percent with from <= length < below of 5,000 drafts (published, SPECULATION_EMPIRICAL)
 *   {"texts": {file, drafter: lookup or suffix, field, history: 0 or 1}}
 *       drafts on token texts (hwmodels/drafters.h): drafted or accepted tokens per verification;
 *       missing, synonym, redundant: percent of the verifications that ended at a wrong token */
#pragma once

#include <cjson/cJSON.h>

#include "experiments/claims/setup.h"
#include "experiments/run/study.h"
#include "sim/base/json.h"

#define QUANTITIES_MACHINE_TRACES 2 /* traces on a drawn machine */

struct quantities_options {
    uint32_t replications;
    uint64_t seed;
    /* Number of machines to draw within the known ranges (compare/machines.h): replication k has
     * machine k / QUANTITIES_MACHINE_TRACES, and the trace of replication k %
     * QUANTITIES_MACHINE_TRACES. 0: the file's machine, which kernel costs always use. */
    uint32_t machines;
    struct study_how how;
};

struct quantity_cell; /* one run: a configuration, a policy, a workload */

#define QUANTITIES_MAX 512
#define QUANTITIES_MAX_RATES 24

enum quantity_form { QUANTITY_RUN, QUANTITY_SUSTAINED, QUANTITY_FIXED, QUANTITY_ACCEPTANCE };

struct speculation_model;

struct quantity_def {
    const char *name; /* borrowed from the tree */
    uint32_t setup;   /* index of its set-up; 0: as the file states it */
    enum quantity_form form;
    bool used;
    uint32_t cell;                        /* index, for RUN and SUSTAINED */
    const char *metric;                   /* for SUSTAINED */
    double fixed;                         /* value of FIXED */
    struct speculation_model *acceptance; /* of ACCEPTANCE; owned */
};

struct quantities {
    const char *file;       /* borrowed, for messages */
    struct quantity_def *v; /* owned */
    uint32_t n;
    struct quantity_cell **cells; /* owned */
    uint32_t n_cells;
    struct json_obj definitions; /* the object that quantities_read was given */
    struct setup *setups;        /* owned; the first is empty */
    cJSON **copies;              /* owned; definitions used by each set-up */
    uint32_t n_setups;
    uint32_t replications;
    uint64_t seed; /* of the first trace; before a run 1, that of the checked trace */
};

/* Reads the object `quantities` of a file. Runs nothing; loads no configuration. The tree must
 * outlive q. -EINVAL with errors; quantities_fini in every case. */
int quantities_read(struct quantities *q, struct json_obj *o);
void quantities_fini(struct quantities *q);

/* Adds a set-up under which quantities can be used, and returns its index: that of an equal one if
 * it exists, 0 for an empty one. */
uint32_t quantities_setup(struct quantities *q, const struct setup *s);

/* Marks the runs that a name needs. Returns -1 with a message if the quantity or metric is unknown.
 * An expr_names.lookup for a dry evaluation: *out is 1. ctx: struct quantity_scope. */
struct quantity_scope {
    struct quantities *q;
    uint32_t setup;
};
int quantities_mark(void *ctx, const char *name, double *out, char *message);

/* Checks that a name needs no run. Returns 0, or -1 with a message. An expr_names.lookup; *out is
 * 1. ctx: struct quantities, without any marks. */
int quantities_fixed(void *ctx, const char *name, double *out, char *message);

/* Runs the marked runs of all books together, and fills the values. Returns 0, or -EIO with an
 * error for each run that failed. */
int quantities_run(struct quantities *books, uint32_t n_books, const struct quantities_options *o,
                   struct err *e);

/* Value of a name at a replication, after quantities_run. ctx: struct quantity_reader. */
struct quantity_reader {
    const struct quantities *q;
    uint32_t setup, replication;
};
int quantities_value(void *ctx, const char *name, double *out, char *message);

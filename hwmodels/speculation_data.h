/* Published figures of speculative decoding, and models fitted to them.
 *
 * The figures are data (hwmodels/speculation/, see its README.md), never constants of the code:
 * acceptance.csv (Table 4), ablation.csv (Table 3), rejection_causes.csv (Table 2) and
 * constants.json (sourced quantities, the amortized calibration included). */
#pragma once

#include "hwmodels/speculation.h"
#include "sim/base/json.h"

#define SPECULATION_DIR "hwmodels/speculation" /* for datadir_path (sim/base/datadir.h) */
#define SPECULATION_MAX_MODELS 16

enum speculation_method {
    SPECULATION_PLD,
    SPECULATION_SAM,
    SPECULATION_EAGLE,
    SPECULATION_METHODS
};

/* Table 4's "average accepted tokens per verification": without or with the target's own token. */
enum speculation_reading { SPECULATION_EXCLUSIVE, SPECULATION_INCLUSIVE };

/* The columns of Table 3. */
enum speculation_system {
    SPECULATION_NPU,      /* one token per pass */
    SPECULATION_NPU_G,    /* + graph switching */
    SPECULATION_NPU_SD,   /* + SAM drafts */
    SPECULATION_NPU_G_SD, /* both */
    SPECULATION_OURS,     /* + calibration and draft reuse */
    SPECULATION_SYSTEM_COUNT
};

/* Texts are kept. Every published number has a source. */
struct speculation_acceptance {
    const char *dataset, *model, *source;
    enum speculation_method method;
    bool ours;
    double accepted_tokens;
};

struct speculation_ablation {
    const char *model, *source;
    enum speculation_system system;
    double latency_ms; /* published, per output token */
};

struct speculation_cause {
    const char *name, *source;
    double share_frac;
    bool reusable;
};

/* Free values of the amortized account of one model. */
struct speculation_amortized {
    const char *model;
    struct quantity prefill_ms, prefill_graph_ms; /* prefill and switch per output token, without
                                                     and with graph switching */
    struct quantity pass_ms;                      /* one pass of the decode graph */
    struct quantity graph_tokens;                 /* rows of the graph */
    struct quantity sam_tokens_per_step, ours_tokens_per_step; /* tokens emitted per step */
};

struct speculation_constants {
    struct quantity pld_draft_tokens, sam_draft_tokens, sam_tokens_per_match, eagle_accepted_tokens;
    struct quantity retrieval_ms, ours_ms; /* drafting overhead per step */
    struct quantity short_tokens, short_frac, friendly_tokens, unfriendly_frac;
    struct quantity history_cold_frac, history_half_requests;
    struct quantity calibration_ms_per_input_token, calibration_ms_per_output_token;
    struct quantity calibration_memory_mb;
    struct quantity length_1_ms_per_token, long_tokens, length_long_ms_per_token;
    struct quantity cpu_extra_frac_per_token;
};

struct speculation_data {
    struct speculation_acceptance *acceptance; /* kept, like the lists below */
    struct speculation_ablation *ablation;
    struct speculation_cause *causes;
    size_t n_acceptance, n_ablation, n_causes;
    struct speculation_amortized amortized[SPECULATION_MAX_MODELS];
    uint32_t n_amortized;
    struct speculation_constants constants;
};

/* Reads the four files of a folder (datadir_path of SPECULATION_DIR). 0, or -EINVAL with every
 * problem of every file. */
int speculation_data_read(const char *dir, struct speculation_data *out, struct err *e);
/* Reads SPECULATION_DIR once, because a fit needs it thousands of times. NULL with errors. */
const struct speculation_data *speculation_data_shipped(struct err *e);

/* (alpha, h) of a (dataset, model, with or without the paper's techniques) from its PLD and SAM
 * rows, by root finding; then the method's draft length, fixed. EAGLE needs no rows: it accepts a
 * stated mean. Reuse off, history off. -EINVAL where the rows are missing or no parameters produce
 * them. */
int speculation_model_fit(const struct speculation_data *data, const char *dataset,
                          const char *model, enum speculation_method method, bool ours,
                          enum speculation_reading reading, struct speculation_model *out,
                          struct err *e);

/* From options to a ready simulation: SoC, model and simulation settings with overrides, the policy
 * with its parameters, the workload, and the fingerprint that names all of it.
 *
 * One JSON tree {soc, llm, sim} holds the effective configuration. `sim` starts from
 * the table of config_sim.h; --set PATH=VALUE and the short options change the tree before it is
 * read, so that what is printed in results is what was run. */
#pragma once

#include <cjson/cJSON.h>

#include "experiments/run/config_speculation.h"
#include "experiments/shell/options.h"
#include "hwmodels/roofline.h"
#include "hwmodels/soc.h"
#include "sim/base/rng.h"
#include "sim/core/run.h"
#include "sim/metrics/metrics.h"

#define CONFIG_MAX_SETS 192 /* a machine draw sets every uncertain number */
#define CONFIG_PARAMS_BYTES 2048

#define CONFIG_DEFAULT_SOC "core-ultra-5-125h"
#define CONFIG_DEFAULT_LLM "llama-3.2-3b"
#define CONFIG_DEFAULT_WORKLOAD "mixed:reactive_per_min=3,proactive_per_min=6,duration_s=900"

/* The user's options. The struct may be copied: its texts belong to argv or are kept until the
 * command ends (xkeep). */
struct config_options {
    const char *soc;              /* shipped name or path ending in .json */
    const char *llm;              /* the same, for each model of the run (models.h) */
    bool soc_given, llm_given;    /* on the command line */
    const char *trace, *workload; /* at most one; neither: CONFIG_DEFAULT_WORKLOAD */
    const char *machine;          /* events of the machine: path; NULL: those of the workload */
    const char **recordings; /* kept; every --trace, of which `trace` is the first (recordings.h) */
    uint32_t n_recordings;
    bool several;       /* the command replicates, so it accepts several recordings */
    bool resample;      /* sessions of the recording are redrawn for every seed */
    bool resample_jobs; /* jobs are redrawn instead */
    bool no_notes;      /* the command itself chose these values: print no notes on them */
    uint64_t seed;
    bool seed_given;               /* on the command line */
    double ttft_slo_s, tpot_slo_s; /* default targets of requests; 0: none */
    struct metrics_asked asked;
    const char *sets[CONFIG_MAX_SETS]; /* "path=value", in order */
    uint32_t n_sets;
};

enum config_limit { CONFIG_LIMIT_NONE, CONFIG_LIMIT_PACKAGE, CONFIG_LIMIT_THERMAL };

/* Power limits, off by default. */
struct config_power {
    int limit; /* enum config_limit */
    double exponent, min_speed;
    double ambient_c, limit_c, resistance_k_per_w, capacity_j_per_k; /* thermal */
};

/* Graphics load on the iGPU (without one, on the GPU). A reserve is constant. With a reserve of
 * time, the device works at 1 - reserve of its speed. With a reserve of rate, it has 1 - reserve of
 * its flop/s but all of its bandwidth. Policies' estimates include reserves, but not frames. */
struct config_graphics {
    double reserve_time_frac, reserve_rate_frac; /* [0, 0.99] */
    double frames_per_s;                         /* 0: none */
    double frame_s, frame_bytes; /* isolated device time and DDR traffic of one frame */
};

enum config_nonlinear { CONFIG_NONLINEAR_FUSED, CONFIG_NONLINEAR_SPLIT, CONFIG_NONLINEAR_OFFLOAD };

/* The `sim` object. The table of config_sim.h describes each member, its range and its default. */
struct config_sim {
    const char *contention;                     /* borrowed; a model of sim/api/contention.h */
    const char *hwmodel;                        /* borrowed; a kernel-time model of hwmodels */
    struct contention_params contention_params; /* ceilings come from the SoC */
    uint32_t kv_capacity_tokens, kv_block_tokens, weight_copies;
    bool prefix_reuse, collapse, chunk_auto;
    int nonlinear; /* enum config_nonlinear (roofline_unfuse) */
    double horizon_s, stall_s, truth_sigma, hang_frac, hang_factor;
    struct annotation_options annotation;
    struct config_graphics graphics;
    struct config_power power;
    struct config_drafts drafts;
};

/* A model other than the default one. */
struct config_model {
    struct llm llm;
    struct roofline truth;
    struct soc_runtime *own; /* owned; its entries on a drawn machine, or NULL */
};

/* Has pointers into itself: never copy it. */
struct config {
    cJSON *tree; /* owned {soc, llm, sim}, with several models also `models`: the effective
                    configuration */
    struct soc soc;
    struct llm llm;
    struct roofline truth;
    struct config_model *more; /* owned; n_more models after the first */
    struct sim_model *setup_more;
    uint32_t n_more;
    bool weights_at_start; /* with several models */
    uint32_t draft_model;  /* the model named "draft"; 0: none, or the default one */
    const char *models;    /* names of all models, for people */
    struct config_sim sim;
    struct config_speculation speculation;
    const struct contention_ops *contention;
    struct contention_params contention_params;
    struct metrics_asked asked; /* from the options */
    uint64_t hash;              /* of the tree */
    const char *workload;       /* the source of the requests, for people */
};

struct config_policy {
    const struct policy_ops *ops;
    struct policy_params params;
    const char *params_text; /* all values, canonical; kept */
    const char *label;       /* as the user wrote it; borrowed */
};

/* ---- options, shared by every command that simulates ---- */

extern const struct option_table config_option_table; /* of struct config_options */
/* Sets the value of a path, and replaces an earlier one. text, "path=value", is borrowed.
 * Precondition: there is room. */
void config_options_set(struct config_options *o, const char *text);
/* Whether an option says what is run: machine, model, requests, targets, settings or seed. */
bool config_options_say_run(const struct config_options *o);
/* Whether the path of text has a value. */
bool config_options_sets(const struct config_options *o, const char *text);
/* Options that `over` has replace those of base, and settings those of the same path. For the
 * second side of a comparison; over is parsed without defaults. */
void config_options_overlay(struct config_options *base, const struct config_options *over);

/* Fills the words of a command line with all options that results depend on, except the seed:
 * option without dashes, and value. Texts are kept or borrowed. Returns their number. */
struct config_word {
    const char *option, *value;
};
#define CONFIG_MAX_WORDS (CONFIG_MAX_SETS + 8)
uint32_t config_options_words(const struct config_options *o,
                              struct config_word words[CONFIG_MAX_WORDS]);

/* Adds the quantile, share or quality of experience that a metric's name asks for, unless it is
 * computed anyway. Call it before config_load. */
void config_options_metric(struct config_options *o, const char *metric);
struct config_options config_options_default(void);

/* ---- loading ---- */

/* Reads and checks everything but the workload. On failure errors are added and -EINVAL returned;
 * config_fini is needed in both cases. */
int config_load(struct config *c, const struct config_options *o, struct err *e);
/* Like config_load, from config.tree as text, for reports from a store. It reads no file, and the
 * result has neither workload nor drafter. */
int config_of_text(struct config *c, const char *tree, struct err *e);
void config_fini(struct config *c);

/* "NAME" or "NAME:key=value,..."; NAME is a built-in policy or one from outside (plugin.h); spec is
 * borrowed as the label. Returns 0, or -EINVAL with an error that lists the known names or
 * describes the fault of the plug-in. */
int config_policy_parse(struct config_policy *p, const char *spec, struct err *e);

/* Changes of the arrivals. A factor of 0 counts as 1, so {0} is no change. */
struct config_arrivals {
    double rate_scale; /* generated workload: factor on its rates, with the same duration. Trace
                          file: its requests arrive that much faster */
    double compress;   /* > 1: the same requests, with first arrivals and gaps divided by this */
    bool swap_classes; /* every request gets the other class's label (a negative control) */
};
#define CONFIG_AS_WRITTEN ((struct config_arrivals){1.0, 1.0, false})

/* The seed of a replication, equal for all policies. The first has the seed itself, so that `xpusim
 * run --seed` repeats it. The others are 53 bits of a hash, all different. */
static inline uint64_t config_seed(uint64_t seed, uint32_t replication)
{
    /* 2^64 / golden ratio spreads successive numbers. The mixing prevents that replications of
     * successive seeds coincide. */
    const uint64_t golden = 0x9e3779b97f4a7c15;
    return replication == 0 ? seed : rng_seed(rng_mix64(rng_mix64(seed) + golden * replication));
}

/* Reads the replication's recording, or generates the workload, for one seed. Owned by the caller
 * (trace_fini). */
int config_trace(const struct config_options *o, uint64_t seed, struct config_arrivals arrivals,
                 struct trace *out, struct err *e);
/* Like config_trace, but packed if possible (sim/api/trace.h), for callers that only simulate it.
 */
int config_trace_packed(const struct config_options *o, uint64_t seed,
                        struct config_arrivals arrivals, struct trace *out, struct err *e);

/* Checks that config_trace would succeed. Fills *hash unless NULL. Returns 0 or -EINVAL. */
int config_trace_check(const struct config_options *o, uint64_t seed,
                       struct config_arrivals arrivals, uint64_t *hash, struct err *e);
/* Checks before many runs, and only once, what all of them need: the configuration, n policies into
 * p, and the trace of the options' seed. Returns 0, or -EINVAL if the configuration is wrong; other
 * errors are only in e. config_fini is needed in both cases. */
int config_load_all(struct config *c, const struct config_options *o,
                    struct config_arrivals arrivals, const char *const *policies, uint32_t n,
                    struct config_policy *p, struct err *e);

/* Fills a setup, which borrows from c, p and t. The caller adds observers and the decision log. */
void config_setup(const struct config *c, const struct config_policy *p, const struct trace *t,
                  uint64_t seed, struct sim_setup *out);

/* "xpusim 1.0.0 1a2b3c4": version and source revision. */
const char *config_version(void);

/* "xpusim VERSION REVISION config=HASH trace=HASH policy=NAME:params seed=N". The caller
 * frees it. */
char *config_fingerprint(const struct config *c, const struct config_policy *p,
                         const struct trace *t, uint64_t seed);

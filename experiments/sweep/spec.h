/* An experiment as a strict JSON file: the list of its runs.
 *
 *   {"name": "load",
 *    "base": {"workload": "mixed:duration_s=60", "sim.contention": "max-min"},
 *    "axes": {"policy": ["fcfs", "agent-xpu-v2:b_rf=4"],
 *             "rate": {"from": 0.5, "to": 2, "step": 0.5}},
 *    "zip":  [{"soc": ["core-ultra-5-125h", "snapdragon-8elite"],
 *              "llm": ["llama-3.2-3b", "qwen2.5-1.5b"]}],
 *    "rows": [{"seed": 1}, {"seed": 2, "workload.duration_s": 90}],
 *    "replications": 10, "warmup_s": 0, "horizon_s": 0,
 *    "metrics": ["reactive.*", "energy_j"],
 *    "until": {"reactive.e2e_s.mean": {"half_width_frac": 0.05}}, "max_replications": 100}
 *
 * Settings are in `base` (one value), `axes` and `zip` (lists) and `rows` (one value each):
 *   policy soc llm workload trace machine   text, as the options of `xpusim run`
 *   point       a name for people
 *   rate        scales the workload's rates; a trace file's requests arrive that much faster
 *   seed        of the first replication
 *   ttft_slo_s tpot_slo_s           targets of requests without one, as in `xpusim run`
 *   params.K    parameter K of the policy      workload.K  key K of a generator
 *   soc.X llm.X sim.X                          any value of the configuration
 * Paths of policies, machines, models, traces and length files are relative to the experiment file.
 * A list may be {"from": a, "to": b, "step": s}, both ends included.
 *
 * Every axis, every zip group (lists of equal length) and the rows as a whole are one dimension.
 * The points of the experiment are the product of all dimensions, where the last one varies
 * fastest. Replication k of a point has the seed config_seed(seed, k), so all points of equal seed
 * have the same random numbers. All keys except those with settings are optional.
 *
 * With `until`, a point gets `replications` runs at a time until the 95 % intervals of the named
 * metrics are narrow enough, or max_replications is reached. The limit is an absolute half_width,
 * or half_width_frac of the mean. */
#pragma once

#include <cjson/cJSON.h>

#include "experiments/run/config.h"

#define SPEC_MAX_DIMENSIONS 32
#define SPEC_MAX_UNTIL 16
#define SPEC_MAX_PATTERNS 64
#define SPEC_MAX_REPLICATIONS (1u << 20)
#define SPEC_MAX_RUNS 1000000000u
#define SPEC_CONFIRM_RUNS 100000u /* more need --yes */

/* A list of values of one setting. For rows, `key` is NULL and each value is an object. */
struct spec_axis {
    const char *key;      /* borrowed from the tree */
    const char *path;     /* kept: "axes.policy", "zip[0].soc", "rows" */
    const cJSON **values; /* kept array of borrowed values */
    uint32_t n;
};

struct spec_dimension {
    struct spec_axis *axes; /* kept; all of length n */
    uint32_t n_axes, n;
};

struct spec_until {
    const char *metric;
    double half_width;
    bool relative; /* of |mean| */
};

struct spec {
    cJSON *root;       /* kept */
    char *canonical;   /* kept: the file without blanks, which identifies the experiment */
    const char *file;  /* borrowed */
    const char *name;  /* borrowed */
    const cJSON *base; /* borrowed; NULL: none */
    cJSON *suite;      /* borrowed; of a suite (suite.h), whose points name no policy; NULL: none */
    struct spec_dimension dimensions[SPEC_MAX_DIMENSIONS];
    uint32_t n_dimensions;
    uint64_t n_points;
    uint32_t replications, max_replications;
    double warmup_s, horizon_s;
    bool has_horizon;
    const char *patterns[SPEC_MAX_PATTERNS]; /* of metrics to keep; none: all */
    uint32_t n_patterns;
    char *kept; /* kept: the patterns joined by commas, "*" for all */
    struct spec_until until[SPEC_MAX_UNTIL];
    uint32_t n_until;
};

/* The settings of one point. */
struct spec_point {
    struct config_options options;
    const char *policy, *soc, *llm, *workload, *trace, *machine; /* trace, machine "": none */
    struct config_arrivals arrivals;
};

/* Reads a file and checks its syntax and size: names of settings, types, empty lists, number of
 * runs. More than SPEC_CONFIRM_RUNS are refused unless `yes`. Returns 0, or -EINVAL with errors
 * that name file, key path and count. */
int spec_load(struct spec *s, const char *file, bool yes, struct err *e);
/* Like spec_load, with n policies as an axis, as if the file had it. */
int spec_load_with(struct spec *s, const char *file, const char *const *policies, uint32_t n,
                   bool yes, struct err *e);

/* For assertions: axes of a dimension have equal lengths, rows are a single axis, and n_points is
 * the product. */
bool spec_is_sound(const struct spec *s);

/* Checks that policies, machines, workloads and paths can be loaded, and the names in `metrics` and
 * `until`. Every value is tried once (in a long list, the first CHECK_VALUES and the last), with
 * the first value of all other dimensions. Returns 0, or -EINVAL with errors that name the key
 * path. */
int spec_check(const struct spec *s, struct err *e);

/* The settings of one point, 0 <= point < n_points. 0 or -EINVAL. */
int spec_point(const struct spec *s, uint64_t point, struct spec_point *out, struct err *e);
/* A point's values of the settings that vary: {"policy": "fcfs", "rate": 2}, in the order of the
 * file. The caller owns it. */
cJSON *spec_point_settings(const struct spec *s, uint64_t point);

/* Whether to keep a metric: those that the file names, or all if it names none, and always the run
 * status and the shares of extrapolated time, which every reader of results needs. */
bool spec_keeps(const struct spec *s, const char *metric);
/* Number of runs if every point gets this many replications. */
uint64_t spec_runs(const struct spec *s, uint32_t replications);

/* For spec_load: checks the base, and makes a dimension of each axis, of each zip group and of the
 * rows. Each may be NULL. Expands ranges in `axes` and `zip` to lists. */
void spec_read_lists(struct spec *s, cJSON *axes, cJSON *zip, const cJSON *rows, struct err *e);

/* For spec_point: resolves its paths, which are relative to the experiment file. */
void spec_paths(const char *file, struct spec_point *p);

/* For spec.c: whether key is the name of a setting. */
bool spec_is_setting(const char *key);
/* For spec.c: checks that key is the name of a setting, and value has its type. Adds an error. */
int spec_setting_check(const char *key, const cJSON *value, const char *file, const char *path,
                       struct err *e);

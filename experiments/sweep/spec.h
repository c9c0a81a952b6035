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
 * Settings, in `base` (one value), `axes` and `zip` (lists) and `rows` (one value each):
 *   policy soc llm workload trace machine   text, as the options of `xpusim run`
 *   point       a name for people
 *   rate        scales the workload's rates; a trace file's requests arrive that much faster
 *   seed        of the first replication
 *   ttft_slo_s tpot_slo_s           targets of requests that carry none, as of `xpusim run`
 *   params.K    parameter K of the policy      workload.K  key K of a generator
 *   soc.X llm.X sim.X                          any value of the configuration
 * Paths of policies, machines, models, traces and length files are relative to the experiment file.
 * A list may be {"from": a, "to": b, "step": s}, both ends included.
 *
 * Every axis, every zip group (its lists go together) and the rows as a whole are one dimension.
 * The points of the experiment are the product of all dimensions, the last one fastest. A point is
 * replicated: replication k has the seed config_seed(seed, k), so that all points of equal seed
 * meet the same random numbers. All keys but the settings' places are optional.
 *
 * With `until`, a point gets `replications` runs, then as many again until the 95 % intervals of
 * the named metrics are small enough, or max_replications is reached. The limit is an absolute
 * half_width, or half_width_frac of the mean. */
#pragma once

#include <cjson/cJSON.h>

#include "experiments/run/config.h"

#define SPEC_MAX_DIMENSIONS 32
#define SPEC_MAX_UNTIL 16
#define SPEC_MAX_PATTERNS 64
#define SPEC_MAX_REPLICATIONS (1u << 20)
#define SPEC_MAX_RUNS 1000000000u
#define SPEC_CONFIRM_RUNS 100000u /* more need a word from the user */

/* One list of values of one setting; of the rows, `key` is NULL and each value an object. */
struct spec_axis {
    const char *key;      /* borrowed from the tree */
    const char *path;     /* nobody frees it: "axes.policy", "zip[0].soc", "rows" */
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
    char *canonical;   /* kept: the file without its blanks; two equal ones are one experiment */
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

/* Reads a file and checks its form and size: names of settings, types, empty lists, how many runs.
 * More than SPEC_CONFIRM_RUNS are refused unless `yes`. On failure errors name file, key path and
 * count, and -EINVAL is returned. */
int spec_load(struct spec *s, const char *file, bool yes, struct err *e);
/* Like spec_load. The n policies become an axis of the experiment, as if the file had it. */
int spec_load_with(struct spec *s, const char *file, const char *const *policies, uint32_t n,
                   bool yes, struct err *e);

/* For assertions: all axes of a dimension are equally long, rows are one alone, and the points are
 * the product. */
bool spec_is_sound(const struct spec *s);

/* Reads what the settings name: policies, machines, workloads, paths. Every value is tried once,
 * with the first value of all other dimensions (of a long list, the first CHECK_VALUES and the
 * last); errors name its key path. Also the names in `metrics` and `until`. 0 or -EINVAL. */
int spec_check(const struct spec *s, struct err *e);

/* The settings of one point, 0 <= point < n_points. 0 or -EINVAL. */
int spec_point(const struct spec *s, uint64_t point, struct spec_point *out, struct err *e);
/* The settings in which points differ, of this one: {"policy": "fcfs", "rate": 2}, in the order of
 * the file. The caller owns it. */
cJSON *spec_point_settings(const struct spec *s, uint64_t point);

/* A metric that the file names, all where it names none, and always the run status and the
 * shares of extrapolated time, which every reader of results needs. */
bool spec_keeps(const struct spec *s, const char *metric);
/* Runs when every point gets that many replications. */
uint64_t spec_runs(const struct spec *s, uint32_t replications);

/* For spec_load: checks the base, and makes a dimension of each axis and zip group, and of the
 * rows. Each may be NULL. Ranges of `axes` and `zip` become the lists that they mean. */
void spec_read_lists(struct spec *s, cJSON *axes, cJSON *zip, const cJSON *rows, struct err *e);

/* For spec_point: its paths, which the file `file` gives relative to itself, as they are seen from
 * here. */
void spec_paths(const char *file, struct spec_point *p);

/* For spec.c: is it the name of a setting? */
bool spec_is_setting(const char *key);
/* For spec.c: whether a key is a setting's name, and a value of its type. Adds an error. */
int spec_setting_check(const char *key, const cJSON *value, const char *file, const char *path,
                       struct err *e);

/* A suite: a frozen list of points on which policies are scored.
 *
 * It is an experiment file (spec.h) whose rows are the points, with an object "suite":
 *
 *   {"name": "laptop-2026.1",
 *    "suite": {"about": "what it is for",
 *              "references": ["agent-xpu-v2", "pd-mixed"],
 *              "unscored": ["demo"], "sealed": "laptop-2026.1-sealed.json",
 *              "hash": "0123456789abcdef"},
 *    "rows": [{"point": "demo", "soc": "...", "workload": "..."}],
 *    "replications": 10, "metrics": ["reactive.e2e_s.mean"]}
 *
 *   references  policies with known values at every point; a score is a ratio to the first one
 *   unscored    points without headroom, which count for regressions, but not for the score
 *   sealed      file of the other split, relative to this one; its points are used once, at the end
 *   hash        of points, configurations and first traces; it identifies the suite
 *
 * The file names no policy, and the score is computed from `metrics`. */
#pragma once

#include "experiments/run/study.h"
#include "experiments/sweep/spec.h"

#define SUITE_MAX_POINTS 32
#define SUITE_MAX_METRICS 8
#define SUITE_MAX_REFERENCES 16

struct suite_point {
    const char *name; /* borrowed from the file */
    bool scored;
    struct spec_point settings;
    struct config config;
};

struct suite {
    struct spec spec;
    struct suite_point *points; /* kept; n_points of them */
    uint32_t n_points;
    const char *references[SUITE_MAX_REFERENCES]; /* borrowed from the file */
    uint32_t n_references;
    const char *sealed;   /* path, never freed; NULL: none */
    const char *recorded; /* the hash in the file; "": none */
    char hash[24];        /* of the loaded content */
};

/* Path of a shipped suite; a path is returned unchanged. NULL with an error that names the shipped
 * suites. */
const char *suite_file(const char *name, struct err *e);
/* Reads a shipped suite by its name, or a file by its path. 0, or -EINVAL with errors. A
 * hash that differs from the file's is no error (suite_is_frozen). */
int suite_load(struct suite *s, const char *name, struct err *e);
/* Whether configurations and traces equal those of the frozen suite. */
bool suite_is_frozen(const struct suite *s);
/* The cell of a policy at a point. The caller sets nothing more. */
struct study_cell suite_cell(const struct suite *s, uint32_t point, const struct config_policy *p,
                             uint32_t replication);
/* For commands with own options: adds an error for options that a point sets. */
int suite_refuse_options(const struct config_options *o, struct err *e);
/* The options of a point, with the metrics that a command's own options ask for. */
struct config_options suite_options(const struct suite *s, uint32_t point,
                                    const struct config_options *given);

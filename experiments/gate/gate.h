/* The metric gate: checks that this build schedules as well as the recorded one.
 *
 * A baseline is one JSON file with experiments (`groups`: machine, workload, policies, metrics) and
 * their `results`. A row is one metric of one policy in one group, or the status of its runs. A
 * policy has one more row for its `parameters`, because a changed default may have no effect on any
 * load of the matrix.
 *
 * There are two kinds of group:
 *   exact   The same seeds as the baseline. The simulator is deterministic, so any difference
 *           (beyond the 15 digits in JSON) is a change. The tolerance, by default the effect of
 *           rounding, decides the kind of change.
 *   fresh   Other seeds than the baseline's. A metric's shift is tested after removing the effect
 *           of the traces (stats_shift.h), on logarithms if all values are positive, so that a
 *           shift is a ratio. The tests of all fresh rows together have a false alarm rate of at
 *           most GATE_ALPHA_FRAC (Holm).
 *
 *   OK          no change (fresh: none shown)
 *   REGRESSION  worse by more than the tolerance (fresh: significantly)
 *   GAIN        better by more than the tolerance (fresh: significantly)
 *   DRIFT       changed, but within the tolerance, or in a metric that is neither good nor bad
 *   STATUS      runs fail, their verdict differs, a value is no longer (or newly) defined, a
 *               parameter has a different value, or the workload differs
 *   ADDED       no baseline to compare with
 *   REMOVED     in the baseline, but not measured any more
 *
 * Alarms are REGRESSION, REMOVED, a STATUS for the worse, and, against a file, also ADDED and
 * recorded runs that failed. So no row passes without a comparison. */
#pragma once

#include <cjson/cJSON.h>

#include "experiments/run/study.h"
#include "experiments/shell/document.h"
#include "sim/metrics/metric_table.h"

#define GATE_ALPHA_FRAC 0.01
/* Exact: the effect of rounding, a nanosecond on each kernel of 0.1 ms. With equal seeds, a larger
 * change means a different decision or duration, even if only of few requests. */
#define GATE_EXACT_TOLERANCE_FRAC 1e-5
/* Exact: a change is relative to the old value, but at least to this, 0.1 ms or a share of 0.01 %,
 * because smaller values may be only rounding errors. */
#define GATE_LEAST 1e-4
#define GATE_FRESH_TOLERANCE_FRAC 0.005
#define GATE_EXACT_REPLICATIONS 2
#define GATE_FRESH_REPLICATIONS 400
#define GATE_MAX_GROUPS 64
#define GATE_MAX_POLICIES 64
#define GATE_MAX_METRICS 32
#define GATE_MAX_SETS 32
#define GATE_PARAMETERS "parameters"
#define GATE_COVARIATES                                                                            \
    12 /* per class of a trace: requests; mean and P90 of input and output; work */

struct gate_metric {
    const char *name;
    enum metric_better better;
    double tolerance_frac;
};

/* Strings are borrowed from the baseline's tree. */
struct gate_group {
    const char *name, *soc, *llm;
    const char *workload, *trace; /* one of them; the other NULL */
    const char *sets[GATE_MAX_SETS];
    uint32_t n_sets;
    uint64_t seed;
    uint32_t replications;
    bool fresh;
    const char *policies[GATE_MAX_POLICIES];
    uint32_t n_policies;
    struct gate_metric metrics[GATE_MAX_METRICS];
    uint32_t n_metrics;
};

/* One policy in one group; not present: never measured. */
struct gate_cell {
    char *group, *policy; /* kept */
    bool present;
    uint32_t replications, failed;
    uint32_t empty;                   /* replications without requests, which are no failures */
    uint32_t verdicts[3];             /* runs by enum metrics_verdict */
    char message[JOBS_MESSAGE_BYTES]; /* of the first failure; "" */
    bool unknown_policy;              /* the binary does not have the policy */
    uint64_t trace_hash;              /* of all its traces */
    uint32_t n_metrics;
    char (*names)[64];  /* kept */
    double *values;     /* kept; [metric][replication], NaN where undefined */
    double *covariates; /* kept; [replication][GATE_COVARIATES]; NULL for an exact group */
};

/* All parameters of a policy with their values, including defaults. */
struct gate_parameters {
    char *policy, *text; /* kept; "a=1,b=2" */
};

struct gate_cells {
    struct gate_cell *v; /* kept */
    uint32_t n;
    struct gate_parameters *parameters; /* kept; none from another binary or an old file */
    uint32_t n_parameters;
};

struct gate_baseline {
    cJSON *tree; /* kept */
    struct gate_group groups[GATE_MAX_GROUPS];
    uint32_t n_groups;
    struct gate_cells recorded;
};

/* ---- the file (gate_file.c) ---- */

/* 0, or -EINVAL with errors that name file and key. Kept. */
int gate_baseline_read(const char *path, struct gate_baseline *b, struct err *e);
/* Writes the groups as read and the new results, first to a temporary name. */
int gate_baseline_write(const char *path, const struct gate_baseline *b,
                        const struct gate_cells *now, struct err *e);
const struct gate_group *gate_group_find(const struct gate_baseline *b, const char *name);
const struct gate_cell *gate_cell_find(const struct gate_cells *c, const char *group,
                                       const char *policy);
/* Parameters of a policy, or NULL. */
const char *gate_parameters_find(const struct gate_cells *c, const char *policy);
/* Adds a copy, unless the policy has an entry. */
void gate_parameters_add(struct gate_cells *c, const char *policy, const char *text);
/* "a=1, was 2, b=3 is new"; "c=4 is gone" if that is the only change. Kept. */
const char *gate_parameters_changes(const char *was, const char *now);
/* Values of one metric over the replications, or NULL. */
const double *gate_cell_values(const struct gate_cell *c, const char *metric);

/* ---- measuring (gate_run.c) ---- */

struct gate_run {
    const struct gate_baseline *baseline;
    const char *binary; /* another xpusim, run as `BINARY run --json`; NULL: this one */
    bool fresh_seeds;   /* fresh groups take other seeds than the baseline's */
    bool own_seed;      /* ... from `seed`; else from the group's seed, mixed */
    uint64_t seed;
    struct study_how how;
};

/* Runs every policy of every group. Failed runs, including those of unknown policies, are counted
 * in their cell.
 *
 * Returns -EINVAL with errors if a group's machine, workload or metrics are invalid. Then nothing
 * has run. */
int gate_measure(const struct gate_run *r, struct gate_cells *out, struct err *e);

/* ---- verdicts (gate_judge.c) ---- */

enum gate_verdict {
    GATE_OK,
    GATE_REGRESSION,
    GATE_DRIFT,
    GATE_GAIN,
    GATE_STATUS,
    GATE_ADDED,
    GATE_REMOVED,
    GATE_VERDICTS
};
extern const char *const gate_verdict_names[GATE_VERDICTS];

struct gate_row {
    const char *group, *policy, *metric; /* borrowed; metric "status" for the runs themselves, and
                                            GATE_PARAMETERS, in a group of that name */
    enum gate_verdict verdict;
    bool alarm, fresh;
    bool quiet;                /* same cause as its policy's status row; tables omit it */
    double before, after;      /* means; geometric where fresh rows are tested on logarithms */
    double change_frac;        /* (after - before) / |before|; NaN where undefined */
    double p;                  /* fresh: the adjusted chance; NaN for exact rows */
    enum metric_better better; /* of the metric; NEITHER of status rows */
    const char *detail;        /* description, kept until the command ends; "" or NULL */
    double p_worse, p_better, p_any; /* before adjustment; NaN where not tested */
    double se_frac, tolerance_frac;  /* fresh: standard error of the shift; allowed shift */
};

struct gate_report {
    struct gate_row *rows; /* kept */
    uint32_t n;
    uint32_t counts[GATE_VERDICTS];
    uint32_t alarms;
    bool recorded; /* by --update: these values are the new baseline */
    bool refused;  /* --update was refused because runs failed */
};

/* added_alarms: an ADDED row is an alarm (against a file). Both cell lists are borrowed. */
void gate_judge(const struct gate_baseline *b, const struct gate_cells *before,
                const struct gate_cells *now, bool added_alarms, struct gate_report *out);

/* ---- showing (gate_print.c) ---- */

/* Adds every row. Text has those that are not OK (all: every one), then a line of counts. */
void gate_document(const struct gate_report *r, bool all, struct document *d);
/* A row's detail; for OK rows the shift that would be detected half of the time. Kept by the
 * document. */
const char *gate_detail(const struct gate_report *r, const struct gate_row *row);
/* "+3.10 %", kept until the command ends; "-": unknown. */
const char *gate_change_text(const struct gate_row *row);
/* "14 rows: 2 OK, 12 REGRESSION; FAILED", kept as long as the document. */
const char *gate_counts(const struct gate_report *r);

/* ---- first changed decision (gate_first.c) ---- */

#define GATE_MAX_FIRST 5
#define GATE_FIRST_REPLICATIONS 4 /* tried in turn until decisions differ */
#define GATE_DECISION_BYTES 512

struct gate_first {
    const struct gate_row *row; /* borrowed: the first changed one of its policy and group */
    uint32_t replications;      /* compared; 0: no program before the change was given */
    uint64_t seed;              /* of the replication in which they differ */
    bool known, differs;        /* known: there are two decision logs */
    uint64_t decision;          /* number of the first different decision, from 1 */
    double now_s, old_s;        /* instants; NaN: the log has ended */
    char now[GATE_DECISION_BYTES], old[GATE_DECISION_BYTES];
    char message[JOBS_MESSAGE_BYTES]; /* of a run that failed; "" */
};

struct gate_firsts {
    struct gate_first v[GATE_MAX_FIRST];
    uint32_t n;
};

/* Lists up to GATE_MAX_FIRST pairs of policy and group that changed, the alarms first. With `old`,
 * the program before the change, it runs both programs on them and finds the first decision that
 * differs. Cost: two runs per replication compared. */
void gate_first_find(const struct gate_baseline *b, const struct gate_report *r, const char *old,
                     const struct study_how *how, struct gate_firsts *out);
/* "decision 12 is another: ...", kept as long as the document; NULL: unknown. */
const char *gate_first_text(const struct gate_first *f);
/* Adds them as data, and as one line each in text. */
void gate_first_document(const struct gate_firsts *all, struct document *d);

/* ---- for reviewers (gate_review.c) ---- */

struct gate_review {
    const struct gate_report *report;
    const struct gate_baseline *baseline;
    const struct gate_firsts *firsts;
    const char *path; /* of the baseline */
    const char *old;  /* the program before the change, or NULL */
};

/* For Markdown: the line of counts, rows that are not OK with unit and direction, the alarms first
 * and bold, the first different decisions with commands that show them, and how to accept. */
void gate_review(const struct gate_review *v, struct document *d);
/* Writes it as one HTML page without scripts. 0, or -EINVAL with an error: no style sheet. */
int gate_review_page(const struct gate_review *v, FILE *out, struct err *e);

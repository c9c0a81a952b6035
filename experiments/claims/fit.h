/* Which published results can hold together: history matching over parameters without a source.
 *
 *   1. A space-filling design of the open parameters (Sobol) is simulated on a few traces.
 *   2. Per check an emulator (a quadratic, and a Gaussian process of its residuals) predicts mean
 *      and spread of single traces at any point, with its error on left-out points.
 *   3. A check's implausibility at a point is the distance of the published value from the mean, in
 *      standard deviations of a single trace, the emulator and a stated model error together; a
 *      claim has that of its worst check. Up to FIT_HOLDS a claim may hold, and beyond
 *      FIT_RULED_OUT it is ruled out.
 *   4. The next wave simulates where most claims may hold. Waves end when eight in a row bring no
 *      improvement, or the budget is spent.
 *   5. The best points get verdicts (claims.h) on fresh traces, and the best of these again on
 *      others. Claims that hold there are facts with a witness; claims that the emulators rule out
 *      are inferences with the emulators' error.
 *
 * Checks of a claim that need no run may be constraints (`under`). They are computed from the cost
 * model, on a grid of the parameters that they depend on. The search uses only points where all
 * hold. If there is none, the result is the smallest sets of constraints that hold nowhere
 * together.
 *
 * The search is deterministic. It uses the claims, so its witness is fitted, not predicted. */
#pragma once

#include <cjson/cJSON.h>

#include "experiments/claims/claims.h"
#include "sim/base/rng.h"

#define FIT_MAX_PARAMETERS 24
#define FIT_MAX_LEVELS 8
#define FIT_MAX_CLAIMS 31 /* a bit each in a set */
#define FIT_CONFIRMED 8   /* points with verdicts on fresh traces; the best again on others */
#define FIT_HOLDS 2.0
#define FIT_RULED_OUT 3.0
#define FIT_MODEL_ERROR_FRAC 0.05 /* assumed model error, share of the published effect; ours */

/* ---- open parameters ---- */

struct fit_parameter {
    const char *name, *unit, *what, *measure; /* borrowed from the tree */
    double low, high;
    bool log_scale;
    const char *levels[FIT_MAX_LEVELS]; /* texts instead of numbers; n_levels 0: a number */
    uint32_t n_levels;
    struct setup changes; /* with {x} for the value */
};

struct fit_parameters {
    struct fit_parameter v[FIT_MAX_PARAMETERS];
    uint32_t n;
};

/* Reads a file of open parameters. over: their names, or NULL for all. */
int fit_parameters_read(struct fit_parameters *p, const char *path, const char *const *over,
                        uint32_t n_over, struct err *e);
/* The value at u in [0, 1], as a text; buf of 64 bytes. */
const char *fit_parameter_value(const struct fit_parameter *p, double u, char *buf);
/* The set-up at a point of the unit cube. */
void fit_setup(const struct fit_parameters *p, const double *u, struct setup *out);

/* ---- points ---- */

/* A check of the fitted claims. */
struct fit_check {
    uint32_t claim;
    const struct claim_check *check; /* in fit.claims */
};

struct fit_point {
    double u[FIT_MAX_PARAMETERS];
    double *mean, *sd; /* per check, of single traces; NaN: not defined */
};

struct fit_options {
    const char *const *files; /* claims files */
    uint32_t n_files;
    const char *const *ids; /* claims to fit */
    uint32_t n_ids;
    const char *const *under; /* claims whose checks without runs are constraints */
    uint32_t n_under;
    struct quantities_options run; /* replications: traces of a point; seed: of the search */
    uint32_t budget;               /* points */
    uint32_t confirm;              /* traces of the confirmation */
    uint32_t confirm_each;         /* traces of each of the best points before that; 0: a quarter */
    const char *state;             /* file that keeps the points; or NULL */
    const struct setup *fixed;     /* changes of the command line, for all points */
    bool quiet;
};

#define FIT_MAX_CONFLICTS 64

/* A point at which the constraints were computed. */
struct fit_priced {
    double u[FIT_MAX_PARAMETERS];
    double miss[FIT_MAX_CLAIMS]; /* distance of a claim's checks from holding; 0: it holds */
    double sum;                  /* of all checks' values; it differs between machines */
    uint32_t holds;              /* set of constraints, a bit each */
};

struct fit_under {
    struct claims stated;
    uint32_t n_claims;
    uint32_t active[FIT_MAX_PARAMETERS], n_active; /* parameters that they depend on */
    struct fit_priced *seen;                       /* all computed points */
    uint32_t n_seen, n_grid;                       /* the first n_grid of them are the grid */
    struct fit_priced *pool;                       /* points where all hold */
    uint32_t n_pool;
    uint32_t conflicts[FIT_MAX_CONFLICTS], n_conflicts; /* only searched if the pool is empty */
};

/* One of the best points, with its verdicts on fresh traces. */
struct fit_confirmed {
    uint32_t point;
    uint32_t holds, compatible; /* sets of claims, a bit each */
};

/* A point with verdicts on fresh traces. */
struct fit_witness {
    double u[FIT_MAX_PARAMETERS];
    struct claims judged;
    uint32_t holds;      /* set of claims, a bit each */
    uint32_t compatible; /* the undecided ones */
};

/* A search and its results. Kept by the command until it ends. */
struct fit {
    const struct fit_options *o;
    struct fit_parameters parameters;
    struct fit_under under;
    struct claims claims; /* the fitted claims, for names and published values */
    struct fit_check *checks;
    uint32_t n_checks;
    struct fit_point *points;
    uint32_t n_points, n_waves;
    double cpu_s; /* CPU time of all points, in their processes */
    struct fit_emulator *emulator;
    struct err *e; /* of fit_init */
    struct fit_confirmed confirmed[FIT_CONFIRMED];
    uint32_t n_confirmed;
    struct fit_witness witness; /* valid until fit_conclude */
};

int fit_init(struct fit *f, const struct fit_options *o, struct err *e);

/* Reads the claims to fit, as the files state them. */
int fit_claims_read(const struct fit_options *o, struct claims *c, struct err *e);
struct fit_point *fit_point_add(struct fit *f, const double *u);
/* Writes the points to the state file, if there is one. */
int fit_points_keep(const struct fit *f, struct err *e);
/* Reads the points of a state file of the same search; none if there is no file. */
int fit_points_resume(struct fit *f, struct err *e);

/* Repeats the rows of c for every set-up: row s * n + i is claim i under set-up s. */
int fit_spread(struct claims *c, const struct setup *setups, uint32_t n, struct err *e);

/* ---- constraints ---- */

/* Computes the constraints on a grid, and finds f->under.n_pool points where all hold, or else the
 * sets that hold nowhere. Returns 0 in both cases. Does nothing without constraints. */
int fit_under_find(struct fit *f);
/* Fills the constraints' verdicts at u. claims_fini in every case. */
int fit_under_judge(const struct fit *f, const double *u, struct claims *out, struct err *e);
/* Sets the parameters of u on which the constraints depend to those of a random point where all
 * hold, or of the nearest one. Does nothing without constraints. */
void fit_under_draw(const struct fit *f, struct rng *r, double *u);
void fit_under_nearest(const struct fit *f, double *u);

/* ---- emulators ---- */

struct fit_emulator;
/* Fits all checks' emulators to the points. Cost: points cubed, times a grid of 20. */
struct fit_emulator *fit_emulator_new(const struct fit *f);
void fit_emulator_free(struct fit_emulator *m);
/* Mean and sd of a single trace of every check at u; error: sd of the mean's own error. */
void fit_emulator_at(const struct fit_emulator *m, const double *u, double *mean, double *sd);
const double *fit_emulator_error(const struct fit_emulator *m);

/* Implausibility of every claim from mean, sd and error of every check. */
void fit_implausibility(const struct fit *f, const double *mean, const double *sd,
                        const double *error, double *out);

/* Implausibility of a simulated point. Its means are shrunk towards the emulators', because the
 * best of many points with few traces each is mostly the luckiest. Spreads are those of the
 * emulators. Without emulators it uses the point's own values. */
void fit_point_implausibility(const struct fit *f, const struct fit_point *p, double *out);

/* ---- search and findings ---- */

/* Searches and confirms, after fit_init. 0, or -errno with errors. */
int claims_fit(struct fit *f);

/* Simulates points until the budget is spent or waves bring no improvement. */
int fit_search(struct fit *f);
/* Simulates n points and adds them. */
int fit_points_run(struct fit *f, const double (*u)[FIT_MAX_PARAMETERS], uint32_t n);
/* Traces for the verdicts of each of the best points. */
uint32_t fit_confirm_each(const struct fit_options *o);
/* Fills the most promising points, best first, at most FIT_CONFIRMED. Returns their number. */
uint32_t fit_best_points(const struct fit *f, uint32_t *points);

struct fit_findings {
    struct fit_witness best;
    struct claims under;                   /* the constraints at the witness */
    uint32_t conflicts[FIT_MAX_CONFLICTS]; /* smallest sets that are ruled out, a bit per claim */
    uint32_t n_conflicts;
    /* Share of the space that is not ruled out, and range of each parameter (u) in it: by each
     * single claim, then by the best set. low > high: nothing is left. */
    double left_frac[FIT_MAX_CLAIMS + 1];
    uint32_t plausible[FIT_MAX_CLAIMS]; /* simulated points where the claim may hold */
    double low[FIT_MAX_CLAIMS + 1][FIT_MAX_PARAMETERS],
        high[FIT_MAX_CLAIMS + 1][FIT_MAX_PARAMETERS];
    double together_frac[FIT_MAX_CLAIMS][FIT_MAX_CLAIMS]; /* share of space where both may */
    /* Share of the uncertainty of each claim that a known parameter would remove. */
    double settles_frac[FIT_MAX_CLAIMS][FIT_MAX_PARAMETERS];
};

/* Number of claims in a set. */
uint32_t fit_set_size(uint32_t set);
/* Computes the findings after all simulations. */
int fit_conclude(struct fit *f, struct fit_findings *out);

void fit_document(const struct fit *f, const struct fit_findings *g, struct document *d);
/* The witness as a profile for `xpusim claims --profile FILE`. The caller owns it. */
cJSON *fit_profile(const struct fit *f, const struct fit_findings *g);

/* Which published results can hold together: history matching over what no source settles.
 *
 *   1. A design that fills the space of the open parameters (Sobol) is simulated on a few traces.
 *   2. Per check an emulator (a quadratic, and a Gaussian process on what it leaves) says mean and
 *      spread of single traces anywhere, with the error that it makes on points left out.
 *   3. A check's implausibility at a point is the distance of the published value from the mean, in
 *      standard deviations of a single trace, the emulator and a stated model error together; a
 *      claim's is its worst check's. A claim may hold up to FIT_HOLDS, and is ruled out beyond
 *      FIT_RULED_OUT.
 *   4. The next wave simulates where most claims may hold. Waves end when eight in a row promise
 *      no more, or the budget is spent.
 *   5. The best points are judged as any claim is, on fresh traces, and the best of these again on
 *      others: what holds there is a fact with a witness; what the emulators rule out is an
 *      inference with their error.
 *
 * Claims may be constraints (`under`): those of their checks that need no run. They are priced from
 * the cost model, on a grid of the parameters that they hang on. The search stays among points
 * where all hold. Where there is none, the answer is the smallest sets of them that hold nowhere.
 *
 * All of it is deterministic. The search knows the claims: its witness is fitted, not predicted. */
#pragma once

#include <cjson/cJSON.h>

#include "experiments/claims/claims.h"
#include "sim/base/rng.h"

#define FIT_MAX_PARAMETERS 24
#define FIT_MAX_LEVELS 8
#define FIT_MAX_CLAIMS 31 /* a bit each in a set */
#define FIT_CONFIRMED 8   /* points judged on fresh traces; the best again, on others */
#define FIT_HOLDS 2.0
#define FIT_RULED_OUT 3.0
#define FIT_MODEL_ERROR_FRAC 0.05 /* of the effect published: what a simulator may be off; ours */

/* ---- what is open ---- */

struct fit_parameter {
    const char *name, *unit, *what, *measure; /* borrowed from the tree */
    double low, high;
    bool log_scale;
    const char *levels[FIT_MAX_LEVELS]; /* instead of numbers; n_levels 0 for a number */
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

/* One check as the fit sees it: of claim `claim`. */
struct fit_check {
    uint32_t claim;
    const struct claim_check *check; /* of the fit's own claims */
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
    uint32_t confirm_each;         /* traces of each of the best points before; 0: a quarter */
    const char *state;             /* file that keeps the points; or NULL */
    const struct setup *fixed;     /* what the command line changes throughout */
    bool quiet;
};

#define FIT_MAX_CONFLICTS 64

/* A point where the constraints were priced. */
struct fit_priced {
    double u[FIT_MAX_PARAMETERS];
    double miss[FIT_MAX_CLAIMS]; /* how far a claim's checks are from what they want; 0: it holds */
    double sum;                  /* of all checks' values: another one, another machine */
    uint32_t holds;              /* set of constraints, a bit each */
};

struct fit_under {
    struct claims stated;
    uint32_t n_claims;
    uint32_t active[FIT_MAX_PARAMETERS], n_active; /* parameters that they hang on */
    struct fit_priced *seen;                       /* all that were priced */
    uint32_t n_seen, n_grid;                       /* the first n_grid of them are the grid */
    struct fit_priced *pool;                       /* where all hold */
    uint32_t n_pool;
    uint32_t conflicts[FIT_MAX_CONFLICTS], n_conflicts; /* sought only where the pool is empty */
};

/* One of the best points, as fresh traces judge it. */
struct fit_confirmed {
    uint32_t point;
    uint32_t holds, compatible; /* sets of claims, a bit each */
};

/* A point judged on fresh traces. */
struct fit_witness {
    double u[FIT_MAX_PARAMETERS];
    struct claims judged;
    uint32_t holds;      /* set of claims, a bit each */
    uint32_t compatible; /* those that are not decided */
};

/* A search with all that it found. A command has one, until it ends. */
struct fit {
    const struct fit_options *o;
    struct fit_parameters parameters;
    struct fit_under under;
    struct claims claims; /* what is fitted, read once for names and published values */
    struct fit_check *checks;
    uint32_t n_checks;
    struct fit_point *points;
    uint32_t n_points, n_waves;
    double cpu_s; /* of all points, by the processes that ran them */
    struct fit_emulator *emulator;
    struct err *e; /* of fit_init */
    struct fit_confirmed confirmed[FIT_CONFIRMED];
    uint32_t n_confirmed;
    struct fit_witness witness; /* until fit_conclude */
};

int fit_init(struct fit *f, const struct fit_options *o, struct err *e);

/* The claims to fit, as the files state them. */
int fit_claims_read(const struct fit_options *o, struct claims *c, struct err *e);
struct fit_point *fit_point_add(struct fit *f, const double *u);
/* Into the state file, if there is one. */
int fit_points_keep(const struct fit *f, struct err *e);
/* Takes over the points of a state file of the same search; none when there is no file. */
int fit_points_resume(struct fit *f, struct err *e);

/* The rows of c once more for every set-up: row s * n + i is claim i under set-up s. */
int fit_spread(struct claims *c, const struct setup *setups, uint32_t n, struct err *e);

/* ---- constraints ---- */

/* Prices the constraints on a grid, and finds points where all hold, or the sets that hold nowhere.
 * 0 either way; f->under.n_pool has how many. Nothing to do without constraints. */
int fit_under_find(struct fit *f);
/* The constraints as any claim is judged, at u. claims_fini in every case. */
int fit_under_judge(const struct fit *f, const double *u, struct claims *out, struct err *e);
/* Puts into u what the constraints hang on, of any point where all hold, or of the nearest. u stays
 * as it is where no claim is a constraint. */
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

/* Implausibility of a simulated point, from means between its own and the emulators', because the
 * best of many points with a few traces each is the luckiest. The spreads are the emulators'.
 * Without emulators it uses the point's own values. */
void fit_point_implausibility(const struct fit *f, const struct fit_point *p, double *out);

/* ---- search and findings ---- */

/* Searches and confirms, after fit_init. 0, or -errno with errors. */
int claims_fit(struct fit *f);

/* Simulates points until the budget is spent or nothing is gained any more. */
int fit_search(struct fit *f);
/* Simulates n points and adds them. */
int fit_points_run(struct fit *f, const double (*u)[FIT_MAX_PARAMETERS], uint32_t n);
/* Traces that judge each of the best points. */
uint32_t fit_confirm_each(const struct fit_options *o);
/* The points that look best, best first, at most FIT_CONFIRMED; returns how many. */
uint32_t fit_best_points(const struct fit *f, uint32_t *points);

struct fit_findings {
    struct fit_witness best;
    struct claims under;                   /* the constraints at the witness */
    uint32_t conflicts[FIT_MAX_CONFLICTS]; /* smallest sets ruled out, a bit each */
    uint32_t n_conflicts;
    /* Share of the space left, and range of each parameter (u), by each claim alone, then by the
     * best set; low > high where nothing is left. */
    double left_frac[FIT_MAX_CLAIMS + 1];
    uint32_t plausible[FIT_MAX_CLAIMS]; /* simulated points where the claim may hold */
    double low[FIT_MAX_CLAIMS + 1][FIT_MAX_PARAMETERS],
        high[FIT_MAX_CLAIMS + 1][FIT_MAX_PARAMETERS];
    double together_frac[FIT_MAX_CLAIMS][FIT_MAX_CLAIMS]; /* of the space where both may hold */
    /* Share of the doubt about each claim that knowing a parameter removes. */
    double settles_frac[FIT_MAX_CLAIMS][FIT_MAX_PARAMETERS];
};

/* How many claims a set has. */
uint32_t fit_set_size(uint32_t set);
/* Draws the conclusions, once all is simulated. */
int fit_conclude(struct fit *f, struct fit_findings *out);

void fit_document(const struct fit *f, const struct fit_findings *g, struct document *d);
/* The witness as a profile: what `xpusim claims --profile FILE` reads. Caller owns. */
cJSON *fit_profile(const struct fit *f, const struct fit_findings *g);

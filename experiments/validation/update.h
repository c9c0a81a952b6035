/* Updating the kernel-time parameters of one device by a few measured rows (linear-Gaussian).
 *
 * A state x holds the logarithm of every number that has a range, in all runtime entries of the
 * device. Numbers that may be 0 are 1 + number / offset there. The prior of x is normal. Its mean
 * is the file's value, and the file's range is taken as 95 %. Two entries' values of one number are
 * correlated, because machines differ from their siblings more than widths do (hwmodels/spread.h).
 * They share the variance of the one that is known better, and the rest of a wide range is its
 * entry's own. So a machine that is slower by a factor is slower by it in every entry.
 *
 * A row's logarithm is normal around the model's. Rows of one model and phase share an error (the
 * model's), and each has one of its own. The update finds the mode with GSL's trust region solver,
 * and takes the covariance there. For a model linear in x this is the exact posterior.
 *
 * Bandwidths stay at most the DDR's peak. */
#pragma once

#include <cjson/cJSON.h>
#include <gsl/gsl_matrix.h>
#include <gsl/gsl_vector.h>

#include "experiments/validation/calibrate_space.h"
#include "hwmodels/spread.h"

#define UPDATE_PHASES 3 /* enum conformal_phase */
#define UPDATE_MODELS 8 /* that intervals are stated for */

struct update_param {
    uint32_t runtime; /* entry of the device */
    int k;            /* enum calibrate_param */
};

struct update {
    const struct soc *soc; /* borrowed */
    uint8_t device;
    struct spread spread[2][UPDATE_PHASES]; /* of models of usual size, and of small ones */
    struct update_param *params;            /* owned, [n] */
    size_t n;
    gsl_vector *mean;       /* owned: of x; the prior's until update_take */
    gsl_matrix *covariance; /* owned */
};

/* A row to learn from or to predict. */
struct update_row {
    const struct point *point; /* borrowed */
    struct predict_case k;     /* on the update's soc and device */
};

bool update_is_small(const struct llm *m); /* hwmodels/spread.h */

/* The prior: `tree` is the file that `soc` was parsed from. update_fini in every case. */
void update_init(struct update *u, const struct soc *soc, const cJSON *tree, uint8_t device,
                 const struct conformal *table);
void update_fini(struct update *u);

/* Takes the rows in. 0, or -EINVAL where the solver finds no mode; the state is then as before. */
int update_take(struct update *u, const struct update_row *rows, size_t n, struct err *e);

/* A runtime entry with the present mean. */
struct soc_runtime update_entry(const struct update *u, uint32_t runtime);

/* ln of the seconds of a row, and standard deviations of it: `state_sd` of the parameters alone,
 * and `sd` of a measurement of a model that was not measured. */
struct update_prediction {
    double ln_seconds, state_sd, sd;
};
struct update_prediction update_predict(const struct update *u, const struct update_row *row);

/* d ln_seconds / d x of a row, into `out` of the state's size. */
void update_gradient(const struct update *u, const struct update_row *row, gsl_vector *out);
/* The covariance of rows' errors around the model; the caller frees it. */
gsl_matrix *update_noise(const struct update *u, const struct update_row *rows, size_t n);

/* One run of a benchmark measures a prompt of 1024 tokens, one of 32, and a decode at 1024, of one
 * model on one runtime entry. */
struct update_benchmark {
    struct point points[UPDATE_PHASES];    /* by phase */
    struct update_row rows[UPDATE_PHASES]; /* they borrow the points */
};
struct update_usual {
    struct update_benchmark **v; /* owned */
    size_t n;
};

/* The benchmarks of the models that published tables have most often (at most `max`, of usual size
 * or small), on each entry of the runtime that fits them. `c` has the update's soc. */
void update_usual(const struct update *u, const struct catalog *c, const char *runtime, bool small,
                  size_t max, struct update_usual *out);
void update_usual_fini(struct update_usual *x);

/* Standard deviation of ln(measured / predicted) of a benchmark's phase on an entry, where its
 * model was not measured: the root of the mean variance of the usual ones. NaN without one. */
double update_error_sd(const struct update *u, const struct update_usual *x, uint32_t runtime,
                       enum conformal_phase phase);

/* For each benchmark the share of the mean variance of all usual rows that measuring it is expected
 * to remove (state variance alone: the errors of models stay). share: [x->n]. Cost: cubic in the
 * numbers of the state, times benchmarks. */
void update_gains(const struct update *u, const struct update_usual *x, double *share);

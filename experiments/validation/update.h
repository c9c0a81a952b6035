/* Updates the kernel-time parameters of a device with a few measured rows (linear-Gaussian).
 *
 * The state x has the logarithm of every number with a range, in all runtime entries of the device.
 * For numbers that may be 0 it is ln(1 + number / offset). The prior of x is normal. Its mean is
 * the file's value, and the file's range is taken as 95 %, in a copy without the part of models.
 * Two entries' values of one number are correlated, because machines differ from their siblings
 * more than widths do (hwmodels/spread.h). Their covariance is the variance of the more certain
 * one, and the rest of a wide range is specific to its entry. So a machine that is slower by a
 * factor is slower by it in every entry.
 *
 * The logarithm of a row's time is normal around the predicted one. Rows of one model and phase
 * share an error (the model's), and each row has an additional error. The update finds the mode
 * with GSL's trust region solver, and takes the covariance there. For a model linear in x this is
 * the exact posterior.
 *
 * Bandwidths stay at most the DDR's peak. */
#pragma once

#include <cjson/cJSON.h>
#include <gsl/gsl_matrix.h>
#include <gsl/gsl_vector.h>

#include "experiments/validation/calibrate_space.h"
#include "hwmodels/spread.h"

#define UPDATE_PHASES 3 /* enum conformal_phase */
#define UPDATE_MODELS 8 /* for which intervals are reported */

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
    gsl_vector *mean;       /* owned; of x; that of the prior until update_take */
    gsl_matrix *covariance; /* owned */
};

/* A row to learn from or to predict. */
struct update_row {
    const struct point *point; /* borrowed */
    struct predict_case k;     /* on the update's soc and device */
};

bool update_is_small(const struct llm *m); /* hwmodels/spread.h */

/* Makes the prior. `tree` is the file from which `soc` was parsed. update_fini in every case. */
void update_init(struct update *u, const struct soc *soc, const cJSON *tree, uint8_t device,
                 const struct conformal *table);
void update_fini(struct update *u);

/* Replaces the mean by that of this state, of weight 1, and of other ones before their updates.
 * Numbers are the same if entry and name are; those that another state lacks count without it.
 * A transfer's variance is that of a difference between two machines, so each has half. With k
 * copies the covariance is (1 + 1/k)/2 of it, where k = (sum w)^2 / sum w^2 (Kish). */
void update_average(struct update *u, const struct update *other, const double *weight, size_t n);

/* Updates the state with rows. Returns 0, or -EINVAL without a mode; then the state is unchanged.
 */
int update_take(struct update *u, const struct update_row *rows, size_t n, struct err *e);

/* A runtime entry with the present mean. */
struct soc_runtime update_entry(const struct update *u, uint32_t runtime);

/* ln of a row's seconds, with standard deviations: `state_sd` from the parameters only, and `sd`
 * for a new measurement of a model that was not measured. */
struct update_prediction {
    double ln_seconds, state_sd, sd;
};
struct update_prediction update_predict(const struct update *u, const struct update_row *row);

/* ln of the density that the state gives to the times of `rows`, up to a constant for each row: its
 * evidence, by Laplace's approximation at the mode. Without a mode it is -infinity. */
double update_ln_evidence(const struct update *u, const struct update_row *rows, size_t n);

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

/* Makes benchmarks of the most frequent models of published tables (at most `max`, of usual size or
 * small), on each entry of the runtime that suits them. `c` has the update's soc. */
void update_usual(const struct update *u, const struct catalog *c, const char *runtime, bool small,
                  size_t max, struct update_usual *out);
void update_usual_fini(struct update_usual *x);

/* Standard deviation of ln(measured / predicted) of a phase on an entry, for a model that was not
 * measured: the root of the mean variance over the usual benchmarks. NaN: there are none. */
double update_error_sd(const struct update *u, const struct update_usual *x, uint32_t runtime,
                       enum conformal_phase phase);

/* For each benchmark, fills the share of the mean variance of all usual rows that its measurement
 * is expected to remove (only state variance, because errors of models remain). share: [x->n].
 * Cost: cubic in the numbers of the state, times benchmarks. */
void update_gains(const struct update *u, const struct update_usual *x, double *share);

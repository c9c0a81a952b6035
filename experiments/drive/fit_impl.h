/* Inside the fit: kernels of one part as samples, and the arithmetic on them (fit_solve.c). */
#pragma once

#include "experiments/drive/fit.h"

#define Z95 1.96
#define SAMPLE_TERMS 6

/* Share of kernel `at` during which another device of the same run was busy. */
double fit_overlap(const struct fit_input *in, size_t at);
/* One-row products and layers that co-run, over isolated ones, by op; the mean of the ops. Leaves
 * out as it is where too few met. */
void fit_beside(const struct fit_input *in, const double *overlap, uint32_t device,
                struct fit_device *out);
bool fit_is_one_row(const struct drive_kernel *k);
struct work_shape fit_shape(const struct drive_kernel *k); /* of the launch it is a part of */

/* Pairs and rows of its prompts that take the path of few rows, then of the others (fit_prompt.c).
 */
void fit_prompt_terms(const struct fit_input *in, const struct drive_kernel *k,
                      struct fit_split split, double x[4]);
double fit_decode_keys(const struct fit_input *in, const struct drive_kernel *k);
uint32_t fit_longest(const struct fit_input *in, const struct drive_kernel *k); /* keys */

/* A kernel with its regressors, as a part of the fit sees it. */
struct sample {
    double t_s, x[SAMPLE_TERMS];
    double fitted_s;
};

struct samples {
    struct sample *v; /* owned */
    size_t n;
    uint32_t lost;
};

struct sample *samples_add(struct samples *s);
/* For assertions: in the order of their work, as samples_screen leaves them. */
bool samples_sorted(const struct samples *s);
/* Kinds of work among screened samples. */
uint32_t samples_kinds(const struct samples *s);
/* Sorts by work; drops those that lost their core, where three or more like them tell. */
void samples_screen(struct samples *s);
/* Errors of single kernels, and whether the form misses more than repeats of like work scatter: F
 * of lack of fit over pure error, in relative errors. Screened samples, fitted. */
void samples_judge(const struct samples *s, uint32_t n_params, struct fit_part *part);
/* t = c . x with relative errors; negative coefficients are set to 0 one by one. Then all are
 * scaled so that the sum of times is kept. Sets fitted_s. */
void samples_regress(struct samples *s, uint32_t p, struct fit_number *c);
/* Only scales, coefficients from elsewhere. */
void samples_scale(struct samples *s, uint32_t p, struct fit_number *c);
/* Row counts (x[0]) in lots by powers of two: mean rows, mean time with its interval. Times may not
 * fall with rows: neighbours that do are pooled. Screened samples. */
void samples_table(struct samples *s, struct fit_table *t);
void samples_table_fitted(struct samples *s, const struct fit_table *t);

/* Least squares; a line that would fall, or begin below 0, goes through the mean without that
 * part. */
void fit_line_solve(struct fit_line *l);

/* Adds the kernels that are prompts only, screened, as samples of this split. */
typedef void fit_collect(void *self, struct fit_split split, struct samples *s);
/* The split with which they fit best. */
struct fit_split fit_prompt_split(fit_collect *collect, void *self);

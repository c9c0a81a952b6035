/* Internals of the fit: kernels of a part as samples, and the arithmetic on them (fit_solve.c). */
#pragma once

#include "experiments/drive/fit.h"

#define Z95 1.96
#define SAMPLE_TERMS 6

/* Share of kernel `at` during which another device of the same run was busy. */
double fit_overlap(const struct fit_input *in, size_t at);
/* Fits the slowdown of co-running one-row products and layers against isolated ones, by op, and
 * takes the mean of ops. Leaves out unchanged if too few kernels overlapped. */
void fit_beside(const struct fit_input *in, const double *overlap, uint32_t device,
                struct fit_device *out);
bool fit_is_one_row(const struct drive_kernel *k);
struct work_shape fit_shape(const struct drive_kernel *k); /* of the launch that it belongs to */

/* Pairs and rows of its prompts: on the path for few rows, then on the other (fit_prompt.c). */
void fit_prompt_terms(const struct fit_input *in, const struct drive_kernel *k,
                      struct fit_split split, double x[4]);
double fit_decode_keys(const struct fit_input *in, const struct drive_kernel *k);
uint32_t fit_longest(const struct fit_input *in, const struct drive_kernel *k); /* keys */

/* A kernel with the regressors of a part of the fit. */
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
/* For assertions: sorted by work, as after samples_screen. */
bool samples_sorted(const struct samples *s);
/* Number of distinct kinds of work among screened samples. */
uint32_t samples_kinds(const struct samples *s);
/* Sorts by work, and drops samples that lost their core, among three or more of equal work. */
void samples_screen(struct samples *s);
/* Fills errors of single kernels, and the F test of lack of fit against pure error (repeats of
 * equal work), in relative errors. Precondition: samples are screened and fitted. */
void samples_judge(const struct samples *s, uint32_t n_params, struct fit_part *part);
/* Regression t = c . x in relative errors; negative coefficients are set to 0 one by one. Then
 * scales all, so that the sum of times is exact. Sets fitted_s. */
void samples_regress(struct samples *s, uint32_t p, struct fit_number *c);
/* Only scales given coefficients. */
void samples_scale(struct samples *s, uint32_t p, struct fit_number *c);
/* Bins samples by row count (x[0]) in powers of two: mean rows, mean time with its interval.
 * Neighbours whose times fall with rows are pooled. Precondition: screened. */
void samples_table(struct samples *s, struct fit_table *t);
void samples_table_fitted(struct samples *s, const struct fit_table *t);

/* Least squares. A negative slope or offset is set to 0, and the line goes through the mean. */
void fit_line_solve(struct fit_line *l);

/* Adds the kernels with only prompts as screened samples for this split. */
typedef void fit_collect(void *self, struct fit_split split, struct samples *s);
/* The split with the best fit. */
struct fit_split fit_prompt_split(fit_collect *collect, void *self);

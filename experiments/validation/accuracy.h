/* How far predictions are off and what their intervals are worth, by what of a row nobody had
 * measured: one table by device and phase, one by machine and runtime.
 *
 * Rows come from three places. hwmodels/residuals.csv has rows whose model, SoC, runtime or source
 * was left out. leave_machine.h makes machines of which one model was measured. The points that the
 * shipped files were fitted to are the last. Interval and scores of a row never rest on what was
 * left out with it. */
#pragma once

#include "experiments/shell/document.h"
#include "experiments/validation/catalog.h"
#include "experiments/validation/points.h"

#define ACCURACY_MIN_ROWS 30 /* a class with fewer says nothing of a 95 % level */

struct accuracy_row {
    const char *unseen, *soc, *runtime; /* borrowed; unseen: a name of conformal_left_names or "" */
    enum device_kind kind;
    enum conformal_phase phase;
    double ln_error; /* ln(predicted / measured) */
    double half;     /* of ln, of the 95 % interval; NaN: none */
};

/* Rows of a class together. */
struct accuracy_class {
    size_t n;
    double median_frac, p90_frac; /* of |predicted / measured - 1| */
    double inside_frac;           /* of intervals; NaN without */
    double half;                  /* median, as a factor of time; NaN without */
    double width_ratio; /* ln of the intervals over ln of those that just hold 95 %; NaN without */
};

struct accuracy_class accuracy_class_of(const struct accuracy_row *row, size_t n);

/* Both tables into d (the first also as data); `against`: an earlier result (its path) to compare
 * with, or NULL. Returns how many classes of at least ACCURACY_MIN_ROWS rows got worse: the median
 * by more than a tenth, or coverage below 93 % and below the earlier one, or no row left. Every
 * such class is a line on stderr. -EINVAL with errors. Cost: seconds; the square of the table's
 * rows. */
int accuracy_document(struct catalog *c, const struct points *points, const char *against,
                      struct document *d, struct err *e);

/* Errors of predictions and coverage of their intervals, by what was not measured before (model,
 * SoC, runtime or source): a table by device and phase, and one by machine and runtime.
 *
 * Rows have three sources. hwmodels/residuals.csv has rows whose model, SoC, runtime or source was
 * left out. leave_machine.h makes machines of which one model was measured. The third are the
 * points that the shipped files were fitted to. Interval and scores of a row never use what was
 * left out with it. */
#pragma once

#include "experiments/shell/document.h"
#include "experiments/validation/catalog.h"
#include "experiments/validation/points.h"

#define ACCURACY_MIN_ROWS 30 /* fewer rows cannot show a 95 % level */

struct accuracy_row {
    const char *unseen, *soc, *runtime; /* borrowed; unseen: a name of conformal_left_names or "" */
    enum device_kind kind;
    enum conformal_phase phase;
    double ln_error; /* ln(predicted / measured) */
    double half;     /* half-width of the 95 % interval of ln; NaN: none */
};

/* Statistics of the rows of a class. */
struct accuracy_class {
    size_t n;
    double median_frac, p90_frac; /* of |predicted / measured - 1| */
    double inside_frac;           /* coverage of the intervals; NaN: none */
    double half;                  /* median half-width, as a factor of time; NaN: none */
    double width_ratio; /* ln width over that of intervals which just hold 95 %; NaN: none */
};

struct accuracy_class accuracy_class_of(const struct accuracy_row *row, size_t n);

/* Adds both tables to d (the first also as data). `against`: path of an earlier result to compare
 * with, or NULL. Returns the number of classes with at least ACCURACY_MIN_ROWS rows that got worse,
 * or -EINVAL with errors. Worse is: a median error more than a tenth higher, coverage below 93 %
 * and below the earlier one, or no rows any more. Each such class is printed on stderr. Cost:
 * quadratic in the table's rows; seconds. */
int accuracy_document(struct catalog *c, const struct points *points, const char *against,
                      struct document *d, struct err *e);

/* Leaving machines out: a machine with published rows is made from each of its siblings by data
 * sheet, as `new-soc` makes it, and updated by the rows of a few models. The rows of its other
 * models are then predicted.
 *
 * Nothing of the machine enters but those rows: families are fitted again without it, and ranges
 * and spreads come from errors without it. */
#pragma once

#include "experiments/shell/document.h"
#include "experiments/validation/catalog.h"
#include "experiments/validation/points.h"
#include "hwmodels/conformal.h"

enum leave_way {
    LEAVE_ROOFLINE, /* the sibling's rate, bandwidth, launch and attention, scaled: no fills */
    LEAVE_SHEET,    /* by data sheet alone, as `new-soc` makes it */
    LEAVE_SCALED,   /* each phase times the error of the measured models */
    LEAVE_UPDATED,  /* xpusim's update */
    LEAVE_WAYS
};

/* One row of one model that was not measured, under one choice of those that were. */
struct leave_row {
    const char *soc, *by; /* the machine and its sibling; borrowed from the catalogue */
    bool same_family;
    enum device_kind kind;
    enum conformal_phase phase;
    bool width_measured;         /* some measured model has the row's width */
    bool small;                  /* the row's own model is (hwmodels/spread.h) */
    bool small_measured;         /* some measured model is small */
    double ln_error[LEAVE_WAYS]; /* ln(predicted / measured) */
    double half[LEAVE_WAYS];     /* of ln, of 95 % intervals; NaN: none is made */
};

struct leave_rows {
    struct leave_row *v; /* kept */
    size_t n;
    size_t machines, pairs;
};

/* The rows that fits take, and those that are judged. Both are one table where each of its machines
 * is left out. A table of its own has machines that no fit has seen; there a row of another version
 * of the sibling's toolchain counts as well. */
struct leave_points {
    const struct points *known, *judged; /* borrowed */
};

/* `measured` models (at least 1) of a machine are known, one width each. Adds errors for files that
 * cannot be read. Cost: some milliseconds for each sibling, choice and row. */
int leave_machines(struct catalog *c, const struct leave_points *points, uint32_t measured,
                   struct leave_rows *out, struct err *e);

/* The errors of `validate --leave-machine-out` as a table, by device, part and phase. */

void leave_machine_document(const struct leave_rows *r, uint32_t measured, struct document *d);

/* Leave-one-machine-out validation. A machine with published rows is made from each of its siblings
 * by data sheet, like by `new-soc`, and updated with the rows of a few models. The rows of its
 * other models are then predicted.
 *
 * No other rows of the machine are used: families are fitted again without it, and ranges and
 * spreads come from errors without it. */
#pragma once

#include "experiments/shell/document.h"
#include "experiments/validation/catalog.h"
#include "experiments/validation/points.h"
#include "hwmodels/conformal.h"

enum leave_way {
    LEAVE_ROOFLINE, /* the sibling's rate, bandwidth, launch and attention, scaled: no fills */
    LEAVE_SHEET,    /* only scaled by data sheet, like by `new-soc` */
    LEAVE_SCALED,   /* LEAVE_SHEET, each phase times the error of the measured models */
    LEAVE_UPDATED,  /* xpusim's update */
    LEAVE_WAYS
};

/* A row of a model that was not measured, for one choice of measured models. */
struct leave_row {
    const char *soc, *by; /* machine and sibling, the likeliest if averaged; borrowed from the
                             catalogue */
    bool same_family;
    enum device_kind kind;
    enum conformal_phase phase;
    bool width_measured;         /* a measured model has the row's width */
    bool small;                  /* the row's model is small (hwmodels/spread.h) */
    bool small_measured;         /* a measured model is small */
    bool averaged;               /* the copies are averaged, as by `new-soc` without --like */
    double ln_error[LEAVE_WAYS]; /* ln(predicted / measured) */
    double half[LEAVE_WAYS];     /* half-widths of 95 % intervals of ln; NaN: none */
};

struct leave_rows {
    struct leave_row *v; /* kept */
    size_t n;
    size_t machines, pairs;
};

/* The rows for fits, and the rows to predict. Both are the same table if each of its machines is
 * left out. A separate table has machines that no fit has used; its rows may have another version
 * of the sibling's toolchain. */
struct leave_points {
    const struct points *known, *judged; /* borrowed */
};

/* Predicts with `measured` models (>= 1) of each machine known, one width each. Adds errors for
 * files that cannot be read. Cost: some milliseconds per sibling, choice and row. */
int leave_machines(struct catalog *c, const struct leave_points *points, uint32_t measured,
                   struct leave_rows *out, struct err *e);

/* The errors of `validate --leave-machine-out` as a table, by device, part and phase. */

void leave_machine_document(const struct leave_rows *r, uint32_t measured, struct document *d);

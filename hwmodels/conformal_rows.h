/* The rows of a table of errors that count, and their distance from a query. Texts are interned,
 * because they are compared many thousand times. For hwmodels/conformal*.c only. */
#pragma once

#include "hwmodels/conformal.h"

/* The model and the SoC that a query leaves out; NULL: none. */
struct conformal_left_out {
    enum conformal_phase phase;
    const char *model, *soc;
};

struct conformal_left_out conformal_rows_left_out(const struct conformal_query *q);

/* Whether a row is of the phase, and not of a model or SoC that is left out. Rows predicted by such
 * a SoC are left out, too: errors of the two directions of a pair of machines mirror each other. */
static inline bool conformal_rows_counts(const struct conformal_row *r,
                                         const struct conformal_left_out *out)
{
    bool left_out = (out->model != NULL && r->model == out->model) ||
                    (out->soc != NULL && (r->soc == out->soc || r->by == out->soc));
    return r->phase == out->phase && !left_out;
}

/* The distance to the nearest row of the query's family, device and phase that fits used; 0 if
 * there is none. */
double conformal_rows_distance(const struct conformal *c, const struct conformal_query *q);

/* Sets the distance of each row of a prepared table. */
void conformal_rows_measure(struct conformal *c);

/* Which rows of a table of errors count, and how far they are from a query. Texts that are compared
 * many thousand times are kept ones: equal texts are one pointer. Within hwmodels/conformal.c. */
#pragma once

#include "hwmodels/conformal.h"

/* The model and the SoC that a query leaves out; NULL: none. */
struct conformal_left_out {
    enum conformal_phase phase;
    const char *model, *soc;
};

struct conformal_left_out conformal_rows_left_out(const struct conformal_query *q);

/* A row of the phase, and of no model or SoC that is left out. Errors that such a SoC made go with
 * those that others made about it: the one error of a pair of machines is about the other's, turned
 * round. */
static inline bool conformal_rows_counts(const struct conformal_row *r,
                                         const struct conformal_left_out *out)
{
    bool left_out = (out->model != NULL && r->model == out->model) ||
                    (out->soc != NULL && (r->soc == out->soc || r->by == out->soc));
    return r->phase == out->phase && !left_out;
}

/* To the nearest row of the query's family, device and phase that a fit has kept; 0 where there is
 * none. */
double conformal_rows_distance(const struct conformal *c, const struct conformal_query *q);

/* Fills in the distance of each row of a prepared table. */
void conformal_rows_measure(struct conformal *c);

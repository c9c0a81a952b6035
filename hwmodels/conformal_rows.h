/* The rows of a table of errors, made quick to choose: texts that are compared many thousand times
 * are numbers here. Equal numbers are equal texts. Within hwmodels/conformal.c alone. */
#pragma once

#include "hwmodels/conformal.h"

#define CONFORMAL_NO_TEXT UINT32_MAX /* no row has it, or none is asked for */

struct conformal_row_numbers {
    enum conformal_phase phase; /* here, too: rows are large, and most are of another phase */
    uint32_t soc, by, family, model;
    uint32_t group; /* of the text that its errors have in common: its model or its SoC */
    double ln_weights, ln_tokens; /* of tokens + 1 */
};

struct conformal_rows {
    const struct conformal_row *row; /* [n]; borrowed; its texts too */
    struct conformal_row_numbers *v; /* [n]; owned */
    size_t n;
    const char **text; /* [n_texts] by number; owned */
    uint32_t n_texts;
};

/* The model and the SoC that a query leaves out. */
struct conformal_left_out {
    enum conformal_phase phase;
    uint32_t model, soc;
};

/* A table that was read has them. Others get `own`, which conformal_rows_fini frees. Cost then:
 * some comparisons of texts a row. */
const struct conformal_rows *conformal_rows_of(const struct conformal *c,
                                               struct conformal_rows *own);
void conformal_rows_fini(struct conformal_rows *rows);

struct conformal_left_out conformal_rows_left_out(const struct conformal_rows *rows,
                                                  const struct conformal_query *q);

/* Row i is of the phase, and of no model or SoC that is left out. Errors that such a SoC made
 * go with those that others made about it: the one error of a pair of machines is about the
 * other's, turned round. */
static inline bool conformal_rows_counts(const struct conformal_rows *rows, size_t i,
                                         const struct conformal_left_out *out)
{
    const struct conformal_row_numbers *n = &rows->v[i];
    return n->phase == out->phase && n->model != out->model && n->soc != out->soc &&
           n->by != out->soc;
}

/* To the nearest row of the query's family, device and phase that a fit has kept; 0 where there is
 * none. */
double conformal_rows_distance(const struct conformal_rows *rows, const struct conformal_query *q);

/* Numbers the rows of a table that was read, and fills in the distance of each. */
void conformal_rows_measure(struct conformal *c);

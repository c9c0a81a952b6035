/* Chooses the similar chips of a new machine by its measured rows: the shipped machine under whose
 * copy these times are most probable (update_ln_evidence), and the others whose copies are averaged
 * with that one. Copies of other machines are no candidates, nor are machines that have no entry
 * for a row's device, runtime and width. */
#pragma once

#include <cjson/cJSON.h>

#include "experiments/shell/document.h"
#include "experiments/validation/catalog.h"
#include "experiments/validation/measured.h"
#include "experiments/validation/update.h"
#include "hwmodels/soc_sibling.h"

struct measured_copy {
    const char *name; /* of the similar chip; kept */
    double weight;    /* its probability over that of the first one */
    bool fitted;      /* its own measurements made the entries of the rows */
    struct soc *soc;  /* the copy; owned, and so is its file */
    cJSON *tree;
};

struct measured_like {
    struct measured_copy *v; /* owned; the likeliest first */
    size_t n;
};

/* Fills `out`, empty if a row states no runtime, or if no machine has all of the rows, and puts a
 * note about the chips into `d`. `how` has the data sheet; its `like` is not used. The models of
 * the rows are in `c`. Cost: some milliseconds per machine and row. */
void measured_like(struct catalog *c, const struct soc_sibling *how, const struct measured *m,
                   struct document *d, struct measured_like *out);
/* Averages a prior with those of the other copies; x: NULL or one copy change nothing. */
void measured_like_average(const struct measured_like *x, struct update *prior,
                           const struct conformal *table);
void measured_like_fini(struct measured_like *x);

/* A fit of made-up points: two parameters, three claims with four checks, twelve points. */
#pragma once

#include "experiments/claims/fit.h"

#define MADEFIT_POINTS 12
#define MADEFIT_CHECKS 4

extern struct fit madefit;
extern struct fit_options madefit_options;
extern struct claim madefit_claims[3];
extern struct err madefit_err;
extern char madefit_path[64]; /* of a state file, which madefit_teardown removes */

void madefit_setup(void);
void madefit_teardown(void);

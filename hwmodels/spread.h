/* The components of prediction errors, as standard deviations of ln(predicted / measured), for one
 * kind of device and one phase:
 *   row      rows of one model on one machine around their mean
 *   model    means of models around their machine's fit, which has not seen them
 *   tail     the 95 % quantile of both together, over 1.96: what a normal interval needs. The
 *            quantile of few models is mostly too small, so its level is 0.95 + 0.5/n, by Hazen's
 *            ranks. n is Kish's effective number of models, m^2 / sum(1/k) of m machines with k
 *            models each: a machine with many models says little about others
 *   machine  offsets of machines from their siblings, shared by all widths of weights
 *   width    offsets of single widths around that
 *
 * The first two are robust: 1.48 times a median absolute deviation. All rows of a machine together
 * have the same weight in that median as those of any other. Models with fewer weights
 * than SPREAD_SMALL_WEIGHTS are a separate class, because launches and the host dominate their
 * times. The last two are a random effects analysis of variance with widths nested in pairs of
 * machines, and count every model. They depend on kinship: chips of one family have the same
 * kernels for each width, so errors of all widths are correlated; across families the kernels of
 * single widths differ. A class of fewer than SPREAD_MIN_ROWS rows gets the numbers of all sizes
 * and kinships. If that is not enough, it gets those of all kinds of devices. A kinship without two
 * widths of one pair gets those of all. */
#pragma once

#include "hwmodels/transfers.h"

#define SPREAD_MIN_ROWS 10
#define SPREAD_SMALL_WEIGHTS CONFORMAL_SMALL_WEIGHTS

struct spread {
    double row_sd, model_sd, tail_sd;
    double machine_sd, width_sd;
};

/* Excludes rows of `without_soc` and of predictions by it (NULL: none). Without any row every
 * number is 0.2, a guess. Cost: the square of the rows. */
struct spread spread_of(const struct conformal *c, enum device_kind kind,
                        enum conformal_phase phase, bool small, enum transfer_kin kin,
                        const char *without_soc);

/* Within the prediction of rows other than a model's latency (predict_other.c, predict_kernel.c).
 */
#pragma once

#include "experiments/validation/predict.h"

struct prediction predict_unknown(const char *reason);
struct prediction predict_known(double value); /* without an interval */

/* Fills class and interval of a latency row whose pass is predicted to take that long; of another
 * row, whose value is predicted to be that. */
void predict_interval(const struct catalog *c, const struct point *p, const struct predict_case *k,
                      double seconds, struct prediction *out);

/* A product that the row's text describes; the interval is that of passes of as many rows. */
struct prediction predict_kernel(const struct catalog *c, const struct soc *soc,
                                 const struct point *p);
/* Loading a model, by published loads of other sources (predict_load.c). */
struct prediction predict_load(const struct catalog *c, const struct point *p);
/* Joules per token at the meter of the device's powers; beyond a rail with what the idle machine
 * draws. The powers are the SoC file's and only the time is predicted, so that the interval is the
 * time's. */
struct prediction predict_energy(const struct catalog *c, const struct soc *soc,
                                 const struct point *p);

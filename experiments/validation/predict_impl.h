/* Declarations for the prediction of rows other than a model's latency (predict_other.c,
 * predict_kernel.c). */
#pragma once

#include "experiments/validation/predict.h"

struct prediction predict_unknown(const char *reason);
struct prediction predict_known(double value); /* without an interval */

/* Fills class and interval of a prediction. seconds: the predicted time of a latency row's pass, or
 * the predicted value of another row. */
void predict_interval(const struct catalog *c, const struct point *p, const struct predict_case *k,
                      double seconds, struct prediction *out);

/* Predicts a matrix product described by the row. The interval is that of passes with these rows.
 */
struct prediction predict_kernel(const struct catalog *c, const struct soc *soc,
                                 const struct point *p);
/* Predicts the load time of a model from published loads of other sources (predict_load.c). */
struct prediction predict_load(const struct catalog *c, const struct point *p);
/* Predicts joules per token at the meter of the device's powers; unless that is a rail, with the
 * idle power of the machine. Powers are those of the SoC file, so the interval is that of the
 * predicted time. */
struct prediction predict_energy(const struct catalog *c, const struct soc *soc,
                                 const struct point *p);

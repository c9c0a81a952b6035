/* Fits the memory parameters of runtimes (hwmodels/footprint.h) to published peaks of the resident
 * set.
 *
 * There is one fit per toolchain and kind of device, over all machines: "openvino-2025" on
 * integrated GPUs. The fit is least squares of relative errors with parameters >= 0. Rows with
 * errors above 1.5 robust standard deviations have less weight (Huber). */
#pragma once

#include "experiments/validation/predict.h"

struct footprint_row {
    const struct point *point; /* borrowed */
    struct predict_case k;
    bool left_out;
};

struct footprint_rows {
    struct footprint_row *v; /* kept */
    size_t n;
};

/* Collects the memory rows with a machine, device and model of the catalog. */
void footprint_collect(const struct catalog *c, const struct points *points,
                       struct footprint_rows *out);

/* Fits the toolchain and kind of device of row `like` to the rows that are not left out. False:
 * fewer rows than the four parameters. */
bool footprint_fit(const struct footprint_rows *r, const struct footprint_row *like,
                   struct soc_memory *out);

/* The mean of the fits of all other toolchains, the prediction for one without measurements. False:
 * there is none. */
bool footprint_fit_others(const struct footprint_rows *r, const struct footprint_row *like,
                          struct soc_memory *out);

/* Memory of a row with parameters m, in bytes. */
double footprint_row_bytes(const struct footprint_row *r, const struct soc_memory *m);

/* Predicts a row from the parameters in its SoC file, else from the mean over all files. */
struct prediction predict_memory(const struct catalog *c, const struct point *p);

/* Prints each toolchain's parameters, with ranges over fits that leave out one publication. */
void footprint_print(const struct catalog *c, const struct points *points, FILE *out);

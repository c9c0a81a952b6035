/* The memory numbers of runtimes (hwmodels/footprint.h), fitted to published peaks of the resident
 * set.
 *
 * Rows of one toolchain and kind of device are one fit on all machines: "openvino-2025" on
 * integrated GPUs. The fit is least squares of relative errors with numbers at least 0. Rows
 * further off than 1.5 robust standard deviations weigh less (Huber). */
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

/* The memory rows that name a machine, a device and a model of the catalog. */
void footprint_collect(const struct catalog *c, const struct points *points,
                       struct footprint_rows *out);

/* Fits the toolchain and kind of device of row `like` to the rows that are not left out. False:
 * fewer are left than the four numbers. */
bool footprint_fit(const struct footprint_rows *r, const struct footprint_row *like,
                   struct soc_memory *out);

/* The mean of the fits of all other toolchains: what is known of one that nobody measured. False:
 * there is none. */
bool footprint_fit_others(const struct footprint_rows *r, const struct footprint_row *like,
                          struct soc_memory *out);

/* Memory of a row by some numbers, in bytes. */
double footprint_row_bytes(const struct footprint_row *r, const struct soc_memory *m);

/* A row by the numbers of its SoC file, else by the mean of those of all files. */
struct prediction predict_memory(const struct catalog *c, const struct point *p);

/* Each toolchain's numbers; their ranges are those of the fits without one publication. */
void footprint_print(const struct catalog *c, const struct points *points, FILE *out);

/* Predictions of published measurements by the shipped machines. */
#pragma once

#include "experiments/run/price.h"
#include "experiments/validation/catalog.h"
#include "experiments/validation/points.h"

/* Where a row belongs. `reason` says why it cannot be predicted; NULL when it can. */
struct predict_case {
    const struct soc *soc; /* borrowed; NULL: not shipped */
    uint8_t device;
    uint32_t runtime;     /* entry of the device */
    enum soc_match match; /* of the entry with the row's runtime and width */
    struct llm llm;       /* at the row's width, in the runtime's format */
    bool has_llm;
    uint32_t window; /* of the model's graphs, where the entry has one; 0: the entry's */
    const char *reason;
};

/* Index of a device by name, then by kind ("gpu" is also an integrated one); -1: none. */
int predict_device(const struct soc *soc, const char *name);

/* Finds machine, device, runtime and model of a latency row. */
void predict_bind(const struct catalog *c, const struct point *p, struct predict_case *out);

/* Like predict_bind, but as if the SoC file had no entry of the row's runtime: another one's is
 * taken. */
void predict_bind_other(const struct catalog *c, const struct point *p, struct predict_case *out);

/* The kernel-time model of a bound latency row, before any runtime entry is chosen. Borrows the
 * case. */
void predict_model(const struct predict_case *k, struct roofline *out);

/* Price of the pass that a row measures, by its model with this entry (borrowed until the next). */
struct price predict_by_model(struct roofline *r, const struct predict_case *k,
                              const struct point *p, const struct soc_runtime *params);

/* Seconds of that pass without the rounding of its kernels to nanoseconds, on which a search would
 * come to rest. `r` then serves this function alone. */
double predict_smooth_s(struct roofline *r, const struct predict_case *k, const struct point *p,
                        const struct soc_runtime *params);

/* Price of the pass that a bound latency row measures. params: the runtime entry to use, NULL for
 * the file's. */
struct price predict_price(const struct predict_case *k, const struct point *p,
                           const struct soc_runtime *params);

/* The phase whose errors a row belongs to. */
enum conformal_phase predict_phase(const struct point *p);

struct prediction {
    double value; /* in the row's unit; NaN when there is a reason */
    const char *reason;
    const struct soc_runtime *entry; /* the file's, which predicted; borrowed, NULL: none */
    bool runtime_default; /* the runtime is not in the file: another version or runtime is used */
    bool outside;         /* outside the validity envelope */
    enum conformal_left unseen; /* the class of the interval */
    double low, high; /* 95 % interval of the value, as if its model had not been measured; NaN */
};

/* Any row. */
struct prediction predict_row(const struct catalog *c, const struct point *p);

/* Rows that are not the latency of a model: kernels, bandwidth, power, energy (predict_other.c). */
struct prediction predict_other(const struct catalog *c, const struct point *p);

/* Predictions of published measurements by the shipped machines. */
#pragma once

#include "experiments/run/price.h"
#include "experiments/validation/catalog.h"
#include "experiments/validation/points.h"

/* Machine, device, runtime and model of a row. `reason`: why it is not predicted; NULL: it can be.
 */
struct predict_case {
    const struct soc *soc; /* borrowed; NULL: not shipped */
    uint8_t device;
    uint32_t runtime;     /* entry of the device */
    enum soc_match match; /* how well the entry matches the row's runtime and width */
    struct llm llm;       /* at the row's width, in the runtime's format */
    bool has_llm;
    uint32_t window; /* of the model's graphs, if the entry has a window; 0: the entry's */
    const char *reason;
};

/* Index of a device by name, then by kind ("gpu" is also an integrated one); -1: none. */
int predict_device(const struct soc *soc, const char *name);

/* Finds machine, device, runtime and model of a latency row. */
void predict_bind(const struct catalog *c, const struct point *p, struct predict_case *out);

/* Like predict_bind, but as if the SoC file had no entry for the row's runtime, so it uses that of
 * another one. */
void predict_bind_other(const struct catalog *c, const struct point *p, struct predict_case *out);

/* Fills the kernel-time model of a bound latency row, without a runtime entry. Borrows the case. */
void predict_model(const struct predict_case *k, struct roofline *out);

/* Price of the pass that a row measures, by model r with params (borrowed until the next call). */
struct price predict_by_model(struct roofline *r, const struct predict_case *k,
                              const struct point *p, const struct soc_runtime *params);

/* Seconds of that pass without rounding kernels to nanoseconds, which would stop a search too
 * early. Afterwards `r` may only be used with this function. */
double predict_smooth_s(struct roofline *r, const struct predict_case *k, const struct point *p,
                        const struct soc_runtime *params);

/* Price of the pass that a bound latency row measures. params: the runtime entry to use, NULL for
 * the file's. */
struct price predict_price(const struct predict_case *k, const struct point *p,
                           const struct soc_runtime *params);

/* The phase of a row, for error tables. */
enum conformal_phase predict_phase(const struct point *p);

struct prediction {
    double value; /* in the row's unit; NaN if there is a reason */
    const char *reason;
    const struct soc_runtime *entry; /* entry of the file used for it; borrowed; NULL: none */
    bool runtime_default; /* the runtime is not in the file: another version or runtime is used */
    bool outside;         /* outside the validity envelope */
    enum conformal_left unseen; /* the class of the interval */
    double low, high; /* 95 % interval of the value, for a model that was not measured; NaN: none */
};

/* Predicts any row. */
struct prediction predict_row(const struct catalog *c, const struct point *p);

/* Predicts rows other than latencies of a model: kernels, bandwidth, power, energy
 * (predict_other.c). */
struct prediction predict_other(const struct catalog *c, const struct point *p);

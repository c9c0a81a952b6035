/* Intervals of predicted times, from errors of calibrations on rows that they had not seen: of two
 * variances, and of a quantile of what they leave (normalised conformal prediction, Lei et al.
 * 2018).
 *
 * An error is ln(predicted / measured) / (1 + CONFORMAL_WIDEN d). Here d is the distance of the row
 * from the nearest row that was kept, in natural logarithms of weights and tokens. The decode of a
 * mixture of experts counts as CONFORMAL_MIXTURE times as uncertain. Errors of one
 * group are correlated: of one model where models were left out, of one SoC otherwise. The variance
 * of a class is the mean over its groups of the squared group mean (between), plus the mean over
 * its rows of the squared deviation from the group mean (within).
 *
 * Classes are nested: phase, what was left out, kind of device, small or usual models. The variance
 * of a class with few groups is drawn towards the class above, as if CONFORMAL_PRIOR_GROUPS groups
 * had that one's. Each row's error is then divided by the standard deviation that the other groups
 * give its class. q is the `level` quantile of these ratios over the phase, 1.96 if they were
 * normal. Where at least CONFORMAL_KIND_GROUPS groups have rows of the query's kind of device, q is
 * the quantile over these rows alone: errors on NPUs have longer tails. The level of a quantile
 * over g groups is `level` (1 + 1/g), because the new group is one more.
 *
 * The interval of a new prediction is its time times exp(+- q sd (1 + CONFORMAL_WIDEN d)), and as
 * much wider where it is such a decode. Draws have the same distribution. docs/accuracy.md says how
 * many rows of each class it holds. */
#pragma once

#include "sim/api/device.h"
#include "sim/base/base.h"

#define CONFORMAL_TABLE "hwmodels/residuals.csv"
#define CONFORMAL_LEVEL 0.95
#define CONFORMAL_WIDEN 0.25
/* Eleven fits of machines with a mixture left out (points reference, jetson, gb10 and strix-halo)
 * miss its decodes on the iGPU by 0.20 in ln, root mean square. 284 with a dense model left out
 * miss by 0.10. Prompts of mixtures are off by as much as others. */
#define CONFORMAL_MIXTURE 2.0
#define CONFORMAL_PRIOR_GROUPS 3.0
#define CONFORMAL_KIND_GROUPS 20    /* with rows of a kind of device, for a quantile of its own */
#define CONFORMAL_SMALL_WEIGHTS 2e9 /* models of fewer are a class: launches decide their times */
#define CONFORMAL_SHORT_TOKENS 100  /* shorter prompts are a phase of their own */

enum conformal_phase {
    CONFORMAL_PREFILL,
    CONFORMAL_SHORT_PREFILL,
    CONFORMAL_DECODE, /* the last phase of time */
    CONFORMAL_MEMORY, /* not a time: the memory of the process */
};
extern const char *const conformal_phase_names[];

/* The class of a prediction: what of it nobody has measured. */
enum conformal_left {
    CONFORMAL_MODEL,   /* the model; other models were measured on the SoC under the runtime */
    CONFORMAL_SOC,     /* the SoC; the numbers are another SoC's, scaled by data sheet */
    CONFORMAL_RUNTIME, /* the runtime; the numbers are those of another runtime of the device */
    CONFORMAL_SOURCE,  /* the source; all rows of the fit come from another publication */
};
extern const char *const conformal_left_names[];

struct conformal_row {
    const char *soc, *family, *runtime, *model;
    enum device_kind kind;
    enum conformal_phase phase;
    double weights, tokens;
    uint32_t weight_bits;
    bool mixture; /* of experts */
    enum conformal_left left;
    const char *source; /* of a row whose model was left out: its publication; else "" */
    const char
        *by; /* the SoC whose entry predicted the row; another one where its own was left out */
    double ln_error; /* ln(predicted / measured) */
    double distance; /* to the nearest row of its family of another model; where the SoC was left
                      * out, of another SoC; 0 where there is none */
    /* conformal_prepare fills these in. */
    bool within_family;           /* `by` is of the family, as some row of it says */
    double ln_weights, ln_tokens; /* of tokens + 1 */
    uint32_t group;               /* below n_groups: what its error has in common with others */
};

struct conformal {
    struct conformal_row *v; /* kept */
    size_t n;
    uint32_t n_groups;
};

/* A prediction to be made. */
struct conformal_query {
    const char *soc, *family; /* family "": the SoC's name */
    enum device_kind kind;
    enum conformal_phase phase;
    double weights, tokens;
    bool mixture;              /* of experts */
    enum conformal_left left;  /* what no fit has seen */
    const char *without_model; /* leave these errors out too (coverage); NULL: none */
    const char *without_soc;
};

struct conformal_interval {
    double low_factor, high_factor; /* of the predicted time */
    double distance;
    enum conformal_left left; /* the class that the query asked for */
    size_t n;                 /* rows of that class on this kind of device, else on all */
    const char *pool;         /* "igpu", "all"; static */
};

/* An entry's own errors, where rows of its machine are stated with it: pool "measured". */
#define CONFORMAL_MEASURED "measured"

/* Reads the table, prepares it and works out distances. 0 or -EINVAL with errors. */
int conformal_read(const char *path, struct conformal *out, struct err *e);
/* For rows that were not read: keeps their texts, of which equal ones are one pointer then. */
void conformal_prepare(struct conformal *c);

/* How many times as uncertain a prediction is because its model is a mixture of experts. */
double conformal_mixture(bool mixture, enum conformal_phase phase);

/* The query that leaves out what was left out of the row's prediction. Borrows the row. */
struct conformal_query conformal_query_of(const struct conformal_row *r);

struct conformal_interval conformal_of(const struct conformal *c, const struct conformal_query *q,
                                       double level_frac);

/* For each of u[n] (0 to 1), the u-quantile of ln(measured / predicted): the end of the interval of
 * level |2u - 1|. */
void conformal_draws(const struct conformal *c, const struct conformal_query *q, const double *u,
                     size_t n, double *out);

/* Share of the table's rows (of one phase, whose model, or SoC, was left out) that lie in the
 * interval made of errors without their model, or SoC: what the level is worth. Cost: rows^2. */
struct conformal_coverage {
    size_t n, inside;
    double median_half; /* of ln, of the intervals; the upper one of an even number */
};
struct conformal_coverage conformal_cover(const struct conformal *c, enum conformal_left left,
                                          enum conformal_phase phase, double level_frac);

/* Counts the rows of a kind of device whose model was left out, and those of them that lie between
 * the draws made without their model. median_half is 0. */
struct conformal_coverage conformal_cover_draws(const struct conformal *c, enum device_kind kind,
                                                enum conformal_phase phase, double level_frac);

enum conformal_phase conformal_phase_of(bool prefill, uint32_t tokens);

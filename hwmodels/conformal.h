/* Prediction intervals of times, from errors of calibrations on held-out rows: two variances, and a
 * quantile of the normalised errors (normalised conformal prediction, Lei et al. 2018).
 *
 * An error is ln(predicted / measured) / (1 + CONFORMAL_WIDEN d). Here d is the distance of the row
 * from the nearest row that was kept, in natural logarithms of weights and tokens. The decode of a
 * mixture of experts counts as CONFORMAL_MIXTURE times as uncertain. Errors of one group are
 * correlated. A group is a model if models were left out, else a SoC. The variance of a class is
 * the mean over its groups of the squared group mean (between), plus the mean over its rows of the
 * squared deviation from the group mean (within).
 *
 * Classes are nested: phase, what was left out, kind of device, small or usual models. The variance
 * of a class with few groups is shrunk towards that of the class above. The latter counts as
 * CONFORMAL_PRIOR_GROUPS groups. Each row's error is then divided by the standard deviation of its
 * class, computed from the other groups. The factor q is the `level` quantile of these ratios over
 * the phase. It would be 1.96 for normal errors. If CONFORMAL_KIND_GROUPS groups have rows of the
 * query's kind of device, q is that of these rows, because errors on NPUs have longer tails. The
 * level of a quantile over g groups is `level` (1 + 1/g), because the query is a new group.
 *
 * The interval of a new prediction is its time times exp(+- q sd (1 + CONFORMAL_WIDEN d)), and
 * wider by CONFORMAL_MIXTURE for such a decode. Draws have the same distribution. docs/accuracy.md
 * has the coverage of each class. */
#pragma once

#include "sim/api/device.h"
#include "sim/base/base.h"

#define CONFORMAL_TABLE "hwmodels/residuals.csv"
#define CONFORMAL_LEVEL 0.95
#define CONFORMAL_WIDEN 0.25
/* Eleven fits of machines with a mixture left out (points reference, jetson, gb10 and strix-halo)
 * have errors of 0.20 in ln (root mean square) for its decodes on the iGPU. With a dense model left
 * out, 284 have 0.10. Prompts of mixtures have usual errors. */
#define CONFORMAL_MIXTURE 2.0
#define CONFORMAL_PRIOR_GROUPS 3.0
#define CONFORMAL_KIND_GROUPS 20 /* groups that a kind of device needs for its own quantile */
/* Models with fewer are a class, because launches dominate their times. */
#define CONFORMAL_SMALL_WEIGHTS 2e9
#define CONFORMAL_SHORT_TOKENS 100 /* shorter prompts are a separate phase */

enum conformal_phase {
    CONFORMAL_PREFILL,
    CONFORMAL_SHORT_PREFILL,
    CONFORMAL_DECODE, /* the last phase of time */
    CONFORMAL_MEMORY, /* not a time: the memory of the process */
};
extern const char *const conformal_phase_names[];

/* The class of a prediction: what was not measured. */
enum conformal_left {
    CONFORMAL_MODEL,   /* the model; others were measured on the SoC with the runtime */
    CONFORMAL_SOC,     /* the SoC; its numbers are another SoC's, scaled by data sheet */
    CONFORMAL_RUNTIME, /* the runtime; its numbers are those of another runtime of the device */
    CONFORMAL_SOURCE,  /* the source; all rows of the fit come from another publication */
};
extern const char *const conformal_left_names[];

struct conformal_row {
    const char *soc, *family, *runtime, *model;
    enum device_kind kind;
    enum conformal_phase phase;
    double weights, tokens;
    uint32_t weight_bits;
    bool mixture; /* mixture of experts */
    enum conformal_left left;
    const char *source; /* publication of a row whose model was left out, else "" */
    const char
        *by; /* SoC whose entry predicted the row; another one if the row's own was left out */
    double ln_error; /* ln(predicted / measured) */
    double distance; /* to the nearest row of its family of another model (if the SoC was left out,
                        of another SoC); 0: none */
    /* conformal_prepare fills these in. */
    bool within_family;           /* `by` belongs to the family, according to a row of it */
    double ln_weights, ln_tokens; /* of tokens + 1 */
    uint32_t group;               /* < n_groups: rows with correlated errors */
};

struct conformal {
    struct conformal_row *v; /* kept */
    size_t n;
    uint32_t n_groups;
};

/* A query for an interval. */
struct conformal_query {
    const char *soc, *family; /* family "": the SoC's name */
    enum device_kind kind;
    enum conformal_phase phase;
    double weights, tokens;
    bool mixture;              /* mixture of experts */
    enum conformal_left left;  /* what was not measured */
    const char *without_model; /* also leave out errors of this model (coverage); NULL: none */
    const char *without_soc;
};

struct conformal_interval {
    double low_factor, high_factor; /* factors on the predicted time */
    double distance;
    enum conformal_left left; /* the class of the query */
    size_t n;                 /* rows of that class on this kind of device, else on all */
    const char *pool;         /* "igpu", "all"; static */
};

/* The pool if an entry states errors from rows of its own machine. */
#define CONFORMAL_MEASURED "measured"

/* Reads the table, prepares it and computes distances. 0 or -EINVAL with errors. */
int conformal_read(const char *path, struct conformal *out, struct err *e);
/* For rows that were not read: interns their texts, so that equal texts are one pointer. */
void conformal_prepare(struct conformal *c);

/* The factor on the uncertainty if the model is a mixture of experts. */
double conformal_mixture(bool mixture, enum conformal_phase phase);

/* The query for a row, which leaves out what the row's prediction left out. Borrows the row. */
struct conformal_query conformal_query_of(const struct conformal_row *r);

struct conformal_interval conformal_of(const struct conformal *c, const struct conformal_query *q,
                                       double level_frac);

/* For each of u[n] (0 to 1), the u-quantile of ln(measured / predicted), which is an end of the
 * interval of level |2u - 1|. */
void conformal_draws(const struct conformal *c, const struct conformal_query *q, const double *u,
                     size_t n, double *out);

/* Coverage: the table's rows of one phase whose model (or SoC) was left out, and those of them in
 * an interval that was made without errors of their model (or SoC). Cost: rows^2. */
struct conformal_coverage {
    size_t n, inside;
    double median_half; /* median half width of the intervals in ln; for an even number the upper
                           one */
};
struct conformal_coverage conformal_cover(const struct conformal *c, enum conformal_left left,
                                          enum conformal_phase phase, double level_frac);

/* The coverage of draws, for rows of a kind of device whose model was left out. median_half is 0.
 */
struct conformal_coverage conformal_cover_draws(const struct conformal *c, enum device_kind kind,
                                                enum conformal_phase phase, double level_frac);

enum conformal_phase conformal_phase_of(bool prefill, uint32_t tokens);

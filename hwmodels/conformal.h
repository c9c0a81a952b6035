/* Intervals of predicted times, from the errors of calibrations on models and machines that they
 * had not seen (split conformal prediction: Vovk et al. 2005, Lei et al. 2018).
 *
 * A score is |ln(predicted / measured)| / (1 + CONFORMAL_WIDEN d), for a row whose model (or whose
 * SoC) was left out. Here d is the distance of the row from the nearest row that was kept, in
 * natural logarithms of weights and tokens.
 *
 * The interval of a new prediction at distance d is its time times exp(+- q (1 + CONFORMAL_WIDEN
 * d)). Here q is the level (1 + 1 / n)-quantile of the scores, and n the number of models (of
 * SoCs). Each model weighs the same, regardless of its number of rows, because errors of its rows
 * are correlated (Dunn, Wasserman and Ramdas 2023). Then the interval contains a row of a new model
 * (on a new SoC) with a chance of at least `level`, for any distribution of errors. Where that
 * quantile does not exist, q is the largest score, and the level stated is n / (n + 1).
 *
 * Scores are pooled by family and phase. A family with too few of them for the level borrows those
 * of its kind of device, else all scores. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/api/device.h"
#include "sim/base/err.h"

#define CONFORMAL_TABLE "hwmodels/residuals.csv"
#define CONFORMAL_LEVEL 0.95
#define CONFORMAL_WIDEN 0.25
#define CONFORMAL_SHORT_TOKENS 100 /* shorter prompts are a phase of their own */

enum conformal_phase { CONFORMAL_PREFILL, CONFORMAL_SHORT_PREFILL, CONFORMAL_DECODE };
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
    char soc[48], family[48], runtime[64], model[64];
    enum device_kind kind;
    enum conformal_phase phase;
    double weights, tokens;
    uint32_t weight_bits;
    enum conformal_left left;
    char by[48]; /* the SoC whose entry predicted the row; another one where its own was left out */
    double ln_error; /* ln(predicted / measured) */
    double distance; /* to the nearest row of its family of another model; where the SoC was left
                      * out, of another SoC; 0 where there is none */
};

struct conformal {
    struct conformal_row *v; /* owned */
    size_t n;
};

/* A prediction to be made. */
struct conformal_query {
    const char *soc, *family; /* family "": the SoC's name */
    enum device_kind kind;
    enum conformal_phase phase;
    double weights, tokens;
    enum conformal_left left;  /* what no fit has seen */
    const char *without_model; /* leave these scores out too (coverage); NULL: none */
    const char *without_soc;
};

struct conformal_interval {
    double low_factor, high_factor; /* of the predicted time */
    double distance;
    double level_frac; /* that the scores support */
    size_t n;          /* scores */
    const char *pool;  /* "lunar-lake", "igpu", "all": borrowed or static */
};

/* An entry's own errors, where rows of its machine are stated with it: pool "measured". */
#define CONFORMAL_MEASURED "measured"

/* Reads the table and works out distances. 0 or -EINVAL with errors. conformal_fini in every case.
 */
int conformal_read(const char *path, struct conformal *out, struct err *e);
void conformal_fini(struct conformal *c);

/* The query that leaves out what was left out of the row's prediction. Borrows the row. */
struct conformal_query conformal_query_of(const struct conformal_row *r);

struct conformal_interval conformal_of(const struct conformal *c, const struct conformal_query *q,
                                       double level_frac);

/* The u-quantile (0 to 1) of ln(measured / predicted) in the same pool, scaled to the query's
 * distance: a draw of a prediction's error. Draws come from existing rows, and none exceeds them.
 * So they are no interval; conformal_cover_draws says how many rows they hold. */
double conformal_draw(const struct conformal *c, const struct conformal_query *q, double u);

/* Share of the table's rows (of one phase, whose model, or SoC, was left out) that lie in the
 * interval made of scores without their model, or SoC: what the level is worth. Cost: rows^2. */
struct conformal_coverage {
    size_t n, inside;
    double median_half; /* of ln, of the intervals; the upper one of an even number */
};
struct conformal_coverage conformal_cover(const struct conformal *c, enum conformal_left left,
                                          enum conformal_phase phase, double level_frac);

/* Counts the rows of a kind of device and phase whose model was left out, and those of them between
 * the draws made without their model. Level 0.95: between the 2.5 and the 97.5 % draw. median_half
 * is 0. Cost: rows^2. */
struct conformal_coverage conformal_cover_draws(const struct conformal *c, enum device_kind kind,
                                                enum conformal_phase phase, double level_frac);

enum conformal_phase conformal_phase_of(bool prefill, uint32_t tokens);

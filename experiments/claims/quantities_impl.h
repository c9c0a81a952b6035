/* Declarations shared by the files of quantities.c. */
#pragma once

#include "experiments/claims/quantities.h"
#include "experiments/compare/machines.h"
#include "experiments/run/config.h"
#include "hwmodels/speculation.h"
#include "sim/metrics/metrics.h"

/* A set-up for runs and kernel costs; everything is borrowed. */
struct quantity_place {
    const char *soc, *llm;
    const cJSON *sets; /* array of "path=value", or NULL */
};

/* A run that quantities need, or a search over runs of rising rates. */
struct quantity_cell {
    struct quantity_place place;
    const char *policy;                 /* borrowed */
    const char *workload;               /* borrowed */
    const char *path;                   /* of the first quantity that needs it, for messages */
    double rates[QUANTITIES_MAX_RATES]; /* a search for the sustained rate; else n_rates 0 */
    uint32_t n_rates;
    const char *metric; /* of the search */
    double at_most;
    bool used, loaded;
    struct config_options options;
    struct config config;
    struct config_policy chosen;
    struct metric_list names;
    struct machines drawn; /* no draws: it runs on the file's machine */
    double *values;        /* owned; [metric][replication] */
};

#define QUANTITY_RATE_MARK "{rate}"

/* Returns the workload with {rate} replaced, for free(), or NULL if it has no {rate}. */
char *quantity_put_rate(const char *workload, double rate);

/* Quantities with one value: each function reads the object and computes it. */
typedef double quantity_form(struct json_obj *o);
quantity_form quantity_kernel, quantity_corun, quantity_machine, quantity_amortized,
    quantity_verification, quantity_graphs, quantity_lengths, quantity_drafts, quantity_texts;

/* Acceptance: reads the model, which the caller frees (NULL or errors if there is none), and draws
 * its mean accepted tokens over the drafts of one replication. */
struct speculation_model *quantity_acceptance(struct json_obj *o);
double quantity_acceptance_draw(const struct speculation_model *m, uint64_t seed,
                                uint32_t replication);

/* The keys soc, llm, set, with the defaults of the command line. */
struct quantity_place quantity_place_read(struct json_obj *o);

/* Options of a place; 0 or -EINVAL with the error at `o`'s path. */
int quantity_options(const struct quantity_place *p, struct config_options *out, struct err *e);

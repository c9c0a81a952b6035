/* What the files of quantities.c share. */
#ifndef EXPERIMENTS_CLAIMS_QUANTITIES_IMPL_H
#define EXPERIMENTS_CLAIMS_QUANTITIES_IMPL_H

#include "experiments/claims/quantities.h"
#include "hwmodels/speculation.h"

/* What is run or priced on: all borrowed. */
struct quantity_place {
    const char *soc, *llm;
    const cJSON *sets; /* array of "path=value", or NULL */
};

/* Forms with one value: reads the object and computes it. */
double quantity_kernel(struct json_obj *o);
double quantity_corun(struct json_obj *o);
double quantity_machine(struct json_obj *o);
double quantity_amortized(struct json_obj *o);
double quantity_verification(struct json_obj *o);
double quantity_graphs(struct json_obj *o);

/* Acceptance: the model of a cell, owned by the caller (free; NULL or errors when there is none),
 * and its mean accepted tokens over one replication's drafts. */
struct speculation_model *quantity_acceptance(struct json_obj *o);
double quantity_acceptance_draw(const struct speculation_model *m, uint64_t seed,
                                uint32_t replication);

/* The keys soc, llm, set, with the defaults of the command line. */
struct quantity_place quantity_place_read(struct json_obj *o);

struct config;
struct config_options;
/* Options of a place; 0 or -EINVAL with the error at `o`'s path. config_options_fini in every case.
 */
int quantity_options(const struct quantity_place *p, struct config_options *out, struct err *e);

#endif

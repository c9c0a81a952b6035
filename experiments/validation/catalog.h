/* Shipped machines and models, found by the names in published tables. */
#pragma once

#include "experiments/validation/points.h"
#include "hwmodels/conformal.h"
#include "hwmodels/soc.h"
#include "sim/api/contention.h"

struct catalog_llm {
    const char *name; /* of the model, or an alias; kept */
    const struct llm *llm;
    bool knows_bytes; /* its file has the bytes of its tensors */
};

/* How a table's 4-bit file of a model was made (hwmodels/points/int4-recipes.csv). A share of its
 * weights has 4 bits, with a scale of 16 bits and perhaps a zero point of 4 bits in each group. The
 * others have 8. */
struct catalog_recipe {
    const char *name; /* in the table; kept */
    double share, group, zero_points;
};

/* The context that a model's graphs were compiled for (hwmodels/points/windows.csv). */
struct catalog_window {
    const char *runtime, *model; /* runtime: prefix of its name; kept */
    uint32_t window;             /* keys */
};

struct catalog {
    struct soc **socs; /* kept */
    size_t n_socs;
    struct llm **llms; /* kept */
    size_t n_llms;
    struct catalog_llm *names; /* kept */
    size_t n_names;
    struct catalog_recipe *recipes; /* kept */
    size_t n_recipes;
    struct catalog_window *windows; /* kept */
    size_t n_windows;
    struct conformal residuals; /* kept; for intervals */
    struct points reference;    /* kept; the shipped table, for predictions of loads */
    /* For rows of several devices: the contention model of a run without options, until replaced.
     */
    const struct contention_ops *contention;
    struct contention_params contention_params;
    bool contention_given; /* `contention` overrides that of a SoC file */
};

/* Reads every shipped file. 0 or -EINVAL with errors. The command keeps it. */
int catalog_open(struct catalog *c, struct err *e);

/* Adds one more machine; it replaces a shipped one of the same name. Borrowed. */
void catalog_add_soc(struct catalog *c, struct soc *soc);

/* Adds the models that rows name by a path ending in .json: an LLM file, or a config.json. Returns
 * 0, or -EINVAL with errors. */
int catalog_add_models(struct catalog *c, const struct points *p, struct err *e);

/* NULL: unknown. Case and punctuation do not matter. */
const struct soc *catalog_soc(const struct catalog *c, const char *name);
/* Ignores suffixes that do not change the architecture: "-chat", "-instruct", "-gptq", "-4k", ...
 */
const struct llm *catalog_llm(const struct catalog *c, const char *name);

/* Whether the file of a model has the bytes of its tensors, which replace those of a runtime's
 * format. */
bool catalog_knows_bytes(const struct catalog *c, const struct llm *m);

/* Whether a model has this number of weights. Some files count a tied head twice. */
bool catalog_has_weights(const struct llm *m, double weights);
/* Names of shipped models with these weights: "llama-7b, open-llama-7b"; "none". For free(). */
char *catalog_of_weights(const struct catalog *c, double weights);

/* Bytes per body weight of OpenVINO's 4-bit file of a model, by its name there; 0: no recipe. */
double catalog_recipe_bytes(const struct catalog *c, const char *name);

/* The window of a model's graphs under a runtime; 0: that of the SoC file. */
uint32_t catalog_window(const struct catalog *c, const char *runtime, const char *model);

/* Whether two names are equal, ignoring case and all but letters and digits. */
bool catalog_same(const char *a, const char *b);

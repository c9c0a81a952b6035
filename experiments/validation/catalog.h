/* Shipped machines and models, found by the names that published tables give them. */
#pragma once

#include "experiments/validation/points.h"
#include "hwmodels/conformal.h"
#include "hwmodels/soc.h"
#include "sim/api/contention.h"

struct catalog_llm {
    const char *name; /* of the model, or one of its aliases; nobody frees it */
    const struct llm *llm;
    bool knows_bytes; /* its file has those of its tensors */
};

/* How a table's 4-bit file of a model was made (hwmodels/points/int4-recipes.csv). A share of its
 * weights has 4 bits, with a scale of 16 bits and perhaps a zero point of 4 bits in each group. The
 * others have 8. */
struct catalog_recipe {
    const char *name; /* in the table; nobody frees it */
    double share, group, zero_points;
};

/* The context that a model's graphs were compiled for (hwmodels/points/windows.csv). */
struct catalog_window {
    const char *runtime, *model; /* the beginning of a runtime's name; nobody frees them */
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
    struct conformal residuals; /* kept: what intervals rest on */
    struct points reference;    /* kept: the shipped table, which predictions of loads rest on */
    /* They share rows of several devices: those of a run without options, until replaced. */
    const struct contention_ops *contention;
    struct contention_params contention_params;
    bool contention_given; /* `contention` holds even where a SoC file states its own */
};

/* Reads every shipped file. 0 or -EINVAL with errors. The command keeps it. */
int catalog_open(struct catalog *c, struct err *e);

/* Adds one more machine; it replaces a shipped one of the same name. Borrowed. */
void catalog_add_soc(struct catalog *c, struct soc *soc);

/* Adds the models that rows name by a path ending in .json: an LLM file, or a config.json. 0 or
 * -EINVAL with errors. */
int catalog_add_models(struct catalog *c, const struct points *p, struct err *e);

/* NULL when there is none. Case and punctuation do not matter. */
const struct soc *catalog_soc(const struct catalog *c, const char *name);
/* Also without what does not change the architecture: "-chat", "-instruct", "-gptq", "-4k", ... */
const struct llm *catalog_llm(const struct catalog *c, const char *name);

/* Whether the file of a model has the bytes of its tensors, so no runtime's format holds. */
bool catalog_knows_bytes(const struct catalog *c, const struct llm *m);

/* Whether a model has so many weights; some files hold a tied head twice. */
bool catalog_has_weights(const struct llm *m, double weights);
/* "llama-7b, open-llama-7b": the shipped models of so many weights; "none". The caller frees it. */
char *catalog_of_weights(const struct catalog *c, double weights);

/* Bytes per body weight of OpenVINO's 4-bit file of a model, by the name in its tables; 0: no
 * recipe. */
double catalog_recipe_bytes(const struct catalog *c, const char *name);

/* The window of a model's graphs under a runtime, where it is not the SoC file's; 0: it is. */
uint32_t catalog_window(const struct catalog *c, const char *runtime, const char *model);

/* Whether two names are one: case, and what is neither letter nor digit, do not matter. */
bool catalog_same(const char *a, const char *b);

/* Changes to the set-up that a claims file states: by a reading of the paper, or by the command
 * line.
 *
 *   set       PATH=VALUE of the SoC file or of the simulation, for all runs and kernel costs;
 *             followed by " @NAME", only for runs of that policy
 *   policy    NAME:key=value,...: every run of that policy gets these parameters, which replace its
 *             own ones of the same key
 *   workload  KIND:key=value,...: the same for every workload of that kind (mixed, summary, ...)
 *   metric    NAME=OTHER: checks use metric OTHER where they name metric NAME
 *   soc       NAME=OTHER: runs and kernels on machine NAME use OTHER. It is applied last: `set` and
 *             `?soc=` match the machine of the file
 *
 * NAME may be NAME?key=value&...: the change then applies only to texts that have these values, or
 * to runs with this llm= or soc=: sd-npu?system=npu-sam&llm=qwen2.5-0.5b. */
#pragma once

#include <cjson/cJSON.h>

#include "sim/base/json.h"

#define SETUP_MAX_TEXTS 48

struct setup_texts {
    const char *v[SETUP_MAX_TEXTS]; /* borrowed */
    uint32_t n;
};

#define SETUP_LISTS 5
struct setup {
    union {
        struct {
            struct setup_texts set, policy, workload, metric, soc;
        };
        struct setup_texts list[SETUP_LISTS]; /* the same, as an array */
    };
};
extern const char *const setup_keys[SETUP_LISTS]; /* "set", ... */

/* Reads the lists of an object, each optional. Errors name file and place. */
void setup_read(struct setup *s, struct json_obj *o);
/* Appends everything of `more`. An error names what does not fit. */
int setup_add(struct setup *s, const struct setup *more, struct err *e);
bool setup_is_empty(const struct setup *s);
bool setup_is_same(const struct setup *a, const struct setup *b);

/* Returns spec "NAME:key=value,..." with the keys of `with`, or unchanged if `with` is for another
 * NAME. place: "llm=NAME,soc=NAME". The caller frees it. */
char *setup_merge(const char *spec, const char *with, const char *place);

/* A copy of a quantity's definition (quantities.h) with the set-up applied; the caller owns it. */
cJSON *setup_apply(const struct setup *s, const cJSON *definition);

/* The metric that replaces this one, or the metric itself. */
const char *setup_metric(const struct setup *s, const char *metric);

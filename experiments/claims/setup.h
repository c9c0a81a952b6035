/* How a run departs from what a claims file states: one reading of a paper's set-up, or what the
 * command line asks for.
 *
 *   set       PATH=VALUE of the SoC file or of the simulation, for whatever runs or is priced; with
 *             " @NAME" behind it, for runs of that policy only
 *   policy    NAME:key=value,...: every run of that policy gets these parameters, instead of its
 *             own where both have one
 *   workload  KIND:key=value,...: every workload of that kind (mixed, summary, ...) likewise
 *   metric    NAME=OTHER: where a check names the metric, the other one is taken
 *   soc       NAME=OTHER: a run or kernel on machine NAME is on OTHER. It has the last word: `set`
 *             and `?soc=` go by the machine of the file
 *
 * NAME may be NAME?key=value&...: only where it says so already, or runs there (llm=, soc=):
 * sd-npu?system=npu-sam&llm=qwen2.5-0.5b. */
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
        struct setup_texts list[SETUP_LISTS]; /* the same, one after the other */
    };
};
extern const char *const setup_keys[SETUP_LISTS]; /* "set", ... */

/* Reads the lists of an object, each optional. Errors name file and place. */
void setup_read(struct setup *s, struct json_obj *o);
/* Appends everything of `more`. An error names what does not fit. */
int setup_add(struct setup *s, const struct setup *more, struct err *e);
bool setup_is_empty(const struct setup *s);
bool setup_is_same(const struct setup *a, const struct setup *b);

/* "NAME:key=value,..." with the keys of `with` ("NAME:key=value,..."); as it is when that means
 * another. place: "llm=NAME,soc=NAME". The caller frees it. */
char *setup_merge(const char *spec, const char *with, const char *place);

/* A copy of a quantity's definition (quantities.h) with the set-up applied; the caller owns it. */
cJSON *setup_apply(const struct setup *s, const cJSON *definition);

/* The metric that is to be taken for this one. */
const char *setup_metric(const struct setup *s, const char *metric);

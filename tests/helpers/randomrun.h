/* Random runs over everything a command line can say: machine and its numbers, model, policy and
 * its parameters, memory, contention, noise, frames, power limits, drafters, workload. Everything
 * follows from one number, and the text of a run can be typed. */
#pragma once

#include <stddef.h>

#include "experiments/run/config.h"

#define RANDOMRUN_MAX_SETS 60
#define RANDOMRUN_TEXT_BYTES 8192

struct randomrun {
    const char *soc, *llm;
    char policy[CONFIG_PARAMS_BYTES];
    char workload[512];
    char sets[RANDOMRUN_MAX_SETS][96]; /* path=value */
    uint32_t n_sets;
    uint64_t seed;
    bool machine;             /* with random events of the machine, steps of frequency and kernels
                               * that take memory, from the seed */
    bool own_trace;           /* a random one (randomtrace.h) from the seed, not the workload */
    const struct trace *rows; /* borrowed: this trace instead; NULL: none */
    const char *trace;        /* borrowed: what the text calls it; NULL: does not say */
};

void randomrun_make(struct randomrun *r, uint64_t number);
/* "xpusim run --policy ..." in buf. Returns buf. */
const char *randomrun_text(const struct randomrun *r, char buf[RANDOMRUN_TEXT_BYTES]);
/* Loads configuration, policy and trace. False where they do not go together (a SoC without that
 * device, a model without that drafter): then nothing is left to free. config_fini and trace_fini
 * otherwise. */
bool randomrun_load(const struct randomrun *r, struct config *c, struct config_policy *p,
                    struct trace *t);

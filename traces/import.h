/* What the importers share: one file being turned into a trace of single requests. */
#ifndef TRACES_IMPORT_H
#define TRACES_IMPORT_H

#include <stdint.h>

#include "sim/api/request.h"
#include "traces/traces.h"

#define IMPORT_MAX_TOKENS 100000000u /* more is a mistake */
#define IMPORT_MAX_S 1e9

struct import {
    struct trace_builder b;
    struct trace_import_losses lost;
};

/* Adds a request of its own session. One without output failed at its source: it is counted, not
 * added, since what a success would have taken is unknown. */
void import_add(struct import *im, int64_t arrival_ns, uint64_t input_tokens,
                uint64_t output_tokens, enum request_class cls);

/* Mooncake's JSON lines: {"timestamp": ms, "input_length": tokens, "output_length": tokens,
 * "hash_ids": [...]}. A hash names a block of 512 tokens and all before it. Our prefixes belong to
 * one session, theirs to a cache shared by all, so leading blocks that came before are counted as
 * lost. Other keys are ignored. */
void import_mooncake(struct import *im, const char *path, struct err *e);

#endif

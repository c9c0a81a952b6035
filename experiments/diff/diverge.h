/* Finds the first difference between two decision logs (run --decisions). */
#pragma once

#include "sim/base/base.h"

#define DIVERGE_NOTES "dump:"  /* line before the policy's dump after a failed run */
#define DIVERGE_CONTEXT 4      /* common lines kept before the first difference */
#define DIVERGE_LINE_BYTES 512 /* longer lines are compared in full and printed truncated */

struct divergence {
    bool differs;
    uint64_t line; /* number of the first different line, from 1; of the last one if none differs */
    long offset[2];   /* bytes before it, in a and b */
    int64_t since_ns; /* instant of the decision before it; 0: none */
    char a[DIVERGE_LINE_BYTES], b[DIVERGE_LINE_BYTES]; /* "": the log has ended */
    char context[DIVERGE_CONTEXT][DIVERGE_LINE_BYTES]; /* oldest first */
    uint32_t n_context;
};

/* Reads both logs from their start. The heading line (policy and flags) is not a decision and may
 * differ, and so may a policy's dump after a failed run, and the epochs. O(length up to the
 * difference). */
void diverge_find(FILE *a, FILE *b, struct divergence *out);
/* A line of a log without its epoch, which also counts events that lead to no decision. */
const char *diverge_decision(const char *line);

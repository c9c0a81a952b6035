/* Where two decision logs (run --decisions) part. */
#pragma once

#include "sim/base/base.h"

#define DIVERGE_NOTES "dump:"  /* line before what a policy says of itself, where a run failed */
#define DIVERGE_CONTEXT 4      /* common lines kept before the first difference */
#define DIVERGE_LINE_BYTES 512 /* longer lines are compared whole and shown cut */

struct divergence {
    bool differs;
    uint64_t line; /* number of the first line that differs, from 1; of the last one if none does */
    long offset;   /* bytes before it: the same in both logs */
    int64_t since_ns; /* instant of the decision before it; 0 where there is none */
    char a[DIVERGE_LINE_BYTES], b[DIVERGE_LINE_BYTES]; /* "" where a log has ended */
    char context[DIVERGE_CONTEXT][DIVERGE_LINE_BYTES]; /* oldest first */
    uint32_t n_context;
};

/* Reads both from their start. The heading line (policy and flags) is not a decision and may
 * differ, and so may what a policy says of itself where a run failed.
 * O(length up to the difference). */
void diverge_find(FILE *a, FILE *b, struct divergence *out);

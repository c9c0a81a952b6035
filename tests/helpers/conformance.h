/* What the conformance suite leaves of a load on which a policy failed: the smallest trace that
 * still shows it and the command that runs it again. The machine of a load is a toy that no SoC
 * file describes, so the suite itself is what runs it:
 *
 *   check_policies POLICY --load N [--capable] [--params K=V,..] [--pair P] --trace FILE
 *   [--decisions FILE] */
#pragma once

#include "tests/helpers/scenario.h"

/* Two runs of a load that must be alike (conformance_pairs.c). */
enum conformance_pair {
    CONFORMANCE_ALONE,     /* no second run */
    CONFORMANCE_COLLAPSED, /* kernels one by one, and undisturbed ones as one */
    CONFORMANCE_REPEATED,  /* the same run twice */
    CONFORMANCE_HIDDEN,    /* other outputs, gaps and arrivals after a third of the run: decisions
                              up to there */
};
extern const char *const conformance_pairs[]; /* their names on the command line; NULL ends them */

struct conformance_case {
    const char *program; /* the suite, as it was called */
    const char *policy;  /* as it was given */
    const char *params;  /* that replace the given ones; "" for none */
    uint64_t load;
    bool capable; /* every device can reset, withdraw and suspend */
    enum conformance_pair pair;
};

/* Did the last run of the scenario fail, or leave a request unfinished? */
bool conformance_failed(const struct scenario *sc);
/* Runs the scenario twice on a trace: NULL when both do well and are alike, else in what they are
 * not: static text, until the next call. */
const char *conformance_differ(struct scenario *sc, const struct trace *t,
                               enum conformance_pair pair);
/* Makes the trace of a scenario that failed small, writes it below xpusim-trouble/, and prints
 * where and the command to standard error. The scenario is as it was set up. */
void conformance_leave(struct scenario *sc, const struct conformance_case *c);
/* Runs the scenario on a trace file, or the pair on it, and tells; 2 when the file is wrong. */
int conformance_show(struct scenario *sc, const char *trace, enum conformance_pair pair);
/* What a run of the scenario on a trace returns. */
int conformance_run(struct scenario *sc, const struct trace *t);
/* Prints how the last run of n requests ended. 0 when all finished, 1 when not. */
int conformance_tell(const struct scenario *sc, size_t n);

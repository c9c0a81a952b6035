/* The conformance suite: what every policy must hold, checked on random small loads of a toy
 * machine. `xpusim check-policy` runs it on one policy, tests/conformance/check_policies.c on all
 * of the tree.
 *
 * A load on which a policy fails is made small and written as a trace. No SoC file describes the
 * machine of a load, so the command that runs it again is the suite's own:
 *
 *   xpusim check-policy POLICY --load N [--capable] [--params K=V,..] [--pair P] --trace FILE
 *   [--decisions FILE] */
#pragma once

#include "experiments/conformance/scenario.h"

#define CONFORMANCE_LOADS 40 /* random loads of a check, unless more or fewer are wanted */
#define CONFORMANCE_MAX_REQUESTS 24
#define CONFORMANCE_NOW_BYTES 2048
#define CONFORMANCE_OPEN "not decided: " /* begins the text of a check that could not see */

/* A policy under test. */
struct conformance {
    const struct policy_ops *ops;
    const char *label;  /* as on the command line */
    const char *params; /* given with it; "" for none */
    uint64_t n_loads;
    FILE *out; /* where it is said what is left of a load that failed */
    char *now; /* CONFORMANCE_NOW_BYTES, for who looks when a policy has crashed: the command that
                  repeats the load that runs; "" where none does. NULL: nobody looks */
    /* Loads the same policy in a jailed process of its own; NULL with an error. NULL: none is. */
    const struct policy_ops *(*confined)(const char *label, struct err *e);
};

/* A check of the suite. */
struct conformance_check {
    const char *name;  /* a sentence; NULL ends the table */
    const char *param; /* only of policies with this parameter; NULL: of all */
    char *(*fails)(const struct conformance *c);
    bool confined; /* only of policies that a process of their own can load */
};
extern const struct conformance_check conformance_checks[];

/* Does the check apply to the policy? */
bool conformance_applies(const struct conformance_check *check, const struct conformance *c);

/* Two runs of a load that must be equal (pairs.c). */
enum conformance_pair {
    CONFORMANCE_ALONE,     /* no second run */
    CONFORMANCE_COLLAPSED, /* kernels one by one, and undisturbed ones as one */
    CONFORMANCE_REPEATED,  /* the same run twice */
    CONFORMANCE_HIDDEN,    /* other outputs, gaps and arrivals after a third of the run: decisions
                              up to there */
    CONFORMANCE_CONFINED,  /* here, and in a process of its own */
};
extern const char *const conformance_pairs[]; /* their names on the command line; NULL ends them */

/* How a load is run. */
struct conformance_case {
    const char *params; /* that replace the given ones; NULL: none do */
    uint64_t load;
    bool capable; /* every device can reset, withdraw and suspend */
    enum conformance_pair pair;
};

/* Sets the scenario up for a load, without its requests, which go to q. Returns how many. */
uint32_t conformance_prepare(struct scenario *sc, struct scenario_request *q,
                             const struct conformance *c, const struct conformance_case *how);
/* Did the last run of the scenario fail, or leave a request unfinished? */
bool conformance_failed(const struct scenario *sc);
/* Runs the scenario twice on a trace: NULL when both do well and are equal, else in what they
 * differ: static text, until the next call. */
const char *conformance_differ(struct scenario *sc, const struct trace *t,
                               enum conformance_pair pair);
/* "xpusim check-policy POLICY --load N ..", to be typed as it is; with a trace unless path is NULL.
 * The caller frees it. */
char *conformance_command(const struct conformance *c, const struct conformance_case *how,
                          const char *path);
/* Makes the trace of a scenario that failed small, writes it below xpusim-trouble/, and prints
 * where and the command to c->out. The scenario is as it was set up. */
void conformance_leave(struct scenario *sc, const struct conformance *c,
                       const struct conformance_case *how);
/* Runs the scenario on a trace. Returns result.status. */
int conformance_run(struct scenario *sc, const struct trace *t);

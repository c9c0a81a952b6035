/* The conformance suite: rules for every policy, checked on random small loads of a toy machine.
 * `xpusim check-policy` runs it on one policy, tests/conformance/check_policies.c on all shipped
 * ones.
 *
 * A load on which a policy fails is reduced and written as a trace. No SoC file describes the
 * machine of a load, so the suite has its own command to repeat it:
 *
 *   xpusim check-policy POLICY --load N [--capable] [--params K=V,..] [--pair P] --trace FILE
 *   [--decisions FILE] */
#pragma once

#include "experiments/conformance/scenario.h"

#define CONFORMANCE_LOADS 40 /* random loads of a check, by default */
#define CONFORMANCE_MAX_REQUESTS 24
#define CONFORMANCE_NOW_BYTES 2048
#define CONFORMANCE_OPEN "not decided: " /* prefix for a check without a result */

/* A policy under test. */
struct conformance {
    const struct policy_ops *ops;
    const char *label;  /* as on the command line */
    const char *params; /* given with the policy; "": none */
    uint64_t n_loads;
    FILE *out; /* receives the reports on failed loads */
    /* Receives the command that repeats the running load, or "", to read after a crash. It has
     * CONFORMANCE_NOW_BYTES, or is NULL. */
    char *now;
    /* Loads the same policy in its own, sandboxed process; returns NULL with an error. NULL: not
     * available. */
    const struct policy_ops *(*confined)(const char *label, struct err *e);
};

/* A check of the suite. */
struct conformance_check {
    const char *name;  /* a sentence; NULL: end of the table */
    const char *param; /* only for policies with this parameter; NULL: for all */
    char *(*fails)(const struct conformance *c);
    bool confined; /* only for policies that can run in their own process */
};
extern const struct conformance_check conformance_checks[];

/* Whether the check applies to the policy. */
bool conformance_applies(const struct conformance_check *check, const struct conformance *c);

/* Two runs of a load that must be equal (pairs.c). */
enum conformance_pair {
    CONFORMANCE_ALONE,     /* no second run */
    CONFORMANCE_COLLAPSED, /* kernels individually, and undisturbed ones collapsed */
    CONFORMANCE_REPEATED,  /* the same run twice */
    /* Outputs, gaps and arrivals differ after a third of the run; decisions before must be
     * equal. */
    CONFORMANCE_HIDDEN,
    CONFORMANCE_CONFINED, /* in this process, and in a separate one */
};
extern const char *const conformance_pairs[]; /* their names on the command line; NULL ends them */

/* A variant of a load. */
struct conformance_case {
    const char *params; /* replace the given ones; NULL: none */
    uint64_t load;
    bool capable; /* every device can reset, withdraw and suspend */
    enum conformance_pair pair;
};

/* Sets the scenario up for a load, and fills q with its requests. Returns their number. */
uint32_t conformance_prepare(struct scenario *sc, struct scenario_request *q,
                             const struct conformance *c, const struct conformance_case *how);
/* Whether the last run of the scenario failed, or left a request unfinished. */
bool conformance_failed(const struct scenario *sc);
/* Runs the scenario twice on a trace. Returns NULL if both succeed and are equal, else the
 * difference as static text, valid until the next call. */
const char *conformance_differ(struct scenario *sc, const struct trace *t,
                               enum conformance_pair pair);
/* The command "xpusim check-policy POLICY --load N ..", quoted for a shell; with a trace unless
 * path is NULL. The caller frees it. */
char *conformance_command(const struct conformance *c, const struct conformance_case *how,
                          const char *path);
/* Reduces the trace of a failed scenario, writes it below xpusim-trouble/, and prints its path and
 * the command to c->out. Precondition: the scenario is as set up. */
void conformance_leave(struct scenario *sc, const struct conformance *c,
                       const struct conformance_case *how);
/* Runs the scenario on a trace. Returns result.status. */
int conformance_run(struct scenario *sc, const struct trace *t);

/* Tests of a policy's rules, one scenario each, on the toy machine. A scenario is a function that
 * runs with extra parameters and returns whether its expectation holds. A row names the ablation
 * parameters to try on it, and those that must break it.
 *
 * Every device of the toy machine has these times for one layer:
 *
 *   QKV                     0.01 ms a row
 *   FFN                     0.02 ms a row
 *   attention, head         1 ms a pass
 *   fused decode layer      2 ms
 *
 * So with one layer a pass of n rows takes 0.03 n + 1 ms, and 1 ms more when it yields tokens. A
 * decode of one sequence takes 3 ms, and one of n sequences 0.03 n + 2 ms. There are no host costs
 * and no contention. Annotations are exact, and a KV block has 16 tokens. */
#pragma once

#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"

extern struct scenario sc; /* large: one per process, tests run forked */

struct rule_row {
    const char *name;
    bool (*holds)(const char *extra);
    const char *switches; /* "key=value" lists, space separated */
    const char *breaks;   /* those that make it fail */
};

#define RULE(f, switches, breaks)                                                                  \
    {                                                                                              \
#f, f, switches, breaks                                                                    \
    }

void rules_machine(uint32_t layers);
/* Call after rules_machine. Returns the optional columns of a request, for the test to fill in. The
 * trace has no later turns, so that a request's row is its place in the list, or it has them at the
 * list's end. client_id starts as 1000 + request. */
struct trace_extra *rules_extra(uint32_t request);
/* Call after rules_machine. Takes the requests from a trace of version 2, given as its header and
 * rows (traces/README.md). rules_run then takes none. */
void rules_graph(const char *text);
/* Runs a policy with the parameters `own`, and fails the test when the run fails. A key in `extra`
 * replaces the same key of `own`. With `extra` "policy=NAME" it runs that policy with `own`: a test
 * disables an order by another one. SHOW=1 prints the run. */
void rules_run(const char *policy, const char *own, const char *extra,
               const struct scenario_request *q, uint32_t n);
bool rules_tokens_at(uint32_t request, uint32_t n, const double *ms);
bool rules_starts(uint32_t request, double ms);
bool rules_finishes(uint32_t request, double ms);
/* Most rows of a QKV kernel on a device; 0 when there is none. */
uint32_t rules_most_rows(int device);
/* Runs every row without a switch, and with each of its switches. */
int rules_suite(const char *suite, const struct rule_row *rows, int n);
#define RULES_MAIN(name_, rows_)                                                                   \
    SUITE_CALL(rules_suite(name_, rows_, sizeof rows_ / sizeof rows_[0]))

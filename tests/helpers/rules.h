/* A policy's rules, one scenario each, on the toy machine: every scenario is a function that runs
 * it with extra parameters and tells whether its expectation holds; every row names the ablation
 * parameters tried on it and those that must break it.
 *
 * Toy times of one layer on every device: QKV 0.01 ms and FFN 0.02 ms per row, attention 1 ms a
 * pass, head 1 ms, a fused decode layer 2 ms. So with one layer a pass of n rows takes 0.03 n + 1
 * ms, 1 ms more when it yields tokens; a decode of one sequence takes 3 ms, of n sequences
 * 0.03 n + 2. No host costs, no contention, exact annotations, KV in blocks of 16 tokens. */
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
/* After rules_machine: the optional columns of a request, for the test to fill in. Without later
 * turns (its row is its place in the list then) or with them at the list's end. client_id starts as
 * 1000 + request. */
struct trace_extra *rules_extra(uint32_t request);
/* After rules_machine: the requests are those of a trace of version 2, its header and rows
 * (traces/README.md). rules_run then takes none. */
void rules_graph(const char *text);
/* Runs a policy with own parameters, those of extra instead where both have one; with extra
 * "policy=NAME" that policy instead, with own (an order is disabled by putting another in its
 * place). Fails the test when the run does. SHOW=1 prints it. */
void rules_run(const char *policy, const char *own, const char *extra,
               const struct scenario_request *q, uint32_t n);
bool rules_tokens_at(uint32_t request, uint32_t n, const double *ms);
bool rules_starts(uint32_t request, double ms);
bool rules_finishes(uint32_t request, double ms);
/* Most rows of a QKV kernel on a device; 0 when there is none. */
uint32_t rules_most_rows(int device);
/* Runs every row, alone and with each of its switches. */
int rules_suite(const char *suite, const struct rule_row *rows, int n);
#define RULES_MAIN(name_, rows_)                                                                   \
    SUITE_CALL(rules_suite(name_, rows_, sizeof rows_ / sizeof rows_[0]))

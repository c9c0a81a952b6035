/* Comparison of two runs of a load: runs that are made up, each different in one thing, and the
 * setup of the second run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/conformance/conformance.h"
#include "policies/registry.h"
#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "tests/helpers/suite.h"

static struct scenario sc;
static uint32_t n_runs;

/* Results of each run, in order. */
static struct made {
    const char *decisions;
    int64_t token_ns, end_ns, ddr_ns;
    uint64_t kernels;
    double energy_j;
    int status;
} made[2];

/* Setup of each run. */
static struct given {
    bool collapse, log, ddr;
    const struct policy_ops *policy;
    const void *memory;
    size_t n;
    struct trace_row rows[8];
} given[2];

static int run(const struct sim_setup *setup, struct sim_result *result)
{
    uint32_t i = n_runs++;
    ck_assert_uint_lt(i, 2);
    given[i] = (struct given){.collapse = setup->collapse,
                              .log = setup->decision_log != NULL,
                              .ddr = sc.observer.ddr != NULL,
                              .policy = setup->policy,
                              .memory = setup->memory,
                              .n = sc.trace.n};
    memcpy(given[i].rows, sc.trace.rows, sc.trace.n * sizeof *sc.trace.rows);
    (void)fputs(made[i].decisions, setup->decision_log);
    ck_assert_int_eq(sc.records[1].token_ns[3], 0); /* nothing of a run before */
    sc.records[1].token_ns[3] = made[i].token_ns;
    for (int k = 0; k < 5; k++) {
        sc.records[k].arrival_ns = 100 * k;
        sc.records[k].finish_ns = 100 * k + 150;
    }
    /* three flows of 2 GB/s for so long; the demand is not what moves */
    sc.observer.ddr(sc.observer.self, 5, 3, made[i].ddr_ns, 7e9, 2e9);
    sc.observer.ddr(sc.observer.self, 6, 1, 500000000, 7e9, 2e9);
    *result = (struct sim_result){.status = made[i].status,
                                  .end_ns = made[i].end_ns,
                                  .kernels = made[i].kernels,
                                  .audit = {.energy_integral_j = made[i].energy_j}};
    return made[i].status;
}

static void setup(void)
{
    static const struct scenario_request requests[] = {
        {REQUEST_CLASS_REACTIVE, 0.0, 10, 9, 0, 0},
        {REQUEST_CLASS_REACTIVE, 100e-9, 10, 9, 0, 0},
        {REQUEST_CLASS_REACTIVE, 200e-9, 10, 8, 0, 0},
        {REQUEST_CLASS_REACTIVE, 300e-9, 10, 7, 0, 0},
        {REQUEST_CLASS_REACTIVE, 400e-9, 10, 1, 0, 0}};
    scenario_init(&sc);
    scenario_policy(&sc, policy_find("fcfs"), "");
    scenario_trace(&sc, requests, 5);
    sc.run = run;
    for (int i = 0; i < 2; i++) {
        made[i] = (struct made){.decisions = "1 100 form\n2 200 launch\n3 300 form\n",
                                .token_ns = 7,
                                .end_ns = 600,
                                .ddr_ns = 1000000000,
                                .kernels = 5,
                                .energy_j = 2.5};
    }
    n_runs = 0;
}

static void teardown(void)
{
    scenario_fini(&sc);
}

static void is(enum conformance_pair pair, const char *want)
{
    n_runs = 0;
    memset(sc.records, 0x11, sizeof sc.records);
    const char *differ = conformance_differ(&sc, &sc.trace, pair);
    ck_assert_uint_eq(n_runs, 2);
    ck_assert_pstr_eq(differ, want);
    ck_assert(sc.setup.decision_log == NULL && sc.observer.ddr == NULL && sc.setup.memory == NULL &&
              sc.setup.policy == policy_find("fcfs"));
    for (int i = 0; i < 2; i++) {
        ck_assert(given[i].log && given[i].ddr && given[i].memory == NULL &&
                  given[i].policy == policy_find("fcfs") && given[i].n == 5);
    }
}

START_TEST(equal_runs_do_not_differ)
{
    static const enum conformance_pair all[] = {CONFORMANCE_COLLAPSED, CONFORMANCE_REPEATED,
                                                CONFORMANCE_HIDDEN};
    for (int i = 0; i < 3; i++) {
        for (int collapse = 0; collapse < 2; collapse++) {
            sc.setup.collapse = collapse;
            is(all[i], NULL);
            ck_assert(sc.setup.collapse == (collapse != 0));
            bool pair = all[i] == CONFORMANCE_COLLAPSED;
            ck_assert(given[0].collapse == (pair ? false : collapse != 0));
            ck_assert(given[1].collapse == (pair ? true : collapse != 0));
            for (int k = 0; k < 5 && i < 2; k++) {
                ck_assert(memcmp(&given[0].rows[k], &given[1].rows[k], sizeof given[0].rows[k]) ==
                          0);
            }
        }
    }
}
END_TEST

START_TEST(every_difference_is_told)
{
    made[1].energy_j = 2.5000001;
    is(CONFORMANCE_REPEATED, "energies differ");
    made[1].ddr_ns++;
    is(CONFORMANCE_REPEATED, "DDR bytes differ");
    made[1].kernels = 6;
    is(CONFORMANCE_REPEATED, "numbers of kernels differ");
    made[1].token_ns = 8;
    is(CONFORMANCE_REPEATED, "times of requests differ");
    made[1].decisions = "1 100 form\n2 200 launch\n";
    is(CONFORMANCE_REPEATED, "one run decides more than the other");
    made[0].decisions = "1 100 form\n";
    is(CONFORMANCE_REPEATED, "one run decides more than the other");
    made[0].decisions = "1 100 form\n2 200 lau\n";
    is(CONFORMANCE_REPEATED, "decisions differ: 2 200 lau / 2 200 launch");
    made[0].decisions = "1 100 Form\n2 200 launch\n";
    is(CONFORMANCE_REPEATED, "decisions differ: 1 100 Form / 1 100 form");
    made[1].status = -5;
    is(CONFORMANCE_REPEATED, "a run fails: ");
    made[1].status = 0;
    made[0].status = -5; /* the second is not run then */
    for (int pair = CONFORMANCE_REPEATED; pair <= CONFORMANCE_HIDDEN; pair++) {
        n_runs = 0;
        ck_assert_pstr_eq(conformance_differ(&sc, &sc.trace, (enum conformance_pair)pair),
                          "a run fails: ");
        ck_assert_uint_eq(n_runs, 1);
    }
}
END_TEST

/* Long decisions are cut behind 200 bytes. */
START_TEST(long_decisions_are_cut)
{
    char a[402];
    char b[402];
    memset(a, 'a', sizeof a);
    memset(b, 'b', sizeof b);
    a[400] = b[400] = '\n';
    a[401] = b[401] = '\0';
    made[0].decisions = a;
    made[1].decisions = b;
    OWNED char *want = xformat("decisions differ: %.200s / %.200s", a, b);
    is(CONFORMANCE_REPEATED, want);
}
END_TEST

/* Up to a third of the first run, 200 of 600 ns: what comes later may differ in anything. */
START_TEST(hidden_things_may_change_later_decisions)
{
    made[1].energy_j = 9;
    made[1].kernels = 9;
    made[1].token_ns = 9;
    made[1].decisions = "1 100 form\n2 200 launch\n3 301 other\n";
    is(CONFORMANCE_HIDDEN, NULL);
    made[1].decisions = "1 100 form\n2 200 launch\n";
    is(CONFORMANCE_HIDDEN, NULL);
    made[1].decisions = "1 100 form\n2 200 other\n";
    is(CONFORMANCE_HIDDEN, "decisions differ: 2 200 launch / 2 200 other");
    made[0].end_ns = 599; /* 199 ns: the second is beyond */
    is(CONFORMANCE_HIDDEN, NULL);
    made[1].decisions = "1 100 other\n";
    is(CONFORMANCE_HIDDEN, "decisions differ: 1 100 form / 1 100 other");
}
END_TEST

/* At 200 ns request 0 has finished (150), 1 runs (to 250), 2 has just arrived: both put out five
 * more. 3 and 4 come later: half as late again and 10 ms, with half of their outputs and one. */
START_TEST(what_is_hidden_is_changed)
{
    is(CONFORMANCE_HIDDEN, NULL);
    for (int i = 0; i < 5; i++) {
        const struct trace_row *a = &given[0].rows[i];
        const struct trace_row *b = &given[1].rows[i];
        static const uint32_t outputs[] = {9, 14, 13, 1 + 3, 1 + 0};
        ck_assert_uint_eq(b->output_tokens, outputs[i]);
        ck_assert_int_eq(b->arrival_ns,
                         i < 3 ? a->arrival_ns : a->arrival_ns + a->arrival_ns / 2 + 10000000);
        ck_assert(b->input_tokens == a->input_tokens && b->request_id == a->request_id);
        ck_assert_int_eq(sc.trace.rows[i].output_tokens, a->output_tokens);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("pairs seen", .setup = setup, .teardown = teardown),
    TEST(equal_runs_do_not_differ),
    TEST(every_difference_is_told),
    TEST(long_decisions_are_cut),
    TEST(hidden_things_may_change_later_decisions),
    TEST(what_is_hidden_is_changed),
};
SUITE_MAIN("pairs seen", suite)

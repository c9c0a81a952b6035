/* Collapsing is invisible. Random runs over everything a command line can say must have the same
 * decisions, metrics, counters and status with and without it. So must runs without a decision log,
 * in which passes that repeat themselves run in one step (tests/helpers/trial.h).
 *
 *   WHOLE=yes       tries 300 runs instead of 70, as CI does
 *   XPUSIM_RUNS     number of runs
 *   XPUSIM_FIRST    number of the first one
 *   XPUSIM_ONLY     only runs whose command has this text
 *   XPUSIM_SHOW     prints why runs failed with and without collapsing
 *
 * `make campaign` continues for hours. */
#include <stdlib.h>
#include <string.h>

#include "policies/registry.h"
#include "sim/base/arena.h"
#include "sim/base/rng.h"
#include "sim/base/units.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/trial.h"
#include "traces/traces.h"

static uint64_t env_number(const char *name, uint64_t def)
{
    const char *s = getenv(name);
    return s == NULL ? def : strtoull(s, NULL, 10);
}

/* Makes the next run that is asked for, and returns its number. */
static uint64_t make(struct randomrun *r, uint64_t *next)
{
    static char text[RANDOMRUN_TEXT_BYTES];
    const char *only = getenv("XPUSIM_ONLY");
    uint64_t first = *next;
    do {
        ck_assert_msg(*next - first < 100000, "XPUSIM_ONLY: no run of 100,000 has %s", only);
        randomrun_make(r, (*next)++);
    } while (only != NULL && strstr(randomrun_text(r, text), only) == NULL);
    return *next - 1;
}

/* The second time the runs have random events of the machine. */
START_TEST(collapsing_changes_no_random_run)
{
    uint32_t n = suite_runs(70, 300);
    struct randomrun *runs = xcalloc(n, sizeof *runs);
    struct trial *trials = xcalloc(n, sizeof *trials);
    uint64_t *numbers = xcalloc(n, sizeof *numbers);
    uint32_t count[TRIAL_OUTCOMES] = {0};
    uint64_t next = env_number("XPUSIM_FIRST", 0);
    for (uint32_t i = 0; i < n; i++) {
        numbers[i] = make(&runs[i], &next);
        runs[i].machine = _i == 1;
    }
    trials_run(runs, n, worker_processors(), trials);
    for (uint32_t i = 0; i < n; i++) {
        static char text[RANDOMRUN_TEXT_BYTES];
        count[trials[i].outcome]++;
        bool show = getenv("XPUSIM_SHOW") != NULL && trials[i].message[0] != '\0';
        if (trials[i].outcome == TRIAL_FINDING || show) {
            printf("run %llu: %s\n  %s\n", (unsigned long long)numbers[i], trials[i].message,
                   randomrun_text(&runs[i], text));
        }
    }
    free(numbers);
    free(trials);
    free(runs);
    printf("%u random runs: %u alike, %u fail alike, %u too long, %u do not go together\n", n,
           count[TRIAL_SAME], count[TRIAL_FAILED_ALIKE], count[TRIAL_TOO_LONG],
           count[TRIAL_NOT_LOADED]);
    (void)fflush(stdout);
    ck_assert_uint_eq(count[TRIAL_FINDING], 0);
    ck_assert_uint_ge(count[TRIAL_SAME], n / 4);
}
END_TEST

/* Runs every value of every parameter that is a choice, with the others at their defaults, under
 * bursts. A mechanism may compare something that collapsing has not brought up to date. All
 * defaults of a policy are one run. A load is 10 s long, or a minute with WHOLE=yes, as each choice
 * is made with the first requests. */
START_TEST(collapsing_changes_no_choice_of_a_policy)
{
    enum { MOST = 2000 };
    static struct randomrun runs[MOST];
    static struct trial trials[MOST];
    uint32_t n = 0;
    size_t n_policies = 0;
    const struct policy_ops *const *all = policy_list(&n_policies);
    for (size_t p = 0; p < n_policies; p++) {
        const struct policy_param *of = all[p]->params;
        bool defaults = false; /* the defaults have a run */
        for (uint32_t i = 0; of != NULL && of[i].name != NULL; i++) {
            for (uint32_t k = 0; of[i].choices != NULL && of[i].choices[k] != NULL; k++) {
                bool is_default = k == (uint32_t)of[i].def;
                if (is_default && defaults && !suite_whole()) {
                    continue;
                }
                defaults = defaults || is_default;
                ck_assert_uint_lt(n, MOST);
                struct randomrun *r = &runs[n++];
                *r = (struct randomrun){
                    .seed = 7 + n, .soc = "core-ultra-7-258v", .llm = "llama-3.2-3b"};
                (void)snprintf(r->workload, sizeof r->workload,
                               "mixed:reactive_per_min=20,proactive_per_min=30,duration_s=%s,"
                               "arrival=gamma,cv=2,output_scale=0.2",
                               suite_whole() ? "60" : "10");
                (void)snprintf(r->policy, sizeof r->policy, "%s:%s=%s", all[p]->name, of[i].name,
                               of[i].choices[k]);
            }
        }
    }
    trials_run(runs, n, worker_processors(), trials);
    uint32_t same = 0;
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_msg(trials[i].outcome != TRIAL_FINDING, "%s: %s", runs[i].policy,
                      trials[i].message);
        same += trials[i].outcome == TRIAL_SAME ? 1 : 0;
    }
    printf("%u of %u choices simulate their load alike\n", same, n);
    (void)fflush(stdout);
    ck_assert_uint_ge(same, n / 2);
}
END_TEST

/* The prompts have a few tokens, next to requests that decode. So passes of as many rows and
 * sequences have no prompt, one or several, and their kernels differ. An engine that keeps costs by
 * rows and sequences alone fails. */
START_TEST(costs_that_are_remembered_are_those_of_the_pass)
{
    static struct randomrun runs[64];
    static struct trial trials[64];
    struct trace_builder b;
    struct trace t;
    struct rng r;
    struct err e = ERR_INIT;
    trace_builder_init(&b);
    rng_init(&r, rng_key(1, RNG_TEST, 4, 0));
    for (uint32_t i = 0; i < 80; i++) {
        struct trace_row row = {.next = TRACE_NO_ROW,
                                .session_id = i,
                                .cls = (uint8_t)rng_below(&r, 2),
                                .arrival_ns = (int64_t)rng_below(&r, 8000) * NS_PER_MS,
                                .input_tokens = 1 + rng_below(&r, i % 4 == 0 ? 700 : 3),
                                .output_tokens = 1 + rng_below(&r, 40)};
        row.max_output_tokens = row.output_tokens;
        trace_builder_add(&b, &row, NULL);
    }
    ck_assert_int_eq(trace_build(&b, true, "short prompts", &t, &e), 0);
    size_t n = 0;
    const struct policy_ops *const *all = policy_list(&n);
    ck_assert_uint_le(n, sizeof runs / sizeof runs[0]);
    for (size_t p = 0; p < n; p++) {
        runs[p] = (struct randomrun){.seed = p,
                                     .soc = p % 2 == 0 ? "core-ultra-5-125h" : "core-ultra-7-258v",
                                     .llm = "llama-3.2-3b",
                                     .rows = &t};
        (void)snprintf(runs[p].policy, sizeof runs[p].policy, "%s", all[p]->name);
    }
    trials_run(runs, (uint32_t)n, worker_processors(), trials);
    uint32_t same = 0;
    for (size_t p = 0; p < n; p++) {
        ck_assert_msg(trials[p].outcome != TRIAL_FINDING, "%s: %s", runs[p].policy,
                      trials[p].message);
        same += trials[p].outcome == TRIAL_SAME ? 1 : 0;
    }
    ck_assert_uint_ge(same, n * 3 / 4);
    trace_builder_fini(&b);
    trace_fini(&t);
}
END_TEST

/* While a prompt runs, the kept costs of passes that ran alone are dropped. The DDR bytes of those
 * passes are reported then, and only once. */
START_TEST(ddr_bytes_that_are_reported_late_are_reported_once)
{
    static const struct randomrun run = {
        .seed = 1005,
        .soc = "core-ultra-5-125h",
        .llm = "llama-3.2-3b",
        .policy = "agent-xpu-v2",
        .workload =
            "mixed:reactive_per_min=10,proactive_per_min=20,duration_s=600,output_scale=0.1"};
    struct trial trial;
    trials_run(&run, 1, 1, &trial);
    ck_assert_msg(trial.outcome == TRIAL_SAME, "%s", trial.message);
}
END_TEST

/* The DDR's demand is highest in the attention of one iteration. That iteration begins when those
 * that it was priced with are over, and is disturbed by an event. The audit must see it all the
 * same. */
START_TEST(the_iteration_after_those_that_repeat_is_audited)
{
    static const struct randomrun run = {
        .seed = 36,
        .soc = "snapdragon-8gen3",
        .llm = "smollm2-360m",
        .policy = "vllm-v0",
        .workload = "mixed:reactive_per_min=1.72,proactive_per_min=1.65,duration_s=21,"
                    "arrival=gamma,cv=1.06,output_scale=0.235",
        .sets = {"soc.host.schedule=2.657", "soc.compiler.fixed=0.5775",
                 "soc.devices.1.submit=0.09841", "sim.contention=proportional",
                 "sim.hwmodel=roofline", "sim.graphics.frames_per_s=72.36",
                 "sim.graphics.frame_s=0.001594"},
        .n_sets = 7};
    struct trial trial;
    trials_run(&run, 1, 1, &trial);
    ck_assert_msg(trial.outcome == TRIAL_SAME, "%s", trial.message);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("collapse", .timeout_s = 600),
    LOOP(collapsing_changes_no_random_run, 2),
    TEST(collapsing_changes_no_choice_of_a_policy),
    TEST(costs_that_are_remembered_are_those_of_the_pass),
    TEST(ddr_bytes_that_are_reported_late_are_reported_once),
    TEST(the_iteration_after_those_that_repeat_is_audited),
};
SUITE_MAIN("collapse", suite)

/* Every registered policy against every invariant, on random small workloads; or, with plug-ins as
 * arguments (check_policies my.so my.so:key=value), those. Variants beside the defaults: rules that
 * know more than the default ones do. A load that fails leaves a trace and the command that runs it
 * again (tests/helpers/conformance.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/run/plugin.h"
#include "policies/registry.h"
#include "tests/helpers/conformance.h"
#include "tests/helpers/randomload.h"
#include "tests/helpers/randomrun.h"
#include "tests/helpers/suite.h"

enum { MAX_REQUESTS = 24 };

/* Random loads of every test; XPUSIM_LOADS asks for more. */
static uint64_t n_loads = 40;

static struct scenario sc;
static struct scenario_request q[MAX_REQUESTS];

/* What is tested: policies and the parameters they run with. */
enum { MAX_POLICIES = 128 };
static const struct policy_ops *policies[MAX_POLICIES];
static const char *given[MAX_POLICIES];
static int n_policies;

static const char *label[MAX_POLICIES]; /* as it is named on the command line */

static const char *program; /* argv[0] */
static int current;         /* the one under test */

static const struct policy_ops *policy_of(int i)
{
    current = i;
    return policies[i];
}

/* Prepares load number `seed` for a policy, or says why it cannot run there. */
static uint32_t prepare(const struct policy_ops *ops, uint64_t seed)
{
    uint32_t n = randomload_make(&sc, q, MAX_REQUESTS, seed);
    if (strcmp(ops->name, "sd-npu") == 0) {
        sc.machine.devices[NPU].static_attention = false; /* its graphs hold the attention */
        sc.llm.n_layers = 6;
    }
    scenario_policy(&sc, ops, given[current]);
    sc.setup.stall_ns = 60 * NS_PER_S; /* no kernel of these loads takes a second */
    return n;
}

/* Every device can do all that a policy may ask. */
static void make_capable(void)
{
    for (uint32_t d = 0; d < sc.machine.n_devices; d++) {
        struct device *dev = &sc.machine.devices[d];
        dev->can_reset = dev->can_withdraw = dev->can_suspend = true;
    }
}

/* Kernels of all devices ask for as much, but an arbiter prefers some: who asks matters then. */
static void make_alike(void)
{
    for (int d = 0; d < 3; d++) {
        memcpy(sc.cost[d], sc.cost[IGPU], sizeof sc.cost[d]);
        sc.machine.devices[d].ddr_weight = 1 << d;
    }
    sc.setup.contention = contention_find("weighted");
}

/* Runs what was prepared; of one that fails the trace and the command are left. */
static int run_prepared(uint32_t n, struct conformance_case c)
{
    int rc = scenario_run(&sc, q, n, false);
    if (conformance_failed(&sc)) {
        struct sim_result result = sc.result;
        c.program = program;
        c.policy = label[current];
        conformance_leave(&sc, &c);
        sc.result = result;
    }
    return rc;
}

static void requests_are_whole(const struct policy_ops *ops, uint64_t seed, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct scenario_record *r = &sc.records[i];
        ck_assert_msg(r->state == REQUEST_STATE_FINISHED && r->generated == q[i].output_tokens &&
                          r->tokens_n == q[i].output_tokens,
                      "%s, load %llu: request %u unfinished", ops->name, (unsigned long long)seed,
                      i);
        ck_assert_int_ge(r->start_ns, r->arrival_ns);
        ck_assert_int_gt(r->token_ns[0], r->start_ns);
        for (uint32_t k = 1; k < r->tokens_n && k < 64; k++) {
            ck_assert_int_ge(r->token_ns[k], r->token_ns[k - 1]);
        }
        ck_assert_int_eq(r->finish_ns, r->token_ns[r->tokens_n - 1]);
    }
}

START_TEST(every_request_finishes_whole_and_the_audit_is_clean)
{
    const struct policy_ops *ops = policy_of(_i);
    for (uint64_t seed = 1; seed <= n_loads; seed++) {
        uint32_t n = prepare(ops, seed);
        int rc = run_prepared(n, (struct conformance_case){.params = "", .load = seed});
        ck_assert_msg(rc == 0, "%s, load %llu: %s", ops->name, (unsigned long long)seed,
                      sc.result.message);
        ck_assert(sc.result.audit.clean);
        ck_assert_uint_eq(sc.result.audit.finished, n);
        ck_assert_uint_eq(sc.result.counters[COUNTER_OUTSIDE_SCHEDULE], 0);
        requests_are_whole(ops, seed, n);
        scenario_fini(&sc);
    }
}
END_TEST

/* Random loads on which a policy once ran into a corner with little memory: only reactive sequences
 * hold it; a request that lost its prefill keeps its prefix; a pass takes the prefix of a member.
 */
START_TEST(tight_memory_stalls_nobody)
{
    static const uint64_t hard[] = {41,  64,   139,  286,  335,  372,  765, 825,
                                    913, 1042, 1065, 1172, 1212, 1349, 2458};
    const struct policy_ops *ops = policy_of(_i);
    for (size_t i = 0; i < sizeof hard / sizeof hard[0]; i++) {
        uint32_t n = prepare(ops, hard[i]);
        int rc = run_prepared(n, (struct conformance_case){.params = "", .load = hard[i]});
        ck_assert_msg(rc == 0, "%s, load %llu: %s", ops->name, (unsigned long long)hard[i],
                      sc.result.message);
        requests_are_whole(ops, hard[i], n);
        scenario_fini(&sc);
    }
}
END_TEST

/* The axes of the iteration-level orders: every mechanism with every fate of the KV. */
START_TEST(preemption_axes_keep_every_request_whole)
{
    const struct policy_ops *ops = policy_of(_i);
    static const char *const preempt[] = {"iteration", "layer", "kernel", "reset"};
    static const char *const gap[] = {"cache", "preserve", "discard", "swap", "infercept", "ttl"};
    static const char *const level[] = {"device", "1", "2", "3"};
    static const char *const kv[] = {"checkpoint", "recompute", "swap"};
    bool axes = false;
    for (const struct policy_param *p = ops->params; p != NULL && p->name != NULL; p++) {
        axes = axes || strcmp(p->name, "kv") == 0;
    }
    for (uint64_t seed = 1; axes && seed <= n_loads * 9; seed++) {
        char params[128];
        (void)snprintf(params, sizeof params, "preempt=%s,kv=%s,level=%s,inflight=%u,gap_kv=%s",
                       preempt[seed % 4], kv[seed / 4 % 3], level[seed / 12 % 4],
                       1 + (unsigned)(seed / 7 % 2) * 3, gap[seed / 2 % 6]);
        uint32_t n = prepare(ops, seed % n_loads + 1);
        make_capable();
        scenario_policy(&sc, ops, params);
        int rc =
            run_prepared(n, (struct conformance_case){
                                .params = params, .load = seed % n_loads + 1, .capable = true});
        ck_assert_msg(rc == 0, "%s:%s, load %llu: %s", ops->name, params,
                      (unsigned long long)(seed % n_loads + 1), sc.result.message);
        requests_are_whole(ops, seed, n);
        scenario_fini(&sc);
    }
}
END_TEST

/* Three of ten parameters differ from their defaults. What a policy refuses to begin with says
 * nothing; whatever begins serves everybody. */
START_TEST(no_parameter_leaves_a_request_behind)
{
    const struct policy_ops *ops = policy_of(_i);
    for (uint64_t load = 1; load <= n_loads; load++) {
        char params[1024] = "";
        size_t used = 0;
        struct rng r;
        rng_init(&r, rng_key(load, RNG_TEST, 79, 0));
        for (const struct policy_param *p = ops->params; p != NULL && p->name != NULL; p++) {
            bool differs = rng_below(&r, 10) < 3;
            if (differs && used + 128 < sizeof params) {
                used += used > 0 ? (size_t)snprintf(params + used, 2, ",") : 0;
                used += randomrun_param(params + used, sizeof params - used, &r, p);
            }
        }
        uint32_t n = prepare(ops, load);
        make_capable();
        scenario_policy(&sc, ops, params);
        int rc = scenario_run(&sc, q, n, false);
        bool begun = sc.result.events > 0;
        bool says_why = strstr(sc.result.message, "says: idle_guard=false: a kernel") != NULL;
        ck_assert_msg(rc == 0 || !begun || says_why, "%s:%s, load %llu: %s", ops->name, params,
                      (unsigned long long)load, sc.result.message);
        if (rc == 0 && sc.result.audit.shed == 0) {
            requests_are_whole(ops, load, n);
        }
        ck_assert(sc.result.audit.shed == 0 || strstr(params, "shed=true") != NULL);
        scenario_fini(&sc);
    }
}
END_TEST

/* Two runs of load number `seed` that must be alike; of a load on which they are not the trace and
 * the command are left, unless the policy may. */
static const char *differ(const struct policy_ops *ops, uint64_t seed, enum conformance_pair pair)
{
    static char text[512];
    uint32_t n = prepare(ops, seed);
    if (pair == CONFORMANCE_COLLAPSED && seed % 4 == 0) {
        make_alike();
    }
    scenario_trace(&sc, q, n);
    const char *what = conformance_differ(&sc, &sc.trace, pair);
    bool may = pair == CONFORMANCE_HIDDEN && (ops->flags & POLICY_F_ORACLE) != 0;
    if (what != NULL) {
        (void)snprintf(text, sizeof text, "%s, load %llu: %s", ops->name, (unsigned long long)seed,
                       what);
    }
    if (what != NULL && !may) {
        struct conformance_case c = {
            .program = program, .policy = label[current], .params = "", .load = seed, .pair = pair};
        conformance_leave(&sc, &c);
    }
    scenario_fini(&sc);
    return what != NULL ? text : NULL;
}

START_TEST(collapsing_undisturbed_kernels_changes_nothing)
{
    const struct policy_ops *ops = policy_of(_i);
    for (uint64_t seed = 1; seed <= n_loads; seed++) {
        const char *what = differ(ops, seed, CONFORMANCE_COLLAPSED);
        ck_assert_msg(what == NULL, "%s", what);
    }
}
END_TEST

START_TEST(the_same_run_takes_the_same_decisions)
{
    const struct policy_ops *ops = policy_of(_i);
    for (uint64_t seed = 1; seed <= 5; seed++) {
        const char *what = differ(ops, seed, CONFORMANCE_REPEATED);
        ck_assert_msg(what == NULL, "%s", what);
    }
}
END_TEST

START_TEST(decisions_do_not_depend_on_what_is_hidden)
{
    const struct policy_ops *ops = policy_of(_i);
    uint32_t n_differ = 0;
    for (uint64_t seed = 1; seed <= n_loads; seed++) {
        (void)randomload_make(&sc, q, MAX_REQUESTS, seed);
        bool roomy = sc.setup.kv_capacity_tokens == 0; /* others could not hold longer outputs */
        scenario_fini(&sc);
        n_differ += roomy && differ(ops, seed, CONFORMANCE_HIDDEN) != NULL;
    }
    if ((ops->flags & POLICY_F_ORACLE) != 0) {
        ck_assert_uint_gt(n_differ, 0); /* the control: an oracle does look */
    } else {
        ck_assert_msg(n_differ == 0, "%s decided otherwise on %u loads", ops->name, n_differ);
    }
}
END_TEST

/* A policy and its parameters as on the command line. */
static void choose_one(const char *spec)
{
    struct err e = ERR_INIT;
    char name[64];
    size_t path = plugin_path_length(spec);
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(spec, ":"), spec);
    const struct policy_ops *ops = path > 0 ? plugin_load(spec, &e) : policy_find(name);
    if (ops == NULL) {
        fprintf(stderr, "%s: %s\n", spec, e.n > 0 ? e.lines[0] : "no such policy");
        exit(2);
    }
    const char *params = spec + (path > 0 ? path : strlen(name));
    policies[n_policies] = ops;
    label[n_policies] = spec;
    given[n_policies++] = params[0] == ':' ? params + 1 : params;
    err_fini(&e);
}

static void choose_all(void)
{
    size_t n = 0;
    const struct policy_ops *const *all = policy_list(&n);
    for (size_t i = 0; i < n && n_policies < MAX_POLICIES; i++) {
        choose_one(all[i]->name);
    }
    choose_one("program-fcfs:preempt=kernel,class=rt_alone,gap_kv=infercept");
    choose_one("program-fcfs:kv=swap,preempt=layer,gap_kv=swap");
    choose_one("edf:gap_kv=ttl");
    choose_one("hpf:inflight=4,level=1");
}

static int chosen(void)
{
    return n_policies;
}

static const struct suite_row suite[] = {
    CASE("conformance", .timeout_s = 120),
    LOOP_OVER(every_request_finishes_whole_and_the_audit_is_clean, chosen),
    LOOP_OVER(tight_memory_stalls_nobody, chosen),
    LOOP_OVER(preemption_axes_keep_every_request_whole, chosen),
    LOOP_OVER(no_parameter_leaves_a_request_behind, chosen),
    LOOP_OVER(collapsing_undisturbed_kernels_changes_nothing, chosen),
    LOOP_OVER(the_same_run_takes_the_same_decisions, chosen),
    LOOP_OVER(decisions_do_not_depend_on_what_is_hidden, chosen),
};

/* `POLICY --load N ...`: one load again (tests/helpers/conformance.h). */
static int show_load(int argc, char **argv)
{
    const char *load = NULL;
    const char *trace = NULL;
    const char *decisions = NULL;
    const char *params = NULL;
    const char *pair = NULL;
    bool capable = false;
    for (int i = 2; i < argc; i++) {
        const char **takes = strcmp(argv[i], "--load") == 0        ? &load
                             : strcmp(argv[i], "--trace") == 0     ? &trace
                             : strcmp(argv[i], "--decisions") == 0 ? &decisions
                             : strcmp(argv[i], "--params") == 0    ? &params
                             : strcmp(argv[i], "--pair") == 0      ? &pair
                                                                   : NULL;
        if (strcmp(argv[i], "--capable") == 0) {
            capable = true;
        } else if (takes == NULL || i + 1 == argc) {
            fprintf(stderr, "check_policies: %s: unknown, or it needs a value\n", argv[i]);
            return 2;
        } else {
            *takes = argv[++i];
        }
    }
    choose_one(argv[1]);
    uint32_t n = prepare(policy_of(0), strtoull(load == NULL ? "1" : load, NULL, 10));
    if (capable) {
        make_capable();
    }
    if (params != NULL) {
        scenario_policy(&sc, policies[0], params);
    }
    sc.setup.decision_log = decisions == NULL ? NULL : fopen(decisions, "w");
    if (decisions != NULL && sc.setup.decision_log == NULL) {
        fprintf(stderr, "%s: %s\n", decisions, strerror(errno));
        return 2;
    }
    int which = CONFORMANCE_ALONE;
    for (int i = 1; pair != NULL && conformance_pairs[i] != NULL; i++) {
        which = strcmp(conformance_pairs[i], pair) == 0 ? i : which;
    }
    if (pair != NULL && (which == CONFORMANCE_ALONE || trace == NULL)) {
        fprintf(stderr, "check_policies: --pair collapsed, repeated or hidden, with a --trace\n");
        return 2;
    }
    int status = trace != NULL ? conformance_show(&sc, trace, (enum conformance_pair)which) : 0;
    if (trace == NULL) { /* the whole load */
        (void)scenario_run(&sc, q, n, false);
        status = conformance_tell(&sc, n);
    }
    if (sc.setup.decision_log != NULL) {
        (void)fclose(sc.setup.decision_log);
    }
    return status;
}

int main(int argc, char **argv)
{
    const char *more = getenv("XPUSIM_LOADS");
    program = argv[0];
    n_loads = more != NULL ? strtoull(more, NULL, 10) : n_loads;
    if (argc > 2 && strncmp(argv[2], "--", 2) == 0) {
        return show_load(argc, argv);
    }
    for (int i = 1; i < argc && n_policies < MAX_POLICIES; i++) {
        choose_one(argv[i]);
    }
    if (argc == 1) {
        choose_all();
    }
    return suite_run("policies", suite, sizeof suite / sizeof suite[0]);
}

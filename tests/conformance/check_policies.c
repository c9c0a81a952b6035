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

/* DDR bytes, exactly: intervals are summed as integers. */
static uint64_t ddr_bytes;

static void on_ddr(void *self, int64_t now_ns, uint64_t count, int64_t duration_ns, double demand,
                   double share)
{
    (void)self;
    (void)now_ns;
    (void)demand;
    ddr_bytes += count * (uint64_t)llround(share * units_s_from_ns(duration_ns));
}

START_TEST(collapsing_undisturbed_kernels_changes_nothing)
{
    const struct policy_ops *ops = policy_of(_i);
    for (uint64_t seed = 1; seed <= n_loads; seed++) {
        static struct scenario_record first[SCENARIO_MAX_REQUESTS];
        uint64_t kernels[2];
        uint64_t bytes[2];
        double energy[2];
        for (int collapse = 0; collapse < 2; collapse++) {
            uint32_t n = prepare(ops, seed);
            sc.observer.ddr = on_ddr;
            sc.setup.collapse = collapse;
            ddr_bytes = 0;
            ck_assert_int_eq(scenario_run(&sc, q, n, false), 0);
            kernels[collapse] = sc.result.kernels;
            energy[collapse] = sc.result.audit.energy_integral_j;
            bytes[collapse] = ddr_bytes;
            if (collapse == 0) {
                memcpy(first, sc.records, sizeof first);
            }
            scenario_fini(&sc);
        }
        ck_assert_msg(memcmp(first, sc.records, sizeof first) == 0, "%s, load %llu", ops->name,
                      (unsigned long long)seed);
        ck_assert_uint_eq(kernels[0], kernels[1]);
        ck_assert_uint_eq(bytes[0], bytes[1]);
        ck_assert(energy[0] == energy[1]);
    }
}
END_TEST

static char *decisions(const struct policy_ops *ops, uint64_t seed, uint32_t n)
{
    char *text = NULL;
    size_t size = 0;
    sc.setup.decision_log = open_memstream(&text, &size);
    int rc = scenario_run(&sc, q, n, false);
    fclose(sc.setup.decision_log);
    ck_assert_msg(rc == 0, "%s, load %llu: %s", ops->name, (unsigned long long)seed,
                  sc.result.message);
    return text;
}

START_TEST(the_same_run_takes_the_same_decisions)
{
    const struct policy_ops *ops = policy_of(_i);
    for (uint64_t seed = 1; seed <= 5; seed++) {
        char *log[2];
        for (int k = 0; k < 2; k++) {
            uint32_t n = prepare(ops, seed);
            log[k] = decisions(ops, seed, n);
            scenario_fini(&sc);
        }
        ck_assert_str_eq(log[0], log[1]);
        free(log[0]);
        free(log[1]);
    }
}
END_TEST

/* Decisions up to an instant do not depend on what is hidden after it: longer outputs of requests
 * that are not finished then, other gaps, other later arrivals and turns. Returns whether they do
 * not. */
static bool blind_to_the_future(const struct policy_ops *ops, uint64_t seed)
{
    uint32_t n = prepare(ops, seed);
    char *before = decisions(ops, seed, n);
    int64_t t = sc.result.end_ns / 3;
    static struct scenario_record record[SCENARIO_MAX_REQUESTS];
    memcpy(record, sc.records, sizeof record);
    scenario_fini(&sc);
    n = prepare(ops, seed);
    /* A later turn's fields count as hidden while its predecessor runs. Capacity must stay. */
    for (uint32_t i = 0; i < n; i++) {
        if (record[i].finish_ns > t && record[i].arrival_ns <= t) {
            q[i].output_tokens += 5;
        }
        if (record[i].arrival_ns > t) {
            q[i].arrival_s = q[i].arrival_s * 1.5 + 0.01;
            q[i].output_tokens = 1 + q[i].output_tokens / 2;
        }
    }
    sc.setup.kv_capacity_tokens = 0; /* the tight ones could not hold the longer outputs */
    char *after = decisions(ops, seed, n);
    scenario_fini(&sc);
    bool same = true;
    char *a = before;
    char *b = after;
    while (same && *a != '\0' && *b != '\0') {
        size_t la = strcspn(a, "\n");
        size_t lb = strcspn(b, "\n");
        long long at = 0;
        (void)sscanf(a, "%*u %lld", &at);
        if (at > t) {
            break;
        }
        same = la == lb && memcmp(a, b, la) == 0;
        a += la + 1;
        b += lb + 1;
    }
    free(before);
    free(after);
    return same;
}

START_TEST(decisions_do_not_depend_on_what_is_hidden)
{
    const struct policy_ops *ops = policy_of(_i);
    uint32_t differ = 0;
    for (uint64_t seed = 1; seed <= n_loads; seed++) {
        uint32_t n = randomload_make(&sc, q, MAX_REQUESTS, seed);
        (void)n;
        bool roomy = sc.setup.kv_capacity_tokens == 0;
        scenario_fini(&sc);
        if (roomy) { /* with the same memory in both runs */
            differ += !blind_to_the_future(ops, seed);
        }
    }
    if ((ops->flags & POLICY_F_ORACLE) != 0) {
        ck_assert_uint_gt(differ, 0); /* the control: an oracle does look */
    } else {
        ck_assert_msg(differ == 0, "%s decided otherwise on %u loads", ops->name, differ);
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
    bool capable = false;
    for (int i = 2; i < argc; i++) {
        const char **takes = strcmp(argv[i], "--load") == 0        ? &load
                             : strcmp(argv[i], "--trace") == 0     ? &trace
                             : strcmp(argv[i], "--decisions") == 0 ? &decisions
                             : strcmp(argv[i], "--params") == 0    ? &params
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
    int status = trace != NULL ? conformance_show(&sc, trace) : 0;
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

/* Messages of the conformance suite on policies that break one of its rules each, and the part of
 * the load that it leaves behind. The policies are fcfs with one hook replaced. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/conformance/conformance.h"
#include "experiments/conformance/randomload.h"
#include "policies/registry.h"
#include "sim/base/hash.h"
#include "sim/base/scope.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

static char folder[] = "/tmp/check-broken-XXXXXX";
static char home[512];
static struct policy_ops ops;
static const struct policy_ops *fcfs;
static char *said;
static size_t said_size;
static struct conformance c;
static uint32_t runs; /* of the policy, since the test began */

static void setup(void)
{
    fcfs = policy_find("fcfs");
    ck_assert_ptr_nonnull(fcfs);
    ck_assert_ptr_nonnull(getcwd(home, sizeof home));
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    ops = *fcfs;
    runs = 0;
    said = NULL;
    c = (struct conformance){.ops = &ops,
                             .label = "some/where/my policy:device=npu",
                             .params = "",
                             .n_loads = 2,
                             .out = open_memstream(&said, &said_size)};
}

static void teardown(void)
{
    (void)fclose(c.out);
    free(said);
    (void)chdir(home);
    OWNED char *command = xformat("rm -rf '%s'", folder);
    (void)system(command);
}

/* Message of a check of the suite, NULL if the policy passes; the caller frees. */
static char *fails(const char *check)
{
    for (const struct conformance_check *k = conformance_checks; k->name != NULL; k++) {
        if (strcmp(k->name, check) == 0) {
            return k->fails(&c);
        }
    }
    ck_abort_msg("no check is called %s", check);
    return NULL;
}

static void must_say(const char *check, const char *begins)
{
    OWNED char *why = fails(check);
    ck_assert_msg(why != NULL && strncmp(why, begins, strlen(begins)) == 0, "%s: %s, wanted %s",
                  check, why != NULL ? why : "nothing", begins);
}

static const char whole[] = "every request finishes with all its tokens, and the audit is clean";
static const char little[] = "little memory stalls nobody";
static const char gives_up[] = "who gives up holds nobody up";
static const char parameters[] = "no parameter leaves a request behind";
static const char collapsed[] = "kernels one by one and as one give the same run";
static const char repeated[] = "the same run takes the same decisions";
static const char hidden[] = "decisions do not depend on what is hidden";

START_TEST(a_sound_policy_fails_no_check)
{
    uint32_t n = 0;
    for (const struct conformance_check *k = conformance_checks; k->name != NULL; k++) {
        if (conformance_applies(k, &c)) { /* fcfs has no `kv`, and no process of its own here */
            OWNED char *why = k->fails(&c);
            ck_assert_msg(why == NULL, "%s: %s", k->name, why);
            n++;
        }
    }
    ck_assert_uint_eq(n, 7);
    (void)fflush(c.out);
    ck_assert_uint_eq(said_size, 0);
    ck_assert_int_ne(access("xpusim-trouble", F_OK), 0);
    /* A check of one parameter applies to policies that have it. */
    const struct policy_ops *other = policy_find("edf");
    struct conformance with_kv = c;
    with_kv.ops = other;
    uint32_t more = 0;
    for (const struct conformance_check *k = conformance_checks; k->name != NULL; k++) {
        more += conformance_applies(k, &with_kv);
    }
    ck_assert_uint_eq(more, 8);
}
END_TEST

/* ---- runs that fail ---- */

static void never(struct sched *s)
{
    (void)s;
}

/* Load 1 of requests: one of them is enough to stall. */
START_TEST(a_load_that_stalls_is_left_as_one_request)
{
    ops.schedule = never;
    must_say(whole, "some/where/my policy:device=npu, load 1: ");
    (void)fflush(c.out);
    static struct scenario sc;
    static struct scenario_request q[CONFORMANCE_MAX_REQUESTS];
    uint32_t n = randomload_make(&sc, q, CONFORMANCE_MAX_REQUESTS, 1);
    OWNED char *want =
        xformat("some/where/my policy:device=npu, load 1: enough to show it: 1 of %u requests, "
                "xpusim-trouble/conformance-my-policy-device-npu-1.csv\n"
                "  xpusim check-policy 'some/where/my policy:device=npu' --load 1 --trace "
                "xpusim-trouble/conformance-my-policy-device-npu-1.csv --decisions "
                "xpusim-trouble/decisions\n",
                n);
    ck_assert_str_eq(said, want);
    struct trace t;
    struct err e = ERR_INIT;
    ck_assert_int_eq(trace_read("xpusim-trouble/conformance-my-policy-device-npu-1.csv", &t, &e),
                     0);
    ck_assert_uint_eq(t.n, 1);
    /* It fails again on what was left, and on the load itself; the sound policy on neither. */
    for (int sound = 0; sound < 2; sound++) {
        struct conformance_case how = {.load = 1};
        c.ops = sound ? fcfs : &ops;
        scenario_fini(&sc);
        (void)conformance_prepare(&sc, q, &c, &how);
        scenario_trace(&sc, q, n);
        int rc = conformance_run(&sc, &t);
        ck_assert_int_eq(rc == 0, sound);
        ck_assert_uint_eq(sc.result.audit.finished, sound ? 1 : 0);
        ck_assert_uint_eq(sc.trace.n, n); /* the scenario has its own again */
        ck_assert_int_eq(scenario_again(&sc) == 0, sound);
        ck_assert_int_eq(conformance_failed(&sc), !sound);
    }
    scenario_fini(&sc);
    trace_fini(&t);
}
END_TEST

/* With parameters, a pair or a capable machine the file and the command say so. */
START_TEST(what_is_left_names_the_case)
{
    static struct scenario sc;
    static struct scenario_request q[CONFORMANCE_MAX_REQUESTS];
    struct conformance_case how = {.params = "device=cpu", .load = 12, .capable = true};
    ops.schedule = never;
    c.label = "mine";
    uint32_t n = conformance_prepare(&sc, q, &c, &how);
    for (uint32_t d = 0; d < sc.machine.n_devices; d++) {
        const struct device *dev = &sc.machine.devices[d];
        ck_assert(dev->can_reset && dev->can_withdraw && dev->can_suspend);
    }
    ck_assert_int_ne(scenario_run(&sc, q, n, false), 0);
    int status = sc.result.status;
    conformance_leave(&sc, &c, &how);
    ck_assert_int_eq(sc.result.status, status); /* as it was */
    (void)fflush(c.out);
    OWNED char *path = xformat("xpusim-trouble/conformance-mine-12-%016llx.csv",
                               (unsigned long long)hash_string(HASH_INIT, how.params));
    OWNED char *want = xformat("mine, load 12: enough to show it: 1 of %u requests, %s\n  xpusim "
                               "check-policy mine --load 12 --capable --params "
                               "'device=cpu' --trace %s --decisions xpusim-trouble/decisions\n",
                               n, path, path);
    ck_assert_str_eq(said, want);
    ck_assert_int_eq(access(path, R_OK), 0);
    scenario_fini(&sc);
}
END_TEST

static void forgets_who_gives_up(struct sched *s, const struct request *r)
{
    (void)s;
    (void)r;
}

/* It keeps them in its queue, and finds nobody to serve when it comes to one. */
START_TEST(a_user_who_gives_up_and_stays_queued_stalls_the_others)
{
    ops.request_cancelled = forgets_who_gives_up;
    ck_assert_ptr_null(fails(whole));
    OWNED char *why = fails(gives_up);
    ck_assert_ptr_nonnull(why);
    ck_assert_ptr_nonnull(strstr(why, "stalled: "));
}
END_TEST

static void sets_a_timer(struct sched *s, const struct request *r)
{
    fcfs->request_arrived(s, r);
    (void)sched_set_timer(s, s->now_ns + 1);
}

START_TEST(an_action_outside_of_schedule_is_told)
{
    ops.request_arrived = sets_a_timer;
    OWNED char *why = fails(whole);
    ck_assert_str_eq(why, "some/where/my policy:device=npu, load 1: it acts outside of schedule");
}
END_TEST

static const struct request *to_shed[64];
static uint32_t n_to_shed;

static void keeps_some(struct sched *s, const struct request *r)
{
    if (r->id % 3 == 2 && n_to_shed < 64) {
        to_shed[n_to_shed++] = r;
    } else {
        fcfs->request_arrived(s, r);
    }
}

static void sheds_them(struct sched *s)
{
    while (n_to_shed > 0) {
        (void)sched_shed(s, to_shed[--n_to_shed]);
    }
    fcfs->schedule(s);
}

START_TEST(shedding_is_told)
{
    n_to_shed = 0;
    ops.request_arrived = keeps_some;
    ops.schedule = sheds_them;
    OWNED char *why = fails(whole);
    uint32_t finished = 0;
    uint32_t n = 0;
    char rest[128] = "";
    ck_assert_msg(why != NULL && sscanf(why,
                                        "some/where/my policy:device=npu, load %*u: %u of %u "
                                        "requests finished within 600 s, or %100[a-z ]",
                                        &finished, &n, rest) == 3,
                  "%s", why);
    ck_assert_uint_lt(finished, n);
    ck_assert_str_eq(rest, "the audit is not clean");
    OWNED char *random = fails(parameters);
    ck_assert_msg(random != NULL && strstr(random, ": it sheds requests") != NULL, "%s", random);
}
END_TEST

static const struct request *longest;

static void keeps_the_longest(struct sched *s, const struct request *r)
{
    (void)s;
    bool busy = longest != NULL && longest->pass != NULL;
    longest = longest == NULL || (!busy && r->input_tokens > longest->input_tokens) ? r : longest;
}

/* Computes all of the longest prompt but its last token, and gives that up. */
static void starts_over(struct sched *s)
{
    if (longest == NULL || longest->pass != NULL) {
        return;
    }
    if (longest->kv_tokens > 0) {
        (void)sched_kv_move(s, kv_of(longest), KV_NOWHERE);
    }
    struct segment most = {.request = longest, .role = SEGMENT_PREFILL};
    most.n_tokens = request_prefill_left(longest) - 1;
    struct pass_spec spec = {.segments = &most, .n_segments = 1};
    struct pass *pass = NULL;
    if (most.n_tokens > 0 && sched_pass_form(s, &spec, &pass) == 0) {
        struct launch_spec all = sched_launch_rest(s, pass, IGPU, YIELD_PASS);
        (void)sched_launch(s, &all, NULL);
    }
}

static int starts_without(struct sched *s)
{
    longest = NULL;
    return fcfs->init(s);
}

/* The device always has work, so the run does not stall. It ended by its processor time only. */
START_TEST(work_without_progress_ends)
{
    ops.init = starts_without;
    ops.request_arrived = keeps_the_longest;
    ops.schedule = starts_over;
    ops.pass_done = NULL;
    ops.request_cancelled = NULL;
    must_say(whole, "some/where/my policy:device=npu, load 1: 0 of ");
    (void)fflush(c.out);
    ck_assert_ptr_nonnull(strstr(said, "load 1: enough to show it: 1 of "));
    rewind(c.out);
    OWNED char *random = fails(parameters);
    (void)fflush(c.out);
    ck_assert_msg(random != NULL && strstr(random, "did not finish with all its tokens") != NULL,
                  "%s", random);
    ck_assert_ptr_nonnull(strstr(said, "enough to show it: 1 of "));
    /* This policy has no parameters, and the command line refuses --params ''. */
    ck_assert_ptr_nonnull(strstr(said, " --capable --trace "));
    ck_assert_ptr_null(strstr(said, "--params"));
}
END_TEST

static void unless_it_stalls(struct sched *s)
{
    if (!param_bool(s, 1)) { /* behind the device */
        fcfs->schedule(s);
    }
}

/* Whole with the defaults alone. */
START_TEST(a_value_that_stalls_is_found)
{
    ck_assert_ptr_null(fcfs->params[1].name);
    const struct policy_param both[] = {
        fcfs->params[0], POLICY_BOOL("stalls", 0, "Does nothing."), {.name = NULL}};
    ops.params = both;
    ops.schedule = unless_it_stalls;
    c.n_loads = 30; /* 0.15 of them have it */
    OWNED char *with_defaults = fails(whole);
    ck_assert_msg(with_defaults == NULL, "%s", with_defaults);
    OWNED char *random = fails(parameters);
    ck_assert_ptr_nonnull(random);
    (void)fflush(c.out);
    ck_assert_ptr_nonnull(strstr(said, "stalls=true"));
    ck_assert_ptr_nonnull(strstr(said, " --capable --params '"));
}
END_TEST

/* ---- two runs ---- */

static int begins(struct sched *s)
{
    runs++;
    return fcfs->init(s);
}

/* Every second run it sets a timer at the first instant of work. */
static uint32_t in_run;
static void remembers(struct sched *s)
{
    if (runs % 2 == 0 && in_run != runs) {
        in_run = runs;
        (void)sched_set_timer(s, s->now_ns + 1000);
    }
    fcfs->schedule(s);
}

START_TEST(a_policy_that_remembers_is_found_by_each_pair)
{
    static const struct {
        const char *check, *pair;
    } checks[] = {{repeated, "repeated"}, {collapsed, "collapsed"}, {hidden, "hidden"}};
    ops.init = begins;
    ops.schedule = remembers;
    for (int i = 0; i < 3; i++) {
        runs = in_run = 0;
        rewind(c.out);
        must_say(checks[i].check, "some/where/my policy:device=npu, load 1: decisions differ: ");
        (void)fflush(c.out);
        OWNED char *want = xformat(" --load 1 --pair %s --trace "
                                   "xpusim-trouble/conformance-my-policy-device-npu-1-%s.csv\n",
                                   checks[i].pair, checks[i].pair);
        ck_assert_msg(strstr(said, want) != NULL, "%s", said);
    }
    OWNED char *none = fails(little); /* it serves every request in spite of its memory */
    ck_assert_ptr_null(none);
}
END_TEST

static void gives_up_once(struct sched *s)
{
    if (runs == 1 && s->now_ns > 700 * NS_PER_MS) {
        sched_give_up(s, "enough of it");
    }
    fcfs->schedule(s);
}

START_TEST(pairs_say_in_what_runs_differ)
{
    static struct scenario sc;
    static struct scenario_request q[CONFORMANCE_MAX_REQUESTS];
    struct conformance_case how = {.load = 1};
    uint32_t n = conformance_prepare(&sc, q, &c, &how);
    scenario_trace(&sc, q, n);
    for (int pair = CONFORMANCE_COLLAPSED; pair <= CONFORMANCE_HIDDEN; pair++) {
        for (int collapse = 0; collapse < 2; collapse++) {
            sc.setup.collapse = collapse == 1;
            const char *differ = conformance_differ(&sc, &sc.trace, (enum conformance_pair)pair);
            ck_assert_msg(differ == NULL, "%s: %s", conformance_pairs[pair], differ);
            ck_assert_int_eq(sc.setup.collapse, collapse); /* as it was */
            ck_assert(sc.setup.policy == &ops && sc.setup.memory == NULL &&
                      sc.setup.decision_log == NULL && sc.observer.ddr == NULL);
        }
    }
    ops.schedule = never;
    static const char stalls[] = "a run fails: policy fcfs, seed ";
    for (int pair = CONFORMANCE_REPEATED; pair <= CONFORMANCE_HIDDEN; pair++) {
        const char *differ = conformance_differ(&sc, &sc.trace, (enum conformance_pair)pair);
        ck_assert_msg(strncmp(differ, stalls, strlen(stalls)) == 0 &&
                          strstr(differ, "stalled") != NULL,
                      "%s", differ);
    }
    /* A run that ends early: who has not come yet has no arrival to be moved with the others'. */
    ops.init = begins;
    ops.schedule = gives_up_once;
    runs = 0;
    const char *differ = conformance_differ(&sc, &sc.trace, CONFORMANCE_HIDDEN);
    ck_assert_msg(strstr(differ, "enough of it") != NULL, "%s", differ);
    ck_assert_uint_eq(runs, 1);
    scenario_fini(&sc);
}
END_TEST

/* ---- oracles ---- */

START_TEST(an_oracle_must_look)
{
    const struct policy_ops *srpt = policy_find("srpt");
    ops = *srpt;
    c.n_loads = CONFORMANCE_LOADS;
    OWNED char *marked = fails(hidden);
    ck_assert_msg(marked == NULL, "%s", marked); /* it looks, and says so */
    (void)fflush(c.out);
    ck_assert_uint_eq(said_size, 0); /* and nothing is left of it */
    ops = *fcfs;
    ops.flags = POLICY_F_ORACLE;
    OWNED char *blind = fails(hidden);
    ck_assert_str_eq(blind, "some/where/my policy:device=npu: it is marked as an oracle, and "
                            "decides as if it knew nothing");
}
END_TEST

static const struct suite_row suite[] = {
    CASE("broken policies", .setup = setup, .teardown = teardown),
    TEST(a_sound_policy_fails_no_check),
    TEST(a_load_that_stalls_is_left_as_one_request),
    TEST(what_is_left_names_the_case),
    TEST(a_user_who_gives_up_and_stays_queued_stalls_the_others),
    TEST(an_action_outside_of_schedule_is_told),
    TEST(shedding_is_told),
    TEST(work_without_progress_ends),
    TEST(a_value_that_stalls_is_found),
    TEST(a_policy_that_remembers_is_found_by_each_pair),
    TEST(pairs_say_in_what_runs_differ),
    TEST(an_oracle_must_look),
};
SUITE_MAIN("broken policies", suite)

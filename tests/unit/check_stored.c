/* Comparisons of a store alone: which replications are one comparison, in which order, under which
 * names, and with whose numbers. Values are made up, and means by hand. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/compare/stored.h"
#include "experiments/store/store.h"
#include "sim/base/hash.h"
#include "sim/base/json.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"

static struct err err;
static struct store *store;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    folder_enter();
    store = store_open("s.db", STORE_USE_CREATE, &err);
    ck_assert_ptr_nonnull(store);
}

static void teardown(void)
{
    err_fini(&err);
    folder_leave();
}

/* Puts a replication with one metric. Its machine, model and workload have the number in their
 * names, too. */
static void put(int64_t x, uint64_t point, uint32_t replication, double value)
{
    OWNED char *fingerprint = xformat("%d %d %d", (int)x, (int)point, (int)replication);
    OWNED char *soc = xformat("soc %d.%d", (int)point, (int)replication);
    OWNED char *llm = xformat("llm %d.%d", (int)point, (int)replication);
    OWNED char *workload = xformat("load %d.%d", (int)point, (int)replication);
    struct store_run run = {.fingerprint = fingerprint,
                            .soc = soc,
                            .llm = llm,
                            .workload = workload,
                            .policy = "run's own",
                            .params = "",
                            .verdict = "STABLE",
                            .rate_scale = 1.0,
                            .seed = 40 + 10 * point + replication,
                            .config_hash = 0xab00 + point,
                            .trace_hash = 3};
    static const char *const names[] = {"m.s"};
    store_member(store, x, point, replication, store_put(store, &run, "*", names, &value, 1));
}

static void closed(void)
{
    ck_assert_msg(store_close(store, &err) == 0, "%s", err.n > 0 ? err.lines[0] : "");
}

/* Two machines run two policies. On A p has 1, 2, 3 and q has 3, 4, 8, and on B tenfold. */
static void four_points(void)
{
    static const char *const settings[] = {"{\"soc\": \"A\", \"policy\": \"p\"}",
                                           "{\"soc\": \"A\", \"policy\": \"q\", \"params.k\": 2}",
                                           "{\"soc\": \"B\", \"policy\": \"p\"}",
                                           "{\"soc\": \"B\", \"policy\": \"q\", \"params.k\": 2}"};
    static const double values[2][3] = {{1, 2, 3}, {3, 4, 8}};
    int64_t x = store_experiment(store, "four", "rev", "{}");
    for (uint64_t i = 0; i < 4; i++) {
        store_point(store, x, i, settings[i]);
        for (uint32_t k = 0; k < 3; k++) {
            put(x, i, k, values[i % 2][k] * (i < 2 ? 1 : 10));
        }
    }
    closed();
}

static cJSON *json_of(const struct said *s)
{
    ck_assert_msg(s->status == EXIT_OK, "%d: %s", s->status, s->err);
    cJSON *tree = cJSON_Parse(s->out);
    ck_assert_msg(tree != NULL, "%s", s->out);
    return tree;
}

static void has_text(const cJSON *o, const char *key, const char *want)
{
    const cJSON *c = cJSON_GetObjectItemCaseSensitive(o, key);
    OWNED char *text = cJSON_IsString(c) ? xstrdup(c->valuestring) : cJSON_PrintUnformatted(c);
    ck_assert_msg(text != NULL && strcmp(text, want) == 0, "%s: %s, not %s", key,
                  text != NULL ? text : "not there", want);
}

static double number(const cJSON *o, const char *key)
{
    const cJSON *c = cJSON_GetObjectItemCaseSensitive(o, key);
    ck_assert_msg(cJSON_IsNumber(c), "%s", key);
    return c->valuedouble;
}

/* A policy of a comparison: its name by its place, mean of n, and difference from the baseline
 * (NAN: it is the baseline). */
static void policy_is(const cJSON *comparison, int at, const char *name, double mean, uint32_t n,
                      double diff)
{
    const cJSON *c =
        cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(comparison, "policies"), at);
    ck_assert_ptr_nonnull(c);
    ck_assert_str_eq(c->string, name);
    const cJSON *m = cJSON_GetObjectItemCaseSensitive(c, "m.s");
    ck_assert_double_eq_tol(number(m, "mean"), mean, 1e-12);
    ck_assert_double_eq(number(m, "n"), n);
    const cJSON *d = cJSON_GetObjectItemCaseSensitive(m, "diff");
    ck_assert_int_eq(cJSON_IsNumber(d), !isnan(diff));
    if (!isnan(diff)) {
        ck_assert_double_eq_tol(d->valuedouble, diff, 1e-12);
    }
}

static int policies_of(const cJSON *comparison)
{
    return cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(comparison, "policies"));
}

/* q is 2, 2 and 5 above p, 3 in the mean; tenfold on the other machine. */
START_TEST(policies_are_compared_where_all_else_is_equal)
{
    four_points();
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_compare, "--store", "s.db", "--json", "--metric", "m.s");
    SCOPED(json_drop) cJSON *all = json_of(&s);
    ck_assert_int_eq(cJSON_GetArraySize(all), 2);
    for (int i = 0; i < 2; i++) {
        const cJSON *c = cJSON_GetArrayItem(all, i);
        double scale = i == 0 ? 1 : 10;
        has_text(c, "experiment", "four");
        has_text(c, "settings", i == 0 ? "{\"soc\":\"A\"}" : "{\"soc\":\"B\"}");
        ck_assert_int_eq(policies_of(c), 2);
        policy_is(c, 0, "p", 2 * scale, 3, (double)NAN);
        policy_is(c, 1, "q:k=2", 5 * scale, 3, 3 * scale);
        ck_assert_double_eq(number(c, "failed_runs"), 0);
        /* These facts are of the baseline's first run. */
        const cJSON *about = cJSON_GetObjectItemCaseSensitive(c, "about");
        has_text(about, "soc", i == 0 ? "soc 0.0" : "soc 2.0");
        has_text(about, "llm", i == 0 ? "llm 0.0" : "llm 2.0");
        has_text(about, "workload", i == 0 ? "load 0.0" : "load 2.0");
        has_text(about, "version", "xpusim rev");
        has_text(about, "kind", "compare");
        has_text(about, "command", "xpusim compare --store FILE.db");
        has_text(c, "workload", i == 0 ? "load 0.0" : "load 2.0");
        has_text(c, "baseline", "p");
        has_text(c, "version", "xpusim rev");
        has_text(c, "config_hash", i == 0 ? "000000000000ab00" : "000000000000ab02");
        ck_assert_double_eq(number(c, "seed"), i == 0 ? 40 : 60);
        ck_assert_double_eq(number(c, "replications"), 3);
    }
    SCOPED(said_fini)
    struct said other = COMMANDED(cmd_compare, "--store", "s.db", "--json", "--metric", "m.s",
                                  "--baseline", "q:k=2");
    SCOPED(json_drop) cJSON *turned = json_of(&other);
    const cJSON *c = cJSON_GetArrayItem(turned, 0);
    policy_is(c, 0, "p", 2, 3, -3);
    policy_is(c, 1, "q:k=2", 5, 3, (double)NAN);
    has_text(c, "baseline", "q:k=2");
    has_text(c, "workload", "load 1.0");
    ck_assert_double_eq(number(c, "seed"), 50);
    SCOPED(said_fini)
    struct said none = COMMANDED(cmd_compare, "--store", "s.db", "--baseline", "r");
    said_refused(&none, "--baseline r: not in experiment \"four\" {\"soc\":\"A\"}");
}
END_TEST

/* B is ten times A: 18 above it for p, 45 for q. */
START_TEST(any_setting_can_be_compared)
{
    four_points();
    SCOPED(said_fini)
    struct said s =
        COMMANDED(cmd_compare, "--store", "s.db", "--json", "--metric", "m.s", "--by", "soc");
    SCOPED(json_drop) cJSON *all = json_of(&s);
    ck_assert_int_eq(cJSON_GetArraySize(all), 2);
    const cJSON *p = cJSON_GetArrayItem(all, 0);
    has_text(p, "settings", "{\"policy\":\"p\"}");
    policy_is(p, 0, "A", 2, 3, (double)NAN);
    policy_is(p, 1, "B", 20, 3, 18);
    const cJSON *q = cJSON_GetArrayItem(all, 1);
    has_text(q, "settings", "{\"policy\":\"q\",\"params.k\":2}");
    policy_is(q, 0, "A", 5, 3, (double)NAN);
    policy_is(q, 1, "B", 50, 3, 45);
    /* A number is its JSON, and a point without the setting is called "-". */
    SCOPED(said_fini)
    struct said k =
        COMMANDED(cmd_compare, "--store", "s.db", "--json", "--metric", "m.s", "--by", "params.k");
    SCOPED(json_drop) cJSON *params = json_of(&k);
    ck_assert_int_eq(cJSON_GetArraySize(params), 4);
    static const char *const labels[] = {"-", "2", "-", "2"};
    static const double means[] = {2, 5, 20, 50};
    for (int i = 0; i < 4; i++) {
        policy_is(cJSON_GetArrayItem(params, i), 0, labels[i], means[i], 3, (double)NAN);
    }
    has_text(cJSON_GetArrayItem(params, 3), "settings", "{\"soc\":\"B\",\"policy\":\"q\"}");
}
END_TEST

/* Names of policies: the point's own with all its parameters, those of the name first; without a
 * setting the run's. */
START_TEST(policies_have_their_parameters)
{
    static const char *const settings[] = {
        "{\"params.a\": 1, \"policy\": \"p:z=9\", \"params.b\": \"t\"}",
        "{\"params.c\": true, \"params.d\": 0.5}", "{}", "{\"policy\": 7}"};
    static const char *const labels[] = {"p:z=9,a=1,b=t", "run's own:c=true,d=0.5", "run's own",
                                         "7"};
    int64_t x = store_experiment(store, "named", "rev", "{}");
    for (uint64_t i = 0; i < 4; i++) {
        store_point(store, x, i, settings[i]);
        put(x, i, 0, (double)i);
    }
    closed();
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_compare, "--store", "s.db", "--json", "--metric", "m.s");
    SCOPED(json_drop) cJSON *all = json_of(&s);
    ck_assert_int_eq(cJSON_GetArraySize(all), 1);
    const cJSON *c = cJSON_GetArrayItem(all, 0);
    has_text(c, "settings", "{}");
    ck_assert_int_eq(policies_of(c), 4);
    for (int i = 0; i < 4; i++) {
        const cJSON *p = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(c, "policies"), i);
        ck_assert_str_eq(p->string, labels[i]);
        ck_assert_double_eq(number(cJSON_GetObjectItemCaseSensitive(p, "m.s"), "mean"), i);
    }
}
END_TEST

/* The policy of an experiment's base is that of its own points. Another experiment without one has
 * the policy of its runs. */
START_TEST(a_base_names_the_policy_of_its_own_experiment)
{
    static const char *const specs[] = {"{\"base\": {\"policy\": \"first\"}}", "{}",
                                        "{\"base\": {\"policy\": \"third\"}}"};
    static const char *const labels[] = {"first", "run's own", "third"};
    for (int i = 0; i < 3; i++) {
        int64_t x = store_experiment(store, labels[i], "rev", specs[i]);
        store_point(store, x, 0, "{}");
        put(x, 0, 0, i);
    }
    closed();
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_compare, "--store", "s.db", "--json", "--metric", "m.s");
    SCOPED(json_drop) cJSON *all = json_of(&s);
    ck_assert_int_eq(cJSON_GetArraySize(all), 3);
    for (int i = 0; i < 3; i++) {
        policy_is(cJSON_GetArrayItem(all, i), 0, labels[i], i, 1, (double)NAN);
    }
}
END_TEST

/* A failed run and a missing one, as where a sweep stopped earlier, are different: nothing shows
 * that the other failed. Both are left out of pairs: q is 4 above p in the one replication that
 * both have. Numbers for people come from the first run of the baseline that has a result. */
START_TEST(runs_that_are_not_there_are_left_out)
{
    int64_t x = store_experiment(store, "holes", "rev", "{}");
    store_point(store, x, 0, "{\"policy\": \"p\"}");
    store_point(store, x, 1, "{\"policy\": \"q\"}");
    store_failure(store, x, 0, 0, "it fell");
    put(x, 0, 1, 1.0);
    put(x, 0, 2, 3.0);
    put(x, 1, 0, 4.0);
    put(x, 1, 2, 7.0);
    closed();
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_compare, "--store", "s.db", "--json", "--metric", "m.s");
    SCOPED(json_drop) cJSON *all = json_of(&s);
    const cJSON *c = cJSON_GetArrayItem(all, 0);
    policy_is(c, 0, "p", 2, 2, (double)NAN);
    ck_assert_double_eq(number(c, "failed_runs"), 1);
    static const double counts[2][2] = {{1, 0}, {0, 1}}; /* failed, not run */
    for (int i = 0; i < 2; i++) {
        const cJSON *of = cJSON_GetObjectItemCaseSensitive(
            cJSON_GetObjectItemCaseSensitive(c, "verdicts"), i == 0 ? "p" : "q");
        ck_assert_double_eq(number(of, "failed"), counts[i][0]);
        ck_assert_double_eq(number(of, "not_run"), counts[i][1]);
    }
    has_text(c, "workload", "load 0.1");
    const cJSON *q = cJSON_GetObjectItemCaseSensitive(
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(c, "policies"), "q"),
        "m.s");
    ck_assert_double_eq(number(q, "mean"), 5.5);
    ck_assert_double_eq(number(q, "diff"), 4);
}
END_TEST

/* A shard of five replications from seed 7 has the second and third of them: three did not run. The
 * seeds are the experiment's, though that of the first run here is another one. By seed, each has
 * its own, and the other setting does not count. */
START_TEST(seeds_and_replications_are_the_experiments)
{
    for (int by = 0; by < 2; by++) {
        int64_t x = store_experiment(store, "shard", by ? "new" : "rev",
                                     by ? "{\"replications\": 5}"
                                        : "{\"base\": {\"seed\": 7}, \"replications\": 5}");
        store_point(store, x, 0, by ? "{\"seed\": 7}" : "{\"policy\": \"p\"}");
        put(x, 0, 1, 1.0);
        put(x, 0, 2, 3.0);
    }
    closed();
    for (int by = 0; by < 2; by++) {
        SCOPED(said_fini)
        struct said s = COMMANDED(cmd_compare, "--store", "s.db", "--json", "--metric", "m.s",
                                  "--by", by ? "seed" : "policy");
        SCOPED(json_drop) cJSON *all = json_of(&s);
        const cJSON *c = cJSON_GetArrayItem(all, by);
        ck_assert_double_eq(number(c, "replications"), 5);
        ck_assert_double_eq(number(c, "seed"), 7);
        const cJSON *seeds = cJSON_GetObjectItemCaseSensitive(c, "seeds");
        ck_assert_int_eq(cJSON_GetArraySize(seeds), 5);
        for (int i = 0; i < 5; i++) {
            ck_assert_double_eq(cJSON_GetArrayItem(seeds, i)->valuedouble,
                                (double)config_seed(7, (uint32_t)i));
        }
        const cJSON *of = cJSON_GetObjectItemCaseSensitive(c, "verdicts")->child;
        ck_assert_double_eq(number(of, "not_run"), 3);
    }
}
END_TEST

/* The runs were made for loads 0.5 and 0.25 of q, whose rates are 2 and 1, so q is the baseline.
 * Loads lie in the order of the rates, and a point that has another rate has no load. Another
 * baseline may be named, which changes no load. q is 3 above p. */
START_TEST(loads_and_baseline_are_those_of_the_runs)
{
    int64_t x = store_experiment(store, "loads", "rev",
                                 "{\"axes\": {\"rate\": [2, 1]}, \"loads\": [0.5, 0.25], "
                                 "\"baseline\": \"q\"}");
    static const char *const wanted[] = {"load 0.5 of q (arrival rates times 2)",
                                         "load 0.25 of q (arrival rates times 1)", "{\"rate\":4}"};
    for (uint64_t i = 0; i < 6; i++) {
        OWNED char *point = xformat("{\"policy\": \"%s\", \"rate\": %d}", i % 2 == 0 ? "p" : "q",
                                    i / 2 == 0   ? 2
                                    : i / 2 == 1 ? 1
                                                 : 4);
        store_point(store, x, i, point);
        put(x, i, 0, i % 2 == 0 ? 1.0 : 4.0);
    }
    closed();
    for (int named = 0; named < 2; named++) {
        SCOPED(said_fini)
        struct said s = named == 0
                            ? COMMANDED(cmd_compare, "--store", "s.db", "--json", "--metric", "m.s")
                            : COMMANDED(cmd_compare, "--store", "s.db", "--json", "--metric", "m.s",
                                        "--baseline", "p");
        SCOPED(json_drop) cJSON *all = json_of(&s);
        ck_assert_int_eq(cJSON_GetArraySize(all), 3);
        for (int i = 0; i < 3; i++) {
            const cJSON *c = cJSON_GetArrayItem(all, i);
            has_text(c, "baseline", named == 0 ? "q" : "p");
            has_text(c, "where", wanted[i]);
            policy_is(c, 0, "p", 1, 1, named == 0 ? -3 : (double)NAN);
            policy_is(c, 1, "q", 4, 1, named == 0 ? (double)NAN : 3);
            ck_assert_int_eq(cJSON_HasObjectItem(c, "load"), i < 2);
        }
        ck_assert_double_eq(number(cJSON_GetArrayItem(all, 0), "load"), 0.5);
        ck_assert_double_eq(number(cJSON_GetArrayItem(all, 1), "rate_scale"), 1);
    }
    SCOPED(said_fini) /* then no policy is a baseline */
    struct said by =
        COMMANDED(cmd_compare, "--store", "s.db", "--json", "--metric", "m.s", "--by", "rate");
    SCOPED(json_drop) cJSON *rates = json_of(&by);
    has_text(cJSON_GetArrayItem(rates, 0), "baseline", "2");
    has_text(cJSON_GetArrayItem(rates, 0), "where", "{\"policy\":\"p\"}");
}
END_TEST

/* Without any result there is nothing to show; with numbers of replications that no results have
 * it is no comparison: 1000 for one result are, 1001 are not. */
START_TEST(comparisons_of_nothing_are_refused)
{
    int64_t x = store_experiment(store, "none", "rev", "{}");
    store_point(store, x, 0, "{\"policy\": \"p\", \"rate\": 2}");
    store_failure(store, x, 0, 0, "it fell");
    closed();
    SCOPED(said_fini) struct said s = COMMANDED(cmd_compare, "--store", "s.db");
    said_refused(&s, "experiment \"none\" {\"rate\":2}: no run of it has a result");
    for (uint32_t more = 0; more < 2; more++) {
        OWNED char *name = xformat("%u.db", more);
        store = store_open(name, STORE_USE_CREATE, &err);
        x = store_experiment(store, "sparse", "rev", "{}");
        store_point(store, x, 0, "{\"policy\": \"p\"}");
        put(x, 0, 999 + more, 2.0);
        closed();
        SCOPED(said_fini)
        struct said of = COMMANDED(cmd_compare, "--store", name, "--metric", "m.s", "--json");
        if (more == 0) {
            ck_assert_int_eq(of.status, EXIT_OK);
        } else {
            said_refused(&of, "experiment \"sparse\" {}: 1 result, numbered up to 1001");
        }
    }
}
END_TEST

/* Requests are recorded if the point, or base or axes of the file, name a trace. */
START_TEST(recorded_requests_are_called_so)
{
    static const char *const specs[] = {"{}", "{\"base\": {\"trace\": \"t\"}}",
                                        "{\"axes\": {\"trace\": [\"t\"]}}",
                                        "{\"base\": {\"workload\": \"t\"}, \"trace\": 1}", "none"};
    for (uint64_t i = 0; i < 5; i++) {
        OWNED char *name = xformat("e%d", (int)i);
        int64_t x = store_experiment(store, name, "rev", specs[i]);
        store_point(store, x, 0, "{\"policy\": \"p\"}");
        store_point(store, x, 1, "{\"policy\": \"p\", \"trace\": \"t\"}");
        put(x, 0, 0, 2.0);
        put(x, 1, 0, 2.0);
    }
    closed();
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_compare, "--store", "s.db", "--json", "--metric", "m.s");
    SCOPED(json_drop) cJSON *all = json_of(&s);
    ck_assert_int_eq(cJSON_GetArraySize(all), 10);
    OWNED char *sample = cJSON_PrintUnformatted(
        cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(all, 0), "sample"));
    for (int i = 0; i < 10; i++) {
        const cJSON *c = cJSON_GetArrayItem(all, i);
        OWNED char *is = cJSON_PrintUnformatted(cJSON_GetObjectItemCaseSensitive(c, "sample"));
        bool recorded = i % 2 == 1 || i == 2 || i == 4;
        ck_assert_msg((strcmp(is, sample) != 0) == recorded, "%d: %s", i, is);
    }
}
END_TEST

/* All that is stated makes a comparison one experiment of a store: its policies in their order,
 * replications, baseline, rates and loads, and each option of its machine. A spec has nothing that
 * is not stated. A comparison that is made again is the same one. */
START_TEST(a_comparison_is_kept_with_all_that_it_is)
{
    static const double rates[] = {0.5, 2.0};
    static const double loads[] = {0.25, 1.0};
    static const char *const sets[] = {"sim.kv_block_tokens=8", "sim.kv_block_tokens=32"};
    static struct config config = {.workload = "w:x=1"};
    static struct config_options options = {.soc = "s", .llm = "m", .seed = 7};
    static const struct config_policy policies[3] = {{.label = "a"}, {.label = "b:k=1"}};
    enum { CASES = 9 };
    static const char *const want[CASES] = {
        "{\"name\":\"compare\",\"base\":{\"soc\":\"s\",\"llm\":\"m\",\"workload\":\"w:x=1\","
        "\"seed\":7},\"axes\":{\"policy\":[\"a\"]},\"replications\":3}",
        "\"axes\":{\"policy\":[\"a\",\"b:k=1\"]},\"replications\":3}",
        "\"replications\":3,\"baseline\":\"b:k=1\"}",
        "\"axes\":{\"rate\":[0.5,2],\"policy\":[\"a\",\"b:k=1\"]},\"replications\":3,"
        "\"baseline\":\"b:k=1\",\"loads\":[0.25,1]}",
        "\"seed\":7,\"machine\":\"e.json\"}",
        "\"machine\":\"e.json\",\"ttft_slo_s\":2,\"tpot_slo_s\":0.5}",
        "\"tpot_slo_s\":0.5,\"sim.kv_block_tokens\":\"32\"}",
        "\"llm\":\"m\",\"trace\":\"w:x=1\",",
        "\"axes\":{\"rate\":[0.5],\"policy\":[\"a\",\"b:k=1\"]},\"replications\":3,"
        "\"baseline\":\"b:k=1\"}"};
    int64_t ids[CASES];
    struct compare_plan plan = {.config = &config,
                                .options = &options,
                                .policies = policies,
                                .n_policies = 1,
                                .replications = 3,
                                .how.store = store};
    for (int i = 0; i < CASES; i++) {
        plan.n_policies = i >= 1 ? 2 : 1;
        plan.baseline = i >= 2 ? 1 : 0;
        options.machine = i >= 4 ? "e.json" : NULL;
        options.ttft_slo_s = i >= 5 ? 2.0 : 0.0;
        options.tpot_slo_s = i >= 5 ? 0.5 : 0.0;
        for (int k = 0; k < 2 && i >= 6; k++) {
            options.sets[k] = xkeep(xstrdup(sets[k]));
            options.n_sets = 2;
        }
        options.trace = i >= 7 ? "t.csv" : NULL;
        plan.arrivals.rate_scale = i >= 8 ? 0.5 : 1.0; /* a suite's point has its own */
        for (int again = 0; again < 2; again++) {
            bool over_load = i >= 3 && i < 8;
            stored_note(&plan, over_load ? loads : NULL, rates, over_load ? 2 : 0);
            ck_assert(again == 0 || plan.experiment == ids[i]);
            ids[i] = plan.experiment;
        }
        for (int k = 0; k < i; k++) {
            ck_assert_int_ne(ids[i], ids[k]);
        }
        OWNED char *spec = store_experiment_spec(store, ids[i]);
        ck_assert_msg(strstr(spec, want[i]) != NULL, "%s has not %s", spec, want[i]);
    }
    closed();
}
END_TEST

/* Comparisons that differ in what they measure are kept apart, and are headed by the difference. */
START_TEST(comparisons_that_ask_for_other_values_are_others)
{
    static const char *const asked[][2] = {
        {"--qoe", "1,5"}, {"--qoe", "0.5,9"}, {"--quantile", "40"}, {"--quantile", "60"},
        {"--below", "3"}, {"--sketch", NULL}, {NULL, NULL}};
    static const char *const heads[] = {
        "{\"qoe\":[1,5],\"experiment\"",   "{\"qoe\":[0.5,9],\"experiment\"",
        "{\"quantile\":[40],\"exp",        "{\"quantile\":[60],\"exp",
        "{\"below\":[3],\"experiment\"",   "{\"samples\":\"sketch\",\"exp",
        "==== compare: {\"experiment\":\""};
    enum { N = sizeof heads / sizeof *heads };
    closed();
    for (int i = 0; i < N; i++) {
        SCOPED(said_fini)
        struct said s =
            COMMANDED(cmd_compare, "--policy", "fcfs", "--policy", "edf", "--workload", "w1:n=2",
                      "--replications", "1", "--store", "s.db", "-q", asked[i][0], asked[i][1]);
        ck_assert_msg(s.status == EXIT_OK, "%s", s.err);
    }
    SCOPED(said_fini) struct said s = COMMANDED(cmd_compare, "--store", "s.db", "-q");
    uint32_t n = 0;
    for (const char *at = s.out; (at = strstr(at, "==== compare: ")) != NULL; at++) {
        n++;
    }
    ck_assert_msg(s.status == EXIT_OK && n == N, "%u: %s", n, s.out);
    for (int i = 0; i < N; i++) {
        ck_assert_msg(strstr(s.out, heads[i]) != NULL, "%s has not %s", s.out, heads[i]);
    }
}
END_TEST

static const struct suite_row rows[] = {
    CASE("store", .setup = setup, .teardown = teardown),
    TEST(policies_are_compared_where_all_else_is_equal),
    TEST(any_setting_can_be_compared),
    TEST(policies_have_their_parameters),
    TEST(a_base_names_the_policy_of_its_own_experiment),
    TEST(runs_that_are_not_there_are_left_out),
    TEST(seeds_and_replications_are_the_experiments),
    TEST(loads_and_baseline_are_those_of_the_runs),
    TEST(comparisons_of_nothing_are_refused),
    TEST(recorded_requests_are_called_so),
    TEST(a_comparison_is_kept_with_all_that_it_is),
    TEST(comparisons_that_ask_for_other_values_are_others),
};
SUITE_MAIN("comparisons of a store", rows)

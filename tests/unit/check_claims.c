/* Claims files: quantities that need no statistics, readings, machines, errors. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/claims/claims.h"
#include "tests/helpers/suite.h"

/* ---- files ---- */

static char path[64];
static struct err err;
static struct claims claims;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    claims = (struct claims){0};
    (void)snprintf(path, sizeof path, "/tmp/xpusim-claims-%ld.tmp.json", (long)getpid());
}

static void teardown(void)
{
    claims_fini(&claims);
    err_fini(&err);
    (void)remove(path);
}

static int read_text(const char *quantities, const char *checks)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fprintf(f,
            "{\"paper\":\"p\",\"source\":\"s\",\"quantities\":{%s},\"claims\":[{\"id\":\"X1\","
            "\"where\":\"1\",\"statement\":\"t\",\"checks\":[%s]}]}",
            quantities, checks);
    ck_assert_int_eq(fclose(f), 0);
    return claims_read(&claims, path, &err);
}

static int evaluate(const struct quantities_options *o)
{
    return claims_run(&claims, o, &err);
}

static double evaluated(uint32_t check)
{
    struct quantities_options o = {
        .replications = 1, .how.parallel = 1, .seed = 1, .how.cpu_limit_s = 60};
    ck_assert_msg(evaluate(&o) == 0, "%s", err.n > 0 ? err.lines[0] : "");
    return claims.v[0].checks[check].x[0];
}

/* W1 with n requests has n arrivals: at most 14 of them holds at 10 and not at 20, and the line
 * from (10, 10) to (20, 20) crosses 14 at 14. */
START_TEST(the_sustained_rate_is_where_the_line_between_two_rates_crosses_the_limit)
{
    ck_assert_int_eq(
        read_text("\"s\":{\"sustained\":{\"policy\":\"fcfs\",\"soc\":\"w1-reference\","
                  "\"workload\":\"w1:n={rate}\",\"rates\":[5,10,20,40],"
                  "\"metric\":\"reactive.arrived\",\"at_most\":14}},"
                  "\"r\":{\"run\":{\"policy\":\"fcfs\",\"soc\":\"w1-reference\","
                  "\"workload\":\"w1:n=7\"}}",
                  "{\"name\":\"a\",\"value\":\"s\",\"published\":14},"
                  "{\"name\":\"b\",\"value\":\"r:reactive.arrived * 2\",\"published\":14}"),
        0);
    ck_assert_double_eq_tol(evaluated(0), 14.0, 1e-9);
    ck_assert_double_eq(claims.v[0].checks[1].x[0], 14.0);
}
END_TEST

START_TEST(a_limit_that_is_never_crossed_is_not_defined)
{
    ck_assert_int_eq(read_text("\"s\":{\"sustained\":{\"policy\":\"fcfs\",\"soc\":\"w1-reference\","
                               "\"workload\":\"w1:n={rate}\",\"rates\":[5,10],"
                               "\"metric\":\"reactive.arrived\",\"at_most\":14}}",
                               "{\"name\":\"a\",\"value\":\"s\",\"published\":14}"),
                     0);
    ck_assert(isnan(evaluated(0)));
    ck_assert_int_eq(claims.v[0].verdict, CLAIM_NOT_REPRODUCED);
}
END_TEST

/* Two flows under max-min with capacity C: the smaller demand gets min(d, C / 2), the larger what
 * is left; here from the same kernels' own times and bytes. 0.9 of 89.6 GB/s is too little for two
 * one-row projections. */
START_TEST(corun_follows_max_min_for_two_kernels)
{
    const char *kernel = "\"llm\":\"llama-3.1-8b\",\"op\":\"QKV\",\"sequences\":1,"
                         "\"context_tokens\":1";
    char text[2048];
    (void)snprintf(
        text, sizeof text,
        "\"nt\":{\"kernel\":{%s,\"device\":\"npu\",\"field\":\"time_ms\"}},"
        "\"nb\":{\"kernel\":{%s,\"device\":\"npu\",\"field\":\"bytes\"}},"
        "\"it\":{\"kernel\":{%s,\"device\":\"igpu\",\"field\":\"time_ms\"}},"
        "\"ib\":{\"kernel\":{%s,\"device\":\"igpu\",\"field\":\"bytes\"}},"
        "\"both\":{\"corun\":{\"llm\":\"llama-3.1-8b\",\"set\":[\"sim.contention=max-min\",\"soc."
        "ddr.together=0.9\"],"
        "\"kernel\":{\"device\":\"igpu\",\"op\":\"QKV\",\"sequences\":1,\"context_tokens\":1},"
        "\"beside\":{\"device\":\"npu\",\"op\":\"QKV\",\"sequences\":1,\"context_tokens\":1}}},"
        "\"free\":{\"corun\":{\"llm\":\"llama-3.1-8b\",\"set\":[\"sim.contention=none\"],"
        "\"kernel\":{\"device\":\"igpu\",\"op\":\"QKV\",\"sequences\":1,\"context_tokens\":1},"
        "\"beside\":{\"device\":\"npu\",\"op\":\"QKV\",\"sequences\":1,\"context_tokens\":1}}}",
        kernel, kernel, kernel, kernel);
    ck_assert_int_eq(read_text(text, "{\"name\":\"a\",\"value\":\"both\",\"published\":1},"
                                     "{\"name\":\"b\",\"value\":\"free\",\"published\":1},"
                                     "{\"name\":\"c\",\"value\":\"nb / nt\",\"published\":1},"
                                     "{\"name\":\"d\",\"value\":\"ib / it\",\"published\":1}"),
                     0);
    double both = evaluated(0);
    const struct claim_check *k = claims.v[0].checks;
    double npu = k[2].x[0] * 1e3, igpu = k[3].x[0] * 1e3; /* bytes per second */
    double cap = 89.6e9 * 0.9;
    ck_assert_double_gt(npu + igpu, cap);
    double small = fmin(fmin(npu, igpu), cap / 2);
    double share = igpu <= npu ? small : cap - small;
    ck_assert_double_eq_tol(both, igpu / share, 1e-9);
    ck_assert_double_eq(k[1].x[0], 1.0);
}
END_TEST

/* Every sequence of a batch has its own row of logits, and every prompt its own pairs: 3 prompts
 * and 2 decodes take 5 heads, 3 prompts alone three times the attention of one. */
START_TEST(a_batch_of_kernels_is_the_sum_of_its_sequences)
{
    const char *kernel = "\"llm\":\"llama-3.1-8b\",\"device\":\"igpu\",\"field\":\"flop\","
                         "\"prefill_tokens\":100";
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "\"h1\":{\"kernel\":{%s,\"op\":\"HEAD\"}},"
                   "\"h5\":{\"kernel\":{%s,\"op\":\"HEAD\",\"prompts\":3,\"sequences\":2}},"
                   "\"m1\":{\"kernel\":{%s,\"op\":\"MHA\"}},"
                   "\"m3\":{\"kernel\":{%s,\"op\":\"MHA\",\"prompts\":3}}",
                   kernel, kernel, kernel, kernel);
    ck_assert_int_eq(read_text(text, "{\"name\":\"a\",\"value\":\"h5 / h1\",\"published\":5},"
                                     "{\"name\":\"b\",\"value\":\"m3 / m1\",\"published\":3}"),
                     0);
    ck_assert_double_eq_tol(evaluated(0), 5.0, 1e-9);
    ck_assert_double_eq_tol(claims.v[0].checks[1].x[0], 3.0, 1e-9);
}
END_TEST

START_TEST(speculation_and_switching_are_quantities)
{
    /* In figure 8 of sd.npu progressive switching takes 126, the vector of its specification. Table
     * 3's Ours for 1.5B is 4.30 + 1.87 + (43.42 + 3) / 5.21 = 15.080, and figure 6 at 32 is 5.7.
     * The acceptance of PLD on summary with 1.5B is 2.53, and its step's deviation about 3.5
     * tokens. So four standard errors of 5,000 steps are 0.2. */
    ck_assert_int_eq(
        read_text("\"g\":{\"graphs\":{\"p\":[10,10,10,10,10,10],\"d\":[11,11,11,11,11,11],"
                  "\"s\":[20,20,20,20,20,20],\"chunks\":2,\"strategy\":\"progressive\"}},"
                  "\"a\":{\"amortized\":{\"model\":\"qwen2.5-1.5b\",\"system\":\"sd-npu\"}},"
                  "\"v\":{\"verification\":{\"drafted_tokens\":32}},"
                  "\"m\":{\"acceptance\":{\"dataset\":\"summary\",\"model\":\"qwen2.5-1.5b\","
                  "\"method\":\"pld\"}}",
                  "{\"name\":\"g\",\"value\":\"g\",\"published\":126},"
                  "{\"name\":\"a\",\"value\":\"a\",\"published\":15.08},"
                  "{\"name\":\"v\",\"value\":\"v\",\"published\":5.7},"
                  "{\"name\":\"m\",\"value\":\"m\",\"published\":2.53}"),
        0);
    ck_assert_double_eq(evaluated(0), 126);
    const struct claim_check *k = claims.v[0].checks;
    ck_assert_double_eq_tol(k[1].x[0], 15.080, 0.001);
    ck_assert_double_eq_tol(k[2].x[0], 5.7, 1e-9);
    ck_assert_double_eq_tol(k[3].x[0], 2.53, 0.2);
}
END_TEST

/* The name of one quantity begins that of another. Each is found, whichever is stated first. */
START_TEST(a_quantity_is_known_by_its_whole_name)
{
    static const char longer[] = "\"verified\":{\"verification\":{\"drafted_tokens\":32}}";
    static const char shorter[] = "\"veri\":{\"verification\":{\"drafted_tokens\":1}}";
    double found[2][2];
    for (int i = 0; i < 2; i++) {
        char both[160];
        (void)snprintf(both, sizeof both, "%s,%s", i == 0 ? longer : shorter,
                       i == 0 ? shorter : longer);
        ck_assert_int_eq(read_text(both, "{\"name\":\"s\",\"value\":\"veri\",\"published\":1},"
                                         "{\"name\":\"l\",\"value\":\"verified\",\"published\":1}"),
                         0);
        found[i][0] = evaluated(0);
        found[i][1] = claims.v[0].checks[1].x[0];
        claims_fini(&claims);
        claims = (struct claims){0};
    }
    ck_assert_double_eq_tol(found[0][1], 5.7, 1e-9); /* as figure 6 of sd.npu has it */
    ck_assert_double_gt(found[0][0], found[0][1]);   /* fewer share a check */
    ck_assert_mem_eq(found[0], found[1], sizeof found[0]);
}
END_TEST

/* ---- readings ---- */

static void expect_merged(const char *spec, const char *with, const char *place, const char *merged)
{
    char *text = setup_merge(spec, with, place);
    ck_assert_str_eq(text, merged);
    free(text);
}

START_TEST(a_set_up_replaces_what_it_names_and_adds_the_rest)
{
    expect_merged("a:x=1,y=2", "a:y=3,z=4", "", "a:x=1,y=3,z=4");
    expect_merged("a", "a:y=3", "", "a:y=3");
    expect_merged("ab:y=1", "a:y=3", "", "ab:y=1"); /* another's */
    expect_merged("a:x=1,y=2", "a?x=1:y=3", "", "a:x=1,y=3");
    expect_merged("a:x=11,y=2", "a?x=1:y=3", "", "a:x=11,y=2"); /* not this one */
    expect_merged("a:x=1", "a?x=1&llm=m:y=3", "llm=m,soc=s", "a:x=1,y=3");
    expect_merged("a:x=1", "a?x=1&llm=m:y=3", "llm=mm,soc=s", "a:x=1");
}
END_TEST

/* A setting and a workload's file of 2,000 letters each arrive whole. */
START_TEST(a_set_up_holds_texts_of_any_length)
{
    char set[2100];
    char workload[2100];
    (void)snprintf(set, sizeof set, "soc.name=%02000d", 1);
    (void)snprintf(workload, sizeof workload, "mixed:reactive=./%02000d.csv", 2);
    cJSON *form = cJSON_Parse("{\"run\": {\"workload\": \"mixed:users=1\"}}");
    struct setup s = {.set = {{set}, 1}, .workload = {{workload}, 1}};
    cJSON *applied = setup_apply(&s, form);
    const cJSON *run = cJSON_GetObjectItem(applied, "run");
    ck_assert_str_eq(cJSON_GetArrayItem(cJSON_GetObjectItem(run, "set"), 0)->valuestring, set);
    const char *text = json_string(run, "workload");
    ck_assert_uint_eq(strlen(text), strlen(workload) + strlen("users=1,"));
    ck_assert_str_eq(text + strlen("mixed:users=1,"), workload + strlen("mixed:"));
    cJSON_Delete(applied);
    cJSON_Delete(form);
}
END_TEST

/* W1 of n requests has n arrivals: 7 as stated, 9 under the reading, 4 when the command line has
 * the last word. */
START_TEST(every_reading_is_judged_by_itself)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(
        "{\"paper\":\"p\",\"source\":\"s\",\"readings\":{\"nine\":{\"why\":\"w\",\"workload\":["
        "\"w1:n=9\"]}},\"quantities\":{\"r\":{\"run\":{\"policy\":\"fcfs\",\"soc\":\"w1-"
        "reference\","
        "\"workload\":\"w1:n=7\"}}},\"claims\":[{\"id\":\"X1\",\"where\":\"1\",\"statement\":\"t\","
        "\"readings\":[\"nine\"],\"take\":\"nine\",\"checks\":[{\"name\":\"a\",\"value\":"
        "\"r:reactive.arrived\",\"published\":9,\"tolerance_frac\":0.01}]}]}",
        f);
    ck_assert_int_eq(fclose(f), 0);
    struct quantities_options o = {
        .replications = 1, .how.parallel = 1, .seed = 1, .how.cpu_limit_s = 60};
    ck_assert_int_eq(claims_read(&claims, path, &err), 0);
    ck_assert_msg(evaluate(&o) == 0, "%s", err.n > 0 ? err.lines[0] : "");
    ck_assert_uint_eq(claims.n, 2);
    ck_assert_double_eq(claims.v[0].checks[0].x[0], 7);
    ck_assert_double_eq(claims.v[1].checks[0].x[0], 9);
    ck_assert(!claims.v[0].taken && claims.v[1].taken);
    ck_assert_int_eq(claims.v[0].verdict, CLAIM_NOT_REPRODUCED);
    ck_assert_int_eq(claims.v[1].verdict, CLAIM_REPRODUCED);
    claims_fini(&claims);
    ck_assert_int_eq(claims_read(&claims, path, &err), 0);
    ck_assert_int_eq(claims_choose(&claims, "nonesuch", &err), -EINVAL);
    err_fini(&err);
    err = (struct err)ERR_INIT;
    ck_assert_int_eq(claims_choose(&claims, "taken", &err), 0);
    struct setup s = {.workload = {{"w1:n=4"}, 1}};
    ck_assert_int_eq(claims_change(&claims, &s, &err), 0);
    ck_assert_int_eq(evaluate(&o), 0);
    ck_assert_uint_eq(claims.n, 1);
    ck_assert_double_eq(claims.v[0].checks[0].x[0], 4);
}
END_TEST

static const char *soc_of(const cJSON *applied, const char *form)
{
    return json_string(cJSON_GetObjectItem(applied, form), "soc");
}

START_TEST(a_set_up_moves_what_runs_to_another_machine)
{
    struct setup s = {.soc = {{"core-ultra-5-125h=other"}, 1}};
    static const char *const expected[][2] = {
        {"{\"run\":{\"policy\":\"a\"}}", "other"}, /* the default machine is meant */
        {"{\"run\":{\"policy\":\"a\",\"soc\":\"core-ultra-5-125h\"}}", "other"},
        {"{\"run\":{\"policy\":\"a\",\"soc\":\"w1-reference\"}}", "w1-reference"}};
    for (int i = 0; i < 3; i++) {
        cJSON *form = cJSON_Parse(expected[i][0]);
        cJSON *applied = setup_apply(&s, form);
        ck_assert_str_eq(soc_of(applied, "run"), expected[i][1]);
        cJSON_Delete(applied);
        cJSON_Delete(form);
    }
}
END_TEST

/* A kernel on the default machine, and on the siblings that the file names as independent. Its own
 * time there is the expectation; the machine of Q2 is not moved. */
START_TEST(a_claim_is_judged_again_on_the_independent_machine)
{
    const char *kernel = "\"device\":\"igpu\",\"op\":\"FFN\",\"field\":\"time_ms\","
                         "\"prefill_tokens\":256";
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    (void)fprintf(
        f,
        "{\"paper\":\"p\",\"source\":\"s\",\"independent\":{\"why\":\"w\",\"soc\":["
        "\"core-ultra-5-125h=core-ultra-5-125h-siblings\"]},\"quantities\":{\"q\":{\"kernel\":{%s}}"
        ","
        "\"q2\":{\"kernel\":{%s,\"soc\":\"core-ultra-5-125h-siblings\"}}},\"claims\":[{\"id\":"
        "\"X1\",\"where\":\"1\",\"statement\":\"t\",\"checks\":[{\"name\":\"a\",\"value\":\"q\","
        "\"above\":0},{\"name\":\"b\",\"value\":\"q2\",\"above\":0}]}]}",
        kernel, kernel);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(claims_read(&claims, path, &err), 0);
    ck_assert_int_eq(claims_add_independent(&claims, &err), 0);
    struct quantities_options o = {
        .replications = 1, .how.parallel = 1, .seed = 1, .how.cpu_limit_s = 60};
    ck_assert_msg(evaluate(&o) == 0, "%s", err.n > 0 ? err.lines[0] : "");
    ck_assert_uint_eq(claims.n, 2);
    ck_assert(!claims.v[0].independent && claims.v[1].independent);
    const struct claim_check *own = claims.v[0].checks;
    const struct claim_check *other = claims.v[1].checks;
    ck_assert_double_eq(other[0].x[0], own[1].x[0]);
    ck_assert_double_eq(other[1].x[0], own[1].x[0]);
    ck_assert_double_ne(own[0].x[0], own[1].x[0]);
}
END_TEST

static void refused(const char *quantities, const char *checks, const char *why)
{
    int rc = read_text(quantities, checks);
    if (rc == 0) {
        struct quantities_options o = {.replications = 1, .how.parallel = 1, .how.cpu_limit_s = 60};
        rc = evaluate(&o);
    }
    ck_assert_int_ne(rc, 0);
    bool found = false;
    for (size_t i = 0; i < err.n; i++) {
        found = found || (strstr(err.lines[i], why) != NULL && strstr(err.lines[i], path) != NULL);
    }
    ck_assert_msg(found, "\"%s\" is not in: %s", why, err.n > 0 ? err.lines[0] : "(nothing)");
    teardown();
    setup();
}

START_TEST(bad_claims_are_refused_by_file_and_place)
{
#define CHECK_A "{\"name\":\"a\",\"value\":\"q\",\"published\":1}"
#define MACHINE "\"q\":{\"machine\":{\"field\":\"npu.prefill_watts\"}}"
    refused("\"q\":{\"walk\":{}}", CHECK_A, "must hold one of");
    refused("\"q\":{\"machine\":{\"field\":\"npu.wings\"}}", CHECK_A, "must be DEVICE");
    refused("\"q\":{\"machine\":{\"field\":\"compile_watts\",\"soc\":\"nonesuch\"}}", CHECK_A,
            "nonesuch");
    refused(
        "\"q\":{\"graphs\":{\"p\":[1],\"d\":[1,2],\"s\":[1],\"chunks\":1,\"strategy\":\"sync\"}}",
        CHECK_A, "of one length");
    refused("\"q\":{\"amortized\":{\"model\":\"nonesuch\",\"system\":\"npu\"}}", CHECK_A,
            "nonesuch");
    refused("\"q\":{\"acceptance\":{\"dataset\":\"poems\",\"model\":\"qwen2.5-1.5b\","
            "\"method\":\"sam\"}}",
            CHECK_A, "poems");
    refused(MACHINE, "{\"name\":\"a\",\"value\":\"z\",\"published\":1}", "z");
    refused(MACHINE, "{\"name\":\"a\",\"value\":\"q +\",\"published\":1}", "is expected");
    refused(MACHINE, "{\"name\":\"a\",\"value\":\"q\"}", "exactly one of");
    refused(MACHINE, "{\"name\":\"a\",\"value\":\"q\",\"published\":1,\"above\":2}",
            "exactly one of");
    refused(MACHINE, "{\"name\":\"a\",\"value\":\"q\",\"published\":1,\"colour\":2}", "colour");
    refused(MACHINE, "{\"name\":\"a\",\"value\":\"q\",\"published\":1,\"every_trace\":true}",
            "every_trace");
    refused("\"q\":{\"sustained\":{\"policy\":\"fcfs\",\"workload\":\"w1:n={rate}\",\"rates\":[5,"
            "5],\"metric\":\"reactive.arrived\",\"at_most\":1}}",
            CHECK_A, "rising positive rates");
    refused("\"q\":{\"run\":{\"policy\":\"nonesuch\",\"workload\":\"w1:n=2\"}}",
            "{\"name\":\"a\",\"value\":\"q:reactive.arrived\",\"published\":1}", "nonesuch");
    refused("\"q\":{\"run\":{\"policy\":\"fcfs\",\"workload\":\"w1:n=2\"}}",
            "{\"name\":\"a\",\"value\":\"q:reactive.wings\",\"published\":1}", "wings");
}
END_TEST

START_TEST(one_file_too_many_is_refused)
{
    claims.n_books = CLAIMS_MAX_BOOKS;
    int rc = claims_read(&claims, "/nonexistent.json", &err);
    claims.n_books = 0;
    ck_assert_int_ne(rc, 0);
    ck_assert_ptr_nonnull(strstr(err.lines[0], "more than 8 claims files"));
}
END_TEST

/* A text that becomes shorter has an end of its own: "a:x=1234567" and then "a:x=1". */
START_TEST(set_ups_follow_each_other)
{
    cJSON *form = cJSON_Parse("{\"run\":{\"policy\":\"a:x=0,y=2\"}}");
    struct setup s = {.policy = {{"a:x=1234567", "a:x=1", "b:x=7"}, 3}};
    cJSON *got = setup_apply(&s, form);
    ck_assert_str_eq(cJSON_GetObjectItem(cJSON_GetObjectItem(got, "run"), "policy")->valuestring,
                     "a:y=2,x=1");
    cJSON_Delete(got);
    cJSON_Delete(form);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("claims", .setup = setup, .teardown = teardown, .timeout_s = 60),
    TEST(a_set_up_replaces_what_it_names_and_adds_the_rest),
    TEST(a_set_up_holds_texts_of_any_length),
    TEST(every_reading_is_judged_by_itself),
    TEST(a_set_up_moves_what_runs_to_another_machine),
    TEST(a_claim_is_judged_again_on_the_independent_machine),
    TEST(the_sustained_rate_is_where_the_line_between_two_rates_crosses_the_limit),
    TEST(a_limit_that_is_never_crossed_is_not_defined),
    TEST(corun_follows_max_min_for_two_kernels),
    TEST(a_batch_of_kernels_is_the_sum_of_its_sequences),
    TEST(speculation_and_switching_are_quantities),
    TEST(a_quantity_is_known_by_its_whole_name),
    TEST(bad_claims_are_refused_by_file_and_place),
    TEST(one_file_too_many_is_refused),
    TEST(set_ups_follow_each_other),
};
SUITE_MAIN("claims", suite)

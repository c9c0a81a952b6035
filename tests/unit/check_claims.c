/* Verdicts by hand, and the quantities that need no statistics. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/claims/claims.h"
#include "tests/helpers/suite.h"

/* ---- verdicts: five single traces 8, 9, 10, 11, 12: mean 10, sd sqrt(2.5), and with
 * t(0.975, 4) = 2.7764 the interval is 10 -+ 2.7764 * sqrt(2.5 / 5) = 10 -+ 1.963 ---- */

static double traces[] = {8, 9, 10, 11, 12};

static struct claim_check number(double low, double high, double neutral)
{
    return (struct claim_check){.name = "check",
                                .unit = "",
                                .kind = CHECK_NUMBER,
                                .low = low,
                                .high = high,
                                .neutral = neutral,
                                .tolerance_frac = 0.1,
                                .x = traces};
}

static struct claim_check order(enum check_kind kind, double bound)
{
    struct claim_check k = number(bound, bound, (double)NAN);
    k.kind = kind;
    return k;
}

static enum claim_verdict judged(struct claim_check k)
{
    struct claim c = {.id = "X", .n_checks = 1};
    c.checks[0] = k;
    claim_judge(&c, 5);
    return c.verdict;
}

START_TEST(a_number_within_the_range_of_single_traces_is_reproduced)
{
    ck_assert_int_eq(judged(number(12.0, 12.0, (double)NAN)),
                     CLAIM_REPRODUCED); /* the largest trace */
    ck_assert_int_eq(judged(number(12.1, 12.1, (double)NAN)), CLAIM_NOT_REPRODUCED);
    ck_assert_int_eq(judged(number(12.1, 15.0, (double)NAN)), CLAIM_NOT_REPRODUCED);
    ck_assert_int_eq(judged(number(11.9, 15.0, (double)NAN)), CLAIM_REPRODUCED); /* ranges meet */
    struct claim c = {.id = "X", .n_checks = 1};
    c.checks[0] = number(11.5, 11.5, (double)NAN);
    claim_judge(&c, 5);
    ck_assert_double_eq(c.checks[0].percentile, 80.0); /* 4 of 5 lie below */
    ck_assert_double_eq_tol(c.checks[0].mean.low, 10.0 - 1.963, 0.001);
}
END_TEST

START_TEST(a_number_beyond_the_traces_but_on_the_same_side_of_neutral_is_the_direction)
{
    ck_assert_int_eq(judged(number(20.0, 20.0, 8.0)), CLAIM_DIRECTION);      /* 8 < 8.037 */
    ck_assert_int_eq(judged(number(20.0, 20.0, 8.1)), CLAIM_NOT_REPRODUCED); /* 8.1 > 8.037 */
    ck_assert_int_eq(judged(number(2.0, 2.0, 11.0)), CLAIM_NOT_REPRODUCED);  /* 11 < 11.963 */
    ck_assert_int_eq(judged(number(2.0, 2.0, 12.0)), CLAIM_DIRECTION);
    /* in range, but the mean is not shown to be on the published side */
    ck_assert_int_eq(judged(number(11.0, 11.0, 9.0)), CLAIM_NOT_REPRODUCED);
}
END_TEST

/* The five traces span 4: as wide as the effect from neutral 7 to 11, wider than that from 8. A
 * range that is published is an effect of its own width. */
START_TEST(a_number_is_not_decided_by_traces_spread_wider_than_the_effect)
{
    ck_assert_int_eq(judged(number(11.0, 11.0, 7.0)), CLAIM_REPRODUCED);
    ck_assert_int_eq(judged(number(11.0, 11.0, 7.5)), CLAIM_COMPATIBLE);
    ck_assert_int_eq(judged(number(9.0, 13.1, 8.0)),
                     CLAIM_REPRODUCED); /* middle 11.05, width 4.1 */
    ck_assert_int_eq(judged(number(3.9, 3.9, (double)NAN)), CLAIM_NOT_REPRODUCED);
    struct claim_check noisy = number(2.0, 2.0, (double)NAN);
    static double spread[] = {1, 2, 3, 4, 5}; /* 4 wide, twice the 2 that is published */
    noisy.x = spread;
    ck_assert_int_eq(judged(noisy), CLAIM_COMPATIBLE);
}
END_TEST

START_TEST(an_order_needs_the_whole_interval_and_its_mean_alone_is_the_direction)
{
    ck_assert_int_eq(judged(order(CHECK_ABOVE, 8.0)), CLAIM_REPRODUCED);
    ck_assert_int_eq(judged(order(CHECK_ABOVE, 9.0)), CLAIM_DIRECTION);
    ck_assert_int_eq(judged(order(CHECK_ABOVE, 10.5)), CLAIM_NOT_REPRODUCED);
    ck_assert_int_eq(judged(order(CHECK_BELOW, 12.0)), CLAIM_REPRODUCED);
    ck_assert_int_eq(judged(order(CHECK_BELOW, 11.0)), CLAIM_DIRECTION);
    ck_assert_int_eq(judged(order(CHECK_BELOW, 9.5)), CLAIM_NOT_REPRODUCED);
}
END_TEST

/* Traces 1 to n. The range of 39 holds the next with probability 38/40 = 95 %. More traces must not
 * widen it: of 399 the 2.5 % quantile is the value of rank 0.025 * 400 = 10, and 390 the other end.
 * Of 99 both lie halfway between two ranks: 2.5 and 97.5. */
START_TEST(more_traces_do_not_widen_the_range_of_single_traces)
{
    static double x[399];
    for (int i = 0; i < 399; i++) {
        x[i] = 399 - i; /* in no order */
    }
    static const struct {
        uint32_t n;
        double least, most;
    } expected[] = {{39, 361, 399}, {99, 301 + 1.5, 399 - 1.5}, {399, 10, 390}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        struct claim c = {.id = "X", .n_checks = 1};
        c.checks[0] = number(1.0, 1.0, (double)NAN);
        c.checks[0].x = x;
        claim_judge(&c, expected[i].n);
        ck_assert_double_eq_tol(c.checks[0].least, expected[i].least, 1e-9);
        ck_assert_double_eq_tol(c.checks[0].most, expected[i].most, 1e-9);
    }
    struct claim_check outermost = number(399.0, 399.0, (double)NAN);
    outermost.x = x;
    struct claim c = {.id = "X", .n_checks = 1};
    c.checks[0] = outermost;
    claim_judge(&c, 399);
    ck_assert_int_eq(c.verdict, CLAIM_NOT_REPRODUCED); /* one trace in 399 shows it */
}
END_TEST

/* "Below 12" of a maximum: four of five traces keep it, and the mean of 10 +- 1.963 does. The trace
 * with 12 breaks it all the same. */
START_TEST(a_bound_on_a_maximum_is_judged_by_the_worst_trace)
{
    struct claim_check k = order(CHECK_BELOW, 12.0);
    ck_assert_int_eq(judged(k), CLAIM_REPRODUCED);
    k.every_trace = true;
    ck_assert_int_eq(judged(k), CLAIM_NOT_REPRODUCED);
    k.low = k.high = 12.5;
    ck_assert_int_eq(judged(k), CLAIM_REPRODUCED);
    k = order(CHECK_ABOVE, 8.0);
    k.every_trace = true;
    ck_assert_int_eq(judged(k), CLAIM_NOT_REPRODUCED);
    k.low = k.high = 7.5;
    ck_assert_int_eq(judged(k), CLAIM_REPRODUCED);
}
END_TEST

START_TEST(what_has_no_spread_is_held_against_its_tolerance)
{
    static double same[] = {10, 10, 10, 10, 10};
    struct claim_check k = number(10.9, 10.9, (double)NAN);
    k.x = same; /* 10 -+ 10 % reaches 11 */
    ck_assert_int_eq(judged(k), CLAIM_REPRODUCED);
    k.low = k.high = 11.1;
    ck_assert_int_eq(judged(k), CLAIM_NOT_REPRODUCED);
}
END_TEST

START_TEST(a_claim_is_as_good_as_its_worst_check_that_counts)
{
    struct claim c = {.id = "X", .n_checks = 2};
    c.checks[0] = order(CHECK_ABOVE, 8.0);
    c.checks[1] = order(CHECK_ABOVE, 9.0);
    claim_judge(&c, 5);
    ck_assert_int_eq(c.verdict, CLAIM_DIRECTION);
    c.checks[1].informative = true;
    claim_judge(&c, 5);
    ck_assert_int_eq(c.verdict, CLAIM_REPRODUCED);
    c.set_by = "the power numbers";
    claim_judge(&c, 5);
    ck_assert_int_eq(c.verdict, CLAIM_CALIBRATED);
    c.not_modellable = "no display";
    claim_judge(&c, 5);
    ck_assert_int_eq(c.verdict, CLAIM_NOT_MODELLABLE);
}
END_TEST

START_TEST(what_is_not_decided_does_not_hold)
{
    ck_assert(claim_verdict_holds(CLAIM_REPRODUCED));
    ck_assert(claim_verdict_holds(CLAIM_CALIBRATED));
    ck_assert(!claim_verdict_holds(CLAIM_COMPATIBLE));
    ck_assert(!claim_verdict_holds(CLAIM_DIRECTION));
}
END_TEST

/* Two claims that both hold: only the one that a set-up was fitted to is no test of it. */
START_TEST(a_claim_that_was_fitted_is_never_called_reproduced)
{
    struct claim v[2] = {{.id = "X1", .n_checks = 1}, {.id = "X2", .n_checks = 1}};
    struct claims all = {.v = v, .n = 2};
    claims_set_by(&all, "X1", "fitted");
    for (int i = 0; i < 2; i++) {
        v[i].checks[0] = order(CHECK_ABOVE, 8.0);
        claim_judge(&v[i], 5);
    }
    ck_assert_int_eq(v[0].verdict, CLAIM_CALIBRATED);
    ck_assert_int_eq(v[1].verdict, CLAIM_REPRODUCED);
    claims_set_by(&all, NULL, "all were");
    ck_assert_str_eq(v[0].set_by, "fitted");
    ck_assert_str_eq(v[1].set_by, "all were");
}
END_TEST

START_TEST(a_value_that_is_not_defined_is_not_reproduced)
{
    static double undefined[5];
    for (int i = 0; i < 5; i++) {
        undefined[i] = (double)NAN;
    }
    struct claim_check k = order(CHECK_ABOVE, 0.0);
    k.x = undefined;
    ck_assert_int_eq(judged(k), CLAIM_NOT_REPRODUCED);
}
END_TEST

/* ---- files ---- */

static char path[64];
static struct err err;
static struct claims claims;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    claims = (struct claims){0};
    (void)snprintf(path, sizeof path, "claims-%ld.tmp.json", (long)getpid());
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
    struct claims_run r = {.claims = &claims, .options = o, .e = &err};
    study_run(claims_judge, &r);
    return r.rc;
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
 * is left; here from the same kernels' own times and bytes. 0.9 of 89.6 GB/s (the SoC file) is too
 * little for two one-row projections. */
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
        "\"both\":{\"corun\":{\"llm\":\"llama-3.1-8b\",\"set\":[\"sim.contention=max-min\"],"
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

/* Of a batch every sequence has its own row of logits, and every prompt its own pairs: 3 prompts
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
    /* Figure 8 of sd.npu: progressive switching takes 126, the vector of its specification.
     * Table 3's Ours for 1.5B: 4.30 + 1.87 + (43.42 + 3) / 5.21 = 15.080. Figure 6 at 32: 5.7. The
     * acceptance of PLD on summary with 1.5B is 2.53, its step's deviation about 3.5 tokens, so
     * four standard errors of 5,000 steps are 0.2. */
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
    TEST(a_number_within_the_range_of_single_traces_is_reproduced),
    TEST(a_number_beyond_the_traces_but_on_the_same_side_of_neutral_is_the_direction),
    TEST(a_number_is_not_decided_by_traces_spread_wider_than_the_effect),
    TEST(a_set_up_replaces_what_it_names_and_adds_the_rest),
    TEST(a_set_up_holds_texts_of_any_length),
    TEST(every_reading_is_judged_by_itself),
    TEST(more_traces_do_not_widen_the_range_of_single_traces),
    TEST(a_bound_on_a_maximum_is_judged_by_the_worst_trace),
    TEST(an_order_needs_the_whole_interval_and_its_mean_alone_is_the_direction),
    TEST(what_has_no_spread_is_held_against_its_tolerance),
    TEST(a_claim_is_as_good_as_its_worst_check_that_counts),
    TEST(what_is_not_decided_does_not_hold),
    TEST(a_claim_that_was_fitted_is_never_called_reproduced),
    TEST(a_value_that_is_not_defined_is_not_reproduced),
    TEST(the_sustained_rate_is_where_the_line_between_two_rates_crosses_the_limit),
    TEST(a_limit_that_is_never_crossed_is_not_defined),
    TEST(corun_follows_max_min_for_two_kernels),
    TEST(a_batch_of_kernels_is_the_sum_of_its_sequences),
    TEST(speculation_and_switching_are_quantities),
    TEST(bad_claims_are_refused_by_file_and_place),
    TEST(one_file_too_many_is_refused),
    TEST(set_ups_follow_each_other),
};
SUITE_MAIN("claims", suite)

/* Claims as they are read and judged: every member of a file, what is chosen, and each reason of a
 * verdict with its numbers. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "experiments/claims/claims.h"
#include "experiments/claims/fit.h"
#include "sim/base/arena.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"

static struct err err;

static void setup(void)
{
    err = (struct err)ERR_INIT;
}

static void teardown(void)
{
    err_fini(&err);
}

/* ---- files ---- */

static const char file[] =
    "{\"paper\": \"The paper\", \"source\": \"s\","
    " \"quantities\": {\"q\": {\"run\": {\"policy\": \"fcfs\", \"soc\": \"w1-reference\","
    " \"workload\": \"w1:n=1\"}}},"
    " \"readings\": {\"one\": {\"why\": \"because\", \"workload\": [\"w1:n=2\"]},"
    " \"two\": {\"why\": \"also\", \"workload\": [\"w1:n=3\"]}},"
    " \"claims\": ["
    "{\"id\": \"X1\", \"where\": \"here\", \"statement\": \"so\", \"setup\": \"as told\","
    " \"set_by\": \"me\", \"note\": \"a note\", \"readings\": [\"one\", \"two\"], \"take\": "
    "\"two\","
    " \"checks\": [{\"name\": \"a\", \"unit\": \"J\", \"value\": \"1\", \"published\": 3,"
    " \"neutral\": 0.5, \"informative\": true, \"tolerance_frac\": 0.25,"
    " \"headline\": {\"says\": \"S\", \"decides\": \"D\", \"takes\": \"T\"}},"
    " {\"name\": \"b\", \"value\": \"2\", \"published_low\": 3, \"published_high\": 4,"
    " \"ours\": true},"
    " {\"name\": \"c\", \"value\": \"3\", \"above\": 5, \"every_trace\": true},"
    " {\"name\": \"d\", \"value\": \"4\", \"below\": 6}]},"
    "{\"id\": \"X2\", \"where\": \"there\", \"statement\": \"thus\","
    " \"not_modellable\": \"no way\"}]}";

static void read_text(struct claims *c, const char *text)
{
    const char *path = tempfile_make(".json");
    tempfile_put(text);
    (void)claims_read(c, path, &err);
    tempfile_remove();
}

START_TEST(every_member_of_a_file_is_read)
{
    struct claims c = {0};
    read_text(&c, file);
    ck_assert_msg(err.n == 0, "%s", err.n > 0 ? err.lines[0] : "");
    ck_assert_uint_eq(c.n, 4);
    static const char *const readings[] = {"stated", "one", "two", "stated"};
    static const char *const whys[] = {NULL, "because", "also", NULL};
    static const bool taken[] = {false, false, true, true};
    for (int i = 0; i < 4; i++) {
        const struct claim *x = &c.v[i];
        ck_assert_str_eq(x->paper, "The paper");
        ck_assert_str_eq(x->id, i < 3 ? "X1" : "X2");
        ck_assert_str_eq(x->where, i < 3 ? "here" : "there");
        ck_assert_str_eq(x->statement, i < 3 ? "so" : "thus");
        ck_assert_pstr_eq(x->text_setup, i < 3 ? "as told" : NULL);
        ck_assert_pstr_eq(x->set_by, i < 3 ? "me" : NULL);
        ck_assert_pstr_eq(x->note, i < 3 ? "a note" : NULL);
        ck_assert_pstr_eq(x->not_modellable, i < 3 ? NULL : "no way");
        ck_assert_str_eq(x->reading, readings[i]);
        ck_assert_pstr_eq(x->why, whys[i]);
        ck_assert(x->taken == taken[i] && !x->independent);
        ck_assert_uint_eq(x->n_checks, i < 3 ? 4 : 0);
        ck_assert(claims_counts(&c, (uint32_t)i) == taken[i]);
        static const struct {
            const char *name, *unit, *value, *headline, *decides, *takes;
            enum check_kind kind;
            double low, high, neutral, tolerance;
            bool informative, ours, every_trace;
        } want[] = {
            {"a", "J", "1", "S", "D", "T", CHECK_NUMBER, 3, 3, 0.5, 0.25, true, false, false},
            {"b", "", "2", NULL, NULL, NULL, CHECK_NUMBER, 3, 4, (double)NAN, 0.1, false, true,
             false},
            {"c", "", "3", NULL, NULL, NULL, CHECK_ABOVE, 5, 5, (double)NAN, 0.1, false, false,
             true},
            {"d", "", "4", NULL, NULL, NULL, CHECK_BELOW, 6, 6, (double)NAN, 0.1, false, false,
             false},
        };
        for (uint32_t k = 0; k < x->n_checks; k++) {
            const struct claim_check *is = &x->checks[k];
            ck_assert_str_eq(is->name, want[k].name);
            ck_assert_str_eq(is->unit, want[k].unit);
            ck_assert_str_eq(is->value, want[k].value);
            ck_assert_pstr_eq(is->headline, want[k].headline);
            ck_assert_pstr_eq(is->decides, want[k].decides);
            ck_assert_pstr_eq(is->takes, want[k].takes);
            ck_assert(is->kind == want[k].kind && is->low == want[k].low &&
                      is->high == want[k].high && is->tolerance_frac == want[k].tolerance &&
                      is->informative == want[k].informative && is->ours == want[k].ours &&
                      is->every_trace == want[k].every_trace);
            ck_assert(isnan(want[k].neutral) ? isnan(is->neutral) : is->neutral == want[k].neutral);
        }
    }
    /* an expression that cannot be: of which check, in which reading */
    c.v[1].checks[2].value = "1 +";
    c.v[2].checks[3].value = "nobody";
    struct quantities_options o = {.replications = 1, .how.parallel = 1};
    ck_assert_int_eq(claims_run(&c, &o, &err), -EINVAL);
    ck_assert_uint_eq(err.n, 2);
    ck_assert_ptr_nonnull(strstr(err.lines[0], ".json: claim X1 (one), check \"c\": "));
    ck_assert_ptr_nonnull(strstr(err.lines[1], ".json: claim X1 (two), check \"d\": "));
    claims_fini(&c);
    ck_assert(c.v == NULL && c.n == 0 && c.n_books == 0);
}
END_TEST

/* Chosen claims keep their order; an error names each id and reading that no claim has. */
START_TEST(claims_are_chosen_by_id_and_reading)
{
    struct claims c = {0};
    read_text(&c, file);
    static const struct {
        const char *id, *reading;
        uint32_t n;
        const char *first, *last;
    } all[] = {
        {"X1", "all", 3, "stated", "two"},       {"X1", "taken", 1, "two", "two"},
        {"X1", "one", 1, "one", "one"},          {"X2", "all", 1, "stated", "stated"},
        {"X1", "stated", 1, "stated", "stated"}, {NULL, "taken", 2, "two", "stated"},
        {NULL, "stated", 2, "stated", "stated"}, {NULL, "all", 4, "stated", "stated"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct claim kept[4];
        memcpy(kept, c.v, 4 * sizeof *kept);
        struct claims some = c;
        some.v = kept;
        ck_assert_int_eq(claims_select(&some, &all[i].id, all[i].id != NULL ? 1 : 0, &err), 0);
        ck_assert_int_eq(claims_choose(&some, all[i].reading, &err), 0);
        ck_assert_uint_eq(some.n, all[i].n);
        ck_assert_str_eq(kept[0].reading, all[i].first);
        ck_assert_str_eq(kept[some.n - 1].reading, all[i].last);
    }
    static const char *const unknown[] = {"X1", "X9", "X8"};
    ck_assert_int_eq(claims_select(&c, unknown, 3, &err), -EINVAL);
    ck_assert_uint_eq(err.n, 2);
    ck_assert_str_eq(err.lines[0], "X9: no claim has this id; `xpusim claims --list` shows all");
    ck_assert_int_eq(claims_choose(&c, "tree", &err), -EINVAL);
    ck_assert_str_eq(err.lines[2],
                     "--reading tree: no claim has this reading; `xpusim claims --list` shows all");
    claims_set_by(&c, "X2", "it");
    claims_fini(&c);
}
END_TEST

/* For a fit the claims as stated, without the checks that inform only: first, last or between. */
START_TEST(a_fit_reads_what_counts)
{
    static const char text[] =
        "{\"paper\": \"P\", \"source\": \"s\", \"quantities\": {},"
        " \"readings\": {\"one\": {\"why\": \"w\", \"set\": [\"a=1\"]}}, \"claims\": ["
        "{\"id\": \"A\", \"where\": \"h\", \"statement\": \"t\", \"readings\": [\"one\"],"
        " \"take\": \"one\", \"checks\": ["
        "{\"name\": \"i\", \"value\": \"1\", \"above\": 1, \"informative\": true},"
        "{\"name\": \"a\", \"value\": \"2\", \"above\": 1},"
        "{\"name\": \"j\", \"value\": \"1\", \"above\": 1, \"informative\": true},"
        "{\"name\": \"b\", \"value\": \"2\", \"above\": 1},"
        "{\"name\": \"k\", \"value\": \"1\", \"above\": 1, \"informative\": true}]},"
        "{\"id\": \"B\", \"where\": \"h\", \"statement\": \"t\", \"checks\": ["
        "{\"name\": \"c\", \"value\": \"2\", \"above\": 1}]},"
        "{\"id\": \"C\", \"where\": \"h\", \"statement\": \"t\", \"checks\": ["
        "{\"name\": \"d\", \"value\": \"2\", \"above\": 1},"
        "{\"name\": \"l\", \"value\": \"2\", \"above\": 1, \"informative\": true}]}]}";
    static const char *const ids[] = {"A", "C"};
    const char *path = tempfile_make(".json");
    tempfile_put(text);
    struct setup fixed = {.set = {.n = 0}};
    struct fit_options o = {.files = &path, .n_files = 1, .ids = ids, .n_ids = 2, .fixed = &fixed};
    struct claims c;
    ck_assert_int_eq(fit_claims_read(&o, &c, &err), 0);
    ck_assert_uint_eq(c.n, 2);
    ck_assert_str_eq(c.v[0].id, "A");
    ck_assert_str_eq(c.v[0].reading, "stated");
    ck_assert_uint_eq(c.v[0].n_checks, 2);
    ck_assert_str_eq(c.v[0].checks[0].name, "a");
    ck_assert_str_eq(c.v[0].checks[1].name, "b");
    ck_assert_str_eq(c.v[1].id, "C");
    ck_assert_uint_eq(c.v[1].n_checks, 1);
    ck_assert_str_eq(c.v[1].checks[0].name, "d");
    for (int i = 0; i < 2; i++) {
        ck_assert_str_eq(c.v[i].set_by, "the point was searched for so that the claim holds");
    }
    claims_fini(&c);
    static const char *const unknown[] = {"A", "D"};
    o.ids = unknown;
    ck_assert_int_eq(fit_claims_read(&o, &c, &err), -EINVAL);
    ck_assert_uint_eq(err.n, 1);
    claims_fini(&c);
    tempfile_remove();
}
END_TEST

/* ---- judging ---- */

/* Values that differ by rounding only have no spread, for any interval of their mean. */
START_TEST(rounding_is_no_spread)
{
    static double x[] = {4.0, 4.0 * (1 + 2e-13), (double)NAN, 4.0 * (1 - 2e-13)};
    struct claim c = {.id = "X", .n_checks = 1};
    struct claim_check *k = &c.checks[0];
    *k = (struct claim_check){.name = "time", .low = 4.3, .high = 4.3, .neutral = (double)NAN};
    k->x = x;
    k->tolerance_frac = 0.05;
    claim_judge(&c, 4);
    ck_assert(k->mean.sd == 0.0 && k->mean.low == k->mean.mean && k->mean.high == k->mean.mean);
    ck_assert_double_eq_tol(k->least, 3.8, 1e-9);
    ck_assert_double_eq_tol(k->most, 4.2, 1e-9);
    ck_assert_int_eq(c.verdict, CLAIM_NOT_REPRODUCED);
    ck_assert_str_eq(c.reason, "time: 4 where 4.3 is published");
    k->tolerance_frac = 0.1;
    claim_judge(&c, 4);
    ck_assert_int_eq(c.verdict, CLAIM_REPRODUCED);
    ck_assert_str_eq(c.reason, "as published");
    /* the first value alone is undefined: the others count */
    static double y[] = {(double)NAN, 1.0, 2.0, 3.0};
    k->x = y;
    claim_judge(&c, 4);
    ck_assert(k->lowest == 1.0 && k->highest == 3.0 && k->least == 1.0 && k->most == 3.0);
    ck_assert_double_eq(k->percentile, 100.0);
    k->low = k->high = 2.0; /* ties count by half */
    claim_judge(&c, 4);
    ck_assert_double_eq(k->percentile, 50.0);
}
END_TEST

/* Every reason there is, each by its numbers, with a note behind it. */
START_TEST(a_verdict_has_its_reason)
{
    static double spread_out[] = {8, 9, 10, 11, 12};
    static double same[] = {3.25, 3.25, 3.25, 3.25, 3.25};
    static double nothing[] = {(double)NAN, (double)NAN, (double)NAN, (double)NAN, (double)NAN};
    static const struct {
        double *x;
        enum check_kind kind;
        double low, high, neutral;
        bool every;
        enum claim_verdict verdict;
        const char *reason;
    } all[] = {
        {nothing, CHECK_NUMBER, 1, 1, (double)NAN, false, CLAIM_NOT_REPRODUCED,
         "t: not defined in these runs"},
        {spread_out, CHECK_NUMBER, 11, 11, (double)NAN, false, CLAIM_REPRODUCED, "as published"},
        {spread_out, CHECK_NUMBER, 11, 11, 7.5, false, CLAIM_COMPATIBLE,
         "t: single traces show 8 to 12, too wide to say"},
        {spread_out, CHECK_NUMBER, 20, 20, 8, false, CLAIM_DIRECTION,
         "t: single traces show 8 to 12"},
        {same, CHECK_NUMBER, 4, 5, (double)NAN, false, CLAIM_NOT_REPRODUCED,
         "t: 3.25 where 4.5 is published"},
        {spread_out, CHECK_ABOVE, 9, 9, (double)NAN, true, CLAIM_NOT_REPRODUCED,
         "t: 8 in the worst of 5 traces, not above 9"},
        {spread_out, CHECK_BELOW, 11.5, 11.5, (double)NAN, true, CLAIM_NOT_REPRODUCED,
         "t: 12 in the worst of 5 traces, not below 11.5"},
        {spread_out, CHECK_ABOVE, 8, 8, (double)NAN, true, CLAIM_NOT_REPRODUCED,
         "t: 8 in the worst of 5 traces, not above 8"},
        {spread_out, CHECK_ABOVE, 7.9, 7.9, (double)NAN, true, CLAIM_REPRODUCED, "as published"},
        {same, CHECK_ABOVE, 3.25, 3.25, (double)NAN, false, CLAIM_NOT_REPRODUCED,
         "t: 3.25, not above 3.25"},
        {same, CHECK_BELOW, 3.2, 3.2, (double)NAN, false, CLAIM_NOT_REPRODUCED,
         "t: 3.25, not below 3.2"},
        {spread_out, CHECK_ABOVE, 9, 9, (double)NAN, false, CLAIM_DIRECTION,
         "t: 10 [8.04, 12], not above 9"},
        {spread_out, CHECK_BELOW, 10, 10, (double)NAN, false, CLAIM_NOT_REPRODUCED,
         "t: 10 [8.04, 12], not below 10"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct claim c = {.id = "X", .n_checks = 1, .note = i % 2 == 0 ? NULL : "as it is"};
        c.checks[0] = (struct claim_check){.name = "t",
                                           .unit = "s",
                                           .kind = all[i].kind,
                                           .low = all[i].low,
                                           .high = all[i].high,
                                           .neutral = all[i].neutral,
                                           .every_trace = all[i].every,
                                           .tolerance_frac = 0.1,
                                           .x = all[i].x};
        claim_judge(&c, 5);
        OWNED char *want = xformat("%s%s", all[i].reason, c.note != NULL ? "; as it is" : "");
        ck_assert_str_eq(c.reason, want);
        ck_assert_int_eq(c.verdict, all[i].verdict);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("claims read", .setup = setup, .teardown = teardown),
    TEST(every_member_of_a_file_is_read),
    TEST(claims_are_chosen_by_id_and_reading),
    TEST(a_fit_reads_what_counts),
    TEST(rounding_is_no_spread),
    TEST(a_verdict_has_its_reason),
};
SUITE_MAIN("claims read", suite)

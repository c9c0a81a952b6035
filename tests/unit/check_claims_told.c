/* Claims are printed in each form from made-up results, and compared with texts that are put
 * together by hand. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/claims/headlines.h"
#include "sim/base/arena.h"
#include "tests/helpers/said.h"
#include "tests/helpers/suite.h"

static struct claims claims;
static struct claim rows[8];
static struct err err;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    memset(rows, 0, sizeof rows);
    claims = (struct claims){.v = rows};
}

static void teardown(void)
{
    err_fini(&err);
}

/* ---- results ---- */

static struct stats_interval spread(double mean, double half, uint32_t n)
{
    return (struct stats_interval){
        .mean = mean, .low = mean - half, .high = mean + half, .sd = 1.0, .n = n};
}

static struct claim *add(const char *id, enum claim_verdict verdict, const char *reason)
{
    struct claim *c = &rows[claims.n++];
    *c = (struct claim){.paper = "Paper",
                        .id = id,
                        .where = "Fig. 1",
                        .statement = "It is so.",
                        .reading = "stated",
                        .verdict = verdict};
    (void)snprintf(c->reason, sizeof c->reason, "%s", reason);
    return c;
}

static struct claim_check *check(struct claim *c, const char *name, double low, double high,
                                 enum claim_verdict verdict)
{
    struct claim_check *k = &c->checks[c->n_checks++];
    *k = (struct claim_check){.name = name,
                              .unit = "s",
                              .low = low,
                              .high = high,
                              .neutral = (double)NAN,
                              .percentile = (double)NAN,
                              .verdict = verdict};
    return k;
}

/* A1 as stated and under a reading that is taken, which has a row of the independent machine; B2
 * cannot be modelled; C3 was calibrated and has no other reading. */
static void make(void)
{
    struct claim *a = add("A1", CLAIM_NOT_REPRODUCED, "far off");
    struct claim_check *k = check(a, "time", 5, 5, CLAIM_NOT_REPRODUCED);
    k->mean = spread(9, 0.5, 7);
    k->least = 8;
    k->most = 10;
    k->percentile = 2.5;
    a = add("A1", CLAIM_DIRECTION, "nearer");
    a->reading = "tight";
    a->why = "the text leaves it open";
    a->text_setup = "one machine";
    a->taken = true;
    k = check(a, "time", 5, 5, CLAIM_DIRECTION);
    k->mean = spread(6, 0.25, 7);
    k->neutral = 0;
    k->least = 5.5;
    k->most = 6.5;
    k->percentile = 40;
    k = check(a, "ratio", 1.5, 2.5, CLAIM_REPRODUCED);
    k->unit = "x";
    k->mean = (struct stats_interval){.mean = 2, .low = 2, .high = 2, .n = 7};
    k->least = 1.8;
    k->most = 2.2;
    k->percentile = 50;
    k->informative = true;
    k->ours = true;
    k = check(a, "most", 4, 4, CLAIM_REPRODUCED);
    k->kind = CHECK_BELOW;
    k->every_trace = true;
    k->mean = spread(3, 0.125, 7);
    k->lowest = 2;
    k->highest = 3.75;
    k = check(a, "least", 1, 1, CLAIM_REPRODUCED);
    k->kind = CHECK_ABOVE;
    k->mean = spread(3, 0.125, 6);
    k->lowest = 2;
    k->highest = 3.75;
    struct claim *there = &rows[claims.n++];
    *there = *a;
    there->independent = true;
    there->verdict = CLAIM_COMPATIBLE;
    there->checks[0].mean = spread(7, 0.75, 7);
    there->checks[0].verdict = CLAIM_COMPATIBLE;
    there->checks[1].mean.mean = 2.25;
    there->checks[3].verdict = CLAIM_DIRECTION;
    a = add("B2", CLAIM_NOT_MODELLABLE, "nobody knows");
    a->taken = true;
    a = add("C3", CLAIM_CALIBRATED, "not a test: set by it");
    a->taken = true;
    a->set_by = "set by it";
    k = check(a, "load", 5, 5, CLAIM_CALIBRATED);
    k->mean = (struct stats_interval){.mean = (double)NAN, .low = (double)NAN, .high = (double)NAN};
    k = check(a, "load too", 7, 7, CLAIM_CALIBRATED);
    k->unit = "";
    k->mean = (struct stats_interval){.mean = 7.5, .low = 7.5, .high = 7.5, .n = 1};
}

#define COUNTS                                                                                     \
    "3 claims: 0 reproduced, 1 calibrated, 0 compatible, not decided, 1 direction, 0 not "         \
    "reproduced, 1 not modellable\n"                                                               \
    "on the independent machine, 1 claim: 0 reproduced, 0 calibrated, 1 compatible, not "          \
    "decided, 0 direction, 0 not reproduced, 0 not modellable\n"

START_TEST(claims_are_told_in_a_line_each)
{
    make();
    struct document *d = document_new();
    claims_document(&claims, false, "claims", d);
    shown_is(d,
             "A1 not reproduced - It is so.: far off\n"
             "A1 direction compatible, not decided It is so. [tight, taken]: nearer\n"
             "B2 not modellable - It is so.: nobody knows\n"
             "C3 calibrated - It is so.: not a test: set by it\n" COUNTS,
             NULL);
    rows[1].taken = false; /* then the first counts, and one reading is nobody's */
    rows[2].independent = false;
    rows[2].id = "D4";
    rows[2].why = NULL;
    struct document *other = document_new();
    claims_document(&claims, false, "claims", other);
    shown_is(other,
             "A1 not reproduced - It is so.: far off\n"
             "A1 direction - It is so. [tight]: nearer\n"
             "D4 compatible, not decided - It is so.: nearer\n"
             "B2 not modellable - It is so.: nobody knows\n"
             "C3 calibrated - It is so.: not a test: set by it\n"
             "4 claims: 0 reproduced, 1 calibrated, 1 compatible, not decided, 0 direction, 1 not "
             "reproduced, 1 not modellable\n",
             NULL);
}
END_TEST

START_TEST(claims_are_told_check_by_check)
{
    make();
    struct document *d = document_new();
    claims_document(&claims, true, "claims", d);
    shown_is(d,
             "A1 not reproduced\nPaper, Fig. 1. It is so.\n"
             "published simulated percentile\n"
             "time 5 9.00 [8.50, 9.50] s 2 not reproduced\n"
             "far off\n\n"
             "A1 direction; on the independent machine: compatible, not decided\n"
             "Paper, Fig. 1. It is so.\n"
             "Reading \"tight\", the one to take: the text leaves it open\n"
             "published simulated percentile independent\n"
             "time 5 6.00 [5.75, 6.25] s 40 direction 7.00 [6.25, 7.75], compatible, not decided\n"
             "ratio 1.5 to 2.5 2 x for information 2.25, for information\n"
             "most below 4 3.75 at worst s reproduced 3.75 at worst, reproduced\n"
             "least above 1 3.00 [2.88, 3.12] s reproduced 3.00 [2.88, 3.12], direction\n"
             "nearer\n\n"
             "B2 not modellable\nPaper, Fig. 1. It is so.\nnobody knows\n\n"
             "C3 calibrated\nPaper, Fig. 1. It is so.\n"
             "published simulated percentile\n"
             "load 5 - s calibrated\n"
             "load too 7 7.5 calibrated\n"
             "not a test: set by it\n\n" COUNTS,
             NULL);
}
END_TEST

#define A1 "\"id\":\"A1\",\"paper\":\"Paper\",\"where\":\"Fig. 1\",\"statement\":\"It is so.\","
#define OTHERS(a, b, c, d)                                                                         \
    "\"independent_simulated\":" a ",\"independent_low\":" b ",\"independent_high\":" c d "}"
#define NO_OTHER OTHERS("null", "null", "null", "")

static const char as_data[] =
    "{\"claims\":["
    "{" A1 "\"reading\":\"stated\",\"taken\":false,\"counts\":false,\"unit\":\"s\","
    "\"published\":5,\"simulated\":9,\"low\":8.5,\"high\":9.5,\"verdict\":\"not "
    "reproduced\","
    "\"reason\":\"far off\",\"checks\":["
    "{\"name\":\"time\",\"unit\":\"s\",\"published\":5,\"neutral\":null,\"simulated\":9,"
    "\"low\":8.5,\"high\":9.5,\"n\":7,\"least\":8,\"most\":10,\"worst\":null,"
    "\"percentile\":2.5,\"every_trace\":false,\"informative\":false,\"ours\":false,"
    "\"verdict\":\"not reproduced\"," NO_OTHER "]},"
    "{" A1 "\"reading\":\"tight\",\"taken\":true,\"counts\":true,"
    "\"why\":\"the text leaves it open\",\"setup\":\"one machine\",\"unit\":\"s\","
    "\"published\":5,\"simulated\":6,\"low\":5.75,\"high\":6.25,\"verdict\":\"direction\","
    "\"independent_verdict\":\"compatible, not decided\",\"reason\":\"nearer\",\"checks\":["
    "{\"name\":\"time\",\"unit\":\"s\",\"published\":5,\"neutral\":0,\"simulated\":6,"
    "\"low\":5.75,\"high\":6.25,\"n\":7,\"least\":5.5,\"most\":6.5,\"worst\":null,"
    "\"percentile\":40,\"every_trace\":false,\"informative\":false,\"ours\":false,"
    "\"verdict\":\"direction\"," OTHERS(
        "7", "6.25", "7.75",
        ",\"independent_verdict\":\"compatible, not "
        "decided\"") ","
                     "{\"name\":\"ratio\",\"unit\":\"x\","
                     "\"published\":\"1.5 to "
                     "2.5\",\"neutral\":null,"
                     "\"simulated\":2,\"low\":2,\"high\":2,"
                     "\"n\":7,\"least\":1.8,\"most\":2.2,"
                     "\"worst\":null,\"percentile\":50,"
                     "\"every_trace\":false,"
                     "\"informative\":true,"
                     "\"ours\":true,\"verdict\":"
                     "\"reproduced\"," OTHERS(
                         "2.25", "2", "2",
                         ",\"independent_verdict\":"
                         "\"reproduced\"") ","
                                           "{\"name\":"
                                           "\"most\","
                                           "\"unit\":\"s\","
                                           "\"published\":"
                                           "\"below "
                                           "4\","
                                           "\"neutral\":"
                                           "null,"
                                           "\"simulated\":"
                                           "3,\"low\":2."
                                           "875,\"high\":3."
                                           "125,\"n\":7,"
                                           "\"least\":0,"
                                           "\"most\":0,"
                                           "\"worst\":3.75,"
                                           "\"percentile\":"
                                           "null,\"every_"
                                           "trace\":true,"
                                           "\"informative\""
                                           ":false,"
                                           "\"ours\":false,"
                                           "\"verdict\":"
                                           "\"reproduced\""
                                           "," OTHERS(
                                               "3", "2.875", "3.125",
                                               ",\"independ"
                                               "ent_"
                                               "verdict\":"
                                               "\"reproduce"
                                               "d\"") ","
                                                      "{\"n"
                                                      "ame"
                                                      "\":"
                                                      "\"le"
                                                      "ast"
                                                      "\","
                                                      "\"un"
                                                      "it\""
                                                      ":\"s"
                                                      "\","
                                                      "\"pu"
                                                      "blis"
                                                      "hed"
                                                      "\":"
                                                      "\"ab"
                                                      "ove "
                                                      "1\","
                                                      "\"ne"
                                                      "utra"
                                                      "l\":"
                                                      "null"
                                                      ","
                                                      "\"si"
                                                      "mula"
                                                      "ted"
                                                      "\":"
                                                      "3,"
                                                      "\"lo"
                                                      "w\":"
                                                      "2."
                                                      "875,"
                                                      "\"hi"
                                                      "gh\""
                                                      ":3."
                                                      "125,"
                                                      "\"n"
                                                      "\":"
                                                      "6,"
                                                      "\"le"
                                                      "ast"
                                                      "\":"
                                                      "0,"
                                                      "\"mo"
                                                      "st\""
                                                      ":0,"
                                                      "\"wo"
                                                      "rst"
                                                      "\":"
                                                      "null"
                                                      ",\"p"
                                                      "erce"
                                                      "ntil"
                                                      "e\":"
                                                      "null"
                                                      ",\"e"
                                                      "very"
                                                      "_tra"
                                                      "ce\""
                                                      ":fal"
                                                      "se,"
                                                      "\"in"
                                                      "form"
                                                      "ativ"
                                                      "e\":"
                                                      "fals"
                                                      "e,"
                                                      "\"ou"
                                                      "rs\""
                                                      ":fal"
                                                      "se,"
                                                      "\"ve"
                                                      "rdic"
                                                      "t\":"
                                                      "\"re"
                                                      "prod"
                                                      "uced"
                                                      "\""
                                                      "," OTHERS(
                                                          "3", "2.875", "3.125",
                                                          ",\"independent_verdict\":"
                                                          "\"direction\"") "]},"
                                                                           "{\"id\":\"B2\","
                                                                           "\"paper\":"
                                                                           "\"Paper\","
                                                                           "\"where\":\"Fig. "
                                                                           "1\",\"statement\":"
                                                                           "\"It is so.\","
                                                                           "\"reading\":"
                                                                           "\"stated\","
                                                                           "\"taken\":true,"
                                                                           "\"counts\":true,"
                                                                           "\"published\":null,"
                                                                           "\"simulated\":null,"
                                                                           "\"low\":null,"
                                                                           "\"high\":null,"
                                                                           "\"verdict\":\"not "
                                                                           "modellable\","
                                                                           "\"reason\":"
                                                                           "\"nobody "
                                                                           "knows\",\"checks\":"
                                                                           "[]},"
                                                                           "{\"id\":\"C3\","
                                                                           "\"paper\":"
                                                                           "\"Paper\","
                                                                           "\"where\":\"Fig. "
                                                                           "1\",\"statement\":"
                                                                           "\"It is so.\","
                                                                           "\"reading\":"
                                                                           "\"stated\","
                                                                           "\"taken\":true,"
                                                                           "\"counts\":true,"
                                                                           "\"unit\":\"s\","
                                                                           "\"published\":5,"
                                                                           "\"simulated\":null,"
                                                                           "\"low\":null,"
                                                                           "\"high\":null,"
                                                                           "\"verdict\":"
                                                                           "\"calibrated\","
                                                                           "\"set_by\":\"set "
                                                                           "by "
                                                                           "it\",\"reason\":"
                                                                           "\"not a test: set "
                                                                           "by "
                                                                           "it\",\"checks\":["
                                                                           "{\"name\":\"load\","
                                                                           "\"unit\":\"s\","
                                                                           "\"published\":5,"
                                                                           "\"neutral\":null,"
                                                                           "\"simulated\":null,"
                                                                           "\"low\":null,"
                                                                           "\"high\":null,"
                                                                           "\"n\":0,\"least\":"
                                                                           "0,\"most\":0,"
                                                                           "\"worst\":null,"
                                                                           "\"percentile\":"
                                                                           "null,\"every_"
                                                                           "trace\":false,"
                                                                           "\"informative\":"
                                                                           "false,\"ours\":"
                                                                           "false,"
                                                                           "\"verdict\":"
                                                                           "\"calibrated\""
                                                                           "," NO_OTHER ","
                                                                           "{\"name\":\"load "
                                                                           "too\",\"unit\":"
                                                                           "\"\",\"published\":"
                                                                           "7,\"neutral\":null,"
                                                                           "\"simulated\":7.5,"
                                                                           "\"low\":7.5,"
                                                                           "\"high\":7.5,\"n\":"
                                                                           "1,\"least\":0,"
                                                                           "\"most\":0,"
                                                                           "\"worst\":null,"
                                                                           "\"percentile\":"
                                                                           "null,\"every_"
                                                                           "trace\":false,"
                                                                           "\"informative\":"
                                                                           "false,"
                                                                           "\"ours\":false,"
                                                                           "\"verdict\":"
                                                                           "\"calibrated\""
                                                                           "," NO_OTHER "]}]}";

START_TEST(claims_are_told_as_data)
{
    make();
    struct document *d = document_new();
    claims_document(&claims, true, "claims", d);
    shown_is(d, NULL, as_data);
}
END_TEST

/* The check that is shown first is the worst of those that count, and the first of equal ones. */
START_TEST(the_deciding_check_is_the_worst)
{
    static const struct {
        enum claim_verdict of[3];
        int informative; /* its place; -1: none */
        int decides;
    } all[] = {
        {{CLAIM_REPRODUCED, CLAIM_DIRECTION, CLAIM_COMPATIBLE}, -1, 1},
        {{CLAIM_REPRODUCED, CLAIM_DIRECTION, CLAIM_COMPATIBLE}, 1, 2},
        {{CLAIM_NOT_REPRODUCED, CLAIM_DIRECTION, CLAIM_NOT_REPRODUCED}, -1, 0},
        {{CLAIM_NOT_REPRODUCED, CLAIM_DIRECTION, CLAIM_NOT_REPRODUCED}, 0, 2},
        {{CLAIM_REPRODUCED, CLAIM_REPRODUCED, CLAIM_REPRODUCED}, 0, 1},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        setup();
        struct claim *c = add("A1", CLAIM_REPRODUCED, "");
        for (int k = 0; k < 3; k++) {
            struct claim_check *one = check(c, "x", 1, 1, all[i].of[k]);
            one->mean = spread(10 + k, 1, 3);
            one->informative = all[i].informative == k;
        }
        struct document *d = document_new();
        claims_document(&claims, false, "claims", d);
        cJSON *tree = document_json(d);
        const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItem(tree, "claims"), 0);
        ck_assert_double_eq(cJSON_GetObjectItem(first, "simulated")->valuedouble,
                            10 + all[i].decides);
        cJSON_Delete(tree);
    }
}
END_TEST

/* ---- headlines ---- */

static double on_file[QUANTITIES_MACHINE_TRACES];
static double on_drawn[3 * QUANTITIES_MACHINE_TRACES];

/* Machine i is 0.5 (i + 1) above the file's on each trace, so the range is 6.5 to 7.5. */
static void make_headlines(struct claims *drawn, struct claim *of)
{
    make();
    rows[0].checks[0].headline = "H0";
    struct claim_check *k = rows[1].checks;
    k[0].headline = "H1";
    k[0].decides = "D1";
    k[0].takes = "T1";
    k[3].headline = "H2";
    k[3].decides = "D2";
    k[3].takes = "T2";
    for (int i = 0; i < 4; i++) {
        rows[2].checks[i].headline = k[i].headline;
    }
    rows[4].checks[1].headline = "H3";
    rows[4].checks[1].decides = "D3";
    rows[4].checks[1].takes = "T3";
    for (int t = 0; t < QUANTITIES_MACHINE_TRACES; t++) {
        on_file[t] = 2.0 + t;
        for (int m = 0; m < 3; m++) {
            on_drawn[m * QUANTITIES_MACHINE_TRACES + t] = 2.0 + t + 0.5 * (m + 1);
        }
    }
    ck_assert_int_eq(claims_headlines(&claims, &err), 0);
    ck_assert_uint_eq(claims.n, 4);
    rows[1].checks[0].x = on_file;
    *of = rows[1];
    of->checks[0].x = on_drawn;
    of->checks[1] = of->checks[0]; /* of the second nothing is drawn: it has no value */
    static double none[3 * QUANTITIES_MACHINE_TRACES];
    for (int i = 0; i < 3 * QUANTITIES_MACHINE_TRACES; i++) {
        none[i] = (double)NAN;
    }
    of->checks[1].x = none;
    rows[1].checks[1].x = on_file;
    *drawn = (struct claims){.v = of, .n = 1};
}

START_TEST(headlines_are_rows_of_one_table)
{
    struct claims drawn;
    static struct claim of;
    make_headlines(&drawn, &of);
    struct document *d = document_new();
    headlines_document(&claims, &drawn, 3, false, d);
    shown_is(d,
             "claim paper headline published independent machine anchored machine drawn machines "
             "verdict\n"
             "A1 Paper H0 5 s 9.00 [8.50, 9.50] - not reproduced\n"
             "A1 Paper H1 5 s 7.00 [6.25, 7.75] 6.00 [5.75, 6.25] 6.5 to 7.5 direction; "
             "independent: compatible, not decided\n"
             "A1 Paper H2 above 1 s 3.00 [2.88, 3.12] 3.00 [2.88, 3.12] reproduced; independent: "
             "direction\n"
             "C3 Paper H3 7 7.5 - calibrated\n",
             "[{\"id\":\"A1\",\"paper\":\"Paper\",\"check\":\"time\",\"headline\":\"H0\","
             "\"unit\":\"s\",\"published\":5,\"simulated\":9,\"low\":8.5,\"high\":9.5,"
             "\"independent_simulated\":null,\"independent_low\":null,\"independent_high\":null,"
             "\"machines\":0,\"machines_low\":null,\"machines_high\":null,"
             "\"verdict\":\"not reproduced\",\"decides\":null,\"takes\":null},"
             "{\"id\":\"A1\",\"paper\":\"Paper\",\"check\":\"time\",\"headline\":\"H1\","
             "\"unit\":\"s\",\"published\":5,\"simulated\":6,\"low\":5.75,\"high\":6.25,"
             "\"independent_simulated\":7,\"independent_low\":6.25,\"independent_high\":7.75,"
             "\"machines\":3,\"machines_low\":6.5,\"machines_high\":7.5,"
             "\"verdict\":\"direction\",\"independent_verdict\":\"compatible, not decided\","
             "\"decides\":\"D1\",\"takes\":\"T1\"},"
             "{\"id\":\"A1\",\"paper\":\"Paper\",\"check\":\"least\",\"headline\":\"H2\","
             "\"unit\":\"s\",\"published\":1,\"simulated\":3,\"low\":2.875,\"high\":3.125,"
             "\"independent_simulated\":3,\"independent_low\":2.875,\"independent_high\":3.125,"
             "\"machines\":0,\"machines_low\":null,\"machines_high\":null,"
             "\"verdict\":\"reproduced\",\"independent_verdict\":\"direction\","
             "\"decides\":\"D2\",\"takes\":\"T2\"},"
             "{\"id\":\"C3\",\"paper\":\"Paper\",\"check\":\"load too\",\"headline\":\"H3\","
             "\"unit\":\"\",\"published\":7,\"simulated\":7.5,\"low\":7.5,\"high\":7.5,"
             "\"independent_simulated\":null,\"independent_low\":null,\"independent_high\":null,"
             "\"machines\":0,\"machines_low\":null,\"machines_high\":null,"
             "\"verdict\":\"calibrated\",\"decides\":\"D3\",\"takes\":\"T3\"}]");
    struct document *why = document_new();
    headlines_document(&claims, NULL, 0, true, why);
    shown_is(why,
             "claim paper headline published independent machine anchored machine drawn machines "
             "verdict what decides what it would take\n"
             "A1 Paper H0 5 s 9.00 [8.50, 9.50] - not reproduced - -\n"
             "A1 Paper H1 5 s 7.00 [6.25, 7.75] 6.00 [5.75, 6.25] direction; independent: "
             "compatible, not decided D1 T1\n"
             "A1 Paper H2 above 1 s 3.00 [2.88, 3.12] 3.00 [2.88, 3.12] reproduced; independent: "
             "direction D2 T2\n"
             "C3 Paper H3 7 7.5 - calibrated D3 T3\n",
             NULL);
}
END_TEST

START_TEST(claims_without_a_headline_are_none)
{
    make();
    ck_assert_int_eq(claims_headlines(&claims, &err), -EINVAL);
    ck_assert_str_eq(err.lines[0], "--headline: none of these claims has a headline");
}
END_TEST

/* Set by hand where the file says nothing: of one claim, or of all. */
START_TEST(a_claim_that_set_a_number_says_so)
{
    for (int i = 0; i < 3; i++) {
        setup();
        make();
        claims_set_by(&claims, i == 0 ? "A1" : i == 1 ? "B2" : NULL, "a fit");
        for (uint32_t k = 0; k < claims.n; k++) {
            bool is = i == 2 || (i == 0) == (k < 3);
            is = i == 1 ? k == 3 : is;
            ck_assert_pstr_eq(rows[k].set_by, k == 4 ? "set by it" : is ? "a fit" : NULL);
        }
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("claims told", .setup = setup, .teardown = teardown),
    TEST(claims_are_told_in_a_line_each),
    TEST(claims_are_told_check_by_check),
    TEST(claims_are_told_as_data),
    TEST(the_deciding_check_is_the_worst),
    TEST(headlines_are_rows_of_one_table),
    TEST(claims_without_a_headline_are_none),
    TEST(a_claim_that_set_a_number_says_so),
};
SUITE_MAIN("claims told", suite)

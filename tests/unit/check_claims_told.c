/* Claims as they are read and as they are told: every member of a file, and made-up results in each
 * form, against texts that are put together by hand. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/claims/headlines.h"
#include "sim/base/arena.h"
#include "tests/helpers/said.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"

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
    "on the independent machine, 1 claims: 0 reproduced, 0 calibrated, 1 compatible, not "         \
    "decided, 0 direction, 0 not reproduced, 0 not modellable\n"

START_TEST(claims_are_told_in_a_line_each)
{
    make();
    struct document *d = document_new();
    claims_document(&claims, false, "claims", d);
    said_is(d,
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
    said_is(other,
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
    said_is(d,
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

START_TEST(claims_are_told_as_data)
{
    make();
    struct document *d = document_new();
    claims_document(&claims, true, "claims", d);
    said_is(
        d, NULL,
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
                                                                               "," NO_OTHER "]}]}");
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
    said_is(d,
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
    said_is(why,
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

/* What is chosen keeps its order; what nobody has is named. */
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

/* ---- judging ---- */

/* Values that differ by rounding only have no spread, whatever the interval of their mean says. */
START_TEST(rounding_is_no_spread)
{
    static double x[] = {4.0, 4.0 * (1 + 2e-13), (double)NAN, 4.0 * (1 - 2e-13)};
    struct claim c = {.id = "X"};
    struct claim_check *k = check(&c, "time", 4.3, 4.3, CLAIM_REPRODUCED);
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
    CASE("claims told", .setup = setup, .teardown = teardown),
    TEST(claims_are_told_in_a_line_each),
    TEST(claims_are_told_check_by_check),
    TEST(claims_are_told_as_data),
    TEST(the_deciding_check_is_the_worst),
    TEST(headlines_are_rows_of_one_table),
    TEST(claims_without_a_headline_are_none),
    TEST(every_member_of_a_file_is_read),
    TEST(claims_are_chosen_by_id_and_reading),
    TEST(a_claim_that_set_a_number_says_so),
    TEST(rounding_is_no_spread),
    TEST(a_verdict_has_its_reason),
};
SUITE_MAIN("claims told", suite)

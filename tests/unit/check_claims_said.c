/* `xpusim claims` runs on a file of the test's own, whose runs always have seven requests. The test
 * checks the list, the text around the table, and the changes by a profile and the command line. */
#include <stdlib.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/text.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"

static void setup(void)
{
    folder_enter();
    folder_put(
        "f.json",
        "{\"paper\":\"P\",\"source\":\"s\",\"readings\":{\"r1\":{\"why\":\"because\",\"set\":"
        "[\"sim.stall_s=9\"]},\"r2\":{\"why\":\"or so\",\"set\":[\"sim.stall_s=8\"]}},"
        "\"quantities\":{\"r\":{\"run\":{\"policy\":\"fcfs\",\"soc\":\"w1-reference\","
        "\"workload\":\"w1:n=7\"}}},\"claims\":["
        "{\"id\":\"X1\",\"where\":\"1\",\"statement\":\"t1\",\"readings\":[\"r1\",\"r2\"],"
        "\"take\":\"r2\",\"checks\":[{\"name\":\"a\",\"value\":\"r:reactive.arrived\","
        "\"published\":7}]},"
        "{\"id\":\"X2\",\"where\":\"2\",\"statement\":\"t2\",\"checks\":[{\"name\":\"b\",\"value\":"
        "\"r:reactive.arrived * 3\",\"published\":7}]}]}");
    /* This is another file, with the same id. */
    folder_put("g.json",
               "{\"paper\":\"Q\",\"source\":\"s\",\"quantities\":{\"r\":{\"run\":{\"policy\":"
               "\"fcfs\",\"soc\":\"w1-reference\",\"workload\":\"w1:n=4\"}}},\"claims\":["
               "{\"id\":\"X3\",\"where\":\"3\",\"statement\":\"t3\",\"checks\":[{\"name\":\"c\","
               "\"value\":\"r:reactive.arrived\",\"published\":4}]}]}");
}

static char *claims(const char *words)
{
    OWNED char *text = xformat("--file f.json %s", words);
    const char *v[32] = {NULL};
    char *save = NULL;
    uint32_t n = 0;
    for (char *w = strtok_r(text, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save)) {
        v[n++] = w;
    }
    struct said s = commanded(&cmd_claims, v);
    ck_assert_msg(s.status == EXIT_OK, "%s: %d: %s", words, s.status, s.err);
    ck_assert_str_eq(s.err, "");
    free(s.err);
    char *all = squeezed(s.out);
    free(s.out);
    return all;
}

static void says(const char *words, const char *want)
{
    OWNED char *is = claims(words);
    ck_assert_str_eq(is, want);
}

static void has(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "no\n%s\nin\n%s", part, text);
}

START_TEST(claims_are_listed)
{
    says("--list", "X1 P, 1: t1\nreading r1: because\nreading r2 (taken): or so\nX2 P, 2: t2\n");
    says("--list X2", "X2 P, 2: t2\n");
    says("--list --reading taken", "reading r2 (taken): or so\nX2 P, 2: t2\n");
    says("--list --file g.json X3 X2", "X2 P, 2: t2\nX3 Q, 3: t3\n");
    OWNED char *text = claims("--list --json");
    SCOPED(json_drop) cJSON *tree = cJSON_Parse(text);
    OWNED char *is = cJSON_PrintUnformatted(tree);
#define ROW(id_, paper_, reading_, taken_, why_)                                                   \
    "{\"id\":\"X" id_ "\",\"paper\":\"" paper_ "\",\"where\":\"" id_ "\",\"statement\":\"t" id_    \
    "\",\"reading\":\"" reading_ "\",\"taken\":" taken_ ",\"why\":\"" why_ "\"}"
    ck_assert_str_eq(
        is, "[" ROW("1", "P", "", "false", "") "," ROW("1", "P", "r1", "false", "because") "," ROW(
                "1", "P", "r2", "true", "or so") "," ROW("2", "P", "", "false", "") "]");
}
END_TEST

/* The range of n traces holds the next one with probability (n - 1) / (n + 1). */
START_TEST(what_traces_are_worth_is_said)
{
    static const struct {
        const char *words, *head;
    } heads[] = {
        {"X2 --replications 3 --seed 5",
         "3 traces from seed 5; mean [95 % interval]; percentile of the published value among "
         "single traces\nTheir range holds the next trace with probability 50 % only; 39 traces "
         "give 95 %.\n\nX2 "},
        {"X2 --replications 9",
         "9 traces from seed 1; mean [95 % interval]; percentile of the published value among "
         "single traces\nTheir range holds the next trace with probability 80 % only; 39 traces "
         "give 95 %.\n\nX2 "},
        {"X2 --replications 39",
         "39 traces from seed 1; mean [95 % interval]; percentile of the published value among "
         "single traces\n\nX2 "},
        {"X2 --replications 3 --brief", "X2 not reproduced "}};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        OWNED char *text = claims(heads[i].words);
        ck_assert_msg(
            strncmp(text, heads[i].head, strlen(heads[i].head)) == 0 ||
                (text[0] == '\n' && strncmp(text + 1, heads[i].head, strlen(heads[i].head)) == 0),
            "%s", text);
    }
}
END_TEST

#define COUNT(reproduced_, calibrated_, not_)                                                      \
    reproduced_ " reproduced, " calibrated_ " calibrated, 0 compatible, not decided, 0 "           \
                "direction, " not_ " not reproduced, 0 not modellable\n"

START_TEST(readings_are_chosen)
{
    OWNED char *all = claims("--replications 2 --brief");
    has(all, "X1 reproduced - t1: as published\nX1 reproduced - t1 [r1]: as published\n"
             "X1 reproduced - t1 [r2, taken]: as published\nX2 not reproduced - t2: b: 21 where 7 "
             "is published\n2 claims: " COUNT("1", "0", "1"));
    OWNED char *taken = claims("--replications 2 --brief --reading taken");
    has(taken, "X1 reproduced - t1 [r2, taken]: as published\nX2 not reproduced - t2: b: 21 where "
               "7 is published\n2 claims: " COUNT("1", "0", "1"));
    OWNED char *one = claims("--replications 2 --brief --reading r1 X1");
    has(one, "X1 reproduced - t1 [r1]: as published\n1 claim: ");
}
END_TEST

/* Seven requests are published; X2 checks three times as many, 21. */
START_TEST(csv_has_a_row_for_each_check_of_each_claim)
{
    OWNED char *text = claims("--replications 2 --reading taken --csv");
    has(text, "id,paper,where,statement,reading,taken,counts,why,setup,set_by,reason,name,unit,"
              "published,neutral,simulated,");
    has(text, "\nX1,P,1,t1,r2,true,true,or so,,,as published,a,,7,,7,");
    has(text, "\nX2,P,2,t2,stated,true,true,,,,b: 21 where 7 is published,b,,7,,21,");
}
END_TEST

/* A profile's claims are no test of it; what it and the command line set is what runs. */
START_TEST(a_profile_and_options_change_runs)
{
    folder_put("p.json", "{\"about\":\"a\",\"holds\":[],\"fitted_to\":[\"X1\"],\"set\":"
                         "[\"sim.stall_s=7\"],\"workload\":[\"w1:n=3\"]}");
    OWNED char *plain = claims("--replications 2 --brief --reading taken");
    has(plain, "X1 reproduced ");
    OWNED char *fitted = claims("--replications 2 --brief --reading taken --profile p.json");
    has(fitted, "X1 not reproduced - t1 [r2, taken]: a: 3 where 7 is published\n");
    has(fitted, "X2 not reproduced - t2: b: 9 where 7 is published\n");
    folder_put("p.json", "{\"about\":\"a\",\"fitted_to\":[\"X1\"]}");
    OWNED char *set = claims("--replications 2 --brief --reading taken --profile p.json");
    has(set, "X1 calibrated - t1 [r2, taken]: ");
    has(set, "2 claims: " COUNT("0", "1", "1"));
    OWNED char *scaled = claims("--replications 2 --brief --reading taken --scale w1:n=5");
    has(scaled, "X1 not reproduced - t1 [r2, taken]: a: 5 where 7 is published\n");
    has(scaled, "b: 15 where 7 is published\n");
}
END_TEST

/* Wrong values of each are refused; a file that cannot be read, and an id that nobody has. */
START_TEST(wrong_words_are_refused)
{
    static const struct {
        const char *words[6], *says;
    } lines[] = {{{"--file", "f.json", "X9"}, "X9"},
                 {{"--file", "no.json"}, "no.json"},
                 {{"--file", "f.json", "--reading", "r9"}, "r9"},
                 {{"--file", "f.json", "--profile", "no.json"}, "no.json"},
                 {{"--file", "f.json", "--set", "sim.no_such=1"}, "no_such"}};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        SCOPED(said_fini) struct said s = commanded(&cmd_claims, lines[i].words);
        ck_assert_msg(s.status == EXIT_BAD_INPUT, "%zu: %d %s", i, s.status, s.err);
        ck_assert_str_eq(s.out, "");
        has(s.err, lines[i].says);
    }
}
END_TEST

static const struct suite_row rows[] = {
    CASE("claims", .setup = setup, .teardown = folder_leave, .timeout_s = 60),
    TEST(claims_are_listed),
    TEST(what_traces_are_worth_is_said),
    TEST(readings_are_chosen),
    TEST(csv_has_a_row_for_each_check_of_each_claim),
    TEST(a_profile_and_options_change_runs),
    TEST(wrong_words_are_refused),
};
SUITE_MAIN("claims as they are said", rows)

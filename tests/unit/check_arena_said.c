/* `xpusim arena` on a suite of the test's own, of two short points: who is counted, what the ledger
 * keeps, what is refused before anything runs, and which runs a shard has. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/store/store.h"
#include "experiments/sweep/suite.h"
#include "sim/base/json.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"

#define SUITE(name_, more_)                                                                        \
    "{\"name\": \"" name_ "\", \"suite\": {\"about\": \"a\", \"references\": [\"fcfs\"]" more_     \
    "}, \"base\": {\"workload\": \"mixed:reactive_per_min=60,proactive_per_min=60,duration_s=5\"}" \
    ", \"rows\": [{\"point\": \"a\"}, {\"point\": \"b\", \"seed\": 8}], \"replications\": 2, "     \
    "\"metrics\": [\"reactive.e2e_s.mean\", \"proactive.e2e_s.mean\"]}"

static char public_hash[24];
static char sealed_hash[24];

static void hash_of(const char *path, char hash[24])
{
    struct err e = ERR_INIT;
    OWNED struct suite *s = xcalloc(1, sizeof *s);
    ck_assert_int_eq(suite_load(s, path, &e), 0);
    memcpy(hash, s->hash, 24);
}

static void setup(void)
{
    folder_enter();
    folder_put("s.json", SUITE("tiny", ", \"sealed\": \"sealed.json\", \"unscored\": [\"b\"]"));
    folder_put("sealed.json", SUITE("other", ""));
    hash_of("./s.json", public_hash);
    hash_of("./sealed.json", sealed_hash);
}

static cJSON *judged(const char *const *words)
{
    SCOPED(said_fini) struct said s = commanded(&cmd_arena, words);
    said_is(&s, EXIT_OK, NULL, "");
    cJSON *tree = cJSON_Parse(s.out);
    ck_assert_msg(tree != NULL, "%s", s.out);
    return tree;
}
#define JUDGED(...) judged((const char *const[]){"judge", __VA_ARGS__, "--json", "-q", NULL})

static void text_is(const cJSON *o, const char *key, const char *want)
{
    ck_assert_msg(strcmp(json_string(o, key), want) == 0, "%s: %s, not %s", key,
                  json_string(o, key), want);
}

static bool flag(const cJSON *o, const char *key)
{
    ck_assert_msg(cJSON_IsBool(cJSON_GetObjectItem(o, key)), "%s", key);
    return cJSON_IsTrue(cJSON_GetObjectItem(o, key));
}

/* The reference against itself is no better on any point. */
START_TEST(a_suite_says_what_it_is)
{
    SCOPED(json_drop) cJSON *tree = JUDGED("fcfs", "--suite", "./s.json");
    text_is(tree, "suite", "tiny");
    text_is(tree, "split", "public");
    text_is(tree, "hash", public_hash);
    text_is(tree, "reference", "fcfs");
    text_is(tree, "policy", "fcfs");
    ck_assert(!flag(tree, "frozen") && !flag(tree, "passes"));
    ck_assert_double_eq(json_number(tree, "points"), 2);
    ck_assert_double_eq(json_number(tree, "scored_points"), 1);
    ck_assert_double_eq(json_number(tree, "replications"), 2);
    ck_assert_double_eq(json_number(tree, "candidates"), 1);
    ck_assert_double_eq(json_number(tree, "score"), 1);
    ck_assert(!cJSON_HasObjectItem(tree, "judgements"));
    const cJSON *cell = cJSON_GetObjectItem(
        cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "cells"), "b"), "reactive.e2e_s.mean");
    ck_assert(!flag(cell, "scored"));
    ck_assert_double_eq(json_number(cell, "gain"), 1);
    ck_assert(json_number(cell, "value") == json_number(cell, "reference"));
    SCOPED(json_drop)
    cJSON *three = JUDGED("fcfs", "--suite", "./s.json", "--replications", "3");
    ck_assert_double_eq(json_number(three, "replications"), 3);
}
END_TEST

/* Several are judged each as it is alone, with the same reference: that of the suite, or another.
 */
START_TEST(several_are_judged_each_alone)
{
    SCOPED(json_drop) cJSON *both = JUDGED("edf", "srpt", "--suite", "./s.json");
    SCOPED(json_drop) cJSON *edf = JUDGED("edf", "--suite", "./s.json");
    SCOPED(json_drop) cJSON *srpt = JUDGED("srpt", "--suite", "./s.json");
    const cJSON *list = cJSON_GetObjectItem(both, "judgements");
    ck_assert_int_eq(cJSON_GetArraySize(list), 2);
    const cJSON *part;
    for (int i = 0; i < 2; i++) {
        cJSON_ArrayForEach (part, cJSON_GetArrayItem(list, i)) {
            const cJSON *own = cJSON_GetObjectItem(i == 0 ? edf : srpt, part->string);
            ck_assert_msg(cJSON_Compare(own, part, true), "%d %s", i, part->string);
        }
    }
    text_is(cJSON_GetArrayItem(list, 0), "policy", "edf");
    text_is(cJSON_GetArrayItem(list, 1), "policy", "srpt");
    /* Turned round, a gain is one over the other. */
    SCOPED(json_drop)
    cJSON *turned = JUDGED("fcfs", "--suite", "./s.json", "--reference", "edf");
    text_is(turned, "reference", "edf");
    ck_assert_double_eq_tol(json_number(turned, "score") * json_number(edf, "score"), 1, 1e-9);
}
END_TEST

/* Checks a line of the ledger by its fields. */
static void line_is(char *line, const char *split, const char *hash, const char *policy,
                    const cJSON *judgement)
{
    OWNED char *begin = xformat("%s,%s,\"%s\",", split, hash, policy);
    ck_assert_msg(strncmp(line, begin, strlen(begin)) == 0, "%s, not %s", line, begin);
    double score;
    double p;
    int regressions;
    char passes[8];
    char *rest = strchr(line + strlen(begin), ',');
    ck_assert_int_eq(sscanf(rest, ",%lf,%lf,%d,%7s", &score, &p, &regressions, passes), 4);
    ck_assert_double_eq_tol(score, json_number(judgement, "score"), 1e-4 * score);
    ck_assert_double_eq_tol(p, json_number(judgement, "p_better"), 1e-4);
    ck_assert_int_eq(regressions,
                     cJSON_GetArraySize(cJSON_GetObjectItem(judgement, "significant_regressions")));
    ck_assert_str_eq(passes, flag(judgement, "passes") ? "yes" : "no");
}

/* The sealed split is its own suite and answers each policy once; those that were asked of before
 * count as candidates. The public one counts nobody. */
START_TEST(a_ledger_counts_candidates)
{
    SCOPED(json_drop)
    cJSON *edf = JUDGED("edf", "--suite", "./s.json", "--sealed", "--ledger", "l.csv");
    text_is(edf, "suite", "other");
    text_is(edf, "split", "sealed");
    text_is(edf, "hash", sealed_hash);
    ck_assert_double_eq(json_number(edf, "scored_points"), 2);
    ck_assert_double_eq(json_number(edf, "candidates"), 1);
    SCOPED(json_drop)
    cJSON *srpt = JUDGED("srpt", "--suite", "./s.json", "--sealed", "--ledger", "l.csv");
    ck_assert_double_eq(json_number(srpt, "candidates"), 2);
    SCOPED(json_drop) cJSON *open_one = JUDGED("fcfs", "--suite", "./s.json", "--ledger", "l.csv");
    ck_assert_double_eq(json_number(open_one, "candidates"), 1);
    SCOPED(said_fini)
    struct said again = COMMANDED(cmd_arena, "judge", "srpt", "--suite", "./s.json", "--sealed",
                                  "--ledger", "l.csv", "-q");
    ck_assert_int_eq(again.status, EXIT_BAD_INPUT);
    ck_assert_str_eq(again.err, "xpusim: error: l.csv: srpt was judged on this sealed split "
                                "before; it answers once\n");
    OWNED char *ledger = folder_text("l.csv");
    char *save = NULL;
    ck_assert_str_eq(strtok_r(ledger, "\n", &save),
                     "split,suite,policy,code,score,p,regressions,passes");
    line_is(strtok_r(NULL, "\n", &save), "sealed", sealed_hash, "edf", edf);
    line_is(strtok_r(NULL, "\n", &save), "sealed", sealed_hash, "srpt", srpt);
    line_is(strtok_r(NULL, "\n", &save), "public", public_hash, "fcfs", open_one);
    ck_assert_ptr_null(strtok_r(NULL, "\n", &save));
}
END_TEST

/* The command refuses a request that it cannot judge, names the fault, and writes no ledger. */
START_TEST(candidates_are_read_before_anything_runs)
{
    SCOPED(said_fini)
    struct said s =
        COMMANDED(cmd_arena, "judge", "fcfs", "nobody", "--suite", "./s.json", "--ledger", "l.csv");
    ck_assert_int_eq(s.status, EXIT_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(s.err, "nobody"));
    ck_assert_str_eq(s.out, "");
    ck_assert_int_ne(access("l.csv", F_OK), 0);
    SCOPED(said_fini)
    struct said split = COMMANDED(cmd_arena, "judge", "fcfs", "--suite", "./sealed.json",
                                  "--sealed", "--ledger", "l.csv");
    said_refused(&split, "./sealed.json: the suite has no sealed split");
    SCOPED(said_fini)
    struct said reference =
        COMMANDED(cmd_arena, "judge", "fcfs", "--suite", "./s.json", "--reference", "nobody");
    ck_assert_int_eq(reference.status, EXIT_BAD_INPUT);
    ck_assert_str_eq(reference.out, "");
}
END_TEST

/* Words are only said where they are asked for, and not of the sealed split. */
START_TEST(words_are_said_where_they_are_asked_for)
{
    static const char *const more[][4] = {
        {NULL}, {"--words", NULL}, {"--words", "--sealed", "--ledger=l.csv", NULL}};
    int members[3];
    for (int i = 0; i < 3; i++) {
        const char *words[12] = {"judge", "edf", "--suite", "./s.json", "--json", "-q"};
        for (int k = 0; more[i][k] != NULL; k++) {
            words[6 + k] = more[i][k];
        }
        SCOPED(json_drop) cJSON *tree = judged(words);
        members[i] = cJSON_GetArraySize(tree);
    }
    ck_assert_int_gt(members[1], members[0]);
    ck_assert_int_eq(members[2], members[0]);
}
END_TEST

/* Two policies, two points and three replications are 12 runs: each third has four, and none is in
 * two of them. */
START_TEST(shards_of_an_archive_are_its_runs)
{
    for (int i = 0; i < 3; i++) {
        OWNED char *shard = xformat("%d/3", i);
        SCOPED(said_fini)
        struct said s =
            COMMANDED(cmd_arena, "archive", "--suite", "./s.json", "--policy", "edf", "--policy",
                      "srpt", "--replications", "3", "--store", "s.db", "--shard", shard);
        said_is(&s, EXIT_OK, "", "xpusim: s.db: 4 runs added, 0 found there\n");
    }
    SCOPED(said_fini)
    struct said again =
        COMMANDED(cmd_arena, "archive", "--suite", "./s.json", "--policy", "edf", "--policy",
                  "srpt", "--replications", "3", "--store", "s.db", "--shard", "1/3");
    said_is(&again, EXIT_OK, "", "xpusim: s.db: 0 runs added, 4 found there\n");
    SCOPED(said_fini)
    struct said slurm = COMMANDED(cmd_arena, "archive", "--suite", "./s.json", "--policy", "edf",
                                  "--policy", "srpt", "--replications", "3", "--store", "t.db",
                                  "--slurm", "4", "--slurm-scripts", "-q");
    ck_assert_int_eq(slurm.status, EXIT_OK);
    OWNED char *script = folder_text("t.db.slurm/array.sh");
    ck_assert_ptr_nonnull(strstr(script, " 'arena' 'archive' '--suite' './s.json' "
                                         "'--replications' '3' '--policy' 'edf' '--policy' 'srpt' "
                                         "\\\n"));
    ck_assert_ptr_nonnull(strstr(script, "/4 --jobs 1\n"));
}
END_TEST

static const struct suite_row rows[] = {
    CASE("arena", .setup = setup, .teardown = folder_leave, .timeout_s = 60),
    TEST(a_suite_says_what_it_is),
    TEST(several_are_judged_each_alone),
    TEST(a_ledger_counts_candidates),
    TEST(candidates_are_read_before_anything_runs),
    TEST(words_are_said_where_they_are_asked_for),
    TEST(shards_of_an_archive_are_its_runs),
};
SUITE_MAIN("arena", rows)

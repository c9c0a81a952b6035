/* The gate's output beyond its rows is tested on made-up reports: the first decision that changed,
 * the review, and the table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/gate/gate.h"
#include "sim/base/json.h"
#include "sim/base/scope.h"
#include "tests/helpers/suite.h"

#define MISSING ((double)NAN)

static struct gate_baseline baseline;

static void setup(void)
{
    memset(&baseline, 0, sizeof baseline);
}

/* ---- which decision changed first ---- */

START_TEST(the_first_rows_of_policies_that_changed_are_looked_at)
{
    static struct gate_row rows[] = {
        {.group = "g", .policy = "a", .metric = "m", .verdict = GATE_DRIFT},
        {.group = "g", .policy = "b", .metric = "m", .verdict = GATE_REGRESSION, .alarm = true},
        {.group = "g", .policy = "a", .metric = "n", .verdict = GATE_REGRESSION, .alarm = true},
        {.group = "g", .policy = "b", .metric = "n", .verdict = GATE_REGRESSION, .alarm = true},
        {.group = "h",
         .policy = "b",
         .metric = "m",
         .verdict = GATE_STATUS,
         .alarm = true,
         .quiet = true},
        {.group = "h", .policy = "c", .metric = "m", .verdict = GATE_ADDED, .alarm = true},
        {.group = "h", .policy = "d", .metric = "m", .verdict = GATE_REMOVED, .alarm = true},
        {.group = "p",
         .policy = "e",
         .metric = GATE_PARAMETERS,
         .verdict = GATE_STATUS,
         .alarm = true},
        {.group = "h", .policy = "f", .metric = "m", .verdict = GATE_OK},
        {.group = "h", .policy = "b", .metric = "n", .verdict = GATE_GAIN},
        {.group = "h", .policy = "a", .metric = "n", .verdict = GATE_GAIN},
        {.group = "i", .policy = "a", .metric = "n", .verdict = GATE_GAIN},
        {.group = "k", .policy = "a", .metric = "n", .verdict = GATE_GAIN},
    };
    /* alarms first: g b, g a; then h b, h a, i a, and there are no more than five */
    static const int want[] = {1, 2, 9, 10, 11};
    struct gate_report all = {.rows = rows, .n = sizeof rows / sizeof rows[0]};
    struct gate_firsts firsts;
    gate_first_find(&baseline, &all, NULL, NULL, &firsts);
    ck_assert_uint_eq(firsts.n, GATE_MAX_FIRST);
    for (int i = 0; i < GATE_MAX_FIRST; i++) {
        ck_assert_ptr_eq(firsts.v[i].row, &rows[want[i]]);
        ck_assert_uint_eq(firsts.v[i].replications, 0);
    }
}
END_TEST

static struct gate_row moved = {.group = "g",
                                .policy = "a,b",
                                .metric = "reactive.ttft_s.p90",
                                .verdict = GATE_REGRESSION,
                                .alarm = true,
                                .better = METRIC_BETTER_LOWER,
                                .before = 2.0,
                                .after = 3.0,
                                .change_frac = 0.5,
                                .p = 0.00001,
                                .fresh = true,
                                .detail = "a < b"};

static char *form_of(struct document *d, const char *form)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    document_put(d, form, f);
    (void)fclose(f);
    return text;
}

START_TEST(what_happened_to_a_decision_is_a_sentence)
{
    const struct {
        struct gate_first f;
        const char *text;
    } cases[] = {
        {{.replications = 0}, NULL},
        {{.replications = 1, .message = "it broke"}, "it broke"},
        {{.replications = 4, .known = true},
         "every decision is the same in 4 replications; only what they cost has changed"},
        {{.replications = 2,
          .known = true,
          .differs = true,
          .decision = 7,
          .now_s = 2.5,
          .old_s = 1.5,
          .now = "form 1",
          .old = "form 1",
          .seed = 9},
         "decision 7 comes later: `form 1`, at 1.500000 s before, at 2.500000 s now (seed 9)"},
        {{.replications = 2,
          .known = true,
          .differs = true,
          .decision = 7,
          .now_s = 0.5,
          .old_s = 1.5,
          .now = "form 1",
          .old = "form 1",
          .seed = 9},
         "decision 7 comes sooner: `form 1`, at 1.500000 s before, at 0.500000 s now (seed 9)"},
        {{.replications = 2,
          .known = true,
          .differs = true,
          .decision = 8,
          .now_s = 0.5,
          .old_s = 1.25,
          .now = "form 2",
          .old = "form 1",
          .seed = 10},
         "decision 8 is another: `form 1` at 1.250000 s before, `form 2` at 0.500000 s now (seed "
         "10)"}};
    struct gate_firsts all = {.n = 0};
    char want[1024] = "";
    struct document *d = document_new();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *text = gate_first_text(&cases[i].f);
        ck_assert(cases[i].text == NULL ? text == NULL
                                        : text != NULL && strcmp(text, cases[i].text) == 0);
        if (i < GATE_MAX_FIRST) {
            all.v[all.n] = cases[i].f;
            all.v[all.n++].row = &moved;
            size_t n = strlen(want);
            (void)snprintf(want + n, sizeof want - n, "%s%s%s", i > 0 ? "g, a,b: " : "",
                           i > 0 ? text : "", i > 0 ? "\n" : "");
        }
    }
    gate_first_document(&all, d);
    OWNED char *text = form_of(d, "text");
    ck_assert_msg(strstr(text, want) != NULL, "%s\nnot\n%s", text, want);
    cJSON *tree = document_json(d);
    const cJSON *rows = cJSON_GetObjectItem(tree, "first_decisions");
    ck_assert_int_eq(cJSON_GetArraySize(rows), 4);
    OWNED char *third = json_text(cJSON_GetArrayItem(rows, 2), false);
    ck_assert_str_eq(strtok(third, "\n"),
                     "{\"group\":\"g\",\"policy\":\"a,b\",\"seed\":\"9\",\"differs\":true,"
                     "\"decision\":7,\"before_s\":1.5,"
                     "\"before\":\"form 1\",\"now_s\":2.5,\"now\":\"form 1\",\"message\":\"\"}");
    cJSON_Delete(tree);
}
END_TEST

/* ---- the review ---- */

static const char reviewed[] =
    "### xpusim gate: 5 rows: 1 OK, 1 REGRESSION, 1 DRIFT, 1 STATUS, 1 ADDED; FAILED\n"
    "\n"
    "| verdict | group | policy | metric | baseline | measured | change | what happened |\n"
    "|---|---|---|---|---|---|---|---|\n"
    "| **REGRESSION** | g | a,b | `reactive.ttft_s.p90`: P90 reactive time to first token (s), "
    "lower is better | 2 | 3 | +50.00 % | a < b |\n"
    "| **STATUS** | h | c | `status`: run status | - | - | - | broke |\n"
    "| DRIFT | h | c | `parameters`: values of the policy's parameters | 4 | 4.002 | +0.05 % | "
    "|\n"
    "\n"
    "The first decision that is now another, of the policies that changed:\n"
    "\n"
    "- g, a,b: decision 8 is another: `form 1` at 1.250000 s before, `form 2` at 0.500000 s now "
    "(seed 10)\n"
    "\n"
    "      xpusim diff --policy a,b --soc s --llm 'l m' --workload w --set x=1 --set y=2 --seed 10 "
    "--against OLD/build/xpusim\n"
    "\n"
    "- h, c\n"
    "\n"
    "      xpusim diff --policy c --soc s2 --llm l2 --trace t.csv --seed 6 --against "
    "OLD/build/xpusim\n"
    "\n"
    "To accept these values, record and commit them:\n"
    "\n"
    "    xpusim gate --baseline base.json --update\n";

START_TEST(a_review_shows_alarms_first_with_commands)
{
    double none = MISSING;
    struct gate_row rows[] = {
        {.group = "h",
         .policy = "c",
         .metric = GATE_PARAMETERS,
         .verdict = GATE_DRIFT,
         .before = 4.0,
         .after = 4.002,
         .change_frac = 0.0005,
         .p = none},
        {.group = "h", .policy = "d", .metric = "m", .verdict = GATE_OK},
        moved,
        {.group = "h",
         .policy = "e",
         .metric = "m",
         .verdict = GATE_ADDED,
         .alarm = true,
         .quiet = true},
        {.group = "h",
         .policy = "c",
         .metric = "status",
         .verdict = GATE_STATUS,
         .alarm = true,
         .before = none,
         .after = none,
         .change_frac = none,
         .p = none,
         .detail = "broke"},
    };
    struct gate_report r = {.rows = rows, .n = 5, .counts = {1, 1, 1, 0, 1, 1, 0}, .alarms = 3};
    struct gate_firsts firsts = {.n = 2};
    firsts.v[0] = (struct gate_first){.row = &rows[2],
                                      .replications = 1,
                                      .known = true,
                                      .differs = true,
                                      .decision = 8,
                                      .now_s = 0.5,
                                      .old_s = 1.25,
                                      .now = "form 2",
                                      .old = "form 1",
                                      .seed = 10};
    firsts.v[1] = (struct gate_first){.row = &rows[4]};
    baseline.n_groups = 2;
    baseline.groups[0] = (struct gate_group){.name = "g",
                                             .soc = "s",
                                             .llm = "l m",
                                             .workload = "w",
                                             .sets = {"x=1", "y=2"},
                                             .n_sets = 2,
                                             .seed = 5};
    baseline.groups[1] =
        (struct gate_group){.name = "h", .soc = "s2", .llm = "l2", .trace = "t.csv", .seed = 6};
    struct gate_review v = {
        .report = &r, .baseline = &baseline, .firsts = &firsts, .path = "base.json"};
    struct document *d = document_new();
    gate_review(&v, d);
    OWNED char *text = form_of(d, "markdown");
    ck_assert_msg(strcmp(text, reviewed) == 0, "%s", text);
    /* The page has the same words. */
    struct err e = ERR_INIT;
    char *page = NULL;
    size_t n;
    FILE *f = open_memstream(&page, &n);
    v.old = "old program";
    ck_assert_int_eq(gate_review_page(&v, f, &e), 0);
    (void)fclose(f);
    const char *const lines[] = {
        "<p class=headline>5 rows: 1 OK, 1 REGRESSION, 1 DRIFT, 1 STATUS, 1 ADDED; FAILED</p>\n",
        "<tr><td class=overloaded>REGRESSION<td>g<td>a,b<td>reactive.ttft_s.p90<br><small>P90 "
        "reactive time to first token (s), "
        "lower is better</small><td>2<td>3<td>+50.00 %<td>a &lt; b\n"
        "<tr><td class=overloaded>STATUS<td>h<td>c<td>status<br><small>run "
        "status</small><td>-<td>-<td>-<td>broke\n"
        "<tr><td>DRIFT<td>h<td>c<td>parameters<br><small>values of the policy's "
        "parameters</small><td>4<td>4.002<td>+0.05 "
        "%<td>\n</tbody>",
        "<h3>g, a,b</h3>\n<p>decision 8 is another: `form 1` at 1.250000 s before, `form 2` at "
        "0.500000 s now (seed 10).</p>\n<pre>"
        "xpusim diff --policy a,b --soc s --llm 'l m' --workload w --set x=1 --set y=2 --seed 10 "
        "--against 'old program'</pre>\n"
        "<h3>h, c</h3>\n<pre>xpusim diff --policy c --soc s2 --llm l2 --trace t.csv --seed 6 "
        "--against 'old program'</pre>\n",
        "<h2>To accept these values</h2>\n<pre>xpusim gate --baseline base.json --update</pre>\n"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        ck_assert_msg(strstr(page, lines[i]) != NULL, "no %s in %s", lines[i],
                      strstr(page, "<h1>"));
    }
    free(page);
    /* A value is in the unit that its title names. */
    struct gate_row memory = {.group = "h",
                              .policy = "c",
                              .metric = "memory_peak_bytes",
                              .verdict = GATE_DRIFT,
                              .before = 4e9,
                              .after = 4.002e9,
                              .change_frac = 0.0005,
                              .p = none};
    r = (struct gate_report){.rows = &memory, .n = 1, .counts = {0, 0, 1}};
    struct document *bytes = document_new();
    gate_review(&v, bytes);
    OWNED char *of_memory = form_of(bytes, "markdown");
    ck_assert_msg(strstr(of_memory, "`memory_peak_bytes`: peak memory (GB), lower is better | 4 | "
                                    "4.002 | +0.05 %") != NULL,
                  "%s", of_memory);
    /* A report without a change says so. */
    r = (struct gate_report){.rows = &rows[1], .n = 1, .counts = {1}};
    firsts.n = 0;
    struct document *same = document_new();
    gate_review(&v, same);
    OWNED char *quiet = form_of(same, "markdown");
    ck_assert_msg(strstr(quiet, "### xpusim gate: 1 row: 1 OK; passed\n") == quiet &&
                      strstr(quiet, "No row shows a change.\n") != NULL &&
                      strstr(quiet, "accept") == NULL,
                  "%s", quiet);
    f = open_memstream(&page, &n);
    ck_assert_int_eq(gate_review_page(&v, f, &e), 0);
    (void)fclose(f);
    ck_assert(strstr(page, "<p>No row shows a change.</p>\n</html>\n") != NULL &&
              strstr(page, "<tr>") == NULL);
    free(page);
}
END_TEST

/* A program before the change would run the same file, so the file itself is compared. */
START_TEST(a_users_policy_is_compared_with_its_file_before)
{
    struct gate_row row = {.group = "h",
                           .policy = "./own.so:k=2",
                           .metric = "m",
                           .verdict = GATE_REGRESSION,
                           .alarm = true,
                           .before = 2.0,
                           .after = 3.0,
                           .change_frac = 0.5,
                           .p = MISSING};
    struct gate_report r = {.rows = &row, .n = 1, .counts = {0, 1}, .alarms = 1};
    struct gate_firsts firsts = {.n = 1};
    firsts.v[0] = (struct gate_first){.row = &row};
    baseline.n_groups = 1;
    baseline.groups[0] =
        (struct gate_group){.name = "h", .soc = "s", .llm = "l", .trace = "t.csv", .seed = 6};
    struct gate_review v = {
        .report = &r, .baseline = &baseline, .firsts = &firsts, .path = "base.json", .old = "old"};
    struct document *d = document_new();
    gate_review(&v, d);
    OWNED char *text = form_of(d, "markdown");
    static const char want[] =
        "- h, ./own.so:k=2: OLD is the policy's file before the change\n\n"
        "      xpusim diff --policy OLD:k=2 --b-policy ./own.so:k=2 --soc s --llm l --trace t.csv "
        "--seed 6\n";
    ck_assert_msg(strstr(text, want) != NULL, "%s", text);
}
END_TEST

static const char table[] =
    "             group  policy  metric               baseline  measured     change        p\n"
    "REGRESSION   g      a,b     reactive.ttft_s.p90         2         3   +50.00 %  <0.0001  a < "
    "b\n"
    "DRIFT        h      c       m                           4     4.002  +0.05 %   0.0200\n"
    "\n"
    "3 rows: 1 OK, 1 REGRESSION, 1 DRIFT; FAILED\n";

START_TEST(a_table_leaves_out_what_is_ok)
{
    struct gate_row rows[] = {
        moved,
        {.group = "h",
         .policy = "c",
         .metric = "m",
         .verdict = GATE_DRIFT,
         .before = 4.0,
         .after = 4.002,
         .change_frac = 0.0005,
         .p = 0.02},
        {.group = "h",
         .policy = "d",
         .metric = "m",
         .verdict = GATE_OK,
         .before = 1.0,
         .after = 1.0,
         .p = MISSING},
    };
    struct gate_report r = {.rows = rows, .n = 3, .counts = {1, 1, 1}, .alarms = 1};
    struct document *d = document_new();
    gate_document(&r, false, d);
    OWNED char *text = form_of(d, "text");
    OWNED char *packed = xcalloc(1, strlen(text) + 1);
    char *to = packed;
    for (const char *at = text; *at != '\0'; at++) { /* widths of columns are of other tests */
        if (!(*at == ' ' && (at[1] == ' ' || at[1] == '\n'))) {
            *to++ = *at;
        }
    }
    OWNED char *wanted = xcalloc(1, sizeof table);
    to = wanted;
    for (const char *at = table; *at != '\0'; at++) {
        if (!(*at == ' ' && (at[1] == ' ' || at[1] == '\n'))) {
            *to++ = *at;
        }
    }
    ck_assert_msg(strcmp(packed, wanted) == 0, "%s", text);
    cJSON *tree = document_json(d);
    ck_assert(cJSON_IsFalse(cJSON_GetObjectItem(tree, "passed")));
    const cJSON *all = cJSON_GetObjectItem(tree, "rows");
    ck_assert_int_eq(cJSON_GetArraySize(all), 3);
    OWNED char *first = json_text(cJSON_GetArrayItem(all, 0), false);
    ck_assert_str_eq(strtok(first, "\n"),
                     "{\"verdict\":\"REGRESSION\",\"alarm\":true,\"group\":\"g\",\"policy\":\"a,"
                     "b\",\"metric\":\"reactive.ttft_s.p90\","
                     "\"test\":\"fresh\",\"baseline\":2,\"measured\":3,\"change_frac\":0.5,\"p\":"
                     "1e-05,\"detail\":\"a < b\"}");
    OWNED char *counts = json_text(cJSON_GetObjectItem(tree, "counts"), false);
    ck_assert_str_eq(strtok(counts, "\n"), "{\"OK\":1,\"REGRESSION\":1,\"DRIFT\":1,\"GAIN\":0,"
                                           "\"STATUS\":0,\"ADDED\":0,\"REMOVED\":0}");
    cJSON_Delete(tree);
    OWNED char *junit = form_of(d, "junit");
    ck_assert_ptr_nonnull(
        strstr(junit, "REGRESSION: baseline 2, measured 3, change +50.00 % a &lt; b"));
}
END_TEST

static const struct suite_row suite[] = {
    CASE("gate review", .setup = setup),
    TEST(the_first_rows_of_policies_that_changed_are_looked_at),
    TEST(what_happened_to_a_decision_is_a_sentence),
    TEST(a_review_shows_alarms_first_with_commands),
    TEST(a_users_policy_is_compared_with_its_file_before),
    TEST(a_table_leaves_out_what_is_ok),
};
SUITE_MAIN("gate review", suite)

/* `validate` prints points, powers and co-runs for people. Each table of the text is written a
 * second time from the data, with titles, units and digits stated here. Every column of the data is
 * named. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/validation/validate.h"
#include "sim/base/datadir.h"
#include "sim/base/input.h"
#include "sim/base/json.h"
#include "tests/helpers/said.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"

static struct err err;

static void setup(void)
{
    err = (struct err)ERR_INIT;
}

/* A column has its key in the data, its title in the text (NULL: people do not see it), the format
 * of a number ("": a text), its scale, and the text for no value. */
struct column {
    const char *key, *title, *format;
    double scale;
    const char *missing;
};

static char *squeezed(char *text)
{
    char *to = text;
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == ' ' && (to == text || to[-1] == ' ' || to[-1] == '\n')) {
            continue;
        }
        to -= *p == '\n' && to > text && to[-1] == ' ';
        *to++ = *p;
    }
    *to = '\0';
    return text;
}

/* Names the first line that differs: a whole table is too long for a message. */
static void same_text(const char *is, const char *want)
{
    while (*is != '\0' && *want != '\0') {
        size_t n = strcspn(is, "\n");
        size_t m = strcspn(want, "\n");
        ck_assert_msg(n == m && strncmp(is, want, n) == 0, "%.*s\nis not\n%.*s", (int)n, is, (int)m,
                      want);
        is += n + (is[n] == '\n');
        want += m + (want[m] == '\n');
    }
    ck_assert_msg(*is == *want, "%.200s and %.200s", is, want);
}

/* Adds the table as people see it. Every row of the data has these keys and no others. */
static void put_table(struct text *t, const cJSON *rows, const struct column *c, size_t n)
{
    SCOPED(text_fini) struct text head = {0};
    for (size_t i = 0; i < n; i++) {
        if (c[i].title != NULL && c[i].title[0] != '\0') {
            text_item(&head, " ", c[i].title);
        }
    }
    text_format(t, "%s\n", text_end(&head));
    const cJSON *row;
    ck_assert_int_gt(cJSON_GetArraySize(rows), 0);
    cJSON_ArrayForEach (row, rows) {
        SCOPED(text_fini) struct text line = {0};
        int known = 0;
        for (size_t i = 0; i < n; i++) {
            const cJSON *x = cJSON_GetObjectItem(row, c[i].key);
            known += x != NULL;
            if (c[i].title == NULL) {
                ck_assert_msg(x != NULL, "no %s", c[i].key);
                continue;
            }
            OWNED char *cell = NULL;
            if (x == NULL || cJSON_IsNull(x)) {
                cell = xstrdup(c[i].missing != NULL ? c[i].missing : "-");
            } else if (cJSON_IsString(x)) {
                ck_assert_msg(c[i].format[0] == '\0', "%s is a text", c[i].key);
                cell = xstrdup(x->valuestring);
            } else {
                ck_assert_msg(c[i].format[0] != '\0', "%s is a number", c[i].key);
                double v = x->valuedouble * (c[i].scale != 0.0 ? c[i].scale : 1.0);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
                cell = xformat(c[i].format, v);
#pragma GCC diagnostic pop
            }
            if (cell[0] != '\0') {
                text_item(&line, " ", cell);
            }
        }
        ck_assert_msg(cJSON_GetArraySize(row) == known,
                      "a row has %d members, of which %d are known", cJSON_GetArraySize(row),
                      known);
        text_format(t, "%s\n", text_end(&line));
    }
}

#define TABLE(t, rows, columns) put_table(t, rows, columns, sizeof columns / sizeof columns[0])

/* Some rows of a shipped table, in a file of its own: every `step`-th. */
static char *table;

static void make_table(const char *name, int step)
{
    table = xstrdup(tempfile_make(".csv"));
    OWNED char *all = input_text(datadir_named(name, "hwmodels/points", ".csv"), 1 << 22, &err);
    SCOPED(text_fini) struct text some = {0};
    int n = 0;
    bool head = true;
    for (char *line = strtok(all, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        bool taken = line[0] != '#' && (head || n++ % step == 0);
        head = head && line[0] == '#';
        text_format(&some, taken ? "%s\n" : "", line);
    }
    tempfile_put(text_end(&some));
}

static char *energy(const char *form)
{
    struct option_output out = {.form = form};
    struct validate_energy_options o = {.energy = table};
    char *text;
    said_catch();
    int status = validate_energy(&o, &out, &err);
    said_caught(&text, NULL);
    ck_assert_int_eq(status, 0);
    return text;
}

START_TEST(powers_are_told_as_they_are)
{
    SCOPED(json_drop) cJSON *tree = NULL;
    make_table("energy", 2);
    OWNED char *json = energy("json");
    OWNED char *text = squeezed(energy("text"));
    tree = cJSON_Parse(json);
    static const struct column numbers[] = {{"meter", "meter", "", 0, NULL},
                                            {"number", "", "", 0, NULL},
                                            {"rows", "rows", "%.4g", 0, NULL},
                                            {"value", "value", "%.3g", 0, NULL},
                                            {"low", "without a source: least", "%.3g", 0, ""},
                                            {"high", "most", "%.3g", 0, ""},
                                            {"unit", "", "", 0, NULL}};
    static const struct column factors[] = {
        {"soc", "own factor", "", 0, NULL}, {"meter", "", "", 0, NULL},
        {"device", "", "", 0, NULL},        {"runtime", "", "", 0, NULL},
        {"rows", "rows", "%.4g", 0, NULL},  {"factor", "factor", "x %.3g", 0, NULL}};
    static const struct column errors[] = {{"quantity", "quantity", "", 0, NULL},
                                           {"left_out", "left out", "", 0, NULL},
                                           {"meter", "meter", "", 0, NULL},
                                           {"rows", "rows", "%.4g", 0, NULL},
                                           {"median_frac", "|error|, %", "%.1f", 100, NULL},
                                           {"p90_frac", "P90", "%.1f", 100, NULL},
                                           {"inside_frac", "in 95 %", "%.1f", 100, ""},
                                           {"factor", "x or /", "%.2f", 0, ""}};
    static const struct column pairs[] = {{"soc", "read twice", "", 0, NULL},
                                          {"device", "", "", 0, NULL},
                                          {"model", "", "", 0, NULL},
                                          {"meter", "", "", 0, NULL},
                                          {"watts", "watts", "%.3g", 0, NULL},
                                          {"again", "again", "%.3g", 0, NULL},
                                          {"factor", "factor", "x %.2f", 0, NULL}};
    static const struct column rows[] = {{"line", "line", "%.4g", 0, NULL},
                                         {"soc", "soc", "", 0, NULL},
                                         {"device", "device", "", 0, NULL},
                                         {"runtime", "runtime", "", 0, NULL},
                                         {"model", "model", "", 0, NULL},
                                         {"phase", "phase", "", 0, NULL},
                                         {"meter", "meter", "", 0, NULL},
                                         {"joules", "J/token", "%.4g", 0, NULL},
                                         {"joules_frac", "J/token, %", "%+.1f", 100, ""},
                                         {"watts", "W", "%.4g", 0, NULL},
                                         {"predicted", "predicted", "%.4g", 0, ""},
                                         {"low", "low", "%.4g", 0, ""},
                                         {"high", "high", "%.4g", 0, ""},
                                         {"error_frac", "error, %", "%+.1f", 100, ""},
                                         {"reason", "", "", 0, ""},
                                         {"source", NULL, "", 0, NULL}};
    SCOPED(text_fini) struct text want = {0};
    text_format(&want, "%s: %d powers\n\n", table,
                cJSON_GetArraySize(cJSON_GetObjectItem(tree, "rows")));
    TABLE(&want, cJSON_GetObjectItem(tree, "numbers"), numbers);
    text_string(&want, "\n");
    TABLE(&want, cJSON_GetObjectItem(tree, "factors"), factors);
    text_string(&want, "\n");
    TABLE(&want, cJSON_GetObjectItem(tree, "errors"), errors);
    text_string(&want, "\n");
    TABLE(&want, cJSON_GetObjectItem(tree, "pairs"), pairs);
    text_string(&want, "\nrows, each predicted by a fit without its publication\n");
    TABLE(&want, cJSON_GetObjectItem(tree, "rows"), rows);
    same_text(text, text_end(&want));
    ck_assert_str_eq(cJSON_GetObjectItem(tree, "energy")->valuestring, table);
    ck_assert_int_eq(cJSON_GetArraySize(tree), 6);
    tempfile_remove();
    free(table);
}
END_TEST

static bool is_same(const cJSON *a, const cJSON *b, const char *key)
{
    return strcmp(json_string(a, key), json_string(b, key)) == 0;
}

/* The whole table. A factor counts its rows. An error of powers is of all rows with a prediction,
 * or of those of its meter, and a row is inside when its interval has what was read. */
START_TEST(factors_and_errors_count_their_rows)
{
    make_table("energy", 1);
    OWNED char *json = energy("json");
    SCOPED(json_drop) cJSON *tree = cJSON_Parse(json);
    const cJSON *rows = cJSON_GetObjectItem(tree, "rows");
    const cJSON *x;
    const cJSON *row;
    cJSON_ArrayForEach (x, cJSON_GetObjectItem(tree, "factors")) {
        int n = 0;
        cJSON_ArrayForEach (row, rows) {
            n += cJSON_IsString(cJSON_GetObjectItem(row, "reason"))
                     ? 0
                     : is_same(row, x, "soc") && is_same(row, x, "meter") &&
                           is_same(row, x, "device") && is_same(row, x, "runtime");
        }
        ck_assert_double_eq(json_number(x, "rows"), n);
    }
    int tried = 0;
    cJSON_ArrayForEach (x, cJSON_GetObjectItem(tree, "errors")) {
        double n = 0;
        double inside = 0;
        cJSON_ArrayForEach (row, rows) {
            if (cJSON_IsNumber(cJSON_GetObjectItem(row, "predicted")) &&
                (strcmp(json_string(x, "meter"), "all") == 0 || is_same(row, x, "meter"))) {
                double watts = json_number(row, "watts");
                n++;
                inside += json_number(row, "low") <= watts && watts <= json_number(row, "high");
            }
        }
        if (json_string(x, "quantity")[0] == 'W' &&
            strcmp(json_string(x, "left_out"), "source") == 0) {
            ck_assert_double_eq(json_number(x, "rows"), n);
            ck_assert_double_eq_tol(json_number(x, "inside_frac"), inside / n, 1e-12);
            tried++;
        }
    }
    ck_assert_int_gt(tried, 4);
    tempfile_remove();
    free(table);
}
END_TEST

/* The rows read 4, 4 and 9 W. Without the second publication the number is 4 W. Without the first
 * one row is left, which is no fit, so both ends of the range are 4. */
START_TEST(a_range_has_no_end_from_a_single_row)
{
    table = xstrdup(tempfile_make(".csv"));
    tempfile_put("# powers\n"
                 "soc,device,runtime,model,weight_bits,input_tokens,phase,meter,idle_watts,watts,"
                 "tok_s,source\n"
                 "ryzen-ai-xdna2,npu,fastflowlm,llama-3.2-1b,4,1024,decode,rail,,4,36,first\n"
                 "ryzen-ai-xdna2,npu,fastflowlm,llama-3.2-3b,4,1024,decode,rail,,4,16,first\n"
                 "ryzen-ai-xdna2,npu,fastflowlm,llama-3.2-3b,4,1024,decode,rail,,9,16,second\n");
    OWNED char *json = energy("json");
    SCOPED(json_drop) cJSON *tree = cJSON_Parse(json);
    const cJSON *row = cJSON_GetArrayItem(cJSON_GetObjectItem(tree, "numbers"), 0);
    ck_assert_double_eq_tol(json_number(row, "low"), 4.0, 1e-12);
    ck_assert_double_eq_tol(json_number(row, "high"), 4.0, 1e-12);
    tempfile_remove();
    free(table);
}
END_TEST

static char *corun(const char *form, const char *model)
{
    struct option_output out = {.form = form};
    struct validate_corun_options o = {.corun = table};
    char *text;
    said_catch();
    int status = validate_corun(&o, model, &out, &err);
    said_caught(&text, NULL);
    ck_assert_int_eq(status, 0);
    return text;
}

START_TEST(co_runs_are_told_as_they_are)
{
    make_table("corun", 3);
    OWNED char *json = corun("json", "weighted");
    OWNED char *text = squeezed(corun("text", "weighted"));
    SCOPED(json_drop) cJSON *tree = cJSON_Parse(json);
    static const struct column errors[] = {{"model", "model", "", 0, NULL},
                                           {"machine", "machine", "", 0, NULL},
                                           {"rows", "rows", "%.4g", 0, NULL},
                                           {"error_frac", "left out, %", "%.1f", 100, NULL},
                                           {"error_fitted_frac", "fitted, %", "%.1f", 100, NULL},
                                           {"together", "fit without it: together", "%.3f", 0, ""},
                                           {"weight", "weight", "%.2f", 0, ""},
                                           {"latency", "latency", "%.2f", 0, ""},
                                           {"minor", "minor", "%.2f", 0, ""},
                                           {"balance", "balance", "%.2f", 0, ""},
                                           {"beside", "beside", "%.2f", 0, ""}};
    static const struct column own[] = {{"model", "own fit", "", 0, NULL},
                                        {"machine", "machine", "", 0, NULL},
                                        {"error_frac", "error, %", "%.1f", 100, NULL},
                                        {"together", "together", "%.3f", 0, ""},
                                        {"weight", "weight", "%.2f", 0, ""},
                                        {"latency", "latency", "%.2f", 0, ""},
                                        {"minor", "minor", "%.2f", 0, ""},
                                        {"balance", "balance", "%.2f", 0, ""},
                                        {"beside", "beside", "%.2f", 0, ""}};
    static const struct column rows[] = {{"machine", "machine", "", 0, NULL},
                                         {"what", "what", "", 0, NULL},
                                         {"victim", "victim", "", 0, NULL},
                                         {"demands", "demands", "", 0, NULL},
                                         {"measured", "measured", "%.3f", 0, NULL},
                                         {"predicted", "predicted", "%.3f", 0, NULL},
                                         {"error_frac", "error, %", "%+.1f", 100, NULL},
                                         {"source", NULL, "", 0, NULL}};
    SCOPED(text_fini) struct text want = {0};
    const cJSON *all = cJSON_GetObjectItem(tree, "rows");
    text_format(&want, "%s: %d rows of %d machines; mean |ln(predicted / measured slowdown)|\n\n",
                table, cJSON_GetArraySize(all),
                cJSON_GetArraySize(cJSON_GetObjectItem(tree, "own")));
    TABLE(&want, cJSON_GetObjectItem(tree, "errors"), errors);
    text_string(&want, "\n");
    TABLE(&want, cJSON_GetObjectItem(tree, "own"), own);
    text_string(&want, "\nrows, each predicted by the fit without its machine\n");
    TABLE(&want, all, rows);
    same_text(text, text_end(&want));
    ck_assert_str_eq(cJSON_GetObjectItem(tree, "corun")->valuestring, table);
    ck_assert_int_eq(cJSON_GetArraySize(tree), 4);
    const cJSON *last = cJSON_GetObjectItem(tree, "errors")->child->prev; /* the fit of all */
    for (const cJSON *o = cJSON_GetObjectItem(tree, "own")->child; o != NULL; o = o->next) {
        ck_assert_double_eq(json_number(o, "together"), json_number(last, "together"));
    }
    tempfile_remove();
    free(table);
}
END_TEST

START_TEST(a_co_run_that_cannot_be_is_refused)
{
    struct option_output out = {.form = "text"};
    struct validate_corun_options o = {.corun = "corun"};
    ck_assert_int_eq(validate_corun(&o, "weather", &out, &err), 2);
    ck_assert_uint_eq(err.n, 1);
    ck_assert_str_eq(err.lines[0], "sim.contention=weather: no such model; xpusim list contention");
    err_fini(&err);
}
END_TEST

static char *points(const char *form, bool with_rows, const char *soc, int want)
{
    struct option_output out = {.form = form};
    struct config_options config = config_options_default();
    struct validate_points_options o = {
        .points = table, .max_median_pct = INFINITY, .max_p90_pct = INFINITY, .rows = with_rows};
    config.soc = soc;
    char *text;
    said_catch();
    int status = validate_points(&o, &config, &out, &err);
    said_caught(&text, NULL);
    ck_assert_msg(status == want, "%d: %s", status, err.n > 0 ? err.lines[0] : "");
    return text;
}

static double number(const cJSON *row, const char *key)
{
    return json_number(row, key);
}

/* Writes one row for people, from its data. */
static void put_row(struct text *t, const cJSON *r)
{
    double measured = number(r, "measured");
    double value = number(r, "predicted");
    double low = number(r, "low");
    bool known = !isnan(value);
    text_format(t, "%.4g %s %s %.28s %.40s %.4g %.4g %s %.4g", number(r, "line"),
                json_string(r, "soc"), json_string(r, "device"), json_string(r, "runtime"),
                json_string(r, "model"), number(r, "weight_bits"), number(r, "input_tokens"),
                json_string(r, "metric"), measured);
    if (!known) {
        text_format(t, " %s\n", json_string(r, "reason"));
        return;
    }
    text_format(t, " %.4g", value);
    if (isnan(low)) {
        text_string(t, " -");
    } else {
        text_format(t, " %.4g to %.4g", low, number(r, "high"));
    }
    text_format(t, " %+.1f %%", 100 * (value / measured - 1));
    if (cJSON_IsTrue(cJSON_GetObjectItem(r, "default_runtime"))) {
        const char *entry = json_string(r, "entry");
        text_format(t, ", by %s", entry[0] != '\0' ? entry : "another runtime's");
    }
    text_string(t, cJSON_IsTrue(cJSON_GetObjectItem(r, "outside_envelope")) ? ", outside" : "");
    const char *unseen = json_string(r, "unseen");
    text_string(t, strcmp(unseen, "soc") == 0      ? ", SoC unfitted"
                   : strcmp(unseen, "source") == 0 ? ", new source"
                                                   : "");
    text_string(t, "\n");
}

static bool is_latency(const cJSON *r)
{
    static const char *const all[] = {"ttft_ms", "tpot_ms", "prefill_tok_s", "decode_tok_s"};
    for (int i = 0; i < 4; i++) {
        if (strcmp(json_string(r, "metric"), all[i]) == 0) {
            return true;
        }
    }
    return false;
}

#define ROWS "line engine runtime model bits tokens metric measured predicted 95 % error\n"

START_TEST(points_are_told_as_they_are)
{
    make_table("unseen", 9);
    OWNED char *json = points("json", true, NULL, 0);
    OWNED char *text = squeezed(points("text", true, NULL, 0));
    SCOPED(json_drop) cJSON *tree = cJSON_Parse(json);
    const cJSON *rows = cJSON_GetObjectItem(tree, "rows");
    SCOPED(text_fini) struct text want = {0};
    int n = cJSON_GetArraySize(rows);
    text_format(&want,
                "%s: %d rows\n\n|error|, %% rows predicted median P90 bias Pearson with "
                "the unpredicted in 95 %%\n",
                table, n);
    const cJSON *g;
    const char *by = "";
    cJSON_ArrayForEach (g, cJSON_GetObjectItem(tree, "summary")) {
        const char *own = json_string(g, "by");
        if (strcmp(own, by) != 0 && strcmp(own, "all") != 0) {
            text_format(&want, "by %s\n", own);
        }
        by = own;
        text_format(&want, "%.40s %.4g %.4g", json_string(g, "group"), number(g, "n"),
                    number(g, "predicted"));
        static const char *const keys[] = {"median",
                                           "p90",
                                           "bias",
                                           "pearson",
                                           "median_with_unpredicted",
                                           "p90_with_unpredicted",
                                           "inside_interval"};
        for (int k = 0; k < 7; k++) {
            double v = number(g, keys[k]);
            if (!isnan(v)) {
                text_format(&want, k == 3 ? " %.3f" : " %.1f", k == 3 ? v : 100 * v);
            }
        }
        text_string(&want, "\n");
    }
    /* the ten worst latencies, the earlier of equal ones first */
    text_string(&want, "\nworst latency rows\n" ROWS);
    bool *told = calloc((size_t)n + 1, sizeof *told);
    for (int k = 0; k < 10; k++) {
        const cJSON *worst = NULL;
        int at = -1;
        for (int i = 0; i < n; i++) {
            const cJSON *r = cJSON_GetArrayItem(rows, i);
            if (is_latency(r) && !told[i] && !isnan(number(r, "error_frac")) &&
                (worst == NULL ||
                 fabs(number(r, "error_frac")) > fabs(number(worst, "error_frac")))) {
                worst = r;
                at = i;
            }
        }
        if (worst != NULL) {
            told[at] = true;
            put_row(&want, worst);
        }
    }
    free(told);
    bool any = false;
    for (int i = 0; i < n; i++) { /* each reason with how many rows have it */
        const char *why = json_string(cJSON_GetArrayItem(rows, i), "reason");
        int count = 0;
        bool first = why[0] != '\0';
        for (int j = 0; j < n && first; j++) {
            bool same = strcmp(json_string(cJSON_GetArrayItem(rows, j), "reason"), why) == 0;
            first = !same || j >= i;
            count += same;
        }
        if (first) {
            text_format(&want, "%s%d %s\n", any ? "" : "\nrows without a prediction\n", count, why);
            any = true;
        }
    }
    text_string(&want, "\n" ROWS);
    const cJSON *row;
    cJSON_ArrayForEach (row, rows) {
        put_row(&want, row);
        static const char *const keys[] = {"line",
                                           "soc",
                                           "device",
                                           "runtime",
                                           "model",
                                           "weight_bits",
                                           "act_bits",
                                           "metric",
                                           "input_tokens",
                                           "batch",
                                           "measured",
                                           "predicted",
                                           "low",
                                           "high",
                                           "error_frac",
                                           "default_runtime",
                                           "outside_envelope",
                                           "unseen",
                                           "entry",
                                           "reason"};
        int known = 0;
        for (int k = 0; k < 20; k++) {
            const cJSON *x = cJSON_GetObjectItem(row, keys[k]);
            known += x != NULL;
            ck_assert_msg(k >= 11 || x != NULL, "no %s", keys[k]);
        }
        ck_assert_int_eq(known, cJSON_GetArraySize(row));
    }
    size_t length = strlen(text_end(&want));
    if (strlen(text) > length) {
        text[length] = '\0'; /* the floor follows, where there is one */
    }
    same_text(text, text_end(&want));
    OWNED char *few = squeezed(points("text", false, NULL, 0));
    ck_assert_ptr_nonnull(strstr(few, "\nworst latency rows\n" ROWS));
    const char *first = strstr(few, ROWS);
    ck_assert_ptr_null(strstr(first + 1, ROWS)); /* not every row, where nobody asks */
    tempfile_remove();
    free(table);
}
END_TEST

START_TEST(points_that_cannot_be_asked_for_are_refused)
{
    static const struct {
        struct validate_points_options o;
        const char *soc, *set, *want;
    } all[] = {
        {{.points = "unseen", .against = "x.json"}, NULL, NULL, "--against goes with --accuracy"},
        {{.points = "unseen", .unseen = "unseen"},
         NULL,
         NULL,
         "--unseen goes with --leave-machine-out or --energy"},
        {{.points = "unseen"},
         "no-such-soc",
         NULL,
         "--soc no-such-soc: no such SoC file is shipped"},
        {{.points = "unseen"},
         NULL,
         "soc.host.sync=1",
         "--set soc.host.sync=1: --points predicts with the shipped files, and takes only "
         "sim.contention and its numbers; --soc FILE.json replaces a machine"},
        {{.points = "unseen"}, "w1-reference", NULL, "no row is about w1-reference"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct option_output out = {.form = "json"};
        struct config_options config = config_options_default();
        config.soc = all[i].soc;
        if (all[i].set != NULL) {
            config.sets[config.n_sets++] = all[i].set;
        }
        setup();
        ck_assert_int_eq(validate_points(&all[i].o, &config, &out, &err), 2);
        ck_assert_uint_eq(err.n, 1);
        const char *is = err.lines[0];
        size_t n = strlen(is);
        size_t m = strlen(all[i].want);
        ck_assert_msg(n >= m && strcmp(is + n - m, all[i].want) == 0, "%s", is);
        err_fini(&err);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("validate told", .setup = setup, .timeout_s = 60),
    TEST(powers_are_told_as_they_are),
    TEST(factors_and_errors_count_their_rows),
    TEST(a_range_has_no_end_from_a_single_row),
    TEST(co_runs_are_told_as_they_are),
    TEST(a_co_run_that_cannot_be_is_refused),
    TEST(points_are_told_as_they_are),
    TEST(points_that_cannot_be_asked_for_are_refused),
};
SUITE_MAIN("validate told", suite)

/* Whole commands on small inputs: what each prints, to which stream, with which status, and what it
 * writes. Numbers are counted by hand, or taken from the functions that a command is to ask. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/conformance/conformance.h"
#include "experiments/figures/paper.h"
#include "experiments/shell/document.h"
#include "experiments/store/store.h"
#include "plots/figure.h"
#include "policies/registry.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"
#include "sim/base/version.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

static void has(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "no\n%s\nin\n%s", part, text);
}

static void has_not(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) == NULL, "%s\nin\n%s", part, text);
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

#define LOAD "mixed:reactive_per_min=20,proactive_per_min=20,duration_s=30"

/* ---- measure ---- */

/* Simulated devices: every row has the machine's name, the shape and the source; the summary counts
 * them; and what is fitted is the machine that was simulated. */
START_TEST(simulated_devices_are_measured)
{
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_measure, "--backend", "sim", "--size", "tiny", "--name", "box-1",
                              "--soc", "core-ultra-7-155h", "--alone", "-o", "m.csv", "-q");
    ck_assert_int_eq(s.status, EXIT_OK);
    ck_assert_str_eq(s.err, "");
    OWNED char *rows = folder_text("m.csv");
    uint32_t timed = 0;
    uint32_t n = 0;
    char *save = NULL;
    for (char *line = strtok_r(rows, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        if (line[0] == '#' || strncmp(line, "soc,", 4) == 0) {
            continue;
        }
        n++;
        ck_assert_msg(strncmp(line, "box-1,", 6) == 0, "%s", line);
        has(line, ",\"xpusim measure " XPUSIM_VERSION ", simulated core-ultra-7-155h\",");
        timed += strstr(line, ",kernel_ms,") != NULL;
        has_not(line, ",co_kernel_ms,");
    }
    ck_assert_uint_gt(timed, 50);
    ck_assert_uint_gt(n, timed);
    OWNED char *want = xformat("m.csv: %u of %u times can be trusted\n", timed, timed);
    ck_assert_str_eq(s.out, want);
    SCOPED(said_fini) struct said f = COMMANDED(cmd_measure, "--fit", "m.csv", "-o", "fit.json");
    ck_assert_msg(f.status == EXIT_OK, "%s", f.err);
    struct err e = ERR_INIT;
    SCOPED(json_drop) cJSON *soc = json_read_file("fit.json", &e);
    ck_assert_str_eq(json_string(soc, "name"), "box-1");
    SCOPED(said_fini)
    struct said peak =
        COMMANDED(cmd_measure, "--fit", "m.csv", "-o", "peak.json", "--ddr-peak", "123");
    ck_assert_int_eq(peak.status, EXIT_OK);
    SCOPED(json_drop) cJSON *with = json_read_file("peak.json", &e);
    const char *bad;
    ck_assert_double_eq(json_number(json_find_path(with, "ddr.peak", &bad), "value"), 123);
}
END_TEST

/* Pairs alone are a table of who slows whom, of the rows as of a measurement. */
START_TEST(pairs_are_measured_alone)
{
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_measure, "--backend", "sim", "--size", "tiny", "--pairs", "-o",
                              "p.csv", "-q");
    ck_assert_int_eq(s.status, EXIT_OK);
    OWNED char *text = squeezed(s.out);
    ck_assert_msg(strncmp(text,
                          "victim next to takes times as long both ask, GB/s both get above "
                          "the cap\n",
                          72) == 0,
                  "%s", text);
    SCOPED(said_fini) struct said again = COMMANDED(cmd_measure, "--fit", "p.csv", "--pairs");
    said_is(&again, EXIT_OK, s.out, "");
    SCOPED(said_fini)
    struct said j = COMMANDED(cmd_measure, "--fit", "p.csv", "--pairs", "--json");
    SCOPED(json_drop) cJSON *tree = cJSON_Parse(j.out);
    ck_assert_ptr_nonnull(tree);
}
END_TEST

/* ---- sweep and merge ---- */

#define SPEC                                                                                       \
    "{\"name\": \"n\", \"base\": {\"workload\": \"mixed:reactive_per_min=%s,"                      \
    "proactive_per_min=0,duration_s=10\"}, \"axes\": {\"policy\": [\"fcfs\", \"edf\"], \"seed\": " \
    "[1, 2]}, \"replications\": 3, \"metrics\": [\"reactive.*.mean\"]}"

static void spec(const char *rate)
{
    OWNED char *text = xformat(SPEC, rate);
    folder_put("s.json", text);
}

/* Four points, three replications each. A second time all are there; the first two replications of
 * three are all that a third of it runs. */
START_TEST(a_sweep_counts_its_runs)
{
    spec("60");
    SCOPED(said_fini) struct said size = COMMANDED(cmd_sweep, "./s.json", "--dry-run");
    said_is(&size, EXIT_OK, "./s.json: 4 points, 12 runs, 0 of them in the store\n", "");
    SCOPED(said_fini) struct said s = COMMANDED(cmd_sweep, "./s.json", "-o", "s.db", "--jobs", "1");
    said_is(&s, EXIT_OK, "", "xpusim: ./s.json: 12 runs done, 0 found in the store, 0 failed\n");
    SCOPED(said_fini) struct said again = COMMANDED(cmd_sweep, "./s.json", "-o", "s.db");
    said_is(&again, EXIT_OK, "",
            "xpusim: ./s.json: 0 runs done, 12 found in the store, 0 failed\n");
    SCOPED(said_fini)
    struct said there = COMMANDED(cmd_sweep, "./s.json", "-o", "s.db", "--dry-run");
    said_is(&there, EXIT_OK, "./s.json: 4 points, 12 runs, 12 of them in the store\n", "");
    /* Another experiment has these four points with a fourth replication each, and another policy
     * with four: 24 runs, of which it shares the 12. */
    folder_put("more.json",
               "{\"base\": {\"workload\": \"mixed:reactive_per_min=60,proactive_per_min=0,"
               "duration_s=10\"}, \"axes\": {\"policy\": [\"fcfs\", \"hhpf\", \"edf\"], \"seed\": "
               "[1, 2]}, \"replications\": 4, \"metrics\": [\"reactive.*.mean\"]}");
    SCOPED(said_fini)
    struct said more = COMMANDED(cmd_sweep, "./more.json", "-o", "s.db", "--dry-run");
    said_is(&more, EXIT_OK, "./more.json: 6 points, 24 runs, 12 of them in the store\n", "");
    SCOPED(said_fini)
    struct said csv = COMMANDED(cmd_sweep, "./s.json", "-o", "s.db", "-q", "--export", "csv");
    SCOPED(said_fini) struct said only = COMMANDED(cmd_sweep, "-o", "s.db", "--export", "csv");
    said_is(&only, EXIT_OK, csv.out, "");
    has(csv.out, "experiment,point,replication,status,message,set.policy,set.seed,");
    /* Each shard has a third of the twelve runs, and a merge has all of them. */
    for (int i = 0; i < 3; i++) {
        OWNED char *shard = xformat("%d/3", i);
        OWNED char *store = xformat("%d.db", i);
        SCOPED(said_fini)
        struct said part = COMMANDED(cmd_sweep, "./s.json", "-o", store, "--shard", shard);
        said_is(&part, EXIT_OK, "",
                "xpusim: ./s.json: 4 runs done, 0 found in the store, 0 failed\n");
    }
    SCOPED(said_fini)
    struct said two = COMMANDED(cmd_merge, "-o", "all.db", "0.db", "1.db", "--complete");
    ck_assert_int_eq(two.status, EXIT_CHECK_FAILED);
    ck_assert_str_eq(two.out, "");
    ck_assert(!is_there("all.db"));
    SCOPED(said_fini)
    struct said some = COMMANDED(cmd_merge, "-o", "all.db", "0.db", "1.db", "-q");
    said_is(&some, EXIT_OK, "", "");
    SCOPED(said_fini)
    struct said all = COMMANDED(cmd_merge, "-o", "all.db", "2.db", "--complete", "--export", "csv");
    said_is(&all, EXIT_OK, csv.out, "xpusim: 1 store merged into all.db\n");
    SCOPED(said_fini)
    struct said quiet = COMMANDED(cmd_merge, "-o", "a2.db", "0.db", "1.db", "2.db", "-q");
    said_is(&quiet, EXIT_OK, "", "");
    SCOPED(said_fini) struct said none = COMMANDED(cmd_merge, "-o", "a3.db", "0.db", "no.db");
    ck_assert_int_eq(none.status, EXIT_BAD_INPUT);
    ck_assert(!is_there("a3.db"));
}
END_TEST

/* A replication without requests is no failure: it is counted apart, and --fail-fast continues. A
 * comparison of the store counts it for nobody. */
START_TEST(a_sweep_counts_replications_without_requests)
{
    spec("0");
    SCOPED(said_fini) struct said s = COMMANDED(cmd_sweep, "./s.json", "-o", "s.db", "--jobs", "1");
    ck_assert_int_eq(s.status, EXIT_BAD_INPUT);
    folder_put("s.json", "{\"base\": {\"policy\": \"fcfs\", \"workload\": "
                         "\"mixed:reactive_per_min=6,proactive_per_min=0,duration_s=10\"}, "
                         "\"axes\": {\"seed\": [1]}, \"replications\": 12}");
    struct err e = ERR_INIT;
    uint32_t empty = 0;
    for (uint32_t i = 0; i < 12; i++) {
        SCOPED(trace_fini) struct trace t = {0};
        bool none = trace_generate("mixed:reactive_per_min=6,proactive_per_min=0,duration_s=10",
                                   config_seed(1, i), 1.0, &t, &e) != 0;
        empty += none;
    }
    err_fini(&e);
    ck_assert(empty > 1 && empty < 12);
    SCOPED(said_fini)
    struct said f = COMMANDED(cmd_sweep, "./s.json", "-o", "f.db", "--jobs", "1", "--fail-fast");
    OWNED char *want =
        xformat("xpusim: ./s.json: %u runs done, 0 found in the store, 0 failed\n"
                "xpusim: note: %u replications without requests, which count for nobody\n",
                12 - empty, empty);
    said_is(&f, EXIT_OK, "", want);
    SCOPED(said_fini) struct said t = COMMANDED(cmd_sweep, "-o", "f.db", "--export", "csv");
    uint32_t rows = 0;
    for (const char *at = t.out; (at = strstr(at, ",empty,,")) != NULL; at++) {
        rows++;
    }
    ck_assert_uint_eq(rows, empty);
    ck_assert_ptr_null(strstr(t.out, ",failed,"));
    SCOPED(said_fini) struct said c = COMMANDED(cmd_compare, "--store", "f.db");
    OWNED char *nobody = xformat("  %u of 12 replications without requests, which", empty);
    ck_assert_msg(c.status == EXIT_OK && strstr(c.out, nobody) != NULL, "%d %s", c.status, c.out);
    ck_assert_ptr_null(strstr(c.out, "not run"));
}
END_TEST

/* Whether a trace has a request that needs more than 2,000 tokens of KV. */
static bool needs_much(uint32_t replication)
{
    SCOPED(trace_fini) struct trace t = {0};
    struct err e = ERR_INIT;
    ck_assert_int_eq(trace_generate("mixed:reactive_per_min=30,proactive_per_min=0,duration_s=10",
                                    config_seed(7, replication), 1.0, &t, &e),
                     0);
    bool much = false;
    for (size_t i = 0; i < t.n; i++) {
        much = much || t.rows[i].input_tokens + t.rows[i].output_tokens > 2000;
    }
    return much;
}

/* A request that the KV memory cannot hold fails its run: the first is named, and at most one is
 * made with --fail-fast. */
START_TEST(a_sweep_tells_its_failures)
{
    folder_put("s.json", "{\"base\": {\"policy\": \"fcfs\", \"sim.kv_capacity_tokens\": 2000, "
                         "\"workload\": "
                         "\"mixed:reactive_per_min=30,proactive_per_min=0,duration_s=10\"}, "
                         "\"axes\": {\"seed\": [7]}, \"replications\": 8}");
    uint32_t failed = 0;
    uint32_t first = 0;
    for (uint32_t i = 8; i-- > 0;) {
        bool much = needs_much(i);
        failed += much;
        first = much ? i : first;
    }
    ck_assert(failed > 1 && failed < 8 && first > 0);
    SCOPED(said_fini) struct said f = COMMANDED(cmd_sweep, "./s.json", "-o", "f.db", "--jobs", "1");
    OWNED char *names = xformat(
        "xpusim: error: %u runs failed, the first at point 0, replication %u: ", failed, first);
    OWNED char *counts = xformat(
        "\nxpusim: ./s.json: %u runs done, 0 found in the store, %u failed\n", 8 - failed, failed);
    ck_assert_int_eq(f.status, EXIT_CHECK_FAILED);
    ck_assert_msg(strncmp(f.err, names, strlen(names)) == 0 && strstr(f.err, counts) != NULL, "%s",
                  f.err);
    SCOPED(said_fini)
    struct said fast = COMMANDED(cmd_sweep, "./s.json", "-o", "g.db", "--jobs", "1", "--fail-fast");
    OWNED char *stopped =
        xformat("\nxpusim: ./s.json: %u runs done, 0 found in the store, 1 failed; stopped early: "
                "the same command continues\n",
                first);
    ck_assert_int_eq(fast.status, EXIT_CHECK_FAILED);
    ck_assert_msg(strstr(fast.err, stopped) != NULL, "%s", fast.err);
}
END_TEST

/* Points that are not known well enough after the last of their replications are counted. */
START_TEST(a_sweep_tells_open_points)
{
    folder_put("s.json",
               "{\"base\": {\"workload\": \"mixed:reactive_per_min=60,proactive_per_min=0,"
               "duration_s=10\"}, \"axes\": {\"policy\": [\"fcfs\", \"edf\"]}, \"replications\": "
               "2, \"max_replications\": 5, \"until\": {\"reactive.e2e_s.mean\": {\"half_width\": "
               "0}}}");
    SCOPED(said_fini) struct said size = COMMANDED(cmd_sweep, "./s.json", "--dry-run");
    said_is(&size, EXIT_OK, "./s.json: 2 points, at most 10 runs, 0 of them in the store\n", "");
    SCOPED(said_fini) struct said s = COMMANDED(cmd_sweep, "./s.json", "-o", "s.db", "--jobs", "1");
    said_is(&s, EXIT_OK, "",
            "xpusim: ./s.json: 10 runs done, 0 found in the store, 0 failed\n"
            "xpusim: note: 2 points did not reach the half-widths in 5 replications\n");
    folder_put("s.json",
               "{\"base\": {\"workload\": \"mixed:reactive_per_min=60,proactive_per_min=0,"
               "duration_s=10\"}, \"axes\": {\"policy\": [\"fcfs\", \"edf\"]}, \"replications\": "
               "2, \"max_replications\": 20, \"until\": {\"reactive.e2e_s.mean\": {\"half_width\": "
               "1e9}}}");
    SCOPED(said_fini) struct said n = COMMANDED(cmd_sweep, "./s.json", "-o", "n.db", "--jobs", "1");
    said_is(&n, EXIT_OK, "", "xpusim: ./s.json: 20 runs done, 0 found in the store, 0 failed\n");
}
END_TEST

/* Every option of the sweep goes to its shards, each with its value. */
START_TEST(a_slurm_sweep_passes_on_its_options)
{
    OWNED char *suite = xformat("{\"suite\": {\"about\": \"a\", \"references\": [\"fcfs\"]}, "
                                "\"base\": {\"workload\": \"%s\"}, \"rows\": [{\"point\": \"x\"}], "
                                "\"metrics\": [\"energy_j\"]}",
                                LOAD);
    folder_put("s.json", suite);
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_sweep, "./s.json", "-o", "s.db", "--slurm", "2",
                              "--slurm-scripts", "--policy", "fcfs", "--policy", "edf:class=blind",
                              "--time-limit", "7.5", "--memory-limit", "99", "--fail-fast", "--yes",
                              "--jobs", "3", "--slurm-option=--partition=long");
    ck_assert_msg(s.status == EXIT_OK, "%s", s.err);
    OWNED char *script = folder_text("s.db.slurm/array.sh");
    has(script, " 'sweep' './s.json' '--policy' 'fcfs' '--policy' 'edf:class=blind' '--time-limit' "
                "'7.5' '--memory-limit' '99' '--fail-fast' '--yes' \\\n");
    has(script, " --shard \"$SLURM_ARRAY_TASK_ID\"/2 --jobs 3\n");
    has(script, "#SBATCH --partition=long\n");
    has(script, "#SBATCH --cpus-per-task=3\n");
    OWNED char *merge = folder_text("s.db.slurm/merge.sh");
    has(merge, " merge --complete -o ");
    SCOPED(said_fini)
    struct said plain = COMMANDED(cmd_sweep, "./s.json", "-o", "p.db", "--slurm", "2",
                                  "--slurm-scripts", "--policy", "fcfs");
    ck_assert_int_eq(plain.status, EXIT_OK);
    OWNED char *bare = folder_text("p.db.slurm/array.sh");
    has(bare, " 'sweep' './s.json' '--policy' 'fcfs' '--time-limit' '600' \\\n");
    has(bare, " --jobs 1\n");
    SCOPED(said_fini) struct said nobody = COMMANDED(cmd_sweep, "./s.json", "-o", "n.db");
    said_refused(&nobody, "./s.json: a suite names no policy: --policy is missing");
}
END_TEST

/* ---- plot and figure ---- */

START_TEST(figures_are_listed)
{
    size_t n;
    const struct figure *v = figure_list(&n);
    SCOPED(said_fini) struct said s = COMMANDED(cmd_plot, "list", "--json");
    SCOPED(json_drop) cJSON *tree = cJSON_Parse(s.out);
    const cJSON *all = cJSON_GetObjectItem(tree, "figures");
    ck_assert_uint_eq((size_t)cJSON_GetArraySize(all), n);
    for (size_t i = 0; i < n; i++) {
        const cJSON *row = cJSON_GetArrayItem(all, (int)i);
        ck_assert_str_eq(json_string(row, "figure"), v[i].name);
        ck_assert_str_eq(json_string(row, "shows"), v[i].title);
        ck_assert_str_eq(json_string(row, "reads"), v[i].reads);
        ck_assert_str_eq(json_string(row, "kinds"), v[i].kinds);
        ck_assert_int_eq(cJSON_IsTrue(cJSON_GetObjectItem(row, "of_one_file")), v[i].alone);
        SCOPED(said_fini) struct said none = COMMANDED(cmd_plot, v[i].name);
        OWNED char *why = xformat("%s: no input; it reads: %s", v[i].name, v[i].reads);
        said_refused(&none, why);
        OWNED char *slip = xformat("%sx", v[i].name);
        SCOPED(said_fini) struct said near = COMMANDED(cmd_plot, slip);
        OWNED char *hint =
            xformat("no figure is called %s (`xpusim plot list` shows them); did you mean %s?",
                    slip, v[i].name);
        said_refused(&near, hint);
    }
    SCOPED(said_fini)
    struct said window = COMMANDED(cmd_plot, "no-such", "--from", "2", "--to", "1.5");
    said_refused(&window, "--to 1.5: not after --from 2");
}
END_TEST

/* gnuplot of the test keeps what it is given. */
static void gnuplot(void)
{
    OWNED char *script = xformat("#!/bin/sh\n[ \"$1\" = -d ] || exit 0\n"
                                 "out=$(sed -n \"s/^out = '\\(.*\\)'$/\\1/p\" \"$2\")\n"
                                 "cat \"$2\" >>'%s/given'\necho \"${out##*.}\" >>'%s/formats'\n"
                                 "echo '<svg></svg>' >\"$out\"\n",
                                 folder_path(), folder_path());
    folder_put("gnuplot", script);
    ck_assert_int_eq(chmod("gnuplot", 0700), 0);
    OWNED char *path = xformat("%s:%s", folder_path(), getenv("PATH"));
    ck_assert_int_eq(setenv("PATH", path, 1), 0);
}

static char *given(const char *const *words)
{
    (void)remove("given");
    (void)remove("formats");
    SCOPED(said_fini) struct said s = commanded(&cmd_plot, words);
    return is_there("given") ? folder_text("given") : xstrdup("");
}

/* The canvas of a column is 3.33 inches of 72 points in letters of 9 points, which the layout has
 * in 13 pixels; of both 7 inches. */
START_TEST(a_figure_has_the_look_that_is_asked_for)
{
    SCOPED(said_fini) struct said k = COMMANDED(cmd_list, "kernels", "--json");
    folder_put("k.json", k.out);
    OWNED char *path = xstrdup(getenv("PATH"));
    ck_assert_int_eq(setenv("PATH", "/nowhere:", 1), 0);
    SCOPED(said_fini) struct said none = COMMANDED(cmd_plot, "roofline", "k.json");
    said_refused(&none, "gnuplot is not installed: it draws the figures (Debian package "
                        "gnuplot-nox)");
    ck_assert_int_eq(setenv("PATH", path, 1), 0);
    gnuplot();
    static const struct {
        const char *words[8], *lines[3], *formats;
    } looks[] = {
        {{"roofline", "k.json"}, {"font_pt = 9\n", "titles = 1\n"}, "svg\npng\n"},
        {{"roofline", "k.json", "--columns", "1"}, {"canvas = 346.32\n"}, "svg\npng\n"},
        {{"roofline", "k.json", "--columns", "2"}, {"canvas = 728\n"}, "svg\npng\n"},
        {{"roofline", "k.json", "--columns", "2", "--font", "13"},
         {"canvas = 504\n", "font_pt = 13\n"},
         "svg\npng\n"},
        {{"roofline", "k.json", "--no-title"}, {"titles = 0\n"}, "svg\npng\n"},
        {{"roofline", "k.json", "--format", "svg"}, {"titles = 1\n"}, "svg\n"},
        {{"roofline", "k.json", "--format", "png"}, {"titles = 1\n"}, "png\n"},
        {{"roofline", "k.json", "--format", "pdf"}, {"titles = 1\n"}, "pdf\n"},
    };
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++) {
        OWNED char *text = given(looks[i].words);
        for (int j = 0; j < 3 && looks[i].lines[j] != NULL; j++) {
            has(text, looks[i].lines[j]);
        }
        if (i == 0) {
            has_not(text, "\ncanvas = ");
        }
        OWNED char *formats = folder_text("formats");
        if (strcmp(looks[i].formats, "svg\npng\n") == 0) {
            has(formats, "svg\n");
            has(formats, "png\n");
            has_not(formats, "pdf\n");
        } else {
            ck_assert_str_eq(formats, looks[i].formats);
        }
    }
}
END_TEST

/* Every shipped specification is a row, and so is every figure that cannot be made. */
START_TEST(figures_of_papers_are_listed)
{
    static const char *const none[] = {"--json", NULL};
    SCOPED(said_fini) struct said s = commanded(&cmd_figure, none);
    said_is(&s, EXIT_OK, NULL, "");
    SCOPED(json_drop) cJSON *tree = cJSON_Parse(s.out);
    const cJSON *row;
    cJSON_ArrayForEach (row, cJSON_GetObjectItem(tree, "figures")) {
        struct err e = ERR_INIT;
        static struct paper p;
        OWNED char *path = paper_path(json_string(row, "paper"), json_string(row, "number"));
        suite_keep(&p, sizeof p);
        ck_assert_int_eq(paper_read(&p, path, NULL, 0, &e), 0);
        ck_assert_str_eq(json_string(row, "shows"), p.says);
        SCOPED(text_fini) struct text claims = {0};
        for (uint32_t i = 0; i < p.n_claims; i++) {
            text_item(&claims, " ", p.claims[i]);
        }
        ck_assert_str_eq(json_string(row, "claims"), text_end(&claims));
    }
    ck_assert_int_gt(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "figures")), 15);
    struct err e = ERR_INIT;
    SCOPED(json_drop)
    cJSON *file = json_read_file(datadir_path(PAPER_FOLDER "/cannot.json"), &e);
    ck_assert(cJSON_Compare(cJSON_GetObjectItem(tree, "cannot"),
                            cJSON_GetObjectItem(file, "figures"), true));
}
END_TEST

static const struct suite_row rows[] = {
    CASE("commands", .setup = folder_enter, .teardown = folder_leave, .timeout_s = 60),
    TEST(simulated_devices_are_measured),
    TEST(pairs_are_measured_alone),
    TEST(a_sweep_counts_its_runs),
    TEST(a_sweep_counts_replications_without_requests),
    TEST(a_sweep_tells_its_failures),
    TEST(a_sweep_tells_open_points),
    TEST(a_slurm_sweep_passes_on_its_options),
    TEST(figures_are_listed),
    TEST(a_figure_has_the_look_that_is_asked_for),
    TEST(figures_of_papers_are_listed),
};
SUITE_MAIN("commands", rows)

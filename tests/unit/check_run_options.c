/* The options of every run: what each is read into, its limits, and what a second set of them lays
 * over the first. Also recordings: which one a seed has, and how a result calls them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "experiments/run/interval.h"
#include "experiments/run/job_options.h"
#include "experiments/run/recordings.h"
#include "experiments/run/worker.h"
#include "sim/metrics/metric_table.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

struct values {
    struct config_options config, over;
    struct job_options work;
    struct sample_options samples;
};
#define OPTIONS struct values
static const struct command own = {
    .name = "own",
    .summary = "",
    .usage = "",
    .about = "",
    .children =
        (const struct option_child[]){
            OPTION_CHILD(config_option_table, config),
            {.table = &config_option_table, .offset = offsetof(OPTIONS, over), .prefix = "b-"},
            OPTION_CHILD(job_option_table, work),
            OPTION_CHILD(sample_option_table, samples),
            {0}},
    .bytes = sizeof(OPTIONS),
};

static struct values v;
static struct err err;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    folder_enter();
}

static void teardown(void)
{
    err_fini(&err);
    folder_leave();
}

static int parse(const char *const *words)
{
    char *argv[40] = {xstrdup("own")};
    int argc = 1;
    for (; words[argc - 1] != NULL; argc++) {
        argv[argc] = (char *)(uintptr_t)words[argc - 1]; /* nobody writes to them */
    }
    memset(&v, 0, sizeof v);
    int rc = options_parse(&own, argc, argv, &v, &err);
    free(argv[0]);
    return rc;
}
#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

static void takes(int rc)
{
    ck_assert_msg(rc == 0 && err.n == 0, "%s", err.n > 0 ? err.lines[0] : "");
}

static void refuses(const char *option, const char *value, const char *why)
{
    ck_assert_int_eq(PARSE(option, value), -EINVAL);
    ck_assert_uint_eq(err.n, 1);
    OWNED char *want = xformat("%s %s: %s", option, value, why);
    ck_assert_str_eq(err.lines[0], want);
    err_fini(&err);
}

START_TEST(what_is_not_given_has_its_default)
{
    takes(PARSE("--soc", "s"));
    ck_assert_str_eq(v.config.soc, "s");
    ck_assert_str_eq(v.config.llm, CONFIG_DEFAULT_LLM);
    ck_assert(v.config.soc_given && !v.config.llm_given);
    ck_assert(v.config.trace == NULL && v.config.workload == NULL && v.config.machine == NULL);
    ck_assert_uint_eq(v.config.seed, 1);
    ck_assert(!v.config.seed_given && v.config.n_sets == 0 && v.config.n_recordings == 0);
    ck_assert(v.config.asked.n_percents == 0 && v.config.asked.n_limits == 0);
    ck_assert(v.config.asked.reader.tokens_per_s == 0.0);
    /* A second set has none of its own. */
    ck_assert(v.over.soc == NULL && v.over.llm == NULL && v.over.seed == 0);
    ck_assert_uint_eq(v.work.how.parallel, worker_processors());
    ck_assert_double_eq(v.work.how.cpu_limit_s, 600);
    ck_assert_ptr_null(v.work.path);
    ck_assert_int_eq(sample_options_choice(&v.samples, &err), RUNNER_SAMPLES_AUTO);
}
END_TEST

START_TEST(every_option_is_read)
{
    takes(PARSE("--soc", "s", "--llm", "m", "--llm", "n=k", "--trace", "a.csv", "--trace", "b.csv",
                "--machine", "e.json", "--seed", "9007199254740992", "--ttft-slo", "0.5",
                "--tpot-slo", "0.25", "--quantile", "97.5", "--quantile", "12", "--below", "2",
                "--below", "0", "--qoe", "1.5,4", "--set", "a=b", "--set", "c=", "--workload", "w",
                "--jobs", "3", "--time-limit", "7"));
    const struct config_options *o = &v.config;
    ck_assert_str_eq(o->llm, "m,n=k");
    ck_assert(o->llm_given);
    ck_assert_str_eq(o->trace, "a.csv");
    ck_assert_uint_eq(o->n_recordings, 2);
    ck_assert_str_eq(o->recordings[1], "b.csv");
    ck_assert_str_eq(o->machine, "e.json");
    ck_assert_str_eq(o->workload, "w");
    ck_assert_uint_eq(o->seed, 9007199254740992);
    ck_assert(o->seed_given);
    ck_assert(o->ttft_slo_s == 0.5 && o->tpot_slo_s == 0.25);
    ck_assert_uint_eq(o->asked.n_percents, 2);
    ck_assert(o->asked.percent[0] == 97.5 && o->asked.percent[1] == 12);
    ck_assert_uint_eq(o->asked.n_limits, 2);
    ck_assert(o->asked.limit[0] == 2 && o->asked.limit[1] == 0);
    ck_assert(o->asked.reader.ttft_s == 1.5 && o->asked.reader.tokens_per_s == 4);
    ck_assert_uint_eq(o->n_sets, 2);
    ck_assert_str_eq(o->sets[0], "a=b");
    ck_assert_str_eq(o->sets[1], "c=");
    ck_assert_uint_eq(v.work.how.parallel, 3);
    ck_assert_double_eq(v.work.how.cpu_limit_s, 7);
}
END_TEST

START_TEST(samples_are_kept_one_way)
{
    struct sample_options sketch = {.sketch = true};
    struct sample_options exact = {.exact = true};
    struct sample_options both = {.sketch = true, .exact = true};
    ck_assert_int_eq(sample_options_choice(&sketch, &err), RUNNER_SAMPLES_SKETCH);
    ck_assert_int_eq(sample_options_choice(&exact, &err), RUNNER_SAMPLES_EXACT);
    ck_assert_uint_eq(err.n, 0);
    (void)sample_options_choice(&both, &err);
    ck_assert_str_eq(err.lines[0], "--sketch and --exact: one of them");
}
END_TEST

START_TEST(values_have_their_form)
{
    static const char set[] = "must be PATH=VALUE, as in sim.contention=none";
    refuses("--set", "a", set);
    refuses("--set", "=1", set);
    ck_assert_int_eq(PARSE("--set", "sim.a=1", "--set", "sim.a=1"), -EINVAL);
    ck_assert_str_eq(err.lines[0], "--set sim.a: given twice; it takes one value");
    err_fini(&err);
    takes(PARSE("--set", "sim.a=1", "--set", "sim.ab=1", "--set", "sim.a.b=1"));
    ck_assert_uint_eq(v.config.n_sets, 3);
    static const char quantile[] = "must be a percentage between 0 and 100, as in 97.5";
    static const char *const percents[] = {"0", "100", "-1", "x", "1x"};
    for (size_t i = 0; i < sizeof percents / sizeof percents[0]; i++) {
        refuses("--quantile", percents[i], quantile);
    }
    static const char *const limits[] = {"-1", "x", "1x", "inf", "0x1"};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        refuses("--below", limits[i], "must be a number of at least 0");
    }
    static const char qoe[] =
        "must be seconds to the first token and tokens per second, as in 1,4.8";
    static const char *const readers[] = {"1",        "1,",        "1,2,3", "-1,2", "1000001,1",
                                          "1,0.0009", "1,1000001", "nan,1", "1,2x"};
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        refuses("--qoe", readers[i], qoe);
    }
    static const char *const good[] = {"0,0.001", "1000000,1000000"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        takes(PARSE("--qoe", good[i]));
    }
}
END_TEST

/* Quantiles that every run has take no room, one named twice is kept once, and eight have room. */
START_TEST(numbers_that_are_asked_for_have_an_end)
{
    takes(PARSE("--quantile", "50", "--quantile", "90", "--quantile", "95", "--quantile", "99",
                "--quantile", "1", "--quantile", "2", "--quantile", "3", "--quantile", "4",
                "--quantile", "5", "--quantile", "6", "--quantile", "7", "--quantile", "8",
                "--quantile", "8", "--quantile", "1.0"));
    ck_assert_uint_eq(v.config.asked.n_percents, 8);
    for (uint32_t i = 0; i < 8; i++) {
        ck_assert(v.config.asked.percent[i] == i + 1);
    }
    ck_assert_int_eq(PARSE("--quantile", "1", "--quantile", "2", "--quantile", "3", "--quantile",
                           "4", "--quantile", "5", "--quantile", "6", "--quantile", "7",
                           "--quantile", "8", "--quantile", "9"),
                     -EINVAL);
    ck_assert_str_eq(err.lines[0], "--quantile 9: at most 8");
    err_fini(&err);
    ck_assert_int_eq(PARSE("--below", "1", "--below", "2", "--below", "3", "--below", "4",
                           "--below", "5", "--below", "6", "--below", "7", "--below", "8",
                           "--below", "8", "--below", "0"),
                     -EINVAL);
    ck_assert_uint_eq(err.n, 1);
    ck_assert_str_eq(err.lines[0], "--below 0: at most 8");
    ck_assert_uint_eq(v.config.asked.n_limits, 8);
}
END_TEST

/* A run also computes the quantile or limit in a metric's name. */
START_TEST(metrics_ask_for_what_they_name)
{
    struct config_options o = {.seed = 1};
    config_options_metric(&o, "reactive.ttft_s.p97.5");
    config_options_metric(&o, "reactive.ttft_s.p50");
    config_options_metric(&o, "reactive.ttft_s.below:2.5");
    config_options_metric(&o, "energy_j");
    ck_assert_uint_eq(o.asked.n_percents, 1);
    ck_assert(o.asked.percent[0] == 97.5);
    ck_assert_uint_eq(o.asked.n_limits, 1);
    ck_assert(o.asked.limit[0] == 2.5);
    ck_assert(o.asked.reader.tokens_per_s == 0.0);
    config_options_metric(&o, "reactive.qoe.mean");
    ck_assert(o.asked.reader.ttft_s == 1.0 && o.asked.reader.tokens_per_s == 4.8);
    o.asked.reader = (struct metrics_reader){3, 2};
    config_options_metric(&o, "reactive.qoe.p12");
    ck_assert(o.asked.reader.ttft_s == 3 && o.asked.reader.tokens_per_s == 2);
    ck_assert(o.asked.n_percents == 2 && o.asked.percent[1] == 12);
}
END_TEST

/* Each option of the second set alone replaces that of the first; settings are added. */
START_TEST(a_second_set_lies_over_the_first)
{
    static const struct {
        const char *words[4];
        const char *soc, *llm, *trace, *workload, *machine;
        uint64_t seed;
        double ttft_s, tpot_s;
        uint32_t n_percents, n_limits, n_sets;
        double speed;
    } cases[] = {
        {{"--b-soc", "S"}, "S", "m", NULL, "w", "e", 5, 1, 2, 1, 1, 1, 4},
        {{"--b-llm", "M"}, "s", "M", NULL, "w", "e", 5, 1, 2, 1, 1, 1, 4},
        {{"--b-trace", "t.csv"}, "s", "m", "t.csv", NULL, "e", 5, 1, 2, 1, 1, 1, 4},
        {{"--b-workload", "W"}, "s", "m", NULL, "W", "e", 5, 1, 2, 1, 1, 1, 4},
        {{"--b-machine", "E"}, "s", "m", NULL, "w", "E", 5, 1, 2, 1, 1, 1, 4},
        {{"--b-seed", "0"}, "s", "m", NULL, "w", "e", 0, 1, 2, 1, 1, 1, 4},
        {{"--b-ttft-slo", "7"}, "s", "m", NULL, "w", "e", 5, 7, 2, 1, 1, 1, 4},
        {{"--b-tpot-slo", "8"}, "s", "m", NULL, "w", "e", 5, 1, 8, 1, 1, 1, 4},
        {{"--b-quantile", "3"}, "s", "m", NULL, "w", "e", 5, 1, 2, 2, 1, 1, 4},
        {{"--b-below", "3"}, "s", "m", NULL, "w", "e", 5, 1, 2, 1, 2, 1, 4},
        {{"--b-qoe", "1,9"}, "s", "m", NULL, "w", "e", 5, 1, 2, 1, 1, 1, 9},
        {{"--b-set", "c=d"}, "s", "m", NULL, "w", "e", 5, 1, 2, 1, 1, 2, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        takes(PARSE("--soc", "s", "--llm", "m", "--workload", "w", "--machine", "e", "--seed", "5",
                    "--ttft-slo", "1", "--tpot-slo", "2", "--quantile", "12", "--below", "6",
                    "--qoe", "3,4", "--set", "a=b", cases[i].words[0], cases[i].words[1]));
        struct config_options *o = &v.config;
        config_options_overlay(o, &v.over);
        ck_assert_str_eq(o->soc, cases[i].soc);
        ck_assert_str_eq(o->llm, cases[i].llm);
        ck_assert(o->llm_given);
        ck_assert_str_eq(o->trace != NULL ? o->trace : "", cases[i].trace ? cases[i].trace : "");
        ck_assert_str_eq(o->workload != NULL ? o->workload : "",
                         cases[i].workload ? cases[i].workload : "");
        ck_assert_str_eq(o->machine, cases[i].machine);
        ck_assert_uint_eq(o->seed, cases[i].seed);
        ck_assert(o->ttft_slo_s == cases[i].ttft_s && o->tpot_slo_s == cases[i].tpot_s);
        ck_assert_uint_eq(o->asked.n_percents, cases[i].n_percents);
        ck_assert(o->asked.percent[cases[i].n_percents - 1] == (cases[i].n_percents > 1 ? 3 : 12));
        ck_assert_uint_eq(o->asked.n_limits, cases[i].n_limits);
        ck_assert(o->asked.limit[cases[i].n_limits - 1] == (cases[i].n_limits > 1 ? 3 : 6));
        ck_assert(o->asked.reader.tokens_per_s == cases[i].speed);
        ck_assert_uint_eq(o->n_sets, cases[i].n_sets);
        ck_assert_str_eq(o->sets[0], "a=b");
        ck_assert_str_eq(o->sets[cases[i].n_sets - 1], cases[i].n_sets > 1 ? "c=d" : "a=b");
        if (cases[i].trace != NULL) {
            ck_assert_uint_eq(o->n_recordings, 1);
            ck_assert_ptr_eq(o->trace, o->recordings[0]);
        }
    }
}
END_TEST

START_TEST(a_setting_gives_way_to_that_of_the_same_path)
{
    takes(PARSE("--set", "a=b", "--set", "ab=b", "--b-set", "a=z", "--b-set", "c=d"));
    config_options_overlay(&v.config, &v.over);
    static const char *const both[] = {"a=z", "ab=b", "c=d"};
    ck_assert_uint_eq(v.config.n_sets, 3);
    for (int i = 0; i < 3; i++) {
        ck_assert_str_eq(v.config.sets[i], both[i]);
    }
}
END_TEST

/* Recordings of the first give way to all of the second. */
START_TEST(recordings_are_replaced_as_a_whole)
{
    takes(PARSE("--trace", "a.csv", "--trace", "b.csv", "--trace", "c.csv", "--b-trace", "d.csv",
                "--b-trace", "e.csv"));
    config_options_overlay(&v.config, &v.over);
    ck_assert_uint_eq(v.config.n_recordings, 2);
    ck_assert_str_eq(v.config.recordings[0], "d.csv");
    ck_assert_str_eq(v.config.recordings[1], "e.csv");
    ck_assert_str_eq(v.config.trace, "d.csv");
}
END_TEST

/* ---- recordings ---- */

static void recording(const char *name, uint32_t input)
{
    OWNED char *text =
        xformat("# xpusim-trace v1\nrequest_id,session_id,turn,class,arrival_s,gap_s,input_tokens,"
                "output_tokens,prefix_tokens\n0,0,0,proactive,0,,%u,10,0\n",
                input);
    folder_put(name, text);
}

static uint32_t read_by(const struct config_options *o, uint64_t seed)
{
    SCOPED(trace_fini) struct trace t = {0};
    ck_assert_int_eq(recordings_read(o, seed, &t, &err), 0);
    return t.rows[0].input_tokens;
}

/* A folder gives its .csv files, and a pattern its own, by name. A file that is there has its own
 * name, with any letters. */
START_TEST(recordings_are_files_folders_and_patterns)
{
    ck_assert_int_eq(mkdir("d", 0777), 0);
    recording("d/b.csv", 22);
    recording("d/a.csv", 11);
    recording("d/c.txt", 33);
    recording("x[1].csv", 44);
    takes(PARSE("--trace", "d", "--trace", "d/c.*", "--trace", "x[1].csv", "--trace", "missing"));
    static const char *const want[] = {"d/a.csv", "d/b.csv", "d/c.txt", "x[1].csv", "missing"};
    ck_assert_uint_eq(v.config.n_recordings, 5);
    for (int i = 0; i < 5; i++) {
        ck_assert_str_eq(v.config.recordings[i], want[i]);
    }
    /* A replication has its own, and any other seed one of them. */
    v.config.seed = 9;
    v.config.n_recordings = 4;
    for (uint32_t k = 0; k < 4; k++) {
        ck_assert_uint_eq(read_by(&v.config, config_seed(9, k)), 11 * (k + 1));
    }
    ck_assert_uint_eq(read_by(&v.config, 4), 11);
    ck_assert_uint_eq(read_by(&v.config, 7), 44);
    v.config.trace = "d/b.csv"; /* not of the command line */
    ck_assert_uint_eq(read_by(&v.config, 9), 22);
    v.config.n_recordings = 5;
    ck_assert_int_eq(mkdir("empty", 0777), 0);
    ck_assert_int_eq(PARSE("--trace", "empty"), -EINVAL);
    ck_assert_str_eq(err.lines[0], "--trace empty: the folder has no .csv file");
    err_fini(&err);
    ck_assert_int_eq(PARSE("--trace", "no*"), -EINVAL);
    ck_assert_str_eq(err.lines[0], "--trace no*: no file matches");
}
END_TEST

START_TEST(recordings_are_called_what_they_are)
{
    static const struct {
        struct config_options o;
        const char *sample, *note;
        uint32_t of_ten;
    } cases[] = {
        {{.workload = "w"}, "generated", NULL, 10},
        {{.trace = "t"},
         "one recording",
         "one recorded trace: one run per policy, and the result holds for this trace. Give "
         "several (--trace repeated, a folder, a pattern), or redraw its sessions, or the jobs "
         "of a request graph (compare --resample)",
         1},
        {{.trace = "t", .n_recordings = 3}, "recordings", "3 recordings, one per replication", 3},
        {{.trace = "t", .n_recordings = 1, .resample = true},
         "redrawn sessions",
         "sessions redrawn from one recording (block bootstrap): intervals are as good as the "
         "recording is typical",
         10},
        {{.trace = "t", .n_recordings = 1, .resample = true, .resample_jobs = true},
         "redrawn jobs",
         "jobs redrawn from one recording (block bootstrap): intervals are as good as the "
         "recording is typical",
         10}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_str_eq(recordings_sample(&cases[i].o), cases[i].sample);
        const char *note = recordings_note(&cases[i].o);
        ck_assert_str_eq(note != NULL ? note : "", cases[i].note != NULL ? cases[i].note : "");
        ck_assert_uint_eq(recordings_replications(&cases[i].o, 10), cases[i].of_ten);
        ck_assert_uint_eq(recordings_replications(&cases[i].o, 1), 1);
    }
}
END_TEST

/* ---- a store around the work ---- */

static struct job_options *inside;
static int asked_status;

static int work(void *ctx, struct err *e)
{
    (void)e;
    ck_assert_ptr_eq(ctx, &asked_status);
    ck_assert_int_eq(inside->how.store != NULL, inside->path != NULL);
    return asked_status;
}

START_TEST(a_store_is_open_while_it_works)
{
    for (int k = 0; k < 4; k++) {
        struct job_options o = {.path = k < 2 ? "s.db" : NULL};
        inside = &o;
        asked_status = 7 + k;
        struct hearing h;
        hearing_begin(&h);
        int status = job_options_work(&o, k % 2 == 1, work, &asked_status, &err);
        SCOPED(said_fini) struct said s = hearing_end(&h);
        ck_assert_int_eq(status, 7 + k);
        said_is(&s, 0, "", k == 0 ? "xpusim: s.db: 0 runs added, 0 found there\n" : "");
        ck_assert_ptr_null(o.how.store);
        ck_assert(!o.how.progress);
    }
    struct job_options bad = {.path = "no/s.db"};
    ck_assert_int_eq(job_options_work(&bad, true, work, &asked_status, &err), -EINVAL);
    ck_assert_uint_eq(err.n, 1);
}
END_TEST

/* ---- intervals as texts ---- */

START_TEST(intervals_say_what_they_rest_on)
{
    struct conformal_interval x = {.low_factor = 0.5, .high_factor = 1.75, .n = 0, .pool = "p"};
    OWNED char *none = interval_text(&x);
    ck_assert_str_eq(none, "none: nothing like it was measured");
    x.n = 12;
    x.left = CONFORMAL_SOC;
    x.distance = log(3);
    OWNED char *left = interval_text(&x);
    OWNED char *want = xformat("x 0.50 to 1.75 (%s not measured: 12 left-out rows of p; nearest "
                               "measured x 3 away)",
                               conformal_left_names[CONFORMAL_SOC]);
    ck_assert_str_eq(left, want);
    x.pool = CONFORMAL_MEASURED;
    OWNED char *measured = interval_text(&x);
    ck_assert_str_eq(measured, "x 0.50 to 1.75 (12 rows measured on this machine)");
}
END_TEST

/* A recording's session comes after 100 s, and its next turn 50 s after the answer. At twice the
 * rate only the first turn comes sooner. Five times the rate and twice as dense is ten times for
 * it, as it is at ten times the rate. But these are two traces. */
START_TEST(a_rate_leaves_the_gaps_of_a_recording)
{
    static const struct {
        double rate, dense, first_s, gap_s;
    } all[] = {{2, 1, 50, 50}, {5, 2, 10, 25}, {10, 1, 10, 50}};
    uint64_t hash[3];
    struct config_options o = config_options_default();
    o.trace = "t.csv";
    folder_put("t.csv", "# xpusim-trace v1\n"
                        "request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,"
                        "output_tokens,prefix_tokens\n"
                        "0,0,0,reactive,100,,8,1,0\n"
                        "1,0,1,reactive,,50,16,1,0\n");
    for (int i = 0; i < 3; i++) {
        struct trace t;
        struct config_arrivals a = {all[i].rate, all[i].dense, false};
        ck_assert_int_eq(config_trace(&o, 5, a, &t, &err), 0);
        ck_assert_int_eq(t.rows[0].arrival_ns, (int64_t)all[i].first_s * NS_PER_S);
        ck_assert_int_eq(t.rows[1].arrival_ns, (int64_t)all[i].gap_s * NS_PER_S);
        hash[i] = t.hash;
        trace_fini(&t);
    }
    ck_assert(hash[0] != hash[1] && hash[1] != hash[2] && hash[2] != hash[0]);
}
END_TEST

static const struct suite_row rows[] = {
    CASE("options", .setup = setup, .teardown = teardown),
    TEST(what_is_not_given_has_its_default),
    TEST(every_option_is_read),
    TEST(samples_are_kept_one_way),
    TEST(values_have_their_form),
    TEST(numbers_that_are_asked_for_have_an_end),
    TEST(metrics_ask_for_what_they_name),
    TEST(a_second_set_lies_over_the_first),
    TEST(a_setting_gives_way_to_that_of_the_same_path),
    TEST(recordings_are_replaced_as_a_whole),
    TEST(recordings_are_files_folders_and_patterns),
    TEST(recordings_are_called_what_they_are),
    TEST(a_rate_leaves_the_gaps_of_a_recording),
    TEST(a_store_is_open_while_it_works),
    TEST(intervals_say_what_they_rest_on),
};
SUITE_MAIN("options of a run", rows)

/* send-in with commands that are this program in disguise: which run, with what words, on which
 * devices, what is said, what goes into the archive, and what a further call does. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/machine/send_impl.h"
#include "sim/base/datadir.h"
#include "sim/base/input.h"
#include "sim/base/json.h"
#include "sim/base/tar.h"
#include "sim/base/version.h"
#include "tests/helpers/madeengines.h"
#include "tests/helpers/said.h"
#include "tests/helpers/suite.h"

#define STUB "XPUSIM_CHECK_SEND" /* the folder of the file "ends", and of the log */

/* A step is a process that becomes this program again. Here it is no test program but what the
 * file "ends" says: a line "WORD EXIT" for commands with that word (0 without a line), or "WORD
 * EXIT nothing" for one that leaves no file. */
__attribute__((constructor)) static void disguise(int argc, char **argv)
{
    const char *at = getenv(STUB);
    if (at == NULL || argc < 2 || strncmp(argv[1], "tests/", 6) == 0) {
        return;
    }
    char line[2048];
    size_t n = 0;
    const char *makes = NULL;
    for (int i = 1; i < argc; i++) {
        n += (size_t)snprintf(line + n, sizeof line - n, "%s%s", i > 1 ? " " : "", argv[i]);
        makes = strcmp(argv[i], "-o") == 0 && i + 1 < argc ? argv[i + 1] : makes;
    }
    char path[512];
    (void)snprintf(path, sizeof path, "%s/log", at);
    FILE *log = fopen(path, "ab");
    (void)fprintf(log, "%s\n", line);
    (void)fclose(log);
    (void)snprintf(path, sizeof path, "%s/ends", at);
    FILE *ends = fopen(path, "rb");
    char word[64];
    char rest[64];
    int code = 0;
    bool nothing = false;
    for (int status; ends != NULL && fgets(rest, sizeof rest, ends) != NULL;) {
        char what[16] = "";
        if (sscanf(rest, "%63s %d %15s", word, &status, what) >= 2 && strstr(line, word) != NULL) {
            code = status;
            nothing = what[0] != '\0';
        }
    }
    if (!nothing) {
        FILE *to = makes != NULL ? fopen(makes, "wb") : stdout;
        bool probe = strstr(line, "--probe") != NULL;
        (void)fprintf(to,
                      probe ? "{\"kernels\": [{\"result\": \"ok\"}, {\"result\": \"%s\"}]}" : "%s",
                      !probe      ? line
                      : code == 0 ? "ok"
                                  : "no");
        (void)fclose(to);
        if (makes != NULL && strstr(line, "--calibrate") != NULL) {
            (void)printf("said while calibrating\n");
            (void)fflush(stdout);
        }
    }
    if (code > 128) {
        (void)raise(code - 128);
    }
    _exit(code);
}

static char folder[] = "/tmp/xpusim-check-send-XXXXXX";
static char *archive, *partial;
static struct err errors;
static struct send_options options;

static char *in(const char *name)
{
    return xkept(xformat("%s/%s", folder, name));
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    ck_assert(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void setup(void)
{
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    errors = (struct err)ERR_INIT;
    ck_assert_int_eq(mkdir(in("root"), 0700), 0);
    ck_assert_int_eq(mkdir(in("engines"), 0700), 0);
    ck_assert_int_eq(mkdir(in("at"), 0700), 0);
    (void)setenv(STUB, in("at"), 1);
    (void)setenv("XPUSIM_ROOT", in("root"), 1);
    (void)setenv("XPUSIM_ENGINES", in("engines"), 1);
    (void)setenv("HOME", "/srv/the-owners", 1);
    write_file(in("at/ends"), "");
    archive = in("m.tar.gz");
    partial = in("m.tar.gz.partial");
    options = (struct send_options){.out = archive, .size = "tiny"};
}

static void teardown(void)
{
    (void)unsetenv(STUB);
    OWNED char *command = xformat("rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
    err_fini(&errors);
}

static char *text_at(const char *path)
{
    char *text = input_text(path, 1 << 20, &errors);
    ck_assert_msg(text != NULL, "%s: %s", path, errors.n > 0 ? errors.lines[0] : "");
    return xkept(text);
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Runs it: stdout and stderr are these, and the commands; the status. */
static int run(const char *out, const char *err, const char *log)
{
    char *is_out;
    char *is_err;
    said_catch();
    int status = send_in(&options, &errors);
    said_caught(&is_out, &is_err);
    ck_assert_msg(errors.n == 0, "%s", errors.n > 0 ? errors.lines[0] : "");
    ck_assert_str_eq(is_err, err);
    ck_assert_str_eq(is_out, out);
    ck_assert_str_eq(is_there(in("at/log")) ? text_at(in("at/log")) : "", log);
    (void)remove(in("at/log"));
    free(is_out);
    free(is_err);
    return status;
}

static char *done(int files)
{
    return xkept(xformat("%s: %d files; `xpusim new-soc NAME --from %s` makes a machine of it\n",
                         archive, files, archive));
}

#define MEASURE                                                                                    \
    "measure --name this-machine --size tiny -o rows.csv --repetitions 1 --retries 0 --pool-mb "   \
    "64 --window-s 0.002"
#define PAIRS                                                                                      \
    "measure --name this-machine --size tiny -o pairs.csv --repetitions 1 --retries 0 --pool-mb "  \
    "64 --window-s 0.002 --pairs"

/* name=exit, in their order, as about.json has them; seconds are numbers. */
static void is_packed(const char *members, const char *steps)
{
    struct tar t = {0};
    ck_assert_int_eq(tar_read(&t, archive, 1 << 24, &errors), 0);
    SCOPED(text_fini) struct text names = {0};
    for (size_t i = 0; i < t.n; i++) {
        text_item(&names, " ", t.v[i].name);
    }
    ck_assert_str_eq(text_end(&names), members);
    SCOPED(json_drop) cJSON *about = cJSON_Parse(tar_find(&t, "about.json")->data);
    ck_assert_double_eq(cJSON_GetObjectItem(about, "format")->valuedouble, 1);
    ck_assert_str_eq(cJSON_GetObjectItem(about, "made_by")->valuestring,
                     "xpusim send-in " XPUSIM_VERSION);
    ck_assert_str_eq(cJSON_GetObjectItem(about, "size")->valuestring, options.size);
    struct facts facts;
    facts_read(&facts);
    SCOPED(json_drop) cJSON *want = facts_json(&facts);
    ck_assert(cJSON_Compare(cJSON_GetObjectItem(about, "facts"), want, true));
    for (size_t i = 0; i < facts.n; i++) {
        free(facts.v[i].text);
    }
    free(facts.v);
    for (size_t i = 0; i < sizeof facts.words / sizeof facts.words[0]; i++) {
        free(facts.words[i]);
    }
    SCOPED(text_fini) struct text ends = {0};
    const cJSON *s;
    cJSON_ArrayForEach (s, cJSON_GetObjectItem(about, "steps")) {
        text_format(&ends, "%s%s=%g", ends.n > 0 ? " " : "",
                    cJSON_GetObjectItem(s, "step")->valuestring,
                    cJSON_GetObjectItem(s, "exit")->valuedouble);
        double seconds = cJSON_GetObjectItem(s, "seconds")->valuedouble;
        ck_assert(seconds >= 0.0 && seconds < 60.0);
    }
    ck_assert_str_eq(text_end(&ends), steps);
    tar_fini(&t);
}

/* ---- a machine without engines ---- */

START_TEST(each_step_runs_and_goes_in)
{
    ck_assert_int_eq(run(done(3),
                         "xpusim: 1 of 2: measure; about 2 min are left\n"
                         "xpusim: 2 of 2: pairs; about 1 min are left\n",
                         MEASURE "\n" PAIRS "\n"),
                     0);
    is_packed("about.json rows.csv pairs.csv", "measure=0 pairs=0");
    ck_assert(!is_there(partial));
    struct tar t = {0};
    ck_assert_int_eq(tar_read(&t, archive, 1 << 24, &errors), 0);
    ck_assert_str_eq(tar_find(&t, "rows.csv")->data, MEASURE);
    ck_assert_str_eq(tar_find(&t, "pairs.csv")->data, PAIRS);
    tar_fini(&t);
}
END_TEST

/* Longer for more: minutes of a step, and no words that a rehearsal alone needs. */
START_TEST(sizes_differ)
{
    static const char *const sizes[] = {"small", "full"};
    for (int i = 0; i < 2; i++) {
        options.size = sizes[i];
        OWNED char *log = xformat("measure --name this-machine --size %s -o rows.csv\n"
                                  "measure --name this-machine --size %s -o pairs.csv --pairs\n",
                                  sizes[i], sizes[i]);
        ck_assert_int_eq(run(done(3),
                             "xpusim: 1 of 2: measure; about 15 min are left\n"
                             "xpusim: 2 of 2: pairs; about 5 min are left\n",
                             log),
                         0);
        (void)remove(archive);
    }
    options.shown.quiet = true;
    options.size = "tiny";
    ck_assert_int_eq(run(done(3), "", MEASURE "\n" PAIRS "\n"), 0);
}
END_TEST

/* 1: it ran and says that something failed, which is a result. More than that is none, and neither
 * is an exit of 0 that leaves nothing; the other steps run in any case. */
START_TEST(a_step_that_fails_costs_itself)
{
    static const struct {
        const char *ends, *said, *members, *steps;
        int status, files;
    } all[] = {
        {"rows.csv 1\n", "", "about.json rows.csv pairs.csv", "measure=1 pairs=0", 1, 3},
        {"rows.csv 1 nothing\n", "xpusim: measure failed (exit 1); the others continue\n",
         "about.json pairs.csv", "measure=1 pairs=0", 1, 2},
        {"rows.csv 0 nothing\n", "xpusim: measure failed (exit 1); the others continue\n",
         "about.json pairs.csv", "measure=1 pairs=0", 1, 2},
        {"rows.csv 2\n", "xpusim: measure failed (exit 2); the others continue\n",
         "about.json rows.csv pairs.csv", "measure=2 pairs=0", 1, 3},
        {"rows.csv 137 nothing\n", "xpusim: measure failed (exit 137); the others continue\n",
         "about.json pairs.csv", "measure=137 pairs=0", 1, 2},
        {"this-machine 7 nothing\n", "xpusim: measure failed (exit 7); the others continue\n",
         "about.json", "measure=7 pairs=7", 1, 1},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        write_file(in("at/ends"), all[i].ends);
        bool both = strstr(all[i].ends, "this") != NULL;
        OWNED char *said = xformat(
            "xpusim: 1 of 2: measure; about 2 min are left\n%sxpusim: 2 of 2: pairs; about 1 min "
            "are left\n%s",
            all[i].said, both ? "xpusim: pairs failed (exit 7); the others continue\n" : "");
        ck_assert_int_eq(run(done(all[i].files), said, MEASURE "\n" PAIRS "\n"), all[i].status);
        is_packed(all[i].members, all[i].steps);
        ck_assert(!is_there(partial));
        (void)remove(archive);
    }
}
END_TEST

/* The folder of an earlier call: what is made is not made again, and its end is remembered. */
START_TEST(a_further_call_goes_on)
{
    ck_assert_int_eq(mkdir(partial, 0700), 0);
    write_file(in("m.tar.gz.partial/plan"), "xpusim " XPUSIM_VERSION ", size tiny, devices \n");
    write_file(in("m.tar.gz.partial/rows.csv"), "# rows\nr /srv/the-owners/x\n");
    write_file(in("m.tar.gz.partial/done"),
               "measurement 5 1.0\npairs 4 2.5\nmeasure 3 1.0\nmeasure 1 12.5\n");
    ck_assert_int_eq(run(done(3),
                         "xpusim: 1 of 2: measure is done\n"
                         "xpusim: 2 of 2: pairs; about 1 min are left\n",
                         PAIRS "\n"),
                     1);
    struct tar t = {0};
    ck_assert_int_eq(tar_read(&t, archive, 1 << 24, &errors), 0);
    ck_assert_str_eq(tar_find(&t, "rows.csv")->data, "# rows\nr ~/x\n");
    SCOPED(json_drop) cJSON *about = cJSON_Parse(tar_find(&t, "about.json")->data);
    const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItem(about, "steps"), 0);
    ck_assert_double_eq(cJSON_GetObjectItem(first, "seconds")->valuedouble, 12.5);
    is_packed("about.json rows.csv pairs.csv", "measure=1 pairs=0");
    ck_assert(!is_there(partial));
    tar_fini(&t);
}
END_TEST

/* A call that is cut off leaves: the plan, the traces (ten lines of each in a rehearsal), a line
 * for each step that ended. */
START_TEST(the_folder_holds_what_a_further_call_needs)
{
    /* the archive cannot be written: it is a folder */
    ck_assert_int_eq(mkdir(archive, 0700), 0);
    write_file(in("at/ends"), "pairs.csv 1\n");
    said_catch();
    int status = send_in(&options, &errors);
    said_caught(NULL, NULL);
    ck_assert_int_eq(status, 2);
    ck_assert_uint_gt(errors.n, 0);
    ck_assert_str_eq(text_at(in("m.tar.gz.partial/plan")),
                     "xpusim " XPUSIM_VERSION ", size tiny, devices \n");
    const char *ends = text_at(in("m.tar.gz.partial/done"));
    double a;
    double b;
    int read = 0;
    ck_assert_int_eq(sscanf(ends, "measure 0 %lf\npairs 1 %lf\n%n", &a, &b, &read), 2);
    ck_assert_uint_eq((size_t)read, strlen(ends));
    static const char *const traces[] = {"calibrate.csv", "held-out-1.csv", "held-out-2.csv",
                                         "sessions.csv"};
    for (int i = 0; i < 4; i++) {
        ck_assert_str_eq(send_traces[i], traces[i]);
        OWNED char *name = xformat("m.tar.gz.partial/%s", traces[i]);
        OWNED char *from = xformat("traces/drive/%s", traces[i]);
        char *whole = text_at(datadir_path(from));
        char *at = whole;
        for (int k = 0; k < 10; k++) {
            at = strchr(at, '\n') + 1;
        }
        *at = '\0';
        ck_assert_str_eq(text_at(in(name)), whole);
    }
    /* Another size is another plan; the whole traces are there for it. */
    err_fini(&errors);
    errors = (struct err)ERR_INIT;
    options.size = "full";
    ck_assert_int_eq(send_in(&options, &errors), 2);
    OWNED char *want = xformat("%s: is of another send-in (xpusim " XPUSIM_VERSION
                               ", size tiny, devices ); remove it, or give another -o",
                               partial);
    ck_assert_str_eq(errors.lines[0], want);
    (void)remove(in("at/log"));
    err_fini(&errors);
    errors = (struct err)ERR_INIT;
    OWNED char *command = xformat("rm -rf %s", partial);
    ck_assert_int_eq(system(command), 0);
    said_catch();
    ck_assert_int_eq(send_in(&options, &errors), 2);
    said_caught(NULL, NULL);
    for (int i = 0; i < 4; i++) {
        OWNED char *name = xformat("m.tar.gz.partial/%s", traces[i]);
        OWNED char *from = xformat("traces/drive/%s", traces[i]);
        ck_assert_str_eq(text_at(in(name)), text_at(datadir_path(from)));
    }
}
END_TEST

START_TEST(a_folder_that_cannot_be_made_is_named)
{
    options.out = in("nowhere/m.tar.gz");
    ck_assert_int_eq(send_in(&options, &errors), 2);
    OWNED char *want =
        xformat("%s.partial: cannot make this folder: %s", options.out, strerror(ENOENT));
    ck_assert_uint_ge(errors.n, 1);
    ck_assert_str_eq(errors.lines[0], want);
    ck_assert(!is_there(in("at/log")));
}
END_TEST

/* ---- machines with engines ---- */

/* The plan of these devices: steps as "NAME>FILE: words", those of the devices after a bar. */
static void is_plan(const char *devices, const char *size, const char *want)
{
    (void)setenv("CHECK_DEVICES", devices, 1);
    options.size = size;
    struct sending *s = xcalloc(1, sizeof *s);
    *s = (struct sending){.o = &options, .tiny = strcmp(size, "tiny") == 0, .e = &errors};
    send_plan(s);
    SCOPED(text_fini) struct text t = {0};
    for (size_t i = 0; i < s->n; i++) {
        struct step *k = &s->steps[i];
        ck_assert_int_eq(k->status, -1);
        text_format(&t, "%s>%s%s%s %g:", k->name, k->makes, k->to != NULL ? "<" : "",
                    k->to != NULL ? k->to : "", k->minutes);
        size_t n = k->n_args;
        if (k->drives) {
            send_add_devices(s, k);
        }
        for (size_t j = 0; j < k->n_args; j++) {
            text_format(&t, "%s %s", j == n ? " |" : "", k->args[j]);
            free(k->args[j]);
        }
        text_string(&t, "\n");
    }
    ck_assert_str_eq(text_end(&t), want);
    free(s->devices);
    free(s);
}

#define TINY " --repetitions 1 --retries 0 --pool-mb 64 --window-s "
#define ROWS(size, m)                                                                              \
    "measure>rows.csv " m ": measure --name this-machine --size " size " -o rows.csv"
#define TWO(size, m)                                                                               \
    "pairs>pairs.csv " m ": measure --name this-machine --size " size " -o pairs.csv"
#define COMPARE(n, m, policies, repeat, trace, at)                                                 \
    "compare-" n ">compare-" n ".json<compare-" n ".json " m                                       \
    ": drive --compare --json --soc soc.json --policy fcfs --policy agent-xpu-v2" policies         \
    " --repeat " repeat " --trace " trace " | " at "\n"
#define DRIVES(m, policies, repeat, at)                                                            \
    "calibrate>soc.json<calibrate.txt " m                                                          \
    ": drive --calibrate calibrate.csv -o soc.json --repeat " repeat " | " at                      \
    "\n" COMPARE("1", m, policies, repeat, "held-out-1.csv", at)                                   \
        COMPARE("2", m, policies, repeat, "held-out-2.csv", at)                                    \
            COMPARE("3", m, policies, repeat, "sessions.csv", at)
#define PROBE(name, device)                                                                        \
    "probe-" name ">probe-" name ".json<probe-" name ".json 1: drive --json --probe " device "\n"
#define MORE " --policy openvino-cb --policy pd-static"

START_TEST(a_plan_is_of_the_devices_that_there_are)
{
    if (!madeengines_make(in("engines"), true, false)) {
        return;
    }
    /* an NPU and an iGPU work together, whoever else is there */
    is_plan("CPU GPU NPU", "tiny",
            PROBE("npu", "NPU") PROBE("gpu", "GPU") ROWS("tiny", "1") TINY
            "0.002 --backend openvino --devices CPU,GPU,NPU\n" TWO("tiny", "1") TINY
            "0.005 --pairs --backend openvino --devices NPU,GPU\n" DRIVES(
                "1", "", "1", "--engine openvino --devices NPU,GPU --llm random-256 --clock cpu"));
    is_plan(
        "CPU GPU NPU", "small",
        PROBE("npu", "NPU") PROBE("gpu", "GPU")
            ROWS("small", "10") " --backend openvino --devices CPU,GPU,NPU\n" TWO(
                "small",
                "5") " --pairs --backend openvino --devices NPU,GPU\n" DRIVES("2", MORE, "2",
                                                                              "--engine openvino "
                                                                              "--devices NPU,GPU "
                                                                              "--llm random-1024"));
    /* the first of each kind; a card is no iGPU */
    is_plan("GPU.1 NPU.0 GPU.0 NPU.1", "full",
            PROBE("npu", "NPU.0") PROBE("gpu", "GPU.1")
                ROWS("full", "10") " --backend openvino --devices "
                                   "GPU.1,NPU.0,GPU.0,NPU.1\n" TWO(
                                       "full", "5") " --pairs --backend openvino --devices "
                                                    "NPU.0,GPU.1\n" DRIVES("2", MORE, "2",
                                                                           "--engine openvino "
                                                                           "--devices NPU.0,GPU.1 "
                                                                           "--llm random-1024"));
    is_plan("CPU D", "tiny",
            ROWS("tiny", "1") TINY "0.002 --backend openvino --devices CPU,D\n" TWO("tiny", "1")
                TINY "0.005 --pairs --backend openvino --devices CPU,D\n" DRIVES(
                    "1", "", "1", "--engine openvino --llm random-256 --clock cpu"));
    is_plan(
        "CPU", "tiny",
        ROWS("tiny", "1") TINY "0.002 --backend openvino --devices CPU\n" TWO("tiny", "1") TINY
        "0.002 --pairs\n" DRIVES("1", "", "1", "--engine openvino --llm random-256 --clock cpu"));
    is_plan("NPU", "small",
            PROBE("npu", "NPU") ROWS("small", "10") " --backend openvino --devices NPU\n" TWO(
                "small", "5") " --pairs\n" DRIVES("2", MORE, "2",
                                                  "--engine openvino --devices NPU,CPU --llm "
                                                  "random-1024"));
    is_plan("GPU CPU", "small",
            PROBE("gpu", "GPU") ROWS("small", "10") " --backend openvino --devices GPU,CPU\n" TWO(
                "small",
                "5") " --pairs --backend openvino --devices GPU,CPU\n" DRIVES("2", MORE, "2",
                                                                              "--engine openvino "
                                                                              "--devices CPU,GPU "
                                                                              "--llm random-1024"));
    is_plan("", "small", ROWS("small", "10") "\n" TWO("small", "5") " --pairs\n");
}
END_TEST

START_TEST(ggml_alone_drives_without_saying_so)
{
    if (!madeengines_make(in("engines"), false, true)) {
        return;
    }
    is_plan("CPU GPU NPU", "small",
            ROWS("small", "10") "\n" TWO("small", "5") " --pairs\n" DRIVES("2", MORE, "2",
                                                                           "--llm random-1024"));
}
END_TEST

/* A device whose probe fails is not driven: the processor is in its place. The words of the
 * calibration go to a file of their own, which is not sent. */
START_TEST(a_device_that_fails_its_probe_is_not_driven)
{
    if (!madeengines_make(in("engines"), true, true)) {
        return;
    }
    (void)setenv("CHECK_DEVICES", "CPU GPU NPU", 1);
    static const struct {
        const char *ends, *at;
        int npu, gpu;
    } all[] = {
        {"NPU.at.all 0\n", "--engine openvino --devices NPU,GPU ", 0, 0},
        {"--probe 1\ncsv 0\n", "", 1, 1},
        {"probe 0\nNPU 1\ncsv 0\n", "--engine openvino --devices CPU,GPU ", 1, 0},
        {"probe 0\nGPU 1\ncsv 0\n", "--engine openvino --devices NPU,CPU ", 0, 1},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        write_file(in("at/ends"), all[i].ends);
        said_catch();
        int status = send_in(&options, &errors);
        char *said;
        said_caught(NULL, &said);
        ck_assert_int_eq(status, all[i].npu + all[i].gpu > 0 ? 1 : 0);
        ck_assert_str_eq(said, "xpusim: 1 of 8: probe-npu; about 8 min are left\n"
                               "xpusim: 2 of 8: probe-gpu; about 7 min are left\n"
                               "xpusim: 3 of 8: measure; about 6 min are left\n"
                               "xpusim: 4 of 8: pairs; about 5 min are left\n"
                               "xpusim: 5 of 8: calibrate; about 4 min are left\n"
                               "xpusim: 6 of 8: compare-1; about 3 min are left\n"
                               "xpusim: 7 of 8: compare-2; about 2 min are left\n"
                               "xpusim: 8 of 8: compare-3; about 1 min are left\n");
        free(said);
        OWNED char *ends = xformat("probe-npu=%d probe-gpu=%d measure=0 pairs=0 calibrate=0 "
                                   "compare-1=0 compare-2=0 compare-3=0",
                                   all[i].npu, all[i].gpu);
        is_packed("about.json probe-npu.json probe-gpu.json rows.csv pairs.csv soc.json "
                  "compare-1.json compare-2.json compare-3.json",
                  ends);
        struct tar t = {0};
        ck_assert_int_eq(tar_read(&t, archive, 1 << 24, &errors), 0);
        OWNED char *calibrated =
            xformat("drive --calibrate calibrate.csv -o soc.json --repeat 1 %s--llm random-256 "
                    "--clock cpu",
                    all[i].at);
        OWNED char *compared =
            xformat("drive --compare --json --soc soc.json --policy fcfs --policy agent-xpu-v2 "
                    "--repeat 1 --trace sessions.csv %s--llm random-256 --clock cpu",
                    all[i].at);
        ck_assert_str_eq(tar_find(&t, "soc.json")->data, calibrated);
        ck_assert_str_eq(tar_find(&t, "compare-3.json")->data, compared);
        tar_fini(&t);
        ck_assert(!is_there(partial));
        (void)remove(archive);
        (void)remove(in("at/log"));
    }
}
END_TEST

/* ---- a dry run ---- */

START_TEST(a_dry_run_says_what_would_be)
{
    options.dry = true;
    char *out;
    said_catch();
    int status = send_in(&options, &errors);
    said_caught(&out, NULL);
    ck_assert_int_eq(status, 0);
    ck_assert(!is_there(partial) && !is_there(archive) && !is_there(in("at/log")));
    OWNED char *head = xformat("%s would have:\n", archive);
    ck_assert_ptr_nonnull(strstr(out, head));
    SCOPED(text_fini) struct text words = {0};
    for (const char *p = out; *p != '\0'; p++) { /* columns are one blank apart */
        if (*p != ' ' || (p[1] != ' ' && p[1] != '\n')) {
            text_char(&words, *p);
        }
    }
    ck_assert_ptr_nonnull(strstr(
        text_end(&words),
        "\nfile holds about min command\n"
        "about.json the facts below, and which step took how long 0\n"
        "rows.csv times of single kernels, each device alone and in pairs 1 xpusim " MEASURE "\n"
        "pairs.csv who slows whom: each kind of kernel next to each other 1 xpusim " PAIRS "\n"));
    static const char last[] =
        "Nothing else goes in: no host name, user, folder, address or serial number. Nothing is "
        "sent anywhere; the archive is a file of yours.\n";
    ck_assert_str_eq(out + strlen(out) - strlen(last), last);
    ck_assert_ptr_nonnull(strstr(out, "\nFacts:\n"));
    free(out);
}
END_TEST

static const struct suite_row rows[] = {
    CASE("send-in", .setup = setup, .teardown = teardown, .timeout_s = 60),
    TEST(each_step_runs_and_goes_in),
    TEST(sizes_differ),
    TEST(a_step_that_fails_costs_itself),
    TEST(a_further_call_goes_on),
    TEST(the_folder_holds_what_a_further_call_needs),
    TEST(a_folder_that_cannot_be_made_is_named),
    TEST(a_plan_is_of_the_devices_that_there_are),
    TEST(ggml_alone_drives_without_saying_so),
    TEST(a_device_that_fails_its_probe_is_not_driven),
    TEST(a_dry_run_says_what_would_be),
};
SUITE_MAIN("send-in", rows)

#define _DEFAULT_SOURCE /* realpath */
/* Policies of other processes before a run: which part of a text names one, what a program says
 * that it is, and what of the file system it sees. The programs are `cat` of a file. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policies/external/external_impl.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"

/* The length of the specification at the begin of a text: a bar marks its end. */
static const struct {
    const char *text;
    bool is;
} specs[] = {
    {"exec:./p|", true},
    {"exec:./p --fast|", true},
    {"exec:./p|:max=4", true},
    {"exec:./p --at a:b|:max_2=4,b=3", true},
    {"exec:./p a:b c|", true},
    {"exec:./p a:B=3|", true},  /* a key has small letters */
    {"exec:./p a: b=3|", true}, /* and no blank before it */
    {"exec:./p|:", true},
    {"exec:|", true},
    {"exec::a=1|", true}, /* no command before the colon */
    {"exec:./p a:=1|", true},
    {"python:f.py:C|", true},
    {"python:f.py:C|:a=1:b", true},
    {"python:f.py:C|:", true},
    {"python:f.py|", true},
    {"python:f.py:|", true},
    {"fcfs", false},
    {"exe:./p", false},
    {"pythonx:f.py:C", false},
};

START_TEST(a_specification_ends_where_parameters_begin)
{
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        char text[64];
        size_t want = specs[i].is ? strcspn(specs[i].text, "|") : 0;
        (void)snprintf(text, sizeof text, "%s", specs[i].text);
        if (specs[i].is) {
            memmove(text + want, text + want + 1, strlen(text) - want);
        }
        ck_assert_msg(external_spec_length(text) == want, "%s: %zu", text,
                      external_spec_length(text));
    }
}
END_TEST

START_TEST(the_file_of_a_specification_is_its_program)
{
    static const char *const files[][2] = {
        {"exec:./p --fast", "./p"},
        {"exec:/usr/bin/p:a=1", "/usr/bin/p"},
        {"exec:p --fast", NULL},
        {"exec:a/b", "a/b"},
        {"python:f.py:C", "f.py"},
        {"python:dir/f.py:C:a=1", "dir/f.py"},
        {"python:a folder/f.py:C", "a folder/f.py"},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        OWNED char *got = external_file(files[i][0]);
        ck_assert_msg(files[i][1] == NULL ? got == NULL
                                          : got != NULL && strcmp(got, files[i][1]) == 0,
                      "%s: %s", files[i][0], got != NULL ? got : "none");
    }
}
END_TEST

/* ---- what it says ---- */

static struct err e;
static char spec[256];

static void teardown(void)
{
    err_fini(&e);
    tempfile_remove();
}

static const struct policy_ops *says(const char *description)
{
    const char *path = tempfile_make(".json");
    tempfile_put(description);
    (void)snprintf(spec, sizeof spec, "exec:cat %s", path);
    return external_load(spec, &e);
}

static const struct policy_ops *wanted(const char *description)
{
    const struct policy_ops *o = says(description);
    ck_assert_msg(o != NULL, "%s", e.lines[0]);
    return o;
}

START_TEST(each_member_of_a_description_has_its_place)
{
    const struct policy_ops *o = wanted(
        "{\"protocol\":1,\"name\":\"my-policy\",\"summary\":\"what it does\",\"limit_s\":7.5,"
        "\"flags\":[\"busy_poll\"],\"needs\":[\"kv_move\",\"npu\",\"spans\"],\"sleeps\":true,"
        "\"ablations\":[\"width=1\",\"kind=b,on=false\"],\"params\":["
        "{\"name\":\"width\",\"type\":\"int\",\"default\":8,\"min\":2,\"max\":64,\"help\":\"w\"},"
        "{\"name\":\"share\",\"type\":\"number\",\"default\":0.25,\"min\":-1,\"max\":1.5},"
        "{\"name\":\"on\",\"type\":\"bool\",\"default\":true,\"help\":\"o\"},"
        "{\"name\":\"off\",\"type\":\"bool\",\"default\":false},"
        "{\"name\":\"kind\",\"type\":\"choice\",\"default\":\"b\",\"choices\":[\"a\",\"b\","
        "\"c\"]}]}\n");
    static const struct {
        const char *name, *help;
        enum param_type type;
        double def, min, max;
    } want[] = {{"width", "w", PARAM_INT, 8, 2, 64},
                {"share", "", PARAM_NUMBER, 0.25, -1, 1.5},
                {"on", "o", PARAM_BOOL, 1, 0, 1},
                {"off", "", PARAM_BOOL, 0, 0, 1},
                {"kind", "", PARAM_CHOICE, 1, 0, 2},
                {"limit_s",
                 "wall clock for one answer of the process, its start included, s; 0: the default",
                 PARAM_NUMBER, 7.5, 0, 1e6}};
    ck_assert_str_eq(o->name, "my-policy");
    ck_assert_str_eq(o->summary, "what it does");
    ck_assert_uint_eq(o->flags, POLICY_F_BUSY_POLL);
    ck_assert_uint_eq(o->needs, CAP_KV_MOVE | CAP_NPU | CAP_SPANS);
    ck_assert_str_eq(o->ablations[0], "width=1");
    ck_assert_str_eq(o->ablations[1], "kind=b,on=false");
    ck_assert_ptr_null(o->ablations[2]);
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        const struct policy_param *p = &o->params[i];
        ck_assert_str_eq(p->name, want[i].name);
        ck_assert_str_eq(p->help, want[i].help);
        ck_assert(p->type == want[i].type && p->def == want[i].def && p->min == want[i].min &&
                  p->max == want[i].max);
    }
    ck_assert_ptr_null(o->params[6].name);
    ck_assert_str_eq(o->params[4].choices[2], "c");
    ck_assert_ptr_null(o->params[4].choices[3]);
    const struct external *x = (const void *)o;
    ck_assert(x->sleeps && !x->steady && !x->python && !x->hosted && x->usable);
    ck_assert(x->limit_s == 7.5 && x->n_params == 5);
    /* A specification is loaded once, also with parameters behind it. */
    ck_assert_ptr_eq(external_load(spec, &e), o);
    (void)strcat(spec, ":width=9");
    ck_assert_ptr_eq(external_load(spec, &e), o);
}
END_TEST

START_TEST(what_a_description_leaves_out_is_usual)
{
    const struct policy_ops *o =
        wanted("{\"protocol\":1,\"name\":\"p\",\"summary\":\"s\",\"steady\":true,"
               "\"flags\":[\"oracle\",\"busy_poll\"],\"needs\":[\"row_split\",\"kernel_yields\","
               "\"compile\",\"load\",\"reset\",\"verify\",\"igpu\",\"cpu\",\"gpu\"]}\n");
    const struct external *x = (const void *)o;
    ck_assert(x->steady && !x->sleeps && x->limit_s == EXTERNAL_LIMIT_S && x->n_params == 0);
    ck_assert_uint_eq(o->flags, POLICY_F_ORACLE | POLICY_F_BUSY_POLL);
    ck_assert_uint_eq(o->needs, CAP_ROW_SPLIT | CAP_YIELD_KERNEL | CAP_COMPILE | CAP_LOAD |
                                    CAP_RESET | CAP_VERIFY | CAP_IGPU |
                                    CAP_DEVICE(DEVICE_KIND_CPU) | CAP_DEVICE(DEVICE_KIND_GPU));
    ck_assert_ptr_null(o->ablations);
    ck_assert_str_eq(o->params[0].name, "limit_s");
    ck_assert_ptr_null(o->params[1].name);
}
END_TEST

/* A part of the error of each description that is refused. */
#define SAYS(more) "{\"protocol\":1,\"name\":\"p\",\"summary\":\"s\"" more "}\n"
#define ONE(param) SAYS(",\"params\":[" param "]")
static const char *const refused[][2] = {
    {"", "before it said what it is"},
    {"[1]\n", "its first line must be what it is, as an object of JSON"},
    {"{\"error\":\"no such class\"}\n", ": no such class"},
    {"{\"protocol\":2}\n", "it speaks version 2 of the protocol, this xpusim 1"},
    {SAYS(",\"flags\":[\"late\"]"), "it names a flag that there is not: late"},
    {SAYS(",\"flags\":[3]"), "it names a flag that there is not: not a text"},
    {SAYS(",\"needs\":[\"oracle\"]"), "it names a need that there is not: oracle"},
    {SAYS(",\"limit_s\":0.0005"), "limit_s"},
    {SAYS(",\"unknown\":1"), "unknown"},
    {"{\"protocol\":1,\"name\":\"p\"}\n", "summary"},
    {ONE("{\"name\":\"a\",\"type\":\"int\",\"default\":1,\"min\":2,\"max\":3}"), "default"},
    {ONE("{\"name\":\"a\",\"type\":\"int\",\"default\":2,\"min\":2,\"max\":1}"), "max"},
    {ONE("{\"name\":\"a\",\"type\":\"number\",\"default\":4,\"min\":2,\"max\":3}"), "default"},
    {ONE("{\"name\":\"a\",\"type\":\"choice\",\"default\":\"d\",\"choices\":[\"c\"]}"), "default"},
    {ONE("{\"name\":\"a\",\"type\":\"choice\",\"default\":\"d\",\"choices\":[]}"), "choices"},
    {ONE("{\"name\":\"a\",\"type\":\"bool\",\"default\":1}"), "default"},
    {ONE("{\"name\":\"a\",\"type\":\"text\",\"default\":1}"), "type"},
    {ONE("{\"type\":\"bool\",\"default\":true}"), "name"},
};

START_TEST(descriptions_that_are_wrong_are_refused)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        ck_assert_msg(says(refused[i][0]) == NULL, "%s", refused[i][0]);
        ck_assert_msg(e.n > 0 && strstr(e.lines[0], spec) != NULL &&
                          strstr(e.lines[0], refused[i][1]) != NULL,
                      "%s: %s", refused[i][0], e.n > 0 ? e.lines[0] : "no error");
        teardown();
    }
    ck_assert_ptr_null(external_load("exec:  ", &e));
    ck_assert_ptr_nonnull(strstr(e.lines[0], "a command is missing: exec:./program arguments"));
    static const char *const python[] = {"python:", "python::C", "python:f.py", "python:f.py:"};
    for (size_t i = 0; i < 4; i++) {
        err_fini(&e);
        ck_assert_ptr_null(external_load(python[i], &e));
        ck_assert_ptr_nonnull(strstr(e.lines[0], ": must be python:FILE.py:CLASS"));
    }
    err_fini(&e);
    ck_assert_ptr_null(external_load("python:no/such.py:C", &e));
    ck_assert_ptr_nonnull(strstr(e.lines[0], "--policy no/such.py: cannot read: "));
}
END_TEST

/* A tenth of what a run took, at least 3 s, in whole seconds; where that is less than its limit,
 * and the run took as long as the limit. */
START_TEST(a_run_is_tried_again_with_a_shorter_limit)
{
    static const struct {
        double given, took, want; /* s; given 0: its own, 60 */
    } tries[] = {{0, 60, 6}, {0, 59.9, 0}, {0, 61, 7},   {5, 5, 3},      {5, 30, 3},  {5, 41, 0},
                 {3, 30, 0}, {4, 30, 3},   {100, 99, 0}, {100, 100, 10}, {0, 601, 0}, {0, 590, 59}};
    const struct policy_ops *o =
        wanted(SAYS(",\"limit_s\":60,\"params\":[{\"name\":\"a\",\"type\":\"bool\",\"default\":"
                    "true}]"));
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        struct policy_params p = {.n = 2, .v = {1.0, tries[i].given}};
        double got = external_shorten(o, &p, tries[i].took);
        ck_assert_msg(got == tries[i].want, "%g after %g: %g", tries[i].given, tries[i].took, got);
        ck_assert(p.v[0] == 1.0 && p.v[1] == (got > 0.0 ? got : tries[i].given));
    }
}
END_TEST

/* ---- what it sees ---- */

static bool has(const char *const *list, const char *path)
{
    OWNED char *real = realpath(path, NULL);
    bool found = false;
    for (; list != NULL && *list != NULL; list++) {
        found = found || (real != NULL && strcmp(*list, real) == 0);
    }
    return found;
}

START_TEST(a_program_sees_what_its_command_names)
{
    char dir[] = "/tmp/external-check-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    char path[4][80];
    static const char *const names[] = {"p", "data", "lib", "other"};
    for (int i = 0; i < 4; i++) {
        (void)snprintf(path[i], sizeof path[i], "%s/%s", dir, names[i]);
        ck_assert_int_eq(mkdir(path[i], 0700), 0);
    }
    (void)setenv("LD_LIBRARY_PATH", path[2], 1);
    (void)unsetenv("PYTHONPATH");
    char sh[] = "/bin/sh";
    char option[] = "-c";
    OWNED char *line = xformat("exec %s --in='%s' / /proc/self /no/such", path[0], path[1]);
    char *argv[] = {sh, option, line, NULL};
    static struct jail j; /* its lists live as long as the process */
    j = external_jail(argv, false);
    ck_assert(j.forks && j.folder == NULL);
    ck_assert(has(j.reads, path[0]) && has(j.reads, path[1]) && has(j.reads, path[2]));
    ck_assert(!has(j.reads, path[3]) && !has(j.reads, "/") && !has(j.reads, dir));
    for (const char *const *p = j.reads; *p != NULL; p++) {
        ck_assert(strncmp(*p, "/proc", 5) != 0);
    }
    const char *const asked[] = {path[1], "/no/such", path[3], NULL};
    static const char *const *reads;
    reads = external_reads(asked);
    ck_assert(has(reads, path[1]) && has(reads, path[2]) && has(reads, path[3]));
    ck_assert(reads[3] == NULL && !has(reads, path[0]));
    for (int i = 0; i < 4; i++) {
        (void)rmdir(path[i]);
    }
    (void)rmdir(dir);
}
END_TEST

/* Only the system's own folder is hidden, and no other whose name begins so. A user who may not
 * write to the root asks for /tmp instead. */
START_TEST(a_folder_whose_name_begins_with_proc_is_one_as_any)
{
    char dir[] = "/proc-check-XXXXXX";
    bool made = mkdtemp(dir) != NULL;
    const char *const asked[] = {made ? dir : "/tmp", "/proc", "/proc/self", NULL};
    (void)unsetenv("LD_LIBRARY_PATH");
    const char *const *reads = external_reads(asked);
    ck_assert(has(reads, asked[0]) && reads[1] == NULL);
    free((void *)(uintptr_t)reads[0]);
    free((void *)(uintptr_t)reads);
    (void)rmdir(dir);
}
END_TEST

/* Arguments of a command are files, and no programs: also one that lies in some other PREFIX/bin,
 * and a word that is a program's name. */
START_TEST(a_program_sees_its_own_prefix_and_of_others_the_file_alone)
{
    char dir[] = "/tmp/external-check-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    static const char *const folders[] = {"a", "a/bin", "a/lib", "b", "b/bin", "b/lib"};
    static const char *const files[] = {"a/bin/run", "a/bin/also", "b/bin/tool", "b/bin/other"};
    for (int i = 0; i < 6; i++) {
        OWNED char *path = xformat("%s/%s", dir, folders[i]);
        ck_assert_int_eq(mkdir(path, 0700), 0);
    }
    for (int i = 0; i < 4; i++) {
        OWNED char *path = xformat("%s/%s", dir, files[i]);
        int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
        ck_assert_int_ge(fd, 0);
        (void)close(fd);
    }
    (void)unsetenv("LD_LIBRARY_PATH");
    (void)unsetenv("PYTHONPATH");
    char sh[] = "/bin/sh";
    char option[] = "-c";
    OWNED char *line = xformat("exec %s/a/bin/run --with=%s/b/bin/tool sh", dir, dir);
    char *argv[] = {sh, option, line, NULL};
    static struct jail j;
    j = external_jail(argv, false);
    static const struct {
        const char *name;
        bool seen;
    } rows[] = {{"a/bin/run", true},    {"a/bin", true},  {"a/lib", true},
                {"b/bin/tool", true},   {"b/bin", false}, {"b/lib", false},
                {"b/bin/other", false}, {"b", false},     {"a", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        OWNED char *path = xformat("%s/%s", dir, rows[i].name);
        ck_assert_msg(has(j.reads, path) == rows[i].seen, "%s", rows[i].name);
    }
    ck_assert(!has(j.reads, "/bin/sh") && !has(j.reads, "/bin"));
    for (int i = 3; i >= 0; i--) {
        OWNED char *path = xformat("%s/%s", dir, files[i]);
        (void)unlink(path);
    }
    for (int i = 5; i >= 0; i--) {
        OWNED char *path = xformat("%s/%s", dir, folders[i]);
        (void)rmdir(path);
    }
    (void)rmdir(dir);
}
END_TEST

/* A script may run another interpreter (pyenv's, say), so it is asked for that. Its answer counts
 * if it is a path. A program that is no script is not asked, and an unknown name stays. */
START_TEST(a_script_is_asked_which_interpreter_it_is)
{
    char dir[] = "/tmp/external-check-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    static const struct {
        const char *name, *text, *is; /* NULL: as it was asked for */
    } rows[] = {{"says", "#!/bin/sh\necho /opt/python\n", "/opt/python"},
                {"lies", "#!/bin/sh\necho python\n", NULL},
                {"silent", "#!/bin/sh\n", NULL},
                {"no-script", "echo /opt/python\n", NULL},
                {"short", "#", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        OWNED char *path = xformat("%s/%s", dir, rows[i].name);
        int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
        ssize_t n = (ssize_t)strlen(rows[i].text);
        ck_assert_int_eq(write(fd, rows[i].text, (size_t)n), n);
        (void)close(fd);
        OWNED char *is = external_interpreter(path);
        ck_assert_str_eq(is, rows[i].is != NULL ? rows[i].is : path);
        (void)unlink(path);
    }
    (void)rmdir(dir);
    OWNED char *echo = external_interpreter("/bin/echo"); /* it would say -c */
    ck_assert_str_eq(echo, "/bin/echo");
    OWNED char *none = external_interpreter("no-such-python");
    ck_assert_str_eq(none, "no-such-python");
}
END_TEST

static const struct suite_row suite[] = {
    CASE("external", .teardown = teardown, .timeout_s = 60),
    TEST(a_specification_ends_where_parameters_begin),
    TEST(the_file_of_a_specification_is_its_program),
    TEST(each_member_of_a_description_has_its_place),
    TEST(what_a_description_leaves_out_is_usual),
    TEST(descriptions_that_are_wrong_are_refused),
    TEST(a_run_is_tried_again_with_a_shorter_limit),
    TEST(a_program_sees_what_its_command_names),
    TEST(a_folder_whose_name_begins_with_proc_is_one_as_any),
    TEST(a_program_sees_its_own_prefix_and_of_others_the_file_alone),
    TEST(a_script_is_asked_which_interpreter_it_is),
};
SUITE_MAIN("external", suite)

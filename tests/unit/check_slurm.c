/* The scripts of a Slurm job array, line by line, and what sbatch is asked: a program of that name
 * keeps its words. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/sweep/sweep_slurm.h"
#include "sim/base/input.h"
#include "sim/base/scope.h"
#include "sim/base/text.h"
#include "tests/helpers/suite.h"

static char folder[] = "/tmp/xpusim-check-slurm-XXXXXX";
static struct err err;
static char program[1024];

static void setup(void)
{
    err = (struct err)ERR_INIT;
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    ck_assert_int_gt((int)readlink("/proc/self/exe", program, sizeof program - 1), 0);
    ck_assert_ptr_nonnull(freopen("said", "wb", stderr));
}

static char *text_of(const char *name)
{
    char *text = input_text(name, 1 << 20, &err);
    ck_assert_msg(text != NULL, "%s", err.n > 0 ? err.lines[0] : "");
    return text;
}

/* Standard error since setup; the caller frees. */
static char *said(void)
{
    (void)fflush(stderr);
    return text_of("said");
}

static void teardown(void)
{
    static const char *const names[] = {
        "sbatch",        "asked",     "s.db.slurm/array.sh",    "s.db.slurm/merge.sh",
        "s.db.slurm",    "said",      "it's.db.slurm/array.sh", "it's.db.slurm/merge.sh",
        "it's.db.slurm", "file.slurm"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)remove(names[i]);
    }
    (void)chdir("/");
    (void)rmdir(folder);
    err_fini(&err);
}

static void put(const char *name, const char *text)
{
    FILE *f = fopen(name, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(chmod(name, 0700), 0);
}

static void sbatch(const char *text)
{
    put("sbatch", text);
    OWNED char *path = xformat("%s:%s", folder, getenv("PATH"));
    ck_assert_int_eq(setenv("PATH", path, 1), 0);
}

static struct slurm_command command(void)
{
    struct slurm_command c = {.jobs = 5};
    slurm_word(&c, "sweep");
    slurm_word(&c, NULL);
    slurm_word(&c, "a b's.json");
    return c;
}

/* Three tasks, numbered from 0, of five processors; both jobs have the user's options. Every path
 * is absolute, and quoted for the shell; the log's is a line of Slurm, with %a for the task. */
START_TEST(scripts_have_every_word)
{
    struct slurm_options o = {
        .tasks = 3, .n_options = 2, .options = {"--mem=2G", "-p long"}, .scripts_only = true};
    struct slurm_command c = command();
    ck_assert_uint_eq(c.n_words, 2);
    ck_assert_int_eq(sweep_slurm("it's.db", &o, &c, &err), 0);
    OWNED char *array = text_of("it's.db.slurm/array.sh");
    OWNED char *want =
        xformat("#!/bin/sh\n#SBATCH --job-name=xpusim\n#SBATCH --array=0-2\n"
                "#SBATCH --cpus-per-task=5\n"
                "#SBATCH --output=\"%s/it's.db.slurm/shard-%%a.log\"\n"
                "#SBATCH --mem=2G\n#SBATCH -p long\n"
                "cd '%s/.' || exit 2\n"
                "exec '%s' 'sweep' 'a b'\\''s.json' \\\n"
                "    --store '%s/it'\\''s.db.slurm'/shard-\"$SLURM_ARRAY_TASK_ID\".db"
                " --shard \"$SLURM_ARRAY_TASK_ID\"/3 --jobs 5\n",
                folder, folder, program, folder);
    ck_assert_str_eq(array, want);
    OWNED char *merge = text_of("it's.db.slurm/merge.sh");
    OWNED char *shards = xformat(" \\\n    '%s/it'\\''s.db.slurm'/shard-0.db \\\n"
                                 "    '%s/it'\\''s.db.slurm'/shard-1.db \\\n"
                                 "    '%s/it'\\''s.db.slurm'/shard-2.db\n",
                                 folder, folder, folder);
    OWNED char *want_merge = xformat("#!/bin/sh\n#SBATCH --job-name=xpusim-merge\n"
                                     "#SBATCH --output=\"%s/it's.db.slurm/merge.log\"\n"
                                     "#SBATCH --mem=2G\n#SBATCH -p long\n"
                                     "exec '%s' merge -o '%s/it'\\''s.db'%s",
                                     folder, program, folder, shards);
    ck_assert_str_eq(merge, want_merge);
    /* A merge that knows its runs checks that all are there; a store of another folder stays there.
     */
    c.complete = true;
    o.n_options = 0;
    o.tasks = 1;
    OWNED char *store = xformat("%s/it's.db", folder);
    ck_assert_int_eq(sweep_slurm(store, &o, &c, &err), 0);
    OWNED char *again = text_of("it's.db.slurm/merge.sh");
    OWNED char *want_again = xformat("#!/bin/sh\n#SBATCH --job-name=xpusim-merge\n"
                                     "#SBATCH --output=\"%s/it's.db.slurm/merge.log\"\n"
                                     "exec '%s' merge --complete -o '%s/it'\\''s.db' \\\n"
                                     "    '%s/it'\\''s.db.slurm'/shard-0.db\n",
                                     folder, program, folder, folder);
    ck_assert_str_eq(again, want_again);
    OWNED char *told = said();
    OWNED char *line = xformat("xpusim: %s/it's.db.slurm/array.sh and merge.sh written\n", folder);
    OWNED char *twice = xformat("%s%s", line, line);
    ck_assert_str_eq(told, twice);
}
END_TEST

/* The array first; the merge after any end of it, by the number that sbatch said, without its
 * cluster. */
START_TEST(the_merge_waits_for_the_array)
{
    struct slurm_options o = {.tasks = 2};
    struct slurm_command c = command();
    sbatch("#!/bin/sh\necho \"$@\" >>asked\necho \"$((4710 + $(wc -l <asked)));cluster\"\n");
    ck_assert_int_eq(sweep_slurm("s.db", &o, &c, &err), 0);
    OWNED char *asked = text_of("asked");
    OWNED char *want = xformat("--parsable %s/s.db.slurm/array.sh\n"
                               "--parsable --dependency=afterany:4711 %s/s.db.slurm/merge.sh\n",
                               folder, folder);
    ck_assert_str_eq(asked, want);
    OWNED char *told = said();
    OWNED char *line = xformat(
        "xpusim: array job 4711 (2 tasks), merge job 4712; logs in "
        "%s/s.db.slurm\nxpusim: when a task fails: sbatch --array=TASK array.sh there, then "
        "sbatch merge.sh; or the same command again. Finished runs are not repeated.\n",
        folder);
    ck_assert_str_eq(told, line);
}
END_TEST

/* sbatch that refuses, that says no number, that says nothing, or is not there: the array's script
 * is named, and no merge is asked. One that takes the array alone names the merge's. */
static const struct {
    const char *sbatch, *script, *why;
} refusals[] = {
    {"#!/bin/sh\necho 4711\nexit 1\n", "array.sh", ""},
    {"#!/bin/sh\necho no\n", "array.sh", ""},
    {"#!/bin/sh\nexit 0\n", "array.sh", ""},
    {"#!/bin/sh\necho 1 >>asked\n[ \"$(wc -l <asked)\" = 2 ] || echo 4711\n", "merge.sh", ""},
    {NULL, "array.sh", ": there is no sbatch here"},
};

START_TEST(a_refusal_of_sbatch_is_said)
{
    struct slurm_options o = {.tasks = 2};
    struct slurm_command c = command();
    if (refusals[_i].sbatch != NULL) {
        sbatch(refusals[_i].sbatch);
    } else {
        ck_assert_int_eq(setenv("PATH", "/nonesuch", 1), 0);
    }
    ck_assert_int_eq(sweep_slurm("s.db", &o, &c, &err), -EINVAL);
    OWNED char *want = xformat("sbatch did not take %s/s.db.slurm/%s%s", folder,
                               refusals[_i].script, refusals[_i].why);
    ck_assert_uint_eq(err.n, 1);
    ck_assert_str_eq(err.lines[0], want);
}
END_TEST

START_TEST(a_path_that_slurm_cannot_take_is_refused)
{
    static const char *const wrong[] = {"a\"b.db", "a\nb.db", "a\\b.db", "a%a.db"};
    struct slurm_options o = {.tasks = 2, .scripts_only = true};
    struct slurm_command c = command();
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(sweep_slurm(wrong[i], &o, &c, &err), -EINVAL);
        OWNED char *want = xformat("%s: too long for a path, or holds \" \\ %% or a line break",
                                   i == 1 ? "a?b.db" : wrong[i]);
        ck_assert_str_eq(err.lines[i], want);
    }
    OWNED char *file = xformat("%s/file.slurm", folder);
    put("file.slurm", "");
    ck_assert_int_eq(sweep_slurm("file", &o, &c, &err), -EINVAL);
    ck_assert_int_eq(sweep_slurm("/nonesuch/x", &o, &c, &err), -EINVAL);
    ck_assert_str_eq(err.lines[err.n - 1], "/nonesuch/x.slurm: No such file or directory");
    char longest[4096];
    memset(longest, 'x', sizeof longest);
    longest[0] = '/';
    longest[4096 - 64] = '\0';
    ck_assert_int_eq(sweep_slurm(longest, &o, &c, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.lines[err.n - 1], "too long for a path"));
}
END_TEST

/* ---- options ---- */

static int take(size_t row, struct slurm_options *o, const char *arg)
{
    return slurm_option_table.rows[row].take(o, &slurm_option_table.rows[row], arg, &err);
}

/* I of N, N counts as 0. */
START_TEST(a_shard_is_one_of_so_many)
{
    static const struct {
        const char *arg;
        uint32_t shard, shards;
    } good[] = {{"0/4", 0, 4},  {"3/4", 3, 4}, {"4/4", 0, 4},
                {"1/1", 0, 1},  {"0/1", 0, 1}, {"1000000/1000000", 0, 1000000},
                {"007/8", 7, 8}};
    static const char *const bad[] = {"5/4",  "-1/4", "+1/4", " 1/4",      "1/0",
                                      "1/-4", "1/ 4", "1",    "1/",        "/4",
                                      "",     "1/4x", "1x/4", "1/1000001", "1//4"};
    struct slurm_options o;
    slurm_option_table.init(&o);
    ck_assert_uint_eq(o.shards, 1);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ck_assert_int_eq(take(0, &o, good[i].arg), 0);
        ck_assert_uint_eq(o.shard, good[i].shard);
        ck_assert_uint_eq(o.shards, good[i].shards);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(take(0, &o, bad[i]) == -EINVAL, "%s", bad[i]);
        OWNED char *want =
            xformat("--shard %s: must be I/N with I from 0 to N - 1, as in 0/4", bad[i]);
        ck_assert_str_eq(err.lines[i], want);
    }
    ck_assert_uint_eq(o.shard, 7);
    ck_assert_uint_eq(o.shards, 8);
}
END_TEST

START_TEST(an_option_of_sbatch_begins_with_a_dash)
{
    struct slurm_options o = {.tasks = 1};
    for (uint32_t i = 0; i < SLURM_MAX_OPTIONS; i++) {
        ck_assert_int_eq(take(2, &o, "--mem=2G"), 0);
        ck_assert_uint_eq(o.n_options, i + 1);
    }
    ck_assert_int_eq(take(2, &o, "--mem=2G"), -EINVAL);
    o.n_options = 0;
    ck_assert_int_eq(take(2, &o, "mem"), -EINVAL);
    ck_assert_int_eq(take(2, &o, "--a\nb"), -EINVAL);
    ck_assert_str_eq(err.lines[0],
                     "--slurm-option --mem=2G: must be an option of sbatch; at most 32");
    ck_assert_str_eq(err.lines[1], "--slurm-option mem: must be an option of sbatch; at most 32");
    ck_assert_uint_eq(o.n_options, 0);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("slurm", .setup = setup, .teardown = teardown),
    TEST(scripts_have_every_word),
    TEST(the_merge_waits_for_the_array),
    LOOP(a_refusal_of_sbatch_is_said, sizeof refusals / sizeof refusals[0]),
    TEST(a_path_that_slurm_cannot_take_is_refused),
    TEST(a_shard_is_one_of_so_many),
    TEST(an_option_of_sbatch_begins_with_a_dash),
};
SUITE_MAIN("slurm", suite)

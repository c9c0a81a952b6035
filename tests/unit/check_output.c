/* Writing a file at a name that already is a file, a link, a pipe, a device or a folder. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/output.h"
#include "tests/helpers/suite.h"

static char dir[] = "/tmp/xpusim-output-XXXXXX";
static struct err err;

static void setup(void)
{
    (void)strcpy(dir + strlen(dir) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(chdir(dir), 0);
    err = (struct err)ERR_INIT;
}

static void teardown(void)
{
    char command[64];
    ck_assert_int_eq(chdir("/"), 0);
    (void)snprintf(command, sizeof command, "rm -rf %s", dir);
    ck_assert_int_eq(system(command), 0);
    err_fini(&err);
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

static void expect(const char *path, const char *text)
{
    char got[256] = "";
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "%s: %s", path, strerror(errno));
    got[fread(got, 1, sizeof got - 1, f)] = '\0';
    (void)fclose(f);
    ck_assert_str_eq(got, text);
}

/* Names in the current folder. */
static int count(void)
{
    FILE *f = popen("ls -A | wc -l", "r");
    int n = -1;
    ck_assert_int_eq(fscanf(f, "%d", &n), 1);
    (void)pclose(f);
    return n;
}

static int write_to(const char *path, const char *text)
{
    return output_bytes(path, text, strlen(text), &err);
}

START_TEST(a_file_changes_only_when_it_is_complete)
{
    put("f", "old");
    struct output *o = output_open("f", &err);
    ck_assert_ptr_nonnull(o);
    (void)fputs("new", output_stream(o));
    (void)fflush(output_stream(o));
    expect("f", "old");
    ck_assert_int_eq(output_close(o, true, &err), 0);
    expect("f", "new");
    ck_assert_int_eq(count(), 1);
}
END_TEST

START_TEST(what_is_not_kept_leaves_nothing)
{
    put("f", "old");
    struct output *o = output_open("f", &err);
    (void)fputs("new", output_stream(o));
    ck_assert_int_eq(output_close(o, false, &err), 0);
    expect("f", "old");
    ck_assert_int_eq(output_close(output_open("g", &err), false, &err), 0);
    ck_assert_int_eq(count(), 1);
}
END_TEST

START_TEST(files_beside_it_are_left_alone)
{
    put("f.tmp", "precious");
    put("victim", "whole");
    ck_assert_int_eq(symlink("victim", "f.part"), 0);
    ck_assert_int_eq(write_to("f", "new"), 0);
    expect("f.tmp", "precious");
    expect("victim", "whole");
    expect("f", "new");
    ck_assert_int_eq(count(), 4);
}
END_TEST

START_TEST(a_link_stays_and_its_target_changes)
{
    ck_assert_int_eq(mkdir("data", 0777), 0);
    put("data/target", "old");
    ck_assert_int_eq(symlink("data/target", "near"), 0);
    ck_assert_int_eq(symlink("near", "far"), 0);
    ck_assert_int_eq(write_to("far", "new"), 0);
    expect("data/target", "new");
    struct stat s;
    ck_assert(lstat("far", &s) == 0 && S_ISLNK(s.st_mode));
    ck_assert(lstat("near", &s) == 0 && S_ISLNK(s.st_mode));
}
END_TEST

START_TEST(a_link_to_nothing_makes_its_target)
{
    ck_assert_int_eq(mkdir("data", 0777), 0);
    ck_assert_int_eq(symlink("../made", "data/link"), 0); /* relative to the link's folder */
    ck_assert_int_eq(write_to("data/link", "new"), 0);
    expect("made", "new");
}
END_TEST

START_TEST(a_circle_of_links_is_an_error)
{
    ck_assert_int_eq(symlink("b", "a"), 0);
    ck_assert_int_eq(symlink("a", "b"), 0);
    ck_assert_int_eq(write_to("a", "new"), -EINVAL);
    ck_assert_str_eq(err.lines[0], "a: cannot write: Too many levels of symbolic links");
}
END_TEST

START_TEST(permissions_are_kept_and_new_files_follow_the_mask)
{
    put("f", "old");
    ck_assert_int_eq(chmod("f", 0640), 0);
    mode_t before = umask(027);
    ck_assert_int_eq(write_to("f", "new"), 0);
    ck_assert_int_eq(write_to("g", "new"), 0);
    (void)umask(before);
    struct stat s;
    ck_assert_int_eq(stat("f", &s), 0);
    ck_assert_uint_eq(s.st_mode & 0777, 0640);
    ck_assert_int_eq(stat("g", &s), 0);
    ck_assert_uint_eq(s.st_mode & 0777, 0640); /* 0666 without 027 */
}
END_TEST

START_TEST(a_pipe_is_written_through)
{
    ck_assert_int_eq(mkfifo("p", 0600), 0);
    pid_t pid = fork();
    if (pid == 0) {
        _exit(write_to("p", "through") == 0 ? 0 : 1);
    }
    expect("p", "through");
    int status = 1;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    struct stat s;
    ck_assert(lstat("p", &s) == 0 && S_ISFIFO(s.st_mode));
}
END_TEST

START_TEST(a_device_stays_a_device)
{
    struct stat s;
    ck_assert_int_eq(write_to("/dev/null", "x"), 0);
    ck_assert(lstat("/dev/null", &s) == 0 && S_ISCHR(s.st_mode));
    ck_assert_int_eq(write_to("/dev/full", "x"), -EINVAL);
    ck_assert_str_eq(err.lines[0], "/dev/full: cannot write: No space left on device");
    ck_assert(lstat("/dev/full", &s) == 0 && S_ISCHR(s.st_mode));
}
END_TEST

/* Packed, it takes several writes: the reason is that of the first, and zlib says it once. */
START_TEST(a_packed_file_says_why_it_is_not_written)
{
    ck_assert_int_eq(symlink("/dev/full", "full.gz"), 0);
    SCOPED(text_fini) struct text t = {0};
    uint32_t x = 1;
    for (int i = 0; i < 1 << 20; i++) { /* does not get much smaller */
        x = x * 1664525 + 1013904223;
        text_char(&t, (char)('a' + (x >> 24) % 26));
    }
    ck_assert_int_eq(write_to("full.gz", text_end(&t)), -EINVAL);
    ck_assert_str_eq(err.lines[0], "full.gz: cannot write: No space left on device");
}
END_TEST

START_TEST(an_open_descriptor_is_written_and_not_replaced)
{
    int fd = open("log", O_WRONLY | O_CREAT | O_APPEND, 0600);
    char name[32];
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ck_assert_int_eq((int)write(fd, "before ", 7), 7);
    ck_assert_int_eq(write_to(name, "between "), 0);
    ck_assert_int_eq((int)write(fd, "after", 5), 5);
    (void)close(fd);
    expect("log", "before between after");
}
END_TEST

START_TEST(a_folder_or_no_folder_is_an_error_that_names_it)
{
    ck_assert_int_eq(mkdir("d", 0777), 0);
    ck_assert_int_eq(write_to("d", "x"), -EINVAL);
    ck_assert_str_eq(err.lines[0], "d: cannot write: Is a directory");
    ck_assert_int_eq(write_to("no/f", "x"), -EINVAL);
    ck_assert_str_eq(err.lines[1], "no/f: cannot write: No such file or directory");
}
END_TEST

START_TEST(what_a_process_leaves_open_is_removed_but_not_by_its_child)
{
    put("f", "old");
    struct output *o = output_open("f", &err);
    pid_t pid = fork();
    if (pid == 0) {
        halt_remove_all();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert_int_eq(count(), 2);
    halt_remove_all();
    ck_assert_int_eq(count(), 1);
    expect("f", "old");
    (void)output_close(o, false, &err);
}
END_TEST

/* Files are closed in any order, others are opened in between, and what is then still open is
 * removed: nothing of it stays, and of the others nothing is gone. */
START_TEST(any_order_of_closing_leaves_what_was_kept)
{
    enum { FILES = 6 };
    static const int orders[][FILES] = {{0, 1, 2, 3, 4, 5}, {5, 4, 3, 2, 1, 0}, {2, 0, 4, 1, 5, 3},
                                        {4, 1, 3, 0, 2, 5}, {1, 3, 5, 0, 2, 4}, {3, 5, 0, 4, 1, 2}};
    for (int k = 0; k < 6; k++) {
        for (int n = 0; n <= FILES; n++) { /* so many are closed */
            struct output *o[2 * FILES] = {NULL};
            char name[2 * FILES][16];
            for (int i = 0; i < FILES; i++) {
                (void)snprintf(name[i], sizeof name[i], "f%d", i);
                o[i] = output_open(name[i], &err);
                ck_assert_int_ge(fputs(name[i], output_stream(o[i])), 0);
            }
            for (int i = 0; i < n; i++) {
                ck_assert_int_eq(output_close(o[orders[k][i]], i % 3 != 2, &err), 0);
                (void)snprintf(name[FILES + i], sizeof name[i], "g%d", i);
                o[FILES + i] = output_open(name[FILES + i], &err); /* where the other was */
            }
            for (int i = 0; i < n; i += 2) {
                ck_assert_int_ge(fputs("g", output_stream(o[FILES + i])), 0);
                ck_assert_int_eq(output_close(o[FILES + i], true, &err), 0);
            }
            halt_remove_all();
            for (int i = 0; i < n; i++) {
                bool kept = i % 3 != 2;
                const char *f = name[orders[k][i]];
                ck_assert_int_eq(access(f, F_OK) == 0, kept);
                ck_assert_int_eq(access(name[FILES + i], F_OK) == 0, i % 2 == 0);
                if (kept) {
                    expect(f, f);
                }
                (void)remove(f);
                (void)remove(name[FILES + i]);
            }
            ck_assert(n < FILES || count() == 0);
            for (int i = n; i < FILES; i++) {
                (void)output_close(o[orders[k][i]], false, &err);
            }
            for (int i = 1; i < n; i += 2) {
                (void)output_close(o[FILES + i], false, &err);
            }
        }
    }
    ck_assert_uint_eq(err.n, 0);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("files", .setup = setup, .teardown = teardown),
    TEST(a_file_changes_only_when_it_is_complete),
    TEST(what_is_not_kept_leaves_nothing),
    TEST(files_beside_it_are_left_alone),
    TEST(a_link_stays_and_its_target_changes),
    TEST(a_link_to_nothing_makes_its_target),
    TEST(a_circle_of_links_is_an_error),
    TEST(permissions_are_kept_and_new_files_follow_the_mask),
    TEST(a_pipe_is_written_through),
    TEST(a_device_stays_a_device),
    TEST(a_packed_file_says_why_it_is_not_written),
    TEST(an_open_descriptor_is_written_and_not_replaced),
    TEST(a_folder_or_no_folder_is_an_error_that_names_it),
    TEST(what_a_process_leaves_open_is_removed_but_not_by_its_child),
    TEST(any_order_of_closing_leaves_what_was_kept),
};
SUITE_MAIN("output", suite)

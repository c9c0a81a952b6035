/* The jail of policies in processes of their own, from inside: a child enters it and writes down
 * what it can still do. check_jail_filter.c has its filter of system calls. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "policies/external/jail.h"
#include "tests/helpers/suite.h"

/* ---- from inside ---- */

/* Results of the child: errno of each try, 0 where it succeeds. */
static struct found {
    int rc, read_given, write_given, read_other, read_system, list_folder, read_in_list, make_file;
    int read_proc, write_null, fork, thread, signal_parent, signal_self, socket, folder, kept[3];
    int no_new_privs, capabilities;
    uint64_t data, file, descriptors, core, queue, locked;
} * found;

static char dir[] = "/tmp/jail-check-XXXXXX";
static char given[64], other[64], sub[64], in_sub[64];

static int try_open(const char *path, int how)
{
    int fd = open(path, how | O_CLOEXEC, 0600);
    int error = fd < 0 ? errno : 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    return error;
}

static int try_list(const char *path)
{
    DIR *d = opendir(path);
    int error = d == NULL ? errno : 0;
    if (d != NULL) {
        error = readdir(d) == NULL ? ENOENT : 0;
        (void)closedir(d);
    }
    return error;
}

static int try_fork(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    int error = pid < 0 ? errno : 0;
    if (pid > 0) {
        (void)waitpid(pid, NULL, 0);
    }
    return error;
}

static void *nothing(void *of)
{
    return of;
}

static int try_thread(void)
{
    pthread_t t;
    int error = pthread_create(&t, NULL, nothing, NULL);
    return error != 0 ? error : pthread_join(t, NULL);
}

static uint64_t limit_of(int what)
{
    struct rlimit is;
    return getrlimit((__rlimit_resource_t)what, &is) == 0 && is.rlim_cur == is.rlim_max
               ? is.rlim_max
               : 12345;
}

static void look(const struct jail *j)
{
    struct found *f = found;
    char name[80];
    f->rc = jail_enter(j);
    f->read_given = try_open(given, O_RDONLY);
    f->write_given = try_open(given, O_WRONLY);
    f->read_other = try_open(other, O_RDONLY);
    f->read_system = try_open("/bin/sh", O_RDONLY);
    f->list_folder = try_list(sub);
    f->read_in_list = try_open(in_sub, O_RDONLY);
    (void)snprintf(name, sizeof name, "%s/new", dir);
    f->make_file = try_open(name, O_WRONLY | O_CREAT);
    f->read_proc = try_open("/proc/self/stat", O_RDONLY);
    f->write_null = try_open("/dev/null", O_WRONLY);
    f->fork = try_fork();
    f->thread = try_thread();
    f->signal_parent = kill(getppid(), 0) == 0 ? 0 : errno;
    f->signal_self = kill(getpid(), 0) == 0 ? 0 : errno;
    f->socket = socket(AF_UNIX, SOCK_STREAM, 0) >= 0 ? 0 : errno;
    f->folder = access("given", R_OK) == 0 ? 0 : errno;
    for (int i = 0; i < 3; i++) {
        f->kept[i] = fcntl(3 + i, F_GETFD) >= 0 ? 0 : errno;
    }
    f->no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
    struct __user_cap_header_struct who = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct has[2];
    (void)syscall(SYS_capget, &who, has);
    f->capabilities = (has[0].effective | has[1].effective | has[0].permitted) != 0;
    for (int i = 0; i < 41; i++) {
        f->capabilities += prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1;
    }
    f->data = limit_of(RLIMIT_DATA);
    f->file = limit_of(RLIMIT_FSIZE);
    f->descriptors = limit_of(RLIMIT_NOFILE);
    f->core = limit_of(RLIMIT_CORE);
    f->queue = limit_of(RLIMIT_MSGQUEUE);
    f->locked = limit_of(RLIMIT_MEMLOCK);
}

static void put(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert(fd >= 0 && write(fd, "x", 1) == 1);
    (void)close(fd);
}

static bool prepare(void)
{
    const char *why = NULL;
    if (!jail_works(&why)) {
        printf("skipped: %s\n", why);
        return false;
    }
    ck_assert_ptr_null(why);
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(given, sizeof given, "%s/given", dir);
    (void)snprintf(other, sizeof other, "%s/other", dir);
    (void)snprintf(sub, sizeof sub, "%s/sub", dir);
    (void)snprintf(in_sub, sizeof in_sub, "%s/sub/file", dir);
    ck_assert_int_eq(mkdir(sub, 0700), 0);
    put(given);
    put(other);
    put(in_sub);
    found = mmap(NULL, sizeof *found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return true;
}

/* A child that has descriptors 3, 4 and 5 enters. */
static void enter(const struct jail *j)
{
    memset(found, 0xff, sizeof *found);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open("/dev/null", O_RDONLY);
        for (int to = 3; to < 6; to++) {
            (void)dup2(fd, to);
        }
        look(j);
        _exit(0);
    }
    int status = 1;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(found->rc, 0);
}

static void done(void)
{
    (void)remove(in_sub);
    (void)remove(given);
    (void)remove(other);
    (void)rmdir(sub);
    (void)rmdir(dir);
}

/* The sanitizers' own files are read and their memory is more than there may be. */
#if defined __SANITIZE_ADDRESS__
#define SANITIZED true
#else
#define SANITIZED false
#endif

START_TEST(inside_there_is_what_was_given_and_no_more)
{
    if (SANITIZED || !prepare()) {
        return;
    }
    const char *reads[] = {"/no/such/file", given, NULL};
    const char *lists[] = {sub, NULL};
    enter(&(struct jail){.reads = reads, .lists = lists, .folder = dir, .keeps = 2});
    const struct found *f = found;
    ck_assert_int_eq(f->read_given, 0);
    ck_assert_int_eq(f->write_given, EACCES);
    ck_assert_int_eq(f->read_other, EACCES);
    ck_assert_int_eq(f->read_system, 0);
    ck_assert_int_eq(f->list_folder, 0);
    ck_assert_int_eq(f->read_in_list, EACCES);
    ck_assert_int_eq(f->make_file, EACCES);
    ck_assert_int_eq(f->read_proc, EACCES);
    ck_assert_int_eq(f->write_null, 0);
    ck_assert_int_eq(f->fork, EPERM);
    ck_assert_int_eq(f->thread, 0);
    ck_assert_int_eq(f->signal_parent, EPERM);
    ck_assert_int_eq(f->signal_self, 0);
    ck_assert_int_eq(f->socket, EPERM);
    ck_assert_int_eq(f->folder, 0);
    ck_assert(f->kept[0] == 0 && f->kept[1] == 0 && f->kept[2] == EBADF);
    ck_assert_int_eq(f->no_new_privs, 1);
    ck_assert_int_eq(f->capabilities, 0);
    done();
}
END_TEST

START_TEST(a_jail_of_nothing_is_one_too)
{
    if (SANITIZED || !prepare()) {
        return;
    }
    enter(&(struct jail){.forks = true});
    const struct found *f = found;
    ck_assert_int_eq(f->read_given, EACCES);
    ck_assert_int_eq(f->list_folder, EACCES);
    ck_assert_int_eq(f->read_system, 0);
    ck_assert_int_eq(f->fork, 0);
    ck_assert_int_eq(f->signal_parent, EPERM);
    ck_assert_int_eq(f->kept[0], EBADF);
    /* Limits, where they were not lower before. */
    struct rlimit before;
    const uint64_t gib = UINT64_C(1) << 30;
    const struct {
        int what;
        uint64_t most, is;
    } limits[] = {{RLIMIT_DATA, 4 * gib, f->data},      {RLIMIT_FSIZE, gib, f->file},
                  {RLIMIT_NOFILE, 256, f->descriptors}, {RLIMIT_CORE, 0, f->core},
                  {RLIMIT_MSGQUEUE, 0, f->queue},       {RLIMIT_MEMLOCK, 0, f->locked}};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        (void)getrlimit((__rlimit_resource_t)limits[i].what, &before);
        bool lower = before.rlim_max <= limits[i].most;
        ck_assert_msg(lower || limits[i].is == limits[i].most, "limit %d is %llu", limits[i].what,
                      (unsigned long long)limits[i].is);
    }
    int error = 0;
    pid_t pid = fork();
    if (pid == 0) { /* a folder that there is not is an error */
        error = jail_enter(&(struct jail){.folder = "/no/such/folder"});
        _exit(error == -ENOENT ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(pid, &error, 0), pid);
    ck_assert_int_eq(error, 0);
    done();
}
END_TEST

/* ---- what is said before ---- */

START_TEST(it_can_be_turned_off)
{
    const char *why = "nothing";
    ck_assert_int_eq(setenv("XPUSIM_JAIL", "off", 1), 0);
    ck_assert(!jail_works(&why));
    ck_assert_str_eq(why, "XPUSIM_JAIL=off");
    ck_assert(!jail_works(NULL));
}
END_TEST

START_TEST(an_environment_has_what_finds_programs)
{
    OWNED char *here = realpath(".", NULL);
    ck_assert_ptr_nonnull(here);
    (void)clearenv();
    (void)setenv("PATH", "/usr/bin:tools::/bin", 1);
    (void)setenv("PYTHONPATH", "lib", 1);
    (void)setenv("PYTHONPYCACHEPREFIX", "cache", 1);
    (void)setenv("HOME", "home", 1);
    (void)setenv("LANG", "C:de", 1);
    (void)setenv("SECRET", "1", 1);
    for (int warms = 0; warms < 2; warms++) {
        char **got = jail_environment(warms);
        OWNED char *want =
            xformat("PYTHONHASHSEED=0\nPYTHONDONTWRITEBYTECODE=1\nPATH=/usr/bin:%s/tools::/bin\n"
                    "LANG=C:de\nHOME=home\n%sPYTHONPATH=%s/lib\nPYTHONPYCACHEPREFIX=%s/cache\n",
                    here, warms ? "XPUSIM_" : "", here, here);
        SCOPED(text_fini) struct text all = {0};
        for (char **v = got; *v != NULL; v++) {
            text_string(&all, *v);
            text_char(&all, '\n');
        }
        ck_assert_str_eq(text_end(&all), want);
        ck_assert_ptr_eq(jail_environment(warms), got);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("jail"),
    TEST(inside_there_is_what_was_given_and_no_more),
    TEST(a_jail_of_nothing_is_one_too),
    TEST(it_can_be_turned_off),
    TEST(an_environment_has_what_finds_programs),
};
SUITE_MAIN("jail", suite)

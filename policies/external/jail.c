#define _GNU_SOURCE /* unshare, O_PATH */
#include "policies/external/jail.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "policies/external/jail_filter.h"

/* ---- files: Landlock ---- */

/* The kernel's struct landlock_ruleset_attr up to version 6; older kernels take a prefix. */
struct ruleset {
    uint64_t fs, net, scoped;
};
#define NET_ALL 3u    /* bind and connect of TCP; from version 4 */
#define SCOPED_ALL 3u /* abstract sockets and signals; from version 6 */

#define READ_FILES (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE)
#define READS (READ_FILES | LANDLOCK_ACCESS_FS_READ_DIR)

static int landlock_version(void)
{
    return (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

/* All file access rights of this version. */
static uint64_t rights_of(int version)
{
    static const uint64_t n[] = {13, 14, 15, 15, 16}; /* number of rights in versions 1 to 5 */
    return (UINT64_C(1) << n[version > 5 ? 4 : version - 1]) - 1;
}

static int allow(int ruleset, const char *path, uint64_t rights)
{
    int fd = open(path, O_PATH | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) {
        return errno == ENOENT || errno == EACCES || errno == ENOTDIR ? 0 : -errno;
    }
    /* For a file, rights of folders would be an error. */
    uint64_t of_file = READ_FILES | LANDLOCK_ACCESS_FS_WRITE_FILE;
    struct landlock_path_beneath_attr rule = {
        .allowed_access = S_ISDIR(st.st_mode) ? rights : rights & of_file, .parent_fd = fd};
    long rc = rule.allowed_access == 0
                  ? 0
                  : syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    int error = errno;
    (void)close(fd);
    return rc == 0 ? 0 : -error;
}

static int confine_files(const struct jail *j)
{
    static const char *const of_system[] = {"/usr",
                                            "/bin",
                                            "/sbin",
                                            "/lib",
                                            "/lib32",
                                            "/lib64",
                                            "/etc/ld.so.cache",
                                            "/etc/ld.so.conf",
                                            "/etc/ld.so.conf.d",
                                            "/etc/alternatives",
                                            "/etc/localtime",
                                            "/nix/store",
                                            "/gnu/store",
                                            "/sys/devices/system/cpu/online",
                                            "/dev/urandom",
                                            "/dev/random",
                                            "/dev/zero",
                                            NULL};
    int version = landlock_version();
    if (version < 1) {
        return -ENOSYS;
    }
    struct ruleset attr = {rights_of(version), NET_ALL, SCOPED_ALL};
    size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
    if (ruleset < 0) {
        return -errno;
    }
    int rc = allow(ruleset, "/dev/null", READ_FILES | LANDLOCK_ACCESS_FS_WRITE_FILE);
    for (const char *const *p = of_system; *p != NULL && rc == 0; p++) {
        rc = allow(ruleset, *p, READS);
    }
    for (const char *const *p = j->reads; p != NULL && *p != NULL && rc == 0; p++) {
        rc = allow(ruleset, *p, READS);
    }
    for (const char *const *p = j->lists; p != NULL && *p != NULL && rc == 0; p++) {
        rc = allow(ruleset, *p, LANDLOCK_ACCESS_FS_READ_DIR);
    }
    if (rc == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) != 0) {
        rc = -errno;
    }
    (void)close(ruleset);
    return rc;
}

/* ---- capabilities and limits ---- */

static void limit(int what, rlim_t most)
{
    struct rlimit now;
    if (getrlimit((__rlimit_resource_t)what, &now) == 0 && now.rlim_max > most) {
        (void)setrlimit((__rlimit_resource_t)what, &(struct rlimit){most, most});
    }
}

static void drop_capabilities(void)
{
    struct __user_cap_header_struct who = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2];
    memset(none, 0, sizeof none);
    for (int i = 0; i < 64; i++) {
        (void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0); /* otherwise root regains them on exec */
    }
    (void)syscall(SYS_capset, &who, none);
}

int jail_enter(const struct jail *j)
{
    if (j->folder != NULL && chdir(j->folder) != 0) {
        return -errno;
    }
    limit(RLIMIT_DATA, (rlim_t)4 << 30);
    limit(RLIMIT_FSIZE, (rlim_t)1 << 30); /* for standard error, which may be a file */
    limit(RLIMIT_NOFILE, 256);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_MSGQUEUE, 0);
    limit(RLIMIT_MEMLOCK, 0);
    /* Before capabilities are dropped. Where it is not permitted, the filter suffices. */
    (void)unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return -errno;
    }
    int rc = confine_files(j);
    drop_capabilities();
    /* Close the parent's pipes, stores and traces. */
    int first = 3 + j->keeps;
    if (syscall(SYS_close_range, (unsigned)first, ~0u, 0u) != 0) {
        for (int fd = first; fd < 4096; fd++) {
            (void)close(fd);
        }
    }
    return rc != 0 ? rc : jail_filter(j->forks, j->warms);
}

/* ---- preparation ---- */

/* The reason why a jail does not work here, or NULL. Tests it in a child, as in a run. */
static const char *try_it(void)
{
    if (landlock_version() < 1) {
        return "the kernel has no Landlock (Linux 5.13, and `landlock` among its security modules)";
    }
    pid_t pid = fork();
    if (pid == 0) {
        int rc = jail_enter(&(struct jail){0});
        bool open_still = open("/proc/self/stat", O_RDONLY | O_CLOEXEC) >= 0;
        _exit(rc == 0 && !open_still ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    int status = 1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status == 0 ? NULL : "the kernel refuses a seccomp filter or a Landlock rule";
}

bool jail_works(const char **why)
{
    static const char *lacks;
    static bool known;
    if (!known) {
        const char *set = getenv("XPUSIM_JAIL");
        known = true;
        lacks = set != NULL && strcmp(set, "off") == 0 ? "XPUSIM_JAIL=off" : try_it();
    }
    if (why != NULL) {
        *why = lacks;
    }
    return lacks == NULL;
}

/* A list of folders with relative ones made absolute. */
static char *absolute(const char *dirs)
{
    OWNED char *here = realpath(".", NULL);
    char *all = xstrdup("");
    for (const char *at = dirs; *at != '\0';) {
        size_t n = strcspn(at, ":");
        bool relative = n > 0 && *at != '/' && here != NULL;
        char *longer = xformat("%s%s%s%.*s%s", all, relative ? here : "", relative ? "/" : "",
                               (int)n, at, at[n] == ':' ? ":" : "");
        free(all);
        all = longer;
        at += n + (at[n] == ':');
    }
    return all;
}

char **jail_environment(bool warms)
{
    static const char *const kept[] = {"PATH",
                                       "LANG",
                                       "LC_ALL",
                                       "LC_CTYPE",
                                       "TZ",
                                       "HOME",
                                       "PYTHONPATH",
                                       "LD_LIBRARY_PATH",
                                       "PYTHONPYCACHEPREFIX",
                                       NULL};
    static char *of_both[2][sizeof kept / sizeof kept[0] + 3];
    char **all = of_both[warms];
    size_t n = 0;
    if (all[0] != NULL) {
        return all;
    }
    all[n++] = xstrdup("PYTHONHASHSEED=0"); /* otherwise the order of Python's sets changes */
    all[n++] = xstrdup("PYTHONDONTWRITEBYTECODE=1");
    for (const char *const *k = kept; *k != NULL; k++) {
        const char *value = getenv(*k);
        if (value != NULL) {
            bool folders = strstr(*k, "PATH") != NULL || strstr(*k, "PREFIX") != NULL;
            OWNED char *is = folders ? absolute(value) : xstrdup(value);
            bool later = warms && strcmp(*k, "PYTHONPATH") == 0;
            all[n++] = xformat("%s%s=%s", later ? "XPUSIM_" : "", *k, is);
        }
    }
    return all;
}

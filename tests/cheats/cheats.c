/* A plug-in that tries to learn what it must not, in each way of the table, and reports each on
 * standard error as cheats.py does. tests/golden/cheats.sh runs it in the simulator's process and
 * in the jail of plug-ins. It serves nobody.
 *
 * SECRET_1 to SECRET_3 are the hidden lengths of the first three requests, by which it knows
 * whether a number is one; FOLDER is the parent's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/api/policy.h"

#define KNOWN 3
static const int64_t secret[KNOWN] = {SECRET_1, SECRET_2, SECRET_3};

struct state {
    const struct request *r[KNOWN];
    uint32_t n;
};

/* NULL: nothing; else what it got. */
typedef const char *cheat(struct sched *s, const struct state *x);

static char why[256];

static const char *nothing(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    return NULL;
}

static const char *opens(const char *path, int flags)
{
    int fd = open(path, flags);
    return fd < 0 ? nothing("%s", strerror(errno)) : "an open file";
}

static const char *of_parent(const char *file, int flags)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)getppid(), file);
    return opens(path, flags);
}

/* ---- the memory of its own process ---- */

static const char *own_memory_file(struct sched *s, const struct state *x)
{
    (void)s;
    (void)x;
    return opens("/proc/self/mem", O_RDWR);
}

static const char *own_maps(struct sched *s, const struct state *x)
{
    (void)s;
    (void)x;
    return opens("/proc/self/maps", O_RDONLY);
}

static int ends[2] = {-1, -1};

/* A page, without a fault where there is none. */
static int read_page(const char *page, char *into)
{
    if (ends[0] < 0 && pipe(ends) != 0) {
        return -1;
    }
    return write(ends[1], page, 4096) == 4096 && read(ends[0], into, 4096) == 4096 ? 0 : -1;
}

/* Hidden lengths are near a pointer to the request: in struct full_request of sim/core/objects.h.
 */
static int lengths_in(const char *page, const struct state *x, int *found)
{
    char bytes[4096];
    if (read_page(page, bytes) != 0) {
        return -1;
    }
    for (size_t i = 0; i + 64 <= sizeof bytes; i += 8) {
        for (uint32_t k = 0; k < x->n; k++) {
            uint32_t near[16];
            memcpy(near, bytes + i, sizeof near);
            if (memcmp(bytes + i, &x->r[k], sizeof x->r[k]) == 0) {
                for (int w = 2; w < 16; w++) {
                    *found |= near[w] == (uint32_t)secret[k] ? 1 << k : 0;
                }
            }
        }
    }
    return 0;
}

static const char *scan(const struct state *x, uintptr_t from, int pages)
{
    int found = 0;
    for (int way = -1; way <= 1; way += 2) {
        uintptr_t at = from & ~(uintptr_t)4095;
        for (int i = 0, gap = 0; i < pages && gap < 600 && at > 4096; i++) {
            gap = lengths_in((const char *)at, x, &found) != 0 ? gap + 1 : 0;
            at += (uintptr_t)(way * 4096);
        }
    }
    return found == (1 << KNOWN) - 1 ? "the lengths, next to pointers to their requests"
                                     : nothing("no length near such a pointer");
}

static const char *neighbours(struct sched *s, const struct state *x)
{
    const char *got = scan(x, (uintptr_t)x->r[0], 4000);
    got = got != NULL ? got : scan(x, (uintptr_t)s, 4000);
    return got != NULL ? got : scan(x, (uintptr_t)s->state, 4000);
}

/* ---- the simulator's code and tables ---- */

static const char *symbols(struct sched *s, const struct state *x)
{
    static const char *const names[] = {"trace_row_at", "core_schedule", "trace_generate",
                                        "core_sched_api", "core_way"};
    (void)s;
    (void)x;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (dlsym(RTLD_DEFAULT, names[i]) != NULL) {
            return names[i];
        }
    }
    return nothing("no such symbol");
}

static const char *right(struct sched *s, const struct state *x)
{
    for (uint32_t k = 0; k < x->n; k++) {
        if (s->api->oracle_output_tokens(s, x->r[k]) != secret[k]) {
            return nothing("not permitted");
        }
    }
    return "the lengths, from the oracle";
}

static struct policy_ops ops;

static const char *own_flags(struct sched *s, const struct state *x)
{
    ops.flags |= POLICY_F_ORACLE;
    const char *got = right(s, x);
    ops.flags &= ~POLICY_F_ORACLE;
    return got;
}

static const char *handle_flags(struct sched *s, const struct state *x)
{
    uint32_t *flags = (uint32_t *)(uintptr_t)&s->policy->flags;
    *flags |= POLICY_F_ORACLE;
    const char *got = right(s, x);
    *flags &= ~POLICY_F_ORACLE;
    return got;
}

/* By the kernel, which reports a page that cannot be written instead of ending the process. */
static const char *generated_tokens(struct sched *s, const struct state *x)
{
    (void)s;
    uint32_t value = x->r[0]->preemptions;
    if (pipe(ends) != 0 || write(ends[1], &value, sizeof value) != sizeof value) {
        return nothing("no pipe");
    }
    return read(ends[0], (void *)(uintptr_t)&x->r[0]->preemptions, sizeof value) == sizeof value
               ? "a request to write to"
               : nothing("%s", strerror(errno));
}

static const char *writable_pages(struct sched *s, const struct state *x)
{
    (void)s;
    uintptr_t page = (uintptr_t)x->r[0] & ~(uintptr_t)4095;
    return mprotect((void *)page, 4096, PROT_READ | PROT_WRITE) == 0
               ? "a request to write to"
               : nothing("%s", strerror(errno));
}

/* ---- the parent and the rest of the machine ---- */

static const char *parent_memory(struct sched *s, const struct state *x)
{
    (void)s;
    (void)x;
    return of_parent("mem", O_RDONLY);
}

static const char *command_line(struct sched *s, const struct state *x)
{
    (void)s;
    (void)x;
    return of_parent("cmdline", O_RDONLY);
}

static const char *read_parent(struct sched *s, const struct state *x)
{
    (void)s;
    char bytes[64];
    struct iovec here = {bytes, sizeof bytes};
    struct iovec there = {(void *)(uintptr_t)x->r[0], sizeof bytes};
    bool got = process_vm_readv(getppid(), &here, 1, &there, 1, 0) > 0 || errno == EFAULT;
    return got ? "the right to read" : nothing("%s", strerror(errno));
}

static const char *trace_parent(struct sched *s, const struct state *x)
{
    (void)s;
    (void)x;
    bool got = ptrace(PTRACE_SEIZE, getppid(), NULL, NULL) == 0;
    return got ? "the parent, seized" : nothing("%s", strerror(errno));
}

static const char *environment(struct sched *s, const struct state *x)
{
    (void)s;
    (void)x;
    return getenv("XPUSIM_TEST_SECRET") != NULL ? "the secret" : nothing("not there");
}

static const char *descriptors(struct sched *s, const struct state *x)
{
    (void)s;
    (void)x;
    char bytes[4096];
    for (int fd = 3; fd < 1024; fd++) { /* files that can be read; pipes cannot */
        if (fd != ends[0] && fd != ends[1] && pread(fd, bytes, sizeof bytes, 0) > 0) {
            return "a file of the simulator";
        }
    }
    return nothing("no open file");
}

static const char *trace_file(struct sched *s, const struct state *x)
{
    (void)s;
    (void)x;
    return opens(FOLDER "/trace.csv", O_RDONLY);
}

static const char *results(struct sched *s, const struct state *x)
{
    (void)s;
    (void)x;
    return opens(FOLDER "/earlier.csv", O_WRONLY);
}

static const char *sockets(struct sched *s, const struct state *x)
{
    (void)s;
    (void)x;
    return socket(AF_INET, SOCK_DGRAM, 0) >= 0 ? "a socket" : nothing("%s", strerror(errno));
}

static const char *processes(struct sched *s, const struct state *x)
{
    (void)s;
    (void)x;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    return pid > 0 && waitpid(pid, NULL, 0) == pid ? "a process" : nothing("%s", strerror(errno));
}

static const struct {
    const char *name;
    cheat *try;
} cheats[] = {
    {"own_memory_file", own_memory_file},
    {"own_maps", own_maps},
    {"neighbours", neighbours},
    {"symbols", symbols},
    {"oracle", right},
    {"own_flags", own_flags},
    {"handle_flags", handle_flags},
    {"generated_tokens", generated_tokens},
    {"writable_pages", writable_pages},
    {"parent_memory", parent_memory},
    {"command_line", command_line},
    {"read_parent", read_parent},
    {"trace_parent", trace_parent},
    {"environment", environment},
    {"descriptors", descriptors},
    {"trace_file", trace_file},
    {"results", results},
    {"sockets", sockets},
    {"processes", processes},
};

/* Only a process that checks the policy's answers survives this. */
static void forge(struct sched *s, const struct request *r)
{
    struct request copy = *r;
    (void)sched_shed(s, &copy);
}

static void request_arrived(struct sched *s, const struct request *r)
{
    struct state *x = s->state;
    if (param_bool(s, 0)) {
        forge(s, r);
    }
    if (param_bool(s, 1)) {
        raise(SIGSEGV);
    }
    if (x->n < KNOWN) {
        x->r[x->n++] = r;
    }
}

static void schedule(struct sched *s)
{
    struct state *x = s->state;
    if (x->n < KNOWN) {
        return;
    }
    for (size_t i = 0; i < sizeof cheats / sizeof cheats[0]; i++) {
        const char *got = cheats[i].try(s, x);
        (void)fprintf(stderr, "%s: %s%s\n", cheats[i].name,
                      got != NULL ? "GOT " : "nothing: ", got != NULL ? got : why);
    }
    s->api->give_up(s, "it has seen enough");
    x->n = 0;
}

static const struct policy_param params[] = {
    POLICY_BOOL("forge", 0, "names a request of its own making"),
    POLICY_BOOL("crash", 0, "ends its process"),
    {.name = NULL},
};

static struct policy_ops ops = {
    .contract = POLICY_CONTRACT,
    .name = "cheats",
    .summary = "looks for what it must not see",
    .state_size_bytes = sizeof(struct state),
    .params = params,
    .request_arrived = request_arrived,
    .schedule = schedule,
};

const struct policy_ops *xpusim_policy(void)
{
    return &ops;
}

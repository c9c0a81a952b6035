#define _GNU_SOURCE /* fopencookie */
#include "experiments/run/worker.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/output.h"

void worker_limit_cpu(double limit_s)
{
    struct rusage used;
    struct rlimit limit;
    if (!(limit_s > 0.0) || getrusage(RUSAGE_SELF, &used) != 0 ||
        getrlimit(RLIMIT_CPU, &limit) != 0) {
        return;
    }
    /* The kernel's limit counts from the start of the process, in whole seconds. */
    rlim_t until = (rlim_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + (rlim_t)ceil(limit_s);
    /* A limit in the past would kill it at once. */
    SIM_ASSERT(until > (rlim_t)used.ru_utime.tv_sec);
    limit.rlim_cur =
        limit.rlim_max == RLIM_INFINITY || until < limit.rlim_max ? until : limit.rlim_max;
    (void)setrlimit(RLIMIT_CPU, &limit);
}

void worker_become(pid_t parent)
{
    SIM_ASSERT(getpid() != parent); /* called in the child */
    /* Crashes are reported by a message, and core files of many runs would fill the disk. */
    struct rlimit no_core = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &no_core);
    /* Ends with its parent, even if that was killed. SIGTERM, not SIGKILL, so that it removes the
     * files that it has open. */
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) { /* the parent died before prctl */
        _exit(EXIT_FAILURE);
    }
}

/* ---- standard output ---- */

static uint64_t stdout_bytes;

static ssize_t pass_on(void *cookie UNUSED, const char *text, size_t n)
{
    stdout_bytes += n;
    return write(STDERR_FILENO, text, n);
}

static void clean_up_when_it_dies(void)
{
    (void)atexit(halt_remove_all); /* workers use _exit, so an exit is a policy's */
    static const int deadly[] = {
        SIGTERM, SIGXCPU, SIGABRT, /* replace the parent's handlers */
#ifndef __SANITIZE_ADDRESS__       /* AddressSanitizer handles the others */
        SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,
#endif
    };
#ifndef __SANITIZE_ADDRESS__
    static char stack[16384]; /* in case the stack overflowed */
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    (void)sigaltstack(&other, NULL);
#endif
    halt_on(deadly, sizeof deadly / sizeof deadly[0]);
}

void worker_isolate(void)
{
    SIM_ASSERT(stdout_bytes == 0); /* only once per process */
    clean_up_when_it_dies();
    cookie_io_functions_t only_write = {.write = pass_on};
    FILE *f = fopencookie(NULL, "w", only_write);
    /* The parent prints results on standard output, so a policy's own output must not go there. */
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    if (f == NULL) {
        out_of_memory(0);
    }
    /* Line buffered, so that text before a crash is printed. */
    (void)setvbuf(f, NULL, _IOLBF, BUFSIZ);
    stdout = f;
}

uint64_t worker_stdout_bytes(void)
{
    (void)fflush(stdout);
    return stdout_bytes;
}

/* Reads the first characters of a file of /proc; "" without the file. */
static const char *glance(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0) {
        (void)close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    return text;
}

bool worker_waits(pid_t pid)
{
    SIM_ASSERT(pid > 0);
    char path[64];
    char text[512];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    const char *state = strrchr(glance(path, text, sizeof text), ')'); /* "PID (name) S ..." */
    /* From the last bracket on, because a process's name may contain brackets. */
    if (state == NULL || strncmp(state, ") S", 3) != 0) {
        return false;
    }
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    /* With children it waits for a policy that is a program, whose time counts itself. */
    return access(path, R_OK) == 0 && glance(path, text, sizeof text)[0] == '\0';
}

void worker_describe_death(int wait_status, double cpu_limit_s, struct job_result *r)
{
    SIM_ASSERT(WIFSIGNALED(wait_status) || WIFEXITED(wait_status)); /* dead, not stopped */
    r->status = -EIO;
    r->exit_status =
        WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
    if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGXCPU) {
        (void)snprintf(r->message, sizeof r->message, "exceeded the limit of %g s of CPU time",
                       cpu_limit_s);
    } else if (WIFSIGNALED(wait_status)) {
        int sig = WTERMSIG(wait_status);
        (void)snprintf(r->message, sizeof r->message, "its process was killed by signal %d (%s)",
                       sig, strsignal(sig));
    } else if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == EXIT_NO_MEMORY) {
        r->status = -ENOMEM;
        (void)snprintf(r->message, sizeof r->message, "ran out of memory");
    } else {
        (void)snprintf(r->message, sizeof r->message, "its process ended with status %d",
                       r->exit_status);
    }
}

/* ---- commands in one process ---- */

/* static, for the signal handler */
static const char *limit_message;

static void limit_reached(int sig UNUSED)
{
    (void)!write(STDERR_FILENO, limit_message, strlen(limit_message));
    halt_remove_all();
    _exit(EXIT_FAILURE);
}

void worker_limit_self(double cpu_limit_s, const char *message)
{
    limit_message = xkeep(xformat("xpusim: error: %s\n", message)); /* of any length */
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = limit_reached;
    (void)sigaction(SIGXCPU, &action, NULL);
    worker_limit_cpu(cpu_limit_s);
}

uint32_t worker_processors(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint32_t)n : 1;
}

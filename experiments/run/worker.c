#include "experiments/run/worker.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/arena.h"
#include "sim/base/output.h"

void worker_limit_cpu(double limit_s)
{
    struct rusage used;
    struct rlimit limit;
    if (!(limit_s > 0.0) || getrusage(RUSAGE_SELF, &used) != 0 ||
        getrlimit(RLIMIT_CPU, &limit) != 0) {
        return;
    }
    rlim_t until = (rlim_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + (rlim_t)ceil(limit_s);
    limit.rlim_cur =
        limit.rlim_max == RLIM_INFINITY || until < limit.rlim_max ? until : limit.rlim_max;
    (void)setrlimit(RLIMIT_CPU, &limit);
}

void worker_become(pid_t parent)
{
    struct rlimit no_core = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) { /* it died before that */
        _exit(EXIT_FAILURE);
    }
}

void worker_describe_death(int wait_status, double cpu_limit_s, struct job_result *r)
{
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

/* ---- one process ---- */

/* A signal handler reaches nothing but static storage. */
static char limit_message[256];

static void limit_reached(int sig)
{
    (void)sig;
    (void)!write(STDERR_FILENO, limit_message, strlen(limit_message));
    output_abandon_all();
    _exit(EXIT_FAILURE);
}

void worker_limit_self(double cpu_limit_s, const char *message)
{
    (void)snprintf(limit_message, sizeof limit_message, "xpusim: error: %s\n", message);
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

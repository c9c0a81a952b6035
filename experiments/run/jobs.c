#include "experiments/run/jobs.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/arena.h"
#include "sim/base/err.h"
#include "sim/base/output.h"

#define BAR_CELLS 40
#define READ_BYTES 65536

/* What a worker sends before its data. */
struct head {
    int status;
    size_t size;
    char message[JOBS_MESSAGE_BYTES];
};

struct worker {
    pid_t pid;
    int fd; /* read end of its pipe */
    uint32_t index;
    unsigned char *bytes; /* owned: what it has sent */
    size_t n, cap;
};

/* ---- in the worker ---- */

static bool write_all(int fd, const void *data, size_t n)
{
    const unsigned char *p = data;
    while (n > 0) {
        ssize_t k = write(fd, p, n);
        if (k < 0 && errno == EINTR) {
            continue;
        }
        if (k <= 0) {
            return false;
        }
        p += k;
        n -= (size_t)k;
    }
    return true;
}

void jobs_limit_cpu(double limit_s)
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

void jobs_become_worker(pid_t parent)
{
    struct rlimit no_core = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) { /* it died before that */
        _exit(EXIT_FAILURE);
    }
}

static _Noreturn void work(const struct jobs *j, uint32_t index, int fd)
{
    jobs_limit_cpu(j->cpu_limit_s);
    struct job_result r;
    memset(&r, 0, sizeof r);
    j->run(j->ctx, index, &r);
    struct head h;
    memset(&h, 0, sizeof h);
    h.status = r.status;
    h.size = r.data != NULL ? r.size : 0;
    memcpy(h.message, r.message, sizeof h.message);
    bool sent = write_all(fd, &h, sizeof h) && write_all(fd, r.data, h.size);
    _exit(sent ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* ---- in the parent ---- */

static bool start(const struct jobs *j, uint32_t index, struct worker *w)
{
    int fds[2];
    if (pipe(fds) != 0) {
        return false;
    }
    (void)fflush(NULL); /* nothing buffered may be written twice */
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid < 0) {
        (void)close(fds[0]);
        (void)close(fds[1]);
        return false;
    }
    if (pid == 0) {
        (void)close(fds[0]);
        jobs_become_worker(parent);
        work(j, index, fds[1]);
    }
    (void)close(fds[1]);
    *w = (struct worker){.pid = pid, .fd = fds[0], .index = index};
    return true;
}

/* Reads what is there; false at the end of the worker's output. */
static bool receive(struct worker *w)
{
    if (w->cap - w->n < READ_BYTES) {
        w->cap = 2 * w->cap + READ_BYTES;
        w->bytes = xrealloc(w->bytes, w->cap);
    }
    ssize_t k = read(w->fd, w->bytes + w->n, w->cap - w->n);
    if (k < 0) {
        return errno == EINTR;
    }
    w->n += (size_t)k;
    return k > 0;
}

void jobs_describe_death(int wait_status, double cpu_limit_s, struct job_result *r)
{
    r->status = -EIO;
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
                       WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : wait_status);
    }
}

static void finish(const struct jobs *j, struct worker *w, struct job_result *r)
{
    int wait_status = 0;
    while (waitpid(w->pid, &wait_status, 0) < 0 && errno == EINTR) {
    }
    (void)close(w->fd);
    struct head h;
    memset(&h, 0, sizeof h);
    bool whole = w->n >= sizeof h;
    if (whole) {
        memcpy(&h, w->bytes, sizeof h);
        whole = w->n == sizeof h + h.size;
    }
    if (!whole) {
        jobs_describe_death(wait_status, j->cpu_limit_s, r);
        if (r->status == -ENOMEM) { /* the machine's fault, not the job's: no result without it */
            out_of_memory(0);
        }
    } else {
        r->status = h.status;
        memcpy(r->message, h.message, sizeof r->message);
        if (h.size > 0) {
            r->data = xmalloc(h.size);
            r->size = h.size;
            memcpy(r->data, w->bytes + sizeof h, h.size);
        }
    }
    free(w->bytes);
}

static void show_progress(const struct jobs *j, uint32_t done)
{
    if (!j->progress) {
        return;
    }
    char bar[BAR_CELLS + 1];
    uint32_t full = j->n > 0 ? done * BAR_CELLS / j->n : BAR_CELLS;
    for (uint32_t i = 0; i < BAR_CELLS; i++) {
        bar[i] = i < full ? '#' : '.';
    }
    bar[BAR_CELLS] = '\0';
    (void)fprintf(stderr, "\r[%s] %u of %u runs", bar, done, j->n);
    if (done == j->n) {
        (void)fprintf(stderr, "\r%*s\r", BAR_CELLS + 40, "");
    }
    (void)fflush(stderr);
}

/* Waits until some worker has sent something; takes in all that is there. Returns workers left. */
static uint32_t turn(const struct jobs *j, struct worker *workers, struct pollfd *fds, uint32_t n,
                     struct job_result *results, uint32_t *done)
{
    for (uint32_t i = 0; i < n; i++) {
        fds[i] = (struct pollfd){.fd = workers[i].fd, .events = POLLIN};
    }
    if (poll(fds, n, -1) < 0) {
        return n; /* a signal: try again */
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct worker w = workers[i];
        if (fds[i].revents != 0 && !receive(&w)) {
            finish(j, &w, &results[w.index]);
            show_progress(j, ++*done);
        } else {
            workers[kept++] = w;
        }
    }
    return kept;
}

void jobs_run(const struct jobs *j, struct job_result *results)
{
    uint32_t parallel = j->parallel < j->n ? j->parallel : j->n;
    struct worker *workers = xcalloc(parallel + 1, sizeof *workers);
    struct pollfd *fds = xcalloc(parallel + 1, sizeof *fds);
    if (j->n > 0) {
        memset(results, 0, j->n * sizeof *results);
    }
    uint32_t running = 0;
    uint32_t next = 0;
    uint32_t done = 0;
    show_progress(j, 0);
    while (done < j->n) {
        while (running < parallel && next < j->n && start(j, next, &workers[running])) {
            running++;
            next++;
        }
        if (running == 0) { /* not even one process: this job fails, the next may not */
            results[next].status = -EIO;
            (void)snprintf(results[next].message, JOBS_MESSAGE_BYTES, "cannot start a process: %s",
                           strerror(errno));
            next++;
            show_progress(j, ++done);
            continue;
        }
        running = turn(j, workers, fds, running, results, &done);
    }
    free(workers);
    free(fds);
}

/* ---- one process ---- */

/* A signal handler reaches nothing but static storage. */
static char limit_message[256];

static void limit_reached(int sig)
{
    (void)sig;
    (void)write_all(STDERR_FILENO, limit_message, strlen(limit_message));
    output_abandon_all();
    _exit(EXIT_FAILURE);
}

void jobs_limit_self(double cpu_limit_s, const char *message)
{
    (void)snprintf(limit_message, sizeof limit_message, "xpusim: error: %s\n", message);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = limit_reached;
    (void)sigaction(SIGXCPU, &action, NULL);
    jobs_limit_cpu(cpu_limit_s);
}

uint32_t jobs_processors(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint32_t)n : 1;
}

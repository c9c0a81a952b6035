#define _GNU_SOURCE /* pipe2 */
#include "policies/external/process.h"
#include "policies/external/zygote.h"
#include "sim/base/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_LINE_BYTES ((size_t)64 << 20)
#define END_GRACE_MS 1000
#define STAY_NS 20000000
#define NOT_FOUND 127 /* the exit status of shells for a missing program */
#define NOT_CONFINED 125

extern char **environ;

static int64_t clock_ms(void)
{
    return clock_now_ns() / 1000000;
}

static _Noreturn void become(char *const argv[], const struct jail *jail, int in, int out,
                             pid_t parent)
{
    struct rlimit no_core = {0, 0};
    (void)setpgid(0, 0); /* keeps Ctrl-C from the child */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0) {
        _exit(EXIT_FAILURE);
    }
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGPIPE, SIG_DFL);
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    for (int i = 0; jail != NULL && i < jail->keeps; i++) { /* kept descriptors are far above */
        (void)dup2(jail->kept[i], 3 + i);
    }
    if (jail != NULL) {
        environ = jail_environment(jail->warms);
        if (jail_enter(jail) != 0) {
            _exit(NOT_CONFINED);
        }
    }
    /* Searches PATH but runs no shell, so nothing in the name is expanded. */
    (void)execvp(argv[0], argv);
    _exit(NOT_FOUND);
}

/* Blocks SIGPIPE, so that writing to an ended process gives an error. It stays blocked as long as
 * the process lives, which saves two system calls per line. */
static void quiet(struct process *p)
{
    sigset_t pipe_only;
    (void)sigemptyset(&pipe_only);
    (void)sigaddset(&pipe_only, SIGPIPE);
    p->quiet = pthread_sigmask(SIG_BLOCK, &pipe_only, &p->before) == 0;
}

/* Discards a SIGPIPE of this pipe. One of another pipe, such as standard output, is delivered. */
static void no_longer_quiet(struct process *p)
{
    sigset_t pipe_only;
    struct timespec now = {0, 0};
    (void)sigemptyset(&pipe_only);
    (void)sigaddset(&pipe_only, SIGPIPE);
    if (p->quiet && p->broke) {
        (void)sigtimedwait(&pipe_only, NULL, &now);
    }
    if (p->quiet) {
        (void)pthread_sigmask(SIG_SETMASK, &p->before, NULL);
    }
    p->quiet = false;
}

static void apart(struct process *p)
{
    if (p->together) {
        (void)sched_setaffinity(0, sizeof p->home, &p->home);
    }
    p->together = false;
}

void process_together(struct process *p)
{
    int64_t now = clock_now_ns();
    if (now - p->chosen_ns > STAY_NS) {
        apart(p);
        p->chosen_ns = now;
        return;
    }
    if (p->together || p->chosen_ns > now) {
        return;
    }
    int cpu = sched_getcpu();
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET((unsigned)cpu, &here); /* no effect if cpu is -1 */
    p->together = sched_getaffinity(0, sizeof p->home, &p->home) == 0 && CPU_COUNT(&p->home) > 1 &&
                  sched_setaffinity(0, sizeof here, &here) == 0;
    if (p->together) {
        (void)sched_setaffinity(p->pid, sizeof here, &here);
    } else {
        p->chosen_ns = INT64_MAX; /* only one processor is allowed */
    }
}

/* Opens both pipes: p->to and p->from, and the other ends its[0] (to read) and its[1]. Close on
 * exec, because a pipe ends only when all copies of its other end are closed. */
static int open_pipes(struct process *p, int its[2])
{
    int to[2];
    int from[2];
    if (pipe2(to, O_CLOEXEC) != 0) {
        (void)snprintf(p->failure, sizeof p->failure, "no pipe: %s", strerror(errno));
        return -EIO;
    }
    if (pipe2(from, O_CLOEXEC) != 0) {
        (void)snprintf(p->failure, sizeof p->failure, "no process: %s", strerror(errno));
        (void)close(to[0]);
        (void)close(to[1]);
        return -EIO;
    }
    its[0] = to[0];
    its[1] = from[1];
    p->to = to[1];
    p->from = from[0];
    return 0;
}

/* Closes the child's pipe ends after its start, or reports that there is no child. */
static int opened(struct process *p, pid_t pid, const int its[2], int error)
{
    (void)close(its[0]);
    (void)close(its[1]);
    if (pid <= 0) {
        (void)close(p->to);
        (void)close(p->from);
        p->to = p->from = -1;
        (void)snprintf(p->failure, sizeof p->failure, "no process: %s", strerror(error));
        return -EIO;
    }
    /* Non-blocking, so that a child that does not read cannot stop the run beyond limit_s. */
    (void)fcntl(p->to, F_SETFL, O_NONBLOCK);
    (void)fcntl(p->from, F_SETFL, O_NONBLOCK);
    p->pid = pid;
    quiet(p);
    return 0;
}

int process_start(struct process *p, char *const argv[], const struct jail *jail, double limit_s)
{
    *p = (struct process){.limit_s = limit_s, .to = -1, .from = -1};
    int its[2];
    if (open_pipes(p, its) != 0) {
        return -EIO;
    }
    (void)setenv("PYTHONHASHSEED", "0", 1); /* fixes the order of Python's sets */
    (void)fflush(NULL);
    if (jail != NULL) {
        (void)jail_environment(jail->warms); /* build it here: the child only makes system calls */
#ifndef __SANITIZE_ADDRESS__                 /* LeakSanitizer traces this process at the end */
        (void)prctl(PR_SET_DUMPABLE, 0);
#endif
    }
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        become(argv, jail, its[0], its[1], parent);
    }
    return opened(p, pid, its, errno);
}

int process_start_of(struct process *p, struct zygote *z, const char *about, const int *kept,
                     double limit_s)
{
    *p = (struct process){.limit_s = limit_s, .to = -1, .from = -1, .zygote = z};
    int its[ZYGOTE_FDS];
    int n = 2;
    if (open_pipes(p, its) != 0) {
        return -EIO;
    }
    for (; kept != NULL && n < ZYGOTE_FDS; n++) {
        its[n] = kept[n - 2];
    }
    pid_t pid = zygote_fork(z, about, its, n);
    return opened(p, pid, its, ECHILD);
}

void process_keep(struct process *p)
{
    (void)close(p->to);
    (void)close(p->from);
    p->to = p->from = -1;
    text_fini(&p->in);
    no_longer_quiet(p);
}

static pid_t look_for_end(const struct process *p, int *status, bool wait)
{
    return p->zygote != NULL ? zygote_wait(p->zygote, status, wait)
                             : waitpid(p->pid, status, wait ? 0 : WNOHANG);
}

/* Waits for the end until until_ms, then kills the process. Returns the wait status. */
static int reap(struct process *p, int64_t until_ms)
{
    int status = 0;
    /* Polls, because there is no wait for one child with a time limit. */
    while (look_for_end(p, &status, false) == 0) {
        struct timespec tick = {0, 1000000};
        if (clock_ms() >= until_ms) {
            (void)kill(p->pid, SIGKILL); /* its group may not exist yet */
            (void)look_for_end(p, &status, true);
            break;
        }
        (void)nanosleep(&tick, NULL);
    }
    if (p->zygote == NULL) {
        (void)kill(-p->pid, SIGKILL); /* kill the processes it left behind */
    }
    p->pid = 0;
    return status;
}

/* Sets `failure` for a process whose pipe ended. */
static void describe_end(struct process *p)
{
    if (p->pid == 0) {
        return; /* it is set already */
    }
    int64_t now = clock_ms();
    int status = reap(p, now + END_GRACE_MS);
    if (WIFSIGNALED(status) && clock_ms() >= now + END_GRACE_MS) {
        (void)snprintf(p->failure, sizeof p->failure, "closed its pipe without ending");
    } else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) {
        (void)snprintf(p->failure, sizeof p->failure, "its process used up its CPU time");
    } else if (WIFSIGNALED(status)) {
        (void)snprintf(p->failure, sizeof p->failure, "its process was killed by signal %d (%s)",
                       WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else if (WEXITSTATUS(status) == NOT_CONFINED) {
        (void)snprintf(p->failure, sizeof p->failure, "its process could not be confined");
    } else if (WEXITSTATUS(status) == NOT_FOUND) {
        (void)snprintf(p->failure, sizeof p->failure, "there is no such program");
    } else {
        (void)snprintf(p->failure, sizeof p->failure, "its process ended with status %d",
                       WEXITSTATUS(status));
    }
}

static void describe_lateness(struct process *p, const char *what)
{
    (void)snprintf(p->failure, sizeof p->failure, "%s within %g s (limit_s)", what, p->limit_s);
}

/* Waits until fd is ready. False after until_ms. */
static bool wait_for(int fd, short events, int64_t until_ms)
{
    for (;;) {
        int64_t left = until_ms - clock_ms();
        struct pollfd f = {.fd = fd, .events = events};
        int n = poll(&f, 1, left <= 0 ? 0 : left > 1000000 ? 1000000 : (int)left);
        if (n > 0) {
            return true;
        }
        if ((n == 0 && left <= 0) || (n < 0 && errno != EINTR)) {
            return false;
        }
    }
}

static int64_t deadline_ms(const struct process *p)
{
    return clock_ms() + (int64_t)(p->limit_s * 1000.0);
}

int process_send(struct process *p, const char *bytes, size_t n)
{
    int64_t until_ms = 0;
    process_together(p);
    while (n > 0) {
        ssize_t k = write(p->to, bytes, n);
        if (k > 0) {
            bytes += k;
            n -= (size_t)k;
        } else if (k < 0 && errno == EAGAIN) {
            /* Read the clock only if the pipe is full, which is rare. */
            until_ms = until_ms == 0 ? deadline_ms(p) : until_ms;
            if (!wait_for(p->to, POLLOUT, until_ms)) {
                describe_lateness(p, "did not read its messages");
                return -EIO;
            }
        } else if (k < 0 && errno != EINTR) {
            p->broke = p->broke || errno == EPIPE;
            describe_end(p);
            return -EIO;
        }
    }
    return 0;
}

char *process_receive(struct process *p)
{
    /* Discard the last returned line only now, because its reader has used it until this call. */
    if (p->used > 0) {
        memmove(p->in.p, p->in.p + p->used, p->in.n - p->used);
        p->in.n -= p->used;
        p->used = 0;
    }
    int64_t until_ms = deadline_ms(p);
    for (size_t from = 0;;) {
        char *end = p->in.n > from ? memchr(p->in.p + from, '\n', p->in.n - from) : NULL;
        if (end != NULL) {
            *end = '\0';
            p->used = (size_t)(end - p->in.p) + 1;
            return p->in.p;
        }
        from = p->in.n;
        /* Limits the memory of a line that never ends. */
        if (p->in.n > MAX_LINE_BYTES) {
            (void)snprintf(p->failure, sizeof p->failure, "wrote a line of more than %zu MB",
                           MAX_LINE_BYTES >> 20);
            return NULL;
        }
        if (!wait_for(p->from, POLLIN, until_ms)) {
            describe_lateness(p, "gave no answer");
            return NULL;
        }
        text_room(&p->in, 65536);
        ssize_t k = read(p->from, p->in.p + p->in.n, p->in.cap - p->in.n);
        if (k > 0) {
            p->in.n += (size_t)k;
        } else if (k == 0 || (errno != EINTR && errno != EAGAIN)) {
            describe_end(p);
            return NULL;
        }
    }
}

int64_t process_deadline_ns(const struct process *p)
{
    return deadline_ms(p) * 1000000;
}

bool process_has_ended(struct process *p, int64_t deadline_ns)
{
    struct pollfd f = {.fd = p->from, .events = POLLIN};
    if (poll(&f, 1, 0) > 0) {
        if (process_receive(p) != NULL) {
            (void)snprintf(p->failure, sizeof p->failure, "wrote to a pipe that is not its own");
        }
        return true;
    }
    if (clock_now_ns() > deadline_ns) {
        describe_lateness(p, "gave no answer");
        return true;
    }
    return false;
}

size_t process_unasked(const struct process *p)
{
    return p->in.n - p->used;
}

void process_end(struct process *p)
{
    apart(p);
    if (p->to >= 0) {
        (void)close(p->to);
        p->to = -1;
    }
    int64_t until_ms = clock_ms() + (p->failure[0] == '\0' ? END_GRACE_MS : 0);
    if (p->from >= 0) {
        char rest[4096]; /* read on, so that a writing process can end */
        ssize_t k = 1;
        while (p->pid > 0 && k != 0 && wait_for(p->from, POLLIN, until_ms)) {
            k = read(p->from, rest, sizeof rest);
            k = k < 0 && (errno == EINTR || errno == EAGAIN) ? 1 : k < 0 ? 0 : k;
        }
        (void)close(p->from);
        p->from = -1;
    }
    if (p->pid > 0) {
        (void)reap(p, until_ms);
    }
    text_fini(&p->in);
    no_longer_quiet(p);
}

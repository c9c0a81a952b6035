#include "experiments/run/pool.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/clock.h"

#define TICK_MS 50
#define GRACE_S 0.5
#define MAX_MESSAGE_BYTES (64u << 20) /* larger sizes are errors */

enum message_kind { MESSAGE_ASK = 1, MESSAGE_DONE };

/* Header of a worker's message. A key for `wanted`, or a job's data, follows. */
struct head {
    uint32_t kind;
    int32_t status;
    uint64_t size;
    char message[JOBS_MESSAGE_BYTES];
};

/* The worker's side. */
struct pool_worker {
    int fd;
};

/* The parent's side. */
struct place {
    pid_t pid; /* 0: empty */
    int fd;
    bool busy;
    uint32_t n_jobs; /* jobs given to this worker */
    uint64_t job;
    double since_s;  /* start of the job, monotonic clock */
    double looked_s; /* when its process was last checked */
    double waited_s; /* observed waiting time of the job */
    double told_s;   /* time of the SIGTERM */
    bool timed_out;
};

/* For assertions: only a process has a job, and at most jobs_per_worker were given to it. */
static bool place_is_sound(const struct pool *p, const struct place *w)
{
    return !(w->busy && w->pid == 0) && w->n_jobs <= p->jobs_per_worker &&
           !(w->busy && w->n_jobs == 0);
}

static bool send_all(int fd, const void *data, size_t n)
{
    const unsigned char *p = data;
    while (n > 0) {
        /* No SIGPIPE: a dead peer is an error, and must not kill this program. */
        ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
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

static bool read_all(int fd, void *data, size_t n)
{
    unsigned char *p = data;
    while (n > 0) {
        ssize_t k = read(fd, p, n);
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

/* ---- in the worker ---- */

bool pool_wanted(struct pool_worker *w, const char *key)
{
    struct head h = {.kind = MESSAGE_ASK, .size = strlen(key) + 1};
    SIM_ASSERT(h.size <= MAX_MESSAGE_BYTES); /* the parent would report a dead worker */
    uint8_t answer = 0;
    if (!send_all(w->fd, &h, sizeof h) || !send_all(w->fd, key, h.size) ||
        !read_all(w->fd, &answer, sizeof answer)) {
        _exit(EXIT_FAILURE); /* the parent has died */
    }
    return answer != 0;
}

static _Noreturn void work(const struct pool *p, int fd)
{
    (void)signal(SIGINT, SIG_IGN); /* the parent handles Ctrl-C */
    worker_isolate();
    /* The limit is for this process, so that a run that exhausts it kills only one worker. */
    if (p->memory_limit_bytes > 0) {
        struct rlimit memory = {(rlim_t)p->memory_limit_bytes, (rlim_t)p->memory_limit_bytes};
        (void)setrlimit(RLIMIT_AS, &memory);
    }
    struct pool_worker w = {fd};
    uint64_t job = 0;
    while (read_all(fd, &job, sizeof job)) {
        /* Set again for every job, without earlier use. */
        worker_limit_cpu(p->cpu_limit_s);
        struct job_result r;
        memset(&r, 0, sizeof r);
        p->work(p->ctx, job, &w, &r);
        SIM_ASSERT(r.size <= MAX_MESSAGE_BYTES && (r.size == 0 || r.data != NULL));
        struct head h = {.kind = MESSAGE_DONE, .status = r.status};
        h.size = r.data != NULL ? r.size : 0;
        memcpy(h.message, r.message, sizeof h.message);
        if (!send_all(fd, &h, sizeof h) || !send_all(fd, r.data, h.size)) {
            break;
        }
        free(r.data);
    }
    _exit(EXIT_SUCCESS);
}

/* ---- in the parent ---- */

static int start(const struct pool *p, struct place *places, uint32_t at)
{
    SIM_ASSERT(places[at].pid == 0 && !places[at].busy); /* else the process would be lost */
    int fds[2];
    /* A process, not a thread, because plug-ins may crash, loop or leak, which must not affect
     * other runs. */
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) {
        return -errno;
    }
    (void)fflush(NULL); /* so that buffers are not written twice */
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        worker_become(parent);
        /* So that other workers see their sockets close. */
        for (uint32_t i = 0; i < p->parallel; i++) {
            if (places[i].pid != 0) {
                (void)close(places[i].fd);
            }
        }
        (void)close(fds[0]);
        work(p, fds[1]);
    }
    int error = errno;
    (void)close(fds[1]);
    if (pid < 0) {
        (void)close(fds[0]);
        return -error;
    }
    places[at] = (struct place){.pid = pid, .fd = fds[0]};
    return 0;
}

static int reap(struct place *w)
{
    int wait_status = 0;
    SIM_ASSERT(w->pid > 0); /* <= 0 would mean any child */
    while (waitpid(w->pid, &wait_status, 0) < 0 && errno == EINTR) {
    }
    (void)close(w->fd);
    w->pid = 0;
    return wait_status;
}

/* Closes the socket of an idle worker, which then exits. */
static void retire(struct place *w)
{
    (void)shutdown(w->fd, SHUT_RDWR);
    (void)reap(w);
}

static double wait_limit_s(const struct pool *p)
{
    return p->cpu_limit_s < POOL_WAIT_LIMIT_S ? p->cpu_limit_s : POOL_WAIT_LIMIT_S;
}

/* The worker's socket is closed. Between jobs that is its normal end; during a job it died. Returns
 * -ENOMEM if it ran out of memory without a limit, which is not the job's fault: the job is not
 * reported. */
static int lost(const struct pool *p, struct place *w)
{
    SIM_ASSERT(place_is_sound(p, w));
    int wait_status = reap(w);
    if (!w->busy) {
        return 0;
    }
    w->busy = false;
    struct job_result r;
    memset(&r, 0, sizeof r);
    worker_describe_death(wait_status, p->cpu_limit_s, &r);
    if (w->timed_out && w->waited_s > wait_limit_s(p)) {
        (void)snprintf(r.message, sizeof r.message,
                       "waited for %g s (a sleep, or a lock) instead of computing",
                       wait_limit_s(p));
    } else if (w->timed_out) {
        (void)snprintf(r.message, sizeof r.message, "did not return within %g s",
                       POOL_CLOCK_FACTOR * p->cpu_limit_s);
    } else if (r.status == -ENOMEM && p->memory_limit_bytes > 0) {
        (void)snprintf(r.message, sizeof r.message, "exceeded the limit of %llu MB of memory",
                       (unsigned long long)(p->memory_limit_bytes >> 20));
    } else if (r.status == -ENOMEM) {
        return -ENOMEM;
    }
    p->done(p->ctx, w->job, &r);
    return 0;
}

/* Gives the worker a job; false if there is none. */
static bool feed(const struct pool *p, struct place *w)
{
    SIM_ASSERT(w->pid > 0 && !w->busy && w->n_jobs < p->jobs_per_worker);
    if (!p->next(p->ctx, &w->job)) {
        return false;
    }
    w->busy = true;
    w->n_jobs++;
    w->timed_out = false;
    w->since_s = w->looked_s = clock_now_s();
    w->waited_s = 0.0;
    (void)send_all(w->fd, &w->job, sizeof w->job); /* reading detects a dead worker */
    return true;
}

/* Handles one message. Returns 0, or as `lost`. */
static int listen_to(const struct pool *p, struct place *w)
{
    struct head h;
    int rc = 0;
    OWNED void *data = NULL;
    bool whole = read_all(w->fd, &h, sizeof h) && h.size <= MAX_MESSAGE_BYTES;
    if (whole) {
        data = xmalloc(h.size + 1);
        whole = read_all(w->fd, data, h.size);
    }
    if (!whole) {
        rc = lost(p, w);
    } else if (h.kind == MESSAGE_ASK) {
        uint8_t answer = p->wanted(p->ctx, w->job, data) ? 1 : 0;
        (void)send_all(w->fd, &answer, sizeof answer);
    } else {
        struct job_result r = {
            .status = h.status, .data = h.size > 0 ? data : NULL, .size = h.size};
        memcpy(r.message, h.message, sizeof r.message);
        w->busy = false;
        p->done(p->ctx, w->job, &r);
    }
    SIM_ASSERT(place_is_sound(p, w));
    return rc;
}

/* Gives jobs to idle workers, and starts workers. Returns the number of busy workers, or -errno if
 * none can be started. */
static int hand_out(const struct pool *p, struct place *places)
{
    int busy = 0;
    bool more = true;
    for (uint32_t i = 0; i < p->parallel; i++) {
        struct place *w = &places[i];
        if (!w->busy && w->pid != 0 && w->n_jobs == p->jobs_per_worker) {
            retire(w);
        }
        if (!w->busy && more) {
            int rc = w->pid == 0 ? start(p, places, i) : 0;
            if (rc != 0) {
                return busy > 0 ? busy : rc;
            }
            more = feed(p, w);
        }
        busy += w->busy ? 1 : 0;
        SIM_ASSERT(place_is_sound(p, w));
    }
    SIM_ASSERT(!more || (uint32_t)busy == p->parallel); /* no worker is idle while there are jobs */
    return busy;
}

/* Checks whether a worker waits. Only checks at every tick count as waiting: time in which this
 * process could not check is not charged to the worker. */
static void look(struct place *w, double now_s)
{
    double since_s = now_s - w->looked_s;
    SIM_ASSERT(since_s >= 0.0 && w->waited_s <= w->looked_s - w->since_s + 1e-6);
    w->looked_s = now_s;
    if (worker_waits(w->pid)) {
        w->waited_s += fmin(since_s, 2e-3 * TICK_MS);
    }
}

static void end_late(const struct pool *p, struct place *places)
{
    double now_s = p->cpu_limit_s > 0.0 ? clock_now_s() : 0.0;
    for (uint32_t i = 0; i < p->parallel && p->cpu_limit_s > 0.0; i++) {
        struct place *w = &places[i];
        if (!w->busy || now_s - w->since_s < GRACE_S) {
            continue; /* most jobs end before the first check */
        }
        /* SIGTERM first, so that the worker removes its files; later SIGKILL. */
        if (w->timed_out) {
            SIM_ASSERT(w->told_s >= w->since_s && w->told_s <= now_s); /* sent in this job */
            (void)(now_s - w->told_s > GRACE_S && kill(w->pid, SIGKILL));
            continue;
        }
        look(w, now_s);
        if (w->waited_s > wait_limit_s(p) ||
            now_s - w->since_s > POOL_CLOCK_FACTOR * p->cpu_limit_s) {
            w->timed_out = true;
            w->told_s = now_s;
            (void)kill(w->pid, SIGTERM);
        }
    }
}

/* Waits for messages, and handles all. Returns 0, or as `lost`. */
static int turn(const struct pool *p, struct place *places, struct pollfd *fds)
{
    for (uint32_t i = 0; i < p->parallel; i++) {
        fds[i] = (struct pollfd){.fd = places[i].pid != 0 ? places[i].fd : -1, .events = POLLIN};
    }
    int rc = 0;
    if (poll(fds, p->parallel, TICK_MS) > 0) {
        for (uint32_t i = 0; i < p->parallel; i++) {
            /* A hang-up is an event, too: listen_to then reads the end of the stream, and reports
             * the job as lost. */
            if (fds[i].revents != 0 && listen_to(p, &places[i]) != 0) {
                rc = -ENOMEM;
            }
        }
    }
    end_late(p, places);
    return rc;
}

int pool_run(const struct pool *p)
{
    SIM_ASSERT(p->parallel >= 1 && p->jobs_per_worker >= 1);
    OWNED struct place *places = xcalloc(p->parallel, sizeof *places);
    OWNED struct pollfd *fds = xcalloc(p->parallel, sizeof *fds);
    int rc = 0;
    for (;;) {
        if (p->go_on != NULL && !p->go_on(p->ctx)) {
            rc = -EINTR;
            break;
        }
        int busy = hand_out(p, places);
        if (busy <= 0) {
            rc = busy;
            break;
        }
        rc = turn(p, places, fds);
        if (rc != 0) {
            break;
        }
    }
    for (uint32_t i = 0; i < p->parallel; i++) {
        if (places[i].pid == 0) {
            continue;
        }
        if (rc != 0) {
            (void)kill(places[i].pid, SIGKILL);
        }
        /* Idle workers exit by themselves. Busy ones were killed. */
        SIM_ASSERT(rc != 0 || !places[i].busy);
        retire(&places[i]);
    }
    return rc;
}

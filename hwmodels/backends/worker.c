#define _GNU_SOURCE /* processor affinity */
#include "hwmodels/backends/worker.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "sim/base/clock.h"

enum job_state { JOB_QUEUED, JOB_DONE, JOB_CANCELLED };

struct job {
    void (*run)(void *arg);
    void *arg;
    enum job_state state;
    struct backend_stamps stamps;
};

struct worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t posted, finished;
    struct job ring[BACKEND_MAX_INFLIGHT]; /* ticket t is ring[t % size] */
    int64_t last_ticket;                   /* submitted; tickets count from 1 */
    int64_t started;                       /* last one started by the thread (or skipped) */
    int64_t ended;                         /* done or cancelled, in order */
    int64_t busy_ns;
    bool stop;
};

void worker_sleep(int64_t span_ns)
{
    struct timespec until = clock_after(span_ns);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}

static struct job *job_of(struct worker *w, int64_t ticket)
{
    return &w->ring[ticket % BACKEND_MAX_INFLIGHT];
}

/* Runs a job without the lock, which the caller has before and after. */
static void run_job(struct worker *w, struct job *j)
{
    (void)pthread_mutex_unlock(&w->lock);
    /* Processor time is read outside the two clock readings of the span, because reading it is a
     * system call. */
    int64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    int64_t start_ns = clock_now_ns();
    j->run(j->arg);
    int64_t end_ns = clock_now_ns();
    cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
    (void)pthread_mutex_lock(&w->lock);
    j->stamps.start_ns = start_ns;
    j->stamps.end_ns = end_ns;
    j->stamps.cpu_ns = cpu_ns;
    j->state = JOB_DONE;
    w->busy_ns += cpu_ns;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    (void)pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        if (w->started == w->last_ticket) {
            (void)pthread_cond_wait(&w->posted, &w->lock);
            continue;
        }
        struct job *j = job_of(w, ++w->started);
        /* A cancelled job is skipped in its turn, because tickets end in order. */
        if (j->state == JOB_QUEUED) {
            run_job(w, j);
        }
        w->ended = w->started;
        (void)pthread_cond_broadcast(&w->finished);
    }
    (void)pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* The thread is created on its core, so that its first touch of memory is local, too. */
static int start_pinned(struct worker *w, uint32_t core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    pthread_attr_t attr;
    (void)pthread_attr_init(&attr);
    int rc = pthread_attr_setaffinity_np(&attr, sizeof set, &set);
    rc = rc != 0 ? rc : pthread_create(&w->thread, &attr, work, w);
    (void)pthread_attr_destroy(&attr);
    return rc;
}

struct worker *worker_start(uint32_t core, struct err *e)
{
    if (core >= CPU_SETSIZE) {
        return err_null(e, "cpu%u: there is no such core", core);
    }
    struct worker *w = xcalloc(1, sizeof *w);
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_cond_init(&w->posted, &attr);
    (void)pthread_cond_init(&w->finished, &attr);
    (void)pthread_condattr_destroy(&attr);
    int rc = start_pinned(w, core);
    if (rc != 0) {
        err_add(e, "cpu%u: cannot start a thread on this core: %s", core, strerror(rc));
        free(w);
        return NULL;
    }
    return w;
}

void worker_stop(struct worker *w)
{
    (void)pthread_mutex_lock(&w->lock);
    w->stop = true;
    (void)pthread_cond_signal(&w->posted);
    (void)pthread_mutex_unlock(&w->lock);
    (void)pthread_join(w->thread, NULL);
    (void)pthread_cond_destroy(&w->posted);
    (void)pthread_cond_destroy(&w->finished);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}

int64_t worker_submit(struct worker *w, void (*run)(void *arg), void *arg)
{
    (void)pthread_mutex_lock(&w->lock);
    int64_t ticket = -EAGAIN;
    /* With more, a ticket would replace one that still runs. */
    if (w->last_ticket - w->ended < BACKEND_MAX_INFLIGHT) {
        ticket = ++w->last_ticket;
        *job_of(w, ticket) = (struct job){.run = run, .arg = arg, .state = JOB_QUEUED};
        job_of(w, ticket)->stamps.submit_ns = clock_now_ns();
        (void)pthread_cond_signal(&w->posted);
    }
    (void)pthread_mutex_unlock(&w->lock);
    return ticket;
}

int worker_wait(struct worker *w, int64_t ticket, int64_t timeout_ns)
{
    struct timespec until = clock_after(timeout_ns);
    int rc = 0;
    (void)pthread_mutex_lock(&w->lock);
    while (w->ended < ticket && rc == 0) {
        rc = pthread_cond_timedwait(&w->finished, &w->lock, &until);
    }
    if (w->ended >= ticket) {
        rc = job_of(w, ticket)->state == JOB_CANCELLED ? ECANCELED : 0;
    }
    (void)pthread_mutex_unlock(&w->lock);
    return -rc;
}

int worker_stamps(struct worker *w, int64_t ticket, struct backend_stamps *out)
{
    (void)pthread_mutex_lock(&w->lock);
    bool known = ticket >= 1 && ticket <= w->ended &&
                 w->last_ticket - ticket < BACKEND_MAX_INFLIGHT &&
                 job_of(w, ticket)->state == JOB_DONE;
    if (known) {
        *out = job_of(w, ticket)->stamps;
    }
    (void)pthread_mutex_unlock(&w->lock);
    return known ? 0 : -EINVAL;
}

int64_t worker_cancel(struct worker *w, int64_t ticket)
{
    (void)pthread_mutex_lock(&w->lock);
    /* A job that the thread has started runs to its end. */
    int64_t stays = ticket - 1 > w->started ? ticket - 1 : w->started;
    for (int64_t t = stays + 1; t <= w->last_ticket; t++) {
        job_of(w, t)->state = JOB_CANCELLED;
    }
    stays = stays < w->last_ticket ? stays : w->last_ticket;
    (void)pthread_mutex_unlock(&w->lock);
    return stays;
}

int64_t worker_busy_ns(struct worker *w)
{
    (void)pthread_mutex_lock(&w->lock);
    int64_t busy_ns = w->busy_ns;
    (void)pthread_mutex_unlock(&w->lock);
    return busy_ns;
}

uint32_t worker_cores(uint32_t *out, uint32_t cap)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        return 0;
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &set)) {
            if (n < cap) {
                out[n] = i;
            }
            n++;
        }
    }
    return n;
}

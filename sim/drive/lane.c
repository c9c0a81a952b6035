/* Threads of the real executor: one per device, one loader, one compiler. They run jobs and never
 * access the core. The host waits for them, and detects hung jobs and interrupts. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_setaffinity_np */
#endif
#include <sched.h>
#include <time.h>

#include "sim/drive/drive_impl.h"

#define GRACE_NS (NS_PER_S / 2) /* after an interrupt, for work in progress */
#define DEVICE_PRIORITY 5       /* SCHED_FIFO; below HOST_PRIORITY, so that the host can preempt */

bool lane_list_ok(const struct job_list *l)
{
    return (l->head == NULL) == (l->tail == NULL) && (l->tail == NULL || l->tail->next == NULL);
}

/* A job is in at most one list, because it has one link. */
static void list_append(struct job_list *l, struct job *j)
{
    SIM_ASSERT(lane_list_ok(l) && l->tail != j && l->head != j);
    j->next = NULL;
    if (l->tail == NULL) {
        l->head = j;
    } else {
        l->tail->next = j;
    }
    l->tail = j;
    SIM_ASSERT(lane_list_ok(l));
}

static struct job *list_take(struct job_list *l)
{
    struct job *j = l->head;
    if (j != NULL) {
        l->head = j->next;
        l->tail = l->head == NULL ? NULL : l->tail;
    }
    SIM_ASSERT(lane_list_ok(l));
    return j;
}

static bool list_remove(struct job_list *l, const struct job *j)
{
    struct job *before = NULL;
    for (struct job *i = l->head; i != NULL; before = i, i = i->next) {
        if (i == j) {
            *(before == NULL ? &l->head : &before->next) = i->next;
            l->tail = l->tail == i ? before : l->tail;
            SIM_ASSERT(lane_list_ok(l));
            return true;
        }
    }
    return false;
}

static void settle(struct lane *w)
{
    if (w->core >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((size_t)w->core, &set);
        (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set); /* unpinned on failure */
    }
    struct sched_param p = {.sched_priority = DEVICE_PRIORITY};
    SIM_ASSERT(w->running == NULL && !w->granted); /* the host reads it after the first job */
    w->granted = w->realtime && pthread_setschedparam(pthread_self(), SCHED_FIFO, &p) == 0;
}

static void *lane_main(void *arg)
{
    struct lane *w = arg;
    struct drive *d = w->drive;
    settle(w);
    drive_lock(d);
    while (!w->quit) {
        struct job *j = list_take(&w->queue);
        if (j == NULL) {
            drive_wait(d, &w->wake, NULL);
            continue;
        }
        SIM_ASSERT(w->running == NULL && j->lane == w && j->status == 0);
        w->running = j;
        int64_t now_ns = d->host->now_ns();
        SIM_ASSERT(now_ns >= w->began_ns); /* began_ns only increases */
        w->began_ns = now_ns;
        drive_unlock(d);
        j->run(j);
        drive_lock(d);
        SIM_ASSERT(w->running == j && j->lane == w); /* a running job cannot be withdrawn */
        SIM_ASSERT(j->status <= 0);
        w->running = NULL;
        list_append(&d->done, j);
        (void)d->host->cond_broadcast(&d->ended);
    }
    drive_unlock(d);
    return NULL;
}

bool lane_runs(const struct lane *w, const struct job *j)
{
    return pthread_equal(w->drive->host->thread_self(), w->thread) != 0 && w->running == j &&
           j->lane == w;
}

int lane_start(struct lane *w, struct drive *d, const char *name, int core, bool realtime)
{
    SIM_ASSERT(drive_on_host(d) && !w->started && w->queue.head == NULL); /* only once */
    *w = (struct lane){.drive = d, .name = name, .core = core, .realtime = realtime};
    pthread_cond_init(&w->wake, NULL);
    int rc = -d->host->thread_create(&w->thread, NULL, lane_main, w);
    w->started = rc == 0;
    return rc;
}

void drive_kill(struct drive *d)
{
    for (uint32_t i = 0; i < d->machine->n_devices; i++) {
        struct real_device *v = &d->devices[i];
        SIM_ASSERT(drive_on_host(d) && (v->n_live == 0 || v->handle != NULL));
        for (uint32_t k = 0; k < v->n_live; k++) {
            atomic_store(&v->live[k]->kill, 1);
            atomic_store(&v->live[k]->stop, 1);
        }
        if (v->n_live > 0 && v->engine->interrupt != NULL) {
            v->engine->interrupt(v->handle);
        }
    }
}

bool drive_interrupted(struct drive *d)
{
    const volatile sig_atomic_t *asked = d->options->interrupt;
    SIM_ASSERT(drive_on_host(d));
    if (d->interrupted_ns == 0 && asked != NULL && *asked != 0) {
        d->interrupted_ns = d->host->now_ns();
        drive_kill(d);
    }
    return d->interrupted_ns != 0;
}

/* Waits once for the end of a job. Sets w->hung if the job exceeds limit_ns since the later of
 * since_ns and lane.began_ns, or GRACE_NS after an interrupt. Needs the mutex. */
static void lane_wait(struct lane *w, int64_t since_ns, int64_t limit_ns)
{
    struct drive *d = w->drive;
    SIM_ASSERT(d->locked && drive_on_host(d) && w->started && !w->hung);
    bool interrupted = drive_interrupted(d);
    int64_t now_ns = d->host->now_ns();
    SIM_ASSERT(!interrupted || (d->interrupted_ns > 0 && d->interrupted_ns <= now_ns));
    int64_t left_ns = (w->began_ns > since_ns ? w->began_ns : since_ns) + limit_ns - now_ns;
    if (interrupted && d->interrupted_ns + GRACE_NS - now_ns < left_ns) {
        left_ns = d->interrupted_ns + GRACE_NS - now_ns;
    }
    SIM_ASSERT(left_ns <= limit_ns);
    w->hung = left_ns <= 0;
    if (!w->hung) {
        struct timespec until = d->host->after(left_ns < DRIVE_LOOK_NS ? left_ns : DRIVE_LOOK_NS);
        drive_wait(d, &d->ended, &until);
    }
}

static int64_t limit_of(const struct lane *w)
{
    const struct drive *d = w->drive;
    SIM_ASSERT(d->hang_ns > 0 && d->compile_ns > 0); /* 0 would always count as hung */
    return w == &d->compiler ? d->compile_ns : d->hang_ns;
}

void lane_stop(struct lane *w)
{
    if (!w->started) {
        return;
    }
    struct drive *d = w->drive;
    drive_lock(d);
    SIM_ASSERT(!w->quit && (w->running == NULL || w->running->lane == w));
    w->quit = true;
    (void)d->host->cond_signal(&w->wake);
    while (w->running != NULL && !w->hung) {
        lane_wait(w, w->began_ns, limit_of(w));
    }
    drive_unlock(d);
    if (w->hung) {
        (void)d->host->thread_detach(w->thread);
    } else {
        (void)d->host->thread_join(w->thread, NULL);
        SIM_ASSERT(w->running == NULL && lane_list_ok(&w->queue)); /* the queue may have jobs */
        pthread_cond_destroy(&w->wake);
    }
}

void lane_post(struct lane *w, struct job *j)
{
    struct drive *d = w->drive;
    /* May be a hung lane: a failed run continues to the end of its instant. */
    SIM_ASSERT(drive_on_host(d) && w->started && !w->quit && j->run != NULL);
    j->lane = w;
    j->status = 0;
    j->why[0] = '\0';
    drive_lock(d);
    list_append(&w->queue, j);
    (void)d->host->cond_signal(&w->wake);
    drive_unlock(d);
}

bool lane_withdraw(struct lane *w, struct job *j)
{
    SIM_ASSERT(drive_on_host(w->drive) && j->lane == w);
    drive_lock(w->drive);
    bool waited = list_remove(&w->queue, j);
    SIM_ASSERT(!waited || w->running != j); /* waiting, running and ended exclude each other */
    drive_unlock(w->drive);
    return waited;
}

int lane_call(struct lane *w, struct job *j, int64_t limit_ns)
{
    struct drive *d = w->drive;
    int64_t posted_ns = d->host->now_ns();
    lane_post(w, j);
    drive_lock(d);
    while (!list_remove(&d->done, j) && !w->hung) {
        lane_wait(w, posted_ns, limit_ns);
    }
    bool hung = w->hung;
    SIM_ASSERT(hung || (w->running != j && w->queue.tail != j));
    drive_unlock(d);
    return !hung ? j->status : d->interrupted_ns > 0 ? -EINTR : -ETIMEDOUT;
}

const char *lane_why(const struct job *j, int rc)
{
    /* The status of a hung job belongs to its thread, and is not read. */
    SIM_ASSERT(rc == -ETIMEDOUT || rc == -EINTR || (rc < 0 && rc == j->status));
    return rc == -ETIMEDOUT ? "its work does not come back"
           : rc == -EINTR   ? "its work does not end after a signal"
                            : j->why;
}

static bool hung(struct lane *w, int64_t now_ns)
{
    SIM_ASSERT(w->started && w->drive->locked); /* devices and both services have started */
    w->hung = w->hung || (w->started && w->running != NULL && now_ns - w->began_ns > limit_of(w));
    return w->hung;
}

struct lane *lane_hung(struct drive *d)
{
    SIM_ASSERT(d->locked && drive_on_host(d));
    int64_t now_ns = d->host->now_ns();
    for (uint32_t i = 0; i < d->machine->n_devices; i++) {
        if (hung(&d->devices[i].lane, now_ns)) {
            return &d->devices[i].lane;
        }
    }
    return hung(&d->loader, now_ns) ? &d->loader : hung(&d->compiler, now_ns) ? &d->compiler : NULL;
}

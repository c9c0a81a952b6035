#define _GNU_SOURCE /* processor affinity */
#include "hwmodels/backends/team.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define SPINS 20000 /* tens of us, so that threads do not sleep between launches of a queue */

struct member {
    struct team *team;
    pthread_t thread;
    uint32_t index;
};

struct team {
    pthread_mutex_t lock;
    pthread_cond_t posted;
    struct member *members; /* members[1 ..] are threads */
    uint32_t n, n_started;
    atomic_uint round, done; /* round: counts jobs; done: members that finished this one */
    void (*part)(void *arg, uint32_t i);
    void *arg;
    bool stop;
};

/* Waits for the next round, first spinning, then asleep. */
static unsigned next_round(struct team *t, unsigned seen)
{
    /* Waking a thread takes longer than a small kernel does. */
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load(&t->round) != seen) {
            return atomic_load(&t->round);
        }
    }
    (void)pthread_mutex_lock(&t->lock);
    while (atomic_load(&t->round) == seen) {
        (void)pthread_cond_wait(&t->posted, &t->lock);
    }
    (void)pthread_mutex_unlock(&t->lock);
    return atomic_load(&t->round);
}

static void *work(void *arg)
{
    struct member *m = arg;
    struct team *t = m->team;
    for (unsigned seen = 0;;) {
        seen = next_round(t, seen);
        if (t->stop) {
            return NULL;
        }
        t->part(t->arg, m->index);
        (void)atomic_fetch_add(&t->done, 1);
    }
}

static void post(struct team *t)
{
    (void)pthread_mutex_lock(&t->lock);
    (void)atomic_fetch_add(&t->round, 1);
    (void)pthread_cond_broadcast(&t->posted);
    (void)pthread_mutex_unlock(&t->lock);
}

struct team *team_start(const uint32_t *cores, uint32_t n, struct err *e)
{
    struct team *t = xcalloc(1, sizeof *t);
    t->members = xcalloc(n, sizeof *t->members);
    t->n = n;
    t->n_started = 1;
    (void)pthread_mutex_init(&t->lock, NULL);
    (void)pthread_cond_init(&t->posted, NULL);
    for (uint32_t i = 1; i < n; i++) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(cores[i], &set);
        pthread_attr_t attr;
        (void)pthread_attr_init(&attr);
        t->members[i] = (struct member){.team = t, .index = i};
        int rc = pthread_attr_setaffinity_np(&attr, sizeof set, &set);
        rc = rc != 0 ? rc : pthread_create(&t->members[i].thread, &attr, work, &t->members[i]);
        (void)pthread_attr_destroy(&attr);
        if (rc != 0) {
            (void)err_add(e, "cpu%u: cannot start a thread on this core: %s", cores[i],
                          strerror(rc));
            team_stop(t);
            return NULL;
        }
        t->n_started = i + 1;
    }
    return t;
}

void team_stop(struct team *t)
{
    if (t == NULL) {
        return;
    }
    t->stop = true;
    post(t);
    for (uint32_t i = 1; i < t->n_started; i++) {
        (void)pthread_join(t->members[i].thread, NULL);
    }
    (void)pthread_cond_destroy(&t->posted);
    (void)pthread_mutex_destroy(&t->lock);
    free(t->members);
    free(t);
}

void team_run(struct team *t, void (*part)(void *arg, uint32_t i), void *arg)
{
    t->part = part;
    t->arg = arg;
    atomic_store(&t->done, 0);
    post(t);
    /* The caller does part 0, because it has its own core, like the others. */
    part(arg, 0);
    while (atomic_load(&t->done) != t->n - 1) { /* spins, because its core is its own */
        (void)sched_yield();
    }
}

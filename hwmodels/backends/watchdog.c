#include "hwmodels/backends/watchdog.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "sim/base/base.h"
#include "sim/base/clock.h"

struct watchdog {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t limit_ns, kicked_ns;
    bool stop;
    char what[96];
};

/* Sleeps until the last kick is too old, and looks then: kicks wake nobody, so that thousands of
 * short steps cost nothing. */
static void *watch(void *arg)
{
    struct watchdog *w = arg;
    (void)pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        struct timespec until = clock_after(w->kicked_ns + w->limit_ns - clock_now_ns());
        (void)pthread_cond_timedwait(&w->changed, &w->lock, &until);
        /* Kicked meanwhile, it sleeps on: the wait ran to the limit of an older kick. */
        if (!w->stop && clock_now_ns() >= w->kicked_ns + w->limit_ns) {
            (void)fprintf(stderr,
                          "\nxpusim: error: %s has not returned for %.0f s: the driver hangs. The "
                          "rows measured so far are in the .part file. Leave this device out of "
                          "--devices.\n",
                          w->what, units_s_from_ns(w->limit_ns));
            /* A driver that hangs cannot be interrupted from here, and exit would wait for its
             * threads. */
            _exit(1);
        }
    }
    (void)pthread_mutex_unlock(&w->lock);
    return NULL;
}

struct watchdog *watchdog_start(int64_t limit_ns)
{
    struct watchdog *w = xcalloc(1, sizeof *w);
    w->limit_ns = limit_ns;
    w->kicked_ns = clock_now_ns();
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    /* A clock that is set while a machine is measured would end the wait, or never. */
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_cond_init(&w->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
    if (pthread_create(&w->thread, NULL, watch, w) != 0) {
        free(w);
        return NULL;
    }
    return w;
}

void watchdog_kick(struct watchdog *w, const char *what)
{
    if (w == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&w->lock);
    w->kicked_ns = clock_now_ns();
    (void)snprintf(w->what, sizeof w->what, "%s", what);
    (void)pthread_mutex_unlock(&w->lock);
}

void watchdog_stop(struct watchdog *w)
{
    if (w == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&w->lock);
    w->stop = true;
    (void)pthread_cond_signal(&w->changed);
    (void)pthread_mutex_unlock(&w->lock);
    (void)pthread_join(w->thread, NULL);
    (void)pthread_cond_destroy(&w->changed);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}

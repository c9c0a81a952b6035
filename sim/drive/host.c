/* Implements struct drive_host by POSIX functions of this computer. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_DIRECT, on_exit */
#endif
#include "sim/drive/host.h"

#include <fcntl.h>
#include <unistd.h>

#include "sim/base/base.h"
#include "sim/base/clock.h"

static int64_t cpu_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Uses O_DIRECT if the file system supports it, to avoid copies into the page cache. */
static int swap_open(const char *folder)
{
    OWNED char *path = xformat("%s/xpusim-swap-XXXXXX", folder);
    int fd = mkstemp(path);
    int direct = fd < 0 ? -errno : open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
    if (fd >= 0) {
        (void)unlink(path);
    }
    if (fd < 0) {
        SIM_ASSERT(direct < 0); /* errno of mkstemp */
        return direct;
    }
    if (direct >= 0) {
        (void)close(fd);
        return direct;
    }
    return fd;
}

static bool detached; /* thread_detach was called */

static void leave(int status, void *nothing UNUSED)
{
    (void)fflush(NULL);
    _exit(status);
}

/* A hung thread continues while the process exits. Libraries' exit handlers would free its data, so
 * the process must end without them. on_exit's handlers run in reverse order, so this covers exit()
 * unless the thread registers more handlers later; main calls drive_host_leave. */
static int thread_detach(pthread_t t)
{
    if (!detached) {
        detached = true;
        (void)on_exit(leave, NULL);
    }
    return pthread_detach(t);
}

void drive_host_leave(int status)
{
    if (detached) {
        leave(status, NULL);
    }
}

const struct drive_host drive_host_posix = {
    .thread_create = pthread_create,
    .thread_join = pthread_join,
    .thread_detach = thread_detach,
    .thread_self = pthread_self,
    .mutex_lock = pthread_mutex_lock,
    .mutex_unlock = pthread_mutex_unlock,
    .cond_wait = pthread_cond_wait,
    .cond_timedwait = pthread_cond_timedwait,
    .cond_signal = pthread_cond_signal,
    .cond_broadcast = pthread_cond_broadcast,
    .now_ns = clock_now_ns,
    .after = clock_after,
    .cpu_ns = cpu_ns,
    .pread = pread,
    .pwrite = pwrite,
    .fdatasync = fdatasync,
    .swap_open = swap_open,
};

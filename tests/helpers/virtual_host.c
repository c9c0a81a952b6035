#define _GNU_SOURCE /* memfd_create */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/base/units.h"
#include "tests/helpers/virtual_impl.h"

/* ---- threads ---- */

static int thread_create(pthread_t *out, const pthread_attr_t *a, void *(*main)(void *), void *arg)
{
    (void)a;
    vm_operation();
    if (vm.n == VIRTUAL_THREADS || (vm.faults->no_thread && vm.n == 4)) {
        return EAGAIN;
    }
    *out = (pthread_t)(vm_thread_add(main, arg) - vm.threads);
    return 0;
}

static int thread_join(pthread_t which, void **result)
{
    (void)result;
    vm_operation();
    struct thread *t = &vm.threads[(uint32_t)which];
    struct thread *here = &vm.threads[vm.at];
    if (t->joined) {
        virtual_finding("thread %u is joined twice", (uint32_t)which);
    }
    t->joined = true;
    while (t->state != THREAD_ENDED) {
        here->state = THREAD_JOINING;
        here->on = t;
        vm_dispatch();
    }
    return 0;
}

static int thread_detach(pthread_t which)
{
    vm_operation();
    vm.threads[(uint32_t)which].joined = true;
    return 0;
}

/* No operation: assertions ask it, and a run is the same without them. */
static pthread_t thread_self(void)
{
    return (pthread_t)vm.at;
}

/* ---- locks and conditions ---- */

static int mutex_lock(pthread_mutex_t *m)
{
    vm_operation();
    struct thread *t = &vm.threads[vm.at];
    if (vm.locked[vm.at] != NULL) {
        virtual_finding("thread %u locks twice", vm.at);
        vm_give_up();
    }
    t->state = THREAD_LOCKING;
    t->mutex = m;
    vm_dispatch();
    return 0;
}

static int mutex_unlock(pthread_mutex_t *m)
{
    if (vm.locked[vm.at] != m) {
        virtual_finding("thread %u unlocks what it has not locked", vm.at);
    }
    vm.locked[vm.at] = NULL;
    vm_operation();
    return 0;
}

static int wait_until(pthread_cond_t *c, pthread_mutex_t *m, int64_t until_ns)
{
    struct thread *t = &vm.threads[vm.at];
    if (vm.locked[vm.at] != m) {
        virtual_finding("thread %u waits without the lock", vm.at);
    }
    vm_operation(); /* with the lock */
    vm.locked[vm.at] = NULL;
    t->state = THREAD_WAITING;
    t->on = c;
    t->mutex = m;
    t->until_ns = until_ns;
    t->timed_out = false;
    vm_dispatch();
    return t->timed_out ? ETIMEDOUT : 0;
}

static int cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
    return wait_until(c, m, INT64_MAX);
}

static int cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until)
{
    return wait_until(c, m, (int64_t)until->tv_sec * NS_PER_S + until->tv_nsec);
}

static uint32_t waiters(const pthread_cond_t *c, struct thread *out[VIRTUAL_THREADS])
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < vm.n; i++) {
        if (vm.threads[i].state == THREAD_WAITING && vm.threads[i].on == c) {
            out[n++] = &vm.threads[i];
        }
    }
    return n;
}

static int cond_signal(pthread_cond_t *c)
{
    vm_operation();
    struct thread *all[VIRTUAL_THREADS];
    uint32_t n = waiters(c, all);
    if (n > 0) {
        all[rng_below(&vm.rng, n)]->state = THREAD_LOCKING;
    }
    return 0;
}

static int cond_broadcast(pthread_cond_t *c)
{
    vm_operation();
    struct thread *all[VIRTUAL_THREADS];
    for (uint32_t n = waiters(c, all); n > 0; n--) {
        all[n - 1]->state = THREAD_LOCKING;
    }
    return 0;
}

/* ---- clocks ---- */

static int64_t now_ns(void)
{
    vm_operation();
    return vm.now_ns;
}

static struct timespec after(int64_t ns)
{
    int64_t at = vm.now_ns + ns;
    return (struct timespec){at / NS_PER_S, at % NS_PER_S};
}

static int64_t cpu_ns(void)
{
    return vm.threads[vm.at].cpu_ns;
}

/* ---- the swap file ---- */

static int the_file = -1;

static int swap_open(const char *folder)
{
    (void)folder;
    if (vm.faults->no_file) {
        return -ENOSPC;
    }
    if (the_file < 0) {
        the_file = memfd_create("swap", MFD_CLOEXEC);
    }
    if (ftruncate(the_file, 0) != 0) {
        return -errno;
    }
    return dup(the_file);
}

static ssize_t write_at(int file, const void *data, size_t bytes, off_t at)
{
    vm_operation();
    if (++vm.writes == vm.faults->full_at) {
        vm.out->happened_ns = vm.now_ns;
        errno = ENOSPC;
        return vm.writes % 2 == 0 ? -1 : (ssize_t)(bytes / 2);
    }
    return pwrite(file, data, bytes, at);
}

static ssize_t read_at(int file, void *data, size_t bytes, off_t at)
{
    vm_operation();
    return pread(file, data, bytes, at);
}

static int sync_file(int file)
{
    (void)file;
    vm_operation();
    return 0;
}

const struct drive_host virtual_host = {
    .thread_create = thread_create,
    .thread_join = thread_join,
    .thread_detach = thread_detach,
    .thread_self = thread_self,
    .mutex_lock = mutex_lock,
    .mutex_unlock = mutex_unlock,
    .cond_wait = cond_wait,
    .cond_timedwait = cond_timedwait,
    .cond_signal = cond_signal,
    .cond_broadcast = cond_broadcast,
    .now_ns = now_ns,
    .after = after,
    .cpu_ns = cpu_ns,
    .pread = read_at,
    .pwrite = write_at,
    .fdatasync = sync_file,
    .swap_open = swap_open,
};

/* Passes the turn between two processes: a number in shared memory. A process sleeps in the kernel
 * (futex) during the other's turn. */
#define _GNU_SOURCE /* syscall */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "policies/external/hosted_impl.h"

static bool is_mine(struct hosted_letter *l, enum hosted_side me)
{
    return atomic_load_explicit(&l->turn, memory_order_acquire) == (uint32_t)me;
}

bool hosted_wait(struct hosted_letter *l, enum hosted_side me)
{
    const struct timespec look = {0, HOST_LOOK_NS};
    if (is_mine(l, me)) {
        return true;
    }
    atomic_store(&l->asleep[me], 1);
    /* Sleeps only if the turn is still the other side's, which the kernel checks. */
    (void)syscall(SYS_futex, &l->turn, FUTEX_WAIT, (uint32_t)!me, &look, NULL, 0);
    atomic_store(&l->asleep[me], 0);
    return is_mine(l, me);
}

void hosted_give_turn(struct hosted_letter *l, enum hosted_side to)
{
    atomic_store(&l->turn, (uint32_t)to);
    if (atomic_load(&l->asleep[to]) != 0) {
        (void)syscall(SYS_futex, &l->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

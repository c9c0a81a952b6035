/* Whose turn it is: a number that both processes see, and a sleep in the kernel while it is not. */
#define _GNU_SOURCE /* syscall */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "policies/external/hosted_impl.h"

#define LEAST_SPINS 1u
#define MOST_SPINS 4096u
#define TRY_AGAIN 256u       /* of so many waits one is a long one, */
#define MOST_PATIENCE 65536u /* and of so many where the long ones were in vain */

static bool is_mine(struct hosted_letter *l, enum hosted_side me)
{
    return atomic_load_explicit(&l->turn, memory_order_acquire) == (uint32_t)me;
}

static bool spin(struct hosted_letter *l, enum hosted_side me)
{
    bool tries = l->waits[me]++ >= l->patience[me];
    uint32_t most = tries ? MOST_SPINS : l->spins[me];
    most = most < LEAST_SPINS ? LEAST_SPINS : most > MOST_SPINS ? MOST_SPINS : most;
    l->waits[me] = tries ? 0 : l->waits[me];
    for (uint32_t i = 0; i < most; i++) {
        if (is_mine(l, me)) {
            l->spins[me] = MOST_SPINS;
            l->patience[me] = TRY_AGAIN;
            return true;
        }
#if defined __x86_64__
        __builtin_ia32_pause();
#endif
    }
    l->spins[me] = most / 2;
    if (tries) {
        uint32_t twice = 2 * l->patience[me];
        l->patience[me] = twice < TRY_AGAIN       ? TRY_AGAIN
                          : twice > MOST_PATIENCE ? MOST_PATIENCE
                                                  : twice;
    }
    return false;
}

bool hosted_wait(struct hosted_letter *l, enum hosted_side me)
{
    const struct timespec look = {0, HOST_LOOK_NS};
    if (spin(l, me)) {
        return true;
    }
    atomic_store(&l->asleep[me], 1);
    /* It sleeps only while the turn is the other side's, which the kernel looks up. */
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

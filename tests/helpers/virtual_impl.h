/* Inside the virtual host: the scheduler (virtual.c) and the table of functions (virtual_host.c).
 */
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include "sim/base/rng.h"
#include "tests/helpers/virtual.h"

enum thread_state {
    THREAD_NONE,
    THREAD_READY,
    THREAD_LOCKING,
    THREAD_WAITING,  /* on a condition */
    THREAD_SLEEPING, /* computing, or without a processor */
    THREAD_HANGING,
    THREAD_JOINING,
    THREAD_ENDED
};

struct thread {
    enum thread_state state;
    bool joined, timed_out;
    const void *on; /* condition, object that wakes, or thread to join */
    pthread_mutex_t *mutex;
    int64_t until_ns, cpu_ns;
    uint32_t rank;
    void *(*main)(void *);
    void *arg;
    const void *stack; /* mapped once */
    size_t stack_bytes;
    void *fake; /* the address sanitizer's */
    ucontext_t begin;
    jmp_buf at;
    bool begun;
};

/* Everything of the present run. */
struct virtual_machine {
    struct thread threads[VIRTUAL_THREADS];
    struct thread root; /* who called virtual_run */
    uint32_t n, at;
    pthread_mutex_t *locked[VIRTUAL_THREADS]; /* that a thread holds */
    struct rng rng;
    uint32_t stay, ranked, pause, spurious; /* in 1,000 operations */
    int64_t now_ns;
    bool over;
    const struct virtual_faults *faults;
    uint32_t writes;
    struct virtual_result *out;
    void (*main)(void *);
    void *main_arg;
};
extern struct virtual_machine vm;

/* Before every operation of the host: the fault, chance, and the next thread. */
void vm_operation(void);
/* Runs the next thread, which may be the calling one. */
void vm_dispatch(void);
/* After a finding with which no thread can continue. */
_Noreturn void vm_give_up(void);
struct thread *vm_thread_add(void *(*main)(void *), void *arg);

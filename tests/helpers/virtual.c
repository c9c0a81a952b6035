#undef _FORTIFY_SOURCE /* it takes a jump to another stack for a mistake */
#define _GNU_SOURCE
#include "tests/helpers/virtual_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim/base/units.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define FIBER_LEAVE(keep, to) __sanitizer_start_switch_fiber(keep, (to)->stack, (to)->stack_bytes)
#define FIBER_ENTER(kept, from)                                                                    \
    __sanitizer_finish_switch_fiber(kept, (from) == NULL ? NULL : &(from)->stack,                  \
                                    (from) == NULL ? NULL : &(from)->stack_bytes)
#else
#define FIBER_LEAVE(keep, to) ((void)(keep), (void)(to))
#define FIBER_ENTER(kept, from) ((void)(kept), (void)(from))
#endif

#define STACK_BYTES (512u * 1024u)
#define OPERATION_NS 20          /* of each operation */
#define PAUSE_NS 200000          /* a thread loses its processor for at most so long */
#define MOST_OPERATIONS 20000000 /* more are a loop without end */

struct virtual_machine vm;

void virtual_finding(const char *fmt, ...)
{
    if (vm.out->finding[0] == '\0') {
        va_list args;
        va_start(args, fmt);
        (void)vsnprintf(vm.out->finding, sizeof vm.out->finding, fmt, args);
        va_end(args);
    }
}

int64_t virtual_now_ns(void)
{
    return vm.now_ns;
}

uint32_t virtual_thread(void)
{
    return vm.at;
}

static bool draw(uint32_t of_1000)
{
    return of_1000 > 0 && rng_below(&vm.rng, 1000) < of_1000;
}

/* ---- coroutines ---- */

static void thread_main(void);

static void go(struct thread *from, struct thread *to)
{
    if (_setjmp(from->at) != 0) {
        FIBER_ENTER(from->fake, (struct thread *)NULL);
        return;
    }
    FIBER_LEAVE(from->state == THREAD_ENDED ? NULL : &from->fake, to);
    if (to->begun) {
        _longjmp(to->at, 1);
    }
    to->begun = true;
    (void)setcontext(&to->begin);
}

static void stack_make(struct thread *t)
{
    if (t->stack == NULL) {
        void *p =
            mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) {
            abort();
        }
        t->stack = p;
        t->stack_bytes = STACK_BYTES;
        (void)getcontext(&t->begin);
        t->begin.uc_stack.ss_sp = p;
        t->begin.uc_stack.ss_size = STACK_BYTES;
        t->begin.uc_link = NULL;
    }
    makecontext(&t->begin, thread_main, 0);
    t->begun = false;
    t->fake = NULL;
}

/* ---- the next thread ---- */

static bool is_free(const pthread_mutex_t *m)
{
    for (uint32_t i = 0; i < vm.n; i++) {
        if (vm.locked[i] == m) {
            return false;
        }
    }
    return true;
}

static bool can_go(const struct thread *t)
{
    return t->state == THREAD_READY || (t->state == THREAD_LOCKING && is_free(t->mutex));
}

/* Somebody whose time has come, or who is the next whose time comes. */
static bool time_passes(void)
{
    int64_t next = INT64_MAX;
    for (uint32_t i = 0; i < vm.n; i++) {
        const struct thread *t = &vm.threads[i];
        if ((t->state == THREAD_SLEEPING || t->state == THREAD_WAITING) && t->until_ns < next) {
            next = t->until_ns;
        }
    }
    vm.now_ns = next > vm.now_ns && next < INT64_MAX ? next : vm.now_ns;
    return next < INT64_MAX;
}

static void wake_due(void)
{
    for (uint32_t i = 0; i < vm.n; i++) {
        struct thread *t = &vm.threads[i];
        if (t->state == THREAD_SLEEPING && t->until_ns <= vm.now_ns) {
            t->state = THREAD_READY;
        } else if (t->state == THREAD_WAITING && t->until_ns <= vm.now_ns) {
            t->state = THREAD_LOCKING;
            t->timed_out = true;
        }
    }
}

static struct thread *choose(void)
{
    struct thread *ready[VIRTUAL_THREADS];
    uint32_t n = 0;
    struct thread *here = &vm.threads[vm.at];
    for (uint32_t i = 0; i < vm.n; i++) {
        if (can_go(&vm.threads[i])) {
            ready[n++] = &vm.threads[i];
        }
    }
    if (n == 0) {
        return NULL;
    }
    if (can_go(here) && draw(vm.stay)) {
        return here;
    }
    uint32_t best = rng_below(&vm.rng, n);
    for (uint32_t i = 0; vm.ranked > 0 && i < n; i++) {
        best = ready[i]->rank > ready[best]->rank ? i : best;
    }
    return ready[best];
}

static void say_stuck(void)
{
    static const char *const doing[] = {"",         "is ready", "wants a lock", "waits",
                                        "computes", "hangs",    "joins",        "has ended"};
    char text[200] = "";
    size_t n = 0;
    for (uint32_t i = 0; i < vm.n && n < sizeof text; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "; thread %u %s", i,
                              doing[vm.threads[i].state]);
    }
    virtual_finding("stuck%s%s", vm.over ? " after its end" : "", text);
}

_Noreturn void vm_give_up(void)
{
    go(&vm.threads[vm.at], &vm.root);
    abort();
}

void vm_dispatch(void)
{
    struct thread *here = &vm.threads[vm.at];
    struct thread *to;
    wake_due();
    while ((to = choose()) == NULL) {
        if (!time_passes()) {
            say_stuck();
            vm_give_up();
        }
        wake_due();
    }
    if (to->state == THREAD_LOCKING) {
        to->state = THREAD_READY;
        vm.locked[to - vm.threads] = to->mutex;
    }
    if (to != here) {
        vm.out->switches++;
        vm.at = (uint32_t)(to - vm.threads);
        go(here, to);
    }
}

static void sleep_here(const void *on, int64_t ns)
{
    struct thread *t = &vm.threads[vm.at];
    t->state = THREAD_SLEEPING;
    t->on = on;
    t->until_ns = vm.now_ns + ns;
    vm_dispatch();
}

static void fault(void)
{
    const struct virtual_faults *f = vm.faults;
    vm.out->happened_ns = vm.now_ns;
    if (f->happen != NULL) {
        f->happen();
    }
    if (f->jump_ns > 0) {
        vm.now_ns += f->jump_ns;
    }
    for (uint32_t i = 0; f->jump_ns < 0 && i < vm.n; i++) { /* whoever waits by it waits longer */
        struct thread *t = &vm.threads[i];
        t->until_ns -= t->state == THREAD_WAITING && t->until_ns < INT64_MAX ? f->jump_ns : 0;
    }
}

/* Before every operation. */
void vm_operation(void)
{
    if (++vm.out->operations == vm.faults->at) {
        fault();
    }
    if (vm.out->operations == MOST_OPERATIONS) {
        virtual_finding("no end in sight");
        vm_give_up();
    }
    vm.now_ns += OPERATION_NS;
    if (draw(vm.ranked)) {
        vm.threads[vm.at].rank = rng_below(&vm.rng, 1000);
    }
    if (draw(vm.spurious)) {
        struct thread *t = &vm.threads[rng_below(&vm.rng, vm.n)];
        t->state = t->state == THREAD_WAITING ? THREAD_LOCKING : t->state;
    }
    if (draw(vm.pause)) {
        sleep_here(NULL, 1 + rng_below(&vm.rng, PAUSE_NS));
    } else {
        vm_dispatch();
    }
}

/* ---- threads ---- */

static void thread_main(void)
{
    struct thread *t = &vm.threads[vm.at];
    FIBER_ENTER(NULL, vm.root.stack == NULL ? &vm.root : (struct thread *)NULL);
    (void)t->main(t->arg);
    if (vm.locked[vm.at] != NULL) {
        virtual_finding("thread %u ends with a lock", vm.at);
    }
    t->state = THREAD_ENDED;
    for (uint32_t i = 0; i < vm.n; i++) {
        struct thread *other = &vm.threads[i];
        if (other->state == THREAD_JOINING && other->on == t) {
            other->state = THREAD_READY;
        }
    }
    bool all = true;
    for (uint32_t i = 0; i < vm.n; i++) {
        all = all && vm.threads[i].state == THREAD_ENDED;
    }
    if (all) {
        vm_give_up(); /* nobody is left: back to the caller */
    }
    vm_dispatch();
    abort();
}

struct thread *vm_thread_add(void *(*main)(void *), void *arg)
{
    struct thread *t = &vm.threads[vm.n];
    stack_make(t);
    t->state = THREAD_READY;
    t->joined = false;
    t->cpu_ns = 0;
    t->rank = rng_below(&vm.rng, 1000);
    t->main = main;
    t->arg = arg;
    vm.n++;
    return t;
}

/* ---- what the calling thread does ---- */

int64_t virtual_compute(const void *on, int64_t ns)
{
    struct thread *t = &vm.threads[vm.at];
    int64_t from = vm.now_ns;
    int64_t until = from + ns;
    sleep_here(on, ns);
    int64_t left = until > vm.now_ns ? until - vm.now_ns : 0;
    t->cpu_ns += ns - left;
    return left;
}

void virtual_wake(const void *on)
{
    for (uint32_t i = 0; i < vm.n; i++) {
        struct thread *t = &vm.threads[i];
        if (t->state == THREAD_SLEEPING && t->on == on) {
            t->state = THREAD_READY;
        }
    }
}

void virtual_hang(void)
{
    struct thread *t = &vm.threads[vm.at];
    while (!vm.over) {
        t->state = THREAD_HANGING;
        vm_dispatch();
    }
}

/* ---- a run ---- */

static void *first_main(void *arg)
{
    (void)arg;
    vm.main(vm.main_arg);
    vm.out->end_ns = vm.now_ns;
    for (uint32_t i = 1; i < vm.n; i++) {
        const struct thread *t = &vm.threads[i];
        if (!t->joined) {
            virtual_finding("thread %u is neither joined nor detached", i);
        }
    }
    vm.over = true;
    for (uint32_t i = 1; i < vm.n; i++) {
        struct thread *t = &vm.threads[i];
        t->state = t->state == THREAD_HANGING ? THREAD_READY : t->state;
    }
    return NULL;
}

void virtual_run(uint64_t seed, const struct virtual_faults *faults, void (*main)(void *),
                 void *arg, struct virtual_result *out)
{
    static const uint32_t stays[] = {0, 300, 800, 950};
    *out = (struct virtual_result){.happened_ns = -1};
    vm.out = out;
    vm.faults = faults;
    vm.main = main;
    vm.main_arg = arg;
    vm.n = vm.at = vm.writes = 0;
    memset(vm.locked, 0, sizeof vm.locked);
    vm.now_ns = NS_PER_S;

    vm.over = false;
    rng_init(&vm.rng, rng_key(seed, RNG_TEST, 1, 0));
    vm.stay = stays[rng_below(&vm.rng, 4)];
    vm.ranked = rng_below(&vm.rng, 2) * 20;
    vm.pause = rng_below(&vm.rng, 3) * 5;
    vm.spurious = rng_below(&vm.rng, 2) * 5;
    (void)vm_thread_add(first_main, NULL);
    vm.root.begun = true;
    go(&vm.root, &vm.threads[0]);
}

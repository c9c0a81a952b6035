/* Signal handling, in a file of its own because the WebAssembly build has no signals. */
#define _GNU_SOURCE /* SA_ONSTACK */
#include <signal.h>
#include <string.h>

#include "sim/base/halt.h"

static void remove_and_end(int sig)
{
    halt_remove_all();
    (void)raise(sig); /* SA_RESETHAND: takes the default action when this handler returns */
}

void halt_on(const int *signals, size_t n)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = remove_and_end;
    action.sa_flags = (int)SA_RESETHAND | SA_ONSTACK;
    for (size_t i = 0; i < n; i++) {
        struct sigaction old;
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) {
            (void)sigaction(signals[i], &action, NULL);
        }
    }
}

static sigset_t before;

void halt_hold(void)
{
    sigset_t all;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, &before);
}

void halt_resume(void)
{
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
}

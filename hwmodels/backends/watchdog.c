#include "hwmodels/backends/watchdog.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "sim/base/base.h"

/* A signal handler can only use static storage. */
static char message[384];

/* A hanging driver cannot be interrupted here, and exit would wait for its threads. */
static void fire(int sig UNUSED)
{
    (void)!write(STDERR_FILENO, message, strlen(message));
    _exit(1);
}

static void alarm_in(double limit_s)
{
    struct itimerval at = {.it_value = {(time_t)limit_s, (suseconds_t)(fmod(limit_s, 1.0) * 1e6)}};
    (void)setitimer(ITIMER_REAL, &at, NULL);
}

void watchdog_kick(const char *what, double limit_s)
{
    (void)signal(SIGALRM, fire);
    alarm_in(limit_s);
    (void)snprintf(message, sizeof message,
                   "\nxpusim: error: %s has not returned for %.0f s: the driver hangs. Leave this "
                   "device out of --devices. `xpusim measure -o FILE` has its rows so far in "
                   "FILE.partial.\n",
                   what, limit_s);
}

void watchdog_stop(void)
{
    alarm_in(0.0);
}

/* A plug-in of which one run leaves traces for the next; leave.py has the idea. Each run reports on
 * standard error what it found: `PARENT NAME: nothing` or `PARENT NAME: GOT`, where PARENT is the
 * number of the process that started it. It serves nobody. */
#define _GNU_SOURCE /* pipe2 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/api/policy.h"

#define PLACE ((void *)0x300000000000)

static int in_data;

static bool find_in_data(void)
{
    return in_data != 0;
}
static void leave_in_data(void)
{
    in_data = 1;
}

static bool find_in_environment(void)
{
    return getenv("LEFT_BY_A_RUN") != NULL;
}
static void leave_in_environment(void)
{
    (void)setenv("LEFT_BY_A_RUN", "a trace", 1);
}

static bool find_in_pipe(void)
{
    char text[8];
    bool found = false;
    for (int fd = 3; fd < 64 && !found; fd++) {
        found = fcntl(fd, F_SETFL, O_NONBLOCK) == 0 && read(fd, text, sizeof text) > 0;
    }
    return found;
}
static void leave_in_pipe(void)
{
    int fds[2];
    if (pipe2(fds, 0) == 0) {
        (void)!write(fds[1], "a trace", 7);
    }
}

/* A page at a fixed place. */
static bool find_in_page(void)
{
    void *p =
        mmap(PLACE, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (p != MAP_FAILED) {
        (void)munmap(p, 4096);
    }
    return p == MAP_FAILED;
}
static void leave_in_page(void)
{
    (void)mmap(PLACE, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

static bool find_handler(void)
{
    struct sigaction is;
    return sigaction(SIGUSR1, NULL, &is) == 0 && is.sa_handler == SIG_IGN;
}
static void leave_handler(void)
{
    (void)signal(SIGUSR1, SIG_IGN);
}

static const struct {
    const char *name;
    bool (*find)(void);
    void (*leave)(void);
} traces[] = {{"data", find_in_data, leave_in_data},
              {"environment", find_in_environment, leave_in_environment},
              {"pipe", find_in_pipe, leave_in_pipe},
              {"page", find_in_page, leave_in_page},
              {"handler", find_handler, leave_handler}};

#define N_TRACES (sizeof traces / sizeof traces[0])

static void look(void)
{
    for (size_t i = 0; i < N_TRACES; i++) {
        (void)fprintf(stderr, "%d %s: %s\n", (int)getppid(), traces[i].name,
                      traces[i].find() ? "GOT a trace" : "nothing");
    }
}

static void leave_all(void)
{
    for (size_t i = 0; i < N_TRACES; i++) {
        traces[i].leave();
    }
}

#ifdef IN_ONE_PROCESS /* where each is found */
int main(void)
{
    leave_all();
    look();
    return 0;
}
#else
static int leave_init(struct sched *s)
{
    look();
    leave_all();
    sched_give_up(s, "left traces");
    return 0;
}

static void leave_schedule(struct sched *s)
{
    (void)s;
}

static void leave_arrived(struct sched *s, const struct request *r)
{
    (void)s;
    (void)r;
}

static const struct policy_ops leave = {.name = "leave",
                                        .summary = "leaves traces for the next run",
                                        .contract = POLICY_CONTRACT,
                                        .init = leave_init,
                                        .request_arrived = leave_arrived,
                                        .schedule = leave_schedule};

const struct policy_ops *xpusim_policy(void);
const struct policy_ops *xpusim_policy(void)
{
    return &leave;
}
#endif

/* Starts a zygote, for policies that need one. */
#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "policies/external/external_impl.h"
#include "policies/external/jail_filter.h"

#define FORK_LIMIT_S 30 /* limit of an answer of the zygote, which only forks */

bool zygote_start(struct zygote *z, char *const argv[], const struct jail *jail, double limit_s)
{
    int ends[2];
    *z = (struct zygote){.owner = getpid(), .control = -1, .useless = true};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return false;
    }
    int high = fcntl(ends[1], F_DUPFD_CLOEXEC, 64); /* above the descriptors of a child */
    struct jail of_it = *jail;
    of_it.keeps = 1;
    of_it.kept[0] = high;
    of_it.warms = true;
    struct process p;
    OWNED char *filter = jail_filter_text();
    OWNED char *line = xformat("%u %s\n", JAIL_MY_PID, filter);
    bool ready = false;
    if (high >= 0 && process_start(&p, argv, &of_it, limit_s) == 0) {
        const char *said = process_send(&p, line, strlen(line)) == 0 ? process_receive(&p) : NULL;
        ready = said != NULL && strcmp(said, "ready") == 0;
        if (ready) {
            z->pid = p.pid;
            process_keep(&p);
        } else {
            process_end(&p);
        }
    }
    (void)close(ends[1]);
    if (high >= 0) {
        (void)close(high);
    }
    if (!ready) {
        (void)close(ends[0]);
        return false;
    }
    struct timeval limit = {.tv_sec = FORK_LIMIT_S};
    (void)setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    z->control = ends[0];
    z->useless = false;
    return true;
}

struct zygote *external_zygote(struct external *e, double limit_s)
{
    bool again = e->ran_in == getpid();
    e->ran_in = getpid();
    if (again && e->zygote.owner != getpid()) {
        char how[] = EXTERNAL_FORKS;
        char *argv[sizeof e->argv / sizeof e->argv[0] + 1];
        size_t n = 0;
        for (; e->argv[n] != NULL; n++) {
            argv[n] = e->argv[n];
        }
        argv[n] = how;
        argv[n + 1] = NULL;
        (void)zygote_start(&e->zygote, argv, &e->jail, limit_s);
    }
    return again && !e->zygote.useless ? &e->zygote : NULL;
}

/* A zygote in C; zygote.py is one in Python. */
#define _GNU_SOURCE /* SYS_close_range */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "policies/external/jail_filter.h"
#include "policies/external/zygote.h"

#define CONTROL 3
#define NOT_CONFINED 125

/* Receives a request: its text and its descriptors. False if the parent closed the socket. */
static bool take(char text[ZYGOTE_TEXT], int fds[ZYGOTE_FDS], int *n)
{
    struct iovec into = {text, ZYGOTE_TEXT - 1};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(ZYGOTE_FDS * sizeof(int))];
    } more;
    struct msghdr m = {.msg_iov = &into,
                       .msg_iovlen = 1,
                       .msg_control = more.room,
                       .msg_controllen = sizeof more.room};
    ssize_t got = -1;
    do {
        got = recvmsg(CONTROL, &m, 0);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) {
        return false;
    }
    text[got] = '\0';
    const struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    *n = c != NULL ? (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int)) : 0;
    if (*n > 0) {
        memcpy(fds, CMSG_DATA(c), (size_t)*n * sizeof(int));
    }
    return true;
}

/* In a fork: sets up its streams and the run's descriptors from 3 on, and closes all others. */
static void become(const int *fds, int n, pid_t parent)
{
    bool fine = dup2(fds[0], STDIN_FILENO) >= 0 && dup2(fds[1], STDOUT_FILENO) >= 0;
    for (int i = 2; i < n && fine; i++) {
        fine = fds[i] >= CONTROL + n - 2 && dup2(fds[i], CONTROL + i - 2) >= 0;
    }
    fine = fine && syscall(SYS_close_range, (unsigned)(CONTROL + n - 2), ~0u, 0u) == 0 &&
           prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent &&
           jail_filter(false, false) == 0;
    if (!fine) {
        _exit(NOT_CONFINED);
    }
}

static void answer(long a, long b)
{
    char text[64];
    int n = snprintf(text, sizeof text, "%ld %ld", a, b);
    if (send(CONTROL, text, (size_t)n, MSG_NOSIGNAL) != n) {
        _exit(EXIT_FAILURE);
    }
}

char *zygote_serve(void)
{
    char text[ZYGOTE_TEXT];
    int fds[ZYGOTE_FDS];
    int n = 0;
    pid_t self = getpid();
    pid_t child = 0;
    if (write(STDOUT_FILENO, "ready\n", 6) != 6) {
        _exit(EXIT_FAILURE);
    }
    while (take(text, fds, &n)) {
        if (strncmp(text, "fork", 4) == 0 && n >= 2) {
            child = fork();
            if (child == 0) {
                become(fds, n, self);
                return xstrdup(text + 4 + (text[4] == ' '));
            }
            for (int i = 0; i < n; i++) {
                (void)close(fds[i]);
            }
            answer(child, 0);
        } else {
            int status = 0;
            pid_t pid = waitpid(child, &status, strcmp(text, "wait") == 0 ? 0 : WNOHANG);
            answer(pid, status);
        }
    }
    _exit(EXIT_SUCCESS);
}

/* Requests to a running zygote, for a fork and for the end of one. */
#include "policies/external/zygote.h"

#include <sys/socket.h>
#include <unistd.h>

static void drop(struct zygote *z)
{
    if (z->control >= 0) {
        (void)close(z->control);
    }
    z->control = -1;
    z->useless = true;
}

/* Receives an answer of two numbers. False if the zygote is gone. */
static bool hear(struct zygote *z, long *a, long *b)
{
    char text[64];
    ssize_t n = -1;
    do {
        n = recv(z->control, text, sizeof text - 1, 0);
    } while (n < 0 && errno == EINTR);
    if (n > 0) {
        char *end = text;
        text[n] = '\0';
        *a = strtol(text, &end, 10);
        *b = strtol(end, NULL, 10);
        return true;
    }
    drop(z);
    return false;
}

pid_t zygote_fork(struct zygote *z, const char *about, const int *fds, int n)
{
    SIM_ASSERT(n <= ZYGOTE_FDS);
    size_t bytes = (size_t)n * sizeof(int);
    OWNED char *word = xformat("fork%s%s", about[0] != '\0' ? " " : "", about);
    struct iovec text = {word, strlen(word)};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(ZYGOTE_FDS * sizeof(int))];
    } more;
    memset(&more, 0, sizeof more);
    struct msghdr m = {.msg_iov = &text,
                       .msg_iovlen = 1,
                       .msg_control = more.room,
                       .msg_controllen = CMSG_SPACE(bytes)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(c), fds, bytes);
    long pid = -1;
    long unused = 0;
    if (sendmsg(z->control, &m, MSG_NOSIGNAL) < 0) {
        drop(z);
        return -1;
    }
    return hear(z, &pid, &unused) ? (pid_t)pid : -1;
}

pid_t zygote_wait(struct zygote *z, int *status, bool wait)
{
    const char *word = wait ? "wait" : "look";
    long pid = -1;
    long is = 0;
    if (z->control < 0 || send(z->control, word, strlen(word), MSG_NOSIGNAL) < 0 ||
        !hear(z, &pid, &is)) {
        drop(z);
        *status = SIGKILL; /* the children of a zygote die with it */
        return -1;
    }
    *status = (int)is;
    return (pid_t)pid;
}

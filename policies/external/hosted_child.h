/* In the process of a plug-in: its hooks (hosted_child.c), and what they ask (hosted_calls.c). */
#pragma once

#include "policies/external/hosted_impl.h"

/* The one run of this process. */
struct hosted_here {
    const struct policy_ops *ops;
    struct hosted_letter *letter;
    struct sched sched;    /* the run's, with calls that lead here */
    enum hosted_what hook; /* that is running */
    bool news;             /* it was late */
    bool columns;          /* a pass may have some of them done, which nothing shows */
    /* A launch that is among the late calls. */
    struct {
        bool waits;
        uint8_t device;
        const struct launch **out; /* NULL, or in the policy's state */
    } launch;
    int parent; /* a pipe from it: closed when the run is over */
    int open;   /* a pipe to it: closed when this process has ended */
};
extern struct hosted_here hosted_here;

extern const struct sched_api hosted_calls;

/* Waits for the turn; then what was late is done. Ends the process where the run is over. */
void hosted_listen(void);
/* Gives the turn away, and comes back with an answer. Its result. */
int64_t hosted_ask(enum hosted_what what);
/* A text for the other side. */
void hosted_text(const char *of);

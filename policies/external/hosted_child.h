/* The process of a plug-in: runs its hooks (hosted_child.c), which make calls (hosted_calls.c). */
#pragma once

#include "policies/external/hosted_impl.h"

/* The single run of this process. */
struct hosted_here {
    const struct policy_ops *ops;
    struct hosted_letter *letter;
    struct sched sched;    /* copy of the run's, with hosted_calls */
    enum hosted_what hook; /* running now */
    bool news;             /* the hook was sent late */
    bool columns;          /* passes may be partly done: a launch had columns */
    /* A launch among the late calls. */
    struct {
        bool waits;
        uint8_t device;
        const struct launch **out; /* NULL, or in the policy's state */
    } launch;
    int parent; /* pipe from the parent, which closes it when the run is over */
    int open;   /* pipe to the parent, closed when this process ends */
};
extern struct hosted_here hosted_here;

extern const struct sched_api hosted_calls;

/* Waits for the turn; late calls are done by then. Ends the process if the run is over. */
void hosted_listen(void);
/* Passes the turn with a question, and waits for the answer. Returns its result. */
int64_t hosted_ask(enum hosted_what what);
/* Copies a text into the message. */
void hosted_text(const char *of);

/* Runs work that calls policies and prints results, safe from effects of a user's policy on its
 * process. A plug-in may crash, exit, print, wait or never return. The error names it, and nothing
 * else ends. */
#pragma once

#include "sim/base/base.h"

struct sandbox {
    const char *policy;  /* as it was given: one from outside gets a process of its own */
    double time_limit_s; /* of processor time, and of waiting (pool.h) */
    bool writes_stdout;  /* it writes to a file that is called - or /dev/stdout */
    void *ctx;           /* borrowed, for work */
    /* Prints results to out, and returns the command's exit status. */
    int (*work)(void *ctx, FILE *out, struct err *e);
    /* The work's answer; answer_bytes may be 0. Unchanged where the work died. */
    void *answer;
    size_t answer_bytes;
};

/* Does the work and returns its exit status. EXIT_CHECK_FAILED where its process died, with a
 * message on stderr. Then *died (unless NULL) is 128 + signal, its own exit status, or -1 where
 * that is 0. Else *died is 0. */
int sandbox_run(const struct sandbox *s, int *died, struct err *e);

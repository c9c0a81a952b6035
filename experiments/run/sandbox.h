/* Work that runs policies and prints results, safe from what a policy of the user's does to its
 * process: a plug-in may crash, exit, print, wait or never return. That is told by its name, and
 * ends nothing else. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "sim/base/err.h"

struct sandbox {
    const char *policy;  /* as it was given: one from outside gets a process of its own */
    double time_limit_s; /* of processor time, and of waiting (pool.h) */
    bool writes_stdout;  /* it writes to a file that is called /dev/stdout */
    void *ctx;           /* borrowed, for work */
    /* Prints results to out, and returns the command's exit status. */
    int (*work)(void *ctx, FILE *out, struct err *e);
    /* What work leaves here is here afterwards; answer_bytes may be 0. Unchanged where it died. */
    void *answer;
    size_t answer_bytes;
};

/* Does the work: its exit status. EXIT_CHECK_FAILED where its process died, which is told on
 * stderr, with *died (unless NULL) as 128 + signal, its own exit status, or -1 where that is 0;
 * else *died is 0. */
int sandbox_run(const struct sandbox *s, int *died, struct err *e);

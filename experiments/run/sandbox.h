/* Runs work that calls policies and prints results, protected from a user's policy. A plug-in may
 * crash, exit, print, wait or never return: the error names it, and this process continues. */
#pragma once

#include "sim/base/base.h"

struct sandbox {
    const char *policy;  /* specification; a plug-in gets its own process */
    double time_limit_s; /* of CPU time, and of waiting (pool.h) */
    bool writes_stdout;  /* it writes to a file named - or /dev/stdout */
    void *ctx;           /* borrowed, for work */
    /* Prints results to out, and returns the command's exit status. */
    int (*work)(void *ctx, FILE *out, struct err *e);
    /* Output data of the work; answer_bytes may be 0. Unchanged if the work died. */
    void *answer;
    size_t answer_bytes;
};

/* Does the work and returns its exit status. If its process died, returns EXIT_CHECK_FAILED with a
 * message on stderr. Then *died (unless NULL) is 128 + signal, or its exit status, or -1 if that is
 * 0. Otherwise *died is 0. */
int sandbox_run(const struct sandbox *s, int *died, struct err *e);

/* A progress bar on stderr for long work. */
#pragma once

#include "sim/base/base.h"

struct progress {
    bool on; /* false: nothing is printed */
    uint64_t total;
    double start_s, shown_s; /* monotonic clock */
};

/* on is usually "stderr is a terminal and not --quiet". */
void progress_start(struct progress *p, bool on, uint64_t total);
/* Draws at most every 0.2 s: "[###...] 3 of 10 runs, 5 per s, 1 s left". */
void progress_show(struct progress *p, uint64_t done);
/* Clears the line. */
void progress_end(struct progress *p);

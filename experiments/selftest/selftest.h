/* Checks that an installed `xpusim` can make of itself: closed forms, and laws of a run. */
#pragma once

#include "experiments/shell/document.h"

struct selftest {
    const char *name; /* a sentence */
    /* True when it holds; else why (size bytes) says what was found and what was expected. */
    bool (*holds)(char *why, size_t size);
};

/* Further suites (positive and negative controls) are arrays of this kind, run by selftest_run. */
extern const struct selftest selftest_closed_forms[];
extern const size_t selftest_n_closed_forms;

/* Adds a row per check to the document; quiet: text has only those that failed. Returns how many
 * failed. */
size_t selftest_run(const struct selftest *tests, size_t n, bool quiet, struct document *d);

/* Negative controls: change one thing of the demo comparison and see whether the result moves the
 * way its mechanism says. A control that does not move shows a mechanism that is not there. Adds a
 * row each, and returns how many did not move as predicted. */
size_t controls_run(struct document *d);
size_t controls_count(void);

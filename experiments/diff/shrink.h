/* Delta debugging (Zeller and Hildebrandt 2002): from a set that shows something, a subset that
 * still shows it and no longer does when any single element is left out. */
#pragma once

#include "sim/base/base.h"

struct shrink {
    void *ctx;
    /* Does the subset, keep[i] for i < n, show it? Must hold for the whole set. */
    bool (*shows)(void *ctx, const bool *keep, size_t n);
    size_t max_tests; /* gives up minimality then, not correctness */
};

/* keep[0 .. n): all true at first, the subset at the end. Returns the tests made. About n log n of
 * them at best, n^2 at worst. */
size_t shrink_run(const struct shrink *s, bool *keep, size_t n);

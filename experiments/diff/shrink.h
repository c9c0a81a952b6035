/* Delta debugging (Zeller and Hildebrandt 2002): reduces a set with a property to a subset that has
 * it, but loses it without any single element. */
#pragma once

#include "sim/base/base.h"

struct shrink {
    void *ctx;
    /* Whether the subset, keep[i] for i < n, has the property. Must be true for the whole set. */
    bool (*shows)(void *ctx, const bool *keep, size_t n);
    size_t max_tests; /* with fewer tests the result may not be minimal */
};

/* keep: n values, all true at first; the subset at the end. Returns the number of tests: about n
 * log n at best, n^2 at worst. */
size_t shrink_run(const struct shrink *s, bool *keep, size_t n);

#include "experiments/diff/shrink.h"

/* Drops the kept elements with numbers `from` .. `to` - 1 if the rest has the property. Returns
 * whether it did. */
static bool try_without(const struct shrink *s, bool *keep, size_t n, size_t from, size_t to,
                        bool *scratch)
{
    memcpy(scratch, keep, n * sizeof *keep);
    size_t place = 0;
    for (size_t i = 0; i < n; i++) {
        if (keep[i]) {
            scratch[i] = place < from || place >= to;
            place++;
        }
    }
    if (!s->shows(s->ctx, scratch, n)) {
        return false;
    }
    memcpy(keep, scratch, n * sizeof *keep);
    return true;
}

static size_t count(const bool *keep, size_t n)
{
    size_t c = 0;
    for (size_t i = 0; i < n; i++) {
        c += keep[i];
    }
    return c;
}

/* Tests complements of ever smaller parts, down to single elements, and repeats that last round
 * while it drops some. Tests of the parts themselves would save nothing: a difference that one
 * request shows is found by complements in log n steps. */
size_t shrink_run(const struct shrink *s, bool *keep, size_t n)
{
    OWNED bool *scratch = xmalloc((n + 1) * sizeof *scratch);
    size_t tests = 0;
    size_t left = count(keep, n);
    size_t size = left / 2;
    while (size > 0 && left > 1) {
        bool dropped = false;
        for (size_t from = 0; from < left && left > 1;) {
            size_t to = from + size < left ? from + size : left;
            if (tests == s->max_tests) {
                return tests;
            }
            tests++;
            if (to - from < left && try_without(s, keep, n, from, to, scratch)) {
                left -= to - from;
                dropped = true;
            } else {
                from = to;
            }
        }
        size = size > 1 ? (size + 1) / 2 : dropped ? 1 : 0;
        size = size > left / 2 && left > 1 ? left / 2 : size;
    }
    return tests;
}

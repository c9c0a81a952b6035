/* Common includes of all files: the standard headers, errors, memory, texts and units.
 *
 * Headers include it, and sources get it from their headers. So the includes of a file name only
 * the modules that it uses. */
#pragma once

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/err.h"
#include "sim/base/scope.h"
#include "sim/base/text.h"
#include "sim/base/units.h"

/* Marks a parameter that a hook's type requires and the function does not use. */
#define UNUSED __attribute__((unused))

/* Defines comparison functions for qsort and bsearch in one line:
 *
 *     SORT_BY(by_start, struct start, SORT_UP(ns), SORT_UP(row))
 *
 * defines int by_start(const void *, const void *) of two elements a and b. The first key that
 * differs decides. A key is any expression below 0, 0 or above 0, as strcmp returns. */
#define SORT_UP(member) ((a->member > b->member) - (a->member < b->member))
#define SORT_DOWN(member) (-SORT_UP(member))
#define SORT_TEXT(member) strcmp(a->member, b->member)
#define SORT_BY(name, T, ...)                                                                      \
    static int name(const void *a_, const void *b_)                                                \
    {                                                                                              \
        const T *a = a_;                                                                           \
        const T *b = b_;                                                                           \
        const int keys[] = {__VA_ARGS__};                                                          \
        size_t k = 0;                                                                              \
        while (keys[k] == 0 && k + 1 < sizeof keys / sizeof keys[0]) {                             \
            k++;                                                                                   \
        }                                                                                          \
        return keys[k];                                                                            \
    }

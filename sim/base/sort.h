/* Orders for qsort and bsearch, a line each:
 *
 *     SORT_BY(by_start, struct start, SORT_UP(ns), SORT_UP(row))
 *
 * defines int by_start(const void *, const void *) of two elements a and b. The first key that
 * differs decides. A key is any expression below 0, 0 or above 0, as strcmp returns. */
#pragma once

#include <stddef.h>

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

/* The name that a misspelt word is likely to mean, for messages. */
#pragma once

#include <stddef.h>

#define NEAREST_NAME_BYTES 64 /* what a name, longer or not, is compared by, with its '\0' */

struct nearest {
    const char *word; /* borrowed */
    size_t least;     /* edits to the best so far */
    char best[NEAREST_NAME_BYTES];
    char hint[NEAREST_NAME_BYTES + 32];
};

/* Nothing is near yet. word outlives n. */
void nearest_init(struct nearest *n, const char *word);

/* One name that there is; the first of equals stays. A letter in another case is no slip. Cost:
 * product of the lengths. */
void nearest_look(struct nearest *n, const char *name);

/* "; did you mean NAME?", or "" when no name is so near that it is likely to be meant. Lives as
 * long as n. */
const char *nearest_hint(struct nearest *n);

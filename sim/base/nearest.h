/* Finds the name that a misspelt word probably means, for error messages. */
#pragma once

#include <stddef.h>

#define NEAREST_NAME_BYTES 64 /* names are compared up to this length, with the '\0' */

struct nearest {
    const char *word; /* borrowed */
    size_t least;     /* edit distance of the best name so far */
    char best[NEAREST_NAME_BYTES];
    char hint[NEAREST_NAME_BYTES + 32];
};

/* Starts a search. `word` must outlive n. */
void nearest_init(struct nearest *n, const char *word);

/* Considers one name; of equally near names the first wins. Upper and lower case are equal. Cost:
 * product of the lengths. */
void nearest_look(struct nearest *n, const char *name);

/* "; did you mean NAME?", or "" if no name is near enough. Lives as long as n. */
const char *nearest_hint(struct nearest *n);

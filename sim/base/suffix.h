/* A suffix automaton of a sequence of numbers (Blumer et al. 1985), built number by number. It says
 * where the end of the sequence has occurred before, the longest first. Adding costs O(1) on
 * average, with at most two states and three transitions a number. */
#pragma once

#include "sim/base/base.h"

struct suffix; /* opaque */

struct suffix_match {
    uint32_t length; /* of the match; 0: the last number is new */
    uint32_t at;     /* place after its first occurrence: below the length of the sequence */
};

/* Where the end of another text is in the sequence. {0}: nowhere. */
struct suffix_cursor {
    uint32_t state, length;
};

struct suffix *suffix_new(void);
void suffix_free(struct suffix *s);
/* Lengthens the sequence; it holds at most 2^30 numbers. */
void suffix_add(struct suffix *s, uint32_t number);
/* The longest suffix of the sequence, of at most `most` numbers, that also ends earlier. Cost: the
 * suffixes' classes between it and the longest one. */
struct suffix_match suffix_longest(const struct suffix *s, uint32_t most);

/* Follows another text number by number: the cursor keeps its longest end that the sequence has.
 * The sequence stays as it is meanwhile. Cost: O(1) on average. */
void suffix_follow(const struct suffix *s, struct suffix_cursor *c, uint32_t number);
/* That end, of at most `most` numbers; `at` may be the length of the sequence. */
struct suffix_match suffix_followed(const struct suffix *s, struct suffix_cursor c, uint32_t most);

/* A suffix automaton of a sequence of numbers (Blumer et al. 1985), built number by number. It
 * finds the longest suffix of the sequence that also occurred earlier. Adding costs O(1) on
 * average, with at most two states and three transitions per number. */
#pragma once

#include "sim/base/base.h"

struct suffix; /* opaque */

struct suffix_match {
    uint32_t length; /* of the match; 0: the last number is new */
    uint32_t at;     /* position after its first occurrence: below the length of the sequence */
};

/* State of a search for the end of another text in the sequence. {0}: no match. */
struct suffix_cursor {
    uint32_t state, length;
};

struct suffix *suffix_new(void);
void suffix_free(struct suffix *s);
/* Appends a number; the sequence holds at most 2^30. */
void suffix_add(struct suffix *s, uint32_t number);
/* The longest suffix of the sequence, of at most `most` numbers, that also ends earlier. Cost: the
 * number of suffix classes between the longest one and this. */
struct suffix_match suffix_longest(const struct suffix *s, uint32_t most);

/* Appends a number to another text: the cursor holds the longest suffix of the text that occurs in
 * the sequence. The sequence must not change meanwhile. Cost: O(1) on average. */
void suffix_follow(const struct suffix *s, struct suffix_cursor *c, uint32_t number);
/* The cursor's match, of at most `most` numbers; `at` may be the length of the sequence. */
struct suffix_match suffix_followed(const struct suffix *s, struct suffix_cursor c, uint32_t most);

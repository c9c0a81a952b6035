/* Lists of words, NULL at their end: the names that something may have. */
#pragma once

#include <stddef.h>

/* Place of a word in the list; -1: it is not there, or NULL. */
int words_find(const char *const *words, const char *word);
/* "a, b, c" or, with last " or ", "a, b or c", as far as there is room. Returns buf. */
const char *words_list(const char *const *words, const char *last, char *buf, size_t size);

/* Lists of words, NULL at their end: the names that something may have. */
#pragma once

#include <stddef.h>

/* Names of the enums of sim/api, in their order, as results, traces and policies in other processes
 * use them. */
extern const char *const words_classes[];        /* of requests: "reactive", "proactive" */
extern const char *const words_request_states[]; /* "queued", "decode", "finished", "shed" */
extern const char *const words_ops[];            /* "qkv", "mha", "ffn", "head", "layer" */

/* Place of a word in the list; -1: it is not there, or NULL. */
int words_find(const char *const *words, const char *word);
/* "a, b, c" or, with last " or ", "a, b or c". The caller frees it. */
char *words_list(const char *const *words, const char *last);

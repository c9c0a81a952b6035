/* NULL-terminated lists of names. */
#pragma once

#include <stddef.h>

/* Names of the enums of sim/api, in their order, as in results, traces and the protocol of external
 * policies. */
extern const char *const words_classes[];        /* of requests: "reactive", "proactive" */
extern const char *const words_request_states[]; /* "queued", "decode", "finished", "shed" */
extern const char *const words_ops[];            /* "qkv", "mha", "ffn", "head", "layer" */
extern const char *const words_sharing[];        /* of devices: "serial", "time_shared" */
extern const char *const words_roles[];          /* by enum segment_role */
extern const char *const words_yields[];         /* "kernel", "op", "layer", "pass" */
extern const char *const words_residents[];     /* "compiled_attention", "graph_block", "weights" */
extern const char *const words_places[];        /* of KV: "memory", "cache", "flash", "nowhere" */
extern const char *const words_pass_states[];   /* "ready", "running", "done", "cancelled" */
extern const char *const words_launch_states[]; /* "queued", "running", "ended" */
extern const char *const words_outcomes[];      /* "done", "yielded", "withdrawn", "reset" */

/* Index of a word in the list; -1: not found, or word is NULL. */
int words_find(const char *const *words, const char *word);
/* "a, b, c" or, with last " or ", "a, b or c". The caller frees it. */
char *words_list(const char *const *words, const char *last);

/* Arithmetic over named values: numbers, names, + - * /, unary -, parentheses, and the functions
 * min(a, b), max(a, b), abs(a). A name is letters, digits and underscores, and may have a part with
 * dots after a colon: agent:reactive.e2e_s.mean. */
#pragma once

#include <stddef.h>

#define EXPR_NAME_BYTES 128
#define EXPR_MESSAGE_BYTES 192

struct expr_names {
    void *ctx;
    /* Finds the value of a name. Returns 0, or -1 with a message of at most EXPR_MESSAGE_BYTES. */
    int (*lookup)(void *ctx, const char *name, double *out, char *message);
};

/* Returns 0 and the value, which may be NaN or infinite (IEEE division by 0), or -1 with a message
 * that names the position in the text. Cost: one pass over the text. */
int expr_eval(const char *text, const struct expr_names *names, double *out, char *message);

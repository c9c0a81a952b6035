#include "experiments/run/expr.h"

#include <ctype.h>

#include "sim/base/base.h"

#define MAX_DEPTH 32 /* of parentheses, so that no text can exhaust the stack */

struct parser {
    const char *text, *at;
    const struct expr_names *names;
    char *message;
    int depth;
    int failed;
};

static double sum(struct parser *p);

static double fail(struct parser *p, const char *what)
{
    if (!p->failed) {
        p->failed = 1;
        (void)snprintf(p->message, EXPR_MESSAGE_BYTES, "at \"%.40s\": %.120s", p->at, what);
    }
    return (double)NAN;
}

static void skip_space(struct parser *p)
{
    while (*p->at == ' ') {
        p->at++;
    }
}

static int take(struct parser *p, char c)
{
    skip_space(p);
    if (*p->at != c) {
        return 0;
    }
    p->at++;
    return 1;
}

static double call(struct parser *p, const char *name)
{
    double a = sum(p);
    double b = 0.0;
    int two = strcmp(name, "min") == 0 || strcmp(name, "max") == 0;
    if (two) {
        if (!take(p, ',')) {
            return fail(p, "a second argument is missing");
        }
        b = sum(p);
    }
    if (!take(p, ')')) {
        return fail(p, "a closing parenthesis is missing");
    }
    /* fmin and fmax ignore a NaN, and a claim would be evaluated on the other number. */
    if (strcmp(name, "min") == 0) {
        return isnan(a) || isnan(b) ? (double)NAN : fmin(a, b);
    }
    if (strcmp(name, "max") == 0) {
        return isnan(a) || isnan(b) ? (double)NAN : fmax(a, b);
    }
    return strcmp(name, "abs") == 0 ? fabs(a) : fail(p, "no such function: min, max, abs");
}

static double named(struct parser *p)
{
    char name[EXPR_NAME_BYTES];
    size_t n = 0;
    int tail = 0;
    const char *start = p->at;
    while (isalnum((unsigned char)*p->at) || *p->at == '_' || (*p->at == ':' && !tail) ||
           (*p->at == '.' && tail)) {
        tail = tail || *p->at == ':';
        if (n + 1 == sizeof name) {
            return fail(p, "a name too long");
        }
        name[n++] = *p->at++;
    }
    name[n] = '\0';
    if (!tail && take(p, '(')) {
        return call(p, name);
    }
    double v = (double)NAN;
    char why[EXPR_MESSAGE_BYTES];
    if (p->names->lookup(p->names->ctx, name, &v, why) != 0) {
        p->at = start;
        return fail(p, why);
    }
    return v;
}

static double primary(struct parser *p)
{
    skip_space(p);
    if (p->failed || ++p->depth > MAX_DEPTH) {
        return fail(p, "nested too deeply");
    }
    double v;
    if (take(p, '-')) {
        v = -primary(p);
    } else if (take(p, '(')) {
        v = sum(p);
        if (!take(p, ')')) {
            return fail(p, "a closing parenthesis is missing");
        }
    } else if (isdigit((unsigned char)*p->at)) {
        char *end = NULL;
        v = strtod(p->at, &end);
        p->at = end;
    } else if (isalpha((unsigned char)*p->at)) {
        v = named(p);
    } else {
        return fail(p, "a number, a name or a parenthesis is expected");
    }
    p->depth--;
    return v;
}

static double product(struct parser *p)
{
    double v = primary(p);
    for (;;) {
        if (take(p, '*')) {
            v *= primary(p);
        } else if (take(p, '/')) {
            v /= primary(p);
        } else {
            return v;
        }
    }
}

static double sum(struct parser *p)
{
    double v = product(p);
    for (;;) {
        if (take(p, '+')) {
            v += product(p);
        } else if (take(p, '-')) {
            v -= product(p);
        } else {
            return v;
        }
    }
}

int expr_eval(const char *text, const struct expr_names *names, double *out, char *message)
{
    struct parser p = {.text = text, .at = text, .names = names, .message = message};
    message[0] = '\0';
    *out = sum(&p);
    skip_space(&p);
    if (!p.failed && *p.at != '\0') {
        (void)fail(&p, "an operator is expected");
    }
    return p.failed ? -1 : 0;
}

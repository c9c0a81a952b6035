#include "experiments/shell/cli.h"

#include "sim/base/rng.h"

/* Reads one number. False: it is not finite, or begins with a blank or a letter. */
static bool read_number(const char *text, char **end, double *out)
{
    *out = strtod(text, end);
    return *end != text && strchr("+-.0123456789", *text) != NULL && isfinite(*out);
}

int cli_number(const char *option, const char *text, double min, double max, double *out,
               struct err *e)
{
    char *end = NULL;
    double x = 0.0;
    if (!read_number(text, &end, &x) || *end != '\0' || x < min || x > max) {
        return err_add(e, "--%s %s: must be a number from %g to %g", option, text, min, max);
    }
    *out = x;
    return 0;
}

int cli_count(const char *option, const char *text, uint32_t min, uint32_t max, uint32_t *out,
              struct err *e)
{
    char *end = NULL;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || v < min || v > max) {
        return err_add(e, "--%s %s: must be a whole number from %" PRIu32 " to %" PRIu32, option,
                       text, min, max);
    }
    *out = (uint32_t)v;
    return 0;
}

int cli_seed(const char *option, const char *text, uint64_t *out, struct err *e)
{
    char *end = NULL;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || v > RNG_SEED_MAX) {
        return err_add(e, "--%s %s: must be a whole number from 0 to %llu", option, text,
                       RNG_SEED_MAX);
    }
    *out = v;
    return 0;
}

int cli_number_list(const char *option, const char *text, double min, double max, double *out,
                    uint32_t max_n, uint32_t *n, struct err *e)
{
    *n = 0;
    for (const char *p = text;;) {
        char *end = NULL;
        double x = 0.0;
        if (*n == max_n || !read_number(p, &end, &x) || (*end != ',' && *end != '\0') || x < min ||
            x > max) {
            return err_add(e, "--%s %s: must be numbers from %g to %g, as in 0.5,0.9,1.3", option,
                           text, min, max);
        }
        out[(*n)++] = x;
        if (*end == '\0') {
            return 0;
        }
        p = end + 1;
    }
}

const char *cli_word(const char *text, bool plainly, char *buf)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_./:,=+%@";
    if (plainly && text[0] != '\0' && text[strspn(text, plain)] == '\0') {
        return strcpy(buf, text);
    }
    char *to = buf;
    *to++ = '\'';
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            to = stpcpy(to, "'\\'");
        }
        *to++ = *text;
    }
    (void)strcpy(to, "'");
    return buf;
}

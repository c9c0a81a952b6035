#include "experiments/diff/diverge.h"

#define HEADING "policy "

/* One line without its newline, of any length; false at the end of the decisions. */
static bool next_line(FILE *f, char **line, size_t *cap, size_t *n)
{
    ssize_t got = getline(line, cap, f);
    if (got <= 0) {
        return false;
    }
    *n = (size_t)got - ((*line)[got - 1] == '\n');
    (*line)[*n] = '\0';
    return strcmp(*line, DIVERGE_NOTES) != 0;
}

const char *diverge_decision(const char *line)
{
    size_t n = strspn(line, "0123456789");
    return n > 0 && line[n] == ' ' ? line + n + 1 : line;
}

static void keep(struct divergence *d, const char *line)
{
    if (d->n_context == DIVERGE_CONTEXT) {
        memmove(d->context[0], d->context[1], (DIVERGE_CONTEXT - 1) * sizeof d->context[0]);
        d->n_context--;
    }
    (void)snprintf(d->context[d->n_context++], DIVERGE_LINE_BYTES, "%s", line);
    /* "EPOCH INSTANT ACTION ..." */
    char *end = NULL;
    (void)strtoull(line, &end, 10);
    if (end != line) {
        d->since_ns = strtoll(end, NULL, 10);
    }
}

/* Offsets count without the heading, because its length differs between logs. */
static void skip_heading(FILE *f)
{
    char start[sizeof HEADING - 1];
    rewind(f);
    if (fread(start, 1, sizeof start, f) == sizeof start &&
        memcmp(start, HEADING, sizeof start) == 0) {
        for (int c = fgetc(f); c != EOF && c != '\n'; c = fgetc(f)) {
        }
    } else {
        rewind(f);
    }
}

void diverge_find(FILE *a, FILE *b, struct divergence *out)
{
    memset(out, 0, sizeof *out);
    skip_heading(a);
    skip_heading(b);
    OWNED char *x = NULL;
    OWNED char *y = NULL;
    size_t cap_x = 0;
    size_t cap_y = 0;
    for (;;) {
        size_t nx = 0;
        size_t ny = 0;
        bool has_x = next_line(a, &x, &cap_x, &nx);
        bool has_y = next_line(b, &y, &cap_y, &ny);
        if (!has_x && !has_y) {
            break;
        }
        out->line++;
        if (has_x != has_y || (has_x && strcmp(diverge_decision(x), diverge_decision(y)) != 0)) {
            out->differs = true;
            (void)snprintf(out->a, sizeof out->a, "%s", has_x ? x : "");
            (void)snprintf(out->b, sizeof out->b, "%s", has_y ? y : "");
            break;
        }
        keep(out, x);
        out->offset[0] += (long)nx + 1;
        out->offset[1] += (long)ny + 1;
    }
}

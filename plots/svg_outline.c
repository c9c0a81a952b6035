/* Writes straight outlines in few characters: relative steps in tenths of a pixel, with h and v if
 * along an axis. */
#include "plots/svg_compact.h"

/* In tenths of a pixel, finer than any screen or printer shows. */
struct point {
    long x, y;
};

struct points {
    struct point *v; /* owned */
    size_t n;
};

/* Whether b is on the straight way from a to c, along an axis. */
static bool is_between(struct point a, struct point b, struct point c)
{
    bool upright = a.x == b.x && b.x == c.x && (b.y - a.y) * (c.y - b.y) >= 0;
    bool level = a.y == b.y && b.y == c.y && (b.x - a.x) * (c.x - b.x) >= 0;
    return upright || level;
}

static void add(struct points *p, struct point at)
{
    if (p->n >= 2 && is_between(p->v[p->n - 2], p->v[p->n - 1], at)) {
        p->n--;
    }
    LIST_ADD(p->v, p->n, at);
}

/* "12.3-4": a sign needs no separator. */
static void put_pair(struct text *out, char letter, long x, long y)
{
    text_format(out, "%c%.10g%s%.10g", letter, (double)x / 10.0, y < 0 ? "" : " ",
                (double)y / 10.0);
}

/* Writes the points and clears the list. A single point draws nothing. */
static void put_all(struct text *out, struct points *p, bool closes)
{
    struct point at = p->n > 0 ? p->v[0] : (struct point){0, 0};
    bool moves = p->n > 2 || (p->n == 2 && (p->v[1].x != at.x || p->v[1].y != at.y));
    for (size_t i = 0; i < p->n && moves; i++) {
        long x = p->v[i].x - at.x;
        long y = p->v[i].y - at.y;
        if (i == 0) {
            put_pair(out, 'M', at.x, at.y);
        } else if (x != 0 && y != 0) {
            put_pair(out, 'l', x, y);
        } else if (x != 0 || y != 0) {
            text_format(out, "%c%.10g", x != 0 ? 'h' : 'v', (double)(x + y) / 10.0);
        }
        at = p->v[i];
    }
    text_string(out, closes && moves ? "z" : "");
    p->n = 0;
}

/* Parses x,y at *v, and advances *v past it. */
static bool read_point(const char **v, struct point *out)
{
    char *after = NULL;
    double x = strtod(*v, &after);
    const char *second = after + strspn(after, " ,\n\t");
    char *end = NULL;
    double y = strtod(second, &end);
    if (after == *v || end == second) {
        return false;
    }
    *v = end;
    *out = (struct point){lround(10.0 * x), lround(10.0 * y)};
    return true;
}

bool svg_outline(struct text *out, const char *v, size_t n, bool polygon)
{
    const char *end = v + n;
    size_t begin = out->n;
    struct points p = {.n = 0};
    bool straight = true;
    while (straight && v < end) {
        struct point at = {0, 0};
        if (strchr(" ,\n\tL", *v) != NULL) {
            v++;
        } else if (strchr("MzZ", *v) != NULL) {
            put_all(out, &p, *v != 'M');
            v++;
        } else if (read_point(&v, &at)) {
            add(&p, at);
        } else {
            straight = false;
        }
    }
    put_all(out, &p, polygon);
    free(p.v);
    out->n = straight ? out->n : begin;
    return straight;
}

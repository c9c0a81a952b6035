#include "plots/svg_compact.h"

#define MAX_DEPTH 32

/* An open group: positions of its tag and its content in the output. plain: its content inherits
 * the canvas's attributes unchanged. */
struct group {
    size_t tag, content;
    bool plain;
};

/* The path at the end of the output: positions of its attributes except d, of d, and of d's end. */
struct shape {
    size_t attributes, d, end;
};

struct compact {
    struct text out;
    struct group open[MAX_DEPTH];
    int depth;
    struct group closed; /* the last one at this depth, if its end is the end of the output */
    size_t closed_end;
    struct shape shape;
};

/* ---- attributes ---- */

struct attribute {
    const char *name, *value;
    size_t name_n, value_n;
};

static bool is(const char *text, size_t n, const char *want)
{
    return strlen(want) == n && memcmp(text, want, n) == 0;
}

/* Finds the next attribute of a tag, and advances *at past it. False at the end. */
static bool next_attribute(const char **at, const char *end, struct attribute *a)
{
    const char *p = *at;
    while (p < end && strchr(" \t\n/", *p) != NULL) {
        p++;
    }
    const char *equals = p < end ? memchr(p, '=', (size_t)(end - p)) : NULL;
    const char *first = equals;
    while (first != NULL && first < end && *first != '"' && *first != '\'') {
        first++;
    }
    if (first == NULL || first + 1 >= end) {
        return false;
    }
    a->name = p;
    a->name_n = strcspn(p, " =");
    a->value = first + 1;
    const char *quote = memchr(a->value, *first, (size_t)(end - a->value));
    if (quote == NULL) {
        return false;
    }
    a->value_n = (size_t)(quote - a->value);
    *at = quote + 1;
    return true;
}

/* Whether the picture does not need this attribute of gnuplot's. */
static bool says_nothing(const struct attribute *a)
{
    static const char *const defaults[][2] = {
        {"stroke-linecap", "butt"}, {"stroke-linejoin", "miter"}, {"class", NULL},
        {"font-family", NULL},      {"font-size", "13.00"},       {"color", "black"},
        {"shape-rendering", NULL}};
    if (is(a->name, a->name_n, "id") && strncmp(a->value, "gnuplot_plot", 12) == 0) {
        return true;
    }
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++) {
        if (is(a->name, a->name_n, defaults[i][0]) &&
            (defaults[i][1] == NULL || is(a->value, a->value_n, defaults[i][1]))) {
            return true;
        }
    }
    return false;
}

/* Appends numbers, rounded to tenths, and merges blanks. */
static void put_numbers(struct compact *c, const char *v, size_t n)
{
    bool blank = true;
    for (size_t i = 0; i < n;) {
        bool number = (v[i] >= '0' && v[i] <= '9') || v[i] == '-' || v[i] == '.';
        if (number) {
            char *end = NULL;
            /* A tenth of a pixel is finer than any screen or printer shows. */
            double x = round(10.0 * strtod(v + i, &end)) / 10.0;
            text_format(&c->out, "%.10g", x == 0.0 ? 0.0 : x);
            i = end > v + i ? (size_t)(end - v) : i + 1;
            blank = false;
        } else if (v[i] == 'L') { /* points after the first are lines by default */
            i++;
        } else if (v[i] == ' ' || v[i] == '\n' || v[i] == '\t') {
            if (!blank) {
                text_string(&c->out, " ");
            }
            blank = true;
            i++;
        } else {
            text_add(&c->out, v + i, 1);
            blank = v[i] >= 'A';
            i++;
        }
    }
    if (c->out.n > 0 && c->out.p[c->out.n - 1] == ' ') {
        c->out.n--;
    }
}

static void put_attribute(struct compact *c, const struct attribute *a)
{
    unsigned r;
    unsigned g;
    unsigned b;
    text_string(&c->out, " ");
    text_add(&c->out, a->name, a->name_n);
    text_string(&c->out, "='");
    if (strncmp(a->value, "rgb(", 4) == 0 &&
        sscanf(a->value, "rgb(%u , %u , %u", &r, &g, &b) == 3) {
        bool shorter = r % 17 == 0 && g % 17 == 0 && b % 17 == 0;
        text_format(&c->out, shorter ? "#%x%x%x" : "#%02x%02x%02x", shorter ? r / 17 : r,
                    shorter ? g / 17 : g, shorter ? b / 17 : b);
    } else if (is(a->name, a->name_n, "d") || is(a->name, a->name_n, "points") ||
               is(a->name, a->name_n, "x") || is(a->name, a->name_n, "y") ||
               is(a->name, a->name_n, "transform")) {
        put_numbers(c, a->value, a->value_n);
    } else {
        for (size_t i = 0; i < a->value_n; i++) {
            text_string(&c->out, a->value[i] == '\'' ? "&apos;" : (char[2]){a->value[i], '\0'});
        }
    }
    text_string(&c->out, "'");
}

/* ---- tags ---- */

/* Set on the canvas, so that groups need not repeat it. */
static const char inherited[] = " fill='none' color='#000' stroke='currentColor' "
                                "stroke-width='1.12'";

static bool is_inherited(const struct attribute *a)
{
    return (is(a->name, a->name_n, "fill") && is(a->value, a->value_n, "none")) ||
           (is(a->name, a->name_n, "stroke") && is(a->value, a->value_n, "currentColor")) ||
           (is(a->name, a->name_n, "stroke-width") && is(a->value, a->value_n, "1.12"));
}

static void put_tag(struct compact *c, const char *tag, const char *end)
{
    size_t name = 1 + strcspn(tag + 1, " \t\n/>");
    bool group = is(tag + 1, name - 1, "g");
    bool plain = group && c->depth > 0 && c->depth <= MAX_DEPTH && c->open[c->depth - 1].plain;
    text_add(&c->out, tag, name);
    const char *at = tag + name;
    struct attribute a;
    while (next_attribute(&at, end, &a)) {
        if (!says_nothing(&a) && !(plain && is_inherited(&a))) {
            put_attribute(c, &a);
        }
    }
    if (group && c->depth == 0) {
        text_string(&c->out, inherited);
        text_string(&c->out, "><style>text{fill:#222;stroke:none}</style"); /* put_tag adds '>' */
    } else if (is(tag + 1, name - 1, "rect") && strstr(tag, "id=") > end) {
        text_string(&c->out, " stroke='none'"); /* the background */
    }
    if (is(tag + 1, name - 1, "svg")) {
        text_string(&c->out, " font-family='sans-serif' font-size='13'");
    }
    text_string(&c->out, end[-1] == '/' ? "/>" : ">");
}

/* Whether the tag is an outline without an id, which may be merged with its neighbour. */
static bool is_shape(const char *tag, const char *end)
{
    bool shape = strncmp(tag, "<path", 5) == 0 || strncmp(tag, "<polygon", 8) == 0;
    for (const char *p = tag; p + 4 < end && shape; p++) {
        shape = strncmp(p, " id=", 4) != 0;
    }
    return shape;
}

/* Writes a line or a polygon as a path. It is appended to the previous path if the attributes are
 * equal. */
static void put_shape(struct compact *c, const char *tag, const char *end)
{
    size_t begin = c->out.n;
    struct attribute line = {.name = NULL};
    struct attribute a;
    const char *at = tag + strcspn(tag, " ");
    text_string(&c->out, "<path");
    while (next_attribute(&at, end, &a)) {
        if (is(a.name, a.name_n, "d") || is(a.name, a.name_n, "points")) {
            line = a;
        } else if (!says_nothing(&a)) {
            put_attribute(c, &a);
        }
    }
    bool polygon = line.name != NULL && line.name[0] == 'p';
    bool point = true; /* only a point: a tic of length 0 */
    for (size_t i = 0; line.name != NULL && i < line.value_n && point; i++) {
        point = strchr("LhvzZC", line.value[i]) == NULL;
    }
    if (point && !polygon) {
        c->out.n = begin;
        return;
    }
    size_t n = c->out.n - begin;
    const struct shape *s = &c->shape;
    if (s->end == begin && s->end > 0 && s->d - s->attributes == n + 4 &&
        memcmp(c->out.p + s->attributes, c->out.p + begin, n) == 0) {
        c->out.n = begin - strlen("'/>");
    } else {
        text_string(&c->out, " d='");
        c->shape = (struct shape){.attributes = begin, .d = c->out.n};
    }
    size_t length = line.name != NULL ? line.value_n : 0;
    if (!svg_outline(&c->out, line.value != NULL ? line.value : "", length, polygon)) {
        text_string(&c->out, polygon ? "M" : "");
        put_numbers(c, line.value, length);
        text_string(&c->out, polygon ? "z" : "");
    }
    text_string(&c->out, "'/>");
    c->shape.end = c->out.n;
}

static void open_group(struct compact *c, const char *tag, const char *end)
{
    size_t begin = c->out.n;
    bool after = c->closed_end == begin && begin > 0;
    put_tag(c, tag, end);
    bool plain = c->depth == 0 || (c->depth <= MAX_DEPTH && c->open[c->depth - 1].plain &&
                                   c->out.n - begin == strlen("<g>"));
    struct group g = {begin, c->out.n, plain};
    size_t length = g.content - g.tag;
    const struct group *before = &c->closed;
    if (after && before->content - before->tag == length &&
        memcmp(c->out.p + before->tag, c->out.p + begin, length) == 0) {
        c->out.n = begin - strlen("</g>"); /* continue the equal group before */
        g = *before;
    }
    if (c->depth < MAX_DEPTH) {
        c->open[c->depth] = g;
    }
    c->depth++;
    c->closed_end = 0;
}

static void close_group(struct compact *c)
{
    c->depth -= c->depth > 0;
    struct group g = c->open[c->depth < MAX_DEPTH ? c->depth : MAX_DEPTH - 1];
    if (c->depth >= MAX_DEPTH || c->out.n > g.content) {
        text_string(&c->out, "</g>");
        c->closed = g;
        c->closed_end = c->out.n;
    } else {
        c->out.n = g.tag; /* empty: remove it */
        c->closed_end = 0;
    }
}

/* The '>' that ends the tag at p. */
static const char *end_of(const char *p)
{
    char quote = '\0';
    for (; *p != '\0' && (quote != '\0' || *p != '>'); p++) {
        if (quote != '\0') {
            quote = *p == quote ? '\0' : quote;
        } else if (*p == '"' || *p == '\'') {
            quote = *p;
        }
    }
    return p;
}

/* The end of an element to remove at p, or p. */
static const char *skip(const char *p)
{
    static const char *const whole[][2] = {{"<?xml", "?>"},          {"<!--", "-->"},
                                           {"<title>", "</title>"},  {"<desc>", "</desc>"},
                                           {"<filter", "</filter>"}, {"<!DOCTYPE", ">"}};
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        const char *end = text_begins(p, whole[i][0]) ? strstr(p, whole[i][1]) : NULL;
        if (end != NULL) {
            return end + strlen(whole[i][1]);
        }
    }
    return p;
}

/* Removes unused shapes of points, which gnuplot defines one per line. Higher numbers refer to
 * lower ones, so it starts at the highest. */
enum { N_POINTS = 15 };
static void drop_unused(char *svg)
{
    for (int i = N_POINTS; i >= 0; i--) { /* first the dot */
        OWNED char *id = xformat(i < N_POINTS ? " id='gpPt%d'" : " id='gpDot'", i);
        OWNED char *use = xformat(i < N_POINTS ? "'#gpPt%d'" : "'#gpDot'", i);
        char *at = strstr(svg, id);
        if (at != NULL && strstr(svg, use) == NULL) {
            char *begin = at;
            while (begin > svg && *begin != '<') {
                begin--;
            }
            char *end = strstr(at, "/>");
            if (end != NULL) {
                memmove(begin, end + 2, strlen(end + 2) + 1);
            }
        }
    }
}

/* Writes a group of one text, gnuplot's only way to write texts, as a text. A colour other than the
 * usual becomes a style. Returns the end of the group, or NULL if p is something else. */
static const char *put_label(struct compact *c, const char *p)
{
    const char *tag_end = end_of(p);
    const char *text = tag_end + 1 + strspn(tag_end + (*tag_end != '\0'), " \t\n\r");
    if (!text_begins(p, "<g transform=") || *tag_end == '\0' || !text_begins(text, "<text>")) {
        return NULL;
    }
    const char *close = strstr(text, "</text>");
    const char *after = close != NULL ? close + 7 + strspn(close + 7, " \t\n\r") : "";
    if (!text_begins(after, "</g>")) {
        return NULL;
    }
    struct attribute a;
    const char *at = p + 2;
    text_string(&c->out, "<text");
    while (next_attribute(&at, tag_end, &a)) {
        bool place = is(a.name, a.name_n, "transform");
        const char *comma = memchr(a.value, ',', a.value_n);
        if (place && comma != NULL && memchr(a.value, ' ', a.value_n) == NULL &&
            strncmp(a.value, "translate(", 10) == 0) {
            text_format(&c->out, " x='%.0f' y='%.0f'", strtod(a.value + 10, NULL),
                        strtod(comma + 1, NULL));
        } else if (is(a.name, a.name_n, "fill")) {
            size_t begin = c->out.n;
            a.name = "style";
            a.name_n = 5;
            put_attribute(c, &a);
            if (is(c->out.p + begin, c->out.n - begin, " style='#222'")) {
                c->out.n = begin;
            } else {
                OWNED char *colour =
                    xformat("%.*s", (int)(c->out.n - begin - 8), c->out.p + begin + 8);
                c->out.n = begin + 8;
                text_string(&c->out, "fill:");
                text_string(&c->out, colour);
            }
        } else if (!says_nothing(&a) && !is(a.name, a.name_n, "stroke")) {
            put_attribute(c, &a);
        }
    }
    text_string(&c->out, ">");
    text_add(&c->out, text + 6, (size_t)(close - text) - 6);
    text_string(&c->out, "</text>");
    return after + 4;
}

char *svg_compact(const char *svg)
{
    struct compact c = {.depth = 0};
    for (const char *p = svg; *p != '\0';) {
        const char *after = *p == '<' ? skip(p) : p;
        if (after > p) {
            p = after;
            continue;
        }
        if (*p != '<') { /* drop blanks between tags */
            size_t n = strcspn(p, "<");
            if (strspn(p, " \t\n\r") < n) {
                text_add(&c.out, p, n);
            }
            p += n;
            continue;
        }
        const char *end = end_of(p);
        if (*end == '\0') {
            break;
        }
        const char *label = put_label(&c, p);
        if (label != NULL) {
            p = label;
            continue;
        }
        if (text_begins(p, "<g ") || text_begins(p, "<g>")) {
            open_group(&c, p, end);
        } else if (text_begins(p, "</g>")) {
            close_group(&c);
        } else if (p[1] == '/') {
            text_add(&c.out, p, (size_t)(end - p) + 1);
        } else if (is_shape(p, end)) {
            put_shape(&c, p, end);
        } else {
            put_tag(&c, p, end);
        }
        p = end + 1;
    }
    text_char(&c.out, '\0');
    drop_unused(c.out.p);
    return c.out.p;
}

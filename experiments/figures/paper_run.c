/* Computes the values of a figure's points. One book has the quantities of all; equal ones are
 * computed once. */
#include "experiments/figures/paper.h"
#include "experiments/run/expr.h"
#include "sim/base/json.h"
#include "sim/stats/stats_intervals.h"

/* ---- making quantities ---- */

/* Copies a definition with the keys of its texts replaced. A text that is only a key becomes a
 * number or bool if its value is one. */
static cJSON *put_copy(const struct paper *p, const struct paper_point *point, const cJSON *node,
                       struct err *e)
{
    if (cJSON_IsString(node)) {
        OWNED char *text = paper_put(p, point, node->valuestring, e);
        char *end = NULL;
        double number = text != NULL ? strtod(text, &end) : 0.0;
        const char *brace = strchr(node->valuestring, '}');
        bool whole = node->valuestring[0] == '{' && brace != NULL && brace[1] == '\0';
        bool is_number = text != NULL && whole && end > text && *end == '\0';
        bool is_bool =
            text != NULL && whole && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0);
        return is_number ? cJSON_CreateNumber(number)
               : is_bool ? cJSON_CreateBool(text[0] == 't')
                         : cJSON_CreateString(text != NULL ? text : node->valuestring);
    }
    cJSON *copy = cJSON_Duplicate(node, false);
    for (const cJSON *c = node->child; c != NULL; c = c->next) {
        cJSON *made = put_copy(p, point, c, e);
        if (cJSON_IsObject(node)) {
            cJSON_AddItemToObject(copy, c->string, made);
        } else {
            cJSON_AddItemToArray(copy, made);
        }
    }
    return copy;
}

/* Adds a definition to the book unless that has an equal one, and owns it. Returns its index. */
static uint32_t book_add(cJSON *book, cJSON *made)
{
    uint32_t n = 0;
    for (cJSON *c = book->child; c != NULL; c = c->next, n++) {
        if (cJSON_Compare(c, made, true)) {
            cJSON_Delete(made);
            return n;
        }
    }
    OWNED char *name = xformat("q%u", n);
    cJSON_AddItemToObject(book, name, made);
    return n;
}

static void expand_point(struct paper *p, struct paper_point *point, cJSON *book, struct err *e)
{
    const cJSON *all = json_member(p->tree, "quantities");
    uint32_t i = 0;
    for (const cJSON *c = all->child; c != NULL; c = c->next, i++) {
        point->quantity[i] = book_add(book, put_copy(p, point, c, e));
    }
    char *value = paper_put(p, point, p->value, e);
    point->value = value != NULL ? xkeep(value) : "";
    const char *position = p->axes[PAPER_X].value;
    char *where = position != NULL ? paper_put(p, point, position, e) : NULL;
    point->position = where != NULL ? xkeep(where) : NULL;
}

/* Errors of expanded quantities name the figure's file, and a key path from "quantities". */
static int read_book(struct paper *p, const cJSON *book, struct err *e)
{
    struct json_obj o = json_root(book, p->file, e);
    o.path = "quantities";
    return quantities_read(&p->book, &o);
}

/* ---- names in expressions ---- */

struct scope {
    const struct paper *p;
    const struct paper_point *point;
    void *inner; /* of quantities_mark or quantities_value */
    int (*lookup)(void *ctx, const char *name, double *out, char *message);
};

/* Looks up NAME[:metric] of the figure as qN[:metric] of the book. */
static int lookup(void *ctx, const char *name, double *out, char *message)
{
    const struct scope *s = ctx;
    size_t n = strcspn(name, ":");
    const cJSON *all = json_member(s->p->tree, "quantities");
    uint32_t i = 0;
    for (const cJSON *c = all->child; c != NULL; c = c->next, i++) {
        if (strlen(c->string) == n && strncmp(c->string, name, n) == 0) {
            OWNED char *inside = xformat("q%u%s", s->point->quantity[i], name + n);
            return s->lookup(s->inner, inside, out, message);
        }
    }
    (void)snprintf(message, EXPR_MESSAGE_BYTES, "no quantity is called %.60s", name);
    return -1;
}

static double evaluate(const struct scope *s, const char *text, struct err *e)
{
    struct expr_names names = {(void *)s, lookup};
    char message[EXPR_MESSAGE_BYTES];
    double v = (double)NAN;
    if (expr_eval(text, &names, &v, message) != 0) {
        const struct paper_point *at = s->point;
        (void)err_add(e, "%s: value \"%s\" (series \"%s\", x \"%s\"): %s", s->p->file, text,
                      s->p->axes[PAPER_SERIES].v[at->at[PAPER_SERIES]].title,
                      s->p->axes[PAPER_X].v[at->at[PAPER_X]].title, message);
    }
    return v;
}

static void mark_point(struct paper *p, struct paper_point *point, struct err *e)
{
    struct quantity_scope inner = {&p->book, 0};
    struct scope s = {p, point, &inner, quantities_mark};
    (void)evaluate(&s, point->value, e);
    if (point->position != NULL) {
        (void)evaluate(&s, point->position, e);
    }
}

int paper_expand(struct paper *p, uint64_t seed, struct err *e)
{
    p->n_points = 1;
    for (int k = 0; k < PAPER_AXES; k++) {
        p->n_points *= p->axes[k].n;
    }
    if (p->n_points > PAPER_MAX_POINTS) {
        return err_add(e, "%s: more than %d points", p->file, PAPER_MAX_POINTS);
    }
    p->points = xcalloc(p->n_points, sizeof *p->points);
    cJSON *book = cJSON_CreateObject();
    cJSON_AddItemToArray(p->made, book);
    for (uint32_t i = 0; i < p->n_points; i++) {
        uint32_t rest = i;
        for (int k = PAPER_AXES - 1; k >= 0; k--) {
            p->points[i].at[k] = rest % p->axes[k].n;
            rest /= p->axes[k].n;
        }
        expand_point(p, &p->points[i], book, e);
    }
    if (e->n > 0 || read_book(p, book, e) != 0) {
        return -EINVAL;
    }
    p->book.seed = seed;
    for (uint32_t i = 0; i < p->n_points && e->n == 0; i++) {
        mark_point(p, &p->points[i], e);
    }
    return e->n > 0 ? -EINVAL : 0;
}

/* ---- running ---- */

/* The mean of an expression over replications. */
static struct stats_interval mean_of(const struct paper *p, const struct paper_point *point,
                                     const char *text, struct err *e)
{
    struct quantity_reader inner = {.q = &p->book, .setup = 0};
    struct scope s = {p, point, &inner, quantities_value};
    OWNED double *x = xcalloc(p->book.replications + 1, sizeof *x);
    for (uint32_t r = 0; r < p->book.replications; r++) {
        inner.replication = r;
        x[r] = evaluate(&s, text, e);
    }
    return stats_reported(x, p->book.replications, NULL);
}

int paper_run(struct paper *p, const struct quantities_options *o, struct err *e)
{
    int rc = quantities_run(&p->book, 1, o, e);
    for (uint32_t i = 0; i < p->n_points; i++) {
        struct paper_point *point = &p->points[i];
        const struct paper_place *x = &p->axes[PAPER_X].v[point->at[PAPER_X]];
        point->mean = mean_of(p, point, point->value, e);
        point->x = isnan(x->number) ? point->at[PAPER_X] : x->number;
        point->x = point->position != NULL ? mean_of(p, point, point->position, e).mean : point->x;
    }
    return rc;
}

/* ---- published values in our units ---- */

struct mark_names {
    double value, of;
};

static int mark_lookup(void *ctx, const char *name, double *out, char *message)
{
    const struct mark_names *m = ctx;
    *out = strcmp(name, "value") == 0 ? m->value : m->of;
    if (strcmp(name, "value") != 0 && strcmp(name, "of") != 0) {
        (void)snprintf(message, EXPR_MESSAGE_BYTES, "%.60s: neither `value` nor `of`", name);
        return -1;
    }
    return 0;
}

static double scaled(const char *as, double value, double of)
{
    struct mark_names m = {value, of};
    struct expr_names names = {&m, mark_lookup};
    char message[EXPR_MESSAGE_BYTES];
    double v = (double)NAN;
    return expr_eval(as, &names, &v, message) == 0 ? v : (double)NAN;
}

double paper_crossing(const struct paper *p, uint32_t series, double height,
                      const struct paper_point *point)
{
    uint32_t at[PAPER_AXES] = {point->at[PAPER_ROW], point->at[PAPER_COLUMN], series, 0};
    const struct paper_point *before = paper_at(p, at);
    for (uint32_t i = 1; i < p->axes[PAPER_X].n; i++) {
        at[PAPER_X] = i;
        const struct paper_point *here = paper_at(p, at);
        double y0 = before->mean.mean;
        double y1 = here->mean.mean;
        if (y0 < height && y1 >= height) {
            return before->x + (height - y0) / (y1 - y0) * (here->x - before->x);
        }
        before = here;
    }
    return (double)NAN;
}

/* Our value that a mark scales; 1: none. */
static double value_of(const struct paper *p, const struct paper_mark *m,
                       const struct paper_point *point)
{
    uint32_t at[PAPER_AXES];
    memcpy(at, point->at, sizeof at);
    at[PAPER_SERIES] = m->of >= 0 ? (uint32_t)m->of : at[PAPER_SERIES];
    at[PAPER_X] = m->of_x >= 0 ? (uint32_t)m->of_x : at[PAPER_X];
    return m->of >= 0 ? paper_at(p, at)->mean.mean : 1.0;
}

double paper_ours(const struct paper *p, const struct paper_mark *m,
                  const struct paper_point *point)
{
    double of = value_of(p, m, point);
    return m->ours != NULL ? scaled(m->ours, point->mean.mean, of) : point->mean.mean / of;
}

bool paper_published(const struct paper *p, const struct paper_mark *m,
                     const struct paper_point *point, struct paper_published *out)
{
    *out = (struct paper_published){m->low, m->high, point->x, point->x};
    if (!isnan(m->crossing)) {
        double x = paper_crossing(p, (uint32_t)m->of, m->crossing, point);
        double low = m->as != NULL ? scaled(m->as, m->low, 1.0) : m->low;
        double high = m->as != NULL ? scaled(m->as, m->high, 1.0) : m->high;
        *out = (struct paper_published){m->crossing, m->crossing, low * x, high * x};
    } else if (m->as != NULL) {
        double of = value_of(p, m, point);
        double a = scaled(m->as, m->low, of);
        double b = scaled(m->as, m->high, of);
        out->low = fmin(a, b);
        out->high = fmax(a, b);
    }
    return isfinite(out->low) && isfinite(out->x_low);
}

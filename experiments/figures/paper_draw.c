/* Writes the data of a grid that plots/paper.gp draws. */
#include "experiments/figures/paper.h"
#include "plots/palette.h"
#include "plots/render.h"

#define BARS_WIDTH 0.8 /* of all bars of a place; the distance of places is 1 */

static bool is_bars(const struct paper *p)
{
    return p->draw == PAPER_BARS || p->draw == PAPER_STACKED;
}

/* A series's slot of the palette: that of its policy, so that this has one colour in all figures.
 * A single series, a series without a policy, and a variant of sd-npu have their index. */
static unsigned slot_of(const struct paper *p, uint32_t series)
{
    const struct paper_place *s = &p->axes[PAPER_SERIES].v[series];
    const cJSON *policy = json_member(s->put, "policy");
    return cJSON_IsString(policy) && p->axes[PAPER_SERIES].n > 1 &&
                   strncmp(policy->valuestring, "sd-npu", 6) != 0
               ? palette_slot(policy->valuestring)
               : series;
}

/* A point's position along x. Bars of a place are next to each other. */
static double drawn_x(const struct paper *p, const struct paper_point *point)
{
    if (p->draw != PAPER_BARS) {
        return is_bars(p) ? point->at[PAPER_X] : point->x;
    }
    double n = p->axes[PAPER_SERIES].n;
    return point->at[PAPER_X] + BARS_WIDTH * ((point->at[PAPER_SERIES] + 0.5) / n - 0.5);
}

/* Range of a panel's axes. */
struct range {
    double lo, hi, x_lo, x_hi, marks;
};

static void widen(struct range *r, double y, double x, bool log)
{
    if (isfinite(y) && (!log || y > 0.0)) {
        r->lo = fmin(r->lo, y);
        r->hi = fmax(r->hi, y);
    }
    if (isfinite(x)) {
        r->x_lo = fmin(r->x_lo, x);
        r->x_hi = fmax(r->x_hi, x);
    }
}

/* Puts a series of a panel as a block. A stacked one is above the earlier ones. */
static void put_series(const struct paper *p, uint32_t at[PAPER_AXES], double *below,
                       struct figure_data *d, struct range *r)
{
    figure_block(d, "%s", p->axes[PAPER_SERIES].v[at[PAPER_SERIES]].title);
    for (at[PAPER_X] = 0; at[PAPER_X] < p->axes[PAPER_X].n; at[PAPER_X]++) {
        const struct paper_point *pt = paper_at(p, at);
        double base = p->draw == PAPER_STACKED ? below[at[PAPER_X]] : 0.0;
        double y = base + pt->mean.mean;
        double low = isfinite(pt->mean.low) ? base + pt->mean.low : y;
        double high = isfinite(pt->mean.high) ? base + pt->mean.high : y;
        bool tight = p->draw == PAPER_LINES || p->draw == PAPER_BARS;
        FIGURE_ROW(d, drawn_x(p, pt), y, tight ? low : y, tight ? high : y);
        below[at[PAPER_X]] += isfinite(pt->mean.mean) ? pt->mean.mean : 0.0;
        widen(r, y, drawn_x(p, pt), p->y_log);
        /* A wide interval does not widen the axis: it would flatten the values. */
        widen(r, tight && high < 2.0 * y ? high : y, (double)NAN, p->y_log);
    }
}

/* Kinds of published values drawn; the legend has an entry for each. */
struct marks {
    bool read_off, stated, stated_ranges;
};

/* The height at which a point's bar begins: a stacked one is above the earlier series. */
static double base_of(const struct paper *p, const struct paper_point *point)
{
    uint32_t at[PAPER_AXES];
    memcpy(at, point->at, sizeof at);
    double base = 0.0;
    for (at[PAPER_SERIES] = 0;
         p->draw == PAPER_STACKED && at[PAPER_SERIES] < point->at[PAPER_SERIES];
         at[PAPER_SERIES]++) {
        double y = paper_at(p, at)->mean.mean;
        base += isfinite(y) ? y : 0.0;
    }
    return base;
}

static uint32_t places_named(const struct paper_mark *m)
{
    uint32_t n = 0;
    for (int k = 0; k < PAPER_AXES; k++) {
        n += m->at[k] >= 0;
    }
    return n;
}

/* Whether another mark of the point names more places. Then the value of that place is shown
 * instead of the range of all. */
static bool is_hidden(const struct paper *p, const struct paper_mark *m,
                      const struct paper_point *point)
{
    bool hidden = false;
    for (uint32_t k = 0; k < p->n_marks && isnan(m->crossing); k++) {
        const struct paper_mark *o = &p->marks[k];
        hidden = hidden || (isnan(o->crossing) && paper_mark_is_of(o, point) &&
                            places_named(o) > places_named(m));
    }
    return hidden;
}

static void put_marks(const struct paper *p, const uint32_t panel[PAPER_AXES],
                      struct figure_data *d, struct range *r, struct marks *drawn)
{
    figure_block(d, "published");
    FIGURE_ROW(d, (double)NAN, (double)NAN, (double)NAN, (double)NAN, (double)NAN, (double)NAN, 0.0,
               0.0);
    for (uint32_t i = 0; i < p->n_points; i++) {
        const struct paper_point *pt = &p->points[i];
        for (uint32_t k = 0; k < p->n_marks; k++) {
            const struct paper_mark *m = &p->marks[k];
            struct paper_published v;
            bool here = pt->at[PAPER_ROW] == panel[PAPER_ROW] &&
                        pt->at[PAPER_COLUMN] == panel[PAPER_COLUMN] && paper_mark_is_of(m, pt) &&
                        (isnan(m->crossing) || pt->at[PAPER_X] == 0);
            if (!here || is_hidden(p, m, pt) || !paper_published(p, m, pt, &v)) {
                continue;
            }
            double x = isnan(m->crossing) ? drawn_x(p, pt) : (v.x_low + v.x_high) / 2.0;
            double x_low = isnan(m->crossing) ? x : v.x_low;
            double x_high = isnan(m->crossing) ? x : v.x_high;
            v.low += base_of(p, pt);
            v.high += base_of(p, pt);
            FIGURE_ROW(d, x, (v.low + v.high) / 2.0, x_low, x_high, v.low, v.high,
                       slot_of(p, pt->at[PAPER_SERIES]), m->read_off);
            widen(r, v.low, x_low, p->y_log);
            widen(r, v.high, x_high, p->y_log);
            r->marks += 1.0;
            bool range = v.low < v.high || x_low < x_high;
            drawn->read_off = drawn->read_off || m->read_off;
            drawn->stated = drawn->stated || (!m->read_off && !range);
            drawn->stated_ranges = drawn->stated_ranges || (!m->read_off && range);
        }
    }
}

static void put_array(struct figure_data *d, const char *name, const double *v, uint32_t n)
{
    (void)fprintf(d->vars, "array %s[%u]\n", name, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        (void)fprintf(d->vars, "%s[%u] = %.12g\n", name, i + 1, v[i]);
    }
}

static void put_names(const struct paper *p, struct figure_data *d)
{
    struct texts names = {.n = 0};
    size_t longest = 0;
    (void)fprintf(d->vars, "array slot[%u]\n", p->axes[PAPER_SERIES].n + 1);
    for (uint32_t k = 0; k < p->axes[PAPER_SERIES].n; k++) {
        const char *name = p->axes[PAPER_SERIES].v[k].title;
        (void)fprintf(d->vars, "slot[%u] = %u\n", k + 1, slot_of(p, k));
        longest = strlen(name) > longest ? strlen(name) : longest;
        texts_add(&names, name);
    }
    figure_texts_put(&names, "series_name", d);
    figure_var(d, "longest", (double)longest);
    names = (struct texts){.n = 0};
    for (uint32_t i = 0; i < p->axes[PAPER_X].n; i++) {
        texts_add(&names, p->axes[PAPER_X].v[i].title);
    }
    figure_texts_put(&names, "place", d);
    names = (struct texts){.n = 0};
    double line_at[PAPER_MAX_LINES];
    for (uint32_t i = 0; i < p->n_lines; i++) {
        line_at[i] = p->lines[i].at;
        texts_add(&names, p->lines[i].title);
    }
    figure_texts_put(&names, "line_name", d);
    put_array(d, "line_at", line_at, p->n_lines);
}

static void put_vars(const struct paper *p, struct figure_data *d)
{
    static const char *const kinds[] = {"lines", "points", "bars", "stacked", ""};
    OWNED char *subject =
        xformat("%s, %s %s  ·  %s", p->paper, p->number[0] == 'T' ? "table" : "figure",
                p->number + (p->number[0] == 'T'), p->title);
    figure_var_text(d, "subject", subject);
    figure_var_text(d, "kind", kinds[p->draw]);
    figure_var(d, "grid_rows", p->axes[PAPER_ROW].n);
    figure_var(d, "grid_cols", p->axes[PAPER_COLUMN].n);
    figure_var(d, "series", p->axes[PAPER_SERIES].n);
    figure_var_text(d, "xlabel_text", p->axes[PAPER_X].title);
    figure_var_text(d, "ylabel_text", p->y_title);
    bool numbers = p->axes[PAPER_X].value != NULL || !isnan(p->axes[PAPER_X].v[0].number);
    figure_var(d, "named", is_bars(p) || !numbers);
    figure_var(d, "ylog", p->y_log);
    figure_var(d, "xlog", p->axes[PAPER_X].log);
    double v[PAPER_MAX_PLACES];
    for (uint32_t i = 0; i < p->axes[PAPER_X].n; i++) {
        v[i] = p->axes[PAPER_X].v[i].number;
    }
    figure_tics_put(v, numbers && p->axes[PAPER_X].value == NULL ? p->axes[PAPER_X].n : 0, d);
    put_names(p, d);
}

/* Puts the series of all panels, then their published values. */
static void put_panels(const struct paper *p, struct figure_data *d)
{
    uint32_t n = p->axes[PAPER_ROW].n * p->axes[PAPER_COLUMN].n;
    OWNED struct range *r = xcalloc(n, sizeof *r);
    struct texts titles = {.n = 0};
    uint32_t at[PAPER_AXES] = {0};
    for (uint32_t i = 0; i < n; i++) {
        double below[PAPER_MAX_PLACES] = {0.0};
        r[i] = (struct range){(double)INFINITY, -(double)INFINITY, (double)INFINITY,
                              -(double)INFINITY, 0.0};
        at[PAPER_ROW] = i / p->axes[PAPER_COLUMN].n;
        at[PAPER_COLUMN] = i % p->axes[PAPER_COLUMN].n;
        for (at[PAPER_SERIES] = 0; at[PAPER_SERIES] < p->axes[PAPER_SERIES].n; at[PAPER_SERIES]++) {
            put_series(p, at, below, d, &r[i]);
        }
        const char *row = p->axes[PAPER_ROW].v[at[PAPER_ROW]].title;
        const char *column = p->axes[PAPER_COLUMN].v[at[PAPER_COLUMN]].title;
        OWNED char *name =
            xformat("%s%s%s", row, *row != '\0' && *column != '\0' ? ", " : "", column);
        texts_add(&titles, name);
    }
    struct marks drawn = {.read_off = false};
    for (uint32_t i = 0; i < n; i++) {
        at[PAPER_ROW] = i / p->axes[PAPER_COLUMN].n;
        at[PAPER_COLUMN] = i % p->axes[PAPER_COLUMN].n;
        put_marks(p, at, d, &r[i], &drawn);
    }
    OWNED double *v = xcalloc(n, sizeof *v);
    static const char *const names[] = {"y_lo", "y_hi", "x_lo", "x_hi", "marks"};
    for (int k = 0; k < 5; k++) {
        for (uint32_t i = 0; i < n; i++) {
            const double ends[] = {r[i].lo, r[i].hi, r[i].x_lo, r[i].x_hi, r[i].marks};
            v[i] = isfinite(ends[k]) ? ends[k] : k % 2;
        }
        put_array(d, names[k], v, n);
    }
    figure_var(d, "read_off", drawn.read_off);
    figure_var(d, "stated", drawn.stated);
    figure_var(d, "stated_ranges", drawn.stated_ranges);
    figure_texts_put(&titles, "panel", d);
}

int paper_draw(const struct paper *p, const char *dir, unsigned formats, struct err *e)
{
    static const struct figure grid = {.name = "paper"};
    if (p->draw == PAPER_TABLE) {
        return 0;
    }
    SCOPED(figure_data_fini) struct figure_data d;
    figure_data_init(&d);
    d.figure = &grid;
    put_vars(p, &d);
    put_panels(p, &d);
    OWNED char *name = xformat("%s-%s", p->paper, p->number);
    int rc = render_check_gnuplot(e);
    return rc == 0 ? render_figure_as(&grid, name, &d, dir, formats, e) : rc;
}

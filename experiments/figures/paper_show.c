/* Makes a document of a figure's values. */
#include "experiments/figures/paper.h"

static const char *title(const struct paper *p, const struct paper_point *point,
                         enum paper_axis_kind kind)
{
    return p->axes[kind].v[point->at[kind]].title;
}

/* "2.1" or "2.0 to 2.4" in the paper's unit; with `as` also in the figure's. */
static const char *published_text(const struct paper *p, const struct paper_mark *m,
                                  const struct paper_point *point)
{
    const char *said = m->low < m->high ? document_format("%.4g to %.4g", m->low, m->high)
                                        : document_format("%.4g", m->low);
    struct paper_published v;
    if (m->as == NULL || !paper_published(p, m, point, &v)) {
        return said;
    }
    return v.low < v.high ? document_format("%s (drawn at %.3g to %.3g)", said, v.low, v.high)
                          : document_format("%s (drawn at %.3g)", said, v.low);
}

static const char *simulated_text(const struct stats_interval *s, bool interval)
{
    if (isnan(s->mean)) {
        return "-";
    }
    if (!interval || s->n < 2 || s->high - s->low < 1e-9 * fabs(s->mean)) {
        return document_format("%.4g", s->mean);
    }
    return stats_format(s);
}

/* A cell of the table: our value, with the published one. */
static const char *cell_text(const struct paper *p, const struct paper_point *point)
{
    bool wide = p->axes[PAPER_SERIES].n > 4;
    const char *text = simulated_text(&point->mean, !wide);
    if (point->position != NULL) {
        text = document_format("%s at %.3g", text, point->x);
    }
    for (uint32_t i = 0; i < p->n_marks; i++) {
        const struct paper_mark *m = &p->marks[i];
        if (m->at[PAPER_X] >= 0 && m->as == NULL && paper_mark_is_of(m, point)) {
            text = document_format("%s (%s)", text, published_text(p, m, point));
        }
    }
    return text;
}

/* Adds a table for each panel, with a row for each x and a column for each series. */
static void add_panels(const struct paper *p, struct document *d)
{
    const struct paper_axis *series = &p->axes[PAPER_SERIES];
    struct frame_column columns[PAPER_MAX_PLACES + 1] = {{.kind = FRAME_TEXT}};
    columns[0].name = *p->axes[PAPER_X].title != '\0' ? p->axes[PAPER_X].title : "-";
    for (uint32_t k = 0; k < series->n; k++) {
        const char *name = *series->v[k].title != '\0' ? series->v[k].title : "value";
        columns[k + 1] = (struct frame_column){.name = name, .kind = FRAME_TEXT};
    }
    uint32_t at[PAPER_AXES] = {0};
    for (uint32_t i = 0; i < p->axes[PAPER_ROW].n * p->axes[PAPER_COLUMN].n; i++) {
        at[PAPER_ROW] = i / p->axes[PAPER_COLUMN].n;
        at[PAPER_COLUMN] = i % p->axes[PAPER_COLUMN].n;
        at[PAPER_SERIES] = at[PAPER_X] = 0;
        const char *row = title(p, paper_at(p, at), PAPER_ROW);
        const char *column = title(p, paper_at(p, at), PAPER_COLUMN);
        document_note(d, "\n%s%s%s%s%s\n", row, *row != '\0' && *column != '\0' ? ", " : "", column,
                      *row != '\0' || *column != '\0' ? ": " : "", p->y_title);
        struct frame *f = frame_indent(document_frame_of(d, NULL, 0, columns, series->n + 1), 2);
        for (at[PAPER_X] = 0; at[PAPER_X] < p->axes[PAPER_X].n; at[PAPER_X]++) {
            FRAME_CELLS(f, p->axes[PAPER_X].v[at[PAPER_X]].title);
            for (at[PAPER_SERIES] = 0; at[PAPER_SERIES] < series->n; at[PAPER_SERIES]++) {
                FRAME_CELLS(f, cell_text(p, paper_at(p, at)));
            }
            at[PAPER_SERIES] = 0;
        }
    }
}

/* Ratio of the x at which the point's series reaches a height to that of the series `of`. */
static const char *ratio_text(const struct paper *p, const struct paper_mark *m,
                              const struct paper_point *point)
{
    double x = paper_crossing(p, point->at[PAPER_SERIES], m->crossing, point);
    double of = paper_crossing(p, (uint32_t)m->of, m->crossing, point);
    return isfinite(x / of) ? document_format("%.3g", x / of) : "not within the axis";
}

static const struct frame_column published_columns[] = {
    {.name = "panel", .kind = FRAME_TEXT},
    {.name = "series", .kind = FRAME_TEXT},
    {.name = "x", .kind = FRAME_TEXT},
    {.name = "published_text", .title = "published", .kind = FRAME_TEXT, .only_text = true},
    {.name = "simulated_text", .title = "simulated", .kind = FRAME_TEXT, .only_text = true},
    {.name = "where", .kind = FRAME_TEXT},
    {.name = "claim", .kind = FRAME_TEXT},
    {.name = "published_low", .only_data = true},
    {.name = "published_high", .only_data = true},
    {.name = "drawn_low", .only_data = true},
    {.name = "drawn_high", .only_data = true},
    {.name = "drawn_x_low", .only_data = true},
    {.name = "drawn_x_high", .only_data = true},
    {.name = "read_off", .kind = FRAME_FLAG, .only_data = true}};

static const char *panel_name(const char *row, const char *column)
{
    return document_format("%s%s%s", row, *row != '\0' && *column != '\0' ? ", " : "", column);
}

static const char *where_text(const struct paper_mark *m)
{
    return document_format("%s%s", m->where, m->read_off ? " (read off the drawing)" : "");
}

/* Adds a published value of one point, next to ours. */
static void add_said(const struct paper *p, const struct paper_mark *m,
                     const struct paper_point *pt, struct frame *f)
{
    bool crossed = !isnan(m->crossing);
    struct paper_published v = {(double)NAN, (double)NAN, (double)NAN, (double)NAN};
    (void)paper_published(p, m, pt, &v);
    FRAME_ROW(f, panel_name(title(p, pt, PAPER_ROW), title(p, pt, PAPER_COLUMN)),
              title(p, pt, PAPER_SERIES),
              crossed ? document_format("x of %g", m->crossing) : title(p, pt, PAPER_X),
              published_text(p, m, pt),
              crossed ? ratio_text(p, m, pt) : simulated_text(&pt->mean, true), where_text(m),
              m->claim != NULL ? m->claim : "", m->low, m->high, v.low, v.high, v.x_low, v.x_high,
              m->read_off);
    if (p->draw == PAPER_TABLE) {
        frame_hide_row(f); /* the table of cells has it in parentheses */
    }
}

/* Adds one row for all points of a mark: the range of our values, or of their ratios to `of`. */
static void add_range(const struct paper *p, const struct paper_mark *m, struct frame *f)
{
    double low = (double)INFINITY;
    double high = -(double)INFINITY;
    for (uint32_t i = 0; i < p->n_points; i++) {
        const struct paper_point *pt = &p->points[i];
        if (paper_mark_is_of(m, pt)) {
            double v = paper_ours(p, m, pt);
            low = isfinite(v) ? fmin(low, v) : low;
            high = isfinite(v) ? fmax(high, v) : high;
        }
    }
    const char *name[PAPER_AXES];
    for (int k = 0; k < PAPER_AXES; k++) {
        name[k] = m->at[k] >= 0 ? p->axes[k].v[m->at[k]].title : p->axes[k].n > 1 ? "all" : "";
    }
    FRAME_ROW(f, panel_name(name[PAPER_ROW], name[PAPER_COLUMN]),
              m->of >= 0 ? document_format("%s %s %s", name[PAPER_SERIES],
                                           m->ours != NULL ? "against" : "over",
                                           p->axes[PAPER_SERIES].v[m->of].title)
                         : name[PAPER_SERIES],
              name[PAPER_X],
              m->low < m->high ? document_format("%.4g to %.4g", m->low, m->high)
                               : document_format("%.4g", m->low),
              low <= high ? document_format("%.3g to %.3g", low, high) : "-", where_text(m),
              m->claim != NULL ? m->claim : "");
}

/* Whether a mark applies to many points, for which one row is enough. */
static bool is_wide(const struct paper *p, const struct paper_mark *m)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_points; i++) {
        n += paper_mark_is_of(m, &p->points[i]);
    }
    return isnan(m->crossing) && (m->at[PAPER_X] < 0 || (m->of >= 0 && n > 1));
}

static void add_published(const struct paper *p, bool brief, struct document *d)
{
    struct frame *f = DOCUMENT_FRAME(d, "published", 0, published_columns);
    for (uint32_t k = 0; k < p->n_marks; k++) {
        const struct paper_mark *m = &p->marks[k];
        bool crossed = !isnan(m->crossing);
        if (brief && is_wide(p, m)) {
            add_range(p, m, f);
            continue;
        }
        for (uint32_t i = 0; i < p->n_points; i++) {
            const struct paper_point *pt = &p->points[i];
            if (paper_mark_is_of(m, pt) && (!crossed || pt->at[PAPER_X] == 0)) {
                add_said(p, m, pt, f);
            }
        }
    }
}

static void add_points(const struct paper *p, struct document *d)
{
    static const struct frame_column columns[] = {{.name = "row", .kind = FRAME_TEXT},
                                                  {.name = "column", .kind = FRAME_TEXT},
                                                  {.name = "series", .kind = FRAME_TEXT},
                                                  {.name = "at", .kind = FRAME_TEXT},
                                                  {.name = "x"},
                                                  {.name = "value"},
                                                  {.name = "low"},
                                                  {.name = "high"},
                                                  {.name = "n"}};
    struct frame_column data[sizeof columns / sizeof columns[0]];
    memcpy(data, columns, sizeof data);
    for (size_t i = 0; i < sizeof data / sizeof data[0]; i++) {
        data[i].only_data = true;
    }
    struct frame *f = document_frame_of(d, "points", 0, data, sizeof data / sizeof data[0]);
    for (uint32_t i = 0; i < p->n_points; i++) {
        const struct paper_point *pt = &p->points[i];
        FRAME_ROW(f, title(p, pt, PAPER_ROW), title(p, pt, PAPER_COLUMN),
                  title(p, pt, PAPER_SERIES), title(p, pt, PAPER_X), pt->x, pt->mean.mean,
                  pt->mean.low, pt->mean.high, pt->mean.n);
    }
}

void paper_document(const struct paper *p, bool brief, struct document *d)
{
    add_points(p, d);
    if (!brief || p->draw == PAPER_TABLE) {
        add_panels(p, d);
    }
    document_note(d, "%s", p->n_marks > 0 ? "" : "\nThe text states no value of this figure.");
    add_published(p, brief, d);
}

/* Schedules as bars: a window of a timeline, and the strategies to switch NPU graphs. */
#include "plots/figure.h"
#include "plots/timeline_read.h"
#include "sim/base/json.h"

#define US_PER_S 1e6
#define MAX_TRACKS 256
#define MAX_DEPTH 4
#define DEFAULT_WINDOW_S 10.0
#define MAX_BARS 20000 /* per window; more would be unreadable */

enum bar_kind {
    BAR_REACTIVE_PREFILL,
    BAR_REACTIVE_DECODE,
    BAR_PROACTIVE_PREFILL,
    BAR_PROACTIVE_DECODE,
    BAR_LOAD,
    BAR_CONDITIONS,
    BAR_KINDS
};

static const char *const kind_names[BAR_KINDS] = {"reactive prefill",  "reactive decode",
                                                  "proactive prefill", "proactive decode",
                                                  "load or compile",   "conditions"};

#define NOBODY (-1.0)

struct bar {
    int track;
    enum bar_kind kind;
    double begin_s, end_s;
    double request; /* the first request of a bar's pass; NOBODY: none, or merged bars of several */
};

struct window {
    double from_s, to_s, last_s;
    char names[MAX_TRACKS][32]; /* of the machine's tracks */
    struct bar open[MAX_TRACKS][MAX_DEPTH];
    int depth[MAX_TRACKS];
    struct bar *bars;
    size_t n;
    struct asked {
        int track;
        double at_s;
    } * asked; /* requests to preempt */
    size_t n_asked;
    struct says {
        int track;
        double at_s;
        char *text;
    } * says; /* labels of the bars of conditions */
    size_t n_says;
    struct number {
        int row;
        double at_s, request, room_s;
    } * numbers; /* request numbers in bars */
    size_t n_numbers;
};

static void keep(struct window *w, struct bar b)
{
    /* The list may exceed the limit by one bar, which read_window detects. */
    if (b.end_s <= w->from_s || b.begin_s >= w->to_s || w->n > MAX_BARS) {
        return;
    }
    b.begin_s = fmax(b.begin_s, w->from_s);
    b.end_s = fmin(b.end_s, w->to_s);
    LIST_ADD(w->bars, w->n, b);
}

static enum bar_kind kind_of(const cJSON *o)
{
    bool reactive = strcmp(timeline_arg_text(o, "class"), "reactive") == 0;
    bool decode = strncmp(timeline_text(o, "name"), "decode", 6) == 0;
    return reactive ? (decode ? BAR_REACTIVE_DECODE : BAR_REACTIVE_PREFILL)
                    : (decode ? BAR_PROACTIVE_DECODE : BAR_PROACTIVE_PREFILL);
}

static void see_conditions(struct window *w, int track, double now, double end, const char *name)
{
    keep(w, (struct bar){track, BAR_CONDITIONS, now, end, NOBODY});
    if (end > w->from_s && now < w->to_s) {
        LIST_ADD(w->says, w->n_says, (struct says){track, fmax(now, w->from_s), xstrdup(name)});
    }
}

static void see_instant(struct window *w, int track, double now, const char *name)
{
    if (strcmp(name, "preempt asked") != 0 || now < w->from_s || now > w->to_s) {
        return;
    }
    LIST_ADD(w->asked, w->n_asked, (struct asked){track, now});
}

static double request_of(const cJSON *o)
{
    const cJSON *args = json_member(o, "args");
    const cJSON *request = json_member(args, "request");
    return cJSON_IsNumber(request) ? request->valuedouble : NOBODY;
}

static bool is_channel(const char *name)
{
    return strcmp(name, "loader") == 0 || strcmp(name, "compiler") == 0;
}

static void see(void *ctx, const cJSON *o)
{
    struct window *w = ctx;
    const char *name = timeline_text(o, "name");
    double now = timeline_number(o, "ts") / US_PER_S;
    double id = timeline_number(o, "tid");
    w->last_s = fmax(w->last_s, now);
    if (timeline_number(o, "pid") != 1.0 || id < 0.0 || id >= MAX_TRACKS) {
        return;
    }
    int track = (int)id;
    bool channel = is_channel(w->names[track]);
    switch (timeline_text(o, "ph")[0]) {
    case 'M':
        if (strcmp(name, "thread_name") == 0) {
            (void)snprintf(w->names[track], sizeof w->names[track], "%s",
                           timeline_arg_text(o, "name"));
        }
        break;
    case 'B':
        if (w->depth[track] < MAX_DEPTH) {
            w->open[track][w->depth[track]++] =
                (struct bar){track, kind_of(o), now, now, request_of(o)};
        }
        break;
    case 'E':
        if (w->depth[track] > 0) {
            struct bar b = w->open[track][--w->depth[track]];
            b.end_s = now;
            keep(w, b);
        }
        break;
    case 'X':
        if (strcmp(w->names[track], "conditions") == 0) {
            see_conditions(w, track, now, now + timeline_number(o, "dur") / US_PER_S, name);
        } else if (channel) {
            keep(w, (struct bar){track, BAR_LOAD, now, now + timeline_number(o, "dur") / US_PER_S,
                                 NOBODY});
        }
        break;
    default:
        see_instant(w, track, now, name);
    }
}

/* Makes the rows, input by input, with the first track on top: all devices, even if idle, and other
 * tracks with bars in some input. row: per track of an input, its row or -1. */
static void rows_of(const struct window *w, size_t n, const struct figure_request *q,
                    int (*row)[MAX_TRACKS], struct figure_data *d)
{
    struct texts rows = {.n = 0};
    for (size_t k = 0; k < n; k++) {
        for (int t = 0; t < MAX_TRACKS; t++) {
            const char *name = w[k].names[t];
            bool used = name[0] != '\0' && !is_channel(name) && strcmp(name, "conditions") != 0;
            for (size_t m = 0; m < n && !used; m++) {
                for (size_t i = 0; i < w[m].n && !used; i++) {
                    used = w[m].bars[i].track == t;
                    name = w[m].names[t];
                }
            }
            row[k][t] = used ? (int)rows.n : -1;
            if (used) {
                OWNED char *text =
                    xformat("%s%s%s", n > 1 ? q->inputs[k].label : "", n > 1 ? ": " : "", name);
                texts_add(&rows, text);
            }
        }
    }
    figure_texts_put(&rows, "rows", d);
}

#define PIXELS 1000.0 /* width of a window */

#define NAME_PIXELS 26.0 /* width of a request's number */

/* Puts the request's number into a bar that is wide enough. */
static void put_name(struct window *w, int row, const struct bar *b)
{
    double room_s = NAME_PIXELS * (w->to_s - w->from_s) / PIXELS;
    if (b->request >= 0.0 && b->end_s - b->begin_s >= room_s) {
        LIST_ADD(
            w->numbers, w->n_numbers,
            (struct number){row, (b->begin_s + b->end_s) / 2.0, b->request, b->end_s - b->begin_s});
    }
}

/* Draws the bars of a kind on each track. Merges bars less than a pixel apart: thousands of
 * indistinguishable bars would only make the file large. */
static void put_bars(struct window *w, int kind, const int *row, struct figure_data *d)
{
    double near_s = (w->to_s - w->from_s) / PIXELS;
    for (int t = 0; t < MAX_TRACKS; t++) {
        struct bar open = {.end_s = -1.0};
        bool between = false; /* a visible bar of another kind is between */
        for (size_t i = 0; i <= w->n && row[t] >= 0; i++) {
            const struct bar *b = i < w->n ? &w->bars[i] : NULL;
            if (b != NULL && ((int)b->kind != kind || b->track != t)) {
                between = between || (b->track == t && b->end_s - b->begin_s > near_s / 2.0);
                continue;
            }
            if (b != NULL && !between && open.end_s >= 0.0 && b->begin_s - open.end_s < near_s) {
                open.end_s = fmax(open.end_s, b->end_s);
                open.request = open.request == b->request ? open.request : NOBODY;
                continue;
            }
            if (open.end_s >= 0.0) {
                FIGURE_ROW(d, row[t], open.begin_s, open.end_s);
                put_name(w, row[t], &open);
            }
            open = b != NULL ? *b : open;
            between = false;
        }
    }
}

static void put_asked(const struct window *w, const int *row, struct figure_data *d)
{
    double last_s[MAX_TRACKS]; /* per track: both devices may be asked at one instant */
    for (int t = 0; t < MAX_TRACKS; t++) {
        last_s[t] = -HUGE_VAL;
    }
    for (size_t i = 0; i < w->n_asked; i++) {
        const struct asked *a = &w->asked[i];
        bool apart = a->at_s - last_s[a->track] > 3.0 * (w->to_s - w->from_s) / PIXELS;
        if (row[a->track] >= 0 && apart) {
            FIGURE_ROW(d, row[a->track], a->at_s);
            last_s[a->track] = a->at_s;
        }
    }
}

static int by_begin(const void *a, const void *b)
{
    const struct bar *x = a;
    const struct bar *y = b;
    return (x->begin_s > y->begin_s) - (x->begin_s < y->begin_s);
}

/* Time in which bars of these kinds cover a track; bars of two passes may overlap. *all: from the
 * first begin to the last end. */
static double busy_s(const struct window *w, int track, enum bar_kind first, enum bar_kind last,
                     struct bar *all)
{
    OWNED struct bar *v = xcalloc(w->n + 1, sizeof *v);
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        if (w->bars[i].track == track && w->bars[i].kind >= first && w->bars[i].kind <= last) {
            v[n++] = w->bars[i];
        }
    }
    qsort(v, n, sizeof *v, by_begin);
    double sum_s = 0.0;
    *all = n > 0 ? v[0] : (struct bar){.end_s = -1.0};
    for (size_t i = 0; i < n; i++) {
        sum_s += i == 0 ? v[i].end_s - v[i].begin_s
                        : fmax(0.0, v[i].end_s - fmax(v[i].begin_s, all->end_s));
        all->end_s = fmax(all->end_s, v[i].end_s);
    }
    return sum_s;
}

/* Writes the time of each kind of work per row, and the busy share of the window. */
static void put_busy(const struct window *w, const char *label, const int *row,
                     struct figure_data *d)
{
    for (int t = 0; t < MAX_TRACKS; t++) {
        OWNED char *name = xformat("%s%s%s", label, label[0] != '\0' ? ": " : "", w->names[t]);
        struct bar all;
        for (int k = 0; k < BAR_CONDITIONS && row[t] >= 0; k++) {
            double s = busy_s(w, t, (enum bar_kind)k, (enum bar_kind)k, &all);
            if (s > 0.0) {
                FRAME_ROW(d->values, name, kind_names[k], all.begin_s, all.end_s, s,
                          s / (w->to_s - w->from_s));
            }
        }
        if (row[t] >= 0 && strcmp(w->names[t], "conditions") != 0) {
            FIGURE_ROW(d, row[t],
                       busy_s(w, t, BAR_REACTIVE_PREFILL, BAR_LOAD, &all) / (w->to_s - w->from_s));
        }
    }
}

static const struct frame_column schedule_columns[] = {
    {.name = "row", .kind = FRAME_TEXT},
    {.name = "work", .kind = FRAME_TEXT},
    {.name = "begin_s", .title = "begins, s", .unit = "s"},
    {.name = "end_s", .title = "ends, s", .unit = "s"},
    {.name = "busy_s", .title = "busy, s", .unit = "s"},
    {.name = "busy_frac",
     .title = "of the window, %",
     .unit = "1",
     .scale = 100.0,
     .format = "%.1f"}};

static void put_windows(struct window *w, size_t n, const struct figure_request *q,
                        struct figure_data *d)
{
    int(*row)[MAX_TRACKS] = xcalloc(n, sizeof *row);
    rows_of(w, n, q, row, d);
    for (int k = 0; k < BAR_KINDS; k++) {
        figure_block(d, "%s", kind_names[k]);
        for (size_t i = 0; i < n; i++) {
            put_bars(&w[i], k, row[i], d);
        }
    }
    figure_block(d, "preemption asked");
    for (size_t i = 0; i < n; i++) {
        put_asked(&w[i], row[i], d);
    }
    figure_block(d, "what holds");
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < w[i].n_says; k++) {
            if (row[i][w[i].says[k].track] >= 0) {
                FIGURE_ROW(d, row[i][w[i].says[k].track], w[i].says[k].at_s, w[i].says[k].text);
            }
        }
    }
    figure_block(d, "requests");
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < w[i].n_numbers; k++) {
            const struct number *x = &w[i].numbers[k];
            FIGURE_ROW(d, x->row, x->at_s, x->request, x->room_s);
        }
    }
    figure_block(d, "busy");
    (void)FIGURE_VALUES(d, schedule_columns);
    for (size_t i = 0; i < n; i++) {
        put_busy(&w[i], n > 1 ? q->inputs[i].label : "", row[i], d);
    }
    figure_var(d, "inputs", (double)n);
    figure_var(d, "begin", w->from_s);
    figure_var(d, "end", w->to_s);
    free(row);
}

static void read_window(struct window *w, const struct figure_request *q, size_t input,
                        struct err *e)
{
    const char *path = q->inputs[input].path;
    w->from_s = q->from_s;
    w->to_s = q->to_s > 0.0 ? q->to_s : q->from_s + DEFAULT_WINDOW_S;
    (void)timeline_read(path, "MBEXi", NULL, see, w, e);
    for (int t = 0; t < MAX_TRACKS; t++) { /* bars without an end in the file */
        while (w->depth[t] > 0) {
            struct bar b = w->open[t][--w->depth[t]];
            b.end_s = w->last_s;
            keep(w, b);
        }
    }
    if (e->n == 0 && w->n == 0) {
        (void)err_add(e, "%s: nothing ran between %g and %g s (--from, --to); it ends at %g s",
                      path, w->from_s, w->to_s, w->last_s);
    } else if (e->n == 0 && w->n > MAX_BARS) {
        (void)err_add(e, "%s: more than %d launches between %g and %g s: choose a shorter window",
                      path, MAX_BARS, w->from_s, w->to_s);
    }
}

int figure_gantt(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    struct window *w = xkept(xcalloc(q->n_inputs, sizeof *w));
    for (size_t i = 0; i < q->n_inputs; i++) {
        read_window(&w[i], q, i, e);
    }
    if (e->n == 0) {
        put_windows(w, q->n_inputs, q, d);
    }
    return e->n > 0 ? -EINVAL : 0;
}

/* ---- switching graphs ---- */

static const char *const graph_kinds[] = {"compute_g1", "compute_g2", "load_g2"};
static const char *const graph_names[] = {"compute with G1", "compute with G2", "load G2"};
/* Times have the units of the command that made the schedule. */
static const struct frame_column graph_columns[] = {{.name = "strategy", .kind = FRAME_TEXT},
                                                    {.name = "work", .kind = FRAME_TEXT},
                                                    {.name = "begin", .title = "begins"},
                                                    {.name = "end", .title = "ends"},
                                                    {.name = "busy"},
                                                    {.name = "blocks"}};

/* Adds up all work of a kind in a strategy. */
static void put_work(const struct frame *f, const char *strategy, int kind, struct frame *values)
{
    double begin = (double)INFINITY;
    double end = -(double)INFINITY;
    double busy = 0.0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < frame_rows(f); i++) {
        if (frame_is(f, i, "kind", graph_kinds[kind]) && frame_is(f, i, "strategy", strategy)) {
            begin = fmin(begin, frame_get(f, i, "start"));
            end = fmax(end, frame_get(f, i, "end"));
            busy += frame_get(f, i, "end") - frame_get(f, i, "start");
            n++;
        }
    }
    if (n > 0) {
        FRAME_ROW(values, strategy, graph_names[kind], begin, end, busy, n);
    }
}

int figure_graphs(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    const struct figure_input *in = &q->inputs[0];
    SCOPED(frame_drop) struct frame *f = figure_rows(in, "strategies/{strategy}/intervals", e);
    SCOPED(texts_fini) struct texts strategies = {.n = 0};
    struct texts rows = {.n = 0};
    if (f == NULL || frame_require(f, "kind start end block total", e) != 0) {
        return -EINVAL;
    }
    for (uint32_t i = 0; i < frame_rows(f); i++) {
        const char *strategy = frame_text(f, i, "strategy");
        if (texts_index(&strategies, strategy) == rows.n) {
            OWNED char *name = xformat("%s (%g)", strategy, frame_get(f, i, "total"));
            texts_add(&rows, name);
        }
    }
    for (int k = 0; k < 3; k++) { /* rows: strategy, lane (0 compute, 1 load), begin, end, block */
        figure_block(d, "%s", graph_names[k]);
        for (uint32_t i = 0; i < frame_rows(f); i++) {
            if (frame_is(f, i, "kind", graph_kinds[k])) {
                const char *strategy = frame_text(f, i, "strategy");
                FIGURE_ROW(d, (double)texts_index(&strategies, strategy), k == 2 ? 1.0 : 0.0,
                           frame_get(f, i, "start"), frame_get(f, i, "end"),
                           frame_get(f, i, "block"));
            }
        }
    }
    struct frame *values = FIGURE_VALUES(d, graph_columns);
    for (size_t i = 0; i < strategies.n; i++) {
        for (int k = 0; k < 3; k++) {
            put_work(f, strategies.v[i], k, values);
        }
    }
    figure_texts_put(&rows, "rows", d);
    return 0;
}

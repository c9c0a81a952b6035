/* Series over time from a timeline: DDR bandwidth with its tiers, live requests and batches. */
#include "plots/figure.h"
#include "plots/timeline_read.h"
#include "sim/base/json.h"

#define US_PER_S 1e6
#define BINS 200 /* per figure: as many as a page resolves */
#define MAX_CURVES 4
#define MAX_TRACKS 256

/* Step functions of time, averaged over bins. Two passes, because the first finds the end. */
struct steps {
    double begin_s, end_s;
    double sum[MAX_CURVES][BINS];
    double value[MAX_CURVES], since_s[MAX_CURVES];
    double last_s; /* of any event */
    double ddr_peak_gb_per_s;
    double n_decode[MAX_TRACKS]; /* per track: sequences of the running decode launch */
};

static void add_span(struct steps *s, int curve, double from_s, double to_s, double value)
{
    double width = (s->end_s - s->begin_s) / BINS;
    from_s = fmax(from_s, s->begin_s);
    to_s = fmin(to_s, s->end_s);
    if (!(from_s < to_s)) {
        return;
    }
    for (int b = (int)((from_s - s->begin_s) / width); from_s < to_s && b < BINS; b++) {
        double end = fmin(s->begin_s + (b + 1) * width, to_s);
        if (end > from_s) {
            s->sum[curve][b] += (end - from_s) * value;
            from_s = end;
        }
    }
}

static void set(struct steps *s, int curve, double now_s, double value)
{
    add_span(s, curve, s->since_s[curve], now_s, s->value[curve]);
    s->since_s[curve] = now_s;
    s->value[curve] = value;
}

/* Finds the end of the timeline. Half of its lines are counters, of which only the time is needed:
 * parsing these would take four fifths of the time. */
static bool see_end(void *ctx, char phase, const char *line)
{
    struct steps *s = ctx;
    const char *ts = phase == 'C' ? strstr(line, "\"ts\":") : NULL;
    if (ts != NULL) {
        s->last_s = fmax(s->last_s, strtod(ts + strlen("\"ts\":"), NULL) / US_PER_S);
        return true;
    }
    SCOPED(json_drop) cJSON *o = cJSON_Parse(line);
    if (o == NULL) {
        return false;
    }
    double end = (timeline_number(o, "ts") + timeline_number(o, "dur")) / US_PER_S;
    s->last_s = fmax(s->last_s, end);
    if (strcmp(timeline_text(o, "name"), "machine") == 0) {
        s->ddr_peak_gb_per_s = timeline_arg(o, "ddr_peak_gb_per_s");
    }
    return true;
}

static void see_ddr(void *ctx, const cJSON *o)
{
    struct steps *s = ctx;
    if (strcmp(timeline_text(o, "name"), "DDR GB/s") == 0) {
        double now = timeline_number(o, "ts") / US_PER_S;
        set(s, 0, now, timeline_arg(o, "carried"));
        set(s, 1, now, timeline_arg(o, "demand"));
    }
}

static void see_queue(void *ctx, const cJSON *o)
{
    struct steps *s = ctx;
    double now = timeline_number(o, "ts") / US_PER_S;
    char phase = timeline_text(o, "ph")[0];
    if (phase == 'C') {
        if (strcmp(timeline_text(o, "name"), "live requests") == 0) {
            set(s, 0, now, timeline_arg(o, "reactive"));
            set(s, 1, now, timeline_arg(o, "proactive"));
        }
        return;
    }
    double id = timeline_number(o, "tid");
    if (timeline_number(o, "pid") != 1.0 || !(id >= 0.0 && id < MAX_TRACKS)) {
        return;
    }
    size_t track = (size_t)id;
    bool decode = phase == 'B' && strncmp(timeline_text(o, "name"), "decode", 6) == 0;
    /* A track runs one launch at a time, so any other event on it ends its decode. */
    double batch = decode ? timeline_arg(o, "sequences") : 0.0;
    if (batch != s->n_decode[track]) {
        double all = s->value[2] - s->n_decode[track] + batch;
        set(s, 2, now, all);
        set(s, 3, now, all > 0.0 ? 1.0 : 0.0);
        s->n_decode[track] = batch;
    }
}

/* Sums up the window. NULL after an error. The caller frees it. */
static struct steps *read_steps(const struct figure_request *q, const char *phases,
                                const char *counter, void (*event)(void *ctx, const cJSON *o),
                                struct err *e)
{
    struct steps *s = xcalloc(1, sizeof *s);
    const char *path = q->inputs[0].path;
    int rc = timeline_lines(path, "CM", see_end, s, e);
    s->begin_s = q->from_s;
    s->end_s = q->to_s > 0.0 ? q->to_s : s->last_s;
    if (rc == 0 && !(s->end_s > s->begin_s && s->begin_s < s->last_s)) {
        rc = err_add(e, "%s: nothing between %g and %g s; it ends at %g s", path, s->begin_s,
                     s->end_s, s->last_s);
    }
    if (rc == 0) {
        rc = timeline_read(path, phases, counter, event, s, e);
    }
    if (rc != 0) {
        free(s);
        return NULL;
    }
    /* Values that last beyond the window count up to its end. */
    for (int c = 0; c < MAX_CURVES; c++) {
        set(s, c, s->end_s, 0.0);
    }
    return s;
}

static void put_steps(const struct steps *s, int curve, const char *name, struct figure_data *d)
{
    double width = (s->end_s - s->begin_s) / BINS;
    figure_block(d, "%s", name);
    for (int b = 0; b < BINS; b++) {
        FIGURE_ROW(d, s->begin_s + (b + 0.5) * width, s->sum[curve][b] / width);
    }
}

/* Writes the mean batch while launches decode; NaN for bins without any. */
static void put_batch(const struct steps *s, struct figure_data *d)
{
    double width = (s->end_s - s->begin_s) / BINS;
    figure_block(d, "sequences that decode");
    for (int b = 0; b < BINS; b++) {
        double busy = s->sum[3][b];
        FIGURE_ROW(d, s->begin_s + (b + 0.5) * width,
                   busy > 1e-6 * width ? s->sum[2][b] / busy : (double)NAN);
    }
}

int figure_ddr(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    OWNED struct steps *s = read_steps(q, "C", "DDR GB/s", see_ddr, e);
    if (s == NULL) {
        return -EINVAL;
    }
    put_steps(s, 0, "carried", d);
    put_steps(s, 1, "demanded", d);
    figure_var(d, "peak", s->ddr_peak_gb_per_s);
    figure_var(d, "begin", s->begin_s);
    figure_var(d, "end", s->end_s);
    return 0;
}

int figure_queue(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    OWNED struct steps *s = read_steps(q, "CBE", "live requests", see_queue, e);
    if (s == NULL) {
        return -EINVAL;
    }
    put_steps(s, 0, "reactive", d);
    put_steps(s, 1, "proactive", d);
    put_batch(s, d);
    figure_var(d, "begin", s->begin_s);
    figure_var(d, "end", s->end_s);
    return 0;
}

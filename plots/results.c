#include "plots/results.h"

#include "plots/about.h"
#include "sim/base/json.h"

static bool is_axis(const struct results *r, const char *name)
{
    return texts_find(&r->axes, name) < r->axes.n;
}

void results_put_axis(struct results *r, const char *name, struct frame_value v)
{
    /* An axis exists from its first value: inputs without it must not form a series of
     * "nothing". */
    if (v.kind == FRAME_VALUE_ABSENT || (v.text != NULL && v.text[0] == '\0')) {
        return;
    }
    if (!is_axis(r, name)) {
        texts_add(&r->axes, name);
    }
    frame_set(r->points, name, v);
}

void results_begin_point(struct results *r, const struct figure_input *in)
{
    uint32_t n = frame_rows(r->points);
    frame_begin_row(r->points);
    r->load = xgrow(r->load, n, sizeof *r->load);
    r->load[n] = (struct results_load){0, 0};
    r->input = xgrow(r->input, n, sizeof *r->input);
    r->input[n] = in->label;
}

void results_put_failed(const struct figure_input *in, double failed)
{
    if (failed > 0.0 && !cJSON_HasObjectItem(in->about, "failed")) {
        OWNED char *text = xformat("failed runs, in no mean: %.0f", failed);
        cJSON_AddStringToObject(in->about, "failed", text);
    }
}

size_t results_n(const struct results *r)
{
    return frame_rows(r->points);
}

/* ---- axes ---- */

const char *results_axis(const struct results *r, size_t i, const char *axis)
{
    double x = 0.0;
    if (results_axis_number(r, i, axis, &x)) {
        return xkeep(xformat("%g", x));
    }
    const char *text = is_axis(r, axis) ? frame_text(r->points, (uint32_t)i, axis) : "";
    return text[0] != '\0' ? text : NULL;
}

bool results_axis_number(const struct results *r, size_t i, const char *axis, double *out)
{
    double x = is_axis(r, axis) ? frame_get(r->points, (uint32_t)i, axis) : (double)NAN;
    *out = isnan(x) ? *out : x;
    return !isnan(x);
}

/* Whether two points differ in the axis. */
static bool axis_varies(const struct results *r, const char *axis)
{
    const char *first = results_axis(r, 0, axis);
    for (size_t i = 1; i < results_n(r); i++) {
        const char *other = results_axis(r, i, axis);
        if ((first == NULL) != (other == NULL) || (first != NULL && strcmp(first, other) != 0)) {
            return true;
        }
    }
    return false;
}

static bool numeric(const struct results *r, const char *axis)
{
    double x = 0.0;
    for (size_t i = 0; i < results_n(r); i++) {
        if (!results_axis_number(r, i, axis, &x)) {
            return false;
        }
    }
    return results_n(r) > 0;
}

const char *results_pick_axis(const struct results *r, const char *asked,
                              const char *const *candidates, const char *not_this, const char *what,
                              struct err *e)
{
    if (asked != NULL) {
        if (!numeric(r, asked)) {
            SCOPED(text_fini) struct text names = {0};
            for (size_t i = 0; i < r->axes.n; i++) {
                if (numeric(r, r->axes.v[i])) {
                    text_item(&names, ", ", r->axes.v[i]);
                }
            }
            return err_null(e, "axis %s: not a number of every point of the input; there are: %s",
                            asked, text_end(&names));
        }
        return asked;
    }
    for (size_t i = 0; candidates[i] != NULL; i++) {
        if (numeric(r, candidates[i]) && axis_varies(r, candidates[i])) {
            return candidates[i];
        }
    }
    for (size_t i = 0; i < r->axes.n; i++) {
        const char *a = r->axes.v[i];
        if (numeric(r, a) && axis_varies(r, a) && (not_this == NULL || strcmp(a, not_this) != 0)) {
            return a;
        }
    }
    return err_null(e, "%s: %s varies in the input (%s)", r->request->inputs[0].path, what,
                    "compare --load R1,R2,.. --json and sweeps over it have it; --x names an axis");
}

/* Whether `a` is the axis b, or both measure the arrival rate. Then a follows from b, and does not
 * name a series. */
static bool says_the_same(const char *a, const char *b)
{
    static const char *const rates[] = {"load", "offered_req_per_min", "rate", "rate_scale"};
    int both = 0;
    if (b == NULL) {
        return false;
    }
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        both += (strcmp(a, rates[i]) == 0) + (strcmp(b, rates[i]) == 0);
    }
    return strcmp(a, b) == 0 || both == 2;
}

const char *results_label(const struct results *r, size_t i, const char *x, const char *y)
{
    struct text label = {0};
    for (size_t k = 0; k < r->axes.n; k++) {
        const char *a = r->axes.v[k];
        const char *text = results_axis(r, i, a);
        double number;
        bool policy = strcmp(a, "policy") == 0;
        if (text == NULL || says_the_same(a, x) || says_the_same(a, y) ||
            /* A label always has the policy. It has other axes only if they vary, because the
             * figure's heading shows common values. */
            !(policy || axis_varies(r, a))) {
            continue;
        }
        bool plain = policy || !results_axis_number(r, i, a, &number);
        text_format(&label, "%s%s%s%s", label.n > 0 ? ", " : "", plain ? "" : a, plain ? "" : " ",
                    text);
    }
    if (label.n == 0) {
        text_string(&label, r->input[i]);
    }
    return xkeep(text_end(&label));
}

/* ---- metrics ---- */

bool results_metric(const struct results *r, size_t i, const char *metric,
                    struct results_value *out)
{
    static const char *const parts[] = {"mean", "low", "high"};
    double v[3];
    for (int k = 0; k < 3; k++) {
        OWNED char *name = xformat("%s.%s", metric, parts[k]);
        v[k] = frame_get(r->points, (uint32_t)i, name);
    }
    *out = (struct results_value){v[0], v[1], v[2]};
    return isfinite(out->mean);
}

struct results_load results_overload(const struct results *r, size_t i)
{
    return r->load[i];
}

const char *results_mark(const struct results *r, size_t i)
{
    struct results_load l = results_overload(r, i);
    return l.overloaded == 0 ? ""
                             : xkeep(xformat("overloaded in %u of %u run%s", l.overloaded, l.runs,
                                             text_plural(l.runs)));
}

/* Lists metrics of the first point: those that begin as this one, else those of the same quantity
 * in another group, else the first ones. */
static void similar(const struct results *r, const char *metric, struct text *names)
{
    const char *dot = strchr(metric, '.');
    size_t prefix = dot == NULL ? 3 : (size_t)(dot - metric) + 4;
    int shown = 0;
    OWNED char *quantity = xformat("%.4s", dot == NULL ? "." : dot);
    for (int pass = 0; pass < 3 && shown == 0; pass++) {
        for (size_t c = 0; c < frame_width(r->points) && shown < 8; c++) {
            const char *name = frame_name(r->points, c);
            size_t len = strlen(name) > 5 ? strlen(name) - 5 : 0;
            bool like = pass == 2 || (pass == 0 ? strncmp(name, metric, prefix) == 0
                                                : strstr(name, quantity) != NULL);
            if (like && strcmp(name + len, ".mean") == 0 &&
                frame_at(r->points, 0, c).kind != FRAME_VALUE_ABSENT) {
                text_format(names, "%s%.*s", shown > 0 ? ", " : "", (int)len, name);
                shown++;
            }
        }
    }
}

bool results_has(const struct results *r, const char *metric)
{
    struct results_value v;
    bool has = false;
    for (size_t i = 0; i < results_n(r) && !has; i++) {
        has = results_metric(r, i, metric, &v);
    }
    return has;
}

int results_require(const struct results *r, const char *metric, struct err *e)
{
    if (results_has(r, metric)) {
        return 0;
    }
    OWNED char *mean = xformat("%s.mean", metric);
    if (frame_find(r->points, mean) >= 0) {
        (void)err_add(e, "%s: %s has no number", r->request->inputs[0].path, metric);
        return -ENODATA;
    }
    SCOPED(text_fini) struct text have = {0};
    similar(r, metric, &have);
    (void)err_add(e, "%s: no metric %s; there are: %s, ...", r->request->inputs[0].path, metric,
                  text_end(&have));
    return -ENODATA;
}

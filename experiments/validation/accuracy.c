#include "experiments/validation/accuracy.h"

#include "experiments/validation/footprint_fit.h"
#include "experiments/validation/leave_machine.h"
#include "experiments/validation/predict.h"
#include "sim/base/json.h"
#include "sim/base/quantile.h"
#include "sim/base/words.h"

#define FITTED "nothing"
#define UPDATED "soc, 1 model known"
#define AVERAGED "soc, averaged, 1 model known"
#define WORSE_MEDIAN 1.1
#define LEAST_INSIDE 0.93
#define DIGITS 5e-5 /* rounding of a record */

struct rows {
    struct accuracy_row *v; /* owned */
    size_t n;
};

/* ---- rows ---- */

static void add_fitted(const struct catalog *c, const struct points *points, struct rows *out)
{
    for (size_t i = 0; i < points->n; i++) {
        const struct point *p = &points->v[i];
        struct predict_case k;
        if (!point_is_latency(p)) {
            continue;
        }
        predict_bind(c, p, &k);
        if (k.reason == NULL && k.match == SOC_MATCH_EXACT) {
            double seconds = predict_price(&k, p, NULL).seconds;
            LIST_ADD(out->v, out->n,
                     (struct accuracy_row){
                         .unseen = FITTED,
                         .soc = k.soc->machine.name,
                         .runtime = p->runtime,
                         .kind = k.soc->machine.devices[k.device].kind,
                         .phase = conformal_phase_of(point_is_prefill(p), p->input_tokens),
                         .ln_error = log(seconds / point_pass_seconds(p)),
                         .half = (double)NAN});
        }
    }
}

/* Adds memory rows, predicted with the numbers of their files. */
static void add_memory(const struct catalog *c, const struct points *points, struct rows *out)
{
    struct footprint_rows r;
    footprint_collect(c, points, &r);
    for (size_t i = 0; i < r.n; i++) {
        const struct point *p = r.v[i].point;
        struct prediction q = predict_memory(c, p);
        if (q.reason == NULL && !q.runtime_default) {
            LIST_ADD(
                out->v, out->n,
                (struct accuracy_row){.unseen = FITTED,
                                      .soc = r.v[i].k.soc->machine.name,
                                      .runtime = p->runtime,
                                      .kind = r.v[i].k.soc->machine.devices[r.v[i].k.device].kind,
                                      .phase = CONFORMAL_MEMORY,
                                      .ln_error = log(q.value / p->value),
                                      .half = (double)NAN});
        }
    }
}

static void add_left_out(const struct conformal *c, struct rows *out)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct conformal_row *r = &c->v[i];
        struct conformal_query q = conformal_query_of(r);
        LIST_ADD(
            out->v, out->n,
            (struct accuracy_row){.unseen = conformal_left_names[r->left],
                                  .soc = r->soc,
                                  .runtime = r->runtime,
                                  .kind = r->kind,
                                  .phase = r->phase,
                                  .ln_error = r->ln_error,
                                  .half = log(conformal_of(c, &q, CONFORMAL_LEVEL).high_factor)});
    }
}

static int add_updated(struct catalog *c, const struct points *points, struct rows *out,
                       struct err *e)
{
    struct leave_rows left;
    struct leave_points all = {points, points};
    int rc = leave_machines(c, &all, 1, &left, e);
    for (size_t i = 0; rc == 0 && i < left.n; i++) {
        const struct leave_row *r = &left.v[i];
        LIST_ADD(out->v, out->n,
                 (struct accuracy_row){.unseen = r->averaged ? AVERAGED : UPDATED,
                                       .soc = r->soc,
                                       .runtime = "",
                                       .kind = r->kind,
                                       .phase = r->phase,
                                       .ln_error = r->ln_error[LEAVE_UPDATED],
                                       .half = r->half[LEAVE_UPDATED]});
    }
    return rc;
}

static int unseen_rank(const char *unseen)
{
    static const char *const order[] = {FITTED,  "model", "source",  AVERAGED,
                                        UPDATED, "soc",   "runtime", NULL};
    return words_find(order, unseen);
}

/* Ordered from fitted to least known rows, by device and phase, then by machine. */
SORT_BY(in_order, struct accuracy_row, unseen_rank(a->unseen) - unseen_rank(b->unseen),
        SORT_UP(kind), SORT_UP(phase), SORT_TEXT(soc),
        SORT_TEXT(runtime)) /* equal rows form a class */

/* ---- classes ---- */

struct accuracy_class accuracy_class_of(const struct accuracy_row *row, size_t n)
{
    OWNED double *x = xmalloc((n + 1) * sizeof *x);
    struct accuracy_class out = {.n = n};
    size_t inside = 0;
    for (size_t i = 0; i < n; i++) {
        x[i] = fabs(expm1(row[i].ln_error));
        inside += fabs(row[i].ln_error) <= row[i].half;
    }
    out.median_frac = sample_quantile_of(x, n, 0.5);
    out.p90_frac = sample_quantile_of(x, n, 0.9);
    for (size_t i = 0; i < n; i++) {
        x[i] = row[i].half;
    }
    bool has = n > 0 && !isnan(x[0]);
    out.inside_frac = has ? (double)inside / (double)n : (double)NAN;
    out.half = has ? exp(sample_quantile_of(x, n, 0.5)) : (double)NAN;
    for (size_t i = 0; i < n; i++) {
        x[i] = fabs(row[i].ln_error) / row[i].half;
    }
    out.width_ratio = has ? 1.0 / sample_quantile_of(x, n, CONFORMAL_LEVEL) : (double)NAN;
    return out;
}

static bool together(const struct accuracy_row *a, const struct accuracy_row *b, bool by_machine)
{
    return strcmp(a->unseen, b->unseen) == 0 && a->kind == b->kind && a->phase == b->phase &&
           (!by_machine || (strcmp(a->soc, b->soc) == 0 && strcmp(a->runtime, b->runtime) == 0));
}

/* The end of the class that begins at i. Rows are sorted, so a class is contiguous. */
static size_t class_end(const struct rows *r, size_t i, bool by_machine)
{
    size_t end = i + 1;
    while (end < r->n && together(&r->v[i], &r->v[end], by_machine)) {
        end++;
    }
    return end;
}

/* ---- tables ---- */

#define PERCENT .scale = 100.0, .format = "%.1f", .missing = ""
#define FACTOR .format = "%.2f", .missing = ""
#define ERROR_COLUMNS                                                                              \
    {.name = "n", .title = "rows", .format = "%.0f"},                                              \
        {.name = "median_frac", .title = "|error|, %", PERCENT},                                   \
        {.name = "p90_frac", .title = "P90", PERCENT},                                             \
        {.name = "inside_frac", .title = "in 95 %", PERCENT},                                      \
    {                                                                                              \
        .name = "half", .title = "x or /", FACTOR                                                  \
    }

static const struct frame_column class_columns[] = {
    {.name = "unseen", .kind = FRAME_TEXT},
    {.name = "device", .kind = FRAME_TEXT},
    {.name = "phase", .kind = FRAME_TEXT},
    ERROR_COLUMNS,
    {.name = "width_ratio", .title = "wider than needed", FACTOR},
    {.name = "was_median_frac", .title = "|error| was", .only_text = true, PERCENT},
    {.name = "was_inside_frac", .title = "in 95 % was", .only_text = true, PERCENT},
};
static const struct frame_column machine_columns[] = {
    {.name = "unseen", .kind = FRAME_TEXT}, {.name = "machine", .kind = FRAME_TEXT},
    {.name = "device", .kind = FRAME_TEXT}, {.name = "runtime", .kind = FRAME_TEXT},
    {.name = "phase", .kind = FRAME_TEXT},  ERROR_COLUMNS,
};

static bool is_row(const struct frame *was, uint32_t i, const struct accuracy_row *r)
{
    return frame_is(was, i, "unseen", r->unseen) &&
           frame_is(was, i, "device", device_kind_names()[r->kind]) &&
           frame_is(was, i, "phase", conformal_phase_names[r->phase]);
}

/* Index of the class in an earlier result; UINT32_MAX: it has none. */
static uint32_t earlier_row(const struct frame *was, const struct accuracy_row *r)
{
    for (uint32_t i = 0; was != NULL && i < frame_rows(was); i++) {
        if (is_row(was, i, r)) {
            return i;
        }
    }
    return UINT32_MAX;
}

static bool is_worse(const struct accuracy_row *r, const struct accuracy_class *x,
                     double was_median, double was_inside)
{
    bool median = x->median_frac > WORSE_MEDIAN * was_median + DIGITS;
    bool coverage = x->inside_frac < fmin(LEAST_INSIDE, was_inside - DIGITS);
    if (x->n < ACCURACY_MIN_ROWS || (!median && !coverage)) {
        return false;
    }
    (void)fprintf(stderr,
                  "%s unseen, %s, %s: median |error| %.1f %% (was %.1f), %.1f %% of rows in their "
                  "intervals (was %.1f)\n",
                  r->unseen, device_kind_names()[r->kind], conformal_phase_names[r->phase],
                  100.0 * x->median_frac, 100.0 * was_median, 100.0 * x->inside_frac,
                  100.0 * was_inside);
    return true;
}

/* Number of classes of the earlier result that have no rows now. */
static int missing(const struct rows *r, const struct frame *was)
{
    int n = 0;
    for (uint32_t i = 0; was != NULL && i < frame_rows(was); i++) {
        bool found = frame_get(was, i, "n") < ACCURACY_MIN_ROWS;
        for (size_t k = 0; k < r->n && !found; k++) {
            found = is_row(was, i, &r->v[k]);
        }
        if (!found) {
            (void)fprintf(stderr, "%s unseen, %s, %s: no row is left of this class\n",
                          frame_text(was, i, "unseen"), frame_text(was, i, "device"),
                          frame_text(was, i, "phase"));
            n++;
        }
    }
    return n;
}

static int put_classes(const struct rows *r, const struct frame *was, struct document *d)
{
    struct frame *f = DOCUMENT_FRAME(d, "classes", 3, class_columns);
    int worse = missing(r, was);
    for (size_t i = 0, end; i < r->n; i = end) {
        end = class_end(r, i, false);
        const struct accuracy_row *row = &r->v[i];
        struct accuracy_class x = accuracy_class_of(row, end - i);
        uint32_t at = earlier_row(was, row);
        double was_median = (double)NAN;
        double was_inside = (double)NAN;
        if (at != UINT32_MAX) {
            was_median = frame_get(was, at, "median_frac");
            was_inside = frame_get(was, at, "inside_frac");
            worse += is_worse(row, &x, was_median, was_inside);
        }
        FRAME_ROW(f, row->unseen, device_kind_names()[row->kind], conformal_phase_names[row->phase],
                  x.n, x.median_frac, x.p90_frac, x.inside_frac, x.half,
                  FRAME_IF(x.n >= ACCURACY_MIN_ROWS, x.width_ratio), was_median, was_inside);
    }
    return worse;
}

static void put_machines(const struct rows *r, struct document *d)
{
    struct frame *f = DOCUMENT_FRAME(d, NULL, 0, machine_columns);
    for (size_t i = 0, end; i < r->n; i = end) {
        end = class_end(r, i, true);
        const struct accuracy_row *row = &r->v[i];
        struct accuracy_class x = accuracy_class_of(row, end - i);
        FRAME_ROW(f, row->unseen, row->soc, device_kind_names()[row->kind], row->runtime,
                  conformal_phase_names[row->phase], x.n, x.median_frac, x.p90_frac, x.inside_frac,
                  x.half);
    }
}

int accuracy_document(struct catalog *c, const struct points *points, const char *against,
                      struct document *d, struct err *e)
{
    struct frame *was = NULL;
    if (against != NULL) {
        SCOPED(json_drop) cJSON *root = json_read_file(against, e);
        if (root == NULL) {
            return -EINVAL;
        }
        was = frame_of_json(root, "classes/{unseen}/{device}/{phase}", against);
        if (frame_rows(was) == 0) {
            frame_free(was);
            return err_add(e, "%s: has no classes of an earlier --accuracy", against);
        }
    }
    struct rows r = {0};
    add_fitted(c, points, &r);
    add_memory(c, points, &r);
    add_left_out(&c->residuals, &r);
    int rc = add_updated(c, points, &r, e);
    if (rc == 0) {
        qsort(r.v, r.n, sizeof *r.v, in_order);
        document_heading(d, "By what was unseen");
        rc = put_classes(&r, was, d);
        document_heading(d, "By machine and runtime");
        put_machines(&r, d);
    }
    free(r.v);
    frame_free(was);
    return rc;
}

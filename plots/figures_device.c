/* Kernels and devices: the roofline, and measurements of `characterize`. */
#include "plots/figure.h"

#define UNDEFINED ((double)NAN)
#define ROOF_FROM 0.3 /* flop per byte */
#define ROOF_TO 3000.0

#define NEAR_LOG 0.15 /* labels of points nearer than this (natural log) overlap */

static bool are_near(const struct frame *f, uint32_t a, uint32_t b)
{
    return fabs(log(frame_get(f, a, "flop_per_byte") / frame_get(f, b, "flop_per_byte"))) <
               NEAR_LOG &&
           fabs(log(frame_get(f, a, "flop_per_s") / frame_get(f, b, "flop_per_s"))) < NEAR_LOG;
}

/* For each row, the row with its label: a point near an earlier labelled one of the same device
 * shares its label. The caller frees the array. */
static uint32_t *named_at(const struct frame *f)
{
    uint32_t *at = xcalloc((size_t)frame_rows(f) + 1, sizeof *at);
    for (uint32_t k = 0; k < frame_rows(f); k++) {
        at[k] = k;
        for (uint32_t i = 0; i < k && at[k] == k; i++) {
            bool same = frame_is(f, i, "device", frame_text(f, k, "device"));
            at[k] = at[i] == i && same && are_near(f, i, k) ? i : k;
        }
    }
    return at;
}

/* Appends the names of all points with the label of row k: "QKV FFN". */
static void put_names(const struct frame *f, const uint32_t *at, uint32_t k, struct text *text)
{
    SCOPED(texts_fini) struct texts known = {.n = 0};
    for (uint32_t i = k; i < frame_rows(f); i++) {
        const char *op = frame_text(f, i, "op");
        if (at[i] == k && texts_find(&known, op) == known.n) {
            texts_add(&known, op);
            text_item(text, " ", op);
        }
    }
}

static const struct frame_column dot_columns[] = {
    {.name = "device", .kind = FRAME_TEXT},
    {.name = "op", .kind = FRAME_TEXT},
    {.name = "work", .kind = FRAME_TEXT},
    {.name = "flop_per_byte", .title = "flop/byte", .unit = "flop/byte"},
    {.name = "tflop_per_s", .title = "TFLOP/s", .unit = "TFLOP/s"}};

/* Writes the kernels of a device: intensity, flop/s, names, 1 for decode. */
static void put_dots(const struct frame *kernels, const uint32_t *at, const char *device,
                     struct figure_data *d)
{
    figure_block(d, "%s", device);
    for (uint32_t k = 0; k < frame_rows(kernels); k++) {
        if (frame_is(kernels, k, "device", device)) {
            SCOPED(text_fini) struct text names = {0};
            put_names(kernels, at, k, &names);
            double intensity = frame_get(kernels, k, "flop_per_byte");
            double tflop_per_s = frame_get(kernels, k, "flop_per_s") / 1e12;
            FRAME_ROW(d->values, device, frame_text(kernels, k, "op"),
                      frame_text(kernels, k, "work"), intensity, tflop_per_s);
            FIGURE_ROW(d, intensity, tflop_per_s, text_end(&names),
                       strncmp(frame_text(kernels, k, "work"), "decode", 6) == 0 ? 1.0 : 0.0);
        }
    }
}

/* Blocks: the roof (intensity, flop/s) of each device, then the kernels of each. */
int figure_roofline(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    SCOPED(frame_drop) struct frame *kernels = figure_rows(&q->inputs[0], "kernels", e);
    SCOPED(frame_drop)
    struct frame *roofs = kernels != NULL ? figure_rows(&q->inputs[0], "roofs", e) : NULL;
    if (e->n == 0) {
        (void)frame_require(kernels, "device op work flop_per_byte flop_per_s", e);
        (void)frame_require(roofs, "device flop_per_s bytes_per_s", e);
    }
    SCOPED(texts_fini) struct texts devices = {.n = 0};
    for (uint32_t i = 0; e->n == 0 && i < frame_rows(roofs); i++) {
        double flop = frame_get(roofs, i, "flop_per_s");
        double bytes = frame_get(roofs, i, "bytes_per_s");
        const double at[] = {ROOF_FROM, flop / bytes, ROOF_TO}; /* the knee is the only corner */
        texts_add(&devices, frame_text(roofs, i, "device"));
        figure_block(d, "%s", devices.v[i]);
        for (size_t k = 0; k < 3; k++) {
            FIGURE_ROW(d, at[k], fmin(flop, bytes * at[k]) / 1e12);
        }
    }
    (void)FIGURE_VALUES(d, dot_columns);
    OWNED uint32_t *at = e->n == 0 ? named_at(kernels) : NULL;
    for (size_t i = 0; i < devices.n; i++) {
        put_dots(kernels, at, devices.v[i], d);
    }
    figure_slots_put((const char *const *)devices.v, devices.n, d);
    figure_var(d, "devices", (double)devices.n);
    return e->n > 0 ? -EINVAL : 0;
}

/* ---- kernels: operators by device ---- */

/* "GEMM, decode 1" from `list kernels`; only "GEMM" from a table without `work`. */
static const char *op_of(const struct frame *f, uint32_t row)
{
    const char *work = frame_text(f, row, "work");
    return xkeep(xformat("%s%s%s", frame_text(f, row, "op"), work[0] != '\0' ? ", " : "", work));
}

static void put_kernel(const struct frame *f, uint32_t row, struct texts *ops,
                       struct figure_data *d)
{
    const char *op = op_of(f, row);
    double time_s = frame_get(f, row, "time_s");
    bool energy = frame_find(f, "energy_j") >= 0;
    size_t at = texts_index(ops, op);
    FIGURE_ROW(d, op, at, time_s * 1e3, frame_get(f, row, "low") * 1e3,
               frame_get(f, row, "high") * 1e3,
               energy ? frame_get(f, row, "energy_j") : time_s * frame_get(f, row, "watts"));
}

int figure_kernels(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    SCOPED(frame_drop) struct frame *f = figure_rows(&q->inputs[0], "kernels", e);
    SCOPED(texts_fini) struct texts devices = {.n = 0};
    struct texts ops = {.n = 0};
    if (f == NULL || frame_require(f, "device op time_s", e) != 0) {
        return -EINVAL;
    }
    for (uint32_t row = 0; row < frame_rows(f) && e->n == 0; row++) {
        (void)texts_index(&devices, frame_text(f, row, "device"));
        (void)texts_index(&ops, op_of(f, row));
        (void)frame_require_number(f, row, "time_s", e);
    }
    for (size_t k = 0; k < devices.n && e->n == 0; k++) {
        figure_block(d, "%s", devices.v[k]);
        for (uint32_t row = 0; row < frame_rows(f); row++) {
            if (frame_is(f, row, "device", devices.v[k])) {
                put_kernel(f, row, &ops, d);
            }
        }
    }
    figure_texts_put(&ops, "rows", d);
    figure_slots_put((const char *const *)devices.v, devices.n, d);
    figure_var(d, "devices", (double)devices.n);
    return e->n > 0 ? -EINVAL : 0;
}

/* ---- tables with one number per row ---- */

static void put_curve(const struct frame *f, uint32_t row, const char *x, const char *y,
                      struct figure_data *d, struct err *e)
{
    double v = frame_require_number(f, row, y, e);
    double low = frame_get(f, row, "low");
    double high = frame_get(f, row, "high");
    FIGURE_ROW(d, frame_require_number(f, row, x, e), v * 1e3, (isfinite(low) ? low : v) * 1e3,
               (isfinite(high) ? high : v) * 1e3, 0.0, 0.0);
}

/* Writes x, y, low, high in a block per device (or one block), with seconds as ms. */
static int curves(const struct figure_request *q, const char *x, const char *y,
                  struct figure_data *d, struct err *e)
{
    SCOPED(frame_drop) struct frame *f = figure_rows(&q->inputs[0], "", e);
    bool by_device = f != NULL && frame_find(f, "device") >= 0;
    SCOPED(texts_fini) struct texts devices = {.n = 0};
    if (f != NULL) {
        (void)frame_require(f, x, e);
        (void)frame_require(f, y, e);
    }
    for (uint32_t row = 0; e->n == 0 && row < frame_rows(f); row++) {
        const char *of = by_device ? frame_text(f, row, "device") : q->inputs[0].label;
        (void)texts_index(&devices, of);
    }
    for (size_t k = 0; k < devices.n; k++) {
        figure_block(d, "%s", devices.v[k]);
        for (uint32_t row = 0; row < frame_rows(f); row++) {
            if (!by_device || frame_is(f, row, "device", devices.v[k])) {
                put_curve(f, row, x, y, d, e);
            }
        }
    }
    figure_slots_put((const char *const *)devices.v, devices.n, d);
    figure_var(d, "series", (double)devices.n);
    figure_var(d, "panels", 1.0);
    return e->n > 0 ? -EINVAL : 0;
}

int figure_batch(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    if (figure_is_study(q)) {
        return figure_study(q, d, e);
    }
    figure_var_text(d, "xlabel_text", "batch (sequences)");
    figure_var_text(d, "title1", "latency of a step (ms)");
    return curves(q, "batch", "latency_s", d, e);
}

int figure_draft(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    if (figure_is_study(q)) {
        return figure_study(q, d, e);
    }
    figure_var_text(d, "xlabel_text", "draft length (tokens)");
    figure_var_text(d, "title1", "verification time (ms)");
    return curves(q, "draft_tokens", "verify_s", d, e);
}

/* Rows: index of the aggressor's column, of the victim's row, slowdown. */
int figure_corun(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    if (figure_is_study(q)) {
        return figure_corun_study(q, d, e);
    }
    SCOPED(frame_drop) struct frame *f = figure_rows(&q->inputs[0], "", e);
    SCOPED(texts_fini) struct texts victims = {.n = 0};
    SCOPED(texts_fini) struct texts aggressors = {.n = 0};
    if (f != NULL) {
        (void)frame_require(f, "victim aggressor slowdown", e);
    }
    figure_block(d, "slowdown");
    for (uint32_t row = 0; e->n == 0 && row < frame_rows(f); row++) {
        const char *victim = frame_text(f, row, "victim");
        const char *aggressor = frame_text(f, row, "aggressor");
        FIGURE_ROW(d, texts_index(&aggressors, aggressor), texts_index(&victims, victim),
                   frame_require_number(f, row, "slowdown", e), frame_get(f, row, "low"),
                   frame_get(f, row, "high"), aggressor, victim);
    }
    figure_var(d, "rows", (double)victims.n);
    figure_var(d, "columns", (double)aggressors.n);
    return e->n > 0 ? -EINVAL : 0;
}

#include "experiments/machine/send.h"

#include <cjson/cJSON.h>
#include <unistd.h>

#include "experiments/machine/pairs_soc.h"
#include "hwmodels/kernel_fit.h"
#include "hwmodels/soc.h"
#include "sim/base/json.h"
#include "sim/base/tar.h"

#define MAX_ARCHIVE ((uint64_t)256 << 20)

struct taking {
    const char *archive, *name;
    char *path; /* owned: where the file goes */
    struct tar tar;
    cJSON *about; /* owned */
    struct document *d;
    struct err *e;
};

/* "my-machine.tar.gz:rows.csv"; kept. */
static const char *place(const struct taking *t, const char *file)
{
    return xkeep(xformat("%s:%s", t->archive, file));
}

/* The tree of a JSON file. NULL: with an error, or it is not in the archive. */
static cJSON *json_of(const struct taking *t, const char *file)
{
    const struct tar_file *f = tar_find(&t->tar, file);
    if (f == NULL) {
        return NULL;
    }
    if (strlen(f->data) != f->n) {
        return err_null(t->e, "%s: byte %zu: a NUL byte", place(t, file), strlen(f->data));
    }
    return json_read_text(f->data, place(t, file), t->e);
}

/* ---- facts ---- */

static int read_about(struct taking *t)
{
    static const struct frame_column columns[] = {{.name = "fact", .kind = FRAME_TEXT},
                                                  {.name = "value", .kind = FRAME_ANY}};
    if (tar_find(&t->tar, "about.json") == NULL) {
        return err_add(t->e, "%s: has no about.json: it is no archive of `xpusim send-in`",
                       t->archive);
    }
    t->about = json_of(t, "about.json");
    if (t->about == NULL) {
        return -EINVAL;
    }
    if (json_number(t->about, "format") != SEND_FORMAT) {
        return err_add(t->e, "%s: format: must be %d", place(t, "about.json"), SEND_FORMAT);
    }
    const cJSON *facts = cJSON_GetObjectItem(t->about, "facts");
    if (!cJSON_IsObject(facts)) {
        return err_add(t->e, "%s: facts: must be an object {...}", place(t, "about.json"));
    }
    DOCUMENT_VALUES(t->d, "made_by", json_string(t->about, "made_by"));
    struct frame *f = DOCUMENT_FRAME(t->d, "facts", 0, columns);
    const cJSON *c;
    cJSON_ArrayForEach (c, facts) {
        OWNED char *text = text_visible(
            cJSON_IsString(c) ? xstrdup(c->valuestring) : xformat("%.15g", cJSON_GetNumberValue(c)),
            "");
        FRAME_ROW(f, c->string, (const char *)text);
    }
    return 0;
}

static double peak_bytes_per_s(const struct taking *t)
{
    double peak = json_number(cJSON_GetObjectItem(t->about, "facts"), "memory_peak_bytes_per_s");
    return peak > 0.0 ? peak : 0.0;
}

/* ---- rows ---- */

static int rows_of(const struct taking *t, const char *file, struct kernel_rows *rows)
{
    const struct tar_file *f = tar_find(&t->tar, file);
    FILE *in = fmemopen(f->data, f->n > 0 ? f->n : 1, "r");
    return in == NULL ? err_add(t->e, "%s: %s", place(t, file), strerror(errno))
                      : kernel_rows_read_stream(rows, in, place(t, file), t->e);
}

/* Fits the rows, and notes the error on held-out shapes. write: there is no calibrated machine, so
 * the fit becomes one. */
static int take_rows(struct taking *t, bool write)
{
    struct kernel_rows rows = {.n = 0};
    struct kernel_fit fit;
    if (tar_find(&t->tar, "rows.csv") == NULL) {
        return write ? err_add(t->e, "%s: has neither soc.json nor rows.csv: nothing was measured",
                               t->archive)
                     : 0;
    }
    int rc = rows_of(t, "rows.csv", &rows);
    SCOPED(err_fini) struct err why = ERR_INIT;
    /* A calibrated machine does not need the rows: bad ones are then only a note. */
    struct err *to = write ? t->e : &why;
    bool fitted = rc == 0 && kernel_fit_run(&fit, &rows, to) == 0;
    if (fitted && write) {
        struct kernel_soc_options soc = {.name = t->name,
                                         .ddr_peak_bytes_per_s = peak_bytes_per_s(t)};
        rc = kernel_fit_write_soc(&fit, &rows, &soc, t->path, t->e);
    }
    if (fitted) {
        const struct kernel_form_error *held = &fit.all[KERNEL_FORM_PNORM];
        document_note(t->d,
                      "single kernels: %u row%s fitted, %u flagged and left out; on %u held-out "
                      "shape%s the fit is off by %.1f %% in the median",
                      fit.n_points, text_plural(fit.n_points), fit.n_flagged, held->n,
                      text_plural(held->n), 100.0 * held->median_frac);
        rc = rc == 0 && (fit.alone.wrong || fit.together.wrong) ? 1 : rc;
    } else if (rc == 0) {
        document_note(t->d, "single kernels: not fitted (%s)",
                      why.n > 0 ? why.lines[0] : "too few rows");
    }
    return t->e->n > 0 ? -EINVAL : rc;
}

/* Reads the slowdowns of co-running kernels. p is empty if they were not measured. */
static int take_pairs(struct taking *t, struct pairs *p)
{
    struct kernel_rows rows = {.n = 0};
    const struct pairs_cell *worst = NULL;
    *p = (struct pairs){.n = 0};
    if (tar_find(&t->tar, "pairs.csv") == NULL) {
        return 0;
    }
    SCOPED(err_fini) struct err none = ERR_INIT;
    if (rows_of(t, "pairs.csv", &rows) == 0 && pairs_make(p, &rows, &none) == 0) {
        for (size_t i = 0; i < p->n; i++) {
            bool more = worst == NULL || p->cells[i].slowdown.value > worst->slowdown.value;
            worst = more ? &p->cells[i] : worst;
        }
        document_note(
            t->d,
            "pairs: %zu; at worst %s on %s takes %.2f times as long next to %s on %s; two "
            "kernels reach %s%.1f GB/s together",
            p->n, worst->victim.model, worst->victim.device, worst->slowdown.value,
            worst->culprit.model, worst->culprit.device, p->saturated ? "" : "at least ",
            p->most_bytes_per_s / 1e9);
    } else if (t->e->n == 0) {
        document_note(t->d, "pairs: not used (%s)", none.n > 0 ? none.lines[0] : "none");
    }
    return t->e->n == 0 ? 0 : -EINVAL;
}

/* ---- the calibrated machine ---- */

static void put_memory(const struct taking *t, cJSON *ddr)
{
    double peak = peak_bytes_per_s(t) / 1e9;
    if (peak > 0.0) {
        json_put_quantity(ddr, "peak",
                          (struct quantity){peak, peak, peak, QUANTITY_DATASHEET, true}, "GB/s",
                          "width and speed of the memory modules, by their firmware");
    }
}

static int take_soc(struct taking *t, const struct pairs *pairs)
{
    SCOPED(json_drop) cJSON *tree = json_of(t, "soc.json");
    OWNED struct soc *soc = xcalloc(1, sizeof *soc);
    int rc = tree == NULL ? -EINVAL : soc_parse(tree, place(t, "soc.json"), soc, t->e);
    if (rc == 0) {
        (void)cJSON_ReplaceItemInObject(tree, "name", cJSON_CreateString(t->name));
        put_memory(t, cJSON_GetObjectItem(tree, "ddr"));
        if (pairs->n > 0) {
            pairs_soc_put(pairs, tree, t->d);
        }
        rc = soc_parse(tree, t->name, soc, t->e); /* checks it with the new peak */
        rc = rc == 0 ? json_write_file(t->path, tree, t->e) : rc;
    }
    return rc;
}

static void put_errors(struct taking *t, struct frame *f, const char *file)
{
    SCOPED(json_drop) cJSON *root = json_of(t, file);
    const cJSON *row;
    cJSON_ArrayForEach (row, cJSON_GetObjectItem(root, "errors")) {
        const cJSON *mape = cJSON_GetObjectItem(row, "mape");
        const cJSON *real = cJSON_GetObjectItem(row, "real_mape");
        FRAME_ROW(f, json_string(root, "trace"), json_string(row, "policy"),
                  json_string(row, "soc"), json_number(mape, "ttft_s"), json_number(mape, "tpot_s"),
                  json_number(mape, "e2e_s"), json_number(real, "e2e_s"));
    }
}

static void put_validation(struct taking *t)
{
    static const struct frame_column columns[] = {
        {.name = "trace", .kind = FRAME_TEXT},
        {.name = "policy", .kind = FRAME_TEXT},
        {.name = "soc", .kind = FRAME_TEXT, .title = "simulated on"},
        {.name = "ttft_s", .title = "TTFT %", .format = "%.1f", .scale = 100.0},
        {.name = "tpot_s", .title = "TPOT %", .format = "%.1f", .scale = 100.0},
        {.name = "e2e_s", .title = "E2E %", .format = "%.1f", .scale = 100.0},
        {.name = "real_e2e_s",
         .title = "real against real, E2E %",
         .format = "%.1f",
         .scale = 100.0}};
    document_heading(t->d,
                     "Mean |error| per request, real runs of the machine against simulated ones:");
    struct frame *f = DOCUMENT_FRAME(t->d, "errors", 0, columns);
    for (size_t i = 0; i < t->tar.n; i++) {
        if (strncmp(t->tar.v[i].name, "compare-", 8) == 0) {
            put_errors(t, f, t->tar.v[i].name);
        }
    }
}

/* ---- the whole archive ---- */

int take_machine(const char *archive, const char *name, const char *output, struct document *d,
                 struct err *e)
{
    struct taking t = {.archive = archive, .name = name, .d = d, .e = e};
    t.path = output != NULL ? xstrdup(output) : xformat("%s.json", name);
    if (!text_ends(t.path, ".json")) {
        (void)err_add(e, "-o '%s': must be a path ending in .json", t.path);
    } else if (access(t.path, F_OK) == 0) {
        (void)err_add(e, "%s: is there already; remove it, or give another -o", t.path);
    }
    int rc = e->n == 0 && tar_read(&t.tar, archive, MAX_ARCHIVE, e) == 0 ? read_about(&t) : -EINVAL;
    if (rc == 0) {
        bool calibrated = tar_find(&t.tar, "soc.json") != NULL;
        struct pairs pairs;
        int paired = take_pairs(&t, &pairs);
        put_validation(&t);
        /* The file is last, so that a damaged archive leaves none. */
        rc = paired != 0 || e->n > 0 ? -EINVAL : take_rows(&t, !calibrated);
        rc = calibrated && rc >= 0 && e->n == 0 ? take_soc(&t, &pairs) : rc;
    }
    if (e->n == 0) {
        document_note(d, "%s", t.path);
    }
    cJSON_Delete(t.about);
    tar_fini(&t.tar);
    free(t.path);
    return e->n > 0 ? -EINVAL : rc;
}

/* `xpusim calibrate`: fits the kernel-time parameters of a SoC file to measured points. */
#include "experiments/commands/commands.h"
#include "experiments/validation/calibrate_report.h"
#include "experiments/validation/footprint_fit.h"
#include "experiments/validation/measured_update.h"
#include "experiments/validation/residuals.h"
#include "hwmodels/conformal.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"
#include "sim/base/output.h"

#define PATH_BYTES 4096
#define MAX_ENTRIES (MACHINE_MAX_DEVICES * SOC_MAX_RUNTIMES)

#define MAX_MEASURED 64

struct options {
    const char *points, *soc, *out, *residuals;
    bool memory;
    struct option_texts measured;
    struct option_output output;
};

/* Writes a SoC file that the loader accepts, or none. */
static int write_tree(const char *path, const cJSON *tree, struct err *e)
{
    struct soc check;
    if (soc_parse(tree, path, &check, e) != 0) {
        return err_add(e, "%s: not written: the loader would refuse it", path);
    }
    return json_write_file(path, tree, e);
}

struct work {
    struct points points;
    struct catalog catalog;
    cJSON *tree;
    struct soc *soc; /* the catalogue's */
    struct calibrate_entry *entries;
    size_t n;
};

static int load(const struct options *o, struct work *w, struct err *e)
{
    int rc = points_read(datadir_named(o->points, "hwmodels/points", ".csv"), &w->points, e);
    rc = rc == 0 ? catalog_open(&w->catalog, e) : rc;
    rc = rc == 0 ? catalog_add_models(&w->catalog, &w->points, e) : rc;
    if (rc != 0) {
        return rc;
    }
    const char *path = soc_path(o->soc);
    w->tree = json_read_file(path, e);
    if (w->tree == NULL) {
        return -EINVAL;
    }
    w->soc = xkept(xmalloc(sizeof *w->soc));
    rc = soc_parse(w->tree, path, w->soc, e);
    if (rc == 0) {
        catalog_add_soc(&w->catalog, w->soc);
    }
    return rc;
}

/* Fits every entry that has rows. -EINVAL: nothing could be fitted. */
static int fit(const struct options *o, struct work *w, struct err *e)
{
    w->entries = xkept(xcalloc(MAX_ENTRIES, sizeof *w->entries));
    size_t fitted = 0;
    size_t rows = 0;
    for (uint8_t d = 0; d < w->soc->machine.n_devices; d++) {
        for (uint32_t r = 0; r < w->soc->devices[d].n_runtimes; r++) {
            struct calibrate_entry *entry = &w->entries[w->n];
            calibrate_entry_make(&w->catalog, &w->points, w->soc, d, r, entry);
            w->n += entry->set.n > 0;
            fitted += entry->fitted;
            rows += entry->set.n;
        }
    }
    if (fitted > 0) {
        return 0;
    }
    for (size_t i = 0; i < w->n; i++) {
        (void)err_add(e, "%s", w->entries[i].refusal);
    }
    return err_add(e, "%s: %s", o->points,
                   rows == 0 ? "no latency row has the soc (or its family), device, runtime and "
                               "weight_bits of an entry of this SoC, and a known model"
                             : "nothing could be fitted");
}

static void write_entries(const struct options *o, struct work *w)
{
    cJSON *devices = json_member(w->tree, "devices");
    for (size_t i = 0; i < w->n; i++) {
        const struct calibrate_entry *entry = &w->entries[i];
        if (entry->fitted) {
            cJSON *device = cJSON_GetArrayItem(devices, entry->set.device);
            cJSON *runtimes = json_member(device, "runtimes");
            calibrate_entry_write(entry, text_base(o->points),
                                  cJSON_GetArrayItem(runtimes, (int)entry->set.runtime));
        }
    }
}

static void report(const struct options *o, const struct work *w)
{
    struct document *d = document_new();
    DOCUMENT_VALUES(d, "soc", w->soc->machine.name, "points", o->points);
    document_note(d, "%s from %s\n", w->soc->machine.name, o->points);
    struct document *list = document_array(d, "entries");
    for (size_t i = 0; i < w->n; i++) {
        calibrate_entry_document(&w->entries[i], document_within(list, NULL));
    }
    document_show(d, &o->output);
}

/* Prints the share of left-out rows that nominal intervals cover. */
static void print_coverage(const char *path, struct err *e)
{
    struct conformal table;
    if (conformal_read(path, &table, e) != 0) {
        return;
    }
    static const char *const out[] = {"models", "SoCs"};
    (void)printf("coverage of nominal 95 %%, scores without the row's own model or SoC:\n");
    for (int soc = 0; soc < 2; soc++) {
        size_t n = 0;
        size_t inside = 0;
        for (int phase = CONFORMAL_PREFILL; phase <= CONFORMAL_DECODE; phase++) {
            struct conformal_coverage x = conformal_cover(
                &table, (enum conformal_left)soc, (enum conformal_phase)phase, CONFORMAL_LEVEL);
            if (x.n == 0) {
                continue;
            }
            (void)printf("  %s left out, %s: %.1f %% of %zu row%s; interval in the median x %.2f "
                         "either way\n",
                         out[soc], conformal_phase_names[phase],
                         100.0 * (double)x.inside / (double)x.n, x.n, text_plural(x.n),
                         exp(x.median_half));
            n += x.n;
            inside += x.inside;
        }
        if (n == 0) {
            (void)printf("  %s left out: no rows\n", out[soc]);
            continue;
        }
        (void)printf("  %s left out, all: %.1f %% of %zu row%s\n", out[soc],
                     100.0 * (double)inside / (double)n, n, text_plural(n));
    }
    (void)fputc('\n', stdout);
    left_out_table_print(&table, stdout);
    (void)fputc('\n', stdout);
    transfer_table_print(&table, stdout);
}

static int residuals(const struct options *o, struct err *e)
{
    struct points points;
    struct catalog catalog = {0};
    int rc = points_read(datadir_named(o->points, "hwmodels/points", ".csv"), &points, e);
    rc = rc == 0 ? catalog_open(&catalog, e) : rc;
    rc = rc == 0 ? catalog_add_models(&catalog, &points, e) : rc;
    double share = 0.0;
    rc = rc == 0 ? soc_share_read(&share, e) : rc;
    struct output *out = rc == 0 ? output_open(o->residuals, e) : NULL;
    if (out != NULL) {
        size_t n = residuals_write(&catalog, &points, o->points, share, output_stream(out));
        rc = output_close(out, true, e);
        (void)printf("%s: %zu row%s\n", o->residuals, n, text_plural(n));
        print_coverage(o->residuals, e);
    }
    return e->n > 0 ? -EINVAL : rc;
}

static int memory(const struct options *o, struct err *e)
{
    struct points points;
    struct catalog catalog = {0};
    int rc = points_read(datadir_named(o->points, "hwmodels/points", ".csv"), &points, e);
    rc = rc == 0 ? catalog_open(&catalog, e) : rc;
    rc = rc == 0 ? catalog_add_models(&catalog, &points, e) : rc;
    if (rc == 0) {
        footprint_print(&catalog, &points, stdout);
    }
    return rc;
}

/* --measured: updates the file by a few rows instead of a fit. */
static int update(const struct options *o, struct err *e)
{
    struct measured m = {0};
    struct catalog c = {0};
    SCOPED(json_drop) cJSON *tree = json_read_file(soc_path(o->soc), e);
    for (uint32_t i = 0; tree != NULL && i < o->measured.n; i++) {
        (void)measured_read(o->measured.v[i], json_string(tree, "name"), &m, e);
    }
    int rc = e->n > 0 ? -EINVAL : catalog_open(&c, e);
    struct document *d = document_new();
    DOCUMENT_VALUES(d, "soc", tree != NULL ? json_string(tree, "name") : "");
    rc = rc == 0 ? measured_update(&c, tree, &m, NULL, d, e) : rc;
    rc = rc == 0 && o->out != NULL ? write_tree(o->out, tree, e) : rc;
    if (rc == 0) {
        document_show(d, &o->output);
    }
    return rc;
}

static int run(void *values, struct err *e)
{
    const struct options *o = values;
    struct work w = {0};
    if (o->measured.n > 0 && o->soc != NULL && o->points == NULL && o->residuals == NULL) {
        return update(o, e);
    }
    if (o->out != NULL && o->soc == NULL && (o->memory || o->residuals != NULL)) {
        return err_add(e, "-o: is for the file of --soc; --residuals and --memory write none");
    }
    if (o->memory && o->points != NULL && o->soc == NULL && o->residuals == NULL) {
        return memory(o, e);
    }
    if (o->points != NULL && o->residuals != NULL && o->soc == NULL && !o->memory) {
        return residuals(o, e);
    }
    if (o->points == NULL || o->soc == NULL || o->residuals != NULL || o->measured.n > 0 ||
        o->memory) {
        return err_add(e, "calibrate needs --points and either --soc, --residuals or --memory, or "
                          "--soc and --measured");
    }
    int rc = load(o, &w, e);
    rc = rc == 0 ? fit(o, &w, e) : rc;
    if (rc == 0 && o->out != NULL) {
        write_entries(o, &w);
        rc = write_tree(o->out, w.tree, e);
    }
    if (rc == 0) {
        report(o, &w);
    }
    cJSON_Delete(w.tree);
    return rc;
}

#define OPTIONS struct options

static const struct option_row rows[] = {
    OPTION_TEXT(
        OPTIONS, points, "points", "FILE.csv", NULL,
        "measured points, as for `validate --points`, or a shipped table (hwmodels/points)"),
    OPTION_TEXT(OPTIONS, soc, "soc", "S", NULL,
                "SoC with the starting values, and the numbers that are not fitted: a shipped name "
                "or a path"),
    OPTION_TEXTS(OPTIONS, measured, "measured", "ROWS", MAX_MEASURED,
                 "without --points: update the file by a few rows, as `new-soc --measured` does; "
                 "repeated"),
    OPTION_OUTPUT(OPTIONS, out, "OUT.json", NULL, "write the calibrated SoC file"),
    OPTION_TEXT(OPTIONS, residuals, "residuals", "OUT.csv", NULL,
                "without --soc: fit every SoC, and write the error of each row when its model, and "
                "when its SoC, is left out (the basis of intervals)"),
    OPTION_FLAG(
        OPTIONS, memory, "memory",
        "without --soc: fit the memory of each runtime (`footprint` of a device) and print it"),
};
const struct command cmd_calibrate = {
    .name = "calibrate",
    .summary = "fit a SoC file to measured points",
    .usage = "--points FILE.csv --soc S [-o OUT.json] [options]\n"
             "--soc S --measured ROWS ... [-o OUT.json] [options]\n"
             "--points FILE.csv --residuals OUT.csv\n"
             "--points FILE.csv --memory",
    .about =
        "Fits each (device, runtime, weight width) of a SoC file to the latency rows of a table of "
        "measurements. The fit is robust, bounded least squares of ln(predicted / measured). It "
        "has standard errors, and errors on models left out. Rows of SoCs of the same family "
        "count, scaled. A parameter that the points do not determine stays as the file has it.",
    COMMAND_TAKES(OPTION_ROWS(NULL, rows), OPTION_CHILD(option_output_table, output)),
    .run = run,
};

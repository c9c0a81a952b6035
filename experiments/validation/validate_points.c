#include "experiments/validation/validate.h"

#include "experiments/run/interval.h"
#include "experiments/shell/cli.h"
#include "experiments/shell/document.h"
#include "experiments/validation/accuracy.h"
#include "experiments/validation/leave_machine.h"
#include "experiments/validation/noise_floor.h"
#include "experiments/validation/points_score.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"

#define PATH_BYTES 4096
#define WORST_ROWS 10

/* ---- choosing ---- */

/* Adds the file of --soc to the catalog, or finds the shipped one. *name: its name in the rows. */
static int take_soc(struct catalog *c, const char *text, const char **name, struct err *e)
{
    if (text_ends(text, ".json")) {
        struct soc *soc = xkept(xmalloc(sizeof *soc));
        SCOPED(json_drop) cJSON *root = json_read_file(soc_path(text), e);
        if (root == NULL || soc_parse(root, text, soc, e) != 0) {
            return -EINVAL;
        }
        catalog_add_soc(c, soc);
        *name = soc->machine.name;
        return 0;
    }
    const struct soc *soc = catalog_soc(c, text);
    if (soc == NULL) {
        return err_add(e, "--soc %s: no such SoC file is shipped", text);
    }
    *name = soc->machine.name;
    return 0;
}

static void keep_soc(struct points *p, const char *name)
{
    size_t n[2] = {0, 0};
    for (size_t i = 0; i < p->n + p->n_asked; i++) {
        if (catalog_same(p->v[i].soc, name)) {
            p->v[n[0] + n[1]] = p->v[i];
            n[i >= p->n]++;
        }
    }
    p->n = n[0];
    p->n_asked = n[1];
}

/* Takes the contention model from the settings. Machines come from the catalog. */
static int take_settings(struct catalog *c, const struct config_options *o, struct err *e)
{
    for (uint32_t i = 0; i < o->n_sets; i++) {
        if (strncmp(o->sets[i], "sim.contention", 14) != 0) {
            return err_add(e,
                           "--set %s: --points predicts with the shipped files, and takes only "
                           "sim.contention and its numbers; --soc FILE.json replaces a machine",
                           o->sets[i]);
        }
    }
    struct config_options with = config_options_default();
    SCOPED(config_fini) struct config config;
    config_options_overlay(&with, o);
    with.soc = CONFIG_DEFAULT_SOC;
    int rc = config_load(&config, &with, e);
    if (rc == 0) {
        c->contention = config.contention;
        c->contention_params = config.sim.contention_params;
    }
    for (uint32_t i = 0; i < o->n_sets; i++) {
        c->contention_given |= strncmp(o->sets[i], "sim.contention=", 15) == 0;
    }
    return rc;
}

/* ---- printing ---- */

/* Writes the summary. Its table has groups of one kind under a heading "by KIND". */
static void put_groups(const struct points_scores *s, struct document *d)
{
    struct document *told = document_within(d, NULL);
    struct frame *shown =
        document_table(told, 2, "lrrrrrrrrr", "|error|, %", "rows", "predicted", "median", "P90",
                       "bias", "Pearson", "with the", "unpredicted", "in 95 %");
    struct frame *f =
        document_data(d, "summary", 0,
                      "by group n predicted median p90 bias pearson median_with_unpredicted "
                      "p90_with_unpredicted inside_interval");
    const char *by = "";
    for (size_t i = 0; i < s->n; i++) {
        const struct points_group *g = &s->v[i];
        bool all = strcmp(g->by, "all") == 0;
        if (strcmp(by, g->by) != 0 && !all) {
            FRAME_ROW(shown, document_format("by %s", g->by));
        }
        by = g->by;
        const double v[] = {g->median,     g->p90,     g->bias,       g->pearson,
                            g->median_all, g->p90_all, g->inside_frac};
        FRAME_CELLS(shown, document_format("%s%.40s", all ? "" : "  ", g->key), g->n, g->predicted);
        FRAME_CELLS(f, g->by, g->key, g->n, g->predicted);
        for (int k = 0; k < 7; k++) {
            FRAME_CELLS(shown, isnan(v[k]) ? ""
                               : k == 3    ? document_format("%.3f", v[k])
                                           : document_format("%.1f", 100.0 * v[k]));
            FRAME_CELLS(f, v[k]);
        }
    }
}

struct ranked {
    size_t i;
    double error;
};

static int worst_first(const void *a, const void *b)
{
    const struct ranked *x = a;
    const struct ranked *y = b;
    double ex = fabs(x->error);
    double ey = fabs(y->error);
    return ex != ey ? (ex < ey ? 1 : -1) : (x->i > y->i) - (x->i < y->i);
}

/* "openvino-2025/8", as in paths of a SoC file. */
static const char *entry_text(const struct prediction *q)
{
    return q->entry != NULL ? document_format("%s/%u", q->entry->runtime, q->entry->weight_bits)
                            : "";
}

static void show_row(const struct point *p, const struct prediction *q, struct frame *f)
{
    bool known = q->reason == NULL;
    FRAME_ROW(f, p->line, document_format("%s %s", p->soc, p->device),
              document_format("%.28s", p->runtime), document_format("%.40s", p->model),
              p->weight_bits, p->input_tokens, p->metric_name, FRAME_IF(!isnan(p->value), p->value),
              FRAME_IF(known, q->value),
              FRAME_IF(known && !isnan(q->low), document_format("%.4g to %.4g", q->low, q->high)),
              known ? document_format(
                          "%s%s%s%s",
                          isnan(p->value) ? "asked"
                                          : document_format("%+.1f %%", 100.0 * points_error(p, q)),
                          q->runtime_default
                              ? document_format(", by %s", q->entry != NULL ? entry_text(q)
                                                                            : "another runtime's")
                          : q->unseen == CONFORMAL_RUNTIME && !isnan(q->low)
                              ? ", by an entry of no stated version"
                              : "",
                          q->outside ? ", outside" : "",
                          !isnan(q->low) && q->unseen == CONFORMAL_SOC      ? ", SoC unfitted"
                          : !isnan(q->low) && q->unseen == CONFORMAL_SOURCE ? ", new source"
                                                                            : "")
                    : q->reason);
}

static struct frame *rows_table(struct document *d)
{
    return document_table(d, 2, "rlllrrlrrrl", "line", "engine", "runtime", "model", "bits",
                          "tokens", "metric", "measured", "predicted", "95 %", "error");
}

static void show_worst(const struct points *points, const struct prediction *q, struct document *d)
{
    OWNED struct ranked *r = xmalloc((points->n + 1) * sizeof *r);
    size_t n = 0;
    for (size_t i = 0; i < points->n; i++) {
        if (point_is_latency(&points->v[i]) && q[i].reason == NULL) {
            r[n++] = (struct ranked){i, points_error(&points->v[i], &q[i])};
        }
    }
    if (n > 1) {
        qsort(r, n, sizeof *r, worst_first);
    }
    document_note(d, "\nworst latency rows");
    struct frame *f = rows_table(d);
    for (size_t i = 0; i < n && i < WORST_ROWS; i++) {
        show_row(&points->v[r[i].i], &q[r[i].i], f);
    }
}

static void show_reasons(const struct points *points, const struct prediction *q,
                         struct document *d)
{
    bool head = false;
    for (size_t i = 0; i < points->n; i++) {
        if (q[i].reason == NULL) {
            continue;
        }
        size_t n = 0;
        bool first = true;
        for (size_t j = 0; j < points->n; j++) {
            bool same = q[j].reason != NULL && strcmp(q[j].reason, q[i].reason) == 0;
            first = first && !(same && j < i);
            n += same;
        }
        if (first) {
            document_note(d, "%s  %4zu  %s", head ? "" : "\nrows without a prediction\n", n,
                          q[i].reason);
            head = true;
        }
    }
}

static void put_rows(const struct points *points, const struct prediction *q, struct document *d)
{
    struct frame *f = document_data(
        d, "rows", 0,
        "line soc device runtime model weight_bits act_bits metric input_tokens batch measured "
        "reason predicted low high error_frac default_runtime outside_envelope unseen "
        "entry");
    for (size_t i = 0; i < points->n + points->n_asked; i++) {
        const struct point *p = &points->v[i];
        bool known = q[i].reason == NULL;
        FRAME_ROW(f, p->line, p->soc, p->device, p->runtime, p->model, p->weight_bits, p->act_bits,
                  p->metric_name, p->input_tokens, p->batch, p->value,
                  FRAME_IF(!known, q[i].reason), FRAME_IF(known, q[i].value),
                  FRAME_IF(known, q[i].low), FRAME_IF(known, q[i].high),
                  FRAME_IF(known, points_error(p, &q[i])), FRAME_IF(known, q[i].runtime_default),
                  FRAME_IF(known, q[i].outside),
                  FRAME_IF(known && !isnan(q[i].low), conformal_left_names[q[i].unseen]),
                  FRAME_IF(known && q[i].entry != NULL, entry_text(&q[i])));
    }
}

/* Writes the error that no model can avoid, to compare with the errors that this model makes. */
static void put_floor(const struct catalog *c, const struct points *points, struct document *d)
{
    static const struct frame_column columns[] = {
        {.name = "device", .title = "no form can know", .kind = FRAME_TEXT},
        {.name = "phase", .title = "", .kind = FRAME_TEXT},
        {.name = "twins", .title = "twins"},
        {.name = "twin_median_frac", .title = "median", .scale = 100.0, .format = "%.1f %%"},
        {.name = "twin_p90_frac", .title = "P90", .scale = 100.0, .format = "%.1f %%"},
        {.name = "version_pairs", .title = "other versions"},
        {.name = "version_median", .title = "median", .format = "x %.2f"},
        {.name = "version_p90", .title = "P90", .format = "x %.2f"},
    };
    document_note(d, "%s", "");
    struct frame *f = frame_indent(DOCUMENT_FRAME(d, "noise_floor", 0, columns), 2);
    for (int kind = 0; device_kind_names()[kind] != NULL; kind++) {
        for (int phase = CONFORMAL_PREFILL; phase <= CONFORMAL_DECODE; phase++) {
            struct noise_floor x =
                noise_floor_of(c, points, (enum device_kind)kind, (enum conformal_phase)phase);
            bool twins = x.twins > 0;
            bool versions = x.versions > 0;
            if (twins || versions) {
                FRAME_ROW(f, device_kind_names()[kind], conformal_phase_names[phase],
                          (double)x.twins, FRAME_IF(twins, x.twin_median_frac),
                          FRAME_IF(twins, x.twin_p90_frac), (double)x.versions,
                          FRAME_IF(versions, x.version_median), FRAME_IF(versions, x.version_p90));
            }
        }
    }
    if (frame_rows(f) > 0) {
        document_note(
            d, "%s",
            "  twins: rows of one SoC, version, width and length whose models have the same "
            "shape, against their centre;\n  other versions: the same row under another version "
            "of the toolchain");
    }
}

/* Notes the expected errors of devices whose numbers are a similar chip's. */
static void put_transfers(const struct catalog *c, const char *name, struct document *d)
{
    const struct soc *soc = name != NULL ? catalog_soc(c, name) : NULL;
    for (uint32_t i = 0; soc != NULL && i < soc->machine.n_devices; i++) {
        if (interval_is_transfer(soc, (uint8_t)i)) {
            OWNED char *text = interval_transfer_text(&c->residuals, soc, (uint8_t)i);
            document_note(d, "%s", text);
        }
    }
}

static void put_all(const struct validate_points_options *o, const struct points *points,
                    const struct prediction *q, const struct points_scores *s, struct document *d)
{
    DOCUMENT_VALUES(d, "points", o->points);
    document_note(d, "%s: %zu row%s\n", o->points, points->n + points->n_asked,
                  text_plural(points->n + points->n_asked));
    put_rows(points, q, d);
    put_groups(s, d);
    if (points->n > 0) {
        show_worst(points, q, d);
    }
    show_reasons(points, q, d);
    if (o->rows || points->n_asked > 0) {
        document_note(d, "%s", "");
        struct frame *f = rows_table(d);
        for (size_t i = o->rows ? 0 : points->n; i < points->n + points->n_asked; i++) {
            show_row(&points->v[i], &q[i], f);
        }
    }
}

/* ---- the command ---- */

/* Whether errors are within the limits. Prints those that are not. */
static bool within(const struct validate_points_options *o, const struct points_scores *s)
{
    const struct points_group *all = s->n > 0 ? &s->v[0] : NULL;
    if (all == NULL || strcmp(all->by, "all") != 0) {
        return true;
    }
    bool ok = true;
    if (100.0 * all->median_all > o->max_median_pct) {
        (void)fprintf(stderr, "median error %.2f %% is above %.4g %%\n", 100.0 * all->median_all,
                      o->max_median_pct);
        ok = false;
    }
    if (100.0 * all->p90_all > o->max_p90_pct) {
        (void)fprintf(stderr, "P90 error %.2f %% is above %.4g %%\n", 100.0 * all->p90_all,
                      o->max_p90_pct);
        ok = false;
    }
    return ok;
}

static int leave_out(const struct validate_points_options *o, struct catalog *c,
                     const struct points *points, const struct option_output *out, struct err *e)
{
    struct leave_rows rows = {0};
    struct points unseen = {0};
    bool apart = o->unseen != NULL;
    int rc =
        apart ? points_read(datadir_named(o->unseen, "hwmodels/points", ".csv"), &unseen, e) : 0;
    struct leave_points both = {points, apart ? &unseen : points};
    rc = rc == 0 ? leave_machines(c, &both, o->leave_machine_out, &rows, e) : rc;
    if (rc == 0 && rows.n == 0) {
        rc = err_add(e, "%s: no two machines have rows of one toolchain",
                     apart ? o->unseen : o->points);
    }
    if (rc == 0) {
        struct document *d = document_new();
        DOCUMENT_VALUES(d, "points", o->points);
        leave_machine_document(&rows, o->leave_machine_out, d);
        document_show(d, out);
    }
    return rc == 0 ? EXIT_OK : EXIT_BAD_INPUT;
}

static int accuracy(const struct validate_points_options *o, struct catalog *c,
                    const struct points *points, const struct option_output *out, struct err *e)
{
    struct document *d = document_new();
    int worse = accuracy_document(c, points, o->against, d, e);
    if (worse < 0) {
        return EXIT_BAD_INPUT;
    }
    document_show(d, out);
    return worse == 0 ? EXIT_OK : EXIT_CHECK_FAILED;
}

int validate_points(const struct validate_points_options *o, const struct config_options *config,
                    const struct option_output *out, struct err *e)
{
    const char *path = datadir_named(o->points, "hwmodels/points", ".csv");
    struct points points = {0};
    struct catalog catalog = {0};
    const char *soc = NULL;
    bool other = o->accuracy || o->leave_machine_out > 0;
    int rc = other ? points_read(path, &points, e) : points_read_asked(path, &points, e);
    rc = rc == 0 ? catalog_open(&catalog, e) : rc;
    rc = rc == 0 ? catalog_add_models(&catalog, &points, e) : rc;
    rc = rc == 0 ? take_settings(&catalog, config, e) : rc;
    rc = rc == 0 && config->soc != NULL ? take_soc(&catalog, config->soc, &soc, e) : rc;
    if (rc == 0 && soc != NULL) {
        keep_soc(&points, soc);
        rc = points.n + points.n_asked > 0 ? 0 : err_add(e, "%s: no row is about %s", path, soc);
    }
    int status = EXIT_BAD_INPUT;
    if (rc == 0 && o->against != NULL && !o->accuracy) {
        (void)err_add(e, "--against goes with --accuracy");
    } else if (rc == 0 && o->unseen != NULL && o->leave_machine_out == 0) {
        (void)err_add(e, "--unseen goes with --leave-machine-out or --energy");
    } else if (rc == 0 && o->accuracy) {
        status = accuracy(o, &catalog, &points, out, e);
    } else if (rc == 0 && o->leave_machine_out > 0) {
        status = leave_out(o, &catalog, &points, out, e);
    } else if (rc == 0) {
        const size_t n = points.n + points.n_asked;
        OWNED struct prediction *q = xmalloc((n + 1) * sizeof *q);
        for (size_t i = 0; i < n; i++) {
            q[i] = predict_row(&catalog, &points.v[i]);
        }
        struct points_scores scores;
        points_score(&points, q, &scores);
        struct document *d = document_new();
        put_all(o, &points, q, &scores, d);
        put_floor(&catalog, &points, d);
        put_transfers(&catalog, soc, d);
        document_show(d, out);
        status = within(o, &scores) ? EXIT_OK : EXIT_CHECK_FAILED;
    }
    return status;
}

static void init(void *target)
{
    struct validate_points_options *o = target;
    o->max_median_pct = o->max_p90_pct = (double)INFINITY;
}

#define OPTIONS struct validate_points_options

static const struct option_row option_rows[] = {
    OPTION_TEXT(OPTIONS, points, "points", "FILE.csv", NULL,
                "soc, device, runtime, model, weight_bits, act_bits, input_tokens, batch, metric, "
                "value, and where stated source, bytes_per_weight, dense_bytes_per_weight "
                "(experiments/validation/points.h); or a shipped table (hwmodels/points). A row "
                "with an empty value is only "
                "predicted. With --soc only rows of this SoC; a path to a .json file is used in "
                "place of the shipped file of the same name"),
    OPTION_FLAG(OPTIONS, rows, "rows", "print every row, too"),
    OPTION_NUMBER(OPTIONS, max_median_pct, "max-median", "PCT", NULL, 0.0, 1e9,
                  "exit 1 when the median |error| of the latency rows is above PCT, rows without a "
                  "prediction counting as 100 %"),
    OPTION_NUMBER(OPTIONS, max_p90_pct, "max-p90", "PCT", NULL, 0.0, 1e9,
                  "the same for the 90th percentile"),
    OPTION_COUNT(OPTIONS, leave_machine_out, "leave-machine-out", "N", NULL, 1, 10,
                 "make each machine from its siblings as if nobody had measured it, take the rows "
                 "of N of its models in as `new-soc --measured` does, and predict the others"),
    OPTION_TEXT(OPTIONS, unseen, "unseen", "FILE.csv", NULL,
                "with --leave-machine-out: predict the machines of this table instead, whose rows "
                "no fit takes; a shipped table: unseen. With --energy: predict the powers of this "
                "table by a fit of the other"),
    OPTION_FLAG(OPTIONS, accuracy, "accuracy",
                "print errors and coverage of intervals by what was unseen: a model, a machine, a "
                "runtime, a source"),
    OPTION_TEXT(OPTIONS, against, "against", "FILE.json", NULL,
                "with --accuracy: exit 1 when a class of 30 rows or more is worse than in an "
                "earlier result of --json (the median by a tenth, or coverage below 93 %)"),
};
const struct option_table validate_points_option_table =
    OPTION_TABLE_INIT("Published points", option_rows, init);

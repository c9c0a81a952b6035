/* `xpusim report`: makes a page of comparisons. */
#include <cjson/cJSON.h>
#include <unistd.h>

#include "experiments/commands/commands.h"
#include "experiments/compare/stored.h"
#include "experiments/report/report.h"
#include "experiments/shell/cli.h"
#include "experiments/shell/options.h"
#include "plots/about.h"
#include "plots/render.h"
#include "sim/base/input.h"
#include "sim/base/json.h"
#include "sim/base/output.h"

/* ---- from a store ---- */

struct stored_pages {
    char **said, **name; /* owned; names in messages, and in the page */
    uint32_t n;
};

#define RELEVANCE_FRAC 0.01 /* default of compare */

/* All comparisons as a tree. NULL: an error. */
static cJSON *read_store(const char *path, struct err *e)
{
    struct store *s = store_open(path, STORE_USE_READ, e);
    if (s == NULL) {
        return NULL;
    }
    struct option_texts usual = {0};
    struct stored_options o = {.metrics = &usual, .relevance_frac = RELEVANCE_FRAC, .every = true};
    struct document *d = document_new();
    int n = stored_compare(s, &o, document_array(d, ""), e);
    if (n == 0) {
        (void)err_add(e, "%s: holds no experiment", path);
    }
    cJSON *tree = n > 0 ? document_json(d) : NULL;
    (void)store_close(s, e);
    return tree;
}

/* Adds every comparison of the store to the inputs, as if by `compare --store STORE --json`. */
static void stored_take(const char *store, struct stored_pages *out, struct figure_request *all,
                        struct err *e)
{
    SCOPED(json_drop) cJSON *tree = read_store(store, e);
    uint32_t most = tree != NULL ? (uint32_t)cJSON_GetArraySize(tree) : 0;
    out->said = xcalloc(most + 1, sizeof *out->said);
    out->name = xcalloc(most + 1, sizeof *out->name);
    for (uint32_t i = 0; i < most && e->n == 0; i++) {
        out->said[i] = xformat("%s: comparison %u", store, i + 1);
        out->name[i] = xformat("%s.%u.json", text_base(store), i + 1);
        out->n++;
        /* Written and read like a file, so that exact numbers are numbers again. */
        OWNED char *text = json_text(cJSON_GetArrayItem(tree, (int)i), false);
        cJSON *one = json_read_text(text, out->said[i], e);
        if (one != NULL && figure_input_take(all, out->name[i], one, e) == 0) {
            all->inputs[all->n_inputs - 1].path = out->said[i];
        }
    }
}

/* ---- figures ---- */

#define MAX_SVG_BYTES ((size_t)256 << 20)

/* Draws a figure, and returns its SVG. NULL: an error, or the inputs lack its data, which a note
 * states unless quiet. */
static char *draw_one(const struct figure *f, const struct figure_request *q, const char *dir,
                      bool quiet, struct err *e)
{
    SCOPED(err_fini) struct err own = ERR_INIT;
    SCOPED(figure_data_fini) struct figure_data d;
    char *svg = NULL;
    OWNED char *path = xformat("%s/%s.svg", dir, f->name);
    figure_data_init(&d);
    int rc = figure_prepare(f, q, &d, &own);
    if (rc == 0 && render_figure(f, &d, dir, RENDER_SVG, e) == 0) {
        svg = input_text(path, MAX_SVG_BYTES, e);
        (void)remove(path);
    }
    for (size_t i = 0; i < own.n && i < ERR_MAX_LINES; i++) {
        if (rc != -ENODATA) {
            (void)err_add(e, "%s", own.lines[i]);
        } else if (!quiet) {
            (void)fprintf(stderr, "xpusim: note: without the figure %s: %s\n", f->name,
                          own.lines[i]);
        }
    }
    return svg;
}

/* Whether a figure draws several inputs together. */
static bool stands_together(const struct figure *f)
{
    return strcmp(f->name, "cdf") == 0 || strcmp(f->name, "lengths") == 0 ||
           strcmp(f->name, "causes") == 0 || strcmp(f->name, "interference") == 0;
}

/* Makes the request of a figure for input i, and later inputs that are drawn with it. False: an
 * earlier input's request has it. */
static bool request_for(const struct figure_request *all, size_t i, const struct figure *f,
                        struct figure_request *out)
{
    *out = *all;
    out->n_inputs = 0;
    for (size_t k = 0; k < all->n_inputs; k++) {
        bool same = k == i || (stands_together(f) && about_is(all->inputs[k].about, f->kinds));
        if (same && k < i) {
            return false;
        }
        if (same) {
            out->inputs[out->n_inputs++] = all->inputs[k];
        }
    }
    return true;
}

static void draw_all(const struct figure_request *all, const char *dir, bool quiet,
                     struct report_figures *out, struct err *e)
{
    size_t n;
    const struct figure *f = figure_list(&n);
    OWNED bool *noted = xcalloc(n, sizeof *noted); /* by figure: one note for all inputs */
    for (size_t i = 0; i < all->n_inputs; i++) {
        for (size_t k = 0; k < n && e->n == 0; k++) {
            struct figure_request q;
            if (!about_is(all->inputs[i].about, f[k].chosen ? f[k].name : f[k].kinds) ||
                out->n == REPORT_MAX_FIGURES || !request_for(all, i, &f[k], &q)) {
                continue;
            }
            char *svg = draw_one(&f[k], &q, dir, quiet || noted[k], e);
            noted[k] = noted[k] || svg == NULL;
            if (svg != NULL) {
                out->v[out->n++] = (struct report_figure){&f[k], i, xkept(svg)};
            }
        }
    }
}

/* Draws all figures of the inputs, with the window and labels of `all`. Files of requests share a
 * figure; other files have their own. -EINVAL with errors: a figure cannot be drawn, or gnuplot is
 * missing. */
static int draw_figures(const struct figure_request *all, bool quiet, struct report_figures *out,
                        struct err *e)
{
    const char *tmp = getenv("TMPDIR");
    if (render_check_gnuplot(e) != 0) {
        return -EINVAL;
    }
    OWNED char *dir = xformat("%s/xpusim-report-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(dir) == NULL) {
        (void)err_add(e, "%s: cannot make a temporary folder: %s", dir, strerror(errno));
    } else {
        draw_all(all, dir, quiet, out, e);
        (void)rmdir(dir);
    }
    return e->n > 0 ? -EINVAL : 0;
}

/* ---- the page ---- */

#define DEFAULT_WINDOW_S 60.0

struct page {
    struct option_texts files;
    struct option_output output;
    const char *path, *store;
    struct stored_pages stored; /* comparisons of the store; they are the last inputs */
    struct figure_request all;  /* all inputs; files are in the order of the command line */
    struct report_input in[FIGURE_MAX_INPUTS];
    size_t n;
    struct report_figures figures;
    bool no_figures, live;
};

static int write_page(const struct page *p, struct err *e)
{
    struct report_page page;
    struct output *out =
        report_page_load(&page, &p->all, p->live, e) == 0 ? output_open(p->path, e) : NULL;
    int rc = -EINVAL;
    if (out != NULL) {
        report_write(&page, p->in, p->n, &p->all, &p->figures, output_stream(out));
        rc = output_close(out, true, e);
    }
    return rc;
}

/* Makes sections of comparisons. Adds an error for a file of unknown kind. */
static void read_inputs(struct page *p, struct err *e)
{
    for (size_t i = 0; i < p->all.n_inputs; i++) {
        report_take(&p->all.inputs[i], i, p->in, &p->n, p->live, e);
    }
}

static int make(struct page *p, struct err *e)
{
    read_inputs(p, e);
    if (e->n == 0 && !p->no_figures) {
        (void)draw_figures(&p->all, p->output.quiet, &p->figures, e);
    }
    /* from here on named as in the page */
    for (uint32_t i = 0; i < p->stored.n && e->n == 0; i++) {
        size_t at = p->all.n_inputs - p->stored.n + i;
        p->all.inputs[at].path = p->stored.name[i];
        p->in[p->n - p->stored.n + i].path = p->stored.name[i];
    }
    int rc = e->n > 0 ? -EINVAL : write_page(p, e);
    return rc;
}

static int run(void *values, struct err *e)
{
    struct page *p = values;
    for (uint32_t i = 0; i < p->files.n; i++) {
        (void)figure_input_add(&p->all, p->files.v[i], e);
    }
    if (p->store != NULL) {
        stored_take(p->store, &p->stored, &p->all, e);
    }
    p->all.to_s = p->all.to_s > 0.0 ? p->all.to_s : p->all.from_s + DEFAULT_WINDOW_S;
    if (p->path == NULL || (p->files.n == 0 && p->store == NULL)) {
        (void)err_add(e, "report needs 1 to %d files or --store FILE, and -o FILE.html",
                      FIGURE_MAX_INPUTS);
    }
    if (p->all.to_s <= p->all.from_s) {
        (void)err_add(e, "--to %g: not after --from %g", p->all.to_s, p->all.from_s);
    }
    return e->n > 0 ? EXIT_BAD_INPUT : make(p, e);
}

#define OPTIONS struct page

static const struct option_row rows[] = {
    OPTION_OUTPUT(OPTIONS, path, "FILE.html", NULL, "write the page here, whole or not at all"),
    OPTION_TEXT(
        OPTIONS, store, "store", "FILE.db", NULL,
        "add a section for every comparison of a store, as `compare --store FILE.db` shows them"),
    OPTION_NUMBER(OPTIONS, all.from_s, "from", "S", NULL, 0.0, 1e9,
                  "start of the window of timelines, in seconds"),
    OPTION_NUMBER(OPTIONS, all.to_s, "to", "S", NULL, 1e-9, 1e9,
                  "end of the window (default: 60 later)"),
    OPTION_FLAG(
        OPTIONS, live, "live",
        "begin with a part to zoom, click and compare in: the runs of `xpusim view --json`, "
        "comparisons and loads among the files"),
    OPTION_FLAG(OPTIONS, no_figures, "no-figures", "leave out figures by gnuplot"),
};
const struct command cmd_report = {
    .name = "report",
    .summary = "write comparisons as one HTML page",
    .usage = "RESULT... -o FILE.html",
    .about =
        "Writes one self-contained HTML page. Results of `xpusim compare --json` become sections: "
        "the best policy, by how much, with which uncertainty, at what energy, and how far to "
        "trust the hardware model. A section has figures, tables, every number of the model with "
        "its source, and the commands that repeat the results.\n\nOther files become the figures "
        "that `xpusim plot list` names for them: compare --load --json, run --requests, run "
        "--timeline, list kernels --json, characterize --csv, graphs --gantt --json, explain "
        "--interference --json. Sweeps become none, because you choose their axes (`xpusim plot`). "
        "The page needs no network, and JavaScript only for sorting and searching.",
    .operands = {"RESULT", 0, FIGURE_MAX_INPUTS, offsetof(OPTIONS, files)},
    COMMAND_TAKES(OPTION_ROWS(NULL, rows), OPTION_CHILD(option_quiet_table, output)),
    .run = run,
};

/* `xpusim report`: comparisons as one page to look at. */
#include <errno.h>
#include <string.h>

#include "experiments/commands/commands.h"
#include "experiments/commands/report_stored.h"
#include "experiments/report/report.h"
#include "experiments/shell/cli.h"
#include "plots/about.h"
#include "sim/base/output.h"

#define DEFAULT_WINDOW_S 60.0
#define PATH_BYTES 4096

struct page {
    struct option_texts files;
    struct option_output output;
    const char *path, *store;
    struct stored_files stored; /* comparisons of the store, the last of all inputs */
    struct figure_request all;  /* every file, in the order of the command line */
    struct report_input in[FIGURE_MAX_INPUTS];
    size_t n;
    struct report_figures figures;
    bool no_figures;
};

static int write_page(const struct page *p, struct err *e)
{
    struct report_page page;
    struct output *out = report_page_load(&page, e) == 0 ? output_open(p->path, e) : NULL;
    int rc = -EINVAL;
    if (out != NULL) {
        report_write(&page, p->in, p->n, &p->all, &p->figures, output_stream(out));
        rc = output_close(out, true, e);
    }
    report_page_fini(&page);
    return rc;
}

/* Comparisons become sections; of a file of no kind the error says what is wrong with it. */
static void read_inputs(struct page *p, struct err *e)
{
    for (size_t i = 0; i < p->all.n_inputs; i++) {
        const struct figure_input *in = &p->all.inputs[i];
        if (about_is(in->about, "sweep table")) {
            (void)err_add(e, "%s: a table; name its columns to `xpusim plot`", in->path);
        } else if (about_is(in->about, "compare drive json")) {
            p->in[p->n] = (struct report_input){in->path, in->tree, i};
            (void)report_check(&p->in[p->n++], e);
        }
    }
}

static int make(struct page *p, struct err *e)
{
    read_inputs(p, e);
    if (e->n == 0 && !p->no_figures) {
        (void)report_figures_draw(&p->all, &p->figures, e);
    }
    for (uint32_t i = 0; i < p->stored.n && e->n == 0; i++) { /* the page knows them by name */
        size_t at = p->all.n_inputs - p->stored.n + i;
        p->all.inputs[at].path = p->stored.name[i];
        p->in[p->n - p->stored.n + i].path = p->stored.name[i];
    }
    int rc = e->n > 0 ? -EINVAL : write_page(p, e);
    report_figures_fini(&p->figures);
    return rc;
}

static int run(void *values, struct err *e)
{
    struct page *p = values;
    for (uint32_t i = 0; i < p->files.n; i++) {
        (void)figure_input_add(&p->all, p->files.v[i], e);
    }
    if (p->store != NULL && stored_files_write(p->store, &p->stored, e) == 0) {
        for (uint32_t i = 0; i < p->stored.n; i++) {
            (void)figure_input_add(&p->all, p->stored.path[i], e);
        }
    }
    p->all.to_s = p->all.to_s > 0.0 ? p->all.to_s : p->all.from_s + DEFAULT_WINDOW_S;
    if (p->path == NULL || (p->files.n == 0 && p->store == NULL)) {
        (void)err_add(e, "report needs 1 to %d files or --store FILE, and -o FILE.html",
                      FIGURE_MAX_INPUTS);
    }
    if (p->all.to_s <= p->all.from_s) {
        (void)err_add(e, "--to %g: not after --from %g", p->all.to_s, p->all.from_s);
    }
    int rc = e->n > 0 ? EXIT_BAD_INPUT : make(p, e);
    figure_request_fini(&p->all);
    stored_files_fini(&p->stored);
    return rc;
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
    OPTION_FLAG(OPTIONS, no_figures, "no-figures", "leave out figures by gnuplot"),
};
static const struct option_child children[] = {
    OPTION_ROWS(NULL, rows),
    {&option_quiet_table, offsetof(OPTIONS, output), NULL, false},
    {0},
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
    .children = children,
    .bytes = sizeof(OPTIONS),
    .run = run,
};

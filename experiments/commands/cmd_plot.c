/* `xpusim plot`: draws figures of exported results. */
#include "experiments/commands/commands.h"
#include "experiments/shell/cli.h"
#include "experiments/shell/document.h"
#include "plots/about.h"
#include "plots/render.h"
#include "sim/base/nearest.h"

struct plot_options {
    struct option_texts words, metrics, labels;
    struct figure_request request;
    struct option_output output; /* of the list */
    const char *name, *dir, *format, *columns;
    double font_pt;
    bool no_title;
};

static void print_list(const struct option_output *o)
{
    static const struct frame_column columns[] = {
        {.name = "figure", .title = "", .kind = FRAME_TEXT},
        {.name = "shows", .title = "", .kind = FRAME_TEXT},
        {.name = "reads", .title = "", .kind = FRAME_TEXT},
        {.name = "kinds", .kind = FRAME_TEXT, .only_data = true},
        {.name = "of_one_file", .kind = FRAME_FLAG, .only_data = true},
    };
    size_t n;
    const struct figure *v = figure_list(&n);
    struct document *d = document_new();
    struct frame *f = DOCUMENT_FRAME(d, "figures", 0, columns);
    for (size_t i = 0; i < n; i++) {
        FRAME_ROW(f, v[i].name, v[i].title, v[i].reads, v[i].kinds, v[i].alone);
    }
    document_print(d, o, stdout);
}

/* Formats by name. "both" is one for browsers and one for documents. */
static unsigned formats_of(const char *format)
{
    static const struct {
        const char *name;
        unsigned formats;
    } known[] = {{"svg", RENDER_SVG},
                 {"png", RENDER_PNG},
                 {"pdf", RENDER_PDF},
                 {"both", RENDER_SVG | RENDER_PNG}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].name, format) == 0) {
            return RENDER_TSV | known[i].formats;
        }
    }
    return RENDER_TSV;
}

/* Widths of one column and of both on US letter paper. */
#define COLUMN_INCHES 3.33
#define COLUMNS_INCHES 7.0
#define LAYOUT_FONT 13.0 /* pixels, in plots/style.gp */
#define POINTS_PER_INCH 72.0

/* Sets width, font and titles for a paper. The layout is in pixels, and letters are 13 pixels high,
 * so a larger font leaves fewer pixels for the same width. */
static void put_look(const struct plot_options *o, struct figure_data *d)
{
    if (o->columns != NULL) {
        double inches = o->columns[0] == '1' ? COLUMN_INCHES : COLUMNS_INCHES;
        figure_var(d, "canvas", inches * POINTS_PER_INCH * LAYOUT_FONT / o->font_pt);
    }
    figure_var(d, "font_pt", o->font_pt);
    figure_var(d, "titles", o->no_title ? 0.0 : 1.0);
}

static int plot(const struct plot_options *o, struct err *e)
{
    const struct figure *f = figure_find(o->name);
    if (f == NULL) {
        struct nearest near;
        nearest_init(&near, o->name);
        size_t n = 0;
        const struct figure *v = figure_list(&n);
        for (size_t i = 0; i < n; i++) {
            nearest_look(&near, v[i].name);
        }
        return err_add(e, "no figure is called %s (`xpusim plot list` shows them)%s", o->name,
                       nearest_hint(&near));
    }
    if (o->request.n_inputs == 0) {
        return err_add(e, "%s: no input; it reads: %s", f->name, f->reads);
    }
    SCOPED(figure_data_fini) struct figure_data d;
    figure_data_init(&d);
    int rc = figure_prepare(f, &o->request, &d, e);
    if (rc == -ENODATA && o->request.n_metrics == 0 && figure_takes_metrics(f) > 0) {
        (void)err_add(e, "%s draws these unless --metric NAME names others", f->name);
    } else if (rc != 0 && about_is(o->request.inputs[0].about, "table")) {
        (void)err_add(e, "%s reads: %s", f->name, f->reads); /* a table does not state its kind */
    }
    if (rc == 0) {
        rc = render_check_gnuplot(e);
    }
    if (rc == 0) {
        put_look(o, &d);
        rc = render_figure(f, &d, o->dir, formats_of(o->format), e);
    }
    return rc;
}

static int run(void *values, struct err *e)
{
    struct plot_options *o = values;
    o->name = o->words.v[0];
    if (strcmp(o->name, "list") == 0) {
        bool ok = options_only("plot list", "", e) == 0;
        if (ok) {
            print_list(&o->output);
        }
        return ok ? EXIT_OK : EXIT_BAD_INPUT;
    }
    for (uint32_t i = 1; i < o->words.n; i++) {
        (void)figure_input_add(&o->request, o->words.v[i], e);
    }
    for (uint32_t i = 0; i < o->labels.n && e->n == 0; i++) {
        (void)figure_rename(&o->request, o->labels.v[i], e);
    }
    for (uint32_t i = 0; i < o->metrics.n; i++) {
        o->request.metrics[o->request.n_metrics++] = o->metrics.v[i];
    }
    if (o->request.to_s > 0.0 && o->request.to_s <= o->request.from_s) {
        (void)err_add(e, "--to %g: not after --from %g", o->request.to_s, o->request.from_s);
    }
    return e->n > 0 ? EXIT_BAD_INPUT : plot(o, e);
}

static const char *const formats[] = {"svg", "png", "pdf", "both", NULL};
static const char *const columns[] = {"1", "2", NULL};

#define OPTIONS struct plot_options

static const struct option_row rows[] = {
    OPTION_OUTPUT(OPTIONS, dir, "DIR", ".", "folder to write to; created when missing"),
    OPTION_CHOICE(OPTIONS, format, "format", "F", "both", formats, "one of"),
    OPTION_CHOICE(OPTIONS, columns, "columns", "N", NULL, columns,
                  "width in columns of a paper: 1 (3.33 inches) or 2 (7 inches; default: the "
                  "figure's own)"),
    OPTION_NUMBER(OPTIONS, font_pt, "font", "POINTS", "9", 4.0, 36.0,
                  "size of letters in a PDF; with --columns of all formats"),
    OPTION_FLAG(OPTIONS, no_title, "no-title",
                "leave out the line of policy, model, machine and workload above"),
    OPTION_TEXTS(OPTIONS, labels, "label", "POLICY=NAME", 32,
                 "name of a policy in the figure; may be repeated"),
    OPTION_TEXTS(OPTIONS, metrics, "metric", "NAME", FIGURE_MAX_METRICS,
                 "metric to draw instead of the figure's own, a panel each; may be repeated"),
    OPTION_TEXT(OPTIONS, request.x, "x", "AXIS", NULL,
                "axis of a sweep (default: the setting that varies)"),
    OPTION_TEXT(OPTIONS, request.y, "y", "AXIS", NULL,
                "second axis of a sweep (default: the second setting that varies)"),
    OPTION_NUMBER(OPTIONS, request.from_s, "from", "S", NULL, 0.0, 1e9,
                  "start of the window of a timeline, in seconds"),
    OPTION_NUMBER(OPTIONS, request.to_s, "to", "S", NULL, 1e-9, 1e9, "end of the window"),
};
const struct command cmd_plot = {
    .name = "plot",
    .summary = "draw figures from results, as SVG and PNG",
    .usage = "NAME [-o DIR] [options] INPUT...\n"
             "list [--json|--csv|--markdown|--latex]",
    .about = "Draws a figure from exported results: DIR/NAME.svg, DIR/NAME.png and the data, "
             "DIR/NAME.tsv. `xpusim plot list` shows the figures and the input of each, in the "
             "formats below. INPUT is FILE or LABEL=FILE; `-` is standard input, of --json alone.",
    .operands = {"NAME", 1, 1 + FIGURE_MAX_INPUTS, offsetof(OPTIONS, words)},
    COMMAND_TAKES(OPTION_ROWS(NULL, rows), OPTION_CHILD(option_output_table, output)),
    .run = run,
};

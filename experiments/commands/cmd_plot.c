/* `xpusim plot`: figures from exported results. */
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "experiments/commands/commands.h"
#include "experiments/shell/cli.h"
#include "experiments/shell/table.h"
#include "plots/render.h"

static const char help[] =
    "usage: xpusim plot NAME [-o DIR] [options] INPUT...\n"
    "       xpusim plot list\n"
    "\n"
    "Draws a figure from exported results: DIR/NAME.svg, DIR/NAME.png and the data, DIR/NAME.tsv.\n"
    "`xpusim plot list` shows the figures and what each reads. INPUT is FILE or LABEL=FILE.\n"
    "\n"
    "  -o, --output DIR   where to write (default: here); made when it is not there\n"
    "  --format F         svg, png or both (default: both)\n"
    "  --metric NAME      what to draw instead of the figure's own; repeated\n"
    "  --x AXIS, --y AXIS axes of a sweep (default: what varies)\n"
    "  --from S, --to S   window of a timeline, in seconds\n";

struct plot_options {
    struct figure_request request;
    const char *name, *dir;
    unsigned formats;
};

static int take_option(struct plot_options *o, int c, const char *arg, struct err *e)
{
    struct figure_request *q = &o->request;
    switch (c) {
    case 'o':
        o->dir = arg;
        return 0;
    case 'f':
        if (strcmp(arg, "svg") == 0 || strcmp(arg, "png") == 0) {
            o->formats = RENDER_TSV | (arg[0] == 's' ? RENDER_SVG : RENDER_PNG);
        } else if (strcmp(arg, "both") != 0) {
            return err_add(e, "--format %s: must be svg, png or both", arg);
        }
        return 0;
    case 'm':
        if (q->n_metrics == FIGURE_MAX_METRICS) {
            return err_add(e, "--metric: more than %d", FIGURE_MAX_METRICS);
        }
        q->metrics[q->n_metrics++] = arg;
        return 0;
    case 'x':
        q->x = arg;
        return 0;
    case 'y':
        q->y = arg;
        return 0;
    case 'b':
        return cli_number("from", arg, 0.0, 1e9, &q->from_s, e);
    case 'e':
        return cli_number("to", arg, 1e-9, 1e9, &q->to_s, e);
    default:
        return err_add(e, "`xpusim plot --help` shows the options");
    }
}

/* 0, 1 when help was printed, or -EINVAL. */
static int parse_options(int argc, char **argv, struct plot_options *o, struct err *e)
{
    static const struct option longs[] = {{"output", required_argument, NULL, 'o'},
                                          {"format", required_argument, NULL, 'f'},
                                          {"metric", required_argument, NULL, 'm'},
                                          {"x", required_argument, NULL, 'x'},
                                          {"y", required_argument, NULL, 'y'},
                                          {"from", required_argument, NULL, 'b'},
                                          {"to", required_argument, NULL, 'e'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    *o = (struct plot_options){.dir = ".", .formats = RENDER_SVG | RENDER_PNG | RENDER_TSV};
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "ho:", longs, NULL)) != -1;) {
        if (c == 'h') {
            (void)fputs(help, stdout);
            return 1;
        }
        if (take_option(o, c, optarg, e) != 0) {
            return -EINVAL;
        }
    }
    if (optind == argc) {
        return err_add(e, "no figure is named; `xpusim plot list` shows them");
    }
    o->name = argv[optind];
    for (int i = optind + 1; i < argc; i++) {
        (void)figure_input_add(&o->request, argv[i], e);
    }
    if (o->request.to_s > 0.0 && o->request.to_s <= o->request.from_s) {
        (void)err_add(e, "--to %g: not after --from %g", o->request.to_s, o->request.from_s);
    }
    return e->n > 0 ? -EINVAL : 0;
}

static void print_list(void)
{
    size_t n;
    const struct figure *f = figure_list(&n);
    struct table t;
    table_init(&t, "lll");
    for (size_t i = 0; i < n; i++) {
        table_cell(&t, "%s", f[i].name);
        table_cell(&t, "%s", f[i].title);
        table_cell(&t, "%s", f[i].reads);
    }
    table_print(&t, stdout, 0);
    table_fini(&t);
}

static int plot(const struct plot_options *o, struct err *e)
{
    const struct figure *f = figure_find(o->name);
    if (f == NULL) {
        return err_add(e, "no figure is called %s; `xpusim plot list` shows them", o->name);
    }
    if (o->request.n_inputs == 0) {
        return err_add(e, "%s: no input; it reads: %s", f->name, f->reads);
    }
    struct figure_data d;
    figure_data_init(&d);
    int rc = f->prepare(&o->request, &d, e);
    if (rc == 0) {
        rc = render_check_gnuplot(e);
    }
    if (rc == 0) {
        rc = render_figure(f, &d, o->dir, o->formats, e);
    }
    figure_data_fini(&d);
    return rc;
}

int cmd_plot(int argc, char **argv)
{
    struct plot_options o;
    struct err e = ERR_INIT;
    int rc = parse_options(argc, argv, &o, &e);
    int status = rc == 1 ? EXIT_OK : EXIT_BAD_INPUT;
    if (rc == 0 && strcmp(o.name, "list") == 0) {
        print_list();
        status = EXIT_OK;
    } else if (rc == 0) {
        status = plot(&o, &e) == 0 ? EXIT_OK : EXIT_BAD_INPUT;
    }
    err_print(&e, stderr);
    err_fini(&e);
    return status;
}

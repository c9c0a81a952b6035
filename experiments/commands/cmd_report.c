/* `xpusim report`: comparisons as one page to look at. */
#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <unistd.h>

#include "experiments/commands/commands.h"
#include "experiments/report/report.h"
#include "experiments/shell/cli.h"
#include "plots/results_impl.h"
#include "sim/base/json.h"

#define DEFAULT_WINDOW_S 60.0
#define PATH_BYTES 4096

static const char help[] =
    "usage: xpusim report RESULT... -o FILE.html\n"
    "\n"
    "Writes one self-contained HTML page. Results of `xpusim compare --json` become sections: "
    "which\n"
    "policy, by how much, how sure, at what energy, how far to trust the hardware model; figures,\n"
    "tables, every number of the model with its source, and how to get the results again. Of "
    "other\n"
    "files (compare --load --json, run --requests, run --timeline, list kernels --json,\n"
    "characterize --csv, graphs --gantt --json, explain --interference --json) the figures are\n"
    "drawn that `xpusim plot list` names for them. Of sweeps it draws none: their axes are yours "
    "to\n"
    "choose (`xpusim plot`). The page needs no network, and no JavaScript but for sorting.\n"
    "\n"
    "  -o, --output FILE.html\n"
    "  --from S, --to S   window of timelines, in seconds (default 0 to 60)\n"
    "  --no-figures       no figures by gnuplot\n";

struct page {
    const char *path;
    struct figure_request all; /* every file, in the order of the command line */
    struct report_input in[FIGURE_MAX_INPUTS];
    size_t n;
    struct report_figures figures;
    bool draws;
};

static int write_page(const struct page *p, struct err *e)
{
    char temporary[PATH_BYTES];
    (void)snprintf(temporary, sizeof temporary, "%s.tmp-%ld", p->path, (long)getpid());
    FILE *f = fopen(temporary, "w");
    if (f == NULL) {
        return err_add(e, "%s: cannot write: %s", p->path, strerror(errno));
    }
    report_write(p->in, p->n, &p->all, &p->figures, f);
    bool ok = ferror(f) == 0;
    ok = fclose(f) == 0 && ok;
    if (!ok || rename(temporary, p->path) != 0) {
        int why = errno;
        (void)remove(temporary);
        return err_add(e, "%s: cannot write: %s", p->path, strerror(why));
    }
    return 0;
}

static int parse(int argc, char **argv, struct page *p, struct err *e)
{
    static const struct option longs[] = {{"output", required_argument, NULL, 'o'},
                                          {"from", required_argument, NULL, 'b'},
                                          {"to", required_argument, NULL, 't'},
                                          {"no-figures", no_argument, NULL, 'n'},
                                          {"quiet", no_argument, NULL, 'q'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    *p = (struct page){.draws = true};
    opterr = 0;
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "o:h", longs, NULL)) != -1;) {
        switch (c) {
        case 'o':
            p->path = optarg;
            break;
        case 'b':
            (void)cli_number("from", optarg, 0.0, 1e9, &p->all.from_s, e);
            break;
        case 't':
            (void)cli_number("to", optarg, 1e-9, 1e9, &p->all.to_s, e);
            break;
        case 'n':
            p->draws = false;
            break;
        case 'q':
            break;
        case 'h':
            (void)fputs(help, stdout);
            return 1;
        default:
            return err_add(e, "report: bad option: %s", argv[optind - 1]);
        }
    }
    for (int i = optind; i < argc; i++) {
        (void)figure_input_add(&p->all, argv[i], e);
    }
    p->all.to_s = p->all.to_s > 0.0 ? p->all.to_s : p->all.from_s + DEFAULT_WINDOW_S;
    if (p->path == NULL || optind == argc) {
        return err_add(e, "report needs 1 to %d files and -o FILE.html", FIGURE_MAX_INPUTS);
    }
    if (p->all.to_s <= p->all.from_s) {
        return err_add(e, "--to %g: not after --from %g", p->all.to_s, p->all.from_s);
    }
    return e->n > 0 ? -EINVAL : 0;
}

/* Comparisons are read whole; of a file of no kind the error says what is wrong with it. */
static void read_inputs(struct page *p, struct err *e)
{
    for (size_t i = 0; i < p->all.n_inputs; i++) {
        const char *path = p->all.inputs[i].path;
        unsigned kinds = figure_kinds_of(path);
        if (kinds != 0 && (kinds & FIGURE_KIND_COMPARE) == 0) {
            if ((kinds & FIGURE_KIND_SWEEP) != 0) {
                (void)err_add(e, "%s: of a sweep `xpusim plot` draws what it is told to", path);
            }
            continue;
        }
        if (kinds == 0 && access(path, R_OK) == 0 && !results_looks_like_json(path)) {
            (void)err_add(e, "%s: no result that a report draws (`xpusim report --help`)", path);
            continue;
        }
        cJSON *tree = json_read_file(path, e);
        if (tree != NULL) {
            p->in[p->n] = (struct report_input){path, tree, i};
            (void)report_check(&p->in[p->n++], e);
        }
    }
}

static int run(struct page *p, struct err *e)
{
    read_inputs(p, e);
    if (e->n == 0 && p->draws) {
        (void)report_figures_draw(&p->all, &p->figures, e);
    }
    int rc = e->n > 0 ? -EINVAL : write_page(p, e);
    report_figures_fini(&p->figures);
    for (size_t i = 0; i < p->n; i++) {
        cJSON_Delete((cJSON *)(uintptr_t)p->in[i].tree);
    }
    return rc;
}

int cmd_report(int argc, char **argv)
{
    struct page p;
    struct err e = ERR_INIT;
    int rc = parse(argc, argv, &p, &e);
    if (rc == 0) {
        rc = run(&p, &e);
    }
    err_print(&e, stderr);
    err_fini(&e);
    return rc >= 0 ? EXIT_OK : EXIT_BAD_INPUT;
}

/* `xpusim figure`: reproduces figures and tables of the papers. */
#include <unistd.h>

#include "experiments/commands/commands.h"
#include "experiments/figures/paper.h"
#include "experiments/run/folder.h"
#include "experiments/run/job_options.h"
#include "experiments/shell/cli.h"
#include "experiments/shell/document.h"
#include "plots/render.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"

#define CANNOT "cannot" /* file of the figures that a simulator cannot reproduce */

struct figure_options {
    struct option_texts words, puts;
    const char *dir, *format;
    bool no_picture;
    struct quantities_options run;
    struct job_options work;
    struct option_output output;
};

/* ---- list ---- */

static void list_one(void *ctx, const char *path, const char *name, struct err *e)
{
    struct frame *f = ctx;
    struct paper *p = xkept(xcalloc(1, sizeof *p));
    if (strcmp(name, CANNOT) == 0 || strstr(path, ".json") == NULL) {
        return; /* another file, such as a trace of a figure */
    }
    if (paper_read(p, path, NULL, 0, e) == 0) {
        char claims[PAPER_MAX_CLAIMS * 8] = "";
        for (uint32_t i = 0; i < p->n_claims; i++) {
            (void)strncat(claims, i > 0 ? " " : "", sizeof claims - strlen(claims) - 1);
            (void)strncat(claims, p->claims[i], sizeof claims - strlen(claims) - 1);
        }
        FRAME_ROW(f, p->paper, p->number, p->says, claims);
    }
}

static int list_cannot(struct frame *f, struct err *e)
{
    const char *path = datadir_path(PAPER_FOLDER "/" CANNOT ".json");
    SCOPED(json_drop) cJSON *tree = json_read_file(path, e);
    struct json_obj root = json_root(tree, path, e);
    int n = tree != NULL ? json_get_array_size(&root, "figures", 1, 100) : 0;
    for (int i = 0; i < n; i++) {
        struct json_obj o = json_array_object(&root, "figures", i);
        const char *paper = json_get_string(&o, "paper");
        const char *number = json_get_string(&o, "number");
        FRAME_ROW(f, paper, number, json_get_string(&o, "why"));
        json_done(&o);
    }
    if (tree != NULL) {
        json_done(&root);
    }
    return e->n > 0 ? -EINVAL : 0;
}

static int list(const struct figure_options *o, struct err *e)
{
    static const struct frame_column columns[] = {{.name = "paper", .kind = FRAME_TEXT},
                                                  {.name = "number", .kind = FRAME_TEXT},
                                                  {.name = "shows", .kind = FRAME_TEXT},
                                                  {.name = "claims", .kind = FRAME_TEXT}};
    static const struct frame_column others[] = {{.name = "paper", .kind = FRAME_TEXT},
                                                 {.name = "number", .kind = FRAME_TEXT},
                                                 {.name = "why", .kind = FRAME_TEXT}};
    struct document *d = document_new();
    struct frame *f = DOCUMENT_FRAME(d, "figures", 0, columns);
    int rc = folder_each(datadir_path(PAPER_FOLDER), list_one, f, e);
    document_note(d, "\nNot made, since a simulator cannot:");
    f = DOCUMENT_FRAME(d, "cannot", 0, others);
    rc = rc == 0 ? list_cannot(f, e) : rc;
    if (rc == 0) {
        document_print(d, &o->output, stdout);
    }
    return rc == 0 ? EXIT_OK : EXIT_BAD_INPUT;
}

/* ---- one figure ---- */

static int run_command(int argc, char **argv)
{
    struct err e = ERR_INIT;
    const struct command *c = argc > 1 ? command_find(argv[1], &e) : NULL;
    err_print(&e, stderr);
    return c != NULL ? command_main(c, argc - 1, argv + 1) : EXIT_BAD_INPUT;
}

static unsigned formats_of(const char *name)
{
    return strcmp(name, "svg") == 0   ? RENDER_SVG
           : strcmp(name, "png") == 0 ? RENDER_PNG
           : strcmp(name, "pdf") == 0 ? RENDER_PDF
                                      : RENDER_SVG | RENDER_PNG | RENDER_TSV;
}

static void add_heading(const struct paper *p, const struct figure_options *o, struct document *d)
{
    document_heading(d, "%s, %s %s: %s", p->paper, p->number[0] == 'T' ? "table" : "figure",
                     p->number + (p->number[0] == 'T'), p->title);
    document_note(d, "%s%s%s", p->says, p->setup != NULL ? " " : "",
                  p->setup != NULL ? p->setup : "");
    if (p->n_commands == 0 && p->book.n_cells > 0) {
        document_note(d, "Traces: %u from seed %llu.", o->run.replications,
                      (unsigned long long)o->run.seed);
    }
    DOCUMENT_VALUES(d, "paper", p->paper, "number", p->number, "title", p->title);
}

/* Computes the values of a grid, and draws it. */
static int make_grid(struct paper *p, const struct figure_options *o, struct err *e)
{
    int rc = paper_expand(p, o->run.seed, e);
    if (rc != 0) {
        return rc;
    }
    rc = paper_run(p, &o->run, e);
    if (rc == 0 && !o->no_picture) {
        rc = paper_draw(p, o->dir, formats_of(o->format), e);
    }
    struct document *d = document_new();
    add_heading(p, o, d);
    paper_document(p, output_is(&o->output, "markdown"), d);
    document_show(d, &o->output);
    return rc;
}

static int make_schedule(struct paper *p, const struct figure_options *o, struct err *e)
{
    struct frame *values = NULL;
    int rc = paper_schedule(p, run_command, o->dir, o->no_picture ? 0 : formats_of(o->format),
                            &values, e);
    struct document *d = document_new();
    if (rc == 0) {
        add_heading(p, o, d);
    }
    if (rc == 0 && values != NULL) {
        document_note(d, "%s", "");
        document_take_frame(d, "values", values);
    } else {
        frame_free(values);
    }
    document_show(d, &o->output);
    return rc;
}

static char *file_of(const struct option_texts *words)
{
    return words->n == 1 ? xstrdup(words->v[0]) : paper_path(words->v[0], words->v[1]);
}

static int make(void *values, struct err *e)
{
    struct figure_options *o = values;
    o->run.how = o->work.how;
    OWNED char *file = file_of(&o->words);
    struct paper *p = xkept(xcalloc(1, sizeof *p));
    int rc = 0;
    if (o->words.n == 2 && access(file, R_OK) != 0) {
        rc = err_add(e, "%s %s: no such figure; `xpusim figure` lists them", o->words.v[0],
                     o->words.v[1]);
    } else {
        rc = paper_read(p, file, o->puts.v, o->puts.n, e);
    }
    rc = rc != 0 ? rc : p->n_commands > 0 ? make_schedule(p, o, e) : make_grid(p, o, e);
    return rc == 0 ? EXIT_OK : rc == -EIO ? EXIT_CHECK_FAILED : EXIT_BAD_INPUT;
}

static int run(void *values, struct err *e)
{
    struct figure_options *o = values;
    if (o->words.n == 0) {
        return options_only("figure without PAPER", "", e) != 0 ? EXIT_BAD_INPUT : list(o, e);
    }
    return job_options_work(&o->work, o->output.quiet, make, o, e);
}

static const char *const formats[] = {"svg", "png", "pdf", "all", NULL};

#define OPTIONS struct figure_options

static const struct option_row rows[] = {
    OPTION_OUTPUT(OPTIONS, dir, "DIR", ".", "folder of the picture, PAPER-NUMBER.svg"),
    OPTION_CHOICE(OPTIONS, format, "format", "F", "svg", formats, "one of"),
    OPTION_FLAG(OPTIONS, no_picture, "no-picture", "print the values only"),
    OPTION_TEXTS(OPTIONS, puts, "put", "KEY=VALUE", 32,
                 "replace what the specification puts (soc=core-ultra-5-125h-siblings, "
                 "duration=60); may be repeated"),
    OPTION_COUNT(OPTIONS, run.replications, "replications", "N", "3", 1, 100000,
                 "number of traces; the first has --seed itself"),
    OPTION_SEED(OPTIONS, run.seed, "seed", "1", "seed of the first trace"),
};
const struct command cmd_figure = {
    .name = "figure",
    .summary = "reproduce a figure or table of a paper, with the published values in it",
    .usage = "\n[PAPER NUMBER | FILE.json] [options]",
    .about =
        "Reproduces a figure or table of Agent.xpu (agent-xpu-v1, agent-xpu-v2) or sd.npu "
        "(sd-npu): prints the values, and draws DIR/PAPER-NUMBER.svg with the published values "
        "as marks. Tables are T1, T2 and so on. Without operands it lists the figures, with the "
        "claims that belong to each, and those that a simulator cannot make.\n\nA figure is a "
        "specification, a JSON file of the installed folder experiments/figures; FILE.json is "
        "one of your own. --store keeps the runs.",
    .operands = {"PAPER NUMBER", 0, 2, offsetof(OPTIONS, words)},
    COMMAND_TAKES(OPTION_ROWS(NULL, rows), OPTION_CHILD(job_option_table, work),
                  OPTION_CHILD(option_output_table, output)),
    .run = run,
};

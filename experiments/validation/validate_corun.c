#include "experiments/validation/validate.h"

#include "experiments/shell/cli.h"
#include "experiments/shell/document.h"
#include "hwmodels/corun.h"
#include "sim/base/datadir.h"

/* Start of a fit, and values of parameters that a model lacks. */
static const double neutral[CORUN_KNOBS] = {1.0, 1.0, 0.0, 0.0, 1.0, 0.0};

static const struct frame_column error_columns[] = {
    {.name = "model", .kind = FRAME_TEXT},
    {.name = "machine", .kind = FRAME_TEXT},
    {.name = "rows"},
    {.name = "error_frac", .title = "left out, %", .scale = 100.0, .format = "%.1f"},
    {.name = "error_fitted_frac", .title = "fitted, %", .scale = 100.0, .format = "%.1f"},
    {.name = "together", .title = "fit without it: together", .format = "%.3f", .missing = ""},
    {.name = "weight", .format = "%.2f", .missing = ""},
    {.name = "latency", .format = "%.2f", .missing = ""},
    {.name = "minor", .format = "%.2f", .missing = ""},
    {.name = "balance", .format = "%.2f", .missing = ""},
    {.name = "beside", .format = "%.2f", .missing = ""},
};

static const struct frame_column own_columns[] = {
    {.name = "model", .title = "own fit", .kind = FRAME_TEXT},
    {.name = "machine", .kind = FRAME_TEXT},
    {.name = "error_frac", .title = "error, %", .scale = 100.0, .format = "%.1f"},
    {.name = "together", .format = "%.3f", .missing = ""},
    {.name = "weight", .format = "%.2f", .missing = ""},
    {.name = "latency", .format = "%.2f", .missing = ""},
    {.name = "minor", .format = "%.2f", .missing = ""},
    {.name = "balance", .format = "%.2f", .missing = ""},
    {.name = "beside", .format = "%.2f", .missing = ""},
};

static const struct frame_column row_columns[] = {
    {.name = "machine", .kind = FRAME_TEXT},
    {.name = "what", .kind = FRAME_TEXT},
    {.name = "victim", .kind = FRAME_TEXT},
    {.name = "demands", .kind = FRAME_TEXT},
    {.name = "measured", .format = "%.3f"},
    {.name = "predicted", .format = "%.3f"},
    {.name = "error_frac", .title = "error, %", .scale = 100.0, .format = "%+.1f"},
    {.name = "source", .kind = FRAME_TEXT, .only_data = true},
};

static void put_knobs(struct frame *f, const char *model, const double knob[CORUN_KNOBS])
{
    for (int k = 0; k < CORUN_KNOBS; k++) {
        FRAME_CELLS(f, FRAME_IF(corun_has(model, (enum corun_knob)k), knob[k]));
    }
}

static size_t rows_of(const struct corun_points *p, const char *machine)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        n += strcmp(p->v[i].machine, machine) == 0;
    }
    return n;
}

static void put_errors(struct frame *f, const char *model, const char *machine, size_t rows,
                       double left_out, double fitted, const double knob[CORUN_KNOBS])
{
    FRAME_CELLS(f, model, machine, rows, left_out, fitted);
    put_knobs(f, model, knob);
}

/* Puts a row for each machine, and one for all with the mean over machines. */
static void put_model(const struct contention_ops *model, const struct corun_points *p,
                      struct frame *errors, struct frame *own)
{
    double all[CORUN_KNOBS];
    memcpy(all, neutral, sizeof all);
    corun_fit(model, p, NULL, NULL, all);
    double sum = 0.0;
    for (size_t m = 0; m < p->n_machines; m++) {
        const char *machine = p->machines[m];
        double knob[CORUN_KNOBS];
        memcpy(knob, neutral, sizeof knob);
        corun_fit(model, p, NULL, machine, knob);
        double error = corun_error(model, knob, p, machine, NULL);
        sum += error;
        put_errors(errors, model->name, machine, rows_of(p, machine), error,
                   corun_error(model, all, p, machine, NULL), knob);
        memcpy(knob, all, sizeof knob);
        corun_fit(model, p, machine, NULL, knob);
        FRAME_CELLS(own, model->name, machine, corun_error(model, knob, p, machine, NULL));
        put_knobs(own, model->name, knob);
    }
    put_errors(errors, model->name, "all, fit of all", p->n, sum / (double)p->n_machines,
               corun_error(model, all, p, NULL, NULL), all);
}

static void put_rows(const struct contention_ops *model, const struct corun_points *p,
                     struct document *d)
{
    static const char *const kinds[] = {"npu", "gpu", "cpu", "both"};
    document_note(d, "\nrows, each predicted by the fit without its machine");
    struct frame *f = frame_indent(DOCUMENT_FRAME(d, "rows", 0, row_columns), 2);
    for (size_t i = 0; i < p->n; i++) {
        const struct corun_point *r = &p->v[i];
        double knob[CORUN_KNOBS];
        memcpy(knob, neutral, sizeof knob);
        corun_fit(model, p, NULL, r->machine, knob);
        double predicted = corun_slowdown(model, knob, r);
        FRAME_ROW(f, r->machine, r->what, kinds[r->victim], r->demands, r->slowdown, predicted,
                  predicted / r->slowdown - 1.0, r->source);
    }
}

int validate_corun(const struct validate_corun_options *o, const char *model,
                   const struct option_output *out, struct err *e)
{
    struct corun_points p;
    int rc = corun_read(datadir_named(o->corun, "hwmodels/points", ".csv"), &p, e);
    if (rc == 0 && p.n_machines < 2) {
        rc = err_add(e, "%s: co-runs of one machine; a fit leaves one out", o->corun);
    }
    const struct contention_ops *one = model != NULL ? contention_find(model) : NULL;
    if (rc == 0 && model != NULL && one == NULL) {
        rc = err_add(e, "sim.contention=%s: no such model; xpusim list contention", model);
    }
    if (rc == 0) {
        struct document *d = document_new();
        DOCUMENT_VALUES(d, "corun", o->corun);
        document_note(d,
                      "%s: %zu row%s of %zu machine%s; mean |ln(predicted / measured slowdown)|\n",
                      o->corun, p.n, text_plural(p.n), p.n_machines, text_plural(p.n_machines));
        struct frame *errors = frame_indent(DOCUMENT_FRAME(d, "errors", 0, error_columns), 2);
        document_note(d, "%s", "");
        struct frame *own = frame_indent(DOCUMENT_FRAME(d, "own", 0, own_columns), 2);
        for (const char *const *name = contention_names(); *name != NULL; name++) {
            if (one == NULL || strcmp(one->name, *name) == 0) {
                put_model(contention_find(*name), &p, errors, own);
            }
        }
        if (one != NULL) {
            put_rows(one, &p, d);
        }
        document_show(d, out);
    }
    return rc == 0 ? EXIT_OK : EXIT_BAD_INPUT;
}

#define OPTIONS struct validate_corun_options

static const struct option_row option_rows[] = {
    OPTION_TEXT(OPTIONS, corun, "corun", "FILE.csv", NULL,
                "compare the contention models with measured co-runs; a shipped table: corun. With "
                "--set sim.contention=M one model and every row"),
};
const struct option_table validate_corun_option_table =
    OPTION_TABLE("Published co-runs", option_rows);

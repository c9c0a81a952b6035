/* Figures: what each reads, and the data it hands to its gnuplot script.
 *
 * A figure's C half reads exported results and writes a TSV text: blocks of rows, two blank lines
 * between blocks, the first row of a block its name. Numbers that are not defined are NaN. Beside
 * it go gnuplot variables (labels, how many blocks). plots/NAME.gp draws; plots/style.gp has what
 * all share. Nothing here simulates. */
#pragma once

#include <cjson/cJSON.h>

#include "sim/base/frame.h"

#define FIGURE_MAX_INPUTS 64
#define FIGURE_MAX_METRICS 8

struct figure_input {
    const char *path;  /* borrowed */
    const char *label; /* what LABEL=FILE says, else its policy, else the file's name alone */
    cJSON *about;      /* what the file says of itself */
    cJSON *tree;       /* a JSON file, but a timeline; else NULL */
};

/* The user's request. Its inputs are kept, strings are borrowed; NULL: the figure's default. */
struct figure_request {
    struct figure_input inputs[FIGURE_MAX_INPUTS];
    size_t n_inputs;
    const char *x, *y; /* axes of a sweep */
    const char *metrics[FIGURE_MAX_METRICS];
    size_t n_metrics;
    double from_s, to_s; /* window of a timeline; to_s 0: to its end */
};

/* "LABEL=FILE" or "FILE". -EINVAL with an error when there are too many, or it cannot be read. */
int figure_input_add(struct figure_request *r, const char *text, struct err *e);
/* A tree that is in no file, which is kept from here on. `name` (borrowed) is what a file
 * of it would be called. -EINVAL with an error when there are too many. */
int figure_input_take(struct figure_request *r, const char *name, cJSON *tree, struct err *e);
/* "POLICY=NAME": the policy has this name in all inputs added so far, and keeps its colour. Columns
 * of CSV files keep what they say. -EINVAL with an error when it is malformed, or no input knows
 * the policy. */
int figure_rename(struct figure_request *r, const char *text, struct err *e);
/* The rows of an input that figures ask columns of: of JSON those at the end of the way `at`
 * (frame_of_json), of CSV all. NULL with an error when there are none. The caller frees it. */
struct frame *figure_rows(const struct figure_input *in, const char *at, struct err *e);

struct figure_data {
    const struct figure *figure; /* whose they are, once it is prepared */
    FILE *tsv, *vars;            /* memory streams */
    char *tsv_text, *vars_text;
    size_t tsv_size, vars_size;
    size_t blocks;
    bool in_row;
    struct frame *values; /* owned: what a schedule or a cloud of points shows, as rows; or NULL */
};

void figure_data_init(struct figure_data *d);
void figure_data_fini(struct figure_data *d);
void figure_block(struct figure_data *d, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* FIGURE_ROW(d, value, ...): a row, or its end behind FIGURE_CELLS: numbers and texts. */
#define FIGURE_ROW(d, ...) (FIGURE_CELLS(d, __VA_ARGS__), figure_row_end(d))
#define FIGURE_CELLS(d, ...)                                                                       \
    figure_cells((d), (const struct frame_value[]){FRAME_VALUES(__VA_ARGS__)},                     \
                 FRAME_COUNT(__VA_ARGS__))
void figure_cells(struct figure_data *d, const struct frame_value *v, size_t n);
void figure_row_end(struct figure_data *d);
/* FIGURE_VALUES(d, columns): the empty table of its values. */
#define FIGURE_VALUES(d, columns)                                                                  \
    figure_values((d), (columns), sizeof(columns) / sizeof(columns)[0])
struct frame *figure_values(struct figure_data *d, const struct frame_column *c, size_t n);
/* A gnuplot variable. */
void figure_var(struct figure_data *d, const char *name, double v);
void figure_var_text(struct figure_data *d, const char *name, const char *text);

/* Writes texts as array NAME of gnuplot, NAME[1] on, and their count as n_NAME; frees the list. */
void figure_texts_put(struct texts *l, const char *name, struct figure_data *d);

/* End of the axis of n bars. A bar that is over four times all the rest is cut, so that it does not
 * flatten them; at most half of the bars are cut. Values (NaN where not defined) are as drawn. */
double figure_bars_end(const double *mean, const double *high, size_t n);

/* Different numbers of v, sorted, as the text xvalues for tics; "" when there are too many. v is
 * sorted. */
void figure_tics_put(double *v, size_t n, struct figure_data *d);

/* The line types of series, of policies or devices by name (palette.h), as array `slot`. */
void figure_slots_put(const char *const *names, size_t n, struct figure_data *d);

/* 0, or -EINVAL with errors: nothing of the data is used then. -ENODATA: the inputs have no numbers
 * of what it draws. */
typedef int figure_fill(const struct figure_request *r, struct figure_data *d, struct err *e);

struct figure {
    const char *name;
    const char *title; /* what it shows */
    const char *reads; /* files it takes, for people */
    const char *kinds; /* words of what it takes (about.h); "table": a CSV of anybody */
    bool alone;        /* of one file */
    bool chosen;       /* a report draws it only of files whose kind has its name */
    /* Metrics or columns that the figure draws by default; NULL-ended. */
    const char *const *metrics;
    figure_fill *prepare;
};

/* The data of a figure: checks that it takes such files, prepares, and names policy, model, machine
 * and workload. 0, or as figure_fill. */
int figure_prepare(const struct figure *f, const struct figure_request *r, struct figure_data *d,
                   struct err *e);

/* How to read the figure, as markup: one or two sentences, or "". Static. */
const char *figure_reading(const char *name);
/* All of them, sorted by name. */
const struct figure *figure_list(size_t *n);
const struct figure *figure_find(const char *name);
/* How many metrics may be asked of it: FIGURE_MAX_METRICS, 2 (x and y), 1 or none. */
size_t figure_takes_metrics(const struct figure *f);
/* Metrics that are asked for, else those of the figure; *n of them. */
const char *const *figure_metrics(const struct figure_request *q, const struct figure_data *d,
                                  size_t *n);

/* Is the only input what `xpusim characterize --csv` prints: one value per row, columns study,
 * device, what, x_name, x, metric, value, unit? False as well when it cannot be read: the caller
 * says so. */
bool figure_is_study(const struct figure_request *q);
/* Its pairs of kernels. */
int figure_corun_study(const struct figure_request *q, struct figure_data *d, struct err *e);

/* figures_*.c. Several figures draw bars, lines, distributions, or a study of `characterize`. */
figure_fill figure_bars, figure_batch, figure_breakdown, figure_causes, figure_chunk, figure_corun,
    figure_ddr, figure_distributions, figure_draft, figure_drive, figure_gantt, figure_graphs,
    figure_heatmap, figure_interference, figure_job, figure_kernels, figure_lines, figure_pareto,
    figure_queue, figure_roofline, figure_study, figure_tornado;

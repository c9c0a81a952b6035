/* Figures: the inputs of each, and the data for its gnuplot script.
 *
 * The C half of a figure reads exported results and writes a TSV text: blocks of rows, with two
 * blank lines between blocks. The first row of a block is its name. Undefined numbers are NaN.
 * gnuplot variables (labels, number of blocks) accompany it. plots/NAME.gp draws; plots/style.gp is
 * shared by all. Nothing here simulates. */
#pragma once

#include <cjson/cJSON.h>

#include "sim/base/frame.h"

#define FIGURE_MAX_INPUTS 64
#define FIGURE_MAX_METRICS 8

struct figure_input {
    const char *path;  /* borrowed */
    const char *label; /* LABEL of LABEL=FILE, else the policy, else the name of the file */
    cJSON *about;      /* the file's description (about.h) */
    cJSON *tree;       /* tree of a JSON file that is no timeline; else NULL */
};

/* The user's request. Inputs are never freed, strings are borrowed. NULL: the figure's default. */
struct figure_request {
    struct figure_input inputs[FIGURE_MAX_INPUTS];
    size_t n_inputs;
    const char *x, *y; /* axes, from the parameters of a sweep */
    const char *metrics[FIGURE_MAX_METRICS];
    size_t n_metrics;
    double from_s, to_s; /* window of a timeline; to_s 0: to the end */
};

/* Adds "LABEL=FILE" or "FILE". -EINVAL with an error: too many, or it cannot be read. */
int figure_input_add(struct figure_request *r, const char *text, struct err *e);
/* Adds a tree that is in no file, and takes it over. `name` (borrowed) replaces its path. Returns
 * -EINVAL with an error if there are too many. */
int figure_input_take(struct figure_request *r, const char *name, cJSON *tree, struct err *e);
/* Applies "POLICY=NAME": renames the policy in all inputs added so far, and keeps its colour.
 * Columns of CSV files are not changed. Returns -EINVAL with an error if it is malformed, or no
 * input has the policy. */
int figure_rename(struct figure_request *r, const char *text, struct err *e);
/* The rows of an input as a frame: of JSON those at the path `at` (frame_of_json), of CSV all. NULL
 * with an error if there are none. The caller frees it. */
struct frame *figure_rows(const struct figure_input *in, const char *at, struct err *e);

struct figure_data {
    const struct figure *figure; /* set by figure_prepare */
    FILE *tsv, *vars;            /* memory streams */
    char *tsv_text, *vars_text;
    size_t tsv_size, vars_size;
    size_t blocks;
    bool in_row;
    struct frame *values; /* owned: values shown by a schedule or a scatter plot; or NULL */
};

void figure_data_init(struct figure_data *d);
void figure_data_fini(struct figure_data *d);
void figure_block(struct figure_data *d, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* FIGURE_ROW(d, value, ...) writes a row of numbers and texts, or its end after FIGURE_CELLS. */
#define FIGURE_ROW(d, ...) (FIGURE_CELLS(d, __VA_ARGS__), figure_row_end(d))
#define FIGURE_CELLS(d, ...)                                                                       \
    figure_cells((d), (const struct frame_value[]){FRAME_VALUES(__VA_ARGS__)},                     \
                 FRAME_COUNT(__VA_ARGS__))
void figure_cells(struct figure_data *d, const struct frame_value *v, size_t n);
void figure_row_end(struct figure_data *d);
/* FIGURE_VALUES(d, columns): creates the empty table `values`. */
#define FIGURE_VALUES(d, columns)                                                                  \
    figure_values((d), (columns), sizeof(columns) / sizeof(columns)[0])
struct frame *figure_values(struct figure_data *d, const struct frame_column *c, size_t n);
/* Set a gnuplot variable. */
void figure_var(struct figure_data *d, const char *name, double v);
void figure_var_text(struct figure_data *d, const char *name, const char *text);

/* Writes texts as array NAME of gnuplot, from NAME[1], and n_NAME, their number; frees the list. */
void figure_texts_put(struct texts *l, const char *name, struct figure_data *d);

/* End of the axis of n bars. A bar more than four times as long as all shorter ones is cut, so that
 * these stay readable; at most half of the bars are cut. Values as drawn (NaN if undefined). */
double figure_bars_end(const double *mean, const double *high, size_t n);

/* Writes the distinct numbers of v as the text xvalues, for tics; "" if there are too many. Sorts
 * v. */
void figure_tics_put(double *v, size_t n, struct figure_data *d);

/* Writes the line types of series, policies or devices by name (palette.h) as array `slot`. */
void figure_slots_put(const char *const *names, size_t n, struct figure_data *d);

/* Returns 0, or -EINVAL with errors; then the data are not used. -ENODATA: the inputs have no
 * numbers for this figure. */
typedef int figure_fill(const struct figure_request *r, struct figure_data *d, struct err *e);

struct figure {
    const char *name;
    const char *title; /* what the figure shows */
    const char *reads; /* its input files, for help texts */
    const char *kinds; /* accepted kinds (about.h); "table": any CSV */
    bool alone;        /* takes exactly one input */
    bool chosen;       /* reports draw it only for files whose kind has its name */
    /* Metrics or columns drawn by default; NULL-terminated. */
    const char *const *metrics;
    figure_fill *prepare;
};

/* Prepares the data of a figure: checks the kinds of the inputs, fills the data, and names policy,
 * model, machine and workload. Returns as figure_fill. */
int figure_prepare(const struct figure *f, const struct figure_request *r, struct figure_data *d,
                   struct err *e);

/* One or two sentences on how to read the figure, as markup; or "". Static. */
const char *figure_reading(const char *name);
/* All figures, sorted by name. */
const struct figure *figure_list(size_t *n);
const struct figure *figure_find(const char *name);
/* How many metrics --metric may name: FIGURE_MAX_METRICS, 2 (x and y), 1 or 0. */
size_t figure_takes_metrics(const struct figure *f);
/* The requested metrics, else those of the figure; *n is their number. */
const char *const *figure_metrics(const struct figure_request *q, const struct figure_data *d,
                                  size_t *n);

/* Whether the only input is output of `xpusim characterize --csv`: one value per row, columns
 * study, device, what, x_name, x, metric, value, unit. Also false if it cannot be read, which the
 * caller must report. */
bool figure_is_study(const struct figure_request *q);
/* Draws the pairs of kernels of such an input. */
int figure_corun_study(const struct figure_request *q, struct figure_data *d, struct err *e);

/* In figures_*.c. Several figures draw bars, lines, distributions, or a study of `characterize`. */
figure_fill figure_bars, figure_batch, figure_breakdown, figure_causes, figure_chunk, figure_corun,
    figure_ddr, figure_distributions, figure_draft, figure_drive, figure_gantt, figure_graphs,
    figure_heatmap, figure_interference, figure_job, figure_kernels, figure_lines, figure_pareto,
    figure_queue, figure_roofline, figure_study, figure_tornado;

/* Figures: what each reads, and the data it hands to its gnuplot script.
 *
 * A figure's C half reads exported results and writes a TSV text: blocks of rows, two blank lines
 * between blocks, the first row of a block its name. Numbers that are not defined are NaN. Beside
 * it go gnuplot variables (labels, how many blocks). plots/NAME.gp draws; plots/style.gp has what
 * all share. Nothing here simulates. */
#ifndef PLOTS_FIGURE_H
#define PLOTS_FIGURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/base/err.h"

#define FIGURE_MAX_INPUTS 64
#define FIGURE_MAX_METRICS 8

struct figure_input {
    const char *path; /* borrowed */
    char label[96];   /* what LABEL=FILE says, else the file's name without folder and ending */
};

/* What the user asked for. Strings are borrowed; NULL: the figure's default. */
struct figure_request {
    struct figure_input inputs[FIGURE_MAX_INPUTS];
    size_t n_inputs;
    const char *x, *y; /* axes of a sweep */
    const char *metrics[FIGURE_MAX_METRICS];
    size_t n_metrics;
    double from_s, to_s; /* window of a timeline; to_s 0: to its end */
};

/* "LABEL=FILE" or "FILE". -EINVAL with an error when there are too many. */
int figure_input_add(struct figure_request *r, const char *text, struct err *e);

struct figure_data {
    FILE *tsv, *vars; /* memory streams */
    char *tsv_text, *vars_text;
    size_t tsv_size, vars_size;
    size_t blocks;
    bool in_row;
};

void figure_data_init(struct figure_data *d);
void figure_data_fini(struct figure_data *d);
void figure_block(struct figure_data *d, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void figure_cell(struct figure_data *d, double v);
void figure_cell_text(struct figure_data *d, const char *text);
void figure_row_end(struct figure_data *d);
/* A gnuplot variable. */
void figure_var(struct figure_data *d, const char *name, double v);
void figure_var_text(struct figure_data *d, const char *name, const char *text);

/* Names of rows 0, 1, .. as the variables that ytics.gp reads. */
struct figure_rows {
    char *names; /* owned until they are put */
    size_t n, at;
};
void figure_row_name(struct figure_rows *l, const char *name);
/* Writes them and frees the list. */
void figure_rows_put(struct figure_rows *l, struct figure_data *d);

/* What a file of results is: bits, so that a figure can take several kinds. */
#define FIGURE_KIND_COMPARE 0x001u        /* compare --json */
#define FIGURE_KIND_LOAD 0x002u           /* compare --load --json */
#define FIGURE_KIND_SWEEP 0x004u          /* sweep --export csv */
#define FIGURE_KIND_REQUESTS 0x008u       /* run --requests */
#define FIGURE_KIND_TIMELINE 0x010u       /* run --timeline */
#define FIGURE_KIND_KERNELS 0x020u        /* list kernels --json */
#define FIGURE_KIND_GRAPHS 0x040u         /* graphs --gantt --json */
#define FIGURE_KIND_INTERFERENCE 0x080u   /* explain --interference --json */
#define FIGURE_KIND_SD 0x040000u          /* compare --json with systems of sd-npu among them */
#define FIGURE_KIND_UNCERTAINTY 0x080000u /* compare --uncertainty --json */
#define FIGURE_KIND_DRIVE 0x100000u       /* drive --compare --json */
#define FIGURE_KIND_STUDY(i)                                                                       \
    (0x100u << (i)) /* characterize --csv: its i-th study, figure_studies */

extern const char *const figure_studies[]; /* NULL-ended */

/* The kinds of a file, by how it begins and the keys or columns it has (a file of several studies
 * is of several); 0: none of these, or unreadable. */
unsigned figure_kinds_of(const char *path);

struct figure {
    const char *name;
    const char *title; /* what it shows */
    const char *reads; /* files it takes */
    unsigned kinds;    /* of which it is drawn in a report */
    /* 0, or -EINVAL with errors: nothing of the data is used then. */
    int (*prepare)(const struct figure_request *r, struct figure_data *d, struct err *e);
};

/* All of them, sorted by name. */
const struct figure *figure_list(size_t *n);
const struct figure *figure_find(const char *name);

/* figures_*.c */
int figure_latency_rate(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_throughput_rate(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_chunk(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_drive(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_pareto(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_heatmap(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_breakdown(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_headline(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_utilisation(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_sd(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_cdf(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_lengths(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_roofline(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_affinity(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_corun(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_kernels(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_prompt(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_mixed(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_schemes(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_batch(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_draft(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_graphs(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_ddr(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_queue(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_gantt(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_causes(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_interference(const struct figure_request *r, struct figure_data *d, struct err *e);
int figure_tornado(const struct figure_request *r, struct figure_data *d, struct err *e);

#endif

/* Reproduces figures and tables of the papers: `xpusim figure PAPER NUMBER`.
 *
 * A figure is a file PAPER-NUMBER.json in this folder; README.md here has its keys. It is either a
 * grid of points, each with a value, or a schedule, drawn from the output of commands. */
#pragma once

#include <cjson/cJSON.h>

#include "experiments/claims/quantities.h"
#include "experiments/shell/document.h"
#include "sim/stats/stats.h"

#define PAPER_FOLDER "experiments/figures"
#define PAPER_MAX_PLACES 40
#define PAPER_MAX_MARKS 200
#define PAPER_MAX_POINTS 4096
#define PAPER_MAX_CLAIMS 16
#define PAPER_MAX_QUANTITIES 8
#define PAPER_MAX_COMMANDS 8
#define PAPER_MAX_LINES 4

enum paper_axis_kind { PAPER_ROW, PAPER_COLUMN, PAPER_SERIES, PAPER_X, PAPER_AXES };
extern const char *const paper_axis_keys[PAPER_AXES]; /* "rows", ... */

struct paper_place {
    const char *title; /* borrowed from the tree, or kept */
    const cJSON *put;  /* owned by the figure's `made` or the tree; NULL: nothing */
    double number;     /* NaN: a text */
};

struct paper_axis {
    const char *title, *value; /* value: an expression, or NULL */
    struct paper_place v[PAPER_MAX_PLACES];
    uint32_t n; /* at least 1 */
    bool log;   /* for x, if its positions differ by more than a factor of 10 */
};

enum paper_draw { PAPER_LINES, PAPER_POINTS, PAPER_BARS, PAPER_STACKED, PAPER_TABLE };

/* A published value. at: index on each axis, -1 for all. */
struct paper_mark {
    int at[PAPER_AXES];
    double low, high;
    const char *as;   /* NULL: the published value is used itself */
    const char *ours; /* our value in the paper's unit; NULL: as is, or over that of `of` */
    int of, of_x;     /* series and index on x of the value that `as` scales; -1: none */
    double crossing;  /* NaN: none */
    bool read_off;
    const char *where, *claim; /* claim: NULL if none */
};

struct paper_line {
    double at;
    const char *title;
};

/* A point and its results. */
struct paper_point {
    uint32_t at[PAPER_AXES];
    const char *value, *position;            /* expressions; position NULL: number or index of x */
    uint32_t quantity[PAPER_MAX_QUANTITIES]; /* index of each in the book */
    struct stats_interval mean;
    double x;
};

struct paper_command {
    const char *run, *to; /* to: NULL: no file */
};

/* Kept by the command until it ends. */
struct paper {
    cJSON *tree;
    cJSON *made; /* an array of puts, and the object with the book's quantities */
    const char *file, *paper, *number, *title, *says, *setup;
    const char *claims[PAPER_MAX_CLAIMS];
    uint32_t n_claims;
    cJSON *put; /* the tree's, or NULL */
    /* a grid */
    enum paper_draw draw;
    const char *y_title, *value;
    bool y_log;
    struct paper_axis axes[PAPER_AXES];
    struct paper_line lines[PAPER_MAX_LINES];
    uint32_t n_lines;
    struct paper_mark marks[PAPER_MAX_MARKS];
    uint32_t n_marks;
    struct paper_point *points; /* x varies fastest, then series, column, row */
    uint32_t n_points;
    struct quantities book;
    /* a schedule; n_commands 0: it is a grid */
    struct paper_command commands[PAPER_MAX_COMMANDS];
    uint32_t n_commands;
    const char *plot;
};

/* Reads a specification, and applies puts "KEY=VALUE" (numbers, if VALUE is one). Runs nothing.
 * Returns -EINVAL with errors that name file and key path. */
int paper_read(struct paper *p, const char *file, const char *const *puts, uint32_t n_puts,
               struct err *e);
/* Path of a figure's file, which may not exist; the caller frees it. */
char *paper_path(const char *paper, const char *number);

/* The point at these indices. */
struct paper_point *paper_at(const struct paper *p, const uint32_t at[PAPER_AXES]);
/* Whether the mark applies to the point. */
bool paper_mark_is_of(const struct paper_mark *m, const struct paper_point *point);
/* Returns the text with every {key} replaced by its value at the point (NULL: in the figure), for
 * free(). NULL with an error if a key has no value; {rate} may remain. */
char *paper_put(const struct paper *p, const struct paper_point *point, const char *text,
                struct err *e);

/* ---- paper_run.c ---- */

/* Makes the quantities of every point, and checks them with the trace of `seed`. Returns 0, or
 * -EINVAL with errors. */
int paper_expand(struct paper *p, uint64_t seed, struct err *e);
/* Runs them and fills the points. Returns 0, or -EIO with an error for each failed run. */
int paper_run(struct paper *p, const struct quantities_options *o, struct err *e);
/* Published interval of a mark at a point, in the figure's units, drawn from x_low to x_high.
 * False: it scales a value of ours that is undefined. */
struct paper_published {
    double low, high, x_low, x_high;
};
/* The x at which our curve of a series, in the point's panel, first reaches a height; linear
 * interpolation; NaN: never. */
double paper_crossing(const struct paper *p, uint32_t series, double height,
                      const struct paper_point *point);
bool paper_published(const struct paper *p, const struct paper_mark *m,
                     const struct paper_point *point, struct paper_published *out);
/* Our value at a point in the paper's unit; NaN: undefined. */
double paper_ours(const struct paper *p, const struct paper_mark *m,
                  const struct paper_point *point);

/* ---- paper_show.c ---- */

/* Adds the values, with the published ones, as data and text; `brief`: only points with published
 * values. */
void paper_document(const struct paper *p, bool brief, struct document *d);

/* ---- paper_draw.c, paper_schedule.c ---- */

/* Draws DIR/PAPER-NUMBER in the formats (plots/render.h). Does nothing for a table. 0 or -EINVAL.
 */
int paper_draw(const struct paper *p, const char *dir, unsigned formats, struct err *e);
/* Runs the commands of a schedule by `run`, each in a child, with their files in folder {dir};
 * {data} is this folder of specifications. Draws their results; formats 0: no picture. *values: the
 * drawn data as rows, for frame_free, or NULL. 0 or -EINVAL. */
int paper_schedule(struct paper *p, int (*run)(int argc, char **argv), const char *dir,
                   unsigned formats, struct frame **values, struct err *e);

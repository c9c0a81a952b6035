/* One self-contained HTML page: comparisons (`xpusim compare --json`, `drive --compare --json`) as
 * sections with tables, the figures of these and other results, and the hardware models once. It
 * needs no network, and JavaScript only to sort and search. */
#pragma once

#include <cjson/cJSON.h>

#include "plots/figure.h"

/* All figures that can be drawn from the given files, by gnuplot. */
#define REPORT_MAX_FIGURES 64
struct report_figure {
    const struct figure *figure;
    size_t input; /* index in the request of its first file */
    char *svg;    /* kept */
};

struct report_figures {
    struct report_figure v[REPORT_MAX_FIGURES];
    size_t n;
};

struct report_input {
    const char *path;  /* of the file, for messages and for the command that repeats it */
    const cJSON *tree; /* of compare or drive --compare; borrowed */
    size_t index;      /* among all files of the page */
};

/* Checks that it is the output of one of these commands. Errors name file and key. */
int report_check(const struct report_input *in, struct err *e);

/* Adds a file of a comparison to the sections in[0 .. *n); a file for figures needs none. Adds an
 * error for a file that the page cannot show: kind "view" on a page that is not live. */
void report_take(const struct figure_input *file, size_t index, struct report_input *in, size_t *n,
                 bool live, struct err *e);

/* Skeleton, style and script of the page: plots/page.* of the data folder, and plots/live* for a
 * live page, with the simulator if a file needs it (view --recompute). 0 or -EINVAL with errors. */
#define REPORT_PAGE_PARTS 6
struct report_page {
    char *html;
    char *css[REPORT_PAGE_PARTS], *js[REPORT_PAGE_PARTS]; /* kept; NULL: no further one */
    bool live;
    unsigned char *simulator; /* kept: for a page that simulates; NULL: it does not */
    size_t simulator_bytes;
};
int report_page_load(struct report_page *p, const struct figure_request *all, bool live,
                     struct err *e);

/* Writes the page. `all` has every file of the page, and figures name their inputs by index in it.
 * A comparison's figures are in its section, others follow. A live page begins with the runs,
 * comparisons and loads among the files (live.h). Precondition: every comparison passed
 * report_check. */
void report_write(const struct report_page *page, const struct report_input *in, size_t n,
                  const struct figure_request *all, const struct report_figures *figures,
                  FILE *out);

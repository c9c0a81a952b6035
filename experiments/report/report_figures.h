/* The figures of a report: every figure that reads a kind of file it is given, drawn by gnuplot. */
#pragma once

#include "plots/figure.h"

#define REPORT_MAX_FIGURES 64

struct report_figure {
    const struct figure *figure;
    size_t input; /* index in the request of the first file it is drawn from */
    char *svg;    /* kept */
};

struct report_figures {
    struct report_figure v[REPORT_MAX_FIGURES];
    size_t n;
};

/* Draws what applies to the inputs of `all` (window, labels as there): files of requests together
 * in one figure, every other file by itself. 0, or -EINVAL with errors: a figure that cannot be
 * drawn, no gnuplot. */
int report_figures_draw(const struct figure_request *all, struct report_figures *out,
                        struct err *e);

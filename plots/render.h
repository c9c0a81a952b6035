/* Runs gnuplot on a figure's data. */
#pragma once

#include "plots/figure.h"

#define RENDER_SVG 1u
#define RENDER_PNG 2u
#define RENDER_PDF 4u
#define RENDER_TSV 8u /* also write the data, next to the pictures */

/* 0, or -EINVAL with an error that says how to install it. */
int render_check_gnuplot(struct err *e);

/* Writes DIR/NAME.svg, .png, .pdf and .tsv, as asked for; DIR is made when it is not there.
 * Everything is written in a folder of its own inside DIR and moved when all of it is complete. 0,
 * or -EINVAL with an error, and nothing is left. */
int render_figure(const struct figure *f, const struct figure_data *d, const char *dir,
                  unsigned formats, struct err *e);
/* Like render_figure, with another name for the files. */
int render_figure_as(const struct figure *f, const char *name, const struct figure_data *d,
                     const char *dir, unsigned formats, struct err *e);

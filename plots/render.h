/* Runs gnuplot on a figure's data. */
#pragma once

#include "plots/figure.h"

#define RENDER_SVG 1u
#define RENDER_PNG 2u
#define RENDER_PDF 4u
#define RENDER_TSV 8u /* also write the data */

/* Returns 0, or -EINVAL with an error that says how to install gnuplot. */
int render_check_gnuplot(struct err *e);

/* Writes DIR/NAME.svg, .png, .pdf and .tsv as requested. Creates DIR if needed. Files are made in a
 * temporary folder inside DIR and moved when all are complete. Returns 0, or -EINVAL with an error
 * and no files. */
int render_figure(const struct figure *f, const struct figure_data *d, const char *dir,
                  unsigned formats, struct err *e);
/* As render_figure, with another name of the files. */
int render_figure_as(const struct figure *f, const char *name, const struct figure_data *d,
                     const char *dir, unsigned formats, struct err *e);

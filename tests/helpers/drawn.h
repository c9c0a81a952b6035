/* Data of a figure from small files that a test writes. Each file is in a folder of its own. */
#pragma once

#include "plots/figure.h"

extern struct figure_request drawn_request; /* empty after drawn_setup */
extern struct figure_data drawn_data;
extern struct err drawn_err;

void drawn_setup(void);
void drawn_teardown(void);
/* The path of a file of this name and text. It lives until drawn_teardown. */
const char *drawn_file(const char *name, const char *text);
/* Adds a file of this name and text to the request. label: "" or "LABEL=". */
void drawn_input(const char *label, const char *name, const char *text);
/* The figure's data has these rows. vars: the variables behind them, without the subject, or NULL.
 * The request is empty afterwards. */
void drawn_is(const char *figure, const char *tsv, const char *vars);
/* As drawn_is, where numbers of the rows are equal within 1e-9 of each. */
void drawn_near(const char *figure, const char *tsv, const char *vars);
/* The figure refuses the request with these errors, one per line, without the folder. */
void drawn_refused(const char *figure, const char *errors);
/* All variables, as they are so far. */
const char *drawn_vars(void);
/* The errors so far, one per line, without the folder. */
const char *drawn_errors(void);

/* Inside results: how inputs become points, and the CSV half (results_csv.c). */
#pragma once

#include "plots/results.h"

/* A point of this input without anything; what follows is of it. */
void results_begin_point(struct results *r, const struct figure_input *in);
/* An axis of the last point, unless the value is absent or an empty text. */
void results_put_axis(struct results *r, const char *name, struct frame_value v);

int results_add_csv(struct results *r, const struct figure_input *in, struct err *e);

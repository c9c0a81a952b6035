/* Signals over time as means over cells of equal width. The length of a run is not known in
 * advance: when the cells are used up, pairs are merged and the width doubles. */
#pragma once

#include <stdint.h>

#define CELLS_MAX 8192 /* about four for every pixel of a wide screen */
#define CELLS_SIGNALS 16

struct cells {
    int64_t cell_ns;
    uint32_t n, n_signals;           /* cells in use */
    double *sum;                     /* owned: CELLS_MAX rows of n_signals; value x ns */
    double value[CELLS_SIGNALS];     /* value of a signal of cells_set */
    int64_t since_ns[CELLS_SIGNALS]; /* since this instant */
};

void cells_init(struct cells *c, uint32_t n_signals);
/* The signal has been `value` from from_ns to to_ns. Precondition: 0 <= from_ns <= to_ns. Cost: the
 * cells in between, amortised O(CELLS_MAX) for a doubling. */
void cells_add(struct cells *c, uint32_t signal, int64_t from_ns, int64_t to_ns, double value);
/* The signal has this value from now on. A signal uses either this or cells_add. */
void cells_set(struct cells *c, uint32_t signal, int64_t now_ns, double value);
/* Extends all signals of cells_set to the end. */
void cells_end(struct cells *c, int64_t end_ns);
/* The mean of a cell; the last one may be cut by end_ns. */
double cells_mean(const struct cells *c, uint32_t cell, uint32_t signal, int64_t end_ns);

#include "experiments/report/cells.h"

#include "sim/base/base.h"

#define FIRST_CELL_NS 1000000

void cells_init(struct cells *c, uint32_t n_signals)
{
    SIM_REQUIRE(n_signals <= CELLS_SIGNALS, "few signals");
    *c = (struct cells){.cell_ns = FIRST_CELL_NS, .n_signals = n_signals};
    c->sum = xcalloc((size_t)CELLS_MAX * n_signals, sizeof *c->sum);
}

static double *at(const struct cells *c, uint32_t cell, uint32_t signal)
{
    return &c->sum[(size_t)cell * c->n_signals + signal];
}

/* Merges pairs of cells, and doubles their width. */
static void widen(struct cells *c)
{
    for (uint32_t i = 0; i < CELLS_MAX; i++) {
        for (uint32_t s = 0; s < c->n_signals; s++) {
            *at(c, i, s) = i < CELLS_MAX / 2 ? *at(c, 2 * i, s) + *at(c, 2 * i + 1, s) : 0.0;
        }
    }
    c->cell_ns *= 2;
    c->n = (c->n + 1) / 2;
}

void cells_add(struct cells *c, uint32_t signal, int64_t from_ns, int64_t to_ns, double value)
{
    while (to_ns > c->cell_ns * CELLS_MAX) {
        widen(c);
    }
    while (from_ns < to_ns) {
        uint32_t cell = (uint32_t)(from_ns / c->cell_ns);
        int64_t end = (cell + 1) * c->cell_ns;
        end = end < to_ns ? end : to_ns;
        *at(c, cell, signal) += value * (double)(end - from_ns);
        c->n = cell + 1 > c->n ? cell + 1 : c->n;
        from_ns = end;
    }
}

void cells_set(struct cells *c, uint32_t signal, int64_t now_ns, double value)
{
    cells_add(c, signal, c->since_ns[signal], now_ns, c->value[signal]);
    c->since_ns[signal] = now_ns;
    c->value[signal] = value;
}

void cells_end(struct cells *c, int64_t end_ns)
{
    for (uint32_t s = 0; s < c->n_signals; s++) {
        if (c->since_ns[s] < end_ns) {
            cells_set(c, s, end_ns, 0.0);
        }
    }
}

double cells_mean(const struct cells *c, uint32_t cell, uint32_t signal, int64_t end_ns)
{
    int64_t begin = cell * c->cell_ns;
    int64_t width = end_ns - begin < c->cell_ns ? end_ns - begin : c->cell_ns;
    return width > 0 ? *at(c, cell, signal) / (double)width : 0.0;
}

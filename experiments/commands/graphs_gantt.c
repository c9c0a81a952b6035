#include "experiments/commands/graphs_print.h"

#define MAX_CELLS 96 /* with the row names, within 110 columns */

static char symbol(uint32_t block)
{
    static const char symbols[] = "123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return block < sizeof(symbols) - 1 ? symbols[block] : '+';
}

static void put_row(const char *name, enum graphs_kind kind, const struct graphs_result *r,
                    int64_t scale, int cells, struct document *d)
{
    char row[MAX_CELLS + 1];
    memset(row, ' ', sizeof(row));
    for (size_t i = 0; i < r->n_intervals; i++) {
        const struct graphs_interval *bar = &r->intervals[i];
        if (bar->kind != kind) {
            continue;
        }
        for (int64_t c = (bar->start + scale - 1) / scale; c < cells && c * scale < bar->end; c++) {
            row[c] = symbol(bar->block);
        }
    }
    int n = cells;
    while (n > 0 && row[n - 1] == ' ') {
        n--;
    }
    row[n] = '\0';
    document_note(d, "  %-10s|%s", name, row);
}

void graphs_gantt(const struct graphs_instance *g, const struct graphs_result *r,
                  struct document *d)
{
    int64_t scale = (r->total + MAX_CELLS - 1) / MAX_CELLS;
    scale = scale < 1 ? 1 : scale;
    int cells = (int)((r->total + scale - 1) / scale);
    document_note(d,
                  "  one character is %" PRId64 " time unit%s; %" PRIu32 " blocks, end at %" PRId64,
                  scale, scale == 1 ? "" : "s", g->n_blocks, r->total);
    put_row("G1 compute", GRAPHS_COMPUTE_G1, r, scale, cells, d);
    put_row("G2 compute", GRAPHS_COMPUTE_G2, r, scale, cells, d);
    put_row("G2 load", GRAPHS_LOAD_G2, r, scale, cells, d);
}

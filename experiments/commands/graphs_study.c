#include <gsl/gsl_sort_double.h>
#include <gsl/gsl_statistics_double.h>

#include "experiments/commands/graphs_print.h"
#include "sim/base/rng.h"

#define MIN_BLOCKS 3
#define MAX_BLOCKS 6
#define MAX_CHUNKS 6
#define MAX_STRATEGIES 16

/* Ratios to the optimum, by strategy and number of chunks. Index 0 has those of all numbers. */
struct samples {
    double *ratio[MAX_STRATEGIES][MAX_CHUNKS + 1];
    size_t n[MAX_CHUNKS + 1];
    uint32_t unfinished;
    bool keep_old;
};

struct times {
    int64_t p[MAX_BLOCKS], d[MAX_BLOCKS], s[MAX_BLOCKS];
};

static void draw(struct rng *r, struct times *t, struct graphs_instance *g)
{
    g->n_blocks = MIN_BLOCKS + rng_below(r, MAX_BLOCKS - MIN_BLOCKS + 1);
    g->n_chunks = 1 + rng_below(r, MAX_CHUNKS);
    for (uint32_t b = 0; b < g->n_blocks; b++) {
        t->p[b] = 5 + rng_below(r, 11);
        t->d[b] = t->p[b] + rng_below(r, 5);
        t->s[b] = 5 + rng_below(r, 36);
    }
    g->p = t->p;
    g->d = t->d;
    g->s = t->s;
}

static void add_instance(const struct graphs_instance *g, struct samples *x)
{
    size_t n;
    const struct graphs_strategy *st = graphs_strategies(&n);
    SCOPED(graphs_result_fini) struct graphs_result best;
    graphs_strategy_find("exact")->solve(g, &best);
    if (best.label == GRAPHS_UNFINISHED) {
        x->unfinished++;
        return;
    }
    for (size_t i = 0; i < n && i < MAX_STRATEGIES; i++) {
        SCOPED(graphs_result_fini) struct graphs_result r;
        st[i].solve(g, &r);
        double ratio = (double)r.total / (double)best.total;
        x->ratio[i][0][x->n[0]] = ratio;
        x->ratio[i][g->n_chunks][x->n[g->n_chunks]] = ratio;
    }
    x->n[0]++;
    x->n[g->n_chunks]++;
}

/* Puts the mean and worst ratio of a strategy, and its means by number of chunks. */
static void put_ratios(const struct samples *x, size_t strategy, const char *title,
                       struct document *ratios, struct document *d)
{
    double *const *v = x->ratio[strategy];
    gsl_sort(v[0], 1, x->n[0]);
    double mean = gsl_stats_mean(v[0], 1, x->n[0]);
    double max = gsl_stats_max(v[0], 1, x->n[0]);
    struct document *of = document_within(ratios, title);
    DOCUMENT_VALUES(of, "mean", mean, "max", max);
    struct document *by = document_array(of, "mean_by_chunks");
    const char *line =
        document_format("%-18s %7.3f %7.3f %7.3f  %15s", title, mean,
                        gsl_stats_quantile_from_sorted_data(v[0], 1, x->n[0], 0.95), max, "");
    for (int c = 1; c <= MAX_CHUNKS; c++) {
        double m = x->n[c] > 0 ? gsl_stats_mean(v[c], 1, x->n[c]) : (double)NAN;
        DOCUMENT_VALUES(by, NULL, m);
        line = document_format(x->n[c] > 0 ? "%s %6.3f" : "%s      -", line, m);
    }
    document_note(d, "%s", line);
}

static void put_study(const struct samples *x, struct document *d)
{
    size_t n;
    const struct graphs_strategy *st = graphs_strategies(&n);
    DOCUMENT_VALUES(d, "n", x->n[0], "unfinished", x->unfinished);
    document_note(d, "total / %s on %zu random instances (%" PRIu32 " unfinished, left out)\n",
                  x->keep_old ? "least left-shifted" : "exact", x->n[0], x->unfinished);
    document_note(d, "%-18s %7s %7s %7s  mean by chunks: %6d %6d %6d %6d %6d %6d", "strategy",
                  "mean", "p95", "max", 1, 2, 3, 4, 5, MAX_CHUNKS);
    struct document *ratios =
        document_within(d, x->keep_old ? "ratio_to_left_shifted" : "ratio_to_exact");
    for (size_t i = 0; i < n && i < MAX_STRATEGIES; i++) {
        if (x->n[0] > 0 && st[i].switches) {
            put_ratios(x, i, graphs_strategy_title(&st[i], x->keep_old), ratios, d);
        }
    }
}

void graphs_study(uint32_t n, uint64_t seed, bool keep_old, struct document *d)
{
    struct samples x = {.keep_old = keep_old};
    for (int i = 0; i < MAX_STRATEGIES; i++) {
        for (int c = 0; c <= MAX_CHUNKS; c++) {
            x.ratio[i][c] = xcalloc((size_t)n + 1, sizeof(double));
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        struct rng r;
        struct times t;
        struct graphs_instance g = {.keep_old = keep_old};
        rng_init(&r, rng_key(seed, RNG_TEST, i, 0));
        draw(&r, &t, &g);
        add_instance(&g, &x);
    }
    put_study(&x, d);
    for (int i = 0; i < MAX_STRATEGIES; i++) {
        for (int c = 0; c <= MAX_CHUNKS; c++) {
            free(x.ratio[i][c]);
        }
    }
}

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
    document_note(
        d, "  one character is %" PRId64 " time unit%s; %" PRIu32 " block%s, end at %" PRId64,
        scale, text_plural((uint64_t)scale), g->n_blocks, text_plural(g->n_blocks), r->total);
    put_row("G1 compute", GRAPHS_COMPUTE_G1, r, scale, cells, d);
    put_row("G2 compute", GRAPHS_COMPUTE_G2, r, scale, cells, d);
    put_row("G2 load", GRAPHS_LOAD_G2, r, scale, cells, d);
}

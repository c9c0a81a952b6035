#include <cjson/cJSON.h>
#include <gsl/gsl_sort_double.h>
#include <gsl/gsl_statistics_double.h>
#include <inttypes.h>
#include <stdlib.h>

#include "experiments/commands/graphs_print.h"
#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/rng.h"

#define MIN_BLOCKS 3
#define MAX_BLOCKS 6
#define MAX_CHUNKS 6
#define MAX_STRATEGIES 16

/* Ratios to the optimum, per strategy and number of chunks; chunk 0 holds all. */
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
    struct graphs_result best;
    graphs_strategy_find("exact")->solve(g, &best);
    if (best.label == GRAPHS_UNFINISHED) {
        x->unfinished++;
        graphs_result_fini(&best);
        return;
    }
    for (size_t i = 0; i < n && i < MAX_STRATEGIES; i++) {
        struct graphs_result r;
        st[i].solve(g, &r);
        double ratio = (double)r.total / (double)best.total;
        x->ratio[i][0][x->n[0]] = ratio;
        x->ratio[i][g->n_chunks][x->n[g->n_chunks]] = ratio;
        graphs_result_fini(&r);
    }
    x->n[0]++;
    x->n[g->n_chunks]++;
    graphs_result_fini(&best);
}

static void print_text(const struct samples *x, FILE *out)
{
    size_t n;
    const struct graphs_strategy *st = graphs_strategies(&n);
    fprintf(out,
            "total / %s on %zu random instances (%" PRIu32 " unfinished, left out)\n\n"
            "%-18s %7s %7s %7s  mean by chunks:",
            x->keep_old ? "least left-shifted" : "exact", x->n[0], x->unfinished, "strategy",
            "mean", "p95", "max");
    for (int c = 1; c <= MAX_CHUNKS; c++) {
        fprintf(out, " %6d", c);
    }
    fprintf(out, "\n");
    for (size_t i = 0; i < n && i < MAX_STRATEGIES; i++) {
        if (x->n[0] == 0 || !st[i].switches) {
            continue;
        }
        double *all = x->ratio[i][0];
        gsl_sort(all, 1, x->n[0]);
        fprintf(out, "%-18s %7.3f %7.3f %7.3f  %15s", graphs_strategy_title(&st[i], x->keep_old),
                gsl_stats_mean(all, 1, x->n[0]),
                gsl_stats_quantile_from_sorted_data(all, 1, x->n[0], 0.95),
                gsl_stats_max(all, 1, x->n[0]), "");
        for (int c = 1; c <= MAX_CHUNKS; c++) {
            if (x->n[c] == 0) {
                fprintf(out, " %6s", "-");
            } else {
                fprintf(out, " %6.3f", gsl_stats_mean(x->ratio[i][c], 1, x->n[c]));
            }
        }
        fprintf(out, "\n");
    }
}

static void print_json(const struct samples *x, FILE *out)
{
    size_t n;
    const struct graphs_strategy *st = graphs_strategies(&n);
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "n", (double)x->n[0]);
    cJSON_AddNumberToObject(root, "unfinished", x->unfinished);
    cJSON *ratios =
        cJSON_AddObjectToObject(root, x->keep_old ? "ratio_to_left_shifted" : "ratio_to_exact");
    for (size_t i = 0; i < n && i < MAX_STRATEGIES; i++) {
        if (x->n[0] == 0 || !st[i].switches) {
            continue;
        }
        cJSON *o = cJSON_AddObjectToObject(ratios, graphs_strategy_title(&st[i], x->keep_old));
        cJSON_AddNumberToObject(o, "mean", gsl_stats_mean(x->ratio[i][0], 1, x->n[0]));
        cJSON_AddNumberToObject(o, "max", gsl_stats_max(x->ratio[i][0], 1, x->n[0]));
        cJSON *by = cJSON_AddArrayToObject(o, "mean_by_chunks");
        for (int c = 1; c <= MAX_CHUNKS; c++) {
            cJSON_AddItemToArray(
                by, x->n[c] == 0 ? cJSON_CreateNull()
                                 : cJSON_CreateNumber(gsl_stats_mean(x->ratio[i][c], 1, x->n[c])));
        }
    }
    json_print(root, out);
}

void graphs_print_study(uint32_t n, uint64_t seed, bool keep_old, bool json, FILE *out)
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
    (json ? print_json : print_text)(&x, out);
    for (int i = 0; i < MAX_STRATEGIES; i++) {
        for (int c = 0; c <= MAX_CHUNKS; c++) {
            free(x.ratio[i][c]);
        }
    }
}

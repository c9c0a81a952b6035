/* Schedules of graphs as people see them: the chart by hand, the study worked out again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/commands/graphs_print.h"
#include "sim/base/json.h"
#include "sim/base/rng.h"
#include "tests/helpers/suite.h"

/* Inlined, gcc takes the text for a pointer to its variable. */
static __attribute__((noinline)) char *text_of(const struct document *d)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    document_put(d, "text", f);
    (void)fclose(f);
    return text;
}

/* ---- the chart ---- */

/* A character per unit, where a block is busy at its beginning; blocks are 1 to 9, a to z, A to Z,
 * and beyond that '+'. Lines end with their last bar. */
START_TEST(a_chart_names_the_block_that_is_busy)
{
    struct graphs_interval bars[] = {
        {.start = 0, .end = 2, .block = 0, .kind = GRAPHS_COMPUTE_G1},
        {.start = 2, .end = 3, .block = 8, .kind = GRAPHS_COMPUTE_G1},
        {.start = 5, .end = 6, .block = 9, .kind = GRAPHS_COMPUTE_G1},
        {.start = 6, .end = 8, .block = 34, .kind = GRAPHS_COMPUTE_G2},
        {.start = 8, .end = 9, .block = 35, .kind = GRAPHS_COMPUTE_G2},
        {.start = 9, .end = 9, .block = 5, .kind = GRAPHS_COMPUTE_G2}, /* of no length */
        {.start = 1, .end = 2, .block = 60, .kind = GRAPHS_LOAD_G2},
        {.start = 2, .end = 4, .block = 61, .kind = GRAPHS_LOAD_G2},
    };
    struct graphs_result r = {.total = 10, .intervals = bars, .n_intervals = 8};
    struct graphs_instance g = {.n_blocks = 62};
    struct document *d = document_new();
    graphs_gantt(&g, &r, d);
    OWNED char *text = text_of(d);
    ck_assert_str_eq(text, "  one character is 1 time unit; 62 blocks, end at 10\n"
                           "  G1 compute|119  a\n"
                           "  G2 compute|      zzA\n"
                           "  G2 load   | Z++\n");
}
END_TEST

/* 96 units are 96 characters, 97 are 49 of 2 units, 193 are 65 of 3. A bar shows where it is busy
 * at a character's beginning: from 1 to 3 at 2, from 1 to 2 nowhere, and up to the end. */
START_TEST(a_long_chart_has_fewer_characters)
{
    static const struct {
        int64_t total, scale;
        int cells;
    } of[] = {{96, 1, 96}, {97, 2, 49}, {192, 2, 96}, {193, 3, 65}, {1, 1, 1}, {0, 1, 0}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        struct graphs_interval bars[] = {
            {.start = 0, .end = of[i].total, .block = 0, .kind = GRAPHS_COMPUTE_G1},
            {.start = 1, .end = 3, .block = 1, .kind = GRAPHS_COMPUTE_G2},
            {.start = 1, .end = 2, .block = 2, .kind = GRAPHS_LOAD_G2},
        };
        struct graphs_result r = {.total = of[i].total, .intervals = bars, .n_intervals = 3};
        struct graphs_instance g = {.n_blocks = 3};
        struct document *d = document_new();
        graphs_gantt(&g, &r, d);
        OWNED char *text = text_of(d);
        char whole[97];
        memset(whole, '1', sizeof whole);
        whole[of[i].cells] = '\0';
        const char *second = of[i].total < 2    ? ""
                             : of[i].scale == 1 ? " 22"
                             : of[i].scale == 2 ? " 2"
                                                : "";
        const char *third = of[i].total > 1 && of[i].scale == 1 ? " 3" : "";
        OWNED char *want = xformat("  one character is %lld time unit%s; 3 blocks, end at %lld\n"
                                   "  G1 compute|%s\n  G2 compute|%s\n  G2 load   |%s\n",
                                   (long long)of[i].scale, of[i].scale == 1 ? "" : "s",
                                   (long long)of[i].total, whole, second, third);
        ck_assert_str_eq(text, want);
    }
}
END_TEST

/* ---- the study ---- */

#define INSTANCES 40

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Draws the instances that the header states, in its order and from the instance's own key. There
 * are 3 to 6 blocks, 1 to 6 chunks, p 5 to 15, d up to 4 more, and s 5 to 40. */
static uint32_t draw(uint64_t seed, uint32_t i, int64_t t[3][6], struct graphs_instance *g)
{
    struct rng r;
    rng_init(&r, rng_key(seed, RNG_TEST, i, 0));
    g->n_blocks = 3 + rng_below(&r, 4);
    g->n_chunks = 1 + rng_below(&r, 6);
    for (uint32_t b = 0; b < g->n_blocks; b++) {
        t[0][b] = 5 + rng_below(&r, 11);
        t[1][b] = t[0][b] + rng_below(&r, 5);
        t[2][b] = 5 + rng_below(&r, 36);
    }
    g->p = t[0];
    g->d = t[1];
    g->s = t[2];
    return g->n_chunks;
}

static double mean_of(const double *v, const uint32_t *chunks, uint32_t of)
{
    double sum = 0.0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < INSTANCES; i++) {
        if (of == 0 || chunks[i] == of) {
            sum += v[i];
            n++;
        }
    }
    return n > 0 ? sum / n : (double)NAN;
}

static void study(bool keep_old)
{
    const uint64_t seed = 7;
    struct document *d = document_new();
    graphs_study(INSTANCES, seed, keep_old, d);
    cJSON *tree = document_json(d);
    OWNED char *text = text_of(d);
    OWNED char *first =
        xformat("total / %s on 40 random instances (0 unfinished, left out)\n\n"
                "strategy              mean     p95     max  mean by chunks:      1      2 "
                "     3      4      5      6\n",
                keep_old ? "least left-shifted" : "exact");
    ck_assert_msg(strncmp(text, first, strlen(first)) == 0, "%s", text);
    ck_assert_double_eq(cJSON_GetObjectItem(tree, "n")->valuedouble, INSTANCES);
    ck_assert_double_eq(cJSON_GetObjectItem(tree, "unfinished")->valuedouble, 0);
    const cJSON *all =
        cJSON_GetObjectItem(tree, keep_old ? "ratio_to_left_shifted" : "ratio_to_exact");
    size_t n;
    const struct graphs_strategy *st = graphs_strategies(&n);
    int shown = 0;
    for (size_t k = 0; k < n; k++) {
        double ratio[INSTANCES];
        uint32_t chunks[INSTANCES];
        for (uint32_t i = 0; st[k].switches && i < INSTANCES; i++) {
            int64_t t[3][6];
            struct graphs_instance g = {.keep_old = keep_old};
            chunks[i] = draw(seed, i, t, &g);
            struct graphs_result own;
            struct graphs_result best;
            st[k].solve(&g, &own);
            graphs_strategy_find("exact")->solve(&g, &best);
            ratio[i] = (double)own.total / (double)best.total;
            graphs_result_fini(&own);
            graphs_result_fini(&best);
        }
        const char *title = graphs_strategy_title(&st[k], keep_old);
        const cJSON *of = cJSON_GetObjectItem(all, title);
        ck_assert_msg((of != NULL) == st[k].switches, "%s", title);
        if (of == NULL) {
            continue;
        }
        shown++;
        double mean = mean_of(ratio, chunks, 0);
        OWNED char *line = NULL;
        size_t size;
        FILE *f = open_memstream(&line, &size);
        double by[7];
        for (uint32_t c = 1; c <= 6; c++) {
            by[c] = mean_of(ratio, chunks, c);
            const cJSON *v =
                cJSON_GetArrayItem(cJSON_GetObjectItem(of, "mean_by_chunks"), (int)c - 1);
            ck_assert_double_eq_tol(v->valuedouble, by[c], 1e-12);
        }
        qsort(ratio, INSTANCES, sizeof ratio[0], by_size);
        /* The quantile is between neighbours: 0.95 * 39 = 37.05. */
        double p95 = ratio[37] + 0.05 * (ratio[38] - ratio[37]);
        (void)fprintf(f, "\n%-18s %7.3f %7.3f %7.3f                 ", title, mean, p95, ratio[39]);
        for (uint32_t c = 1; c <= 6; c++) {
            (void)fprintf(f, " %6.3f", by[c]);
        }
        (void)fputc('\n', f);
        (void)fclose(f);
        ck_assert_msg(strstr(text, line) != NULL, "no%sin\n%s", line, text);
        ck_assert_double_eq_tol(cJSON_GetObjectItem(of, "mean")->valuedouble, mean, 1e-12);
        ck_assert_double_eq_tol(cJSON_GetObjectItem(of, "max")->valuedouble, ratio[39], 1e-12);
    }
    ck_assert_int_eq(cJSON_GetArraySize(all), shown);
    cJSON_Delete(tree);
}

START_TEST(a_study_is_of_all_its_instances)
{
    study(_i == 1);
}
END_TEST

/* Columns of a strategy's line that are a dash. */
static int dashes_of(const char *text, const char *name)
{
    int n = 0;
    for (const char *p = strstr(text, name); p != NULL && *p != '\n'; p++) {
        n += *p == '-' && p[-1] == ' ';
    }
    return n;
}

/* Without an instance of some number of chunks there is no mean, and no zero. */
START_TEST(a_study_of_one_has_one_mean)
{
    struct document *d = document_new();
    graphs_study(1, 3, false, d);
    cJSON *tree = document_json(d);
    int64_t t[3][6];
    struct graphs_instance g = {.n_blocks = 0};
    uint32_t chunks = draw(3, 0, t, &g);
    const cJSON *of;
    cJSON_ArrayForEach (of, cJSON_GetObjectItem(tree, "ratio_to_exact")) {
        for (uint32_t c = 1; c <= 6; c++) {
            const cJSON *v =
                cJSON_GetArrayItem(cJSON_GetObjectItem(of, "mean_by_chunks"), (int)c - 1);
            ck_assert(c == chunks ? cJSON_IsNumber(v) && v->valuedouble >= 1.0 : cJSON_IsNull(v));
        }
    }
    cJSON_Delete(tree);
    char *text = text_of(d);
    ck_assert_int_eq(dashes_of(text, "exact  "), 5);
    free(text);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("graphs in print"),
    TEST(a_chart_names_the_block_that_is_busy),
    TEST(a_long_chart_has_fewer_characters),
    LOOP(a_study_is_of_all_its_instances, 2),
    TEST(a_study_of_one_has_one_mean),
};
SUITE_MAIN("graphs in print", suite)

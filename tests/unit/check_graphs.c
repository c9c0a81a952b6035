/* Switch strategies against published figures, closed forms, and a checker that knows only the
 * rules. */
#include <string.h>

#include "tests/helpers/suite.h"
#include "tests/helpers/switching.h"

#define N_INSTANCES 1000

/* Specification vectors: uniform blocks, in the order g1, sync, naive-async, progressive,
 * late-start, farthest-next-use, exact. */
static const char *const COLUMNS[] = {
    "unified-g1", "sync", "naive-async", "progressive", "late-start", "farthest-next-use", "exact"};

static const struct vector {
    uint32_t n, c;
    int64_t p, d, s, totals[7];
} VECTORS[] = {
    /* Figure 8 of the paper. sync 2*60 + 6*20; naive: block 1 is done at 70, then six loads;
     * progressive: 20 + 20 + 22 (5, 6 on G2) + 20 + 22 + 22. */
    {6, 2, 10, 11, 20, {120, 240, 190, 126, 126, 125, 125}},
    /* One chunk: rounds (1,2|6) (3,4|5) (5,6 on G2|4) end at 62, three loads are exposed: 122. The
     * optimum is the loader's own 6 * 20. */
    {6, 1, 10, 11, 20, {60, 180, 130, 122, 122, 120, 120}},
    /* d = 12: greedy has switched all in the first two chunks, 20+20+24+20+24+24 = 132, then pays
     * 2 * 6 * 12 = 144. */
    {6, 4, 10, 12, 20, {240, 360, 310, 276, 252, 250, 250}},
    /* 132 + 6 * 72 = 564 is slower than naive's 480 - 50 + 120 = 550. */
    {6, 8, 10, 12, 20, {480, 600, 550, 564, 492, 490, 490}},
    /* (1-3|6) (4,5,6'|3) (1,2,3'|5) (4,5',6'|2) take 30+31+31+32 = 124. With 1 and 4 that is 184,
     * and 6 * 30 is the loader's bound. */
    {6, 2, 10, 11, 30, {120, 300, 250, 184, 184, 180, 180}},
};

START_TEST(uniform_vectors_are_exact)
{
    const struct vector *v = &VECTORS[_i];
    struct switch_instance x;
    switch_uniform(&x, v->n, v->c, v->p, v->d, v->s);
    for (int i = 0; i < 7; i++) {
        ck_assert_msg(switch_total(COLUMNS[i], &x.g) == v->totals[i],
                      "%s of vector %d: %ld, not %ld", COLUMNS[i], _i,
                      (long)switch_total(COLUMNS[i], &x.g), (long)v->totals[i]);
    }
}
END_TEST

START_TEST(unequal_blocks_vector_is_exact)
{
    /* sum p = 63, sum s = 136: sync 126 + 136; naive: block 1 done at 63 + 8 = 71, then 136;
     * 136 is the loader's bound. */
    static const int64_t p[] = {8, 10, 12, 10, 9, 14}, d[] = {9, 12, 14, 12, 11, 17};
    static const int64_t s[] = {18, 22, 26, 20, 20, 30},
                         want[] = {126, 262, 207, 174, 174, 136, 136};
    struct graphs_instance g = {.n_blocks = 6, .n_chunks = 2, .p = p, .d = d, .s = s};
    for (int i = 0; i < 7; i++) {
        ck_assert_int_eq(switch_total(COLUMNS[i], &g), want[i]);
    }
}
END_TEST

START_TEST(modular_vectors_are_exact)
{
    /* p = 10 + 3i mod 5, d = p + 2 and s = 17 + 7i mod 11 have the optimum and greedy of the
     * specification. */
    static const struct {
        uint32_t n, c;
        int64_t exact, greedy;
    } want[] = {{6, 4, 290, 314}, {8, 2, 198, 211}, {8, 4, 386, 420}, {10, 2, 252, 261}};
    for (size_t k = 0; k < sizeof(want) / sizeof(want[0]); k++) {
        struct switch_instance x;
        switch_uniform(&x, want[k].n, want[k].c, 0, 0, 0);
        for (uint32_t i = 0; i < want[k].n; i++) {
            x.p[i] = 10 + 3 * i % 5;
            x.d[i] = x.p[i] + 2;
            x.s[i] = 17 + 7 * i % 11;
        }
        ck_assert_int_eq(switch_total("exact", &x.g), want[k].exact);
        ck_assert_int_eq(switch_total("progressive", &x.g), want[k].greedy);
    }
}
END_TEST

START_TEST(progressive_follows_the_figure_of_the_paper)
{
    /* (P1,P2 | load P6) (P3,P4 | P5) (P5,P6 on G2 | P4), (P1,P2 | P3) (P3,P4 on G2 | P2)
     * (P5,P6 on G2 | P1); rounds start at 0, 20, 40, 62, 82, 104. */
    static const uint32_t block[] = {5, 4, 3, 2, 1, 0};
    static const int64_t start[] = {0, 20, 40, 62, 82, 104};
    struct switch_instance x;
    struct graphs_result r;
    switch_uniform(&x, 6, 2, 10, 11, 20);
    graphs_strategy_find("progressive")->solve(&x.g, &r);
    int loads = 0;
    int g2 = 0;
    for (size_t i = 0; i < r.n_intervals; i++) {
        if (r.intervals[i].kind == GRAPHS_LOAD_G2) {
            ck_assert_uint_eq(r.intervals[i].block, block[loads]);
            ck_assert_int_eq(r.intervals[i].start, start[loads]);
            ck_assert_int_eq(r.intervals[i].end, start[loads] + 20);
            ck_assert_uint_eq(r.intervals[i].chunk, loads < 3 ? 0 : 1);
            loads++;
        }
        g2 += r.intervals[i].kind == GRAPHS_COMPUTE_G2;
    }
    ck_assert_int_eq(loads, 6);
    ck_assert_int_eq(g2, 6); /* 5, 6 in chunk 1; 3 to 6 in chunk 2 */
    ck_assert_int_eq(r.stall, 0);
    ck_assert_uint_eq(r.memory_peak_blocks, 6);
    graphs_result_fini(&r);
}
END_TEST

/* Checks a schedule against the rules alone; returns the sum of its computes. */
static int64_t check_rules(const struct graphs_instance *g, const struct graphs_result *r,
                           bool switches)
{
    int64_t compute_end = 0, load_end = 0, computed = 0;
    uint32_t position = 0;
    for (size_t i = 0; i < r->n_intervals; i++) {
        const struct graphs_interval *a = &r->intervals[i];
        if (a->kind == GRAPHS_LOAD_G2) {
            ck_assert_int_ge(a->start, load_end); /* one loader */
            load_end = a->end;
            ck_assert_int_eq(a->end - a->start, g->s[a->block]);
            continue;
        }
        ck_assert_int_ge(a->start, compute_end); /* one compute server, in stream order */
        ck_assert_uint_eq(a->block, position % g->n_blocks);
        ck_assert_uint_eq(a->chunk, position / g->n_blocks);
        bool switched = false;
        for (size_t j = 0; switches && j < r->n_intervals; j++) {
            const struct graphs_interval *l = &r->intervals[j];
            if (l->kind == GRAPHS_LOAD_G2 && l->block == a->block) {
                switched = l->end <= a->start;
                ck_assert(g->keep_old || switched || l->start >= a->end); /* never at once */
            }
        }
        ck_assert(!switches || switched == (a->kind == GRAPHS_COMPUTE_G2));
        int64_t t = a->kind == GRAPHS_COMPUTE_G2 ? g->d[a->block] : g->p[a->block];
        ck_assert_int_eq(a->end - a->start, t);
        compute_end = a->end;
        computed += t;
        position++;
    }
    ck_assert_uint_eq(position, g->n_blocks * g->n_chunks);
    ck_assert_uint_eq(r->n_intervals, position + (switches ? g->n_blocks : 0));
    ck_assert_int_eq(r->prefill_end, compute_end);
    ck_assert_int_eq(r->switch_end, load_end);
    ck_assert_int_eq(r->total, compute_end > load_end ? compute_end : load_end);
    return computed;
}

/* Blocks there at the worst moment: one more while a block is loaded that still computes. */
static uint32_t peak_blocks(const struct graphs_instance *g, const struct graphs_result *r)
{
    bool twice = false;
    for (size_t i = 0; i < r->n_intervals && g->keep_old; i++) {
        const struct graphs_interval *l = &r->intervals[i];
        for (size_t k = 0; k < r->n_intervals && l->kind == GRAPHS_LOAD_G2; k++) {
            const struct graphs_interval *c = &r->intervals[k];
            twice =
                twice || (c->kind != GRAPHS_LOAD_G2 && c->block == l->block && c->end > l->start);
        }
    }
    return g->n_blocks + twice;
}

static void check_all_strategies(uint64_t i, bool keep_old)
{
    size_t n;
    const struct graphs_strategy *st = graphs_strategies(&n);
    struct switch_instance x;
    switch_random(&x, i, 5, 5, 12);
    x.g.keep_old = keep_old;
    int64_t exact = switch_total("exact", &x.g);
    for (size_t k = 0; k < n; k++) {
        struct graphs_result r;
        st[k].solve(&x.g, &r);
        int64_t computed = check_rules(&x.g, &r, st[k].switches);
        ck_assert_int_eq(r.stall, r.prefill_end - computed);
        ck_assert_msg(!st[k].switches || r.total >= exact, "%s is below exact on instance %lu",
                      st[k].name, (unsigned long)i);
        ck_assert_msg(strcmp(st[k].name, "exact") != 0 || r.label != GRAPHS_UNFINISHED, "finishes");
        ck_assert_msg(!st[k].switches || r.memory_peak_blocks == peak_blocks(&x.g, &r),
                      "%s: %u blocks on instance %lu", st[k].name, r.memory_peak_blocks,
                      (unsigned long)i);
        graphs_result_fini(&r);
    }
    ck_assert_int_le(switch_total("late-start", &x.g), switch_total("progressive", &x.g));
    ck_assert_int_le(switch_total("late-start", &x.g), switch_total("sync", &x.g));
}

START_TEST(schedules_obey_the_rules_and_none_is_below_exact)
{
    for (uint64_t i = 0; i < N_INSTANCES; i++) {
        check_all_strategies(i, false);
        check_all_strategies(i, true);
    }
}
END_TEST

/* When a block computes next after the instant t, if no load is added to those that interval `load`
 * follows; INT64_MAX: never. *runs: it computes at t. */
static int64_t used_next(const struct graphs_instance *g, const struct graphs_result *r,
                         size_t load, uint32_t block, bool *runs, bool *there)
{
    const int64_t t = r->intervals[load].start;
    bool switched[GRAPHS_MAX_BLOCKS] = {false};
    int64_t at = t;
    uint32_t position = 0;
    *runs = false;
    for (size_t i = 0; i < r->n_intervals; i++) {
        const struct graphs_interval *a = &r->intervals[i];
        if (a->kind == GRAPHS_LOAD_G2) {
            switched[a->block] = switched[a->block] || (i < load && a->end <= t);
        } else if (a->start < t) {
            position++;
            at = a->end > t ? a->end : at;
            *runs = *runs || (a->end > t && a->block == block);
        }
    }
    *there = switched[block];
    while (position < g->n_blocks * g->n_chunks && position % g->n_blocks != block) {
        uint32_t b = position++ % g->n_blocks;
        at += switched[b] ? g->d[b] : g->p[b];
    }
    return position < g->n_blocks * g->n_chunks ? at : INT64_MAX;
}

/* Each load of farthest-next-use ends before its block is used, and of all blocks of which that can
 * be said its block is used last. The highest of equal ones is taken. */
START_TEST(the_block_that_is_used_last_is_loaded)
{
    uint32_t loads = 0;
    for (uint64_t k = 0; k < 2 * N_INSTANCES; k++) {
        struct switch_instance x;
        struct graphs_result r;
        switch_random(&x, k / 2, 5, 5, 12);
        x.g.keep_old = k % 2 == 1;
        graphs_strategy_find("farthest-next-use")->solve(&x.g, &r);
        for (size_t i = 0; i < r.n_intervals; i++) {
            const struct graphs_interval *l = &r.intervals[i];
            if (l->kind != GRAPHS_LOAD_G2 || l->start >= r.prefill_end) {
                continue;
            }
            bool runs, there;
            int64_t last = used_next(&x.g, &r, i, l->block, &runs, &there);
            ck_assert_int_le(l->end, last);
            for (uint32_t b = 0; b < x.g.n_blocks; b++) {
                int64_t use = used_next(&x.g, &r, i, b, &runs, &there);
                bool may = !there && (!runs || x.g.keep_old) && l->start + x.g.s[b] <= use;
                ck_assert_msg(!may || use < last || (use == last && b <= l->block),
                              "instance %lu: block %u is loaded at %ld, not %u", (unsigned long)k,
                              l->block, (long)l->start, b);
            }
            loads++;
        }
        graphs_result_fini(&r);
    }
    ck_assert_uint_gt(loads, 2 * N_INSTANCES);
}
END_TEST

START_TEST(keep_both_is_faster_and_twice_as_large)
{
    /* No load and no G2 prefill: C * sum p = 120 < 125, at 2 * 6 blocks of memory. */
    struct switch_instance x;
    struct graphs_result r;
    switch_uniform(&x, 6, 2, 10, 11, 20);
    graphs_strategy_find("keep-both")->solve(&x.g, &r);
    ck_assert_int_eq(r.total, 120);
    ck_assert_uint_eq(r.memory_peak_blocks, 12);
    ck_assert_int_eq(switch_total("unified-g2", &x.g), 132); /* 2 * 6 * 11 */
    graphs_result_fini(&r);
}
END_TEST

START_TEST(keeping_the_old_graph_hides_a_load_behind_its_own_block)
{
    /* There are one block and two chunks, with p 10, d 12 and s 5. By itself 20 + 5 at the end
     * beats 10 + 5 + 12. When G1 is kept, the load runs inside chunk 2, from 10 to 15. The total is
     * 20 = C * p, with two block graphs resident. */
    struct switch_instance x;
    struct graphs_result r;
    switch_uniform(&x, 1, 2, 10, 12, 5);
    ck_assert_int_eq(switch_total("exact", &x.g), 25);
    x.g.keep_old = true;
    graphs_strategy_find("exact")->solve(&x.g, &r);
    ck_assert_int_eq(r.total, 20);
    ck_assert_uint_eq(r.memory_peak_blocks, 2);
    graphs_result_fini(&r);
    graphs_strategy_find("sync")->solve(&x.g, &r);
    ck_assert_uint_eq(r.memory_peak_blocks, 1); /* nothing of G1 is needed any more */
    graphs_result_fini(&r);
}
END_TEST

START_TEST(loads_of_length_zero_switch_at_once)
{
    /* s = 0: load everything after the prefill at no cost; the total is C * sum p = 60. */
    struct switch_instance x;
    switch_uniform(&x, 3, 2, 10, 11, 0);
    ck_assert_int_eq(switch_total("exact", &x.g), 60);
    ck_assert_int_eq(switch_total("sync", &x.g), 60);
    /* Progressive, k* = 1: (1 | 3) (2 | 1, as 2 is in its own window) (3 on G2 | 2), then a chunk
     * on G2: 10 + 10 + 11 + 33. */
    ck_assert_int_eq(switch_total("progressive", &x.g), 64);
}
END_TEST

START_TEST(bad_instances_are_refused_with_one_line_each)
{
    struct switch_instance x;
    struct err e = ERR_INIT;
    switch_uniform(&x, 3, 2, 10, 11, 20);
    ck_assert_int_eq(graphs_instance_check(&x.g, "test", &e), 0);
    x.d[1] = 9;
    x.s[2] = -1;
    ck_assert_int_lt(graphs_instance_check(&x.g, "test", &e), 0);
    ck_assert_uint_eq(e.n, 2);
    ck_assert_ptr_nonnull(strstr(e.lines[0], "block 2"));
    ck_assert_ptr_nonnull(strstr(e.lines[1], "block 3"));
    err_fini(&e);
    switch_uniform(&x, GRAPHS_MAX_BLOCKS, GRAPHS_MAX_POSITIONS, 1, 1, 1);
    ck_assert_int_lt(graphs_instance_check(&x.g, "test", &e), 0);
    err_fini(&e);
    ck_assert_ptr_null(graphs_strategy_find("no such"));
}
END_TEST

/* Blocks from 1 to the most there is room for, and chunks as many as positions are left to. */
START_TEST(blocks_and_chunks_have_limits)
{
    static const struct {
        uint32_t blocks, chunks;
        const char *says;
    } rows[] = {
        {0, 1, "test: 0 blocks, accepted are 1 to "},
        {1, 1, NULL},
        {GRAPHS_MAX_BLOCKS, 1, NULL},
        {GRAPHS_MAX_BLOCKS + 1, 1, " blocks, accepted are 1 to "},
        {3, 0, "test: 0 chunks, accepted are 1 to "},
        {3, GRAPHS_MAX_POSITIONS / 3, NULL},
        {3, GRAPHS_MAX_POSITIONS / 3 + 1, " chunks, accepted are 1 to "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct switch_instance x;
        struct err e = ERR_INIT;
        switch_uniform(&x, 3, 2, 1, 2, 3);
        if (rows[i].blocks == GRAPHS_MAX_BLOCKS) {
            switch_uniform(&x, GRAPHS_MAX_BLOCKS, 1, 1, 2, 3);
        }
        x.g.n_blocks = rows[i].blocks;
        x.g.n_chunks = rows[i].chunks;
        ck_assert_int_eq(graphs_instance_check(&x.g, "test", &e) == 0, rows[i].says == NULL);
        ck_assert_uint_eq(e.n, rows[i].says != NULL ? 1u : 0u);
        ck_assert(rows[i].says == NULL || strstr(e.lines[0], rows[i].says) != NULL);
        err_fini(&e);
    }
}
END_TEST

/* Each time of a block is tested by itself, from 0 to the largest. */
START_TEST(times_have_limits)
{
    static const char *const says[] = {"test: p of block 3 is", "test: d of block 3 is",
                                       "test: s of block 3 is"};
    for (int which = 0; which < 3; which++) {
        for (int end = 0; end < 4; end++) {
            static const int64_t values[] = {-1, 0, GRAPHS_MAX_TIME, GRAPHS_MAX_TIME + 1};
            struct switch_instance x;
            struct err e = ERR_INIT;
            switch_uniform(&x, 3, 2, 0, GRAPHS_MAX_TIME, 20);
            (which == 0 ? x.p : which == 1 ? x.d : x.s)[2] = values[end];
            bool ordered = x.d[2] >= x.p[2]; /* else that is said, too */
            bool bad = end == 0 || end == 3;
            ck_assert_int_eq(graphs_instance_check(&x.g, "test", &e) == 0, !bad && ordered);
            ck_assert_uint_eq(e.n, (bad ? 1u : 0u) + (ordered ? 0u : 1u));
            ck_assert(!bad || strstr(e.lines[0], says[which]) != NULL);
            err_fini(&e);
        }
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("switching", .timeout_s = 120),
    LOOP(uniform_vectors_are_exact, (sizeof(VECTORS) / sizeof(VECTORS[0]))),
    TEST(unequal_blocks_vector_is_exact),
    TEST(modular_vectors_are_exact),
    TEST(progressive_follows_the_figure_of_the_paper),
    TEST(schedules_obey_the_rules_and_none_is_below_exact),
    TEST(the_block_that_is_used_last_is_loaded),
    TEST(keep_both_is_faster_and_twice_as_large),
    TEST(keeping_the_old_graph_hides_a_load_behind_its_own_block),
    TEST(loads_of_length_zero_switch_at_once),
    TEST(bad_instances_are_refused_with_one_line_each),
    TEST(blocks_and_chunks_have_limits),
    TEST(times_have_limits),
};
SUITE_MAIN("graphs", suite)

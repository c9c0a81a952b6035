/* The exact switch search is compared with the paper's reduction from 2-Partition and an
 * independent brute force. */
#include <stdlib.h>

#include "tests/helpers/suite.h"
#include "tests/helpers/switching.h"

/* Appendix A: items become blocks with load 1000 a, p = 0, d = 1; one long block of B last. */
static int64_t partition_optimum(const int *items, uint32_t m)
{
    struct switch_instance x;
    int64_t sum = 0;
    switch_uniform(&x, m + 1, 2, 0, 1, 0);
    for (uint32_t i = 0; i < m; i++) {
        x.s[i] = 1000 * items[i];
        sum += items[i];
    }
    x.p[m] = 1000 * sum / 2;
    x.d[m] = x.p[m] + 1;
    return switch_total("exact", &x.g);
}

START_TEST(partition_instances_tell_solvable_from_unsolvable)
{
    /* Solvable: 2B plus one unit for each item that computes chunk 2 on G2, so the smallest half
     * that sums to B counts: {3,2} of 5, {5} of 5, {4,4} or {5,3} of 8. Unsolvable {2,2,2,4}, B =
     * 5: the best split is 4 and 6, one window overruns by a whole item unit, 10000 + 1000. */
    ck_assert_int_eq(partition_optimum((const int[]){3, 1, 1, 2, 2, 1}, 6), 10002);
    ck_assert_int_eq(partition_optimum((const int[]){3, 5, 2}, 3), 10001);
    ck_assert_int_eq(partition_optimum((const int[]){4, 4, 5, 3}, 4), 16002);
    ck_assert_int_eq(partition_optimum((const int[]){2, 2, 2, 4}, 4), 11000);
}
END_TEST

/* The brute force searches breadth-first over unit time steps, with every choice of the rules,
 * deliberate waiting of compute included. It takes small times only. */
struct grid {
    const struct graphs_instance *g;
    uint32_t r_size, l_size;
};

static uint32_t grid_code(const struct grid *b, uint32_t q, uint32_t rest, uint32_t set,
                          uint32_t loading, uint32_t left)
{
    uint32_t n = b->g->n_blocks;
    return (((q * b->r_size + rest) * (1u << n) + set) * (n + 1) + loading) * b->l_size + left;
}

struct frontier {
    uint32_t *now, *next;
    size_t n_now, n_next;
    unsigned char *seen;
};

/* One unit of time from a state whose choices are made; rest 0 means compute waits. */
static void unit_step(const struct grid *b, struct frontier *f, uint32_t q, uint32_t rest,
                      uint32_t set, uint32_t loading, uint32_t left)
{
    if (rest > 0 && --rest == 0) {
        q++;
    }
    if (loading < b->g->n_blocks && --left == 0) {
        set |= 1u << loading;
        loading = b->g->n_blocks;
    }
    uint32_t code = grid_code(b, q, rest, set, loading, left);
    if (f->seen[code] == 0) {
        f->seen[code] = 1;
        f->next[f->n_next++] = code;
    }
}

/* All choices at one instant for the compute, given those of the loader. */
static void choose_compute(const struct grid *b, struct frontier *f, uint32_t q, uint32_t rest,
                           uint32_t set, uint32_t loading, uint32_t left)
{
    const struct graphs_instance *g = b->g;
    unit_step(b, f, q, rest, set, loading, left); /* run on, or wait */
    uint32_t block = q % g->n_blocks;
    if (rest == 0 && q < g->n_blocks * g->n_chunks && (g->keep_old || block != loading)) {
        int64_t t = (set >> block & 1) != 0 ? g->d[block] : g->p[block];
        unit_step(b, f, q, (uint32_t)t, set, loading, left);
    }
}

static bool expand_grid(const struct grid *b, struct frontier *f, uint32_t code)
{
    uint32_t n = b->g->n_blocks;
    uint32_t left = code % b->l_size;
    uint32_t loading = code / b->l_size % (n + 1);
    uint32_t set = code / b->l_size / (n + 1) % (1u << n);
    uint32_t rest = code / b->l_size / (n + 1) / (1u << n) % b->r_size;
    uint32_t q = code / b->l_size / (n + 1) / (1u << n) / b->r_size;
    if (q == n * b->g->n_chunks && set == (1u << n) - 1) {
        return true;
    }
    choose_compute(b, f, q, rest, set, loading, left);
    for (uint32_t k = 0; loading == n && k < n; k++) {
        if ((set >> k & 1) == 0 && (b->g->keep_old || !(rest > 0 && q % n == k))) {
            choose_compute(b, f, q, rest, set, k, (uint32_t)b->g->s[k]);
        }
    }
    return false;
}

static int64_t brute_force(const struct graphs_instance *g, uint32_t max_time)
{
    struct grid b = {g, max_time + 4, 2 * max_time + 1};
    uint32_t codes = grid_code(&b, g->n_blocks * g->n_chunks + 1, 0, 0, 0, 0);
    struct frontier f = {calloc(codes, sizeof(uint32_t)), calloc(codes, sizeof(uint32_t)), 1, 0,
                         calloc(codes, 1)};
    f.now[0] = grid_code(&b, 0, 0, 0, g->n_blocks, 0);
    int64_t t = -1;
    for (int64_t level = 0; t < 0; level++) {
        ck_assert_uint_gt(f.n_now, 0);
        f.n_next = 0;
        for (size_t i = 0; i < f.n_now; i++) {
            if (expand_grid(&b, &f, f.now[i])) {
                t = level;
            }
        }
        uint32_t *swap = f.now;
        f.now = f.next;
        f.next = swap;
        f.n_now = f.n_next;
    }
    free(f.now);
    free(f.next);
    free(f.seen);
    return t;
}

START_TEST(exact_agrees_with_brute_force_on_small_instances)
{
    for (uint64_t i = 0; i < 400; i++) {
        struct switch_instance x;
        switch_random(&x, i, 3, 3, 5);
        int64_t want = brute_force(&x.g, 5);
        ck_assert_msg(switch_total("exact", &x.g) == want,
                      "instance %lu: exact %ld, brute force %ld", (unsigned long)i,
                      (long)switch_total("exact", &x.g), (long)want);
    }
}
END_TEST

/* Where old graphs stay until the new ones are there, a load may do better to start between
 * boundaries. The schedule found then is called least of the left-shifted ones, and optimal only
 * where it is. */
START_TEST(with_keep_old_nothing_is_called_optimal_that_is_not)
{
    uint32_t later_is_better = 0;
    for (uint64_t i = 0; i < 400; i++) {
        struct switch_instance x;
        struct graphs_result r;
        switch_random(&x, i, 3, 3, 5);
        x.g.keep_old = true;
        graphs_strategy_find("exact")->solve(&x.g, &r);
        int64_t want = brute_force(&x.g, 5);
        ck_assert_int_le(r.lower_bound, want);
        ck_assert_int_ge(r.total, want);
        ck_assert(r.label == GRAPHS_OPTIMAL ? r.total == want : r.label == GRAPHS_LEFT_SHIFTED);
        later_is_better += r.total > want;
        graphs_result_fini(&r);
    }
    ck_assert_uint_gt(later_is_better, 0);
    printf("graphs: with keep_old a later start is better in %u of 400\n", later_is_better);
}
END_TEST

START_TEST(a_search_out_of_budget_says_so_and_brackets_the_optimum)
{
    /* p 10 + 3i mod 5, N = 8, C = 4: the optimum is 386. Four states are too few to prove it. */
    struct switch_instance x;
    struct graphs_result r;
    switch_uniform(&x, 8, 4, 0, 0, 0);
    for (uint32_t i = 0; i < 8; i++) {
        x.p[i] = 10 + 3 * i % 5;
        x.d[i] = x.p[i] + 2;
        x.s[i] = 17 + 7 * i % 11;
    }
    x.g.max_nodes = 4;
    graphs_strategy_find("exact")->solve(&x.g, &r);
    ck_assert_int_eq(r.label, GRAPHS_UNFINISHED);
    ck_assert_int_le(r.lower_bound, 386);
    ck_assert_int_ge(r.lower_bound, 376); /* C * sum p = 4 * 94 */
    ck_assert_int_ge(r.total, 386);
    ck_assert_int_eq(r.total, switch_total("farthest-next-use", &x.g)); /* best known */
    graphs_result_fini(&r);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("search", .timeout_s = 120),
    TEST(partition_instances_tell_solvable_from_unsolvable),
    TEST(exact_agrees_with_brute_force_on_small_instances),
    TEST(with_keep_old_nothing_is_called_optimal_that_is_not),
    TEST(a_search_out_of_budget_says_so_and_brackets_the_optimum),
};
SUITE_MAIN("graphs-exact", suite)

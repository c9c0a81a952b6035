/* DDR sharing forms against hand cases, a brute-force solver, and what every form promises. */
#include "sim/api/contention.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/rng.h"
#include "tests/helpers/suite.h"

#define INSTANCES 20000

static void share(const char *form, struct flow *f, uint32_t n, double capacity)
{
    const struct contention_ops *ops = contention_find(form);
    ck_assert_ptr_nonnull(ops);
    for (uint32_t i = 0; i < n; i++) {
        f[i].share_bytes_per_s = (double)NAN; /* every share must be written */
    }
    ops->share(f, n, capacity, NULL);
}

static void expect(const char *form, struct flow *f, uint32_t n, double capacity,
                   const double *shares)
{
    share(form, f, n, capacity);
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_msg(fabs(f[i].share_bytes_per_s - shares[i]) <= 1e-12 * capacity,
                      "%s flow %u: %.17g, expected %.17g", form, i, f[i].share_bytes_per_s,
                      shares[i]);
    }
}

#define FLOW(d, w)                                                                                 \
    {                                                                                              \
        .demand_bytes_per_s = (d), .weight = (w)                                                   \
    }

START_TEST(enough_for_all_leaves_all_whole)
{
    /* 30 + 50 = 80 fit in 80.64 = 0.9 x 89.6. */
    static const char *const forms[] = {"max-min", "none", "proportional", "weighted"};
    for (int i = 0; i < 4; i++) {
        struct flow f[] = {FLOW(30e9, 1), FLOW(50e9, 9)};
        share(forms[i], f, 2, 80.64e9);
        ck_assert_double_eq(f[0].share_bytes_per_s, 30e9);
        ck_assert_double_eq(f[1].share_bytes_per_s, 50e9);
    }
}
END_TEST

START_TEST(max_min_leaves_small_demands_whole)
{
    /* A compute-bound NPU kernel asks 7, a GEMV on the iGPU asks 78; 80 in all: 7 and 73. */
    struct flow two[] = {FLOW(7, 1), FLOW(78, 1)};
    expect("max-min", two, 2, 80, (double[]){7, 73});
    struct flow swapped[] = {FLOW(78, 1), FLOW(7, 1)};
    expect("max-min", swapped, 2, 80, (double[]){73, 7});
    /* Both ask more than half: half each. */
    struct flow equal[] = {FLOW(43, 1), FLOW(78, 1)};
    expect("max-min", equal, 2, 80, (double[]){40, 40});
    /* 90 over {10, 35, 60, 70}: level 22.5 closes 10; 80/3 = 26.67 closes none: 26.67 each. */
    struct flow four[] = {FLOW(60, 1), FLOW(10, 1), FLOW(70, 1), FLOW(35, 1)};
    expect("max-min", four, 4, 90, (double[]){80.0 / 3, 10, 80.0 / 3, 80.0 / 3});
    /* 150: 37.5 closes 10 and 35; 105/2 = 52.5 closes none. */
    expect("max-min", four, 4, 150, (double[]){52.5, 10, 52.5, 35});
    /* 160: level 40 closes 10 and 35; 115/2 = 57.5 < 60. 167: 122/2 = 61 closes 60; rest 62. */
    expect("max-min", four, 4, 167, (double[]){60, 10, 62, 35});
}
END_TEST

START_TEST(max_min_ignores_weights)
{
    struct flow f[] = {FLOW(50, 1), FLOW(50, 100), FLOW(5, 7)};
    expect("max-min", f, 3, 65, (double[]){30, 30, 5}); /* 65 - 5 = 60, halved */
}
END_TEST

START_TEST(proportional_shrinks_all_alike)
{
    /* 20 + 60 + 80 = 160 over 80 leave half of each demand. */
    struct flow f[] = {FLOW(20, 1), FLOW(60, 5), FLOW(80, 2)};
    expect("proportional", f, 3, 80, (double[]){10, 30, 40});
}
END_TEST

START_TEST(weighted_shares_follow_weights_up_to_demand)
{
    /* 80 by 3:1 is 60 and 20. */
    struct flow two[] = {FLOW(70, 3), FLOW(70, 1)};
    expect("weighted", two, 2, 80, (double[]){60, 20});
    /* The first asks only 30 of its 60: the rest goes to the other. */
    struct flow capped[] = {FLOW(30, 3), FLOW(70, 1)};
    expect("weighted", capped, 2, 80, (double[]){30, 50});
    /* 100 by 1:1:2 is 25, 25, 50; the third asks 40, so 60 is left for 1:1, but the second asks
     * 28: the first gets 32. */
    struct flow three[] = {FLOW(50, 1), FLOW(28, 1), FLOW(40, 2)};
    expect("weighted", three, 3, 100, (double[]){32, 28, 40});
}
END_TEST

START_TEST(none_shares_nothing)
{
    struct flow f[] = {FLOW(78, 1), FLOW(78, 1), FLOW(40, 1)};
    expect("none", f, 3, 80, (double[]){78, 78, 40});
}
END_TEST

START_TEST(a_flow_alone_gets_what_it_asks)
{
    for (const char *const *name = contention_names(); *name != NULL; name++) {
        struct flow f[] = {FLOW(78e9, 2)};
        share(*name, f, 1, 78e9); /* the caller raises capacity to the largest demand */
        ck_assert_double_eq(f[0].share_bytes_per_s, 78e9);
        share(*name, f, 0, 78e9); /* no flows: nothing happens */
    }
}
END_TEST

/* Brute force: shares are min(demand, level * weight), and their sum grows with the level, so
 * bisection finds the level that spends the capacity. Doubles have 53 bits: 200 halvings are
 * plenty.
 */
static double level_by_bisection(const struct flow *f, uint32_t n, double capacity, bool weighted)
{
    double low = 0.0;
    double high = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        high = fmax(high, f[i].demand_bytes_per_s / (weighted ? f[i].weight : 1.0));
    }
    for (int step = 0; step < 200; step++) {
        double level = 0.5 * (low + high);
        double sum = 0.0;
        for (uint32_t i = 0; i < n; i++) {
            sum += fmin(f[i].demand_bytes_per_s, level * (weighted ? f[i].weight : 1.0));
        }
        if (sum < capacity) {
            low = level;
        } else {
            high = level;
        }
    }
    return high;
}

/* 1 to 12 flows; a quarter of the demands equal others, some are 0; weights over three decades. */
static uint32_t random_flows(struct rng *r, struct flow *f)
{
    uint32_t n = 1 + rng_below(r, 12);
    for (uint32_t i = 0; i < n; i++) {
        double d = rng_below(r, 8) == 0 ? 0.0 : 90e9 * rng_uniform(r);
        if (i > 0 && rng_below(r, 4) == 0) {
            d = f[i - 1].demand_bytes_per_s;
        }
        f[i] = (struct flow){.demand_bytes_per_s = d, .weight = pow(10.0, 3 * rng_uniform(r) - 1)};
    }
    return n;
}

static double capacity_for(struct rng *r, const struct flow *f, uint32_t n)
{
    double largest = 1.0;
    for (uint32_t i = 0; i < n; i++) {
        largest = fmax(largest, f[i].demand_bytes_per_s);
    }
    return fmax(largest, 160e9 * rng_uniform(r)); /* as the contract says: at least the largest */
}

START_TEST(filling_equals_brute_force)
{
    struct rng r;
    rng_init(&r, rng_key(1, RNG_TEST, 1, 0));
    double worst = 0.0;
    uint32_t contended = 0;
    for (int k = 0; k < INSTANCES; k++) {
        struct flow f[CONTENTION_MAX_FLOWS];
        uint32_t n = random_flows(&r, f);
        double capacity = capacity_for(&r, f, n);
        bool weighted = k % 2 == 1;
        double level = level_by_bisection(f, n, capacity, weighted);
        share(weighted ? "weighted" : "max-min", f, n, capacity);
        for (uint32_t i = 0; i < n; i++) {
            double want = fmin(f[i].demand_bytes_per_s, level * (weighted ? f[i].weight : 1.0));
            worst = fmax(worst, fabs(f[i].share_bytes_per_s - want) / capacity);
            contended += want < f[i].demand_bytes_per_s;
        }
    }
    ck_assert_msg(worst <= 1e-9, "worst deviation %.3g of capacity", worst);
    ck_assert_uint_gt(contended, INSTANCES / 2); /* the test tests something */
}
END_TEST

START_TEST(every_form_keeps_its_promises)
{
    struct rng r;
    rng_init(&r, rng_key(1, RNG_TEST, 2, 0));
    for (int k = 0; k < INSTANCES; k++) {
        struct flow f[CONTENTION_MAX_FLOWS];
        uint32_t n = random_flows(&r, f);
        double capacity = capacity_for(&r, f, n);
        double demand = 0.0;
        for (uint32_t i = 0; i < n; i++) {
            demand += f[i].demand_bytes_per_s;
        }
        for (const char *const *name = contention_names(); *name != NULL; name++) {
            share(*name, f, n, capacity);
            bool whole = strcmp(*name, "none") == 0 || demand <= capacity;
            double sum = 0.0;
            for (uint32_t i = 0; i < n; i++) {
                ck_assert(f[i].share_bytes_per_s >= 0.0);
                ck_assert(f[i].share_bytes_per_s <= f[i].demand_bytes_per_s);
                ck_assert(!whole || f[i].share_bytes_per_s == f[i].demand_bytes_per_s);
                sum += f[i].share_bytes_per_s;
            }
            /* work conservation: what is asked for is either given or all of it is spent; PCCS
             * states slowdowns, not shares, and may leave some */
            double spent = whole ? demand : capacity;
            if (strcmp(*name, "pccs") == 0 && !whole) {
                ck_assert(sum <= capacity * (1 + 1e-12));
                continue;
            }
            ck_assert_msg(fabs(sum - spent) <= 1e-12 * spent, "%s: %.17g of %.17g", *name, sum,
                          spent);
        }
    }
}
END_TEST

START_TEST(order_of_flows_does_not_matter)
{
    struct rng r;
    rng_init(&r, rng_key(1, RNG_TEST, 3, 0));
    for (int k = 0; k < 1000; k++) {
        struct flow f[CONTENTION_MAX_FLOWS];
        struct flow g[CONTENTION_MAX_FLOWS];
        uint32_t n = random_flows(&r, f);
        double capacity = capacity_for(&r, f, n);
        for (const char *const *name = contention_names(); *name != NULL; name++) {
            for (uint32_t i = 0; i < n; i++) {
                g[n - 1 - i] = f[i];
            }
            share(*name, f, n, capacity);
            share(*name, g, n, capacity);
            for (uint32_t i = 0; i < n; i++) {
                ck_assert(fabs(f[i].share_bytes_per_s - g[n - 1 - i].share_bytes_per_s) <=
                          1e-12 * capacity);
            }
        }
    }
}
END_TEST

/* Capacity is 80. A GEMV of the iGPU (device 1) asks 78 of its ceiling 78, and a GEMM of the NPU
 * (device 0) 7 of 28. By max-min they get 73 and 7. With latency 0.16 the GEMV takes 1 + 0.16 * 1 *
 * 7/80 = 1.014 times as long on top, and the GEMM 1 + 0.16 * 0.25 * 73/80 = 1.0365. Alone, neither
 * does. */
START_TEST(latency_slows_what_waits_for_memory)
{
    struct contention_params p = {.ceiling_bytes_per_s = {28, 78}, .latency = 0.16};
    struct flow f[] = {{.demand_bytes_per_s = 7, .weight = 1, .device = 0},
                       {.demand_bytes_per_s = 78, .weight = 1, .device = 1}};
    contention_find("latency")->share(f, 2, 80, &p);
    ck_assert_double_eq_tol(f[0].share_bytes_per_s, 7 / 1.0365, 1e-12);
    ck_assert_double_eq_tol(f[1].share_bytes_per_s, 73 / 1.014, 1e-12);
    contention_find("latency")->share(&f[1], 1, 80, &p);
    ck_assert_double_eq(f[1].share_bytes_per_s, 78);
    f[0].device = 255; /* the loader has no known ceiling, so nothing to slow */
    contention_find("latency")->share(f, 2, 80, &p);
    ck_assert_double_eq(f[0].share_bytes_per_s, 7);
}
END_TEST

/* Capacity is 80, minor 0.1, and the balance at 80. With an own demand of 50 the minor region
 * reaches to 30 external. Next to 20 the slowdown is 1 + 0.1 * 20/80 = 1.025. At 30 it is 1.0375,
 * and at 80 it is 50/40 = 1.25. Next to 55, half way, it is (1.0375 + 1.25) / 2 = 1.14375, and
 * beyond 80 it stays 1.25. So 50 next to 20 gets 50/1.025. The 20 next to 50 (minor, 60 free) gets
 * 20/(1 + 0.1 * 50/80) = 20/1.0625. */
START_TEST(pccs_has_three_regions)
{
    struct contention_params p = {.minor = 0.1, .balance_frac = 1.0};
    struct flow a[] = {FLOW(50, 1), FLOW(20, 1)};
    contention_find("pccs")->share(a, 2, 80, &p);
    ck_assert_double_eq_tol(a[0].share_bytes_per_s, 50 / 1.025, 1e-12);
    ck_assert_double_eq_tol(a[1].share_bytes_per_s, 20 / 1.0625, 1e-12);
    /* 50 and 55 meet. The 50 has the slowdown 1.14375. The 55 has 25 free, a minor end of 1 + 0.1 *
     * 25/80 = 1.03125 and a balance of 55/40 = 1.375. So next to 50 it has 1.03125 + 0.34375 *
     * 25/55 = 1.1875. 43.716 + 46.316 exceed 80, so both shrink by 80 / 90.032. */
    struct flow b[] = {FLOW(50, 1), FLOW(55, 1)};
    contention_find("pccs")->share(b, 2, 80, &p);
    double x = 50 / 1.14375;
    double y = 55 / 1.1875;
    ck_assert_double_eq_tol(b[0].share_bytes_per_s, x * 80 / (x + y), 1e-9);
    ck_assert_double_eq_tol(b[1].share_bytes_per_s, y * 80 / (x + y), 1e-9);
}
END_TEST

START_TEST(names_are_sorted_and_found)
{
    const char *const *names = contention_names();
    for (int i = 0; names[i] != NULL; i++) {
        ck_assert(i == 0 || strcmp(names[i - 1], names[i]) < 0);
        ck_assert_str_eq(contention_find(names[i])->name, names[i]);
    }
    ck_assert_ptr_null(contention_find("maxmin"));
    ck_assert_ptr_null(contention_find(""));
}
END_TEST

static const struct suite_row suite[] = {
    TEST(enough_for_all_leaves_all_whole),
    TEST(max_min_leaves_small_demands_whole),
    TEST(max_min_ignores_weights),
    TEST(proportional_shrinks_all_alike),
    TEST(weighted_shares_follow_weights_up_to_demand),
    TEST(none_shares_nothing),
    TEST(a_flow_alone_gets_what_it_asks),
    TEST(filling_equals_brute_force),
    TEST(every_form_keeps_its_promises),
    TEST(order_of_flows_does_not_matter),
    TEST(latency_slows_what_waits_for_memory),
    TEST(pccs_has_three_regions),
    TEST(names_are_sorted_and_found),
};
SUITE_MAIN("contention", suite)

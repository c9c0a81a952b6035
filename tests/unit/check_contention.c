/* DDR sharing forms: against a water level found by bisection, by their invariants, and by hand. */
#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sim/api/contention.h"
#include "sim/base/rng.h"

#define N_INSTANCES 20000

struct instance {
    struct flow f[CONTENTION_MAX_FLOWS];
    uint32_t n;
    double capacity, demand;
};

static struct rng rng;

static double log_uniform(double low, double high)
{
    return low * exp(rng_uniform(&rng) * log(high / low));
}

/* Demands over four decades, some equal, some zero; capacity from a twentieth of what is asked to
 * half as much again. Few flows most of the time, as on a real machine. */
static void draw(struct instance *x)
{
    x->n = 1 + rng_below(&rng, rng_below(&rng, 4) == 0 ? CONTENTION_MAX_FLOWS : 6);
    x->demand = 0.0;
    for (uint32_t i = 0; i < x->n; i++) {
        uint32_t dice = rng_below(&rng, 10);
        double d = dice == 0 ? 0.0 : log_uniform(1e7, 1e11);
        if (dice == 1 && i > 0) {
            d = x->f[i - 1].demand_bytes_per_s;
        }
        x->f[i] = (struct flow){.demand_bytes_per_s = d,
                                .weight = log_uniform(0.01, 100.0),
                                .device = (uint8_t)rng_below(&rng, 4),
                                .share_bytes_per_s = -1.0};
        x->demand += d;
    }
    x->capacity = x->demand * (0.05 + 1.45 * rng_uniform(&rng));
    if (rng_below(&rng, 20) == 0) {
        x->capacity = x->demand;
    }
}

static void share(const char *form, struct instance *x)
{
    contention_find(form)->share(x->f, x->n, x->capacity, NULL);
}

/* What a water level gives one flow: its demand, or the level times its weight. */
static double at_level(const struct flow *f, bool weighted, double level)
{
    return fmin(f->demand_bytes_per_s, level * (weighted ? f->weight : 1.0));
}

/* The level at which all flows together take the capacity. What they take grows with the level, so
 * 200 halvings of [0, highest useful level] leave nothing but rounding. */
static double bisect(const struct instance *x, bool weighted)
{
    double low = 0.0, high = 0.0;
    for (uint32_t i = 0; i < x->n; i++) {
        high = fmax(high, x->f[i].demand_bytes_per_s / (weighted ? x->f[i].weight : 1.0));
    }
    for (int k = 0; k < 200; k++) {
        double mid = 0.5 * (low + high), taken = 0.0;
        for (uint32_t i = 0; i < x->n; i++) {
            taken += at_level(&x->f[i], weighted, mid);
        }
        if (taken < x->capacity) {
            low = mid;
        } else {
            high = mid;
        }
    }
    return high;
}

static void expect_water_level(const char *form, bool weighted)
{
    int n_short = 0, n_cut = 0;
    rng_init(&rng, rng_key(1, RNG_TEST, weighted, 0));
    for (int k = 0; k < N_INSTANCES; k++) {
        struct instance x;
        draw(&x);
        share(form, &x);
        double level = x.demand <= x.capacity ? (double)INFINITY : bisect(&x, weighted);
        n_short += x.demand > x.capacity;
        for (uint32_t i = 0; i < x.n; i++) {
            double want = at_level(&x.f[i], weighted, level);
            double got = x.f[i].share_bytes_per_s;
            n_cut += want < x.f[i].demand_bytes_per_s;
            ck_assert_msg(fabs(got - want) <= 1e-9 * want,
                          "%s, instance %d, flow %u: %.17g, not %.17g", form, k, i, got, want);
        }
    }
    ck_assert_int_gt(n_short, N_INSTANCES / 2); /* the comparison was not an empty one */
    ck_assert_int_gt(n_cut, N_INSTANCES / 2);
}

START_TEST(max_min_agrees_with_a_bisected_water_level)
{
    expect_water_level("max-min", false);
}
END_TEST

START_TEST(weighted_agrees_with_a_bisected_water_level)
{
    expect_water_level("weighted", true);
}
END_TEST

START_TEST(proportional_gives_every_flow_the_same_part_of_its_demand)
{
    rng_init(&rng, rng_key(1, RNG_TEST, 2, 0));
    for (int k = 0; k < N_INSTANCES; k++) {
        struct instance x;
        draw(&x);
        share("proportional", &x);
        double part = fmin(1.0, x.capacity / x.demand);
        for (uint32_t i = 0; i < x.n && x.demand > 0.0; i++) {
            double want = x.f[i].demand_bytes_per_s * part;
            ck_assert_double_le(fabs(x.f[i].share_bytes_per_s - want), 1e-12 * want);
        }
    }
}
END_TEST

/* The header's invariants, bit by bit where it says "exactly". */
START_TEST(no_form_gives_more_than_is_asked_or_is_there)
{
    static const char *const forms[] = {"max-min", "weighted", "proportional"};
    rng_init(&rng, rng_key(1, RNG_TEST, 3, (uint64_t)_i));
    int n_plenty = 0;
    for (int k = 0; k < N_INSTANCES; k++) {
        struct instance x;
        draw(&x);
        share(forms[_i], &x);
        double sum = 0.0;
        for (uint32_t i = 0; i < x.n; i++) {
            ck_assert_double_ge(x.f[i].share_bytes_per_s, 0.0);
            ck_assert_double_le(x.f[i].share_bytes_per_s, x.f[i].demand_bytes_per_s);
            if (x.demand <= x.capacity) {
                ck_assert_double_eq(x.f[i].share_bytes_per_s, x.f[i].demand_bytes_per_s);
            }
            sum += x.f[i].share_bytes_per_s;
        }
        n_plenty += x.demand <= x.capacity;
        ck_assert_double_le(sum, x.capacity * (1.0 + 1e-12));
        /* Nothing is left unused while somebody wants more. */
        ck_assert_double_ge(sum, fmin(x.capacity, x.demand) * (1.0 - 1e-12));
    }
    ck_assert_int_gt(n_plenty, N_INSTANCES / 10);
}
END_TEST

START_TEST(shares_do_not_depend_on_the_order_of_flows_or_on_units)
{
    static const char *const forms[] = {"max-min", "weighted", "proportional"};
    rng_init(&rng, rng_key(1, RNG_TEST, 4, (uint64_t)_i));
    for (int k = 0; k < 2000; k++) {
        struct instance x, back, scaled;
        draw(&x);
        back = x;
        scaled = x;
        scaled.capacity *= 8.0; /* a power of two: no rounding anywhere */
        for (uint32_t i = 0; i < x.n; i++) {
            back.f[i] = x.f[x.n - 1 - i];
            scaled.f[i].demand_bytes_per_s *= 8.0;
        }
        share(forms[_i], &x);
        share(forms[_i], &back);
        share(forms[_i], &scaled);
        for (uint32_t i = 0; i < x.n; i++) {
            double a = x.f[i].share_bytes_per_s;
            double b = back.f[x.n - 1 - i].share_bytes_per_s;
            ck_assert_double_le(fabs(a - b), 1e-9 * a);
            ck_assert_double_eq(scaled.f[i].share_bytes_per_s, 8.0 * a);
        }
    }
}
END_TEST

START_TEST(weighted_with_equal_weights_is_max_min)
{
    rng_init(&rng, rng_key(1, RNG_TEST, 5, 0));
    for (int k = 0; k < 2000; k++) {
        struct instance x, y;
        draw(&x);
        double w = log_uniform(0.01, 100.0);
        for (uint32_t i = 0; i < x.n; i++) {
            x.f[i].weight = w;
        }
        y = x;
        share("weighted", &x);
        share("max-min", &y);
        for (uint32_t i = 0; i < x.n; i++) {
            double a = x.f[i].share_bytes_per_s, b = y.f[i].share_bytes_per_s;
            ck_assert_double_le(fabs(a - b), 1e-9 * b);
        }
    }
}
END_TEST

/* One hand-computed case: capacity, then demands, weights, shares. */
struct hand {
    const char *form;
    double capacity;
    uint32_t n;
    double demand[4], weight[4], want[4];
};

static const struct hand HAND[] = {
    /* 100/3 each: 10 is content. 90 left for two, 45 each: 40 is content. 50 left for the last. */
    {"max-min", 100, 3, {10, 40, 80}, {9, 1, 1}, {10, 40, 50}},
    /* 90/3 = 30 each: nobody is content. */
    {"max-min", 90, 3, {31, 50, 1000}, {1, 1, 1}, {30, 30, 30}},
    /* A demand equal to the level is met: 20, and 40 left for two. */
    {"max-min", 60, 3, {20, 21, 22}, {1, 1, 1}, {20, 20, 20}},
    /* 2 + 3 leave 7 for two. */
    {"max-min", 12, 4, {2, 5, 3, 5}, {1, 1, 1, 1}, {2, 3.5, 3, 3.5}},
    {"max-min", 60, 1, {80}, {1}, {60}},
    {"max-min", 0, 2, {5, 6}, {1, 1}, {0, 0}},
    /* 80/8 = 10 per unit of weight. */
    {"weighted", 80, 3, {100, 100, 100}, {1, 2, 5}, {10, 20, 50}},
    /* The third is content with 30 (its part would be 50); 50 over weights 1 and 2. */
    {"weighted", 80, 3, {100, 100, 30}, {1, 2, 5}, {50.0 / 3, 100.0 / 3, 30}},
    /* 27 is asked and 30 is there: all get their demand, also the second, whose part would be
     * 30/10 * 2 = 6. */
    {"weighted", 30, 2, {12, 15}, {8, 2}, {12, 15}},
    /* Content one after the other: level 1: 3 >= 2; then 7/3 per unit: 2.33 >= 2; then 5/2. */
    {"weighted", 9, 4, {2, 2, 4, 9}, {6, 1, 1, 1}, {2, 2, 2.5, 2.5}},
    /* A weight that drowns the others must leave them a level: 50 - 1 for the second. */
    {"weighted", 50, 2, {1, 100}, {1e12, 1e-6}, {1, 49}},
    /* 100/200 of each. */
    {"proportional", 100, 3, {10, 40, 150}, {1, 7, 1}, {5, 20, 75}},
    {"proportional", 200, 3, {10, 40, 150}, {1, 1, 1}, {10, 40, 150}},
    /* No sharing: what each takes alone. */
    {"none", 100, 3, {10, 40, 150}, {1, 1, 1}, {10, 40, 150}},
};

START_TEST(hand_computed_shares)
{
    const struct hand *h = &HAND[_i];
    struct flow f[4];
    for (uint32_t i = 0; i < h->n; i++) {
        f[i] = (struct flow){.demand_bytes_per_s = h->demand[i], .weight = h->weight[i]};
    }
    contention_find(h->form)->share(f, h->n, h->capacity, NULL);
    for (uint32_t i = 0; i < h->n; i++) {
        ck_assert_msg(fabs(f[i].share_bytes_per_s - h->want[i]) <= 1e-12 * h->want[i],
                      "case %d (%s), flow %u: %.17g, not %.17g", _i, h->form, i,
                      f[i].share_bytes_per_s, h->want[i]);
    }
}
END_TEST

START_TEST(every_listed_form_is_found_and_no_other)
{
    const char *const *names = contention_names();
    int n = 0;
    for (; names[n] != NULL; n++) {
        ck_assert_str_eq(contention_find(names[n])->name, names[n]);
        ck_assert(n == 0 || strcmp(names[n - 1], names[n]) < 0);
    }
    ck_assert_int_eq(n, 4); /* max-min, none, proportional, weighted */
    ck_assert_ptr_null(contention_find("max"));
    ck_assert_ptr_null(contention_find("max-min "));
    ck_assert_ptr_null(contention_find(""));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("contention");
    TCase *c = tcase_create("contention");
    tcase_add_test(c, max_min_agrees_with_a_bisected_water_level);
    tcase_add_test(c, weighted_agrees_with_a_bisected_water_level);
    tcase_add_test(c, proportional_gives_every_flow_the_same_part_of_its_demand);
    tcase_add_loop_test(c, no_form_gives_more_than_is_asked_or_is_there, 0, 3);
    tcase_add_loop_test(c, shares_do_not_depend_on_the_order_of_flows_or_on_units, 0, 3);
    tcase_add_test(c, weighted_with_equal_weights_is_max_min);
    tcase_add_loop_test(c, hand_computed_shares, 0, (int)(sizeof HAND / sizeof HAND[0]));
    tcase_add_test(c, every_listed_form_is_found_and_no_other);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

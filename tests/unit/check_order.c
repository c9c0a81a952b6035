/* policies/common/order.h: requests in order of (key, arrival, id), against a sorted array. */
#include <stdlib.h>

#include "policies/common/order.h"
#include "tests/helpers/suite.h"

enum { N = 2000 };

static struct request requests[N];
static struct order_node nodes[N];
static struct order order;

static void setup(void)
{
    for (uint32_t i = 0; i < N; i++) {
        requests[i] = (struct request){.id = i, .arrival_ns = i, .own = &nodes[i]};
        nodes[i] = (struct order_node){0};
    }
    order = (struct order){0};
}

static int by_order(const void *x, const void *y)
{
    const struct request *const *rx = x;
    const struct request *const *ry = y;
    return order_less(&order, *rx, *ry) ? -1 : order_less(&order, *ry, *rx);
}

static void is_sorted_array(const struct request **member, uint32_t n)
{
    qsort(member, n, sizeof(const struct request *), by_order);
    ck_assert_uint_eq(order.n, n);
    ck_assert_ptr_eq(order_first(&order), n == 0 ? NULL : member[0]);
    ck_assert_ptr_eq(order_last(&order), n == 0 ? NULL : member[n - 1]);
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_ptr_eq(order_prev(&order, member[i]), i == 0 ? NULL : member[i - 1]);
        ck_assert_ptr_eq(order_next(&order, member[i]), i + 1 == n ? NULL : member[i + 1]);
    }
}

/* There are few keys and few arrivals, so that each of the three parts of the order decides. */
START_TEST(members_are_in_order_whoever_comes_and_goes)
{
    static const struct request *member[N];
    struct rng rng;
    uint32_t n = 0;
    rng_init(&rng, 1);
    for (uint32_t i = 0; i < N; i++) {
        requests[i].arrival_ns = rng_below(&rng, 20);
    }
    for (int step = 0; step < 6000; step++) {
        const struct request *r = &requests[rng_below(&rng, 200)];
        if (order_node(&order, r)->of == NULL) {
            order_add(&order, r, (double)rng_below(&rng, 5));
            member[n++] = r;
        } else {
            order_remove(&order, r);
            for (uint32_t i = 0; i < n; i++) {
                member[i] = member[i] == r ? member[--n] : member[i];
            }
        }
        is_sorted_array(member, n);
    }
}
END_TEST

START_TEST(who_is_in_no_order_is_removed_from_none)
{
    order_add(&order, &requests[0], 0.0);
    order_remove(&order, &requests[1]);
    ck_assert_uint_eq(order.n, 1);
}
END_TEST

static uint32_t depth(const struct request *r)
{
    if (r == NULL) {
        return 0;
    }
    uint32_t left = depth(order_node(&order, r)->left);
    uint32_t right = depth(order_node(&order, r)->right);
    return 1 + (left > right ? left : right);
}

/* In order of arrival, as they mostly come, a plain tree would be a list, 2,000 deep. The mean
 * depth of the deepest of n nodes of a random tree is 4.31 ln n - 1.95 ln ln n: 29 for 2,000. */
START_TEST(depth_is_logarithmic_for_those_that_come_in_order)
{
    for (uint32_t i = 0; i < N; i++) {
        order_add(&order, &requests[i], 0.0);
    }
    ck_assert_uint_le(depth(order.root), 40);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("order", .setup = setup),
    TEST(members_are_in_order_whoever_comes_and_goes),
    TEST(who_is_in_no_order_is_removed_from_none),
    TEST(depth_is_logarithmic_for_those_that_come_in_order),
};
SUITE_MAIN("order", suite)

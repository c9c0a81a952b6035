/* Clients' accounts against a linear scan. */

#include "policies/common/accounts.h"
#include "sim/base/rng.h"
#include "tests/helpers/suite.h"

enum { CLIENTS = 200, STEPS = 20000 };

/* Random entries, exits and charges of up to 200 clients; after each, the smallest service of those
 * who are there. */
START_TEST(least_is_what_a_scan_finds)
{
    struct accounts all = {0};
    struct rng rng;
    rng_init(&rng, 1);
    uint32_t empty = 0;
    for (uint32_t step = 0; step < STEPS; step++) {
        struct account *x = accounts_get(&all, 7 * rng_below(&rng, CLIENTS));
        uint32_t what = rng_below(&rng, 3);
        if (what == 0 && step % 1000 < 500) {
            accounts_enter(&all, x);
        } else if (what == 1 && x->queued > 0) {
            x->queued--;
        } else {
            x->service += rng_below(&rng, 100);
        }
        double least = -1.0;
        uint32_t at = 0;
        uint64_t id;
        for (struct account **a; (a = map_next(&all.index, &at, &id)) != NULL;) {
            bool less = least < 0 || (*a)->service < least;
            least = (*a)->queued > 0 && less ? (*a)->service : least;
        }
        ck_assert_double_eq(accounts_least(&all), least);
        empty += least < 0;
    }
    ck_assert_uint_eq(all.index.n, CLIENTS);
    ck_assert_uint_gt(empty, 0);
    ck_assert_uint_lt(empty, STEPS / 2);
    accounts_fini(&all);
}
END_TEST

/* Ids far apart have accounts of their own, whose addresses stay while others are added. */
START_TEST(an_account_stays_where_it_is)
{
    struct accounts all = {0};
    struct account *first = accounts_get(&all, UINT32_MAX);
    first->service = 5;
    for (uint32_t i = 0; i < 1000; i++) {
        (void)accounts_get(&all, i);
    }
    ck_assert_ptr_eq(accounts_get(&all, UINT32_MAX), first);
    ck_assert_double_eq(first->service, 5);
    ck_assert_double_eq(accounts_least(&all), -1.0);
    accounts_fini(&all);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(least_is_what_a_scan_finds),
    TEST(an_account_stays_where_it_is),
};
SUITE_MAIN("accounts", suite)

/* Data of the live page: cells of time, sets of requests, rows as differences. */
#include <stdlib.h>

#include "experiments/report/cells.h"
#include "experiments/report/spool.h"
#include "sim/base/hash.h"
#include "sim/base/map.h"
#include "sim/base/memory.h"
#include "tests/helpers/suite.h"

#define MS 1000000LL

/* 10 from 0.5 to 2 ms in cells of 1 ms: half of the first cell (5), all of the second (10), none of
 * the third, which ends at 2.5 ms. */
START_TEST(a_cell_has_the_mean_of_a_signal)
{
    static struct cells c;
    cells_init(&c, 2);
    cells_add(&c, 1, MS / 2, 2 * MS, 10.0);
    cells_set(&c, 0, 0, 4.0);
    cells_end(&c, 5 * MS / 2);
    ck_assert_int_eq(c.cell_ns, MS);
    ck_assert_uint_eq(c.n, 3);
    ck_assert_double_eq(cells_mean(&c, 0, 1, 5 * MS / 2), 5.0);
    ck_assert_double_eq(cells_mean(&c, 1, 1, 5 * MS / 2), 10.0);
    ck_assert_double_eq(cells_mean(&c, 2, 1, 5 * MS / 2), 0.0);
    ck_assert_double_eq(cells_mean(&c, 2, 0, 5 * MS / 2), 4.0); /* over its half cell */
}
END_TEST

/* A signal of 8 during the first 3 ms, then another at an instant for which cells of 1 ms do not
 * reach: 4 x 8192 ms need cells of 4 ms. Cell 0 has 3 ms of 8: 6. The last cell ends there. */
START_TEST(cells_widen_and_keep_the_integral)
{
    static struct cells c;
    cells_init(&c, 1);
    cells_add(&c, 0, 0, 3 * MS, 8.0);
    int64_t end = 4LL * CELLS_MAX * MS;
    cells_add(&c, 0, end - 2 * MS, end, 1.0);
    ck_assert_int_eq(c.cell_ns, 4 * MS);
    ck_assert_uint_eq(c.n, CELLS_MAX);
    ck_assert_double_eq(cells_mean(&c, 0, 0, end), 6.0);
    ck_assert_double_eq(cells_mean(&c, 1, 0, end), 0.0);
    ck_assert_double_eq(cells_mean(&c, CELLS_MAX - 1, 0, end), 0.5);
}
END_TEST

/* Set k is {k, 2k, .., k times}: all differ. Asked for again after the map has grown, each has its
 * number. */
START_TEST(equal_sets_have_one_number)
{
    struct map m = {0};
    ck_assert_uint_eq(map_find(&m, 0), MAP_NONE);
    for (int round = 0; round < 2; round++) {
        for (uint32_t k = 1; k <= 3000; k++) {
            uint64_t key = HASH_INIT;
            for (uint32_t i = 0; i < 1 + k % 64; i++) {
                key = hash_u64(key, k * (i + 1));
            }
            ck_assert_uint_eq(map_find(&m, key), round == 0 ? MAP_NONE : k - 1);
            ck_assert_uint_eq(map_number(&m, key), k - 1);
        }
    }
    ck_assert_uint_eq(m.n, 3000);
    ck_assert_uint_eq(map_find(&m, 0), MAP_NONE);
    map_put(&m, 0, 7); /* a key like any other */
    map_put(&m, 0, 8);
    ck_assert_uint_eq(map_find(&m, 0), 8);
    ck_assert_uint_eq(m.n, 3001);
    map_fini(&m);
}
END_TEST

/* Rows are (5, -1), (7, -1), (6, 100). So differences are 5, 2, -1 in the first column and -1, 0,
 * 101 in the second. */
START_TEST(rows_are_differences_to_the_row_above)
{
    struct spool s;
    char *text = NULL;
    size_t size = 0;
    FILE *out = memory_stream(&text, &size);
    spool_init(&s, "a b");
    spool_row(&s, (const int64_t[]){5, -1});
    spool_row(&s, (const int64_t[]){7, -1});
    spool_row(&s, (const int64_t[]){6, 100});
    spool_write(&s, "t", out);
    memory_stream_close(out, &text);
    ck_assert_str_eq(text,
                     "\"t\":{\"columns\":[\"a\",\"b\"],\"rows\":3,\"delta\":\"5,2,-1,-1,0,101\"}");
    free(text);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("live data"),
    TEST(a_cell_has_the_mean_of_a_signal),
    TEST(cells_widen_and_keep_the_integral),
    TEST(equal_sets_have_one_number),
    TEST(rows_are_differences_to_the_row_above),
};
SUITE_MAIN("live data", suite)

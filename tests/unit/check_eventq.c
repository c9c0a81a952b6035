/* The event queue against a sorted list, and by hand where instants are equal. */
#include <stdlib.h>
#include <string.h>

#include "sim/base/rng.h"
#include "sim/engine/eventq.h"
#include "tests/helpers/suite.h"

#define N_OPERATIONS 100000
#define MAX_LIVE 4000

/* The reference has entries sorted by (time, order), and finds them by a walk. */
struct entry {
    int64_t time_ns;
    uint64_t order, payload;
};

struct list {
    struct entry v[MAX_LIVE];
    size_t n;
};

static struct list list;
static struct eventq q;

static void setup(void)
{
    list.n = 0;
}

static void teardown(void)
{
    eventq_fini(&q);
}

static void list_insert(struct entry x)
{
    size_t i = 0;
    while (i < list.n && (list.v[i].time_ns < x.time_ns ||
                          (list.v[i].time_ns == x.time_ns && list.v[i].order < x.order))) {
        i++;
    }
    memmove(&list.v[i + 1], &list.v[i], (list.n - i) * sizeof list.v[0]);
    list.v[i] = x;
    list.n++;
}

static struct entry list_remove(size_t i)
{
    struct entry x = list.v[i];
    list.n--;
    memmove(&list.v[i], &list.v[i + 1], (list.n - i) * sizeof list.v[0]);
    return x;
}

/* Takes the earliest event from both, and compares the two. */
static void pop_both(void)
{
    const struct eventq_event *head = eventq_peek(&q);
    struct entry want = list_remove(0);
    ck_assert_uint_eq(head->payload, want.payload);
    ck_assert_uint_eq(head->order, want.order);
    struct eventq_event got = eventq_pop(&q);
    ck_assert_int_eq(got.time_ns, want.time_ns);
    ck_assert_uint_eq(got.order, want.order);
    ck_assert_uint_eq(got.payload, want.payload);
}

/* No event is before its parent, and there is room for all. */
static void expect_well_formed(void)
{
    ck_assert_uint_le(q.n, q.cap);
    for (uint32_t i = 1; i < q.n; i++) {
        ck_assert(!eventq_before(&q.heap[i], &q.heap[(i - 1) / 4]));
    }
}

/* Operations in proportions that change every 10,000: the queue fills to a thousand and drains.
 * Instants come from a narrow range, so that most of them are equal to others. */
START_TEST(random_operations_agree_with_a_sorted_list)
{
    struct rng r;
    rng_init(&r, rng_key(1, RNG_TEST, (uint64_t)_i, 0));
    const uint32_t range = _i == 0 ? 100 : _i == 1 ? 1000000000 : 1;
    uint64_t n_done[4] = {0};
    for (uint64_t k = 0; k < N_OPERATIONS; k++) {
        bool filling = k / 10000 % 2 == 0;
        uint32_t dice = rng_below(&r, 100);
        if (list.n == 0 || (dice < (filling ? 48U : 20U) && list.n < MAX_LIVE - 1)) {
            struct entry x = {.time_ns = (int64_t)rng_below(&r, range) - (int64_t)(range / 2),
                              .order = rng_mix64(k), /* a bijection gives no two equal */
                              .payload = k};
            eventq_push(&q, x.time_ns, x.order, x.payload);
            list_insert(x);
            n_done[0]++;
        } else if (dice < 60) {
            struct entry x = list_remove(rng_below(&r, (uint32_t)list.n));
            eventq_cancel(&q, x.order);
            n_done[1]++;
        } else if (dice < 75) {
            struct entry x = list_remove(rng_below(&r, (uint32_t)list.n));
            eventq_cancel(&q, x.order);
            x.time_ns = (int64_t)rng_below(&r, range) - (int64_t)(range / 2);
            eventq_push(&q, x.time_ns, x.order, x.payload);
            list_insert(x);
            n_done[2]++;
        } else {
            pop_both();
            n_done[3]++;
        }
        ck_assert_uint_eq(q.n, list.n);
        if (k % 500 == 0) {
            expect_well_formed();
        }
    }
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_gt(n_done[i], N_OPERATIONS / 20);
    }
    while (list.n > 0) {
        pop_both();
    }
    ck_assert(eventq_empty(&q));
    expect_well_formed();
}
END_TEST

START_TEST(equal_instants_come_out_by_order_not_by_history)
{
    /* Five events are pushed in all 5! orders. They come always as b d (time 3), then a c e (time
     * 7). */
    static const struct {
        int64_t time_ns;
        uint64_t order;
        char name;
    } events[5] = {{7, 1, 'a'}, {3, 5, 'b'}, {7, 4, 'c'}, {3, 8, 'd'}, {7, 9, 'e'}};
    int n = 0;
    for (int code = 0; code < 3125; code++) { /* 5^5 tuples, the 120 permutations among them */
        int pick[5], seen = 0;
        for (int i = 0, c = code; i < 5; i++, c /= 5) {
            pick[i] = c % 5;
            seen |= 1 << pick[i];
        }
        if (seen != 31) {
            continue;
        }
        n++;
        for (int i = 0; i < 5; i++) {
            eventq_push(&q, events[pick[i]].time_ns, events[pick[i]].order,
                        (uint64_t)events[pick[i]].name);
        }
        char out[6] = "";
        for (int i = 0; i < 5; i++) {
            out[i] = (char)eventq_pop(&q).payload;
        }
        ck_assert_str_eq(out, "bdace");
    }
    ck_assert_int_eq(n, 120);
}
END_TEST

START_TEST(orders_survive_growth)
{
    /* 1000 events come at 1000..1, so the queue grows 32 -> 1024. Then the events at even times are
     * cancelled, and 500 odd ones remain, 1 3 5 ... 999. */
    for (int t = 1000; t >= 1; t--) {
        eventq_push(&q, t, (uint64_t)t, (uint64_t)t);
    }
    ck_assert_uint_eq(q.cap, 1024);
    for (int t = 2; t <= 1000; t += 2) {
        eventq_cancel(&q, (uint64_t)t);
    }
    expect_well_formed();
    for (int t = 1; t < 1000; t += 2) {
        ck_assert_int_eq(eventq_pop(&q).time_ns, t);
    }
    ck_assert(eventq_empty(&q));
    /* Memory never shrinks, so the next 1024 need no growth. */
    for (uint64_t k = 0; k < 1024; k++) {
        eventq_push(&q, 0, k, k);
    }
    ck_assert_uint_eq(q.cap, 1024);
    eventq_push(&q, 0, 1024, 1024);
    ck_assert_uint_eq(q.cap, 2048);
}
END_TEST

START_TEST(a_cancelled_event_may_have_to_move_up)
{
    /* Heap, children of i at 4i+1..4i+4: root 1; its children 10, 2, 3, 4; the children of 10 are
     * 11, 12, 13, 14, those of 2 start with 5, which is last in the array. Cancelling 11 puts 5 in
     * its place under 10: it must rise. */
    const int64_t times[] = {1, 10, 2, 3, 4, 11, 12, 13, 14, 5};
    const int64_t want[] = {1, 2, 3, 4, 5, 10, 12, 13, 14};
    for (int i = 0; i < 10; i++) {
        eventq_push(&q, times[i], (uint64_t)i, 0);
    }
    ck_assert_int_eq(q.heap[5].time_ns, 11); /* the layout is as drawn */
    ck_assert_int_eq(q.heap[9].time_ns, 5);
    eventq_cancel(&q, 5);
    for (int i = 0; i < 9; i++) {
        ck_assert_int_eq(eventq_pop(&q).time_ns, want[i]);
    }
}
END_TEST

START_TEST(the_ends_of_the_time_and_order_ranges_compare_right)
{
    eventq_push(&q, INT64_MAX, 0, 5);
    eventq_push(&q, 0, UINT64_MAX, 4);
    eventq_push(&q, INT64_MIN, UINT64_MAX, 2);
    eventq_push(&q, 0, 1ULL << 63, 3); /* order is unsigned: 2^63 < 2^64 - 1 */
    eventq_push(&q, INT64_MIN, 0, 1);
    for (uint64_t k = 1; k <= 5; k++) {
        ck_assert_uint_eq(eventq_pop(&q).payload, k);
    }
}
END_TEST

START_TEST(the_only_event_can_be_cancelled)
{
    eventq_push(&q, 5, 7, 1);
    eventq_cancel(&q, 7);
    ck_assert(eventq_empty(&q));
    eventq_push(&q, 1, 7, 2); /* its order may be used again */
    ck_assert_uint_eq(eventq_pop(&q).payload, 2);
    ck_assert(eventq_empty(&q));
}
END_TEST

static const struct suite_row suite[] = {
    CASE("eventq", .setup = setup, .teardown = teardown),
    LOOP(random_operations_agree_with_a_sorted_list, 3),
    TEST(equal_instants_come_out_by_order_not_by_history),
    TEST(orders_survive_growth),
    TEST(a_cancelled_event_may_have_to_move_up),
    TEST(the_ends_of_the_time_and_order_ranges_compare_right),
    TEST(the_only_event_can_be_cancelled),
};
SUITE_MAIN("eventq", suite)

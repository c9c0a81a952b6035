/* The event queue and clock against queueing theory. */
#include <math.h>
#include <stdlib.h>

#include "sim/engine/eventq.h"
#include "tests/helpers/queue.h"
#include "tests/helpers/suite.h"

/* The workload is recorded: C = 1e6, seed 42. Its mean time in system is 10.1708, which a double
 * loop, ns-3 and OMNeT++ gave for the same variates. The theory gives 1 / (1 - 0.9) = 10. */
START_TEST(mm1_gives_the_recorded_mean)
{
    double mean = queue_mm1(1000000, 42);
    printf("oracle: M/M/1 mean time in system %.4f (recorded 10.1708, theory 10)\n", mean);
    ck_assert_double_eq_tol(mean, 10.1708, 0.00005);
}
END_TEST

START_TEST(integer_clock_and_double_loop_agree)
{
    /* A variate loses at most 1 ns by truncation. A customer has two, and a busy period has fewer
     * than 1e5 customers. */
    ck_assert_double_eq_tol(queue_mm1(1000000, 7), queue_mm1_limit(1000000, 7), 1e-4);
}
END_TEST

/* The mean wait at a single server, by the event queue: Poisson arrivals of rate 0.8, service times
 * from `service`, in batches of 50,000 customers. */
struct mg1 {
    double mean, half; /* mean wait, 4 standard errors over 40 batches */
};

static double service_constant(struct rng *r)
{
    (void)r;
    return 1.0;
}

/* Two-point service: 0.5 or 2.5 with probabilities 3/4 and 1/4. Its mean is 1, and its second
 * moment is 0.75 * 0.25 + 0.25 * 6.25 = 1.75. */
static double service_two_point(struct rng *r)
{
    return rng_uniform(r) < 0.75 ? 0.5 : 2.5;
}

static struct mg1 mg1_wait(double (*service)(struct rng *), uint64_t seed)
{
    enum { BATCHES = 40, PER_BATCH = 50000 };
    double batch[BATCHES] = {0};
    struct rng r;
    rng_init(&r, seed);
    struct eventq q = {0};
    static double waiting[1 << 20];
    uint64_t head = 0;
    uint64_t tail = 0;
    uint64_t served = 0;
    bool busy = false;
    eventq_push(&q, (int64_t)(rng_exponential(&r, 1.25) * 1e9), 0, 0);
    while (served < (uint64_t)BATCHES * PER_BATCH) {
        struct eventq_event ev = eventq_pop(&q);
        double now = (double)ev.time_ns / 1e9;
        if (ev.payload == 0) {
            waiting[tail++ & 0xfffff] = now;
            eventq_push(&q, ev.time_ns + (int64_t)(rng_exponential(&r, 1.25) * 1e9), 0, 0);
        } else {
            busy = false;
        }
        if (!busy && head != tail) {
            busy = true;
            batch[served++ / PER_BATCH] += now - waiting[head++ & 0xfffff];
            eventq_push(&q, ev.time_ns + (int64_t)(service(&r) * 1e9), 1, 1);
        }
    }
    eventq_fini(&q);
    struct mg1 out = {0};
    double squares = 0.0;
    for (int i = 0; i < BATCHES; i++) {
        batch[i] /= PER_BATCH;
        out.mean += batch[i] / BATCHES;
    }
    for (int i = 0; i < BATCHES; i++) {
        squares += (batch[i] - out.mean) * (batch[i] - out.mean);
    }
    out.half = 4.0 * sqrt(squares / (BATCHES - 1) / BATCHES);
    return out;
}

START_TEST(md1_mean_wait_is_rho_over_two_times_one_minus_rho)
{
    /* W = rho / (2 mu (1 - rho)) = 0.8 / (2 * 0.2) = 2 */
    struct mg1 w = mg1_wait(service_constant, 11);
    printf("oracle: M/D/1 mean wait %.4f +- %.4f (theory 2), deviation %+.2f %%\n", w.mean, w.half,
           100.0 * (w.mean / 2.0 - 1.0));
    ck_assert_double_lt(w.half, 0.2);
    ck_assert_double_eq_tol(w.mean, 2.0, w.half);
}
END_TEST

START_TEST(mg1_mean_wait_follows_pollaczek_khinchine)
{
    /* W = lambda E[S^2] / (2 (1 - rho)) = 0.8 * 1.75 / 0.4 = 3.5 */
    struct mg1 w = mg1_wait(service_two_point, 12);
    printf("oracle: M/G/1 mean wait %.4f +- %.4f (theory 3.5), deviation %+.2f %%\n", w.mean,
           w.half, 100.0 * (w.mean / 3.5 - 1.0));
    ck_assert_double_lt(w.half, 0.35);
    ck_assert_double_eq_tol(w.mean, 3.5, w.half);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(mm1_gives_the_recorded_mean),
    TEST(integer_clock_and_double_loop_agree),
    TEST(md1_mean_wait_is_rho_over_two_times_one_minus_rho),
    TEST(mg1_mean_wait_follows_pollaczek_khinchine),
};
SUITE_MAIN("queues", suite)

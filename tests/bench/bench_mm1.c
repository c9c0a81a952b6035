/* M/M/1 through the event queue and clock, beside the hand-written limit loop. An event is an
 * arrival or a departure: two per customer. */
#include <stdio.h>

#include "tests/bench/bench.h"
#include "tests/helpers/queue.h"

#define CUSTOMERS 2000000u

static double sink;

static void engine(void *arg)
{
    (void)arg;
    sink += queue_mm1(CUSTOMERS, 42);
}

static void limit(void *arg)
{
    (void)arg;
    sink += queue_mm1_limit(CUSTOMERS, 42);
}

int main(void)
{
    double e = bench_seconds(engine, NULL);
    double l = bench_seconds(limit, NULL);
    printf("M/M/1 event queue   %7.2f M events/s\n", 2e-6 * CUSTOMERS / e);
    printf("M/M/1 limit loop    %7.2f M events/s\n", 2e-6 * CUSTOMERS / l);
    printf("score               %7.2f of the limit (accept 0.42, aim 0.55)\n", l / e);
    return sink > 0.0 ? 0 : 1;
}

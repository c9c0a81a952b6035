#include "tests/bench/bench.h"

#include <stdlib.h>
#include <sys/resource.h>

#include "sim/base/clock.h"

double bench_cpu_s(void)
{
    return 1e-9 * (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static int compare(const void *x, const void *y)
{
    double a = *(const double *)x;
    double b = *(const double *)y;
    return (a > b) - (a < b);
}

double bench_seconds(void (*fn)(void *arg), void *arg)
{
    double t[7];
    fn(arg);
    for (int i = 0; i < 7; i++) {
        double begin = bench_cpu_s();
        fn(arg);
        t[i] = bench_cpu_s() - begin;
    }
    qsort(t, 7, sizeof t[0], compare);
    return t[3];
}

double bench_peak_mb(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_maxrss / 1024.0;
}

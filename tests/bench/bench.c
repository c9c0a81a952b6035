#include "tests/bench/bench.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

double bench_cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *x, const void *y)
{
    double a = *(const double *)x;
    double b = *(const double *)y;
    return (a > b) - (a < b);
}

double bench_seconds(void (*fn)(void *arg), void *arg)
{
    double t[5];
    fn(arg);
    for (int i = 0; i < 5; i++) {
        double begin = bench_cpu_s();
        fn(arg);
        t[i] = bench_cpu_s() - begin;
    }
    qsort(t, 5, sizeof t[0], compare);
    return t[2];
}

double bench_peak_mb(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_maxrss / 1024.0;
}

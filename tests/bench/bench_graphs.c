/* Time of the exact graph-switch search; the aims are N = 8, C = 4 under 50 ms and N = 10, C = 4
 * under 2 s of one core. Printed, never judged. */
#include <stdio.h>
#include <time.h>

#include "hwmodels/graphs.h"

#define MAX_BLOCKS 12
#define REPEATS 5

static double solve_s(uint32_t n, uint32_t c, uint64_t *nodes)
{
    int64_t p[MAX_BLOCKS], d[MAX_BLOCKS], s[MAX_BLOCKS];
    for (uint32_t i = 0; i < n; i++) {
        p[i] = 10 + 3 * i % 5;
        d[i] = p[i] + 2;
        s[i] = 17 + 7 * i % 11;
    }
    struct graphs_instance g = {.n_blocks = n, .n_chunks = c, .p = p, .d = d, .s = s};
    double best = 1e9;
    for (int k = 0; k < REPEATS; k++) {
        struct graphs_result r;
        clock_t begin = clock();
        graphs_strategy_find("exact")->solve(&g, &r);
        double t = (double)(clock() - begin) / CLOCKS_PER_SEC;
        best = t < best ? t : best;
        *nodes = r.nodes;
        graphs_result_fini(&r);
    }
    return best;
}

int main(void)
{
    static const struct {
        uint32_t n, c;
        const char *aim;
    } cases[] = {{8, 4, "50 ms"}, {10, 2, ""}, {10, 4, "2 s"}, {12, 4, ""}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t nodes;
        double t = solve_s(cases[i].n, cases[i].c, &nodes);
        printf("graphs exact N=%u C=%u: %.2f ms, %lu states%s%s\n", cases[i].n, cases[i].c, 1e3 * t,
               (unsigned long)nodes, cases[i].aim[0] != '\0' ? ", aim " : "", cases[i].aim);
    }
    return 0;
}

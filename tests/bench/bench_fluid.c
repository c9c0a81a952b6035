/* Four always-busy flows on one link, max-min: when one completes, its source starts the next, size
 * exponential. Through the engine's jobs and fluid solver. The reference of the
 * recorded measurement is SimGrid's full stack, 0.49 M completions/s on another machine, so the
 * limit loop of this process stands beside it for scale. */
#include <stdio.h>
#include <stdlib.h>

#include "sim/engine/ddr.h"
#include "tests/bench/bench.h"
#include "tests/helpers/queue.h"

#define FLOWS 4u
#define COMPLETIONS 2000000u
#define SIMGRID_M_PER_S 0.49

static struct ziggurat zig;
static double sink;

static void engine_run(void *arg)
{
    (void)arg;
    static struct machine m = {
        .n_devices = FLOWS, .ddr_peak_bytes_per_s = 1e9, .ddr_cap_frac = 1.0};
    static struct sim_setup setup;
    static struct sim_result result;
    sim_setup_defaults(&setup);
    setup.machine = &m;
    setup.contention = contention_find("max-min");
    struct engine *e = calloc(1, sizeof *e);
    e->core.setup = &setup;
    e->core.result = &result;
    struct rng r;
    rng_init(&r, 1);
    struct job jobs[FLOWS];
    for (uint32_t i = 0; i < FLOWS; i++) {
        jobs[i] = (struct job){.rate = 1.0, .speed = 1.0, .share_frac = 1.0, .device = (uint8_t)i};
        double ns = 1e6 * (0.001 + ziggurat_exponential(&zig, &r));
        ddr_join(e, &jobs[i]);
        job_start(e, &jobs[i], ns, ns); /* alone it would take the whole link: 1 byte per ns */
    }
    ddr_settle(e);
    for (uint32_t k = 0; k < COMPLETIONS; k++) {
        struct job *j = ddr_first(e, e->n_jobs);
        e->now_ns = j->end_ns;
        double ns = 1e6 * (0.001 + ziggurat_exponential(&zig, &r));
        job_start(e, j, ns, ns);
        ddr_settle(e);
    }
    sink += (double)e->now_ns;
    free(e);
}

/* Hand-written: equal shares, so the least remaining work completes first. */
static void limit_run(void *arg)
{
    (void)arg;
    struct rng r;
    rng_init(&r, 1);
    double left[FLOWS];
    double now = 0.0;
    for (uint32_t i = 0; i < FLOWS; i++) {
        left[i] = 1e6 * (0.001 + ziggurat_exponential(&zig, &r));
    }
    for (uint32_t k = 0; k < COMPLETIONS; k++) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < FLOWS; i++) {
            best = left[i] < left[best] ? i : best;
        }
        double work = left[best];
        now += work * FLOWS;
        for (uint32_t i = 0; i < FLOWS; i++) {
            left[i] -= work;
        }
        left[best] = 1e6 * (0.001 + ziggurat_exponential(&zig, &r));
    }
    sink += now;
}

int main(void)
{
    ziggurat_init(&zig);
    sink = 0.0;
    engine_run(NULL);
    double engine_ns = sink;
    sink = 0.0;
    limit_run(NULL);
    double limit_ns = sink;
    double e = bench_seconds(engine_run, NULL);
    double l = bench_seconds(limit_run, NULL);
    printf("4 flows, engine      %7.2f M completions/s\n", 1e-6 * COMPLETIONS / e);
    printf("4 flows, limit loop  %7.2f M completions/s\n", 1e-6 * COMPLETIONS / l);
    printf("over SimGrid's 0.49  %7.1f x (accept 10; its figure is from another machine)\n",
           1e-6 * COMPLETIONS / e / SIMGRID_M_PER_S);
    printf("work conserved       simulated time differs by %.2e of it\n",
           (engine_ns - limit_ns) / limit_ns);
    return 0;
}

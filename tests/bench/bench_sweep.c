/* Sweeps of short runs: how much of the CPU time is not simulation (the parent: store, pool), what
 * a second worker gains by the clock, and the parent's peak memory as runs grow. Every figure is
 * the best of three rounds, the two kinds in turn, because other users of the machine only add. The
 * gain needs two idle processors. SWEEP_RUNS sets the size (default 2000). */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "experiments/sweep/sweep.h"
#include "sim/base/clock.h"
#include "tests/bench/bench.h"

#define SPEC "build/bench-sweep.json"
#define STORE "build/bench-sweep.db"
#define ROUNDS 3

struct figures {
    double wall_s, parent_s, workers_s, peak_mb;
};

static void write_spec(unsigned runs, const char *metrics)
{
    FILE *f = fopen(SPEC, "w");
    if (f == NULL) {
        perror(SPEC);
        exit(2);
    }
    (void)fprintf(f,
                  "{\"base\": {\"workload\": \"mixed:reactive_per_min=3,proactive_per_min=6,"
                  "duration_s=60\"}, \"axes\": {\"policy\": [\"agent-xpu-v2\", \"openvino-cb\","
                  " \"llama-cpp\", \"agent-xpu-v1\", \"edf\"], \"rate\": [1, 1.5, 2, 4]},"
                  " \"replications\": %u%s%s}",
                  runs / 20, metrics[0] != '\0' ? ", \"metrics\": " : "", metrics);
    (void)fclose(f);
}

static void remove_store(void)
{
    (void)remove(STORE);
    (void)remove(STORE "-wal");
    (void)remove(STORE "-shm");
}

/* In a process of its own, so that memory and children are this sweep's. */
static void sweep_once(uint32_t jobs, int fd)
{
    struct err e = ERR_INIT;
    struct spec spec;
    remove_store();
    struct store *store = store_open(STORE, STORE_USE_CREATE, &e);
    if (store == NULL || spec_load(&spec, SPEC, true, &e) != 0) {
        err_print(&e, stderr);
        exit(2);
    }
    struct sweep_options opt = {.how = {.parallel = jobs, .cpu_limit_s = 600.0}, .shards = 1};
    struct sweep_result r;
    double before_s = clock_processor_s(RUSAGE_SELF);
    double begin_s = clock_now_s();
    (void)sweep_run(&spec, store, &opt, &r, &e);
    (void)store_close(store, &e);
    struct figures f = {
        .wall_s = clock_now_s() - begin_s,
        .parent_s = clock_processor_s(RUSAGE_SELF) - before_s,
        .workers_s = clock_processor_s(RUSAGE_CHILDREN),
        .peak_mb = bench_peak_mb(),
    };
    err_print(&e, stderr);
    exit(e.n > 0 || write(fd, &f, sizeof f) != sizeof f ? 1 : 0);
}

static struct figures measure(uint32_t jobs)
{
    int fds[2];
    struct figures f = {0};
    if (pipe(fds) != 0) {
        exit(2);
    }
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        sweep_once(jobs, fds[1]);
    }
    (void)close(fds[1]);
    if (read(fds[0], &f, sizeof f) != sizeof f) {
        (void)fprintf(stderr, "the sweep failed\n");
        exit(1);
    }
    (void)close(fds[0]);
    (void)waitpid(pid, NULL, 0);
    return f;
}

static void report(unsigned runs, const char *what, const char *metrics)
{
    write_spec(runs, metrics);
    struct figures best[2] = {{.wall_s = 1e9}, {.wall_s = 1e9}};
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t k = 0; k < 2; k++) {
            struct figures f = measure(k + 1);
            best[k] = f.wall_s < best[k].wall_s ? f : best[k];
        }
    }
    double n = runs;
    (void)printf("%-28s %6u runs: worker %.3f ms, parent %.3f ms a run (%.1f %% overhead); two "
                 "workers %.2fx one (%.2f s, %.2f s); parent's peak %.1f MB\n",
                 what, runs, 1e3 * best[0].workers_s / n, 1e3 * best[0].parent_s / n,
                 100.0 * best[0].parent_s / best[0].workers_s, best[0].wall_s / best[1].wall_s,
                 best[0].wall_s, best[1].wall_s, best[0].peak_mb);
}

int main(void)
{
    static const char usual[] = "[\"reactive.*\", \"proactive.e2e_s.*\", \"energy_j\"]";
    const char *text = getenv("SWEEP_RUNS");
    unsigned runs = text != NULL ? (unsigned)strtoul(text, NULL, 10) : 2000;
    report(runs < 200 ? 200 : runs / 10 / 20 * 20, "latencies and energy kept", usual);
    report(runs / 20 * 20, "latencies and energy kept", usual);
    report(runs / 20 * 20, "all metrics kept", "");
    remove_store();
    (void)remove(SPEC);
    return EXIT_SUCCESS;
}

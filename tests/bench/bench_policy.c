/* Whole runs: kernel events per second of agent-xpu-v2 on the demo workload, and simulated requests
 * per second of the common speed load W1 under openvino-cb (32 sequences, 512 tokens an iteration).
 */
#include <stdio.h>
#include <stdlib.h>

#include "hwmodels/roofline.h"
#include "policies/params.h"
#include "policies/registry.h"
#include "sim/base/json.h"
#include "sim/engine/sim.h"
#include "sim/metrics/metrics.h"
#include "sim/metrics/timeline.h"
#include "tests/bench/bench.h"
#include "traces/traces.h"

struct bench {
    struct soc soc;
    struct llm llm;
    struct roofline model;
    struct trace trace;
    struct sim_setup setup;
    struct policy_params params;
    uint64_t events, kernels, finished;
};

static cJSON *tree(const char *path)
{
    struct err e = ERR_INIT;
    cJSON *t = json_read_file(path, &e);
    err_print(&e, stderr);
    return t;
}

static void load(struct bench *b, const char *soc, const char *policy, const char *params,
                 const char *workload)
{
    struct err e = ERR_INIT;
    cJSON *s = tree(soc_path(soc));
    (void)soc_parse(s, soc, &b->soc, &e);
    cJSON *l = tree(llm_path("llama-3.2-3b"));
    (void)llm_parse(l, "llm", &b->llm, &e);
    roofline_init(&b->model, hwmodel_find("extended"), &b->soc, &b->llm);
    (void)trace_generate_packed(workload, 1, 1.0, &b->trace, &e);
    sim_setup_defaults(&b->setup);
    b->setup.machine = &b->soc.machine;
    b->setup.llm = &b->llm;
    b->setup.truth = &b->model.model;
    b->setup.contention = contention_find("max-min");
    b->setup.trace = &b->trace;
    b->setup.policy = policy_find(policy);
    b->setup.params = &b->params;
    b->setup.seed = 1;
    (void)policy_params_parse(b->setup.policy, params, &b->params, &e);
    if (e.n > 0) {
        err_print(&e, stderr);
        exit(2);
    }
    cJSON_Delete(s);
    cJSON_Delete(l);
}

/* With the metrics a user gets, quantiles by sketch so that memory does not grow with requests. */
static void run(void *arg)
{
    struct bench *b = arg;
    struct metrics_options o = metrics_options_default();
    o.sketch = true;
    o.trace = &b->trace;
    struct metrics *m = metrics_new(&o, &b->soc.machine);
    b->setup.observers[0] = metrics_observer(m);
    b->setup.n_observers = 1;
    static struct sim_result r;
    if (sim_run(&b->setup, &r) != 0) {
        fprintf(stderr, "%s\n", r.message);
        exit(1);
    }
    b->events = r.events;
    b->kernels = r.kernels;
    b->finished = r.audit.finished;
    metrics_free(m);
}

/* Runs with a timeline in place of the metrics, and removes its file. */
static void run_with_timeline(void *arg)
{
    struct bench *b = arg;
    static const char path[] = "bench-timeline.json";
    struct err e = ERR_INIT;
    static const struct timeline_options all;
    struct timeline *t = timeline_open(path, &b->soc.machine, &all, &e);
    if (t == NULL) {
        err_print(&e, stderr);
        exit(2);
    }
    b->setup.observers[0] = timeline_observer(t);
    b->setup.n_observers = 1;
    static struct sim_result r;
    if (sim_run(&b->setup, &r) != 0 || timeline_close(t, true, &e) != 0) {
        fprintf(stderr, "timeline: %s\n", r.message);
        exit(1);
    }
    b->kernels = r.kernels;
    (void)remove(path);
}

static void timeline_cost(void)
{
    struct bench *b = calloc(1, sizeof *b);
    load(b, "core-ultra-5-125h", "agent-xpu-v2", "", "mixed:duration_s=900");
    double without = bench_seconds(run, b);
    double with = bench_seconds(run_with_timeline, b);
    printf("timeline of 15 minutes, %.0f thousand kernels:          %+.2f s of CPU over %.2f s "
           "without "
           "(accept 1)\n",
           1e-3 * (double)b->kernels, with - without, without);
    trace_fini(&b->trace);
    free(b);
}

/* Files read, trace, run and metrics: all that a user waits for but the start of the program. */
struct w1 {
    const char *spec;
    uint64_t events, finished;
};

static void w1_whole(void *arg)
{
    struct w1 *w = arg;
    struct bench *b = calloc(1, sizeof *b);
    load(b, "w1-reference", "openvino-cb", "max_num_seqs=32,max_num_batched_tokens=512", w->spec);
    run(b);
    w->events = b->events;
    w->finished = b->finished;
    trace_fini(&b->trace);
    free(b);
}

static void w1(const char *spec)
{
    struct w1 w = {.spec = spec};
    double s = bench_seconds(w1_whole, &w);
    printf("W1 %-12s %8.0f requests/s, %5.2f M events/s, %4.0f MB peak so far\n", spec,
           (double)w.finished / s, 1e-6 * (double)w.events / s, bench_peak_mb());
}

int main(void)
{
    struct bench *b = calloc(1, sizeof *b);
    load(b, "core-ultra-5-125h", "agent-xpu-v2", "", "mixed:duration_s=9000");
    b->setup.collapse = false;
    double s = bench_seconds(run, b);
    printf(
        "agent-xpu-v2, demo load x 10, every kernel an event: %.2f M kernels/s (accept 1, aim 3)\n",
        1e-6 * (double)b->kernels / s);
    b->setup.collapse = true;
    s = bench_seconds(run, b);
    printf(
        "agent-xpu-v2, undisturbed kernels collapsed:         %.2f M kernels/s, %.2f M events/s\n",
        1e-6 * (double)b->kernels / s, 1e-6 * (double)b->events / s);
    trace_fini(&b->trace);
    free(b);
    timeline_cost();
    printf("trace, run and metrics together (accept 100,000 requests/s at 10,000, linear):\n");
    w1("w1:n=1000");
    w1("w1:n=10000");
    w1("w1:n=100000");
    w1("w1:n=1000000");
    return 0;
}

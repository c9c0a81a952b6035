/* Scheduling cost per event against the number of queued requests, for every order on the
 * iteration-level scheduler, for the vLLM family, for co-serving and for Agent.xpu. Each of n
 * sessions sends its next request when the last one ended, so that n stay in the system; time spent
 * in the policy's hooks (the actions they take included) is counted from the first arrivals on
 * while at least 0.9 n are there. Events are arrivals and ends of launches and passes. From 100 to
 * 10,000 queued, cost that grows with log n doubles at most and linear cost grows a hundredfold;
 * what 10,000 requests miss in the caches comes on top. The exponent e of n^e over the last decade
 * is 1 for linear cost and 0.12 for log n. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hwmodels/roofline.h"
#include "policies/params.h"
#include "policies/registry.h"
#include "sim/base/clock.h"
#include "sim/base/json.h"
#include "sim/base/rng.h"
#include "sim/engine/sim.h"
#include "tests/bench/bench.h"
#include "traces/traces.h"

enum { DEPTHS = 4, TURNS = 4000, RUNS = 5 };

static const uint32_t depths[DEPTHS] = {10, 100, 1000, 10000};

/* The policy, its hooks timed. */
static struct meter {
    const struct policy_ops *of;
    struct policy_ops ops;
    uint32_t depth, live;
    bool started;
    uint64_t events;
    int64_t ns;
} meter;

static void count(const struct sched *s, int64_t begin, bool event)
{
    meter.started = meter.started || s->now_ns > 0;
    if (meter.started && 10 * meter.live >= 9 * meter.depth) {
        meter.ns += clock_now_ns() - begin;
        meter.events += event;
    }
}

static void on_arrived(struct sched *s, const struct request *r)
{
    int64_t begin = clock_now_ns();
    meter.of->request_arrived(s, r);
    meter.live++;
    count(s, begin, true);
}

static void on_launch(struct sched *s, const struct launch *l)
{
    int64_t begin = clock_now_ns();
    meter.of->launch_done(s, l);
    count(s, begin, true);
}

static void on_pass(struct sched *s, const struct pass *p)
{
    uint32_t over = 0;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        over += p->segments[i].request->state == REQUEST_STATE_FINISHED;
    }
    int64_t begin = clock_now_ns();
    meter.of->pass_done(s, p);
    count(s, begin, true);
    meter.live -= over;
}

static void on_schedule(struct sched *s)
{
    int64_t begin = clock_now_ns();
    meter.of->schedule(s);
    count(s, begin, false);
}

static void meter_on(const struct policy_ops *of, uint32_t depth)
{
    meter = (struct meter){.of = of, .ops = *of, .depth = depth};
    meter.ops.request_arrived = on_arrived;
    meter.ops.launch_done = of->launch_done == NULL ? NULL : on_launch;
    meter.ops.pass_done = of->pass_done == NULL ? NULL : on_pass;
    meter.ops.schedule = on_schedule;
}

struct bench {
    struct soc soc;
    struct llm llm;
    struct roofline model;
};

static cJSON *tree(const char *path)
{
    struct err e = ERR_INIT;
    cJSON *t = json_read_file(path, &e);
    err_print(&e, stderr);
    return t;
}

static void load(struct bench *b)
{
    struct err e = ERR_INIT;
    cJSON *s = tree(soc_path("core-ultra-5-125h"));
    cJSON *l = tree(llm_path("llama-3.2-3b"));
    if (soc_parse(s, "soc", &b->soc, &e) != 0 || llm_parse(l, "llm", &b->llm, &e) != 0) {
        err_print(&e, stderr);
        exit(2);
    }
    roofline_init(&b->model, hwmodel_find("extended"), &b->soc, &b->llm);
    cJSON_Delete(s);
    cJSON_Delete(l);
}

/* n sessions of both classes, prompts of 16 to 512 tokens and 1 to 32 out, of so many clients (0:
 * one each). */
static void sessions(uint32_t n, uint32_t clients, struct trace *out)
{
    struct trace_builder b;
    struct rng rng;
    struct err e = ERR_INIT;
    uint32_t turns = 1 + (TURNS + n - 1) / n;
    trace_builder_init(&b);
    rng_init(&rng, 1);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t t = 0; t < turns; t++) {
            struct trace_row row = {.request_id = i * turns + t,
                                    .session_id = i,
                                    .input_tokens = 16 + rng_below(&rng, 497),
                                    .output_tokens = 1 + rng_below(&rng, 32),
                                    .max_output_tokens = 32,
                                    .next = TRACE_NO_ROW,
                                    .turn = (uint16_t)t,
                                    .cls = (uint8_t)(i % 2)};
            struct trace_extra x = trace_extra_none();
            x.client_id = clients > 0 ? i % clients : i;
            trace_builder_add(&b, &row, &x);
        }
    }
    if (trace_build(&b, false, "bench", out, &e) != 0) {
        err_print(&e, stderr);
        exit(2);
    }
}

struct row {
    const char *policy, *params;
    uint32_t clients;
};

/* Time of one event, ns: the least of five runs, as others on the machine only add to it. */
static double cost_ns(struct bench *b, const struct row *row, const struct trace *t, uint32_t depth,
                      uint64_t kv_tokens)
{
    static struct sim_result r;
    double least = 0.0;
    struct err e = ERR_INIT;
    struct policy_params parsed;
    struct sim_setup setup;
    sim_setup_defaults(&setup);
    setup.machine = &b->soc.machine;
    setup.llm = &b->llm;
    setup.truth = &b->model.model;
    setup.contention = contention_find("none");
    setup.trace = t;
    setup.prefix_reuse = false;
    setup.kv_capacity_tokens = kv_tokens;
    setup.params = &parsed;
    setup.policy = &meter.ops;
    for (int i = 0; i < RUNS; i++) {
        meter_on(policy_find(row->policy), depth);
        if (policy_params_parse(&meter.ops, row->params, &parsed, &e) != 0 ||
            sim_run(&setup, &r) != 0) {
            err_print(&e, stderr);
            fprintf(stderr, "%s: %s\n", row->policy, r.message);
            exit(1);
        }
        double run_ns = (double)meter.ns / (double)meter.events;
        least = i == 0 || run_ns < least ? run_ns : least;
    }
    return least;
}

/* Prints the cost at every depth and the growth from 100 to 10,000. */
static void measure(struct bench *b, const struct row *row, uint64_t kv_tokens)
{
    double cost[DEPTHS];
    char name[64];
    (void)snprintf(name, sizeof name, "%s%s%s%s", row->policy, *row->params ? ":" : "", row->params,
                   row->clients > 0 ? " (10 clients)" : "");
    printf("%-28s", name);
    for (int d = 0; d < DEPTHS; d++) {
        struct trace t;
        sessions(depths[d], row->clients, &t);
        cost[d] = cost_ns(b, row, &t, depths[d], kv_tokens);
        printf("%9.0f", cost[d]);
        (void)fflush(stdout);
        trace_fini(&t);
    }
    printf("%13.1f%10.2f\n", cost[3] / cost[1], log10(cost[3] / cost[2]));
}

/* With an argument, that policy only. */
int main(int argc, char **argv)
{
    static const struct row rows[] = {
        {"sjf-input", "", 0},
        {"srpt", "", 0},
        {"mlfq", "", 0},
        {"edf", "", 0},
        {"llf", "", 0},
        {"prema", "", 0},
        {"vtc", "", 0},
        {"vtc", "", 10},
        {"autellix-like", "", 0},
        {"autellix-like", "mode=atlas", 0},
        {"hpf", "", 0},
        {"vllm-v0", "", 0},
        {"vllm-v1", "", 0},
        {"vllm-priority", "mode=v0", 0},
        {"vllm-priority", "mode=v1", 0},
        {"sarathi", "", 0},
        {"sarathi-hetero", "", 0},
        {"conserve-like", "", 0},
        {"hygen-like", "", 0},
        {"agent-xpu-v1", "", 0},
        {"agent-xpu-v2", "", 0},
    };
    const uint64_t enough = 100000000; /* tokens of KV for all */
    const uint64_t scarce = 16384;     /* for about 30 requests */
    struct bench *b = calloc(1, sizeof *b);
    load(b);
    for (int short_of_kv = 0; short_of_kv < 2; short_of_kv++) {
        printf("ns of scheduling per event, KV %s (10,000 / 100: log growth 2, linear 100)\n%-28s",
               short_of_kv ? "for 30 requests" : "for all", "queued");
        for (int d = 0; d < DEPTHS; d++) {
            printf("%9u", depths[d]);
        }
        printf(" 10,000 / 100  exponent\n");
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            if (argc < 2 || strcmp(argv[1], rows[i].policy) == 0) {
                measure(b, &rows[i], short_of_kv ? scarce : enough);
            }
        }
    }
    free(b);
    return 0;
}

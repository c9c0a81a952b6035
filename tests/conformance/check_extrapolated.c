/* The share of a device's kernel time beyond its calibrated range. The metrics count it by launches
 * and by repeated iterations. It must be equal to a sum over every single kernel, in whole runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/run/runner.h"
#include "tests/helpers/randomrun.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/two_models.h"

/* Two ranges: prompts leave the first by their rows, and batches of decodes the second. */
static const struct range {
    uint32_t rows_max, context_max;
    int between; /* shares that are neither almost 0 nor almost 1 */
} ranges[] = {{300, 1500, 3}, {2, 400, 3}};
static uint32_t rows_max, context_max;

struct seen {
    double all_ns[MACHINE_MAX_DEVICES], outside_ns[MACHINE_MAX_DEVICES];
    double rows_ns[MACHINE_MAX_DEVICES], context_ns[MACHINE_MAX_DEVICES];
};

/* Returns the rows of one kernel. A static kernel has a chunk, and the first op of a launch may be
 * a part. The head counts as the rest of its launch does. */
static uint32_t rows_of(const struct kernel_record *k)
{
    const struct launch *l = k->launch;
    bool first = l->op_begin + 1 == l->op_end;
    uint32_t rows = first ? l->rows : l->pass->shape.rows;
    return l->chunk_rows > 0 && rows > l->chunk_rows ? l->chunk_rows : rows;
}

static void note(void *self, const struct kernel_record *k)
{
    struct seen *s = self;
    uint8_t d = k->launch->device;
    bool rows = rows_of(k) > rows_max;
    bool context = k->launch->pass->shape.max_context_tokens > context_max;
    double ns = (double)k->isolated_ns;
    s->all_ns[d] += ns;
    s->rows_ns[d] += rows ? ns : 0.0;
    s->context_ns[d] += context ? ns : 0.0;
    s->outside_ns[d] += rows || context ? ns : 0.0;
}

static void run(const char *policy, const char *workload, struct seen *s, struct metric_list *out)
{
    static struct randomrun how;
    static struct config c;
    static struct config_policy p;
    struct trace t;
    struct runner_result r;
    struct err e = ERR_INIT;
    how = (struct randomrun){.soc = "core-ultra-7-258v", .llm = "llama-3.2-3b", .seed = 1};
    (void)snprintf(how.policy, sizeof how.policy, "%s", policy);
    (void)snprintf(how.workload, sizeof how.workload, "%s", workload);
    ck_assert(randomrun_load(&how, &c, &p, &t));
    for (uint32_t d = 0; d < c.soc.machine.n_devices; d++) {
        for (uint32_t i = 0; i < c.soc.devices[d].n_runtimes; i++) {
            c.soc.devices[d].runtimes[i].valid_rows_max = rows_max;
            c.soc.devices[d].runtimes[i].valid_context_max = context_max;
        }
    }
    struct observer kernels = {.self = s, .wants_kernels = true, .kernel = note};
    struct runner_options opt = {.observer = s != NULL ? &kernels : NULL};
    ck_assert_int_eq(runner_run(&c, &p, &t, how.seed, &opt, &r, &e), 0);
    for (size_t i = 0; i < r.metrics.n; i++) {
        metric_list_put(out, r.metrics.v[i].value, "%s", r.metrics.v[i].name);
    }
    runner_result_fini(&r);
    trace_fini(&t);
    config_fini(&c);
    err_fini(&e);
}

static void agrees(const struct metric_list *l, const char *what, double sum, double all)
{
    double got = metric_list_find(l, what)->value;
    if (all == 0.0) {
        ck_assert_double_nan(got);
    } else {
        ck_assert_double_eq_tol(got, sum / all, 1e-9);
    }
}

START_TEST(shares_are_sums_over_kernels)
{
    static const char *const policies[] = {"openvino-cb",  "agent-xpu-v2", "agent-xpu-v1", "orca",
                                           "hetero-split", "pd-static",    "llama-cpp"};
    static const char *const names[] = {"npu", "igpu", "cpu"};
    int between = 0;
    rows_max = ranges[_i].rows_max;
    context_max = ranges[_i].context_max;
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        struct seen s = {.all_ns = {0.0}};
        struct metric_list seen = {0};
        struct metric_list fast = {0};
        const char *load = "mixed:reactive_per_min=4,proactive_per_min=6,duration_s=240";
        run(policies[i], load, &s, &seen);
        run(policies[i], load, NULL, &fast);
        for (int d = 0; d < 3; d++) {
            char name[64];
            const struct metric_list *lists[] = {&seen, &fast};
            for (int k = 0; k < 2; k++) {
                (void)snprintf(name, sizeof name, "%s.extrapolated_frac", names[d]);
                agrees(lists[k], name, s.outside_ns[d], s.all_ns[d]);
                (void)snprintf(name, sizeof name, "%s.extrapolated_rows_frac", names[d]);
                agrees(lists[k], name, s.rows_ns[d], s.all_ns[d]);
                (void)snprintf(name, sizeof name, "%s.extrapolated_context_frac", names[d]);
                agrees(lists[k], name, s.context_ns[d], s.all_ns[d]);
            }
            double share = s.context_ns[d] / s.all_ns[d];
            between += share > 0.1 && share < 0.9 && s.rows_ns[d] != s.context_ns[d];
        }
        metric_list_fini(&seen);
        metric_list_fini(&fast);
    }
    ck_assert_int_ge(between, ranges[_i].between); /* else the loads would test nothing */
}
END_TEST

/* ---- two models, whose ranges end at 64 and at 40 tokens ---- */

static struct scenario sc;
static struct two_models two;
static struct script script;
static struct hwmodel_ops limited;
static void (*usual)(const struct hwmodel *m, const struct kernel_query *q,
                     struct kernel_cost *out);

static uint32_t limit_of(const struct hwmodel *m, uint8_t device UNUSED)
{
    return m->llm == &sc.llm ? 64 : 40;
}

static void limited_kernel(const struct hwmodel *m, const struct kernel_query *q,
                           struct kernel_cost *out)
{
    usual(m, q, out);
    out->outside = q->shape->max_context_tokens > limit_of(m, q->device);
}

static void count(void *self, const struct kernel_record *k)
{
    const struct work_shape *w = &k->launch->pass->shape;
    *(uint64_t *)self += w->max_context_tokens > (w->model == 0 ? 64 : 40);
}

/* Contexts grow from 33 to 72 and from 31 to 60 tokens. */
START_TEST(each_model_has_its_own_range)
{
    static const struct scenario_request q[] = {{BE, 0, 32, 40, 0, 0}, {BE, 0, 30, 30, 0, 0}};
    uint64_t outside = 0;
    struct observer kernels = {.self = &outside, .wants_kernels = true, .kernel = count};
    for (int seen = 1; seen >= 0; seen--) {
        two_models_by_hand(&sc, &two);
        script = (struct script){.device = IGPU};
        usual = sc.model.ops->kernel;
        limited = *sc.model.ops;
        limited.kernel = limited_kernel;
        limited.context_limit = limit_of;
        sc.model.ops = two.other.model.ops = &limited;
        if (seen) {
            sc.setup.observers[sc.setup.n_observers++] = &kernels;
        }
        two_models_script(&sc, &script, q, (const uint8_t[]){0, 1}, NULL, 2, script_serve);
        ck_assert_uint_eq(sc.result.counters[COUNTER_KERNELS_OUTSIDE_ENVELOPE], outside);
        two_models_fini(&sc);
    }
    ck_assert_uint_gt(outside, 40);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("extrapolated", .timeout_s = 60),
    LOOP(shares_are_sums_over_kernels, 2),
    TEST(each_model_has_its_own_range),
};
SUITE_MAIN("extrapolated", suite)

/* Orders as queue disciplines. The runs are whole runs of the simulator on one device. They are
 * compared job by job with a few lines of queue that are written here, and their means with
 * closed forms. A job is a prompt of n rows of 1 us and one output token, of mean size 1 ms. Its
 * other three kernels take 1 ns each. The load is 0.9 for sample paths and 0.8 for means, and
 * 0.5 where jobs share the device. An order with a wrong key, or a preemption that does not
 * resume, gives other finish times. */
#include <math.h>
#include <stdlib.h>

#include "policies/registry.h"
#include "sim/base/arena.h"
#include "sim/base/rng.h"
#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"

#define ROW_NS 1000
#define EXTRA_NS 3
#define MEAN_ROWS 1000.0
#define MAX_JOBS 20000
#define CLASS_S 1000 /* the time between the deadlines of two classes, longer than any run */

struct job {
    int64_t arrival_ns, size_ns, finish_ns;
    uint32_t rows, cls; /* 0 first */
};

static struct scenario sc;
static struct job jobs[MAX_JOBS], again[MAX_JOBS];

static void on_finished(void *self, int64_t now_ns, const struct request *r)
{
    struct job *j = self;
    j[r->id].finish_ns = now_ns;
}

static double exponential(struct rng *r)
{
    return -log(rng_uniform(r));
}

/* Draws n jobs with exponential sizes and Poisson arrivals. All classes are equally likely. */
static void draw(uint32_t n, uint32_t n_classes, double load, uint64_t seed)
{
    struct rng r;
    rng_init(&r, seed);
    double t_ns = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        t_ns += exponential(&r) * MEAN_ROWS * ROW_NS / load;
        uint32_t rows = 1 + (uint32_t)(exponential(&r) * MEAN_ROWS);
        jobs[i] = (struct job){.arrival_ns = (int64_t)t_ns,
                               .size_ns = (int64_t)rows * ROW_NS + EXTRA_NS,
                               .rows = rows,
                               .cls = rng_below(&r, n_classes)};
    }
}

/* Runs the jobs through a policy. The first class is reactive, and the trace's priority is the
 * class. Deadlines are far apart, so that earliest deadline first serves class by class, and
 * each class in order of arrival. */
static void simulate(const char *policy, const char *params, uint32_t n)
{
    scenario_init(&sc);
    scenario_cost(&sc, -1, OP_FFN, 0.0, ROW_NS / 1e6, 0.0);
    sc.machine.devices[IGPU].can_suspend = true;
    if (strcmp(policy, "llama-cpp") == 0) {
        sc.machine.devices[IGPU].sharing = DEVICE_TIME_SHARED;
        sc.machine.devices[IGPU].max_shared = 16;
    }
    sc.llm.kv_bytes_per_token = 1.0;
    sc.observer = (struct observer){.self = jobs, .request_finished = on_finished};
    scenario_policy(&sc, policy_find(policy), params);
    struct trace *t = &sc.trace;
    t->n = n;
    t->n_first = n;
    t->rows = xcalloc(n, sizeof *t->rows);
    t->extras = xcalloc(n, sizeof *t->extras);
    for (uint32_t i = 0; i < n; i++) {
        t->rows[i] = (struct trace_row){.arrival_ns = jobs[i].arrival_ns,
                                        .request_id = i,
                                        .session_id = i,
                                        .input_tokens = jobs[i].rows,
                                        .output_tokens = 1,
                                        .max_output_tokens = 1,
                                        .next = TRACE_NO_ROW,
                                        .cls = jobs[i].cls == 0 ? REQUEST_CLASS_REACTIVE
                                                                : REQUEST_CLASS_PROACTIVE};
        t->extras[i] = (struct trace_extra){
            .ttft_slo_ns = TIME_NEVER_NS,
            .tbt_slo_ns = TIME_NEVER_NS,
            .deadline_ns =
                jobs[i].cls == 0 ? TIME_NEVER_NS : (int64_t)jobs[i].cls * CLASS_S * NS_PER_S,
            .cancel_ns = TIME_NEVER_NS,
            .client_id = i,
            .priority = (int32_t)jobs[i].cls};
    }
    ck_assert_msg(sim_run(&sc.setup, &sc.result) == 0, "%s: %s", policy, sc.result.message);
    scenario_fini(&sc);
}

/* ---- the queue ---- */

enum rule { FIFO, BY_CLASS, BY_SIZE, BY_REST, SHARED };

static double key_of(const struct job *j, enum rule rule, int64_t rest_ns)
{
    return rule == FIFO       ? 0.0
           : rule == BY_CLASS ? (double)j->cls
           : rule == BY_SIZE  ? (double)j->size_ns
                              : (double)rest_ns;
}

/* Serves with one server: the least key first, and ties in order of arrival. */
static void serve(struct job *q, uint32_t n, enum rule rule, bool preemptive)
{
    static int64_t rest[MAX_JOBS];
    uint32_t done = 0;
    uint32_t first = 0; /* all jobs before it are served */
    uint32_t arrived = 0;
    uint32_t running = n;
    for (int64_t now = 0; done < n;) {
        while (arrived < n && q[arrived].arrival_ns <= now) {
            rest[arrived] = q[arrived].size_ns;
            arrived++;
        }
        while (first < arrived && rest[first] == 0) {
            first++;
        }
        if (running == n || preemptive) {
            for (uint32_t i = first; i < arrived; i++) {
                if (rest[i] > 0 && (running == n || key_of(&q[i], rule, rest[i]) <
                                                        key_of(&q[running], rule, rest[running]))) {
                    running = i;
                }
            }
        }
        int64_t next = arrived < n ? q[arrived].arrival_ns : INT64_MAX;
        if (running == n) {
            now = next;
        } else if (now + rest[running] <= next) {
            now += rest[running];
            rest[running] = 0;
            q[running].finish_ns = now;
            running = n;
            done++;
        } else {
            rest[running] -= next - now;
            now = next;
        }
    }
}

/* Serves all jobs that are there at equal rates. It is O(n) per event. */
static void serve_shared(struct job *q, uint32_t n)
{
    static double rest[MAX_JOBS];
    uint32_t done = 0;
    uint32_t arrived = 0;
    for (double now = 0.0; done < n;) {
        uint32_t least = n;
        uint32_t present = 0;
        for (uint32_t i = 0; i < arrived; i++) {
            present += rest[i] > 0.0;
            least = rest[i] > 0.0 && (least == n || rest[i] < rest[least]) ? i : least;
        }
        double next = arrived < n ? (double)q[arrived].arrival_ns : HUGE_VAL;
        double end = least < n ? now + rest[least] * present : HUGE_VAL;
        double step = (end <= next ? end : next) - now;
        for (uint32_t i = 0; i < arrived; i++) {
            rest[i] -= rest[i] > 0.0 ? step / present : 0.0;
        }
        if (end <= next) {
            now = end;
            rest[least] = 0.0;
            q[least].finish_ns = llround(now);
            done++;
        } else {
            now = next;
            rest[arrived] = (double)q[arrived].size_ns;
            arrived++;
        }
    }
}

/* Returns the largest difference in ns between the policy and the queue, over 10 runs of 300
 * jobs. */
static int64_t apart(const char *policy, const char *params, uint32_t n_classes, enum rule rule,
                     bool preemptive)
{
    /* At most 16 jobs may share the device, and at a load of 0.5 there are never more. */
    double load = rule == SHARED ? 0.5 : 0.9;
    int64_t worst = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        draw(300, n_classes, load, seed);
        memcpy(again, jobs, sizeof again);
        simulate(policy, params, 300);
        rule == SHARED ? serve_shared(again, 300) : serve(again, 300, rule, preemptive);
        for (uint32_t i = 0; i < 300; i++) {
            int64_t d = llabs(jobs[i].finish_ns - again[i].finish_ns);
            worst = d > worst ? d : worst;
        }
    }
    return worst;
}

#define ALONE "max_batch=1,token_budget=1000000"
#define PS "form=ps,slots=16,device=igpu"
#define PREEMPT ",preempt=kernel,level=3"

START_TEST(sample_paths_are_those_of_the_queue)
{
    ck_assert_int_eq(apart("fcfs", "", 1, FIFO, false), 0);
    ck_assert_int_eq(apart("edf", ALONE, 1, FIFO, false), 0);
    ck_assert_int_eq(apart("edf", ALONE, 2, BY_CLASS, false), 0);
    ck_assert_int_eq(apart("edf", ALONE PREEMPT, 2, BY_CLASS, true), 0);
    ck_assert_int_eq(apart("edf", ALONE PREEMPT, 4, BY_CLASS, true), 0);
    ck_assert_int_eq(apart("sjf-input", ALONE, 1, BY_SIZE, false), 0);
    ck_assert_int_eq(apart("sjf-input", ALONE PREEMPT, 1, BY_SIZE, true), 0);
    ck_assert_int_eq(apart("srpt", ALONE, 1, BY_REST, false), 0);
    ck_assert_int_eq(apart("srpt", ALONE PREEMPT, 1, BY_REST, true), 0);
    /* A shared job's time is rounded at every arrival and departure that it sees. */
    ck_assert_int_le(apart("llama-cpp", PS, 1, SHARED, false), 300);
    /* The disciplines differ on these jobs, so the comparison can fail. */
    ck_assert_int_gt(apart("sjf-input", ALONE PREEMPT, 1, BY_REST, true), ROW_NS);
}
END_TEST

/* ---- closed forms ---- */

#define RUNS 16

struct means {
    double value, half; /* in units of the mean size; half is 4 standard errors over the runs */
};

static struct means means_of(const double *mean)
{
    struct means out = {0.0, 0.0};
    for (uint32_t run = 0; run < RUNS; run++) {
        out.value += mean[run] / RUNS;
    }
    for (uint32_t run = 0; run < RUNS; run++) {
        out.half += (mean[run] - out.value) * (mean[run] - out.value);
    }
    out.half = 4.0 * sqrt(out.half / (RUNS - 1) / RUNS);
    return out;
}

#define MAX_CLASSES 4

/* Measures the mean sojourn of each class in each run, in units of the mean size. With `wait`
 * the job's own size is taken off. */
static void measure(const char *policy, const char *params, uint32_t n_classes, bool wait,
                    struct means *of_class)
{
    double mean[MAX_CLASSES][RUNS];
    for (uint32_t run = 0; run < RUNS; run++) {
        double sum[MAX_CLASSES] = {0.0};
        double n[MAX_CLASSES] = {0.0};
        draw(MAX_JOBS, n_classes, 0.8, 100 + run);
        simulate(policy, params, MAX_JOBS);
        for (uint32_t i = MAX_JOBS / 20; i < MAX_JOBS; i++) {
            const struct job *j = &jobs[i];
            sum[j->cls] += (double)(j->finish_ns - j->arrival_ns - (wait ? j->size_ns : 0));
            n[j->cls] += 1.0;
        }
        for (uint32_t k = 0; k < n_classes; k++) {
            mean[k][run] = sum[k] / n[k] / (MEAN_ROWS * ROW_NS);
        }
    }
    for (uint32_t k = 0; k < n_classes; k++) {
        of_class[k] = means_of(mean[k]);
    }
}

static void expect(const char *what, struct means m, double theory, double most_half_frac)
{
    printf("disciplines: %s %.4f +- %.4f (theory %.4f)\n", what, m.value, m.half, theory);
    ck_assert_double_lt(m.half, most_half_frac * theory);
    ck_assert_double_eq_tol(m.value, theory, m.half);
}

/* The load of jobs of sizes up to x, with exponential sizes of mean 1, is load * (1 - (1 + x)
 * e^-x). */
static double load_to(double x, double load)
{
    return load * (1.0 - (1.0 + x) * exp(-x));
}

/* Schrage and Miller (1966): T(x) = load (m2(x) + x^2 (1 - F(x))) / 2 / (1 - load(x))^2 +
 * int_0^x dt / (1 - load(t)). Here m2 is the second moment of sizes up to x. T is averaged over
 * the sizes. */
static double schrage_miller(double load)
{
    const double h = 1e-4;
    double total = 0.0;
    double inner = 0.0;
    for (double x = h / 2; x < 40.0; x += h) {
        double m2 = 2.0 - exp(-x) * (x * x + 2.0 * x + 2.0);
        double slack = 1.0 - load_to(x, load);
        inner += h / slack;
        double wait = load * (m2 + x * x * exp(-x)) / 2.0 / (slack * slack);
        total += h * exp(-x) * (wait + inner - 0.5 * h / slack);
    }
    return total;
}

/* Phipps (1956): W(x) = load E[S^2] / 2 / (1 - load(x))^2 with E[S^2] = 2. W is averaged over
 * the sizes. */
static double phipps(double load)
{
    const double h = 1e-4;
    double total = 0.0;
    for (double x = h / 2; x < 40.0; x += h) {
        double slack = 1.0 - load_to(x, load);
        total += h * exp(-x) * load / (slack * slack);
    }
    return total;
}

START_TEST(srpt_has_the_mean_of_schrage_and_miller)
{
    /* Preemptive shortest job first by total size has a mean 13 % above this one, so it would
     * fail. */
    struct means m;
    measure("srpt", ALONE PREEMPT, 1, false, &m);
    expect("M/M/1 SRPT, mean sojourn", m, schrage_miller(0.8), 0.06);
}
END_TEST

START_TEST(sjf_has_the_mean_of_phipps)
{
    struct means m;
    measure("sjf-input", ALONE, 1, true, &m);
    expect("M/M/1 SJF, mean wait", m, phipps(0.8), 0.1);
}
END_TEST

START_TEST(two_classes_have_the_means_of_cobham)
{
    /* W0 = 0.8 * 2 / 2 = 0.8, so W1 = W0 / (1 - 0.4) and W2 = W1 / (1 - 0.8). With preemption
     * class 1 sees a queue of its own: T1 = 1 / (1 - 0.4). T2 = 1 / (1 - 0.4) + W0 / 0.6 / 0.2. */
    struct means m[2];
    measure("edf", ALONE, 2, true, m);
    expect("Cobham, 2 classes, wait 1", m[0], 0.8 / 0.6, 0.1);
    expect("Cobham, 2 classes, wait 2", m[1], 0.8 / 0.6 / 0.2, 0.2);
    measure("edf", ALONE PREEMPT, 2, false, m);
    expect("preemptive resume, sojourn 1", m[0], 1 / 0.6, 0.1);
    expect("preemptive resume, sojourn 2", m[1], 1 / 0.6 + 0.8 / 0.6 / 0.2, 0.2);
}
END_TEST

START_TEST(four_classes_have_the_means_of_cobham_and_obey_the_conservation_law)
{
    /* Wk = W0 / (1 - s(k-1)) / (1 - s(k)) with s = 0, 0.2, 0.4, 0.6, 0.8. */
    double sum = 0.0;
    struct means m[4];
    measure("vllm-priority", "max_num_seqs=1,max_num_batched_tokens=1000000", 4, true, m);
    for (int k = 0; k < 4; k++) {
        char what[64];
        (void)snprintf(what, sizeof what, "Cobham, 4 classes, wait %d", k + 1);
        expect(what, m[k], 0.8 / (1.0 - 0.2 * k) / (0.8 - 0.2 * k), 0.25);
        sum += 0.2 * m[k].value;
    }
    /* The sum of load(k) W(k) is load W0 / (1 - load) = 3.2 for every order of the classes. Its
     * error is that of the work in the system, which is at most that of the last class. */
    printf("disciplines: conservation law, 4 classes %.4f (theory 3.2)\n", sum);
    ck_assert_double_eq_tol(sum, 3.2, m[3].half);
}
END_TEST

START_TEST(four_classes_with_preemption_have_the_means_of_cobham)
{
    /* Tk = 1 / (1 - s(k-1)) + s(k) / (1 - s(k-1)) / (1 - s(k)), which is 1.25, 2.0833, 4.1667
     * and 12.5. */
    struct means m[4];
    measure("edf", ALONE PREEMPT, 4, false, m);
    for (int k = 0; k < 4; k++) {
        char what[64];
        (void)snprintf(what, sizeof what, "preemptive resume, 4 classes, sojourn %d", k + 1);
        double before = 0.2 * k;
        double upto = 0.2 * (k + 1);
        expect(what, m[k], 1.0 / (1.0 - before) + upto / (1.0 - before) / (1.0 - upto), 0.25);
    }
}
END_TEST

START_TEST(processor_sharing_slows_all_sizes_alike)
{
    /* T(x) = x / (1 - load). At load 0.5 jobs below and above the mean size have a slowdown of
     * 2. */
    double slow[2][RUNS];
    for (uint32_t run = 0; run < RUNS; run++) {
        double sum[2] = {0.0, 0.0};
        double size[2] = {0.0, 0.0};
        draw(MAX_JOBS, 1, 0.5, 100 + run);
        simulate("llama-cpp", PS, MAX_JOBS);
        for (uint32_t i = MAX_JOBS / 20; i < MAX_JOBS; i++) {
            int large = jobs[i].rows > MEAN_ROWS;
            sum[large] += (double)(jobs[i].finish_ns - jobs[i].arrival_ns);
            size[large] += (double)jobs[i].size_ns;
        }
        slow[0][run] = sum[0] / size[0];
        slow[1][run] = sum[1] / size[1];
    }
    expect("PS, slowdown of small jobs", means_of(slow[0]), 2.0, 0.05);
    expect("PS, slowdown of large jobs", means_of(slow[1]), 2.0, 0.05);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("disciplines", .timeout_s = 60),
    TEST(sample_paths_are_those_of_the_queue),
    TEST(srpt_has_the_mean_of_schrage_and_miller),
    TEST(sjf_has_the_mean_of_phipps),
    TEST(two_classes_have_the_means_of_cobham),
    TEST(four_classes_have_the_means_of_cobham_and_obey_the_conservation_law),
    TEST(four_classes_with_preemption_have_the_means_of_cobham),
    TEST(processor_sharing_slows_all_sizes_alike),
};
SUITE_MAIN("disciplines", suite)

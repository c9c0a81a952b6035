/* Closed queues against mean value analysis. Each user thinks for an exponential time, sends a
 * job to one device, and thinks again when it is answered. The runs are whole runs of the
 * simulator, in which every user is a session whose next turn comes a gap after the response. A
 * job is a prompt of n rows of 0.2 ms and one output token, with n exponential of mean 1000. Its
 * other three kernels take 1 ns each. A gap that counts from the arrival instead of the
 * response, or a server that is not shared equally, moves the mean response by more than its
 * error. */
#include <math.h>

#include "policies/registry.h"
#include "sim/base/arena.h"
#include "sim/base/rng.h"
#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"

#define ROW_NS 200000
#define MEAN_ROWS 1000.0
#define SERVICE_S 0.2
#define THINK_S 1.0

enum { RUNS = 12, TURNS = 1200, MAX_USERS = 10 };

static struct scenario sc;
static double sum_s;
static uint32_t counted;

/* Counts the middle nine tenths of every session, in which all users are there. */
static void on_finished(void *self, int64_t now_ns, const struct request *r)
{
    (void)self;
    if (r->turn >= TURNS / 20 && r->turn < TURNS - TURNS / 20) {
        sum_s += units_s_from_ns(now_ns - r->arrival_ns);
        counted++;
    }
}

static double exponential(struct rng *r)
{
    return -log(rng_uniform(r));
}

/* Fills the rows of the trace: the first turn of each user, and then the others, user by user. */
static void draw(struct trace *t, uint32_t users, uint64_t seed)
{
    struct rng r;
    rng_init(&r, seed);
    t->n = (size_t)users * TURNS;
    t->n_first = users;
    t->rows = xcalloc(t->n, sizeof *t->rows);
    for (uint32_t u = 0; u < users; u++) {
        for (uint32_t turn = 0; turn < TURNS; turn++) {
            uint32_t rest = users + u * (TURNS - 1) - 1;
            double think_ns = exponential(&r) * THINK_S * 1e9;
            t->rows[turn == 0 ? u : rest + turn] =
                (struct trace_row){.arrival_ns = turn == 0 ? u : (int64_t)think_ns,
                                   .request_id = u * TURNS + turn,
                                   .session_id = u,
                                   .turn = (uint16_t)turn,
                                   .input_tokens = 1 + (uint32_t)(exponential(&r) * MEAN_ROWS),
                                   .output_tokens = 1,
                                   .max_output_tokens = 1,
                                   .next = turn + 1 < TURNS ? rest + turn + 1 : TRACE_NO_ROW,
                                   .cls = REQUEST_CLASS_REACTIVE};
        }
    }
}

static double response_s(const char *policy, const char *params, uint32_t users, uint64_t seed)
{
    scenario_init(&sc);
    scenario_cost(&sc, -1, OP_FFN, 0.0, ROW_NS / 1e6, 0.0);
    if (strcmp(policy, "llama-cpp") == 0) {
        sc.machine.devices[IGPU].sharing = DEVICE_TIME_SHARED;
        sc.machine.devices[IGPU].max_shared = 16;
    }
    sc.llm.kv_bytes_per_token = 1.0;
    sc.observer = (struct observer){.request_finished = on_finished};
    scenario_policy(&sc, policy_find(policy), params);
    draw(&sc.trace, users, seed);
    sum_s = 0.0;
    counted = 0;
    ck_assert_msg(sim_run(&sc.setup, &sc.result) == 0, "%s: %s", policy, sc.result.message);
    ck_assert_uint_eq(counted, users * (TURNS - TURNS / 10));
    scenario_fini(&sc);
    return sum_s / counted;
}

/* Reiser and Lavenberg (1980): a job that arrives sees the queue as it is with one user less. So
 * R(n) = S (1 + Q(n - 1)), X(n) = n / (Z + R(n)), Q(n) = X(n) R(n). That is exact for one queue
 * in order of arrival with exponential service, and for a shared processor. */
static double mva_response_s(uint32_t users)
{
    double response = 0.0;
    double queue = 0.0;
    for (uint32_t n = 1; n <= users; n++) {
        response = SERVICE_S * (1.0 + queue);
        queue = n / (THINK_S + response) * response;
    }
    return response;
}

static void expect(const char *policy, const char *params, uint32_t users)
{
    double run[RUNS];
    double mean = 0.0;
    double half = 0.0;
    double theory = mva_response_s(users);
    for (uint32_t i = 0; i < RUNS; i++) {
        run[i] = response_s(policy, params, users, 200 + i);
        mean += run[i] / RUNS;
    }
    for (uint32_t i = 0; i < RUNS; i++) {
        half += (run[i] - mean) * (run[i] - mean);
    }
    half = 4.0 * sqrt(half / (RUNS - 1) / RUNS); /* 4 standard errors */
    printf("closed: %s, %u users, response %.4f +- %.4f s (MVA %.4f)\n", policy, users, mean, half,
           theory);
    ck_assert_double_lt(half, 0.06 * theory);
    ck_assert_double_eq_tol(mean, theory, half);
}

/* One user never waits: 0.2 s. Two have 0.2 (1 + 0.2 / 1.2) = 0.2333 s. Three have Q(2) = 2 /
 * 1.2333 * 0.2333 = 0.3784, so 0.2757 s. Ten ask for more than the machine has, and have a
 * little more than 10 * 0.2 - 1 = 1 s. */
START_TEST(mean_value_analysis_is_what_it_should_be)
{
    ck_assert_double_eq_tol(mva_response_s(1), 0.2, 1e-12);
    ck_assert_double_eq_tol(mva_response_s(3), 0.27568, 1e-5);
    ck_assert_double_gt(mva_response_s(10), 1.0);
    ck_assert_double_lt(mva_response_s(10), 1.1);
}
END_TEST

START_TEST(users_in_order_of_arrival_have_the_response_of_mva)
{
    expect("fcfs", "", 3);
    expect("fcfs", "", 10);
}
END_TEST

START_TEST(users_who_share_the_processor_have_the_response_of_mva)
{
    expect("llama-cpp", "form=ps,slots=16,device=igpu", 3);
    expect("llama-cpp", "form=ps,slots=16,device=igpu", 10);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("mva", .timeout_s = 60),
    TEST(mean_value_analysis_is_what_it_should_be),
    TEST(users_in_order_of_arrival_have_the_response_of_mva),
    TEST(users_who_share_the_processor_have_the_response_of_mva),
};
SUITE_MAIN("closed queues", suite)

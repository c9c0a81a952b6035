/* Real execution: every policy on real kernels gives every request the same tokens, and the books
 * add up. On plain loops, where equal means equal bits, and on ggml where it is there. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hwmodels/engines/engines.h"
#include "policies/registry.h"
#include "sim/base/arena.h"
#include "sim/drive/drive.h"
#include "tests/helpers/plain_engine.h"
#include "tests/helpers/scenario.h"

enum { N_REQUESTS = 28, MAX_TOKENS = 1024 };

static struct scenario sc;
static struct scenario_request q[N_REQUESTS];
static struct drive_options options;
static struct drive_report report;

/* ---- what is run ---- */

static int real_run(const struct sim_setup *setup, struct sim_result *result)
{
    drive_report_fini(&report);
    return drive_run(&options, setup, result, &report);
}

/* Arrivals so close that requests meet on any machine; the first is long and proactive; every
 * fourth continues an earlier one's session. */
static void requests_make(uint32_t longest)
{
    for (uint32_t i = 0; i < N_REQUESTS; i++) {
        q[i] = (struct scenario_request){
            .cls = i % 3 == 1 ? REQUEST_CLASS_REACTIVE : REQUEST_CLASS_PROACTIVE,
            .arrival_s = 0.0003 * i,
            .input_tokens = 3 + (i + 1) * 37 % longest,
            .output_tokens = 1 + (i * 5 + 7) % 12,
        };
        if (i % 4 == 3) {
            uint32_t before = i - 3;
            q[before].session_id = 10 + before;
            q[i].session_id = 10 + before;
            q[i].cls = q[before].cls;
            q[i].arrival_s = 0.001; /* a gap */
            q[i].input_tokens += q[before].input_tokens + q[before].output_tokens;
            q[i].prefix_tokens = q[before].input_tokens;
        }
    }
}

static void machine_make(const struct engine_ops *engine, enum drive_clock clock)
{
    scenario_init(&sc);
    sc.run = real_run;
    struct machine *m = &sc.machine;
    m->devices[NPU].chunk_rows = 16;
    m->devices[NPU].static_attention = false;
    for (int d = 0; d < 3; d++) {
        m->devices[d].can_reset = true;
        m->devices[d].can_withdraw = true;
        m->devices[d].inflight_depth = 2;
        scenario_cost(&sc, d, OP_QKV, 0.02, 0.002, 1);
        scenario_cost(&sc, d, OP_MHA, 0.02, 0.002, 1);
        scenario_cost(&sc, d, OP_FFN, 0.04, 0.004, 1);
        scenario_cost(&sc, d, OP_HEAD, 0.02, 0.002, 1);
        scenario_cost(&sc, d, OP_LAYER, 0.08, 0.008, 1);
    }
    options = (struct drive_options){.clock = clock, .hang_s = 20.0};
    for (int d = 0; d < MACHINE_MAX_DEVICES; d++) {
        options.devices[d] = (struct drive_device){engine, "CPU", -1};
    }
}

/* A model that plain loops run in milliseconds. */
static void small_model(void)
{
    struct llm *l = &sc.llm;
    l->n_layers = 2;
    l->hidden = 32;
    l->heads = 2;
    l->kv_heads = 1;
    l->head_dim = 16;
    l->ffn_hidden = 64;
    l->vocab = 101;
    l->weight_bits = 8;
    l->gated_ffn = true;
    l->weight_bytes = 1e5;
    l->kv_bytes_per_token = 128;
}

/* 2 layers x 256. */
static void ggml_model(void)
{
    small_model();
    struct llm *l = &sc.llm;
    l->hidden = 256;
    l->heads = 4;
    l->kv_heads = 2;
    l->head_dim = 64;
    l->ffn_hidden = 512;
    l->vocab = 500;
}

/* Parameters that a real run asks of a policy: one kernel in flight; sd-npu's blocks are graphs,
 * which no engine has. */
static const char *parameters_of(const char *name)
{
    return strcmp(name, "hpf") == 0 || strcmp(name, "hhpf") == 0 ? "inflight=1" : "";
}

/* ---- tokens ---- */

struct tokens {
    uint32_t n[N_REQUESTS];
    int32_t t[N_REQUESTS][64];
};

static void tokens_read(FILE *in, struct tokens *out)
{
    char line[4096];
    memset(out, 0, sizeof *out);
    rewind(in);
    while (fgets(line, sizeof line, in) != NULL) {
        char *at = line;
        unsigned long id = strtoul(at, &at, 10);
        ck_assert_uint_lt(id, N_REQUESTS);
        while (*at == ' ') {
            out->t[id][out->n[id]++] = (int32_t)strtol(at, &at, 10);
        }
    }
}

static int run(const struct policy_ops *policy, const char *params, struct tokens *out)
{
    scenario_policy(&sc, policy, params);
    FILE *f = tmpfile();
    ck_assert_ptr_nonnull(f);
    options.tokens = f;
    int rc = scenario_run(&sc, q, N_REQUESTS, false);
    if (rc == 0) {
        tokens_read(f, out);
    }
    fclose(f);
    options.tokens = NULL;
    scenario_fini(&sc);
    return rc;
}

/* Requests whose tokens are those of the other run, from `from` tokens on compared. */
static uint32_t alike(const struct tokens *a, const struct tokens *b)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < N_REQUESTS; i++) {
        n += a->n[i] == b->n[i] && memcmp(a->t[i], b->t[i], a->n[i] * sizeof a->t[i][0]) == 0;
    }
    return n;
}

static uint32_t alike_at_first(const struct tokens *a, const struct tokens *b)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < N_REQUESTS; i++) {
        n += a->n[i] > 0 && b->n[i] > 0 && a->t[i][0] == b->t[i][0];
    }
    return n;
}

static void whole(const char *policy)
{
    ck_assert_msg(sc.result.audit.clean, "%s: books", policy);
    ck_assert_uint_eq(sc.result.audit.finished, N_REQUESTS);
    for (uint32_t i = 0; i < N_REQUESTS; i++) {
        ck_assert_uint_eq(sc.records[i].generated, q[i].output_tokens);
    }
}

/* sd-npu loads graphs; every other policy of the list runs. */
static bool refused(const char *policy)
{
    return strcmp(policy, "sd-npu") == 0 || strcmp(policy, "replay") == 0;
}

START_TEST(every_policy_gives_every_request_the_same_tokens)
{
    size_t n;
    const struct policy_ops *const *all = policy_list(&n);
    struct tokens first;
    requests_make(60);
    machine_make(&plain_engine, DRIVE_CLOCK_CPU);
    small_model();
    ck_assert_msg(run(policy_find("fcfs"), "", &first) == 0, "%s", sc.result.message);
    for (size_t i = 0; i < n; i++) {
        struct tokens t;
        if (refused(all[i]->name)) {
            continue;
        }
        machine_make(&plain_engine, DRIVE_CLOCK_CPU);
        small_model();
        int rc = run(all[i], parameters_of(all[i]->name), &t);
        ck_assert_msg(rc == 0, "%s: %s", all[i]->name, sc.result.message);
        whole(all[i]->name);
        ck_assert_msg(alike(&first, &t) == N_REQUESTS, "%s: %u of %d requests", all[i]->name,
                      alike(&first, &t), N_REQUESTS);
    }
}
END_TEST

START_TEST(what_is_not_real_is_refused_by_name)
{
    struct tokens t;
    requests_make(20);
    machine_make(&plain_engine, DRIVE_CLOCK_CPU);
    small_model();
    ck_assert_int_eq(run(policy_find("sd-npu"), "blocks=2", &t), -EINVAL);
    ck_assert_ptr_nonnull(strstr(sc.result.message, "needs graph loads"));
    ck_assert_int_eq(run(policy_find("hpf"), "", &t), -EINVAL);
    ck_assert_ptr_nonnull(strstr(sc.result.message, "kernels in flight"));
    sc.machine.devices[IGPU].sharing = DEVICE_TIME_SHARED;
    ck_assert_int_eq(run(policy_find("fcfs"), "", &t), -EINVAL);
    ck_assert_ptr_nonnull(strstr(sc.result.message, "time-shared"));
}
END_TEST

/* ---- faults: the run ends with a clear error, or goes on; nothing hangs ---- */

static void faulty(enum drive_clock clock)
{
    requests_make(20);
    machine_make(&plain_engine, clock);
    small_model();
    memset(&plain_faults, 0, sizeof plain_faults);
}

START_TEST(a_failing_kernel_ends_the_run_and_is_named)
{
    struct tokens t;
    faulty(_i == 0 ? DRIVE_CLOCK_CPU : DRIVE_CLOCK_WALL);
    plain_faults.fail_kernel = 40;
    ck_assert_int_eq(run(policy_find("agent-xpu-v2"), "", &t), -EIO);
    ck_assert_ptr_nonnull(strstr(sc.result.message, "made to fail"));
    ck_assert_ptr_nonnull(strstr(sc.result.message, "of layer"));
    memset(&plain_faults, 0, sizeof plain_faults);
}
END_TEST

START_TEST(a_late_kernel_delays_and_no_more)
{
    struct tokens on_time;
    struct tokens t;
    faulty(_i == 0 ? DRIVE_CLOCK_CPU : DRIVE_CLOCK_WALL);
    ck_assert_int_eq(run(policy_find("pd-static"), "", &on_time), 0);
    plain_faults.kernels = 0;
    plain_faults.late_kernel = 40;
    ck_assert_int_eq(run(policy_find("pd-static"), "", &t), 0);
    ck_assert_uint_eq(alike(&on_time, &t), N_REQUESTS);
    memset(&plain_faults, 0, sizeof plain_faults);
}
END_TEST

START_TEST(a_hanging_kernel_ends_the_run)
{
    struct tokens t;
    faulty(_i == 0 ? DRIVE_CLOCK_CPU : DRIVE_CLOCK_WALL);
    options.hang_s = 0.3; /* the thread ends with this test's process */
    plain_faults.hang_kernel = 40;
    ck_assert_int_eq(run(policy_find("agent-xpu-v2"), "", &t), -ETIMEDOUT);
    ck_assert_ptr_nonnull(strstr(sc.result.message, "come back"));
}
END_TEST

START_TEST(an_engine_or_device_that_does_not_open_is_named)
{
    struct tokens t;
    faulty(DRIVE_CLOCK_CPU);
    plain_faults.fail_open = true;
    ck_assert_int_lt(run(policy_find("fcfs"), "", &t), 0);
    ck_assert_ptr_nonnull(strstr(sc.result.message, "engine plain: made not to open"));
    faulty(DRIVE_CLOCK_CPU);
    plain_faults.fail_device = true;
    ck_assert_int_lt(run(policy_find("fcfs"), "", &t), 0);
    ck_assert_ptr_nonnull(strstr(sc.result.message, "there is no device CPU"));
    memset(&plain_faults, 0, sizeof plain_faults);
}
END_TEST

static void compiling(enum drive_clock clock)
{
    faulty(clock);
    sc.machine.devices[NPU].static_attention = true;
    for (int d = 0; d < 3; d++) {
        options.devices[d].engine = &plain_engine_compiles;
    }
}

START_TEST(attention_is_compiled_and_dropped_for_real)
{
    struct tokens t;
    compiling(_i == 0 ? DRIVE_CLOCK_CPU : DRIVE_CLOCK_WALL);
    int rc = run(policy_find("agent-xpu-v2"), "", &t);
    ck_assert_msg(rc == 0, "%s", sc.result.message);
    whole("agent-xpu-v2");
    ck_assert_uint_gt(plain_faults.compiles, 0);
    ck_assert_uint_eq(plain_faults.compiles, sc.result.counters[COUNTER_COMPILES]);
    ck_assert_uint_eq(report.n_residents, plain_faults.compiles);
    memset(&plain_faults, 0, sizeof plain_faults);
}
END_TEST

START_TEST(a_failing_compile_ends_the_run_and_is_named)
{
    struct tokens t;
    compiling(_i == 0 ? DRIVE_CLOCK_CPU : DRIVE_CLOCK_WALL);
    plain_faults.fail_compile = true;
    ck_assert_int_lt(run(policy_find("agent-xpu-v2"), "", &t), 0);
    ck_assert_ptr_nonnull(strstr(sc.result.message, "made not to compile"));
    memset(&plain_faults, 0, sizeof plain_faults);
}
END_TEST

/* ---- memory ---- */

/* One request at a time on the iGPU; every KV cache goes to the file and back once, after the
 * prompt. */
struct swapper {
    const struct request *waiting[N_REQUESTS];
    uint32_t n, swapped; /* of the first: 0 not yet, 1 out or on its way, 2 back */
};

static void swapper_arrived(struct sched *s, const struct request *r)
{
    struct swapper *w = s->state;
    w->waiting[w->n++] = r;
}

static void swapper_moved(struct sched *s, const struct request *r)
{
    struct swapper *w = s->state;
    w->swapped = r->kv_swapped ? 1 : 2;
}

static void swapper_schedule(struct sched *s)
{
    struct swapper *w = s->state;
    if (w->n > 0 && w->waiting[0]->state == REQUEST_STATE_FINISHED) {
        memmove(w->waiting, w->waiting + 1, --w->n * sizeof w->waiting[0]);
        w->swapped = 0;
    }
    if (w->n == 0 || w->waiting[0]->pass != NULL) {
        return;
    }
    const struct request *r = w->waiting[0];
    if (r->state == REQUEST_STATE_DECODE && w->swapped < 2) {
        int rc = r->kv_swapped ? sched_kv_resume(s, r) : sched_kv_evict(s, r, 0, KV_EVICT_SWAP);
        ck_assert(rc == 0 || w->swapped == 1);
        w->swapped = 1;
        return;
    }
    bool prompt = r->state == REQUEST_STATE_QUEUED;
    struct segment g = {.request = r,
                        .role = prompt ? SEGMENT_PREFILL : SEGMENT_DECODE,
                        .n_tokens = prompt ? request_prefill_left(r) : 1};
    struct pass *p;
    ck_assert_int_eq(sched_pass_form(s, &(struct pass_spec){.segments = &g, .n_segments = 1}, &p),
                     0);
    ck_assert_int_eq(sched_launch(s, &(struct launch_spec){.pass = p, .device = IGPU}, NULL), 0);
}

static const struct policy_ops swapper = {.name = "swapper",
                                          .summary = "for this test",
                                          .contract = POLICY_CONTRACT,
                                          .needs = CAP_KV_EVICT,
                                          .state_size_bytes = sizeof(struct swapper),
                                          .request_arrived = swapper_arrived,
                                          .kv_moved = swapper_moved,
                                          .schedule = swapper_schedule};

/* The memory of swapped KV is zero meanwhile, so nothing but the file can have brought it back. */
START_TEST(kv_that_was_swapped_out_is_the_same_when_it_is_back)
{
    struct tokens kept;
    struct tokens moved;
    requests_make(60);
    machine_make(&plain_engine, _i == 0 ? DRIVE_CLOCK_CPU : DRIVE_CLOCK_WALL);
    small_model();
    ck_assert_int_eq(run(policy_find("fcfs"), "", &kept), 0);
    int rc = run(&swapper, "", &moved);
    ck_assert_msg(rc == 0, "%s", sc.result.message);
    whole("swapper");
    uint32_t longer = 0; /* those with more than one token */
    for (uint32_t i = 0; i < N_REQUESTS; i++) {
        longer += q[i].output_tokens > 1;
    }
    ck_assert_uint_eq(sc.result.counters[COUNTER_KV_SWAP_OUTS], longer);
    ck_assert_uint_eq(sc.result.counters[COUNTER_KV_SWAP_INS], longer);
    ck_assert_uint_eq(report.n_residents, 2 * longer);
    ck_assert_uint_eq(alike(&kept, &moved), N_REQUESTS);
}
END_TEST

START_TEST(kv_of_a_session_waits_in_the_file_while_its_tool_runs)
{
    struct tokens kept;
    struct tokens moved;
    requests_make(60);
    machine_make(&plain_engine, _i == 0 ? DRIVE_CLOCK_CPU : DRIVE_CLOCK_WALL);
    small_model();
    ck_assert_int_eq(run(policy_find("fcfs"), "", &kept), 0);
    sc.gaps_are_tools = true;
    int rc = run(policy_find("program-fcfs"), "gap_kv=swap", &moved);
    ck_assert_msg(rc == 0, "%s", sc.result.message);
    whole("program-fcfs");
    ck_assert_uint_gt(sc.result.counters[COUNTER_KV_SWAP_OUTS], 0);
    ck_assert_uint_eq(alike(&kept, &moved), N_REQUESTS);
}
END_TEST

/* What a session's earlier turn left is what its next prompt begins with. */
START_TEST(a_reused_prefix_gives_the_tokens_of_a_computed_one)
{
    struct tokens reused;
    struct tokens computed;
    requests_make(60);
    machine_make(&plain_engine, DRIVE_CLOCK_CPU);
    small_model();
    ck_assert_int_eq(run(policy_find("fcfs"), "", &reused), 0);
    uint64_t kernels = sc.result.kernels;
    sc.setup.prefix_reuse = false;
    ck_assert_int_eq(run(policy_find("fcfs"), "", &computed), 0);
    ck_assert_uint_ge(sc.result.kernels, kernels);
    ck_assert_uint_eq(alike(&reused, &computed), N_REQUESTS);
    uint32_t tokens = 0; /* all the same token would compare equal, too */
    for (uint32_t i = 1; i < N_REQUESTS; i++) {
        tokens += reused.t[i][0] != reused.t[i - 1][0];
    }
    ck_assert_uint_gt(tokens, N_REQUESTS / 2);
}
END_TEST

/* ---- real time ---- */

START_TEST(real_time_gives_the_tokens_of_the_cpu_clock)
{
    static const char *const names[] = {"fcfs",         "openvino-cb", "npu-serial",
                                        "agent-xpu-v2", "pd-static",   "sarathi-hetero",
                                        "agent-xpu-v1"};
    struct tokens cpu;
    struct tokens wall;
    requests_make(60);
    machine_make(&plain_engine, DRIVE_CLOCK_CPU);
    small_model();
    ck_assert_int_eq(run(policy_find("fcfs"), "", &cpu), 0);
    machine_make(&plain_engine, DRIVE_CLOCK_WALL);
    small_model();
    int rc = run(policy_find(names[_i]), "", &wall);
    ck_assert_msg(rc == 0, "%s: %s", names[_i], sc.result.message);
    whole(names[_i]);
    ck_assert_uint_eq(alike(&cpu, &wall), N_REQUESTS);
}
END_TEST

START_TEST(a_reset_kernel_is_run_again)
{
    struct tokens t;
    struct tokens undisturbed;
    faulty(_i == 0 ? DRIVE_CLOCK_CPU : DRIVE_CLOCK_WALL);
    ck_assert_int_eq(run(policy_find("fcfs"), "", &undisturbed), 0);
    plain_faults.slow_us = 400;
    int rc = run(policy_find("program-fcfs"), "preempt=reset,class=rt_alone", &t);
    ck_assert_msg(rc == 0, "%s", sc.result.message);
    ck_assert_uint_gt(sc.result.counters[COUNTER_LAUNCH_RESET], 0);
    ck_assert(_i == 0 || plain_faults.cancelled > 0);
    ck_assert_uint_eq(alike(&undisturbed, &t), N_REQUESTS);
    memset(&plain_faults, 0, sizeof plain_faults);
}
END_TEST

/* ---- ggml ---- */

/* Attention's tiles depend on how many rows of a sequence come together, so policies that cut
 * prompts or attention differently may round differently: fcfs prefills whole prompts. */
START_TEST(every_policy_gives_the_same_tokens_on_ggml)
{
    struct err e = ERR_INIT;
    const struct engine_ops *ggml = engine_find("ggml", &e);
    err_fini(&e);
    if (ggml == NULL) {
        printf("skipped: engine ggml is not there (make engines)\n");
        return;
    }
    size_t n;
    const struct policy_ops *const *all = policy_list(&n);
    struct tokens first;
    requests_make(90);
    machine_make(ggml, DRIVE_CLOCK_CPU);
    ggml_model();
    ck_assert_msg(run(policy_find("fcfs"), "", &first) == 0, "%s", sc.result.message);
    uint32_t equal = 0;
    uint32_t policies = 0;
    char others[1024] = "";
    for (size_t i = 0; i < n; i++) {
        struct tokens t;
        if (refused(all[i]->name)) {
            continue;
        }
        machine_make(ggml, DRIVE_CLOCK_CPU);
        ggml_model();
        int rc = run(all[i], parameters_of(all[i]->name), &t);
        ck_assert_msg(rc == 0, "%s: %s", all[i]->name, sc.result.message);
        whole(all[i]->name);
        policies++;
        if (alike(&first, &t) == N_REQUESTS) {
            equal++;
            continue;
        }
        size_t at = strlen(others);
        (void)snprintf(others + at, sizeof others - at, " %s %u", all[i]->name, alike(&first, &t));
        ck_assert_msg(alike_at_first(&first, &t) == N_REQUESTS, "%s: first tokens", all[i]->name);
        ck_assert_msg(alike(&first, &t) >= 25, "%s: %u of 28", all[i]->name, alike(&first, &t));
    }
    printf("note: ggml %s: %u of %u policies give equal tokens for all 28 requests;%s\n",
           ggml->version, equal, policies, others);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("drive");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 240);
    tcase_add_test(t, every_policy_gives_every_request_the_same_tokens);
    tcase_add_test(t, what_is_not_real_is_refused_by_name);
    tcase_add_loop_test(t, a_failing_kernel_ends_the_run_and_is_named, 0, 2);
    tcase_add_loop_test(t, a_late_kernel_delays_and_no_more, 0, 2);
    tcase_add_loop_test(t, a_hanging_kernel_ends_the_run, 0, 2);
    tcase_add_test(t, an_engine_or_device_that_does_not_open_is_named);
    tcase_add_loop_test(t, attention_is_compiled_and_dropped_for_real, 0, 2);
    tcase_add_loop_test(t, a_failing_compile_ends_the_run_and_is_named, 0, 2);
    tcase_add_loop_test(t, kv_that_was_swapped_out_is_the_same_when_it_is_back, 0, 2);
    tcase_add_loop_test(t, kv_of_a_session_waits_in_the_file_while_its_tool_runs, 0, 2);
    tcase_add_test(t, a_reused_prefix_gives_the_tokens_of_a_computed_one);
    tcase_add_loop_test(t, real_time_gives_the_tokens_of_the_cpu_clock, 0, 7);
    tcase_add_loop_test(t, a_reset_kernel_is_run_again, 0, 2);
    tcase_add_test(t, every_policy_gives_the_same_tokens_on_ggml);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}

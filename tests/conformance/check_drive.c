/* In real execution every policy on real kernels must give every request the same tokens, and
 * counts must add up. Kernels are plain loops with equal bits here (engines:
 * check_drive_engines). */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "policies/registry.h"
#include "sim/base/arena.h"
#include "sim/drive/drive.h"
#include "sim/drive/host.h"
#include "sim/metrics/explain.h"
#include "tests/helpers/plain_engine.h"
#include "tests/helpers/realrun.h"
#include "tests/helpers/suite.h"

START_TEST(every_policy_gives_every_request_the_same_tokens)
{
    size_t n;
    const struct policy_ops *const *all = policy_list(&n);
    struct tokens first;
    realrun_requests_make(60);
    real_n = suite_whole() ? N_REQUESTS : N_REQUESTS / 2; /* of each policy */
    realrun_machine_make(&plain_engine, DRIVE_CLOCK_CPU);
    realrun_small_model();
    ck_assert_msg(realrun_run(policy_find("fcfs"), "", &first) == 0, "%s", real.result.message);
    for (size_t i = 0; i < n; i++) {
        struct tokens t;
        if (realrun_refused(all[i]->name)) {
            continue;
        }
        realrun_machine_make(&plain_engine, DRIVE_CLOCK_CPU);
        realrun_small_model();
        int rc = realrun_run(all[i], realrun_parameters_of(all[i]->name), &t);
        ck_assert_msg(rc == 0, "%s: %s", all[i]->name, real.result.message);
        realrun_whole(all[i]->name);
        ck_assert_msg(realrun_alike(&first, &t) == real_n, "%s: other tokens", all[i]->name);
    }
}
END_TEST

/* A request's causes must cover the time from its arrival to its end once, at any speed. */
START_TEST(latencies_of_real_runs_are_explained_whole)
{
    static const char *const policies[] = {"fcfs", "openvino-cb", "agent-xpu-v2"};
    for (int i = 0; i < 3; i++) {
        struct tokens t;
        realrun_requests_make(60);
        realrun_machine_make(&plain_engine, _i == 0 ? DRIVE_CLOCK_CPU : DRIVE_CLOCK_WALL);
        realrun_small_model();
        struct explain *x = explain_new(&real.machine, EXPLAIN_ALL);
        uint32_t had = real.setup.n_observers;
        real.setup.observers[real.setup.n_observers++] = explain_observer(x);
        int rc = realrun_run(policy_find(policies[i]), "", &t);
        ck_assert_msg(rc == 0, "%s: %s", policies[i], real.result.message);
        for (uint32_t id = 0; id < N_REQUESTS; id++) {
            const struct explanation *e = explain_find(x, id);
            ck_assert_msg(e != NULL, "%s: request %u", policies[i], id);
            int64_t sum = 0;
            ck_assert_int_gt(e->ns[EXPLAIN_COMPUTE], 0);
            ck_assert_int_eq(e->ns[EXPLAIN_DDR_SLOWDOWN], 0); /* nobody knows it */
            for (int c = 0; c < EXPLAIN_CAUSE_COUNT; c++) {
                ck_assert_int_ge(e->ns[c], 0);
                sum += e->ns[c];
            }
            ck_assert_int_eq(sum, e->end_ns - e->arrival_ns);
        }
        explain_free(x);
        real.setup.n_observers = had;
    }
}
END_TEST

START_TEST(what_is_not_real_is_refused_by_name)
{
    struct tokens t;
    realrun_requests_make(20);
    realrun_machine_make(&plain_engine, DRIVE_CLOCK_CPU);
    realrun_small_model();
    ck_assert_int_eq(realrun_run(policy_find("sd-npu"), "blocks=2", &t), -EINVAL);
    ck_assert_ptr_nonnull(strstr(real.result.message, "needs graph loads"));
    ck_assert_int_eq(realrun_run(policy_find("hpf"), "", &t), -EINVAL);
    ck_assert_ptr_nonnull(strstr(real.result.message, "kernels in flight"));
    real.machine.devices[IGPU].sharing = DEVICE_TIME_SHARED;
    ck_assert_int_eq(realrun_run(policy_find("fcfs"), "", &t), -EINVAL);
    ck_assert_ptr_nonnull(strstr(real.result.message, "time-shared"));
}
END_TEST

/* ---- faults: the run ends with a clear error, or continues; nothing hangs ---- */

static void faulty(enum drive_clock clock)
{
    realrun_requests_make(20);
    realrun_machine_make(&plain_engine, clock);
    realrun_small_model();
    memset(&plain_faults, 0, sizeof plain_faults);
}

START_TEST(a_failing_kernel_ends_the_run_and_is_named)
{
    struct tokens t;
    faulty(_i == 0 ? DRIVE_CLOCK_CPU : DRIVE_CLOCK_WALL);
    plain_faults.fail_kernel = 40;
    ck_assert_int_eq(realrun_run(policy_find("agent-xpu-v2"), "", &t), -EIO);
    ck_assert_ptr_nonnull(strstr(real.result.message, "made to fail"));
    ck_assert_ptr_nonnull(strstr(real.result.message, "of layer"));
    memset(&plain_faults, 0, sizeof plain_faults);
}
END_TEST

START_TEST(a_late_kernel_delays_and_no_more)
{
    struct tokens on_time;
    struct tokens t;
    faulty(_i == 0 ? DRIVE_CLOCK_CPU : DRIVE_CLOCK_WALL);
    ck_assert_int_eq(realrun_run(policy_find("pd-static"), "", &on_time), 0);
    plain_faults.kernels = 0;
    plain_faults.late_kernel = 40;
    ck_assert_int_eq(realrun_run(policy_find("pd-static"), "", &t), 0);
    ck_assert_uint_eq(realrun_alike(&on_time, &t), N_REQUESTS);
    memset(&plain_faults, 0, sizeof plain_faults);
}
END_TEST

START_TEST(a_hanging_kernel_ends_the_run)
{
    struct tokens t;
    faulty(_i == 0 ? DRIVE_CLOCK_CPU : DRIVE_CLOCK_WALL);
    real_options.hang_s = 0.3; /* the thread ends with this test's process */
    plain_faults.hang_kernel = 40;
    ck_assert_int_eq(realrun_run(policy_find("agent-xpu-v2"), "", &t), -ETIMEDOUT);
    ck_assert_ptr_nonnull(strstr(real.result.message, "come back"));
}
END_TEST

/* A device that opens when the run is over, and its caller has cleared all that it gave. */
static struct {
    sem_t go, done;
    const struct llm *llm;
    uint32_t hidden;
    char device[16], said[80];
} late;

static int late_open(const struct engine_options *o, void **engine, char *why)
{
    late.llm = o->llm;
    return plain_engine.open(o, engine, why);
}

static int late_device_open(void *engine, const struct engine_device_options *o, void **device,
                            char *why)
{
    (void)engine, (void)device, (void)why;
    (void)sem_wait(&late.go);
    late.hidden = late.llm->hidden;
    (void)snprintf(late.device, sizeof late.device, "%s", o->name);
    o->compiled(o->self, 1, 2);
    (void)sem_post(&late.done);
    while (pause() != 0) { /* the thread ends with this test's process */
    }
    return 0;
}

static void late_compiled(const char *device, uint32_t done, uint32_t n)
{
    (void)snprintf(late.said, sizeof late.said, "%s %u/%u", device, done, n);
}

START_TEST(a_thread_that_hangs_keeps_what_the_caller_frees)
{
    struct engine_ops ops = plain_engine;
    struct tokens t;
    ops.open = late_open;
    ops.device_open = late_device_open;
    (void)sem_init(&late.go, 0, 0);
    (void)sem_init(&late.done, 0, 0);
    faulty(DRIVE_CLOCK_WALL);
    real_options.compile_s = 1.5;
    real_options.compiled = late_compiled;
    for (int d = 0; d < 3; d++) {
        real_options.devices[d].engine = &ops;
    }
    const uint32_t hidden = real.llm.hidden;
    OWNED char *said = xformat("%s 1/2", real.machine.devices[0].name);
    ck_assert_int_eq(realrun_run(policy_find("fcfs"), "", &t), -ETIMEDOUT);
    ck_assert_ptr_nonnull(strstr(real.result.message, "opening it does not come back"));
    memset(&real.machine, 0, sizeof real.machine);
    memset(&real.llm, 0, sizeof real.llm);
    memset(&real_options, 0, sizeof real_options);
    (void)sem_post(&late.go);
    (void)sem_wait(&late.done);
    ck_assert_uint_eq(late.hidden, hidden);
    ck_assert_str_eq(late.device, "CPU");
    ck_assert_str_eq(late.said, said);
}
END_TEST

static void *sleep_on(void *nothing)
{
    (void)pause();
    return nothing;
}

static void clean_up(void)
{
    _exit(7); /* a library's, registered after the thread was detached */
}

START_TEST(a_process_with_a_detached_thread_ends_without_clean_up)
{
    for (int hangs = 0; hangs < 2; hangs++) {
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            pthread_t thread;
            if (hangs == 1 && pthread_create(&thread, NULL, sleep_on, NULL) == 0) {
                (void)drive_host_posix.thread_detach(thread);
            }
            (void)atexit(clean_up);
            drive_host_leave(3);
            exit(5);
        }
        int status;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert(WIFEXITED(status));
        ck_assert_int_eq(WEXITSTATUS(status), hangs == 1 ? 3 : 7);
    }
}
END_TEST

START_TEST(an_engine_or_device_that_does_not_open_is_named)
{
    struct tokens t;
    faulty(DRIVE_CLOCK_CPU);
    plain_faults.fail_open = true;
    ck_assert_int_lt(realrun_run(policy_find("fcfs"), "", &t), 0);
    ck_assert_ptr_nonnull(strstr(real.result.message, "engine plain: made not to open"));
    faulty(DRIVE_CLOCK_CPU);
    plain_faults.fail_device = true;
    ck_assert_int_lt(realrun_run(policy_find("fcfs"), "", &t), 0);
    ck_assert_ptr_nonnull(strstr(real.result.message, "there is no device CPU"));
    memset(&plain_faults, 0, sizeof plain_faults);
}
END_TEST

static void compiling(enum drive_clock clock)
{
    faulty(clock);
    real.machine.devices[NPU].static_attention = true;
    for (int d = 0; d < 3; d++) {
        real_options.devices[d].engine = &plain_engine_compiles;
    }
}

START_TEST(attention_is_compiled_and_dropped_for_real)
{
    struct tokens t;
    compiling(_i == 0 ? DRIVE_CLOCK_CPU : DRIVE_CLOCK_WALL);
    int rc = realrun_run(policy_find("agent-xpu-v2"), "", &t);
    ck_assert_msg(rc == 0, "%s", real.result.message);
    realrun_whole("agent-xpu-v2");
    /* A run does not wait for drops that no request needs. The last ones may come after its end. */
    uint64_t asked = real.result.counters[COUNTER_COMPILES];
    uint64_t needed = asked - real.result.counters[COUNTER_COMPILES_CANCELLED];
    uint64_t seen[DRIVE_WORKS] = {0};
    for (size_t i = 0; i < real_report.n_residents; i++) {
        seen[real_report.residents[i].work]++;
    }
    ck_assert_uint_gt(needed, 0);
    ck_assert_uint_ge(seen[DRIVE_COMPILE], needed);
    ck_assert_uint_le(seen[DRIVE_COMPILE], plain_faults.compiles);
    ck_assert_uint_le(plain_faults.compiles, asked);
    ck_assert_uint_le(seen[DRIVE_EVICT_ATTENTION], plain_faults.drops);
    ck_assert_uint_le(plain_faults.drops, plain_faults.compiles);
    ck_assert_uint_eq(real_report.n_residents, seen[DRIVE_COMPILE] + seen[DRIVE_EVICT_ATTENTION]);
    memset(&plain_faults, 0, sizeof plain_faults);
}
END_TEST

START_TEST(a_failing_compile_ends_the_run_and_is_named)
{
    struct tokens t;
    compiling(_i == 0 ? DRIVE_CLOCK_CPU : DRIVE_CLOCK_WALL);
    plain_faults.fail_compile = true;
    ck_assert_int_lt(realrun_run(policy_find("agent-xpu-v2"), "", &t), 0);
    ck_assert_ptr_nonnull(strstr(real.result.message, "made not to compile"));
    memset(&plain_faults, 0, sizeof plain_faults);
}
END_TEST

/* sd-npu switches between a graph of 24 rows and one of 8, each of 1, 2 and 2 layers. Prompts run
 * on the first and tokens on the second, each only while it is loaded, as the engine checks. Both
 * must give the tokens of other schedules. */
START_TEST(graph_blocks_are_loaded_and_dropped_for_real)
{
    static const char *const strategies[] = {"progressive", "sync", "keep-both"};
    struct tokens kept;
    struct tokens switched;
    char params[64];
    compiling(_i % 2 == 0 ? DRIVE_CLOCK_CPU : DRIVE_CLOCK_WALL);
    real.llm.n_layers = 5;
    ck_assert_int_eq(realrun_run(policy_find("fcfs"), "", &kept), 0);
    compiling(_i % 2 == 0 ? DRIVE_CLOCK_CPU : DRIVE_CLOCK_WALL);
    real.llm.n_layers = 5;
    real.machine.devices[NPU].static_attention = false;
    (void)snprintf(params, sizeof params, "blocks=3,g1=24,g2=8,strategy=%s", strategies[_i / 2]);
    int rc = realrun_run(policy_find("sd-npu"), params, &switched);
    ck_assert_msg(rc == 0, "%s", real.result.message);
    realrun_whole("sd-npu");
    ck_assert_uint_eq(realrun_alike(&kept, &switched), N_REQUESTS);
    uint64_t loads = real.result.counters[COUNTER_LOADS];
    uint32_t mapped = _i / 2 == 2 ? 6 : 3;
    ck_assert(_i / 2 == 2 ? loads == 0 : loads > 0);
    /* Each takes another one's place. The last loads, of prefill graphs, may come after the end. */
    ck_assert(plain_faults.loads + 3 >= loads + mapped && plain_faults.loads <= loads + mapped);
    ck_assert_uint_ge(plain_faults.unloads + 3, loads);
    uint64_t seen[DRIVE_WORKS] = {0};
    for (size_t i = 0; i < real_report.n_residents; i++) {
        seen[real_report.residents[i].work]++;
    }
    ck_assert(seen[DRIVE_LOAD] + 3 >= loads && seen[DRIVE_EVICT] + 3 >= loads);
    memset(&plain_faults, 0, sizeof plain_faults);
}
END_TEST

static void unsaid_arrived(struct sched *s, const struct request *r)
{
    (void)s;
    (void)r;
}

static void load_unsaid(struct sched *s)
{
    (void)sched_load(s, (struct resident_key){RESIDENT_GRAPH_BLOCK, 0, 1}, 1e6);
}

static const struct policy_ops unsaid = {.name = "unsaid",
                                         .summary = "for this test",
                                         .contract = POLICY_CONTRACT,
                                         .needs = CAP_LOAD,
                                         .request_arrived = unsaid_arrived,
                                         .schedule = load_unsaid};

START_TEST(a_graph_of_which_nothing_was_said_is_named)
{
    struct tokens t;
    compiling(_i == 0 ? DRIVE_CLOCK_CPU : DRIVE_CLOCK_WALL);
    ck_assert_int_lt(realrun_run(&unsaid, "", &t), 0);
    ck_assert_msg(strstr(real.result.message,
                         "graph version 1 of block 0, 1000000 bytes: the policy "
                         "has not said what it is") != NULL,
                  "%s", real.result.message);
    memset(&plain_faults, 0, sizeof plain_faults);
}
END_TEST

/* ---- memory ---- */

/* Runs one request at a time on the iGPU. Each KV cache is moved to the file and back once, after
 * the prompt. */
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
        int rc = r->kv_swapped ? sched_kv_move(s, kv_of(r), KV_MEMORY)
                               : sched_kv_move(s, kv_of(r), KV_FLASH);
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
    struct launch_spec l = sched_launch_rest(s, p, IGPU, YIELD_KERNEL);
    ck_assert_int_eq(sched_launch(s, &l, NULL), 0);
}

static const struct policy_ops swapper = {.name = "swapper",
                                          .summary = "for this test",
                                          .contract = POLICY_CONTRACT,
                                          .needs = CAP_KV_MOVE,
                                          .state_size_bytes = sizeof(struct swapper),
                                          .request_arrived = swapper_arrived,
                                          .kv_moved = swapper_moved,
                                          .schedule = swapper_schedule};

/* The memory of swapped KV is zero meanwhile, so only the file can have brought it back. */
START_TEST(kv_that_was_swapped_out_is_the_same_when_it_is_back)
{
    struct tokens kept;
    struct tokens moved;
    realrun_requests_make(60);
    realrun_machine_make(&plain_engine, _i == 0 ? DRIVE_CLOCK_CPU : DRIVE_CLOCK_WALL);
    realrun_small_model();
    ck_assert_int_eq(realrun_run(policy_find("fcfs"), "", &kept), 0);
    int rc = realrun_run(&swapper, "", &moved);
    ck_assert_msg(rc == 0, "%s", real.result.message);
    realrun_whole("swapper");
    uint32_t longer = 0; /* requests with two tokens or more */
    for (uint32_t i = 0; i < N_REQUESTS; i++) {
        longer += real_q[i].output_tokens > 1;
    }
    ck_assert_uint_eq(real.result.counters[COUNTER_KV_SWAP_OUTS], longer);
    ck_assert_uint_eq(real.result.counters[COUNTER_KV_SWAP_INS], longer);
    ck_assert_uint_eq(real_report.n_residents, 2 * longer);
    ck_assert_uint_eq(realrun_alike(&kept, &moved), N_REQUESTS);
}
END_TEST

START_TEST(kv_of_a_session_waits_in_the_file_while_its_tool_runs)
{
    struct tokens kept;
    struct tokens moved;
    realrun_requests_make(60);
    realrun_machine_make(&plain_engine, _i == 0 ? DRIVE_CLOCK_CPU : DRIVE_CLOCK_WALL);
    realrun_small_model();
    ck_assert_int_eq(realrun_run(policy_find("fcfs"), "", &kept), 0);
    real.gaps_are_tools = true;
    int rc = realrun_run(policy_find("program-fcfs"), "gap_kv=swap", &moved);
    ck_assert_msg(rc == 0, "%s", real.result.message);
    realrun_whole("program-fcfs");
    ck_assert_uint_gt(real.result.counters[COUNTER_KV_SWAP_OUTS], 0);
    ck_assert_uint_eq(realrun_alike(&kept, &moved), N_REQUESTS);
}
END_TEST

/* A session's next prompt begins with the prefix that its earlier turn left. */
START_TEST(a_reused_prefix_gives_the_tokens_of_a_computed_one)
{
    struct tokens reused;
    struct tokens computed;
    realrun_requests_make(60);
    realrun_machine_make(&plain_engine, DRIVE_CLOCK_CPU);
    realrun_small_model();
    ck_assert_int_eq(realrun_run(policy_find("fcfs"), "", &reused), 0);
    uint64_t kernels = real.result.kernels;
    real.setup.prefix_reuse = false;
    ck_assert_int_eq(realrun_run(policy_find("fcfs"), "", &computed), 0);
    ck_assert_uint_ge(real.result.kernels, kernels);
    ck_assert_uint_eq(realrun_alike(&reused, &computed), N_REQUESTS);
    uint32_t tokens = 0; /* if all tokens were equal, no comparison could fail */
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
    realrun_requests_make(60);
    realrun_machine_make(&plain_engine, DRIVE_CLOCK_CPU);
    realrun_small_model();
    ck_assert_int_eq(realrun_run(policy_find("fcfs"), "", &cpu), 0);
    realrun_machine_make(&plain_engine, DRIVE_CLOCK_WALL);
    realrun_small_model();
    int rc = realrun_run(policy_find(names[_i]), "", &wall);
    ck_assert_msg(rc == 0, "%s: %s", names[_i], real.result.message);
    realrun_whole(names[_i]);
    ck_assert_uint_eq(realrun_alike(&cpu, &wall), N_REQUESTS);
}
END_TEST

START_TEST(a_reset_kernel_is_run_again)
{
    struct tokens t;
    struct tokens undisturbed;
    faulty(_i == 0 ? DRIVE_CLOCK_CPU : DRIVE_CLOCK_WALL);
    ck_assert_int_eq(realrun_run(policy_find("fcfs"), "", &undisturbed), 0);
    plain_faults.slow_us = 400;
    uint64_t resets = 0;
    /* A host that sleeps through all kernels resets none, so there are more tries. */
    for (int tries = 0; tries < 50 && (resets == 0 || (_i == 1 && plain_faults.cancelled == 0));
         tries++) {
        int rc = realrun_run(policy_find("program-fcfs"), "preempt=reset,class=rt_alone", &t);
        ck_assert_msg(rc == 0, "%s", real.result.message);
        realrun_whole("program-fcfs");
        resets += real.result.counters[COUNTER_LAUNCH_RESET];
    }
    ck_assert_uint_gt(resets, 0);
    ck_assert(_i == 0 || plain_faults.cancelled > 0);
    ck_assert_uint_eq(realrun_alike(&undisturbed, &t), N_REQUESTS);
    memset(&plain_faults, 0, sizeof plain_faults);
}
END_TEST

/* On the CPU clock host costs and resets are those of the machine file, to the ns. */
static int64_t asked_ns[100000];
static uint32_t leads, resets;

static void on_lead(void *self, int64_t now_ns, const struct launch *l, int64_t lead_ns)
{
    (void)self;
    int64_t ready_ns = l->submit_ns + MS(0.3);
    ck_assert_int_eq(lead_ns, ready_ns > now_ns ? ready_ns - now_ns : 0);
    leads += lead_ns > 0;
}

static void on_asked(void *self, int64_t now_ns, const struct launch *l)
{
    (void)self;
    asked_ns[l->id] = now_ns;
}

static void on_ended(void *self, int64_t now_ns, const struct launch *l, int64_t ns, int64_t lost)
{
    (void)self;
    (void)ns;
    (void)lost;
    if (l->outcome == LAUNCH_OUTCOME_RESET) {
        ck_assert_int_eq(now_ns - asked_ns[l->id], MS(5));
        resets++;
    }
}

START_TEST(host_costs_and_resets_take_the_time_of_the_machine)
{
    struct tokens t;
    faulty(DRIVE_CLOCK_CPU);
    for (uint32_t d = 0; d < real.machine.n_devices; d++) {
        real.machine.devices[d].submit_ns = MS(0.3);
        real.machine.devices[d].reset_ns = MS(5);
    }
    struct observer o = {
        .launch_started = on_lead, .preempt_asked = on_asked, .launch_ended = on_ended};
    real.setup.observers[real.setup.n_observers++] = &o;
    plain_faults.slow_us = 400;
    int rc = realrun_run(policy_find("program-fcfs"), "preempt=reset,class=rt_alone", &t);
    ck_assert_msg(rc == 0, "%s", real.result.message);
    ck_assert_uint_gt(leads, 0);
    ck_assert_uint_gt(resets, 0);
    memset(&plain_faults, 0, sizeof plain_faults);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("all", .timeout_s = 240),
    TEST(every_policy_gives_every_request_the_same_tokens),
    LOOP(latencies_of_real_runs_are_explained_whole, 2),
    TEST(what_is_not_real_is_refused_by_name),
    LOOP(a_failing_kernel_ends_the_run_and_is_named, 2),
    LOOP(a_late_kernel_delays_and_no_more, 2),
    TEST(an_engine_or_device_that_does_not_open_is_named),
    LOOP(attention_is_compiled_and_dropped_for_real, 2),
    LOOP(a_failing_compile_ends_the_run_and_is_named, 2),
    LOOP(graph_blocks_are_loaded_and_dropped_for_real, 6),
    LOOP(a_graph_of_which_nothing_was_said_is_named, 2),
    LOOP(kv_that_was_swapped_out_is_the_same_when_it_is_back, 2),
    LOOP(kv_of_a_session_waits_in_the_file_while_its_tool_runs, 2),
    TEST(a_reused_prefix_gives_the_tokens_of_a_computed_one),
    LOOP(real_time_gives_the_tokens_of_the_cpu_clock, 7),
    LOOP(a_reset_kernel_is_run_again, 2),
    TEST(host_costs_and_resets_take_the_time_of_the_machine),
    CASE("hang"),
    /* apart: its threads end with its processes */
    LOOP(a_hanging_kernel_ends_the_run, 2),
    TEST(a_thread_that_hangs_keeps_what_the_caller_frees),
    TEST(a_process_with_a_detached_thread_ends_without_clean_up),
};
SUITE_MAIN("drive", suite)

/* Parts of the backends alone: one worker's queue, a team, cores as devices over kernels that note
 * what they are given, simulated devices next to each other by hand, and the machine around them
 * from files. */
#define _GNU_SOURCE /* affinity */
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "hwmodels/backends/cpu.h"
#include "hwmodels/backends/host.h"
#include "hwmodels/backends/simdev.h"
#include "hwmodels/backends/team.h"
#include "hwmodels/backends/worker.h"
#include "sim/base/arena.h"
#include "sim/base/clock.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"
#include "tests/helpers/suite.h"

static const int64_t minute_ns = 60 * (int64_t)NS_PER_S;

static uint32_t first_core(void)
{
    uint32_t core = 0;
    ck_assert_uint_ge(worker_cores(&core, 1), 1);
    return core;
}

/* ---- a worker ---- */

static sem_t begun, go_on;
static int ran[8];
static int n_ran;
static int on_core, allowed_cores;

static void note(void *arg)
{
    ran[n_ran++] = *(const int *)arg;
}

static void note_and_block(void *arg)
{
    note(arg);
    (void)sem_post(&begun);
    (void)sem_wait(&go_on);
}

static void note_core(void *arg)
{
    (void)arg;
    cpu_set_t set;
    ck_assert_int_eq(sched_getaffinity(0, sizeof set, &set), 0);
    allowed_cores = CPU_COUNT(&set);
    on_core = sched_getcpu();
}

static void spin(void *arg)
{
    int64_t begun_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun_ns < *(const int64_t *)arg) {
    }
}

static void worker_setup(void)
{
    n_ran = 0;
    ck_assert_int_eq(sem_init(&begun, 0, 0), 0);
    ck_assert_int_eq(sem_init(&go_on, 0, 0), 0);
}

static struct worker *worker_new(void)
{
    struct err e = ERR_INIT;
    struct worker *w = worker_start(first_core(), &e);
    ck_assert_msg(w != NULL, "%s", e.n > 0 ? e.lines[0] : "");
    return w;
}

static const int numbers[] = {0, 1, 2, 3, 4, 5, 6, 7};

static void *number(int i)
{
    return (void *)(uintptr_t)&numbers[i];
}

/* Job 1 runs, 2 to 6 wait. From 4 on they are withdrawn: 1, 2, 3 run, and tickets end in order. */
START_TEST(what_is_withdrawn_does_not_run)
{
    struct backend_stamps at;
    struct backend_stamps before = {0};
    struct worker *w = worker_new();
    ck_assert_int_eq(worker_submit(w, note_and_block, number(1)), 1);
    (void)sem_wait(&begun);
    for (int i = 2; i <= 6; i++) {
        ck_assert_int_eq(worker_submit(w, note, number(i)), i);
    }
    ck_assert_int_eq(worker_wait(w, 1, 1000000), -ETIMEDOUT);
    ck_assert_int_eq(worker_stamps(w, 1, &at), -EINVAL);
    ck_assert_int_eq(worker_cancel(w, 4), 3);
    ck_assert_int_eq(worker_cancel(w, 7),
                     6); /* there is none: all that there are stay as they are */
    ck_assert_int_eq(sem_post(&go_on), 0);
    ck_assert_int_eq(worker_wait(w, 3, minute_ns), 0);
    for (int i = 4; i <= 6; i++) {
        ck_assert_int_eq(worker_wait(w, i, minute_ns), -ECANCELED);
        ck_assert_int_eq(worker_stamps(w, i, &at), -EINVAL);
    }
    for (int i = 1; i <= 3; i++) {
        ck_assert_int_eq(worker_stamps(w, i, &at), 0);
        ck_assert(at.submit_ns <= at.start_ns && at.start_ns <= at.end_ns);
        ck_assert(at.start_ns >= before.end_ns && at.submit_ns >= before.submit_ns);
        before = at;
    }
    ck_assert_int_eq(worker_stamps(w, 0, &at), -EINVAL);
    ck_assert_int_eq(worker_stamps(w, 7, &at), -EINVAL);
    ck_assert_int_eq(n_ran, 3);
    ck_assert(ran[0] == 1 && ran[1] == 2 && ran[2] == 3);
    /* What runs already stays; what is behind it goes. */
    ck_assert_int_eq(worker_submit(w, note_and_block, number(7)), 7);
    (void)sem_wait(&begun);
    ck_assert_int_eq(worker_submit(w, note, number(1)), 8);
    ck_assert_int_eq(worker_cancel(w, 2), 7);
    ck_assert_int_eq(sem_post(&go_on), 0);
    ck_assert_int_eq(worker_wait(w, 7, minute_ns), 0);
    ck_assert_int_eq(worker_wait(w, 8, minute_ns), -ECANCELED);
    ck_assert_int_eq(n_ran, 4);
    /* One that is stopped ends what runs and drops the rest. */
    ck_assert_int_eq(worker_submit(w, note_and_block, number(6)), 9);
    (void)sem_wait(&begun);
    ck_assert_int_eq(worker_submit(w, note_and_block, number(6)), 10);
    ck_assert_int_eq(worker_cancel(w, 10), 9);
    ck_assert_int_eq(sem_post(&go_on), 0);
    worker_stop(w);
    ck_assert_int_eq(n_ran, 5);
}
END_TEST

/* A job's processor time is its own, and the worker's is their sum. */
START_TEST(processor_time_is_that_of_the_jobs)
{
    static int64_t spans_ns[] = {2000000, 5000000};
    struct worker *w = worker_new();
    struct backend_stamps at[2];
    int64_t before_ns = clock_now_ns();
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(worker_submit(w, spin, &spans_ns[i]), i + 1);
    }
    ck_assert_int_eq(worker_wait(w, 2, minute_ns), 0);
    int64_t after_ns = clock_now_ns();
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(worker_stamps(w, i + 1, &at[i]), 0);
        ck_assert_int_ge(at[i].cpu_ns, spans_ns[i]);
        ck_assert_int_le(at[i].cpu_ns, after_ns - before_ns);
    }
    ck_assert_int_eq(worker_busy_ns(w), at[0].cpu_ns + at[1].cpu_ns);
    worker_stop(w);
}
END_TEST

/* As many as its ring has: the next one would take the place of one that runs. */
START_TEST(a_queue_is_as_long_as_it_says)
{
    struct backend_stamps at;
    struct worker *w = worker_new();
    ck_assert_int_eq(worker_submit(w, note_and_block, number(1)), 1);
    (void)sem_wait(&begun);
    for (int i = 2; i <= BACKEND_MAX_INFLIGHT; i++) {
        ck_assert_int_eq(worker_submit(w, note_core, NULL), i);
    }
    ck_assert_int_eq(worker_submit(w, note_core, NULL), -EAGAIN);
    ck_assert_int_eq(sem_post(&go_on), 0);
    ck_assert_int_eq(worker_wait(w, BACKEND_MAX_INFLIGHT, minute_ns), 0);
    ck_assert_int_eq(worker_stamps(w, 1, &at), 0);
    ck_assert_int_eq(worker_submit(w, note_core, NULL), BACKEND_MAX_INFLIGHT + 1);
    ck_assert_int_eq(worker_wait(w, BACKEND_MAX_INFLIGHT + 1, minute_ns), 0);
    ck_assert_int_eq(worker_stamps(w, 1, &at), -EINVAL);
    int64_t cpu_ns = 0;
    for (int i = 2; i <= BACKEND_MAX_INFLIGHT + 1; i++) {
        ck_assert_int_eq(worker_stamps(w, i, &at), 0);
        ck_assert_int_ge(at.cpu_ns, 0);
        cpu_ns += at.cpu_ns;
    }
    /* The first one, whose stamps are gone, took some, too. */
    ck_assert_int_ge(worker_busy_ns(w), cpu_ns);
    ck_assert_int_lt(worker_busy_ns(w) - cpu_ns, NS_PER_S);
    ck_assert_int_eq(on_core, (int)first_core());
    ck_assert_int_eq(allowed_cores, 1);
    worker_stop(w);
}
END_TEST

START_TEST(a_worker_has_a_core_that_is_there)
{
    struct err e = ERR_INIT;
    ck_assert_ptr_null(worker_start(CPU_SETSIZE, &e));
    ck_assert_str_eq(e.lines[0], "cpu1024: there is no such core");
    ck_assert_ptr_null(worker_start(CPU_SETSIZE - 1, &e));
    ck_assert_uint_eq(e.n, 2);
    ck_assert_ptr_nonnull(strstr(e.lines[1], "cpu1023: cannot start a thread on this core: "));
    ck_assert_ptr_null(team_start((const uint32_t[]){first_core(), CPU_SETSIZE - 1}, 2, &e));
    ck_assert_uint_eq(e.n, 3);
    ck_assert_ptr_nonnull(strstr(e.lines[2], "cpu1023: cannot start a thread on this core: "));
    err_fini(&e);
    int64_t before_ns = clock_now_ns();
    worker_sleep(2000000);
    ck_assert_int_ge(clock_now_ns() - before_ns, 2000000);
}
END_TEST

/* Those that the process may use, in order; more than there is room for are counted. */
START_TEST(cores_are_those_of_the_process)
{
    uint32_t cores[CPU_SETSIZE];
    cpu_set_t set;
    uint32_t n = worker_cores(cores, CPU_SETSIZE);
    ck_assert_int_eq(sched_getaffinity(0, sizeof set, &set), 0);
    ck_assert_int_eq((int)n, CPU_COUNT(&set));
    for (uint32_t i = 0; i < n; i++) {
        ck_assert(CPU_ISSET(cores[i], &set) && (i == 0 || cores[i] > cores[i - 1]));
    }
    uint32_t few[3] = {7777, 7777, 7777};
    ck_assert_uint_eq(worker_cores(few, 1), n);
    ck_assert(few[0] == cores[0] && few[1] == 7777);
}
END_TEST

/* ---- a team ---- */

enum { MEMBERS = 3, ROUNDS = 200 };

struct round {
    int parts[MEMBERS], cores[MEMBERS];
};

static void member(void *arg, uint32_t i)
{
    struct round *r = arg;
    r->parts[i]++;
    r->cores[i] = sched_getcpu();
}

/* Every part once a round, and all done when it ends. */
START_TEST(a_team_does_every_part_once)
{
    uint32_t all[CPU_SETSIZE];
    uint32_t n_cores = worker_cores(all, CPU_SETSIZE);
    for (uint32_t n = 1; n <= MEMBERS; n++) {
        struct err e = ERR_INIT;
        uint32_t cores[MEMBERS];
        for (uint32_t i = 0; i < n; i++) {
            cores[i] = all[(n_cores - 1 + i) % n_cores]; /* the second one first */
        }
        struct team *t = team_start(cores, n, &e);
        ck_assert_ptr_nonnull(t);
        struct round r = {{0}, {0}};
        for (int k = 1; k <= ROUNDS; k++) {
            team_run(t, member, &r);
            for (uint32_t i = 0; i < MEMBERS; i++) {
                ck_assert_int_eq(r.parts[i], i < n ? k : 0);
            }
            for (uint32_t i = 1; i < n; i++) {
                ck_assert_int_eq(r.cores[i], (int)cores[i]);
            }
        }
        team_stop(t);
    }
    team_stop(NULL);
}
END_TEST

/* ---- cores as devices ---- */

static struct {
    int n;
    const uint8_t *w[32];
    uint64_t count[32]; /* of elements, or outputs */
    uint32_t flop[32];
} seen;

static float see(const void *w, uint64_t count, uint32_t flop)
{
    seen.w[seen.n] = w;
    seen.flop[seen.n] = flop;
    seen.count[seen.n++] = count;
    return 0.0f;
}

static float see_read(const float *x, uint64_t n)
{
    return see(x, n, 0);
}

static float see_knob(const float *x, uint64_t n, uint32_t flop)
{
    return see(x, n, flop);
}

static void see_product(const struct native_product *p, const float *x, const void *w, float *y)
{
    (void)x, (void)y;
    (void)see(w, p->n, p->rows);
}

static void see_attention(const struct native_attention *a, const float *q, const uint16_t *keys,
                          const uint16_t *values, float *out, float *scratch)
{
    (void)q, (void)out, (void)scratch;
    (void)see(keys, (uint64_t)((const uint8_t *)values - (const uint8_t *)keys), a->rows);
}

static struct cpu_backend noting = {{.name = "noting",
                                     .read = see_read,
                                     .knob = see_knob,
                                     .product_f32 = see_product,
                                     .product_f16 = see_product,
                                     .product_i8 = see_product,
                                     .attention = see_attention},
                                    .description = "kernels that note"};

static struct backend noting_backend = {.options = {.pool_bytes = 5 * 4096 - 100},
                                        .state = &noting};

static void only_cores(uint32_t n)
{
    cpu_set_t all;
    cpu_set_t set;
    CPU_ZERO(&set);
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    for (size_t i = 0; i < CPU_SETSIZE && n > 0; i++) {
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &set);
            n--;
        }
    }
    ck_assert_int_eq(sched_setaffinity(0, sizeof set, &set), 0);
}

/* One core is one device. Of several there is one more: all of them. A set has the widths that it
 * has kernels of. */
START_TEST(cores_are_devices_and_so_are_all_of_them)
{
    uint32_t cores[CPU_SETSIZE];
    uint32_t n = worker_cores(cores, CPU_SETSIZE);
    struct backend_info info[BACKEND_MAX_DEVICES];
    uint32_t have = cpu_enumerate(&noting_backend, info, BACKEND_MAX_DEVICES);
    char name[32];
    char text[64];
    ck_assert_uint_eq(have, n > 1 ? n + 1 : 1);
    for (uint32_t i = 0; i < have && i < BACKEND_MAX_DEVICES; i++) {
        (void)snprintf(name, sizeof name, "cpu%u", i < n ? cores[i] : 0);
        (void)snprintf(text, sizeof text, "%u threads, kernels that note", n);
        ck_assert_str_eq(info[i].name, i < n ? name : "cpu");
        ck_assert_str_eq(info[i].description, i < n ? "one core, kernels that note" : text);
        ck_assert_int_eq(info[i].kind, DEVICE_KIND_CPU);
        ck_assert_uint_eq(info[i].act_bits, 32);
        ck_assert_uint_eq(info[i].kv_bits, 16);
        ck_assert_uint_eq(info[i].n_widths, 3);
        ck_assert(info[i].weight_bits[0] == 32 && info[i].weight_bits[1] == 16 &&
                  info[i].weight_bits[2] == 8);
    }
    memset(info, 0, sizeof info);
    ck_assert_uint_eq(cpu_enumerate(&noting_backend, info, 1), have); /* how many there are */
    ck_assert_str_eq(info[1].name, "");
    only_cores(1);
    struct cpu_backend few = {{.name = "few", .product_i8 = see_product}, .description = "few"};
    struct backend b = {.options = {.pool_bytes = 4096}, .state = &few};
    ck_assert_uint_eq(cpu_enumerate(&b, info, BACKEND_MAX_DEVICES), 1);
    ck_assert_uint_eq(info[0].kv_bits, 0);
    ck_assert_uint_eq(info[0].n_widths, 2);
    ck_assert(info[0].weight_bits[0] == 32 && info[0].weight_bits[1] == 8);
    struct err e = ERR_INIT;
    ck_assert_ptr_null(cpu_open(&b, 1, &e));
    ck_assert_str_eq(e.lines[0], "device 1: there are 1 cores");
    b.options.pool_bytes = UINT64_MAX / 2;
    ck_assert_ptr_null(cpu_open(&b, 0, &e));
    ck_assert_ptr_nonnull(strstr(e.lines[1], "no 8796093022208 MB of memory for weights"));
    err_fini(&e);
}
END_TEST

static const struct kernel_spec gemv8 = {
    .op = KERNEL_GEMV, .weight_bits = 8, .act_bits = 32, .rows = 1, .n = 84, .k = 64};
static const struct kernel_spec decode = {.op = KERNEL_DECODE,
                                          .weight_bits = 16,
                                          .act_bits = 32,
                                          .rows = 3,
                                          .heads = 6,
                                          .kv_heads = 2,
                                          .head_dim = 16,
                                          .context_tokens = 20};
static const struct kernel_spec stream = {
    .op = KERNEL_READ, .weight_bits = 32, .act_bits = 32, .rows = 1, .stream_bytes = 4160};

static bool takes(struct kernel_spec s, struct backend_device *d)
{
    return cpu_supports(d, &s);
}

/* What has no kernel, by one condition each. */
START_TEST(what_has_no_kernel_is_refused)
{
    struct err e = ERR_INIT;
    struct backend_prep prep;
    struct backend_device *d = cpu_open(&noting_backend, 0, &e);
    ck_assert_ptr_nonnull(d);
    struct kernel_spec s = gemv8;
    ck_assert(takes(s, d));
    s.act_bits = 16;
    ck_assert(!takes(s, d));
    s = gemv8;
    s.n = 86;
    ck_assert(!takes(s, d));
    s = gemv8;
    s.k = 72;
    ck_assert(!takes(s, d));
    for (uint32_t bits = 4; bits <= 32; bits *= 2) {
        s = gemv8;
        s.weight_bits = bits;
        ck_assert_int_eq(takes(s, d), bits > 4);
        noting.kernels.product_f32 = bits == 32 ? NULL : see_product;
        noting.kernels.product_f16 = bits == 16 ? NULL : see_product;
        noting.kernels.product_i8 = bits == 8 ? NULL : see_product;
        ck_assert(!takes(s, d));
    }
    noting.kernels.product_f32 = see_product;
    s = decode;
    ck_assert(takes(s, d));
    s.weight_bits = 8;
    ck_assert(!takes(s, d));
    s = decode;
    s.head_dim = 24;
    ck_assert(!takes(s, d));
    s = decode;
    s.kv_heads = 0;
    ck_assert(!takes(s, d));
    s.kv_heads = 4;
    ck_assert(!takes(s, d));
    s = decode;
    s.heads = 32;
    ck_assert(takes(s, d)); /* 16 to a key head */
    s.heads = 34;
    ck_assert(!takes(s, d));
    s = decode;
    s.rows = 20;
    ck_assert(takes(s, d));
    s.rows = 21;
    ck_assert(!takes(s, d));
    noting.kernels.attention = NULL;
    ck_assert(!takes(decode, d));
    noting.kernels.attention = see_attention;
    s = stream;
    ck_assert(takes(s, d));
    s.stream_bytes += 32;
    ck_assert(!takes(s, d));
    ck_assert_ptr_null(cpu_prepare(d, &s, &prep, &e));
    ck_assert_str_eq(e.lines[0], "read-4k: not supported by this backend");
    /* The pool has five pages: a copy is there twice. */
    s = (struct kernel_spec){
        .op = KERNEL_COPY, .weight_bits = 32, .act_bits = 32, .rows = 1, .stream_bytes = 10240};
    struct backend_kernel *k = cpu_prepare(d, &s, &prep, &e);
    ck_assert_ptr_nonnull(k);
    ck_assert_str_eq(prep.note, "noting");
    ck_assert(prep.compile_s == 0.0 && !prep.cached);
    cpu_release(k);
    s.stream_bytes += 64;
    ck_assert_ptr_null(cpu_prepare(d, &s, &prep, &e));
    ck_assert_str_eq(e.lines[1], "copy-10k: needs 1 MB of weights: use a larger --pool-mb");
    err_fini(&e);
    cpu_close(d);
}
END_TEST

/* Five launches, one after the other; then all that they were given. */
static void five(struct backend_device *d, const struct kernel_spec *s)
{
    static int64_t tickets; /* of the one device */
    struct err e = ERR_INIT;
    struct backend_prep prep;
    struct backend_counters c = {false, 0};
    struct backend_kernel *k = cpu_prepare(d, s, &prep, &e);
    ck_assert_ptr_nonnull(k);
    seen.n = 0;
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(cpu_submit(k), ++tickets);
    }
    ck_assert_int_eq(cpu_wait(d, tickets, minute_ns), 0);
    cpu_counters(d, &c);
    ck_assert(c.busy_valid && c.busy_ns >= 0);
    cpu_release(k);
}

/* Launches walk through the pool by whole pages, and begin again where the rest is too small. */
START_TEST(launches_read_another_piece_each)
{
    static const uint32_t at[] = {0, 2, 0, 2, 0}; /* pages; of five pages the fifth is too little */
    struct err e = ERR_INIT;
    struct backend_device *d = cpu_open(&noting_backend, 0, &e);
    ck_assert_ptr_nonnull(d);
    five(d, &stream); /* 4160 bytes: two pages */
    const uint8_t *pool = seen.w[0];
    ck_assert_int_eq(seen.n, 5);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(seen.w[i] - pool, at[i] * 4096);
        ck_assert_uint_eq(seen.count[i], 1040);
    }
    struct kernel_spec s = stream;
    s.op = KERNEL_KNOB;
    s.stream_bytes = 4096;
    s.intensity_flop_per_byte = 3;
    five(d, &s); /* behind the last one's two pages: 2, 3, 4, 0, 1 */
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(seen.w[i] - pool, (i + 2) % 5 * 4096);
        ck_assert_uint_eq(seen.count[i], 1024);
        ck_assert_uint_eq(seen.flop[i], 12); /* an element has four bytes */
    }
    s = gemv8; /* 5376 bytes: two pages, from the third on */
    five(d, &s);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(seen.w[i] - pool, i % 2 == 0 ? 8192 : 0);
        ck_assert_uint_eq(seen.count[i], 84);
    }
    /* Three sequences of 2 x 20 x 16 keys in half precision, 1280 bytes each, then all values. */
    s = decode;
    five(d, &s);
    ck_assert_int_eq(seen.n, 15);
    for (int i = 0; i < 15; i++) {
        ck_assert_int_eq(seen.w[i] - seen.w[i / 3 * 3], i % 3 * 1280);
        ck_assert_uint_eq(seen.count[i], 3 * 1280);
        ck_assert_uint_eq(seen.flop[i], 1); /* a row each */
    }
    s.op = KERNEL_PREFILL;
    five(d, &s);
    ck_assert_int_eq(seen.n, 5);
    ck_assert_uint_eq(seen.flop[0], 3);
    ck_assert_uint_eq(seen.count[0], 1280);
    cpu_close(d);
    err_fini(&e);
}
END_TEST

/* ---- simulated devices ---- */

static struct simdev_truth truth;

static void truth_setup(void)
{
    const char *path = datadir_path("hwmodels/soc/core-ultra-5-125h.json");
    struct err e = ERR_INIT;
    simdev_truth_init(&truth);
    cJSON *root = json_read_file(path, &e);
    ck_assert_int_eq(soc_parse(root, path, &truth.soc, &e), 0);
    cJSON_Delete(root);
}

static struct backend *sim_backend(void)
{
    struct err e = ERR_INIT;
    struct backend_options o = {.truth = &truth};
    struct backend *b = backend_sim.start(&o, &e);
    ck_assert_ptr_nonnull(b);
    return b;
}

static struct backend_device *sim_device(struct backend *b, uint32_t i)
{
    struct err e = ERR_INIT;
    struct backend_device *d = backend_sim.open(b, i, &e);
    ck_assert_ptr_nonnull(d);
    return d;
}

static struct backend_kernel *sim_kernel(struct backend_device *d, const struct kernel_spec *s)
{
    struct err e = ERR_INIT;
    struct backend_prep prep;
    struct backend_kernel *k = backend_sim.prepare(d, s, &prep, &e);
    ck_assert_ptr_nonnull(k);
    ck_assert(prep.compile_s == truth.compile_s && !prep.cached);
    return k;
}

static const struct kernel_spec heavy = {
    .op = KERNEL_GEMV, .weight_bits = 8, .act_bits = 16, .rows = 1, .n = 4096, .k = 4096};

static bool about(int64_t a_ns, double b_s)
{
    return fabs((double)a_ns - 1e9 * b_s) < 2.0;
}

/* Two kernels that want all of the memory, and one more behind the first. Each other one's draw is
 * what it takes alone; the pace changes where a kernel ends. */
START_TEST(devices_slow_each_other_while_both_run)
{
    truth.contention.cap_bytes_per_s = 40e9;
    truth.lambda[KERNEL_GEMV] = 0.25;
    struct kernel_spec big = heavy;
    big.n *= 8;
    struct backend *b = sim_backend();
    struct backend_device *d[2] = {sim_device(b, 0), sim_device(b, 1)};
    struct backend_kernel *k[2] = {sim_kernel(d[0], &heavy), sim_kernel(d[1], &big)};
    const struct kernel_spec *spec[2] = {&heavy, &big};
    double alone[2];
    double slow[2];
    for (uint32_t i = 0; i < 2; i++) {
        alone[i] = simdev_alone_s(&truth, i, spec[i]);
    }
    for (uint32_t i = 0; i < 2; i++) {
        struct kernel_curve c;
        simdev_curve(&truth, i, spec[i], &c);
        slow[i] = kernel_model_slowdown(&c, kernel_spec_flop(spec[i]), kernel_spec_bytes(spec[i]),
                                        kernel_spec_bytes(spec[1 - i]) / alone[1 - i],
                                        &truth.contention, truth.lambda[KERNEL_GEMV]);
        ck_assert_double_gt(slow[i], 1.2);
    }
    ck_assert_double_lt(2.0 * alone[0] * slow[0], alone[1] * slow[1]);
    ck_assert_int_eq(backend_sim.submit(k[0]), 1);
    ck_assert_int_eq(backend_sim.submit(k[0]), 2);
    ck_assert_int_eq(backend_sim.submit(k[1]), 1);
    ck_assert_int_eq(backend_sim.wait(d[0], 1, minute_ns), 0);
    double first_s = alone[0] * slow[0];
    struct backend_stamps at;
    ck_assert_int_eq(backend_sim.stamps(d[0], 1, &at), 0);
    ck_assert(at.submit_ns == 0 && at.start_ns == 0 && about(at.end_ns, first_s));
    ck_assert_int_eq(at.cpu_ns, -1);
    ck_assert_int_eq(backend_now_ns(b), at.end_ns);
    ck_assert_int_eq(backend_sim.stamps(d[1], 1, &at), -EINVAL);
    ck_assert_int_eq(backend_sim.wait(d[1], 1, minute_ns), 0);
    ck_assert_int_eq(backend_sim.stamps(d[0], 2, &at), 0);
    ck_assert(about(at.start_ns, first_s) && about(at.end_ns, 2.0 * first_s));
    ck_assert_int_eq(backend_sim.stamps(d[1], 1, &at), 0);
    /* Slowed by two of the first device, then alone. */
    double rest_s = alone[1] - 2.0 * first_s / slow[1];
    ck_assert_msg(about(at.end_ns, 2.0 * first_s + rest_s), "%lld", (long long)at.end_ns);
    ck_assert_int_eq(at.start_ns, 0);
    for (uint32_t i = 0; i < 2; i++) {
        struct backend_counters c = {false, 0};
        backend_sim.counters(d[i], &c);
        ck_assert(c.busy_valid &&
                  about(c.busy_ns, i == 0 ? 2.0 * first_s : 2.0 * first_s + rest_s));
    }
    /* A closed device takes part no more, and opens again. */
    backend_sim.release(k[1]);
    backend_sim.close(d[1]);
    int64_t before_ns = backend_now_ns(b);
    ck_assert_int_eq(backend_sim.submit(k[0]), 3);
    backend_idle(b, minute_ns);
    ck_assert_int_eq(backend_now_ns(b), before_ns + minute_ns);
    ck_assert_int_eq(backend_sim.stamps(d[0], 3, &at), 0);
    ck_assert(at.submit_ns == before_ns && about(at.end_ns - before_ns, alone[0]));
    backend_sim.release(k[0]);
    backend_sim.close(d[0]);
    backend_sim.stop(b);
}
END_TEST

/* The other form: 15 % for the first device and 30 % for the second, whatever they draw. */
START_TEST(a_wrong_contention_is_of_the_device_alone)
{
    truth.form = SIMDEV_PRIVATE;
    struct backend *b = sim_backend();
    struct backend_device *d[2] = {sim_device(b, 0), sim_device(b, 1)};
    struct kernel_spec long_one = heavy;
    long_one.n *= 100;
    for (uint32_t i = 0; i < 2; i++) {
        struct backend_kernel *k = sim_kernel(d[i], &heavy);
        struct backend_kernel *other = sim_kernel(d[1 - i], &long_one);
        int64_t before_ns = backend_now_ns(b);
        int64_t ticket = backend_sim.submit(k);
        int64_t last = backend_sim.submit(other);
        ck_assert_int_eq(backend_sim.wait(d[i], ticket, minute_ns), 0);
        double alone_s = simdev_alone_s(&truth, i, &heavy);
        ck_assert(about(backend_now_ns(b) - before_ns, alone_s * (i == 0 ? 1.15 : 1.30)));
        ck_assert_int_eq(backend_sim.wait(d[1 - i], last, minute_ns), 0);
        backend_sim.release(
            k); /* the kernel that was made first, which is not the first of the list */
        backend_sim.release(other);
    }
    backend_sim.close(d[0]);
    backend_sim.close(d[1]);
    backend_sim.stop(b);
}
END_TEST

/* Each kind of chance by itself, where it is none. */
START_TEST(chance_changes_times_as_stated)
{
    struct backend_stamps at;
    double alone_s = simdev_alone_s(&truth, 0, &heavy);
    for (int kind = 0; kind < 3; kind++) {
        truth.outlier_frac = kind == 0 ? 1.0 : 0.0;
        truth.outlier_factor = 4.0;
        truth.drift_frac = kind == 1 ? 0.1 : 0.0;
        truth.drift_period_s = 8.0;
        truth.compile_s = kind == 1 ? 2.0 : 0.0; /* a quarter of the period */
        truth.hang_frac = kind == 2 ? 1.0 : 0.0;
        truth.foreign_frac = 0.25 * kind;
        struct backend *b = sim_backend();
        struct backend_device *d = sim_device(b, 0);
        struct backend_kernel *k = sim_kernel(d, &heavy);
        struct backend_host host = {-1.0, -1.0};
        ck_assert(about(backend_now_ns(b), truth.compile_s));
        backend_sim.host(b, &host);
        ck_assert(host.foreign_frac == 0.25 * kind && host.steal_frac == 0.0);
        ck_assert_int_eq(backend_sim.submit(k), 1);
        int rc = backend_sim.wait(d, 1, 3 * (int64_t)NS_PER_S);
        if (kind == 2) {
            ck_assert_int_eq(rc, -ETIMEDOUT);
            ck_assert(about(backend_now_ns(b), 3.0));
        } else {
            ck_assert_int_eq(rc, 0);
            ck_assert_int_eq(backend_sim.stamps(d, 1, &at), 0);
            ck_assert(about(at.end_ns - at.start_ns, alone_s * (kind == 0 ? 4.0 : exp(0.1))));
        }
        backend_sim.close(d);
        backend_sim.stop(b); /* with the kernel of a device that hangs */
    }
    /* Noise is a factor whose logarithm is normal: its deviation over many launches. */
    truth.hang_frac = 0.0;
    truth.noise_frac = 0.05;
    struct backend *b = sim_backend();
    struct backend_device *d = sim_device(b, 0);
    struct backend_kernel *k = sim_kernel(d, &heavy);
    double sum = 0.0;
    double squares = 0.0;
    enum { N = 4000 };
    for (int64_t i = 1; i <= N; i++) {
        ck_assert_int_eq(backend_sim.submit(k), i);
        ck_assert_int_eq(backend_sim.wait(d, i, minute_ns), 0);
        ck_assert_int_eq(backend_sim.stamps(d, i, &at), 0);
        double off = log(1e-9 * (double)(at.end_ns - at.start_ns) / alone_s);
        sum += off;
        squares += off * off;
    }
    /* Standard errors are 0.05 / sqrt(N) and 0.05 / sqrt(2 N): four of them. */
    ck_assert_double_lt(fabs(sum / N), 4.0 * 0.05 / sqrt(N));
    ck_assert_double_lt(fabs(sqrt(squares / N) - 0.05), 4.0 * 0.05 / sqrt(2.0 * N));
    backend_sim.release(k);
    backend_sim.close(d);
    backend_sim.stop(b);
}
END_TEST

START_TEST(a_simulated_queue_is_withdrawn_and_as_long_as_it_says)
{
    struct backend_stamps at;
    struct err e = ERR_INIT;
    struct backend *b = sim_backend();
    struct backend_device *d = sim_device(b, 0);
    ck_assert_ptr_null(backend_sim.open(b, 0, &e));
    ck_assert_str_eq(e.lines[0], "device 0: not there, or open already");
    ck_assert_ptr_null(backend_sim.open(b, truth.soc.machine.n_devices, &e));
    err_fini(&e);
    struct backend_kernel *k = sim_kernel(d, &heavy);
    for (int64_t i = 1; i <= BACKEND_MAX_INFLIGHT; i++) {
        ck_assert_int_eq(backend_sim.submit(k), i);
    }
    ck_assert_int_eq(backend_sim.submit(k), -EAGAIN);
    ck_assert_int_eq(backend_sim.wait(d, 2, minute_ns), 0);  /* 3 begins with the next step */
    ck_assert_int_eq(backend_sim.wait(d, 5, 1), -ETIMEDOUT); /* 3 runs */
    ck_assert_int_eq(backend_sim.cancel(d, 1), 3);
    ck_assert_int_eq(backend_sim.cancel(d, BACKEND_MAX_INFLIGHT + 9), BACKEND_MAX_INFLIGHT);
    ck_assert_int_eq(backend_sim.wait(d, 4, minute_ns), -ECANCELED);
    ck_assert_int_eq(backend_sim.wait(d, 3, 0), 0);
    ck_assert_int_eq(backend_sim.stamps(d, 4, &at), -EINVAL);
    ck_assert_int_eq(backend_sim.stamps(d, 0, &at), -EINVAL);
    ck_assert_int_eq(backend_sim.stamps(d, 1, &at), 0);
    ck_assert(backend_sim.supports(d, &heavy));
    ck_assert_int_eq(backend_sim.wait(d, BACKEND_MAX_INFLIGHT, minute_ns), -ECANCELED);
    ck_assert_int_eq(backend_sim.submit(k), BACKEND_MAX_INFLIGHT + 1);
    ck_assert_int_eq(backend_sim.wait(d, BACKEND_MAX_INFLIGHT + 1, minute_ns), 0);
    ck_assert_int_eq(backend_sim.stamps(d, 1, &at), -EINVAL);
    ck_assert_int_eq(backend_sim.stamps(d, 2, &at), 0);
    ck_assert_int_eq(backend_sim.submit(k), BACKEND_MAX_INFLIGHT + 2);
    ck_assert_int_eq(backend_sim.cancel(d, BACKEND_MAX_INFLIGHT + 2), BACKEND_MAX_INFLIGHT + 1);
    ck_assert_int_eq(backend_sim.wait(d, BACKEND_MAX_INFLIGHT + 2, 0), -ECANCELED);
    backend_sim.release(k);
    backend_sim.close(d);
    backend_sim.stop(b);
}
END_TEST

/* Devices have the names and kinds of the machine's file, and each width of its entries once. */
START_TEST(simulated_devices_are_those_of_the_file)
{
    struct backend_info info[BACKEND_MAX_DEVICES];
    const struct machine *m = &truth.soc.machine;
    struct backend *b = sim_backend();
    ck_assert_uint_eq(backend_sim.enumerate(b, info, BACKEND_MAX_DEVICES), m->n_devices);
    for (uint32_t i = 0; i < m->n_devices; i++) {
        const struct soc_device *d = &truth.soc.devices[i];
        uint32_t n = 0;
        ck_assert_str_eq(info[i].name, m->devices[i].name);
        ck_assert_ptr_nonnull(strstr(info[i].description, m->name));
        ck_assert_int_eq(info[i].kind, m->devices[i].kind);
        ck_assert(info[i].act_bits == 16 && info[i].kv_bits == 16);
        for (uint32_t r = 0; r < d->n_runtimes; r++) {
            bool first = true;
            for (uint32_t k = 0; k < r; k++) {
                first = first && d->runtimes[k].weight_bits != d->runtimes[r].weight_bits;
            }
            if (first) {
                ck_assert_uint_eq(info[i].weight_bits[n++], d->runtimes[r].weight_bits);
            }
        }
        ck_assert_uint_eq(info[i].n_widths, n);
    }
    memset(info, 0, sizeof info);
    ck_assert_uint_eq(backend_sim.enumerate(b, info, 1), m->n_devices);
    ck_assert_str_eq(info[1].name, "");
    backend_sim.stop(b);
    struct err e = ERR_INIT;
    struct backend_options o = {.truth = NULL};
    ck_assert_ptr_null(backend_sim.start(&o, &e));
    ck_assert_ptr_nonnull(strstr(e.lines[0], "needs a SoC to simulate"));
    err_fini(&e);
}
END_TEST

/* ---- --sim ---- */

START_TEST(every_key_sets_its_own_number)
{
    struct err e = ERR_INIT;
    struct simdev_truth t;
    struct {
        const char *key;
        double *at, low, high;
    } keys[] = {
        {"noise", &t.noise_frac, 0.0, 1.0},
        {"drift", &t.drift_frac, 0.0, 0.5},
        {"drift_period_s", &t.drift_period_s, 1.0, 1e6},
        {"outliers", &t.outlier_frac, 0.0, 1.0},
        {"outlier_factor", &t.outlier_factor, 1.0, 1000.0},
        {"foreign", &t.foreign_frac, 0.0, 1.0},
        {"compile_s", &t.compile_s, 0.0, 1000.0},
        {"hang", &t.hang_frac, 0.0, 1.0},
        {"sharpness", &t.contention.sharpness, 0.5, 100.0},
        {"lambda_gemv", &t.lambda[KERNEL_GEMV], 0.0, 2.0},
        {"lambda_decode", &t.lambda[KERNEL_DECODE], 0.0, 2.0},
        {"lambda_gemm", &t.lambda[KERNEL_GEMM], 0.0, 2.0},
    };
    enum { N = sizeof keys / sizeof keys[0] };
    char text[80];
    for (int i = 0; i < N; i++) {
        for (int end = 0; end < 2; end++) {
            double value = end == 0 ? keys[i].low : keys[i].high;
            simdev_truth_init(&t);
            (void)snprintf(text, sizeof text, "%s=%.17g", keys[i].key, value);
            ck_assert_int_eq(simdev_truth_set(&t, text, &e), 0);
            ck_assert_double_eq(*keys[i].at, value);
            struct simdev_truth plain;
            simdev_truth_init(&plain);
            *keys[i].at = *(double *)(void *)((char *)&plain + ((char *)keys[i].at - (char *)&t));
            ck_assert_int_eq(memcmp(&t, &plain, sizeof t), 0); /* and no other */
            (void)snprintf(text, sizeof text, "%s=%.17g", keys[i].key,
                           nextafter(value, end == 0 ? -1.0 : 2e6));
            ck_assert_int_eq(simdev_truth_set(&t, text, &e), -EINVAL);
            (void)snprintf(text, sizeof text, "must be a number from %g to %g", keys[i].low,
                           keys[i].high);
            ck_assert_ptr_nonnull(strstr(e.lines[e.n - 1], text));
        }
    }
    simdev_truth_init(&t);
    ck_assert_uint_eq(t.seed, 1);
    ck_assert_double_eq(t.contention.sharpness, 6.0);
    ck_assert(t.drift_period_s == 600.0 && t.outlier_factor == 3.0);
    ck_assert_int_eq(simdev_truth_set(&t, "seed=0,noise=0.5,form=private", &e), 0);
    ck_assert(t.seed == 0 && t.noise_frac == 0.5 && t.form == SIMDEV_PRIVATE);
    ck_assert_int_eq(simdev_truth_set(&t, "seed=7,form=model", &e), 0);
    ck_assert(t.seed == 7 && t.form == SIMDEV_MODEL);
    ck_assert_int_eq(simdev_truth_set(&t, "form=fill", &e), 0);
    ck_assert_int_eq(t.form, SIMDEV_FILL);
    ck_assert_int_eq(simdev_truth_set(&t, "form=steps", &e), 0);
    ck_assert_int_eq(t.form, SIMDEV_STEPS);
    /* All that is wrong is said, and what is right is set. */
    size_t before = e.n;
    ck_assert_int_eq(simdev_truth_set(&t, "noise,form=round,hue=1,drift=x,drift=,seed=3", &e),
                     -EINVAL);
    ck_assert_uint_eq(e.n, before + 5);
    ck_assert_str_eq(e.lines[before], "--sim noise: must be KEY=VALUE");
    ck_assert_str_eq(e.lines[before + 1],
                     "--sim form=round: must be model, fill, steps or private");
    ck_assert_ptr_nonnull(strstr(e.lines[before + 2], "--sim hue: not known; noise, drift,"));
    ck_assert_ptr_nonnull(
        strstr(e.lines[before + 3], "--sim drift=x: must be a number from 0 to 0.5"));
    ck_assert_ptr_nonnull(
        strstr(e.lines[before + 4], "--sim drift=: must be a number from 0 to 0.5"));
    ck_assert_uint_eq(t.seed, 3);
    err_fini(&e);
}
END_TEST

/* ---- the machine ---- */

static char dir[64];

static void put(const char *name, const char *text)
{
    char *path = xformat("%s/%s", dir, name);
    for (char *at = path + strlen(dir) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        (void)mkdir(path, 0700);
        *at = '/';
    }
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    (void)fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
    free(path);
}

static void folder_setup(void)
{
    (void)snprintf(dir, sizeof dir, "/tmp/check_backend_parts.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void folder_teardown(void)
{
    char *command = xformat("rm -r %s", dir);
    ck_assert_int_eq(system(command), 0);
    free(command);
}

/* user nice system idle iowait irq softirq steal, each with a digit of its own. */
START_TEST(processor_time_is_busy_stolen_or_neither)
{
    put("stat", "cpu  1 20 300 4000 50000 600000 7000000 80000000 5 5\ncpu0 9 9 9 9 9 9 9 9\n");
    double before_s = 1e-9 * (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    struct host_times t = host_times_read(dir);
    ck_assert(t.valid);
    ck_assert_double_eq(t.busy_ticks, 7600321.0);
    ck_assert_double_eq(t.steal_ticks, 80000000.0);
    ck_assert_double_eq(t.all_ticks, 87654321.0);
    ck_assert_double_ge(t.own_s, before_s);
    ck_assert_double_le(t.own_s, 1e-9 * (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID));
    put("stat", "cpu 1 2 3 4\n"); /* as old kernels have it */
    t = host_times_read(dir);
    ck_assert(t.valid && t.busy_ticks == 6.0 && t.all_ticks == 10.0 && t.steal_ticks == 0.0);
    put("stat", "cpu 1 2 3\n");
    ck_assert(!host_times_read(dir).valid);
    ck_assert(!host_times_read("/nonexistent").valid);
}
END_TEST

/* Between two readings: 400 ticks in all, 150 busy and 40 stolen. This process had some of them. */
START_TEST(what_others_used_is_what_this_process_did_not)
{
    double ticks = (double)sysconf(_SC_CLK_TCK);
    struct host_times a = {true, 1000.0, 100.0, 5000.0, 3.0};
    struct host_times b = {true, 1150.0, 140.0, 5400.0, 3.0 + 49.0 / ticks};
    struct backend_host h = host_times_shares(&a, &b);
    ck_assert_double_eq_tol(h.foreign_frac, 100.0 / 400.0, 1e-12); /* one tick proves nothing */
    ck_assert_double_eq_tol(h.steal_frac, 0.1, 1e-12);
    b.own_s = 3.0 + 200.0 / ticks;
    ck_assert_double_eq(host_times_shares(&a, &b).foreign_frac, 0.0);
    b.busy_ticks = 1000.0 + 900.0;
    ck_assert_double_eq(host_times_shares(&a, &b).foreign_frac, 1.0);
    b.steal_ticks = 90.0; /* it went back, as some hosts' do */
    ck_assert_double_eq(host_times_shares(&a, &b).steal_frac, 0.0);
    b.all_ticks = a.all_ticks;
    ck_assert_double_eq(host_times_shares(&a, &b).foreign_frac, -1.0);
    ck_assert_double_eq(host_times_shares(&a, &b).steal_frac, -1.0);
    b.all_ticks = 5400.0;
    b.valid = false;
    ck_assert_double_eq(host_times_shares(&a, &b).foreign_frac, -1.0);
    ck_assert_double_eq(host_times_shares(&b, &a).foreign_frac, -1.0);
}
END_TEST

/* Packages count, zones of other names do not; one that cannot be read is none. */
START_TEST(energy_is_the_sum_of_packages)
{
    struct host_energy h;
    static const char *const zones[] = {"package-0", "dram", "package-1", "package-2", "package-3"};
    for (int i = 0; i < 5; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "intel-rapl:%d/name", i);
        put(name, zones[i]);
        (void)snprintf(name, sizeof name, "intel-rapl:%d/max_energy_range_uj", i);
        put(name, i == 3 ? "none" : i == 2 ? "50000000" : "100000000");
        (void)snprintf(name, sizeof name, "intel-rapl:%d/energy_uj", i);
        if (i != 4) {
            put(name, "40000000");
        }
    }
    host_energy_init(&h, dir);
    ck_assert_uint_eq(h.n, 2);
    ck_assert_double_eq(host_energy_joules(&h), 0.0);
    put("intel-rapl:0/energy_uj", "41000000");
    put("intel-rapl:1/energy_uj", "90000000");
    put("intel-rapl:2/energy_uj", "2000000"); /* 12 J: it wraps at 50 */
    ck_assert_double_eq(host_energy_joules(&h), 13.0);
    put("intel-rapl:2/energy_uj", "-1");
    ck_assert_double_eq(host_energy_joules(&h), -1.0);
    host_energy_init(&h, "/nonexistent");
    ck_assert_uint_eq(h.n, 0);
    ck_assert_double_eq(host_energy_joules(&h), -1.0);
    char *text = host_energy_text(30.0, 4.0);
    ck_assert_str_eq(text,
                     "this machine's package drew 30.0 J in 4.00 s, 7.5 W in the mean (RAPL, all "
                     "that ran on it)");
    free(text);
}
END_TEST

START_TEST(a_machine_is_described_from_its_files)
{
    char lines[HOST_MAX_LINES][HOST_LINE_BYTES];
    char want[HOST_LINE_BYTES];
    put("cpuinfo", "processor\t: 0\nmodel name\t:  Some CPU @ 3 GHz\r\nmodel name\t: another\n");
    put("meminfo", "MemFree: 1 kB\nMemTotal:       3145728 kB\nMemTotal: 9 kB\n");
    ck_assert_double_eq(host_memory_bytes(dir), 3.0 * 1073741824.0);
    size_t n = host_describe(dir, lines);
    ck_assert_uint_eq(n, 4);
    (void)snprintf(want, sizeof want, "processor: Some CPU @ 3 GHz, %ld cores",
                   sysconf(_SC_NPROCESSORS_ONLN));
    ck_assert_str_eq(lines[0], want);
    ck_assert_ptr_nonnull(strstr(lines[1], "system: Linux "));
    ck_assert_int_eq(strncmp(lines[2], "governor: ", 10), 0);
    (void)snprintf(want, sizeof want, "last-level cache: %.0f KB, memory: 3072 MB",
                   host_cache_bytes() / 1024.0);
    ck_assert_str_eq(lines[3], want);
    ck_assert_uint_eq(host_describe("/nonexistent", lines), 3);
    ck_assert_double_eq(host_memory_bytes("/nonexistent"), 0.0);
    /* The first NPU that says how long it was busy. */
    ck_assert_double_eq(host_npu_busy_us(dir), -1.0);
    put("accel0/device/other", "7");
    ck_assert_double_eq(host_npu_busy_us(dir), -1.0);
    put("accel1/device/npu_busy_time_us", "123456\n");
    ck_assert_double_eq(host_npu_busy_us(dir), 123456.0);
    put("accel1/device/npu_busy_time_us", "busy\n");
    ck_assert_double_eq(host_npu_busy_us(dir), -1.0);
    ck_assert_double_eq(host_npu_busy_us("/nonexistent"), -1.0);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("worker", .setup = worker_setup, .timeout_s = 60),
    TEST(what_is_withdrawn_does_not_run),
    TEST(a_queue_is_as_long_as_it_says),
    TEST(processor_time_is_that_of_the_jobs),
    TEST(a_worker_has_a_core_that_is_there),
    TEST(cores_are_those_of_the_process),
    TEST(a_team_does_every_part_once),
    CASE("cores", .timeout_s = 60),
    TEST(cores_are_devices_and_so_are_all_of_them),
    TEST(what_has_no_kernel_is_refused),
    TEST(launches_read_another_piece_each),
    CASE("sim", .setup = truth_setup, .timeout_s = 60),
    TEST(devices_slow_each_other_while_both_run),
    TEST(a_wrong_contention_is_of_the_device_alone),
    TEST(chance_changes_times_as_stated),
    TEST(a_simulated_queue_is_withdrawn_and_as_long_as_it_says),
    TEST(simulated_devices_are_those_of_the_file),
    TEST(every_key_sets_its_own_number),
    CASE("machine", .setup = folder_setup, .teardown = folder_teardown),
    TEST(processor_time_is_busy_stolen_or_neither),
    TEST(what_others_used_is_what_this_process_did_not),
    TEST(energy_is_the_sum_of_packages),
    TEST(a_machine_is_described_from_its_files),
};
SUITE_MAIN("parts of backends", suite)

/* Devices are a core and all of them, with one worker's queue and a team. */
#define _GNU_SOURCE /* affinity */
#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>

#include "hwmodels/backends/team.h"
#include "hwmodels/backends/worker.h"
#include "sim/base/clock.h"
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
    /* A job that runs already stays; the one behind it goes. */
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

static const struct suite_row suite[] = {
    CASE("worker", .setup = worker_setup, .timeout_s = 60),
    TEST(what_is_withdrawn_does_not_run),
    TEST(a_queue_is_as_long_as_it_says),
    TEST(processor_time_is_that_of_the_jobs),
    TEST(a_worker_has_a_core_that_is_there),
    TEST(cores_are_those_of_the_process),
    TEST(a_team_does_every_part_once),
};
SUITE_MAIN("workers", suite)

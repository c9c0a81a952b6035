/* Workers take job after job. Each is done once, and a job that fails costs itself only. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "experiments/run/pool.h"
#include "sim/base/arena.h"
#include "tests/helpers/suite.h"

#define MAX_JOBS 1300

struct record {
    uint64_t n, next, stop_after;
    uint32_t seen[MAX_JOBS]; /* times a job was reported */
    uint64_t answers[MAX_JOBS];
    char messages[MAX_JOBS][JOBS_MESSAGE_BYTES];
    uint64_t n_done;
};

static bool next(void *ctx, uint64_t *job)
{
    struct record *r = ctx;
    *job = r->next;
    return r->next++ < r->n;
}

static bool wanted(void *ctx, uint64_t job, const char *key)
{
    char own[32];
    (void)ctx;
    (void)snprintf(own, sizeof own, "key %llu", (unsigned long long)job);
    ck_assert_str_eq(key, own);
    return job % 3 != 0;
}

static void done(void *ctx, uint64_t job, const struct job_result *r)
{
    struct record *x = ctx;
    ck_assert_uint_lt(job, MAX_JOBS);
    x->seen[job]++;
    x->n_done++;
    (void)snprintf(x->messages[job], sizeof x->messages[job], "%s", r->message);
    if (r->data != NULL) {
        ck_assert_uint_eq(r->size, sizeof(uint64_t));
        memcpy(&x->answers[job], r->data, sizeof(uint64_t));
    }
}

static bool go_on(void *ctx)
{
    const struct record *r = ctx;
    return r->stop_after == 0 || r->n_done < r->stop_after;
}

static void square(void *ctx, uint64_t job, struct pool_worker *w, struct job_result *r)
{
    (void)ctx;
    (void)w;
    uint64_t answer = job * job;
    r->data = malloc(sizeof answer);
    r->size = sizeof answer;
    memcpy(r->data, &answer, sizeof answer);
}

static void ask_first(void *ctx, uint64_t job, struct pool_worker *w, struct job_result *r)
{
    char key[32];
    (void)snprintf(key, sizeof key, "key %llu", (unsigned long long)job);
    if (pool_wanted(w, key)) {
        square(ctx, job, w, r);
    }
}

/* Ends its process or hangs, as a broken plug-in may. */
static void misbehave(void *ctx, uint64_t job, struct pool_worker *w, struct job_result *r)
{
    switch (job) {
    case 1:
        (void)raise(SIGKILL);
        break;
    case 2:
        _exit(7);
        break;
    case 3:
        for (;;) {
            (void)pause(); /* uses no CPU time */
        }
        break;
    default:
        square(ctx, job, w, r);
    }
}

static void wait_or_square(void *ctx, uint64_t job, struct pool_worker *w, struct job_result *r)
{
    while (job == 3) {
        (void)pause();
    }
    square(ctx, job, w, r);
}

static struct record *run(struct pool p, uint64_t n, uint64_t stop_after, int expected)
{
    static struct record r;
    memset(&r, 0, sizeof r);
    r.n = n;
    r.stop_after = stop_after;
    p.ctx = &r;
    p.jobs_per_worker = p.jobs_per_worker > 0 ? p.jobs_per_worker : 500;
    p.next = next;
    p.wanted = wanted;
    p.done = done;
    p.go_on = go_on;
    ck_assert_int_eq(pool_run(&p), expected);
    return &r;
}

START_TEST(every_job_is_done_once)
{
    /* more jobs than one worker takes in its life (500) */
    for (uint32_t parallel = 1; parallel <= 3; parallel += 2) {
        const struct record *r =
            run((struct pool){.parallel = parallel, .work = square}, MAX_JOBS, 0, 0);
        for (uint64_t i = 0; i < MAX_JOBS; i++) {
            ck_assert_uint_eq(r->seen[i], 1);
            ck_assert_uint_eq(r->answers[i], i * i);
        }
    }
}
END_TEST

static void doze(void *ctx, uint64_t job, struct pool_worker *w, struct job_result *r)
{
    const struct timespec nap = {.tv_nsec = 800000000};
    (void)nanosleep(&nap, NULL);
    square(ctx, job, w, r);
}

/* Each job of one worker waits for 0.8 s, which is less than the limit of a second; all wait for
 * longer together. */
START_TEST(each_job_has_its_own_time_to_wait)
{
    struct pool p = {.parallel = 1, .cpu_limit_s = 1.0, .work = doze};
    const struct record *r = run(p, 4, 0, 0);
    for (uint64_t i = 0; i < 4; i++) {
        ck_assert_str_eq(r->messages[i], "");
        ck_assert_uint_eq(r->answers[i], i * i);
    }
}
END_TEST

START_TEST(no_jobs_need_no_worker)
{
    ck_assert_uint_eq(run((struct pool){.parallel = 2, .work = square}, 0, 0, 0)->n_done, 0);
}
END_TEST

START_TEST(what_is_there_is_not_done_again)
{
    const struct record *r = run((struct pool){.parallel = 2, .work = ask_first}, 10, 0, 0);
    for (uint64_t i = 0; i < 10; i++) { /* multiples of 3 are there: reported without data */
        ck_assert_uint_eq(r->seen[i], 1);
        ck_assert_uint_eq(r->answers[i], i % 3 == 0 ? 0 : i * i);
    }
}
END_TEST

START_TEST(a_death_costs_one_job_and_says_why)
{
    struct pool p = {.parallel = 2, .cpu_limit_s = 0.05, .work = misbehave};
    const struct record *r = run(p, 8, 0, 0);
    ck_assert_uint_eq(r->n_done, 8);
    ck_assert_str_eq(r->messages[1], "its process was killed by signal 9 (Killed)");
    ck_assert_str_eq(r->messages[2], "its process ended with status 7");
    ck_assert_str_eq(r->messages[3], "waited for 0.05 s (a sleep, or a lock) instead of computing");
    for (uint64_t i = 5; i < 8; i++) {
        ck_assert_uint_eq(r->answers[i], i * i);
    }
}
END_TEST

#ifndef __SANITIZE_ADDRESS__ /* which reserves terabytes of addresses itself */
static void take_memory(void *ctx, uint64_t job, struct pool_worker *w, struct job_result *r)
{
    if (job == 1) {
        free(xmalloc((size_t)4 << 30)); /* says so on stderr and ends the process */
    }
    square(ctx, job, w, r);
}

START_TEST(a_job_that_takes_too_much_memory_costs_itself)
{
    struct pool p = {.parallel = 1, .memory_limit_bytes = 2ULL << 30, .work = take_memory};
    const struct record *r = run(p, 3, 0, 0);
    ck_assert_str_eq(r->messages[1], "exceeded the limit of 2048 MB of memory");
    ck_assert_uint_eq(r->answers[2], 4);
}
END_TEST
#endif

START_TEST(stopping_reports_nothing_more)
{
    const struct record *r = run((struct pool){.parallel = 1, .work = square}, MAX_JOBS, 5, -EINTR);
    ck_assert_uint_eq(r->n_done, 5);
}
END_TEST

/* Job 3 never ends, on one of two workers: who stops does not wait for it. */
START_TEST(stopping_ends_what_runs)
{
    const struct record *r =
        run((struct pool){.parallel = 2, .work = wait_or_square}, MAX_JOBS, 5, -EINTR);
    ck_assert_uint_ge(r->n_done, 5);
    ck_assert_uint_eq(r->seen[3], 0);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(every_job_is_done_once),
    TEST(each_job_has_its_own_time_to_wait),
    TEST(no_jobs_need_no_worker),
    TEST(what_is_there_is_not_done_again),
    TEST(a_death_costs_one_job_and_says_why),
#ifndef __SANITIZE_ADDRESS__
    TEST(a_job_that_takes_too_much_memory_costs_itself),
#endif
    TEST(stopping_reports_nothing_more),
    TEST(stopping_ends_what_runs),
};
SUITE_MAIN("pool", suite)

/* Worker processes: results by index, and a dead worker costs its own job only. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/run/jobs.h"
#include "tests/helpers/suite.h"

#define LARGE_BYTES 300000 /* several times what a pipe holds */

static void square(void *ctx, uint32_t index, struct job_result *r)
{
    uint32_t *out = malloc(sizeof *out);
    *out = index * index + *(const uint32_t *)ctx;
    r->data = out;
    r->size = sizeof *out;
}

static void mixed(void *ctx, uint32_t index, struct job_result *r)
{
    (void)ctx;
    switch (index) {
    case 0:
        (void)raise(SIGKILL);
        break;
    case 1:
        r->status = -EINVAL;
        (void)snprintf(r->message, sizeof r->message, "said no");
        break;
    case 2:
        (void)raise(SIGXCPU); /* as the kernel does when the CPU time is used up */
        break;
    case 3:
        r->size = LARGE_BYTES;
        r->data = malloc(r->size);
        memset(r->data, 0x5a, r->size);
        break;
    default:
        exit(7);
    }
}

START_TEST(results_are_by_index_whatever_the_number_of_workers)
{
    for (uint32_t parallel = 1; parallel <= 7; parallel += 3) {
        uint32_t plus = 5;
        struct job_result r[20];
        struct jobs j = {.n = 20, .parallel = parallel, .ctx = &plus, .run = square};
        jobs_run(&j, r);
        for (uint32_t i = 0; i < 20; i++) {
            ck_assert_int_eq(r[i].status, 0);
            ck_assert_uint_eq(r[i].size, sizeof(uint32_t));
            ck_assert_uint_eq(*(uint32_t *)r[i].data, i * i + 5);
            free(r[i].data);
        }
    }
}
END_TEST

START_TEST(a_worker_that_dies_costs_its_own_job_only)
{
    struct job_result r[5];
    struct jobs j = {.n = 5, .parallel = 2, .cpu_limit_s = 60.0, .run = mixed};
    jobs_run(&j, r);
    ck_assert_int_eq(r[0].status, -EIO);
    ck_assert_ptr_nonnull(strstr(r[0].message, "signal 9"));
    ck_assert_int_eq(r[1].status, -EINVAL);
    ck_assert_str_eq(r[1].message, "said no");
    ck_assert_int_eq(r[2].status, -EIO);
    ck_assert_ptr_nonnull(strstr(r[2].message, "60 s of CPU time"));
    ck_assert_int_eq(r[3].status, 0);
    ck_assert_uint_eq(r[3].size, LARGE_BYTES);
    ck_assert_int_eq(((unsigned char *)r[3].data)[LARGE_BYTES - 1], 0x5a);
    ck_assert_int_eq(r[4].status, -EIO);
    ck_assert_ptr_nonnull(strstr(r[4].message, "status 7"));
    free(r[3].data);
}
END_TEST

START_TEST(no_jobs_are_no_work)
{
    struct jobs j = {.n = 0, .parallel = 4, .run = mixed};
    jobs_run(&j, NULL);
    ck_assert_uint_ge(worker_processors(), 1);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(results_are_by_index_whatever_the_number_of_workers),
    TEST(a_worker_that_dies_costs_its_own_job_only),
    TEST(no_jobs_are_no_work),
};
SUITE_MAIN("jobs", suite)

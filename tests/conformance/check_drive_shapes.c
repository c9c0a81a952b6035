/* Static kernels of a real run. Activations have room for the kernels of the machine and its
 * graphs. So a larger kernel must be refused before it writes beyond them. */
#include <errno.h>
#include <string.h>

#include "policies/registry.h"
#include "tests/helpers/plain_engine.h"
#include "tests/helpers/realrun.h"
#include "tests/helpers/suite.h"

/* Runs one request after another on the iGPU, by static kernels of `chunk_rows` rows. */
static uint32_t chunk_rows;

struct one_by_one {
    const struct request *waiting[N_REQUESTS];
    uint32_t n;
};

static void arrived(struct sched *s, const struct request *r)
{
    struct one_by_one *w = s->state;
    w->waiting[w->n++] = r;
}

static void schedule(struct sched *s)
{
    struct one_by_one *w = s->state;
    if (w->n > 0 && w->waiting[0]->state == REQUEST_STATE_FINISHED) {
        memmove(w->waiting, w->waiting + 1, --w->n * sizeof w->waiting[0]);
    }
    if (w->n == 0 || w->waiting[0]->pass != NULL) {
        return;
    }
    const struct request *r = w->waiting[0];
    bool prompt = r->state == REQUEST_STATE_QUEUED;
    struct segment g = {.request = r,
                        .role = prompt ? SEGMENT_PREFILL : SEGMENT_DECODE,
                        .n_tokens = prompt ? request_prefill_left(r) : 1};
    struct pass *p;
    ck_assert_int_eq(sched_pass_form(s, &(struct pass_spec){.segments = &g, .n_segments = 1}, &p),
                     0);
    struct launch_spec l = sched_launch_rest(s, p, IGPU, YIELD_KERNEL);
    l.chunk_rows = chunk_rows;
    ck_assert_int_eq(sched_launch(s, &l, NULL), 0);
}

static const struct policy_ops one_by_one = {.name = "one-by-one",
                                             .summary = "for this test",
                                             .contract = POLICY_CONTRACT,
                                             .state_size_bytes = sizeof(struct one_by_one),
                                             .request_arrived = arrived,
                                             .schedule = schedule};

/* The NPU of this machine has kernels of 16 rows, and no device has larger ones. So 16 rows run,
 * and 17 are refused. */
START_TEST(a_static_kernel_that_no_device_has_is_refused)
{
    struct tokens dynamic, largest, larger;
    realrun_requests_make(60);
    realrun_machine_make(&plain_engine, _i == 0 ? DRIVE_CLOCK_CPU : DRIVE_CLOCK_WALL);
    realrun_small_model();
    ck_assert_int_eq(realrun_run(policy_find("fcfs"), "", &dynamic), 0);
    chunk_rows = 16;
    ck_assert_msg(realrun_run(&one_by_one, "", &largest) == 0, "%s", real.result.message);
    realrun_whole("one-by-one");
    ck_assert_uint_eq(realrun_alike(&dynamic, &largest), N_REQUESTS);
    chunk_rows = 17;
    ck_assert_int_eq(realrun_run(&one_by_one, "", &larger), -EIO);
    ck_assert_msg(strstr(real.result.message,
                         "a static kernel of 17 rows (chunk_rows); those of this machine and its "
                         "graphs have at most 16") != NULL,
                  "%s", real.result.message);
}
END_TEST

/* Neither a governor nor memory of kernels is real, on any device. */
START_TEST(what_no_device_has_is_refused_of_each)
{
    struct tokens t;
    realrun_requests_make(20);
    realrun_machine_make(&plain_engine, DRIVE_CLOCK_CPU);
    realrun_small_model();
    for (uint32_t i = 0; i < real.machine.n_devices; i++) {
        real.setup.dvfs[i].n = 2;
        ck_assert_int_eq(realrun_run(policy_find("fcfs"), "", &t), -EINVAL);
        ck_assert_ptr_nonnull(strstr(real.result.message, "dvfs of the file"));
        real.setup.dvfs[i].n = 0;
        real.setup.kernels[i].budget_bytes = 1e6;
        ck_assert_int_eq(realrun_run(policy_find("fcfs"), "", &t), -EINVAL);
        ck_assert_ptr_nonnull(strstr(real.result.message, "kernels of the file"));
        real.setup.kernels[i].budget_bytes = 0.0;
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("all", .timeout_s = 120),
    LOOP(a_static_kernel_that_no_device_has_is_refused, 2),
    TEST(what_no_device_has_is_refused_of_each),
};
SUITE_MAIN("shapes of real kernels", suite)

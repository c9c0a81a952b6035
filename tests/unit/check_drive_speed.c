/* Times of a real run are compared with the machine file's: host costs without a lost core, and the
 * speed of kernels. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/drive/speed.h"
#include "sim/base/arena.h"
#include "sim/drive/drive_impl.h"
#include "tests/helpers/suite.h"

/* 60 launches wait 100 us, 30 wait 1 ms and 10 lose the core for 50 ms: 5,360 us in the mean. The
 * median's octave is 65.5 to 131 us. Launches below 8 x 131 = 1,049 us are kept: (6,000 + 30,000) /
 * 90 = 400 us. */
START_TEST(host_costs_are_those_without_a_lost_core)
{
    struct drive_times t = {0};
    for (int i = 0; i < 100; i++) {
        drive_times_add(&t, i < 60 ? 100000 : i < 90 ? 1000000 : 50000000);
    }
    ck_assert_double_eq_tol(drive_mean_ns(&t), 5360e3, 1e-3);
    struct drive_times kept = drive_times_screened(&t);
    ck_assert_uint_eq(kept.n, 90);
    ck_assert_double_eq_tol(drive_mean_ns(&kept), 400e3, 1e-3);
}
END_TEST

static const struct soc_ops ops = {
    .given = true,
    .qkv = {.n = 3, .rows = {1, 4, 64}, .s = {1e-3, 2e-3, 8e-3}},
    .layer_s = 1e-3,
    .layer_key_s = 1e-6,
};

/* Device 0 runs QKV of 64 rows in 10 instead of 8 ms and a one-row layer of 1,000 keys in 3 ms. A
 * third of the layer runs at the same time as device 1, where such kernels take 1.3 times as long.
 * By the file it takes 2 x 1.1 = 2.2 ms. So the speed of device 0 is 10.2 / 13. Device 1 runs a QKV
 * of 64 rows in 4 ms: 2. Both have 18.2 / 17. A stopped kernel does not count. */
START_TEST(the_speed_of_a_run_is_predicted_over_real_time)
{
    struct config *c = xcalloc(1, sizeof *c);
    c->soc.machine.n_devices = 2;
    for (int d = 0; d < 2; d++) {
        c->soc.devices[d].n_runtimes = 1;
        c->soc.devices[d].runtimes[0].ops = ops;
        c->truth.runtime[d] = &c->soc.devices[d].runtimes[0];
    }
    c->soc.devices[0].beside_frac = 0.3;
    const struct drive_kernel k[] = {
        {.op = OP_QKV, .rows = 64, .padded_rows = 64, .shape_rows = 64, .ns = 10000000},
        {.op = OP_LAYER,
         .rows = 1,
         .padded_rows = 1,
         .shape_rows = 1,
         .keys = 1000,
         .begin_ns = 20000000,
         .ns = 3000000},
        {.op = OP_QKV, .rows = 64, .padded_rows = 64, .ns = 1000000, .stopped = true},
        {.device = 1,
         .op = OP_QKV,
         .rows = 64,
         .padded_rows = 64,
         .shape_rows = 64,
         .begin_ns = 22000000,
         .ns = 4000000},
    };
    struct drive_report report = {.kernels = xcalloc(4, sizeof k[0]), .n_kernels = 4};
    memcpy(report.kernels, k, sizeof k);
    struct speed s = speed_of_run(&report, DRIVE_CLOCK_WALL, c);
    ck_assert_double_eq_tol(s.device[0], 10.2 / 13, 1e-12);
    ck_assert_double_eq_tol(s.device[1], 2.0, 1e-12);
    ck_assert_double_eq_tol(s.all, 18.2 / 17, 1e-12);
    speed_apply(c, &s);
    ck_assert_double_eq_tol(c->soc.devices[1].runtimes[0].ops.qkv.s[2], 4e-3, 1e-12);
    ck_assert_double_eq_tol(c->soc.devices[0].runtimes[0].ops.layer_s, 1e-3 * 13 / 10.2, 1e-12);
    c->soc.devices[1].runtimes[0].ops.given = false;
    ck_assert(isnan(speed_of_run(&report, DRIVE_CLOCK_WALL, c).all));
    drive_report_fini(&report);
    free(c);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("all"),
    TEST(host_costs_are_those_without_a_lost_core),
    TEST(the_speed_of_a_run_is_predicted_over_real_time),
};
SUITE_MAIN("drive speed", suite)

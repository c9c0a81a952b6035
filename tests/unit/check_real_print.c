/* Printed results of a real run, from a report that is made up: every number by hand. */
#include <stdlib.h>
#include <string.h>

#include "experiments/drive/calibration.h"
#include "sim/base/input.h"
#include "sim/base/scope.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"

static struct real_run run;
static struct machine machine;
static struct engine_ops first = {.name = "ggml", .version = "0.25"};
static struct engine_ops second = {.name = "openvino", .version = "2025.3"};
static struct drive_segment segments[3] = {{64, 264, true}, {1, 345, false}, {2, 7, true}};
static struct drive_kernel kernels[2] = {
    {.launch = 7,
     .device = 1,
     .op = 2,
     .layer = 3,
     .rows = 65,
     .padded_rows = 128,
     .sequences = 2,
     .shape_rows = 66,
     .prefill_rows = 64,
     .pairs = 5000000000ULL,
     .keys = 609,
     .begin_ns = 1500000001,
     .ns = 12345,
     .segment0 = 0,
     .n_segments = 2},
    {.launch = 8,
     .device = 0,
     .op = 0,
     .layer = 0,
     .rows = 1,
     .padded_rows = 1,
     .sequences = 1,
     .shape_rows = 1,
     .pairs = 1,
     .keys = 2,
     .begin_ns = 0,
     .ns = 1,
     .stopped = true,
     .segment0 = 2,
     .n_segments = 0},
};
static struct drive_resident_time residents[9];

/* Puts n durations of so many ns each, in their octave. */
static void put(struct drive_times *t, uint64_t n, double ns, int octave)
{
    t->n += n;
    t->sum_ns += (double)n * ns;
    t->max_ns = ns > t->max_ns ? ns : t->max_ns;
    t->octave[octave].n = n;
    t->octave[octave].sum_ns = (double)n * ns;
}

static void setup(void)
{
    memset(&run, 0, sizeof run);
    memset(&machine, 0, sizeof machine);
    machine.n_devices = 2;
    (void)strcpy(machine.devices[0].name, "igpu");
    (void)strcpy(machine.devices[1].name, "npu");
    run.end_s = 4.0;
    run.foreign_frac = 0.0625;
    run.steal_frac = 0.03125;
    run.load_before = 1.25;
    run.package_joules = -1.0;
    run.wall_s = 5.0;
    run.report.busy_ns[0] = 1000000000;
    run.report.busy_ns[1] = 3500000000;
    run.report.token_hash = 0xfedcba9876543210;
    /* Each has its own number of microseconds, so that none can be in another's place. */
    struct drive_times *const all[] = {
        &run.report.schedule, &run.report.submit,  &run.report.completion,
        &run.report.tail,     &run.report.stop[0], &run.report.stop[1],
        &run.report.stop[2],  &run.report.stop[3], &run.report.reset};
    for (int i = 0; i < 9; i++) {
        put(all[i], 2, 1000.0 * (i + 1), 10);
    }
}

static char *printed(void)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    real_print(&run, &machine, f);
    (void)fclose(f);
    return text;
}

/* 1 of 4 s are 25 %, 3.5 are 87.5; 6.25 % and 3.125 % of the processors are 9.4 %. */
START_TEST(a_run_is_told_in_lines)
{
    OWNED char *text = printed();
    static const char want[] =
        "ran 4.00 s, in 5.00 s on the wall; others had 9.4 % of the processors, load 1.2, usual "
        "priority\n"
        "  igpu busy 25.0 %\n"
        "  npu busy 87.5 %\n"
        "  schedule, per instant                    1.0 us mean,       1.0 us worst of 2\n"
        "  launch to first kernel                   2.0 us mean,       2.0 us worst of 2\n"
        "  last kernel to host                      3.0 us mean,       3.0 us worst of 2\n"
        "  sampling, per pass                       4.0 us mean,       4.0 us worst of 2\n"
        "  stop at the next kernel                  5.0 us mean,       5.0 us worst of 2\n"
        "  stop at the next op                      6.0 us mean,       6.0 us worst of 2\n"
        "  stop at the next layer                   7.0 us mean,       7.0 us worst of 2\n"
        "  stop at the end                          8.0 us mean,       8.0 us worst of 2\n"
        "  reset                                    9.0 us mean,       9.0 us worst of 2\n"
        "  no energy was measured: no package counter (RAPL) can be read in ";
    ck_assert_msg(strncmp(text, want, strlen(want)) == 0, "%s", text);
    ck_assert_str_eq(text + strlen(text) - 27, "\n  tokens fedcba9876543210\n");
}
END_TEST

/* Above 10 % for others a run is disturbed, and an event that never happened has no line. A run of
 * no time is busy for none of it. Energy is in joules and in watts of the whole time. */
START_TEST(a_run_that_is_disturbed_says_so)
{
    run.steal_frac = 0.0390625;
    run.report.realtime = true;
    run.report.submit = (struct drive_times){0};
    run.package_joules = 62.5;
    run.end_s = 0.0;
    OWNED char *text = printed();
    ck_assert_ptr_eq(strstr(text, "ran 0.00 s, in 5.00 s on the wall; others had 10.2 % of the "
                                  "processors (disturbed), load 1.2, SCHED_FIFO\n"
                                  "  igpu busy 0.0 %\n  npu busy 0.0 %\n"),
                     text);
    ck_assert_ptr_null(strstr(text, "launch to first kernel"));
    ck_assert_ptr_nonnull(
        strstr(text, "\n  this machine's package drew 62.5 J in 5.00 s, 12.5 W in the mean "
                     "(RAPL, all that ran on it)\n"));
}
END_TEST

/* The median's octave is 10: what lies from 14 on waited for something. 90 of 1 us and 10 of 8, 5
 * of 100 us: the mean of all is (90 + 80 + 500) / 105 = 6.4 us, without those five 1.7. */
START_TEST(waits_are_left_out_of_a_second_mean)
{
    run.report.schedule = (struct drive_times){0};
    put(&run.report.schedule, 90, 1000, 10);
    put(&run.report.schedule, 10, 8000, 13);
    put(&run.report.schedule, 5, 100000, 16);
    OWNED char *text = printed();
    ck_assert_ptr_nonnull(strstr(
        text, "\n  schedule, per instant                    6.4 us mean,     100.0 us worst of "
              "105;       1.7 us without 5 that waited\n"));
}
END_TEST

/* Every kind of work with its unit; the first eight are printed. */
START_TEST(work_apart_from_the_devices_is_listed)
{
    for (int i = 0; i < 9; i++) {
        residents[i] = (struct drive_resident_time){(enum drive_work)(i % DRIVE_WORKS), 100.0 + i,
                                                    1250000 * (i + 1)};
    }
    run.report.residents = residents;
    run.report.n_residents = 9;
    OWNED char *text = printed();
    ck_assert_ptr_nonnull(strstr(
        text, "\n  compile of 100 tokens: 1.25 ms\n  swap out of 101 bytes: 2.50 ms\n"
              "  swap in of 102 bytes: 3.75 ms\n  load of 103 bytes: 5.00 ms\n"
              "  evict of 104 bytes: 6.25 ms\n  evict attention of 105 tokens: 7.50 ms\n"
              "  compile of 106 tokens: 8.75 ms\n  swap out of 107 bytes: 10.00 ms\n  no energy"));
}
END_TEST

START_TEST(a_run_is_an_object)
{
    struct drive_options o = {.clock = DRIVE_CLOCK_CPU,
                              .devices = {{.engine = &first, .name = "CPU", .core = 3},
                                          {.engine = &second, .name = "NPU", .core = -1}}};
    cJSON *x = real_to_json(&o, &machine, &run);
    OWNED char *text = cJSON_PrintUnformatted(x);
    static const char head[] =
        "{\"clock\":\"cpu\",\"engines\":\"igpu = ggml 0.25, CPU, core 3; npu = openvino 2025.3, "
        "NPU, core -1\","
        "\"realtime\":false,\"interrupted\":false,\"foreign_frac\":0.0625,\"steal_frac\":0.03125,"
        "\"load_before\":1.25,\"disturbed\":false,\"package_j\":null,"
        "\"schedule\":{\"n\":2,\"mean_us\":1,\"max_us\":1},\"submit\":{\"n\":2,\"mean_us\":2,\"max_"
        "us\":2},"
        "\"completion\":{\"n\":2,\"mean_us\":3,\"max_us\":3},\"sampling\":{\"n\":2,\"mean_us\":4,"
        "\"max_us\":4},"
        "\"stop_kernel\":{\"n\":2,\"mean_us\":5,\"max_us\":5},\"stop_op\":{\"n\":2,\"mean_us\":6,"
        "\"max_us\":6},"
        "\"stop_layer\":{\"n\":2,\"mean_us\":7,\"max_us\":7},\"stop_pass\":{\"n\":2,\"mean_us\":8,"
        "\"max_us\":8},"
        "\"reset\":{\"n\":2,\"mean_us\":9,\"max_us\":9},\"tokens\":\"fedcba9876543210\"}";
    ck_assert_str_eq(text, head);
    cJSON_Delete(x);
    o.clock = DRIVE_CLOCK_WALL;
    run.report.realtime = run.report.interrupted = true;
    run.package_joules = 0.0;
    run.foreign_frac = 0.5;
    put(&run.report.reset, 2, 1000, 9); /* four of 5 us in the mean, 9 at worst */
    x = real_to_json(&o, &machine, &run);
    OWNED char *other = cJSON_PrintUnformatted(x);
    static const char *const parts[] = {
        "{\"clock\":\"wall\",", "\"realtime\":true,\"interrupted\":true,",
        "\"disturbed\":true,\"package_j\":0,", "\"reset\":{\"n\":4,\"mean_us\":5,\"max_us\":9}"};
    for (size_t i = 0; i < 4; i++) {
        ck_assert_msg(strstr(other, parts[i]) != NULL, "no %s in %s", parts[i], other);
    }
    cJSON_Delete(x);
}
END_TEST

START_TEST(kernels_are_rows)
{
    SCOPED(err_fini) struct err e = ERR_INIT;
    run.report.kernels = kernels;
    run.report.n_kernels = 2;
    run.report.segments = segments;
    run.report.n_segments = 3;
    const char *path = tempfile_make(".csv");
    ck_assert_int_eq(real_write_kernels(path, &run.report, &machine, &e), 0);
    OWNED char *text = input_text(path, 1 << 16, &e);
    tempfile_remove();
    ck_assert_str_eq(
        text, "launch,device,op,layer,rows,padded_rows,sequences,pass_rows,prefill_rows,pairs,keys,"
              "begin_s,us,stopped,segments\n"
              "7,npu,ffn,3,65,128,2,66,64,5000000000,609,1.500000001,12.345,0,p64:264 d1:345\n"
              "8,igpu,qkv,0,1,1,1,1,0,1,2,0.000000000,0.001,1,\n");
    ck_assert_int_eq(real_write_kernels("/nonesuch/k.csv", &run.report, &machine, &e), -EINVAL);
    ck_assert_uint_eq(e.n, 1);
}
END_TEST

/* Fixed costs are in ms, and slopes in ms a MB (10^6 bytes) or a token. Four loads take 2 s in all,
 * which is 0.3 s each and 2 ns a byte. A compilation takes 0.25 s and 3 ms a token. */
START_TEST(lines_of_a_calibration_have_their_units)
{
    static struct fit fit;
    static struct drive_options drive = {.clock = DRIVE_CLOCK_WALL};
    static struct config config;
    static struct calibration c = {.drive = &drive, .config = &config};
    fit.residents[DRIVE_LOAD] =
        (struct fit_line){.n = 4, .y = 2.0, .max_s = 0.75, .fixed_s = 0.3, .slope_s = 2e-9};
    fit.residents[DRIVE_COMPILE] =
        (struct fit_line){.n = 1, .y = 1.0, .max_s = 1.0, .fixed_s = 0.25, .slope_s = 3e-3};
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    calibration_print(&c, &fit, f);
    (void)fclose(f);
    ck_assert_msg(strstr(text, "  load               4 times, mean 500.00 ms, worst 750.00; fitted "
                               "300.00 ms + 2.000 ms a MB\n") != NULL,
                  "%s", text);
    ck_assert_msg(strstr(text, "  compile            1 times, mean 1000.00 ms, worst 1000.00; "
                               "fitted 250.00 ms + 3.000 ms a token\n") != NULL,
                  "%s", text);
    free(text);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("real runs in print", .setup = setup),
    TEST(a_run_is_told_in_lines),
    TEST(a_run_that_is_disturbed_says_so),
    TEST(waits_are_left_out_of_a_second_mean),
    TEST(work_apart_from_the_devices_is_listed),
    TEST(a_run_is_an_object),
    TEST(kernels_are_rows),
    TEST(lines_of_a_calibration_have_their_units),
};
SUITE_MAIN("real runs in print", suite)

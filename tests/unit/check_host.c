/* The machine around a measurement, from folders of files: processor time, energy, what it is. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "hwmodels/backends/host.h"
#include "sim/base/clock.h"
#include "sim/base/text.h"
#include "tests/helpers/suite.h"

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
    (void)snprintf(dir, sizeof dir, "/tmp/check_host.XXXXXX");
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

/* Two readings differ by 400 ticks in all, 150 busy and 40 stolen. This process had some of
 * them. */
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
    CASE("machine", .setup = folder_setup, .teardown = folder_teardown),
    TEST(processor_time_is_busy_stolen_or_neither),
    TEST(what_others_used_is_what_this_process_did_not),
    TEST(energy_is_the_sum_of_packages),
    TEST(a_machine_is_described_from_its_files),
};
SUITE_MAIN("the machine", suite)

/* The package meter is read from a folder of files: differences, a counter that wrapped, and no
 * counter. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hwmodels/backends/host.h"
#include "sim/base/text.h"
#include "tests/helpers/suite.h"

static char dir[64];

static void write_number(const char *name, const char *text)
{
    char *path = xformat("%s/intel-rapl:0/%s", dir, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
    free(path);
}

static void setup(void)
{
    (void)snprintf(dir, sizeof dir, "/tmp/xpusim-rapl-%ld.tmp", (long)getpid());
    char *zone = xformat("%s/intel-rapl:0", dir);
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    ck_assert_int_eq(mkdir(zone, 0700), 0);
    free(zone);
    write_number("name", "package-0\n");
    write_number("max_energy_range_uj", "100000000\n"); /* 100 J */
    write_number("energy_uj", "5000000\n");
}

static void teardown(void)
{
    static const char *const files[] = {"name", "max_energy_range_uj", "energy_uj"};
    for (size_t i = 0; i < 3; i++) {
        char *path = xformat("%s/intel-rapl:0/%s", dir, files[i]);
        (void)remove(path);
        free(path);
    }
    char *zone = xformat("%s/intel-rapl:0", dir);
    (void)rmdir(zone);
    (void)rmdir(dir);
    free(zone);
}

/* From 5 J to 92 J are 87 J. Then the counter has 3 J, because it passed 100 J, 11 J later. */
START_TEST(a_counter_that_wraps_once_is_corrected)
{
    struct host_energy h;
    host_energy_init(&h, dir);
    ck_assert_uint_eq(h.n, 1);
    write_number("energy_uj", "92000000\n");
    ck_assert_double_eq_tol(host_energy_joules(&h), 87.0, 1e-9);
    write_number("energy_uj", "3000000\n");
    ck_assert_double_eq_tol(host_energy_joules(&h), 11.0, 1e-9);
}
END_TEST

START_TEST(without_a_counter_one_sentence_says_so)
{
    struct host_energy h;
    ck_assert_int_eq(setenv("XPUSIM_RAPL_DIR", "nowhere", 1), 0);
    host_energy_init(&h, host_rapl_dir());
    char *text = host_energy_text(host_energy_joules(&h), 2.0);
    ck_assert_str_eq(text,
                     "no energy was measured: no package counter (RAPL) can be read in nowhere");
    free(text);
    ck_assert_int_eq(unsetenv("XPUSIM_RAPL_DIR"), 0);
    ck_assert_str_eq(host_rapl_dir(), HOST_RAPL_DIR);
    text = host_energy_text(87.0, 2.0); /* 43.5 W */
    ck_assert_str_eq(text,
                     "this machine's package drew 87.0 J in 2.00 s, 43.5 W in the mean (RAPL, "
                     "all that ran on it)");
    free(text);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("energy", .setup = setup, .teardown = teardown),
    TEST(a_counter_that_wraps_once_is_corrected),
    TEST(without_a_counter_one_sentence_says_so),
};
SUITE_MAIN("host energy", suite)

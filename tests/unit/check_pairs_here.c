/* When a calibration can measure pairs of kernels, and what it says when it cannot. That it does is
 * in tests/golden/drive.sh. */
#include "experiments/drive/pairs_here.h"

#include <stdio.h>
#include <string.h>

#include "tests/helpers/suite.h"

static struct machine machine;
static struct drive_options options;

static void setup(void)
{
    memset(&machine, 0, sizeof machine);
    machine.n_devices = 2;
    (void)snprintf(machine.name, sizeof machine.name, "two");
    options = (struct drive_options){.clock = DRIVE_CLOCK_WALL};
    for (int i = 0; i < 2; i++) {
        (void)snprintf(machine.devices[i].name, sizeof machine.devices[i].name, "d%d", i);
        (void)snprintf(options.devices[i].name, sizeof options.devices[i].name, "CPU");
        options.devices[i].core = i;
    }
}

static void refused(const char *want)
{
    struct pairs p;
    struct err why = ERR_INIT;
    ck_assert_int_ne(pairs_here(&options, &machine, &p, &why), 0);
    ck_assert_uint_eq(why.n, 1);
    ck_assert_msg(strstr(why.lines[0], want) != NULL, "%s", why.lines[0]);
    ck_assert_uint_eq(p.n, 0);
    err_fini(&why);
}

START_TEST(kernels_that_run_one_after_another_are_no_pair)
{
    options.clock = DRIVE_CLOCK_CPU;
    refused("one after another");
}
END_TEST

START_TEST(one_device_is_no_pair)
{
    machine.n_devices = 1;
    refused("one device");
}
END_TEST

START_TEST(one_processor_is_no_pair)
{
    options.devices[1].core = 0;
    refused("on one processor");
}
END_TEST

START_TEST(a_device_that_is_no_processor_is_measured_elsewhere)
{
    (void)snprintf(options.devices[1].name, sizeof options.devices[1].name, "GPU");
    refused("d1 is no processor: `measure --pairs`");
}
END_TEST

START_TEST(a_thread_that_is_not_pinned_is_on_no_processor)
{
    options.devices[0].core = -1;
    refused("d0 is no processor");
}
END_TEST

static const struct suite_row suite[] = {
    CASE("refused", .setup = setup),
    TEST(kernels_that_run_one_after_another_are_no_pair),
    TEST(one_device_is_no_pair),
    TEST(one_processor_is_no_pair),
    TEST(a_device_that_is_no_processor_is_measured_elsewhere),
    TEST(a_thread_that_is_not_pinned_is_on_no_processor),
};
SUITE_MAIN("pairs of a calibration", suite)

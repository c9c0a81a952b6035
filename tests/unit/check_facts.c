/* Facts of a machine from files that are made up (XPUSIM_ROOT): every fact, and nothing else. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/machine/facts.h"
#include "sim/base/scope.h"
#include "sim/base/text.h"
#include "tests/helpers/madeengines.h"
#include "tests/helpers/suite.h"

static char root[] = "/tmp/xpusim-check-facts-XXXXXX";
static struct texts made; /* paths, the outer folders first */
static struct facts facts;

static void setup(void)
{
    memcpy(root + sizeof root - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(root));
    ck_assert_int_eq(setenv("XPUSIM_ROOT", root, 1), 0);
    ck_assert_int_eq(setenv("XPUSIM_ENGINES", root, 1), 0); /* none: no devices of an engine */
    ck_assert_int_eq(setenv("HOME", "/srv/Grete-Home", 1), 0);
    ck_assert_int_eq(setenv("USER", "grete", 1), 0);
    ck_assert_int_eq(setenv("LOGNAME", "gl", 1), 0); /* too short to be looked for */
}

static void teardown(void)
{
    for (size_t i = made.n; i > 0; i--) {
        (void)remove(made.v[i - 1]);
    }
    texts_fini(&made);
    (void)rmdir(root);
    for (size_t i = 0; i < facts.n; i++) {
        free(facts.v[i].text);
    }
    free(facts.v);
    for (size_t i = 0; i < 4; i++) {
        free(facts.words[i]);
    }
    facts = (struct facts){0};
}

/* Makes the folders of a path. */
static char *place(const char *path)
{
    char *whole = xformat("%s%s", root, path);
    for (char *p = whole + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        if (mkdir(whole, 0700) == 0) {
            texts_add(&made, whole);
        }
        *p = '/';
    }
    texts_add(&made, whole);
    return whole;
}

static void put(const char *path, const char *text)
{
    OWNED char *whole = place(path);
    FILE *f = fopen(whole, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

/* Facts but the number of processors, "name=text" each. */
static char *all(void)
{
    struct text t = {0};
    facts_read(&facts);
    for (size_t i = 0; i < facts.n; i++) {
        const char *name = facts.v[i].name;
        if (strcmp(name, "processors") == 0) {
            ck_assert_double_eq(atof(facts.v[i].text), (double)sysconf(_SC_NPROCESSORS_ONLN));
        } else {
            text_format(&t, "%s%s%s\n", name, facts.v[i].number ? ":" : "=", facts.v[i].text);
        }
    }
    return text_end(&t);
}

/* A key is at the beginning of its line, with a value without quotes behind it. Only the first of
 * several counts. */
START_TEST(each_file_has_its_fact)
{
    put("/proc/sys/kernel/hostname", "planted-host\n");
    put("/proc/cpuinfo", "processor : 0\nmodel\t: 7\nmodel name\t: Ultra 5\nmodel name\t: other\n");
    put("/proc/sys/kernel/osrelease", "6.1.0\nsecond line\n");
    put("/etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian 12\"\n");
    put("/sys/class/dmi/id/sys_vendor", "V\n");
    put("/sys/class/dmi/id/product_name", "P\n");
    put("/sys/class/dmi/id/board_name", "B");
    put("/sys/class/dmi/id/bios_version", "1.2\n");
    put("/sys/class/dmi/id/bios_date", "\n"); /* empty: not known */
    put("/sys/class/dmi/id/product_serial", "SECRET\n");
    put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
    put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "intel_pstate\n");
    put("/sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference", "balance\n");
    put("/sys/firmware/acpi/platform_profile", "quiet\n");
    put("/sys/module/intel_vpu/version", "1.0\x07\n"); /* a control character */
    put("/proc/meminfo", "MemFree: 5 kB\nMemTotal:   1000 kB\n");
    OWNED char *text = all();
    ck_assert_str_eq(text,
                     "processor=Ultra 5\nkernel=6.1.0\ndistribution=Debian 12\nvendor=V\n"
                     "product=P\nboard=B\nbios_version=1.2\ngovernor=powersave\n"
                     "frequency_driver=intel_pstate\nenergy_preference=balance\n"
                     "platform_profile=quiet\nnpu_module_version=1.0?\nmemory_bytes:1024000\n");
    ck_assert_str_eq(facts_text(&facts, "product"), "P");
    ck_assert_str_eq(facts_text(&facts, "bios_date"), "");
    cJSON *o = facts_json(&facts);
    ck_assert_double_eq(cJSON_GetObjectItem(o, "memory_bytes")->valuedouble, 1024000);
    ck_assert_str_eq(cJSON_GetObjectItem(o, "bios_version")->valuestring, "1.2");
    ck_assert_int_eq(cJSON_GetArraySize(o), (int)facts.n);
    cJSON_Delete(o);
    struct document *d = document_new();
    facts_document(&facts, d);
    o = document_json(d);
    const cJSON *rows = cJSON_GetObjectItem(o, "facts");
    ck_assert_int_eq(cJSON_GetArraySize(rows), (int)facts.n);
    ck_assert_str_eq(cJSON_GetObjectItem(cJSON_GetArrayItem(rows, 2), "fact")->valuestring,
                     "distribution");
    ck_assert_str_eq(cJSON_GetObjectItem(cJSON_GetArrayItem(rows, 2), "value")->valuestring,
                     "Debian 12");
    cJSON_Delete(o);
}
END_TEST

START_TEST(nothing_is_known_of_an_empty_machine)
{
    OWNED char *text = all();
    ck_assert_str_eq(text, "");
}
END_TEST

/* Modules 1 and 63: 64 and 32 bits at 5600 and 4800 MT/s, of which the slower counts; 96 bits are
 * 12 bytes, times 4.8e9. One without a size is an empty slot, and 64 is beyond the table. */
START_TEST(memory_is_as_wide_as_its_modules)
{
    put("/run/udev/data/+dmi:id",
        "E:MEMORY_DEVICE_0_SIZE=0\nE:MEMORY_DEVICE_0_DATA_WIDTH=64\nE:MEMORY_DEVICE_0_TYPE=DDR3\n"
        "E:MEMORY_DEVICE_1_SIZE=8589934592\nE:MEMORY_DEVICE_1_DATA_WIDTH=64\n"
        "E:MEMORY_DEVICE_1_CONFIGURED_SPEED_MTS=5600\nE:MEMORY_DEVICE_1_TYPE=LPDDR5\n"
        "E:MEMORY_DEVICE_1_SERIAL_NUMBER=SECRET\n"
        "E:MEMORY_DEVICE_2_SIZE=1\n"
        "E:MEMORY_DEVICE_63_SIZE=1\nE:MEMORY_DEVICE_63_DATA_WIDTH=32\n"
        "E:MEMORY_DEVICE_63_CONFIGURED_SPEED_MTS=4800\nE:MEMORY_DEVICE_63_TYPE=DDR4\n"
        "E:MEMORY_DEVICE_64_SIZE=1\nE:MEMORY_DEVICE_64_DATA_WIDTH=32\n");
    OWNED char *text = all();
    ck_assert_str_eq(text, "memory_type=LPDDR5\nmemory_modules:3\nmemory_bits:96\n"
                           "memory_mt_per_s:4800\nmemory_peak_bytes_per_s:57600000000\n");
}
END_TEST

/* The first supply of each kind, in the order of names; hidden ones are none. */
START_TEST(a_supply_is_mains_or_a_battery)
{
    put("/sys/class/power_supply/.x/type", "Mains\n");
    put("/sys/class/power_supply/AC/type", "Mains\n");
    put("/sys/class/power_supply/AC/online", "0\n");
    put("/sys/class/power_supply/BAT0/type", "Battery\n");
    put("/sys/class/power_supply/USB/type", "USB\n");
    put("/sys/class/power_supply/ZC/type", "Mains\n");
    put("/sys/class/power_supply/ZC/online", "1\n");
    put("/sys/class/power_supply/ZT/type", "Battery\n");
    OWNED char *text = all();
    ck_assert_str_eq(text, "on_mains=no\nbattery=yes\n");
}
END_TEST

START_TEST(a_machine_is_on_mains)
{
    put("/sys/class/power_supply/AC/type", "Mains\n");
    put("/sys/class/power_supply/AC/online", "1\n");
    OWNED char *text = all();
    ck_assert_str_eq(text, "on_mains=yes\n");
}
END_TEST

/* Microwatts and microseconds of the package's two limits; another domain's are not read. */
START_TEST(limits_are_those_of_the_package)
{
    put("/sys/class/powercap/intel-rapl:0/name", "package-0\n");
    put("/sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw", "28000000\n");
    put("/sys/class/powercap/intel-rapl:0/constraint_0_time_window_us", "27983872\n");
    put("/sys/class/powercap/intel-rapl:0/constraint_1_power_limit_uw", "64500000\n");
    put("/sys/class/powercap/intel-rapl:0:0/name", "core\n");
    put("/sys/class/powercap/intel-rapl:0:0/constraint_0_power_limit_uw", "1000000\n");
    put("/sys/class/powercap/zz/name", "package-0\n");
    put("/sys/class/powercap/zz/constraint_0_power_limit_uw", "1000000\n");
    OWNED char *text = all();
    ck_assert_str_eq(text, "pl1_w:28\npl1_window_s:27.983872\npl2_w:64.5\n");
}
END_TEST

/* The first device of a kind that has a driver, with its numbers. */
START_TEST(a_device_has_its_driver)
{
    static const char *const links[][2] = {
        {"/sys/class/accel/accel0/device/driver", "../../../bus/pci/drivers/intel_vpu"},
        {"/sys/class/drm/card1/device/driver", "xe"},
        {"/sys/class/drm/card2/device/driver", "../i915"}};
    put("/sys/class/accel/accel0/device/vendor", "0x8086\n");
    put("/sys/class/accel/accel0/device/device", "0x7d1d\n");
    put("/sys/class/drm/card0/device/vendor", "0x1234\n");
    put("/sys/class/drm/card1/device/device", "0x7d55\n");
    put("/sys/class/drm/card2/device/device", "0x0000\n");
    for (size_t i = 0; i < 3; i++) {
        OWNED char *link = place(links[i][0]);
        ck_assert_int_eq(symlink(links[i][1], link), 0);
    }
    OWNED char *text = all();
    ck_assert_str_eq(text, "npu_vendor_id=0x8086\nnpu_device_id=0x7d1d\nnpu_driver=intel_vpu\n"
                           "gpu_device_id=0x7d55\ngpu_driver=xe\n");
}
END_TEST

/* Host, user and the folder of the user, as whole words in any letters; a name of two letters, and
 * one within a word, stay. */
START_TEST(names_are_removed)
{
    put("/proc/sys/kernel/hostname", "planted-host\n");
    put("/sys/class/dmi/id/sys_vendor",
        "GRETE's planted-host, planted-hosts; gretel gl Grete-Home_grete\n");
    OWNED char *text = all();
    ck_assert_str_eq(text, "vendor=removed's removed, planted-hosts; gretel gl removed_removed\n");
    OWNED char *scrubbed =
        facts_scrub(&facts, "# by grete on planted-host\ngrete,/srv/Grete-Home/x:/srv/Grete-Home\n"
                            "\n#/srv/grete-home\n grete# grete");
    ck_assert_str_eq(scrubbed,
                     "# by removed on removed\ngrete,~/x:~\n\n#/srv/removed\n grete# grete");
    OWNED char *none = facts_scrub(&facts, "");
    ck_assert_str_eq(none, "");
    ck_assert_int_eq(setenv("HOME", "/", 1), 0); /* no folder of anybody */
    OWNED char *root_home = facts_scrub(&facts, "a/b\n");
    ck_assert_str_eq(root_home, "a/b\n");
    ck_assert_int_eq(unsetenv("HOME"), 0);
    OWNED char *no_home = facts_scrub(&facts, "a/b\n");
    ck_assert_str_eq(no_home, "a/b\n");
}
END_TEST

/* An engine's facts of its devices are listed under the device's name. */
START_TEST(an_engine_says_more_of_its_devices)
{
    if (!madeengines_make(root, true, false)) {
        return;
    }
    ck_assert_int_eq(setenv("CHECK_DEVICES", "CPU NPU.1 GPU NPU.0", 1), 0);
    OWNED char *text = all();
    ck_assert_str_eq(text, "openvino=1\nNPU.1.F0=NPU.1 says 0\nNPU.1.F1=NPU.1 says 1\n"
                           "NPU.0.F0=NPU.0 says 0\nNPU.0.F1=NPU.0 says 1\n");
    OWNED char *path = xformat("%s/openvino.so", root);
    (void)remove(path);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("facts", .setup = setup, .teardown = teardown),
    TEST(an_engine_says_more_of_its_devices),
    TEST(each_file_has_its_fact),
    TEST(nothing_is_known_of_an_empty_machine),
    TEST(memory_is_as_wide_as_its_modules),
    TEST(a_supply_is_mains_or_a_battery),
    TEST(a_machine_is_on_mains),
    TEST(limits_are_those_of_the_package),
    TEST(a_device_has_its_driver),
    TEST(names_are_removed),
};
SUITE_MAIN("facts of a machine", suite)

/* Which runtime of a device a run takes, and which replaces one that the file lacks. */
#include <string.h>

#include "hwmodels/soc.h"
#include "sim/base/json.h"
#include "tests/helpers/suite.h"

static struct soc soc;
static struct err err;

/* Reads ryzen-ai-max-395 with a runtime stated for its iGPU; NULL: none. */
static int read_with(const char *runtime)
{
    SCOPED(json_drop) cJSON *root = json_read_file("hwmodels/soc/ryzen-ai-max-395.json", &err);
    cJSON *igpu = cJSON_GetArrayItem(json_member(root, "devices"), 1);
    ck_assert_str_eq(json_string(igpu, "name"), "igpu");
    if (runtime != NULL) {
        cJSON_AddStringToObject(igpu, "runtime", runtime);
    }
    return soc_parse(root, "f", &soc, &err);
}

static const char *taken(uint32_t bits)
{
    enum soc_match match;
    const struct soc_device *d = &soc.devices[1];
    return d->runtimes[soc_runtime_find(d, NULL, bits, &match)].runtime;
}

/* The file has Vulkan 9187 as its default, and ROCm 9187, both with 4 and 16 bits. ROCm 6077 has 4
 * bits alone, so 16 are those of the first entry that has them. */
START_TEST(a_device_may_state_the_runtime_that_runs_take)
{
    ck_assert_int_eq(read_with(NULL), 0);
    ck_assert_str_eq(taken(4), "llama.cpp-vulkan-9187");
    ck_assert_str_eq(taken(16), "llama.cpp-vulkan-9187");
    ck_assert_int_eq(read_with("llama.cpp-rocm-9187"), 0);
    ck_assert_str_eq(taken(4), "llama.cpp-rocm-9187");
    ck_assert_str_eq(taken(16), "llama.cpp-rocm-9187");
    ck_assert_str_eq(taken(8), "llama.cpp-rocm-9187"); /* no entry has 8 bits */
    ck_assert_uint_eq(soc.devices[1].runtimes[soc.devices[1].fallback].weight_bits, 4);
    ck_assert_str_eq(soc.devices[1].runtimes[soc.devices[1].fallback].runtime,
                     "llama.cpp-rocm-9187"); /* its first entry is the default */
    ck_assert_int_eq(read_with("llama.cpp-rocm-6077"), 0);
    ck_assert_str_eq(taken(4), "llama.cpp-rocm-6077");
    ck_assert_str_eq(taken(16), "llama.cpp-vulkan-9187");
}
END_TEST

/* It is a name of an entry, whole. */
START_TEST(a_runtime_that_the_device_lacks_is_refused)
{
    static const char *const others[] = {"llama.cpp-rocm", "llama.cpp-rocm-90770", "l", "CUDA"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        ck_assert_int_eq(read_with(others[i]), -EINVAL);
        ck_assert_uint_eq(err.n, 1);
        ck_assert_str_eq(err.lines[0],
                         "f: devices[1].runtime: is not among its entries: llama.cpp-vulkan-9187, "
                         "llama.cpp-rocm-9187, llama.cpp-vulkan-6111, llama.cpp-rocm-6077");
        err_fini(&err);
    }
}
END_TEST

static const char *other(const struct soc_device *d, const char *runtime)
{
    enum soc_match match;
    uint32_t r = soc_runtime_find(d, runtime, 4, &match);
    ck_assert_int_eq(match, SOC_MATCH_OTHER);
    return d->runtimes[r].runtime;
}

/* Another backend of the same program says more than the default of another program. The default
 * wins among several with as many words in common. A part of a word is no word. */
START_TEST(the_toolchain_with_the_most_words_in_common_stands_in)
{
    static struct soc_device d = {
        .n_runtimes = 5,
        .runtimes = {{.runtime = "openvino-2025", .weight_bits = 4},
                     {.runtime = "llama.cpp-vulkan-9000", .weight_bits = 4},
                     {.runtime = "llama.cpp-sycl-9843", .weight_bits = 4},
                     {.runtime = "llama.cpp-sycl-fa-9843", .weight_bits = 4},
                     {.runtime = "openvino-genai-2025", .weight_bits = 4}}};
    ck_assert_str_eq(other(&d, "llama.cpp-sycl-f16-4008"), "llama.cpp-sycl-9843");
    ck_assert_str_eq(other(&d, "llama.cpp-sycl"), "llama.cpp-sycl-9843");
    ck_assert_str_eq(other(&d, "llama.cpp-sycl-fa"), "llama.cpp-sycl-fa-9843");
    ck_assert_str_eq(other(&d, "llama.cpp-b4567"), "llama.cpp-vulkan-9000");
    ck_assert_str_eq(other(&d, "llama.cpp"), "llama.cpp-vulkan-9000");
    ck_assert_str_eq(other(&d, "openvino-npuw-2025"), "openvino-2025");
    ck_assert_str_eq(other(&d, "llama-1"), "openvino-2025");
    d.fallback = 3;
    ck_assert_str_eq(other(&d, "llama.cpp-metal-1"), "llama.cpp-sycl-fa-9843");
}
END_TEST

static const struct suite_row suite[] = {
    CASE("runtimes"),
    TEST(a_device_may_state_the_runtime_that_runs_take),
    TEST(a_runtime_that_the_device_lacks_is_refused),
    TEST(the_toolchain_with_the_most_words_in_common_stands_in),
};
SUITE_MAIN("runtime of a device", suite)

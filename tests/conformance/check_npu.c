/* The NPU of OpenVINO is tested here without one. A fake (XPUSIM_FAKE_NPU) is OpenVINO's device CPU
 * with an NPU's restrictions. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policies/registry.h"
#include "tests/helpers/plain_engine.h"
#include "tests/helpers/realrun.h"
#include "tests/helpers/suite.h"

/* Kernels of this NPU have 16 rows or one, and attention of each prompt is compiled. `has` is the
 * text of XPUSIM_FAKE_NPU. */
static void fake_npu_machine_make(const struct engine_ops *openvino, const char *has)
{
    ck_assert_int_eq(setenv("XPUSIM_FAKE_NPU", has, 1), 0);
    realrun_requests_make(90);
    real_n = 4;
    realrun_machine_make(&plain_engine, DRIVE_CLOCK_CPU);
    realrun_ggml_model();
    real.machine.devices[NPU].static_attention = true;
    real_options.devices[NPU] = (struct drive_device){openvino, "NPU", -1};
}

/* Each compiler that the fake has must give the same tokens as the device CPU itself. */
START_TEST(a_fake_npu_computes_with_either_compiler)
{
    static const char *const has[] = {"driver", "plugin", "plugin,driver"};
    const struct engine_ops *openvino = realrun_openvino();
    if (openvino == NULL) {
        return;
    }
    struct tokens reference;
    fake_npu_machine_make(openvino, has[0]);
    (void)strcpy(real_options.devices[NPU].name, "CPU");
    ck_assert_msg(realrun_run(policy_find("agent-xpu-v2"), "", &reference) == 0, "%s",
                  real.result.message);
    for (size_t k = 0; k < sizeof has / sizeof has[0]; k++) {
        struct tokens t;
        fake_npu_machine_make(openvino, has[k]);
        ck_assert_msg(realrun_run(policy_find("agent-xpu-v2"), "", &t) == 0, "%s: %s", has[k],
                      real.result.message);
        realrun_whole("agent-xpu-v2");
        ck_assert_uint_eq(realrun_alike(&reference, &t), real_n);
        uint32_t on_npu = 0;
        for (size_t i = 0; i < real_report.n_kernels; i++) {
            on_npu += real_report.kernels[i].device == NPU;
        }
        ck_assert_msg(on_npu > 0, "%s", has[k]);
    }
}
END_TEST

/* The message of the run says what an NPU cannot do, and why it did not compile. */
START_TEST(a_fake_npu_says_what_it_lacks)
{
    static const struct {
        const char *has;
        uint32_t chunk_rows;
        bool static_attention;
        const char *message;
    } cases[] = {
        {"", 16, true,
         "The driver's compiler: fake NPU: the driver has no compiler; the plug-in's: fake NPU: "
         "libopenvino_intel_npu_compiler_loader.so is not there"},
        /* The fake would say "upper bounds were not specified", but it is never asked. */
        {"driver", 0, true,
         "chunk_rows above 0 (it has 0) and static_attention true (it has true)"},
        {"driver", 16, false, "(it has 16) and static_attention true (it has false)"},
    };
    const struct engine_ops *openvino = realrun_openvino();
    if (openvino == NULL) {
        return;
    }
    struct tokens t;
    fake_npu_machine_make(openvino, cases[_i].has);
    real.machine.devices[NPU].chunk_rows = cases[_i].chunk_rows;
    real.machine.devices[NPU].static_attention = cases[_i].static_attention;
    ck_assert_int_ne(realrun_run(policy_find("fcfs"), "", &t), 0);
    ck_assert_msg(strstr(real.result.message, cases[_i].message) != NULL, "%s",
                  real.result.message);
}
END_TEST

/* Three kernels are compiled, 3 s each. That is longer than a kernel may take to run (2.5 s), and
 * together longer than one may take to compile (8 s). A kernel that takes longer than the second
 * limit has hung. A busy machine has seconds to spare between each two of these numbers. */
START_TEST(compiling_has_a_limit_of_its_own)
{
    const struct engine_ops *openvino = realrun_openvino();
    if (openvino == NULL) {
        return;
    }
    struct tokens t;
    fake_npu_machine_make(openvino, "driver,slow=3000");
    real.llm.n_layers = 1;
    real.machine.devices[NPU].chunk_rows = 1;
    real_options.hang_s = 2.5;
    real_options.compile_s = 8.0;
    ck_assert_msg(realrun_run(policy_find("fcfs"), "", &t) == 0, "%s", real.result.message);
    fake_npu_machine_make(openvino, "driver,slow=3000");
    real_options.compile_s = 0.3; /* the thread ends with this test's process */
    ck_assert_int_ne(realrun_run(policy_find("fcfs"), "", &t), 0);
    ck_assert_msg(strstr(real.result.message, "opening it does not come back") != NULL, "%s",
                  real.result.message);
}
END_TEST

/* Returns how many files there are. It removes them on request, and then the folder. */
static uint32_t files_of(const char *folder, bool and_remove)
{
    uint32_t n = 0;
    DIR *d = opendir(folder);
    ck_assert_ptr_nonnull(d);
    for (const struct dirent *f; (f = readdir(d)) != NULL;) {
        n += f->d_name[0] != '.';
        if (and_remove) {
            (void)unlinkat(dirfd(d), f->d_name, 0);
        }
    }
    (void)closedir(d);
    if (and_remove) {
        (void)rmdir(folder);
    }
    return n;
}

/* The first run writes compiled kernels. The second reads them, so no new ones come. */
START_TEST(compiled_kernels_are_kept_for_the_next_run)
{
    const struct engine_ops *openvino = realrun_openvino();
    if (openvino == NULL) {
        return;
    }
    struct tokens first;
    struct tokens second;
    char folder[] = "/tmp/xpusim-cache-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    fake_npu_machine_make(openvino, "driver");
    real_options.cache = folder;
    ck_assert_int_eq(realrun_run(policy_find("agent-xpu-v2"), "", &first), 0);
    uint32_t n = files_of(folder, false);
    ck_assert_uint_ge(n, 10);
    fake_npu_machine_make(openvino, "driver");
    real_options.cache = folder;
    ck_assert_int_eq(realrun_run(policy_find("agent-xpu-v2"), "", &second), 0);
    ck_assert_uint_eq(files_of(folder, false), n);
    ck_assert_uint_eq(realrun_alike(&first, &second), real_n);
    (void)files_of(folder, true);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("all", .timeout_s = 120),
    TEST(a_fake_npu_computes_with_either_compiler),
    LOOP(a_fake_npu_says_what_it_lacks, 3),
    TEST(compiling_has_a_limit_of_its_own),
    TEST(compiled_kernels_are_kept_for_the_next_run),
};
SUITE_MAIN("a fake NPU", suite)

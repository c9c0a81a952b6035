/* Draws of machines that run several models, or whose NPU is divided, and the keys of their runs.
 */
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "experiments/compare/machines.h"
#include "experiments/run/models.h"
#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "tests/helpers/suite.h"

static struct config config, drawn;
static struct config_options options;
static struct machines machines;
static struct err err;

static void draw(const char *llm)
{
    err = (struct err)ERR_INIT;
    options = config_options_default();
    options.soc = "core-ultra-7-258v";
    options.llm = llm;
    ck_assert_int_eq(config_load(&config, &options, &err), 0);
    ck_assert_int_eq(machines_draw(&config, &options, 16, &machines, &err), 0);
}

static void teardown(void)
{
    machines_fini(&machines);
    config_fini(&drawn);
    config_fini(&config);
    err_fini(&err);
}

/* The factor of a path, or UINT32_MAX. */
static uint32_t find(const char *path)
{
    uint32_t found = UINT32_MAX;
    for (uint32_t k = 0; k < machines.n_factors; k++) {
        if (strcmp(machines.factor[k].path, path) == 0) {
            ck_assert_uint_eq(found, UINT32_MAX); /* once */
            found = k;
        }
    }
    return found;
}

static void load(const char *path, double x)
{
    uint32_t k = find(path);
    ck_assert_uint_ne(k, UINT32_MAX);
    ck_assert_int_eq(machines_load(&machines, &options, UINT32_MAX, k, x, &drawn, &err), 0);
}

static const struct soc_runtime *entry(const struct config *c, uint32_t model, const char *device)
{
    for (uint32_t d = 0; d < c->soc.machine.n_devices; d++) {
        if (strcmp(c->soc.machine.devices[d].name, device) == 0) {
            return models_roofline(c, model)->runtime[d];
        }
    }
    ck_abort_msg("no device %s", device);
    return NULL;
}

/* Rate and bandwidth of a model, as shares of the file's. */
static void is(uint32_t model, const char *device, double rate, double bandwidth)
{
    const struct soc_runtime *now = entry(&drawn, model, device);
    const struct soc_runtime *file = entry(&config, model, device);
    ck_assert_double_eq_tol(now->many.flop_per_s / file->many.flop_per_s, rate, 1e-12);
    ck_assert_double_eq_tol(now->one.flop_per_s / file->one.flop_per_s, rate, 1e-12);
    ck_assert_double_eq_tol(now->many.bytes_per_s / file->many.bytes_per_s, bandwidth, 1e-12);
    ck_assert_double_eq_tol(now->one.bytes_per_s / file->one.bytes_per_s, bandwidth, 1e-12);
}

/* The models share an entry, and each has its own error. */
START_TEST(each_model_has_residuals_of_its_own)
{
    draw("leader=qwen3-8b:bits=4,small=qwen3-0.6b:bits=4");
    ck_assert_ptr_eq(entry(&config, 0, "igpu"), entry(&config, 1, "igpu"));
    load("residual.igpu.small.decode", 1.25);
    is(0, "igpu", 1.0, 1.0);
    is(1, "igpu", 1.0, 0.8);
    is(1, "npu", 1.0, 1.0);
    config_fini(&drawn);
    load("residual.igpu.prefill", 1.6);
    is(0, "igpu", 0.625, 1.0);
    is(1, "igpu", 1.0, 1.0);
}
END_TEST

/* The numbers of an entry are drawn if any model uses it, once. */
START_TEST(entries_of_all_models_are_drawn)
{
    draw("a=qwen3-8b:bits=4,b=qwen3-0.6b:bits=4");
    uint32_t of_four = machines.n_factors;
    uint32_t residuals = 2 * config.soc.machine.n_devices;
    teardown();
    draw("qwen3-8b:bits=4");
    ck_assert_uint_eq(of_four, machines.n_factors + residuals);
    teardown();
    draw("a=qwen3-8b:bits=4,b=qwen3-0.6b:bits=8");
    const struct soc_runtime *first = entry(&config, 0, "igpu");
    long step = entry(&config, 1, "igpu") - first;
    ck_assert_int_ne(step, 0);
    int d = machine_find(&config.soc.machine, DEVICE_KIND_IGPU);
    for (int i = 0; i < 2; i++) {
        long n = first - config.soc.devices[d].runtimes + (i == 0 ? 0 : step);
        char path[64];
        (void)snprintf(path, sizeof path, "soc.devices.igpu.runtimes.%ld.rate", n);
        ck_assert_msg(find(path) != UINT32_MAX, "%s is not drawn", path);
    }
}
END_TEST

/* How a prompt fills experts is uncertain in the entries that a mixture uses, and in no other. */
START_TEST(fills_are_those_of_the_mixtures_entries)
{
    static const char *const models[] = {"a=qwen3-8b:bits=4,b=granite-4.0-h-tiny:bits=8",
                                         "a=granite-4.0-h-tiny:bits=4,b=qwen3-8b:bits=8",
                                         "a=qwen3-8b:bits=4,b=granite-4.0-h-tiny:bits=4",
                                         "a=qwen3-8b:bits=4,b=qwen3-0.6b:bits=8"};
    for (int i = 0; i < 4; i++) {
        draw(models[i]);
        int d = machine_find(&config.soc.machine, DEVICE_KIND_IGPU);
        const struct soc_device *igpu = &config.soc.devices[d];
        uint32_t used = 0;
        for (uint32_t r = 0; r < igpu->n_runtimes; r++) {
            bool mixture = false;
            for (uint32_t m = 0; m < 2; m++) {
                bool its = models_roofline(&config, m)->runtime[d] == &igpu->runtimes[r];
                mixture = mixture || (its && models_llm(&config, m)->n_experts > 0);
            }
            for (int k = 0; k < 2; k++) {
                char path[80];
                (void)snprintf(path, sizeof path, "soc.devices.igpu.runtimes.%u.%s", r,
                               k == 0 ? "expert_fill" : "expert_rows");
                ck_assert_msg((find(path) != UINT32_MAX) == mixture, "%s: %s", models[i], path);
            }
            used += mixture;
        }
        ck_assert_uint_eq(used, i < 3 ? 1 : 0);
        teardown();
    }
    draw("qwen3-8b");
}
END_TEST

/* Both halves of an NPU have the error of the whole. */
START_TEST(partitions_have_the_residuals_of_their_device)
{
    err = (struct err)ERR_INIT;
    options = config_options_default();
    options.soc = "ryzen-ai-xdna2";
    config_options_set(&options, "soc.devices.npu.partitions=2");
    ck_assert_int_eq(config_load(&config, &options, &err), 0);
    ck_assert_int_eq(machines_draw(&config, &options, 16, &machines, &err), 0);
    load("residual.npu-1.prefill", 1.25);
    is(0, "npu-1", 0.8, 1.0);
    is(0, "npu-2", 0.8, 1.0);
    is(0, "igpu", 1.0, 1.0);
}
END_TEST

/* A matrix that is no covariance, because of its rounding or by hand, leaves numbers that are drawn
 * each by itself, with its own variance. */
START_TEST(numbers_without_a_covariance_are_drawn_each_by_itself)
{
    const char *bad;
    double x[400];
    double y[400];
    err = (struct err)ERR_INIT;
    options = config_options_default();
    options.soc = "core-ultra-7-155h";
    options.llm = "llama-3.2-3b";
    ck_assert_int_eq(config_load(&config, &options, &err), 0);
    const cJSON *cov =
        json_find_path(config.tree, "soc.devices.igpu.runtimes.0.fit.ln_covariance", &bad);
    cJSON *first = cJSON_GetArrayItem(cov, 0);
    cJSON *second = cJSON_GetArrayItem(cov, 1);
    double caa = cJSON_GetArrayItem(first, 0)->valuedouble;
    double cbb = cJSON_GetArrayItem(second, 1)->valuedouble;
    cJSON_SetNumberValue(cJSON_GetArrayItem(first, 1), 9.0 * fmax(caa, cbb));
    cJSON_SetNumberValue(cJSON_GetArrayItem(second, 0), 9.0 * fmax(caa, cbb));
    ck_assert_int_eq(machines_draw(&config, &options, 400, &machines, &err), 0);
    uint32_t a = find("soc.devices.igpu.runtimes.0.rate");
    uint32_t b = find("soc.devices.igpu.runtimes.0.bandwidth");
    for (uint32_t i = 0; i < 400; i++) {
        x[i] = log(machines.value[(size_t)i * machines.n_factors + a]);
        y[i] = log(machines.value[(size_t)i * machines.n_factors + b]);
    }
    ck_assert_double_eq_tol(gsl_stats_variance(x, 1, 400) / caa, 1.0, 0.28);
    ck_assert_double_eq_tol(gsl_stats_variance(y, 1, 400) / cbb, 1.0, 0.28);
    ck_assert_double_eq_tol(gsl_stats_correlation(x, 1, y, 1, 400), 0.0, 0.2);
}
END_TEST

/* No setting has a residual, so that its factor is part of the run's key in a store. */
START_TEST(each_residual_is_another_run)
{
    uint64_t hashes[32];
    uint32_t n = 0;
    draw("qwen3-8b:bits=4,b=llama-3.2-3b:bits=4");
    for (uint32_t k = 0; k < machines.n_factors; k++) {
        if (machines.factor[k].kind == MACHINE_RESIDUAL) {
            ck_assert_int_eq(machines_load(&machines, &options, UINT32_MAX, k, 1.25, &drawn, &err),
                             0);
            for (uint32_t other = 0; other < n; other++) {
                ck_assert(drawn.hash != hashes[other]);
            }
            ck_assert(n < 32 && drawn.hash != config.hash);
            hashes[n++] = drawn.hash;
            config_fini(&drawn);
        }
    }
    ck_assert_uint_ge(n, 8);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("models", .teardown = teardown, .timeout_s = 60),
    TEST(each_model_has_residuals_of_its_own),
    TEST(entries_of_all_models_are_drawn),
    TEST(fills_are_those_of_the_mixtures_entries),
    TEST(partitions_have_the_residuals_of_their_device),
    TEST(numbers_without_a_covariance_are_drawn_each_by_itself),
    TEST(each_residual_is_another_run),
};
SUITE_MAIN("uncertainty of several models", suite)

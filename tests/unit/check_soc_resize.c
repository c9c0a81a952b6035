/* How a machine's numbers scale to another one: rates, fills and bandwidths, by hand. */
#include <glob.h>
#include <string.h>

#include "hwmodels/soc.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"
#include "sim/base/quantile.h"
#include "tests/helpers/suite.h"

/* llama.cpp printed these as recommendedMaxWorkingSetSize on machines of that memory, in GB. */
START_TEST(gpus_of_apple_may_use_what_llama_cpp_printed)
{
    static const struct {
        const char *name;
        double gb;
    } printed[] = {{"apple-m1-max-32core", 51.53961},
                   {"apple-m2-ultra-76core", 154.61882},
                   {"apple-m5-max-40core", 115.44873},
                   {"apple-m5-10core", 26.80060}};
    for (size_t i = 0; i < sizeof printed / sizeof printed[0]; i++) {
        struct err e = ERR_INIT;
        char path[64];
        (void)snprintf(path, sizeof path, "hwmodels/soc/%s.json", printed[i].name);
        cJSON *soc = json_read_file(datadir_path(path), &e);
        const cJSON *memory = json_member(soc, "memory");
        double gb = json_number(json_member(memory, "capacity"), "value") *
                    json_number(json_member(memory, "usable"), "value");
        ck_assert_double_eq_tol(gb, printed[i].gb, 0.002 * printed[i].gb);
        cJSON_Delete(soc);
        err_fini(&e);
    }
}
END_TEST

/* The peak is twice as high, with fills of 1024 rows and 4096 columns. A usual prompt takes (1 +
 * 1)(1 + 1) = 4 times its work before and (1 + 2)(1 + 2) = 9 times after. So half the time needs 2
 * x 9/4 of the rate. */
START_TEST(a_larger_engine_takes_more_rows_to_fill)
{
    ck_assert_double_eq_tol(soc_resize(1024.0, 4096.0, 2.0, 1.0).rate, 4.5, 1e-12);
    ck_assert_double_eq_tol(soc_resize(0.0, 0.0, 2.0, 1.0).rate, 2.0, 1e-12);
    ck_assert_double_eq_tol(soc_resize(300.0, 5000.0, 1.0, 1.0).rate, 1.0, 1e-12);
}
END_TEST

/* A product of `rows` rows, `columns` wide, in rows of the old rate that it takes. */
static double work(double rows, double columns, double row_fill, double width_fill, double rate)
{
    return (rows + row_fill) * (1.0 + width_fill / columns) / rate;
}

/* Twice as many of the same cores do all in half the time, rows and weights. With as many cores of
 * twice the rate the rows take half the time, and what the weights cost stays. Wide products, where
 * no columns are missing. */
START_TEST(more_cores_do_all_sooner_and_faster_ones_the_rows)
{
    static const double rows[] = {1.0, 32.0, 1024.0};
    const double wide = 1e12;
    struct soc_resize more = soc_resize(100.0, 0.0, 2.0, 2.0);
    struct soc_resize fast = soc_resize(100.0, 0.0, 2.0, 1.0);
    for (size_t i = 0; i < 3; i++) {
        double was = work(rows[i], wide, 100.0, 0.0, 1.0);
        ck_assert_double_eq_tol(work(rows[i], wide, 100.0 * more.row_fill, 0.0, more.rate),
                                0.5 * was, 1e-12);
        /* but that 1024 rows follow the peak */
        double of_1024 = work(1024.0, wide, 200.0, 0.0, 2.0) / work(1024.0, wide, 100.0, 0.0, 1.0);
        ck_assert_double_eq_tol(work(rows[i], wide, 100.0 * fast.row_fill, 0.0, fast.rate),
                                (0.5 * rows[i] + 100.0) * 0.5 / of_1024, 1e-9);
    }
    struct soc_device a = {.cores = 8};
    struct soc_device b = {.cores = 12};
    struct soc_device unsaid = {.cores = 0};
    ck_assert_double_eq(soc_resize_bandwidth(DEVICE_KIND_NPU, 2.0), 1.0);
    ck_assert_double_eq(soc_resize_bandwidth(DEVICE_KIND_IGPU, 2.0), 2.0);
    ck_assert_double_eq_tol(soc_cores_ratio(&a, &b), 1.5, 1e-12);
    ck_assert_double_eq(soc_cores_ratio(&a, &unsaid), 1.0);
    ck_assert_double_eq(soc_cores_ratio(&unsaid, &b), 1.0);
}
END_TEST

/* The best fitted entry's share of the memory's peak; 0: the machine has no iGPU that was measured.
 */
static double share_of_igpu(const cJSON *soc)
{
    const cJSON *ddr = json_member(soc, "ddr");
    const cJSON *likely = json_member(ddr, "likely");
    double peak =
        likely != NULL ? likely->valuedouble : json_number(json_member(ddr, "peak"), "value");
    double best = 0.0;
    const cJSON *d;
    const cJSON *r;
    cJSON_ArrayForEach (d, json_member(soc, "devices")) {
        cJSON_ArrayForEach (r, json_member(d, "runtimes")) {
            const cJSON *b = json_member(r, "bandwidth");
            bool measured = strcmp(json_string(d, "kind"), "igpu") == 0 &&
                            strcmp(json_string(b, "kind"), "fitted") == 0;
            best = measured ? fmax(best, json_number(b, "value")) : best;
        }
    }
    return best / peak;
}

START_TEST(an_npu_gets_what_engines_reach_that_fill_their_memory)
{
    glob_t files;
    double shares[256];
    size_t n = 0;
    ck_assert_int_eq(glob(datadir_path("hwmodels/soc/*.json"), 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc && n < 256; i++) {
        struct err e = ERR_INIT;
        cJSON *soc = json_read_file(files.gl_pathv[i], &e);
        double share = json_string(soc, "like")[0] == '\0' ? share_of_igpu(soc) : 0.0;
        shares[n] = share;
        n += share > 0.0;
        cJSON_Delete(soc);
        err_fini(&e);
    }
    globfree(&files);
    ck_assert_uint_gt(n, 20);
    struct err e = ERR_INIT;
    double npu = 0.0;
    ck_assert_int_eq(soc_share_read(&npu, &e), 0);
    ck_assert_double_eq_tol(sample_quantile_of(shares, n, 0.5), npu, 0.01);
    ck_assert_double_eq(soc_share_of_ddr(DEVICE_KIND_NPU, 0.3, npu), npu);
    ck_assert_double_eq(soc_share_of_ddr(DEVICE_KIND_NPU, 0.9, npu), 0.9); /* of another memory */
    ck_assert_double_eq(soc_share_of_ddr(DEVICE_KIND_IGPU, 0.3, npu), 1.0);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(a_larger_engine_takes_more_rows_to_fill),
    TEST(an_npu_gets_what_engines_reach_that_fill_their_memory),
    TEST(gpus_of_apple_may_use_what_llama_cpp_printed),
    TEST(more_cores_do_all_sooner_and_faster_ones_the_rows),
};
SUITE_MAIN("resizing", suite)

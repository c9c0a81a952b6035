/* Numbers that pairs give a SoC file: slowdowns that follow from a cap and a strength give these
 * back, and a number that they do not show stays what it was. */
#include "experiments/machine/pairs_soc.h"

#include <math.h>
#include <string.h>

#include "hwmodels/soc.h"
#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "tests/helpers/suite.h"

#define PEAK 89.6 /* GB/s, of the file */

static struct pairs_cell cells[16];
static struct pairs pairs;
static cJSON *tree;
static struct document *notes;
static struct err err;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    pairs = (struct pairs){.cells = cells};
    pairs.devices[0] = "npu";
    pairs.devices[1] = "igpu";
    tree = json_read_file(soc_path("core-ultra-5-125h"), &err);
    ck_assert_ptr_nonnull(tree);
    notes = document_new();
}

static void teardown(void)
{
    static struct soc soc;
    ck_assert_msg(soc_parse(tree, "f", &soc, &err) == 0, "%s", err.n > 0 ? err.lines[0] : "");
    cJSON_Delete(tree);
    err_fini(&err);
}

static void side(struct pairs_side *s, const char *device, double alone, double slowdown)
{
    s->device = xkeep(xstrdup(device));
    s->model = "read";
    s->alone_bytes_per_s = alone * 1e9;
    s->both_bytes_per_s = alone * 1e9 / slowdown;
}

/* Adds kernels of npu and igpu that are each other's victims, by isolated GB/s, slowdowns, and half
 * a width. */
static void pair(double npu, double by_igpu, double igpu, double by_npu, double half)
{
    for (int k = 0; k < 2; k++) {
        struct pairs_cell *c = &cells[pairs.n++];
        double x = k == 0 ? by_igpu : by_npu;
        *c = (struct pairs_cell){.slowdown = {x, x - half, x + half, 3}};
        side(&c->victim, k == 0 ? "npu" : "igpu", k == 0 ? npu : igpu, x);
        side(&c->culprit, k == 0 ? "igpu" : "npu", k == 0 ? igpu : npu, k == 0 ? by_npu : by_igpu);
    }
    pairs.asked_bytes_per_s = fmax(pairs.asked_bytes_per_s, (npu + igpu) * 1e9);
    pairs.most_bytes_per_s = fmax(pairs.most_bytes_per_s, (npu / by_igpu + igpu / by_npu) * 1e9);
}

static const cJSON *number(const char *path)
{
    const char *bad;
    const cJSON *q = json_find_path(tree, path, &bad);
    ck_assert_msg(q != NULL, "%s", path);
    return q;
}

/* A cap of C = 0.8 x 89.6 = 71.68 and a strength of 0.4 are planted. 60 and 60 GB/s get C / 2 =
 * 35.84 each, and take 60 / 35.84 x (1 + 0.4 x 1/2) times as long. 60 and 10 fit: 1 + 0.4 x 10 / C.
 * The small one, which waits a sixth of its time, has 1 + 0.4 x 1/6 x 60 / C. Two of 30 wait half
 * of it. */
START_TEST(a_cap_and_a_strength_come_back)
{
    const double c = 0.8 * PEAK;
    double both = 60.0 / (c / 2.0) * (1.0 + 0.4 * 0.5);
    pair(60.0, both, 60.0, both, 0.01);
    pair(60.0, 1.0 + 0.4 * 10.0 / c, 10.0, 1.0 + 0.4 / 6.0 * 60.0 / c, 0.01);
    for (int i = 0; i < 2; i++) {
        double half = 1.0 + 0.4 * 0.5 * 30.0 / c;
        pair(30.0, half, 30.0, half, 0.01);
    }
    pairs.saturated = true;
    pairs.share = (struct pairs_mean){0.4, 0.4, 0.4, 2};
    pairs_soc_put(&pairs, tree, notes);
    ck_assert_double_eq_tol(json_number(number("ddr.together"), "value"), 0.8, 0.002);
    const cJSON *strength = number("ddr.queueing");
    ck_assert_double_eq_tol(json_number(strength, "value"), 0.4, 0.005);
    ck_assert_double_lt(json_number(strength, "low"), 0.4);
    ck_assert_double_gt(json_number(strength, "high"), 0.4);
    ck_assert_str_eq(json_string(strength, "kind"), "fitted");
    ck_assert_double_eq_tol(json_number(number("devices.npu.ddr_weight"), "value"), 0.4 / 0.6,
                            1e-4);
    ck_assert_double_eq(json_number(number("ddr.peak"), "value"), PEAK);
}
END_TEST

/* A kernel waits for memory as long as the share of its own device's reach that it moves: each
 * device's reach is the most that a kernel of it moves alone. With reaches of a and b, and
 * kernels of half and a quarter of them, a strength of 0.4 slows by 1 + 0.4 x (own / reach) x
 * (other's / peak) where both fit. A kernel of the whole reach is next to one of 1 GB/s, so that
 * the others decide. */
START_TEST(devices_of_other_reach_have_one_strength)
{
    static const double reaches[][2] = {{40.0, 20.0}, {15.0, 60.0}, {30.0, 30.0}};
    for (int i = 0; i < 3; i++) {
        double a = reaches[i][0];
        double b = reaches[i][1];
        pairs.n = 0;
        for (int k = 0; k < 8; k++) {
            double x = k == 0 ? a : k == 1 ? 1.0 : ldexp(a, -1 - k % 2);
            double y = k == 0 ? 1.0 : k == 1 ? b : ldexp(b, -1 - k / 2 % 2);
            pair(x, 1.0 + 0.4 * (x / a) * (y / PEAK), y, 1.0 + 0.4 * (y / b) * (x / PEAK), 1e-3);
        }
        pairs_soc_put(&pairs, tree, notes);
        ck_assert_double_eq_tol(json_number(number("ddr.queueing"), "value"), 0.4, 0.001);
    }
}
END_TEST

/* Small kernels, known to 10 % either way: nothing is learnt, and the file says so. */
START_TEST(what_pairs_do_not_show_stays)
{
    double had = json_number(number("ddr.queueing"), "value");
    pair(10.0, 1.01, 10.0, 1.01, 0.1);
    pairs_soc_put(&pairs, tree, notes);
    static const char *const paths[] = {"ddr.together", "ddr.queueing"};
    for (int i = 0; i < 2; i++) {
        const char *source = json_string(number(paths[i]), "source");
        ck_assert_msg(strstr(source, "not shown by measure --pairs") == source, "%s", source);
    }
    ck_assert_double_eq(json_number(number("ddr.queueing"), "value"), had);
    ck_assert_double_eq(json_number(number("ddr.together"), "value"), 1.0);
    ck_assert_ptr_null(cJSON_GetObjectItem(
        cJSON_GetArrayItem(cJSON_GetObjectItem(tree, "devices"), 0), "ddr_weight"));
}
END_TEST

/* Two kernels that reach more than the peak of the file: the peak is at least that. */
START_TEST(a_peak_that_is_exceeded_is_raised)
{
    pair(60.0, 1.0, 50.0, 1.0, 0.1);
    pairs_soc_put(&pairs, tree, notes);
    ck_assert_double_eq_tol(json_number(number("ddr.peak"), "value"), 110.0, 1e-9);
    ck_assert_str_eq(json_string(number("ddr.peak"), "kind"), "measured");
}
END_TEST

/* A file that is none leaves no pairs, and nothing that the list held before. */
START_TEST(a_file_that_is_none_leaves_no_pairs)
{
    struct pairs p;
    memset(&p, 0x5a, sizeof p);
    struct err e = ERR_INIT;
    ck_assert_int_ne(pairs_soc_read("/nowhere/rows.csv", &p, &e), 0);
    ck_assert_uint_gt(e.n, 0);
    ck_assert(p.n == 0 && p.cells == NULL && p.losses == NULL && p.n_losses == 0);
    err_fini(&e);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("file", .setup = setup, .teardown = teardown),
    TEST(a_file_that_is_none_leaves_no_pairs),
    TEST(a_cap_and_a_strength_come_back),
    TEST(devices_of_other_reach_have_one_strength),
    TEST(what_pairs_do_not_show_stays),
    TEST(a_peak_that_is_exceeded_is_raised),
};
SUITE_MAIN("pairs_soc", suite)

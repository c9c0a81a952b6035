/* Intervals from left-out errors: both variances by hand, classes, widening, and what the nominal
 * level is worth on the shipped table. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "hwmodels/transfers.h"
#include "sim/base/datadir.h"
#include "tests/helpers/suite.h"

static struct conformal table;
static struct err err;
static char path[64];

static void setup(void)
{
    err = (struct err)ERR_INIT;
    (void)snprintf(path, sizeof path, "/tmp/xpusim-conformal-%ld.tmp.csv", (long)getpid());
}

static void teardown(void)
{
    err_fini(&err);
    (void)remove(path);
}

/* Rows of a family: decode, 1024 tokens, on iGPUs. */
static void write_rows(const char *const *rows, size_t n)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs("soc,family,device,model,weights,phase,input_tokens,left_out,by,ln_error\n", f);
    for (size_t i = 0; i < n; i++) {
        (void)fprintf(f, "%s\n", rows[i]);
    }
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(conformal_read(path, &table, &err), 0);
}

#define OF_MODEL(model, error) "s,fam,igpu," model ",1e9,decode,1024,model,s," error
#define WRITE_ROWS(...)                                                                            \
    write_rows((const char *const[]){__VA_ARGS__},                                                 \
               sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* Two models. a: 0.1 and 0.3, mean 0.2, squared deviations 0.01 each. b: -0.2 and -0.4, mean -0.3,
 * the same deviations. */
static void write_two_models(void)
{
    WRITE_ROWS(OF_MODEL("a", "0.1"), OF_MODEL("a", "0.3"), OF_MODEL("b", "-0.2"),
               OF_MODEL("b", "-0.4"));
}

static double draw_at(const struct conformal_query *q, double u)
{
    double x;
    conformal_draws(&table, q, &u, 1, &x);
    return x;
}

static struct conformal_query query(void)
{
    return (struct conformal_query){.soc = "s",
                                    .family = "fam",
                                    .kind = DEVICE_KIND_IGPU,
                                    .phase = CONFORMAL_DECODE,
                                    .weights = 1e9,
                                    .tokens = 1024};
}

/* The variance between groups is (0.04 + 0.09) / 2 and within them 0.04 / 4, together 0.075. For
 * rows of a, b gives 0.09 + 0.01: 0.1 and 0.3 over the root of 0.1 are 0.316 and 0.949. For rows of
 * b, a gives 0.04 + 0.01: 0.2 and 0.4 over the root of 0.05 are 0.894 and 1.789. With a third group
 * to come, half of the groups is 0.5 x 3/2 of these two: number 3 of 4 ratios, 0.949 = 0.3 /
 * sqrt(0.1). 95 % is more than both, so it is the largest. */
START_TEST(the_interval_has_two_variances)
{
    write_two_models();
    struct conformal_query q = query();
    struct conformal_interval x = conformal_of(&table, &q, 0.5);
    ck_assert_uint_eq(x.n, 4);
    ck_assert_str_eq(x.pool, "igpu");
    ck_assert_int_eq(x.left, CONFORMAL_MODEL);
    double half = 0.3 / sqrt(0.1) * sqrt(0.075);
    ck_assert_double_eq_tol(log(x.high_factor), half, 1e-9);
    ck_assert_double_eq_tol(log(x.low_factor), -half, 1e-9);
    half = 0.4 / sqrt(0.05) * sqrt(0.075);
    ck_assert_double_eq_tol(log(conformal_of(&table, &q, 0.95).high_factor), half, 1e-9);
}
END_TEST

/* Without b, a's variance is all there is, and no other group says what ratios are like: the normal
 * distribution's 1.96. Without rows there is no interval. */
START_TEST(one_group_is_taken_as_normal)
{
    write_two_models();
    struct conformal_query q = query();
    q.without_model = "b";
    struct conformal_interval x = conformal_of(&table, &q, 0.95);
    ck_assert_double_eq_tol(log(x.high_factor), 1.959964 * sqrt(0.05), 1e-6);
    q.phase = CONFORMAL_PREFILL;
    x = conformal_of(&table, &q, 0.95);
    ck_assert_uint_eq(x.n, 0);
    ck_assert_double_eq(x.low_factor, 0.0);
    ck_assert(isinf(x.high_factor));
}
END_TEST

/* A small model has 0.2 and a usual one 0.1, of families of their own (distance 0). All classes
 * above size have (0.04 + 0.01) / 2 = 0.025. Small ones have one group of 0.04 against three of
 * 0.025. The small one is 2 deviations off by the other's 0.01, and the other half a one by
 * 0.04. */
START_TEST(few_groups_are_drawn_to_the_class_above)
{
    WRITE_ROWS("s,f1,igpu,a,1e9,decode,1024,model,s,0.2",
               "s,f2,igpu,b,4e9,decode,1024,model,s,0.1");
    struct conformal_query q = query();
    double half = 2.0 * sqrt((0.04 + 3.0 * 0.025) / 4.0);
    ck_assert_double_eq_tol(log(conformal_of(&table, &q, 0.95).high_factor), half, 1e-9);
    q.kind = DEVICE_KIND_NPU; /* nothing of it: what all devices have */
    struct conformal_interval x = conformal_of(&table, &q, 0.95);
    ck_assert_double_eq_tol(log(x.high_factor), 2.0 * sqrt(0.025), 1e-9);
    ck_assert_str_eq(x.pool, "all");
    ck_assert_uint_eq(x.n, 2);
}
END_TEST

/* A model e^2 times as large as any measured: the half-width grows by 1 + 2 CONFORMAL_WIDEN. Models
 * of usual size have no rows, so that the class above counts, which has the same ones. */
START_TEST(intervals_widen_with_the_distance_from_what_was_measured)
{
    write_two_models();
    struct conformal_query q = query();
    double half = log(conformal_of(&table, &q, 0.95).high_factor);
    q.weights = 1e9 * exp(2.0);
    struct conformal_interval x = conformal_of(&table, &q, 0.95);
    ck_assert_double_eq_tol(x.distance, 2.0, 1e-9);
    ck_assert_double_eq_tol(log(x.high_factor), half * (1.0 + 2.0 * CONFORMAL_WIDEN), 1e-9);
}
END_TEST

/* Machine a has a model of e^21 weights, and its sibling b one of e^23. A fit without b has seen
 * nothing nearer to b's row than a's, e^2 away, and the other way round. The table has b's own row
 * because its model was left out in turn, but that row is not near itself. Errors of 0.3 at
 * distance 2 are 0.2 at distance 0. */
START_TEST(a_soc_left_out_is_no_neighbour_of_itself)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs("soc,family,device,model,weights,phase,input_tokens,left_out,by,ln_error\n", f);
    for (int b = 0; b < 2; b++) {
        for (int left_out = 0; left_out < 2; left_out++) {
            (void)fprintf(f, "%s,fam,igpu,m%d,%.17g,decode,1024,%s,%s,0.3\n", b ? "b" : "a", b,
                          exp(21.0 + 2.0 * b), left_out ? "soc" : "model",
                          left_out ? "c"
                          : b      ? "b"
                                   : "a");
        }
    }
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(conformal_read(path, &table, &err), 0);
    for (size_t i = 0; i < table.n; i++) {
        ck_assert_double_eq_tol(table.v[i].distance, 2.0, 1e-9);
    }
    struct conformal_query q = query();
    q.weights = exp(21.0);
    q.left = CONFORMAL_SOC;
    struct conformal_interval x = conformal_of(&table, &q, 0.5);
    ck_assert_double_eq(x.distance, 0.0);
    ck_assert_double_eq_tol(log(x.high_factor), 0.3 / (1.0 + 2.0 * CONFORMAL_WIDEN), 1e-9);
    q.without_soc = "a"; /* as coverage asks: a's row is 2 away again */
    ck_assert_double_eq_tol(log(conformal_of(&table, &q, 0.5).high_factor), 0.3, 1e-9);
}
END_TEST

/* Twenty rows of a, all off by 0.1 in one direction, say no more of another SoC than the one of b,
 * off by 0.2: (0.01 + 0.04) / 2. The 21 ratios are 20 times 0.1 / 0.2 and once 2; half of the SoCs
 * with the new one are three quarters of these. With c left out go its row and that of d, which c
 * predicted: an error of the one is one of the other turned round. */
START_TEST(socs_count_and_not_their_rows)
{
    const char *rows[23];
    for (int i = 0; i < 20; i++) {
        rows[i] = "a,fam,igpu,m,1e9,decode,1024,soc,e,0.1";
    }
    rows[20] = "b,fam,igpu,m,1e9,decode,1024,soc,e,-0.2";
    rows[21] = "d,fam,igpu,m,1e9,decode,1024,soc,c,0.5";
    rows[22] = "c,fam,igpu,m,1e9,decode,1024,soc,d,-0.5";
    write_rows(rows, 23);
    struct conformal_query q = query();
    q.left = CONFORMAL_SOC;
    q.without_soc = "c";
    struct conformal_interval x = conformal_of(&table, &q, 0.5);
    ck_assert_uint_eq(x.n, 21);
    ck_assert_double_eq_tol(log(x.high_factor), 0.5 * sqrt(0.025), 1e-9);
    ck_assert_double_eq_tol(log(conformal_of(&table, &q, 0.95).high_factor), 2.0 * sqrt(0.025),
                            1e-9);
    q.without_soc = NULL; /* all four: (0.01 + 0.04 + 0.25 + 0.25) / 4; 0.5 by 0.1 in three */
    ck_assert_double_eq_tol(log(conformal_of(&table, &q, 0.95).high_factor),
                            0.5 / sqrt(0.1) * sqrt(0.1375), 1e-9);
}
END_TEST

/* The part that was left out is the class, so a runtime's errors of 0.8 are no errors of a model.
 * Each class has one group. The mean of both, (0.01 + 0.64) / 2 = 0.325, counts as three groups.
 * The ratios are 0.1 by 0.8, and 0.8 by 0.1. */
START_TEST(a_class_has_its_own_errors)
{
    WRITE_ROWS(OF_MODEL("a", "0.1"), "s,fam,igpu,a,1e9,decode,1024,runtime,s,0.8");
    struct conformal_query q = query();
    for (int left = CONFORMAL_MODEL; left <= CONFORMAL_RUNTIME; left += CONFORMAL_RUNTIME) {
        q.left = (enum conformal_left)left;
        double own = left == CONFORMAL_MODEL ? 0.01 : 0.64;
        double variance = 0.325;
        for (int level = 1; level < 4; level++) {
            variance = (own + 3.0 * variance) / 4.0;
        }
        struct conformal_interval x = conformal_of(&table, &q, 0.95);
        ck_assert_double_eq_tol(log(x.high_factor), 8.0 * sqrt(variance), 1e-9);
        ck_assert_int_eq(x.left, left);
        ck_assert_uint_eq(x.n, 1);
    }
}
END_TEST

/* How far a family that nothing was measured of is from what was measured is not known, and not
 * made up. */
START_TEST(a_family_of_its_own_has_no_distance)
{
    write_two_models();
    struct conformal_query q = query();
    double half = log(conformal_of(&table, &q, 0.95).high_factor);
    q.family = "other";
    q.weights = 1e9 * exp(0.5);
    struct conformal_interval x = conformal_of(&table, &q, 0.95);
    ck_assert_double_eq(x.distance, 0.0);
    ck_assert_double_eq_tol(log(x.high_factor), half, 1e-9);
}
END_TEST

/* Quantiles of draws are ends of intervals: 0.25 and 0.75 of the one of 50 %. */
START_TEST(draws_are_the_intervals_distribution)
{
    write_two_models();
    struct conformal_query q = query();
    double half = 0.3 / sqrt(0.1) * sqrt(0.075);
    ck_assert_double_eq_tol(draw_at(&q, 0.25), -half, 1e-9);
    ck_assert_double_eq_tol(draw_at(&q, 0.75), half, 1e-9);
    half = 0.4 / sqrt(0.05) * sqrt(0.075);
    ck_assert_double_eq_tol(draw_at(&q, 0.0), -half, 1e-9);
    ck_assert_double_eq_tol(draw_at(&q, 1.0), half, 1e-9);
    q.phase = CONFORMAL_PREFILL; /* no row: no error */
    ck_assert_double_eq(draw_at(&q, 0.9), 0.0);
}
END_TEST

/* The level is 95 %, on the shipped residuals. At least 93 % and at most 98 % of the rows of each
 * class, for all parts that were left out, lie in the interval that the others' errors make. Those
 * of other runtimes are too wide, and known to be: 482 of 491 rows, one more than 98 %. The
 * quantile of NPUs is over all classes, and their errors under other runtimes have shorter tails.
 */
START_TEST(the_shipped_table_covers_what_it_promises)
{
    ck_assert_int_eq(conformal_read(datadir_path(CONFORMAL_TABLE), &table, &err), 0);
    for (int left = CONFORMAL_MODEL; left <= CONFORMAL_SOURCE; left++) {
        size_t n = 0;
        size_t inside = 0;
        for (int p = CONFORMAL_PREFILL; p <= CONFORMAL_DECODE; p++) {
            struct conformal_coverage x = conformal_cover(&table, (enum conformal_left)left,
                                                          (enum conformal_phase)p, CONFORMAL_LEVEL);
            n += x.n;
            inside += x.inside;
        }
        ck_assert_uint_gt(n, 300);
        ck_assert_double_ge((double)inside / (double)n, 0.93);
        size_t more = left == CONFORMAL_RUNTIME ? 1 : 0;
        ck_assert_double_le((double)inside, 0.98 * (double)n + (double)more);
    }
}
END_TEST

/* Each model is covered by the other. a's rows have 1.96 x sqrt(0.1) = 0.62, both inside, and b's
 * 1.96 x sqrt(0.05) = 0.438, both inside. A third of 1.0 by a and b is outside. */
START_TEST(coverage_leaves_each_model_out)
{
    write_two_models();
    struct conformal_coverage x = conformal_cover(&table, CONFORMAL_MODEL, CONFORMAL_DECODE, 0.95);
    ck_assert_uint_eq(x.n, 4);
    ck_assert_uint_eq(x.inside, 4);
    ck_assert_double_eq_tol(x.median_half, 1.959964 * sqrt(0.1), 1e-6); /* the upper one */
    ck_assert_uint_eq(conformal_cover(&table, CONFORMAL_SOC, CONFORMAL_DECODE, 0.95).n, 0);
    WRITE_ROWS(OF_MODEL("a", "0.1"), OF_MODEL("a", "0.3"), OF_MODEL("b", "-0.2"),
               OF_MODEL("b", "-0.4"), OF_MODEL("c", "1.0"));
    x = conformal_cover(&table, CONFORMAL_MODEL, CONFORMAL_DECODE, 0.95);
    ck_assert_uint_eq(x.n, 5);
    ck_assert_uint_eq(x.inside, 4);
    struct conformal_query q = query();
    x = conformal_cover_draws(&table, q.kind, q.phase, 0.95);
    ck_assert_uint_eq(x.n, 5);
    ck_assert_uint_eq(x.inside, 4);
}
END_TEST

/* There are two pairs of iGPUs. From a to b, in one family, decode is predicted over measured 1.1,
 * 0.8, 1.3: errors 10, 20, 30 %. So the median (rank 2 of 3) is 20, P90 (rank 3) 30, and the bias
 * (median of -0.2, 0.1, 0.3) +10. From a to c, another family, it is 2.0: error 100 %. With all
 * four the median (rank 2 of 10, 20, 30, 100) is 20 and P90 100, and pairs go from 20 to 100. Rows
 * of left-out models do not count. */
START_TEST(transfers_are_told_by_pair_and_by_family)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs("soc,family,device,model,weights,phase,input_tokens,left_out,by,ln_error\n", f);
    const struct {
        const char *to, *family, *left_out, *by;
        double ratio;
    } rows[] = {{"a", "x", "model", "a", 3.0},
                {"b", "x", "soc", "a", 1.1},
                {"b", "x", "soc", "a", 0.8},
                {"b", "x", "soc", "a", 1.3},
                {"c", "y", "soc", "a", 2.0}};
    for (int i = 0; i < 5; i++) {
        (void)fprintf(f, "%s,%s,igpu,m,1e9,decode,1024,%s,%s,%.12f\n", rows[i].to, rows[i].family,
                      rows[i].left_out, rows[i].by, log(rows[i].ratio));
    }
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(conformal_read(path, &table, &err), 0);
    struct transfer_query q = {.kind = DEVICE_KIND_IGPU, .phase = CONFORMAL_DECODE};
    struct transfer_error x = transfer_error_of(&table, &q);
    ck_assert_uint_eq(x.n, 4);
    ck_assert_uint_eq(x.pairs, 2);
    ck_assert_double_eq_tol(x.median_frac, 0.2, 1e-9);
    ck_assert_double_eq_tol(x.p90_frac, 1.0, 1e-9);
    ck_assert_double_eq_tol(x.least_frac, 0.2, 1e-9);
    ck_assert_double_eq_tol(x.most_frac, 1.0, 1e-9);
    q.to = "b"; /* one pair of 10, 20 and 30 %: the least and the most are its median */
    x = transfer_error_of(&table, &q);
    ck_assert_uint_eq(x.pairs, 1);
    ck_assert_double_eq_tol(x.least_frac, 0.2, 1e-9);
    ck_assert_double_eq_tol(x.most_frac, 0.2, 1e-9);
    q.to = NULL;
    q.kin = TRANSFER_WITHIN_FAMILY;
    x = transfer_error_of(&table, &q);
    ck_assert_uint_eq(x.n, 3);
    ck_assert_double_eq_tol(x.p90_frac, 0.3, 1e-9);
    ck_assert_double_eq_tol(x.bias_frac, 0.1, 1e-9);
    q.kin = TRANSFER_ACROSS_FAMILIES;
    ck_assert_uint_eq(transfer_error_of(&table, &q).n, 1);
    ck_assert_int_eq(transfer_kin_of(&table, "a", "x"), TRANSFER_WITHIN_FAMILY);
    ck_assert_int_eq(transfer_kin_of(&table, "c", "x"), TRANSFER_ACROSS_FAMILIES);
    ck_assert_int_eq(transfer_kin_of(&table, "nobody's", "x"), TRANSFER_ANY);
    q.kin = TRANSFER_ANY;
    q.to = "c";
    ck_assert_uint_eq(transfer_error_of(&table, &q).n, 1);
    q.from = "c"; /* nothing came from c */
    ck_assert_uint_eq(transfer_error_of(&table, &q).n, 0);
    ck_assert(isnan(transfer_error_of(&table, &q).median_frac));
}
END_TEST

static const struct suite_row suite[] = {
    CASE("intervals", .setup = setup, .teardown = teardown, .timeout_s = 60),
    TEST(the_interval_has_two_variances),
    TEST(one_group_is_taken_as_normal),
    TEST(few_groups_are_drawn_to_the_class_above),
    TEST(intervals_widen_with_the_distance_from_what_was_measured),
    TEST(a_soc_left_out_is_no_neighbour_of_itself),
    TEST(socs_count_and_not_their_rows),
    TEST(a_class_has_its_own_errors),
    TEST(a_family_of_its_own_has_no_distance),
    TEST(draws_are_the_intervals_distribution),
    TEST(coverage_leaves_each_model_out),
    TEST(transfers_are_told_by_pair_and_by_family),
    TEST(the_shipped_table_covers_what_it_promises),
};
SUITE_MAIN("conformal intervals", suite)

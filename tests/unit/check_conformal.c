/* Intervals from left-out errors: the quantile by hand, pools, widening, and what the nominal level
 * is worth on the shipped table. */
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
    (void)snprintf(path, sizeof path, "conformal-%ld.tmp.csv", (long)getpid());
}

static void teardown(void)
{
    conformal_fini(&table);
    err_fini(&err);
    (void)remove(path);
}

/* 39 decode rows of one family, one model each of the same size and context: distance 0, errors
 * 0.01, -0.02, 0.03, ... -0.38, 0.39. */
static void write_table(uint32_t n)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs("soc,family,device,model,weights,phase,input_tokens,left_out,by,ln_error\n", f);
    for (uint32_t i = 1; i <= n; i++) {
        (void)fprintf(f, "s,fam,igpu,m%u,1e9,decode,1024,model,s,%.2f\n", i,
                      (i % 2 == 0 ? -0.01 : 0.01) * i);
    }
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(conformal_read(path, &table, &err), 0);
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

/* ceil(40 x 0.95) = 38: the 38th smallest of 0.01 to 0.39. At 0.5: ceil(20) = the 20th. */
START_TEST(the_interval_is_an_order_statistic)
{
    write_table(39);
    struct conformal_query q = query();
    struct conformal_interval x = conformal_of(&table, &q, 0.95);
    ck_assert_uint_eq(x.n, 39);
    ck_assert_str_eq(x.pool, "fam");
    ck_assert_double_eq_tol(log(x.high_factor), 0.38, 1e-9);
    ck_assert_double_eq_tol(log(x.low_factor), -0.38, 1e-9);
    ck_assert_double_eq_tol(log(conformal_of(&table, &q, 0.5).high_factor), 0.20, 1e-9);
    q.without_model = "m38"; /* 38 left: ceil(39 x 0.95) = 38, the largest, 0.39 */
    ck_assert_double_eq_tol(log(conformal_of(&table, &q, 0.95).high_factor), 0.39, 1e-9);
}
END_TEST

/* Ten scores cannot support 95 %: the largest is given, and 10 of 11 is what it is worth. */
START_TEST(too_few_scores_say_what_they_support)
{
    write_table(10);
    struct conformal_query q = query();
    struct conformal_interval x = conformal_of(&table, &q, 0.95);
    ck_assert_double_eq_tol(log(x.high_factor), 0.10, 1e-9);
    ck_assert_double_eq_tol(x.level_frac, 10.0 / 11.0, 1e-12);
    ck_assert_str_eq(x.pool, "all"); /* it has looked everywhere */
}
END_TEST

/* A model e^2 times as large as any measured: the half-width grows by 1 + 2 CONFORMAL_WIDEN. */
START_TEST(intervals_widen_with_the_distance_from_what_was_measured)
{
    write_table(39);
    struct conformal_query q = query();
    q.weights = 1e9 * exp(2.0);
    struct conformal_interval x = conformal_of(&table, &q, 0.95);
    ck_assert_double_eq_tol(x.distance, 2.0, 1e-9);
    ck_assert_double_eq_tol(log(x.high_factor), 0.38 * (1.0 + 2.0 * CONFORMAL_WIDEN), 1e-9);
}
END_TEST

/* Machine a has a model of e^21 weights, its sibling b one of e^23. With b left out, a fit has seen
 * nothing nearer to b's row than a's, e^2 away, and the other way round: b's own row, which stands
 * in the table because its model was left out in turn, is not near it. Errors of 0.3 at distance 2
 * say 0.2 of what is as near as 0. */
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
 * off by 0.2: half of new SoCs lie within the second of two, in three of which the new one may come
 * last, and 95 % cannot be told: two SoCs support 2 of 3. With c left out go its row and that of d,
 * which c predicted: an error of the one is one of the other turned round. */
START_TEST(socs_count_and_not_their_rows)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs("soc,family,device,model,weights,phase,input_tokens,left_out,by,ln_error\n", f);
    for (int i = 0; i < 22; i++) {
        (void)fprintf(f, "%s,fam,igpu,m,1e9,decode,1024,soc,%s,%s\n",
                      i < 20    ? "a"
                      : i == 20 ? "b"
                                : "d",
                      i < 21 ? "e" : "c",
                      i < 20    ? "0.1"
                      : i == 20 ? "-0.2"
                                : "0.5");
    }
    fputs("c,fam,igpu,m,1e9,decode,1024,soc,d,-0.5\n", f);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(conformal_read(path, &table, &err), 0);
    struct conformal_query q = query();
    q.left = CONFORMAL_SOC;
    q.without_soc = "c";
    struct conformal_interval x = conformal_of(&table, &q, 0.5);
    ck_assert_uint_eq(x.n, 21);
    ck_assert_double_eq_tol(log(x.high_factor), 0.2, 1e-9);
    ck_assert_double_eq(x.level_frac, 0.5);
    x = conformal_of(&table, &q, 0.95);
    ck_assert_double_eq_tol(log(x.high_factor), 0.2, 1e-9);
    ck_assert_double_eq_tol(x.level_frac, 2.0 / 3.0, 1e-12);
    q.without_soc = NULL; /* four SoCs: 0.1, 0.2, 0.5, 0.5 */
    ck_assert_double_eq_tol(log(conformal_of(&table, &q, 0.2).high_factor), 0.1, 1e-9);
    ck_assert_double_eq_tol(log(conformal_of(&table, &q, 0.4).high_factor), 0.2, 1e-9);
    ck_assert_double_eq_tol(log(conformal_of(&table, &q, 0.95).high_factor), 0.5, 1e-9);
}
END_TEST

/* The same of models: twenty rows of one and one row of another are two models. */
START_TEST(models_count_and_not_their_rows)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs("soc,family,device,model,weights,phase,input_tokens,left_out,by,ln_error\n", f);
    for (int i = 0; i < 21; i++) {
        (void)fprintf(f, "s,fam,igpu,%s,1e9,decode,1024,model,s,%s\n", i < 20 ? "a" : "b",
                      i < 20 ? "0.1" : "-0.2");
    }
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(conformal_read(path, &table, &err), 0);
    struct conformal_query q = query();
    ck_assert_double_eq_tol(log(conformal_of(&table, &q, 0.3).high_factor), 0.1, 1e-9);
    ck_assert_double_eq_tol(log(conformal_of(&table, &q, 0.5).high_factor), 0.2, 1e-9);
    ck_assert_double_eq_tol(conformal_of(&table, &q, 0.95).level_frac, 2.0 / 3.0, 1e-12);
}
END_TEST

/* A family that nothing was measured of takes its kind's scores, as they are: how far it is from
 * what was measured is not known, and not made up. */
START_TEST(a_family_of_its_own_takes_the_scores_of_its_kind)
{
    write_table(39);
    struct conformal_query q = query();
    q.family = "other";
    struct conformal_interval x = conformal_of(&table, &q, 0.95);
    ck_assert_str_eq(x.pool, "igpu");
    ck_assert_double_eq(x.distance, 0.0);
    ck_assert_double_eq_tol(log(x.high_factor), 0.38, 1e-9);
}
END_TEST

/* Draws are the errors themselves, turned round: measured over predicted; the median of 39 errors
 * that alternate in sign is the middle one. */
START_TEST(draws_come_from_the_left_out_errors)
{
    write_table(39);
    struct conformal_query q = query();
    ck_assert_double_eq_tol(conformal_draw(&table, &q, 0.0), -0.39, 1e-9);
    ck_assert_double_eq_tol(conformal_draw(&table, &q, 1.0), 0.38, 1e-9);
    ck_assert_double_eq_tol(conformal_draw(&table, &q, 0.5), -0.01, 1e-9);
}
END_TEST

/* Of 38 other errors the 2.5 % point is 0.925 of the way from the least to the next. So the two
 * least of 39 evenly spaced errors lie below the draws made without them, and the two largest
 * above: 35 lie between. */
START_TEST(draws_hold_fewer_rows_than_their_level)
{
    write_table(39);
    struct conformal_query q = query();
    struct conformal_coverage x = conformal_cover_draws(&table, q.kind, q.phase, 0.95);
    ck_assert_uint_eq(x.n, 39);
    ck_assert_uint_eq(x.inside, 35);
}
END_TEST

/* Nominal 95 %, on the shipped residuals: at least 93 % of the rows whose model was left out lie in
 * the interval that the others' scores make, and at least 93 % of those whose SoC was. */
START_TEST(the_shipped_table_covers_what_it_promises)
{
    ck_assert_int_eq(conformal_read(datadir_path(CONFORMAL_TABLE), &table, &err), 0);
    for (int left = CONFORMAL_MODEL; left <= CONFORMAL_SOC; left++) {
        size_t n = 0;
        size_t inside = 0;
        for (int p = CONFORMAL_PREFILL; p <= CONFORMAL_DECODE; p++) {
            struct conformal_coverage x = conformal_cover(&table, (enum conformal_left)left,
                                                          (enum conformal_phase)p, CONFORMAL_LEVEL);
            n += x.n;
            inside += x.inside;
        }
        ck_assert_uint_gt(n, 400);
        ck_assert_double_ge((double)inside / (double)n, 0.93);
        ck_assert_double_le((double)inside / (double)n, 0.98); /* nor is it wide for nothing */
    }
}
END_TEST

/* Four models of errors 0.01 to 0.04, each left out in turn: the three that are left support no
 * more than their largest, 0.04 three times and 0.03 for the model of 0.04 itself, which alone lies
 * outside. Of three errors, 0.03, 0.03 and 0.02: their middle is 0.03. Of two, 0.02 and 0.01, the
 * upper. */
START_TEST(coverage_leaves_each_model_out)
{
    static const struct {
        uint32_t n, inside;
        double median;
    } want[] = {{4, 3, 0.04}, {3, 2, 0.03}, {2, 1, 0.02}};
    for (int i = 0; i < 3; i++) {
        write_table(want[i].n);
        struct conformal_coverage x =
            conformal_cover(&table, CONFORMAL_MODEL, CONFORMAL_DECODE, 0.95);
        ck_assert_uint_eq(x.n, want[i].n);
        ck_assert_uint_eq(x.inside, want[i].inside);
        ck_assert_double_eq_tol(x.median_half, want[i].median, 1e-9);
        conformal_fini(&table);
    }
    ck_assert_uint_eq(conformal_cover(&table, CONFORMAL_SOC, CONFORMAL_DECODE, 0.95).n, 0);
}
END_TEST

/* Two pairs of iGPUs. a to b, one family, decode: predicted over measured 1.1, 0.8, 1.3, errors 10,
 * 20, 30 %: median (rank 2 of 3) 20, P90 (rank 3) 30, bias (median of -0.2, 0.1, 0.3) +10. a to c,
 * another family: 2.0, error 100 %. All four: median (rank 2 of 10, 20, 30, 100) 20, P90 100, pairs
 * from 20 to 100. Rows of left-out models do not count. */
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
    TEST(the_interval_is_an_order_statistic),
    TEST(a_family_of_its_own_takes_the_scores_of_its_kind),
    TEST(too_few_scores_say_what_they_support),
    TEST(intervals_widen_with_the_distance_from_what_was_measured),
    TEST(a_soc_left_out_is_no_neighbour_of_itself),
    TEST(socs_count_and_not_their_rows),
    TEST(models_count_and_not_their_rows),
    TEST(draws_come_from_the_left_out_errors),
    TEST(draws_hold_fewer_rows_than_their_level),
    TEST(coverage_leaves_each_model_out),
    TEST(transfers_are_told_by_pair_and_by_family),
    TEST(the_shipped_table_covers_what_it_promises),
};
SUITE_MAIN("conformal intervals", suite)

/* History matching on claims whose answer is known: two powers of the machine are free, one claim
 * wants each value of the first, another one value of the second. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gsl/gsl_qrng.h>

#include "experiments/claims/fit.h"
#include "tests/helpers/suite.h"

static char claims_path[64], parameters_path[64], state_path[64];
static struct err err;
static struct setup nothing;

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

static void setup(void)
{
    err = (struct err)ERR_INIT;
    nothing = (struct setup){.set = {.n = 0}};
    (void)snprintf(claims_path, sizeof claims_path, "/tmp/xpusim-fit-claims-%ld.tmp.json",
                   (long)getpid());
    (void)snprintf(parameters_path, sizeof parameters_path, "fit-open-%ld.tmp.json",
                   (long)getpid());
    (void)snprintf(state_path, sizeof state_path, "/tmp/xpusim-fit-state-%ld.tmp.json",
                   (long)getpid());
    write_file(claims_path,
               "{\"paper\":\"p\",\"source\":\"s\",\"quantities\":{"
               "\"c\":{\"machine\":{\"field\":\"compile_watts\"}},"
               "\"i\":{\"machine\":{\"field\":\"idle_watts\"}}},\"claims\":["
               "{\"id\":\"C10\",\"where\":\"1\",\"statement\":\"t\",\"checks\":["
               "{\"name\":\"a\",\"value\":\"c\",\"published\":10}]},"
               "{\"id\":\"C14\",\"where\":\"1\",\"statement\":\"t\",\"checks\":["
               "{\"name\":\"a\",\"value\":\"c\",\"published\":14}]},"
               "{\"id\":\"I6\",\"where\":\"1\",\"statement\":\"t\",\"set_by\":\"s\",\"checks\":["
               "{\"name\":\"a\",\"value\":\"i\",\"published\":6}]}]}");
    write_file(parameters_path,
               "{\"about\":\"a\",\"parameters\":{"
               "\"compile\":{\"set\":[\"soc.compiler.power={x}\"],\"low\":8,\"high\":16,"
               "\"unit\":\"W\",\"what\":\"w\",\"measure\":\"m\"},"
               "\"idle\":{\"set\":[\"soc.idle_power={x}\"],\"low\":3,\"high\":12,\"scale\":\"log\","
               "\"unit\":\"W\",\"what\":\"w\",\"measure\":\"m\"},"
               "\"form\":{\"set\":[\"sim.contention={x}\"],\"levels\":[\"max-min\",\"none\"],"
               "\"unit\":\"\",\"what\":\"w\",\"measure\":\"m\"}}}");
}

static void teardown(void)
{
    err_fini(&err);
    (void)remove(claims_path);
    (void)remove(parameters_path);
    (void)remove(state_path);
}

START_TEST(a_point_of_the_cube_is_a_set_up)
{
    struct fit_parameters p;
    char buf[64];
    ck_assert_int_eq(fit_parameters_read(&p, parameters_path, NULL, 0, &err), 0);
    ck_assert_uint_eq(p.n, 3);
    ck_assert_str_eq(fit_parameter_value(&p.v[0], 0.25, buf), "10");
    ck_assert_str_eq(fit_parameter_value(&p.v[1], 0.5, buf), "6"); /* sqrt(3 12) */
    ck_assert_str_eq(fit_parameter_value(&p.v[2], 0.49, buf), "max-min");
    ck_assert_str_eq(fit_parameter_value(&p.v[2], 1.0, buf), "none");
    const double u[FIT_MAX_PARAMETERS] = {0.25, 0.5, 0.6};
    struct setup s;
    fit_setup(&p, u, &s);
    ck_assert_uint_eq(s.set.n, 3);
    ck_assert_str_eq(s.set.v[0], "soc.compiler.power=10");
    ck_assert_str_eq(s.set.v[2], "sim.contention=none");
    const char *over[] = {"idle", "nonesuch"};
    ck_assert_int_eq(fit_parameters_read(&p, parameters_path, over, 2, &err), -EINVAL);
}
END_TEST

static void fit_all(struct fit *f, const struct fit_options *o, struct fit_findings *g)
{
    static const char *const over[] = {"compile", "idle"};
    suite_keep(f, sizeof *f);
    suite_keep(g, sizeof *g);
    *f = (struct fit){.n_checks = 0};
    ck_assert_int_eq(fit_parameters_read(&f->parameters, parameters_path, over, 2, &err), 0);
    ck_assert_int_eq(fit_init(f, o, &err), 0);
    ck_assert_msg(claims_fit(f) == 0, "%s", err.n > 0 ? err.lines[0] : "");
    ck_assert_int_eq(fit_conclude(f, g), 0);
}

/* 10 and 14 W exclude each other: with a model error of a twentieth and a cut of three, the first
 * leaves 8.5 to 11.5 W, the second 11.9 to 16.1 W. Either holds with an idle power of 6 W, which
 * leaves 5.1 to 6.9 W. A claim is judged to hold within a tenth of the value shown. */
START_TEST(what_holds_together_is_found_and_what_cannot_is_told)
{
    const char *const files[] = {claims_path};
    static const char *const ids[] = {"C10", "C14", "I6"};
    struct fit_options o = {
        .files = files,
        .n_files = 1,
        .ids = ids,
        .n_ids = 3,
        .run = {.replications = 2, .how.parallel = 1, .seed = 1, .how.cpu_limit_s = 60},
        .budget = 40,
        .confirm = 2,
        .state = state_path,
        .fixed = &nothing,
        .quiet = true};
    static struct fit f;
    static struct fit_findings g;
    fit_all(&f, &o, &g);
    ck_assert((g.best.holds & 4u) != 0);             /* I6, a calibrated claim: it holds too */
    for (uint32_t i = 0; i < g.best.judged.n; i++) { /* a fitted claim is no test */
        ck_assert_int_ne(g.best.judged.v[i].verdict, CLAIM_REPRODUCED);
    }
    ck_assert(((g.best.holds & 1u) != 0) != ((g.best.holds & 2u) != 0)); /* and one of the others */
    ck_assert_uint_eq(g.n_conflicts, 1);
    ck_assert_uint_eq(g.conflicts[0], 3); /* C10 with C14 */
    /* in shares of 8 to 16 W: (11.5 - 8) / 8 = 0.4375 and (11.9 - 8) / 8 = 0.4875 */
    ck_assert_double_eq_tol(g.high[0][0], 0.4375, 0.03);
    ck_assert_double_eq_tol(g.low[1][0], 0.4875, 0.03);
    /* The scale is logarithmic from 3 to 12 W: ln(5.1 / 3) / ln 4 = 0.383, ln(6.9 / 3) / ln 4 =
     * 0.601. */
    ck_assert_double_eq_tol(g.low[2][1], 0.383, 0.03);
    ck_assert_double_eq_tol(g.high[2][1], 0.601, 0.03);
    /* The compile power settles the first two claims, not the third. */
    ck_assert_double_gt(g.settles_frac[0][0], 0.5);
    ck_assert_double_lt(g.settles_frac[2][0], 0.01);
    /* The first wave is Sobol's, and later ones keep their distance within a wave. A point shows
     * its own powers, without spread, as its set-up's text has them. */
    gsl_qrng *sobol = gsl_qrng_alloc(gsl_qrng_sobol, 2);
    for (uint32_t i = 0; i < f.n_points; i++) {
        const struct fit_point *p = &f.points[i];
        char text[64];
        if (i < 8) {
            double u[2];
            ck_assert_int_eq(gsl_qrng_get(sobol, u), 0);
            ck_assert(p->u[0] == u[0] && p->u[1] == u[1]);
        }
        for (uint32_t k = 0; k < i && (k >= 8 && (k - 8) / 24 == (i - 8) / 24); k++) {
            ck_assert_double_ge(hypot(p->u[0] - f.points[k].u[0], p->u[1] - f.points[k].u[1]),
                                0.12 * sqrt(2.0) - 1e-12);
        }
        (void)snprintf(text, sizeof text, "%.4g", 8.0 + 8.0 * p->u[0]);
        ck_assert_double_eq_tol(p->mean[0], atof(text), 1e-9);
        ck_assert_double_eq_tol(p->mean[1], atof(text), 1e-9);
        (void)snprintf(text, sizeof text, "%.4g", 3.0 * pow(4.0, p->u[1]));
        ck_assert_double_eq_tol(p->mean[2], atof(text), 1e-9);
        ck_assert(p->sd[0] == 0.0 && p->sd[2] == 0.0);
    }
    gsl_qrng_free(sobol);
    uint32_t looked[FIT_CONFIRMED];
    ck_assert_uint_eq(fit_best_points(&f, looked), f.n_confirmed);
    uint32_t chosen = 0;
    for (uint32_t i = 0; i < f.n_confirmed;
         i++) { /* the best is the first of those where most holds */
        const struct fit_confirmed *c = f.confirmed;
        double watts = f.points[looked[i]].mean[0];
        double idle = f.points[looked[i]].mean[2];
        uint32_t holds = (fabs(watts - 10.0) <= 0.1 * watts) |
                         (fabs(watts - 14.0) <= 0.1 * watts) << 1 |
                         (fabs(idle - 6.0) <= 0.1 * idle) << 2;
        ck_assert_uint_eq(c[i].point, looked[i]);
        ck_assert_uint_eq(c[i].holds, holds);
        chosen = fit_set_size(holds) > fit_set_size(c[chosen].holds) ? i : chosen;
    }
    ck_assert_mem_eq(g.best.u, f.points[looked[chosen]].u, 2 * sizeof(double));
    ck_assert_uint_eq(g.best.holds, f.confirmed[chosen].holds); /* nothing here is random */
    uint32_t n = f.n_points;
    double first = f.points[0].mean[0];
    /* again from its state: no further point, the same answer */
    o.budget = n;
    fit_all(&f, &o, &g);
    ck_assert_uint_eq(f.n_points, n);
    ck_assert_double_eq(f.points[0].mean[0], first);
    ck_assert_uint_eq(g.conflicts[0], 3);
    /* a state of another search is refused */
    o.run.seed = 2;
    suite_keep(&f, sizeof f);
    f = (struct fit){.n_checks = 0};
    ck_assert_int_eq(fit_parameters_read(&f.parameters, parameters_path, NULL, 0, &err), 0);
    ck_assert_int_eq(fit_init(&f, &o, &err), 0);
    ck_assert_int_eq(claims_fit(&f), -EINVAL);
    /* two parameters have five terms: four points are too few, five are enough */
    o.state = NULL;
    for (o.budget = 4; o.budget <= 5; o.budget++) {
        static const char *const over[] = {"compile", "idle"};
        err_fini(&err);
        err = (struct err)ERR_INIT;
        suite_keep(&f, sizeof f);
        f = (struct fit){.n_checks = 0};
        ck_assert_int_eq(fit_parameters_read(&f.parameters, parameters_path, over, 2, &err), 0);
        ck_assert_int_eq(fit_init(&f, &o, &err), 0);
        ck_assert_int_eq(claims_fit(&f), o.budget == 4 ? -EINVAL : 0);
        ck_assert_uint_eq(f.n_points, o.budget == 4 ? 0 : 5);
    }
}
END_TEST

/* ---- constraints ---- */

/* FFN of the 8B model runs on the NPU in a chunk of 256 rows. 3 products of 4096 x 14336 and the
 * output projection of 4096 x 4096 are 192,937,984 weights, 98.784 GFLOP. The iGPU of the file pays
 * 1 + 27 / 256 of that. At P TFLOP/s and with launches of 4 x 250 us the NPU takes 98.784 / P + 1
 * ms. */
static const char kernel_claims[] =
    "{\"paper\":\"p\",\"source\":\"s\",\"quantities\":{"
    "\"npu\":{\"kernel\":{\"llm\":\"llama-3.1-8b\",\"device\":\"npu\",\"op\":\"FFN\","
    "\"field\":\"time_ms\",\"prefill_tokens\":256}},"
    "\"c\":{\"machine\":{\"field\":\"compile_watts\"}},"
    "\"shared\":{\"corun\":{\"llm\":\"llama-3.1-8b\","
    "\"kernel\":{\"device\":\"igpu\",\"op\":\"QKV\",\"sequences\":1,\"context_tokens\":1},"
    "\"beside\":{\"device\":\"npu\",\"op\":\"QKV\",\"sequences\":1,\"context_tokens\":1}}},"
    "\"r\":{\"run\":{\"policy\":\"npu-serial\",\"workload\":\"mixed:duration_s=10\"}}},"
    "\"claims\":["
    "{\"id\":\"K\",\"where\":\"1\",\"statement\":\"t\",\"checks\":["
    "{\"name\":\"a\",\"value\":\"npu\",\"published_low\":%s,\"tolerance_frac\":0.02},"
    "{\"name\":\"b\",\"value\":\"r:all.n\",\"above\":1e9}]},"
    "{\"id\":\"L\",\"where\":\"1\",\"statement\":\"t\",\"checks\":["
    "{\"name\":\"a\",\"value\":\"npu\",\"above\":%s}]},"
    "{\"id\":\"R\",\"where\":\"1\",\"statement\":\"t\",\"checks\":["
    "{\"name\":\"a\",\"value\":\"r:all.n\",\"above\":1}]},"
    "{\"id\":\"S\",\"where\":\"1\",\"statement\":\"t\",\"checks\":["
    "{\"name\":\"a\",\"value\":\"shared\",\"above\":1}]},"
    "{\"id\":\"C10\",\"where\":\"1\",\"statement\":\"t\",\"checks\":["
    "{\"name\":\"a\",\"value\":\"c\",\"published\":10}]}]}";

static void write_kernels(const char *published, const char *above)
{
    char text[sizeof kernel_claims + 64];
    (void)snprintf(text, sizeof text, kernel_claims, published, above);
    write_file(claims_path, text);
    write_file(parameters_path,
               "{\"about\":\"a\",\"parameters\":{"
               "\"compile\":{\"set\":[\"soc.compiler.power={x}\"],\"low\":8,\"high\":16,"
               "\"unit\":\"W\",\"what\":\"w\",\"measure\":\"m\"},"
               "\"rate\":{\"set\":[\"soc.devices.npu.runtimes.0.rate={x}\"],\"low\":2,\"high\":4,"
               "\"unit\":\"TFLOP/s\",\"what\":\"w\",\"measure\":\"m\"}}}");
}

static int fit_under(struct fit *f, struct fit_options *o, const char *const *under, uint32_t n,
                     struct fit_findings *g)
{
    static const char *const ids[] = {"C10"};
    static const char *files[1];
    files[0] = claims_path;
    *o = (struct fit_options){
        .files = files,
        .n_files = 1,
        .ids = ids,
        .n_ids = 1,
        .under = under,
        .n_under = n,
        .run = {.replications = 2, .how.parallel = 1, .seed = 1, .how.cpu_limit_s = 60},
        .budget = 30,
        .confirm = 2,
        .fixed = &nothing,
        .quiet = true};
    suite_keep(f, sizeof *f);
    suite_keep(g, sizeof *g);
    *f = (struct fit){.n_checks = 0};
    *g = (struct fit_findings){.n_conflicts = 0};
    ck_assert_int_eq(fit_parameters_read(&f->parameters, parameters_path, NULL, 0, &err), 0);
    ck_assert_int_eq(fit_init(f, o, &err), 0);
    int rc = claims_fit(f);
    return rc == 0 ? fit_conclude(f, g) : rc;
}

/* A machine of 3.1 TFLOP/s makes a published time: 98.784 / 3.1 + 1 = 32.866 ms is between 32.8 and
 * 33 ms. Within 2 % of what is shown that leaves times t from 32.8 / 1.02 = 32.157 to 33 / 0.98 =
 * 33.673 ms, 3.0234 to 3.1705 TFLOP/s, and the search stays there. */
START_TEST(constraints_cost_no_run_and_find_the_machine_again)
{
    static const char *const under[] = {"K", "L"};
    static struct fit f;
    struct fit_options o;
    static struct fit_findings g;
    char buf[64];
    write_kernels("32.8,\"published_high\":33", "32");
    ck_assert_msg(fit_under(&f, &o, under, 2, &g) == 0, "%s", err.n > 0 ? err.lines[0] : "");
    ck_assert_uint_eq(f.under.stated.v[0].n_checks, 1); /* the run is left out */
    ck_assert_uint_eq(f.under.n_active, 1);             /* nothing hangs on the compiler's power */
    ck_assert_uint_eq(f.under.active[0], 1);
    ck_assert_uint_gt(f.under.n_pool, 0);
    for (uint32_t i = 0; i < f.under.n_grid; i++) { /* every verdict by hand */
        double t = 98.784 / (2.0 + 2.0 * f.under.seen[i].u[1]) + 1.0;
        bool holds = 32.8 <= 1.02 * t && 0.98 * t <= 33.0 && t > 32.0;
        ck_assert_int_eq(f.under.seen[i].holds == 3u, holds);
    }
    /* One active number has 64 places, both ends among them; the other stays in the middle. How far
     * a time misses is a share of what it misses, and a thousandth more. */
    ck_assert_uint_eq(f.under.n_grid, 64);
    for (uint32_t i = 0; i < f.under.n_seen; i++) {
        const struct fit_priced *p = &f.under.seen[i];
        double t = 98.784 / atof(fit_parameter_value(&f.parameters.v[1], p->u[1], buf)) + 1.0;
        bool near = 32.8 <= 1.02 * t && 0.98 * t <= 33.0;
        double end = t < 32.8 ? 32.8 : 33.0; /* of the range, that is nearer */
        ck_assert(i >= 64 || (p->u[0] == 0.5 && fabs(p->u[1] - i / 63.0) < 1e-12));
        ck_assert_double_eq_tol(p->sum, 2.0 * t, 1e-3);
        ck_assert_double_eq_tol(p->miss[0], near ? 0.0 : 1e-3 + fabs(t - end) / end, 1e-5);
        ck_assert_double_eq_tol(p->miss[1], t > 32.0 ? 0.0 : 1e-3 + (32.0 - t) / 32.0, 1e-5);
        ck_assert_uint_eq(p->holds, (uint32_t)near | (uint32_t)(t > 32.0) << 1);
    }
    uint32_t pooled = 0;
    for (uint32_t i = 0; i < f.under.n_seen && pooled < f.under.n_pool;
         i++) { /* all that hold, in their order */
        if (f.under.seen[i].holds == 3u) {
            ck_assert_mem_eq(&f.under.pool[pooled++], &f.under.seen[i], sizeof f.under.seen[i]);
        }
    }
    ck_assert_uint_eq(pooled, f.under.n_pool);
    ck_assert_uint_eq(f.under.n_seen,
                      64 + 2048); /* it is grown by so many steps, or until it is full */
    double rate = 2.0 + 2.0 * g.best.u[1];
    ck_assert_double_ge(rate, 3.023);
    ck_assert_double_le(rate, 3.171);
    ck_assert_uint_eq(g.best.holds, 1u);
    ck_assert_int_eq(g.under.v[0].verdict, CLAIM_CALIBRATED); /* at the witness: no test */
    for (uint32_t i = 0; i < f.n_points; i++) {
        double at = 2.0 + 2.0 * f.points[i].u[1];
        ck_assert_msg(at > 3.023 && at < 3.171, "point %u has %g TFLOP/s", i, at);
    }
}
END_TEST

/* 32.9 ms within 2 %, and above 40 ms: each has its rates, no rate has both. */
START_TEST(constraints_that_exclude_each_other_are_told_and_nothing_is_run)
{
    static const char *const under[] = {"K", "L"};
    static const char *const runs[] = {"R"};
    static struct fit f;
    struct fit_options o;
    static struct fit_findings g;
    write_kernels("32.8,\"published_high\":33", "40");
    ck_assert_int_eq(fit_under(&f, &o, under, 2, &g), 0);
    ck_assert_uint_eq(f.under.n_pool, 0);
    ck_assert_uint_eq(f.n_points, 0);
    ck_assert_uint_eq(f.under.n_conflicts, 1);
    ck_assert_uint_eq(f.under.conflicts[0], 3); /* the pair, neither alone */
    /* a claim that needs runs is no constraint */
    ck_assert_int_eq(fit_under(&f, &o, runs, 1, &g), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.lines[0], "R has no check that needs no run"));
}
END_TEST

/* The strength of queueing counts with the form latency alone, which is the first of five levels. A
 * slowdown by sharing is above 1 there, the more the stronger queueing is: both are active. */
START_TEST(a_number_that_counts_with_one_level_alone_is_found)
{
    static const char *const under[] = {"S"};
    static struct fit f;
    struct fit_options o;
    static struct fit_findings g;
    write_kernels("32.8,\"published_high\":33", "32");
    write_file(parameters_path,
               "{\"about\":\"a\",\"parameters\":{"
               "\"compile\":{\"set\":[\"soc.compiler.power={x}\"],\"low\":8,\"high\":16,"
               "\"unit\":\"W\",\"what\":\"w\",\"measure\":\"m\"},"
               "\"queueing\":{\"set\":[\"soc.ddr.queueing={x}\"],\"low\":0.09,\"high\":1,"
               "\"unit\":\"1\",\"what\":\"w\",\"measure\":\"m\"},"
               "\"form\":{\"set\":[\"sim.contention={x}\"],\"unit\":\"\",\"what\":\"w\","
               "\"measure\":\"m\","
               "\"levels\":[\"latency\",\"max-min\",\"proportional\",\"pccs\",\"none\"]}}}");
    ck_assert_msg(fit_under(&f, &o, under, 1, &g) == 0, "%s", err.n > 0 ? err.lines[0] : "");
    ck_assert_uint_eq(f.under.n_active, 2);
    ck_assert_uint_eq(f.under.active[0], 1);
    ck_assert_uint_eq(f.under.active[1], 2);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("fit", .setup = setup, .teardown = teardown, .timeout_s = 120),
    TEST(a_point_of_the_cube_is_a_set_up),
    TEST(what_holds_together_is_found_and_what_cannot_is_told),
    TEST(constraints_cost_no_run_and_find_the_machine_again),
    TEST(constraints_that_exclude_each_other_are_told_and_nothing_is_run),
    TEST(a_number_that_counts_with_one_level_alone_is_found),
};
SUITE_MAIN("claims fit", suite)

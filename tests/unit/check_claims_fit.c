/* History matching on claims whose answer is known: two powers of the machine are free, one claim
 * wants each value of the first, another one value of the second. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    (void)snprintf(claims_path, sizeof claims_path, "fit-claims-%ld.tmp.json", (long)getpid());
    (void)snprintf(parameters_path, sizeof parameters_path, "fit-open-%ld.tmp.json",
                   (long)getpid());
    (void)snprintf(state_path, sizeof state_path, "fit-state-%ld.tmp.json", (long)getpid());
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
    fit_setup_fini(&s);
    fit_parameters_fini(&p);
    const char *over[] = {"idle", "nonesuch"};
    ck_assert_int_eq(fit_parameters_read(&p, parameters_path, over, 2, &err), -EINVAL);
    fit_parameters_fini(&p);
}
END_TEST

static void fit_all(struct fit *f, const struct fit_options *o, struct fit_findings *g)
{
    static const char *const over[] = {"compile", "idle"};
    *f = (struct fit){.n_checks = 0};
    ck_assert_int_eq(fit_parameters_read(&f->parameters, parameters_path, over, 2, &err), 0);
    ck_assert_int_eq(fit_init(f, o, &err), 0);
    ck_assert_msg(claims_fit(f) == 0, "%s", err.n > 0 ? err.lines[0] : "");
    fit_conclude(f, g);
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
    struct fit f;
    struct fit_findings g;
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
    /* logarithmic from 3 to 12 W: ln(5.1 / 3) / ln 4 = 0.383, ln(6.9 / 3) / ln 4 = 0.601 */
    ck_assert_double_eq_tol(g.low[2][1], 0.383, 0.03);
    ck_assert_double_eq_tol(g.high[2][1], 0.601, 0.03);
    /* the compile power settles the first two claims, not the third */
    ck_assert_double_gt(g.settles_frac[0][0], 0.5);
    ck_assert_double_lt(g.settles_frac[2][0], 0.01);
    uint32_t n = f.n_points;
    double first = f.points[0].mean[0];
    fit_findings_fini(&g);
    fit_fini(&f);
    /* again from its state: no further point, the same answer */
    o.budget = n;
    fit_all(&f, &o, &g);
    ck_assert_uint_eq(f.n_points, n);
    ck_assert_double_eq(f.points[0].mean[0], first);
    ck_assert_uint_eq(g.conflicts[0], 3);
    fit_findings_fini(&g);
    fit_fini(&f);
    /* a state of another search is refused */
    o.run.seed = 2;
    f = (struct fit){.n_checks = 0};
    ck_assert_int_eq(fit_parameters_read(&f.parameters, parameters_path, NULL, 0, &err), 0);
    ck_assert_int_eq(fit_init(&f, &o, &err), 0);
    ck_assert_int_eq(claims_fit(&f), -EINVAL);
    fit_fini(&f);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("fit", .setup = setup, .teardown = teardown, .timeout_s = 120),
    TEST(a_point_of_the_cube_is_a_set_up),
    TEST(what_holds_together_is_found_and_what_cannot_is_told),
};
SUITE_MAIN("claims fit", suite)

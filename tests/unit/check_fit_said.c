/* Text of a fit, its file of points, and its use of constraints. Points are made up. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/scope.h"
#include "tests/helpers/madefit.h"
#include "tests/helpers/suite.h"

#define POINTS MADEFIT_POINTS
#define CHECKS MADEFIT_CHECKS

/* ---- what is printed ---- */

static const char printed[] =
    "12 points of 2 parameters, 3 traces each, 41 s of processor time\n"
    "\n"
    "Points where a claim is plausible, of those simulated: A 4 B 7 C 9\n"
    "\n"
    "The best points, each on 3 fresh traces\n"
    "    point   6: A C; compatible: B\n"
    "    point  12: B; compatible: \n"
    "\n"
    "Largest set that holds together: 2 of 3 claims (A C), judged on 9 fresh traces\n"
    "Compatible there, not decided: 1 (B)\n"
    "    width              12.5 B\n"
    "    rate               10 1/s\n"
    "\n"
    "0 claims: 0 reproduced, 0 calibrated, 0 compatible, not decided, 0 direction, 0 not "
    "reproduced, 0 not modellable\n"
    "\n"
    "Smallest sets that the emulators rule out in these ranges\n"
    "    {A, B}\n"
    "    {C}\n"
    "\n"
    "What is left of the ranges: by each claim alone, and by the set together (share of the "
    "space)\n"
    "    A         25.0 %   width 12..14 rate 3.162..10\n"
    "    B        100.0 %  \n"
    "    C         12.5 %   rate 10..100\n"
    "    together   6.2 %   width 11..19\n"
    "\n"
    "What one measurement would settle: claims' doubt that knowing a number removes, summed over "
    "claims\n"
    "    1.20  rate               a clock\n"
    "    0.60  width              a rod\n";

static void findings_by_hand(struct fit_findings *g)
{
    *g = (struct fit_findings){
        .best = {.u = {0.25, 0.5}, .holds = 5, .compatible = 2},
        .conflicts = {3, 4},
        .n_conflicts = 2,
        .left_frac = {0.25, 1.0, 0.125, 0.0625},
        .plausible = {4, 7, 9},
        .low = {{0.2, 0.25}, {0.0, 0.0}, {0.05, 0.5}, {0.1, 1.0}},
        .high = {{0.4, 0.5}, {1.0, 1.0}, {0.95, 1.0}, {0.9, 0.0}},
        .together_frac = {{0.5, 0.25, 0.125}, {0.25, 0.75, 0.0625}, {0.125, 0.0625, 0.875}},
        .settles_frac = {{0.1, 0.2}, {0.2, 0.7}, {0.3, 0.3}}};
    madefit.cpu_s = 41.2;
    madefit.confirmed[0] = (struct fit_confirmed){5, 5, 2};
    madefit.confirmed[1] = (struct fit_confirmed){11, 2, 0};
    madefit.n_confirmed = 2;
}

static void is_tree(const cJSON *tree, const char *path, const char *wanted)
{
    const cJSON *at = tree;
    OWNED char *words = xstrdup(path);
    for (char *w = strtok(words, "."); w != NULL; w = strtok(NULL, ".")) {
        at = cJSON_GetObjectItemCaseSensitive(at, w);
    }
    OWNED char *text = at != NULL ? json_text(at, false) : xstrdup("nothing");
    for (char *end = text + strlen(text); end > text && end[-1] == '\n';) {
        *--end = '\0';
    }
    ck_assert_msg(strcmp(text, wanted) == 0, "%s: %s, wanted %s", path, text, wanted);
}

START_TEST(the_document_says_the_findings)
{
    struct fit_findings g;
    findings_by_hand(&g);
    struct document *d = document_new();
    fit_document(&madefit, &g, d);
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    document_put(d, "text", f);
    (void)fclose(f);
    ck_assert_msg(strcmp(text, printed) == 0, "%s", text);
    free(text);
    cJSON *tree = document_json(d);
    is_tree(tree, "points", "12");
    is_tree(tree, "traces", "3");
    is_tree(tree, "confirmed_on", "9");
    is_tree(tree, "each_on", "3");
    is_tree(tree, "seed", "7");
    is_tree(tree, "claims", "[\"A\",\"B\",\"C\"]");
    is_tree(tree, "plausible", "{\"A\":4,\"B\":7,\"C\":9}");
    is_tree(tree, "best_points",
            "[{\"point\":6,\"holds\":\"A "
            "C\",\"compatible\":\"B\"},{\"point\":12,\"holds\":\"B\",\"compatible\":\"\"}]");
    is_tree(tree, "compatible", "[\"B\"]");
    is_tree(tree, "conflicts", "[[\"A\",\"B\"],[\"C\"]]");
    is_tree(tree, "ranges.A", "{\"left_frac\":0.25,\"width\":[0.2,0.4],\"rate\":[0.25,0.5]}");
    is_tree(tree, "ranges.C", "{\"left_frac\":0.125,\"width\":[0.05,0.95],\"rate\":[0.5,1]}");
    is_tree(tree, "ranges.together", "{\"left_frac\":0.0625,\"width\":[0.1,0.9]}");
    is_tree(tree, "settles",
            "{\"A\":{\"width\":0.1,\"rate\":0.2},\"B\":{\"width\":0.2,\"rate\":0.7},\"C\":{"
            "\"width\":0.3,\"rate\":0.3}}");
    is_tree(tree, "together.B", "{\"A\":0.25,\"B\":0.75,\"C\":0.0625}");
    is_tree(tree, "parameters.rate",
            "{\"unit\":\"1/"
            "s\",\"low\":\"1\",\"high\":\"100\",\"witness\":\"10\",\"witness_at\":0.5,\"measure\":"
            "\"a clock\"}");
    is_tree(tree, "parameters.width",
            "{\"unit\":\"B\",\"low\":\"10\",\"high\":\"20\",\"witness\":\"12.5\",\"witness_at\":0."
            "25,\"measure\":\"a rod\"}");
    is_tree(tree, "profile.fitted_to", "[\"A\",\"B\",\"C\"]");
    is_tree(tree, "profile.holds", "[\"A\",\"C\"]");
    is_tree(tree, "profile.set", "[\"a=12.5!\",\"b=10\",\"fixed\"]");
    cJSON_Delete(tree);
}
END_TEST

static const char constraints[] =
    "Constraints: A B, priced without runs on a grid of 3 machines; all hold on 1\n"
    "    rate               3.162 to 31.62 1/s\n"
    "\n";
static const char excluded[] =
    "Constraints: A B, priced without runs on a grid of 3 machines; all hold on 1\n"
    "No machine in the ranges has all of them. Smallest sets that hold nowhere, on the grid or by "
    "descent from its nearest "
    "points:\n"
    "    {A, B}\n"
    "\n";

/* The pool is made up. Constraints leave the second parameter alone, from 0.25 to 0.75. */
START_TEST(constraints_are_said_and_kept_to)
{
    static struct fit_priced priced[4] = {{.u = {0.9, 0.25}, .holds = 3},
                                          {.u = {0.9, 0.75}, .holds = 1},
                                          {.u = {0.9, 0.5}, .holds = 2},
                                          {.u = {0.1, 0.75}, .holds = 3}};
    static struct fit_priced pool[3] = {{.u = {0.9, 0.25}}, {.u = {0.1, 0.75}}, {.u = {0.3, 0.4}}};
    struct fit_findings g = {.n_conflicts = 0};
    madefit_options.n_under = 2;
    madefit.n_points = 0;
    madefit.under = (struct fit_under){.stated = {.v = madefit_claims, .n = 2},
                                       .n_claims = 2,
                                       .active = {1},
                                       .n_active = 1,
                                       .seen = priced,
                                       .n_seen = 4,
                                       .n_grid = 3,
                                       .pool = pool,
                                       .n_pool = 3};
    for (int with = 1; with >= 0; with--) {
        struct document *d = document_new();
        char *text = NULL;
        size_t n;
        FILE *f = open_memstream(&text, &n);
        madefit.under.n_pool = with ? 3 : 0;
        madefit.under.conflicts[0] = 3;
        madefit.under.n_conflicts = 1;
        fit_document(&madefit, &g, d);
        document_put(d, "text", f);
        (void)fclose(f);
        ck_assert_str_eq(text, with ? constraints : excluded);
        free(text);
        cJSON *tree = document_json(d);
        is_tree(tree, "under", "[\"A\",\"B\"]");
        is_tree(tree, "grid", "3");
        is_tree(tree, "grid_holds", "1");
        is_tree(tree, "priced", "4");
        is_tree(tree, with ? "constraints_leave" : "constraints_exclude",
                with ? "{\"rate\":[\"3.162\",\"31.62\"]}" : "[[\"A\",\"B\"]]");
        cJSON_Delete(tree);
    }
    /* A search takes the second number of a point of the pool: any, or the nearest. The first one
     * is its own. */
    madefit.under.n_pool = 3;
    struct rng r;
    bool drawn[3] = {false};
    rng_init(&r, 1);
    for (int i = 0; i < 50; i++) {
        double u[FIT_MAX_PARAMETERS] = {0.6, 0.6};
        fit_under_draw(&madefit, &r, u);
        int which = u[1] == 0.25 ? 0 : u[1] == 0.75 ? 1 : 2;
        drawn[which] = true;
        ck_assert(u[0] == 0.6 && u[1] == pool[which].u[1]);
    }
    ck_assert(drawn[0] && drawn[1] && drawn[2]);
    static const double from[] = {0.0, 0.32, 0.33, 0.57, 0.58, 1.0};
    static const double to[] = {0.25, 0.25, 0.4, 0.4, 0.75, 0.75};
    for (int i = 0; i < 6; i++) {
        double u[FIT_MAX_PARAMETERS] = {0.9, from[i]};
        fit_under_nearest(&madefit, u);
        ck_assert(u[0] == 0.9 && u[1] == to[i]);
    }
    madefit.n_points = POINTS;
}
END_TEST

/* ---- points ---- */

START_TEST(points_come_back_from_their_file)
{
    madefit_options.state = madefit_path;
    madefit.cpu_s = 12.5;
    ck_assert_int_eq(fit_points_resume(&madefit, &madefit_err), 0); /* no file yet */
    ck_assert_uint_eq(madefit.n_points, POINTS);
    ck_assert_int_eq(fit_points_keep(&madefit, &madefit_err), 0);
    struct fit other = madefit;
    other.points = NULL;
    other.n_points = 0;
    other.cpu_s = 0.0;
    ck_assert_int_eq(fit_points_resume(&other, &madefit_err), 0);
    ck_assert_uint_eq(other.n_points, POINTS);
    ck_assert_double_eq(other.cpu_s, 12.5);
    for (uint32_t i = 0; i < POINTS; i++) {
        for (uint32_t k = 0; k < CHECKS; k++) {
            ck_assert_double_eq_tol(other.points[i].sd[k], madefit.points[i].sd[k], 1e-15);
            if (isnan(madefit.points[i].mean[k])) {
                ck_assert(isnan(other.points[i].mean[k]));
            } else {
                ck_assert_double_eq_tol(other.points[i].mean[k], madefit.points[i].mean[k], 1e-14);
            }
        }
        ck_assert_double_eq_tol(other.points[i].u[1], madefit.points[i].u[1], 1e-15);
        free(other.points[i].mean);
        free(other.points[i].sd);
    }
    free(other.points);
    /* Each of these makes it another search. */
    static const char *const under[] = {"X"};
    for (int i = 0; i < 6; i++) {
        struct fit_options o = madefit_options;
        other = madefit;
        other.points = NULL;
        other.n_points = 0;
        other.o = &o;
        o.run.seed += i == 0;
        o.run.replications += i == 1;
        o.under = under;
        o.n_under = i == 2;
        other.claims.n -= i == 3;
        other.parameters.n -= i == 4;
        other.n_checks -= i == 5;
        ck_assert_int_eq(fit_points_resume(&other, &madefit_err), -EINVAL);
        ck_assert_uint_eq(other.n_points, 0);
    }
    ck_assert_uint_eq(madefit_err.n, 6);
}
END_TEST

/* Claim i under set-up s is row s n + i. */
START_TEST(claims_are_spread_over_set_ups)
{
    struct setup setups[3] = {{.set = {.v = {"a=1"}, .n = 1}},
                              {.set = {.v = {"a=2"}, .n = 1}},
                              {.set = {.v = {"a=3"}, .n = 1}}};
    for (uint32_t n = 1; n <= 3; n++) {
        struct claims c = {.v = xcalloc(2, sizeof *c.v), .n = 2};
        c.v[0].id = "A";
        c.v[1].id = "B";
        c.v[0].setup = c.v[1].setup = (struct setup){.set = {.v = {"own"}, .n = 1}};
        ck_assert_int_eq(fit_spread(&c, setups, n, &madefit_err), 0);
        ck_assert_uint_eq(c.n, 2 * n);
        for (uint32_t i = 0; i < c.n; i++) {
            ck_assert_str_eq(c.v[i].id, i % 2 == 0 ? "A" : "B");
            ck_assert_uint_eq(c.v[i].setup.set.n, 2);
            ck_assert_str_eq(c.v[i].setup.set.v[0], "own");
            ck_assert_str_eq(c.v[i].setup.set.v[1], setups[i / 2].set.v[0]);
        }
        free(c.v);
    }
    /* A quarter of the traces, and one more, judge each of the best, or as many as asked for. */
    ck_assert_uint_eq(fit_confirm_each(&madefit_options), 3);
    madefit_options.confirm_each = 5;
    ck_assert_uint_eq(fit_confirm_each(&madefit_options), 5);
}
END_TEST
static const struct suite_row suite[] = {
    CASE("fit said", .setup = madefit_setup, .teardown = madefit_teardown, .timeout_s = 60),
    TEST(the_document_says_the_findings),
    TEST(constraints_are_said_and_kept_to),
    TEST(points_come_back_from_their_file),
    TEST(claims_are_spread_over_set_ups),
};
SUITE_MAIN("fit said", suite)

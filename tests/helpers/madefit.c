#include "tests/helpers/madefit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fit madefit;
struct fit_options madefit_options;
struct claim madefit_claims[3];
static struct setup nothing;
struct err madefit_err;
char madefit_path[64];

/* Two parameters, three claims: A has a number about a neutral value and a bound from below, B a
 * number, C a bound from above. The means of a point are a smooth function of it with a little
 * waviness. */
static void make_claims(void)
{
    memset(madefit_claims, 0, sizeof madefit_claims);
    madefit_claims[0].id = "A";
    madefit_claims[1].id = "B";
    madefit_claims[2].id = "C";
    madefit_claims[0].n_checks = 2;
    madefit_claims[1].n_checks = madefit_claims[2].n_checks = 1;
    madefit_claims[0].checks[0] =
        (struct claim_check){.kind = CHECK_NUMBER, .low = 3.0, .high = 4.0, .neutral = 1.0};
    madefit_claims[0].checks[1] =
        (struct claim_check){.kind = CHECK_ABOVE, .low = 5.0, .high = 5.0, .neutral = (double)NAN};
    madefit_claims[1].checks[0] =
        (struct claim_check){.kind = CHECK_NUMBER, .low = 2.0, .high = 2.0, .neutral = (double)NAN};
    madefit_claims[2].checks[0] =
        (struct claim_check){.kind = CHECK_BELOW, .low = 1.5, .high = 1.5, .neutral = (double)NAN};
}

void madefit_setup(void)
{
    static const uint32_t of[MADEFIT_CHECKS] = {0, 0, 1, 2};
    static const uint32_t at[MADEFIT_CHECKS] = {0, 1, 0, 0};
    madefit_err = (struct err)ERR_INIT;
    nothing = (struct setup){.set = {.n = 0}};
    (void)snprintf(madefit_path, sizeof madefit_path, "/tmp/xpusim-fit-anew-%ld.tmp.json",
                   (long)getpid());
    make_claims();
    madefit_options = (struct fit_options){
        .run = {.replications = 3, .seed = 7}, .confirm = 9, .fixed = &nothing, .quiet = true};
    madefit = (struct fit){
        .o = &madefit_options, .e = &madefit_err, .claims = {.v = madefit_claims, .n = 3}};
    madefit.parameters.n = 2;
    madefit.parameters.v[0] = (struct fit_parameter){
        .name = "width", .unit = "B", .what = "w", .measure = "a rod", .low = 10.0, .high = 20.0};
    madefit.parameters.v[1] = (struct fit_parameter){.name = "rate",
                                                     .unit = "1/s",
                                                     .what = "r",
                                                     .measure = "a clock",
                                                     .low = 1.0,
                                                     .high = 100.0,
                                                     .log_scale = true};
    madefit.parameters.v[0].changes.set = (struct setup_texts){.v = {"a={x}!"}, .n = 1};
    madefit.parameters.v[1].changes.set = (struct setup_texts){.v = {"b={x}", "fixed"}, .n = 2};
    madefit.n_checks = MADEFIT_CHECKS;
    madefit.checks = xcalloc(MADEFIT_CHECKS, sizeof *madefit.checks);
    for (uint32_t k = 0; k < MADEFIT_CHECKS; k++) {
        madefit.checks[k] = (struct fit_check){of[k], &madefit_claims[of[k]].checks[at[k]]};
    }
    for (uint32_t i = 0; i < MADEFIT_POINTS; i++) {
        double u[FIT_MAX_PARAMETERS] = {fmod(0.31 + 0.618034 * i, 1.0),
                                        fmod(0.17 + 0.754878 * i, 1.0)};
        struct fit_point *p = fit_point_add(&madefit, u);
        p->mean[0] = 1.0 + 4.0 * u[0] + sin(9.0 * u[1]);
        p->mean[1] = 3.0 + 5.0 * u[1] * u[1];
        p->mean[2] = i == 4 ? (double)NAN : 4.0 * u[0] * u[1];
        p->mean[3] = 2.0 * (u[0] - 0.3) * (u[0] - 0.3) + cos(7.0 * u[0] * u[1]);
        for (uint32_t k = 0; k < MADEFIT_CHECKS; k++) {
            p->sd[k] = k == 3 ? 0.0 : 0.1 + 0.3 * u[k % 2] + 0.02 * k;
        }
    }
}

void madefit_teardown(void)
{
    for (uint32_t i = 0; i < madefit.n_points; i++) {
        free(madefit.points[i].mean);
        free(madefit.points[i].sd);
    }
    free(madefit.points);
    free(madefit.checks);
    fit_emulator_free(madefit.emulator);
    err_fini(&madefit_err);
    (void)remove(madefit_path);
}

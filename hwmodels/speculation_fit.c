/* Fits acceptance parameters to two published means: drafts of different length, same process. */
#include <gsl/gsl_errno.h>
#include <gsl/gsl_roots.h>

#include "hwmodels/speculation_data.h"

/* The search for alpha stays in this range. Below it, drafts of 10 and of 40 tokens accept equally
 * many; above it, runs exceed any draft. */
#define ALPHA_MIN 1e-3
#define ALPHA_MAX (1 - 1e-6)
#define MAX_ITERATIONS 200

struct ratio {
    double short_tokens, long_tokens, want;
};

/* Mean accepted tokens of the shorter draft over those of the longer one, in which h cancels, minus
 * the wanted ratio. The ratio falls from 1 at alpha = 0 to short / long at alpha = 1. */
static double ratio_minus_want(double alpha, void *params)
{
    const struct ratio *x = params;
    return (1 - pow(alpha, x->short_tokens)) / (1 - pow(alpha, x->long_tokens)) - x->want;
}

/* alpha; negative: no alpha has the wanted ratio. */
static double solve_alpha(struct ratio *x)
{
    /* The sign must change in the bracket: such a process cannot have means with ratio 1, or with
     * the ratio of the draft lengths. */
    if (ratio_minus_want(ALPHA_MIN, x) <= 0 || ratio_minus_want(ALPHA_MAX, x) >= 0) {
        return -1;
    }
    gsl_function f = {ratio_minus_want, x};
    /* Brent's method stays inside the bracket. Newton's would leave it, because the ratio is flat
     * near 0. */
    gsl_root_fsolver *solver = gsl_root_fsolver_alloc(gsl_root_fsolver_brent);
    (void)gsl_root_fsolver_set(solver, &f, ALPHA_MIN, ALPHA_MAX);
    int status = GSL_CONTINUE;
    for (int i = 0; i < MAX_ITERATIONS && status == GSL_CONTINUE; i++) {
        (void)gsl_root_fsolver_iterate(solver);
        status = gsl_root_test_interval(gsl_root_fsolver_x_lower(solver),
                                        gsl_root_fsolver_x_upper(solver), 1e-12, 0);
    }
    double alpha = gsl_root_fsolver_root(solver);
    gsl_root_fsolver_free(solver);
    return status == GSL_SUCCESS ? alpha : -1;
}

/* Accepted tokens of a row; negative: the table has no such row. */
static double row_of(const struct speculation_data *data, const char *dataset, const char *model,
                     enum speculation_method method, bool ours)
{
    for (size_t i = 0; i < data->n_acceptance; i++) {
        const struct speculation_acceptance *r = &data->acceptance[i];
        if (strcmp(r->dataset, dataset) == 0 && strcmp(r->model, model) == 0 &&
            r->method == method && r->ours == ours) {
            return r->accepted_tokens;
        }
    }
    return -1;
}

/* Sets draft lengths, and every extension to its neutral value. */
static void set_defaults(const struct speculation_constants *c, enum speculation_method method,
                         struct speculation_model *out)
{
    memset(out, 0, sizeof(*out));
    out->length = SPECULATION_FIXED;
    out->max_draft_tokens = (uint32_t)(method == SPECULATION_PLD ? c->pld_draft_tokens.value
                                                                 : c->sam_draft_tokens.value);
    out->tokens_per_match = (uint32_t)c->sam_tokens_per_match.value;
    out->short_tokens = (uint32_t)c->short_tokens.value;
    out->friendly_tokens = (uint32_t)c->friendly_tokens.value;
    out->short_frac = c->short_frac.value;
    out->unfriendly_frac = c->unfriendly_frac.value;
    /* PROP's match lengths: P(1 + t m < short) = P(m < k) = short_frac with k = ceil((short - 1) /
     * t), so the geometric's ratio is (1 - short_frac)^(1 / k). */
    double k = ceil((c->short_tokens.value - 1) / c->sam_tokens_per_match.value);
    out->match_frac = k < 1 ? 0 : pow(1 - c->short_frac.value, 1 / k);
    out->history_cold_frac = 1;
    out->history_half_requests = c->history_half_requests.value;
}

int speculation_model_fit(const struct speculation_data *data, const char *dataset,
                          const char *model, enum speculation_method method, bool ours,
                          enum speculation_reading reading, struct speculation_model *out,
                          struct err *e)
{
    const struct speculation_constants *c = &data->constants;
    set_defaults(c, method, out);
    if (method == SPECULATION_EAGLE) {
        out->fixed_accept = c->eagle_accepted_tokens.value;
        out->max_draft_tokens = (uint32_t)ceil(out->fixed_accept);
        return 0;
    }
    /* The table does not state whether accepted tokens include the target's own; there is a reading
     * for each. */
    double own = reading == SPECULATION_INCLUSIVE ? 1 : 0;
    double pld = row_of(data, dataset, model, SPECULATION_PLD, ours) - own;
    double sam = row_of(data, dataset, model, SPECULATION_SAM, ours) - own;
    if (pld <= 0 || sam <= 0) {
        return err_add(e,
                       "speculation: no accepted tokens for dataset %s and model %s in both of "
                       "PLD and SAM%s",
                       dataset, model, own > 0 ? " beyond the target's own one" : "");
    }
    struct ratio x = {c->pld_draft_tokens.value, c->sam_draft_tokens.value, pld / sam};
    out->alpha = solve_alpha(&x);
    if (out->alpha >= 0) {
        out->hit_frac = sam * (1 - out->alpha) / (1 - pow(out->alpha, x.long_tokens));
    }
    if (out->alpha < 0 || out->hit_frac > 1) {
        return err_add(e,
                       "speculation: %.2f tokens of drafts of %.0f and %.2f of drafts of %.0f "
                       "(dataset %s, model %s) fit no hit probability and run length",
                       pld, x.short_tokens, sam, x.long_tokens, dataset, model);
    }
    return 0;
}

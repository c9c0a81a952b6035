/* Parts of the errors of predictions are computed again from drawn tables by the text of
 * hwmodels/spread.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hwmodels/spread.h"
#include "sim/base/quantile.h"
#include "sim/base/rng.h"
#include "tests/helpers/suite.h"

enum { MOST = 640 };

static struct conformal_row all[MOST];
static const struct conformal_row *chosen[MOST];
static size_t n_all, n_chosen;

static void draw(struct rng *r)
{
    static const char *const socs[] = {"a", "b", "c", "d"};
    static const char *const models[] = {"q", "r", "s", "t", "u", "v", "w", "x", "y", "z"};
    n_all = 4 + rng_below(r, MOST - 4);
    for (size_t i = 0; i < n_all; i++) {
        struct conformal_row *x = &all[i];
        memset(x, 0, sizeof *x);
        x->soc = xkeep(xstrdup(socs[rng_below(r, 4)]));
        x->by = xkeep(xstrdup(socs[rng_below(r, 4)]));
        x->within_family = (x->soc[0] < 'c') == (x->by[0] < 'c');
        x->model = xkeep(xstrdup(models[rng_below(r, 10)]));
        x->kind = rng_below(r, 4) == 0 ? DEVICE_KIND_NPU : DEVICE_KIND_IGPU;
        x->phase = rng_below(r, 4) == 0 ? CONFORMAL_DECODE : CONFORMAL_PREFILL;
        x->left = rng_below(r, 2) == 0 ? CONFORMAL_MODEL : CONFORMAL_SOC;
        x->weights = rng_below(r, 3) == 0 ? SPREAD_SMALL_WEIGHTS : 1e9 * (1.0 + rng_below(r, 2));
        x->weight_bits = 8u << rng_below(r, 2);
        x->ln_error =
            rng_normal(r) * (rng_below(r, 9) == 0 ? 1.0 : 0.1) + (x->soc[0] == 'a' ? 0.3 : 0.0);
    }
}

/* Rows of a phase and of what was left out, first of this kind, size and kin, then of all sizes and
 * kin, then of all kinds. */
static void choose(enum device_kind kind, enum conformal_phase phase, enum conformal_left left,
                   bool sizes, bool small, enum transfer_kin kin, const char *without)
{
    for (int wider = 0; wider < 3; wider++) {
        n_chosen = 0;
        for (size_t i = 0; i < n_all; i++) {
            const struct conformal_row *x = &all[i];
            bool out =
                without != NULL && (strcmp(x->soc, without) == 0 || strcmp(x->by, without) == 0);
            bool of_size = !sizes || wider > 0 || (x->weights < SPREAD_SMALL_WEIGHTS) == small;
            bool of_kin = kin == TRANSFER_ANY || wider > 0 ||
                          x->within_family == (kin == TRANSFER_WITHIN_FAMILY);
            if (!out && of_size && of_kin && x->phase == phase && x->left == left &&
                (wider == 2 || x->kind == kind)) {
                chosen[n_chosen++] = x;
            }
        }
        if (n_chosen >= SPREAD_MIN_ROWS) {
            return;
        }
    }
}

/* Returns the standard deviation by the median of |x|, 1.48 times it, of row[0..n-1]. Every machine
 * counts as much: the smallest value that has half of each machine's share below it or at it. */
static double median_sd(const double *v, const struct conformal_row *const *row, size_t n)
{
    double best = HUGE_VAL;
    for (size_t i = 0; i < n; i++) {
        double below = 0.0;
        double machines = 0.0;
        for (size_t k = 0; k < n; k++) {
            double its = 0.0;
            for (size_t j = 0; j < n_chosen; j++) {
                its += strcmp(chosen[j]->soc, row[k]->soc) == 0;
            }
            below += v[k] <= v[i] ? 1.0 / its : 0.0;
            machines += 1.0 / its;
        }
        best = below >= 0.5 * machines * (1.0 - 1e-12) ? fmin(best, v[i]) : best;
    }
    return best / 0.6745;
}

static void of_models(struct spread *want)
{
    double total[MOST];
    double within[MOST];
    const struct conformal_row *of[MOST];
    size_t n = 0;
    bool known[4][26] = {{false}}; /* machines a to d, models by their letter */
    if (n_chosen < 2) {
        return;
    }
    for (size_t i = 0; i < n_chosen; i++) {
        double mean = 0.0;
        double count = 0.0;
        for (size_t k = 0; k < n_chosen; k++) {
            bool same = strcmp(chosen[i]->soc, chosen[k]->soc) == 0 &&
                        strcmp(chosen[i]->model, chosen[k]->model) == 0;
            mean += same ? chosen[k]->ln_error : 0.0;
            count += same;
        }
        mean /= count;
        known[chosen[i]->soc[0] - 'a'][chosen[i]->model[0] - 'a'] = true;
        total[i] = fabs(chosen[i]->ln_error);
        if (count > 1.0) {
            of[n] = chosen[i];
            within[n++] = fabs(chosen[i]->ln_error - mean) / sqrt(1.0 - 1.0 / count);
        }
    }
    double machines = 0.0;
    double shares = 0.0; /* one over the models of each */
    for (int m = 0; m < 4; m++) {
        double models = 0.0;
        for (int k = 0; k < 26; k++) {
            models += known[m][k];
        }
        machines += models > 0.0;
        shares += models > 0.0 ? 1.0 / models : 0.0;
    }
    double level = fmin(1.0, 0.95 + 0.5 * shares / (machines * machines));
    double both = median_sd(total, chosen, n_chosen);
    want->tail_sd = sample_quantile_of(total, n_chosen, level) / 1.959964;
    want->row_sd = n > 0 ? fmin(median_sd(within, of, n), both) : both;
    want->model_sd = sqrt(both * both - want->row_sd * want->row_sd);
}

/* A mean of each width of each pair of machines and its variance; widths of a pair differ by twice
 * the variance of widths and the errors of both means. */
static bool of_machines(struct spread *want)
{
    double mean[MOST];
    double error[MOST];
    const struct conformal_row *of[MOST];
    size_t n = 0;
    if (n_chosen < 2) {
        return true;
    }
    for (size_t i = 0; i < n_chosen; i++) {
        double sum = 0.0;
        double squares = 0.0;
        double count = 0.0;
        bool first = true;
        for (size_t k = 0; k < n_chosen; k++) {
            const struct conformal_row *x = chosen[k];
            if (x->weight_bits == chosen[i]->weight_bits && x->kind == chosen[i]->kind &&
                strcmp(x->soc, chosen[i]->soc) == 0 && strcmp(x->by, chosen[i]->by) == 0) {
                first = first && k >= i;
                sum += x->ln_error;
                squares += x->ln_error * x->ln_error;
                count += 1.0;
            }
        }
        if (first) {
            of[n] = chosen[i];
            mean[n] = sum / count;
            error[n++] = count > 1.0 ? (squares - sum * sum / count) / (count - 1.0) / count : 0.0;
        }
    }
    double square = 0.0;
    double widths = 0.0;
    double pairs = 0.0;
    for (size_t i = 0; i < n; i++) {
        square += mean[i] * mean[i] - error[i];
        for (size_t k = i + 1; k < n; k++) {
            if (of[i]->kind == of[k]->kind && strcmp(of[i]->soc, of[k]->soc) == 0 &&
                strcmp(of[i]->by, of[k]->by) == 0) {
                widths += (pow(mean[i] - mean[k], 2.0) - error[i] - error[k]) / 2.0;
                pairs += 1.0;
            }
        }
    }
    square /= (double)n;
    double width = pairs > 0.0 ? fmax(0.0, widths / pairs) : square / 2.0;
    want->width_sd = sqrt(fmax(0.0, width));
    want->machine_sd = sqrt(fmax(0.0, square - width));
    return pairs > 0.0;
}

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

START_TEST(a_spread_is_that_of_its_rows)
{
    static const char *const without[] = {NULL, "a", "b"};
    struct rng r;
    rng_init(&r, rng_key((uint64_t)_i, RNG_TEST, 320, 0));
    draw(&r);
    struct conformal table = {.v = all, .n = n_all};
    for (int form = 0; form < 24; form++) {
        enum device_kind kind = form % 2 == 0 ? DEVICE_KIND_IGPU : DEVICE_KIND_NPU;
        enum conformal_phase phase = form / 2 % 2 == 0 ? CONFORMAL_PREFILL : CONFORMAL_DECODE;
        bool small = form / 4 % 2 == 0;
        const char *leave = without[form / 8];
        struct spread want = {0.2, 0.2, 0.2, 0.2, 0.2}; /* a guess, where there is none */
        enum transfer_kin kin = (enum transfer_kin)(_i % 3);
        choose(kind, phase, CONFORMAL_MODEL, true, small, TRANSFER_ANY, leave);
        of_models(&want);
        choose(kind, phase, CONFORMAL_SOC, false, small, kin, leave);
        if (!of_machines(&want)) {
            choose(kind, phase, CONFORMAL_SOC, false, small, TRANSFER_ANY, leave);
            (void)of_machines(&want);
        }
        struct spread is = spread_of(&table, kind, phase, small, kin, leave);
        ck_assert_msg(near(is.row_sd, want.row_sd) && near(is.model_sd, want.model_sd) &&
                          near(is.tail_sd, want.tail_sd) && near(is.machine_sd, want.machine_sd) &&
                          near(is.width_sd, want.width_sd),
                      "form %d of %zu rows: %g %g %g %g %g, not %g %g %g %g %g", form, n_all,
                      is.row_sd, is.model_sd, is.tail_sd, is.machine_sd, is.width_sd, want.row_sd,
                      want.model_sd, want.tail_sd, want.machine_sd, want.width_sd);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("spread"),
    LOOP(a_spread_is_that_of_its_rows, 30),
};
SUITE_MAIN("spread of errors", suite)

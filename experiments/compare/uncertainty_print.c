/* Makes a document of the uncertainty (shell/document.h). */
#include "experiments/compare/uncertainty.h"

/* "npu rate", "igpu, prefill of an unseen model", "ddr.together". */
static const char *factor_name(const struct compare_plan *plan, const struct machine_factor *f)
{
    const char *device = f->device >= 0 ? plan->config->soc.machine.devices[f->device].name : "";
    bool residual = f->kind == MACHINE_RESIDUAL;
    return document_format("%s%s%s%s", device,
                           residual         ? ", "
                           : f->device >= 0 ? " "
                                            : "",
                           f->name, residual ? " of an unseen model" : "");
}

static void put_pairs(const struct compare_plan *plan, const struct uncertainty *u,
                      struct document *d)
{
    static const struct frame_column cols[] = {
        {.name = "metric", .kind = FRAME_TEXT},
        {.name = "policy", .kind = FRAME_TEXT},
        {.name = "better_frac", .title = "P(better)", .format = "%.2f"},
        {.name = "better_se", .title = "+-", .format = "%.2f"},
        {.name = "not_worse_frac", .title = "P(not worse)", .format = "%.2f"},
        {.name = "difference", .title = "difference", .format = "%.4g"},
        {.name = "sampling_low", .title = "sampling: from", .format = "%.4g"},
        {.name = "sampling_high", .title = "to", .format = "%.4g"},
        {.name = "model_low", .title = "machine: from", .format = "%.4g"},
        {.name = "model_high", .title = "to", .format = "%.4g"},
        {.name = "model_var_frac", .title = "machine's share", .format = "%.2f"},
    };
    struct frame *f = DOCUMENT_FRAME(d, "pairs", 2, cols);
    for (uint32_t m = 0; m < u->n_metrics; m++) {
        for (uint32_t i = 0; i < u->n_pairs; i++) {
            const struct uncertainty_pair *p = &u->pairs[i];
            if (p->metric == m) {
                FRAME_ROW(f, u->metrics[m], plan->policies[p->policy].label, p->better_frac, p->se,
                          p->not_worse_frac, p->nominal, p->sampling_low, p->sampling_high,
                          p->model_low, p->model_high, p->model_var_frac);
            }
        }
    }
}

/* Adds the check of the drawn ranges. The note exists because "from, to" looks like an interval. */
static void put_rows(const struct uncertainty *u, struct document *d)
{
    const struct machines *m = &u->machines;
    double inside = m->n_rows > 0 ? (double)m->n_rows_inside / (double)m->n_rows : (double)NAN;
    DOCUMENT_VALUES(d, "draws_level_frac", MACHINES_LEVEL_FRAC, "measured_rows", m->n_rows,
                    "measured_rows_inside_frac", inside);
    if (m->n_rows > 0) {
        document_note(
            d,
            "machine and mean: from, to: the middle %g %% of the drawn machines, which is no "
            "confidence "
            "interval. A check: %.0f %% of %zu measured rows lie in the ranges that kernel "
            "times are drawn from",
            100.0 * MACHINES_LEVEL_FRAC, 100.0 * inside, m->n_rows);
    }
}

static void put_best(const struct compare_plan *plan, const struct uncertainty *u,
                     struct document *d)
{
    static const struct frame_column cols[] = {
        {.name = "metric", .kind = FRAME_TEXT},
        {.name = "policy", .kind = FRAME_TEXT},
        {.name = "best_frac", .title = "best on this share of machines", .format = "%.2f"},
        {.name = "mean_low", .title = "mean: from", .format = "%.4g"},
        {.name = "mean_high", .title = "to", .format = "%.4g"},
    };
    struct frame *f = DOCUMENT_FRAME(d, "best", 2, cols);
    for (uint32_t m = 0; m < u->n_metrics; m++) {
        for (uint32_t p = 0; p < u->n_policies; p++) {
            size_t at = (size_t)m * u->n_policies + p;
            FRAME_ROW(f, u->metrics[m], plan->policies[p].label, u->best_frac[at], u->means[at].low,
                      u->means[at].high);
        }
    }
}

static void put_shares(const struct compare_plan *plan, const struct uncertainty *u,
                       struct document *d)
{
    static const struct frame_column cols[] = {
        {.name = "metric", .kind = FRAME_TEXT},
        {.name = "policy", .kind = FRAME_TEXT},
        {.name = "factor", .kind = FRAME_TEXT},
        {.name = "path", .kind = FRAME_TEXT, .only_data = true},
        {.name = "share", .title = "share of variance", .format = "%.2f"},
        {.name = "share_low", .title = "from", .format = "%.2f"},
        {.name = "share_high", .title = "to", .format = "%.2f"},
        {.name = "value", .title = "file", .format = "%.4g"},
        {.name = "low", .title = "low", .format = "%.4g"},
        {.name = "high", .title = "high", .format = "%.4g"},
        {.name = "holds_at", .title = "order holds at", .format = "%.4g"},
        {.name = "turns_at", .title = "turns at", .format = "%.4g"},
        {.name = "difference_holds", .only_data = true},
        {.name = "difference_turns", .only_data = true},
        {.name = "difference_file", .only_data = true},
        {.name = "difference_low", .only_data = true},
        {.name = "difference_high", .only_data = true},
        {.name = "wrong_after", .title = "P(wrong) if known", .format = "%.2f"},
    };
    struct frame *f = DOCUMENT_FRAME(d, "factors", 3, cols);
    for (uint32_t i = 0; i < u->n_pairs; i++) {
        const struct uncertainty_pair *p = &u->pairs[i];
        for (uint32_t k = 0; p->metric == 0 && k < p->n_top; k++) {
            const struct uncertainty_share *s = &p->top[k];
            const struct machine_factor *x = &u->machines.factor[s->factor];
            const double nan = (double)NAN;
            bool known = !isnan(s->difference_file + s->difference_low + s->difference_high);
            struct frame_value turns = s->flips ? frame_value_number(s->turns_at)
                                                : frame_shown(nan, known ? "never" : "not known");
            FRAME_ROW(f, u->metrics[p->metric], plan->policies[p->policy].label,
                      factor_name(plan, x), x->path, s->share, s->low, s->high, x->nominal, x->low,
                      x->high, s->flips ? s->holds_at : nan, turns,
                      s->flips ? s->difference_holds : nan, s->flips ? s->difference_turns : nan,
                      s->difference_file, s->difference_low, s->difference_high, s->wrong_after);
        }
    }
}

static void put_idle(const struct compare_plan *plan, const struct uncertainty *u,
                     struct document *d)
{
    for (uint32_t i = 0; i < u->n_pairs; i++) {
        const struct uncertainty_pair *p = &u->pairs[i];
        if (p->metric == 0 && p->n_idle > 0) {
            document_note(
                d,
                "not listed, for %s: %u number%s whose share is chance, because both ends "
                "of the range give the same results",
                plan->policies[p->policy].label, p->n_idle, text_plural(p->n_idle));
        }
    }
}

static void put_next(const struct compare_plan *plan, const struct uncertainty *u,
                     struct document *d)
{
    struct document *list = document_within(d, "measure_next");
    for (uint32_t i = 0; i < u->n_pairs; i++) {
        const struct uncertainty_pair *p = &u->pairs[i];
        if (p->metric != 0) {
            continue;
        }
        const char *label = plan->policies[p->policy].label;
        const char *text;
        double wrong = fmin(p->better_frac, 1.0 - p->better_frac);
        if (p->next < 0) {
            text =
                document_format("nothing known alone makes the order surer (P(wrong) %.2f)", wrong);
        } else {
            const struct uncertainty_share *s = &p->top[p->next];
            const struct machine_factor *x = &u->machines.factor[s->factor];
            text = document_format("%s: measure %s (P(wrong) %.2f, then %.2f)",
                                   factor_name(plan, x), x->number->measure, wrong, s->wrong_after);
        }
        document_note(d, "measure next, for %s: %s", label, text);
        DOCUMENT_VALUES(list, label, text);
    }
}

void uncertainty_document(const struct compare_plan *plan, const struct uncertainty *u,
                          struct document *d)
{
    uint32_t plain = plan->replications * plan->n_policies;
    document_heading(d, "on %u machines drawn from the known ranges, %u uncertain number%s",
                     u->machines.n_draws, u->machines.n_factors,
                     text_plural(u->machines.n_factors));
    DOCUMENT_VALUES(d, "machines", u->machines.n_draws, "uncertain_numbers", u->machines.n_factors,
                    "runs", u->runs, "runs_of_plain_comparison", plain, "failed_machines",
                    u->n_failed, "unserved_runs", u->n_cut);
    document_note(d,
                  "%u runs, %.1f times the %u of the plain comparison; a probability of 0.5 is "
                  "known to +- %.2f at best with this many machines",
                  u->runs, (double)u->runs / plain, plain, 0.5 / sqrt((double)u->machines.n_draws));
    if (u->n_cut > 0) {
        document_note(d,
                      "%u of %u runs on these machines ended with requests unserved; latencies do "
                      "not cover them",
                      u->n_cut, u->machines.n_draws * UNCERTAINTY_REPEATS * u->n_policies);
    }
    put_pairs(plan, u, d);
    put_best(plan, u, d);
    put_rows(u, d);
    document_note(d, "%s", "");
    if (u->machines.n_draws < UNCERTAINTY_LIST_MIN) {
        document_note(d,
                      "what decides %s is not listed: of %u machines chance would name the "
                      "numbers; it takes %d",
                      u->metrics[0], u->machines.n_draws, UNCERTAINTY_LIST_MIN);
        return;
    }
    document_note(d,
                  "what decides %s, and how far it must move alone before the order turns "
                  "(both sides run)",
                  u->metrics[0]);
    put_shares(plan, u, d);
    put_idle(plan, u, d);
    put_next(plan, u, d);
}

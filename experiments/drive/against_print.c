#include "experiments/drive/against.h"
#include "sim/base/words.h"

static const char *const metric_keys[AGAINST_METRICS] = {"ttft_s", "tpot_s", "e2e_s"};

static double mape_simulated(const struct against_policy *p, uint32_t model, enum against_metric m)
{
    const struct against_error e = against_error(&p->simulated[model], p, m);
    SIM_ASSERT(!(e.mean < 0.0));
    return e.mean;
}

/* Mean error over repeats of the simulation at that repeat's kernel speed. */
static double mape_at_speed(const struct against_policy *p, enum against_metric m)
{
    double sum = 0.0;
    for (uint32_t k = 0; k < p->n_real; k++) {
        /* Without measured times in the file there is no such simulation. */
        SIM_ASSERT(p->at_speed[k].v != NULL || p->at_speed[k].n == 0);
        sum += against_mape(&p->at_speed[k], &p->real[k].times, m);
    }
    return p->n_real > 0 ? sum / p->n_real : (double)NAN;
}

static struct speed mean_speed(const struct against_policy *p)
{
    struct speed mean = {.all = 0.0};
    for (uint32_t k = 0; k < p->n_real; k++) {
        mean.all += p->speed[k].all / p->n_real;
        mean.outside_frac += p->speed[k].outside_frac / p->n_real;
    }
    SIM_ASSERT(!(mean.outside_frac > 1.0 + 1e-9) && !(mean.outside_frac < 0.0));
    return mean;
}

/* Mean error between two repeats, over all ordered pairs. */
static double mape_real(const struct against_policy *p, enum against_metric m)
{
    double sum = 0.0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_real; i++) {
        for (uint32_t k = 0; k < p->n_real; k++) {
            if (i != k) {
                sum += against_mape(&p->real[i].times, &p->real[k].times, m);
                n++;
            }
        }
    }
    return n > 0 ? sum / n : (double)NAN;
}

/* ---- errors ---- */

#define PERCENT .unit = "1", .format = "%.1f %%", .scale = 100.0

static void put_errors(const struct against *a, struct document *d)
{
    static const struct frame_column columns[] = {
        {.name = "policy", .kind = FRAME_TEXT, .title = "mean |error| per request"},
        {.name = "soc", .kind = FRAME_TEXT, .title = "simulated machine"},
        {.name = "mape.ttft_s", .title = "TTFT", PERCENT},
        {.name = "mape.tpot_s", .title = "TPOT", PERCENT},
        {.name = "mape.e2e_s", .title = "E2E", PERCENT},
        {.name = "low.e2e_s", .only_data = true},
        {.name = "high.e2e_s", .only_data = true},
        {.name = "mape_of_means.ttft_s", .only_data = true},
        {.name = "mape_of_means.tpot_s", .only_data = true},
        {.name = "mape_of_means.e2e_s", .title = "E2E, mean of repeats", PERCENT},
        {.name = "kernels", .title = "kernels", .format = "%.2f"},
        {.name = "outside_frac", .title = "outside", PERCENT},
        {.name = "mape_at_speed.ttft_s", .only_data = true},
        {.name = "mape_at_speed.tpot_s", .only_data = true},
        {.name = "mape_at_speed.e2e_s", .title = "E2E, speed-corrected", PERCENT},
        {.name = "real_mape.ttft_s", .title = "real: TTFT", PERCENT},
        {.name = "real_mape.tpot_s", .title = "TPOT", PERCENT},
        {.name = "real_mape.e2e_s", .title = "E2E", PERCENT},
        {.name = "foreign_frac", .title = "others", .format = "%.0f %%", .scale = 100.0},
        {.name = "disturbed_runs", .title = "disturbed", .format = "%.0f"},
    };
    struct frame *f = DOCUMENT_FRAME(d, "errors", 0, columns);
    for (uint32_t i = 0; i < a->n_policies; i++) {
        const struct against_policy *p = &a->policies[i];
        double foreign = -1.0;
        uint32_t disturbed = 0;
        SIM_ASSERT(p->n_real <= a->repeats && a->n_models > 0);
        for (uint32_t k = 0; k < p->n_real; k++) {
            foreign = fmax(foreign, p->real[k].foreign_frac + p->real[k].steal_frac);
            disturbed += real_disturbed(&p->real[k]);
        }
        for (uint32_t m = 0; m < a->n_models; m++) {
            const double none = (double)NAN;
            const struct against_error e2e = against_error(&p->simulated[m], p, AGAINST_E2E);
            FRAME_ROW(
                f, p->label, a->models[m], mape_simulated(p, m, AGAINST_TTFT),
                mape_simulated(p, m, AGAINST_TPOT),
                frame_shown(e2e.mean, document_format("%.1f [%.1f, %.1f] %%", 100.0 * e2e.mean,
                                                      100.0 * e2e.low, 100.0 * e2e.high)),
                e2e.low, e2e.high, against_mape_of_means(&p->simulated[m], p, AGAINST_TTFT),
                against_mape_of_means(&p->simulated[m], p, AGAINST_TPOT),
                against_mape_of_means(&p->simulated[m], p, AGAINST_E2E),
                m == 0 ? mean_speed(p).all : none, m == 0 ? mean_speed(p).outside_frac : none,
                m == 0 ? mape_at_speed(p, AGAINST_TTFT) : none,
                m == 0 ? mape_at_speed(p, AGAINST_TPOT) : none,
                m == 0 ? mape_at_speed(p, AGAINST_E2E) : none, mape_real(p, AGAINST_TTFT),
                mape_real(p, AGAINST_TPOT), mape_real(p, AGAINST_E2E), foreign, disturbed);
        }
    }
    document_note(d, "%s", "");
    document_note(
        d,
        "[95 %% of the errors when requests are drawn again.] Mean of repeats: against the mean of "
        "each request over the repeats. Kernels: predicted "
        "over real time of all kernels. Outside: the share of that time in kernels with more rows "
        "or "
        "keys than the calibration had. Speed-corrected: simulated with kernels as fast as in that "
        "run. Real: two real runs of one policy. Others: the highest share of processor time that "
        "other programs had or took in a run; above %.0f %% it is disturbed.",
        100.0 * REAL_DISTURBED_FRAC);
}

/* ---- means ---- */

static void put_means(const struct against *a, struct document *d)
{
    static const struct frame_column columns[] = {
        {.name = "class", .kind = FRAME_TEXT, .heading = true},
        {.name = "policy", .kind = FRAME_TEXT, .title = "mean, s"},
        {.name = "ttft_s.real", .title = "TTFT real", .unit = "s", .format = "%.3g"},
        {.name = "ttft_s.simulated", .title = "simulated", .unit = "s", .format = "%.3g"},
        {.name = "tpot_s.real", .title = "TPOT real", .unit = "s", .format = "%.3g"},
        {.name = "tpot_s.simulated", .title = "simulated", .unit = "s", .format = "%.3g"},
        {.name = "e2e_s.real", .title = "E2E real", .unit = "s", .format = "%.3g"},
        {.name = "e2e_s.simulated", .title = "simulated", .unit = "s", .format = "%.3g"},
    };
    struct frame *f = DOCUMENT_FRAME(d, "means", 0, columns);
    for (int c = 0; c < REQUEST_CLASS_COUNT; c++) {
        for (uint32_t i = 0; i < a->n_policies; i++) {
            const struct against_policy *p = &a->policies[i];
            SIM_ASSERT(p->simulated[0].v != NULL || p->simulated[0].n == 0);
            FRAME_CELLS(f, words_classes[c], p->label);
            for (int m = 0; m < AGAINST_METRICS; m++) {
                FRAME_CELLS(
                    f, against_real_mean(p, (enum against_metric)m, (enum request_class)c),
                    against_mean(&p->simulated[0], (enum against_metric)m, (enum request_class)c));
            }
        }
    }
}

/* ---- order ---- */

static void put_tau(struct frame *f, int c, int m, const char *soc, struct against_tau t)
{
    static const char *const titles[AGAINST_METRICS] = {"TTFT", "TPOT", "E2E"};
    const char *title = document_format("%s %s", words_classes[c], titles[m]);
    const char *shown = isnan(t.low) ? document_format("%.2f", t.tau)
                                     : document_format("%.2f [%.2f, %.2f]", t.tau, t.low, t.high);
    const char *ties = document_format("%u of %u", t.tied, t.pairs);
    SIM_ASSERT(t.tied <= t.pairs && (isnan(t.tau) || t.pairs > 0));
    FRAME_ROW(f, title, words_classes[c], metric_keys[m], soc,
              isnan(t.tau) ? frame_value_number(t.tau) : frame_shown(t.tau, shown), t.low, t.high,
              t.pairs, frame_shown(t.tied, ties));
}

static void put_order(const struct against *a, struct document *d)
{
    static const struct frame_column columns[] = {
        {.name = "of", .kind = FRAME_TEXT, .title = "order of policies", .only_text = true},
        {.name = "class", .kind = FRAME_TEXT, .only_data = true},
        {.name = "metric", .kind = FRAME_TEXT, .only_data = true},
        {.name = "soc", .kind = FRAME_TEXT, .title = "real against"},
        {.name = "tau", .title = "Kendall's tau"},
        {.name = "low", .only_data = true},
        {.name = "high", .only_data = true},
        {.name = "pairs", .only_data = true},
        {.name = "tied", .title = "pairs tied"},
    };
    struct frame *f = DOCUMENT_FRAME(d, "order", 0, columns);
    for (int c = 0; c < REQUEST_CLASS_COUNT; c++) {
        for (int m = 0; m < AGAINST_METRICS; m++) {
            for (uint32_t k = 0; k < a->n_models; k++) {
                put_tau(f, c, m, a->models[k],
                        against_tau(a, k, (enum against_metric)m, (enum request_class)c));
            }
            put_tau(f, c, m, "real",
                    against_tau_real(a, (enum against_metric)m, (enum request_class)c));
        }
    }
    document_note(d,
                  "tied: pairs of policies whose real means overlap over the repeats; they count "
                  "on neither side. [95 %% of the taus when repeats are drawn again].");
}

/* ---- data only: runs and requests ---- */

static void put_policy(const struct against_policy *p, struct document *d)
{
    DOCUMENT_VALUES(d, "policy", p->label);
    struct frame *runs = document_data(
        d, "runs", 0, "foreign_frac steal_frac load_before disturbed realtime duration_s tokens");
    for (uint32_t k = 0; k < p->n_real; k++) {
        const struct real_run *r = &p->real[k];
        FRAME_ROW(runs, r->foreign_frac, r->steal_frac, r->load_before, real_disturbed(r),
                  r->report.realtime, r->end_s,
                  document_format("%016llx", (unsigned long long)r->report.token_hash));
    }
    struct frame *requests = document_data(d, "requests", 0,
                                           "class repeat real_ttft_s sim_ttft_s real_tpot_s "
                                           "sim_tpot_s real_e2e_s sim_e2e_s");
    for (size_t i = 0; p->n_real > 0 && i < p->simulated[0].n; i++) {
        const struct request_time *s = &p->simulated[0].v[i];
        for (uint32_t k = 0; k < p->n_real; k++) {
            const struct request_time *r = &p->real[k].times.v[i];
            SIM_ASSERT(i < p->real[k].times.n &&
                       (!s->finished || !r->finished || s->cls == r->cls));
            if (s->finished && r->finished) {
                FRAME_ROW(requests, words_classes[r->cls], k, r->ttft_s, s->ttft_s, r->tpot_s,
                          s->tpot_s, r->e2e_s, s->e2e_s);
            }
        }
    }
}

void against_document(const struct against *a, struct document *d)
{
    SIM_ASSERT(a->n_policies <= AGAINST_MAX_POLICIES && a->repeats <= AGAINST_MAX_REPEATS);
    document_note(d, "%s, clock %s, %u repeat%s; %s", a->trace, a->clock, a->repeats,
                  text_plural(a->repeats), a->engines);
    document_note(d, "%s", "");
    DOCUMENT_VALUES(d, "trace", a->trace, "clock", a->clock, "engines", a->engines, "repeats",
                    a->repeats);
    put_errors(a, d);
    put_means(a, d);
    document_note(d, "%s", "");
    put_order(a, d);
    struct document *list = document_array(d, "drive");
    for (uint32_t i = 0; i < a->n_policies; i++) {
        put_policy(&a->policies[i], document_within(list, "policy"));
    }
}

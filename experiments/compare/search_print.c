/* Prints the capacity table of a search as a document. */
#include "experiments/compare/search.h"
#include "sim/stats/stats.h"

static const char *const outcome_names[] = {"met", "missed", "undecided", "failed"};

/* The binding SLO at the upper end, or else at the lower one. */
static int binding_of(const struct search_result *r)
{
    int i = r->high >= 0 ? r->high : r->low;
    return i >= 0 ? (int)r->tests[i].binding : -1;
}

/* Fills the three cells for an end of the bracket: rate and value. */
static void show_end(struct frame *f, const struct search_result *r, int test, int binding)
{
    const struct search_test *t = test >= 0 ? &r->tests[test] : NULL;
    FRAME_CELLS(f, t != NULL ? document_format("%.3g", t->scale) : NULL,
                t != NULL && isfinite(t->req_per_min) ? document_format("%.4g", t->req_per_min)
                                                      : NULL,
                t != NULL ? stats_format(&t->values[binding].mean) : NULL);
}

static void put_test(const struct search_options *o, const struct search_test *t,
                     struct document *d)
{
    DOCUMENT_VALUES(d, "rate_scale", t->scale, "req_per_min", t->req_per_min, "n", t->replications,
                    "outcome", outcome_names[t->outcome]);
    struct frame *f = document_data(d, "slos", 1, "slo mean low high");
    frame_aside(f);
    for (uint32_t i = 0; i <= o->n_slos && t->outcome != SEARCH_FAILED; i++) {
        const struct stats_interval *s = &t->values[i].mean;
        FRAME_ROW(f, search_slo_name(o, i), s->mean, s->low, s->high);
    }
}

static void put_scale(const char *scale, const char *rate, const struct search_result *r, int test,
                      struct document *d)
{
    double none = (double)NAN;
    DOCUMENT_VALUES(d, scale, test >= 0 ? r->tests[test].scale : none, rate,
                    test >= 0 ? r->tests[test].req_per_min : none);
}

static void put_policy(const struct search_options *o, const struct search_result *r,
                       const char *binding, struct document *d)
{
    put_scale("met_rate_scale", "met_req_per_min", r, r->low, d);
    put_scale("missed_rate_scale", "missed_req_per_min", r, r->high, d);
    DOCUMENT_VALUES(d, "binding", binding != NULL ? binding : "", "message", r->message);
    struct document *tests = document_array(d, "tests");
    for (uint32_t i = 0; i < r->n_tests; i++) {
        put_test(o, &r->tests[i], document_within(tests, NULL));
    }
}

void search_document(const struct search_options *o, const struct compare_plan *plan,
                     const struct search_result *r, struct document *d)
{
    struct document *list = warnings_of(d);
    warnings_machine(plan->config, list);
    for (uint32_t p = 0; p < plan->n_policies; p++) {
        warnings_range(&r[p].extrapolated, (const char *const[]){plan->policies[p].label}, 1, list);
    }
    document_note(d,
                  "\nWith %g %% confidence the highest rate that holds lies between the rate shown "
                  "to hold and the rate shown not to.\nColumns are factors on the workload's rates "
                  "(x), requests a minute (/min) and means [interval of one test].\n",
                  100.0 * o->confidence_frac);
    struct frame *f = document_table(d, 0, "lrrlrrll", "", "holds: x", "/min", "value", "not: x",
                                     "/min", "value", "binding SLO");
    struct document *policies = document_within(d, "policies");
    for (uint32_t p = 0; p < plan->n_policies; p++) {
        const char *label = plan->policies[p].label;
        int slo = binding_of(&r[p]);
        const char *binding = slo >= 0 ? search_slo_name(o, (uint32_t)slo) : NULL;
        FRAME_CELLS(f, label);
        show_end(f, &r[p], r[p].low, slo);
        show_end(f, &r[p], r[p].high, slo);
        FRAME_CELLS(f, binding);
        if (r[p].message[0] != '\0') {
            document_note(d, "%s: %s", label, r[p].message);
        }
        if (r[p].n_empty > 0) {
            document_note(d,
                          "%s: the battery was empty at the end of %" PRIu32 " run%s, which "
                          "count%s as overloaded",
                          label, r[p].n_empty, text_plural(r[p].n_empty),
                          r[p].n_empty == 1 ? "s" : "");
        }
        put_policy(o, &r[p], binding, document_within(policies, label));
    }
}

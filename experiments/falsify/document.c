/* Makes a document of falsify's result. */
#include "experiments/falsify/runs.h"
#include "sim/base/portable.h"
#include "sim/metrics/metric_table.h"

/* Formats "2.31 times [1.9, 2.8], n=12 the baseline's"; "not defined" if no replication has a
 * ratio. */
static const char *times(const struct stats_interval *s, const char *of)
{
    if (s->n == 1) {
        return document_format("%.3g times (n=1, no interval)%s", exp(s->mean), of);
    }
    return s->n == 0 ? "not defined"
                     : document_format("%.3g times [%.3g, %.3g], n=%" PRIu32 "%s", exp(s->mean),
                                       exp(s->low), exp(s->high), s->n, of);
}

static void put_interval(struct document *d, const char *name, const struct stats_interval *s)
{
    struct document *in = document_within(d, name);
    DOCUMENT_VALUES(in, "ratio", portable_exp(s->mean), "low", portable_exp(s->low), "high",
                    portable_exp(s->high), "n", s->n);
}

static void put_space(const struct space *s, const struct falsify_result *r, struct document *d)
{
    static const struct frame_column columns[] = {
        {.name = "axis", .title = "varied", .kind = FRAME_TEXT},
        {.name = "low", .title = "from", .format = "%g"},
        {.name = "high", .title = "to", .format = "%g"},
        {.name = "nominal", .title = "as given", .format = "%g"},
        {.name = "worst", .title = "worst found", .format = "%g"},
        {.name = "least", .title = "needed", .format = "%g", .missing = ""},
        {.name = "help", .title = "", .kind = FRAME_TEXT, .only_text = true},
    };
    bool any = isfinite(r->worst_searched);
    document_heading(d, "scenarios");
    struct frame *f = frame_indent(DOCUMENT_FRAME(d, "axes", 1, columns), 2);
    for (uint32_t i = 0; i < s->n; i++) {
        const struct space_axis *a = &s->axis[i];
        bool needed = r->found && !space_is_nominal(s, &r->least, i);
        FRAME_ROW(f, a->name, a->low, a->high, a->nominal,
                  any ? space_value(s, &r->worst, i) : (double)NAN,
                  needed ? space_value(s, &r->least, i) : (double)NAN, a->help);
    }
}

static void put_commands(const struct falsify_runs *runs, const struct falsify_result *r,
                         struct document *d)
{
    const struct falsify_reason *why = &runs->reason;
    OWNED char *scenario = space_command(runs->space, &r->least);
    const char *a = runs->policy[FALSIFY_POLICY]->label;
    const char *b = runs->policy[FALSIFY_BASELINE]->label;
    const char *compare =
        document_format("xpusim compare --policy %s --policy %s --baseline %s --metric %s "
                        "--seed %" PRIu64 " %s",
                        a, b, b, runs->metric, why->seed, scenario);
    DOCUMENT_VALUES(d, "compare_command", compare);
    document_heading(d, "again");
    document_note(d, "  %s", compare);
    for (int i = 0; i < FALSIFY_SIDES && why->found; i++) {
        document_note(d, "  xpusim explain --request %" PRIu32 " --policy %s --seed %" PRIu64 " %s",
                      why->request[FALSIFY_POLICY].x.request_id, runs->policy[i]->label, why->seed,
                      scenario);
        if (why->request[i].job != UINT32_MAX) {
            document_note(d, "  xpusim explain --job %" PRIu32 " --policy %s --seed %" PRIu64 " %s",
                          why->request[i].job, runs->policy[i]->label, why->seed, scenario);
        }
    }
}

/* Adds the causes of latency, on both sides, of the request that lost most. */
static void put_reason(const struct falsify_runs *runs, struct document *d)
{
    const struct falsify_reason *why = &runs->reason;
    const struct explanation *a = &why->request[FALSIFY_POLICY].x;
    const struct explanation *b = &why->request[FALSIFY_BASELINE].x;
    struct document *in = document_within(d, "reason");
    double a_s = units_s_from_ns(a->end_ns - a->arrival_ns);
    double b_s = units_s_from_ns(b->end_ns - b->arrival_ns);
    DOCUMENT_VALUES(in, "seed", why->seed, "request_id", a->request_id, "input_tokens",
                    a->input_tokens, "output_tokens", a->output_tokens, "latency_s", a_s,
                    "baseline_latency_s", b_s);
    document_heading(d, "why: request %" PRIu32 " of seed %" PRIu64, a->request_id, why->seed);
    document_note(d,
                  "  %s, %" PRIu32 " prompt and %" PRIu32 " output tokens: %.3f s under %s, %.3f s "
                  "under %s",
                  a->cls == REQUEST_CLASS_REACTIVE ? "reactive" : "proactive", a->input_tokens,
                  a->output_tokens, a_s, runs->policy[FALSIFY_POLICY]->label, b_s,
                  runs->policy[FALSIFY_BASELINE]->label);
    static const struct frame_column columns[] = {
        {.name = "cause", .kind = FRAME_TEXT},
        {.name = "policy_s", .title = "policy s", .unit = "s", .format = "%.3f"},
        {.name = "baseline_s", .title = "baseline s", .unit = "s", .format = "%.3f"},
        {.name = "help", .title = "", .kind = FRAME_TEXT, .only_text = true},
    };
    struct frame *f = frame_indent(DOCUMENT_FRAME(d, "causes", 1, columns), 2);
    for (int i = 0; i < EXPLAIN_CAUSE_COUNT; i++) {
        if (a->ns[i] != 0 || b->ns[i] != 0) {
            FRAME_ROW(f, explain_cause_names[i], units_s_from_ns(a->ns[i]),
                      units_s_from_ns(b->ns[i]), explain_cause_texts[i]);
        }
    }
    for (size_t i = 0; i < a->n_blockers; i++) {
        const struct explain_blocker *x = &why->request[FALSIFY_POLICY].first[i];
        document_note(d, "  in the way: request %" PRIu32 " (%s), %.3f s", x->request_id,
                      x->cls == REQUEST_CLASS_REACTIVE ? "reactive" : "proactive",
                      units_s_from_ns(x->tail_ns + x->queue_ns + x->shared_ns));
    }
}

static void put_failures(const struct falsify_runs *runs, struct document *d)
{
    struct frame *f = document_data(d, "failures", 1, "policy n message");
    for (int i = 0; i < FALSIFY_SIDES; i++) {
        FRAME_ROW(f, runs->policy[i]->label, runs->n_failed[i], runs->message[i]);
        if (runs->n_failed[i] > 0) {
            document_note(d, "%s failed in %" PRIu32 " run%s in which the other did not: %s",
                          runs->policy[i]->label, runs->n_failed[i], text_plural(runs->n_failed[i]),
                          runs->message[i]);
        }
    }
}

void falsify_document(const struct falsify_options *o, const struct falsify_runs *runs,
                      const struct falsify_result *r, struct document *d)
{
    const char *a = runs->policy[FALSIFY_POLICY]->label;
    const char *b = runs->policy[FALSIFY_BASELINE]->label;
    /* A ratio above 1 is a loss, also if more is better, so the text says which one is divided. */
    const char *of =
        metric_is_gain(o->metric) ? ", the baseline's over the policy's" : " the baseline's";
    document_note(d,
                  "%s of %s against %s: %" PRIu32 " scenario%s x %" PRIu32
                  " seed%s searched (%" PRIu32 " out), %" PRIu32 " runs in all",
                  o->metric, a, b, r->n_tried, text_plural(r->n_tried), o->replications,
                  text_plural(o->replications), r->n_out, runs->n_runs);
    DOCUMENT_VALUES(d, "policy", a, "baseline", b, "metric", o->metric, "worlds", r->n_tried,
                    "worlds_out", r->n_out, "runs", runs->n_runs, "pairs_cut", runs->n_cut, "found",
                    r->found);
    put_failures(runs, d);
    if (runs->n_cut > 0) {
        document_note(d,
                      "in %" PRIu32 " pair%s of runs a battery was empty before all requests were "
                      "served: no ratio",
                      runs->n_cut, text_plural(runs->n_cut));
    }
    document_note(d, "as given: %s", times(&r->given, of));
    put_interval(d, "given", &r->given);
    if (isfinite(r->worst_searched)) {
        document_note(d, "worst scenario of the search: %.3g times%s; on fresh seeds %s",
                      portable_exp(r->worst_searched), of, times(&r->worst_confirmed, ""));
        DOCUMENT_VALUES(d, "worst_searched_ratio", portable_exp(r->worst_searched));
        put_interval(d, "worst", &r->worst_confirmed);
    }
    if (!r->found) {
        uint32_t with = r->worst_confirmed.n;
        bool lacks = isfinite(r->worst_searched) && with < o->confirm;
        document_note(d, "nothing found: no scenario in which %s is shown to lose to %s", a, b);
        if (lacks) {
            document_note(d,
                          "the worst one does not count: %" PRIu32 " of %" PRIu32
                          " fresh seeds have no ratio (a failed run, or no request of the class)",
                          o->confirm - with, o->confirm);
        }
        put_space(runs->space, r, d);
        return;
    }
    document_note(d, "the smallest change that keeps half of it in logarithms: %s",
                  times(&r->least_confirmed, of));
    put_interval(d, "least", &r->least_confirmed);
    put_space(runs->space, r, d);
    if (runs->reason.found) {
        put_reason(runs, d);
    }
    put_commands(runs, r, d);
}

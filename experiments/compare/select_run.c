/* Selects among policies, and prints the result as a document. */
#include "experiments/compare/select.h"
#include "sim/metrics/metric_table.h"
#include "sim/stats/stats.h"

/* ---- options ---- */

#define ASKED struct select_asked

static void init(void *target)
{
    ((ASKED *)target)->indifference_percent = 1.0;
}

static int take_indifference(void *target, const struct option_row *row, const char *arg,
                             struct err *e)
{
    ASKED *o = target;
    char *end;
    o->indifference_percent = strtod(arg, &end);
    o->given = true;
    bool ends = end != arg && (*end == '\0' || strcmp(end, "%") == 0);
    return ends && o->indifference_percent > 0.0 && o->indifference_percent <= 100.0
               ? 0
               : err_add(e, "--%s: %s is no share above 0 and up to 100 %%", row->name, arg);
}

static const struct option_row rows[] = {
    OPTION_NUMBER(ASKED, confidence_frac, "select", "P", NULL, 0.5, 0.9999,
                  "find the best policy with probability P, in as few runs as that takes "
                  "(docs/concepts/selection.md). With --tune: choose the configurations by the "
                  "same procedure"),
    OPTION_OWN(take_indifference, "indifference", "PERCENT",
               "with --select: a difference that does not matter, as a share of the baseline's "
               "mean (default: 1)"),
    OPTION_ROW(COUNT, ASKED, most, uint32_t, "at-most", "N",
               "with --select: runs of a policy after which it ends undecided", .preset = "1000",
               .min = SELECT_FIRST_MIN, .max = 1000000,
               .given = 1 + OPTION_AT(ASKED, most_given, bool)),
};
const struct option_table select_option_table = OPTION_TABLE_INIT("Selection", rows, init);

int select_asked_check(const struct select_asked *o, struct err *e)
{
    if (o->confidence_frac > 0.0 || !(o->given || o->most_given)) {
        return 0;
    }
    return err_add(e, "%s belongs to --select P", o->given ? "--indifference" : "--at-most");
}

/* ---- runs ---- */

struct running {
    const struct compare_plan *plan;
    const char *metric;
    uint32_t empty;      /* replications without requests */
    const char *failure; /* kept; of the first run that failed */
};

static void measure(void *ctx, const bool *left, uint32_t from, uint32_t to, double *const *values)
{
    struct running *r = ctx;
    const uint32_t k = r->plan->n_policies;
    OWNED struct study_cell *cells = xcalloc((size_t)k * (to - from) + 1, sizeof *cells);
    OWNED double **into = xcalloc((size_t)k * (to - from) + 1, sizeof *into);
    uint32_t n = 0;
    for (uint32_t at = from; at < to; at++) {
        for (uint32_t i = 0; i < k; i++) {
            if (left[i]) {
                into[n] = &values[i][at];
                cells[n++] = compare_cell(r->plan, i, at);
            }
        }
    }
    SCOPED(study_outcomes_fini) struct study_outcomes runs = study_run(cells, n, &r->plan->how);
    for (uint32_t i = 0; i < n; i++) {
        bool empty = runs.v[i].status == STUDY_NO_REQUESTS; /* for all alternatives */
        if (runs.v[i].status != 0 && !empty && r->failure == NULL) {
            r->failure = xkeep(xformat("%s, seed %" PRIu64 ": %s", cells[i].policy->label,
                                       cells[i].seed, runs.v[i].message));
        }
        r->empty += empty && (i == 0 || cells[i].seed != cells[i - 1].seed);
        *into[i] = empty || study_left(&runs.v[i]) == 0.0 ? study_value(&runs.v[i], r->metric)
                                                          : (double)INFINITY;
    }
}

uint32_t select_first(const struct select_asked *o, uint32_t replications)
{
    uint32_t first = replications > SELECT_FIRST_MIN ? replications : SELECT_FIRST_MIN;
    return first < o->most ? first : o->most;
}

void select_run(const struct compare_plan *plan, const struct select_asked *o, const char *metric,
                struct select_result *out)
{
    struct running r = {.plan = plan, .metric = metric};
    struct select_options options = {.confidence_frac = o->confidence_frac,
                                     .delta_frac = o->indifference_percent / 100.0,
                                     .base = plan->baseline,
                                     .first = select_first(o, plan->replications),
                                     .most = o->most,
                                     .gain = metric_is_gain(metric)};
    select_by(&options, plan->n_policies, measure, &r, out);
    out->empty = r.empty;
    out->failure = r.failure;
}

/* ---- printed ---- */

/* Difference of an alternative from the best, over the replications of both. */
static struct stats_interval behind(const struct select_result *r, uint32_t i, double sign)
{
    uint32_t n = r->of[i].n < r->of[r->best].n ? r->of[i].n : r->of[r->best].n;
    struct stats_interval s =
        stats_paired(r->of[i].values, r->of[r->best].values, n, STATS_LEVEL_FRAC).diff;
    return sign > 0.0 ? s
                      : (struct stats_interval){
                            .mean = -s.mean, .low = -s.high, .high = -s.low, .sd = s.sd, .n = s.n};
}

static const char *state_of(const struct select_result *r, uint32_t i)
{
    return r->of[i].failed ? "failed" : i == r->best ? "best" : r->of[i].left ? "left" : "behind";
}

void select_document(const struct select_asked *o, const char *metric,
                     const struct config_policy *policies, const struct select_result *r,
                     struct document *d)
{
    static const struct frame_column columns[] = {
        {.name = "policy", .title = "", .kind = FRAME_TEXT},
        {.name = "state", .kind = FRAME_TEXT},
        {.name = "n", .title = "runs"},
        {.name = "mean", .left = true},
        {.name = "behind", .title = "behind the best", .left = true},
    };
    const double sign = r->gain ? -1.0 : 1.0;
    const char *best = r->best < r->k ? policies[r->best].label : NULL;
    DOCUMENT_VALUES(d, "metric", metric, "confidence_frac", o->confidence_frac, "indifference",
                    r->delta, "best", best, "decided", r->decided, "replications", r->replications,
                    "runs", (double)r->runs, "equal_runs", (double)r->equal_runs);
    document_heading(d, "%s", metric);
    struct frame *f = DOCUMENT_FRAME(d, "policies", 1, columns);
    frame_data_columns(f, "low high behind_low behind_high");
    frame_indent(f, 2);
    for (uint32_t i = 0; i < r->k; i++) {
        struct stats_interval s = stats_mean(r->of[i].values, r->of[i].n, STATS_LEVEL_FRAC);
        struct stats_interval b = {.mean = (double)NAN, .low = (double)NAN, .high = (double)NAN};
        bool other = i != r->best && !r->of[i].failed && best != NULL;
        b = other ? behind(r, i, sign) : b;
        FRAME_ROW(f, policies[i].label, state_of(r, i), r->of[i].n,
                  frame_shown(s.mean, stats_format(&s)),
                  frame_shown(b.mean, other ? stats_format(&b) : ""), s.low, s.high, b.low, b.high);
    }
    if (r->empty > 0) {
        document_note(d,
                      "\n%" PRIu32 " of %" PRIu32
                      " replication%s without requests, which count for nobody",
                      r->empty, r->replications, text_plural(r->replications));
    }
    if (r->failure != NULL) {
        document_note(d, "\nthe first run that failed: %s", r->failure);
    }
    if (best == NULL) {
        document_note(d, "\nno policy served all requests; %" PRIu64 " run%s", r->runs,
                      text_plural(r->runs));
        return;
    }
    if (r->decided) {
        document_note(d,
                      "\nbest: %s, with probability %g or more, unless one is better by less than "
                      "%.3g",
                      best, o->confidence_frac, r->delta);
    } else {
        document_note(d, "\nnot decided after %" PRIu32 " replication%s: several are left",
                      r->replications, text_plural(r->replications));
    }
    document_note(
        d, "%" PRIu64 " runs; equal replication with this guarantee: %" PRIu64 " (%.1f times)",
        r->runs, r->equal_runs, (double)r->equal_runs / (double)r->runs);
}

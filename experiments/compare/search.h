/* Searches for the highest rate that a policy sustains under service-level objectives.
 *
 * At one rate (a factor on the plan's), replications decide whether every SLO holds:
 *   met         the upper confidence bound of each metric's mean is within its limit
 *   missed      the lower bound of some metric is beyond it
 *   undecided   neither, after the largest number of replications
 * Bisection on the logarithm of the rate keeps the highest rate shown to be met and the lowest
 * shown to be missed. The result holds with the asked confidence over all its tests together
 * (Bonferroni over rates, looks and, for a miss, SLOs), for metrics that only get worse with the
 * rate. There is one more SLO: at most half of the runs may be OVERLOADED. Looks of too few runs
 * (under 95 %: fewer than six) decide nothing of it. Nor do requests that all meet a target say
 * that a share of them near 1 does, if they are few: at 95 % it takes 299 for 0.99. */
#pragma once

#include "experiments/compare/compare.h"

#define SEARCH_MAX_SLOS 16
#define SEARCH_MAX_TESTS 40 /* rates tried for one policy */
#define SEARCH_LOOKS 4      /* min, 2 min, 4 min, 8 min replications */
#define SEARCH_MAX_SCALE 1024.0

struct search_slo {
    char metric[64];
    bool at_most; /* else at least */
    double limit;
};

struct search_options {
    struct search_slo slos[SEARCH_MAX_SLOS];
    uint32_t n_slos;
    uint32_t min_replications; /* of the first look */
    double precision_frac;     /* stop when the ends of the bracket differ by less */
    double confidence_frac;
};

/* One SLO's metric at one rate. */
struct search_value {
    struct stats_interval mean; /* at the confidence of a single test */
    double miss_p;              /* p-value of this mean if the SLO just held; low: a clear miss */
    double requests;            /* of all replications, by the caller; 0: unknown */
};

enum search_outcome { SEARCH_MET, SEARCH_MISSED, SEARCH_UNDECIDED, SEARCH_FAILED };

struct search_test {
    double scale;
    double req_per_min; /* arrivals of all replications over their arrival time; NaN: unknown */
    uint32_t replications;
    enum search_outcome outcome;
    struct search_value values[SEARCH_MAX_SLOS + 1]; /* the last: share of OVERLOADED runs */
    uint32_t binding;                                /* index of the SLO nearest to its miss */
};

struct search_result {
    struct search_test tests[SEARCH_MAX_TESTS];
    uint32_t n_tests;
    int low, high; /* tests that bound the rate from below (met) and above (missed); -1: none */
    char message[JOBS_MESSAGE_BYTES]; /* why it stopped early; "": it did not */
    struct extrapolated extrapolated; /* of the runs of the last look */
    uint32_t n_empty; /* runs that ended with an empty battery: they count as overloaded */
};

/* "METRIC<=VALUE" or "METRIC>=VALUE". 0, or -EINVAL with an error. */
int search_slo_parse(const char *text, struct search_slo *out, struct err *e);

/* Decides one rate from values[slo][replication], the overload share last. alpha_frac: error
 * probability of this look. Pure. */
void search_look(const struct search_options *o, const double *const *values, uint32_t n,
                 double alpha_frac, struct search_test *t);

/* Results at one rate: values[slo][replication] (the overload share last: 0 or 1), and requests and
 * offered load of each replication. Owned by search_by. */
struct search_looked {
    double *values[SEARCH_MAX_SLOS + 1];
    double *requests[SEARCH_MAX_SLOS]; /* of the metric's class; 0: unknown */
    struct compare_offered *offered;
};
/* Fills replications from .. to - 1 at a scale of the rate. Returns NULL, or why it failed. */
typedef const char *search_measure(void *ctx, double scale, uint32_t from, uint32_t to,
                                   struct search_looked *into);
void search_by(const struct search_options *o, search_measure *measure, void *ctx,
               struct search_result *out);
/* Searches by simulating a policy of the plan. The search scales its rate, and sets replications.
 */
void search_run(const struct search_options *o, const struct compare_plan *plan, uint32_t policy,
                struct search_result *out);

/* The text of an SLO as the user writes it; index n_slos: the overload rule. Kept. */
const char *search_slo_name(const struct search_options *o, uint32_t index);

/* Adds a line per policy: rate, requests per minute, the binding SLO and its value on both sides;
 * as data "policies" with every test. */
void search_document(const struct search_options *o, const struct compare_plan *plan,
                     const struct search_result *r, struct document *d);

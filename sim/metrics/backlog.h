/* The number of requests in the system and their work over time, in a bounded number of equal bins,
 * and what they say about the run's status (docs/concepts/verdicts.md states the rule). */
#pragma once

#include "sim/metrics/metrics.h"

#define BACKLOG_BINS 1024 /* bin width doubles when the run outgrows them */

/* Three counts of the requests in the system: requests, prompt tokens, output tokens. */
enum backlog_kind { BACKLOG_REQUESTS, BACKLOG_PROMPT, BACKLOG_OUTPUT, BACKLOG_KINDS };

struct backlog {
    double area[BACKLOG_KINDS][BACKLOG_BINS]; /* integral over time, ns; bins begin at first_ns */
    double late[BACKLOG_KINDS];               /* integral after the bins stopped, in no bin */
    double now[BACKLOG_KINDS];                /* present counts */
    int64_t width_ns;
    int64_t now_ns;          /* accounted up to here, since first_ns */
    int64_t bin, bin_end_ns; /* the bin with now_ns */
    int64_t late_since_ns;   /* bins stop here, and `late` begins; -1: they have not stopped */
    uint32_t n_system, max;
    uint64_t arrivals;
    int64_t first_ns, last_ns; /* arrivals */
    uint32_t at_last;          /* requests in the system just after the last arrival */
    double area_ns, area_at_last_ns;
    int64_t last_leave_ns;
    /* Set by the owner before the summary: mean machine time of a prompt token and of an output
     * token, and machine time for the requests still in the system. */
    double prompt_token_ns, output_token_ns, unserved_ns;
};

struct backlog_summary {
    double growth_frac, unfinished_frac, mean_in_window;
    /* From the last arrival until all requests are served; an estimate if the run was cut. */
    double drain_ns;
    double longest_rise_frac; /* longest stretch with work above its mean / arrival window */
    double growth_t;          /* growth of the work over ten stretches / its standard error */
    enum metrics_verdict verdict;
};

void backlog_init(struct backlog *b);
void backlog_arrive(struct backlog *b, int64_t now_ns, uint32_t prompt_tokens,
                    uint32_t output_tokens);
/* The tokens are those of backlog_arrive. */
void backlog_leave(struct backlog *b, int64_t now_ns, uint32_t prompt_tokens,
                   uint32_t output_tokens);
void backlog_finish(struct backlog *b, int64_t now_ns); /* closes the integral */
struct backlog_summary backlog_summarise(const struct backlog *b,
                                         const struct metrics_verdict_rule *rule);

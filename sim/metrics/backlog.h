/* The number of requests in system over time, in a bounded number of equal bins, and what it says
 * about stability (metrics.h: verdict). */
#pragma once

#include <stdint.h>

#include "sim/metrics/metrics.h"

#define BACKLOG_BINS 1024 /* bin width doubles when the run outgrows them */

struct backlog {
    double area[BACKLOG_BINS]; /* integral of the number in system, request-ns per bin */
    int64_t width_ns;
    int64_t now_ns;          /* accounted up to here */
    int64_t bin, bin_end_ns; /* the one in which that is */
    uint32_t n_system, max;
    uint64_t arrivals;
    int64_t first_ns, last_ns; /* arrivals */
    uint32_t at_last;          /* number in system just after the last arrival */
    double area_ns, area_at_last_ns;
    int64_t busy_since_ns; /* the system was empty just before */
    int64_t last_leave_ns;
    /* For the owner to fill in before the summary: what the longest request takes by itself, and
     * machine time that those still in the system need. */
    double longest_ns, unserved_ns;
};

struct backlog_summary {
    double growth_frac, unfinished_frac, mean_in_window;
    double
        drain_ns; /* from the last arrival until all is served, estimated where the run was cut */
    enum metrics_verdict verdict;
};

void backlog_init(struct backlog *b);
void backlog_arrive(struct backlog *b, int64_t now_ns);
void backlog_leave(struct backlog *b, int64_t now_ns);
void backlog_finish(struct backlog *b, int64_t now_ns); /* closes the integral */
struct backlog_summary backlog_summarise(const struct backlog *b,
                                         const struct metrics_verdict_rule *rule);

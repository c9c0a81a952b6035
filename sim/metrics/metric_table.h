/* The metrics: unit, direction, title and definition, once for every metric of metrics.h.
 *
 * A metric's name is [truncated.][GROUP.]PART[.STATISTIC].
 *   GROUP      a group of requests (reactive, proactive, all), a device or a part of the machine
 *   PART       the measured quantity
 *   STATISTIC  one of mean, p50, p90, p95, p99, max, n, another quantile (p97.5), or the share of
 *              values that are at most a limit (below:2)
 * The table has a row per PART. A row that holds for one GROUP only is named with it
 * ("backlog.verdict"). */
#pragma once

#include "sim/base/frame.h"

/* By enum metric_better: "lower", ...; then NULL. */
extern const char *const metric_better_names[];

struct metric_descriptor {
    const char *part;    /* "ttft_s" */
    const char *title;   /* "time to first token" */
    const char *unit;    /* of a value: "s", "requests/min", "B", "1" for a share */
    const char *printed; /* in titles; the same but for bytes, "GB" */
    double scale;        /* of a value, to be in that: 1e-9 of bytes as GB */
    enum metric_better better;
    const char *definition; /* one sentence */
};

/* All rows, in the order of the glossary. */
const struct metric_descriptor *metric_table(size_t *n);
/* The row of a metric's name; NULL when none fits (a policy's own counter, say). Cost: rows. */
const struct metric_descriptor *metric_describe(const char *name);
/* Which way is better. A share below a limit is better the higher it is where less is better.
 * NEITHER of what has no row, and of a number of values. */
enum metric_better metric_better(const char *name);
/* More of it is better. */
bool metric_is_gain(const char *name);
/* A quantile that a name asks for ("reactive.ttft_s.p97.5": 97.5), or 0. A name with a pattern in
 * it will do. */
double metric_quantile(const char *name);
/* The limit of a share that a name asks for ("reactive.ttft_s.below:2": 2), or NaN. */
double metric_limit(const char *name);
/* The factor that brings a value to the unit of its title; 1 without a row, and of a share or a
 * number of values. */
double metric_scale(const char *name);
/* "reactive time to first token, P90 (s)"; the name itself when it has no row. Nobody frees it.
 */
const char *metric_title(const char *name);

/* The metric that decides a comparison unless its user names another. */
#define METRIC_PRIMARY "reactive.e2e_s.mean"
/* The names that comparisons print when none is asked for; ends with NULL. */
extern const char *const metric_usual[];

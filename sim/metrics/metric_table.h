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
    const char *unit;    /* of values: "s", "requests/min", "B", "1" for a share */
    const char *printed; /* in titles; equal, except "GB" for bytes */
    double scale;        /* factor from unit to printed: 1e-9 for bytes */
    enum metric_better better;
    const char *definition; /* one sentence */
};

/* All rows, in the order of the glossary. */
const struct metric_descriptor *metric_table(size_t *n);
/* The row of a metric's name; NULL when none fits (a policy's own counter, say). Cost: rows. */
const struct metric_descriptor *metric_describe(const char *name);
/* Whether lower or higher is better. For a share below a limit it is the opposite of the values'.
 * NEITHER for a number of values and without a row. */
enum metric_better metric_better(const char *name);
/* Whether higher is better. */
bool metric_is_gain(const char *name);
/* The quantile in a name ("reactive.ttft_s.p97.5": 97.5), or 0. The name may have wildcards. */
double metric_quantile(const char *name);
/* The limit of a share in a name ("reactive.ttft_s.below:2": 2), or NaN. */
double metric_limit(const char *name);
/* The factor from a value to the unit of its title; 1 without a row, for a share, and for a number
 * of values. */
double metric_scale(const char *name);
/* "reactive time to first token, P90 (s)"; the name itself without a row. Kept until the command
 * ends.
 */
const char *metric_title(const char *name);

/* The default metric of comparisons. */
#define METRIC_PRIMARY "reactive.e2e_s.mean"
/* The metrics that comparisons print by default; ends with NULL. */
extern const char *const metric_usual[];

/* Warnings in results: as lines of text, and as the member "warnings" of the document's data. */
#pragma once

#include "experiments/run/config.h"
#include "experiments/shell/document.h"
#include "sim/metrics/metrics.h"

/* For each device the share of kernel time outside its calibrated range: the metric
 * extrapolated_frac and its two parts. */
struct extrapolated {
    uint32_t n;
    struct {
        char device[16];
        double frac, rows_frac, context_frac;
    } of[MACHINE_MAX_DEVICES];
};

/* Returns the array "warnings" of a document. */
struct document *warnings_of(struct document *d);
void warnings_add(struct document *list, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Warns about numbers of the machine that were not measured for this run: a weight width without
 * parameters, an NPU or a whole device transferred from another machine. Notes of config_notes are
 * added as data only, because they were printed when the configuration was loaded. */
void warnings_machine(const struct config *c, struct document *list);

/* Warns that quantiles are from sketches, if they are. */
void warnings_sketch(bool sketch, struct document *list);

/* The meter of the devices' powers: "package", "unstated", or "different (npu rail, igpu package)".
 * The caller frees it. */
char *warnings_meter(const struct config *c);

/* Warns about energy of devices whose powers are from different meters, or from rails only. */
void warnings_energy(const struct config *c, struct document *list);

/* Devices that work on one model (busy: shares of the time, [policy][MACHINE_MAX_DEVICES]) under
 * runtimes of different makers. One warning for all policies; labels NULL: there is one, without a
 * name. */
void warnings_formats(const struct config *c, const double *busy, const char *const *labels,
                      uint32_t n, struct document *list);

/* Adds a metric's value (the mean of several runs). Ignores other metrics and NaN. */
void extrapolated_add(struct extrapolated *x, const char *metric, double value);
/* Collects the metrics of one run. */
struct extrapolated extrapolated_of(const struct metric_list *l);
/* "igpu 80 % of its kernel time (longer contexts)", the caller frees it. NULL if nothing is
 * outside. */
char *extrapolated_text(const struct extrapolated *x);
/* Adds one warning for n results. labels NULL: a single result without a label. */
void warnings_range(const struct extrapolated *x, const char *const *labels, uint32_t n,
                    struct document *list);

/* Warnings that a reader of results needs: lines for people, and the member "warnings" of the
 * document as data. */
#pragma once

#include "experiments/run/config.h"
#include "experiments/shell/document.h"
#include "sim/metrics/metrics.h"

/* The share of each device's kernel time outside its calibrated range: the metrics
 * extrapolated_frac and its two parts. */
struct extrapolated {
    uint32_t n;
    struct {
        char device[16];
        double frac, rows_frac, context_frac;
    } of[MACHINE_MAX_DEVICES];
};

/* The array "warnings" of a document. */
struct document *warnings_of(struct document *d);
void warnings_add(struct document *list, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Numbers of the machine that were not measured for this run: a weight width without parameters, an
 * NPU or a whole device transferred from another machine. Those of config_notes become data only,
 * since people read them when the configuration was loaded. */
void warnings_machine(const struct config *c, struct document *list);

/* That quantiles are from sketches, where they are. */
void warnings_sketch(bool sketch, struct document *list);

/* The meter of the devices' powers: "package", "unstated", or "different (npu rail, igpu package)".
 * The caller frees it. */
char *warnings_meter(const struct config *c);

/* Energy of devices whose powers come from different meters, or from rails only. */
void warnings_energy(const struct config *c, struct document *list);

/* Devices that work on one model (busy: shares of the time, [policy][MACHINE_MAX_DEVICES]) under
 * runtimes of different makers. One warning for all policies; labels NULL: there is one, without a
 * name. */
void warnings_formats(const struct config *c, const double *busy, const char *const *labels,
                      uint32_t n, struct document *list);

/* Takes a metric's value (of several runs: their mean); other metrics and NaN are ignored. */
void extrapolated_add(struct extrapolated *x, const char *metric, double value);
/* From the metrics of one run. */
struct extrapolated extrapolated_of(const struct metric_list *l);
/* "igpu 80 % of its kernel time (longer contexts)", the caller frees it. NULL: all is inside. */
char *extrapolated_text(const struct extrapolated *x);
/* One warning for all of them; labels NULL: there is one, and it needs no name. */
void warnings_range(const struct extrapolated *x, const char *const *labels, uint32_t n,
                    struct document *list);

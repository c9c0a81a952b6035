/* Published co-runs: the slowdown of a kernel next to another device, and its prediction by
 * contention models.
 *
 * A row names a victim and a culprit by kind of device, with the traffic of each when isolated. A
 * model predicts the victim's isolated demand over its share. Numbers of models minimise the mean
 * |ln(predicted / measured)|, with equal weights of machines. The error of a machine is that of a
 * fit without it. Pure, deterministic; a fit of everything takes some 0.1 s. */
#pragma once

#include "sim/api/contention.h"
#include "sim/base/base.h"

enum corun_victim { CORUN_NPU, CORUN_GPU, CORUN_CPU, CORUN_BOTH };

struct corun_point {
    const char *machine, *what, *demands, *source; /* kept */
    double peak_gbs;                               /* data sheet */
    double victim_gbs, most_gbs; /* isolated: this kernel's, and its device's highest */
    double culprit_gbs;
    double slowdown; /* measured; for `both`, isolated traffic over co-running traffic */
    uint32_t victim, culprit;
};

struct corun_points {
    struct corun_point *v; /* kept */
    size_t n;
    const char **machines; /* kept; each name once, in the file's order */
    size_t n_machines;
};

/* 0 or -EINVAL with errors that name file and line. */
int corun_read(const char *path, struct corun_points *out, struct err *e);

/* The numbers that a fit may change. Weight is that of an NPU or a CPU over that of a GPU. */
enum corun_knob {
    CORUN_TOGETHER, /* capacity over peak */
    CORUN_WEIGHT,
    CORUN_LATENCY,
    CORUN_MINOR,
    CORUN_BALANCE,
    CORUN_BESIDE,
    CORUN_KNOBS
};
extern const char *const corun_knob_names[CORUN_KNOBS + 1];

/* Whether a model depends on a number. */
bool corun_has(const char *model, enum corun_knob k);

/* Predicted slowdown of a row, at least 1. */
double corun_slowdown(const struct contention_ops *model, const double knob[CORUN_KNOBS],
                      const struct corun_point *p);

/* Mean |ln(predicted / measured)| of a machine's rows. machine NULL: the mean over all machines
 * except `without` (may be NULL). */
double corun_error(const struct contention_ops *model, const double knob[CORUN_KNOBS],
                   const struct corun_points *p, const char *machine, const char *without);

/* Fits the model's numbers to the rows of one machine, or with NULL of all except `without`. knob
 * has the start values. Numbers that the model lacks, and `together` of a single machine, do not
 * change. */
void corun_fit(const struct contention_ops *model, const struct corun_points *p,
               const char *machine, const char *without, double knob[CORUN_KNOBS]);

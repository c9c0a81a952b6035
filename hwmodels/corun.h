/* Published co-runs: how much longer a kernel takes next to another device, and which contention
 * model predicts it.
 *
 * A row names a victim and a culprit by kind of device, with the traffic of each when isolated. A
 * model predicts the victim's isolated demand over its share. Models with numbers of their own get
 * those that minimise the mean |ln(predicted / measured)|, in which every machine counts the same.
 * The error of a machine is that of a fit without it. Pure, deterministic; a fit of all models and
 * machines takes some 0.1 s. */
#pragma once

#include "sim/api/contention.h"
#include "sim/base/base.h"

enum corun_victim { CORUN_NPU, CORUN_GPU, CORUN_CPU, CORUN_BOTH };

struct corun_point {
    const char *machine, *what, *demands, *source; /* nobody frees them */
    double peak_gbs;                               /* data sheet */
    double victim_gbs, most_gbs; /* isolated: of this kernel, and at most of its device */
    double culprit_gbs;
    double slowdown; /* measured; of `both`, isolated traffic over traffic together */
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

/* The numbers that a fit may move. Weight is an NPU's or a CPU's over a GPU's. */
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

/* Mean |ln(predicted / measured)| of a machine's rows; NULL: the mean over machines but for
 * `without` (NULL: all). */
double corun_error(const struct contention_ops *model, const double knob[CORUN_KNOBS],
                   const struct corun_points *p, const char *machine, const char *without);

/* Fits the model's numbers to the rows of one machine, or, with NULL, of all but `without`. In:
 * start values; those that the model does not have, and `together` of a single machine, stay. */
void corun_fit(const struct contention_ops *model, const struct corun_points *p,
               const char *machine, const char *without, double knob[CORUN_KNOBS]);

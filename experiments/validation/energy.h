/* Published powers of machines that run a model, and a model of meter readings.
 *
 *     watts = idle + joules per byte x bytes per second     (at a rail: idle + device)
 *
 * Every meter has a number per kind of device: joules per byte of decode traffic, including device,
 * memory, host and power supply. A fast engine draws more watts than a slow one, but similar joules
 * per byte. A rail supplies a device without its memory, so there the number is watts. Each number
 * is the geometric mean over publications, where each publication on a machine counts once. A kind
 * without rows has the mean of the others, and a meter without rows has the numbers of a package.
 * Idle comes from the source, or else from the machine's file for a package, a board or a battery;
 * otherwise it is part of the number. A machine with n rows has a correction factor: the geometric
 * mean of measured over fitted, to the power n / (n + 1). Its rows are those with the same meter,
 * kind of device and toolchain, or of all toolchains if that has none.
 *
 * In prefill a device draws the same watts as with the traffic of its one-row kernels: in the few
 * sources that state both they differ by less than a quarter.
 *
 * Joules per token are watts over tokens per second: with measured rates they test only the watts,
 * with predicted rates both. Pure, deterministic; leaving out every row takes some 0.1 s. */
#pragma once

#include "experiments/validation/predict.h"

struct energy_point {
    uint64_t line;
    const char *soc, *device, *runtime, *model, *source; /* kept */
    uint32_t weight_bits, input_tokens;
    uint32_t prefill, meter; /* enum soc_meter */
    double idle_watts;       /* below 0: not stated */
    double watts, tok_s;
};

enum energy_left { ENERGY_SOURCE, ENERGY_MODEL, ENERGY_LEFTS };
extern const char *const energy_left_names[];

struct energy_row {
    struct energy_point p;
    const char *reason; /* why it is not predicted, kept; NULL: it is */
    enum device_kind kind;
    double gbs; /* traffic at the measured rate */
    /* Rate that a SoC file predicts, and its traffic; NaN: no file. half: half-width of its 95 %
     * interval of ln. */
    double rate_tok_s, rate_gbs, rate_half;
    bool left_out; /* from fits */
    bool judged;   /* from energy_read_judged: no fit uses it */
    struct {
        bool own;                       /* with other readings of its machine */
        double watts;                   /* predicted by a fit without it */
        double joules;                  /* per token, with the predicted rate; NaN */
        double rate_share;              /* |d ln joules / d ln rate| */
        double watts_half, joules_half; /* half-widths of 95 % intervals of ln; NaN: too few */
    } left[ENERGY_LEFTS];
};

struct energy_rows {
    struct energy_row *v; /* kept */
    size_t n;
};

/* Reads a file and binds its rows to the catalogue's machines and models. A machine without a file
 * has no predicted rate. 0 or -EINVAL with errors that name file and line. */
int energy_read(const struct catalog *c, const char *path, struct energy_rows *out, struct err *e);

/* Adds the rows of another table, for a test of the model from the present rows. Errors are those
 * of energy_read, and rows that are present already, because these are not unseen. */
int energy_read_judged(const struct catalog *c, const char *path, struct energy_rows *r,
                       struct err *e);

struct energy_watts {
    size_t n; /* rows of the fit; below 2 there is no model */
    bool per_byte;
    double device[DEVICE_KIND_COUNT]; /* above idle: joules per byte, or watts */
};

/* Fits a meter's numbers to the rows that are not left out. */
struct energy_watts energy_fit(const struct energy_rows *r, uint32_t meter);

/* Watts of a row at traffic gbs, with the correction factor from its machine's other rows. */
double energy_watts_of(const struct energy_rows *r, const struct energy_watts *w,
                       const struct energy_row *row, double gbs);

/* Only that factor. */
double energy_factor(const struct energy_rows *r, const struct energy_watts *w,
                     const struct energy_row *row);

/* Predicts every row by a fit without its source, and by one without its model on its machine.
 * Intervals are Student's t, from errors of rows of other sources (or machines), with equal weight
 * per source. Errors of machines with own readings are used for such machines, and errors of those
 * without for the others. A judged row is predicted by a fit to all rows that are not judged, with
 * their errors. */
void energy_leave_out(struct energy_rows *r);

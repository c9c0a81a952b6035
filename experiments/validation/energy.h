/* Published powers of machines that run a model, and a model of what a meter reads.
 *
 *     watts = idle + joules per byte x bytes per second     (at a rail: idle + device)
 *
 * Every meter has a number for each kind of device: the joules that a byte of decode costs, all
 * that the device, its memory, the host and the power supply draw for it. A fast engine draws more
 * than a slow one, and a byte costs about the same. A rail supplies a device without its memory;
 * there the number is watts. Each is the geometric mean over publications, each of a machine
 * counting once. A kind without rows has the mean of the others, and a meter without rows has a
 * package's numbers. Idle is known from the source, or else from the machine's file at a package, a
 * board or a battery; elsewhere it is part of the number. A machine with n rows of its own is off
 * by a factor: the geometric mean of measured over fitted, to the power n / (n + 1). Its rows are
 * those at the meter, on the kind of device and of the toolchain, or of all toolchains where that
 * has none.
 *
 * In prefill the same device draws the same watts, with the traffic of its one-row kernels: the few
 * sources that state both differ by less than a quarter.
 *
 * Joules per token are watts over tokens per second: measured ones test the watts alone, predicted
 * ones everything. Pure, deterministic; all rows left out in turn take some 0.1 s. */
#pragma once

#include "experiments/validation/predict.h"

struct energy_point {
    uint64_t line;
    const char *soc, *device, *runtime, *model, *source; /* nobody frees them */
    uint32_t weight_bits, input_tokens;
    uint32_t prefill, meter; /* enum soc_meter */
    double idle_watts;       /* below 0: not stated */
    double watts, tok_s;
};

enum energy_left { ENERGY_SOURCE, ENERGY_MODEL, ENERGY_LEFTS };
extern const char *const energy_left_names[];

struct energy_row {
    struct energy_point p;
    const char *reason; /* why it is not predicted; NULL: it is. Nobody frees it */
    enum device_kind kind;
    double gbs; /* traffic at the measured rate */
    /* Rate that a SoC file predicts, and its traffic; NaN: no file does. half: of ln, of its 95 %
     * interval. */
    double rate_tok_s, rate_gbs, rate_half;
    bool left_out; /* of fits */
    bool judged;   /* of a table that no fit takes */
    struct {
        bool own;                       /* with readings of its machine */
        double watts;                   /* by a fit without it */
        double joules;                  /* per token, with the predicted rate; NaN */
        double rate_share;              /* of ln of the rate's error that ln joules has */
        double watts_half, joules_half; /* of ln, of the 95 % intervals; NaN: too few others */
    } left[ENERGY_LEFTS];
};

struct energy_rows {
    struct energy_row *v; /* kept */
    size_t n;
};

/* Reads a file and binds its rows to the catalogue's machines and models. A machine without a file
 * has no predicted rate. 0 or -EINVAL with errors that name file and line. */
int energy_read(const struct catalog *c, const char *path, struct energy_rows *out, struct err *e);

/* Adds the rows of another table, which the rows that are there shall judge. Errors are those of
 * energy_read, and rows that are there already: they are not unseen. */
int energy_read_judged(const struct catalog *c, const char *path, struct energy_rows *r,
                       struct err *e);

struct energy_watts {
    size_t n; /* rows it rests on; below 2 there is no model */
    bool per_byte;
    double device[DEVICE_KIND_COUNT]; /* above idle: joules per byte, or watts */
};

/* A meter's numbers, from the rows that are not left out. */
struct energy_watts energy_fit(const struct energy_rows *r, uint32_t meter);

/* Watts of a row at some traffic, with the factor of its machine's other rows. */
double energy_watts_of(const struct energy_rows *r, const struct energy_watts *w,
                       const struct energy_row *row, double gbs);

/* That factor alone. */
double energy_factor(const struct energy_rows *r, const struct energy_watts *w,
                     const struct energy_row *row);

/* Predicts every row by a fit without its source, and by one without its model on its machine.
 * Intervals are Student's, of the errors of rows of other sources (or machines), each source
 * counting the same. For a machine with readings of its own they are of such machines, and else of
 * those without. A judged row is predicted by a fit of all the others, with their errors. */
void energy_leave_out(struct energy_rows *r);

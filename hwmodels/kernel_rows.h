/* Measured kernels as rows, and their CSV file.
 *
 * The file starts with "# xpusim-kernels v1". Further comment lines describe the machine. The first
 * eleven columns are those of the reference points, so a reader of those reads these too: soc,
 * device, runtime, model, weight_bits, act_bits, input_tokens, batch, metric, value, source. The
 * others are for the fit and its trust in rows. */
#pragma once

#include "hwmodels/kernel_spec.h"
#include "sim/api/device.h"

enum kernel_metric {
    KERNEL_METRIC_MS,       /* kernel_ms: one isolated kernel; median of a window */
    KERNEL_METRIC_CO_MS,    /* co_kernel_ms: next to `partner` */
    KERNEL_METRIC_SLOWDOWN, /* co_slowdown: co_kernel_ms over the isolated windows before and after
                             */
    KERNEL_METRIC_COMPILE_MS, /* compile_ms: preparing the kernel for the first time */
    KERNEL_METRIC_FIRST_MS,   /* first_ms: its first call */
    KERNEL_METRIC_POWER_W,    /* power_w: the package while only this kernel runs */
    KERNEL_METRIC_BUSY,       /* busy_frac: the device's own busy counter over that time */
    KERNEL_METRIC_COUNT
};

struct kernel_row {
    const char *soc, *device, *runtime; /* kept, like the texts below */
    enum device_kind kind;
    const char *model;   /* kernel_spec_name */
    const char *partner; /* "device:model" of the co-running kernel; "" if isolated */
    const char *source;
    const char *flag; /* "" if trusted, else why not: foreign_cpu, steal, few_samples, ... */
    enum kernel_op op;
    enum kernel_metric metric;
    uint32_t weight_bits, act_bits;
    uint32_t tokens; /* column input_tokens: rows of a product, context of attention, 0 streams */
    uint32_t rows;   /* 1: the one-row curve */
    uint32_t batch;  /* sequences */
    uint32_t repetition;
    uint32_t samples;
    bool held_out;
    double flop, bytes;
    double value, p10, p90;          /* in the metric's unit */
    double foreign_frac, steal_frac; /* of all processor time during the window; < 0 unknown */
};

struct kernel_rows {
    struct kernel_row *v; /* kept */
    size_t n;
    double memory_bytes; /* of the machine; 0 unknown */
};

/* Adds a row of zeros and empty texts; valid until the next call. */
struct kernel_row *kernel_rows_add(struct kernel_rows *r);
/* Sets the members that the spec determines. */
void kernel_row_set_spec(struct kernel_row *row, const struct kernel_spec *s);

/* Write row by row, so that an interrupted run keeps its rows. `about`: lines of provenance without
 * '#'; may be NULL. */
void kernel_rows_write_head(FILE *out, double memory_bytes, const char *const *about, size_t n);
void kernel_row_write(FILE *out, const struct kernel_row *row);

/* Appends the rows of a file; repetitions are renumbered to follow those already there, so files of
 * several runs can be read one after another. 0, or -EINVAL with all problems. */
int kernel_rows_read(struct kernel_rows *r, const char *path, struct err *e);
/* Like kernel_rows_read, from an open stream, which it closes; errors use `path`. */
int kernel_rows_read_stream(struct kernel_rows *r, FILE *in, const char *path, struct err *e);

/* Fits the simulator's inputs to real kernels: times per op, paths of attention, host costs, the
 * slowdown next to another device. Queueing delay depends on means, not medians. So every part of
 * the fit has the same sum of times as its kernels. */
#pragma once

#include <cjson/cJSON.h>

#include "hwmodels/soc.h"
#include "sim/drive/drive.h"

/* A kernel that takes more than this many medians of equal kernels lost its core to another
 * process. It is left out, and counted. */
#define FIT_LOST_CORE 8.0

struct fit_number {
    double value, low, high; /* 95 % */
};

/* For assertions: the value is within its interval, except for rounding. */
static inline bool fit_number_ok(struct fit_number x)
{
    double slack = 1e-9 * fabs(x.value);
    return x.low <= x.value + slack && x.high >= x.value - slack;
}

/* How well one part fits. */
struct fit_part {
    const char *name; /* "qkv", "mha prefill", ... */
    uint8_t device;
    uint32_t n, lost;             /* kernels used; left out */
    double median_frac, p90_frac; /* |error| of single kernels */
    double lack_of_fit_p;         /* p-value of the lack-of-fit test; NaN: no repeats */
    bool borrowed;                /* no kernels ran there; it has the numbers of another device */
    bool borrowed_form;           /* too few kinds of work; the scaled model of all devices */
};

struct fit_table {
    uint32_t n;
    double rows[SOC_OPS_MAX_POINTS];
    struct fit_number s[SOC_OPS_MAX_POINTS];
};

/* Attention has a separate path for sequences with fewer rows than few_below (0: none). The other
 * path works in tiles of `tile` rows (0: no tiles). */
struct fit_split {
    uint32_t few_below, tile;
};

/* Terms of a prompt's time: fixed s, then s per pair and s per row of sequences with few rows, and
 * with many. */
enum { FIT_PROMPT_FIXED, FIT_PROMPT_FEW, FIT_PROMPT_MANY = 3, FIT_PROMPT_TERMS = 5 };

struct fit_device {
    struct fit_table token[OP_KIND_COUNT]; /* of QKV, FFN, HEAD */
    struct fit_split split;
    struct fit_number prefill[FIT_PROMPT_TERMS];
    struct fit_number decode[3]; /* s, s per key, s per row */
    uint32_t rows_max, keys_max; /* largest measured: of a kernel, of a sequence */
    struct fit_number layer[2];  /* s, s per key */
    struct fit_number beside;    /* slowdown minus 1; high 0: not measured */
    uint32_t n_beside;
};

/* Work outside the devices (a compilation, a move, a load, an eviction) takes fixed + slope x its
 * size. Sums over measured work, then the line. */
struct fit_line {
    double n, x, y, xx, xy, max_s;
    double fixed_s, slope_s;
};

struct transfer;

#define FIT_MAX_PARTS (MACHINE_MAX_DEVICES * 7)

struct fit {
    struct fit_device devices[MACHINE_MAX_DEVICES];
    uint32_t n_devices;
    struct fit_part parts[FIT_MAX_PARTS];
    uint32_t n_parts;
    struct drive_times schedule, submit, completion, tail, reset;
    double tail_tokens;
    struct fit_line residents[DRIVE_WORKS]; /* n 0: not measured */
    uint32_t n_runs, n_disturbed;
};

/* Collects copies of the kernels and segments of runs. */
struct fit_input {
    struct drive_kernel *kernels; /* owned */
    uint32_t *run;                /* owned; index of each kernel's run */
    size_t n;
    struct drive_segment *segments; /* owned: of all kernels */
    size_t n_segments;
    bool one_by_one; /* kernels never overlapped */
    struct fit fit;  /* host costs so far */
};

/* clock: that of the runs. With processor time, kernels run one after another, so overlaps on the
 * virtual clock are no contention, and none is fitted. */
void fit_input_init(struct fit_input *in, enum drive_clock clock);
void fit_input_fini(struct fit_input *in);
void fit_input_add(struct fit_input *in, const struct drive_report *r, double tail_tokens,
                   bool disturbed);

/* Fits all parts. Returns 0, or -EINVAL with an error: too few kernels. */
int fit_make(const struct fit_input *in, const struct machine *m, struct fit *out, struct err *e);

/* Returns a copy of the SoC file's tree with the numbers of the fit and a new name. source: their
 * provenance; t NULL: no transferable model. The caller owns it. */
cJSON *fit_to_soc(const struct fit *f, const struct transfer *t, const cJSON *soc,
                  const struct llm *llm, const char *name, const char *source);

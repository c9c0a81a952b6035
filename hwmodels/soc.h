/* A SoC file: the machine a policy sees, and the numbers a kernel's time is made of.
 *
 * Kernel-time parameters are kept per (device, runtime, weight width): the same silicon under
 * another toolchain is another machine (1.3 to 1.7 times between OpenVINO versions). One
 * entry of each device is its default; a model whose width has no entry uses it, and the choice is
 * marked. */
#ifndef HWMODELS_SOC_H
#define HWMODELS_SOC_H

#include <cjson/cJSON.h>

#include "sim/api/device.h"
#include "sim/base/err.h"

#define SOC_MAX_RUNTIMES 24

/* Rates of one kind of kernel. */
struct soc_curve {
    double flop_per_s;  /* P: token-level matrix products */
    double bytes_per_s; /* B: what one engine draws from DDR */
    double launch_s;    /* t_launch, per primitive op */
};

struct soc_runtime {
    char runtime[32];
    uint32_t weight_bits;     /* 4, 8, 16 */
    struct soc_curve many;    /* more than one row */
    struct soc_curve one;     /* one row (GEMV); equal to `many` unless the file says otherwise */
    double fill_rows;         /* m0: rows that filling the engine costs */
    double attention_frac;    /* e_a: attention runs at this share of P */
    double knee;              /* exponent of the p-norm form */
    double decode_batch_frac; /* extra memory time per further sequence of a decode batch */
    uint32_t min_rows;        /* rows a many-row kernel pays at least (systolic height) */
    bool pad_attention;       /* attention reads the KV padded to the static chunk */
    /* Validity envelope of the calibration; 0: unbounded. */
    uint32_t valid_rows_max, valid_context_max;
};

struct soc_device {
    double peak_flop_per_s; /* datasheet, for reports */
    struct soc_runtime runtimes[SOC_MAX_RUNTIMES];
    uint32_t n_runtimes;
    uint32_t fallback; /* the default entry */
    uint32_t n_defaults;
};

struct soc {
    struct machine machine;
    struct soc_device devices[MACHINE_MAX_DEVICES];
    uint32_t n_numbers[3]; /* how many are measured, fitted, assumed (enum quantity_kind) */
    double package_pl1_watts, package_pl2_watts, package_tau_s; /* 0: no package budget */
    bool extrapolated_npu; /* the file says its NPU numbers come from other parts */
    char note[256];
};

/* Parses a tree (possibly after overrides). `file` names it in errors. 0 or -EINVAL with errors. */
int soc_parse(const cJSON *root, const char *file, struct soc *out, struct err *e);
/* Path of a shipped name ("core-ultra-5-125h") or of a file (ends in .json) into buf. */
const char *soc_path(const char *name, char *buf, size_t size);
const char *llm_path(const char *name, char *buf, size_t size);
/* An LLM file into the model everyone may know. */
int llm_parse(const cJSON *root, const char *file, struct llm *out, struct err *e);

/* Leaves the rest of a device to somebody else for the whole run: of its time (everything takes
 * 1 / (1 - time_frac) as long) and of its compute rate alone (flop/s times 1 - rate_frac). */
void soc_reserve(struct soc_device *d, double time_frac, double rate_frac);

/* Index of the entry for a weight width on a device; *exact tells whether it is not the fallback.
 */
uint32_t soc_runtime_find(const struct soc_device *d, const char *runtime, uint32_t weight_bits,
                          bool *exact);

#endif

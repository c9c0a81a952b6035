/* A SoC file: the machine a policy sees, and the numbers a kernel's time is made of.
 *
 * Kernel-time parameters are kept per (device, runtime, weight width): the same silicon under
 * another toolchain is another machine (1.3 to 1.7 times between OpenVINO versions). One
 * entry of each device is its default; a model whose width has no entry uses it, and the choice is
 * marked. */
#pragma once

#include <cjson/cJSON.h>

#include "hwmodels/metered.h"
#include "hwmodels/soc_ops.h"
#include "sim/api/device.h"
#include "sim/base/json_fields.h"

#define SOC_MAX_RUNTIMES 24
#define SOC_MAX_CORES 65536

/* Rates of one kind of kernel. */
struct soc_curve {
    double flop_per_s;  /* P: token-level matrix products */
    double bytes_per_s; /* B: what one engine draws from DDR */
    double launch_s;    /* t_launch, per primitive op */
};

/* A runtime's formats of weights of one width and of the KV cache. */
struct soc_format {
    double body_bytes, head_bytes; /* per weight, scales included */
    double kv_bytes;               /* per element */
};

/* Formats of a runtime that states none (README). 4 bit has group scales 0.56 B, 8 bit 1.01 B; the
 * head has 8 bit below 16. Quantised weights come with an 8-bit KV cache, as in OpenVINO 2025. */
struct soc_format soc_format_of_width(uint32_t weight_bits);

/* A measured table: measured over modelled time of kernels with that many rows. */
#define SOC_MAX_TABLE 16
struct soc_table {
    uint32_t n;
    double rows[SOC_MAX_TABLE]; /* rising */
    double factor[SOC_MAX_TABLE];
};

/* Between two measured row counts linear in ln rows; beyond the ends the end's factor. 1 without a
 * table. */
double soc_table_factor(const struct soc_table *t, double rows);

/* Where a calibration starts from, and what it stays at without points: kept in the file, so that
 * calibrating a calibrated file again, or leaving points out, does not know its own result. */
struct soc_start {
    bool given;
    double flop_per_s, bytes_per_s, launch_s, fill_rows, attention_frac, width_fill;
    double one_bytes_per_s, one_launch_s, enqueue_s, prompt_enqueue_s, special_attention_frac;
};

struct soc_runtime {
    char runtime[32];         /* also used for its later versions: "x-2025" for "x-2025.3" */
    uint32_t weight_bits;     /* 4, 8, 16 */
    struct soc_format format; /* optional keys; else of the width */
    uint32_t chunk_rows;      /* static shape of this runtime; 0: none */
    bool chunk_rows_own;      /* the file states it; else the device's */
    struct soc_curve many;    /* more than one row */
    struct soc_curve one;     /* one row (GEMV); equal to `many` unless the file says otherwise */
    bool one_row_own;         /* it does */
    double fill_rows;         /* m0: rows that filling the engine costs */
    double batch_fill_frac;   /* of m0, what a pass without prompt rows pays */
    bool batch_fill_own;      /* the file states it */
    double expert_fill;       /* as width_fill, of the products of one of a mixture's experts */
    double expert_rows;       /* rows that each chosen expert costs beyond those routed to it */
    double enqueue_s;         /* host time per op, hidden behind the work of the ops before it */
    bool enqueue_own;         /* the file states it */
    double prompt_enqueue_s;  /* the same in passes with prompt rows; 0: as enqueue_s */
    bool prompt_enqueue_own;  /* the file states it */
    double width_fill;        /* n0: columns that filling the engine costs, of the model's width */
    bool width_fill_own;      /* the file states it */
    bool is_default;          /* the device's entry for widths without one of their own */
    double attention_frac;    /* e_a: attention runs at this share of P */
    /* e_d: of a decoding sequence's own row over its keys; 0: no measurement sets it apart */
    double decode_attention_frac;
    double special_attention_frac; /* e_s: of prompts, where the model's is special; 0: as e_a */
    bool special_attention_own;    /* the file states it */
    uint32_t few_rows;             /* prompts with fewer rows of a sequence run at e_d, too */
    double knee;                   /* exponent of the p-norm form */
    /* Costs of a batch beyond its rows, per sequence beyond the first (README): */
    double decode_batch_frac;   /* share of the weights that a further decode reads again */
    double decode_stretch_frac; /* of the memory time of a pass that only decodes */
    double attention_launches;  /* launches of attention */
    double kv_gather_frac;      /* KV traffic of gathering */
    double fused_launch_frac;   /* of a layer's launches, what a layer in one kernel pays */
    uint32_t min_rows;          /* rows a many-row kernel pays at least (systolic height) */
    uint32_t micro_batch;       /* rows that the runtime takes through the model at once; 0: all */
    bool sliding_window;        /* layers with a window read and compute no key behind it */
    bool pad_attention;         /* attention reads the KV padded to the static chunk */
    uint32_t window;            /* keys that every row attends to, masked or not; 0: its own */
    struct soc_start start;
    /* Standard deviations of ln(measured / predicted) where the machine was measured by a few rows:
     * of models of usual size and of small ones, by phase (hwmodels/conformal.h). 0: not stated. */
    double error_sd[2][3];
    uint32_t measured_rows;
    struct soc_table table; /* of the form `table` */
    struct soc_ops ops;     /* of the form `per-op` */
    /* Validity envelope of the calibration; 0: unbounded. */
    uint32_t valid_rows_max, valid_context_max;
};

/* A device of several cards that share every layer (tensor parallel): after the output projection
 * and after the FFN each card's part of the rows is summed over all (two all-reduces a layer). */
struct soc_exchange {
    uint32_t cards;     /* 0: one card, nothing to exchange */
    double latency_s;   /* of one all-reduce */
    double bytes_per_s; /* of one card's link, one way */
};

/* The meter of a device's powers. A rail supplies the device alone: memory and fabric, which it
 * keeps busy, are missing. A package meter has all of the chip in it, a board meter the board's
 * supply, a battery meter all of a phone or laptop, a wall meter the power supply as well. Power at
 * rest is a number of its own. */
enum soc_meter {
    SOC_METER_UNSTATED,
    SOC_METER_RAIL,
    SOC_METER_PACKAGE,
    SOC_METER_BOARD,
    SOC_METER_BATTERY,
    SOC_METER_WALL
};
const char *const *soc_meter_names(void); /* by the enum, NULL-terminated */

/* Memory of a process that runs a model on the device (hwmodels/footprint.h). */
struct soc_memory {
    char runtime[32];        /* of which the numbers are; "": the file has none */
    bool counted;            /* runs count it; else `memory.usable` leaves room for it */
    double fixed_bytes;      /* host, driver, compiled kernels */
    double weights_frac;     /* resident bytes per byte of weights */
    double tokenizer_bytes;  /* per entry of the vocabulary */
    double activation_bytes; /* per token of the prompt and column of the model's width */
    double score_bytes;      /* per head and pair of tokens; 0: fused attention keeps no scores */
};

/* Memory of a device's kernels besides weights. */
struct soc_kernels {
    double budget_bytes; /* 0: not stated */
    double instructions_bytes, buffer_bytes;
    int64_t load_ns;
};

/* Steps of a device's frequency. */
#define SOC_MAX_STEPS 16
struct soc_step {
    double speed, power;
};
struct soc_dvfs {
    uint32_t n; /* 0: not stated */
    struct soc_step steps[SOC_MAX_STEPS];
    int governor; /* index in soc_governor_names() */
    int64_t period_ns;
    double headroom;
};
const char *const *soc_governor_names(void); /* NULL-terminated */

/* A battery gives watts / efficiency + rest where the meter reads watts. Regulators lose the first
 * part. The rest (display, storage, radio) is behind no meter of the file's. */
struct soc_supply {
    double efficiency_frac; /* (0, 1]; 0: not stated */
    double rest_watts;
};

struct soc_device {
    struct soc_memory memory;
    struct soc_kernels kernels;
    struct soc_dvfs dvfs;
    int meter;              /* enum soc_meter */
    double peak_flop_per_s; /* datasheet, for reports */
    uint32_t cores;         /* datasheet, for machines made from it; 0: not stated */
    /* Measured: how much longer a memory-bound kernel takes while another engine works, minus 1; of
     * the contention form `beside`. 0: not measured. */
    double beside_frac;
    /* Share of a kernel's isolated time behind its loading; 0: it loads all the time. */
    double compute_only_frac;
    struct soc_exchange exchange;
    uint32_t tiles, partitions; /* >= 1; after soc_partition `tiles` are those of this device */
    uint32_t entry;             /* of the file's devices */
    struct soc_runtime runtimes[SOC_MAX_RUNTIMES];
    uint32_t n_runtimes;
    uint32_t fallback; /* the entry whose runtime runs take, and of widths that have none */
    uint32_t n_defaults;
    char chosen[32]; /* runtime that runs take; "": the default entry's */
};

struct soc {
    struct machine machine;
    struct soc_device devices[MACHINE_MAX_DEVICES];
    uint32_t n_numbers[QUANTITY_KINDS]; /* how many are of each kind */
    double queueing_frac;   /* slowdown of a memory-bound kernel next to a full DDR, minus 1 */
    struct metered metered; /* what a meter reads of a run */
    double package_pl1_watts, package_pl2_watts, package_tau_s; /* 0: no package budget */
    struct soc_supply supply;
    double ddr_likely_bytes_per_s; /* of the memory that its numbers were measured with */
    char family[32]; /* SoCs of one family share silicon: calibration pools their points; "" none */
    char like[48];   /* SoC whose file this one was made from by data sheet; "" none */
    char hwmodel[16];      /* kernel-time model its numbers were fitted with; "": the usual one */
    char contention[16];   /* the contention model, in the same way */
    bool extrapolated_npu; /* the file says its NPU numbers come from other parts */
    char note[256];
};

/* The supply of a battery, where the file states it, or where all that draws power was read at the
 * battery: then it is {1, 0}. Else its efficiency is 0, and the energy at the battery unknown. */
struct soc_supply soc_supply_of(const struct soc *soc);

extern const char *const soc_error_names[2][3]; /* keys of fit.error_sd */

/* The keys of SoC and LLM files: reader, schema and `--set` use the same rows. */
extern const struct json_fields soc_fields, llm_fields;
/* Parses a tree (possibly after overrides). `file` names it in errors. 0 or -EINVAL with errors. */
int soc_parse(const cJSON *root, const char *file, struct soc *out, struct err *e);
/* Path of a shipped name ("core-ultra-5-125h") or of a file, as datadir_named. */
const char *soc_path(const char *name);
const char *llm_path(const char *name);
/* An LLM file into the model everyone may know. */
int llm_parse(const cJSON *root, const char *file, struct llm *out, struct err *e);
/* Whether a model's file has this number measured, or by its tensors. A runtime loads a file as it
 * is, so such bytes stay. */
bool llm_knows(const cJSON *root, const char *key);
/* Weights of a model with all experts and the embedding: its size by name, less norms, biases and
 * routers. */
double llm_stored_weights(const struct llm *m);
/* Those of all experts, shared ones left out. */
double llm_expert_weights(const struct llm *m);
/* Share of the experts of a layer that so many rows touch, each routed to experts_per_token of them
 * by itself; 1 for a dense model. Rows may be a fraction. */
double llm_experts_touched(const struct llm *m, double rows);

/* Reserves a part of a device for other software for the whole run. A share time_frac of its time
 * goes, so everything takes 1 / (1 - time_frac) as long. A share rate_frac of its compute rate goes
 * (flop/s times 1 - rate_frac), and nothing else. */
void soc_reserve(struct soc_device *d, double time_frac, double rate_frac);

/* Divides each device with `partitions` above 1 into so many equal devices, named NPU-1, NPU-2 ...
 * after it. A partition of share s has s of the bandwidth, of the powers and of attention's rate,
 * and the launch costs of the whole. Its engine is smaller, so that fewer rows fill it
 * (soc_resize). Errors name the file. */
void soc_partition(struct soc *soc, const char *file, struct err *e);

/* How an entry scales to a device of `peak` times the peak and `cores` times the cores.
 *
 * Filling with rows is work for each weight, however few the rows are: 4 or 8 bits become 16, and a
 * tile is set up. Each core does its share of it, with a wider matrix engine no sooner. So its time
 * follows the cores, and in rows of the new rate it is peak / cores times as many. Columns fill the
 * engines of all cores together, so width_fill follows the peak. The rate that a usual prompt
 * reaches follows the peak, too: 1024 rows of a model 4096 wide. Without fills the rate's factor is
 * `peak`. */
struct soc_resize {
    double rate, row_fill, width_fill;
};
struct soc_resize soc_resize(double row_fill, double width_fill, double peak, double cores);

/* A device's bandwidth follows `ddr`, the ratio of two memories' peaks. An NPU reads through a port
 * of its own, which no wider memory widens: one Snapdragon part has 42 GB/s of 68, and one 36 of
 * 135. Its factor is 1. */
double soc_resize_bandwidth(enum device_kind kind, double ddr);

/* Engines that fill their memory reach a share of its peak (hwmodels/shares.json). In a memory that
 * is slower than its port an NPU is such an engine. 0, or -EINVAL with errors. */
int soc_share_read(double *npu, struct err *e);
/* The largest share of a memory's peak that a device is taken to read where it had `own` of
 * another. `npu` is the one that soc_share_read gives. */
double soc_share_of_ddr(enum device_kind kind, double own, double npu);

/* Cores of `b` over those of `a`; 1 where a data sheet states none. */
double soc_cores_ratio(const struct soc_device *a, const struct soc_device *b);

/* The model as another width and format make it. Bytes of 0 stay. */
void llm_requantise(struct llm *m, uint32_t weight_bits, uint32_t act_bits,
                    const struct soc_format *format);

/* How the entry that was found relates to the runtime that was asked for. */
enum soc_match {
    SOC_MATCH_EXACT,
    SOC_MATCH_VERSION, /* another version of the same toolchain */
    SOC_MATCH_OTHER    /* another runtime, or another width */
};

/* Index of the entry for a runtime and weight width on a device, by the first rule that matches:
 *   1. exact: the same name;
 *   2. exact: the longest name that `runtime` is a version of ("x-2025" for "x-2025.3");
 *   3. version: the nearest version of the same toolchain and build ("x-2025" for "x-2026.0");
 *   4. other: the default's runtime at this width, any runtime at this width, the default.
 * A name is a toolchain, "-" and a version of up to three numbers, then "-" and a build. runtime
 * NULL: any of the right width is exact, the default's runtime first. */
uint32_t soc_runtime_find(const struct soc_device *d, const char *runtime, uint32_t weight_bits,
                          enum soc_match *match);

/* Whether a name states a version. */
bool soc_runtime_versioned(const char *runtime);

/* The keys of the parts of a SoC file (soc_fields.c), for its reader (soc_parse.c). */

/* A row of a runtime's table, as it is read. */
struct soc_table_row {
    uint32_t rows;
    double factor;
};

extern const struct json_fields soc_device_keys, soc_dvfs_keys, soc_numbers_keys, soc_runtime_keys,
    soc_start_keys, soc_step_keys, soc_table_keys;

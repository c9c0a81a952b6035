/* A SoC file: the machine that a policy sees, and the parameters of kernel times.
 *
 * Parameters are per (device, runtime, weight width), because toolchains matter (1.3 to 1.7 times
 * between OpenVINO versions). One entry of each device is its default, which a model without an
 * entry for its width uses; that is marked as fallback.
 */
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
    double bytes_per_s; /* B: DDR bandwidth of one engine */
    double launch_s;    /* t_launch, per primitive op */
};

/* A runtime's formats of weights of one width and of the KV cache. */
struct soc_format {
    double body_bytes, head_bytes; /* per weight, scales included */
    double kv_bytes;               /* per element */
};

/* The default format of a runtime (README). 4 bit has group scales 0.56 B, 8 bit 1.01 B; the head
 * has 8 bit below 16. Quantised weights come with an 8-bit KV cache, as in OpenVINO 2025. */
struct soc_format soc_format_of_width(uint32_t weight_bits);

/* A table of measured over modelled time, by the rows of a kernel. */
#define SOC_MAX_TABLE 16
struct soc_table {
    uint32_t n;
    double rows[SOC_MAX_TABLE]; /* rising */
    double factor[SOC_MAX_TABLE];
};

/* The factor for `rows`: linear in ln rows between points, constant beyond the ends, 1 without a
 * table. */
double soc_table_factor(const struct soc_table *t, double rows);

/* Start values of a calibration, which remain without points. They are in the file, so that a
 * further calibration, or one that leaves points out, does not start from the earlier result. */
struct soc_start {
    bool given;
    double flop_per_s, bytes_per_s, launch_s, fill_rows, attention_frac, width_fill;
    double one_bytes_per_s, one_launch_s, enqueue_s, prompt_enqueue_s, special_attention_frac;
};

struct soc_runtime {
    char runtime[32];         /* also used for its later versions: "x-2025" for "x-2025.3" */
    uint32_t weight_bits;     /* 4, 8, 16 */
    struct soc_format format; /* optional keys; default: soc_format_of_width */
    uint32_t chunk_rows;      /* static shape of this runtime; 0: none */
    bool chunk_rows_own;      /* the file states it; false: the device's */
    struct soc_curve many;    /* more than one row */
    struct soc_curve one;     /* one row (GEMV); equal to `many` unless one_row_own */
    bool one_row_own;         /* the file states `one` */
    double fill_rows;         /* m0: rows that the fill of the engine costs */
    double batch_fill_frac;   /* share of m0 in a pass without prompt rows */
    bool batch_fill_own;      /* the file states it */
    double expert_fill;       /* width_fill for the products of one expert of a mixture */
    double expert_rows;       /* additional rows that each used expert costs */
    double enqueue_s;         /* host time per op, overlapped with earlier ops */
    bool enqueue_own;         /* the file states it */
    double prompt_enqueue_s;  /* in passes with prompt rows; 0: enqueue_s */
    bool prompt_enqueue_own;  /* the file states it */
    double width_fill;     /* n0: columns of the model's width that the fill of the engine costs */
    bool width_fill_own;   /* the file states it */
    bool is_default;       /* the device's entry for widths without an entry */
    double attention_frac; /* e_a: attention runs at this share of P */
    /* e_d: in decode; 0: as e_a */
    double decode_attention_frac;
    double special_attention_frac; /* e_s: prompts of models with special_attention; 0: as e_a */
    bool special_attention_own;    /* the file states it */
    double recurrence_frac;        /* e_r: recurrences of states; 0: as e_a */
    uint32_t kv_columns; /* heads of K and V read side by side; fewer take as long; 0: any number */
    uint32_t few_rows;   /* prompts with fewer rows per sequence run at e_d, too */
    double knee;         /* exponent of `p-norm` */
    /* Additional costs of a batch, per sequence after the first (README): */
    double decode_batch_frac;   /* share of the weights that a decode reads again */
    double decode_stretch_frac; /* share of the memory time of a pure decode pass */
    double attention_launches;  /* attention launches */
    double kv_gather_frac;      /* gathering, as a share of KV traffic */
    double fused_launch_frac;   /* share of a layer's launches that a fused layer has */
    /* In one-row kernels: launches that a recurrence adds to attention, and a choice of experts to
     * the FFN. */
    double further_launches;
    uint32_t min_rows;    /* least rows of a many-row kernel (systolic height) */
    uint32_t micro_batch; /* most rows of a pass in the runtime; 0: no limit */
    bool sliding_window;  /* layers with a window skip keys outside it */
    bool decode_window;   /* they skip them in passes without prompt rows alone */
    bool pad_attention;   /* attention reads the KV padded to the static chunk */
    uint32_t window;      /* keys that every row computes, masked or not; 0: its own */
    struct soc_start start;
    /* Standard deviations of ln(measured / predicted) if the machine was measured by a few rows:
     * [usual or small models][phase] (hwmodels/conformal.h). 0: not stated. */
    double error_sd[2][3];
    uint32_t measured_rows;
    struct soc_table table; /* for `table` */
    struct soc_ops ops;     /* for `per-op` */
    /* Calibrated range; 0: unbounded. */
    uint32_t valid_rows_max, valid_context_max;
};

/* A device of several cards that share every layer (tensor parallel): the cards' partial results
 * are summed after the output projection and after the FFN (two all-reduces a layer). */
struct soc_exchange {
    uint32_t cards;     /* 0: one card */
    double latency_s;   /* latency of one all-reduce */
    double bytes_per_s; /* one card's link, one way */
};

/* The meter of a device's powers. A rail supplies only the device, without memory and fabric. A
 * package meter includes the whole chip, a board meter the board's supply, a battery meter the
 * whole phone or laptop, a wall meter also the power supply. Idle power is separate. */
enum soc_meter {
    SOC_METER_UNSTATED,
    SOC_METER_RAIL,
    SOC_METER_PACKAGE,
    SOC_METER_BOARD,
    SOC_METER_BATTERY,
    SOC_METER_WALL
};
const char *const *soc_meter_names(void); /* indexed by enum, NULL-terminated */

/* Memory of a process that runs a model on the device (hwmodels/footprint.h). */
struct soc_memory {
    char runtime[32];        /* runtime of these numbers; "": none */
    bool counted;            /* runs count it; false: `memory.usable` excludes it */
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

/* If the meter reads `watts`, a battery supplies watts / efficiency + rest. The efficiency is that
 * of regulators. The rest (display, storage, radio) is not in the meter's reading. */
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
    uint32_t cores;         /* datasheet, for siblings; 0: not stated */
    /* Measured slowdown of a memory-bound kernel while another engine works, minus 1, for the
     * contention model `beside`. 0: not measured. */
    double beside_frac;
    /* Share of a kernel's isolated time after its DDR traffic; 0: it has traffic all the time. */
    double compute_only_frac;
    struct soc_exchange exchange;
    uint32_t tiles, partitions; /* >= 1; after soc_partition `tiles` are those of this device */
    uint32_t entry;             /* index in the file's devices */
    struct soc_runtime runtimes[SOC_MAX_RUNTIMES];
    uint32_t n_runtimes;
    uint32_t fallback; /* the entry whose runtime runs use; also for widths without an entry */
    uint32_t n_defaults;
    char chosen[32]; /* runtime that runs use; "": the default entry's */
};

struct soc {
    struct machine machine;
    struct soc_device devices[MACHINE_MAX_DEVICES];
    uint32_t n_numbers[QUANTITY_KINDS]; /* numbers of each kind */
    double queueing_frac;   /* slowdown of a memory-bound kernel next to a full DDR, minus 1 */
    struct metered metered; /* numbers of the meter */
    double package_pl1_watts, package_pl2_watts, package_tau_s; /* 0: no package budget */
    struct soc_supply supply;
    double ddr_likely_bytes_per_s; /* memory that its numbers were measured with */
    char family[32];  /* SoCs of one family share silicon, so calibration pools their points; "" */
    char like[48];    /* SoC whose file this one was made from by data sheet; "" none */
    char hwmodel[16]; /* kernel-time model its numbers were fitted with; "": the usual one */
    char contention[16];   /* the contention model, in the same way */
    bool extrapolated_npu; /* its NPU numbers come from other SoCs */
    char note[256];
};

/* The supply of a battery: as the file states it, or {1, 0} if all powers were read at the battery.
 * Otherwise efficiency_frac is 0, and the energy at the battery unknown. */
struct soc_supply soc_supply_of(const struct soc *soc);

extern const char *const soc_error_names[2][3]; /* keys of fit.error_sd */

/* The keys of SoC and LLM files: reader, schema and `--set` use the same rows. */
extern const struct json_fields soc_fields, llm_fields;
/* Parses a tree (possibly after overrides). `file` names it in errors. 0 or -EINVAL with errors. */
int soc_parse(const cJSON *root, const char *file, struct soc *out, struct err *e);
/* Path of a shipped name ("core-ultra-5-125h") or of a file, as datadir_named. */
const char *soc_path(const char *name);
const char *llm_path(const char *name);
/* Parses an LLM file. */
int llm_parse(const cJSON *root, const char *file, struct llm *out, struct err *e);
/* Whether a model's file has this number measured or from its tensors. Such bytes take precedence,
 * because a runtime loads a file as it is. */
bool llm_knows(const cJSON *root, const char *key);
/* Weights of a model with all experts and the embedding: its nominal size without norms, biases and
 * routers. */
double llm_stored_weights(const struct llm *m);
/* Weights of all experts, without shared ones. */
double llm_expert_weights(const struct llm *m);
/* Share of a layer's experts that `rows` rows use, if each is routed independently to
 * experts_per_token of them; 1 for a dense model. rows may be fractional. */
double llm_experts_touched(const struct llm *m, double rows);

/* Reserves a part of a device for other software for the whole run: shares of its time and of its
 * compute rate. All work takes 1 / (1 - time_frac) as long. */
void soc_reserve(struct soc_device *d, double time_frac, double rate_frac);

/* Divides each device with `partitions` above 1 into that many equal devices, named NPU-1, NPU-2
 * ... A partition with share s has a share s of bandwidth, powers and attention's rate, and all of
 * the launch costs. Its engine is smaller, so fewer rows fill it (soc_resize). Errors name the
 * file. */
void soc_partition(struct soc *soc, const char *file, struct err *e);

/* How an entry scales to a device of `peak` times the peak and `cores` times the cores.
 *
 * The row fill is work for each weight, regardless of the rows: 4 or 8 bits become 16, and a tile
 * is set up. Each core does its share, and a wider matrix engine is not faster. So its time scales
 * with the cores, and in rows of the new rate it is peak / cores times as many. Columns fill the
 * engines of all cores together, so width_fill scales with the peak. The rate is scaled so that a
 * usual prompt (1024 rows of a model 4096 wide) scales with the peak. Without fills its factor is
 * `peak`. */
struct soc_resize {
    double rate, row_fill, width_fill;
};
struct soc_resize soc_resize(double row_fill, double width_fill, double peak, double cores);

/* The factor of a device's bandwidth is `ddr`, the ratio of two memories' peaks. For an NPU it is
 * 1, because its own port limits it: one Snapdragon part has 42 GB/s of 68, and one 36 of 135. */
double soc_resize_bandwidth(enum device_kind kind, double ddr);

/* Reads the share of the peak that engines reach if the memory limits them (hwmodels/shares.json).
 * An NPU is limited in this way if the memory is slower than its port. Returns 0, or -EINVAL with
 * errors. */
int soc_share_read(double *npu, struct err *e);
/* The largest assumed share of a memory's peak for a device that had `own` of another memory.
 * `npu`: from soc_share_read. */
double soc_share_of_ddr(enum device_kind kind, double own, double npu);

/* Cores of `b` over those of `a`; 1 if not stated. */
double soc_cores_ratio(const struct soc_device *a, const struct soc_device *b);

/* Changes a model to another width and format. Bytes of 0 do not change. */
void llm_requantise(struct llm *m, uint32_t weight_bits, uint32_t act_bits,
                    const struct soc_format *format);

/* How well an entry matches the requested runtime. */
enum soc_match {
    SOC_MATCH_EXACT,
    SOC_MATCH_VERSION, /* another version of the same toolchain */
    SOC_MATCH_OTHER    /* another runtime, or another width */
};

/* Index of the entry for a runtime and weight width on a device, by the first rule that matches:
 *   1. exact: the same name;
 *   2. exact: the longest name that `runtime` is a version of ("x-2025" for "x-2025.3");
 *   3. version: the nearest version of the same toolchain and build ("x-2025" for "x-2026.0");
 *   4. other: the toolchain whose name begins with the most words of this one's
 *      ("llama.cpp-sycl-9843" for "llama.cpp-vulkan-10000"), of several the default's;
 *   5. other: the default's runtime at this width, any runtime at this width, the default.
 * A name is a toolchain, "-" and a version of up to three numbers, then "-" and a build. runtime
 * NULL: any of the right width is exact, the default's runtime first. */
uint32_t soc_runtime_find(const struct soc_device *d, const char *runtime, uint32_t weight_bits,
                          enum soc_match *match);

/* Whether a name states a version. */
bool soc_runtime_versioned(const char *runtime);

/* The keys of the parts of a SoC file (soc_fields.c), for its reader (soc_parse.c). */

/* A row of a runtime's table while it is read. */
struct soc_table_row {
    uint32_t rows;
    double factor;
};

extern const struct json_fields soc_device_keys, soc_dvfs_keys, soc_numbers_keys, soc_runtime_keys,
    soc_start_keys, soc_step_keys, soc_table_keys;

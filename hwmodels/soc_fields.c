/* The keys of a SoC file, one row each (sim/base/json_fields.h), and reading one. */
#include "hwmodels/soc.h"

#include "sim/base/json_fields.h"

/* ---- what keys there are ---- */

#define R struct soc_runtime
#define CURVE(into)                                                                                \
    {JSON_QUANTITY(R, into.flop_per_s, "rate", "TFLOP/s", 1e-4, 1e5, 1e12,                         \
                   "Rate of matrix products.")},                                                   \
        {JSON_QUANTITY(R, into.bytes_per_s, "bandwidth", "GB/s", 1e-3, 1e5, 1e9,                   \
                       "DDR bandwidth that one kernel reaches.")},                                 \
    {                                                                                              \
        JSON_QUANTITY(R, into.launch_s, "launch", "us", 0.0, 1e6, 1e-6,                            \
                      "Time to launch one primitive operator.")                                    \
    }

static const struct json_field one_row_rows[] = {CURVE(one)};
static const struct json_fields one_row_keys = JSON_FIELDS(one_row_rows, NULL);

/* Bare numbers: a calibration starts from them, and nothing else uses them. */
static const struct json_field start_rows[] = {
    {JSON_NUMBER(R, start.flop_per_s, "rate", 1e-4, 1e5, 1e12, "TFLOP/s.")},
    {JSON_NUMBER(R, start.bytes_per_s, "bandwidth", 1e-3, 1e5, 1e9, "GB/s.")},
    {JSON_NUMBER(R, start.launch_s, "launch", 0.0, 1e6, 1e-6, "us.")},
    {JSON_NUMBER(R, start.fill_rows, "row_fill", 0.0, 1e6, 1.0, "Rows.")},
    {JSON_NUMBER(R, start.attention_frac, "attention", 1e-4, 10.0, 1.0, "A share of the rate.")},
    {JSON_NUMBER(R, start.width_fill, "width_fill", 0.0, 1e6, 1.0, "Columns.")},
    {JSON_NUMBER(R, start.one_bytes_per_s, "one_row_bandwidth", 1e-3, 1e5, 1e9, "GB/s.")},
    {JSON_NUMBER(R, start.one_launch_s, "one_row_launch", 0.0, 1e6, 1e-6, "us.")},
};
static const struct json_fields start_keys = JSON_FIELDS(start_rows, NULL);

static const struct json_field valid_rows[] = {
    {JSON_COUNT(R, valid_rows_max, "rows_max", 0, UINT32_MAX, "Rows of a kernel; 0: no limit.")},
    {JSON_COUNT(R, valid_context_max, "context_max", 0, UINT32_MAX,
                "Tokens of context; 0: no limit.")},
};
static const struct json_fields valid_keys = JSON_FIELDS(valid_rows, NULL);

struct factor {
    uint32_t rows;
    double factor;
};
static const struct json_field table_rows[] = {
    {JSON_COUNT(struct factor, rows, "rows", 1, 1u << 24, "Rows of a kernel; they rise.")},
    {JSON_NUMBER(struct factor, factor, "factor", 1e-3, 1e3, 1.0, "Measured over modelled time.")},
};
static const struct json_fields table_keys = JSON_FIELDS(table_rows, NULL);

static const struct json_field runtime_rows[] = {
    {JSON_TEXT(R, runtime, "runtime", "Name and version of the runtime; covers later patches.")},
    {JSON_COUNT(R, weight_bits, "weight_bits", 1, 32, "Width of the weights.")},
    {JSON_QUANTITY(R, format.body_bytes, "body_bytes", "B", 0.05, 8.0, 1.0,
                   "Bytes per weight of a layer, scales included; by default of the width."),
     JSON_DEFAULT(0.0)},
    {JSON_QUANTITY(R, format.head_bytes, "head_bytes", "B", 0.05, 8.0, 1.0,
                   "Bytes per weight of the LM head; by default of the width."),
     JSON_DEFAULT(0.0)},
    {JSON_QUANTITY(R, format.kv_bytes, "kv_bytes", "B", 0.05, 8.0, 1.0,
                   "Bytes per element of the KV cache; by default of the width."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(R, chunk_rows, "chunk_rows", 1, 65536,
                "Rows of this runtime's static kernels; by default the device's."),
     JSON_DEFAULT(0.0)},
    CURVE(many),
    {JSON_OBJECT("one_row", &one_row_keys, "The same for kernels of one row."), JSON_DEFAULT(0.0)},
    {JSON_QUANTITY(R, fill_rows, "row_fill", "rows", 0.0, 1e6, 1.0,
                   "Rows that filling the engine costs.")},
    {JSON_QUANTITY(R, width_fill, "width_fill", "columns", 0.0, 1e6, 1.0,
                   "Columns of the model's width that filling the engine costs."),
     JSON_DEFAULT(0.0)},
    {JSON_QUANTITY(R, attention_frac, "attention", "1", 1e-4, 10.0, 1.0,
                   "Attention runs at this share of the rate.")},
    {JSON_QUANTITY(R, decode_attention_frac, "decode_attention", "1", 1e-6, 10.0, 1.0,
                   "The same for a decoding row; 0: not measured apart."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(R, few_rows, "few_rows", 0, 65536,
                "A prompt with fewer rows of a sequence runs at decode_attention; 0: none does."),
     JSON_DEFAULT(0.0)},
    {JSON_QUANTITY(R, knee, "knee", "1", 0.5, 100.0, 1.0,
                   "Exponent with which compute and memory times add up (p-norm)."),
     JSON_DEFAULT(1.2)},
    {JSON_QUANTITY(R, decode_batch_frac, "decode_batch_inefficiency", "1", 0.0, 10.0, 1.0,
                   "Share of the weights that each further decode of a batch reads again."),
     JSON_DEFAULT(0.0)},
    {JSON_QUANTITY(R, decode_stretch_frac, "decode_batch_stretch", "1", 0.0, 10.0, 1.0,
                   "Share of its memory time that each further decode adds to a pass that only "
                   "decodes."),
     JSON_DEFAULT(0.0)},
    {JSON_QUANTITY(R, attention_launches, "attention_launches", "1", 0.0, 100.0, 1.0,
                   "Launches of attention per further sequence of a batch."),
     JSON_DEFAULT(0.0)},
    {JSON_QUANTITY(R, kv_gather_frac, "kv_gather", "1", 0.0, 10.0, 1.0,
                   "KV traffic of gathering, per further sequence of a batch."),
     JSON_DEFAULT(0.0)},
    {JSON_QUANTITY(R, fused_launch_frac, "fused_launches", "1", 0.0, 1.0, 1.0,
                   "Share of a layer's launches that a layer in one kernel pays."),
     JSON_DEFAULT(1.0)},
    {JSON_COUNT(R, min_rows, "min_rows", 1, 4096, "Rows that a kernel of many rows pays at least."),
     JSON_DEFAULT(1.0)},
    {JSON_BOOL(R, pad_attention, "pad_attention", "Attention reads KV padded to the static chunk."),
     JSON_DEFAULT(0.0)},
    {JSON_OBJECT("valid", &valid_keys, "Range of the calibration."), JSON_DEFAULT(0.0)},
    {JSON_ARRAY("table", &table_keys, 1, SOC_MAX_TABLE, "Factors by rows, of the model `table`."),
     JSON_DEFAULT(0.0)},
    {JSON_CALLERS("ops", &soc_ops_fields, "Measured operators, of the model `per-op`."),
     JSON_DEFAULT(0.0)},
    {JSON_CALLERS("fit", NULL, "Where a calibration started (`start`), and how good it is."),
     JSON_DEFAULT(0.0)},
    {JSON_BOOL(R, is_default, "default", "A model whose width has no entry uses this one."),
     JSON_DEFAULT(0.0)},
};
static const struct json_fields runtime_keys = JSON_FIELDS(runtime_rows, NULL);
#undef R

const char *const *soc_meter_names(void)
{
    static const char *const names[] = {"unstated", "rail", "package", "board",
                                        "battery",  "wall", NULL};
    return names;
}

#define X struct soc_device
static const struct json_field exchange_rows[] = {
    {JSON_COUNT(X, exchange.cards, "cards", 2, 64, "Cards that act as one device.")},
    {JSON_QUANTITY(X, exchange.latency_s, "latency", "us", 0.0, 1e6, 1e-6,
                   "Latency of one all-reduce.")},
    {JSON_QUANTITY(X, exchange.bytes_per_s, "link", "GB/s", 1e-3, 1e5, 1e9,
                   "Bandwidth of one card's link, one way.")},
};
static const struct json_fields exchange_keys = JSON_FIELDS(exchange_rows, NULL);

static const struct json_field footprint_rows[] = {
    {JSON_TEXT(X, memory.runtime, "runtime", "Runtime that the numbers are of.")},
    {JSON_BOOL(X, memory.counted, "counted",
               "Runs count it next to weights and KV; else memory.usable leaves room for it."),
     JSON_DEFAULT(0.0)},
    {JSON_QUANTITY(X, memory.fixed_bytes, "fixed", "GB", 0.0, 1e3, 1e9,
                   "Host, driver and compiled kernels.")},
    {JSON_QUANTITY(X, memory.weights_frac, "weights", "1", 0.0, 10.0, 1.0,
                   "Resident bytes per byte of weights.")},
    {JSON_QUANTITY(X, memory.tokenizer_bytes, "tokenizer", "kB", 0.0, 1e3, 1e3,
                   "Bytes per entry of the vocabulary.")},
    {JSON_QUANTITY(X, memory.activation_bytes, "activations", "B", 0.0, 1e5, 1.0,
                   "Bytes per token of a prompt and column of the model's width.")},
};
static const struct json_fields footprint_keys = JSON_FIELDS(footprint_rows, NULL);

static const struct json_field kernels_rows[] = {
    {JSON_QUANTITY(X, kernels.budget_bytes, "budget", "MB", 1e-3, 1e6, 1e6,
                   "Memory set aside for the kernels of this device.")},
    {JSON_QUANTITY(X, kernels.instructions_bytes, "instructions", "MB", 0.0, 1e5, 1e6,
                   "Instructions of one kernel.")},
    {JSON_QUANTITY(X, kernels.buffer_bytes, "buffers", "B", 0.0, 1e5, 1.0,
                   "Buffers of one kernel, per row that it is built for and column of the model's "
                   "width.")},
    {JSON_SPAN(X, kernels.load_ns, "load", "ms", 1e6, 1e-3,
               "Host time to load a kernel that is not there.")},
};
static const struct json_fields kernels_keys = JSON_FIELDS(kernels_rows, NULL);

const char *const *soc_governor_names(void)
{
    static const char *const names[] = {"utilisation", "energy", NULL};
    return names;
}

static const struct json_field step_rows[] = {
    {JSON_QUANTITY(struct soc_step, speed, "speed", "1", 1e-3, 1.0, 1.0,
                   "Speed of kernels, of that at the highest step; they rise to 1.")},
    {JSON_QUANTITY(struct soc_step, power, "power", "1", 0.0, 1.0, 1.0,
                   "Power above idle, of that at the highest step.")},
};
static const struct json_fields step_keys = JSON_FIELDS(step_rows, NULL);

static const struct json_field dvfs_rows[] = {
    {JSON_CHOICE(X, dvfs.governor, "governor", soc_governor_names, "Rule that chooses the step.")},
    {JSON_SPAN(X, dvfs.period_ns, "period", "ms", 1e6, 1e-3,
               "How often the rule utilisation looks."),
     JSON_DEFAULT(0.0)},
    {JSON_QUANTITY(X, dvfs.headroom, "headroom", "1", 1.0, 10.0, 1.0,
                   "What the rule utilisation wants, of what was used; schedutil's is 1.25."),
     JSON_DEFAULT(1.25)},
    {JSON_ARRAY("steps", &step_keys, 1, SOC_MAX_STEPS, "Steps of frequency, the lowest first.")},
};
static const struct json_fields dvfs_keys = JSON_FIELDS(dvfs_rows, NULL);

static const struct json_field numbers_rows[] = {
    {JSON_OBJECT("footprint", &footprint_keys, "Memory that a runtime needs on this device."),
     JSON_DEFAULT(0.0)},
    {JSON_OBJECT("kernels", &kernels_keys,
                 "Memory of kernels besides weights; absent: they take none."),
     JSON_DEFAULT(0.0)},
    {JSON_CALLERS("dvfs", &dvfs_keys,
                  "Steps of the device's frequency; absent: it always has the highest."),
     JSON_DEFAULT(0.0)},
    {JSON_CHOICE(X, meter, "meter", soc_meter_names, "Meter that its powers were read from."),
     JSON_DEFAULT(SOC_METER_UNSTATED)},
    {JSON_QUANTITY(X, peak_flop_per_s, "peak", "TFLOP/s", 1e-3, 1e5, 1e12,
                   "Peak rate of the data sheet, for reports.")},
    {JSON_QUANTITY(X, beside_frac, "beside", "1", 0.0, 10.0, 1.0,
                   "Measured slowdown of a memory-bound kernel while another device works."),
     JSON_DEFAULT(0.0)},
    {JSON_QUANTITY(X, compute_only_frac, "compute_only", "1", 0.0, 1.0, 1.0,
                   "Share of a kernel's isolated time that follows after its bytes have moved."),
     JSON_DEFAULT(0.0)},
    {JSON_OBJECT("exchange", &exchange_keys, "Tensor parallelism over several cards."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(X, tiles, "tiles", 1, 64, "Equal parts that contexts can have to themselves."),
     JSON_DEFAULT(1.0)},
    {JSON_COUNT(X, partitions, "partitions", 1, MACHINE_MAX_DEVICES,
                "Devices that its tiles are divided into for the run."),
     JSON_DEFAULT(1.0)},
    {JSON_ARRAY("runtimes", &runtime_keys, 1, SOC_MAX_RUNTIMES,
                "One entry per runtime and width.")},
};
static const struct json_fields numbers_keys = JSON_FIELDS(numbers_rows, NULL);
#undef X

static const char *const *sharing_names(void)
{
    static const char *const names[] = {"serial", "time_shared", NULL};
    return names;
}

#define D struct device
static const struct json_field device_rows[] = {
    {JSON_TEXT(D, name, "name", "Name in results and options.")},
    {JSON_CHOICE(D, kind, "kind", device_kind_names, "Kind of device.")},
    {JSON_CHOICE(D, sharing, "sharing", sharing_names, "How launches share the device.")},
    {JSON_COUNT(D, inflight_depth, "inflight_depth", 1, 64,
                "Launches that the device takes at once.")},
    {JSON_COUNT(D, max_shared, "max_shared", 1, MACHINE_MAX_SHARED,
                "Launches that run at once on a time-shared device.")},
    {JSON_QUANTITY(D, shared_efficiency_frac, "shared_efficiency", "1", 0.01, 1.0, 1.0,
                   "Total rate of a time-shared device with several launches.")},
    {JSON_COUNT(D, chunk_rows, "chunk_rows", 0, 65536,
                "Rows of static kernels; 0: shapes are dynamic.")},
    {JSON_BOOL(D, static_attention, "static_attention",
               "Attention needs a kernel compiled for the prompt's length.")},
    {JSON_BOOL(D, can_withdraw, "can_withdraw", "Queued launches can be taken back.")},
    {JSON_BOOL(D, can_reset, "can_reset", "Running kernels can be killed.")},
    {JSON_BOOL(D, can_suspend, "can_suspend", "Running kernels can be stopped and continued.")},
    {JSON_SPAN(D, submit_ns, "submit", "us", 1e6, 1e-6, "Host time of one launch.")},
    {JSON_SPAN(D, completion_ns, "completion", "us", 1e6, 1e-6, "Host time to notice its end.")},
    {JSON_SPAN(D, reset_ns, "reset", "us", 1e6, 1e-6, "Time from a kill to a free device.")},
    {JSON_QUANTITY(D, ddr_weight, "ddr_weight", "1", 1e-3, 1e3, 1.0,
                   "Weight where DDR is shared by weight."),
     JSON_DEFAULT(1.0)},
    {JSON_QUANTITY(D, idle_watts, "idle_power", "W", 0.0, 1e4, 1.0, "Power while idle.")},
    {JSON_QUANTITY(D, decode_watts, "decode_power", "W", 0.0, 1e4, 1.0, "Power while decoding.")},
    {JSON_QUANTITY(D, prefill_watts, "prefill_power", "W", 0.0, 1e4, 1.0,
                   "Power while computing prompts.")},
};
static const struct json_fields device_keys = JSON_FIELDS(device_rows, &numbers_keys);
#undef D

#define M struct soc
static const struct json_field host_rows[] = {
    {JSON_SPAN(M, machine.sync_ns, "sync", "us", 1e6, 1e-6,
               "Barrier between operators on different devices.")},
    {JSON_SPAN(M, machine.schedule_ns, "schedule", "us", 1e6, 1e-6, "One scheduling decision.")},
    {JSON_SPAN(M, machine.sample_ns_per_token, "sample", "us/token", 1e6, 1e-6,
               "Sampling of one token.")},
    {JSON_QUANTITY(M, machine.poll_watts, "poll", "W", 0.0, 1e3, 1.0,
                   "Power of a host that polls while a device works.")},
};
static const struct json_fields host_keys = JSON_FIELDS(host_rows, NULL);

static const struct json_field compiler_rows[] = {
    {JSON_SPAN(M, machine.compile_fixed_ns, "fixed", "s", 1e5, 1.0, "Time of any compilation.")},
    {JSON_QUANTITY(M, machine.compile_ns_per_token, "per_token", "ms/token", 0.0, 1e5, 1e6,
                   "Time per token of the compiled prompt length.")},
    {JSON_QUANTITY(M, machine.compile_watts, "power", "W", 0.0, 1e3, 1.0, "Power.")},
    {JSON_SPAN(M, machine.compile_evict_ns, "evict_fixed", "s", 1e4, 1.0,
               "Time to give a compiled kernel up."),
     JSON_DEFAULT(0.0)},
};
static const struct json_fields compiler_keys = JSON_FIELDS(compiler_rows, NULL);

static const struct json_field loader_rows[] = {
    {JSON_QUANTITY(M, machine.loader_bytes_per_s, "bandwidth", "GB/s", 1e-3, 1e4, 1e9,
                   "Rate of loading from flash.")},
    {JSON_SPAN(M, machine.loader_fixed_ns, "fixed", "s", 1e4, 1.0, "Time of any load.")},
    {JSON_QUANTITY(M, machine.swap_bytes_per_s, "swap_bandwidth", "GB/s", 1e-3, 1e4, 1e9,
                   "Rate of moving KV to flash and back.")},
    {JSON_SPAN(M, machine.swap_fixed_ns, "swap_fixed", "s", 1e4, 1.0, "Time of any move of KV."),
     JSON_DEFAULT(0.0)},
    {JSON_SPAN(M, machine.loader_evict_ns, "evict_fixed", "s", 1e4, 1.0,
               "Time to give a graph block up."),
     JSON_DEFAULT(0.0)},
};
static const struct json_fields loader_keys = JSON_FIELDS(loader_rows, NULL);

static const struct json_field memory_rows[] = {
    {JSON_QUANTITY(M, machine.memory_bytes, "capacity", "GB", 0.01, 1e5, 1e9, "Memory.")},
    {JSON_QUANTITY(M, machine.memory_usable_frac, "usable", "1", 0.01, 1.0, 1.0,
                   "Share that weights and KV may take.")},
};
static const struct json_fields memory_keys = JSON_FIELDS(memory_rows, NULL);

static const struct json_field ddr_rows[] = {
    {JSON_QUANTITY(M, machine.ddr_peak_bytes_per_s, "peak", "GB/s", 0.1, 1e5, 1e9,
                   "Peak bandwidth.")},
    {JSON_QUANTITY(M, machine.ddr_cap_frac, "together", "1", 0.1, 1.0, 1.0,
                   "Share of the peak that several devices reach together.")},
    {JSON_QUANTITY(M, queueing_frac, "queueing", "1", 0.0, 10.0, 1.0,
                   "Slowdown of a memory-bound kernel next to a full DDR, minus 1, in the "
                   "contention model latency."),
     JSON_DEFAULT(0.3)},
};
static const struct json_fields ddr_keys = JSON_FIELDS(ddr_rows, NULL);

static const struct json_field package_rows[] = {
    {JSON_QUANTITY(M, package_pl1_watts, "pl1", "W", 0.1, 1e4, 1.0, "Sustained power limit.")},
    {JSON_QUANTITY(M, package_pl2_watts, "pl2", "W", 0.1, 1e4, 1.0, "Short-term power limit.")},
    {JSON_QUANTITY(M, package_tau_s, "tau", "s", 1e-3, 1e4, 1.0, "Time constant of the two.")},
};
static const struct json_fields package_keys = JSON_FIELDS(package_rows, NULL);

static const struct json_field supply_rows[] = {
    {JSON_QUANTITY(M, supply.efficiency_frac, "efficiency", "1", 0.01, 1.0, 1.0,
                   "Power at the devices' meter per power that the battery gives for it.")},
    {JSON_QUANTITY(M, supply.rest_watts, "rest", "W", 0.0, 1e4, 1.0,
                   "Power that the battery gives to what no meter of the file reads.")},
};
static const struct json_fields supply_keys = JSON_FIELDS(supply_rows, NULL);

static const struct json_field soc_rows[] = {
    {JSON_ROW_("format", "Version of this format.", COUNT), JSON_RANGE_(1, 1, 1)},
    {JSON_TEXT(M, machine.name, "name", "Name of the machine.")},
    {JSON_TEXT(M, note, "note", "A sentence about the file."), JSON_DEFAULT(0.0)},
    {JSON_TEXT(M, family, "family", "Machines of one family share silicon."), JSON_DEFAULT(0.0)},
    {JSON_TEXT(M, like, "like", "The machine whose file this one was made from."),
     JSON_DEFAULT(0.0)},
    {JSON_TEXT(M, hwmodel, "hwmodel", "Kernel-time model that the numbers were fitted with."),
     JSON_DEFAULT(0.0)},
    {JSON_TEXT(M, contention, "contention", "Contention model that the numbers were fitted with."),
     JSON_DEFAULT(0.0)},
    {JSON_BOOL(M, extrapolated_npu, "npu_extrapolated", "NPU numbers come from other chips."),
     JSON_DEFAULT(0.0)},
    {JSON_OBJECT("host", &host_keys, "The host's part of every launch and token.")},
    {JSON_OBJECT("compiler", &compiler_keys, "Compiling attention for a prompt's length.")},
    {JSON_OBJECT("loader", &loader_keys, "Loading from flash.")},
    {JSON_OBJECT("memory", &memory_keys, "Memory.")},
    {JSON_OBJECT("ddr", &ddr_keys, "The memory bus that all devices share.")},
    {JSON_OBJECT("package", &package_keys, "Power limits of the package."), JSON_DEFAULT(0.0)},
    {JSON_CALLERS("metered", &metered_fields, "What a meter reads while the devices work."),
     JSON_DEFAULT(0.0)},
    {JSON_OBJECT("supply", &supply_keys, "From the devices' meter to the battery."),
     JSON_DEFAULT(0.0)},
    {JSON_QUANTITY(M, machine.idle_watts, "idle_power", "W", 0.0, 1e4, 1.0,
                   "Power of the platform, always drawn.")},
    {JSON_ARRAY("devices", &device_keys, 1, MACHINE_MAX_DEVICES, "Devices, by kind.")},
};
const struct json_fields soc_fields = JSON_FIELDS(soc_rows, NULL);
#undef M

/* ---- reading ---- */

const char *const soc_error_names[2][3] = {
    {"prefill", "short_prefill", "decode"},
    {"small_prefill", "small_short_prefill", "small_decode"},
};

static void errors_parse(struct json_obj *fit, struct soc_runtime *r)
{
    struct json_obj errors = json_get_object(fit, "error_sd");
    struct json_obj measured = json_get_object(fit, "measured");
    for (int small = 0; small < 2; small++) {
        for (int phase = 0; phase < 3; phase++) {
            r->error_sd[small][phase] =
                json_get_number(&errors, soc_error_names[small][phase], 1e-4, 10.0);
        }
    }
    r->measured_rows = json_get_u32(&measured, "rows", 1, UINT32_MAX);
}

/* The rest of the object is for people: how good a calibration is. */
static void fit_parse(struct json_obj *o, struct soc_runtime *r)
{
    struct json_obj fit = json_get_object(o, "fit");
    if (json_has(&fit, "error_sd")) {
        errors_parse(&fit, r);
    }
    if (json_has(&fit, "start")) {
        struct json_obj s = json_get_object(&fit, "start");
        json_fields_read(&s, &start_keys, r, NULL);
        json_done(&s);
        r->start.given = true;
    }
}

static void table_parse(struct json_obj *o, struct soc_table *t)
{
    t->n = (uint32_t)json_get_array_size(o, "table", 1, SOC_MAX_TABLE);
    for (uint32_t i = 0; i < t->n; i++) {
        struct json_obj p = json_array_object(o, "table", (int)i);
        struct factor f;
        json_fields_read(&p, &table_keys, &f, NULL);
        t->rows[i] = f.rows;
        t->factor[i] = f.factor;
        /* Between two rows a factor is interpolated, which takes an order. */
        if (i > 0 && t->rows[i] <= t->rows[i - 1]) {
            json_refuse(&p, "rows", "must rise");
        }
        json_done(&p);
    }
}

/* Bytes that the entry does not state are those of its width. */
static void format_complete(struct soc_runtime *r)
{
    const struct soc_format usual = soc_format_of_width(r->weight_bits);
    struct soc_format *f = &r->format;
    f->body_bytes = f->body_bytes > 0.0 ? f->body_bytes : usual.body_bytes;
    f->head_bytes = f->head_bytes > 0.0 ? f->head_bytes : usual.head_bytes;
    f->kv_bytes = f->kv_bytes > 0.0 ? f->kv_bytes : usual.kv_bytes;
}

static void runtime_parse(struct soc *soc, struct soc_device *d, struct json_obj *o)
{
    struct soc_runtime *r = &d->runtimes[d->n_runtimes];
    json_fields_read(o, &runtime_keys, r, soc->n_numbers);
    format_complete(r);
    r->one_row_own = json_has(o, "one_row");
    r->one = r->one_row_own ? r->one : r->many;
    r->width_fill_own = json_has(o, "width_fill");
    if (json_has(o, "table")) {
        table_parse(o, &r->table);
    }
    if (json_has(o, "ops")) {
        soc_ops_parse(o, "ops", &r->ops);
    }
    if (json_has(o, "fit")) {
        fit_parse(o, r);
    }
    if (r->is_default) {
        d->fallback = d->n_runtimes;
        d->n_defaults++;
    }
    json_done(o);
    d->n_runtimes++;
}

static void dvfs_parse(struct soc *soc, struct json_obj *o, struct soc_device *sd)
{
    struct soc_dvfs *d = &sd->dvfs;
    struct json_obj from = json_get_object(o, "dvfs");
    json_fields_read(&from, &dvfs_keys, sd, soc->n_numbers);
    d->n = (uint32_t)json_get_array_size(&from, "steps", 1, SOC_MAX_STEPS);
    for (uint32_t i = 0; i < d->n; i++) {
        struct json_obj s = json_array_object(&from, "steps", (int)i);
        json_fields_read(&s, &step_keys, &d->steps[i], soc->n_numbers);
        json_done(&s);
        if (i > 0 && d->steps[i].speed <= d->steps[i - 1].speed) {
            json_refuse(&s, "speed", "must rise");
        }
    }
    const struct soc_step *last = &d->steps[d->n > 0 ? d->n - 1 : 0];
    if (last->speed != 1.0 || last->power != 1.0) {
        json_refuse(&from, "steps", "the highest has speed 1 and power 1");
    }
    if (d->governor == 0 && d->period_ns == 0) {
        json_refuse(&from, "period", "the rule utilisation needs one");
    }
    json_done(&from);
}

static void device_parse(struct soc *soc, struct json_obj *o)
{
    const uint32_t index = soc->machine.n_devices++;
    struct device *d = &soc->machine.devices[index];
    struct soc_device *sd = &soc->devices[index];
    d->index = (uint8_t)index;
    sd->entry = index;
    json_fields_read(o, &device_keys, d, soc->n_numbers);
    json_fields_read(o, &numbers_keys, sd, soc->n_numbers);
    if (json_has(o, "dvfs")) {
        dvfs_parse(soc, o, sd);
    }
    const int n = json_get_array_size(o, "runtimes", 1, SOC_MAX_RUNTIMES);
    for (int i = 0; i < n; i++) {
        struct json_obj r = json_array_object(o, "runtimes", i);
        runtime_parse(soc, sd, &r);
    }
    json_done(o);
}

/* What no single runtime entry can get wrong: each (runtime, width) once, and among several entries
 * exactly one default, so that a fallback is never a guess. */
static void check_runtimes(const struct soc *soc, uint32_t device, const char *file, struct err *e)
{
    const struct soc_device *sd = &soc->devices[device];
    for (uint32_t r = 0; r < sd->n_runtimes; r++) {
        const struct soc_runtime *a = &sd->runtimes[r];
        if (a->many.bytes_per_s > soc->machine.ddr_peak_bytes_per_s ||
            a->one.bytes_per_s > soc->machine.ddr_peak_bytes_per_s) {
            err_add(e, "%s: devices[%u].runtimes[%u].bandwidth: above ddr.peak", file, device, r);
        }
        for (uint32_t q = 0; q < r; q++) {
            const struct soc_runtime *b = &sd->runtimes[q];
            if (a->weight_bits == b->weight_bits && strcmp(a->runtime, b->runtime) == 0) {
                err_add(e, "%s: devices[%u].runtimes[%u]: \"%s\" with %u bits stands twice", file,
                        device, r, a->runtime, a->weight_bits);
            }
        }
    }
    if (sd->n_runtimes > 1 && sd->n_defaults != 1) {
        err_add(e, "%s: devices[%u].runtimes: %u entries say \"default\": true, must be 1", file,
                device, sd->n_defaults);
    }
}

/* What no single key can get wrong. */
static void check(const struct soc *soc, const char *file, struct err *e)
{
    const struct machine *m = &soc->machine;
    for (uint32_t i = 0; i < m->n_devices; i++) {
        const struct device *d = &m->devices[i];
        if (i > 0 && d->kind < m->devices[i - 1].kind) {
            err_add(e, "%s: devices[%u].kind: a %s comes before a %s", file, i,
                    device_kind_names()[d->kind], device_kind_names()[m->devices[i - 1].kind]);
        }
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(d->name, m->devices[j].name) == 0) {
                err_add(e, "%s: devices[%u].name: \"%s\" stands twice", file, i, d->name);
            }
        }
        check_runtimes(soc, i, file, e);
        int meter = soc->devices[i].meter;
        if (soc->supply.efficiency_frac > 0.0 &&
            (meter == SOC_METER_BATTERY || meter == SOC_METER_WALL)) {
            err_add(e, "%s: devices[%u].meter: \"%s\" is behind the supply that the file states",
                    file, i, soc_meter_names()[meter]);
        }
    }
    /* A load goes into memory, so nothing loads faster than that. */
    if (m->loader_bytes_per_s > m->ddr_peak_bytes_per_s ||
        m->swap_bytes_per_s > m->ddr_peak_bytes_per_s) {
        err_add(e, "%s: loader: a bandwidth above ddr.peak", file);
    }
    if (soc->package_pl2_watts < soc->package_pl1_watts) {
        err_add(e, "%s: package.pl2: must be at least package.pl1", file);
    }
}

int soc_parse(const cJSON *root, const char *file, struct soc *out, struct err *e)
{
    memset(out, 0, sizeof *out);
    const size_t before = e->n;
    struct json_obj o = json_root(root, file, e);
    json_fields_read(&o, &soc_fields, out, out->n_numbers);
    if (json_has(&o, "metered")) {
        struct json_obj m = json_get_object(&o, "metered");
        json_fields_read(&m, &metered_fields, &out->metered, out->n_numbers);
        json_done(&m);
    }
    const int n = json_get_array_size(&o, "devices", 1, MACHINE_MAX_DEVICES);
    for (int i = 0; i < n; i++) {
        struct json_obj d = json_array_object(&o, "devices", i);
        device_parse(out, &d);
    }
    json_done(&o);
    /* A missing number reads 0: checking the file against itself would report it a second time. */
    if (e->n == before) {
        check(out, file, e);
        soc_partition(out, file, e);
    }
    return e->n == before ? 0 : -EINVAL;
}

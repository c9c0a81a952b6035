/* The keys of a SoC file, one row each (sim/base/json_fields.h). */
#include "hwmodels/soc.h"

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

/* Plain numbers, only used as starting values of a calibration. */
static const struct json_field start_rows[] = {
    {JSON_NUMBER(R, start.flop_per_s, "rate", 1e-4, 1e5, 1e12, "TFLOP/s.")},
    {JSON_NUMBER(R, start.bytes_per_s, "bandwidth", 1e-3, 1e5, 1e9, "GB/s.")},
    {JSON_NUMBER(R, start.launch_s, "launch", 0.0, 1e6, 1e-6, "us.")},
    {JSON_NUMBER(R, start.fill_rows, "row_fill", 0.0, 1e6, 1.0, "Rows.")},
    {JSON_NUMBER(R, start.attention_frac, "attention", 1e-4, 10.0, 1.0, "A share of the rate.")},
    {JSON_NUMBER(R, start.width_fill, "width_fill", 0.0, 1e6, 1.0, "Columns.")},
    {JSON_NUMBER(R, start.one_bytes_per_s, "one_row_bandwidth", 1e-3, 1e5, 1e9, "GB/s.")},
    {JSON_NUMBER(R, start.one_launch_s, "one_row_launch", 0.0, 1e6, 1e-6, "us.")},
    {JSON_NUMBER(R, start.enqueue_s, "enqueue", 0.0, 1e6, 1e-6, "us."), JSON_DEFAULT(0.0)},
    {JSON_NUMBER(R, start.prompt_enqueue_s, "prompt_enqueue", 0.0, 1e6, 1e-6, "us."),
     JSON_DEFAULT(0.0)},
    {JSON_NUMBER(R, start.special_attention_frac, "special_attention", 0.0, 10.0, 1.0,
                 "Share of the rate."),
     JSON_DEFAULT(0.0)},
};
const struct json_fields soc_start_keys = JSON_FIELDS(start_rows, NULL);

static const struct json_field valid_rows[] = {
    {JSON_COUNT(R, valid_rows_max, "rows_max", 0, UINT32_MAX, "Rows of a kernel; 0: no limit.")},
    {JSON_COUNT(R, valid_context_max, "context_max", 0, UINT32_MAX,
                "Tokens of context; 0: no limit.")},
};
static const struct json_fields valid_keys = JSON_FIELDS(valid_rows, NULL);

static const struct json_field table_rows[] = {
    {JSON_COUNT(struct soc_table_row, rows, "rows", 1, 1u << 24, "Rows of a kernel; they rise.")},
    {JSON_NUMBER(struct soc_table_row, factor, "factor", 1e-3, 1e3, 1.0,
                 "Measured over modelled time.")},
};
const struct json_fields soc_table_keys = JSON_FIELDS(table_rows, NULL);

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
    {JSON_COUNT(R, chunk_rows, "chunk_rows", 0, 65536,
                "Rows of this runtime's static kernels, 0: any; by default the device's."),
     JSON_DEFAULT(0.0)},
    CURVE(many),
    {JSON_OBJECT("one_row", &one_row_keys, "The same for kernels of one row."), JSON_DEFAULT(0.0)},
    {JSON_QUANTITY(R, enqueue_s, "enqueue", "us", 0.0, 1e6, 1e-6,
                   "Host time of preparing an op, which work of the ops before it hides."),
     JSON_DEFAULT(0.0)},
    {JSON_QUANTITY(R, prompt_enqueue_s, "prompt_enqueue", "us", 0.0, 1e6, 1e-6,
                   "The same in passes with prompt rows; 0: as enqueue."),
     JSON_DEFAULT(0.0)},
    {JSON_QUANTITY(R, fill_rows, "row_fill", "rows", 0.0, 1e6, 1.0,
                   "Rows that filling the engine costs.")},
    {JSON_QUANTITY(R, batch_fill_frac, "batch_fill", "1", 0.0, 1.0, 1.0,
                   "Share of row_fill that a pass without prompt rows pays."),
     JSON_DEFAULT(1.0)},
    {JSON_QUANTITY(R, expert_fill, "expert_fill", "columns", 0.0, 1e6, 1.0,
                   "Columns of an expert's width that filling the engine costs."),
     JSON_DEFAULT(2700.0)},
    {JSON_QUANTITY(R, expert_rows, "expert_rows", "rows", 0.0, 1e6, 1.0,
                   "Rows that each expert that a pass with prompt rows chooses costs beyond those "
                   "that chose it."),
     JSON_DEFAULT(20.0)},
    {JSON_QUANTITY(R, width_fill, "width_fill", "columns", 0.0, 1e6, 1.0,
                   "Columns of the model's width that filling the engine costs."),
     JSON_DEFAULT(0.0)},
    {JSON_QUANTITY(R, attention_frac, "attention", "1", 1e-4, 10.0, 1.0,
                   "Attention runs at this share of the rate.")},
    {JSON_QUANTITY(R, decode_attention_frac, "decode_attention", "1", 1e-6, 10.0, 1.0,
                   "The same for a decoding row; 0: not measured apart."),
     JSON_DEFAULT(0.0)},
    {JSON_QUANTITY(R, special_attention_frac, "special_attention", "1", 1e-6, 10.0, 1.0,
                   "The same for a prompt of a model with special attention; 0: not apart."),
     JSON_DEFAULT(0.0)},
    {JSON_QUANTITY(R, recurrence_frac, "recurrence", "1", 1e-6, 10.0, 1.0,
                   "The same for the recurrence of layers with a state; 0: not apart."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(
         R, kv_columns, "kv_columns", 0, 1024,
         "Heads of keys and values that are read at once. Fewer take as long; 0: reading takes "
         "the time of its bytes."),
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
    {JSON_QUANTITY(R, further_launches, "further_launches", "1", 0.0, 1000.0, 1.0,
                   "Launches of a decode that a layer with a state, or with a choice of experts, "
                   "has beyond those of its products."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(R, min_rows, "min_rows", 1, 4096, "Rows that a kernel of many rows pays at least."),
     JSON_DEFAULT(1.0)},
    {JSON_COUNT(R, micro_batch, "micro_batch", 0, 65536,
                "Rows that go through the model at once, each time reading it again; 0: all."),
     JSON_DEFAULT(0.0)},
    {JSON_BOOL(R, pad_attention, "pad_attention", "Attention reads KV padded to the static chunk."),
     JSON_DEFAULT(0.0)},
    {JSON_BOOL(
         R, sliding_window, "sliding_window",
         "Layers with a sliding window leave out the keys behind it; by default they read and "
         "mask them."),
     JSON_DEFAULT(0.0)},
    {JSON_BOOL(R, decode_window, "decode_window",
               "They leave them out in decodes alone, and prompts read and mask them."),
     JSON_DEFAULT(0.0)},
    {JSON_COUNT(R, window, "window", 0, 1u << 24,
                "Keys of the context that static graphs are compiled for: every row attends to all "
                "of them, masked or not; 0: rows attend to their own keys."),
     JSON_DEFAULT(0.0)},
    {JSON_OBJECT("valid", &valid_keys, "Range of the calibration."), JSON_DEFAULT(0.0)},
    {JSON_ARRAY("table", &soc_table_keys, 1, SOC_MAX_TABLE,
                "Factors by rows, of the model `table`."),
     JSON_DEFAULT(0.0)},
    {JSON_CALLERS("ops", &soc_ops_fields, "Measured operators, of the model `per-op`."),
     JSON_DEFAULT(0.0)},
    {JSON_CALLERS("fit", NULL, "Where a calibration started (`start`), and how good it is."),
     JSON_DEFAULT(0.0)},
    {JSON_BOOL(R, is_default, "default", "A model whose width has no entry uses this one."),
     JSON_DEFAULT(0.0)},
};
const struct json_fields soc_runtime_keys = JSON_FIELDS(runtime_rows, NULL);
#undef R

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
    {JSON_QUANTITY(X, memory.score_bytes, "scores", "B", 0.0, 64.0, 1.0,
                   "Bytes per head and pair of tokens of a prompt, of attention scores kept whole; "
                   "0: fused attention keeps none."),
     JSON_DEFAULT(0.0)},
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
const struct json_fields soc_step_keys = JSON_FIELDS(step_rows, NULL);

static const struct json_field dvfs_rows[] = {
    {JSON_CHOICE(X, dvfs.governor, "governor", soc_governor_names, "Rule that chooses the step.")},
    {JSON_SPAN(X, dvfs.period_ns, "period", "ms", 1e6, 1e-3,
               "How often the rule utilisation looks."),
     JSON_DEFAULT(0.0)},
    {JSON_QUANTITY(X, dvfs.headroom, "headroom", "1", 1.0, 10.0, 1.0,
                   "What the rule utilisation wants, of what was used; schedutil's is 1.25."),
     JSON_DEFAULT(1.25)},
    {JSON_ARRAY("steps", &soc_step_keys, 1, SOC_MAX_STEPS,
                "Steps of frequency, the lowest first.")},
};
const struct json_fields soc_dvfs_keys = JSON_FIELDS(dvfs_rows, NULL);

static const struct json_field numbers_rows[] = {
    {JSON_OBJECT("footprint", &footprint_keys, "Memory that a runtime needs on this device."),
     JSON_DEFAULT(0.0)},
    {JSON_OBJECT("kernels", &kernels_keys,
                 "Memory of kernels besides weights; absent: they take none."),
     JSON_DEFAULT(0.0)},
    {JSON_CALLERS("dvfs", &soc_dvfs_keys,
                  "Steps of the device's frequency; absent: it always has the highest."),
     JSON_DEFAULT(0.0)},
    {JSON_CHOICE(X, meter, "meter", soc_meter_names, "Meter that its powers were read from."),
     JSON_DEFAULT(SOC_METER_UNSTATED)},
    {JSON_QUANTITY(X, peak_flop_per_s, "peak", "TFLOP/s", 1e-3, 1e5, 1e12,
                   "Peak rate of the data sheet, for reports.")},
    {JSON_COUNT(X, cores, "cores", 1, SOC_MAX_CORES,
                "Cores of the data sheet, for machines made from this one; no run reads them."),
     JSON_DEFAULT(0.0), .unread = true},
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
    {JSON_TEXT(X, chosen, "runtime", "Runtime that runs take; absent: that of the default entry."),
     JSON_DEFAULT(0.0)},
    {JSON_ARRAY("runtimes", &soc_runtime_keys, 1, SOC_MAX_RUNTIMES,
                "One entry per runtime and width.")},
};
const struct json_fields soc_numbers_keys = JSON_FIELDS(numbers_rows, NULL);
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
    {JSON_QUANTITY(D, decode_watts, "decode_power", "W", 0.0, 1e4, 1.0,
                   "Power while decoding, in place of the device's idle_power and on top of the "
                   "machine's: what a package meter reads, less what it reads at rest.")},
    {JSON_QUANTITY(D, prefill_watts, "prefill_power", "W", 0.0, 1e4, 1.0,
                   "Power while computing prompts, counted as decode_power.")},
};
const struct json_fields soc_device_keys = JSON_FIELDS(device_rows, &soc_numbers_keys);
#undef D

#define M struct soc
static const struct json_field host_rows[] = {
    {JSON_SPAN(M, machine.sync_ns, "sync", "us", 1e6, 1e-6,
               "Barrier between operators on different devices.")},
    {JSON_SPAN(M, machine.schedule_ns, "schedule", "us", 1e6, 1e-6,
               "The decision behind one launch.")},
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
                   "Peak bandwidth of the memory. What a device reaches is a number of its own; "
                   "`new-soc --ddr-peak` scales both.")},
    {JSON_NUMBER(M, ddr_likely_bytes_per_s, "likely", 0.1, 1e5, 1e9,
                 "Peak in GB/s of the memory that the file's numbers were measured with, where no "
                 "source states it: the geometric mean of the slowest and the fastest that the "
                 "data sheet allows. For machines made from this one; no run reads it."),
     JSON_DEFAULT(0.0), .unread = true},
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
    {JSON_ARRAY("devices", &soc_device_keys, 1, MACHINE_MAX_DEVICES, "Devices, by kind.")},
};
const struct json_fields soc_fields = JSON_FIELDS(soc_rows, NULL);
#undef M

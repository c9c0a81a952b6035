/* The machine as a policy sees it: names, shapes and capabilities. Rates and times are not here;
 * a policy asks for estimates (sim/api/policy.h, sched_estimate). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MACHINE_MAX_DEVICES 4
#define MACHINE_MAX_SHARED 16 /* launches a time-shared device may run at once */

/* A struct's NAME_FIELDS lists the members that other processes get, in the order of the protocol:
 * X(member), or W(member, words) of an enum (sim/base/words.h). From these lists come the messages,
 * the Python classes and the tables of docs/policy-protocol.md
 * (`make generate`). */

/* The kinds of devices, in the order in which machines list them. A new kind is a row here and a
 * SoC file that has it. Columns: identifier, name in files and options, noun with article. */
#define DEVICE_KINDS(X)                                                                            \
    X(NPU, "npu", "an NPU")                                                                        \
    X(IGPU, "igpu", "an iGPU")                                                                     \
    X(CPU, "cpu", "a CPU device")                                                                  \
    X(GPU, "gpu", "a GPU")
#define DEVICE_KIND_ID_(id, name, one) DEVICE_KIND_##id,
#define DEVICE_KIND_NAME_(id, name, one) name,

enum device_kind { DEVICE_KINDS(DEVICE_KIND_ID_) DEVICE_KIND_COUNT };

enum device_sharing {
    DEVICE_SERIAL,     /* one launch at a time, in submission order */
    DEVICE_TIME_SHARED /* up to max_shared launches progress at once, each at efficiency/n */
};

struct device {
    char name[16]; /* unique; the kind's name if it is the only one of its kind */
    enum device_kind kind;
    uint8_t index;
    enum device_sharing sharing;
    uint32_t inflight_depth;       /* serial: queue depth, the running launch included; >= 1 */
    uint32_t max_shared;           /* time-shared: launches that run at once */
    double shared_efficiency_frac; /* time-shared with n > 1: total rate, (0,1] */
    uint32_t chunk_rows;           /* static kernel rows of token-level ops; 0 = dynamic shapes */
    bool static_attention;         /* MHA needs a compiled kernel of the prompt length */
    bool can_withdraw;             /* queued launches can be taken back (XSched level 2) */
    bool can_reset;                /* running kernels can be killed (REEF) */
    bool can_suspend;  /* running kernels can be stopped and continued (XSched level 3) */
    double ddr_weight; /* > 0; share of its traffic in the `weighted` contention model */
    double idle_watts, decode_watts, prefill_watts;
    int64_t submit_ns;     /* host cost of one launch */
    int64_t completion_ns; /* host cost of noticing the end of a launch */
    int64_t reset_ns;      /* from a kill or a suspension until the device is free */
};
#define DEVICE_FIELDS(X, W)                                                                        \
    X(name), W(kind, words_device_kinds), W(sharing, words_sharing), X(inflight_depth),            \
        X(max_shared), X(shared_efficiency_frac), X(chunk_rows), X(static_attention),              \
        X(can_withdraw), X(can_reset), X(can_suspend), X(idle_watts), X(decode_watts),             \
        X(prefill_watts), X(submit_ns), X(completion_ns), X(reset_ns), X(ddr_weight)

struct machine {
    char name[64];
    uint32_t n_devices;
    struct device devices[MACHINE_MAX_DEVICES]; /* by kind */
    double ddr_peak_bytes_per_s;
    double ddr_cap_frac; /* the cap: share of the peak that several devices reach together */
    int64_t sync_ns;     /* barrier when an op follows one that ran on another device */
    int64_t schedule_ns; /* the decision behind one launch; every launch pays it */
    int64_t sample_ns_per_token;
    int64_t compile_fixed_ns;
    double compile_ns_per_token;
    double compile_watts;
    double loader_bytes_per_s;
    int64_t loader_fixed_ns;
    double swap_bytes_per_s;
    double memory_bytes;
    double memory_usable_frac;
    double idle_watts;     /* platform, always drawn */
    double poll_watts;     /* a busy-polling coordinator, while work is on a device */
    int64_t swap_fixed_ns; /* fixed cost of one move of KV */
    /* Cost of an eviction. It occupies a channel for this time; the memory is free at once. */
    int64_t loader_evict_ns;  /* a graph block, on the loader */
    int64_t compile_evict_ns; /* compiled attention, on the compiler's thread */
};
#define MACHINE_FIELDS(X, W)                                                                       \
    X(ddr_peak_bytes_per_s), X(ddr_cap_frac), X(sync_ns), X(schedule_ns), X(sample_ns_per_token),  \
        X(compile_fixed_ns), X(compile_ns_per_token), X(compile_watts), X(loader_bytes_per_s),     \
        X(loader_fixed_ns), X(swap_bytes_per_s), X(memory_bytes), X(memory_usable_frac),           \
        X(idle_watts), X(poll_watts), X(swap_fixed_ns), X(loader_evict_ns), X(compile_evict_ns)

/* Conditions under which a machine works, as its operating system reports them. Events of the
 * machine change them (docs/concepts/machine.md). */
struct machine_state {
    double memory_taken_bytes; /* usable memory that other programs hold; 0 at first */
    double memory_free_bytes;  /* usable and free */
    double power_limit_watts;  /* of the package; 0: none */
    double battery_frac;       /* state of charge; 1 where no battery is known */
    bool on_battery;           /* false: on mains, as at first */
    bool background_window;    /* background work is welcome; true at first */
};
#define MACHINE_STATE_FIELDS(X, W)                                                                 \
    X(memory_taken_bytes), X(memory_free_bytes), X(power_limit_watts), X(battery_frac),            \
        X(on_battery), X(background_window)

/* Ops of a pass. QKV, MHA and FFN make up a decoder layer (FFN includes the output projection).
 * LAYER is the three fused into one op. HEAD is the LM head. */
enum op_kind { OP_QKV, OP_MHA, OP_FFN, OP_HEAD, OP_LAYER, OP_KIND_COUNT };

/* The ops of one layer, in order. */
#define LAYER_MAX_OPS 4
struct layer_ops {
    uint32_t n; /* >= 1 */
    enum op_kind kind[LAYER_MAX_OPS];
};
#define LAYER_OPS_DECODER ((struct layer_ops){3, {OP_QKV, OP_MHA, OP_FFN}})

/* How a model's attention differs from plain grouped attention, which has `heads` query heads and
 * `kv_heads` KV heads in every layer (hwmodels/llm_layers.h). All zero: it does not. */
struct llm_attention {
    bool gated;               /* an output gate as wide as the queries */
    bool keys_as_values;      /* layers without a window compute keys and values in one product */
    uint32_t global_kv_heads; /* KV heads of layers without a window, and their width */
    uint32_t global_head_dim;
    uint32_t latent_kv;    /* elements of a token's latent keys and values; 0: stored whole */
    uint32_t latent_query; /* inner width where two products compute the queries; 0: one product */
    uint32_t rotary_dim;   /* elements of a latent key with positions, shared by all heads */
    uint32_t value_dim;    /* width of a latent value's head */
    uint32_t recurrent_layers; /* layers with a state of fixed size instead of keys and values */
    uint32_t recurrent_in;     /* output width of such a layer's first products */
    uint32_t recurrent_out;    /* input width of its last product */
    uint32_t recurrent_state;  /* 32-bit elements of its state, for each sequence */
    uint32_t shared_kv_layers; /* layers that use the keys and values of another layer */
};

/* The public properties of a model. */
struct llm {
    char name[64];
    uint32_t n_layers, hidden, heads, kv_heads, head_dim, ffn_hidden, vocab;
    bool gated_ffn, tied_head;
    bool special_attention; /* positions or heads that few fused kernels have (LLM file) */
    uint32_t weight_bits, act_bits;
    double body_weights;          /* weights in the layers that one token crosses */
    double head_weights;          /* LM head (also the embedding when tied) */
    double body_bytes_per_weight; /* quantisation scales included */
    double head_bytes_per_weight;
    double kv_bytes_per_element;           /* a property of the runtime */
    double weight_bytes;                   /* resident bytes of one copy, embedding included */
    double kv_bytes_per_token;             /* all layers, K and V */
    uint32_t n_experts, experts_per_token; /* 0, 0: dense */
    double effective_experts;              /* n_experts if tokens use all evenly, else fewer */
    double dense_bytes_per_weight; /* outside the experts, if more than inside; 0: the same */
    struct layer_ops layer;
    uint32_t sliding_window; /* tokens that a row sees in a layer with a window; 0: none has one */
    uint32_t sliding_layers; /* layers with a window; a runtime may ignore it (SoC file) */
    uint32_t max_context;  /* tokens of prompt and answer that it was trained for; 0: not stated */
    uint32_t shared_ffn;   /* inner width of experts that every token uses; 0: none */
    uint32_t dense_layers; /* layers whose FFN is dense, with inner width dense_ffn */
    uint32_t dense_ffn;
    struct llm_attention attention;
    double kv_state_bytes; /* recurrent states of one sequence */
    /* Additional products and tables (hwmodels/llm_layers.h); 0: none. */
    uint32_t layer_embedding; /* width of a token embedding that each layer has */
    uint32_t laurel_rank, altup_inputs;
    double layer_embedding_bytes; /* bytes per weight of those embeddings */
};
#define LLM_FIELDS(X, W)                                                                           \
    X(name), X(n_layers), X(hidden), X(heads), X(kv_heads), X(head_dim), X(ffn_hidden), X(vocab),  \
        X(gated_ffn), X(tied_head), X(weight_bits), X(act_bits), X(body_weights), X(head_weights), \
        X(body_bytes_per_weight), X(head_bytes_per_weight), X(kv_bytes_per_element),               \
        X(weight_bytes), X(kv_bytes_per_token), X(n_experts), X(experts_per_token),                \
        X(sliding_window), X(sliding_layers), X(max_context), X(shared_ffn), X(dense_layers),      \
        X(dense_ffn), X(kv_state_bytes)

/* Names of the kinds, indexed by kind and NULL-terminated. */
static inline const char *const *device_kind_names(void)
{
    static const char *const names[] = {DEVICE_KINDS(DEVICE_KIND_NAME_) NULL};
    return names;
}

/* Index of the next device of a kind behind `after`, or -1. */
static inline int machine_find_after(const struct machine *m, enum device_kind kind, int after)
{
    for (uint32_t i = (uint32_t)(after + 1); i < m->n_devices; i++) {
        if (m->devices[i].kind == kind) {
            return (int)i;
        }
    }
    return -1;
}

/* Index of the first device of a kind, or -1. */
static inline int machine_find(const struct machine *m, enum device_kind kind)
{
    return machine_find_after(m, kind, -1);
}

/* An inference backend: the kernels of one Llama-like model on real silicon, called one at a time.
 *
 * The executor (sim/drive) owns all data that a schedule can affect: KV cells, activations, tokens.
 * A backend owns weights and compiled kernels. No kernel writes its own input:
 *   QKV    reads x[layer & 1], writes q and KV cells
 *   MHA    writes att
 *   FFN    writes x[(layer + 1) & 1]
 *   HEAD   writes logits
 * So any backend can run any kernel of a pass, two backends can share the rows of one op, and an
 * interrupted kernel can be run again.
 *
 * The model has random weights that are a formula (engine_weights): every backend quantises the
 * same numbers in its own way, and nothing is downloaded. RMS norms (epsilon 1e-5, gain 1) come
 * before QKV, FFN and HEAD. The rotary embedding has base 10000, halves rotated. Attention is
 * grouped and causal, and the FFN is gated with SiLU.
 *
 * Backends are shared objects (hwmodels/engines). A missing one is reported in one sentence. */
#pragma once

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/api/device.h"
#include "sim/api/pass.h"
#include "sim/api/policy.h"

#define ENGINE_ABI 3
#define ENGINE_MESSAGE_BYTES 480

/* KV cache, IEEE half precision bits: cell c of a layer holds kv_dim numbers. Padding rows write to
 * the last cell, which nobody reads. */
struct engine_kv {
    uint16_t *const *k, *const *v; /* by layer */
    size_t n_cells;
    uint32_t kv_dim; /* kv_heads x head_dim */
};

/* Consecutive tokens of one sequence in a pass; their KV lies in consecutive cells. */
struct engine_segment {
    size_t cell0;         /* of position 0 */
    uint32_t first_token; /* position of its first row */
    uint32_t row, n_rows;
};

/* Activations of one pass. Each array has room for `room` rows: padded kernels may read and
 * write beyond `rows`. */
struct engine_pass {
    uint32_t rows, room, n_segments;
    const struct engine_segment *segments;
    float *x[2];                /* hidden numbers a row */
    float *q;                   /* heads x head_dim */
    float *att;                 /* heads x head_dim */
    float *logits;              /* vocab; one row per logit row */
    int32_t *pos;               /* position of each row */
    int64_t *cell;              /* cell of each row */
    const uint32_t *logit_rows; /* rows of the pass that need logits */
};

struct engine_kernel {
    const struct engine_pass *pass;
    enum op_kind op; /* OP_LAYER: QKV, MHA, FFN of one layer */
    uint32_t layer;
    uint32_t row0, rows;  /* of the op; for HEAD, among the logit rows */
    uint32_t padded_rows; /* > rows: rows of a static kernel; surplus results are discarded */
    uint32_t graph;       /* version of the loaded graph to run, built for padded_rows rows; 0: the
                             device's own kernels. Graphs have no MHA */
    uint32_t compiled_tokens; /* MHA: prompt length of the compiled kernel; 0: any length */
    const _Atomic int *stop;  /* nonzero: stop early, because the result is not needed */
};

#define ENGINE_INTERRUPTS 1u /* `interrupt` ends a running kernel early: a reset */
/* `resident` compiles attention for one prompt length. Without this bit kernels take any length,
 * and compiling attention takes no time. */
#define ENGINE_COMPILES 2u
#define ENGINE_LOADS 4u /* `resident` writes graph blocks to files, loads and drops them */

struct engine_options {
    const struct llm *llm;
    const struct engine_kv *kv; /* outlives the engine */
    const char *scratch;        /* folder for the engine's temporary files, which it removes */
    const char *cache;          /* folder for compiled kernels, created if missing; NULL: none */
};

struct engine_device_options {
    const char *name;      /* the engine's word for a device: "CPU", "NPU", ... */
    uint32_t index;        /* device index in the machine */
    uint32_t static_rows;  /* token-level kernels have this many rows or one; 0: any number */
    bool static_attention; /* MHA runs only in kernels compiled for a prompt length */
    /* Called on the opening thread: `done` of n kernels are compiled, first 0 and last n. It may
     * take minutes on some devices. May be NULL. */
    void (*compiled)(void *self, uint32_t done, uint32_t n);
    void *self;
};

/* Compiled attention: key.a is the prompt length. A graph block: the token-level kernels of
 * n_layers layers and, with `head`, the head, of one static shape of `rows` rows. */
struct engine_resident {
    struct resident_key key;
    uint32_t layer0, n_layers, rows;
    bool head;
};

/* PREPARE compiles a graph block and writes it to a file; it comes before the run. MAKE compiles
 * attention, or reads a graph block from its file. DROP frees the memory. */
enum engine_step { ENGINE_STEP_PREPARE, ENGINE_STEP_MAKE, ENGINE_STEP_DROP };

struct engine_ops {
    uint32_t abi;        /* ENGINE_ABI */
    uint32_t has;        /* ENGINE_ bits */
    const char *name;    /* "ggml" */
    const char *version; /* of the library, "0.25.3" */

    /* Generates the weights. `close` may be called on another thread. Returns -EINVAL and a reason
     * for models that it cannot run. */
    int (*open)(const struct engine_options *o, void **engine, char *why);
    void (*close)(void *engine);
    /* Called on the thread that will run the device's kernels. */
    int (*device_open)(void *engine, const struct engine_device_options *o, void **device,
                       char *why);
    void (*device_close)(void *device);

    /* Runs one kernel on the calling thread, which is the device's own. Returns 0, -ECANCELED if it
     * was stopped midway, or another -errno with a reason in `why` if it failed. */
    int (*kernel)(void *device, const struct engine_kernel *k, char *why);
    /* Makes the running kernel return soon. Called on any thread, after k->stop was set. NULL:
     * setting k->stop is enough. */
    void (*interrupt)(void *device);
    /* Prepares, makes or drops a resident of the device, on another thread than its kernels,
     * possibly while those run. NULL if `has` has neither bit for it. */
    int (*resident)(void *device, const struct engine_resident *r, enum engine_step step,
                    char *why);
};

/* The function that a backend's shared object exports. */
const struct engine_ops *xpusim_engine(void);

/* ---- the model ---- */

enum engine_tensor {
    ENGINE_WQ,
    ENGINE_WK,
    ENGINE_WV,
    ENGINE_WO,
    ENGINE_GATE,
    ENGINE_UP,
    ENGINE_DOWN,
    ENGINE_HEAD,
    ENGINE_EMBEDDING
};

/* Writes row `row` of a weight matrix: `in` uniform numbers with variance 1 / in (1 for an
 * embedding), so that activations keep their size. layer is 0 for HEAD and EMBEDDING. */
static inline void engine_weights(enum engine_tensor t, uint32_t layer, uint32_t row, uint32_t in,
                                  float *out)
{
    float scale = sqrtf(3.0f / (t == ENGINE_EMBEDDING ? 1.0f : (float)in)) / 32768.0f;
    uint64_t state = ((uint64_t)t << 56) | ((uint64_t)layer << 40) | row;
    uint64_t bits = 0;
    for (uint32_t i = 0; i < in; i++) {
        if (i % 4 == 0) { /* splitmix64 (Steele, Lea, Flood 2014): one draw gives four numbers */
            uint64_t z =
                (state * 0x9e3779b97f4a7c15ULL) + (uint64_t)(i / 4 + 1) * 0xd1342543de82ef95ULL;
            z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
            z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
            bits = z ^ (z >> 31);
        }
        out[i] = (float)(int16_t)(uint16_t)(bits >> (16 * (i % 4))) * scale;
    }
}

/* An inference backend: the kernels of one Llama-like model on real silicon, called one at a time.
 *
 * The executor (sim/drive) owns everything a schedule can touch: KV cells, activations, tokens. A
 * backend owns weights and compiled kernels. No kernel writes what it reads:
 *   QKV    reads x[layer & 1], writes q and KV cells
 *   MHA    writes att
 *   FFN    writes x[(layer + 1) & 1]
 *   HEAD   writes logits
 * So any backend can run any kernel of a pass, two backends can share the rows of one op, and an
 * interrupted kernel is simply run again.
 *
 * The model has random weights that are a formula (engine_weights): every backend quantises the
 * same numbers in its own way, and nothing is downloaded. RMS norms (epsilon 1e-5, gain 1) come
 * before QKV, FFN and HEAD. The rotary embedding has base 10000, halves rotated. Attention is
 * grouped and causal, and the FFN is gated with SiLU.
 *
 * Backends are shared objects (hwmodels/engines); an absent one is one plain sentence. */
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

/* KV cache, IEEE half precision bits: cell c of a layer holds kv_dim numbers. The last cell takes
 * what nobody wants (padding). */
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
    const uint32_t *logit_rows; /* which rows those are */
};

struct engine_kernel {
    const struct engine_pass *pass;
    enum op_kind op; /* OP_LAYER: QKV, MHA, FFN of one layer */
    uint32_t layer;
    uint32_t row0, rows;  /* of the op; of HEAD: logit rows */
    uint32_t padded_rows; /* > rows: a static kernel of that many rows; what is computed beyond is
                             thrown away, but computed */
    uint32_t graph;       /* by the loaded graph of that version, whose shape padded_rows is;
                             0: by the device's own kernels. MHA is none of its ops */
    uint32_t compiled_tokens; /* of MHA: by the kernel compiled for that prompt length; 0: any */
    const _Atomic int *stop;  /* not 0: the kernel's work is not wanted any more */
};

#define ENGINE_INTERRUPTS 1u /* `interrupt` ends a running kernel early: a reset */
/* Attention of one prompt length is compiled (`resident`). Without it kernels take any length:
 * compiled attention is there at once. */
#define ENGINE_COMPILES 2u
#define ENGINE_LOADS 4u /* graph blocks are written to files, loaded and dropped (`resident`) */

struct engine_options {
    const struct llm *llm;
    const struct engine_kv *kv; /* outlives the engine */
    const char *scratch;        /* folder for files of its own, which it removes */
    const char
        *cache; /* folder of compiled kernels for the next run; made if missing; NULL: none */
};

struct engine_device_options {
    const char *name;      /* the engine's word for a device: "CPU", "NPU", ... */
    uint32_t index;        /* of the machine */
    uint32_t static_rows;  /* token-level kernels have that shape or one row; 0: any */
    bool static_attention; /* MHA by kernels compiled for a prompt length only */
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

/* PREPARE, of graph blocks only and before the run: compiled and written to a file. MAKE compiles
 * attention, and reads a graph block from its file. DROP gives the memory back. */
enum engine_step { ENGINE_STEP_PREPARE, ENGINE_STEP_MAKE, ENGINE_STEP_DROP };

struct engine_ops {
    uint32_t abi;        /* ENGINE_ABI */
    uint32_t has;        /* ENGINE_ bits */
    const char *name;    /* "ggml" */
    const char *version; /* of the library, "0.25.3" */

    /* Weights are made here, on another thread than the one that closes. Fails with -EINVAL and a
     * reason for models it cannot run. */
    int (*open)(const struct engine_options *o, void **engine, char *why);
    void (*close)(void *engine);
    /* On the thread that will run the device's kernels. */
    int (*device_open)(void *engine, const struct engine_device_options *o, void **device,
                       char *why);
    void (*device_close)(void *device);

    /* Runs one kernel on the calling thread. 0; -ECANCELED when it was stopped inside; another
     * -errno with a reason in `why` when it failed. Only the device's own thread calls it. */
    int (*kernel)(void *device, const struct engine_kernel *k, char *why);
    /* From any thread, after k->stop was set: makes the running kernel return soon. NULL: setting
     * it is enough. */
    void (*interrupt)(void *device);
    /* Prepares, makes or drops a resident of the device, on another thread than its kernels,
     * possibly while those run. NULL where has says there is nothing. */
    int (*resident)(void *device, const struct engine_resident *r, enum engine_step step,
                    char *why);
};

/* Export of a backend's shared object. */
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

/* Row `row` of a weight matrix, `in` numbers: uniform with variance 1 / in (1 of an embedding), so
 * that activations keep their size from layer to layer. layer is 0 for HEAD and EMBEDDING. */
static inline void engine_weights(enum engine_tensor t, uint32_t layer, uint32_t row, uint32_t in,
                                  float *out)
{
    float scale = sqrtf(3.0f / (t == ENGINE_EMBEDDING ? 1.0f : (float)in)) / 32768.0f;
    uint64_t state = ((uint64_t)t << 56) | ((uint64_t)layer << 40) | row;
    uint64_t bits = 0;
    for (uint32_t i = 0; i < in; i++) {
        if (i % 4 == 0) { /* splitmix64 (Steele, Lea, Flood 2014): four numbers a draw */
            uint64_t z =
                (state * 0x9e3779b97f4a7c15ULL) + (uint64_t)(i / 4 + 1) * 0xd1342543de82ef95ULL;
            z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
            z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
            bits = z ^ (z >> 31);
        }
        out[i] = (float)(int16_t)(uint16_t)(bits >> (16 * (i % 4))) * scale;
    }
}

/* The scheduling policy contract.
 *
 * A policy is one `const struct policy_ops`. The core notifies it of what happened; notifications
 * only record. All actions (but sched_map, which `init` calls) happen in `schedule`, which the core
 * calls once after all events of an instant that changed something a policy can see (kernels inside
 * a launch and frames do not: a policy that waits for time to pass sets a timer), and again while
 * the last call acted, up to SCHEDULE_MAX_ROUNDS. Event order at one instant: kernel done, load
 * done, compile done, pass done (iteration boundary), tool return, arrival, timer; inside a kind by
 * device, then request id (clauses.md 0.2). So a reactive arrival at a kernel boundary is seen by
 * the schedule call of that boundary.
 *
 * Life of a request, for a policy that runs one request at a time on device d:
 *
 *   request_arrived(r)                    -> remember r
 *   schedule: sched_pass_form(prefill of r) ; sched_launch(pass, d, to the end)
 *   launch_done(l)                        outcome DONE: the device is free
 *   pass_done(p)                          r->state is now DECODE, r->generated_tokens 1
 *   schedule: sched_pass_form(decode of r) ; sched_launch(...)        ... until
 *   pass_done(p)                          r->state FINISHED: forget r
 *
 * A policy acts only through `struct sched`, never through linked symbols, so the same object runs
 * on the virtual-clock and the real-time executors, built in or as a .so. Actions return 0 or a
 * negative errno and leave everything unchanged when they fail; each refusal counts a named event.
 * Everything a policy is given is read-only except its state, the request slots and pass_spec.
 *
 * Errors used: -EBUSY device or pass not free; -EINVAL malformed or impossible; -ENOMEM no KV
 * space; -ENOENT resident missing; -EALREADY nothing to do; -EPERM needs a capability the machine
 * lacks.
 */
#ifndef SIM_API_POLICY_H
#define SIM_API_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/api/device.h"
#include "sim/api/pass.h"
#include "sim/api/request.h"

#define SCHEDULE_MAX_ROUNDS 1000

struct sched;
struct sched_api;

/* ---- residents: things that must be in memory before work can use them ---- */

enum resident_kind {
    RESIDENT_COMPILED_ATTENTION, /* a: prompt length. Static NPU attention of that length */
    RESIDENT_GRAPH_BLOCK         /* a: block, b: graph version */
};

enum resident_state { RESIDENT_ABSENT, RESIDENT_PENDING, RESIDENT_READY };

struct resident_key {
    enum resident_kind kind;
    uint32_t a, b;
};

/* ---- what a policy can ask ---- */

struct estimate {
    int64_t t_ns;         /* annotated duration, alone on the machine */
    double bytes_per_s;   /* annotated DDR demand */
    double flop_per_byte; /* arithmetic intensity */
    double watts;
    bool memory_bound; /* intensity below the device's ridge I* (clauses.md B.9) */
};

/* ---- actions ---- */

struct pass_spec {
    const struct segment *segments; /* request, role, n_tokens are read; copied */
    uint32_t n_segments;
    bool fused_layers; /* only with one decode segment */
    /* Of a pass of decode segments only: until something else happens (an arrival, the end of a
     * request, a timer, KV that runs out), the policy would, when its tokens are out, form this
     * pass again for the same requests in the same order and launch it whole on the same device
     * with the same options, in one round of schedule, and change nothing that it later decides by.
     * The executor may then do so itself: notifications come once for many such passes, and the
     * requests have as many tokens more. */
    bool repeats;
    void *policy_data;
};

#define LAUNCH_TO_END 0 /* launch_spec.n_ops: up to the last op */
#define LAUNCH_ALL_ROWS 0
#define LAUNCH_DYNAMIC_CHUNK UINT32_MAX /* force one dynamic kernel where the device can */

struct launch_spec {
    struct pass *pass;
    uint8_t device;
    uint32_t n_ops; /* ops from the cursor on; LAUNCH_TO_END */
    uint32_t rows;  /* share of the cursor's op; LAUNCH_ALL_ROWS = all that are left. A share that
                       leaves rows over needs n_ops = 1 */
    enum yield_point yield;
    uint32_t chunk_rows;  /* 0: the device's own */
    uint8_t graph;        /* graph version; 0: the device's only one, always there */
    uint32_t graph_block; /* with graph > 0: resident (GRAPH_BLOCK, graph_block, graph) is needed */
    uint32_t inflight;    /* kernels handed to the device ahead, the running one included; 0: one.
                             A stop lets them finish unless the device can take them back
                             (XSched levels 1 and 2, clauses.md E.4) */
};

enum preempt_mode {
    PREEMPT_CHECKPOINT, /* stop at the next yield point, keep everything */
    PREEMPT_RESET,      /* kill the running kernel now; its work is redone later */
    PREEMPT_DRAIN,  /* as CHECKPOINT, but kernels handed over are left to run (XSched level 1) */
    PREEMPT_SUSPEND /* stop inside the running kernel and keep its work (XSched level 3) */
};

enum kv_evict_mode {
    KV_EVICT_RECOMPUTE, /* drop the KV: prefill again from 0 (or from the kept prefix) */
    KV_EVICT_SWAP       /* write it to flash through the loader; resume reads it back */
};

/* What happens to the KV that a session's last turn left, until its next turn comes. */
enum session_kv_mode {
    SESSION_KV_CACHE, /* kept while memory lasts, the oldest dropped first: so it begins */
    SESSION_KV_PIN,   /* kept */
    SESSION_KV_DROP,
    SESSION_KV_SWAP /* written to flash; the next turn comes with kv_swapped set */
};

struct sched_api {
    size_t size; /* sizeof(struct sched_api); stays first */
    int (*estimate)(struct sched *s, const struct work_shape *shape, enum op_kind op,
                    uint8_t device, uint32_t rows, uint32_t chunk_rows, struct estimate *out);
    enum resident_state (*resident_state)(struct sched *s, struct resident_key key);
    uint64_t (*kv_free_tokens)(struct sched *s);
    uint64_t (*kv_capacity_tokens)(struct sched *s);
    uint32_t (*device_free_slots)(struct sched *s, uint8_t device);
    int64_t (*oracle_output_tokens)(struct sched *s, const struct request *r);
    uint32_t (*draft_tokens)(struct sched *s, const struct request *r);

    int (*pass_form)(struct sched *s, const struct pass_spec *spec, struct pass **out);
    int (*pass_cancel)(struct sched *s, struct pass *p);
    int (*launch)(struct sched *s, const struct launch_spec *spec, const struct launch **out);
    int (*preempt)(struct sched *s, const struct launch *l, enum preempt_mode mode);
    int (*compile)(struct sched *s, struct resident_key key);
    int (*load)(struct sched *s, struct resident_key key, double bytes);
    int (*map)(struct sched *s, struct resident_key key, double bytes);
    int (*resident_evict)(struct sched *s, struct resident_key key);
    int (*kv_evict)(struct sched *s, const struct request *r, uint32_t keep_tokens,
                    enum kv_evict_mode mode);
    int (*kv_resume)(struct sched *s, const struct request *r);
    int (*session_kv)(struct sched *s, uint32_t session_id, enum session_kv_mode mode);
    int (*set_timer)(struct sched *s, int64_t at_ns);
    int (*shed)(struct sched *s, const struct request *r);
    int (*set_bandwidth_weight)(struct sched *s, uint8_t device, double weight);
    int (*note)(struct sched *s, const char *counter, uint64_t add);
};

/* What a policy holds. One per run. */
struct sched {
    const struct sched_api *api;
    int64_t now_ns;
    const struct machine *machine;
    const struct llm *llm;
    uint64_t epoch;      /* instants at which schedule was called, this one included */
    uint64_t seed;       /* for policies that draw: rng_key(seed, RNG_POLICY, ...) */
    void *state;         /* policy_ops.state_size_bytes zeroed bytes */
    const void *context; /* from the run\'s owner (a log to replay), or NULL */
    const struct policy_params *params;
    uint32_t kv_block_tokens; /* KV is reserved in blocks of so many tokens */
};

/* Annotated cost of `rows` rows of one op of a pass of this shape on a device. rows = 0: all rows
 * of that op. Includes the device's static padding. Asking twice gives the same answer. O(1). */
static inline int sched_estimate(struct sched *s, const struct work_shape *shape, enum op_kind op,
                                 uint8_t device, uint32_t rows, struct estimate *out)
{
    return s->api->estimate(s, shape, op, device, rows, 0, out);
}

/* The same for kernels of chunk_rows rows instead of the device's own (another graph). */
static inline int sched_estimate_chunked(struct sched *s, const struct work_shape *shape,
                                         enum op_kind op, uint8_t device, uint32_t rows,
                                         uint32_t chunk_rows, struct estimate *out)
{
    return s->api->estimate(s, shape, op, device, rows, chunk_rows, out);
}

static inline enum resident_state sched_resident_state(struct sched *s, struct resident_key key)
{
    return s->api->resident_state(s, key);
}

/* KV space in tokens, in whole blocks, session KV that may give way counted as free. */
static inline uint64_t sched_kv_free_tokens(struct sched *s)
{
    return s->api->kv_free_tokens(s);
}

static inline uint64_t sched_kv_capacity_tokens(struct sched *s)
{
    return s->api->kv_capacity_tokens(s);
}

/* Launches the device would accept now. 0 = a launch returns -EBUSY. */
static inline uint32_t sched_device_free_slots(struct sched *s, uint8_t device)
{
    return s->api->device_free_slots(s, device);
}

/* The hidden output length; -EPERM unless the policy carries POLICY_F_ORACLE. */
static inline int64_t sched_oracle_output_tokens(struct sched *s, const struct request *r)
{
    return s->api->oracle_output_tokens(s, r);
}

/* Tokens the run's drafter offers for this request's next verification; 0 without a drafter. */
static inline uint32_t sched_draft_tokens(struct sched *s, const struct request *r)
{
    return s->api->draft_tokens(s, r);
}

/* Forms a pass and reserves KV for its rows. A request is in at most one live pass. Prefill
 * segments: 1..request_prefill_left tokens, state QUEUED; the segment that completes the prompt
 * yields a token. Decode: state DECODE, n_tokens 1. Verify: state DECODE, n_tokens >= 1.
 * -ENOMEM: not enough KV (cold session KV is dropped first, oldest first). Cost O(segments). */
static inline int sched_pass_form(struct sched *s, const struct pass_spec *spec, struct pass **out)
{
    return s->api->pass_form(s, spec, out);
}

/* Gives up a READY pass: reserved KV is returned, work done on it is lost (and counted). */
static inline int sched_pass_cancel(struct sched *s, struct pass *p)
{
    return s->api->pass_cancel(s, p);
}

/* Puts a span of a pass on a device. out may be NULL. A launch that continues a pass on another
 * device than the previous op ran on pays the barrier (machine.sync_ns); every launch pays
 * schedule_ns + submit_ns + completion_ns on its device. */
static inline int sched_launch(struct sched *s, const struct launch_spec *spec,
                               const struct launch **out)
{
    return s->api->launch(s, spec, out);
}

/* Asks a launch to stop. CHECKPOINT: launch_done comes with YIELDED at its next yield point (DONE
 * if it ends first), or WITHDRAWN at once if it had not started and the device can withdraw.
 * SUSPEND: YIELDED after the device's reset_ns; the kernel goes on where it stopped when its pass
 * is next launched from there on the same device, and starts over anywhere else. RESET and SUSPEND
 * of a running launch are -EPERM where the device cannot. -EALREADY when already asked. */
static inline int sched_preempt(struct sched *s, const struct launch *l, enum preempt_mode mode)
{
    return s->api->preempt(s, l, mode);
}

/* Starts compiling on the one compiler thread, FIFO; resident_ready follows. Time: compile_fixed +
 * compile_per_token * key.a. */
static inline int sched_compile(struct sched *s, struct resident_key key)
{
    return s->api->compile(s, key);
}

/* Starts loading `bytes` > 0 through the one loader channel, FIFO; resident_ready follows. What
 * residents take beyond the weights they take from KV: -ENOMEM when not so much of it is free or
 * cold. */
static inline int sched_load(struct sched *s, struct resident_key key, double bytes)
{
    return s->api->load(s, key, bytes);
}

/* Declares a resident that was brought in before the run began: only in `init` (-EPERM later),
 * ready when the call returns, at no cost. Its bytes count in memory as those of a load do. Graphs
 * that a run declares so stand for its copy of the weights: the larger of the two counts. */
static inline int sched_map(struct sched *s, struct resident_key key, double bytes)
{
    return s->api->map(s, key, bytes);
}

/* Drops a READY resident, or cancels a PENDING one (running compile or load included). */
static inline int sched_resident_evict(struct sched *s, struct resident_key key)
{
    return s->api->resident_evict(s, key);
}

/* Frees KV of a request that is in no live pass. RECOMPUTE keeps the first keep_tokens tokens; a
 * decoding request becomes QUEUED again with prompt + generated to prefill. SWAP takes all of it
 * through the loader; kv_moved is called when it is out and its space free. */
static inline int sched_kv_evict(struct sched *s, const struct request *r, uint32_t keep_tokens,
                                 enum kv_evict_mode mode)
{
    return s->api->kv_evict(s, r, keep_tokens, mode);
}

/* Starts reading swapped KV back; kv_swapped turns false and kv_moved is called when it is in. */
static inline int sched_kv_resume(struct sched *s, const struct request *r)
{
    return s->api->kv_resume(s, r);
}

/* Says what becomes of the KV of a session between two turns. While it is written to flash it takes
 * its memory still; a turn that comes before the end finds it there. -ENOENT: the session has none
 * (no turn will come, prefix reuse is off, or it gave way already); -EALREADY: it is so, or on its
 * way to flash, or there. O(1) for the turn that finished last, else O(sessions between turns). */
static inline int sched_session_kv(struct sched *s, uint32_t session_id, enum session_kv_mode mode)
{
    return s->api->session_kv(s, session_id, mode);
}

/* `schedule` is called at at_ns >= now, whatever else happens then. A timer cannot be taken back.
 */
static inline int sched_set_timer(struct sched *s, int64_t at_ns)
{
    return s->api->set_timer(s, at_ns);
}

/* Drops a request that is in no live pass. It counts as shed, never as finished. */
static inline int sched_shed(struct sched *s, const struct request *r)
{
    return s->api->shed(s, r);
}

/* Weight of a device's flows under the `weighted` contention form (MoCA-like throttling). */
static inline int sched_set_bandwidth_weight(struct sched *s, uint8_t device, double weight)
{
    return s->api->set_bandwidth_weight(s, device, weight);
}

/* Adds to a named counter of the policy's own; at most 16 names; shown in results as policy.NAME.
 */
static inline int sched_note(struct sched *s, const char *counter, uint64_t add)
{
    return s->api->note(s, counter, add);
}

/* ---- parameters ---- */

enum param_type { PARAM_NUMBER, PARAM_INT, PARAM_BOOL, PARAM_CHOICE };

/* One documented parameter: a row of the macros below. A table ends with a NULL name. */
struct policy_param {
    const char *name; /* [a-z0-9_]+; unit suffix where it has one */
    enum param_type type;
    double def;                 /* INT and BOOL too; CHOICE: index */
    double min, max;            /* NUMBER and INT */
    const char *const *choices; /* CHOICE: NULL-terminated */
    const char *help;           /* meaning, unit, and where the default comes from */
};

#define POLICY_NUMBER(name_, def_, min_, max_, help_)                                              \
    {                                                                                              \
        .name = (name_), .type = PARAM_NUMBER, .def = (def_), .min = (min_), .max = (max_),        \
        .help = (help_)                                                                            \
    }
#define POLICY_INT(name_, def_, min_, max_, help_)                                                 \
    {                                                                                              \
        .name = (name_), .type = PARAM_INT, .def = (def_), .min = (min_), .max = (max_),           \
        .help = (help_)                                                                            \
    }
#define POLICY_BOOL(name_, def_, help_)                                                            \
    {                                                                                              \
        .name = (name_), .type = PARAM_BOOL, .def = (def_), .max = 1, .help = (help_)              \
    }
#define POLICY_CHOICE(name_, def_, choices_, help_)                                                \
    {                                                                                              \
        .name = (name_), .type = PARAM_CHOICE, .def = (def_), .choices = (choices_),               \
        .help = (help_)                                                                            \
    }

/* Parsed values, in table order. Numbers in v; INT, BOOL and CHOICE are exact in a double. */
struct policy_params {
    uint32_t n;
    double v[64];
};

static inline double param_number(const struct sched *s, uint32_t i)
{
    return s->params->v[i];
}

static inline int64_t param_int(const struct sched *s, uint32_t i)
{
    return (int64_t)s->params->v[i];
}

static inline bool param_bool(const struct sched *s, uint32_t i)
{
    return s->params->v[i] != 0.0;
}

/* ---- the policy ---- */

#define POLICY_F_ORACLE 1u /* may ask for hidden output lengths */
#define POLICY_F_BUSY_POLL                                                                         \
    2u /* its coordinator polls: machine.poll_watts while work is on a device */

/* Capabilities a policy needs; an executor that lacks one refuses it by name. */
#define CAP_SPANS 1u     /* launches of less than a pass */
#define CAP_ROW_SPLIT 2u /* shares of one op on several devices */
#define CAP_YIELD_KERNEL 4u
#define CAP_COMPILE 8u
#define CAP_LOAD 16u
#define CAP_KV_EVICT 32u
#define CAP_RESET 64u
#define CAP_VERIFY 128u
#define CAP_DEVICE(kind) (1u << (16 + (kind))) /* a device of that kind */
#define CAP_NPU CAP_DEVICE(DEVICE_KIND_NPU)
#define CAP_IGPU CAP_DEVICE(DEVICE_KIND_IGPU)
/* Not needs of policies but what single actions ask for: an executor without them refuses those. */
#define CAP_INFLIGHT 2048u /* kernels handed to a device ahead of the running one */
#define CAP_SUSPEND 4096u  /* stopping inside a kernel and going on there */
#define CAP_WEIGHTS 8192u  /* shares of the memory bandwidth */

/* ---- which contract this is ---- */

/* Raised when a member comes to mean something else. */
#define POLICY_API_VERSION 2
/* A hash of every struct and enum of device.h, pass.h, request.h and this file; `make lint` says
 * what it must be, so none of them changes unnoticed. Members are appended, never put between. */
#define POLICY_LAYOUT 2149741265u

/* What a policy and its core both read or write. */
#define POLICY_CONTRACT_STRUCTS(X)                                                                 \
    X(sched_api)                                                                                   \
    X(sched)                                                                                       \
    X(request)                                                                                     \
    X(pass)                                                                                        \
    X(launch)                                                                                      \
    X(segment)                                                                                     \
    X(pass_spec)                                                                                   \
    X(launch_spec)                                                                                 \
    X(machine)                                                                                     \
    X(llm)
#define POLICY_CONTRACT_COUNT_(name) +1
#define POLICY_CONTRACT_SIZE_(name) sizeof(struct name),

/* What the headers were that a policy was compiled with. Stays first in policy_ops, so every later
 * xpusim can read it and refuse in words what does not suit it. */
struct policy_contract {
    size_t size; /* sizeof(struct policy_ops) */
    uint32_t version;
    uint32_t layout;
    uint32_t struct_bytes[POLICY_CONTRACT_STRUCTS(POLICY_CONTRACT_COUNT_)];
};

#define POLICY_CONTRACT                                                                            \
    {                                                                                              \
        sizeof(struct policy_ops), POLICY_API_VERSION, POLICY_LAYOUT,                              \
        {                                                                                          \
            POLICY_CONTRACT_STRUCTS(POLICY_CONTRACT_SIZE_)                                         \
        }                                                                                          \
    }

struct policy_ops {
    struct policy_contract contract; /* POLICY_CONTRACT */
    const char *name;                /* [a-z0-9-]+, unique */
    const char *summary;             /* one line, with the source */
    uint32_t flags;
    uint32_t needs; /* CAP_ bits */
    size_t state_size_bytes;
    size_t request_state_size_bytes;
    const struct policy_param *params; /* NULL: none */
    /* For the choices of the first parameter, one "key=value,..." each: what the other parameters
     * are when that choice is given and they are not. NULL, and an empty text: their defaults. */
    const char *const *presets;

    /* Optional hooks; NULL does what is written. init: nothing. Returns 0 or -errno. */
    int (*init)(struct sched *s);
    void (*exit)(struct sched *s); /* also after failed init. NULL: nothing */
    /* NULL is not allowed for request_arrived and schedule. */
    void (*request_arrived)(struct sched *s, const struct request *r);
    /* A launch ended or yielded. NULL: nothing (device_free_slots tells the same). */
    void (*launch_done)(struct sched *s, const struct launch *l);
    /* A pass crossed the model: tokens are out, requests may have FINISHED. NULL: nothing. */
    void (*pass_done)(struct sched *s, const struct pass *p);
    /* A compile or load finished. NULL: nothing. */
    void (*resident_ready)(struct sched *s, struct resident_key key);
    /* A swap ended: out when r->kv_swapped, else back in. NULL: nothing. */
    void (*kv_moved)(struct sched *s, const struct request *r);
    /* The user gave up on a request that is in no live pass; it is SHED when this is called. It
     * must leave every queue. NULL: allowed only for policies that keep no queue. */
    void (*request_cancelled)(struct sched *s, const struct request *r);
    void (*schedule)(struct sched *s);
    void (*dump)(struct sched *s, FILE *out); /* on a stall or error. NULL: nothing */
};

/* ---- plug-ins ---- */

/* A policy outside the tree is a shared object that defines this one function; `--policy PATH.so`
 * loads it (`xpusim new-policy` writes one to start from). It returns the same static ops at every
 * call and does nothing else: it is called before anything is configured. The ops must have
 * POLICY_CONTRACT, a name that no built-in policy has, a summary, request_arrived and schedule. One
 * that was built with other headers is refused: build it again.
 * The object stays loaded until the process ends, and one process may run it many times, so it
 * keeps everything in sched.state, nothing in static variables. It links against nothing: the
 * inline functions of sim/api are all a policy needs; those helpers of policies/common that
 * allocate take xmalloc, xcalloc and xrealloc from the program. */
const struct policy_ops *xpusim_policy(void);

#endif

/* The scheduling policy contract.
 *
 * A policy is one `const struct policy_ops`. The core notifies it of events by hooks, which only
 * record them. All actions happen in `schedule`, except sched_map and sched_graph, which `init`
 * calls. Any hook may call sched_note, sched_steady and sched_give_up. If the events of an instant
 * changed something that a policy can see, the core calls `schedule` once after all of them. The
 * end of a kernel is no such event, unless its launch ends or yields there; nor is a frame. A
 * policy that waits for time to pass sets a timer. One call does all that there is to do; a policy
 * that acts in steps asks for another call (sched_again).
 *
 * Events of one instant come in this order: kernel done, load done, compile done, pass done
 * (iteration boundary), a session's next turn, arrival, cancellation, timer. Events of one kind are
 * ordered by device, then request id (docs/clauses.md 0.2). So when a launch ends or yields at the
 * instant at which a request arrives, one schedule call sees both.
 *
 * Life of a request, for a policy that runs one request at a time on device d:
 *
 *   request_arrived(r)                    -> remember r
 *   schedule: sched_pass_form(prefill of r) ; sched_launch(pass, d, to the end)
 *   launch_done(l)                        outcome DONE: the device is free; p->op is p->n_ops
 *   ... the host samples (machine.sample_ns_per_token): r->pass is still p, p is on no device, but
 *       nothing of it is left to launch or to cancel (-EINVAL). Other work may begin
 *   pass_done(p)                          r->state is now DECODE, r->generated_tokens 1
 *   schedule: sched_pass_form(decode of r) ; sched_launch(...)        ... until
 *   pass_done(p)                          r->state FINISHED: forget r
 *
 * A stopped launch has outcome YIELDED. Its pass is READY again, at p->op with p->rows_todo rows,
 * for as long as the policy likes. To continue, launch the remaining ops on any device. r->pass is
 * const: keep the struct pass * of sched_pass_form. Example: docs/recipes/preempt-and-resume.c.
 *
 * Memory. KV is reserved when a pass is formed, and -ENOMEM means that too little is free. No hook
 * reports that KV became free; look again in `schedule` after pass_done or kv_moved. If several
 * requests hold KV, the policy must be able to evict some, or they may all wait for each other.
 * Evict a request by sched_kv_move while it is in no live pass; cancel a stopped pass first. A
 * policy that evicts only younger requests finishes the oldest one, and so all of them. One request
 * by itself always fits: a request that cannot fit ends the run when it arrives. While other
 * programs hold memory (machine_state), it is shed instead. Example: docs/recipes/evict.c. Graph
 * blocks take memory from KV. Compiled kernels do not, though a machine may limit their memory. The
 * number of residents is unlimited.
 *
 * Models. A run may have several; request.model says which one a request asks for. A pass has
 * requests of one model: sched_pass_form refuses another (-EINVAL). In shipped policies the first
 * request that they choose determines the model, and others wait for another pass. Shapes and
 * estimates have a model, too. sched_kv_free_tokens counts tokens of the model with most bytes a
 * token, so the result holds for all models. The core loads and evicts weights. A policy is
 * notified of a request when the weights of its model are in memory, so perhaps after requests that
 * arrived later (sim/core/weights.c). Numbered graphs belong to the default model, and compiled
 * attention to one model.
 *
 * Which device runs what (struct device):
 *
 *                         QKV, FFN, HEAD               attention (MHA, and LAYER, which holds it)
 *   chunk_rows 0          any rows, one kernel         any pass
 *   chunk_rows > 0        kernels of so many rows,     any pass, one kernel a launch
 *                         the last one padded
 *   static_attention      the same                     a prefill segment alone in its pass, while
 *                                                      (COMPILED_ATTENTION, request_prefill_target)
 *                                                      is READY (sched_compile): no batch, and
 *                                                      no decode
 *
 * A pass that such a device cannot run whole is launched op by op, with its attention on another
 * device (policies/npu-serial.c, policies/common/hetero.h). A change of device costs
 * machine.sync_ns.
 *
 * A policy acts only through `struct sched`, never through linked symbols. So the same object runs
 * on the virtual-time and the real-time executors, built in or as a .so. Actions return 0 or a
 * negative errno. Each refusal counts a named event, and changes nothing, with one exception: a
 * sched_pass_form that fails at a later segment may have dropped cached prefixes for the first
 * ones. Everything that a policy gets is read-only except its state and request.own.
 *
 * Errors used:
 *   -EBUSY      device or pass is busy
 *   -EINVAL     malformed or impossible
 *   -ENOMEM     no KV space
 *   -ENOENT     resident missing, or a session without KV
 *   -EALREADY   nothing to do: done, under way or requested already
 *   -EPERM      needs a capability that the machine lacks, or is not allowed in this hook
 *   -ENODEV     from init: the machine lacks a device that the policy is to use
 */
#pragma once

#include <math.h>
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
struct policy_ops;

/* ---- residents: things that must be in memory before work can use them ---- */

enum resident_kind {
    RESIDENT_COMPILED_ATTENTION, /* a: prompt length, b: model. Static NPU attention of that length
                                  */
    RESIDENT_GRAPH_BLOCK,        /* a: block, b: graph version */
    RESIDENT_WEIGHTS /* a: model. In runs of several models; the core loads and evicts them */
};

enum resident_state { RESIDENT_ABSENT, RESIDENT_PENDING, RESIDENT_READY };

struct resident_key {
    enum resident_kind kind;
    uint32_t a, b;
};

/* A version of graphs. Its kernels are static and have `rows` rows. The model's n layers are
 * divided into n_blocks blocks: block i has layers i n / n_blocks up to (i + 1) n / n_blocks, the
 * last one excluded. The last block also has the head. */
struct graph_shape {
    uint32_t rows, n_blocks;
};
#define GRAPH_VERSIONS 8 /* versions are 1 to GRAPH_VERSIONS */

/* ---- estimates ---- */

/* The cost of one op as a policy sees it: that of the kernel-time model, with the bias and noise of
 * the run (sim.annotation). docs/clauses.md calls it the annotation. */
struct estimate {
    int64_t t_ns;         /* isolated duration */
    double bytes_per_s;   /* DDR demand */
    double flop_per_byte; /* arithmetic intensity */
    double watts;
    bool memory_bound; /* intensity below the device's ridge I* (clauses.md B.9) */
};
#define ESTIMATE_FIELDS(X, W) X(t_ns), X(bytes_per_s), X(flop_per_byte), X(watts), X(memory_bound)

/* ---- actions ---- */

/* How to stop a launch. All false: at its next yield point, without loss of work. */
struct preempt_spec {
    bool now;     /* stop inside the running kernel. The device needs can_reset or can_suspend */
    bool discard; /* with now: the kernel's work is lost and must be repeated (REEF) */
    bool drain; /* without now: let kernels in the device's queue finish (XSched level 1), although
                   the device could withdraw them (level 2) */
};

/* In the order of the decision log. */
#define PREEMPT_SPEC_FIELDS(X) X(now), X(discard), X(drain)

/* A part of the KV: of a request, from from_token on; or of a session between two turns. */
struct kv_part {
    const struct request *request;
    uint32_t from_token;
    uint32_t session_id; /* with of_session, instead of the above */
    bool of_session;
};

/* Where to move KV (sched_kv_move). */
enum kv_place {
    KV_MEMORY, /* in memory: a session's is pinned, a request's is read back */
    KV_CACHE, /* in memory, but may be dropped in the order of sched_kv_rank: the initial place of a
                 session's KV. Not for live requests */
    KV_FLASH, /* written to flash through the loader */
    KV_NOWHERE /* dropped; a request computes it again */
};

/* The calls of calls.def, which documents them. */
struct sched_api {
    size_t size; /* sizeof(struct sched_api); stays first */
#define CALL(result, name, parameters, arguments) result(*name) parameters;
#define TELL(name, parameters, arguments) void(*name) parameters;
#include "sim/api/calls.def"
#undef CALL
#undef TELL
};

/* A policy's handle of its run. One per run. */
struct sched {
    const struct sched_api *api;
    int64_t now_ns;
    const struct machine *machine;
    const struct llm *llm;
    uint64_t epoch; /* instants at which schedule was called, this one included */
    uint64_t seed;  /* for policies that draw: derived from the run's seed and the policy's name */
    void *state;    /* policy_ops.state_size_bytes zeroed bytes */
    const void *context; /* from the caller of the run (such as a log to replay), or NULL */
    const struct policy_params *params;
    uint32_t kv_block_tokens;        /* size of a KV block, the unit of reservation */
    const struct policy_ops *policy; /* the policy itself */
    const struct llm *const *models; /* the run's; models[0] is llm, the default one */
    uint32_t n_models;
    uint64_t core; /* of no use to a policy */
    /* The model that drafts for requests of other models (SEGMENT_DRAFT), if the policy's parameter
     * `drafter` names a model of the run. Its weights stay in memory, and a token of another model
     * takes KV of both models. 0: none. */
    uint32_t draft_model;
    /* How often a waiting request found another cached prefix, or lost it (request.reused_tokens).
     * An order by remaining work looks at its requests again only if that is more than before. */
    uint64_t reuse_changes;
};

#define CALL(result, name, parameters, arguments)                                                  \
    static inline result sched_##name parameters                                                   \
    {                                                                                              \
        return s->api->name arguments;                                                             \
    }
#define TELL(name, parameters, arguments)                                                          \
    static inline void sched_##name parameters                                                     \
    {                                                                                              \
        s->api->name arguments;                                                                    \
    }
#include "sim/api/calls.def"
#undef CALL
#undef TELL

/* Estimates the cost of `rows` rows of one op of a pass of this shape on a device, with static
 * padding. rows = 0: all rows of the op. Equal arguments give equal estimates. O(1). */
static inline int sched_estimate(struct sched *s, const struct work_shape *shape, enum op_kind op,
                                 uint8_t device, uint32_t rows, struct estimate *out)
{
    uint32_t own = device < s->machine->n_devices ? s->machine->devices[device].chunk_rows : 0;
    return sched_estimate_graph(s, shape, op, device, rows, own, 0, out);
}

/* All remaining ops of a pass, with the device's defaults. */
static inline struct launch_spec sched_launch_rest(const struct sched *s, struct pass *p,
                                                   uint8_t device, enum yield_point yield)
{
    return (struct launch_spec){.pass = p,
                                .device = device,
                                .n_ops = p->n_ops - p->op,
                                .rows = p->rows_todo,
                                .yield = yield,
                                .chunk_rows = s->machine->devices[device].chunk_rows,
                                .inflight = 1};
}

static inline const struct llm *sched_model(const struct sched *s, uint32_t model)
{
    return s->models[model];
}

/* Bytes of a token's KV, including the drafting model's. */
static inline double sched_kv_token_bytes(const struct sched *s, uint32_t model)
{
    uint32_t draft = s->draft_model;
    double own = sched_model(s, model)->kv_bytes_per_token;
    return draft > 0 && draft != model ? own + sched_model(s, draft)->kv_bytes_per_token : own;
}

/* Bytes of a sequence's recurrent states, including those of the drafting model. */
static inline double sched_kv_state_bytes(const struct sched *s, uint32_t model)
{
    uint32_t draft = s->draft_model;
    double own = sched_model(s, model)->kv_state_bytes;
    return draft > 0 && draft != model ? own + sched_model(s, draft)->kv_state_bytes : own;
}

/* KV space that these states take, in tokens of the model and whole blocks. */
static inline uint64_t sched_kv_state_tokens(const struct sched *s, uint32_t model)
{
    double block_bytes = s->kv_block_tokens * sched_kv_token_bytes(s, model);
    return (uint64_t)ceil(sched_kv_state_bytes(s, model) / block_bytes) * s->kv_block_tokens;
}

static inline struct kv_part kv_of(const struct request *r)
{
    return (struct kv_part){.request = r};
}

static inline struct kv_part kv_of_session(uint32_t session_id)
{
    return (struct kv_part){.session_id = session_id, .of_session = true};
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

/* Parsed values, in table order. INT, BOOL and CHOICE are exact in a double. */
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
/* For speed only: these promises save messages if the policy runs in its own process. LATE:
 * launch_done and pass_done may be delayed until right before the next call of `schedule`. After
 * `schedule` has launched all of a pass, it reads neither the pass nor the launch before its next
 * action; `out` of that launch may be set as late as that. */
#define POLICY_F_LATE 4u
/* With LATE: `schedule` would do nothing if the only events are ends of launches, each the last of
 * its pass. So the call is left out, and launch_done comes with the next other event. */
#define POLICY_F_SLEEPS 8u

/* Capabilities a policy needs; an executor that lacks one refuses it by name. */
#define CAP_SPANS 1u     /* launches of a part of a pass */
#define CAP_ROW_SPLIT 2u /* shares of one op on several devices */
#define CAP_YIELD_KERNEL 4u
#define CAP_COMPILE 8u
#define CAP_LOAD 16u
#define CAP_KV_MOVE 32u
#define CAP_RESET 64u
#define CAP_VERIFY 128u
#define CAP_DEVICE(kind) (1u << (16 + (kind))) /* a device of that kind */
#define CAP_NPU CAP_DEVICE(DEVICE_KIND_NPU)
#define CAP_IGPU CAP_DEVICE(DEVICE_KIND_IGPU)
/* Needed by single actions, not by policies: an executor without them refuses those actions. */
#define CAP_INFLIGHT 2048u     /* several kernels in a device's queue */
#define CAP_SUSPEND 4096u      /* stopping inside a kernel and continuing it later */
#define CAP_COLUMN_SPLIT 8192u /* shares of an op's weights on several devices */

/* ---- which contract this is ---- */

/* Incremented when the meaning of a member changes. */
#define POLICY_API_VERSION 5
/* A hash of every struct and enum of device.h, pass.h, request.h and this file, and of the helpers
 * that plug-ins share with the program (policies/common, plugin.list). `make generate` writes it,
 * so that no change goes unnoticed. New members of these structs go to the end. */
#define POLICY_LAYOUT 1029880262u

/* Structs that a policy and its core both read or write. */
#define POLICY_CONTRACT_STRUCTS(X)                                                                 \
    X(sched_api)                                                                                   \
    X(sched)                                                                                       \
    X(request)                                                                                     \
    X(pass)                                                                                        \
    X(launch)                                                                                      \
    X(segment)                                                                                     \
    X(pass_spec)                                                                                   \
    X(launch_spec)                                                                                 \
    X(preempt_spec)                                                                                \
    X(kv_part)                                                                                     \
    X(machine_state)                                                                               \
    X(machine)                                                                                     \
    X(llm)
#define POLICY_CONTRACT_COUNT_(name) +1
#define POLICY_CONTRACT_SIZE_(name) sizeof(struct name),

/* Describes the headers that a policy was compiled with. It stays the first member of policy_ops,
 * so that every later xpusim can read it and explain why it refuses a policy. */
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
    size_t request_state_size_bytes;   /* of request.own */
    const struct policy_param *params; /* NULL: none */
    /* For each choice of the first parameter, a "key=value,..." that replaces the defaults of the
     * other parameters. NULL or an empty text: no change. */
    const char *const *presets;

    /* Hooks. Each comment says what NULL means. init returns 0 or -errno; NULL: nothing. */
    int (*init)(struct sched *s);
    void (*exit)(struct sched *s); /* after init, even if it failed. NULL: nothing */
    /* NULL is not allowed for request_arrived and schedule. */
    void (*request_arrived)(struct sched *s, const struct request *r);
    /* A launch ended or yielded. NULL: nothing (sched_device_free_slots shows the free slot). */
    void (*launch_done)(struct sched *s, const struct launch *l);
    /* A pass is DONE: its tokens are available, and requests may have FINISHED. Or it is CANCELLED:
     * the users of all its requests gave up while it was on no device, and its requests are SHED.
     * NULL: nothing. */
    void (*pass_done)(struct sched *s, const struct pass *p);
    /* A compile or load finished. NULL: nothing. */
    void (*resident_ready)(struct sched *s, struct resident_key key);
    /* A swap ended: out if r->kv_swapped, else in. NULL: nothing. */
    void (*kv_moved)(struct sched *s, const struct request *r);
    /* The user gave up on a request that is in no live pass; it is SHED when this is called. Remove
     * it from every queue. A request in a pass is removed in pass_done instead. NULL: allowed only
     * for policies that keep no queue. */
    void (*request_cancelled)(struct sched *s, const struct request *r);
    void (*schedule)(struct sched *s);
    void (*dump)(struct sched *s, FILE *out); /* on a stall or error. NULL: nothing */
    /* For `xpusim ablate`: a "key=value,..." for each mechanism, which turns it off. Ends with
     * NULL. NULL: none. */
    const char *const *ablations;
};

/* ---- plug-ins ---- */

/* A policy outside the tree is a shared object that defines this one function; `--policy PATH.so`
 * loads it (`xpusim new-policy` writes one to start from). It returns the same static ops at every
 * call and does nothing else: it is called before anything is configured. The ops must have
 * POLICY_CONTRACT, a name that no built-in policy has, a summary, request_arrived and schedule. An
 * object that was built with other headers is refused: build it again. The object stays loaded
 * until the process ends, and one process may run it many times, so it keeps everything in
 * sched.state, nothing in static variables. It links against nothing, because all functions of
 * sim/api are inline. Helpers of policies/common that allocate use xmalloc, xcalloc and xrealloc of
 * the program. */
const struct policy_ops *xpusim_policy(void);

/* The scheduling policy contract.
 *
 * A policy is one `const struct policy_ops`. The core notifies it of events; notifications only
 * record. All actions happen in `schedule` (but sched_map and sched_graph, which `init` calls). Any
 * hook may count (sched_note), promise (sched_steady) and give up (sched_give_up). The core calls
 * `schedule` once after all events of an instant that changed something a policy can see. The end
 * of a kernel inside a launch does not count, unless the launch ends or yields there; frames do not
 * count either. A policy that waits for time to pass sets a timer. One call does all that there is
 * to do; a policy that acts in steps asks for another (sched_again).
 *
 * Event order at one instant is: kernel done, load done, compile done, pass done (iteration
 * boundary), a session's next turn, arrival, cancellation, timer. Within a kind it is by device,
 * then request id (docs/clauses.md 0.2). So when a launch ends or yields at the instant at which a
 * request arrives, one schedule call sees both.
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
 * A launch that was stopped ends with outcome YIELDED before its end. Its pass is READY again, at
 * p->op with p->rows_todo rows, for as long as the policy likes. To continue, launch the rest, on
 * any device. r->pass is const: keep the struct pass * of sched_pass_form.
 * docs/recipes/preempt-and-resume.c is such a policy.
 *
 * Memory. KV is reserved when a pass is formed, and -ENOMEM means that too little is free. No
 * hook says that KV became free; look again in `schedule` after pass_done or kv_moved. A policy
 * that lets several requests hold KV must be able to take some back, or all of them wait for each
 * other. It does so by sched_kv_move of a request in no live pass; a stopped pass is cancelled
 * first. A policy that takes only from younger requests keeps the oldest going, and so all of them.
 * One request by itself always fits: one that cannot ends the run when it comes. While other
 * programs have memory (machine_state), it is shed instead.
 * docs/recipes/evict.c is such a policy. Compiled kernels take no KV (a machine may state a budget
 * of their own); graph blocks do. The number of residents is not limited.
 *
 * Models. A run may have several; request.model says which one a request asks for. A pass has
 * requests of one model: sched_pass_form refuses another (-EINVAL). Shipped policies follow one
 * rule: the first request that they choose decides, and those of other models wait for another
 * pass. Shapes and estimates have a model, too. KV in tokens is counted for the model that needs
 * most bytes a token, so that what sched_kv_free_tokens promises is there for all of them. Weights
 * are loaded and evicted by the core; a policy is notified of a request when those of its model are
 * there, so perhaps after requests that arrived later (sim/core/weights.c). Numbered
 * graphs are the default model's, and compiled attention is that of one model.
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
 * So a pass that such a device cannot do whole is launched op by op, its attention elsewhere
 * (policies/npu-serial.c, policies/common/hetero.h). A change of device costs machine.sync_ns.
 *
 * A policy acts only through `struct sched`, never through linked symbols. So the same object runs
 * on the virtual-time and the real-time executors, built in or as a .so. Actions return 0 or a
 * negative errno and leave everything unchanged when they fail; each refusal counts a named event.
 * One thing may be gone: a pass whose first segments had room takes it from cached prefixes, also
 * if a later segment has none.
 * Everything a policy is given is read-only except its state and its part of a request.
 *
 * Errors used:
 *   -EBUSY      device or pass not free
 *   -EINVAL     malformed or impossible
 *   -ENOMEM     no KV space
 *   -ENOENT     resident missing, or a session without KV
 *   -EALREADY   nothing to do: it is there, on its way or asked for
 *   -EPERM      needs a capability the machine lacks, or is not allowed in this hook
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

/* A version of graphs. Its kernels are static and have `rows` rows. Its n layers are divided into
 * n_blocks blocks. Block i holds those from i n / n_blocks up to (i + 1) n / n_blocks; the last one
 * also holds the head. */
struct graph_shape {
    uint32_t rows, n_blocks;
};
#define GRAPH_VERSIONS 8 /* that can have one: 1 to GRAPH_VERSIONS */

/* ---- what a policy can ask ---- */

/* The cost of one op as a policy may know it: the kernel-time model's, with the bias and noise of
 * the run (sim.annotation). Clauses call it the annotation. */
struct estimate {
    int64_t t_ns;         /* isolated duration */
    double bytes_per_s;   /* DDR demand */
    double flop_per_byte; /* arithmetic intensity */
    double watts;
    bool memory_bound; /* intensity below the device's ridge I* (clauses.md B.9) */
};
#define ESTIMATE_FIELDS(X, W) X(t_ns), X(bytes_per_s), X(flop_per_byte), X(watts), X(memory_bound)

/* ---- actions ---- */

/* How a launch is to stop. All false: at its next yield point, and what it did is kept. */
struct preempt_spec {
    bool now;     /* inside the running kernel. The device needs can_reset or can_suspend */
    bool discard; /* with now: that kernel's work is lost and done again later (REEF) */
    bool drain;   /* without now: kernels handed over ahead run first (XSched level 1), although the
                     device could take them back (level 2) */
};

/* In the order of the decision log. */
#define PREEMPT_SPEC_FIELDS(X) X(now), X(discard), X(drain)

/* A part of the KV: a request's from a token on, or the KV that a session's last turn left until
 * its next one comes. */
struct kv_part {
    const struct request *request;
    uint32_t from_token;
    uint32_t session_id; /* with of_session, and nothing of the above */
    bool of_session;
};

/* Where KV is, or goes. */
enum kv_place {
    KV_MEMORY, /* kept there */
    KV_CACHE,  /* kept there while memory lasts, dropped in the order of sched_kv_rank: so that of a
                  session begins. Not of a request that is here */
    KV_FLASH,  /* written to flash through the loader */
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
    uint64_t epoch;      /* instants at which schedule was called, this one included */
    uint64_t seed;       /* for policies that draw: of the run's seed and the policy's name */
    void *state;         /* policy_ops.state_size_bytes zeroed bytes */
    const void *context; /* from the run's owner (a log to replay), or NULL */
    const struct policy_params *params;
    uint32_t kv_block_tokens;        /* KV is reserved in blocks of so many tokens */
    const struct policy_ops *policy; /* the policy itself */
    const struct llm *const *models; /* of the run: models[0] is llm, the default one */
    uint32_t n_models;
    uint64_t core; /* of no use to a policy */
    /* The model that drafts for requests of others (segments DRAFT), where the policy's parameter
     * `drafter` asks for a model of the run. Its weights stay in memory, and a token of another
     * model takes KV of both. 0: none. */
    uint32_t draft_model;
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

/* Estimated cost of `rows` rows of one op of a pass of this shape on a device. rows = 0: all rows
 * of that op. Includes the device's static padding. Asking twice gives the same answer. O(1). */
static inline int sched_estimate(struct sched *s, const struct work_shape *shape, enum op_kind op,
                                 uint8_t device, uint32_t rows, struct estimate *out)
{
    uint32_t own = device < s->machine->n_devices ? s->machine->devices[device].chunk_rows : 0;
    return sched_estimate_graph(s, shape, op, device, rows, own, 0, out);
}

/* The rest of a pass, as the device runs it by default. */
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

/* The model of a shape or a request. */
static inline const struct llm *sched_model(const struct sched *s, uint32_t model)
{
    return s->models[model];
}

/* Bytes of a token's KV of a model, and of that of the model that drafts for it. */
static inline double sched_kv_token_bytes(const struct sched *s, uint32_t model)
{
    uint32_t draft = s->draft_model;
    double own = sched_model(s, model)->kv_bytes_per_token;
    return draft > 0 && draft != model ? own + sched_model(s, draft)->kv_bytes_per_token : own;
}

/* Bytes of the states that a sequence of a model has next to its KV, as above. */
static inline double sched_kv_state_bytes(const struct sched *s, uint32_t model)
{
    uint32_t draft = s->draft_model;
    double own = sched_model(s, model)->kv_state_bytes;
    return draft > 0 && draft != model ? own + sched_model(s, draft)->kv_state_bytes : own;
}

/* KV that these states take, in tokens of the model, in whole blocks. */
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
/* For speed only: what a policy promises saves messages where it runs in a process of its own.
 * LATE: launch_done and pass_done would do the same right before the next call of schedule. And
 * where schedule has launched all of a pass, it looks at neither the pass nor the launch before its
 * next action; `out` of that launch may be set as late as that. */
#define POLICY_F_LATE 4u
/* With LATE: schedule would do nothing where launches ended, each the last of its pass, and nothing
 * else happened. launch_done is called when more happens. */
#define POLICY_F_SLEEPS 8u

/* Capabilities a policy needs; an executor that lacks one refuses it by name. */
#define CAP_SPANS 1u     /* launches of less than a pass */
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
/* Not needs of policies but what single actions ask for: an executor without them refuses those. */
#define CAP_INFLIGHT 2048u     /* kernels handed to a device ahead of the running one */
#define CAP_SUSPEND 4096u      /* stopping inside a kernel and going on there */
#define CAP_COLUMN_SPLIT 8192u /* shares of an op's weights on several devices */

/* ---- which contract this is ---- */

/* Raised when a member comes to mean something else. */
#define POLICY_API_VERSION 5
/* A hash of every struct and enum of device.h, pass.h, request.h and this file, and of the helpers
 * that plug-ins share with the program (policies/common, plugin.list). By `make generate`; so none
 * of them changes unnoticed. Members of the first are appended, never put between. */
#define POLICY_LAYOUT 2242368835u

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

/* Description of the headers that a policy was compiled with. Stays first in policy_ops, so every
 * later xpusim can read it, and refuse in words what does not suit it. */
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
    /* For the choices of the first parameter, one "key=value,..." each: what the other parameters
     * are when that choice is given and they are not. NULL, and an empty text: their defaults. */
    const char *const *presets;

    /* Optional hooks; NULL does what is written. init: nothing. Returns 0 or -errno. */
    int (*init)(struct sched *s);
    void (*exit)(struct sched *s); /* after init, also one that failed. NULL: nothing */
    /* NULL is not allowed for request_arrived and schedule. */
    void (*request_arrived)(struct sched *s, const struct request *r);
    /* A launch ended or yielded. NULL: nothing (device_free_slots has the same information). */
    void (*launch_done)(struct sched *s, const struct launch *l);
    /* A pass crossed the model: tokens are out, requests may have FINISHED. Or it is CANCELLED:
     * the users of all its requests gave up while it was on no device, and its requests are SHED.
     * NULL: nothing. */
    void (*pass_done)(struct sched *s, const struct pass *p);
    /* A compile or load finished. NULL: nothing. */
    void (*resident_ready)(struct sched *s, struct resident_key key);
    /* A swap ended: out when r->kv_swapped, else back in. NULL: nothing. */
    void (*kv_moved)(struct sched *s, const struct request *r);
    /* The user gave up on a request that is in no live pass; it is SHED when this is called. It
     * must leave every queue. One that is in a pass leaves with it (pass_done). NULL: allowed only
     * for policies that keep no queue. */
    void (*request_cancelled)(struct sched *s, const struct request *r);
    void (*schedule)(struct sched *s);
    void (*dump)(struct sched *s, FILE *out); /* on a stall or error. NULL: nothing */
    /* For each mechanism the "key=value,..." that takes it away, ended by NULL: `xpusim ablate`
     * compares the policy with itself so. NULL: none. */
    const char *const *ablations;
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

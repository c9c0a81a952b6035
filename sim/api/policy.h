/* The scheduling policy contract.
 *
 * A policy is one `const struct policy_ops`. The core notifies it of events; notifications only
 * record. All actions happen in `schedule` (but sched_map and sched_graph, which `init` calls). The
 * core calls `schedule` once after all events of an instant that changed something a policy can
 * see. The end of a kernel inside a launch does not count, unless the launch ends or yields there;
 * frames do not count either. A policy that waits for time to pass sets a timer. It calls
 * `schedule` again while the last call acted and did not call sched_rest, up to
 * SCHEDULE_MAX_ROUNDS.
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
 * Memory. KV is reserved when a pass is formed, and -ENOMEM means that there is none. No
 * hook announces it, nor that there is some again (pass_done and kv_moved bring it). A policy that
 * lets several requests hold KV must be able to take some back, or all of them wait for each other.
 * It does so by sched_kv_move of a request in no live pass; a stopped pass is cancelled first. A
 * policy that takes only from younger requests keeps the oldest going, and so all of them. One
 * request by itself always fits: one that cannot ends the run when it comes. docs/recipes/evict.c
 * is such a policy. Compiled kernels take no memory; graph blocks take theirs from KV. The number
 * of residents is not limited.
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
 * The end of `xpusim run` prints refused actions with the reason. An action in a hook is refused
 * too, and the decision log says in which.
 *
 * A policy acts only through `struct sched`, never through linked symbols. So the same object runs
 * on the virtual-time and the real-time executors, built in or as a .so. Actions return 0 or a
 * negative errno and leave everything unchanged when they fail; each refusal counts a named event.
 * Everything a policy is given is read-only except its state and its part of a request.
 *
 * Errors used:
 *   -EBUSY      device or pass not free
 *   -EINVAL     malformed or impossible
 *   -ENOMEM     no KV space
 *   -ENOENT     resident missing
 *   -EALREADY   nothing to do
 *   -EPERM      needs a capability the machine lacks
 */
#pragma once

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
    RESIDENT_COMPILED_ATTENTION, /* a: prompt length. Static NPU attention of that length */
    RESIDENT_GRAPH_BLOCK         /* a: block, b: graph version */
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

struct estimate {
    int64_t t_ns;         /* annotated duration, alone on the machine */
    double bytes_per_s;   /* annotated DDR demand */
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
    KV_CACHE,  /* kept there while memory lasts, the oldest dropped first: so that of a session
                  begins. Not of a request that is here */
    KV_FLASH,  /* written to flash through the loader */
    KV_NOWHERE /* dropped; a request computes it again */
};

struct sched_api {
    size_t size; /* sizeof(struct sched_api); stays first */
    int (*estimate)(struct sched *s, const struct work_shape *shape, enum op_kind op,
                    uint8_t device, uint32_t rows, uint32_t chunk_rows, uint8_t graph,
                    struct estimate *out);
    enum resident_state (*resident_state)(struct sched *s, struct resident_key key);
    uint64_t (*kv_free_tokens)(struct sched *s);
    uint64_t (*kv_capacity_tokens)(struct sched *s);
    uint32_t (*device_free_slots)(struct sched *s, uint8_t device);
    int64_t (*oracle_output_tokens)(struct sched *s, const struct request *r);
    uint32_t (*draft_tokens)(struct sched *s, const struct request *r);

    int (*pass_form)(struct sched *s, const struct pass_spec *spec, struct pass **out);
    int (*pass_cancel)(struct sched *s, struct pass *p);
    int (*launch)(struct sched *s, const struct launch_spec *spec, const struct launch **out);
    int (*preempt)(struct sched *s, const struct launch *l, struct preempt_spec how);
    int (*compile)(struct sched *s, struct resident_key key);
    int (*load)(struct sched *s, struct resident_key key, double bytes);
    int (*map)(struct sched *s, struct resident_key key, double bytes);
    int (*resident_evict)(struct sched *s, struct resident_key key);
    int (*kv_move)(struct sched *s, struct kv_part part, enum kv_place to);
    int (*set_timer)(struct sched *s, int64_t at_ns);
    int (*shed)(struct sched *s, const struct request *r);
    int (*note)(struct sched *s, const char *counter, uint64_t add);
    void (*give_up)(struct sched *s, const char *why);
    int (*occupy)(struct sched *s, uint8_t device, int64_t until_ns);
    int (*graph)(struct sched *s, uint8_t version, struct graph_shape shape);
    void (*rest)(struct sched *s);
    void (*steady)(struct sched *s, int64_t until_ns);
};

/* A policy's handle of its run. One per run. */
struct sched {
    const struct sched_api *api;
    int64_t now_ns;
    const struct machine *machine;
    const struct llm *llm;
    uint64_t epoch;      /* instants at which schedule was called, this one included */
    uint64_t seed;       /* for policies that draw: rng_key(seed, RNG_POLICY, ...) */
    void *state;         /* policy_ops.state_size_bytes zeroed bytes */
    const void *context; /* from the run's owner (a log to replay), or NULL */
    const struct policy_params *params;
    uint32_t kv_block_tokens;        /* KV is reserved in blocks of so many tokens */
    const struct policy_ops *policy; /* the policy itself */
};

/* Annotated cost of `rows` rows of one op of a pass of this shape on a device. rows = 0: all rows
 * of that op. Includes the device's static padding. Asking twice gives the same answer. O(1). */
static inline int sched_estimate(struct sched *s, const struct work_shape *shape, enum op_kind op,
                                 uint8_t device, uint32_t rows, struct estimate *out)
{
    uint32_t own = device < s->machine->n_devices ? s->machine->devices[device].chunk_rows : 0;
    return s->api->estimate(s, shape, op, device, rows, own, 0, out);
}

/* The estimate on a numbered graph, whose kernels have chunk_rows rows even where one is asked for.
 */
static inline int sched_estimate_graph(struct sched *s, const struct work_shape *shape,
                                       enum op_kind op, uint8_t device, uint32_t rows,
                                       uint32_t chunk_rows, uint8_t graph, struct estimate *out)
{
    return s->api->estimate(s, shape, op, device, rows, chunk_rows, graph, out);
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

/* The largest KV of a single request: all of it except what `init` declared with sched_map. */
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

/* Puts a span of a pass on a device. out may be NULL. A launch that continues a pass on another
 * device than the previous op ran on pays the barrier (machine.sync_ns); every launch pays
 * schedule_ns + submit_ns + completion_ns on its device. */
static inline int sched_launch(struct sched *s, const struct launch_spec *spec,
                               const struct launch **out)
{
    return s->api->launch(s, spec, out);
}

/* Asks a launch to stop.
 *
 * Without `now`, launch_done comes with YIELDED at its next yield point (DONE if it ends first). It
 * comes with WITHDRAWN at once if the launch had not started and the device can withdraw.
 *
 * With `now`, launch_done comes after the device's reset_ns: with RESET where the work is
 * discarded, else with YIELDED. Then the kernel continues where it stopped when its pass is next
 * launched from there on the same device. On another device it starts over.
 *
 * Errors: -EPERM where the device cannot; -EALREADY when already asked; -EINVAL for facts that do
 * not fit together. */
static inline int sched_preempt(struct sched *s, const struct launch *l, struct preempt_spec how)
{
    return s->api->preempt(s, l, how);
}

/* Starts compiling on the one compiler thread, FIFO; resident_ready follows. Time: compile_fixed +
 * compile_per_token * key.a. */
static inline int sched_compile(struct sched *s, struct resident_key key)
{
    return s->api->compile(s, key);
}

/* Starts loading `bytes` > 0 through the one loader channel, FIFO; resident_ready follows. Bytes
 * beyond the weights come from KV: -ENOMEM when not so much of it is free or a cached prefix. */
static inline int sched_load(struct sched *s, struct resident_key key, double bytes)
{
    return s->api->load(s, key, bytes);
}

/* Declares a resident that was loaded before the run began: only in `init` (-EPERM later), ready
 * when the call returns, at no cost. Its bytes count in memory as those of a load do. Graphs
 * declared in this way are the run's copy of the weights: the larger of the two counts. */
static inline int sched_map(struct sched *s, struct resident_key key, double bytes)
{
    return s->api->map(s, key, bytes);
}

/* Says what a version of graphs is, for executors that build it before the run begins: real ones
 * refuse graphs of which nothing was said. Only in `init` (-EPERM later). -EINVAL: no such version,
 * no rows, no block or more than layers, or said twice. A launch on it must then have its rows as
 * chunk_rows (-EINVAL). */
static inline int sched_graph(struct sched *s, uint8_t version, struct graph_shape shape)
{
    return s->api->graph(s, version, shape);
}

/* Drops a READY resident, or cancels a PENDING one (running compile or load included). */
static inline int sched_resident_evict(struct sched *s, struct resident_key key)
{
    return s->api->resident_evict(s, key);
}

static inline struct kv_part kv_of(const struct request *r)
{
    return (struct kv_part){.request = r};
}

static inline struct kv_part kv_of_session(uint32_t session_id)
{
    return (struct kv_part){.session_id = session_id, .of_session = true};
}

/* Moves KV.
 *
 * A request must be in no live pass.
 *   NOWHERE  keeps its first from_token tokens; if it decoded it is QUEUED again with prompt +
 *            generated to prefill
 *   FLASH    takes all of it: kv_swapped turns true, and kv_moved is called when it is out and its
 *            space free
 *   MEMORY   reads it back from flash: kv_swapped turns false, and kv_moved is called when it is
 *            in; -ENOMEM without space
 * -EINVAL when the KV is not where that can begin.
 *
 * A session must be between two turns. Its KV takes memory until it is on flash. A turn that comes
 * before then finds it in memory; a later turn finds it on flash (kv_swapped). Errors:
 *   -ENOENT    the session has none: no turn will come, prefix reuse is off, or it gave way already
 *   -EALREADY  it is there, or on its way
 * O(1) for the turn that finished last, else O(sessions between turns). */
static inline int sched_kv_move(struct sched *s, struct kv_part part, enum kv_place to)
{
    return s->api->kv_move(s, part, to);
}

/* `schedule` is called at at_ns >= now, in addition to other calls. A timer cannot be taken back.
 */
static inline int sched_set_timer(struct sched *s, int64_t at_ns)
{
    return s->api->set_timer(s, at_ns);
}

/* For speed only; called in `schedule`. Declares that another call at this instant would be a
 * no-op, if none of this call's actions was refused: the policy would not act, and change nothing
 * that it decides by. The core then skips that call. With a decision log, and in runs kernel by
 * kernel, the core makes it all the same, and a policy that acts then fails the run. */
static inline void sched_rest(struct sched *s)
{
    s->api->rest(s);
}

/* For speed only; a policy that never calls it is simulated with the same results, and slower. The
 * policy promises how it continues while one decode pass holds all live requests. It would form
 * another pass of them, launch it whole on the same device, in one call of `schedule`, and change
 * nothing else that it decides by. The promise holds until a request arrives or leaves, a timer
 * fires, KV runs out, or the iteration ends at until_ns or later (TIME_NEVER_NS: always; 0: not any
 * more). The simulator may then run many iterations at once. It notifies the policy of the last
 * one, and its requests have as many more tokens. With a decision log the core asks for every
 * iteration, and a policy that decides otherwise fails the run. Without a log the promise is
 * believed: a broken one gives wrong results and no message. From any hook. */
static inline void sched_steady(struct sched *s, int64_t until_ns)
{
    s->api->steady(s, until_ns);
}

/* An idle device works apart from passes until until_ns > now, for instance on a draft model's
 * forwards. It draws its decode power and takes no launch; then `schedule` is called. Its DDR
 * traffic is not modelled. -EBUSY while anything is on it; -EPERM where the executor runs passes
 * only. */
static inline int sched_occupy(struct sched *s, uint8_t device, int64_t until_ns)
{
    return s->api->occupy(s, device, until_ns);
}

/* Drops a request that is in no live pass. It counts as shed, never as finished. */
static inline int sched_shed(struct sched *s, const struct request *r)
{
    return s->api->shed(s, r);
}

/* Adds to a named counter of the policy's own; at most 16 names; shown in results as
 * counters.policy.NAME. */
static inline int sched_note(struct sched *s, const char *counter, uint64_t add)
{
    return s->api->note(s, counter, add);
}

/* Gives up: the run ends with an error that names the policy and says why. From any hook; later
 * calls change nothing. */
static inline void sched_give_up(struct sched *s, const char *why)
{
    s->api->give_up(s, why);
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
#define CAP_KV_MOVE 32u
#define CAP_RESET 64u
#define CAP_VERIFY 128u
#define CAP_DEVICE(kind) (1u << (16 + (kind))) /* a device of that kind */
#define CAP_NPU CAP_DEVICE(DEVICE_KIND_NPU)
#define CAP_IGPU CAP_DEVICE(DEVICE_KIND_IGPU)
/* Not needs of policies but what single actions ask for: an executor without them refuses those. */
#define CAP_INFLIGHT 2048u /* kernels handed to a device ahead of the running one */
#define CAP_SUSPEND 4096u  /* stopping inside a kernel and going on there */

/* ---- which contract this is ---- */

/* Raised when a member comes to mean something else. */
#define POLICY_API_VERSION 4
/* A hash of every struct and enum of device.h, pass.h, request.h and this file, by `make generate`;
 * so none of them changes unnoticed. Members are appended, never put between. */
#define POLICY_LAYOUT 2807985144u

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
    void (*exit)(struct sched *s); /* also after failed init. NULL: nothing */
    /* NULL is not allowed for request_arrived and schedule. */
    void (*request_arrived)(struct sched *s, const struct request *r);
    /* A launch ended or yielded. NULL: nothing (device_free_slots has the same information). */
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

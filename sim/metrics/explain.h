/* clang-format off: the lists below */
/* Why a request took as long as it did: an observer that splits its latency (arrival to finish)
 * into exclusive causes. The parts sum to the latency to the nanosecond; there is no "other".
 *
 * At each instant a request is in exactly one of three conditions, in this precedence:
 *
 * 1. Served: a launch of its pass is on a device (from launch start to launch end).
 *      host            lead before the first kernel
 *      compute         isolated time of the kernels, as far as its own tokens take it
 *      shared_pass     the rest of that time: the kernels also compute for other requests of its
 *                      pass. Each of them is charged in proportion to what its tokens take
 *      recompute       like compute, of tokens whose KV it had before and lost
 *      device_sharing  actual - isolated of a kernel beside which another launch ran on the same,
 *                      time-shared device, whatever part of it the DDR had
 *      throttling      actual - isolated of a kernel that a power limit held back, whatever
 *                      part of it the DDR had
 *      ddr_slowdown    actual - isolated of every other kernel
 *      graphics        between two kernels, while a frame of the graphics user had the device
 *      killed          from the last kernel that ended to the stop: what was done of a kernel that
 *                      was stopped inside (a reset throws it away, a suspension keeps it), and the
 *                      time that stopping takes
 *    When parts of the pass run at once, the last to finish counts: from the end backwards, the
 *    launch that ends last, until its start; before that, the launch that ends last of those
 * running then. A kernel that is cut in this way has slowdown in proportion, rounded down.
 * 2. All ops of its pass are complete and the host samples: host.
 * 3. Waiting. "Its device" is the one that serves it next; if it is shed while it waits, the device
 *    of the last launch. The first that holds:
 *
 *      eviction     its KV was dropped and it was not served since, or it is swapped out (no hook
 *                   reports a swap: it is seen at the next event)
 *      compile      the static attention of its length and model is being compiled or queued for
 *                   that
 *      graph_load   a graph block is being loaded, and its pass is formed and on no device, or its
 *                   device is idle
 *      kernel_tail  its device runs a launch that was asked to stop (the rest of a kernel, an op, a
 *                   layer, by the launch's yield point)
 *      held_back    its device runs another pass, and the policy could have served it: it decodes,
 *                   and a batch of decodes was formed without it; or it prefills, and another
 *                   device that takes part in prompts of this run is idle
 *      batching     it decodes, and its device runs a pass without it (it came too late to join)
 *      queue_same   its device runs a request of its class (its own pass, if formed, waits)
 *      queue_other  its device runs only requests of the other class
 *      graphics     a frame of the graphics user has its device
 *      host         its device is idle while the host samples for some pass
 *      held         its device is idle: the policy lets it wait (admission, memory, order)
 *
 *    For kernel_tail, held_back, batching and the queues, the request in the way is stored: the
 *    first one of the launch that has run there longest.
 *
 * Conditions are read at events: launches, passes, arrivals, residents. The run's results do not
 * change, but it is simulated kernel by kernel. Cost O(tracked live requests) per launch. */
/* clang-format on */
#pragma once

#include "sim/api/hwmodel.h"
#include "sim/api/observer.h"
#include "sim/base/base.h"

enum explain_cause {
    EXPLAIN_EVICTION,
    EXPLAIN_COMPILE,
    EXPLAIN_GRAPH_LOAD,
    EXPLAIN_KERNEL_TAIL,
    EXPLAIN_HELD_BACK,
    EXPLAIN_BATCHING,
    EXPLAIN_QUEUE_SAME,
    EXPLAIN_QUEUE_OTHER,
    EXPLAIN_HELD,
    EXPLAIN_GRAPHICS,
    EXPLAIN_HOST,
    EXPLAIN_THROTTLING,
    EXPLAIN_DDR_SLOWDOWN,
    EXPLAIN_DEVICE_SHARING,
    EXPLAIN_KILLED,
    EXPLAIN_SHARED_PASS,
    EXPLAIN_RECOMPUTE,
    EXPLAIN_COMPUTE,
    EXPLAIN_CAUSE_COUNT
};
extern const char *const explain_cause_names[EXPLAIN_CAUSE_COUNT]; /* "eviction", ... */
extern const char *const explain_cause_texts[EXPLAIN_CAUSE_COUNT]; /* for people */

/* A request that delayed another one, and for how long: in kernel_tail, in batching and the queues
 * together, and in shared_pass. */
struct explain_blocker {
    uint32_t request_id;
    enum request_class cls;
    int64_t tail_ns, queue_ns, shared_ns;
};

struct explanation {
    uint32_t request_id;
    enum request_class cls;
    bool finished; /* false: shed */
    uint32_t input_tokens, output_tokens;
    int64_t arrival_ns, first_service_ns, first_token_ns; /* the latter two may be TIME_NEVER_NS */
    int64_t end_ns;                   /* with explain_until_first_token: the first token */
    int64_t ns[EXPLAIN_CAUSE_COUNT];  /* sum: end_ns - arrival_ns */
    struct explain_blocker *blockers; /* owned; longest first, then by id */
    size_t n_blockers;
};

#define EXPLAIN_ALL UINT32_MAX

struct explain; /* opaque */

/* Follows one request, or EXPLAIN_ALL. machine is borrowed until explain_free. One object observes
 * one run. */
struct explain *explain_new(const struct machine *machine, uint32_t request_id);
/* Call it before the run for each model, the default one first. `model` gives kernel costs and is
 * borrowed until explain_free. Without models nothing is shared_pass, and all isolated time is
 * compute. */
void explain_price(struct explain *x, const struct hwmodel *model);
/* Call it before the run: explanations end with the first token. */
void explain_until_first_token(struct explain *x);
void explain_free(struct explain *x);
struct observer *explain_observer(struct explain *x);
/* The explanation of a request that has left, or NULL. Owned by x. O(requests). */
const struct explanation *explain_find(const struct explain *x, uint32_t request_id);

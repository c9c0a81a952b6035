/* Observers: metrics, timeline and explanation watch a run and never change it. A new one is passed
 * in struct runner_options (experiments/run/runner.h).
 *
 * The core and the executor call every registered observer in order. All hooks are optional (NULL).
 * Instants never decrease between calls. An observer that sets `wants_kernels` gets a report of
 * every kernel; otherwise the executor may advance over undisturbed kernels at once. Results of the
 * run are the same. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/api/device.h"
#include "sim/api/hwmodel.h"
#include "sim/api/pass.h"
#include "sim/api/policy.h"
#include "sim/api/request.h"

/* One kernel as it really ran. */
struct kernel_record {
    const struct launch *launch;
    enum op_kind op;
    uint32_t layer;
    uint32_t index; /* kernel number within (launch, op) */
    int64_t begin_ns, end_ns;
    int64_t isolated_ns; /* without contention or time sharing */
    double bytes;
};

/* The graphics user's frames: due but the one before is not done (missed), begun, done. */
enum frame_state { FRAME_MISSED, FRAME_STARTED, FRAME_DONE };

/* A pass of decode segments that ran n times, alone on the machine and unchanged but for the
 * growing context. Its requests are still as before the first. */
struct repeat_record {
    const struct launch *launch; /* of the first; not to be asked for its pass's shape */
    uint32_t n;
    int64_t begin_ns;                    /* of the first */
    int64_t lead_ns;                     /* of the host, before each */
    int64_t sample_ns;                   /* of the host, after each */
    const int64_t *isolated_ns;          /* what the launch of each took */
    const int64_t *gap_ns;               /* from the begin of each to its tokens */
    const struct kernel_cost *attention; /* of a layer, in each; `ddr` does not report it */
    uint32_t layers;
    double device_watts, host_watts; /* of each, while the device is busy */
    double tail_watts;               /* of the host, while it samples */
};

#define OBSERVER_DOMAIN_COMPILER MACHINE_MAX_DEVICES
#define OBSERVER_DOMAIN_HOST (MACHINE_MAX_DEVICES + 1)
#define OBSERVER_DOMAINS (MACHINE_MAX_DEVICES + 2)

enum power_phase { POWER_PHASE_IDLE, POWER_PHASE_DECODE, POWER_PHASE_PREFILL, POWER_PHASE_COMPILE };

struct observer {
    void *self;
    bool wants_kernels;

    void (*request_arrived)(void *self, int64_t now_ns, const struct request *r);
    /* The first kernel of the request starts, in launch l, after launch_started and its lead. Not
     * called in a launch that is stopped before. */
    void (*request_first_service)(void *self, int64_t now_ns, const struct request *r,
                                  const struct launch *l);
    /* The tokens of a pass come out now. Its segments have the number of tokens of each request,
     * and the time since the token before. No request has left with them yet. */
    void (*tokens)(void *self, int64_t now_ns, const struct pass *p);
    void (*request_finished)(void *self, int64_t now_ns, const struct request *r);
    void (*request_shed)(void *self, int64_t now_ns, const struct request *r);

    void (*pass_formed)(void *self, int64_t now_ns, const struct pass *p);
    void (*pass_done)(void *self, int64_t now_ns, const struct pass *p);
    void (*launch_submitted)(void *self, int64_t now_ns, const struct launch *l);
    void (*launch_started)(void *self, int64_t now_ns, const struct launch *l, int64_t lead_ns);
    /* isolated_ns: isolated time of its kernels, at the speed that power limits left them; lost_ns:
     * killed work (reset). */
    void (*launch_ended)(void *self, int64_t now_ns, const struct launch *l, int64_t isolated_ns,
                         int64_t lost_ns);
    /* Several equal passes. For the first, these hooks are called:
     *   pass_formed, launch_submitted, launch_started
     *   power, but not for its end, because the device is never idle between the passes
     * For all passes, this hook replaces the five hooks above, `tokens`, and `ddr` for their
     * attention. If an observer has no `repeated` but has one of the five, `tokens`, `ddr` or
     * `power`, the executor reports every pass. */
    void (*repeated)(void *self, int64_t now_ns, const struct repeat_record *r);
    void (*preempt_asked)(void *self, int64_t now_ns, const struct launch *l);
    void (*kernel)(void *self, const struct kernel_record *k);

    /* Tokens whose KV was dropped and must be computed again. */
    void (*kv_lost)(void *self, int64_t now_ns, const struct request *r, uint64_t tokens);
    void (*resident)(void *self, int64_t now_ns, struct resident_key key, enum resident_state to);
    /* Reports `count` intervals of duration_ns each, the last of which ended at or before now. In
     * each the DDR carried `share` of `demand` (sums over all flows). The executor may report
     * several equal kernels together. An observer that needs a time line sets wants_kernels. Then
     * count is 1 and calls come in time order, without gaps except where nothing used the DDR.
     * Bytes of one interval are llround(share * duration), so that sums do not depend on the
     * grouping. */
    void (*ddr)(void *self, int64_t now_ns, uint64_t count, int64_t duration_ns,
                double demand_bytes_per_s, double share_bytes_per_s);
    /* Power limits make everything on devices take 1 / speed as long from now on; 1 at the start.
     */
    void (*speed)(void *self, int64_t now_ns, double speed);
    /* The device's step of frequency does so in addition; 1 at the start, and without steps. */
    void (*step)(void *self, int64_t now_ns, uint8_t device, double speed);
    /* due_ns: when the frame that begins or ends was due; of a missed one, when the frame in its
     * way was. */
    void (*frame)(void *self, int64_t now_ns, uint8_t device, enum frame_state to, int64_t due_ns);
    /* A power domain's state holds from now on. Domains: device indices, then
     * OBSERVER_DOMAIN_COMPILER and OBSERVER_DOMAIN_HOST (polling, sampling). Every domain starts
     * idle at instant 0 (devices draw idle_watts, the two others nothing); the platform's own
     * idle_watts comes on top and is never reported. */
    void (*power)(void *self, int64_t now_ns, uint8_t domain, enum power_phase phase, double watts);
    /* An event of the machine has happened: these are its conditions now. */
    void (*conditions)(void *self, int64_t now_ns, const struct machine_state *now);
    void (*run_ended)(void *self, int64_t now_ns);
};

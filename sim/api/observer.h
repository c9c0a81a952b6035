/* Observers: metrics, timeline and explanation watch a run and never change it. Callers pass theirs
 * in struct runner_options (experiments/run/runner.h).
 *
 * The core and the executor call every registered observer in order. All hooks are optional (NULL).
 * Instants never decrease between calls. An observer that sets `wants_kernels` gets a report of
 * every kernel; otherwise the executor may advance over undisturbed kernels in one step. The run's
 * results are the same either way. */
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

/* States of a frame that the screen draws. It is missed if the frame before it is unfinished when
 * it is due. */
enum frame_state { FRAME_MISSED, FRAME_STARTED, FRAME_DONE };

/* A decode pass that ran n times, with nothing else on the machine and no change but the growing
 * context. Its requests are still in the state before the first run. */
struct repeat_record {
    const struct launch *launch; /* of the first run; do not use its pass's shape */
    uint32_t n;
    int64_t begin_ns;                    /* of the first run */
    int64_t lead_ns;                     /* host time before each launch */
    int64_t sample_ns;                   /* host time after each launch, for sampling */
    const int64_t *isolated_ns;          /* n durations, of each launch */
    const int64_t *gap_ns;               /* n durations, from each begin to its tokens */
    const struct kernel_cost *attention; /* n costs of one layer's attention; not in `ddr` */
    uint32_t layers;
    double device_watts, host_watts; /* while the device is busy */
    double tail_watts;               /* host power while it samples */
};

#define OBSERVER_DOMAIN_COMPILER MACHINE_MAX_DEVICES
#define OBSERVER_DOMAIN_HOST (MACHINE_MAX_DEVICES + 1)
#define OBSERVER_DOMAINS (MACHINE_MAX_DEVICES + 2)

enum power_phase { POWER_PHASE_IDLE, POWER_PHASE_DECODE, POWER_PHASE_PREFILL, POWER_PHASE_COMPILE };

struct observer {
    void *self;
    bool wants_kernels;

    void (*request_arrived)(void *self, int64_t now_ns, const struct request *r);
    /* The first kernel of the request starts in launch l, after launch_started and the launch's
     * lead. Not called if the launch is stopped before that. */
    void (*request_first_service)(void *self, int64_t now_ns, const struct request *r,
                                  const struct launch *l);
    /* The tokens of a pass are available now. The segments give the number of tokens of each
     * request and the time since its previous one. Finished requests are still live. */
    void (*tokens)(void *self, int64_t now_ns, const struct pass *p);
    void (*request_finished)(void *self, int64_t now_ns, const struct request *r);
    void (*request_shed)(void *self, int64_t now_ns, const struct request *r);

    void (*pass_formed)(void *self, int64_t now_ns, const struct pass *p);
    void (*pass_done)(void *self, int64_t now_ns, const struct pass *p);
    void (*launch_submitted)(void *self, int64_t now_ns, const struct launch *l);
    void (*launch_started)(void *self, int64_t now_ns, const struct launch *l, int64_t lead_ns);
    /* isolated_ns: isolated time of its kernels at the speed that power limits allowed; lost_ns:
     * work that a reset discarded. */
    void (*launch_ended)(void *self, int64_t now_ns, const struct launch *l, int64_t isolated_ns,
                         int64_t lost_ns);
    /* Reports several equal passes at once. For the first pass, these hooks are called:
     *   pass_formed, launch_submitted, launch_started
     *   power, except at its end, because the device is not idle between the passes
     * For all passes, this hook replaces the five hooks above, `tokens`, and `ddr` for their
     * attention. If an observer has one of those, or `power`, but no `repeated`, the executor
     * reports every pass by itself. */
    void (*repeated)(void *self, int64_t now_ns, const struct repeat_record *r);
    void (*preempt_asked)(void *self, int64_t now_ns, const struct launch *l);
    void (*kernel)(void *self, const struct kernel_record *k);

    /* Tokens whose KV was dropped and must be computed again. */
    void (*kv_lost)(void *self, int64_t now_ns, const struct request *r, uint64_t tokens);
    void (*resident)(void *self, int64_t now_ns, struct resident_key key, enum resident_state to);
    /* Reports `count` intervals of duration_ns each, the last of which ended at or before now. In
     * each the DDR carried `share` of `demand` (sums over all flows). The executor may report
     * several equal kernels together. With wants_kernels, count is 1 and calls come in time order,
     * without gaps except where nothing used the DDR. An interval's bytes are llround(share *
     * duration), so that sums do not depend on the grouping. */
    void (*ddr)(void *self, int64_t now_ns, uint64_t count, int64_t duration_ns,
                double demand_bytes_per_s, double share_bytes_per_s);
    /* From now on power limits stretch all work on devices by 1 / speed; 1 at the start. */
    void (*speed)(void *self, int64_t now_ns, double speed);
    /* The device's frequency step stretches its work by a further 1 / speed; 1 at the start. */
    void (*step)(void *self, int64_t now_ns, uint8_t device, double speed);
    /* due_ns: when the frame that starts or ends was due. For a missed frame, when the unfinished
     * frame was due. */
    void (*frame)(void *self, int64_t now_ns, uint8_t device, enum frame_state to, int64_t due_ns);
    /* The power of a domain from now on. Domains: device indices, then OBSERVER_DOMAIN_COMPILER and
     * OBSERVER_DOMAIN_HOST (polling, sampling). Every domain starts idle at instant 0 (devices draw
     * idle_watts, the two others nothing); machine.idle_watts comes on top and is never reported.
     */
    void (*power)(void *self, int64_t now_ns, uint8_t domain, enum power_phase phase, double watts);
    /* An event of the machine has changed its conditions to these. */
    void (*conditions)(void *self, int64_t now_ns, const struct machine_state *now);
    void (*run_ended)(void *self, int64_t now_ns);
};

/* Observers: metrics, timeline and explanation watch a run and never change it.
 *
 * The core and the executor call every registered observer in order. All hooks are optional (NULL).
 * Instants never decrease between calls. An observer that sets `wants_kernels` makes the executor
 * report every kernel instead of collapsing undisturbed ones; results of the run stay the same.
 */
#ifndef SIM_API_OBSERVER_H
#define SIM_API_OBSERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/api/device.h"
#include "sim/api/pass.h"
#include "sim/api/policy.h"
#include "sim/api/request.h"

/* One kernel as it really ran. */
struct kernel_record {
    const struct launch *launch;
    enum op_kind op;
    uint32_t layer;
    uint32_t index;      /* kernel number within (launch, op) */
    int64_t begin_ns, end_ns;
    int64_t solo_ns;     /* without contention or time sharing */
    double bytes;
};

/* What filled an interval of a device, the loader or the compiler besides kernels. */
enum host_phase { HOST_PHASE_LEAD /* schedule, submit, barrier, completion of a launch */ };

struct observer {
    void *self;
    bool wants_kernels;

    void (*request_arrived)(void *self, int64_t now_ns, const struct request *r);
    /* First launch of the request started. */
    void (*request_first_service)(void *self, int64_t now_ns, const struct request *r);
    /* n output tokens of r came out now (n > 1 only after a verify segment). gap_ns: since its
     * previous token, or since arrival for the first. */
    void (*tokens)(void *self, int64_t now_ns, const struct request *r, uint32_t n, int64_t gap_ns);
    void (*request_finished)(void *self, int64_t now_ns, const struct request *r);
    void (*request_shed)(void *self, int64_t now_ns, const struct request *r);

    void (*pass_formed)(void *self, int64_t now_ns, const struct pass *p);
    void (*pass_done)(void *self, int64_t now_ns, const struct pass *p);
    void (*launch_submitted)(void *self, int64_t now_ns, const struct launch *l);
    void (*launch_started)(void *self, int64_t now_ns, const struct launch *l, int64_t lead_ns);
    /* solo_ns: what its kernels take without contention; lost_ns: killed work (reset). */
    void (*launch_ended)(void *self, int64_t now_ns, const struct launch *l, int64_t solo_ns,
                         int64_t lost_ns);
    void (*preempt_asked)(void *self, int64_t now_ns, const struct launch *l);
    void (*kernel)(void *self, const struct kernel_record *k);

    /* Tokens whose KV was dropped and must be computed again. */
    void (*kv_lost)(void *self, int64_t now_ns, const struct request *r, uint64_t tokens);
    void (*resident)(void *self, int64_t now_ns, struct resident_key key, enum resident_state to);
    /* The DDR carried share (of demand, sums over all flows) for duration_ns, which ended at or
     * before now. Collapsed kernels of one kind are reported together, so only sums over durations
     * mean anything unless the observer wants kernels; then calls come in time order without gaps
     * except where nothing ran. */
    void (*ddr)(void *self, int64_t now_ns, int64_t duration_ns, double demand_bytes_per_s,
                double share_bytes_per_s);
    /* A device's power state holds from now on. phase: 0 idle, 1 decode, 2 prefill, 3 compile. */
    void (*power)(void *self, int64_t now_ns, uint8_t device, int phase, double watts);
    void (*run_ended)(void *self, int64_t now_ns);
};

#endif

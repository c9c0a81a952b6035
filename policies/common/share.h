/* Processor sharing over a few requests on one device: each request in service has a pass of its
 * own, and all of them progress at once (clauses.md C.1 and C.4 b).
 *
 * On a time-shared device the passes are launched in parallel and the device shares its time. A
 * serial device runs one launch at a time, so sharing is emulated. The request with the least
 * device time so far gets the next turn, a range of ops of about `quantum`. After a turn among
 * several the device rests, so that its total rate is `efficiency`. A turn that began among several
 * counts whole; one that began with one request alone, from the instant at which another joined.
 * With quantum 0 a turn is one op. Attained times of requests that are in service together then
 * differ by at most one turn. A request comes into service when its prompt has found room, and
 * counts from there.
 *
 * Cost of a decision: O(members + ops of a turn). */
#pragma once

#include "policies/common/reqq.h"
#include "sim/api/policy.h"

struct share_member {
    const struct request *request;
    struct pass *pass; /* NULL: the next one is to be formed */
    const struct launch *launch;
    int64_t served_ns; /* device time, from the least of the others on joining */
};

struct share {
    struct reqq waiting; /* arrival order */
    struct share_member members[MACHINE_MAX_SHARED];
    uint32_t n, limit;
    uint8_t device;
    bool emulated; /* the device is serial */
    int64_t quantum_ns;
    double efficiency_frac;
    int64_t rest_until_ns;
    int64_t shared_since_ns; /* two or more have been in service since */
    bool open_ended; /* the running turn was given to a lone request: it ends when another joins */
};

/* limit: requests in service at once, at most MACHINE_MAX_SHARED (and the device's own limit). */
void share_init(struct sched *s, struct share *sh, uint8_t device, uint32_t limit,
                int64_t quantum_ns, double efficiency_frac);
void share_launch_done(struct share *sh, const struct launch *l);
void share_pass_done(struct share *sh, const struct pass *p);
void share_request_cancelled(struct share *sh, const struct request *r);
void share_schedule(struct sched *s, struct share *sh);

/* Processor sharing of one device by a few requests: each request in service has its own pass, and
 * all passes progress at once (clauses.md C.1 and C.4 b).
 *
 * On a time-shared device the passes are launched in parallel and the device shares its time. A
 * serial device runs one launch at a time, so sharing is emulated. The request with the least
 * device time gets the next turn, a range of ops of about `quantum` (0: one op). After a turn the
 * device idles, so that its total rate is `efficiency`. The whole turn counts if it began with
 * several requests in service, else its part after a second one joined. Device times of requests in
 * service then differ by at most one turn. A request enters service when its prompt has KV, and
 * starts with the least device time of the others.
 *
 * Cost of a decision: O(members + ops of a turn). */
#pragma once

#include "policies/common/reqq.h"
#include "sim/api/policy.h"

struct share_member {
    const struct request *request;
    struct pass *pass; /* NULL: to be formed */
    const struct launch *launch;
    int64_t served_ns; /* device time, counted from the least of the others at the start */
};

struct share {
    struct reqq waiting; /* in arrival order */
    struct share_member members[MACHINE_MAX_SHARED];
    uint32_t n, limit;
    uint8_t device;
    bool emulated; /* on a serial device */
    int64_t quantum_ns;
    double efficiency_frac;
    int64_t rest_until_ns;
    int64_t shared_since_ns; /* when the turn's second member came, or its begin among several;
                                TIME_NEVER_NS: not yet */
    bool open_ended; /* the turn began with one request in service: it ends when another joins */
};

/* limit: most requests in service, <= MACHINE_MAX_SHARED; the device's max_shared applies, too. */
void share_init(struct sched *s, struct share *sh, uint8_t device, uint32_t limit,
                int64_t quantum_ns, double efficiency_frac);
void share_launch_done(struct share *sh, const struct launch *l);
void share_pass_done(struct share *sh, const struct pass *p);
void share_request_cancelled(struct share *sh, const struct request *r);
void share_schedule(struct sched *s, struct share *sh);

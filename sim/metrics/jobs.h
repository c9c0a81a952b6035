/* Jobs of a request graph: when the first request of each arrived and its last foreground one
 * ended.
 */
#pragma once

#include "sim/api/request.h"
#include "sim/api/trace.h"
#include "sim/base/map.h"

struct job {
    int64_t first_arrival_ns;
    uint32_t left; /* foreground requests that have not ended */
    uint8_t cls;   /* of the request that began it */
    bool begun, broken;
};

struct jobs {
    struct map members; /* struct job_member by request id; empty without a graph */
    struct job *v;      /* owned */
    uint64_t n_complete;
};

/* Without a graph, or a trace, it costs nothing. */
void jobs_init(struct jobs *j, const struct trace *t);
void jobs_fini(struct jobs *j);
void jobs_arrived(struct jobs *j, const struct request *r);
/* A request has finished, or was shed. The job that is complete now, or NULL: one that lost a
 * foreground request never is. */
const struct job *jobs_left(struct jobs *j, const struct request *r, bool finished);

/* Jobs of a request graph: arrival of the first request, and end of the last foreground request. */
#pragma once

#include "sim/api/request.h"
#include "sim/api/trace.h"
#include "sim/base/map.h"

struct job {
    int64_t first_arrival_ns;
    uint32_t left; /* foreground requests that have not ended */
    uint8_t cls;   /* class of its first request */
    bool begun, broken;
};

struct jobs {
    struct map members; /* struct job_member by request id; empty without a graph */
    struct job *v;      /* owned */
    uint64_t n_complete;
};

/* Does nothing without a trace or a graph. */
void jobs_init(struct jobs *j, const struct trace *t);
void jobs_fini(struct jobs *j);
void jobs_arrived(struct jobs *j, const struct request *r);
/* Call it when a request finished or was shed. Returns the job if that completes it, else NULL. A
 * job with a shed foreground request never completes. */
const struct job *jobs_left(struct jobs *j, const struct request *r, bool finished);

/* Replays a run that several equal machines served, with the rule of its queue and one simulation
 * per replica.
 *
 * A replica's past does not depend on later arrivals. So a simulation of the requests sent before
 * an arrival gives those outstanding at it. */
#include <stdlib.h>

#include "experiments/validation/run_score.h"
#include "sim/base/arena.h"
#include "sim/base/units.h"

struct replica {
    struct measured_run run;            /* its requests, with ids from 0 */
    uint32_t *place;                    /* owned; index of each in the whole run */
    struct measured_latency *simulated; /* owned; of the first `known` requests */
    size_t known;
};

/* Input of every simulation of the run. */
struct replay {
    const struct config *config;
    const struct config_policy *policy;
    const struct measured_run *run;
    uint64_t seed;
    struct replica *replicas;
};

static void send(struct replica *r, const struct measured_run *run, size_t i)
{
    struct trace *t = &r->run.trace;
    struct trace_row row = run->trace.rows[i];
    row.request_id = (uint32_t)t->n;
    row.session_id = (uint32_t)t->n;
    r->place[t->n] = (uint32_t)i;
    t->rows[t->n++] = row;
    t->n_first = t->n;
}

static int simulate(const struct replay *x, struct replica *r, size_t n, struct err *e)
{
    r->known = n;
    return n == 0 ? 0 : run_replay_one(x->config, x->policy, &r->run, n, x->seed, r->simulated, e);
}

static size_t outstanding(const struct replica *r, int64_t now_ns)
{
    size_t n = 0;
    for (size_t i = 0; i < r->run.trace.n; i++) {
        n += r->run.trace.rows[i].arrival_ns + units_ns_from_s(r->simulated[i].e2e_s) > now_ns;
    }
    return n;
}

/* Finds the replica with the fewest outstanding requests; of equal ones the first. */
static int least_outstanding(const struct replay *x, int64_t now_ns, uint32_t *out, struct err *e)
{
    int rc = 0;
    size_t fewest = SIZE_MAX;
    for (uint32_t k = 0; rc == 0 && k < x->run->replicas.n; k++) {
        struct replica *r = &x->replicas[k];
        rc = r->known < r->run.trace.n ? simulate(x, r, r->run.trace.n, e) : 0;
        size_t n = rc == 0 ? outstanding(r, now_ns) : SIZE_MAX;
        if (n < fewest) {
            fewest = n;
            *out = k;
        }
    }
    return rc;
}

static int send_all(const struct replay *x, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < x->run->trace.n; i++) {
        uint32_t to = (uint32_t)(i % x->run->replicas.n);
        if (x->run->replicas.queue == MEASURED_LEAST_OUTSTANDING) {
            rc = least_outstanding(x, x->run->trace.rows[i].arrival_ns, &to, e);
        }
        send(&x->replicas[to], x->run, i);
    }
    return rc;
}

/* Number of the replica's requests among the first n of the run. */
static size_t among(const struct replica *r, size_t n)
{
    size_t k = 0;
    while (k < r->run.trace.n && r->place[k] < n) {
        k++;
    }
    return k;
}

int run_replay(const struct config *c, const struct config_policy *p,
               const struct measured_run *run, size_t n, uint64_t seed,
               struct measured_latency *out, struct err *e)
{
    uint32_t n_replicas = run->replicas.n;
    if (n_replicas <= 1) {
        return run_replay_one(c, p, run, n, seed, out, e);
    }
    struct replica *v = xcalloc(n_replicas, sizeof *v);
    for (uint32_t k = 0; k < n_replicas; k++) {
        v[k].run.trace.rows = xmalloc(run->trace.n * sizeof *v[k].run.trace.rows);
        v[k].place = xmalloc(run->trace.n * sizeof *v[k].place);
        v[k].simulated = xmalloc(run->trace.n * sizeof *v[k].simulated);
    }
    struct replay x = {c, p, run, seed, v};
    int rc = send_all(&x, e);
    for (uint32_t k = 0; rc == 0 && k < n_replicas; k++) {
        size_t own = among(&v[k], n);
        rc = simulate(&x, &v[k], own, e);
        for (size_t i = 0; rc == 0 && i < own; i++) {
            out[v[k].place[i]] = v[k].simulated[i];
        }
    }
    for (uint32_t k = 0; k < n_replicas; k++) {
        trace_fini(&v[k].run.trace);
        free(v[k].place);
        free(v[k].simulated);
    }
    free(v);
    return rc;
}

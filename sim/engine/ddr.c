/* The jobs that share the DDR, as a fluid resource: progress of a job = compute share * speed *
 * min(1, bandwidth share / demand). The capacity of several jobs is kappa * peak, but at least the
 * largest demand: kappa is the efficiency of several masters together, and does not slow a single
 * one. */
#include <string.h>

#include "sim/engine/ddr.h"
#include "sim/engine/engine.h"

/* ---- jobs ---- */

void ddr_join(struct engine *e, struct job *j)
{
    SIM_REQUIRE(e->n_jobs < ENGINE_MAX_JOBS, "too many concurrent jobs");
    SIM_REQUIRE(!j->active && !j->waits, "a job joins twice");
    ddr_touch(e);
    j->active = true;
    j->end_ns = TIME_NEVER_NS;
    e->jobs[e->n_timed++] = e->jobs[e->n_jobs]; /* a waiting job makes room */
    e->jobs[e->n_jobs++] = j;
}

static inline uint32_t place_of(const struct engine *e, const struct job *j, uint32_t i)
{
    while (i < e->n_timed && e->jobs[i] != j) {
        i++;
    }
    SIM_REQUIRE(i < e->n_timed, "a job leaves that never joined");
    return i;
}

void ddr_leave(struct engine *e, struct job *j)
{
    if (!j->active) {
        return; /* a launch that was stopped in its lead or while paused */
    }
    ddr_touch(e);
    /* Other jobs keep their order, in which shares are added. */
    for (uint32_t i = place_of(e, j, 0); i + 1 < e->n_jobs; i++) {
        e->jobs[i] = e->jobs[i + 1];
    }
    e->jobs[--e->n_jobs] = e->jobs[--e->n_timed];
    j->active = false;
}

void job_wait_over(struct engine *e, struct job *j)
{
    if (j->waits) {
        e->jobs[place_of(e, j, e->n_jobs)] = e->jobs[e->n_timed - 1];
        e->n_timed--;
        j->waits = false;
    }
}

void job_wait(struct engine *e, struct job *j, int64_t until_ns)
{
    SIM_ASSERT(!j->active && until_ns >= e->now_ns);
    job_wait_over(e, j);
    SIM_REQUIRE(e->n_timed < e->n_jobs + ENGINE_MAX_WAITING, "too many waiting jobs");
    j->waits = true;
    j->end_ns = until_ns;
    j->order = engine_order(e, (enum event_kind)j->kind, j->device);
    e->jobs[e->n_timed++] = j;
}

void job_start(struct engine *e, struct job *j, double isolated_ns, double bytes)
{
    job_start_at(e, j, isolated_ns, isolated_ns > 0.0 ? bytes / (isolated_ns / 1e9) : 0.0);
}

void job_start_at(struct engine *e, struct job *j, double isolated_ns, double demand_bytes_per_s)
{
    j->left_ns = isolated_ns;
    j->updated_ns = e->now_ns;
    j->demand_bytes_per_s = demand_bytes_per_s;
    j->end_ns = TIME_NEVER_NS;
    ddr_touch(e);
}

/* Sets a job's rate. If it is unchanged the end is, too, so nothing is rounded twice. */
static inline void job_set_rate(struct engine *e, struct job *j, double rate, double speed)
{
    bool began = j->end_ns == TIME_NEVER_NS;
    if (!began && j->rate == rate && j->speed == speed) {
        return;
    }
    job_progress(e, j);
    SIM_REQUIRE(rate > 0.0 && j->left_ns >= 0.0, "a job at rate %g, %g ns left", rate, j->left_ns);
    SIM_ASSERT(speed > 0.0 && speed <= 1.0 && rate <= 1.0 && j->active);
    j->rate = rate;
    j->speed = speed;
    j->end_ns = job_end_ns(j);
    if (began) {
        j->order = engine_order(e, (enum event_kind)j->kind, j->device);
    }
}

/* Power limits and frequency steps slow launches. The loader and frames have full speed. */
static inline double job_speed(const struct engine *e, const struct job *j)
{
    return j->exec != NULL ? e->throttle.speed * e->governors[j->device].speed : 1.0;
}

void job_occupies(struct engine *e, uint8_t device)
{
    struct job *j = &e->devices[device].occupied;
    if (e->now_ns >= j->end_ns) {
        return;
    }
    job_progress(e, j);
    j->rate = j->speed = e->throttle.speed * e->governors[device].speed;
    job_wait(e, j, job_end_ns(j));
}

/* ---- shares ---- */

void ddr_share_out(struct engine *e, const double *demand, struct ddr_sums *r, double *rate)
{
    const struct machine *m = e->core.setup->machine;
    const struct contention_ops *contention = e->core.setup->contention;
    struct flow flows[ENGINE_MAX_JOBS];
    double capacity = m->ddr_peak_bytes_per_s * m->ddr_cap_frac;
    r->demand = 0.0;
    for (uint32_t i = 0; i < e->n_jobs; i++) {
        const struct job *j = e->jobs[i];
        SIM_ASSERT(demand[i] >= 0.0 && isfinite(demand[i]));
        double weight = j->device < m->n_devices ? m->devices[j->device].ddr_weight : 1.0;
        flows[i] = (struct flow){demand[i], weight, j->device, demand[i]};
        capacity = demand[i] > capacity ? demand[i] : capacity;
        r->demand += demand[i];
    }
    if (e->n_jobs > 1) {
        contention->share(flows, e->n_jobs, capacity, e->core.setup->contention_params);
    }
    r->share = 0.0;
    for (uint32_t i = 0; i < e->n_jobs; i++) {
        const struct flow *f = &flows[i];
        SIM_ASSERT(f->share_bytes_per_s >= 0.0);
        SIM_ASSERT(f->share_bytes_per_s <= f->demand_bytes_per_s * (1.0 + 1e-12));
        r->share += f->share_bytes_per_s;
        rate[i] = f->demand_bytes_per_s > 0.0 ? f->share_bytes_per_s / f->demand_bytes_per_s : 1.0;
    }
    bool audited = !contention->unlimited && !(e->n_jobs == 1 && e->jobs[0]->exec != NULL);
    double over = audited ? r->share / (e->n_jobs > 1 ? capacity : m->ddr_peak_bytes_per_s) : 0.0;
    double *most = &e->core.result->audit.ddr_max_over_capacity;
    *most = over > *most ? over : *most;
}

void ddr_settle(struct engine *e)
{
    if (e->n_jobs == 1 && e->jobs[0]->exec != NULL && job_speed(e, e->jobs[0]) == 1.0 &&
        e->jobs[0]->share_frac == 1.0) { /* fast path */
        e->ddr_dirty = false;
        e->ddr_demand = e->ddr_share = e->jobs[0]->demand_bytes_per_s;
        job_set_rate(e, e->jobs[0], 1.0, 1.0);
        return;
    }
    struct ddr_sums sums;
    double demand[ENGINE_MAX_JOBS];
    double rate[ENGINE_MAX_JOBS];
    e->ddr_dirty = false;
    for (uint32_t i = 0; i < e->n_jobs; i++) {
        const struct job *j = e->jobs[i];
        demand[i] = j->demand_bytes_per_s * j->share_frac * job_speed(e, j);
    }
    ddr_share_out(e, demand, &sums, rate);
    e->ddr_demand = sums.demand;
    e->ddr_share = sums.share;
    for (uint32_t i = 0; i < e->n_jobs; i++) {
        struct job *j = e->jobs[i];
        double speed = job_speed(e, j);
        job_set_rate(e, j, j->share_frac * speed * rate[i], speed);
    }
}

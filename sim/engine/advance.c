/* The jobs that share the DDR, and the one function that moves them through time.
 *
 * The queue holds what a policy can see. Between two of its events only kernels end, and nobody but
 * their launch takes notice: advance() moves all running launches over these boundaries and stops
 * before the first that ends its launch or must yield. One launch alone at full speed is left where
 * it is until somebody takes notice, and then jumps in closed form. `sim.collapse=false` makes
 * every boundary an instant of the run instead, with the same results.
 *
 * DDR as a fluid resource: progress of a job = compute share * speed * min(1, bandwidth share /
 * demand). Capacity of several jobs is kappa * peak, but never below what one of them takes alone:
 * kappa is the efficiency of several masters together, so a single one is not slowed by it. */
#include <string.h>

#include "sim/engine/advance.h"
#include "sim/engine/consistent.h"
#include "sim/engine/vexec.h"

/* Sums over the flows that share the DDR. */
struct ddr_sums {
    double demand, share;
    double of_capacity; /* the share, to be audited; 0: there is no capacity */
};

#define DDR_PAIR_BITS 10
struct ddr_pair {
    uint64_t of[2];   /* the demand of each, as bits */
    uint64_t devices; /* of both, plus 1: 0 of none */
    struct ddr_sums sums;
    double rate[2];
};

struct ddr_memory {
    struct ddr_pair pairs[1u << DDR_PAIR_BITS];
};

void advance_init(struct engine *e)
{
    const struct sim_setup *s = e->core.setup;
    e->ddr = arena_alloc(&e->core.arena, sizeof *e->ddr);
    e->ddr_unlimited = s->contention->unlimited;
    e->may_advance = s->collapse;
    e->may_jump = s->collapse;
    for (uint32_t i = 0; i < s->n_observers; i++) {
        e->kernels_seen = e->kernels_seen || s->observers[i]->kernel != NULL;
        e->may_jump =
            e->may_jump && s->observers[i]->kernel == NULL && !s->observers[i]->wants_kernels;
    }
}

/* ---- jobs ---- */

void ddr_join(struct engine *e, struct job *j)
{
    SIM_REQUIRE(e->n_jobs < ENGINE_MAX_JOBS, "too many concurrent jobs");
    SIM_REQUIRE(!j->active && !j->waits, "a job joins twice");
    ddr_touch(e);
    j->active = true;
    j->end_ns = TIME_NEVER_NS;
    e->jobs[e->n_timed++] = e->jobs[e->n_jobs]; /* the first of those that wait, if there is one */
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
        return; /* a launch that was stopped in its lead, or while a frame had the device */
    }
    ddr_touch(e);
    /* Others keep their order: sums of their shares are added in it. */
    for (uint32_t i = place_of(e, j, 0); i + 1 < e->n_jobs; i++) {
        e->jobs[i] = e->jobs[i + 1];
    }
    e->jobs[--e->n_jobs] = e->jobs[--e->n_timed];
    j->active = false;
}

void job_wait(struct engine *e, struct job *j, int64_t until_ns)
{
    SIM_ASSERT(!j->active && !j->waits && until_ns >= e->now_ns);
    SIM_REQUIRE(e->n_timed < e->n_jobs + ENGINE_MAX_WAITING, "too many waiting jobs");
    j->waits = true;
    j->end_ns = until_ns;
    j->order = engine_order(e, (enum event_kind)j->kind, j->device);
    e->jobs[e->n_timed++] = j;
}

void job_wait_over(struct engine *e, struct job *j)
{
    SIM_ASSERT(j->waits);
    e->jobs[place_of(e, j, e->n_jobs)] = e->jobs[e->n_timed - 1];
    e->n_timed--;
    j->waits = false;
    j->end_ns = TIME_NEVER_NS;
}

void job_start(struct engine *e, struct job *j, double solo_ns, double bytes)
{
    job_start_at(e, j, solo_ns, solo_ns > 0.0 ? bytes / (solo_ns / 1e9) : 0.0);
}

void job_start_at(struct engine *e, struct job *j, double solo_ns, double demand_bytes_per_s)
{
    j->left_ns = solo_ns;
    j->updated_ns = e->now_ns;
    j->demand_bytes_per_s = demand_bytes_per_s;
    j->end_ns = TIME_NEVER_NS;
    ddr_touch(e);
}

/* Brings a job to its new rate. An unchanged rate keeps its end, so nothing is rounded twice. */
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
    j->end_ns = engine_after(e, j->left_ns / rate);
    if (began) {
        j->order = engine_order(e, (enum event_kind)j->kind, j->device);
    }
}

/* Power limits slow what runs on devices, not the loader; frames come first. */
static inline double job_speed(const struct engine *e, const struct job *j)
{
    return j->exec != NULL ? e->throttle.speed : 1.0;
}

/* ---- shares ---- */

/* Of flows with these demands; rate: of each, at its share alone. */
static void share_out(const struct engine *e, const double *demand, struct ddr_sums *r,
                      double *rate)
{
    const struct machine *m = e->core.setup->machine;
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
        e->core.setup->contention->share(flows, e->n_jobs, capacity,
                                         e->core.setup->contention_params);
    }
    r->share = 0.0;
    for (uint32_t i = 0; i < e->n_jobs; i++) {
        const struct flow *f = &flows[i];
        SIM_ASSERT(f->share_bytes_per_s >= 0.0);
        SIM_ASSERT(f->share_bytes_per_s <= f->demand_bytes_per_s * (1.0 + 1e-12));
        r->share += f->share_bytes_per_s;
        rate[i] = f->demand_bytes_per_s > 0.0 ? f->share_bytes_per_s / f->demand_bytes_per_s : 1.0;
    }
    bool audited = !e->ddr_unlimited && !(e->n_jobs == 1 && e->jobs[0]->exec != NULL);
    r->of_capacity =
        audited ? r->share / (e->n_jobs > 1 ? capacity : m->ddr_peak_bytes_per_s) : 0.0;
}

static inline void audit(struct engine *e, const struct ddr_sums *r)
{
    double *most = &e->core.result->audit.ddr_max_over_capacity;
    *most = r->of_capacity > *most ? r->of_capacity : *most;
}

static inline uint64_t devices_of_pair(const struct engine *e)
{
    return ((uint64_t)e->jobs[0]->device << 8 | e->jobs[1]->device) + 1;
}

/* The same for two flows, which meet again and again. Audited when they are new. */
static inline const struct ddr_pair *shares_of_pair(struct engine *e, uint64_t devices,
                                                    const double demand[2])
{
    uint64_t bits[2];
    memcpy(bits, demand, sizeof bits);
    uint64_t h = (bits[0] ^ bits[1] * 3) * 0x9e3779b97f4a7c15u;
    struct ddr_pair *p = &e->ddr->pairs[h >> (64 - DDR_PAIR_BITS)];
    if (p->of[0] != bits[0] || p->of[1] != bits[1] || p->devices != devices) {
        share_out(e, demand, &p->sums, p->rate);
        audit(e, &p->sums);
        p->of[0] = bits[0];
        p->of[1] = bits[1];
        p->devices = devices;
    }
    return p;
}

/* Is what is remembered of a pair what its flows get now? */
static bool shares_are(const struct engine *e, const double *demand, const struct ddr_pair *p)
{
    struct ddr_sums now;
    double rate[ENGINE_MAX_JOBS];
    share_out(e, demand, &now, rate);
    SIM_ASSERT(p->sums.demand == now.demand && p->sums.share == now.share);
    SIM_ASSERT(p->sums.of_capacity == now.of_capacity);
    SIM_ASSERT(p->rate[0] == rate[0] && p->rate[1] == rate[1]);
    return true;
}

/* Rates and ends of all jobs; before time moves. */
static inline void settle(struct engine *e)
{
    if (e->n_jobs == 1 && e->jobs[0]->exec != NULL && e->throttle.speed == 1.0 &&
        e->jobs[0]->share_frac == 1.0) { /* the usual one */
        e->ddr_dirty = false;
        e->ddr_demand = e->ddr_share = e->jobs[0]->demand_bytes_per_s;
        job_set_rate(e, e->jobs[0], 1.0, 1.0);
        return;
    }
    struct ddr_sums sums;
    double demand[ENGINE_MAX_JOBS];
    double own[ENGINE_MAX_JOBS];
    const double *rate = own;
    e->ddr_dirty = false;
    for (uint32_t i = 0; i < e->n_jobs; i++) {
        const struct job *j = e->jobs[i];
        demand[i] = j->demand_bytes_per_s * j->share_frac * job_speed(e, j);
    }
    if (e->n_jobs == 2) {
        const struct ddr_pair *p = shares_of_pair(e, devices_of_pair(e), demand);
        SIM_ASSERT(shares_are(e, demand, p));
        sums = p->sums;
        rate = p->rate;
    } else {
        share_out(e, demand, &sums, own);
        audit(e, &sums);
    }
    e->ddr_demand = sums.demand;
    e->ddr_share = sums.share;
    for (uint32_t i = 0; i < e->n_jobs; i++) {
        struct job *j = e->jobs[i];
        double speed = job_speed(e, j);
        job_set_rate(e, j, j->share_frac * speed * rate[i], speed);
    }
}

void ddr_settle(struct engine *e)
{
    settle(e);
}

/* ---- time ---- */

/* Is the end of the present kernel no more than that? */
static inline bool kernel_unnoticed(const struct engine *e, const struct vexec *v)
{
    return !vexec_at_last(v) &&
           (!v->l->pub->stop_requested ||
            (v->l->pub->yield == YIELD_PASS && v->in_flight_left == 0)) &&
           (e->frames.phase != FRAMES_WAITING || e->frames.job.device != v->job.device);
}

/* Does nobody but its launch take notice of the end of what it does now? */
static inline bool unnoticed(const struct engine *e, const struct job *j)
{
    return j->exec != NULL && (j->exec->compute_ns > 0 || kernel_unnoticed(e, j->exec));
}

/* The next boundary, of one launch or of several at once. False: it is to be noticed. */
static bool step(struct engine *e)
{
    struct job *j = advance_first(e, e->n_jobs);
    int64_t at_ns = j->end_ns;
    for (uint32_t i = 0; i < e->n_jobs; i++) {
        if (e->jobs[i]->end_ns == at_ns && !unnoticed(e, e->jobs[i])) {
            return false;
        }
    }
    e->now_ns = at_ns;
    for (; j->end_ns == at_ns; j = advance_first(e, e->n_jobs)) {
        if (vexec_kernel_ends(e, j->exec)) {
            vexec_kernel_begin(e, j->exec);
        }
    }
    settle(e);
    return true;
}

/* Moves a launch that is alone at full speed over what ends before that instant. Its kernels end
 * after whole numbers of ns. */
static void jump(struct engine *e, struct vexec *v, int64_t before_ns)
{
    struct job *j = &v->job;
    SIM_ASSERT(j->rate == 1.0 && j->speed == 1.0 && j->end_ns < before_ns && e->n_jobs == 1);
    int64_t from_ns = j->end_ns + v->compute_ns;
    if (vexec_pass_alone(e, v, before_ns) || (from_ns >= before_ns && step(e))) {
        return;
    }
    ddr_report(e, 1, j->end_ns - e->ddr_since_ns, e->ddr_demand, e->ddr_share);
    v->compute_ns = 0;
    vexec_book(e, v, v->kernels, v->k, 1);
    vexec_next(v);
    int64_t until_ns = from_ns + vexec_jump(e, v, before_ns - 1 - from_ns);
    if (v->op == v->l->pub->op_end) {
        j->end_ns = until_ns;
        e->now_ns = until_ns;
        e->ddr_since_ns = until_ns;
        return;
    }
    e->now_ns = until_ns;
    e->ddr_since_ns = until_ns;
    vexec_kernel_begin(e, v);
    settle(e);
}

/* Its end is known, and nobody asks where it is before. */
static void leave_behind(struct engine *e, struct vexec *v)
{
    e->behind = v;
    v->behind_end_ns = v->job.end_ns;
    v->job.end_ns += v->compute_ns + vexec_rest_ns(v);
}

void advance_behind(struct engine *e)
{
    struct vexec *v = e->behind;
    int64_t now_ns = e->now_ns;
    e->behind = NULL;
    v->job.end_ns = v->behind_end_ns;
    while (v->job.end_ns <= now_ns && v->op < v->l->pub->op_end) {
        jump(e, v, now_ns + 1);
    }
    e->now_ns = now_ns;
}

/* ---- two launches ---- */

static inline bool is_plain(const struct engine *e, const struct job *j)
{
    return j->exec == NULL || (j->share_frac == 1.0 && j->speed == 1.0 && !e->kernels_seen);
}

/* The kernel computes, or the next one begins, at the rate of its pair. Its place in the order of
 * one instant stays: nobody else is on its device. */
static inline void next_of_pair(struct engine *e, struct vexec *v)
{
    struct job *j = &v->job;
    j->left_ns = (double)v->compute_ns;
    j->demand_bytes_per_s = 0.0;
    if (v->compute_ns > 0) {
        v->compute_ns = 0;
    } else {
        vexec_book(e, v, v->kernels, v->k, 1);
        vexec_next(v);
        v->kernel_begin_ns = e->now_ns;
        const struct kernel_cost *c = vexec_kernel(v->kernels, v->k);
        v->compute_ns = c->t_ns - c->load_ns;
        j->left_ns = (double)c->load_ns;
        j->demand_bytes_per_s = vexec_demand(c);
    }
    j->updated_ns = e->now_ns;
}

static inline void set_end(struct engine *e, struct job *j, double rate)
{
    j->rate = rate;
    j->end_ns = engine_after(e, j->left_ns / rate);
}

/* The same steps as above, of two jobs at full speed: most boundaries are of two launches, or of
 * one and the loader. False: both end at once, before that instant. */
static bool step_pair(struct engine *e, int64_t before_ns)
{
    struct job *x = e->jobs[0];
    struct job *y = e->jobs[1];
    double demand[2] = {x->demand_bytes_per_s, y->demand_bytes_per_s};
    const uint64_t devices = devices_of_pair(e);
    const struct ddr_pair *p = shares_of_pair(e, devices, demand);
    for (;;) {
        const uint32_t i = y->end_ns < x->end_ns;
        struct job *first = i == 1 ? y : x;
        struct job *other = i == 1 ? x : y;
        if (first->end_ns >= before_ns || !unnoticed(e, first) || other->end_ns == first->end_ns) {
            break;
        }
        e->now_ns = first->end_ns;
        ddr_report(e, 1, e->now_ns - e->ddr_since_ns, p->sums.demand, p->sums.share);
        e->ddr_since_ns = e->now_ns;
        next_of_pair(e, first->exec);
        if (first->demand_bytes_per_s != demand[i]) {
            demand[i] = first->demand_bytes_per_s;
            p = shares_of_pair(e, devices, demand);
        }
        set_end(e, first, p->rate[i]);
        double rate = p->rate[1 - i];
        if (rate != other->rate) {
            job_progress(e, other);
            set_end(e, other, rate);
        }
    }
    e->ddr_demand = p->sums.demand;
    e->ddr_share = p->sums.share;
    return x->end_ns != y->end_ns || x->end_ns >= before_ns;
}

void advance(struct engine *e, int64_t before_ns)
{
    SIM_ASSERT(!e->ddr_dirty);
    const struct job *first;
    while (e->may_advance && e->behind == NULL && (first = advance_first(e, e->n_jobs)) != NULL &&
           first->end_ns < before_ns) {
        bool alone = e->n_jobs == 1 && e->may_jump && first->exec != NULL && first->rate == 1.0;
        if (alone && kernel_unnoticed(e, first->exec)) {
            leave_behind(e, first->exec);
        } else if (e->n_jobs == 2 && is_plain(e, e->jobs[0]) && is_plain(e, e->jobs[1]) &&
                   step_pair(e, before_ns)) {
            break;
        } else if (!step(e)) {
            break;
        }
    }
    core_advance(&e->core, e->now_ns);
}

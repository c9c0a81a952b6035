/* Jobs that share the DDR: who is there, and at what rate each progresses (ddr.c). */
#pragma once

#include <string.h>

#include "sim/engine/engine.h"

/* The first of n jobs to end, by the order of events at one instant; NULL: there is none. O(n). */
static inline struct job *ddr_first(const struct engine *e, uint32_t n)
{
    struct job *first = n > 0 ? e->jobs[0] : NULL;
    for (uint32_t i = 1; i < n; i++) {
        struct job *j = e->jobs[i];
        if (j->end_ns < first->end_ns || (j->end_ns == first->end_ns && j->order < first->order)) {
            first = j;
        }
    }
    return first;
}

void ddr_join(struct engine *e, struct job *j);
void ddr_leave(struct engine *e, struct job *j);
/* A job that does nothing ends then, unless its wait is over before, or it waits again. */
void job_wait(struct engine *e, struct job *j, int64_t until_ns);
/* It waits no more, if it did. */
void job_wait_over(struct engine *e, struct job *j);
/* The work that occupies the device, if there is any, has the device's present speed from now on.
 */
void job_occupies(struct engine *e, uint8_t device);
/* Observers see `count` intervals of that length, of which the last one ends now. */
static inline void ddr_report(struct engine *e, uint64_t count, int64_t ns, double demand,
                              double share)
{
    if (count > 0 && ns > 0 && demand > 0.0) {
        CORE_OBSERVE(&e->core, ddr, e->now_ns, count, ns, demand, share);
    }
}

/* Closes the current interval and marks rates for settling. */
static inline void ddr_touch(struct engine *e)
{
    if (e->now_ns > e->ddr_since_ns) {
        ddr_report(e, 1, e->now_ns - e->ddr_since_ns, e->ddr_demand, e->ddr_share);
        e->ddr_since_ns = e->now_ns;
    }
    e->ddr_dirty = true;
}

/* Recomputes all rates and ends; called before time moves. */
void ddr_settle(struct engine *e);
/* Sets the progress of a job's current piece of work. */
void job_start(struct engine *e, struct job *j, double isolated_ns, double bytes);
void job_start_at(struct engine *e, struct job *j, double isolated_ns, double demand_bytes_per_s);
/* Brings what is left of a job up to now, at the rate it has had. */
static inline void job_progress(struct engine *e, struct job *j)
{
    double passed = (double)(e->now_ns - j->updated_ns);
    SIM_REQUIRE(passed >= 0.0, "a job was brought to a later instant");
    if (passed > 0.0) {
        double done = passed * j->rate;
        done = done < j->left_ns ? done : j->left_ns; /* its end was rounded up */
        j->left_ns -= done;
        if (j->speed != 1.0) {
            j->slowed_ns += done * (1.0 / j->speed - 1.0);
        }
    }
    j->updated_ns = e->now_ns;
}

/* When it ends, if its rate stays. */
static inline int64_t job_end_ns(const struct job *j)
{
    double ns = j->left_ns / j->rate;
    return ns < (double)TIME_LAST_NS ? j->updated_ns + units_ceil(ns) : TIME_NEVER_NS;
}

/* ---- shares ---- */

/* Sums over the flows that share the DDR. */
struct ddr_sums {
    double demand, share;
};

/* Shares the DDR out to the jobs, whose demands these are: sums, and the rate of each at its share
 * alone. */
void ddr_share_out(struct engine *e, const double *demand, struct ddr_sums *sums, double *rate);

/* Moving jobs through time (advance.c). */
void advance_init(struct engine *e);
/* Moves kernels over their boundaries, as far as only their launches take notice and they come
 * before that instant. Time moves to the last one. */
void advance(struct engine *e, int64_t before_ns);

/* A launch that co-runs with one other job (corun.c). */
void corun_init(struct engine *e);
/* Moves the launch over the end of its piece of work, and over later ends. Later ones come before
 * that instant and before the other job's end. Time moves to the last of them. Preconditions: the
 * two jobs share the DDR at full speed. The first end comes before the other's, and only the launch
 * takes notice of it. passes: this holds for ends of later kernels, too. The launch's last kernel
 * is never passed. */
void corun_step(struct engine *e, struct vexec *v, struct job *other, bool passes,
                int64_t before_ns);
/* Reports the DDR intervals that are not reported yet. To be called at the end of a run. */
void corun_report(struct engine *e);

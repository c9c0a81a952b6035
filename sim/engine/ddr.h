/* The jobs that share the DDR, and the rate of each (ddr.c). */
#pragma once

#include <string.h>

#include "sim/engine/engine.h"

/* The first of n jobs to end, in event order within an instant; NULL: n is 0. O(n). */
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
/* Makes an idle job end at until_ns, unless job_wait_over or job_wait is called before. */
void job_wait(struct engine *e, struct job *j, int64_t until_ns);
/* Ends a wait, if there is one. */
void job_wait_over(struct engine *e, struct job *j);
/* From now on the work of sched_occupy, if any, runs at the device's present speed. */
void job_occupies(struct engine *e, uint8_t device);
/* Reports `count` intervals of `ns` each to observers. The last one ends now. */
static inline void ddr_report(struct engine *e, uint64_t count, int64_t ns, double demand,
                              double share)
{
    if (count > 0 && ns > 0 && demand > 0.0) {
        CORE_OBSERVE(&e->core, ddr, e->now_ns, count, ns, demand, share);
    }
}

/* Reports the current interval, and marks rates for ddr_settle. */
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
/* Starts a piece of work of a job. */
void job_start(struct engine *e, struct job *j, double isolated_ns, double bytes);
void job_start_at(struct engine *e, struct job *j, double isolated_ns, double demand_bytes_per_s);
/* Updates left_ns of a job to now, at its present rate. */
static inline void job_progress(struct engine *e, struct job *j)
{
    double passed = (double)(e->now_ns - j->updated_ns);
    SIM_REQUIRE(passed >= 0.0, "a job was brought to a later instant");
    if (passed > 0.0) {
        double done = passed * j->rate;
        done = done < j->left_ns ? done : j->left_ns; /* end_ns was rounded up */
        j->left_ns -= done;
        if (j->speed != 1.0) {
            j->slowed_ns += done * (1.0 / j->speed - 1.0);
        }
    }
    j->updated_ns = e->now_ns;
}

/* The end of a job at its present rate. */
static inline int64_t job_end_ns(const struct job *j)
{
    double ns = j->left_ns / j->rate;
    return ns < (double)TIME_LAST_NS ? j->updated_ns + units_ceil(ns) : TIME_NEVER_NS;
}

/* ---- shares ---- */

/* Sums over flows. */
struct ddr_sums {
    double demand, share;
};

/* Divides the DDR among the jobs, with these demands. Fills the sums, and each job's rate due to
 * its share. */
void ddr_share_out(struct engine *e, const double *demand, struct ddr_sums *sums, double *rate);

/* Moving jobs through time (advance.c). */
/* Processes ends of kernels that come before before_ns and concern nothing but their launches. Time
 * moves to the last one. */
void advance(struct engine *e, int64_t before_ns);

/* A launch that co-runs with one other job (corun.c). */
void corun_init(struct engine *e);
/* Processes the end of the launch's present piece of work, and later ones that end before before_ns
 * and before the other job. Time moves to the last end. Preconditions: both jobs are at full speed
 * and no other is active; the first end is before the other job's and concerns only the launch.
 * passes: later ends concern only the launch, too. The end of its last kernel is never processed.
 */
void corun_step(struct engine *e, struct vexec *v, struct job *other, bool passes,
                int64_t before_ns);
/* Reports the remaining DDR intervals, at the end of a run. */
void corun_report(struct engine *e);

/* Use of the machine: time in each power phase, energy, DDR traffic, launches. Its inputs are the
 * observer's power, ddr and launch calls. */
#pragma once

#include "sim/api/device.h"
#include "sim/api/observer.h"
#include "sim/metrics/metrics.h"

#define USAGE_PHASES 4
#define USAGE_TIERS 3
#define USAGE_MAX_LAUNCHES (MACHINE_MAX_DEVICES * MACHINE_MAX_SHARED)

struct usage_launch {
    uint32_t id;
    const struct pass *pass;
    uint8_t device;
    bool has_reactive;
    int64_t lead_ns;
    int64_t clear_ns; /* usage_clear_ns of its device at its start, without itself */
};

/* Time in which a device ran reactive launches. */
struct usage_reactive {
    uint32_t running;
    int64_t since_ns, sum_ns;
};

/* Isolated time of a device's launches, and of those outside its calibrated range: by rows, by
 * context, by either. work_ns is the time of kernels by model. */
struct usage_range {
    struct metrics_range limit[METRICS_MAX_MODELS];
    units_sum all_ns, rows_ns, context_ns, outside_ns;
    units_sum work_ns[METRICS_MAX_MODELS];
};

struct usage {
    const struct machine *machine;
    struct usage_range range[MACHINE_MAX_DEVICES];
    int64_t now_ns;
    enum power_phase phase[OBSERVER_DOMAINS];
    uint32_t working[DEVICE_KIND_COUNT]; /* devices of each kind that are not idle */
    double watts[OBSERVER_DOMAINS];
    int64_t since_ns[OBSERVER_DOMAINS];
    int64_t phase_ns[OBSERVER_DOMAINS][USAGE_PHASES];
    double watt_ns[OBSERVER_DOMAINS][USAGE_PHASES]; /* energy by phase */
    double peak_watts;
    int64_t overlap_ns; /* NPU and iGPU busy at once */
    /* Demand, and its unserved part: whole bytes per interval, so that grouping does not matter. */
    units_sum ddr_demand_bytes, ddr_denied_bytes;
    units_sum tier_ns[USAGE_TIERS];          /* time with traffic in each tier of demand */
    double tier_medium_from, tier_high_from; /* the lowest demands of these tiers */
    struct usage_launch running[USAGE_MAX_LAUNCHES];
    uint32_t n_running;
    struct usage_reactive reactive[MACHINE_MAX_DEVICES];
    units_sum actual_ns, isolated_ns, killed_ns; /* over ended launches */
    /* The speed that power limits leave; integral of 1 - speed; lowest speed. */
    double speed, speed_lost_ns, speed_least;
    int64_t speed_since_ns;
    uint64_t frames, frames_missed; /* frames begun, and missed */
    bool frame_runs;
    /* Start of the present frame; sums; longest delay. */
    int64_t frame_since_ns, frame_ns, frame_wait_ns, frame_late_ns;
};

/* range: of METRICS_MAX_MODELS models, MACHINE_MAX_DEVICES each. */
void usage_init(struct usage *u, const struct machine *machine, double tier_medium_frac,
                double tier_high_frac, const struct metrics_range *range);
void usage_power(struct usage *u, int64_t now_ns, uint8_t domain, enum power_phase phase,
                 double watts);
/* The tier of DDR pressure at a demand: 0, 1 or 2. */
static inline int usage_tier(const struct usage *u, double demand_bytes_per_s)
{
    return demand_bytes_per_s >= u->tier_high_from     ? 2
           : demand_bytes_per_s >= u->tier_medium_from ? 1
                                                       : 0;
}

static inline void usage_ddr(struct usage *u, uint64_t count, int64_t duration_ns,
                             double demand_bytes_per_s, double share_bytes_per_s)
{
    SIM_ASSERT(count > 0 && duration_ns > 0 && share_bytes_per_s >= 0.0);
    SIM_ASSERT(share_bytes_per_s <= demand_bytes_per_s * (1.0 + 1e-9));
    double duration_s = units_s_from_ns(duration_ns);
    int64_t demand_bytes = units_round(demand_bytes_per_s * duration_s);
    u->ddr_demand_bytes += (units_sum)count * demand_bytes;
    u->tier_ns[usage_tier(u, demand_bytes_per_s)] += (units_sum)count * duration_ns;
    if (share_bytes_per_s != demand_bytes_per_s) {
        int64_t bytes = units_round(share_bytes_per_s * duration_s);
        u->ddr_denied_bytes += (units_sum)count * demand_bytes - (units_sum)count * bytes;
    }
}

void usage_frame(struct usage *u, int64_t now_ns, enum frame_state to, int64_t due_ns);
void usage_speed(struct usage *u, int64_t now_ns, double speed);
/* Adds repeated launches; the last one's tokens are out now. The power hook has reported the first
 * one. Returns their total time. */
int64_t usage_repeated(struct usage *u, const struct repeat_record *r, int64_t now_ns);
/* Whether a launch of the pass runs, or of another pass of its prompt (SEGMENT_AHEAD). */
static inline bool usage_runs(const struct usage *u, const struct pass *p)
{
    uint32_t i = 0;
    while (i < u->n_running && u->running[i].pass != p &&
           !(p->overlaps && u->running[i].pass->overlaps &&
             u->running[i].pass->segments[0].request == p->segments[0].request)) {
        i++;
    }
    return i < u->n_running;
}

/* A clock that stops while the device runs a reactive launch. */
static inline int64_t usage_clear_ns(const struct usage *u, uint8_t device, int64_t now_ns)
{
    const struct usage_reactive *x = &u->reactive[device];
    return (x->running > 0 ? x->since_ns : now_ns) - x->sum_ns;
}

/* Changes the number of reactive launches that run on the device. */
static inline void usage_reactive_add(struct usage *u, uint8_t device, int64_t now_ns, int more)
{
    struct usage_reactive *x = &u->reactive[device];
    SIM_ASSERT(now_ns >= x->since_ns && (more >= 0 || x->running > 0));
    x->sum_ns += x->running > 0 ? now_ns - x->since_ns : 0;
    x->since_ns = now_ns;
    x->running += (uint32_t)more;
}

static inline void usage_launch_started(struct usage *u, const struct launch *l, int64_t lead_ns)
{
    SIM_ASSERT(u->n_running < USAGE_MAX_LAUNCHES && lead_ns >= 0);
    if (u->n_running < USAGE_MAX_LAUNCHES) {
        bool reactive = l->pass->has_reactive;
        int64_t clear_ns = usage_clear_ns(u, l->device, l->start_ns);
        u->running[u->n_running++] =
            (struct usage_launch){l->id, l->pass, l->device, reactive, lead_ns, clear_ns};
        usage_reactive_add(u, l->device, l->start_ns, reactive);
    }
}

/* Removes a launch. Returns false if it never started. */
static inline bool usage_leave(struct usage *u, const struct launch *l, int64_t end_ns,
                               int64_t *lead_ns)
{
    uint32_t i = 0;
    while (i < u->n_running && u->running[i].id != l->id) {
        i++;
    }
    if (i == u->n_running) {
        return false;
    }
    *lead_ns = u->running[i].lead_ns;
    usage_reactive_add(u, l->device, end_ns, -(int)u->running[i].has_reactive);
    if (i < --u->n_running) {
        u->running[i] = u->running[u->n_running];
    }
    return true;
}

static inline void usage_range_add(struct usage_range *x, bool rows, bool context, int64_t ns)
{
    x->all_ns += ns;
    x->rows_ns += rows ? ns : 0;
    x->context_ns += context ? ns : 0;
    x->outside_ns += rows || context ? ns : 0;
}

/* Rows of a launch's kernels. A launch of several ops runs all but the first whole. */
static inline uint32_t usage_kernel_rows(const struct launch *l)
{
    uint32_t rows = l->op_end > l->op_begin + 1 ? l->pass->shape.rows : l->rows;
    return l->chunk_rows > 0 && l->chunk_rows < rows ? l->chunk_rows : rows;
}

/* Replaces 0 (no limit) by the largest value. */
static inline struct metrics_range usage_range_limit(struct metrics_range x)
{
    x.rows_max = x.rows_max > 0 ? x.rows_max : UINT32_MAX;
    x.context_max = x.context_max > 0 ? x.context_max : UINT32_MAX;
    return x;
}

/* Whether a launch has more rows or a longer context than its device's calibrated range. */
static inline bool usage_rows_outside(const struct metrics_range *limit, const struct launch *l)
{
    return usage_kernel_rows(l) > limit->rows_max;
}

static inline bool usage_context_outside(const struct metrics_range *limit, const struct launch *l)
{
    return l->pass->shape.max_context_tokens > limit->context_max;
}

/* Returns false if the launch never started (withdrawn). */
static inline bool usage_launch_ended(struct usage *u, const struct launch *l, int64_t isolated_ns,
                                      int64_t lost_ns)
{
    int64_t lead_ns = 0;
    if (!usage_leave(u, l, l->end_ns, &lead_ns)) {
        return false;
    }
    SIM_ASSERT(isolated_ns >= 0 && lost_ns >= 0 && l->end_ns >= l->start_ns);
    int64_t actual_ns = l->end_ns - l->start_ns - lead_ns - lost_ns;
    struct usage_range *x = &u->range[l->device];
    const struct metrics_range *limit = &x->limit[l->pass->shape.model];
    if (actual_ns > 0) { /* killed during its lead: no kernel ran */
        u->actual_ns += actual_ns;
        u->isolated_ns += isolated_ns;
        x->work_ns[l->pass->shape.model] += actual_ns;
        usage_range_add(x, usage_rows_outside(limit, l), usage_context_outside(limit, l),
                        isolated_ns);
    }
    u->killed_ns += lost_ns;
    return true;
}

/* Closes every integral at the end of the run. Call once. */
void usage_finish(struct usage *u, int64_t now_ns);

/* tokens, output_tokens, jobs: completed ones, for energy ratios. */
void usage_collect(const struct usage *u, const struct metrics_options *opt, double tokens,
                   double output_tokens, double jobs, struct metric_list *out);

/* A clairvoyant reference: the best result of a stated class of schedules on a workload, found in
 * hindsight by running all of them.
 *
 * The class is list schedules (policies/clairvoyant.h) in every order of the requests, on every
 * placement (a device for prefill, one for decode), one request at a time or all decodes in one
 * batch. Every member is run through the engine with the workload's own noise, and measured by the
 * same metrics as a policy. Each metric has its own best member.
 *
 *   up to CLAIRVOYANT_MAX_JOBS requests
 *       All n! orders. The result is the best of the class, not of all schedules: a policy that
 *       splits a prompt over devices, stops a kernel, keeps a device idle or mixes prompts into a
 *       batch is not in the class and may do better.
 *   more
 *       A heuristic without a guarantee, and reported as one: shortest remaining isolated time
 *       first with known output lengths, once without classes and once with reactive requests
 *       first, on every placement. */
#pragma once

#include "experiments/compare/compare.h"
#include "policies/clairvoyant.h"

#define CLAIRVOYANT_MAX_JOBS 6 /* 720 orders */
#define CLAIRVOYANT_MAX_PLANS (2 * MACHINE_MAX_DEVICES * MACHINE_MAX_DEVICES)

/* The metrics of a run that have a bound (bound_metric) and a best member of the class. */
#define CLAIRVOYANT_METRICS 8
extern const char *const clairvoyant_metrics[CLAIRVOYANT_METRICS];

struct clairvoyant_best {
    double value[CLAIRVOYANT_METRICS]; /* NaN: no member finished every request, or undefined */
    uint32_t schedules;                /* runs that finished every request */
    bool exhaustive;                   /* all orders; else the heuristic */
};

/* Fills one plan, without an order, for each placement and batch cap that this machine can run.
 * Returns their number. */
uint32_t clairvoyant_plans(const struct machine *m, struct clairvoyant_plan *out);

/* Number of schedules of one plan to try on a trace: all orders of its requests, or the two of the
 * heuristic. */
uint32_t clairvoyant_members(const struct trace *t, bool *exhaustive);
/* Sets the plan's order to that of member `number` (from 0). order: room for CLAIRVOYANT_MAX_JOBS;
 * the plan borrows it. */
void clairvoyant_member(const struct trace *t, uint32_t number, uint32_t *order,
                        struct clairvoyant_plan *plan);

/* Updates the best with a schedule that finished every request. values: by clairvoyant_metrics.
 * Start from clairvoyant_nothing. */
void clairvoyant_take(struct clairvoyant_best *best, const double *values);
struct clairvoyant_best clairvoyant_nothing(void);

/* Runs every schedule on every replication of a plan. best[replication]: the best of each. */
void clairvoyant_run(const struct compare_plan *plan, struct clairvoyant_best *best);

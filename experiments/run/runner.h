/* One simulation with metrics attached, and its result as a document. */
#pragma once

#include "experiments/run/config.h"
#include "experiments/shell/document.h"
#include "sim/base/output.h"
#include "sim/core/run.h"
#include "sim/metrics/metrics.h"

/* Distributions keep every sample, or a sketch of constant memory whose quantiles are within
 * 0.5 %. AUTO sketches runs of more than RUNNER_EXACT_REQUESTS requests. */
enum runner_samples { RUNNER_SAMPLES_AUTO, RUNNER_SAMPLES_SKETCH, RUNNER_SAMPLES_EXACT };
#define RUNNER_EXACT_REQUESTS 100000

struct runner_options {
    enum runner_samples samples;
    double warmup_s;            /* requests that arrive before are not in distributions */
    struct output *requests;    /* per-request records; closed, and kept of a run that succeeds */
    const char *requests_about; /* about_comment of it, or NULL */
    FILE *decision_log;         /* or NULL */
    const void *policy_context; /* sched.context, or NULL */
    struct observer *observer;  /* one more, or NULL: timeline, explanation */
    struct observer *series;    /* and another, or NULL: steady state */
    /* The executor; NULL: the simulator. self comes back as it is. */
    int (*execute)(void *self, const struct sim_setup *setup, struct sim_result *result);
    void *execute_self;
};

struct runner_result {
    struct sim_result sim;
    struct metric_list metrics; /* owned; filled when sim.status is 0 */
    enum metrics_verdict verdict;
    bool sketch;            /* quantiles are from sketches */
    uint64_t printed_bytes; /* to standard output, by a policy in a worker process */
};

/* The calibrated range of each device of the configuration. */
void runner_ranges(const struct config *c, struct metrics_range out[MACHINE_MAX_DEVICES]);
/* Numbers of a meter that reads the machine; factor 0: there are none. */
struct metrics_meter runner_meter(const struct config *c);

/* Runs and collects. 0; the run's own failure (result->sim.status and message say why); or -EINVAL
 * with an error added when the CSV cannot be written. runner_result_fini is needed in every case.
 */
int runner_run(const struct config *c, const struct config_policy *p, const struct trace *t,
               uint64_t seed, const struct runner_options *opt, struct runner_result *out,
               struct err *e);
void runner_result_fini(struct runner_result *r);

/* Says on stderr that a policy printed to standard output, unless bytes is 0. For commands whose
 * results have no warnings. */
void runner_tell_printed(const struct config_policy *p, uint64_t bytes);

/* The names of all metrics a run on this machine gives, without a run (values are meaningless).
 * conditional: some runs alone have throttle.* and graphics.*, and these names are there, too. */
void runner_metric_names(const struct config *c, bool conditional, struct metric_list *out);
/* The error that no metric of `names` is called so, with the one that is likely meant. -EINVAL. */
int runner_no_metric(const char *option, const char *name, const struct metric_list *names,
                     struct err *e);
/* An error that names the option when there is no such metric. 0 or -EINVAL. */
int runner_check_metric(const struct config *c, const char *option, const char *name,
                        struct err *e);

/* "launch 12 times, first at 1.5 s: the pass is over (EINVAL)", and the hook where it is not
 * schedule. Returns text. */
#define RUNNER_REFUSAL_BYTES 256
const char *runner_refusal_text(const struct sim_refusal *x, char text[RUNNER_REFUSAL_BYTES]);
/* Adds "refused": a row for every kind of action that was refused as wrong. */
void runner_refusals(const struct sim_result *s, struct document *d);

/* Adds {fingerprint, config, metrics, verdict, audit, warnings, refused, counters}; for people one
 * screen.
 */
void runner_document(const struct config *c, const struct config_policy *p, const struct trace *t,
                     uint64_t seed, const struct runner_result *r, struct document *d);

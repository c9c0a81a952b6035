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
    double warmup_s;            /* requests that arrive before it are not in distributions */
    struct output *requests;    /* per-request records; closed, and kept on success */
    const char *requests_about; /* its about_comment, or NULL */
    FILE *decision_log;         /* or NULL */
    const void *policy_context; /* sched.context, or NULL */
    struct observer *observer;  /* another observer (timeline, explanation), or NULL */
    struct observer *series;    /* and another (steady state), or NULL */
    /* The executor; NULL: the simulator. `self` is execute_self. */
    int (*execute)(void *self, const struct sim_setup *setup, struct sim_result *result);
    void *execute_self;
};

struct runner_result {
    struct sim_result sim;
    struct metric_list metrics; /* owned; filled when sim.status is 0 */
    enum metrics_verdict verdict;
    bool sketch;            /* quantiles are from sketches */
    uint64_t printed_bytes; /* bytes that a policy in a worker process printed to standard output */
};

/* The calibrated range of each device of the configuration. */
void runner_ranges(const struct config *c,
                   struct metrics_range out[METRICS_MAX_MODELS][MACHINE_MAX_DEVICES]);
/* The machine's meter; factor 0: none. */
struct metrics_meter runner_meter(const struct config *c);

/* Runs, and collects metrics. Returns 0; or the run's failure, which is described in out->sim; or
 * -EINVAL with an error if the CSV cannot be written. runner_result_fini is needed in every case.
 */
int runner_run(const struct config *c, const struct config_policy *p, const struct trace *t,
               uint64_t seed, const struct runner_options *opt, struct runner_result *out,
               struct err *e);
void runner_result_fini(struct runner_result *r);

/* Unless bytes is 0, prints on stderr that a policy printed to standard output. For commands whose
 * results have no warnings. */
void runner_tell_printed(const struct config_policy *p, uint64_t bytes);

/* Names of all metrics of a run on this machine (values are meaningless). conditional: include
 * throttle.* and graphics.*, which only some runs have. */
void runner_metric_names(const struct config *c, bool conditional, struct metric_list *out);
/* Adds the error that `names` lacks this metric, with a similar name. Returns -EINVAL. */
int runner_no_metric(const char *option, const char *name, const struct metric_list *names,
                     struct err *e);
/* Returns 0, or -EINVAL with an error that names the option if there is no such metric. */
int runner_check_metric(const struct config *c, const char *option, const char *name,
                        struct err *e);

/* "launch 12 times, first at 1.5 s: the pass is over (EINVAL)", and the hook unless it is schedule.
 * Returns text. */
#define RUNNER_REFUSAL_BYTES 256
const char *runner_refusal_text(const struct sim_refusal *x, char text[RUNNER_REFUSAL_BYTES]);
/* Adds "refused": a row for each kind of wrong action that was refused. */
void runner_refusals(const struct sim_result *s, struct document *d);

/* Adds {fingerprint, config, metrics, verdict, audit, warnings, refused, counters}; one screen in
 * text form.
 */
void runner_document(const struct config *c, const struct config_policy *p, const struct trace *t,
                     uint64_t seed, const struct runner_result *r, struct document *d);

/* Every metric of a run, computed while it runs. The row of a metric in metrics.def has its
 * definition and its formula. Distributions are over finished requests, and have .mean .p50 .p90
 * .p95 .p99 .max (nearest rank) and .n, per group reactive, proactive, all. Details that a row has
 * no room for:
 *
 *   decode_pending_s     a host that samples counts as running
 *   preempt_latency_s    of reactive requests that found the device which first served them busy
 *                        with proactive work only; less the time in which that device ran launches
 *                        with a reactive member before the one that served it
 *   preempt_residual_s   0 where the two share the device
 *   session_s            in the group of its last turn
 *   slo_attainment_frac  targets are TTFT, TBT (as TPOT) and deadline; NaN without any
 *   turn_s               the last turn of a session that ended early (until_s) has none
 *   qoe                  only where metrics_asked has a reader
 *   stops_asked          of the reactive group when the pass has a reactive member
 *   arrival_rate, _cv    of all arrivals, realised
 *   contention_loss      isolated at the speed that power limits left, time sharing included;
 *                        killed work left out
 *   energy per token     over tokens that came out (prompts count with the first one);
 *                        agent-xpu-v2's figure is the active form
 *   fairness_jain        clients that got nothing included
 *
 * The span is first arrival to last finish of the run. If all work is there at the start, it is the
 * busy time. If a run ended with requests in the system, the span ends with the run.
 *
 * `truncated.` metrics are over requests that finished by the cut: the last arrival, or the run's
 * end when a horizon stopped it. They are e2e_s, ttft_s, norm_e2e_per_token_s, and
 * throughput_req_per_min (finished by the cut / (cut - first arrival)). An open overloaded system
 * has no other mean that is independent of the run's length.
 *
 * Memory: O(live requests + samples); with `sketch` O(live requests) and 32 kB per distribution. A
 * batch of one class costs one sample_add_n. */
#pragma once

#include "sim/api/observer.h"
#include "sim/api/trace.h"
#include "sim/base/base.h"

enum metrics_verdict {
    METRICS_STABLE,
    METRICS_UNDECIDED,
    METRICS_OVERLOADED,
    METRICS_BATTERY_EMPTY, /* that ended the run, with work left: no statement about its load */
    METRICS_VERDICTS
};
extern const char *const metrics_verdict_names[]; /* indexed by enum: "STABLE", ... */

/* Limits of the run status, which says whether the machine kept up with arrivals.
 * docs/concepts/verdicts.md has the rule and the source of the limits. */
struct metrics_verdict_rule {
    double settled_max_frac; /* longest stretch of work above its mean / arrival window */
    double growing_min_t;    /* growth of the work / its standard error */
};

#define METRICS_MAX_MODELS 8 /* of a run */

/* The calibrated range of a device for a model: most rows of a kernel, and longest context of a
 * pass. Times beyond are extrapolated. 0: no limit. */
struct metrics_range {
    uint32_t rows_max, context_max;
};

/* A meter (hwmodels/metered.h): joules = factor (idle x time + watts of each device x its busy
 * time) + compiling. */
struct metrics_meter {
    double factor; /* 0: no meter, and no metrics of it */
    double idle_watts;
    /* Above idle, while the device works on a model; NaN: unknown */
    double device_watts[METRICS_MAX_MODELS][MACHINE_MAX_DEVICES];
};

/* A user who reads while tokens arrive: expected TTFT, and reading speed. */
struct metrics_reader {
    double ttft_s, tokens_per_s; /* tokens_per_s 0: no user, and no qoe */
};

/* An answer within a second, and 4.8 tokens per second: 217 words a minute of 1.33 tokens. Ours. */
#define METRICS_READER ((struct metrics_reader){1.0, 4.8})

/* Optional statistics. Each distribution gets these quantiles (in percent: 97.5 is `.p97.5`) and
 * shares up to these limits (2 is `.below:2`). */
#define METRICS_MAX_ASKED 8
struct metrics_asked {
    double percent[METRICS_MAX_ASKED]; /* in (0, 100) */
    double limit[METRICS_MAX_ASKED];   /* at least 0 */
    uint32_t n_percents, n_limits;
    struct metrics_reader reader;
};

/* Whether every run has this quantile. */
bool metrics_quantile_is_usual(double percent);

struct metrics_options {
    bool sketch;  /* quantiles within 0.5 %, constant memory; results are labelled */
    bool records; /* keep one record per request, for metrics_requests_write */
    double util_prefill_frac, util_decode_frac; /* weights of igpu.weighted_util_frac */
    double tier_medium_frac, tier_high_frac; /* lower bounds of the pressure tiers, of DDR peak */
    double starvation_s;
    struct metrics_verdict_rule verdict;
    int64_t warmup_ns;  /* requests that arrive before it count in totals and machine metrics, but
                           not in distributions and truncated. */
    int64_t horizon_ns; /* horizon of the run, or TIME_NEVER_NS */
    struct metrics_range range[METRICS_MAX_MODELS][MACHINE_MAX_DEVICES];
    struct metrics_meter meter;
    struct metrics_asked asked;
    bool limited; /* there are power limits, so report throttle.*, even if 0 */
    bool frames;  /* frames may be drawn, so report graphics.*, even if 0 */
    /* Shows which turns end a session; borrowed until metrics_free. NULL: sessions and clients are
     * closed at the end of the run, so memory grows with their number. */
    const struct trace *trace;
};

/* Utilisation 1.00 and 0.46 while active: agent-xpu-v2 6.4. Tiers 0.4 and 0.7: agent-xpu-v1 6.4.
 * Starvation 60 s: ours. The verdict's limits: 5 % quantiles at a load of
 * exactly one (tests/oracle/check_run_status.c computes them). */
struct metrics_options metrics_options_default(void);

#define METRIC_UNDEFINED ((double)NAN) /* no event in this run, such as the mean of no values */

struct metric {
    char name[64];
    double value;
};

struct metric_list {
    struct metric *v; /* owned */
    size_t n;
};

struct metrics; /* opaque */

/* machine is borrowed until metrics_free. One object observes one run. */
struct metrics *metrics_new(const struct metrics_options *opt, const struct machine *machine);
void metrics_free(struct metrics *m);
/* The observer to register; owned by m. */
struct observer *metrics_observer(struct metrics *m);

/* Call it after run_ended. Returns all metrics, with equal names in equal order for one machine. */
void metrics_collect(struct metrics *m, struct metric_list *out);
enum metrics_verdict metrics_verdict(const struct metrics *m);
/* Call it before metrics_collect if an empty battery ended the run. */
void metrics_battery_empty(struct metrics *m);

/* Per-request CSV (request_id to state, then prefill_pending_s, prefill_suspended_s,
 * decode_pending_s, client_id, reused_tokens, recomputed_tokens), sorted by request_id. Needs
 * opt.records. about: comment lines at the top that describe the run; NULL: none. */
void metrics_requests_write(struct metrics *m, const char *about, FILE *out);

void metric_list_put(struct metric_list *l, double value, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Finds a metric by name, or NULL. O(n). */
const struct metric *metric_list_find(const struct metric_list *l, const char *name);
void metric_list_fini(struct metric_list *l);

/* Compares simulated runs with real ones: errors per request, the order of policies, and the
 * differences between repeats of a real run. */
#pragma once

#include "experiments/drive/real.h"
#include "experiments/drive/speed.h"
#include "experiments/shell/document.h"

#define AGAINST_MAX_POLICIES 32
#define AGAINST_MAX_REPEATS 32
#define AGAINST_MAX_MODELS 3

enum against_metric { AGAINST_TTFT, AGAINST_TPOT, AGAINST_E2E, AGAINST_METRICS };

/* One policy: its real runs, and one simulation per machine file. */
struct against_policy {
    char label[128];
    struct real_run real[AGAINST_MAX_REPEATS];
    uint32_t n_real;
    struct request_times simulated[AGAINST_MAX_MODELS];
    /* By repeat: the speed of its kernels relative to the first machine file, and a simulation with
     * that file at this speed. v NULL: the file has no measured times. */
    struct speed speed[AGAINST_MAX_REPEATS];
    struct request_times at_speed[AGAINST_MAX_REPEATS];
};

struct against {
    struct against_policy policies[AGAINST_MAX_POLICIES];
    uint32_t n_policies, n_models, repeats;
    const char *models[AGAINST_MAX_MODELS]; /* names of the machine files */
    char *labels[AGAINST_MAX_MODELS];       /* owned; NULL: the name is the label */
    const char *trace;                      /* borrowed */
    char *engines;                          /* owned */
    const char *clock;
};

/* Mean |x / y - 1| over requests that finished in both runs and have the metric. NaN: none. */
double against_mape(const struct request_times *x, const struct request_times *y,
                    enum against_metric m);
/* The mean of against_mape over the repeats of a policy, with a 95 % bootstrap interval over
 * requests. It is rather too short, because requests share queues. */
struct against_error {
    double mean, low, high;
};
struct against_error against_error(const struct request_times *x, const struct against_policy *p,
                                   enum against_metric m);
/* Mean |x / y - 1|, y the mean of a request over the repeats in which it finished: differences
 * between repeats are not errors of the model. */
double against_mape_of_means(const struct request_times *x, const struct against_policy *p,
                             enum against_metric m);
/* Mean of a metric over finished requests of a class; cls REQUEST_CLASS_COUNT: all. */
double against_mean(const struct request_times *t, enum against_metric m, enum request_class cls);

/* Mean over the repeats of a policy. */
double against_real_mean(const struct against_policy *p, enum against_metric m,
                         enum request_class cls);

/* Order of policies: Kendall's tau over pairs. A pair whose real ranges over the repeats overlap is
 * within the noise: it is tied, left out, and counted. The bounds low and high contain 95 % of the
 * taus when each policy's repeats are resampled with replacement, including ties. NaN: no pair is
 * left, or bounds of one repeat. */
struct against_tau {
    double tau, low, high;
    uint32_t pairs, tied;
};
struct against_tau against_tau(const struct against *a, uint32_t model, enum against_metric m,
                               enum request_class cls);
/* Kendall's tau between two resamples of the real runs; tau is the mean. */
struct against_tau against_tau_real(const struct against *a, enum against_metric m,
                                    enum request_class cls);

/* Adds tables of errors, means and the order of policies, then the runs and requests. */
void against_document(const struct against *a, struct document *d);

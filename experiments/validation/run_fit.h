/* Fits a few numbers of a configuration to the first part of a measured run.
 *
 * The fit minimises the mean of |ln(simulated / measured)| of E2E plus that of TTFT, so that twice
 * and half count equally. Each evaluation simulates the run until that part has finished; arrivals
 * and token counts are inputs. Measured latencies of later requests are not used.
 *
 * The method is GSL's Nelder-Mead simplex (nmsimplex2) from 2^keys starts. The best one restarts
 * from its result until there is no improvement. Then a compass search starts from there and from
 * each submodel (one number at its value in the file), until no step improves. It uses no random
 * numbers, so the same input gives the same result. Standard errors come from fits to halves of the
 * requests.
 *
 * A number that is positive in the file is varied by a factor; one that is 0 is varied upwards. The
 * first step is a quarter of the way to the farther end of the file's [low, high]. Values may leave
 * that range (reported), but not what the file format allows. */
#pragma once

#include "experiments/validation/run_score.h"

#define RUN_FIT_MAX_KEYS 3 /* more would explain any run */
#define RUN_FIT_MIN_REQUESTS_PER_KEY 5
#define RUN_FIT_BLOCKS 8
/* A configuration that can describe the run has at most this median error of E2E on the requests of
 * the fit. */
#define RUN_FIT_LACK_FRAC 0.05

struct run_fit_key {
    const char *path;            /* in the configuration: "soc.devices.gpu.runtimes.0.rate"; kept */
    const char *unit;            /* kept */
    double datasheet, low, high; /* from the file */
    double fitted;
    double se; /* standard error, by half-samples of blocks of neighbouring requests */
    /* A short step further cannot be simulated, or the number is 0. A number at such a bound has no
     * standard error: se is NaN. */
    bool at_bound;
};

struct run_fit {
    struct run_fit_key key[RUN_FIT_MAX_KEYS];
    uint32_t n_keys;
    size_t n_requests; /* the first ones, used for the fit */
    double objective_before, objective;
    uint32_t evaluations; /* distinct simulated points */
    bool converged;
};

/* Keys "k1,k2,k3": dotted paths, or, on a machine with one device, names in the runtime entry that
 * the model uses or in the device ("bandwidth", "rate", "submit"). Reads the file's values. Returns
 * 0, or -EINVAL: unknown or repeated key, none or too many, or not a quantity. */
int run_fit_keys(const struct config *c, const char *text, struct run_fit *fit, struct err *e);

/* Fits on the first n requests. 0; -EINVAL for too few requests, a number without any effect on
 * them (the fit would be singular), or a start that cannot be simulated. */
int run_fit(const struct config_options *o, const struct config_policy *p,
            const struct measured_run *run, size_t n, struct run_fit *fit, struct err *e);

/* Whether the configuration cannot describe the run: with the best numbers, the median error of E2E
 * on the requests of the fit is above RUN_FIT_LACK_FRAC. */
bool run_fit_lacks(const struct run_score *fitted_on);

/* Loads the configuration with the fitted values in place. config_fini is needed in every case. */
int run_fit_load(const struct config_options *o, const struct run_fit *fit, struct config *c,
                 struct err *e);

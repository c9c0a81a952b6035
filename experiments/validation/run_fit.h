/* Fitting a few numbers of a configuration to the first part of a measured run.
 *
 * The fit minimises the mean over that part of |ln(simulated / measured)| of E2E, plus that of
 * TTFT, so that twice and half count equally. Each evaluation simulates the run until that part has
 * finished; arrivals and token counts are inputs. It never looks at measured latencies of later
 * requests.
 *
 * The method is GSL's Nelder-Mead simplex (nmsimplex2) from 2^keys starts. The best restarts from
 * its end until that gains nothing. Then a compass search starts from there and from each submodel
 * (one number as the file has it), until no step gains. It uses no random numbers, so the same
 * input gives the same result. Standard errors come from fitting again to halves of the requests.
 *
 * A number that is positive in the file moves by a factor; one that is 0 moves up from 0. The first
 * step is a quarter of the way to the farther end of the file's [low, high]. Values may leave that
 * range (reported), but not what the file format allows. */
#pragma once

#include "experiments/validation/run_score.h"

#define RUN_FIT_MAX_KEYS 3 /* more would explain any run */
#define RUN_FIT_MIN_REQUESTS_PER_KEY 5
#define RUN_FIT_BLOCKS 8
/* A form that fits explains E2E of what it was fitted to to this share, in the median. */
#define RUN_FIT_LACK_FRAC 0.05

struct run_fit_key {
    const char *path; /* of the configuration: "soc.devices.gpu.runtimes.0.rate"; nobody frees it */
    const char *unit; /* nobody frees it */
    double datasheet, low, high; /* what the file says */
    double fitted;
    double se; /* standard error, by half-samples of blocks of neighbouring requests */
    /* Nothing can be simulated a short step further, or it is 0. A number that something else holds
     * has no standard error: se is NaN. */
    bool at_bound;
};

struct run_fit {
    struct run_fit_key key[RUN_FIT_MAX_KEYS];
    uint32_t n_keys;
    size_t n_requests; /* the first ones, fitted on */
    double objective_before, objective;
    uint32_t evaluations; /* simulations: no point twice */
    bool converged;
};

/* Keys "k1,k2,k3": dotted paths, or, on a machine with one device, names in the runtime entry that
 * the model uses or in the device ("bandwidth", "rate", "submit"). Reads what the file says. 0 or
 * -EINVAL: unknown or repeated key, none or too many, not a quantity. */
int run_fit_keys(const struct config *c, const char *text, struct run_fit *fit, struct err *e);

/* Fits on the first n requests. 0; -EINVAL for too few requests, a number without any effect on
 * them (the fit would be singular), or a start that cannot be simulated. */
int run_fit(const struct config_options *o, const struct config_policy *p,
            const struct measured_run *run, size_t n, struct run_fit *fit, struct err *e);

/* Whether the form cannot be the run: E2E of the requests that it was fitted to is off by more than
 * RUN_FIT_LACK_FRAC in the median at the best numbers. */
bool run_fit_lacks(const struct run_score *fitted_on);

/* Loads the configuration with the fitted values in place. config_fini is needed in every case. */
int run_fit_load(const struct config_options *o, const struct run_fit *fit, struct config *c,
                 struct err *e);

#include "experiments/validation/validate_run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/shell/cli.h"
#include "experiments/validation/run_fit.h"
#include "experiments/validation/run_score.h"
#include "experiments/validation/validate_run_print.h"
#include "sim/base/arena.h"

#define DEFAULT_FIT_ON "first:0.3"

/* "first:0.3" of n requests, in order of arrival. */
static int fit_part(const char *text, size_t n, size_t *out, struct err *e)
{
    double share = 0.0;
    if (strncmp(text, "first:", 6) != 0) {
        return err_add(e, "--fit-on %s: must be first:SHARE, as in " DEFAULT_FIT_ON, text);
    }
    if (cli_number("fit-on first:", text + 6, 0.0, 1.0, &share, e) != 0) {
        return -EINVAL;
    }
    *out = (size_t)llround(share * (double)n);
    return 0;
}

/* The roofline of the file's own numbers: nothing fitted, no launch or fill terms. */
static int upper_bound(const struct config_policy *p, const struct measured_run *run,
                       const struct validate_run_options *o, struct run_score *out, struct err *e)
{
    char set[] = "sim.hwmodel=roofline";
    struct config_options with = o->config;
    if (with.n_sets == CONFIG_MAX_SETS) {
        return err_add(e, "--set: more than %d overrides", CONFIG_MAX_SETS - 1);
    }
    with.sets[with.n_sets++] = set;
    struct config c;
    struct measured_latency *simulated = xmalloc(run->trace.n * sizeof *simulated);
    int rc = config_load(&c, &with, e);
    rc = rc == 0 ? run_replay(&c, p, run, run->trace.n, o->config.seed, simulated, e) : rc;
    if (rc == 0) {
        run_score(run, simulated, 0, run->trace.n, out);
    }
    free(simulated);
    config_fini(&c);
    return rc;
}

/* Limits hold for all requests, and for those the fit has not seen. */
static int check_limits(const struct validate_run_options *o, const struct validate_run_result *r)
{
    int status = EXIT_OK;
    for (uint32_t i = 0; i < r->n_parts; i++) {
        const struct validate_run_part *part = &r->parts[i];
        for (int k = 0; k < RUN_METRIC_COUNT && !part->fitted_on; k++) {
            double pct = 100.0 * part->score.metric[k].mape;
            if (!(pct <= o->max_mape_pct[k]) && isfinite(o->max_mape_pct[k])) {
                (void)fprintf(stderr, "xpusim: %s: %s MAPE %.2f %% is above %g %%\n", part->name,
                              run_metric_names[k], pct, o->max_mape_pct[k]);
                status = EXIT_CHECK_FAILED;
            }
        }
    }
    return status;
}

static void add_part(struct validate_run_result *r, const char *name, bool fitted_on, size_t first,
                     size_t end)
{
    struct validate_run_part *part = &r->parts[r->n_parts++];
    *part = (struct validate_run_part){.name = name, .fitted_on = fitted_on};
    run_score(r->run, r->simulated, first, end, &part->score);
}

/* Scores the parts, prints, writes. The replay is done. */
static int report(const struct validate_run_options *o, struct validate_run_result *r,
                  const struct option_output *out, struct err *e)
{
    size_t n = r->run->trace.n;
    size_t n_fit = r->fit != NULL ? r->fit->n_requests : 0;
    if (n_fit > 0) {
        add_part(r, "fit", true, 0, n_fit);
    }
    if (n_fit > 0 && n_fit < n) {
        add_part(r, "unseen", false, n_fit, n);
    }
    add_part(r, "all", n_fit == n, 0, n);
    if (o->requests != NULL && validate_run_write(r, o->requests, e) != 0) {
        return EXIT_BAD_INPUT;
    }
    struct document *d = document_new();
    validate_run_document(r, d);
    document_show(d, out);
    return check_limits(o, r);
}

/* Everything is read: fits, replays, reports. */
static int validate(const struct validate_run_options *o, const struct config *unfitted,
                    const struct config_policy *p, const struct measured_run *run,
                    const struct option_output *out, struct err *e)
{
    struct run_fit fit = {.n_keys = 0};
    struct config c = {.tree = NULL};
    struct validate_run_result r = {
        .config = &c, .policy = p, .run = run, .name = o->run, .seed = o->config.seed};
    size_t n_fit = 0;
    int status = EXIT_BAD_INPUT;
    r.simulated = xmalloc(run->trace.n * sizeof *r.simulated);
    if (o->fit != NULL) {
        const char *on = o->fit_on != NULL ? o->fit_on : DEFAULT_FIT_ON;
        if (run_fit_keys(unfitted, o->fit, &fit, e) != 0 ||
            fit_part(on, run->trace.n, &n_fit, e) != 0 ||
            run_fit(&o->config, p, run, n_fit, &fit, e) != 0) {
            goto out;
        }
        r.fit = &fit;
    }
    if (run_fit_load(&o->config, &fit, &c, e) != 0) {
        goto out;
    }
    if (run_replay(&c, p, run, run->trace.n, r.seed, r.simulated, e) != 0 ||
        upper_bound(p, run, o, &r.roofline, e) != 0) {
        status = EXIT_CHECK_FAILED;
        goto out;
    }
    if (r.fit == NULL && o->uncertainty > 0 &&
        run_interval(&o->config, &c, p, run, r.simulated, o->uncertainty, &r.interval, e) != 0) {
        goto out;
    }
    status = report(o, &r, out, e);
out:
    free(r.simulated);
    config_fini(&c);
    return status;
}

static int check(const struct validate_run_options *o, struct err *e)
{
    if (o->run == NULL || o->policy == NULL || o->config.soc == NULL || o->config.llm == NULL) {
        return err_add(e, "validate --run needs --run, --soc, --llm and --policy");
    }
    if (o->config.trace != NULL || o->config.workload != NULL) {
        return err_add(e, "validate --run takes its requests from the run: no --trace, --workload");
    }
    return o->fit == NULL && o->fit_on != NULL ? err_add(e, "--fit-on needs --fit") : 0;
}

int validate_run(const struct validate_run_options *o, const struct option_output *out,
                 struct err *e)
{
    struct config unfitted;
    struct config_policy p;
    struct measured_run run;
    int status = EXIT_BAD_INPUT;
    if (check(o, e) != 0) {
        return status;
    }
    (void)config_load(&unfitted, &o->config, e);
    (void)config_policy_parse(&p, o->policy, e);
    (void)measured_run_read(o->run, &run, e);
    if (e->n == 0) {
        status = validate(o, &unfitted, &p, &run, out, e);
    }
    measured_run_fini(&run);
    config_fini(&unfitted);
    return status;
}

static void init(void *target)
{
    struct validate_run_options *o = target;
    for (int i = 0; i < RUN_METRIC_COUNT; i++) {
        o->max_mape_pct[i] = (double)INFINITY;
    }
}

#define OPTIONS struct validate_run_options

static const struct option_row rows[] = {
    OPTION_TEXT(OPTIONS, run, "run", "FILE", NULL,
                "a shipped run (hwmodels/runs) or a CSV: request_id, arrival_s, input_tokens, "
                "output_tokens, ttft_s, e2e_s"),
    OPTION_TEXT(OPTIONS, policy, "policy", "P[:K=V,..]", NULL,
                "policy and parameters (`xpusim list policy`)"),
    OPTION_TEXT(
        OPTIONS, fit, "fit", "K1[,K2[,K3]]", NULL,
        "fit these numbers to the first part of the run: paths of the configuration or, with "
        "one device, bandwidth, rate, submit, ..."),
    OPTION_TEXT(OPTIONS, fit_on, "fit-on", "first:F", NULL,
                "what to fit on (default " DEFAULT_FIT_ON ")"),
    OPTION_COUNT(OPTIONS, uncertainty, "uncertainty", "N", "64", 0, 10000,
                 "without --fit: run on N machines that the true one may be, and print between "
                 "which latencies 95 % of them lie; 0: not"),
    OPTION_TEXT(OPTIONS, requests, "requests", "FILE.csv", NULL,
                "write measured and simulated latencies, one line per request"),
    OPTION_NUMBER(
        OPTIONS, max_mape_pct[RUN_METRIC_E2E], "max-e2e-mape", "PCT", NULL, 0.0, 1e6,
        "exit 1 when the E2E MAPE of all requests, or of those that were not fitted on, is "
        "above PCT percent"),
    OPTION_NUMBER(OPTIONS, max_mape_pct[RUN_METRIC_TTFT], "max-ttft-mape", "PCT", NULL, 0.0, 1e6,
                  "the same for TTFT"),
};
const struct option_table validate_run_option_table = {
    .title = "A measured run", .rows = rows, .n = sizeof rows / sizeof rows[0], .init = init};

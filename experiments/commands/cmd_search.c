/* `xpusim search`: finds the highest rate that a policy sustains within SLOs. */
#include "experiments/commands/commands.h"
#include "experiments/compare/search.h"
#include "experiments/run/job_options.h"
#include "experiments/run/recordings.h"
#include "experiments/run/runner.h"
#include "experiments/shell/cli.h"
#include "experiments/sweep/suite.h"

#define MAX_POLICIES 32
struct options {
    struct config_options config;
    struct job_options work;
    struct option_output output;
    struct search_options search;
    struct option_texts policies;
    const char *suite; /* NULL: the configuration of the options */
};

static int take_slo(void *target, const struct option_row *row UNUSED, const char *text,
                    struct err *e)
{
    struct search_options *o = &((struct options *)target)->search;
    if (o->n_slos == SEARCH_MAX_SLOS) {
        return err_add(e, "--slo: more than %d", SEARCH_MAX_SLOS);
    }
    int rc = search_slo_parse(text, &o->slos[o->n_slos], e);
    o->n_slos += rc == 0;
    return rc;
}

struct prepared {
    struct config config;
    struct config_policy policies[MAX_POLICIES];
    struct compare_plan plan;
    struct search_result results[MAX_POLICIES];
};

static int prepare(struct prepared *c, const struct options *o, struct config_arrivals arrivals,
                   struct err *e)
{
    int rc = config_load_all(&c->config, &o->config, arrivals, o->policies.v, o->policies.n,
                             c->policies, e);
    for (uint32_t i = 0; i < o->search.n_slos && rc == 0; i++) {
        (void)runner_check_metric(&c->config, "slo", o->search.slos[i].metric, e);
    }
    if (rc == 0 && c->config.sim.horizon_s > 0.0) {
        (void)err_add(e,
                      "--slo: with sim.horizon_s requests stay unfinished, and a target holds at "
                      "the rate that leaves out most of them");
    }
    c->plan = (struct compare_plan){.config = &c->config,
                                    .options = &o->config,
                                    .policies = c->policies,
                                    .n_policies = o->policies.n,
                                    .how = o->work.how,
                                    .arrivals = arrivals};
    return e->n > 0 ? -EINVAL : 0;
}

static void describe(const struct options *o, const struct prepared *c, struct document *d)
{
    document_note(d, "%s, %s, %s; seed %" PRIu64, c->config.soc.machine.name, c->config.models,
                  c->config.workload, o->config.seed);
    DOCUMENT_VALUES(d, "config_hash", document_format("%016" PRIx64, c->config.hash), "workload",
                    c->config.workload, "confidence_frac", o->search.confidence_frac);
    search_document(&o->search, &c->plan, c->results, d);
}

/* Searches on one configuration, and fills its document. */
static int search_one(const struct options *o, struct config_arrivals arrivals, struct document *d,
                      struct err *e)
{
    OWNED struct prepared *c = xcalloc(1, sizeof *c);
    int status = EXIT_BAD_INPUT;
    if (prepare(c, o, arrivals, e) == 0) {
        status = EXIT_OK;
        for (uint32_t i = 0; i < o->policies.n; i++) {
            search_run(&o->search, &c->plan, i, &c->results[i]);
            bool found = c->results[i].low >= 0 && c->results[i].high >= 0;
            status = found ? status : EXIT_CHECK_FAILED;
        }
        describe(o, c, d);
    }
    config_fini(&c->config);
    return status;
}

static int search_suite(const struct options *o, struct document *d, struct err *e)
{
    struct suite *s = xkept(xcalloc(1, sizeof *s));
    struct document *points = document_array(d, "points");
    int status = suite_load(s, o->suite, e) == 0 ? EXIT_OK : EXIT_BAD_INPUT;
    DOCUMENT_VALUES(d, "suite", s->spec.name, "hash", document_format("%s", s->hash));
    for (uint32_t i = 0; i < s->n_points && status != EXIT_BAD_INPUT; i++) {
        struct options own = *o;
        own.config = suite_options(s, i, &o->config);
        struct document *at = document_within(points, NULL);
        document_note(at, "%s==== point %s", i > 0 ? "\n" : "", s->points[i].name);
        DOCUMENT_VALUES(at, "point", s->points[i].name);
        int one = search_one(&own, s->points[i].settings.arrivals, at, e);
        status = one > status ? one : status;
        document_print_so_far(d, &o->output, stdout);
    }
    return status;
}

static int search(void *values, struct err *e)
{
    const struct options *o = values;
    struct document *d = document_new();
    int status = o->suite != NULL ? search_suite(o, d, e) : search_one(o, CONFIG_AS_WRITTEN, d, e);
    if (status != EXIT_BAD_INPUT) {
        document_show(d, &o->output);
    }
    return status;
}

static int run(void *values, struct err *e)
{
    struct options *o = values;
    if (o->policies.n == 0) {
        return err_add(e, "--policy is missing (`xpusim list policy` shows the names)");
    }
    if (o->search.n_slos == 0) {
        return err_add(e, "--slo is missing, as in --slo 'reactive.e2e_s.p90<=20'");
    }
    if (options_without("search", "quantile below", e) != 0) {
        return EXIT_BAD_INPUT;
    }
    const uint32_t most = o->search.min_replications << (SEARCH_LOOKS - 1);
    for (uint32_t i = 0; i < o->search.n_slos; i++) {
        config_options_metric(&o->config, o->search.slos[i].metric);
    }
    o->config.several = true;
    if (o->suite != NULL) {
        (void)suite_refuse_options(&o->config, e);
    }
    if (o->config.trace != NULL && recordings_replications(&o->config, most) < most) {
        return err_add(e,
                       "--trace: a rate is judged on up to %u traces, and there %s %u; "
                       "give more, a smaller --replications, or --workload",
                       most, o->config.n_recordings == 1 ? "is" : "are", o->config.n_recordings);
    }
    return e->n > 0 ? -EINVAL : job_options_work(&o->work, o->output.quiet, search, o, e);
}

#define OPTIONS struct options

static const struct option_row rows[] = {
    OPTION_TEXTS(OPTIONS, policies, "policy", "P[:K=V,..]", MAX_POLICIES,
                 "policy and parameters; repeated"),
    OPTION_TEXT(OPTIONS, suite, "suite", "NAME", NULL,
                "search at every point of a suite (docs/concepts/arena.md)"),
    OPTION_OWN_LIST(
        take_slo, "slo", "METRIC<=VALUE",
        "or METRIC>=VALUE, of a metric's mean over replications; repeated, all must hold. "
        "Such as all.norm_e2e_per_token_s.mean<=0.1, reactive.e2e_s.p90<=20, or with "
        "--ttft-slo and --tpot-slo reactive.slo_attainment_frac>=0.9"),
    OPTION_NUMBER(OPTIONS, search.precision_frac, "precision", "F", "0.05", 0.001, 10.0,
                  "share by which the two ends may differ at the end"),
    OPTION_NUMBER(OPTIONS, search.confidence_frac, "confidence", "F", "0.95", 0.5, 0.9999,
                  "confidence of the whole statement, per policy"),
    OPTION_COUNT(OPTIONS, search.min_replications, "replications", "N", "10", 2, 10000,
                 "runs of the first look at a rate; up to 8 N when in doubt"),
};
const struct command cmd_search = {
    .name = "search",
    .summary = "find the highest rate a policy sustains under SLOs",
    .usage = "--policy P1 [--policy P2 ...] --slo METRIC<=VALUE ... [options]",
    .about =
        "Finds how far the workload's rates can be raised while every SLO holds. It is a bisection "
        "with as many replications at each rate as the decision needs, and a confidence statement. "
        "It takes each metric to get worse with the rate.",
    COMMAND_TAKES(OPTION_ROWS(NULL, rows), OPTION_CHILD(job_option_table, work),
                  OPTION_CHILD(option_output_table, output),
                  OPTION_CHILD(config_option_table, config)),
    .run = run,
};

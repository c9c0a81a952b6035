/* `xpusim falsify`: searches for the scenario in which a policy loses most. */
#include "experiments/commands/commands.h"
#include "experiments/falsify/runs.h"
#include "experiments/run/job_options.h"
#include "experiments/run/runner.h"
#include "experiments/shell/cli.h"
#include "sim/metrics/metric_table.h"

struct options {
    struct config_options config;
    struct job_options work;
    struct option_output output;
    struct falsify_options falsify;
    const char *policy, *baseline, *over;
    double relevance_percent;
    bool both;
};

struct prepared {
    struct config config;
    struct config_policy policy[FALSIFY_SIDES];
    struct space space;
};

static int prepare(struct prepared *p, const struct options *o, struct err *e)
{
    const char *const names[FALSIFY_SIDES] = {o->policy, o->baseline};
    if (config_load_all(&p->config, &o->config, CONFIG_AS_WRITTEN, names, FALSIFY_SIDES, p->policy,
                        e) == 0) {
        (void)runner_check_metric(&p->config, "metric", o->falsify.metric, e);
        if (p->config.sim.horizon_s > 0.0) {
            (void)err_add(e, "--metric: with sim.horizon_s requests stay unfinished, and no metric "
                             "has what those have lost");
        }
        (void)space_init(&p->space, &o->config, &p->config, o->over, e);
    }
    return e->n > 0 ? -EINVAL : 0;
}

/* side: index of the policy that should lose. */
static int one_way(const struct prepared *p, const struct options *o, int side, struct document *d,
                   struct err *e)
{
    struct falsify_options f = o->falsify;
    f.relevance_frac = o->relevance_percent / 100.0;
    f.seed = o->config.seed;
    OWNED struct falsify_result *r = xcalloc(1, sizeof *r);
    struct falsify_runs runs = {.space = &p->space,
                                .policy = {&p->policy[side], &p->policy[1 - side]},
                                .metric = f.metric,
                                .how = o->work.how};
    falsify_run(&runs, &f, r);
    falsify_document(&f, &runs, r, d);
    if (r->n_out == r->n_tried) {
        return err_add(e,
                       "%s against %s: no scenario has a result: a run fails in each, ends with an "
                       "empty battery, or has no %s above 0",
                       p->policy[side].label, p->policy[1 - side].label, f.metric);
    }
    return runs.reason.message[0] == '\0' ? 0 : err_add(e, "%s", runs.reason.message);
}

static int falsify(void *values, struct err *e)
{
    const struct options *o = values;
    OWNED struct prepared *p = xcalloc(1, sizeof *p);
    int status = EXIT_BAD_INPUT;
    if (prepare(p, o, e) == 0) {
        struct document *d = document_new();
        document_note(d, "%s, %s, %s; seed %" PRIu64 "\n", p->config.soc.machine.name,
                      p->config.models, p->config.workload, o->config.seed);
        DOCUMENT_VALUES(d, "config_hash", document_format("%016" PRIx64, p->config.hash),
                        "workload", p->config.workload, "seed", o->config.seed);
        struct document *ways = document_array(d, "searches");
        status = EXIT_OK;
        for (int side = 0; side < (o->both ? FALSIFY_SIDES : 1); side++) {
            if (side > 0) {
                document_note(ways, " ");
            }
            status = one_way(p, o, side, document_within(ways, NULL), e) == 0 ? status
                                                                              : EXIT_CHECK_FAILED;
        }
        document_show(d, &o->output);
    }
    config_fini(&p->config);
    return status;
}

static int run(void *values, struct err *e)
{
    struct options *o = values;
    if (o->policy == NULL || o->baseline == NULL) {
        return err_add(e, "--policy and --baseline are needed (`xpusim list policy` shows the "
                          "names)");
    }
    if (options_without("falsify", "quantile below", e) != 0) {
        return EXIT_BAD_INPUT;
    }
    if (o->config.trace != NULL) {
        return err_add(e,
                       "--trace: a loss is confirmed on fresh traces, and a recording gives none; "
                       "use --workload");
    }
    config_options_metric(&o->config, o->falsify.metric);
    return job_options_work(&o->work, o->output.quiet, falsify, o, e);
}

static void print_axes(FILE *out)
{
    (void)fputs("Varied, unless --over says less (from, to):\n", out);
    const struct space_axis *a;
    for (uint32_t i = 0; (a = space_axis_known(i)) != NULL; i++) {
        (void)fprintf(out, "  %-9s %-23s %5g %5g  %s\n",
                      a->machine  ? "machine"
                      : a->agents ? "agents"
                                  : "workload",
                      a->name, a->low, a->high, a->help);
    }
}

#define OPTIONS struct options

static const struct option_row rows[] = {
    OPTION_TEXT(OPTIONS, policy, "policy", "A[:K=V,..]", NULL, "policy under test"),
    OPTION_TEXT(OPTIONS, baseline, "baseline", "B[:K=V,..]", NULL,
                "policy that A must lose against"),
    OPTION_TEXT(OPTIONS, falsify.metric, "metric", "NAME", METRIC_PRIMARY,
                "metric in which A must lose"),
    OPTION_TEXT(OPTIONS, over, "over", "WHAT", "workload,machine",
                "parts that may vary: workload, machine, or both"),
    OPTION_COUNT(OPTIONS, falsify.budget, "budget", "N", "128", 8, 100000, "scenarios to try"),
    OPTION_COUNT(OPTIONS, falsify.replications, "replications", "N", "2", 1, 1000,
                 "seeds of each scenario"),
    OPTION_COUNT(OPTIONS, falsify.confirm, "confirm", "N", "12", 3, FALSIFY_MAX_REPLICATIONS,
                 "fresh seeds of every later step"),
    OPTION_NUMBER(OPTIONS, relevance_percent, "relevance", "PERCENT", "1", 0, 100,
                  "ignore smaller losses, in percent"),
    OPTION_FLAG(OPTIONS, both, "both-ways",
                "afterwards search where B loses to A, with the same budget"),
};
const struct command cmd_falsify = {
    .name = "falsify",
    .summary = "find workloads and machines on which a policy loses",
    .usage = "--policy A --baseline B [--metric NAME] [--over WHAT] [options]",
    .about = "Searches workloads and machines around the given ones for the scenario in which A is "
             "worst against B (cross-entropy, common random numbers). Then it confirms the "
             "scenario on fresh seeds, takes back every change that is not needed, and explains "
             "the request that lost most.",
    .print_notes = print_axes,
    COMMAND_TAKES(OPTION_ROWS(NULL, rows), OPTION_CHILD(job_option_table, work),
                  OPTION_CHILD(option_output_table, output),
                  OPTION_CHILD(config_option_table, config)),
    .run = run,
};

/* `xpusim validate`: compares predictions with measurements. */
#include <math.h>

#include "experiments/commands/commands.h"
#include "experiments/run/models.h"
#include "experiments/validation/validate.h"

struct options {
    struct validate_points_options points;
    struct validate_corun_options corun;
    struct validate_energy_options energy;
    struct validate_run_options run;
    struct option_output output;
};

/* The model that --set sim.contention names. NULL: none. */
static const char *contention_of(const struct config_options *o)
{
    static const char key[] = "sim.contention=";
    const char *model = NULL;
    for (uint32_t i = 0; i < o->n_sets; i++) {
        bool is = strncmp(o->sets[i], key, sizeof key - 1) == 0;
        model = is ? o->sets[i] + sizeof key - 1 : model;
    }
    return model;
}

/* Options of one task, with what says that they are given. */
struct given {
    bool is;
    const char *option;
};

static const char *first_given(const struct given *v, size_t n)
{
    const char *first = NULL;
    for (size_t i = n; i-- > 0;) {
        first = v[i].is ? v[i].option : first;
    }
    return first;
}

#define FIRST_GIVEN(v) first_given(v, sizeof(v) / sizeof *(v))

/* The rows of --energy are printed without --rows, too. */
static const char *option_of_points(const struct options *all)
{
    const struct validate_points_options *o = &all->points;
    const struct given v[] = {{o->rows && all->energy.energy == NULL, "--rows"},
                              {isfinite(o->max_median_pct), "--max-median"},
                              {isfinite(o->max_p90_pct), "--max-p90"},
                              {o->leave_machine_out > 0, "--leave-machine-out"},
                              {o->accuracy, "--accuracy"},
                              {o->against != NULL, "--against"}};
    return FIRST_GIVEN(v);
}

static const char *option_of_run(const struct validate_run_options *o)
{
    const struct given v[] = {{o->policy != NULL, "--policy"},
                              {o->fit != NULL, "--fit"},
                              {o->fit_on != NULL, "--fit-on"},
                              {o->replicas > 1, "--replicas"},
                              {o->requests != NULL, "--requests"},
                              {isfinite(o->max_mape_pct[RUN_METRIC_E2E]), "--max-e2e-mape"},
                              {isfinite(o->max_mape_pct[RUN_METRIC_TTFT]), "--max-ttft-mape"}};
    return FIRST_GIVEN(v);
}

/* Options of simulations that the task has no use for. */
static const char *option_of_others(const struct options *o)
{
    const struct config_options *c = &o->run.config;
    bool runs = o->run.run != NULL;
    uint32_t sets = o->energy.energy != NULL ? 0 : contention_of(c) != NULL;
    const struct given v[] = {
        {!runs && c->trace != NULL, "--trace"},
        {!runs && c->workload != NULL, "--workload"},
        {c->machine != NULL, "--machine"},
        {!runs && c->seed_given, "--seed"},
        {!runs && c->ttft_slo_s > 0.0, "--ttft-slo"},
        {!runs && c->tpot_slo_s > 0.0, "--tpot-slo"},
        {c->asked.n_percents > 0, "--quantile"},
        {c->asked.n_limits > 0, "--below"},
        {c->asked.reader.tokens_per_s > 0.0, "--qoe"},
        {(o->energy.energy != NULL || o->corun.corun != NULL) && c->n_sets > sets, "--set"}};
    return FIRST_GIVEN(v);
}

/* Refuses an option that would be ignored. */
static int refuse_ignored(const struct options *o, const char *task, struct err *e)
{
    const char *of = o->points.points == NULL ? option_of_points(o) : NULL;
    if (of != NULL) {
        return err_add(e, "%s: goes with --points, not with %s", of, task);
    }
    of = o->run.run == NULL ? option_of_run(&o->run) : NULL;
    if (of != NULL) {
        return err_add(e, "%s: goes with --run, not with %s", of, task);
    }
    of = option_of_others(o);
    return of != NULL ? err_add(e, "%s: %s has no use for it", of, task) : 0;
}

static int run(void *values, struct err *e)
{
    struct options *o = values;
    int tasks = (o->points.points != NULL) + (o->run.run != NULL) + (o->corun.corun != NULL) +
                (o->energy.energy != NULL);
    if (tasks > 1) {
        return err_add(e, "--points, --corun, --energy and --run exclude each other");
    }
    if (o->points.unseen != NULL && o->points.points == NULL && o->energy.energy == NULL) {
        return err_add(e, "--unseen goes with --leave-machine-out or --energy");
    }
    bool chosen = o->run.config.soc_given || o->run.config.llm_given;
    if (chosen && (o->energy.energy != NULL || o->corun.corun != NULL)) {
        return err_add(e, "--energy and --corun are of all machines and models of their table: "
                          "--soc and --llm do not go with them");
    }
    const struct given task[] = {{o->points.points != NULL, "--points"},
                                 {o->corun.corun != NULL, "--corun"},
                                 {o->energy.energy != NULL, "--energy"},
                                 {o->run.run != NULL, "--run"}};
    if (tasks == 1 && refuse_ignored(o, FIRST_GIVEN(task), e) != 0) {
        return EXIT_BAD_INPUT;
    }
    if (o->energy.energy != NULL) {
        o->energy.unseen = o->points.unseen;
        return validate_energy(&o->energy, &o->output, e);
    }
    if (o->corun.corun != NULL) {
        return validate_corun(&o->corun, contention_of(&o->run.config), &o->output, e);
    }
    if (o->run.config.llm != NULL && models_refuse_several(&o->run.config, "validate", e) != 0) {
        return EXIT_BAD_INPUT;
    }
    o->run.config.seed = o->run.config.seed_given ? o->run.config.seed : 1;
    if (o->points.points != NULL) {
        return validate_points(&o->points, &o->run.config, &o->output, e);
    }
    if (o->run.run != NULL) {
        return validate_run(&o->run, &o->output, e);
    }
    return err_add(e, "say what to validate: --points FILE, --corun FILE, --energy FILE or "
                      "--run FILE");
}

#define OPTIONS struct options

const struct command cmd_validate = {
    .name = "validate",
    .summary = "compare predictions with measured points and runs",
    .usage = "--points FILE.csv [--soc S] [options]\n"
             "--corun FILE.csv [--set sim.contention=M]\n"
             "--energy FILE.csv [--unseen FILE.csv]\n"
             "--run FILE --soc S --llm M --policy P [options]",
    .about = "--points predicts every row of a table of published measurements from the shipped "
             "SoC and LLM files, or prints why it cannot. It sums the errors up by SoC, device, "
             "metric, prompt length and model.\n\n--corun compares every contention model with "
             "measured slowdowns of co-running kernels. Each machine is predicted by a fit without "
             "it.\n\n--energy fits what a meter reads (idle, device, joules per byte) and "
             "predicts every published power without its source, and joules per token where a "
             "SoC file predicts the rate. With --unseen it predicts the rows of another table by "
             "the fit of the first.\n\n--run replays the arrivals and token counts of a "
             "measured serving run under a policy, and prints the errors of the simulated "
             "latencies. KV capacity is an input: --set "
             "sim.kv_capacity_tokens=N.",
    COMMAND_TAKES(OPTION_CHILD(validate_points_option_table, points),
                  OPTION_CHILD(validate_corun_option_table, corun),
                  OPTION_CHILD(validate_energy_option_table, energy),
                  OPTION_CHILD(validate_run_option_table, run),
                  OPTION_CHILD(option_output_table, output),
                  {&config_option_table, offsetof(OPTIONS, run.config), NULL, true}),
    .run = run,
};

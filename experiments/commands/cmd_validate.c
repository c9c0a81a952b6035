/* `xpusim validate`: compares predictions with measurements. */
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

/* Tasks, and the options that each has a use for. validate_run itself refuses two of --run. */
#define OF_RUN                                                                                     \
    "run soc llm set seed ttft-slo tpot-slo trace workload policy fit fit-on replicas requests "   \
    "max-e2e-mape max-ttft-mape"
static const struct task {
    const char *option, *names;
} tasks[] = {
    {"--points", "points soc llm set rows max-median max-p90 leave-machine-out unseen accuracy "
                 "against"},
    {"--corun", "corun set"},
    {"--energy", "energy unseen rows"},
    {"--run", OF_RUN " uncertainty queue"},
};

/* Refuses an option that would be ignored. */
static int refuse_ignored(const struct options *o, const struct task *task, struct err *e)
{
    OWNED char *name = xformat("validate %s", task->option);
    int rc = options_only(name, task->names, e);
    if (rc == 0 && o->run.run != NULL && o->run.replicas == 1) {
        rc = options_only("validate --run without --replicas", OF_RUN " uncertainty", e);
    }
    if (rc == 0 && o->run.run != NULL && o->run.fit != NULL) {
        rc = options_only("validate --run --fit", OF_RUN " queue", e);
    }
    bool sets = o->corun.corun != NULL &&
                o->run.config.n_sets > (contention_of(&o->run.config) != NULL ? 1 : 0);
    return rc == 0 && sets ? err_add(e, "--set: %s has no use for it but sim.contention", name)
                           : rc;
}

static int run(void *values, struct err *e)
{
    struct options *o = values;
    const bool given[] = {o->points.points != NULL, o->corun.corun != NULL,
                          o->energy.energy != NULL, o->run.run != NULL};
    const struct task *task = NULL;
    uint32_t n = 0;
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        task = given[i] ? &tasks[i] : task;
        n += given[i];
    }
    if (n > 1) {
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
    if (n == 1 && refuse_ignored(o, task, e) != 0) {
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

/* `xpusim validate`: predictions against what was measured. */
#include "experiments/commands/commands.h"
#include "experiments/run/models.h"
#include "experiments/validation/validate_points.h"
#include "experiments/validation/validate_run.h"

struct options {
    struct validate_points_options points;
    struct validate_run_options run;
    struct option_output output;
};

static int run(void *values, struct err *e)
{
    struct options *o = values;
    if (o->points.points != NULL && o->run.run != NULL) {
        return err_add(e, "--points and --run exclude each other");
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
    return err_add(e, "say what to validate: --points FILE or --run FILE");
}

#define OPTIONS struct options

const struct command cmd_validate = {
    .name = "validate",
    .summary = "compare predictions with measured points and runs",
    .usage = "--points FILE.csv [--soc S] [options]\n"
             "--run FILE --soc S --llm M --policy P [options]",
    .about = "--points predicts every row of a table of published measurements from the shipped "
             "SoC and LLM files, or prints why it cannot. It sums the errors up by SoC, device, "
             "metric, prompt length and model.\n\n--run replays the arrivals and token counts of a "
             "measured serving run under a policy, and prints the errors of the simulated "
             "latencies. KV capacity is an input: --kv-capacity.",
    COMMAND_TAKES(OPTION_CHILD(validate_points_option_table, points),
                  OPTION_CHILD(validate_run_option_table, run),
                  OPTION_CHILD(option_output_table, output),
                  {&config_option_table, offsetof(OPTIONS, run.config), NULL, true}),
    .run = run,
};

/* `xpusim COMMAND [options]`: finds the command and hands over. */
#include <stdio.h>
#include <string.h>

#include "experiments/commands/commands.h"
#include "sim/base/version.h"

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    {"run", cmd_run, "one simulation: a policy, a machine, a workload"},
    {"compare", cmd_compare, "policies on the same requests, with confidence intervals"},
    {"sweep", cmd_sweep, "an experiment file: many runs into a store, resumable, in shards"},
    {"merge", cmd_merge, "stores of shards into one"},
    {"list", cmd_list, "policies, SoCs, models, datasets, kernels"},
    {"trace", cmd_trace, "generate, import or describe workloads"},
    {"validate", cmd_validate, "predictions against measured points and runs"},
    {"search", cmd_search, "the highest rate a policy sustains under SLOs"},
    {"explain", cmd_explain, "where one request's latency went"},
    {"report", cmd_report, "comparisons as one HTML page"},
    {"measure", cmd_measure, "kernels on real devices, and the fit of what was measured"},
    {"calibrate", cmd_calibrate, "fits a SoC file to measured points"},
    {"characterize", cmd_characterize, "the papers' analyses of kernels and devices, as data"},
    {"claims", cmd_claims, "the papers' published results against the simulator's"},
    {"gate", cmd_gate, "scheduling metrics against a recorded baseline, for CI"},
    {"diff", cmd_diff, "the first decision in which two runs differ, with both states"},
    {"bisect", cmd_bisect, "the smallest trace that shows such a difference"},
    {"plot", cmd_plot, "figures from results, as SVG and PNG"},
    {"graphs", cmd_graphs, "strategies of switching NPU graphs, and the optimum"},
    {"new-policy", cmd_new_policy, "a policy plug-in to start from, with its Makefile and test"},
    {"selftest", cmd_selftest, "closed-form checks of this installation, in seconds"},
};

#define N_COMMANDS (sizeof commands / sizeof commands[0])

static void usage(FILE *out)
{
    (void)fprintf(out, "xpusim: a discrete-event simulator of agentic LLM serving on NPU + iGPU + "
                       "CPU machines\n\nusage: xpusim COMMAND [options]\n\n");
    for (size_t i = 0; i < N_COMMANDS; i++) {
        (void)fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].summary);
    }
    (void)fprintf(out,
                  "\n`xpusim COMMAND --help` shows the options of a command; `xpusim --version`"
                  " the version.\nExit status: 0 fine, 1 a run or check failed, 2 bad input.\n");
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return EXIT_BAD_INPUT;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        usage(stdout);
        return EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        (void)printf("xpusim %s (%s)\n", XPUSIM_VERSION, XPUSIM_REVISION);
        return EXIT_OK;
    }
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            int status = commands[i].run(argc - 1, argv + 1);
            if (fflush(stdout) != 0 || ferror(stdout) != 0) {
                perror("xpusim: cannot write results");
                return EXIT_CHECK_FAILED;
            }
            return status;
        }
    }
    (void)fprintf(stderr, "xpusim: error: no command is called %s; `xpusim --help` lists them\n",
                  argv[1]);
    return EXIT_BAD_INPUT;
}

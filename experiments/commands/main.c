/* `xpusim COMMAND [options]`: finds the command and hands over. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "experiments/commands/commands.h"
#include "sim/base/memory.h"
#include "sim/base/version.h"

static const struct command *const commands[] = {
    &cmd_run,       &cmd_compare,      &cmd_drive,      &cmd_sweep,    &cmd_merge,  &cmd_list,
    &cmd_trace,     &cmd_validate,     &cmd_search,     &cmd_explain,  &cmd_report, &cmd_measure,
    &cmd_calibrate, &cmd_characterize, &cmd_claims,     &cmd_gate,     &cmd_diff,   &cmd_bisect,
    &cmd_plot,      &cmd_graphs,       &cmd_new_policy, &cmd_selftest,
};

#define N_COMMANDS (sizeof commands / sizeof commands[0])

static void usage(FILE *out)
{
    (void)fprintf(out, "xpusim: a discrete-event simulator of agentic LLM serving on NPU + iGPU + "
                       "CPU machines\n\nusage: xpusim COMMAND [options]\n\n");
    for (size_t i = 0; i < N_COMMANDS; i++) {
        (void)fprintf(out, "  %-12s %s\n", commands[i]->name, commands[i]->summary);
    }
    (void)fprintf(
        out, "\n`xpusim COMMAND --help` shows the options of a command; `xpusim --version`"
             " the version.\nExit status: 0 fine, 1 a run or check failed, 2 bad input, 3 out of "
             "memory.\n");
}

/* Runs the command and returns the exit status. */
static int dispatch(int argc, char **argv)
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
        if (strcmp(argv[1], commands[i]->name) == 0) {
            return command_main(commands[i], argc - 1, argv + 1);
        }
    }
    (void)fprintf(stderr, "xpusim: error: no command is called %s; `xpusim --help` lists them\n",
                  argv[1]);
    return EXIT_BAD_INPUT;
}

int main(int argc, char **argv)
{
    memory_guard();
    (void)signal(SIGXFSZ, SIG_IGN); /* the write fails, and says so */
    int status = dispatch(argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        perror("xpusim: error: cannot write results");
        return status == EXIT_OK ? EXIT_CHECK_FAILED : status;
    }
    return status;
}

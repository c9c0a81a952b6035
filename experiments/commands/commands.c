#include "experiments/commands/commands.h"

#include <stdio.h>
#include <string.h>

static const struct command *const list[] = {
    &cmd_run,      &cmd_compare,  &cmd_drive,      &cmd_observe,
    &cmd_sweep,    &cmd_merge,    &cmd_list,       &cmd_trace,
    &cmd_validate, &cmd_search,   &cmd_falsify,    &cmd_explain,
    &cmd_report,   &cmd_measure,  &cmd_calibrate,  &cmd_characterize,
    &cmd_claims,   &cmd_gate,     &cmd_diff,       &cmd_bisect,
    &cmd_plot,     &cmd_graphs,   &cmd_new_policy, &cmd_new_soc,
    &cmd_new_llm,  &cmd_selftest, &cmd_help,       NULL,
};

const struct command *const *commands(void)
{
    return list;
}

const struct command *command_find(const char *name, struct err *e)
{
    const char *names[sizeof list / sizeof list[0]];
    for (size_t i = 0; list[i] != NULL; i++) {
        if (strcmp(list[i]->name, name) == 0) {
            return list[i];
        }
        names[i] = list[i]->name;
    }
    names[sizeof list / sizeof list[0] - 1] = NULL;
    const char *near = options_nearest(name, names);
    (void)(near != NULL
               ? err_add(e, "no command is called %s; did you mean %s? `xpusim --help` lists them",
                         name, near)
               : err_add(e, "no command is called %s; `xpusim --help` lists them", name));
    return NULL;
}

void commands_usage(FILE *out)
{
    (void)fprintf(out, "xpusim: a discrete-event simulator of agentic LLM serving on NPU + iGPU + "
                       "CPU machines\n\nusage: xpusim COMMAND [options]\n\n");
    for (size_t i = 0; list[i] != NULL; i++) {
        (void)fprintf(out, "  %-12s %s\n", list[i]->name, list[i]->summary);
    }
    (void)fprintf(
        out, "\n`xpusim help COMMAND` or `xpusim COMMAND --help` shows the options of a command;\n"
             "`xpusim --version` the version. Exit status: 0 fine, 1 a run or check failed, 2 bad\n"
             "input, 3 out of memory.\n");
}

#include "experiments/commands/commands.h"

#include "sim/base/nearest.h"

static const struct command *const list[] = {
    &cmd_run,        &cmd_compare,      &cmd_ablate,       &cmd_drive,   &cmd_observe,
    &cmd_sweep,      &cmd_merge,        &cmd_list,         &cmd_trace,   &cmd_validate,
    &cmd_search,     &cmd_falsify,      &cmd_explain,      &cmd_view,    &cmd_report,
    &cmd_measure,    &cmd_calibrate,    &cmd_characterize, &cmd_claims,  &cmd_figure,
    &cmd_gate,       &cmd_diff,         &cmd_bisect,       &cmd_plot,    &cmd_graphs,
    &cmd_new_policy, &cmd_check_policy, &cmd_new_soc,      &cmd_new_llm, &cmd_selftest,
    &cmd_arena,      &cmd_mcp,          &cmd_send_in,      &cmd_help,    NULL,
};

const struct command *const *commands(void)
{
    return list;
}

const struct command *command_find(const char *name, struct err *e)
{
    struct nearest near;
    nearest_init(&near, name);
    for (size_t i = 0; list[i] != NULL; i++) {
        if (strcmp(list[i]->name, name) == 0) {
            return list[i];
        }
        nearest_look(&near, list[i]->name);
    }
    return err_null(e, "no command is called %s%s `xpusim --help` lists them", name,
                    near.best[0] != '\0' ? nearest_hint(&near) : ";");
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

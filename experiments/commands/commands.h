/* The commands of `xpusim`: the options of each, and its function (experiments/shell/options.h).
 * Results go to stdout; progress and messages to stderr. */
#pragma once

#include "experiments/shell/cli.h" /* exit statuses */
#include "experiments/shell/options.h"

extern const struct command cmd_ablate, cmd_bisect, cmd_calibrate, cmd_characterize,
    cmd_check_policy, cmd_claims, cmd_compare, cmd_diff, cmd_drive, cmd_explain, cmd_falsify,
    cmd_figure, cmd_gate, cmd_graphs, cmd_help, cmd_list, cmd_mcp, cmd_measure, cmd_merge,
    cmd_new_policy, cmd_new_soc, cmd_new_llm, cmd_observe, cmd_plot, cmd_view, cmd_report, cmd_run,
    cmd_search, cmd_arena, cmd_selftest, cmd_send_in, cmd_sweep, cmd_trace, cmd_validate;
extern const struct command arena_archive, arena_new; /* subcommands of arena */

/* All commands, in the order of help; NULL-terminated. */
const struct command *const *commands(void);
/* Finds a command by name. NULL with an error that names the most similar one. */
const struct command *command_find(const char *name, struct err *e);
void commands_usage(FILE *out);

/* The commands of `xpusim`: what each takes, and its function (experiments/shell/options.h).
 * Results go to stdout; progress and messages to stderr. */
#pragma once

#include "experiments/shell/cli.h" /* exit statuses */
#include "experiments/shell/options.h"

extern const struct command cmd_ablate;
extern const struct command cmd_bisect;
extern const struct command cmd_calibrate;
extern const struct command cmd_characterize;
extern const struct command cmd_check_policy;
extern const struct command cmd_claims;
extern const struct command cmd_compare;
extern const struct command cmd_diff;
extern const struct command cmd_drive;
extern const struct command cmd_explain;
extern const struct command cmd_falsify;
extern const struct command cmd_figure;
extern const struct command cmd_gate;
extern const struct command cmd_graphs;
extern const struct command cmd_help;
extern const struct command cmd_list;
extern const struct command cmd_mcp;
extern const struct command cmd_measure;
extern const struct command cmd_merge;
extern const struct command cmd_new_policy;
extern const struct command cmd_new_soc;
extern const struct command cmd_new_llm;
extern const struct command cmd_observe;
extern const struct command cmd_plot;
extern const struct command cmd_view;
extern const struct command cmd_report;
extern const struct command cmd_run;
extern const struct command cmd_search;
extern const struct command cmd_arena;
extern const struct command arena_archive, arena_new; /* its subcommands */
extern const struct command cmd_selftest;
extern const struct command cmd_send_in;
extern const struct command cmd_sweep;
extern const struct command cmd_trace;
extern const struct command cmd_validate;

/* All of them, in the order of help; ends with NULL. */
const struct command *const *commands(void);
/* By name; NULL after an error that names the nearest. */
const struct command *command_find(const char *name, struct err *e);
void commands_usage(FILE *out);

/* The commands of `xpusim`. Each gets its own argument vector (argv[0] is the command's name) and
 * returns the exit status. Results go to stdout; progress and messages to stderr. */
#ifndef EXPERIMENTS_COMMANDS_H
#define EXPERIMENTS_COMMANDS_H

#include "experiments/shell/cli.h" /* exit statuses */

int cmd_bisect(int argc, char **argv);
int cmd_calibrate(int argc, char **argv);
int cmd_characterize(int argc, char **argv);
int cmd_claims(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_gate(int argc, char **argv);
int cmd_graphs(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_new_policy(int argc, char **argv);
int cmd_measure(int argc, char **argv);
int cmd_plot(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_search(int argc, char **argv);
int cmd_selftest(int argc, char **argv);
int cmd_sweep(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_validate(int argc, char **argv);

#endif

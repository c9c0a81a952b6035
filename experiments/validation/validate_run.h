/* `xpusim validate --run`: a measured serving run against its replay. */
#ifndef EXPERIMENTS_VALIDATION_VALIDATE_RUN_H
#define EXPERIMENTS_VALIDATION_VALIDATE_RUN_H

/* argv[0] is the command's name. Prints, and returns the exit status: 0, 1 when an error is above
 * a stated limit or the replay fails, 2 for bad input. */
int validate_run_command(int argc, char **argv);

extern const char validate_run_help[];

#endif

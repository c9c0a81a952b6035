/* `xpusim validate --points`: published measurements against what the shipped files predict. */
#ifndef EXPERIMENTS_VALIDATION_VALIDATE_POINTS_H
#define EXPERIMENTS_VALIDATION_VALIDATE_POINTS_H

extern const char validate_points_help[];

/* The command; argv[0] is "validate". Exit status. */
int validate_points_command(int argc, char **argv);

#endif

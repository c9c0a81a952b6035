/* The system calls of a jail (jail.h). */
#pragma once

#include <stdbool.h>

/* Installs the filter for this process for good. Calls that reach another process, the network, or
 * what lies around files fail with EPERM; and those that start a process, unless `forks`. Where
 * `warms`, it may start processes and signal itself and them, and each of them has to install the
 * filter below. 0 or -errno. */
int jail_filter(bool forks, bool warms);

/* The filter of a process that starts none, in hexadecimal digits, for one that installs it itself:
 * 8 bytes an instruction, whose last 4 are its operand. An operand JAIL_MY_PID is to be that
 * process's number. The caller frees it. */
char *jail_filter_text(void);
#define JAIL_MY_PID 0x7ffffffeu /* no process has it */

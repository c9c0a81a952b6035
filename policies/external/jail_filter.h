/* The system-call filter of a jail (jail.h). */
#pragma once

#include <stdbool.h>

/* Installs the filter for this process for good. Calls that affect another process, the network, or
 * file metadata fail with EPERM, and calls that start a process unless `forks`. With `warms`, the
 * process may start processes and signal itself and them; each of these must install the filter
 * below. Returns 0 or -errno. */
int jail_filter(bool forks, bool warms);

/* The filter of a process that starts none, for a process that installs it itself. Hexadecimal
 * digits, 8 bytes per instruction, of which the last 4 are the operand. Replace an operand
 * JAIL_MY_PID by the process's number. The caller frees it. */
char *jail_filter_text(void);
#define JAIL_MY_PID 0x7ffffffeu /* not a valid pid */

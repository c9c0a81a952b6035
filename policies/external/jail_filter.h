/* The system calls of a jail (jail.h). */
#pragma once

#include <stdbool.h>

/* Installs the filter for this process for good. Calls that reach another process, the network, or
 * what lies around files fail with EPERM; and those that start a process, unless `forks`. 0 or
 * -errno. */
int jail_filter(bool forks);

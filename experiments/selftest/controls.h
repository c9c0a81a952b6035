/* Negative controls: change one thing of the demo comparison and see whether the result moves the
 * way its mechanism says. A control that does not move shows a mechanism that is not there. */
#pragma once

#include <stddef.h>

#include "experiments/shell/document.h"

/* Runs all controls, and adds a row each. Returns how many did not move as predicted. */
size_t controls_run(struct document *d);
/* How many there are. */
size_t controls_count(void);

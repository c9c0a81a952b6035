/* Negative controls: change one thing of the demo comparison and see whether the result moves the
 * way its mechanism says. A control that does not move shows a mechanism that is not there. */
#pragma once

#include <stddef.h>

#include "experiments/run/study.h"
#include "experiments/shell/document.h"

/* Asks for the runs of all controls, and adds a row each; ctx: struct controls. */
struct controls {
    struct document *d;
    size_t wrong; /* how many did not move as predicted */
};
study_judge controls_judge;
/* How many there are. */
size_t controls_count(void);

/* A machine file from an owner's archive (send.h, hwmodels/measure_windows.py). */
#pragma once

#include "experiments/shell/document.h"

/* Reads the archive and writes a SoC file of that name to `output` (NULL: NAME.json). It never
 * replaces a file. A calibrated file in the archive is the machine, with the memory's peak where
 * the facts have it. Without one the rows are fitted, as `measure --fit` does. `d` gets the facts
 * of the machine and the errors of its predictions. Returns 0; 1 where the fit's form is wrong;
 * -EINVAL with errors that name archive, file and place. */
int take_machine(const char *archive, const char *name, const char *output, struct document *d,
                 struct err *e);

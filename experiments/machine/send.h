/* Measures all that an owner's machine can show, into one archive: `xpusim send-in`.
 *
 * Each step is a command of this program in a process of its own, so a driver that crashes or hangs
 * costs its step only. Files of complete steps are in the folder ARCHIVE.partial until the archive
 * is written. A further call of this command continues after the last complete step. */
#pragma once

#include "experiments/shell/document.h"

#define SEND_FORMAT 1

struct send_options {
    const char *out;  /* "my-machine.tar.gz" */
    const char *size; /* of `measure`: "tiny", "small", "full" */
    bool dry;         /* print what would run and what would go in */
    struct option_output shown;
};

/* 0; 1: a step failed, and the archive says which; 2 with errors: it cannot begin. */
int send_in(const struct send_options *o, struct err *e);

/* A machine file from an owner's archive (send.h, hwmodels/measure_windows.py). */

/* Reads the archive and writes a SoC file of that name to `output` (NULL: NAME.json). It never
 * replaces a file. A calibrated file in the archive is the machine, with the memory's peak where
 * the facts have it. Without one the rows are fitted, as `measure --fit` does. `d` gets the facts
 * of the machine and the errors of its predictions. Returns 0; 1 where the fit's form is wrong;
 * -EINVAL with errors that name archive, file and place. */
int take_machine(const char *archive, const char *name, const char *output, struct document *d,
                 struct err *e);

/* Runs all measurements on an owner's machine, and makes one archive: `xpusim send-in`.
 *
 * Each step is a command of this program in its own process, so a driver that crashes or hangs only
 * loses its step. Files of complete steps are in the folder ARCHIVE.partial until the archive is
 * written. A further call of this command continues after the last complete step. */
#pragma once

#include "experiments/shell/document.h"

#define SEND_FORMAT 1

struct send_options {
    const char *out;  /* "my-machine.tar.gz" */
    const char *size; /* of `measure`: "tiny", "small", "full" */
    bool dry;         /* print the steps and the content of the archive */
    struct option_output shown;
};

/* Returns 0; 1: a step failed, which the archive names; 2 with errors: it cannot start. */
int send_in(const struct send_options *o, struct err *e);

/* ---- a machine file from an owner's archive (hwmodels/measure_windows.py makes these, too) ----
 */

/* Reads the archive and writes a SoC file called name to `output` (NULL: NAME.json). It never
 * replaces a file. It uses a calibrated file in the archive, with the DDR peak of the facts if they
 * have one. Otherwise the rows are fitted as by `measure --fit`. `d` gets the facts and the errors
 * of predictions. Returns 0; 1: the fit's model is wrong; -EINVAL with errors that name archive,
 * file and place. */
int take_machine(const char *archive, const char *name, const char *output, struct document *d,
                 struct err *e);

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

/* Declarations shared by the files of `xpusim drive`. */
#pragma once

#include <signal.h>

#include "experiments/drive/calibration.h"
#include "experiments/shell/document.h"

struct drive_values {
    struct config_options config;
    struct real_options real;
    struct option_output output;
    struct option_texts policies, calibrate;
    const char *kernels, *tokens, *topk, *requests, *decisions, *timeline, *out, *datasheet, *probe;
    uint32_t repeat;
    bool compare, explain, trace_only;
};

/* The number of the signal that requested an end. A second signal ends the program at once. */
extern volatile sig_atomic_t drive_interrupt;
void drive_listen(void);
/* Prints which part of the work is in the results. Returns the exit status. */
int drive_say_interrupted(uint32_t n, const char *what);
int drive_failed(const struct real_run *r);

/* --compare (drive_compare.c): runs every policy for real, and compares its simulation with it. */
int drive_compare(const struct drive_values *o, const struct drive_options *d,
                  struct calibration *cal, const struct trace *t, struct err *e);

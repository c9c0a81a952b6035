/* `xpusim drive`: what its files share. */
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

/* The number of the signal that asks for an end. A second one ends the program at once. */
extern volatile sig_atomic_t drive_interrupt;
void drive_listen(void);
/* Says what of the work is in the results; the exit status. */
int drive_say_interrupted(uint32_t n, const char *what);
int drive_failed(const struct real_run *r);

/* --compare (drive_compare.c): every policy for real, and its simulation against what ran. */
int drive_compare(const struct drive_values *o, const struct drive_options *d,
                  struct calibration *cal, const struct trace *t, struct err *e);

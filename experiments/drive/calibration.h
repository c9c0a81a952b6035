/* Calibration: runs a few policies for real, and fits a machine file to their kernels. */
#pragma once

#include "experiments/drive/fit.h"
#include "experiments/drive/real.h"
#include "experiments/drive/transfer.h"
#include "experiments/shell/document.h"
#include "hwmodels/pairs.h"

struct calibration {
    const struct drive_options *drive;
    const struct config *config;          /* of the real machine */
    const struct config_options *options; /* of the traces */
    struct option_texts traces, policies; /* no policies: openvino-cb and agent-xpu-v2 */
    const char *out;                      /* the SoC file */
    bool trace_only;                      /* skips the bench (bench.h) */
    struct transfer transfer;             /* set by calibration_write */
    struct fit_input in;                  /* kernels of all runs so far; fit_input_init and _fini */
    uint32_t n_whole;                     /* runs of policies among them; the others are benches */
    struct pairs pairs;                   /* set by calibration_pairs */
    struct document *said;                /* report on the pairs; NULL: none wanted */
};

/* Runs the bench on every device, and every policy once on every trace. Returns an exit status;
 * stderr has the reason of a failed run. */
int calibration_round(struct calibration *c, struct err *e);
/* Measures the slowdowns of co-running kernels (pairs_here.h). calibration_write adds them to the
 * file. */
void calibration_pairs(struct calibration *c);
/* Fits all runs so far, and writes the SoC file. */
int calibration_write(struct calibration *c, struct fit *fit, struct err *e);
void calibration_print(const struct calibration *c, const struct fit *f, FILE *out);

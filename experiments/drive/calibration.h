/* Calibration: a few policies run for real, and what their kernels say becomes a machine file. */
#pragma once

#include "experiments/drive/fit.h"
#include "experiments/drive/real.h"
#include "experiments/drive/transfer.h"
#include "experiments/shell/document.h"
#include "hwmodels/pairs.h"

struct calibration {
    const struct drive_options *drive;
    const struct config *config;          /* of the machine that runs */
    const struct config_options *options; /* of the traces */
    struct option_texts traces, policies; /* no policies: openvino-cb and agent-xpu-v2 */
    const char *out;                      /* the SoC file */
    bool trace_only;                      /* without bench.h */
    struct transfer transfer;             /* made by calibration_write */
    struct fit_input in;                  /* what ran so far; fit_input_init and _fini */
    uint32_t n_whole;                     /* runs of policies in it; the others are benches */
    struct pairs pairs;                   /* of calibration_pairs */
    struct document *said;                /* what they show; NULL: not asked */
};

/* Runs the bench on every device, and every policy on every trace once. An exit status; stderr has
 * the reason of a failed run. */
int calibration_round(struct calibration *c, struct err *e);
/* Measures which kernels slow each other (pairs_here.h); calibration_write puts that into the file.
 */
void calibration_pairs(struct calibration *c);
/* Fits what ran so far and writes the SoC file. */
int calibration_write(struct calibration *c, struct fit *fit, struct err *e);
void calibration_print(const struct calibration *c, const struct fit *f, FILE *out);

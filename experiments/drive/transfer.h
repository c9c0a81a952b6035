/* The transferable result of a calibration: rate, bandwidth, launches, fill, knee, and attention by
 * phase of each device. It predicts kernels of any model, while measured tables are for one model.
 *
 * Kernels of equal work are one observation, weighted by the root of their total time. The fit
 * minimises the weighted squares of ln(predicted / measured) of the model `p-norm`, whose numbers
 * stay within physical bounds. Its knee lies between a maximum of compute and memory time and their
 * sum: a one-row layer computes its attention after it has read its weights. A number's range is
 * that of 95 %, from a jackknife over tenths of the kinds of work. */
#pragma once

#include <cjson/cJSON.h>

#include "experiments/drive/fit.h"
#include "hwmodels/soc.h"

enum transfer_number {
    TRANSFER_RATE,
    TRANSFER_BANDWIDTH,
    TRANSFER_LAUNCH,
    TRANSFER_FILL,
    TRANSFER_ATTENTION,
    TRANSFER_DECODE_ATTENTION,
    TRANSFER_KNEE,
    TRANSFER_ONE_LAUNCH, /* of one-row kernels */
    TRANSFER_NUMBERS
};

struct transfer_device {
    struct fit_number number[TRANSFER_NUMBERS]; /* in units of a SoC file */
    uint32_t few_rows;            /* sequences with fewer rows run at the rate of decodes */
    uint32_t kinds, kernels;      /* kinds 0: no kernels ran there */
    double median_frac, p90_frac; /* |error| of kinds, weighted by time */
};

struct transfer {
    struct transfer_device devices[MACHINE_MAX_DEVICES];
    uint32_t n_devices;
};

/* Fits every device that ran kernels. soc: start values; llm: the model that ran; fit: the rows at
 * which the attention path changes. */
void transfer_fit(const struct fit_input *in, const struct fit *fit, const struct soc *soc,
                  const struct llm *llm, struct transfer *out);

/* Writes a device's numbers into a runtime entry. */
void transfer_write(const struct transfer_device *d, cJSON *entry, const char *source);
/* A line per device. */
void transfer_print(const struct transfer *t, const struct machine *m, FILE *out);

/* The transferable form of a calibration: rate, bandwidth, launches, fill, knee, and attention by
 * phase of each device. It says what kernels of any model take, where measured tables know one
 * model only.
 *
 * Kernels of the same work count together, with the root of the time that they took in all as their
 * weight. The fit minimises the weighted squares of ln(predicted / measured) of the model `p-norm`,
 * whose numbers stay within physical bounds. Its knee lies between a maximum of compute and memory
 * time and their sum: a one-row layer computes its attention after it has read its weights. A
 * number's range is that of 95 %, from a jackknife over tenths of the kinds of work. */
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
    uint32_t few_rows;       /* prompts with fewer rows of a sequence run at the rate of decodes */
    uint32_t kinds, kernels; /* kinds 0: nothing ran there */
    double median_frac, p90_frac; /* |error| of kinds, by time */
};

struct transfer {
    struct transfer_device devices[MACHINE_MAX_DEVICES];
    uint32_t n_devices;
};

/* Fits every device that ran kernels; soc: the machine that it starts from, llm: the model that
 * ran, fit: where attention changes over. */
void transfer_fit(const struct fit_input *in, const struct fit *fit, const struct soc *soc,
                  const struct llm *llm, struct transfer *out);

/* Writes the numbers of device i into a runtime entry. */
void transfer_write(const struct transfer_device *d, cJSON *entry, const char *source);
/* A line per device. */
void transfer_print(const struct transfer *t, const struct machine *m, FILE *out);
